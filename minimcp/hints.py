"""A signature is a closed object: type hints become a schema, and arguments what was declared.

`read_hint` gives two things: the JSON Schema of a type hint, and a function from a value that
fits it to what the hint promises (an `Enum` member, a dataclass, `2` for `2.0`). A tool, a
dataclass and a `TypedDict` are the same thing here: named members, closed, read by calling it.

https://modelcontextprotocol.io/specification/2026-07-28/server/tools#tool
"""

import types
import typing
from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import Annotated, Any, Final, Literal, NamedTuple, Union, get_args, get_origin

from .protocol import JSON, KINDS, MISSING, dumps, loads
from .schema import Schema, frozen, validate

Content = Annotated[list[dict[str, Any]], "MCP content blocks"]  # a tool that makes its own blocks
Members = dict[str, tuple[Any, Any]]  # name -> (type hint, default); MISSING: it is required
OPTIONAL: Final = object()  # a default that cannot be shown


class Hint(NamedTuple):
    """What a type hint means on the wire, and how a value from there becomes a Python one."""

    schema: Schema
    read: Callable[..., Any] = lambda value: value


PLAIN: Final[dict[Any, Hint]] = {kind: Hint({"type": KINDS[kind]}) for kind in KINDS}
PLAIN.update({int: Hint({"type": "integer"}, int), Any: Hint({}), None: Hint({"type": "null"})})
ADVICE: Final = """use str, int, float, bool, None, list[...], dict[str, ...], a union, Literal, \
Enum, a TypedDict, a dataclass or Any"""


def read_hint(hint: Any) -> Hint:
    """The schema and the reader of one type hint; `TypeError` if JSON cannot express it."""
    if get_args(hint) and (shape := SHAPES.get(get_origin(hint))):
        return shape(*get_args(hint))
    if isinstance(hint, Hashable) and hint in PLAIN:
        return PLAIN[hint]
    if hasattr(hint, "__members__"):
        return _options(list(hint), [member.value for member in hint])
    if hasattr(hint, "__required_keys__"):
        return closed_object(hint, _typed_dict(hint))
    if hasattr(hint, "__dataclass_fields__"):
        if made := [one.name for one in hint.__dataclass_fields__.values() if not one.init]:
            raise TypeError(f"{hint.__name__} makes its {made[0]!r} itself; take a dict")
        return closed_object(hint, parameters(hint.__init__, _hints(hint), bound=1))
    raise TypeError(f"{getattr(hint, '__name__', hint)} has no JSON form; {ADVICE}")


# ## Hints with something in brackets


def _annotated(hint: Any, *notes: Any) -> Hint:
    schema, reader = read_hint(hint)
    for note in notes:
        more = {"description": note} if isinstance(note, str) else note
        schema = {**schema, **more} if isinstance(more, dict) else schema
    return Hint(schema, reader)


def _list(hint: Any) -> Hint:
    item, reader = read_hint(hint)
    return Hint({"type": "array", "items": item}, lambda value: [reader(one) for one in value])


def _dict(key: Any, hint: Any) -> Hint:
    if key is not str:
        raise TypeError("the names in a JSON object are strings; use dict[str, ...]")
    item, reader = read_hint(hint)
    schema = {"type": "object", "additionalProperties": item}
    return Hint(schema, lambda value: {name: reader(one) for name, one in value.items()})


def _union(*hints: Any) -> Hint:
    choices = [read_hint(hint) for hint in hints]

    def reader(value: JSON) -> Any:
        return next(choice.read(value) for choice in choices if not validate(value, choice.schema))

    return Hint({"anyOf": [choice.schema for choice in choices]}, reader)


def _options(members: list[Any], values: list[JSON]) -> Hint:
    kinds = {KINDS.get(type(value)) for value in values}
    if None in kinds or not kinds:
        raise TypeError("an option has no JSON form, or there is none; use strings or numbers")
    schema = {"enum": values} if len(kinds) > 1 else {"type": kinds.pop(), "enum": values}
    meant = dict(zip(map(frozen, values), members, strict=True))
    return Hint(schema, lambda value: meant[frozen(value)])


SHAPES: Final[dict[Any, Callable[..., Hint]]] = {
    Annotated: _annotated,
    list: _list,
    dict: _dict,
    Union: _union,
    types.UnionType: _union,
    Literal: lambda *values: _options(list(values), list(values)),
}

# ## Closed objects

ENDLESS: Final = "a type that contains itself; use dict or Any"


def closed_object(call: Callable[..., Any], members: Members) -> Hint:  # ADR-0004, ADR-0006
    """The schema of named members, and a reader that calls `call` with them as keywords."""
    hints = {name: _member(name, *member) for name, member in members.items()}
    properties = {name: hint.schema for name, hint in hints.items()}
    required = [name for name, (_, default) in members.items() if default is MISSING]
    schema: Schema = {"type": "object", "properties": properties, "required": required}
    schema = {key: operand for key, operand in schema.items() if operand}

    def reader(value: dict[str, JSON], /, **more: Any) -> Any:
        given = {name: hints.get(name, PLAIN[Any]).read(one) for name, one in value.items()}
        return call(**(given | more))

    return Hint({**schema, "additionalProperties": False}, reader)


def _member(name: str, hint: Any, default: Any) -> Hint:
    try:
        schema, reader = read_hint(hint)
    except (TypeError, RecursionError) as error:
        endless = isinstance(error, RecursionError) or ENDLESS in str(error)
        raise TypeError(f"{name!r}: {ENDLESS if endless else error}") from None
    with suppress(Exception):  # there is no default, or none that JSON can show
        shown = loads(dumps(default))
        if not validate(shown, schema):
            return Hint({**schema, "default": shown}, reader)
    return Hint(schema, reader)


def _typed_dict(cls: Any) -> Members:
    members = {}
    for name, hint in _hints(cls).items():
        # subtle: with postponed hints `__required_keys__` does not see these two marks
        mark = getattr(get_origin(hint), "_name", None)
        marked = mark in ("Required", "NotRequired")
        required = mark == "Required" if marked else name in cls.__required_keys__
        members[name] = (get_args(hint)[0] if marked else hint, MISSING if required else OPTIONAL)
    return members


# ## Functions
#
# `inspect.signature` knows all this too, at the price of a quarter more start-up time.

REFUSED: Final = {
    0x04: "any number of arguments; name each one, or take a list",
    0x08: "any named argument; name each one, or take a dict",
    0x20: "a generator, but a call has one result; return a list",
    0x200: "an async generator, but a call has one result; return a list",
}


def parameters(function: Any, hints: dict[str, Any], bound: int, free: bool = False) -> Members:
    """What a function takes by name; `TypeError` for what no call could fill.

    The first `bound` parameters are taken already. `free` allows `**more`.
    """
    code = function.__code__
    count = code.co_argcount + code.co_kwonlyargcount
    for flag, reason in REFUSED.items():
        if code.co_flags & flag and not (free and flag == 0x08):
            name = code.co_varnames[count] if flag < 0x20 else function.__name__
            raise TypeError(f"{name!r} is {reason}")
    names = code.co_varnames[bound:count]
    if code.co_posonlyargcount > bound:
        raise TypeError(f"{names[0]!r} is positional-only; remove the '/'")
    if names[:1] == ("self",) and "self" not in hints:
        raise TypeError("'self' is of no object yet; register the method of an object")
    last = code.co_varnames[: code.co_argcount][::-1]
    defaults = dict(zip(last, (function.__defaults__ or ())[::-1], strict=False))
    defaults.update(function.__kwdefaults__ or {})
    return {name: (hints.get(name, Any), defaults.get(name, MISSING)) for name in names}


def signature(function: Any, free: bool = False) -> tuple[Members, Any]:
    """The parameters and the return hint of anything that can be called.

    A parameter without a hint takes any JSON value. `free` is for a schema written by hand.
    """
    shown = hasattr(function, "__code__") or isinstance(function, type)
    plain: Any = function if shown else function.__call__
    bound = int(hasattr(plain, "__func__"))  # a method has its first argument already
    while hasattr(plain, "__wrapped__"):
        plain = plain.__wrapped__
    if not hasattr(plain, "__code__"):
        raise TypeError(f"{function!r} does not show its parameters; wrap it in a def")
    hints = _hints(plain)
    return parameters(plain, hints, bound, free), hints.get("return", Any)


def _hints(holder: Any) -> dict[str, Any]:
    written: dict[str, Any] = {}
    try:
        written = holder.__annotations__
        return typing.get_type_hints(holder, include_extras=True)
    except (NameError, AttributeError, SyntaxError, TypeError) as error:
        where = [repr(key) for key in written if getattr(error, "name", "") in str(written[key])]
        text = f"{', '.join(where) or holder.__name__}: {error}"
        raise TypeError(f"{text}; use types that are defined at module level") from None
