"""Notebook 2, tools: its exercises, its tools and its table."""

from __future__ import annotations

import json
import typing
from typing import Annotated, Literal, get_args, get_origin

from .exercise import Exercise, Mistake
from .lines import call, error, line, result, text

KINDS = {int: "integer", float: "number", str: "string", bool: "boolean", type(None): "null"}

check_schema_of = Exercise(
    "schema_of",
    cases=[
        ((int,), "a plain type has an entry in KINDS"),
        ((bool,), "so has this one"),
        ((list[str],), "a list says what its items are"),
        ((list[list[int]],), "the items can be lists again"),
        ((dict[str, float],), "the names are free, the values are not"),
        ((dict[str, list[bool]],), "one inside the other"),
    ],
    solution="""
def schema_of(hint):
    if get_origin(hint) is list:
        (item,) = get_args(hint)
        return {"type": "array", "items": schema_of(item)}
    if get_origin(hint) is dict:
        _, value = get_args(hint)
        return {"type": "object", "additionalProperties": schema_of(value)}
    return {"type": KINDS[hint]}
""",
    hints=[
        "get_origin(list[str]) is list, and get_args(list[str]) is (str,)",
        'list[X] is {"type": "array", "items": …}, with the schema of X',
        'dict[str, X] is {"type": "object", "additionalProperties": …}, with the schema of X',
    ],
    mistakes=[
        Mistake(
            """
def schema_of(hint):
    if get_origin(hint) is list:
        return {"type": "array"}
    if get_origin(hint) is dict:
        return {"type": "object"}
    return {"type": KINDS[hint]}
""",
            "you leave out what is inside; a client could send a list of anything",
        ),
        Mistake(
            """
def schema_of(hint):
    if get_origin(hint) is list:
        return {"type": "array", "items": {"type": KINDS[get_args(hint)[0]]}}
    if get_origin(hint) is dict:
        return {"type": "object", "additionalProperties": {"type": KINDS[get_args(hint)[1]]}}
    return {"type": KINDS[hint]}
""",
            "you look only one level deep; let schema_of call itself for what is inside",
        ),
        Mistake(
            """
def schema_of(hint):
    if get_origin(hint) is list:
        return {"type": "array", "items": schema_of(get_args(hint)[0])}
    if get_origin(hint) is dict:
        return {"type": "object", "properties": schema_of(get_args(hint)[1])}
    return {"type": KINDS[hint]}
""",
            "you use properties, which is for names known beforehand; any other name is additional",
        ),
    ],
    given={"KINDS": KINDS, "get_origin": get_origin, "get_args": get_args},
    label=lambda hint: (
        f"schema_of({getattr(hint, '__name__', hint)})"
        if isinstance(hint, type) and not get_args(hint)
        else f"schema_of({hint})"
    ),
)


def _add(a: int, b: int) -> int:
    return a + b


def _shout(text: str, times: int = 1) -> str:
    return text.upper() * times


def _now() -> str:
    return "now"


def _find(words: list[str], limit: int = 10, exact: bool = False) -> list[str]:
    return words[:limit]


def _zero(start: int = 0, end: int | None = None) -> int:
    return start


check_required = Exercise(
    "required",
    cases=[
        ((_add,), "both, in the order of the signature"),
        ((_shout,), "times has a default, so it may be left out"),
        ((_now,), "nothing can be required of a function that takes nothing"),
        ((_find,), "only the first is without a default"),
        ((_zero,), "a default of 0 or None is a default too"),
    ],
    solution="""
def required(function):
    parameters = inspect.signature(function).parameters
    return [name for name, one in parameters.items() if one.default is one.empty]
""",
    hints=[
        "inspect.signature(function).parameters maps names to parameters, in order",
        "a parameter has .default; where there is none, that is the marker parameter.empty",
    ],
    mistakes=[
        Mistake(
            """
def required(function):
    return list(inspect.signature(function).parameters)
""",
            "you require all of them, so that a default is never used",
        ),
        Mistake(
            """
def required(function):
    parameters = inspect.signature(function).parameters
    return [name for name, one in parameters.items() if not one.default or one.default is one.empty]
""",
            "you test the truth of the default; 0, None and False are defaults",
        ),
        Mistake(
            """
def required(function):
    parameters = inspect.signature(function).parameters
    return sorted(n for n, one in parameters.items() if one.default is not one.empty)
""",
            "you list those that have a default; those without one are required",
        ),
    ],
    given={"inspect": __import__("inspect")},
    label=lambda function: f"required({function.__name__.strip('_')})",
)

check_as_result = Exercise(
    "as_result",
    cases=[
        (("HELLO",), "a text is a text block, as it is"),
        (({"words": 2},), "an object is sent twice: for programs, and as JSON for the model"),
        ((42,), "any other value is its JSON, as text"),
        ((None,), "the JSON of None is null"),
        (([1, "a"],), "a list too"),
        (({"text": "é"},), "the JSON keeps é as it is"),
    ],
    solution="""
def as_result(value):
    if isinstance(value, str):
        return {"content": [{"type": "text", "text": value}]}
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    result = {"content": [{"type": "text", "text": text}]}
    return {**result, "structuredContent": value} if isinstance(value, dict) else result
""",
    hints=[
        "all results have content, a list with one text block; only what is in it differs",
        'a dict also stands, untouched, under "structuredContent"',
        'json.dumps(value, ensure_ascii=False, separators=(",", ":")) is compact and keeps é',
    ],
    mistakes=[
        Mistake(
            """
def as_result(value):
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    result = {"content": [{"type": "text", "text": text}]}
    return {**result, "structuredContent": value} if isinstance(value, dict) else result
""",
            "you make JSON of texts as well, and the model reads quotes that nobody wrote",
        ),
        Mistake(
            """
def as_result(value):
    text = value if isinstance(value, str) else str(value)
    result = {"content": [{"type": "text", "text": text}]}
    return {**result, "structuredContent": value} if isinstance(value, dict) else result
""",
            "you use str(), which writes Python: None for null, and single quotes",
        ),
        Mistake(
            """
def as_result(value):
    if isinstance(value, dict):
        return {"structuredContent": value}
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    return {"content": [{"type": "text", "text": text}]}
""",
            "you send an object only once; models read the text, and content is mandatory",
        ),
    ],
    given={"json": json},
)


# ## The tools that both servers get, and what they are asked


def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


def shout(text: Annotated[str, "what to shout"], times: int = 1) -> str:
    """Say it loudly."""
    return text.upper() * times


def count(text: str, kind: Literal["words", "characters"] = "words") -> dict[str, int]:
    """Count the words or the characters of a text."""
    return {kind: len(text.split()) if kind == "words" else len(text)}


def average(numbers: list[float], ignore: float | None = None) -> float:
    """The mean of some numbers, perhaps without one of them."""
    kept = [one for one in numbers if one != ignore]
    return sum(kept) / len(kept)


TOOLS = [add, shout, count, average]


def closed(required: list[str], **properties: typing.Any) -> dict[str, object]:
    """The schema of arguments."""
    schema = {"type": "object", "properties": properties, "required": required}
    return {**schema, "additionalProperties": False}


INTEGER, NUMBER, STRING = {"type": "integer"}, {"type": "number"}, {"type": "string"}
LISTED = [
    {
        "name": "add",
        "description": "Add two integers.",
        "inputSchema": closed(["a", "b"], a=INTEGER, b=INTEGER),
    },
    {
        "name": "shout",
        "description": "Say it loudly.",
        "inputSchema": closed(
            ["text"],
            text={"type": "string", "description": "what to shout"},
            times={"type": "integer", "default": 1},
        ),
    },
    {
        "name": "count",
        "description": "Count the words or the characters of a text.",
        "inputSchema": closed(
            ["text"],
            text=STRING,
            kind={"type": "string", "enum": ["words", "characters"], "default": "words"},
        ),
        "outputSchema": {"type": "object", "additionalProperties": INTEGER},
    },
    {
        "name": "average",
        "description": "The mean of some numbers, perhaps without one of them.",
        "inputSchema": closed(
            ["numbers"],
            numbers={"type": "array", "items": NUMBER},
            ignore={"anyOf": [NUMBER, {"type": "null"}], "default": None},
        ),
    },
]
LINES = [
    (line("tools/list", 1), result(1, {"tools": LISTED})),
    (call(2, "add", a=2, b=40), text(2, "42")),
    (call(3, "shout", text="hé"), text(3, "HÉ")),
    (call(4, "shout", text="ho", times=3), text(4, "HOHOHO")),
    (call(5, "count", text="two words"), text(5, '{"words":2}', structuredContent={"words": 2})),
    (call(6, "average", numbers=[1.5, 2.5]), text(6, "2.0")),
    (call(7, "average", numbers=[1.0, 4.0], ignore=4.0), text(7, "1.0")),
    (call(8, "subtract", a=2, b=1), error(-32602, 8)),
    (call(9, ["add"]), error(-32602, 9)),
    (line("tools/call", 10, name="add", arguments=[2, 40]), error(-32602, 10)),
    (line("tools/call", 11), error(-32602, 11)),
    (line("add", 12, a=2, b=40), error(-32601, 12)),
]
