"""CALL: arguments in, content out; whose fault a failure is, and who is told."""

import json
import threading
from typing import Any

import pytest
from support import (
    LEGACY,
    MODERN,
    OLD,
    Stub,
    assert_error,
    assert_tool_error,
    complete,
    exchange,
    initialize,
    legacy,
    modern,
    plain,
)

from minimcp import Client, Content, Context, ProtocolError, Server, ToolError

TEXT = {"type": "text", "text": "x"}


def demo():
    server = Server("demo", version="1.0.0")
    server.calls = []

    @server.tool
    def add(a: int, b: int) -> int:
        server.calls.append((a, b))
        return a + b

    @server.tool
    def hello() -> str:
        return "x"

    @server.tool
    def fail(how: str) -> str:
        if how == "tool":
            raise ToolError("the disk is full")
        if how == "exit":
            raise SystemExit(3)
        if how == "empty":
            raise ValueError
        raise ValueError("the disk is full")

    return server


def both(server, method, params, id=1):
    """The replies of both eras to the same request."""
    exchange(server, initialize())
    return [
        exchange(server, modern(method, params, id)),
        exchange(server, legacy(method, params, id)),
    ]


def call(server, name, arguments=None):
    params = {"name": name} if arguments is None else {"name": name, "arguments": arguments}
    return exchange(server, modern("tools/call", params))


def old_call(server, name, arguments=None, version=LEGACY):
    exchange(server, initialize(version))
    params = {"name": name} if arguments is None else {"name": name, "arguments": arguments}
    return exchange(server, legacy("tools/call", params))


@pytest.mark.req("S-CALL-01", "S-ERR-05")
def test_an_unknown_tool_is_a_protocol_error():
    for reply in both(demo(), "tools/call", {"name": "nope"}):
        assert_error(reply, -32602, "Unknown tool: nope")


@pytest.mark.req("S-CALL-02")
@pytest.mark.parametrize("name", [5, None, True, [], {}, 1.5])
def test_a_name_that_is_no_string_is_refused(name):
    for reply in both(demo(), "tools/call", {"name": name, "arguments": {}}):
        assert_error(reply, -32602, "name", "string")


@pytest.mark.req("S-CALL-02")
def test_a_call_without_a_name_is_refused():
    for params in {}, {"arguments": {}}, {"Name": "add"}:
        for reply in both(demo(), "tools/call", params):
            assert_error(reply, -32602, "name", "string", "nothing")


@pytest.mark.req("S-CALL-03", "S-CALL-09")
def test_no_arguments_are_the_same_as_empty_ones():
    expected = {"content": [TEXT]}
    assert call(demo(), "hello") == call(demo(), "hello", {}) == complete(expected)
    assert old_call(demo(), "hello") == old_call(demo(), "hello", {}) == plain(expected)


@pytest.mark.req("S-CALL-04")
@pytest.mark.parametrize(
    ("arguments", "kind"),
    [([], "array"), (None, "null"), ("x", "string"), (5, "5"), (False, "false")],
)
def test_arguments_that_are_no_object_are_refused(arguments, kind):
    for reply in both(demo(), "tools/call", {"name": "hello", "arguments": arguments}):
        assert_error(reply, -32602, "arguments", "object", kind)


MISFITS = [
    ({"a": "x", "b": 1}, ["a", "integer", '"x"']),
    ({"a": "1", "b": 1}, ["a", "integer", '"1"']),
    ({"a": True, "b": 1}, ["a", "integer", "true"]),
    ({"a": 1.5, "b": 1}, ["a", "integer", "1.5"]),
    ({"a": None, "b": 1}, ["a", "integer", "null"]),
    ({"b": 1}, ["a", "missing"]),
    ({}, ["a", "b", "missing"]),
    ({"a": 1, "b": 2, "c": 3}, ["c", "a, b"]),
    ({"a": [], "b": {}}, ["a", "b", "array", "object"]),
]


@pytest.mark.req("S-CALL-05", "S-CALL-06")
@pytest.mark.parametrize(("arguments", "named"), MISFITS)
@pytest.mark.parametrize("version", [MODERN, LEGACY, OLD])
def test_arguments_that_do_not_fit_are_a_tool_error_and_call_nothing(arguments, named, version):
    """In every revision: the model can correct itself."""
    server = demo()
    if version == MODERN:
        reply = call(server, "add", arguments)
    else:
        reply = old_call(server, "add", arguments, version)
    assert_tool_error(reply, "add", *named)
    assert server.calls == []


@pytest.mark.req("S-CALL-05")
def test_arguments_are_checked_against_a_hand_written_schema_too():
    server = demo()
    schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 3}}}

    @server.tool(input_schema=schema)
    def big(**arguments):
        server.calls.append(arguments)
        return "x"

    assert_tool_error(call(server, "big", {"n": 2}), "n", "3")
    assert_tool_error(call(server, "big", {"n": "x"}), "n", "integer")
    assert server.calls == []
    assert call(server, "big", {"n": 3, "more": 1})["result"]["content"] == [TEXT]
    assert server.calls == [{"n": 3, "more": 1}]


@pytest.mark.req("S-CALL-07", "S-CALL-19")
@pytest.mark.parametrize(
    ("how", "named"),
    [
        ("tool", "the disk is full"),
        ("other", "the disk is full"),
        ("exit", "3"),
        ("empty", "ValueError"),
    ],
)
def test_a_failing_tool_is_a_result_with_a_short_text(how, named, capsys):
    for reply in both(demo(), "tools/call", {"name": "fail", "arguments": {"how": how}}):
        text = assert_tool_error(reply, named)
        assert "Traceback" not in text
        assert "File" not in text
        assert "\n" not in text.strip()
    assert ("Traceback" in capsys.readouterr().err) == (how != "tool")


@pytest.mark.req("S-CALL-07")
def test_a_protocol_error_in_a_tool_stays_one():
    server = demo()

    @server.tool
    def refuse() -> str:
        raise ProtocolError(-32602, "Not that one", {"why": 1})

    for reply in both(server, "tools/call", {"name": "refuse"}):
        assert_error(reply, -32602, "Not that one", data={"why": 1})


RETURNS = [
    ("text", str, [{"type": "text", "text": "text"}], None),
    ("", str, [{"type": "text", "text": ""}], None),
    (5, int, [{"type": "text", "text": "5"}], 5),
    (0, int, [{"type": "text", "text": "0"}], 0),
    (False, bool, [{"type": "text", "text": "false"}], False),
    ([], list, [{"type": "text", "text": "[]"}], []),
    ([1, "a"], list, [{"type": "text", "text": '[1,"a"]'}], [1, "a"]),
    ({"a": None}, dict, [{"type": "text", "text": '{"a":null}'}], {"a": None}),
    (1.5, float, [{"type": "text", "text": "1.5"}], 1.5),
]


def returning(value, hint):
    server = Server("demo", version="1.0.0")

    def tool():
        return value

    tool.__annotations__["return"] = hint
    server.tool(tool)
    return server


@pytest.mark.req("S-CALL-08", "S-CALL-09", "S-CALL-15", "S-CALL-17")
@pytest.mark.parametrize(("value", "hint", "content", "structured"), RETURNS)
def test_a_value_is_structured_content_and_the_same_as_text(value, hint, content, structured):
    result = call(returning(value, hint), "tool")["result"]
    for block in result["content"]:
        assert block["type"] == "text"
    if structured is None:
        assert "structuredContent" not in result
        assert result["content"] == content
    else:
        assert result["structuredContent"] == structured
        assert type(result["structuredContent"]) is type(structured)
        assert json.loads(result["content"][0]["text"]) == structured


@pytest.mark.req("S-CALL-15", "S-CALL-18")
def test_null_is_structured_content_where_it_was_promised():
    server = returning(None, Any)
    server.tool(lambda: None, name="promised", output_schema={"type": "null"})
    reply = call(server, "promised")
    assert reply == complete(
        {"content": [{"type": "text", "text": "null"}], "structuredContent": None}
    )


@pytest.mark.req("S-CALL-16")
@pytest.mark.parametrize("version", [LEGACY, OLD])
@pytest.mark.parametrize(("value", "hint"), [([1], list), (5, int), (None, Any), (False, bool)])
def test_a_legacy_result_has_structured_content_only_if_it_is_an_object(value, hint, version):
    result = old_call(returning(value, hint), "tool", version=version)["result"]
    assert "structuredContent" not in result
    assert json.loads(result["content"][0]["text"]) == value


@pytest.mark.req("S-CALL-16", "S-CALL-17")
@pytest.mark.parametrize("version", [LEGACY, OLD])
def test_a_legacy_result_keeps_a_structured_object(version):
    result = old_call(returning({"a": [1]}, dict), "tool", version=version)["result"]
    assert result["structuredContent"] == {"a": [1]}
    assert json.loads(result["content"][0]["text"]) == {"a": [1]}


BLOCKS = [
    {"type": "text", "text": "x"},
    {"type": "text", "text": "x", "annotations": {"audience": ["user"], "priority": 0.5}},
    {"type": "image", "data": "aGk=", "mimeType": "image/png"},
    {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
    {"type": "resource_link", "uri": "file:///x", "name": "x", "description": "d"},
    {"type": "resource", "resource": {"uri": "file:///x", "text": "t", "mimeType": "text/plain"}},
    {"type": "resource", "resource": {"uri": "file:///x", "blob": "aGk="}},
]


@pytest.mark.req("S-CALL-10", "S-CALL-11", "S-CALL-12", "S-CALL-14")
@pytest.mark.parametrize("blocks", [[block] for block in BLOCKS] + [BLOCKS, []])
def test_content_blocks_pass_through(blocks):
    server = Server("demo", version="1.0.0")

    @server.tool
    def show() -> Content:
        return blocks

    assert call(server, "show") == complete({"content": blocks})
    assert old_call(server, "show") == plain({"content": blocks})


BROKEN = [
    ({"type": "text"}, "[0].text: missing"),
    ({"type": "text", "text": 5}, "[0].text: expected string"),
    ({"type": "image", "data": "AA=="}, "[0].mimeType: missing"),
    ({"type": "audio", "mimeType": "audio/wav"}, "[0].data: missing"),
    ({"type": "resource_link", "uri": "x:y"}, "[0].name: missing"),
    ({"type": "resource", "resource": {"text": "x"}}, "[0].resource.uri: missing"),
    ({"type": "resource", "resource": {"uri": "x:y"}}, "[0].resource.text: missing"),
    ({"type": "picture"}, "[0].type: expected one of"),
    ({"text": "x"}, "[0].type: missing"),
    ("x", "[0]: expected object"),
]


@pytest.mark.req("S-CALL-09", "S-CALL-10", "S-CALL-11", "S-CALL-12")
@pytest.mark.parametrize(("block", "problem"), BROKEN)
def test_a_content_block_that_lacks_something_is_never_sent(block, problem):
    server = Server("demo", version="1.0.0")

    @server.tool
    def show() -> Content:
        return [block]

    for reply in call(server, "show"), old_call(server, "show"):
        assert_tool_error(reply, f"result{problem}")


@pytest.mark.req("S-CALL-18")
@pytest.mark.parametrize("value", ["x", 1.5, None, True, [1]])
def test_a_result_that_breaks_its_promise_is_an_error_and_is_not_sent(value):
    server = returning(value, int)
    assert_tool_error(call(server, "tool"), "integer")
    assert_tool_error(old_call(server, "tool"), "integer")


@pytest.mark.req("S-CALL-18")
def test_a_hand_written_output_schema_is_kept_or_is_an_error():
    server = Server("demo", version="1.0.0")
    schema = {"type": "object", "properties": {"n": {"maximum": 3}}, "required": ["n"]}

    @server.tool(output_schema=schema)
    def give(n: int) -> Any:
        return {"n": n} if n else {}

    reply = call(server, "give", {"n": 3})
    assert reply["result"]["structuredContent"] == {"n": 3}
    assert_tool_error(call(server, "give", {"n": 4}), "n")
    assert_tool_error(call(server, "give", {"n": 0}), "n")


@pytest.mark.req("S-CALL-19", "C-CALL-25")
def test_an_error_of_a_tool_with_an_output_schema_reaches_the_caller_as_a_result():
    server = Server("demo", version="1.0.0")

    @server.tool
    def number(ok: bool) -> int:
        if not ok:
            raise ToolError("no number today")
        return 5

    for era in "modern", "legacy":
        with Client(server, era=era) as client:
            client.list_tools()
            result = client.call_tool("number", {"ok": False})
            assert (result.is_error, result.text) == (True, "no number today")
            assert client.call_tool("number", {"ok": True}).is_error is False


@pytest.mark.req("S-CALL-20")
def test_a_wish_for_a_task_is_ignored():
    params = {"name": "add", "arguments": {"a": 2, "b": 40}, "task": {"ttl": 1}}
    server = demo()
    exchange(server, initialize())
    reply = exchange(server, legacy("tools/call", params))
    assert reply == plain({"content": [{"type": "text", "text": "42"}]})


@pytest.mark.req("S-CALL-23")
def test_calls_at_the_same_time_do_not_mix_up_their_values():
    server = Server("demo", version="1.0.0")
    together = threading.Barrier(50)
    found = {}

    @server.tool
    def echo(n: int, context: Context) -> list[int]:
        together.wait(30)
        return [n, context.id]

    def one(n):
        message = modern("tools/call", {"name": "echo", "arguments": {"n": n}}, n)
        found[n] = exchange(server, message)

    threads = [threading.Thread(target=one, args=[n]) for n in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert {n: (r["id"], r["result"]["structuredContent"]) for n, r in found.items()} == {
        n: (n, [n, n]) for n in range(50)
    }


# -- the client


ERAS = pytest.mark.parametrize("era", ["modern", "legacy"])


def stub(tmp_path, called, tools=()):
    info = {"name": "stub", "version": "1.0.0"}
    found = {"supportedVersions": [MODERN], "capabilities": {"tools": {}}}
    greeted = {"protocolVersion": LEGACY, "capabilities": {"tools": {}}, "serverInfo": info}
    hints = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    table = {
        "server/discover": {"result": found | hints},
        "initialize": {"result": greeted},
        "tools/list": {"result": {"tools": list(tools), **hints}},
        "tools/call": called,
    }
    return Stub(tmp_path, table)


@ERAS
@pytest.mark.req("C-CALL-24")
def test_a_tool_error_is_returned_and_a_protocol_error_is_raised(tmp_path, era):
    failed = {"content": [TEXT], "isError": True, "resultType": "complete"}
    replies = [{"result": failed}, {"error": {"code": -32602, "message": "Unknown tool: y"}}]
    with Client(stub(tmp_path, replies).command, era=era) as client:
        result = client.call_tool("x", {})
        assert (result.is_error, result.text, result.content) == (True, "x", [TEXT])
        with pytest.raises(ProtocolError, match="Unknown tool: y") as caught:
            client.call_tool("y", {})
        assert caught.value.code == -32602


PROMISE = {
    "name": "t",
    "inputSchema": {"type": "object"},
    "outputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
}


@ERAS
@pytest.mark.req("C-CALL-25")
@pytest.mark.parametrize("structured", [{"n": "x"}, {}, [], None, 5])
def test_a_server_that_breaks_its_output_schema_is_caught(tmp_path, structured, era):
    lie = {"content": [], "structuredContent": structured, "resultType": "complete"}
    with Client(stub(tmp_path, {"result": lie}, [PROMISE]).command, era=era) as client:
        client.list_tools()
        with pytest.raises(ConnectionError, match="structuredContent"):
            client.call_tool("t", {})


@pytest.mark.req("C-CALL-25")
def test_a_server_that_keeps_its_output_schema_is_believed(tmp_path):
    good = {"content": [], "structuredContent": {"n": 1}, "resultType": "complete"}
    with Client(stub(tmp_path, {"result": good}, [PROMISE]).command) as client:
        client.list_tools()
        assert client.call_tool("t", {}).structured == {"n": 1}


@pytest.mark.req("C-CALL-25")
def test_a_server_that_leaves_out_what_it_promised_is_caught(tmp_path):
    bare = {"content": [TEXT], "resultType": "complete"}
    with Client(stub(tmp_path, {"result": bare}, [PROMISE]).command) as client:
        client.list_tools()
        with pytest.raises(Exception, match="structuredContent"):
            client.call_tool("t", {})


@pytest.mark.req("C-CALL-26")
def test_annotations_change_nothing_that_a_client_does(tmp_path):
    """They are hints of a stranger: they reach the host untouched, and drive nothing here."""
    done = {"result": {"content": [TEXT], "resultType": "complete"}}
    seen = []
    for hints in {}, {"readOnlyHint": True}, {"destructiveHint": True, "title": "rm"}:
        tool = {"name": "t", "inputSchema": {"type": "object"}, "annotations": hints}
        server = stub(tmp_path, done, [tool])
        with Client(server.command) as client:
            assert client.list_tools() == [tool]
            assert client.call_tool("t", {}).text == "x"
        seen.append(server.received())
    assert seen[0] == seen[1] == seen[2]
