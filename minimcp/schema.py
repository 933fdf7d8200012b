"""The validator: does a value fit a schema, and if not, what is wrong and where?

It knows the small part of JSON Schema that our type hints produce and that describes this part.
A schema that uses any other keyword is left to `dialects`, which asks the `jsonschema` library.
"""

import json
from collections.abc import Callable, Hashable
from typing import Any, Final

from .protocol import JSON, KINDS, describe

Schema = dict[str, Any]
Problem = tuple[str, str]  # where, seen from the value (".items[1]"), and what is wrong there
Rule = Callable[[JSON, Any, Schema], list[Problem]]
Check = Callable[[JSON], list[Problem]]

MOST: Final = 20  # problems that are told at once

# ## The idea
#
# A schema is a dict of keywords, and each keyword is one rule. The validator carries no path:
# a rule that looks inside a value puts that step in front of what comes back.


def validate(value: JSON, schema: Schema) -> list[Problem]:
    """All problems of a value, each with its place; an empty list when it fits."""
    problems: list[Problem] = []
    for keyword, operand in schema.items():
        kind, rule, _ = KEYWORDS.get(keyword, REMARK)
        if isinstance(value, kind) and (found := rule(value, operand, schema)):
            problems += found
    return problems


def checker(schema: Schema, trusted: bool = True) -> Check:  # ADR-0005
    """A function that lists the problems of a value; `ValueError` if the schema is no schema.

    In a schema that is not `trusted`, because a peer sent it, no `pattern` is ever run.
    """
    if problems := validate(schema, {"type": "object"}):
        raise ValueError(explain(problems, "schema"))
    if validate(schema, SUBSET):
        from .dialects import full_checker

        return full_checker(schema, trusted)
    return lambda value: validate(value, schema)


def explain(problems: list[Problem], root: str) -> str:
    """One line a problem: `arguments.items[1].price: expected number, got string "x"`."""
    lines = [f"{root}{where}: {what}" for where, what in problems[:MOST]]
    rest = len(problems) - len(lines)
    return "\n".join([*lines, f"and {rest} more"] if rest else lines)


# ## Values
#
# Two traps of Python: `True` is an `int`, and `2.0` is not. In JSON Schema `true` is no number,
# and `2.0` is an integer.


def is_type(value: JSON, name: str) -> bool:
    """Whether a value is of a JSON Schema type."""
    kind = KINDS.get(type(value))
    if kind == "number":
        return name == "number" or (name == "integer" and value.is_integer())
    return kind == name or (kind == "integer" and name == "number")


def frozen(value: JSON) -> Hashable:
    """Equal for equal JSON, at any depth: `1` is `1.0`, but `true` is not `1`.

    Numbers become texts, since anybody can find thousands of numbers that have one hash.
    """
    if isinstance(value, list):
        return tuple(map(frozen, value))
    if isinstance(value, dict):
        return frozenset((key, frozen(one)) for key, one in value.items())
    if value is None or isinstance(value, str):
        return value
    whole = isinstance(value, float) and value.is_integer()
    return type(value) is bool, str(int(value) if whole else value)


def step(key: str | int) -> str:
    """One step into a value: `.name`, `[0]`, or `["odd name"]`."""
    return f".{key}" if str(key).isidentifier() else f"[{json.dumps(key)}]"


def inside(parts: list[tuple[str | int, JSON, Schema]]) -> list[Problem]:
    """The problems of members or items, seen from outside."""
    problems: list[Problem] = []
    for key, value, schema in parts:
        if found := validate(value, schema):
            problems += [(step(key) + where, what) for where, what in found]
    return problems


# ## The rules
#
# Each concerns values of one kind, and says nothing about others.


def _type(value: JSON, name: str, _: Schema) -> list[Problem]:
    if KINDS.get(type(value)) == name or is_type(value, name):
        return []
    return [("", f"expected {name}, got {describe(value)}")]


def _enum(value: JSON, options: list[JSON], _: Schema) -> list[Problem]:
    if frozen(value) in map(frozen, options):
        return []
    return [("", f"expected one of {json.dumps(options)}, got {describe(value)}")]


def _any_of(value: JSON, schemas: list[Schema], _: Schema) -> list[Problem]:
    tries = [validate(value, schema) for schema in schemas]
    if not all(tries):
        return []
    for problems in tries:  # the best advice is about an alternative whose type did fit
        if any(where for where, _ in problems):
            return problems
    wanted = [what.partition(", got ")[0] for problems in tries for _, what in problems]
    text = " or ".join(dict.fromkeys(wanted)).replace(" or expected ", " or ")
    return [("", f"{text}, got {describe(value)}")]


def _properties(value: Any, schemas: dict[str, Schema], _: Schema) -> list[Problem]:
    return inside([(name, value[name], schemas[name]) for name in schemas if name in value])


def _required(value: Any, names: list[str], _: Schema) -> list[Problem]:
    return [(step(name), "missing") for name in names if name not in value]


def _additional(value: Any, schema: bool | Schema, parent: Schema) -> list[Problem]:
    known = parent.get("properties", {})
    if schema is True or value.keys() <= known.keys():
        return []
    others = [name for name in value if name not in known]
    if isinstance(schema, dict):
        return inside([(name, value[name], schema) for name in others])
    text = f"unknown name; known: {', '.join(known) or 'none'}"
    return [(step(name), text) for name in others]


def _items(value: Any, schema: Schema, _: Schema) -> list[Problem]:
    return inside([(index, item, schema) for index, item in enumerate(value)])


def _min_items(value: Any, least: int, _: Schema) -> list[Problem]:
    text = f"expected {least} or more items, got {len(value)}"
    return [] if len(value) >= least else [("", text)]


def _unique(value: Any, wanted: bool, _: Schema) -> list[Problem]:
    twice = wanted and len({*map(frozen, value)}) < len(value)
    return [("", "expected items that differ")] if twice else []


# ## The subset, described in itself
#
# A keyword: what kind of value it concerns, its rule, and what may be written behind it. The last
# column is a schema too, checked by the same rules, and so it says which schemas are small enough
# for this page. It is recursive in the simplest way there is: the dict contains itself.

SUBSET: Final[Schema] = {}
_STRING: Final = {"type": "string"}
_SOME: Final = {"type": "array", "items": SUBSET, "minItems": 1}
_NAMES: Final = {"type": "array", "items": _STRING, "uniqueItems": True}

REMARK: Final[tuple[Any, Rule, Schema]] = ((), _type, {})  # says nothing about values
KEYWORDS: Final[dict[str, tuple[Any, Rule, Schema]]] = {
    "type": (object, _type, {"enum": [*KINDS.values()]}),
    "enum": (object, _enum, {"type": "array"}),
    "anyOf": (object, _any_of, _SOME),
    "properties": (dict, _properties, {"type": "object", "additionalProperties": SUBSET}),
    "required": (dict, _required, _NAMES),
    "additionalProperties": (dict, _additional, {"anyOf": [{"type": "boolean"}, SUBSET]}),
    "items": (list, _items, SUBSET),
    "minItems": (list, _min_items, {"enum": [0, 1]}),
    "uniqueItems": (list, _unique, {"type": "boolean"}),
}
REMARKS: Final = {"title": _STRING, "description": _STRING, "default": {}, "x-mcp-header": _STRING}
OPERANDS: Final = {keyword: operand for keyword, (_, _, operand) in KEYWORDS.items()} | REMARKS
SUBSET.update({"type": "object", "properties": OPERANDS, "additionalProperties": False})
