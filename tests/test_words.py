"""The words: what people and models read when something is wrong, to the letter.

Other tests look for the part of a message that matters to them. Here each stands whole, because a
message says what, where, expected and got, and a word that is lost is a person who is stuck.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from support import legacy, modern

from minimcp import Context, ProtocolError, Server, ToolError
from minimcp.context import Peer
from minimcp.protocol import describe, dumps, expect, loads
from minimcp.schema import explain, validate

INTEGERS = {"type": "array", "items": {"type": "integer"}}
POINT = {
    "type": "object",
    "properties": {"x": {"type": "number"}, "y": {"type": "number"}},
    "required": ["x"],
    "additionalProperties": False,
}

VALUES = [
    (None, {"type": "null"}, []),
    (True, {"type": "integer"}, [("", "expected integer, got boolean true")]),
    (2.5, {"type": "integer"}, [("", "expected integer, got number 2.5")]),
    (2.0, {"type": "integer"}, []),
    (2, {"type": "number"}, []),
    (False, {"type": "number"}, [("", "expected number, got boolean false")]),
    ("a" * 99, {"type": "null"}, [("", f'expected null, got string "{"a" * 59}')]),
    ([1], {"type": "object"}, [("", "expected object, got array")]),
    ({}, {"type": "array"}, [("", "expected array, got object")]),
    (None, {"type": "string"}, [("", "expected string, got null")]),
    ("c", {"enum": ["a", "b"]}, [("", 'expected one of ["a", "b"], got string "c"')]),
    (1, {"enum": [True]}, [("", "expected one of [true], got integer 1")]),
    (1.0, {"enum": [1]}, []),
    ([{"a": 1.0}], {"enum": [[{"a": 1}]]}, []),
    ([{"a": 1, "b": 1}], {"enum": [[{"a": 1}]]}, [("", 'expected one of [[{"a": 1}]], got array')]),
    ([1, "x"], INTEGERS, [("[1]", 'expected integer, got string "x"')]),
    ([], {"minItems": 1}, [("", "expected 1 or more items, got 0")]),
    ([1], {"minItems": 1}, []),
    ({}, {"minItems": 1}, []),
    ([1, 1.0], {"uniqueItems": True}, [("", "expected items that differ")]),
    ([1, True], {"uniqueItems": True}, []),
    ([1, 1], {"uniqueItems": False}, []),
    ({"x": 1}, POINT, []),
    ({}, POINT, [(".x", "missing")]),
    ({"x": 1, "z": 2}, POINT, [(".z", "unknown name; known: x, y")]),
    ({"a b": 2}, {"additionalProperties": False}, [('["a b"]', "unknown name; known: none")]),
    ({"a": 2}, {"additionalProperties": True}, []),
    ({"a": "s"}, {"additionalProperties": {"type": "null"}},
     [(".a", 'expected null, got string "s"')]),
    ("x", {"anyOf": [{"type": "integer"}, {"type": "null"}]},
     [("", 'expected integer or null, got string "x"')]),
    ([1, "x"], {"anyOf": [{"type": "null"}, INTEGERS]},
     [("[1]", 'expected integer, got string "x"')]),
    ("c", {"anyOf": [{"enum": ["a"]}, {"enum": ["b"]}]},
     [("", 'expected one of ["a"] or one of ["b"], got string "c"')]),
    ("c", {"anyOf": [{"type": "null"}, {"type": "null"}]}, [("", 'expected null, got string "c"')]),
]  # fmt: skip


@pytest.mark.parametrize("value, schema, problems", VALUES)
def test_a_value_that_does_not_fit_is_told_what_was_expected(value, schema, problems):
    assert validate(value, schema) == problems


def test_many_problems_are_counted_after_the_twentieth():
    problems = [(f"[{number}]", "missing") for number in range(23)]
    told = explain(problems, "arguments").split("\n")
    assert told == [*(f"arguments[{number}]: missing" for number in range(20)), "and 3 more"]
    assert explain(problems[:20], "arguments").split("\n") == told[:20]


@pytest.mark.parametrize(
    "value, words",
    [({}, "object"), ([], "array"), ("é", '"\\u00e9"'), (1.5, "number 1.5"), ({1}, "set")],
)
def test_what_came_is_described(value, words):
    assert describe(value) == (f"string {words}" if value == "é" else words)


def test_a_member_of_the_wrong_kind_is_named_with_its_place():
    with pytest.raises(ProtocolError) as caught:
        expect({"a": []}, "a", dict, "params")
    assert caught.value.message == "params.a: expected object, got array"
    assert str(caught.value) == "params.a: expected object, got array (-32602)"
    with pytest.raises(ProtocolError) as caught:
        expect({}, "a", str, "params")
    assert caught.value.message == "params.a: expected string, got nothing"
    assert expect({}, "a", str, "params", "b") == "b"
    assert str(ProtocolError(-1, "no", {"why": 1})) == "no (-1) {'why': 1}"


LINES = [
    ("[]", "batches are not supported since revision 2025-06-18; send one message at a time"),
    ("5", "message: expected object, got integer 5"),
    ("{}", "message.jsonrpc: missing\nmessage.method: missing"),
    ('{"jsonrpc":"1.0","method":"ping","id":1}',
     'message.jsonrpc: expected one of ["2.0"], got string "1.0"'),
    ('{"jsonrpc":"2.0","method":5,"id":1}', "message.method: expected string, got integer 5"),
    ('{"jsonrpc":"2.0","method":"ping","id":null}',
     "message.id: expected string or integer, got null"),
    ('{"jsonrpc":"2.0","method":"ping","id":1.5}',
     "message.id: expected string or integer, got number 1.5"),
    ('{"jsonrpc":"2.0","method":"ping","id":1.0}', "message.id: expected no fraction"),
    ('{"jsonrpc":"2.0","method":"ping","id":1,"params":[]}',
     "message.params: expected object, got array"),
    ("{", "Parse error, this is not JSON: Expecting property name enclosed in double quotes: "
          "line 1 column 2 (char 1)"),
    ("NaN", "Parse error, this is not JSON: NaN is not JSON"),
    ("1e999", "Parse error, this is not JSON: 1e999 is larger than any number here"),
    ("123456789012345678901e999", "Parse error, this is not JSON: "
     "12345678901234567890 is larger than any number here"),
    ("1 2", "Parse error, this is not JSON: one value ends at character 1, and there is more"),
]  # fmt: skip


@pytest.mark.parametrize("line, words", LINES)
def test_a_line_that_is_no_message_is_told_why(line, words):
    assert loads(Server("s").handle_line(line))["error"]["message"] == words


def shop(**options: Any) -> Server:
    server = Server("shop", **options)

    @server.tool
    def price(item: str, count: int = 1) -> float:
        return 2.5 * count

    @server.tool
    def broken() -> str:
        raise ZeroDivisionError("by nothing")

    @server.tool(output_schema={"type": "object"})
    def lying() -> Any:
        return 5

    @server.tool
    def ask(context: Context) -> str:
        context.require("sampling")
        return "asked"

    return server


VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
LOG_LEVEL = "io.modelcontextprotocol/logLevel"
ERRORS = [
    (legacy("tools/list"), -32602,
     f"params._meta: {VERSION} is missing, and so is an initialize", None),
    (modern("tools/list", meta={VERSION: 5}), -32602,
     f"params._meta.{VERSION}: expected string, got integer 5", None),
    (modern("tools/list", meta={CAPABILITIES: []}), -32602,
     f"params._meta.{CAPABILITIES}: expected object, got array", None),
    (modern("tools/list", meta={VERSION: "1999-01-01"}), -32022,
     "protocol version '1999-01-01' is not supported",
     {"supported": ["2026-07-28"], "requested": "1999-01-01"}),
    (modern("tools/list", meta={LOG_LEVEL: "loud"}), -32602,
     "params._meta: a log level is one of debug, info, notice, warning, error, critical, alert, "
     "emergency", None),
    (modern("tools/list", {"cursor": "x"}), -32602,
     "params.cursor: 'x' is not in the list any more; start again", None),
    (modern("tools/list", {"cursor": 5}), -32602,
     "params.cursor: expected string, got integer 5", None),
    (modern("tools/call", {"name": "prize"}), -32602, "Unknown tool: prize", None),
    (modern("tools/call", {}), -32602, "params.name: expected string, got nothing", None),
    (modern("tools/call", {"name": "price", "arguments": []}), -32602,
     "params.arguments: expected object, got array", None),
    (modern("prompts/list"), -32601, "unknown method prompts/list", None),
    (modern("price"), -32601,
     "unknown method price, but a tool; send tools/call with params.name 'price'", None),
    (modern("tools/call", {"name": "ask"}), -32021,
     "this needs the client capability 'sampling', which was not declared",
     {"requiredCapabilities": {"sampling": {}}}),
    (modern("no/dict"), -32603, "Internal error", None),
]  # fmt: skip


@pytest.mark.parametrize("message, code, words, data", ERRORS)
def test_an_error_says_it_in_these_words(message, code, words, data, capfd):
    server = shop()
    server.method("no/dict")(lambda params, context: [])
    error = {"code": code, "message": words} | ({"data": data} if data else {})
    reply = loads(server.handle_line(dumps(message)))
    assert reply == {"jsonrpc": "2.0", "id": 1, "error": error}
    told = capfd.readouterr().err
    assert ("TypeError: no/dict: a handler returns a dict" in told) == (code == -32603)


RESULTS = [
    ("price", {"count": "2", "colour": "red"},
     "price cannot take these arguments:\n"
     'arguments.count: expected integer, got string "2"\n'
     "arguments.item: missing\n"
     "arguments.colour: unknown name; known: item, count"),
    ("broken", {}, "ZeroDivisionError: by nothing"),
    ("lying", {}, "the result breaks its schema:\nresult: expected object, got integer 5"),
]  # fmt: skip


@pytest.mark.parametrize("name, arguments, words", RESULTS)
def test_a_failure_is_a_result_in_these_words(name, arguments, words):
    reply = shop().handle_line(dumps(modern("tools/call", {"name": name, "arguments": arguments})))
    result = loads(reply)["result"]
    assert (result["isError"], result["content"]) == (True, [{"type": "text", "text": words}])


def test_an_unexpected_error_tells_the_operator_everything(capfd):
    shop().handle_line(dumps(modern("tools/call", {"name": "broken"})))
    told = capfd.readouterr().err.splitlines()
    assert told[0] == "Traceback (most recent call last):"
    assert told[-1] == "ZeroDivisionError: by nothing"
    assert any("in broken" in line for line in told)


def test_an_id_that_is_in_flight_is_refused_by_name():
    server, replies = Server("s"), []

    @server.method("again")
    def again(params: Any, context: Context) -> dict[str, Any]:
        replies.append(server.handle_line(dumps(modern("ping", id="a")), context.peer))
        return {}

    server.handle_line(dumps(modern("again", id="a")))
    error = {"code": -32600, "message": "id 'a' is in flight already"}
    assert [loads(reply)["error"] for reply in replies] == [error]


def test_a_legacy_client_without_a_capability_gets_a_result_in_these_words():
    server, peer = shop(), Peer()
    peer.version = "2025-11-25"
    reply = loads(server.handle_line(dumps(legacy("tools/call", {"name": "ask"})), peer))
    text = "this needs the client capability 'sampling', which was not declared"
    assert reply["result"] == {"content": [{"type": "text", "text": text}], "isError": True}


def test_a_cancellation_is_told_to_the_operator_with_its_reason(capfd):
    server, peer = Server("s"), Peer()

    @server.method("slow")
    def slow(params: Any, context: Context) -> dict[str, Any]:
        gone = {"requestId": "a", "reason": "too late"}
        peer.hear({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": gone})
        assert context.cancelled
        return {}

    assert server.handle_line(dumps(modern("slow", id="a")), peer) is None
    assert capfd.readouterr().err == "'a' cancelled: 'too late'\n"


class Strange:
    """No hint at all."""


@dataclass
class Pair:
    left: int
    right: Strange


class Caller:
    def __call__(self, item: int) -> int: ...
    def method(self, item: int) -> int: ...


def variable(*items: int) -> int: ...
def named(**items: int) -> int: ...
def positional(item: int, /) -> int: ...
def generator(item: int) -> Any:
    yield item


async def agenerator(item: int) -> Any:
    yield item


def strange(item: Strange) -> int: ...
def pair(item: Pair) -> int: ...
def keyed(item: dict[int, int]) -> int: ...
def options(item: Literal["a", None, b"b"]) -> int: ...
def unknown(item: Missing) -> int: ...  # noqa: F821


ADVICE = (
    "has no JSON form; use str, int, float, bool, None, list[...], dict[str, ...], a union, "
    "Literal, Enum, a TypedDict, a dataclass or Any"
)
REFUSED = [
    (variable, "'items' is any number of arguments; name each one, or take a list"),
    (named, "'items' is any named argument; name each one, or take a dict"),
    (positional, "'item' is positional-only; remove the '/'"),
    (generator, "'generator' is a generator, but a call has one result; return a list"),
    (agenerator, "'agenerator' is an async generator, but a call has one result; return a list"),
    (strange, f"'item': Strange {ADVICE}"),
    (pair, f"'item': 'right': Strange {ADVICE}"),
    (keyed, "'item': the names in a JSON object are strings; use dict[str, ...]"),
    (options, "'item': an option has no JSON form, or there is none; use strings or numbers"),
    (unknown,
     "'item': name 'Missing' is not defined; use types that are defined at module level"),
    (len, "<built-in function len> does not show its parameters; wrap it in a def"),
    (Caller, f"{Caller!r} does not show its parameters; wrap it in a def"),
    (Caller.method, "'self' is of no object yet; register the method of an object"),
    ("add", "'add' is no function; a tool's name goes in name=..."),
]  # fmt: skip


@pytest.mark.parametrize("function, words", REFUSED)
def test_what_cannot_be_a_tool_is_refused_in_these_words(function, words):
    with pytest.raises(TypeError) as caught:
        Server("s").tool(function)
    assert str(caught.value) == words


def good(item: int = 1) -> int: ...


@pytest.mark.parametrize(
    "given, words",
    [
        ({"name": ""}, "'': a tool's name is 1 to 128 of A-Z a-z 0-9 _ . -"),
        ({"name": "a b"}, "'a b': a tool's name is 1 to 128 of A-Z a-z 0-9 _ . -"),
        ({"name": "a" * 129}, f"'{'a' * 129}': a tool's name is 1 to 128 of A-Z a-z 0-9 _ . -"),
        ({"input_schema": {}}, "good: input_schema.type: missing"),
        (
            {"input_schema": {"type": "array"}},
            'good: input_schema.type: expected one of ["object"], got string "array"',
        ),
        ({"input_schema": []}, "good: input_schema: expected object, got array"),
        ({"output_schema": []}, "schema: expected object, got array"),
        ({"output_schema": True}, "schema: expected object, got boolean true"),
    ],
)
def test_a_definition_that_cannot_be_is_refused_in_these_words(given, words):
    with pytest.raises(ValueError) as caught:
        Server("s").tool(**given)(good)
    assert str(caught.value) == words


def test_the_longest_name_and_a_second_tool_of_a_name():
    server = Server("s")
    server.tool(name="a" * 128)(good)
    with pytest.raises(ValueError) as caught:
        server.tool(name="a" * 128)(good)
    assert str(caught.value) == f"there is a tool '{'a' * 128}' already"


@pytest.mark.parametrize("wrong", [{"ttl_ms": -1}, {"ttl_ms": 1.5}, {"cache_scope": "all"}])
def test_a_server_says_what_its_hints_may_be(wrong):
    with pytest.raises(ValueError) as caught:
        Server("s", **wrong)
    words = "ttl_ms is an int of 0 or more, cache_scope 'public' or 'private'"
    assert str(caught.value) == words
    Server("s", ttl_ms=0, cache_scope="private")


def test_a_tool_error_keeps_its_words_and_half_characters_are_replaced():
    server = Server("s")

    @server.tool
    def half() -> str:
        raise ToolError("half \ud800")

    result = loads(server.handle_line(dumps(modern("tools/call", {"name": "half"}))))["result"]
    assert result["content"] == [{"type": "text", "text": "half ?"}]


def test_what_has_no_json_form_is_named():
    with pytest.raises(TypeError) as caught:
        dumps({"a": {1}})
    assert str(caught.value) == "a value of type set has no JSON form"
    assert json.loads(dumps(Pair(1, 2))) == {"left": 1, "right": 2}
