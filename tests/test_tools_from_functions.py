"""Tools from functions: the schema, the arguments as declared, the results as JSON."""

import asyncio
import enum
import functools
import json
import sys
import threading
import typing
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Optional, TypedDict, Union

import pytest
from jsonschema import Draft202012Validator
from support import exchange, modern

from minimcp import Context, Server, ToolError

# What a test needs


def serving(*functions):
    server = Server("functions")
    for function in functions:
        server.tool(function)
    return server


def call(server, name, **arguments):
    request = modern("tools/call", {"name": name, "arguments": arguments})
    return exchange(server, request)["result"]


def complaint(server, name, **arguments):
    """The text of a call that must fail as a tool error."""
    result = call(server, name, **arguments)
    assert result["isError"] is True
    return result["content"][0]["text"]


def listed(function):
    (tool,) = exchange(serving(function), modern("tools/list"))["result"]["tools"]
    return tool


def parameter(hint):
    """The schema of a parameter with this hint."""

    def tool(value):
        """A tool."""

    tool.__annotations__ = {"value": hint}
    return listed(tool)["inputSchema"]["properties"]["value"]


def arriving(hint, value):
    """What a function with a parameter of this hint receives."""
    seen = []

    def tool(value):
        seen.append(value)

    tool.__annotations__ = {"value": hint, "return": None}
    result = call(serving(tool), "tool", value=value)
    assert result.get("isError", False) is False, result
    return seen[0]


# Schemas from hints


class Colour(enum.Enum):
    """A colour."""

    RED = "red"
    BLUE = "blue"


class Size(enum.IntEnum):
    SMALL = 1
    LARGE = 2


class Mixed(enum.Enum):
    ONE = 1
    TEXT = "text"


@dataclass
class Item:
    name: str
    price: float
    tags: list[str] = field(default_factory=list)
    amount: int = 1


@dataclass
class Order:
    items: list[Item]
    colour: Colour = Colour.RED


class Place(TypedDict):
    lat: float
    lon: float


class Loose(TypedDict, total=False):
    note: str


ITEM = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "price": {"type": "number"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "amount": {"type": "integer", "default": 1},
    },
    "required": ["name", "price"],
    "additionalProperties": False,
}
COLOUR = {"type": "string", "enum": ["red", "blue"]}
NULL = {"type": "null"}

HINTS = [
    (str, {"type": "string"}),
    (int, {"type": "integer"}),
    (float, {"type": "number"}),
    (bool, {"type": "boolean"}),
    (None, NULL),
    (Any, {}),
    (list, {"type": "array"}),
    (dict, {"type": "object"}),
    (list[int], {"type": "array", "items": {"type": "integer"}}),
    (dict[str, float], {"type": "object", "additionalProperties": {"type": "number"}}),
    (dict[str, Any], {"type": "object", "additionalProperties": {}}),
    (int | None, {"anyOf": [{"type": "integer"}, NULL]}),
    (Optional[int], {"anyOf": [{"type": "integer"}, NULL]}),  # noqa: UP045
    (Union[int, str], {"anyOf": [{"type": "integer"}, {"type": "string"}]}),  # noqa: UP007
    (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
    (Literal[1, 2], {"type": "integer", "enum": [1, 2]}),
    (Literal["a", 1, None], {"enum": ["a", 1, None]}),
    (Colour, COLOUR),
    (Size, {"type": "integer", "enum": [1, 2]}),
    (Mixed, {"enum": [1, "text"]}),
    (Annotated[int, "how many"], {"type": "integer", "description": "how many"}),
    (list[Annotated[str, "a word"]], {
        "type": "array",
        "items": {"type": "string", "description": "a word"},
    }),
    (Item, ITEM),
    (list[Item], {"type": "array", "items": ITEM}),
    (Order, {
        "type": "object",
        "properties": {
            "items": {"type": "array", "items": ITEM},
            "colour": {**COLOUR, "default": "red"},
        },
        "required": ["items"],
        "additionalProperties": False,
    }),
    (Place, {
        "type": "object",
        "properties": {"lat": {"type": "number"}, "lon": {"type": "number"}},
        "required": ["lat", "lon"],
        "additionalProperties": False,
    }),
    (Loose, {
        "type": "object",
        "properties": {"note": {"type": "string"}},
        "additionalProperties": False,
    }),
    (dict[str, list[int | None]], {
        "type": "object",
        "additionalProperties": {
            "type": "array",
            "items": {"anyOf": [{"type": "integer"}, NULL]},
        },
    }),
]  # fmt: skip


@pytest.mark.parametrize(("hint", "schema"), HINTS)
def test_a_hint_becomes_the_simplest_schema(hint, schema):
    found = parameter(hint)
    assert found == schema
    Draft202012Validator.check_schema(found)


def test_a_signature_becomes_a_closed_object():
    def tool(a: int, b: str = "x", *, c: float | None = None, d=5) -> str:
        """Do it.

        At length.
        """
        return ""

    assert listed(tool)["inputSchema"] == {
        "type": "object",
        "properties": {
            "a": {"type": "integer"},
            "b": {"type": "string", "default": "x"},
            "c": {"anyOf": [{"type": "number"}, {"type": "null"}], "default": None},
            "d": {"default": 5},
        },
        "required": ["a"],
        "additionalProperties": False,
    }


def test_a_tool_without_parameters_takes_an_empty_object():
    def tool() -> str:
        return ""

    assert listed(tool)["inputSchema"] == {"type": "object", "additionalProperties": False}


def test_the_docstring_is_the_description():
    def tool() -> str:
        """Do it.

        At length.
        """
        return ""

    assert listed(tool)["description"] == "Do it.\n\nAt length."


class NoJson:
    def __repr__(self):
        return "<no json>"


@pytest.mark.parametrize("default", [float("nan"), float("inf"), NoJson(), "\ud800", {1, 2}])
def test_a_default_that_json_cannot_show_is_left_out_but_works(default):
    def tool(value: str = default) -> str:
        return repr(value)

    assert listed(tool)["inputSchema"]["properties"] == {"value": {"type": "string"}}
    shown = call(serving(tool), "tool")["content"][0]["text"]
    assert shown == repr(default)


def test_the_context_is_no_part_of_the_schema():
    def tool(ctx: Context, value: int) -> str:
        return f"{type(ctx).__name__} {value}"

    assert listed(tool)["inputSchema"]["properties"] == {"value": {"type": "integer"}}
    assert call(serving(tool), "tool", value=1)["content"][0]["text"] == "Context 1"


def test_a_context_that_may_be_missing_is_given_all_the_same():
    """So that a program may call the function without one."""

    def tool(value: int, ctx: Context | None = None) -> str:
        return f"{type(ctx).__name__} {value}"

    assert listed(tool)["inputSchema"]["properties"] == {"value": {"type": "integer"}}
    assert call(serving(tool), "tool", value=1)["content"][0]["text"] == "Context 1"


def test_an_argument_with_the_name_of_the_context_does_not_take_its_place():
    def tool(ctx: Context, **more: int) -> str:
        return f"{type(ctx).__name__} {more}"

    server = Server("s")
    server.tool(tool, input_schema={"type": "object"})
    assert call(server, "tool", ctx=5, x=1)["content"][0]["text"] == "Context {'x': 1}"


@pytest.mark.parametrize("name", ["value", "self", "args", "more", "call", "arguments", "v"])
def test_a_context_parameter_may_have_any_name(name):
    namespace = {"Context": Context}
    exec(f"def tool({name}: Context, x: int = 1) -> int:\n    return x", namespace)
    assert call(serving(namespace["tool"]), "tool", x=7)["structuredContent"] == 7


FORMS = """
import enum
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Optional, TypedDict, Union

from minimcp import Context

class Colour(enum.Enum):
    RED = "red"

@dataclass
class Item:
    name: str
    price: float | None = None

class Place(TypedDict):
    lat: float
    where: list[Item]

def tool(
    a: int,
    b: Literal["x", "y"],
    c: Annotated[dict[str, Item], "items"],
    d: Place,
    e: "list[Item]",
    context: Context,
    f: Optional[Colour] = None,
    g: Union[int, str] = "g",
    h: Any = 1,
) -> list[Item]:
    return list(c.values()) + e + d["where"]
"""


def module(source, name, monkeypatch):
    """A module of that source, which hints are resolved in."""
    made = type(sys)(name)
    monkeypatch.setitem(sys.modules, name, made)
    exec(compile(source, name, "exec", dont_inherit=True), vars(made))
    return made


def test_postponed_annotations_change_neither_the_schema_nor_the_arguments(monkeypatch):
    now = module(FORMS, "forms_now", monkeypatch)
    later = module("from __future__ import annotations\n" + FORMS, "forms_later", monkeypatch)
    assert later.tool.__annotations__["a"] == "int"
    assert listed(now.tool) == listed(later.tool)
    item = {"name": "n", "price": 2}
    place = {"lat": 1, "where": [item]}
    arguments = {"a": 1, "b": "x", "c": {"k": item}, "d": place, "e": [item]}
    results = [call(serving(made.tool), "tool", **arguments) for made in (now, later)]
    assert results[0] == results[1]
    assert results[0]["structuredContent"] == [{"name": "n", "price": 2}] * 3
    said = [
        complaint(serving(made.tool), "tool", **{**arguments, "a": "1"}) for made in (now, later)
    ]
    assert said[0] == said[1]
    assert "a: expected integer, got string" in said[0]


def test_required_and_optional_members_are_marked_with_and_without_the_import(monkeypatch):
    source = """
from typing_extensions import NotRequired, Required, TypedDict

class One(TypedDict):
    a: int
    b: NotRequired[int]

class Two(TypedDict, total=False):
    a: Required[int]
    b: int

def tool(one: One, two: Two) -> str:
    return ""
"""
    wanted = {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    for name, future in (
        ("marks_now", ""),
        ("marks_later", "from __future__ import annotations\n"),
    ):
        made = module(future + source, name, monkeypatch)
        assert listed(made.tool)["inputSchema"]["properties"] == {"one": wanted, "two": wanted}


# What cannot be expressed is refused when the tool is registered


def varargs(a: int, *rest: int) -> str: ...
def varkeywords(a: int, **more: int) -> str: ...
def positional(where: int, /) -> str: ...
def date(when: datetime) -> str: ...
def raw(data: bytes) -> str: ...
def money(amount: Decimal) -> str: ...
def file(path: Path) -> str: ...
def pair(both: tuple[int, str]) -> str: ...
def unique(names: set[str]) -> str: ...
def numbered(table: dict[int, str]) -> str: ...
def nested(items: list[dict[str, datetime]]) -> str: ...
def callback(then: typing.Callable[[int], int]) -> str: ...
def unknown(fine: int, thing: "list[NoSuchName]") -> str: ...  # noqa: F821
def member(thing: "Path.no_such_name") -> str: ...
def garbled(thing: "1 +") -> str: ...  # noqa: F722
def added(thing: "any | None") -> str: ...
def bare_list(items: typing.List) -> str: ...  # noqa: UP006
def bare_dict(table: typing.Dict) -> str: ...  # noqa: UP006
def in_brackets(items: [int]) -> str: ...
def optionless(nothing: enum.Enum("Optionless", [])) -> str: ...
def one_of(value: int | datetime) -> str: ...


@dataclass
class Node:
    children: "list[Node]"


def tree(root: Node) -> str: ...


@dataclass
class Event:
    at: datetime


def event(what: Event) -> str: ...


REFUSED = [
    (varargs, "rest", "name each one"),
    (varkeywords, "more", "name each one"),
    (positional, "where", "remove"),
    (date, "when", "use str"),
    (raw, "data", "use str"),
    (money, "amount", "use str"),
    (file, "path", "use str"),
    (pair, "both", "use str"),
    (unique, "names", "use str"),
    (numbered, "table", "use dict"),
    (nested, "items", "use str"),
    (callback, "then", "use str"),
    (unknown, "thing", "NoSuchName.*define"),
    (member, "thing", "no_such_name.*define"),
    (garbled, "thing", "define"),
    (added, "thing", "define"),
    (bare_list, "items", "use str"),
    (bare_dict, "table", "use str"),
    (in_brackets, "items", "use str"),
    (optionless, "nothing", "use strings"),
    (one_of, "value", "use str"),
    (tree, "root", "use dict"),
    (event, "what", "use str"),
]


@pytest.mark.parametrize(
    ("function", "name", "advice"), REFUSED, ids=[row[0].__name__ for row in REFUSED]
)
def test_what_json_cannot_say_is_refused_with_the_parameter_and_advice(function, name, advice):
    with pytest.raises(TypeError, match=rf"^'{name}'.*{advice}"):
        serving(function)


def generator(n: int):
    yield n


async def async_generator(n: int):
    yield n


def annotated_generator(n: int) -> Iterator[int]:
    yield n


@pytest.mark.parametrize("function", [generator, async_generator, annotated_generator])
def test_a_generator_is_refused(function):
    with pytest.raises(TypeError, match=f"{function.__name__}.*generator.*return a list"):
        serving(function)


@pytest.mark.parametrize("what", ["add", 3])
def test_what_cannot_be_called_is_refused(what):
    with pytest.raises(TypeError, match=f"{what!r} is no function; .*name="):
        Server("functions").tool(what)


def test_a_second_tool_of_the_same_name_is_refused():
    """B087"""

    def tool() -> str:
        return ""

    with pytest.raises(ValueError, match="tool"):
        serving(tool, tool)


@pytest.mark.parametrize("name", ["", "a b", "x" * 129, "a/b", "naïve"])
def test_a_name_that_is_no_tool_name_is_refused(name):
    with pytest.raises(ValueError, match="name"):
        Server("functions").tool(lambda: "", name=name)


def test_the_names_of_a_call_may_differ_from_the_names_of_python():
    server = Server("functions")

    @server.tool(
        name="calc.add", title="Add", description="Add.", annotations={"readOnlyHint": True}
    )
    def add(a: int, b: int) -> int:
        return a + b

    assert add(2, 40) == 42
    (tool,) = exchange(server, modern("tools/list"))["result"]["tools"]
    assert (tool["name"], tool["title"], tool["description"]) == ("calc.add", "Add", "Add.")
    assert tool["annotations"] == {"readOnlyHint": True}
    assert call(server, "calc.add", a=2, b=40)["content"] == [{"type": "text", "text": "42"}]


# Strict validation


def shop(items: list[Item], limit: int = 5) -> str:
    return str(items)


def test_all_problems_of_a_call_are_reported_together_each_with_its_path():
    said = complaint(
        serving(shop),
        "shop",
        items=[{"name": "a", "price": 1}, {"name": 5, "price": "x", "colour": 1}],
        limit=True,
        Limit=1,
    )
    expected = [
        "items[1].name: expected string, got integer",
        "items[1].price: expected number, got string",
        "items[1].colour: unknown",
        "limit: expected integer, got boolean",
        "Limit: unknown",
    ]
    assert [problem for problem in expected if problem not in said] == []


def test_missing_names_are_listed():
    def tool(one: int, two: int, three: int = 3) -> str:
        return ""

    said = complaint(serving(tool), "tool")
    assert [name for name in ("one: missing", "two: missing") if name not in said] == []
    assert "three" not in said


def test_unknown_names_are_refused_by_name_with_the_known_ones():
    said = complaint(serving(shop), "shop", items=[], lim=1)
    assert "lim: unknown name; known: items, limit" in said


WRONG = [
    (int, "1"),
    (int, True),
    (int, 1.5),
    (int, None),
    (float, "1.5"),
    (float, False),
    (str, 1),
    (str, None),
    (bool, 1),
    (bool, "true"),
    (list[str], "a"),
    (list[str], '["a"]'),
    (list[str], {"0": "a"}),
    (dict[str, int], [1]),
    (dict[str, int], '{"a": 1}'),
    (int | None, "1"),
    (Literal["a"], "A"),
    (Literal[1], True),
    (Colour, "RED"),
    (Size, "1"),
    (Place, {"lat": 1}),
    (Place, {"lat": 1, "lon": 2, "alt": 3}),
]


@pytest.mark.parametrize(("hint", "value"), WRONG)
def test_nothing_is_coerced_decoded_or_split(hint, value):
    ran = []

    def tool(value):
        ran.append(value)

    tool.__annotations__ = {"value": hint}
    assert "value" in complaint(serving(tool), "tool", value=value)
    assert ran == []


# Arguments arrive as what the function declared

ARRIVING = [
    (int, 2.0, 2),
    (int, 10**30, 10**30),
    (float, 2, 2),
    (list[int], [1.0, 2], [1, 2]),
    (int | str, 2.0, 2),
    (str | int, 2.0, 2),
    (int | None, None, None),
    (Colour, "blue", Colour.BLUE),
    (Size, 2, Size.LARGE),
    (Size, 2.0, Size.LARGE),
    (Mixed, "text", Mixed.TEXT),
    (Literal[1, 2], 2.0, 2),
    (list[Colour], ["red", "blue"], [Colour.RED, Colour.BLUE]),
    (dict[str, Colour], {"a": "red"}, {"a": Colour.RED}),
    (Colour | None, "red", Colour.RED),
    (Item, {"name": "n", "price": 1.5}, Item("n", 1.5)),
    (Item, {"name": "n", "price": 1.5, "amount": 2.0}, Item("n", 1.5, [], 2)),
    (Item | str, "n", "n"),
    (Item | str, {"name": "n", "price": 1}, Item("n", 1)),
    (Order, {"items": [{"name": "n", "price": 1}]}, Order([Item("n", 1)])),
    (Order, {"items": [], "colour": "blue"}, Order([], Colour.BLUE)),
    (Place, {"lat": 1.5, "lon": 2}, {"lat": 1.5, "lon": 2}),
    (Loose, {}, {}),
    (Annotated[Colour, "which"], "red", Colour.RED),
    (Any, {"a": [1, None]}, {"a": [1, None]}),
]  # fmt: skip


@pytest.mark.parametrize(("hint", "value", "wanted"), ARRIVING)
def test_an_argument_arrives_as_declared(hint, value, wanted):
    got = arriving(hint, value)
    assert got == wanted
    assert type(got) is type(wanted) or (hint, type(got)) == (float, float)


def test_two_point_zero_reaches_the_function_as_an_int():
    assert type(arriving(int, 2.0)) is int
    assert type(arriving(list[int], [2.0])[0]) is int
    assert type(arriving(int | None, 2.0)) is int


def test_a_default_arrives_as_the_object_it_is():
    def tool(colour: Colour = Colour.BLUE, order: Item = Item("x", 1)) -> str:  # noqa: B008
        return f"{colour.name} {order.name}"

    assert call(serving(tool), "tool")["content"][0]["text"] == "BLUE x"


def test_a_dataclass_that_refuses_its_values_is_a_tool_error():
    @dataclass
    class Positive:
        value: int

        def __post_init__(self):
            if self.value < 0:
                raise ValueError("value must not be negative")

    def tool(number):
        return str(number.value)

    tool.__annotations__ = {"number": Positive, "return": str}
    assert "must not be negative" in complaint(serving(tool), "tool", number={"value": -1})


# Anything that can be called


class Counter:
    """Count."""

    def __init__(self):
        self.total = 0

    def add(self, n: int) -> int:
        """Add to the total."""
        self.total += n
        return self.total

    async def add_later(self, n: int) -> int:
        await asyncio.sleep(0)
        return self.add(n)

    def __call__(self, n: int = 1) -> int:
        return self.add(n)

    @classmethod
    def zero(cls, n: int) -> int:
        return 0 * n

    @staticmethod
    def same(n: int) -> int:
        return n


def test_bound_methods_keep_their_object():
    counter = Counter()
    server = serving(counter.add, counter.add_later, counter.zero, counter.same)
    names = ("add", "add_later", "zero", "same")
    assert [call(server, name, n=5)["content"][0]["text"] for name in names] == [
        "5",
        "10",
        "0",
        "5",
    ]


def test_a_callable_object_is_a_tool():
    server = Server("functions")
    server.tool(Counter(), name="count")
    assert call(server, "count", n=2)["content"][0]["text"] == "2"
    assert call(server, "count")["content"][0]["text"] == "3"


def test_a_decorated_function_keeps_its_signature():
    def twice(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            return 2 * function(*args, **kwargs)

        return wrapper

    @twice
    def number(n: int) -> int:
        """A number."""
        return n

    assert listed(number)["inputSchema"]["properties"] == {"n": {"type": "integer"}}
    assert call(serving(number), "number", n=4)["content"][0]["text"] == "8"


def test_a_lambda_with_a_name_is_a_tool():
    server = Server("functions")
    server.tool(lambda a, b=2: a, name="first", description="The first.")
    assert call(server, "first", a="x")["content"][0]["text"] == "x"


def test_an_async_function_is_run_to_its_end():
    async def tool(n: int) -> int:
        await asyncio.sleep(0)
        return n + 1

    assert call(serving(tool), "tool", n=1)["content"][0]["text"] == "2"


def test_an_async_function_runs_where_a_loop_is_running():
    async def tool(n: int) -> int:
        await asyncio.sleep(0)
        return n + 1

    async def cell():
        return call(serving(tool), "tool", n=1)

    assert asyncio.run(cell())["content"][0]["text"] == "2"


def test_a_function_that_returns_a_coroutine_gives_what_the_coroutine_gives():
    async def later() -> str:
        return "later"

    server = Server("functions")
    server.tool(lambda: later(), name="tool", description="Later.")
    assert call(server, "tool")["content"][0]["text"] == "later"


def test_an_async_function_that_fails_fails_like_any_other():
    async def tool() -> str:
        raise ValueError("no such city")

    assert complaint(serving(tool), "tool") == "ValueError: no such city"


def test_no_async_function_keeps_python_from_ending():
    async def tool() -> bool:
        return threading.current_thread().daemon

    assert call(serving(tool), "tool")["structuredContent"] is True


# Failures of a tool are results, and the server goes on


def failing(error):
    def tool() -> str:
        raise error

    return tool


class Sad(Exception):
    def __str__(self):
        raise RuntimeError("cannot even say it")


FAILURES = [
    (ValueError("no such city: Atlantis"), "ValueError: no such city: Atlantis"),
    (ToolError("try another city"), "try another city"),
    (KeyError("key"), "KeyError: 'key'"),
    (SystemExit(3), "SystemExit: 3"),
    (RecursionError("too deep"), "RecursionError: too deep"),
    (MemoryError(), "MemoryError"),
    (asyncio.CancelledError(), "CancelledError"),
    (GeneratorExit(), "GeneratorExit"),
]


@pytest.mark.parametrize(("error", "text"), FAILURES, ids=lambda part: type(part).__name__)
def test_an_exception_is_a_short_text_and_the_server_goes_on(error, text):
    server = serving(failing(error))
    for _ in range(2):
        assert complaint(server, "tool").removesuffix(": ") == text


def test_ctrl_c_during_a_call_in_a_notebook_stops_the_cell():
    with pytest.raises(KeyboardInterrupt):
        call(serving(failing(KeyboardInterrupt())), "tool")


def test_an_exception_that_cannot_even_be_told_does_not_end_the_server():
    def fine() -> str:
        return "fine"

    server = serving(failing(Sad()), fine)
    reply = exchange(server, modern("tools/call", {"name": "tool"}))
    assert reply.get("error", {}).get("code") == -32603 or reply["result"]["isError"]
    assert call(server, "fine")["content"][0]["text"] == "fine"


def test_half_a_character_in_an_exception_is_replaced():
    said = complaint(serving(failing(ValueError("half \ud800"))), "tool")
    assert said.startswith("ValueError: half ")
    said.encode()


class Circle:
    pass


CIRCLE: list = []
CIRCLE.append(CIRCLE)

UNSENDABLE = [
    float("nan"),
    float("inf"),
    -float("inf"),
    [1.0, float("nan")],
    {"a": float("nan")},
    "half \ud800",
    {"half \udfff": 1},
    object(),
    Circle(),
    {1, 2},
    b"bytes",
    {"a": b"bytes"},
    {(1, 2): 3},
    CIRCLE,
    json,
]


@pytest.mark.parametrize("value", UNSENDABLE, ids=lambda value: type(value).__name__)
def test_a_value_that_is_no_json_is_a_tool_error_and_the_server_goes_on(value):
    def tool():
        return value

    def fine() -> str:
        return "fine"

    server = serving(tool, fine)
    assert complaint(server, "tool") != ""
    assert call(server, "fine")["content"][0]["text"] == "fine"


def test_a_result_nested_too_deeply_is_a_tool_error():
    def tool() -> Any:
        value: list = []
        for _ in range(200_000):
            value = [value]
        return value

    assert complaint(serving(tool), "tool") != ""


# Return values

VALUES = [
    (1, "1"),
    (1.5, "1.5"),
    (True, "true"),
    (None, "null"),
    ([], "[]"),
    ({}, "{}"),
    ([1, "a", None], '[1,"a",null]'),
    ({"a": {"b": "é"}}, '{"a":{"b":"é"}}'),
]


@pytest.mark.parametrize(("value", "text"), VALUES)
def test_a_json_value_is_structured_content_and_the_same_json_as_text(value, text):
    def tool():
        return value

    result = call(serving(tool), "tool")
    (block,) = result["content"]
    assert json.loads(block["text"]) == json.loads(text)
    assert result["structuredContent"] == value


def test_a_string_is_a_text_block_alone():
    def tool() -> str:
        return "a text"

    result = call(serving(tool), "tool")
    assert result["content"] == [{"type": "text", "text": "a text"}]
    assert "structuredContent" not in result
    assert "outputSchema" not in listed(tool)


def test_enums_and_dataclasses_leave_as_their_json():
    def tool() -> Order:
        return Order([Item("n", 1.5)], Colour.BLUE)

    wanted = {"items": [{"name": "n", "price": 1.5, "tags": [], "amount": 1}], "colour": "blue"}
    result = call(serving(tool), "tool")
    assert result["structuredContent"] == wanted
    assert json.loads(result["content"][0]["text"]) == wanted
    Draft202012Validator(listed(tool)["outputSchema"]).validate(wanted)


def test_a_result_that_breaks_its_annotation_is_an_error_and_never_sent():
    def tool() -> Place:
        return {"lat": "north"}

    result = call(serving(tool), "tool")
    assert result["isError"] is True
    assert "structuredContent" not in result
    assert "lat" in result["content"][0]["text"]


@dataclass
class Kept:
    url: str
    KEY: ClassVar[str] = "s3cret"


@dataclass
class Made:
    price: float
    total: float = field(init=False)

    def __post_init__(self):
        self.total = self.price * 2


def returned(value, hint=None):
    """The structured result of a tool that returns this, and its output schema."""
    server = Server("demo")

    def tool():
        return value

    if hint is not None:
        tool.__annotations__["return"] = hint
    server.tool(tool)
    reply = exchange(server, modern("tools/call", {"name": "tool"}))
    schema = server.tools["tool"].definition.get("outputSchema")
    return reply["result"].get("structuredContent"), schema


@pytest.mark.parametrize("hint", [None, Kept])
def test_what_belongs_to_the_class_stays_there(hint):
    assert returned(Kept("u"), hint)[0] == {"url": "u"}


@pytest.mark.parametrize("hint", [None, Made])
def test_what_a_dataclass_makes_itself_is_told_and_not_promised(hint):
    assert returned(Made(1.5), hint) == ({"price": 1.5, "total": 3.0}, None)


def test_nor_can_it_be_asked_for():
    def tool(order: Made) -> str:
        return "x"

    with pytest.raises(TypeError, match="'order': Made makes its 'total' itself"):
        Server("demo").tool(tool)


@pytest.mark.parametrize(
    ("hint", "default"), [(int, "ten"), (Literal["a"], "b"), (list[int], ["x"]), (bool, 0)]
)
def test_a_default_that_its_own_hint_refuses_is_not_advertised(hint, default):
    def tool(value=default):
        return repr(value)

    tool.__annotations__["value"] = hint
    server = Server("demo")
    server.tool(tool)
    definition = server.tools["tool"].definition["inputSchema"]
    assert "default" not in definition["properties"]["value"]
    assert "required" not in definition
    reply = exchange(server, modern("tools/call", {"name": "tool"}))
    assert reply["result"]["content"][0]["text"] == repr(default)
