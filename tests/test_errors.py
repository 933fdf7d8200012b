"""ERR: which error, with which code, data and id; and what a client makes of one."""

import io
import sys
import tokenize
from pathlib import Path

import pytest
from support import MODERN, NO_ID, Stub, assert_error, exchange, initialize, legacy, modern

import minimcp
from minimcp import Client, Context, ProtocolError, Server

VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"


def demo():
    server = Server("demo", version="1.0.0")

    @server.tool
    def add(a: int, b: int) -> int:
        return a + b

    return server


def legacy_demo():
    server = demo()
    exchange(server, initialize())
    return server


MALFORMED = [
    '{"jsonrpc":',
    "{",
    "}",
    "nonsense",
    "'x'",
    '{"jsonrpc":"2.0","id":1,"method":"ping"',
    '{"jsonrpc":"2.0","id":1,"method":"ping"} {}',
    '{"jsonrpc":"2.0" "id":1}',
    '{"a":1,}',
    '{"a":01}',
    '"\x01"',
    "\x00",
    "undefined",
    "Content-Length: 52",
]


@pytest.mark.req("S-ERR-01", "S-ERR-15")
@pytest.mark.parametrize("line", MALFORMED, ids=repr)
def test_malformed_json_is_a_parse_error_without_an_id(line):
    assert_error(exchange(demo(), line), -32700, id=NO_ID)


NO_MESSAGES = [
    ("5", NO_ID),
    ('"x"', NO_ID),
    ("null", NO_ID),
    ("true", NO_ID),
    ("1.5", NO_ID),
    ("{}", NO_ID),
    ('{"jsonrpc":"2.0"}', NO_ID),
    ('{"id":1}', 1),
    ('{"id":"x","method":"ping"}', "x"),
    ('{"jsonrpc":"2.0","id":1}', 1),
    ('{"jsonrpc":"2.0","id":1,"params":{}}', 1),
    ('{"jsonrpc":"2.0","id":1,"method":5}', 1),
    ('{"jsonrpc":"2.0","id":1,"method":null}', 1),
    ('{"jsonrpc":"2.0","id":1,"method":["ping"]}', 1),
]


@pytest.mark.req("S-ERR-02", "S-ERR-15")
@pytest.mark.parametrize(("line", "id"), NO_MESSAGES)
def test_json_that_is_no_message_is_an_invalid_request(line, id):
    assert_error(exchange(demo(), line), -32600, id=id)
    assert_error(exchange(legacy_demo(), line), -32600, id=id)


UNKNOWN = ["unknown/method", "tools", "tools/List", "tools/call ", "", "rpc.discover", "größe"]


@pytest.mark.req("S-ERR-03")
@pytest.mark.parametrize("method", UNKNOWN)
def test_an_unknown_method_is_refused_by_name(method):
    assert_error(exchange(demo(), modern(method)), -32601, method)
    assert_error(exchange(legacy_demo(), legacy(method)), -32601, method)


@pytest.mark.req("S-ERR-03")
def test_a_tool_called_as_a_method_is_told_how_it_is_called():
    for request, server in (modern, demo()), (legacy, legacy_demo()):
        assert_error(
            exchange(server, request("add", {"a": 1, "b": 2})), -32601, "add", "tools/call"
        )
        reply = exchange(server, request("subtract"))
        assert_error(reply, -32601, "subtract")
        assert "tools/call" not in reply["error"]["message"]


UNADVERTISED = [
    "prompts/list",
    "prompts/get",
    "resources/list",
    "resources/read",
    "resources/templates/list",
    "resources/subscribe",
    "resources/unsubscribe",
    "completion/complete",
    "logging/setLevel",
]


@pytest.mark.req("S-ERR-04")
@pytest.mark.parametrize("method", UNADVERTISED)
def test_a_method_behind_a_capability_that_is_not_advertised_is_unknown(method):
    assert_error(exchange(demo(), modern(method)), -32601, method)
    assert_error(exchange(legacy_demo(), legacy(method)), -32601, method)


@pytest.mark.req("S-ERR-04")
@pytest.mark.parametrize("method", ["tools/list", "tools/call"])
def test_without_tools_their_methods_are_unknown_in_either_era(method):
    server = Server("demo", version="1.0.0")
    assert exchange(server, initialize())["result"]["capabilities"] == {}
    for message in modern(method), legacy(method):
        assert_error(exchange(server, message), -32601, method)


BAD_PARAMS = [
    ("tools/call", {"name": "nope"}, ["nope"]),
    ("tools/call", {"name": "nope", "arguments": {"a": 1}}, ["nope"]),
    ("tools/call", {}, ["name", "string"]),
    ("tools/call", {"name": 5}, ["name", "string", "5"]),
    ("tools/call", {"name": "add", "arguments": []}, ["arguments", "object", "array"]),
    ("tools/list", {"cursor": "garbage"}, ["cursor"]),
    ("tools/list", {"cursor": 5}, ["cursor", "string", "5"]),
]


@pytest.mark.req("S-ERR-05")
@pytest.mark.parametrize(("method", "params", "named"), BAD_PARAMS)
def test_bad_params_are_refused_with_what_and_where(method, params, named):
    assert_error(exchange(demo(), modern(method, params)), -32602, *named)
    assert_error(exchange(legacy_demo(), legacy(method, params)), -32602, *named)


@pytest.mark.req("S-ERR-06")
def test_a_fault_in_a_handler_is_an_internal_error_that_tells_no_secret(capsys):
    server = demo()

    @server.method("acme/fault", capability="acme")
    def fault(params, context):
        raise RuntimeError("secret")

    for message in modern("acme/fault"), legacy("acme/fault"):
        exchange(server, initialize())
        reply = exchange(server, message)
        assert_error(reply, -32603)
        assert "secret" not in str(reply)
        assert "Traceback" not in str(reply)
    assert "RuntimeError: secret" in capsys.readouterr().err


def probes():
    """A request for every way in which one can be refused, ids from 101 on."""
    sampling = modern("tools/call", {"name": "sample"})
    wrong = [
        modern("unknown/method"),
        modern("prompts/list"),
        modern("ping"),
        modern("initialize"),
        *[modern(method, params) for method, params, _ in BAD_PARAMS],
        modern("server/discover", meta={VERSION: "1900-01-01"}),
        modern("server/discover", meta={VERSION: 5}),
        modern("server/discover", meta={CAPABILITIES: []}),
        legacy("server/discover"),
        legacy("server/discover", {}),
        legacy("server/discover", {"_meta": "x"}),
        legacy("server/discover", {"_meta": {VERSION: MODERN}}),
        sampling,
        modern("acme/fault"),
        modern("acme/reserved"),
        modern("acme/legacy"),
        modern("acme/older"),
        modern("acme/nobody"),
        {**modern("ping"), "jsonrpc": "1.0"},
        {**modern("ping"), "method": 5},
        {**modern("ping"), "params": []},
    ]
    return [message | {"id": 101 + number} for number, message in enumerate(wrong)]


def refusing():
    server = demo()

    @server.tool
    def sample(context: Context) -> str:
        context.require("sampling")
        return "never"

    def raises(method, error):
        @server.method(method, capability="acme")
        def handler(params, context):
            raise error

    raises("acme/fault", RuntimeError("secret"))
    raises("acme/reserved", ProtocolError(-32050, "not yours"))
    raises("acme/legacy", ProtocolError(-32042, "not modern"))
    raises("acme/older", ProtocolError(-32002, "not modern either"))
    raises("acme/nobody", ProtocolError(-32001, "nobody's"))
    return server


@pytest.mark.req("S-ERR-14", "S-ERR-07")
def test_every_error_repeats_the_id_and_has_a_code_and_a_message():
    server = refusing()
    for message in probes():
        reply = exchange(server, message)
        assert reply["id"] == message["id"]
        assert type(reply["error"]["code"]) is int
        assert type(reply["error"]["message"]) is str


@pytest.mark.req("S-ERR-08", "S-ERR-09", "S-ERR-10")
def test_no_error_has_a_code_that_is_reserved_or_nobodys():
    server = refusing()
    codes = {exchange(server, message)["error"]["code"] for message in probes()}
    assert codes == {-32600, -32601, -32602, -32603, -32021, -32022}


@pytest.mark.req("S-ERR-10")
def test_an_older_client_gets_the_one_code_of_its_era_and_no_other_of_nobodys():
    server = refusing()
    exchange(server, initialize())
    methods = {"acme/older": -32002, "acme/nobody": -32603, "acme/legacy": -32603}
    for method, code in methods.items():
        assert exchange(server, legacy(method))["error"]["code"] == code


@pytest.mark.req("S-ERR-07")
@pytest.mark.parametrize("code", ["E1", 1.5, None, True, [], {}])
def test_a_code_that_is_no_integer_and_a_message_that_is_no_text_are_never_sent(code):
    server = demo()

    @server.method("acme/no", capability="acme")
    def no(params, context):
        raise ProtocolError(code, KeyError("why"))

    exchange(server, initialize())
    for message in modern("acme/no"), legacy("acme/no"):
        assert_error(exchange(server, message), -32603, "'why'")


@pytest.mark.req("S-ERR-08", "S-ERR-10")
def test_the_package_names_no_code_that_it_must_not_use():
    """Every number of the JSON-RPC range in the source is one that MCP defines."""
    found = set()
    for path in Path(minimcp.__file__).parent.glob("*.py"):
        source = io.StringIO(path.read_text(encoding="utf-8"))
        for token in tokenize.generate_tokens(source.readline):
            if token.type == tokenize.NUMBER and token.string.replace("_", "").isdigit():
                number = int(token.string.replace("_", ""))
                if 32000 <= number <= 32768:
                    found.add(number)
    defined = {32700, 32600, 32601, 32602, 32603, 32020, 32021, 32022}
    assert defined <= found
    assert found - defined <= {32002, 32099}  # the bound of a range, a legacy code


@pytest.mark.req("S-ERR-11")
@pytest.mark.parametrize("data", [None, {"why": "because"}, [1], "text", 0, False])
def test_an_applications_own_error_passes_through(data):
    server = demo()

    @server.method("acme/no", capability="acme")
    def no(params, context):
        raise ProtocolError(1001, "Not today", data)

    @server.tool
    def also() -> str:
        raise ProtocolError(1001, "Not today", data)

    error = {"code": 1001, "message": "Not today"} | ({} if data is None else {"data": data})
    expected = {"jsonrpc": "2.0", "id": 1, "error": error}
    assert exchange(server, modern("acme/no")) == expected
    assert exchange(server, modern("tools/call", {"name": "also"})) == expected


@pytest.mark.req("S-ERR-12")
def test_a_missing_capability_is_named_as_an_object():
    server = refusing()
    reply = exchange(server, modern("tools/call", {"name": "sample"}))
    assert_error(reply, -32021, "sampling", data={"requiredCapabilities": {"sampling": {}}})


@pytest.mark.req("S-ERR-13", "S-VER-01", "S-VER-03")
@pytest.mark.parametrize("asked", ["v999.0.0", "1900-01-01", "2099-01-01", ""])
def test_an_unserved_version_is_refused_with_what_is_served(asked):
    server = demo()
    served = exchange(server, modern("server/discover"))["result"]["supportedVersions"]
    for method in "server/discover", "tools/list", "no/such":
        reply = exchange(server, modern(method, meta={VERSION: asked}))
        assert_error(reply, -32022, asked, data={"supported": served, "requested": asked})


def discovered(**more):
    result = {"supportedVersions": [MODERN], "capabilities": {"tools": {}}, "ttlMs": 0}
    return {"result": {**result, "resultType": "complete", "cacheScope": "private", **more}}


READY = "notifications/initialized"
CODES = [-32001, -32000, -32019, -32002, -32602, -32603, 1001, 0]


@pytest.mark.req("C-ERR-16", "C-ERR-17", "C-CALL-24")
@pytest.mark.parametrize("era", ["modern", "legacy"])
@pytest.mark.parametrize("code", CODES)
def test_a_clients_caller_gets_the_servers_error_as_it_is(tmp_path, code, era):
    """-32002 is of the same kind as every other refusal; -32001 is no timeout and ends nothing."""
    error = {"code": code, "message": "because", "data": {"n": 1}}
    found = discovered(protocolVersion="2025-11-25", serverInfo={"name": "stub"})
    replies = {"server/discover": found, "initialize": found, "tools/call": {"error": error}}
    stub = Stub(tmp_path, replies)
    with Client(stub.command, era=era) as client:
        for _ in range(2):
            with pytest.raises(ProtocolError) as caught:
                client.call_tool("any", {})
            assert (caught.value.code, caught.value.data) == (code, {"n": 1})
            assert "because" in str(caught.value)
    assert stub.methods().count("tools/call") == 2
    assert stub.methods()[-3:-2] == ["server/discover" if era == "modern" else READY]


@pytest.mark.req("C-ERR-18", "C-CLI-01")
def test_a_timeout_is_no_error_of_the_server(tmp_path):
    stub = Stub(tmp_path, {"server/discover": discovered(), "tools/call": None})
    with Client(stub.command) as client, pytest.raises(Exception, match="tools/call") as caught:
        client.call_tool("any", {}, timeout=0.1)
    assert isinstance(caught.value, TimeoutError)
    assert not isinstance(caught.value, ProtocolError)
    assert not hasattr(caught.value, "code")


@pytest.mark.req("C-ERR-18")
def test_a_server_that_went_away_is_no_error_of_the_server(tmp_path):
    stub = Stub(tmp_path, {"server/discover": discovered(), "tools/call": {"exit": 3}})
    with Client(stub.command) as client, pytest.raises(Exception, match="3") as caught:
        client.call_tool("any", {})
    assert not isinstance(caught.value, ProtocolError | TimeoutError)
    assert isinstance(caught.value, OSError)


def test_what_fails_on_our_side_is_told_the_operator_whole(monkeypatch):
    told = []
    monkeypatch.setattr(sys, "excepthook", lambda *what: told.append(what))
    server, failure = demo(), ZeroDivisionError("of ours")

    @server.method("acme/fail")
    def fail(params, context):
        raise failure

    assert_error(exchange(server, modern("acme/fail")), -32603, "Internal error")
    [(kind, error, trace)] = told
    assert (kind, error) == (ZeroDivisionError, failure)
    assert trace is failure.__traceback__ is not None
