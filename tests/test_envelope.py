"""ENV: what is a message, what is an id, and what gets an answer."""

import json
import sys
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import (
    LEGACY,
    META,
    NO_ID,
    Stdio,
    Stub,
    assert_error,
    assert_tool_error,
    complete,
    exchange,
    initialize,
    legacy,
    modern,
    notification,
    plain,
    server_file,
    until,
)
from support_http import serving

from minimcp import Client, Context, Server
from minimcp.context import Peer

DEMO = [sys.executable, "-m", "minimcp.demo"]

# A server whose tool `hold` waits until the tool `release` is called.
GATED = """
    import threading
    from minimcp import Server, run

    server = Server("gated", version="1.0.0")
    gate = threading.Event()
    running = []

    @server.tool
    def hold(word: str) -> str:
        running.append(word)
        gate.wait(60)
        return word

    @server.tool
    def held() -> int:
        return len(running)

    @server.tool
    def release() -> str:
        gate.set()
        return "released"

    run(server)
"""


def demo():
    server = Server("demo", version="1.0.0")
    server.calls = []

    @server.tool
    def echo(text: str) -> str:
        server.calls.append(text)
        return text

    return server


def call(text, id=1):
    return modern("tools/call", {"name": "echo", "arguments": {"text": text}}, id)


SAY = {"name": "say"}
SAID_X = {"content": [{"type": "text", "text": "x"}]}


def echoed(text, id=1):
    return complete({"content": [{"type": "text", "text": text}]}, id)


def shaken_hands(server):
    assert exchange(server, initialize())["result"]["protocolVersion"] == LEGACY
    return server


@pytest.mark.req("S-ENV-01")
@pytest.mark.parametrize("version", ["1.0", "2", "2.0 ", "", 2.0, 2, None, True, [], {}])
def test_a_message_of_another_jsonrpc_version_is_refused(version):
    server = demo()
    assert_error(exchange(server, {**call("x"), "jsonrpc": version}), -32600, "jsonrpc")
    assert_error(
        exchange(server, {"jsonrpc": version, "id": 1, "method": "ping"}), -32600, "jsonrpc"
    )
    assert server.calls == []


@pytest.mark.req("S-ENV-01")
def test_a_message_without_jsonrpc_is_refused():
    message = call("x")
    del message["jsonrpc"]
    assert_error(exchange(demo(), message), -32600, "jsonrpc")


@pytest.mark.req("S-ENV-02", "S-ERR-15")
@pytest.mark.parametrize("id", [None, True, False, 1.5, [], {}, [1], {"id": 1}])
def test_an_id_that_is_no_string_or_integer_is_refused_without_an_id(id):
    server = demo()
    for message in call("x", id), legacy("ping", id=id):
        assert_error(exchange(server, message), -32600, "id", id=NO_ID)
    assert server.calls == []


@pytest.mark.req("S-ENV-02")
def test_an_integral_float_is_either_the_integer_or_refused():
    line = json.dumps(call("x", "ID")).replace('"ID"', "1.0")
    reply = exchange(demo(), line)
    if "error" in reply:
        assert_error(reply, -32600, "id", id=NO_ID)
    else:
        assert reply == echoed("x", 1)


IDS = [1, "1", 0, -1, "", "é", "\n", 9007199254740993, -9007199254740993, "a" * 1000]


@pytest.mark.req("S-ENV-03")
@pytest.mark.parametrize("id", IDS, ids=repr)
def test_a_reply_repeats_the_id_with_its_type_and_value(id):
    server = shaken_hands(demo())
    for message in call("x", id), modern("no/such", id=id), legacy("ping", id=id):
        reply = exchange(server, message)
        assert (type(reply["id"]), reply["id"]) == (type(id), id)


SILENT = [
    notification("no/such"),
    notification("no/such", META),
    notification("no/such", {"_meta": META}),
    notification("notifications/no/such", {"_meta": {}}),
    notification("notifications/initialized"),
    notification("server/discover"),
    notification("server/discover", {"_meta": META}),
    notification("initialize", {}),
    notification("ping"),
    {"jsonrpc": "2.0", "method": "no/such", "params": [1]},
    {"jsonrpc": "2.0", "method": "no/such", "params": None},
    {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": "x"},
]


@pytest.mark.req("S-ENV-04", "S-CANC-01")
@pytest.mark.parametrize("message", SILENT, ids=json.dumps)
def test_a_message_without_an_id_gets_no_answer(message):
    server = demo()
    assert exchange(server, message) is None
    assert exchange(shaken_hands(server), message) is None
    assert exchange(server, call("alive")) == echoed("alive")


@pytest.mark.req("S-ENV-17")
def test_a_request_sent_as_a_notification_runs_nothing():
    server = demo()
    message = call("x")
    del message["id"]
    assert exchange(server, message) is None
    del message["params"]["_meta"]
    assert exchange(shaken_hands(server), message) is None
    assert server.calls == []


@pytest.mark.req("S-ENV-17")
def test_initialize_sent_as_a_notification_negotiates_nothing():
    server = demo()
    message = initialize()
    del message["id"]
    assert exchange(server, message) is None
    assert_error(exchange(server, legacy("tools/list")), -32602, "_meta")


@pytest.mark.req("S-ENV-05")
@pytest.mark.parametrize("params", [[1], [], "x", 5, True, None])
def test_params_that_are_no_object_are_refused(params):
    server = shaken_hands(demo())
    for method in "tools/call", "tools/list", "ping":
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        reply = exchange(server, message)
        assert_error(reply, reply["error"]["code"], "params")
        assert reply["error"]["code"] in (-32602, -32600)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
METHODS = """
    tools/list tools/call server/discover ping initialize logging/setLevel prompts/list no/such
    notifications/cancelled notifications/initialized subscriptions/listen
"""
methods = st.sampled_from(METHODS.split())
params = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(["echo", "nope"]) | json_values,
        "arguments": st.fixed_dictionaries({"text": json_values}) | json_values,
        "cursor": json_values,
        "protocolVersion": st.sampled_from(["2025-06-18", "x"]) | json_values,
        "_meta": st.just(META)
        | st.fixed_dictionaries({}, optional=dict.fromkeys(META, json_values))
        | json_values,
        "requestId": json_values,
    },
)
near_messages = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0") | json_values,
        "id": st.integers() | st.text(max_size=4) | json_values,
        "method": methods | json_values,
        "params": params | json_values,
        "result": json_values,
        "error": json_values,
    },
)


@pytest.mark.req("S-ENV-06", "S-ERR-07", "S-ERR-08", "S-ERR-09", "S-ERR-10", "S-RES-02")
@settings(max_examples=300, deadline=None)
@given(st.lists(near_messages | json_values, min_size=1, max_size=4))
def test_whatever_comes_in_each_answer_is_one_result_or_one_error(messages):
    """The oracle holds every reply to its type; the codes used are the six of this binding."""
    server = demo()
    for message in messages:
        reply = exchange(server, message)
        if reply is not None:
            assert ("result" in reply) != ("error" in reply)
            allowed = {-32700, -32600, -32601, -32602, -32022}
            assert reply.get("error", {"code": -32700})["code"] in allowed
    assert exchange(server, call("alive")) == echoed("alive")


@pytest.mark.req("S-ENV-06")
@settings(max_examples=200, deadline=None)
@given(st.text(max_size=40))
def test_any_text_gets_an_answer_or_silence_and_never_an_exception(line):
    server = demo()
    reply = exchange(server, line)
    assert reply is None or reply["error"]["code"] in (-32700, -32600)
    assert exchange(server, call("alive")) == echoed("alive")


@pytest.mark.req("S-STDIO-09")
@pytest.mark.parametrize("line", ["", "\n", " ", "\r\n", "\t \n"])
def test_a_blank_line_is_no_message_and_gets_no_answer(line):
    assert exchange(demo(), line) is None


@pytest.mark.req("S-ENV-07")
@pytest.mark.parametrize(
    "garbage", [b'{"a":"\xff"}', b"\xff\xfe", b'{"a":"\xed\xa0\x80"}', b"\xc3"]
)
def test_bytes_that_are_no_utf8_are_a_parse_error_and_the_next_request_is_served(garbage):
    with Stdio(DEMO) as server:
        server.send_raw(garbage + b"\n")
        assert_error(server.read(), -32700, id=NO_ID)
        reply = server.ask(modern("tools/list"))
        assert [tool["name"] for tool in reply["result"]["tools"]]


@pytest.mark.req("S-ENV-07")
def test_text_beyond_ascii_comes_back_as_it_was():
    for text in "größe", "世界", "𝄞", "\u2028", "\x00", "é":
        assert exchange(demo(), call(text)) == echoed(text)
        raw = json.dumps(call(text), ensure_ascii=False)
        assert exchange(demo(), raw) == echoed(text)


RAW_STUB = r"""
    import json, sys
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if "id" in message:
            result = {"resultType": "complete", "content": [{"type": "text", "text": "x"}],
                      "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
                      "protocolVersion": "2025-11-25", "serverInfo": {"name": "raw", "zzz": 1},
                      "ttlMs": 0, "cacheScope": "private", "zzz": 1}
            reply = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result, "zzz": 1})
            data = reply.encode().replace(b'"x"', TEXT if b"broken" in line else b'"x"')
            sys.stdout.buffer.write(GARBAGE + data + b"\n")
            sys.stdout.buffer.flush()
"""


def raw_stub(tmp_path, garbage=b"", text=b""):
    """A server that says garbage before each reply, and a text that is broken if it should."""
    source = RAW_STUB.replace("GARBAGE", repr(garbage)).replace("TEXT", repr(text))
    return server_file(tmp_path, source)


@pytest.mark.req("S-ENV-07", "S-ENV-16")
@pytest.mark.parametrize(
    "garbage", [b'{"a":"\xff"}\n', b"\xff\xfe\n", b'{"jsonrpc":"2.0","id":NaN}\n']
)
def test_a_client_survives_a_server_that_writes_garbage(tmp_path, garbage):
    with Client(raw_stub(tmp_path, garbage)) as client:
        assert client.call_tool("any", {}).text == "x"


@pytest.mark.req("S-ENV-07", "S-ENV-16")
@pytest.mark.parametrize(
    "text", [b'"\xff"', b'"\xed\xa0\x80"', b'"x", "y": NaN', b'"x", "y": 1e999']
)
def test_a_reply_that_is_no_strict_json_is_an_error_and_the_client_goes_on(tmp_path, text):
    with Client(raw_stub(tmp_path, text=text)) as client:
        with pytest.raises(ConnectionError, match=r"malformed reply: .*not JSON"):
            client.call_tool("broken", {})
        assert client.call_tool("any", {}).text == "x"


BATCHES = [
    [],
    [legacy("ping")],
    [call("x", 1), call("y", 2)],
    [notification("notifications/initialized")],
    [[call("x")]],
    [1, 2, 3],
    [None],
]


@pytest.mark.req("S-ENV-08")
@pytest.mark.parametrize("batch", BATCHES, ids=json.dumps)
def test_a_batch_is_one_invalid_request_and_runs_nothing(batch):
    server = shaken_hands(demo())
    assert_error(exchange(server, json.dumps(batch)), -32600, id=NO_ID)
    assert server.calls == []


@pytest.mark.req("S-ENV-09", "S-STDIO-07", "S-CANC-11")
def test_a_modern_server_sends_no_request_and_cancels_nothing(tmp_path):
    source = """
        from minimcp import Context, InputRequired, Server, run
        server = Server("demo", version="1.0.0")

        @server.tool
        def ask(context: Context) -> str:
            return InputRequired({"a": {"method": "roots/list"}})

        @server.tool
        def report(context: Context) -> str:
            context.progress(1, 2, "half")
            context.log("error", "told")
            return "done"

        @server.tool
        def fail() -> str:
            raise SystemExit(3)

        run(server)
    """
    with Stdio(server_file(tmp_path, source)) as server:
        meta = {"progressToken": 1, "io.modelcontextprotocol/logLevel": "debug"}
        for id, name in enumerate(["report", "fail", "nope", "ask"]):
            call = modern("tools/call", {"name": name}, id, meta=meta, capabilities={"roots": {}})
            answer = server.ask(call)
        assert answer["result"]["inputRequests"] == {"a": {"method": "roots/list"}}
        server.ask(modern("server/discover", id=10))
        server.close_stdin()
        server.read_all()
        assert server.wait() == 0
        sent = [message for message in server.received if "method" in message]
        assert {"notifications/progress"} <= {message["method"] for message in sent}
        assert [m for m in sent if "id" in m or m["method"] == "notifications/cancelled"] == []


RESPONSES = [
    {"jsonrpc": "2.0", "id": 9, "result": {}},
    {"jsonrpc": "2.0", "id": "x", "result": {"resultType": "complete"}},
    {"jsonrpc": "2.0", "id": 9, "error": {"code": -32601, "message": "no"}},
    {"jsonrpc": "2.0", "error": {"code": -32700, "message": "no"}},
    {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "no"}},
]


@pytest.mark.req("S-ENV-10")
@pytest.mark.parametrize("response", RESPONSES, ids=json.dumps)
def test_a_response_is_no_request_and_gets_no_answer(response):
    server = demo()
    assert exchange(server, response) is None
    assert exchange(shaken_hands(server), response) is None


@pytest.mark.req("B-ENV-11")
def test_unknown_members_of_a_request_are_tolerated():
    server = demo()
    message = modern("tools/list", {"zzz": 1}) | {"x": 1}
    assert exchange(server, message) == exchange(server, modern("tools/list"))
    message = call("x") | {"result_type": None, "extra": [1]}
    message["params"]["zzz"] = {"deep": [None]}
    assert exchange(server, message) == echoed("x")
    greeting = initialize()
    greeting["params"]["zzz"] = greeting["zzz"] = 1
    assert exchange(server, greeting) == exchange(server, initialize())
    message = legacy("tools/call", {"name": "echo", "arguments": {"text": "x"}, "zzz": 1})
    assert exchange(server, message | {"x": 1}) == plain(SAID_X)
    assert exchange(server, notification("no/such", {"zzz": 1}) | {"x": 1}) is None


@pytest.mark.req("B-ENV-11")
@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_unknown_members_of_a_reply_are_tolerated(tmp_path, era):
    with Client(raw_stub(tmp_path), era=era) as client:
        assert client.call_tool("any", {}).text == "x"


def stub_of(tmp_path, era):
    result = {"content": [], "resultType": "complete"}
    info = {"name": "stub", "version": "1"}
    hello = {"protocolVersion": LEGACY, "capabilities": {"tools": {}}, "serverInfo": info}
    found = {"supportedVersions": ["2026-07-28"], "capabilities": {}, "ttlMs": 0}
    table = {
        "server/discover": {"result": {**found, "resultType": "complete", "cacheScope": "private"}},
        "initialize": {"result": hello},
        "tools/call": {"result": result if era == "modern" else {"content": []}},
    }
    return Stub(tmp_path, table)


@pytest.mark.req("C-ENV-12")
@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_a_client_never_uses_an_id_twice(tmp_path, era):
    stub = stub_of(tmp_path, era)

    def hundred():
        for _ in range(50):
            client.call_tool("any", {})

    with Client(stub.command, era=era) as client:
        threads = [threading.Thread(target=hundred) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    ids = [message["id"] for message in stub.received() if "id" in message]
    assert len(ids) > 1000
    assert len({(type(id), id) for id in ids}) == len(ids)


@pytest.mark.req("S-ENV-13")
def test_a_second_request_with_the_id_of_one_in_flight_does_not_harm_the_first(tmp_path):
    with Stdio(server_file(tmp_path, GATED)) as server:
        server.send(modern("tools/call", {"name": "hold", "arguments": {"word": "one"}}, 7))
        until(lambda: structured(server.ask(modern("tools/call", {"name": "held"}, "h"))) == 1)
        second = modern("tools/call", {"name": "hold", "arguments": {"word": "two"}}, 7)
        assert_error(server.ask(second), -32600, "7", id=7)
        server.send(modern("tools/call", {"name": "release"}, 8))
        replies = [server.read(), server.read()]
        (first,) = [reply for reply in replies if reply["id"] == 7]
        assert first["result"]["content"] == [{"type": "text", "text": "one"}]
        assert structured(server.ask(modern("tools/call", {"name": "held"}, 7))) == 1


def structured(reply):
    return reply["result"]["structuredContent"]


@pytest.mark.req("S-ENV-14", "S-META-06")
def test_what_one_request_declared_is_forgotten_at_the_next():
    server = Server("demo", version="1.0.0")

    @server.tool
    def sample(context: Context) -> str:
        context.require("sampling")
        return "sampled"

    def ask(**meta):
        return exchange(server, modern("tools/call", {"name": "sample"}, **meta))

    missing = {"requiredCapabilities": {"sampling": {}}}
    sampled = complete({"content": [{"type": "text", "text": "sampled"}]})
    assert ask(capabilities={"sampling": {}}) == sampled
    assert_error(ask(), -32021, "sampling", data=missing)
    assert exchange(server, initialize(capabilities={"sampling": {}}))["id"] == 0
    assert_error(ask(), -32021, "sampling", data=missing)
    assert ask(capabilities={"sampling": {}}) == sampled


@pytest.mark.req("S-ENV-14")
def test_a_request_knows_nothing_of_the_one_before():
    server, lines = Server("demo", version="1.0.0"), []
    server.capabilities["logging"] = {}
    peer = Peer(lines.append)

    @server.tool
    def known(context: Context) -> list[dict]:
        context.progress(1)
        context.log("emergency", "x")
        return [context.meta, context.capabilities, context.inputs]

    def ask(request, **more):
        return exchange(server, request("tools/call", {"name": "known"}, **more), peer)

    level, name = "io.modelcontextprotocol/logLevel", "io.modelcontextprotocol/clientInfo"
    told = {level: "debug", name: {"name": "a", "version": "1"}, "progressToken": 1, "x": 1}
    assert structured(ask(modern, meta=told, capabilities={"roots": {}}))[0].keys() > told.keys()
    assert len(lines) == 2
    assert structured(ask(modern)) == [META, {}, {}]
    assert len(lines) == 2
    assert_error(ask(legacy), -32602, "protocolVersion")


@pytest.mark.req("S-ENV-15")
def test_a_fast_call_is_answered_before_a_slow_one_that_came_first(tmp_path):
    with Stdio(server_file(tmp_path, GATED)) as server:
        server.send(
            modern("tools/call", {"name": "hold", "arguments": {"word": "slow"}}, 1),
            modern("tools/list", id=2),
        )
        assert server.read()["id"] == 2
        server.send(modern("tools/call", {"name": "release"}, 3))
        assert {server.read()["id"], server.read()["id"]} == {1, 3}


@pytest.mark.req("S-ENV-16")
@pytest.mark.parametrize("number", ["nan", "inf", "-inf"])
def test_a_number_that_is_no_json_is_never_sent(number):
    server = demo()

    @server.tool
    def bad() -> float:
        return float(number)

    @server.tool
    def nested() -> dict[str, list[float]]:
        return {"values": [1.0, float(number)]}

    @server.method("acme/bad", capability="acme")
    def acme(params, context):
        return {"value": float(number)}

    for name in "bad", "nested":
        assert_tool_error(exchange(server, modern("tools/call", {"name": name})), "JSON")
    assert_error(exchange(server, modern("acme/bad")), -32603)


@pytest.mark.req("S-ENV-16")
@pytest.mark.parametrize("number", ["nan", "inf", "-inf"])
def test_a_notification_that_is_no_json_is_never_sent(number):
    server, lines = Server("demo", version="1.0.0"), []
    server.capabilities["logging"] = {}

    @server.tool
    def say(context: Context) -> str:
        context.log("error", {"values": [float(number)]})
        return "said"

    peer = Peer(lines.append)
    exchange(server, initialize(), peer)
    debug = {"io.modelcontextprotocol/logLevel": "debug"}
    for call in modern("tools/call", SAY, meta=debug), legacy("tools/call", SAY):
        assert_tool_error(exchange(server, call, peer), "JSON")
    assert lines == []


@pytest.mark.req("S-ENV-16")
@pytest.mark.parametrize("token", ["NaN", "Infinity", "-Infinity"])
def test_a_number_that_is_no_json_is_a_parse_error(token):
    server = demo()
    assert_error(exchange(server, f'{{"a":{token}}}'), -32700, id=NO_ID)
    line = json.dumps(call("VALUE")).replace('"VALUE"', token)
    assert_error(exchange(server, line), -32700, id=NO_ID)


@pytest.mark.req("S-ENV-16")
@pytest.mark.parametrize("value", [float("nan"), float("inf"), {"deep": [float("-inf")]}])
def test_a_client_refuses_to_send_what_is_no_json(value):
    server = demo()
    with Client(server, timeout=5) as client:
        with pytest.raises(ValueError, match=r"JSON|JSON compliant|nan|inf"):
            client.call_tool("echo", {"text": value})
        assert client.call_tool("echo", {"text": "alive"}).text == "alive"
    assert server.calls == ["alive"]


@pytest.mark.req("S-ENV-16")
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_no_json_leaves_a_client_on_no_wire(tmp_path, value):
    with serving(demo()) as site:
        for target in raw_stub(tmp_path), site.url:
            with Client(target, timeout=5) as client:
                with pytest.raises(ValueError, match=r"JSON|nan|inf"):
                    client.call_tool("echo", {"text": value})
                assert client.call_tool("echo", {"text": "x"}).text == "x"


HOSTILE = {
    "arrays": "[" * 100_000,
    "closed arrays": "[" * 100_000 + "]" * 100_000,
    "objects": '{"a":' * 100_000,
    "nested params": '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":' + "[" * 100_000,
    "a giant integer": "9" * 5000,
    "a giant id": '{"jsonrpc":"2.0","id":' + "9" * 5000 + ',"method":"ping"}',
    "a giant exponent": '{"jsonrpc":"2.0","id":1e999,"method":"ping"}',
    "a lone surrogate": '"\\ud800"',
}


@pytest.mark.req("S-ENV-18")
@pytest.mark.parametrize("line", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_line_is_an_error_and_the_server_lives(line):
    server = demo()
    reply = exchange(server, line)
    assert reply["error"]["code"] in (-32700, -32600)
    assert "id" not in reply
    assert len(json.dumps(reply)) < 1000
    assert exchange(server, call("alive")) == echoed("alive")


@pytest.mark.req("S-ENV-18")
@pytest.mark.parametrize("depth", [500, 900, 990, 5_000])
def test_arguments_nested_to_the_edge_of_what_python_can_read_are_answered(depth):
    server = demo()
    line = json.dumps(call("VALUE")).replace('"VALUE"', "[" * depth + "]" * depth)
    reply = exchange(server, line)
    assert "result" in reply or reply["error"]["code"] in (-32700, -32600, -32602, -32603)
    assert exchange(server, call("alive")) == echoed("alive")
