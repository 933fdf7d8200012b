"""By hand, `jsonschema`, or compiled: what does validation cost, and what does each get right?

The hypothesis: on the schemas that it takes, our validator makes no mistake in the official test
suite, and it is quicker than the library. The suite is in the library's source distribution, from
where a full run takes it; it is not part of this repository.
"""

from collections.abc import Callable
from functools import partial
from typing import Any
from unittest import mock

import fastjsonschema
import lab
from jsonschema import Draft7Validator, Draft202012Validator
from jsonschema_specifications import REGISTRY

from minimcp import schema as ours
from minimcp.hints import closed_object, signature

QUESTION = "By hand, jsonschema, or compiled: what does validation cost, and what is right?"
CONTROL = "a validator by hand that takes Python's word for it: `isinstance(True, int)`"
ADRS = ["0005", "0006"]
PACKAGES = ["minimcp-reference", "jsonschema", "fastjsonschema"]
ROUNDS, QUICK = 41, 1
DRAFTS = {
    "draft2020-12": ("https://json-schema.org/draft/2020-12/schema", Draft202012Validator),
    "draft7": ("http://json-schema.org/draft-07/schema#", Draft7Validator),
}
COST, START = "one check of three arguments, µs", "import, prepare and check once, ms"
Case = tuple[Any, Any, bool]
Judge = Callable[[Any], bool]
BY_HAND, BOTH, LIBRARY, COMPILED = "by hand", "minimcp, as it is", "jsonschema", "fastjsonschema"

# A short run has no suite, but these: each is a mistake that somebody has made.

TRAPS: list[Case] = [
    ({"type": "integer"}, True, False),
    ({"type": "integer"}, 1.0, True),
    ({"type": "number"}, False, False),
    ({"enum": [1]}, True, False),
    ({"enum": [[False]]}, [0], False),
    ({"enum": [1]}, 1.0, True),
    ({"items": {"type": "string"}}, "no list", True),
    ({"uniqueItems": True}, [1, True], True),
    ({"required": ["a"]}, [], True),
    ({"additionalProperties": False}, {"a": 1}, False),
    ({"anyOf": [{"type": "null"}, {"type": "string"}]}, None, True),
    ({"$ref": "#/$defs/a", "$defs": {"a": {"type": "null"}}}, 1, False),
    ({"pattern": "^a*$"}, "b", False),
]

# ## What is right
#
# Each way makes a judge of a schema, or raises. Nobody may fetch a `$ref`: `jsonschema` is told
# where the drafts are, and `fastjsonschema` that there is nobody to ask.


def by_hand(schema: Any, draft: str) -> Judge:
    schema = {k: v for k, v in schema.items() if (k, v) != ("$schema", DRAFTS[draft][0])}
    if ours.validate(schema, ours.SUBSET):
        raise ValueError("not in the subset")
    return lambda value: not ours.validate(value, schema)


def as_it_is(schema: Any, draft: str) -> Judge:
    check = ours.checker({"$schema": DRAFTS[draft][0], **schema})

    def judge(value: Any) -> bool:
        problems = check(value)
        if problems and "leads nowhere" in problems[0][1]:  # a reference that is not fetched
            raise ValueError(problems)
        return not problems

    return judge


def library(schema: Any, draft: str) -> Judge:
    return DRAFTS[draft][1](schema, registry=REGISTRY).is_valid


def compiled(schema: Any, draft: str) -> Judge:
    nobody = {"http": None, "https": None}
    check = fastjsonschema.compile({"$schema": DRAFTS[draft][0], **schema}, handlers=nobody)

    def judge(value: Any) -> bool:
        try:
            check(value)
        except fastjsonschema.JsonSchemaValueException:
            return False
        return True

    return judge


def score(make: Callable[[Any, str], Judge], draft: str, found: list[Case]) -> dict[str, int]:
    """How many cases are right, wrong and not taken."""
    lab.progress(f"{draft}: {make.__name__}")
    counted = {"right": 0, "wrong": 0, "not taken": 0}
    for schema, value, valid in found:
        try:
            counted["right" if make(schema, draft)(value) == valid else "wrong"] += 1
        except Exception:
            counted["not taken"] += 1
    return counted


def scores(draft: str, found: list[Case]) -> dict[str, dict[str, int]]:
    judges = {BY_HAND: by_hand, BOTH: as_it_is, LIBRARY: library}
    if draft == "draft7":  # it knows no newer one
        judges[COMPILED] = compiled
    return {name: score(make, draft, found) for name, make in judges.items()}


# ## What it costs

ORDER = {"item": "shirt", "count": 2, "colours": ["red", "blue"]}


def order(item: str, count: int, colours: list[str]) -> str:
    """What the arguments are for."""
    return ""


def prepared() -> dict[str, Callable[[], object]]:
    """One check of the same arguments by each, everything being ready."""
    schema, _ = closed_object(order, signature(order, False)[0])
    check, valid = ours.checker(schema), Draft202012Validator(schema)
    quick = compiled(schema, "draft7")
    return {
        f"minimcp, {BY_HAND}": lambda: check(ORDER),
        LIBRARY: lambda: list(valid.iter_errors(ORDER)),
        COMPILED: lambda: quick(ORDER),
    }


SCHEMA = '{"type": "object", "properties": {"n": {"type": "integer"}}}'
STARTS = {
    f"minimcp, {BY_HAND}": f"from minimcp.schema import checker; checker({SCHEMA})({{'n': 1}})",
    LIBRARY: f"import jsonschema; jsonschema.validate({{'n': 1}}, {SCHEMA})",
    COMPILED: f"import fastjsonschema; fastjsonschema.compile({SCHEMA})({{'n': 1}})",
}


def credulous(value: Any, name: str) -> bool:
    """Python's types, taken for those of JSON."""
    kinds = {"integer": int, "number": (int, float), "string": str, "boolean": bool}
    kinds |= {"array": list, "object": dict, "null": type(None)}
    return isinstance(value, kinds[name])


# ## Together


def measure(rounds: int, control: bool = False) -> lab.Groups:
    """The scores; then checks in turn, then starts in turn."""
    lab.pin()
    found = lab.schema_cases(DRAFTS) if rounds == ROUNDS else dict.fromkeys(DRAFTS, TRAPS)
    with mock.patch.object(ours, "is_type", credulous if control else ours.is_type):
        groups = {f"{draft}, official cases": scores(draft, one) for draft, one in found.items()}
    works = {name: partial(lab.micro, work) for name, work in prepared().items()}
    starts = {name: partial(lab.inside, code) for name, code in STARTS.items()}
    groups[COST] = lab.interleave(works, rounds)
    return groups | {START: lab.interleave(starts, rounds)}


def verdict(groups: lab.Groups) -> tuple[bool, str]:
    """No mistake of ours, and by hand quicker than the library."""
    counted = [group for title, group in groups.items() if "official cases" in title]
    wrong = {
        name: sum(group.get(name, {"wrong": 0})["wrong"] for group in counted)
        for name in (BY_HAND, BOTH, LIBRARY, COMPILED)
    }
    taken = sum(group[BY_HAND]["right"] + group[BY_HAND]["wrong"] for group in counted)
    cost = {name: lab.shown(one["ratio"]) for name, one in groups[COST].items()}
    said = f"By hand, {wrong[BY_HAND]} of the {taken} cases that it takes are wrong; the library "
    said += f"has {wrong[LIBRARY]} wrong, and compiled code {wrong[COMPILED]}. A check by "
    said += f"`jsonschema` takes {cost[LIBRARY]} times ours, a compiled one {cost[COMPILED]} times."
    return wrong[BY_HAND] == wrong[BOTH] == 0 and groups[COST][LIBRARY]["ratio"] > 1, said
