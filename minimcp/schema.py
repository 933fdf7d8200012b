"""The validator: does a value fit a schema, and if not, what is wrong and where?

It knows the small part of JSON Schema that our type hints produce. A schema that uses any other
keyword is left to `dialects`, which asks the `jsonschema` library.
"""

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

from .protocol import JSON, KINDS, describe

Schema = dict[str, Any]
Problem = tuple[str, str]  # where, seen from the value (".items[1]"), and what is wrong there
Rule = Callable[[JSON, Any, Schema], Iterator[Problem]]
Check = Callable[[JSON], list[Problem]]

# ## The idea
#
# A schema is a dict of keywords, and each keyword is one rule. The validator carries no path:
# a rule that looks inside a value puts that step in front of what comes back.


def validate(value: JSON, schema: Schema) -> list[Problem]:
    """All problems of a value, each with its place; an empty list when it fits."""
    problems: list[Problem] = []
    for keyword, operand in schema.items():
        rule = RULES.get(keyword)
        if rule:
            problems += rule(value, operand, schema)
    return problems


def checker(schema: Schema, trusted: bool = True) -> Check:
    """A function that lists the problems of a value; `ValueError` if the schema is no schema.

    In a schema that is not `trusted`, because a peer sent it, no `pattern` is ever run.
    """
    if validate(schema, SUBSET):
        from .dialects import full_checker

        return full_checker(schema, trusted)
    return partial(validate, schema=schema)


def explain(problems: list[Problem], root: str) -> str:
    """One line a problem: `arguments.items[1].price: expected number, got string "x"`."""
    return "\n".join(f"{root}{where}: {what}" for where, what in problems)


# ## Types
#
# Two traps of Python: `True` is an `int`, and `2.0` is not. In JSON Schema `true` is no number,
# and `2.0` is an integer.


def is_type(value: JSON, name: str) -> bool:
    """Whether a value is of a JSON Schema type."""
    if name == "integer":
        return type(value) is int or (type(value) is float and value.is_integer())
    return KINDS.get(type(value)) == name or (name == "number" and type(value) is int)


def same(one: JSON, other: JSON) -> bool:
    """Equality of JSON: `1` is `1.0`, but `true` is not `1`, at any depth."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return bool(one == other)


# ## The rules


def step(key: str | int) -> str:
    """One step into a value: `.name`, `[0]`, or `["odd name"]`."""
    is_name = isinstance(key, str) and key.isidentifier()
    return f".{key}" if is_name else f"[{json.dumps(key)}]"


def _type(value: JSON, name: str, _: Schema) -> Iterator[Problem]:
    if not is_type(value, name):
        yield "", f"expected {name}, got {describe(value)}"


def _enum(value: JSON, options: list[JSON], _: Schema) -> Iterator[Problem]:
    if not any(same(value, option) for option in options):
        yield "", f"expected one of {options}, got {describe(value)}"


def _any_of(value: JSON, schemas: list[Schema], _: Schema) -> Iterator[Problem]:
    tries = [validate(value, schema) for schema in schemas]
    if all(tries):
        inner = next((found for found in tries if any(where for where, _ in found)), None)
        merged = " or ".join(dict.fromkeys(what.split(", got ")[0] for [(_, what), *_] in tries))
        text = f"{merged.replace(' or expected ', ' or ')}, got {describe(value)}"
        yield from inner or [("", text)]


def _properties(value: JSON, schemas: dict[str, Schema], _: Schema) -> Iterator[Problem]:
    if isinstance(value, dict):
        for name, schema in schemas.items():
            if name in value:
                for where, what in validate(value[name], schema):
                    yield step(name) + where, what


def _required(value: JSON, names: list[str], _: Schema) -> Iterator[Problem]:
    if isinstance(value, dict):
        for name in names:
            if name not in value:
                yield step(name), "missing"


def _additional(value: JSON, schema: bool | Schema, parent: Schema) -> Iterator[Problem]:
    known = parent.get("properties", {})
    extra = [name for name in value if name not in known] if isinstance(value, dict) else []
    for name in extra:
        if schema is False:
            yield step(name), f"unknown name; known: {', '.join(known) or 'none'}"
        elif schema is not True:
            for where, what in validate(value[name], schema):
                yield step(name) + where, what


def _items(value: JSON, schema: Schema, _: Schema) -> Iterator[Problem]:
    if isinstance(value, list):
        for index, item in enumerate(value):
            for where, what in validate(item, schema):
                yield step(index) + where, what


RULES: Final[dict[str, Rule]] = {
    "type": _type,
    "enum": _enum,
    "anyOf": _any_of,
    "properties": _properties,
    "required": _required,
    "additionalProperties": _additional,
    "items": _items,
}

# ## The subset, described in itself
#
# Which schemas are small enough for the rules above? The answer is a schema too, checked by the
# same rules. It is recursive in the simplest way there is: the dict contains itself.

_NAMES: Final = ["object", "array", "string", "boolean", "integer", "number", "null"]
_STRING: Final[Schema] = {"type": "string"}
SUBSET: Final[Schema] = {"type": "object", "additionalProperties": False}
SUBSET["properties"] = {
    "type": {"enum": _NAMES},
    "enum": {"type": "array"},
    "anyOf": {"type": "array", "items": SUBSET},
    "properties": {"type": "object", "additionalProperties": SUBSET},
    "required": {"type": "array", "items": _STRING},
    "additionalProperties": {"anyOf": [{"type": "boolean"}, SUBSET]},
    "items": SUBSET,
    "title": _STRING,
    "description": _STRING,
    "default": {},
    "x-mcp-header": _STRING,
}
