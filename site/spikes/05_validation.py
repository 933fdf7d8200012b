"""By hand, `jsonschema`, or compiled: what does validation cost, and what does each get right?

The hypothesis: on the schemas that it takes, our validator makes no mistake in the official test
suite, and it is quicker than the library. The suite is in the library's source distribution, from
where a full run takes it; it is not part of this repository.
"""

import json
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any
from unittest import mock

import fastjsonschema
import lab
from jsonschema import Draft7Validator, Draft202012Validator
from jsonschema_specifications import REGISTRY

from minimcp import schema as ours
from minimcp.hints import closed_object

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


def suite(folder: str) -> dict[str, list[Case]]:
    """The official cases of each draft, out of the library's source distribution."""
    wanted = f"jsonschema=={metadata.version('jsonschema')}"
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary=:all:"]
    subprocess.run([*pip, "-d", folder, wanted], check=True)  # noqa: S603
    with tarfile.open(next(Path(folder).glob("*.tar.gz"))) as archive:
        return {draft: list(cases(archive, f"/json/tests/{draft}/")) for draft in DRAFTS}


def cases(archive: tarfile.TarFile, inside: str) -> Iterator[Case]:
    for member in archive.getmembers():
        _, found, name = member.name.partition(inside)
        if found and name.endswith(".json") and "/" not in name:
            for group in json.load(archive.extractfile(member)):  # type: ignore[arg-type]
                for test in group["tests"]:
                    yield group["schema"], test["data"], test["valid"]


def by_hand(schema: Any, draft: str) -> Judge:
    schema = {k: v for k, v in schema.items() if (k, v) != ("$schema", DRAFTS[draft][0])}
    if ours.validate(schema, ours.SUBSET):
        raise ValueError("not in the subset")
    return lambda value: not ours.validate(value, schema)


def as_it_is(schema: Any, draft: str) -> Judge:
    check = ours.checker({"$schema": DRAFTS[draft][0], **schema})

    def judge(value: Any) -> bool:
        problems = check(value)
        if problems and "cannot be checked" in problems[0][1]:
            raise ValueError(problems)
        return not problems

    return judge


def library(schema: Any, draft: str) -> Judge:
    return DRAFTS[draft][1](schema, registry=REGISTRY).is_valid


def compiled(schema: Any, draft: str) -> Judge:
    check = fastjsonschema.compile(
        {"$schema": DRAFTS[draft][0], **schema}, handlers={"http": None, "https": None}
    )

    def judge(value: Any) -> bool:
        try:
            check(value)
        except fastjsonschema.JsonSchemaValueException:
            return False
        return True

    return judge


def score(make: Callable[[Any, str], Judge], draft: str, found: list[Case]) -> list[int]:
    """How many cases are right, wrong and not taken."""
    counted = [0, 0, 0]
    for schema, value, valid in found:
        try:
            counted[0 if make(schema, draft)(value) == valid else 1] += 1
        except Exception:
            counted[2] += 1
    return counted


def scores(draft: str, found: list[Case]) -> dict[str, int]:
    judges = {BY_HAND: by_hand, BOTH: as_it_is, LIBRARY: library}
    if draft == "draft7":  # it knows no newer one
        judges[COMPILED] = compiled
    known = {"cases": len(found)}
    for name, make in judges.items():
        lab.progress(f"{draft}: {name}")
        numbers = zip(("right", "wrong", "not taken"), score(make, draft, found), strict=True)
        known |= {f"{name}: {what}": number for what, number in numbers}
    return known


# ## What it costs

ORDER = {"item": "shirt", "count": 2, "colours": ["red", "blue"]}


def order(item: str, count: int, colours: list[str]) -> str:
    """What the arguments are for."""
    return ""


def prepared() -> dict[str, Callable[[], object]]:
    """One check of the same arguments by each, everything being ready."""
    from minimcp.hints import signature

    schema, _ = closed_object(order, signature(order, False)[0])
    check, valid, quick = (
        ours.checker(schema),
        Draft202012Validator(schema),
        compiled(schema, "draft7"),
    )
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


def start(code: str) -> float:
    """Milliseconds, in a process of its own."""
    timed = f"from time import perf_counter as now; start = now(); {code}; print(now() - start)"
    command = [sys.executable, "-c", timed]
    done = subprocess.run(command, capture_output=True, check=True, cwd=lab.ROOT, text=True)  # noqa: S603
    return float(done.stdout) * 1000


def credulous(value: Any, name: str) -> bool:
    """Python's types, taken for those of JSON."""
    kinds = {"integer": int, "number": (int, float), "string": str, "boolean": bool}
    kinds |= {"array": list, "object": dict, "null": type(None)}
    return isinstance(value, kinds[name])


def measure(rounds: int, control: bool = False) -> lab.Groups:
    """The scores; then checks in turn, then starts in turn."""
    lab.pin()
    with tempfile.TemporaryDirectory() as folder:
        found = suite(folder) if rounds == ROUNDS else dict.fromkeys(DRAFTS, TRAPS)
    with mock.patch.object(ours, "is_type", credulous if control else ours.is_type):
        groups = {f"{draft}: official cases": scores(draft, one) for draft, one in found.items()}
    works = {name: partial(micro, work) for name, work in prepared().items()}
    groups[COST] = lab.interleave(works, rounds)
    groups[START] = lab.interleave(
        {name: partial(start, code) for name, code in STARTS.items()}, rounds
    )
    return groups


def micro(work: Callable[[], object]) -> float:
    return lab.timed(work, 200) * 1e6


def verdict(groups: lab.Groups) -> tuple[bool, str]:
    """No mistake by hand, and quicker than the library."""
    counted = [group for title, group in groups.items() if "cases" in title]
    mistakes = {
        name: sum(group.get(f"{name}: wrong", 0) for group in counted)
        for name in (BY_HAND, BOTH, LIBRARY, COMPILED)
    }
    taken = sum(group[f"{BY_HAND}: right"] + group[f"{BY_HAND}: wrong"] for group in counted)
    cost = {name: lab.shown(one["ratio"]) for name, one in groups[COST].items()}
    said = (
        f"By hand, {mistakes[BY_HAND]} of the {taken} cases that it takes are wrong; the library "
    )
    said += f"has {mistakes[LIBRARY]} wrong, and compiled code {mistakes[COMPILED]}. A check by "
    said += f"`jsonschema` takes {cost[LIBRARY]} times ours, a compiled one {cost[COMPILED]} times."
    return mistakes[BY_HAND] == 0 and groups[COST][LIBRARY]["ratio"] > 1, said
