"""VER: which revision a request speaks, and how a client and a server find a common one.

The compatibility matrix is here too: a client of one era meets a server of another, over stdio.
"""

import sys
import threading
import time

import pytest
from support import (
    LEGACY,
    MODERN,
    OLD,
    Stdio,
    Stub,
    assert_error,
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

from minimcp import Client, ProtocolError, Server
from minimcp.context import Peer

DEMO = [sys.executable, "-m", "minimcp.demo"]
VERSION = "io.modelcontextprotocol/protocolVersion"
INFO = {"name": "demo", "version": "1.0.0"}
ECHO = {"name": "echo", "arguments": {"text": "x"}}
CONTENT = {"content": [{"type": "text", "text": "x"}]}


def demo():
    server = Server("demo", version="1.0.0")

    @server.tool
    def echo(text: str) -> str:
        return text

    return server


# -- the server


@pytest.mark.req("S-VER-02", "S-VER-03", "S-ERR-13")
@pytest.mark.parametrize("version", [LEGACY, OLD, "2025-03-26"])
def test_a_legacy_version_in_modern_form_is_refused(version):
    server = demo()
    supported = exchange(server, modern("server/discover"))["result"]["supportedVersions"]
    assert supported == [MODERN]
    reply = exchange(server, modern("tools/list", meta={VERSION: version}))
    assert_error(reply, -32022, version, data={"supported": [MODERN], "requested": version})


@pytest.mark.req("S-VER-04", "S-VER-05")
def test_meta_decides_the_era_of_each_request_also_after_an_initialize():
    server = demo()
    assert exchange(server, modern("tools/call", ECHO)) == complete(CONTENT)
    exchange(server, initialize())
    assert exchange(server, legacy("tools/call", ECHO)) == plain(CONTENT)
    assert exchange(server, modern("tools/call", ECHO)) == complete(CONTENT)
    assert exchange(server, legacy("tools/call", ECHO, 2)) == plain(CONTENT, 2)


@pytest.mark.req("S-VER-05")
def test_a_handshake_holds_for_its_own_connection_only():
    server, one, other = demo(), Peer(), Peer()
    exchange(server, initialize(OLD, capabilities={"roots": {}}), one)
    assert exchange(server, legacy("tools/call", ECHO), one) == plain(CONTENT)
    for stranger in other, Peer(), None:
        assert_error(exchange(server, legacy("tools/call", ECHO), stranger), -32602, "initialize")


@pytest.mark.req("S-VER-06")
def test_a_modern_initialize_is_an_unknown_method():
    params = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": INFO}
    server = demo()
    assert_error(exchange(server, modern("initialize", params)), -32601, "initialize")
    assert_error(exchange(server, modern("initialize")), -32601, "initialize")
    assert_error(exchange(server, legacy("tools/list")), -32602)


NEGOTIATED = [
    (LEGACY, LEGACY),
    (OLD, OLD),
    ("2024-11-05", LEGACY),
    ("2025-03-26", LEGACY),
    ("2099-01-01", LEGACY),
    (MODERN, LEGACY),
    ("", LEGACY),
    ("banana", LEGACY),
]


@pytest.mark.req("S-VER-07", "S-VER-08", "S-VER-09")
@pytest.mark.parametrize(("asked", "answered"), NEGOTIATED)
def test_initialize_answers_the_version_asked_for_or_the_newest_legacy_one(asked, answered):
    expected = {"protocolVersion": answered, "capabilities": {"tools": {}}, "serverInfo": INFO}
    reply = exchange(demo(), initialize(asked))
    assert reply["result"].pop("capabilities")["tools"] is not None
    assert reply == plain({k: v for k, v in expected.items() if k != "capabilities"}, 0)


@pytest.mark.req("S-VER-09", "S-DISC-05")
def test_initialize_passes_the_instructions_on_if_there_are_any():
    server = Server("demo", version="1.0.0", instructions="Be kind.")
    assert exchange(server, initialize())["result"]["instructions"] == "Be kind."
    assert "instructions" not in exchange(demo(), initialize())["result"]


@pytest.mark.req("S-VER-08")
def test_a_meta_with_a_progress_token_alone_leaves_initialize_legacy():
    message = initialize()
    message["params"]["_meta"] = {"progressToken": 1}
    assert exchange(demo(), message)["result"]["protocolVersion"] == LEGACY


PARTIAL = [
    ({}, "protocolVersion"),
    ({"capabilities": {}, "clientInfo": INFO}, "protocolVersion"),
    ({"protocolVersion": LEGACY, "clientInfo": INFO}, "capabilities"),
    ({"protocolVersion": LEGACY, "capabilities": {}}, "clientInfo"),
    ({"protocolVersion": 5, "capabilities": {}, "clientInfo": INFO}, "protocolVersion"),
    ({"protocolVersion": LEGACY, "capabilities": [], "clientInfo": INFO}, "capabilities"),
    ({"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": "me"}, "clientInfo"),
]


@pytest.mark.req("S-VER-10")
@pytest.mark.parametrize(("params", "named"), PARTIAL)
def test_an_initialize_that_lacks_something_is_refused_and_negotiates_nothing(params, named):
    server = demo()
    assert_error(exchange(server, legacy("initialize", params)), -32602, named)
    assert_error(exchange(server, legacy("tools/list")), -32602)


@pytest.mark.req("S-VER-11")
def test_initialized_is_taken_silently():
    server = demo()
    exchange(server, initialize())
    assert exchange(server, notification("notifications/initialized")) is None
    assert exchange(server, notification("notifications/initialized", {})) is None
    assert exchange(server, legacy("tools/call", ECHO)) == plain(CONTENT)


@pytest.mark.req("S-VER-12", "S-RES-09")
def test_ping_is_answered_with_nothing_before_and_after_the_handshake():
    server = demo()
    pong = {"jsonrpc": "2.0", "id": "123", "result": {}}
    assert exchange(server, legacy("ping", id="123")) == pong
    exchange(server, initialize())
    assert exchange(server, legacy("ping", id="123")) == pong
    assert exchange(server, legacy("ping", {"_meta": {"progressToken": 1}}, "123")) == pong


@pytest.mark.req("S-VER-12", "S-VER-16")
def test_ping_is_no_handshake():
    server = demo()
    exchange(server, legacy("ping"))
    assert_error(exchange(server, legacy("tools/list")), -32602, "_meta")


GONE = ["ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "initialize"]


@pytest.mark.req("S-VER-13")
@pytest.mark.parametrize("method", GONE)
def test_a_method_that_left_the_protocol_is_unknown_to_modern_requests(method):
    params = {"level": "info", "uri": "file:///x"}
    assert_error(exchange(demo(), modern(method, params)), -32601, method)


@pytest.mark.req("S-VER-14", "S-RES-10")
@pytest.mark.parametrize("version", [LEGACY, OLD])
def test_a_legacy_session_sees_nothing_of_the_modern_era(version):
    server = demo()
    exchange(server, initialize(version))
    listed = exchange(server, legacy("tools/list"))["result"]
    called = exchange(server, legacy("tools/call", ECHO))["result"]
    assert set(listed) == {"tools"}
    assert [set(tool) for tool in listed["tools"]] == [{"name", "description", "inputSchema"}]
    assert called == CONTENT
    assert_error(exchange(server, legacy("server/discover")), -32601, "server/discover")


@pytest.mark.req("S-VER-16", "S-META-01")
@pytest.mark.parametrize("method", ["tools/list", "tools/call", "no/such", "logging/setLevel"])
def test_before_any_initialize_a_request_without_meta_is_refused(method):
    server = demo()
    for params in None, {}, {"name": "echo"}, {"_meta": {"progressToken": 1}}:
        assert_error(exchange(server, legacy(method, params)), -32602, "_meta")


@pytest.mark.req("S-VER-16")
def test_the_refusal_says_how_to_begin():
    reply = exchange(demo(), legacy("tools/list"))
    assert_error(reply, -32602, VERSION, "initialize")


@pytest.mark.req("S-VER-17")
def test_a_repeated_initialize_negotiates_again():
    server = demo()
    versions = [LEGACY, OLD, OLD, LEGACY]
    replies = [exchange(server, initialize(v, id=n)) for n, v in enumerate(versions)]
    assert [reply["id"] for reply in replies] == [0, 1, 2, 3]
    assert [reply["result"]["protocolVersion"] for reply in replies] == versions
    assert exchange(server, legacy("tools/call", ECHO)) == plain(CONTENT)


@pytest.mark.req("S-VER-18")
def test_a_client_with_unknown_extensions_is_served():
    extensions = {"extensions": {"com.example/telepathy": {"range": 5}}, "zzz": {}}
    server = demo()
    assert exchange(server, modern("tools/call", ECHO, capabilities=extensions)) == complete(
        CONTENT
    )
    assert exchange(server, initialize(capabilities=extensions))["id"] == 0
    assert exchange(server, legacy("tools/call", ECHO)) == plain(CONTENT)


@pytest.mark.req("S-VER-18")
def test_a_server_advertises_no_extension_that_it_does_not_have():
    capabilities = exchange(demo(), modern("server/discover"))["result"]["capabilities"]
    assert "extensions" not in capabilities
    assert "experimental" not in capabilities


@pytest.mark.req("S-VER-18")
@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_a_client_uses_the_core_of_a_server_with_extensions_that_it_does_not_know(tmp_path, era):
    extensions = {"extensions": {"com.example/telepathy": {}}, "experimental": {"x": {}}}
    hello = {"protocolVersion": LEGACY, "supportedVersions": [MODERN], "serverInfo": INFO}
    answer = {"result": {"resultType": "complete", "capabilities": extensions, **hello}}
    stub = Stub(tmp_path, {"initialize": answer, "server/discover": answer, "tools/call": CALLED})
    with Client(stub.command, era=era) as client:
        assert client.call_tool("any", {}).text == "called"
        assert client.declared == {}
    assert "telepathy" not in str(stub.received())


# -- the client


def discovered(*versions, **more):
    result = {"supportedVersions": list(versions or [MODERN]), "capabilities": {"tools": {}}}
    hints = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    return {"result": {**result, **hints, **more}}


def refused(*supported, requested=MODERN):
    data = {"supported": list(supported), "requested": requested}
    return {"error": {"code": -32022, "message": "Unsupported protocol version", "data": data}}


def greeted(version=LEGACY):
    info = {"name": "stub", "version": "1"}
    result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
    return {"result": result}


def error(code, message="no"):
    return {"error": {"code": code, "message": message}}


CALLED = {"result": {"content": [{"type": "text", "text": "called"}]}}
NO_METHOD = error(-32601, "Method not found")


def legacy_stub(tmp_path, probe=NO_METHOD, version=LEGACY):
    """A legacy server; `probe` is what it says to anything it does not know."""
    return Stub(tmp_path, {"initialize": greeted(version), "tools/call": CALLED, "*": probe})


def modern_stub(tmp_path, discover):
    called = {"result": {**CALLED["result"], "resultType": "complete"}}
    return Stub(tmp_path, {"server/discover": discover, "tools/call": called, "*": NO_METHOD})


@pytest.mark.req("C-VER-20", "C-STDIO-20", "MATRIX-dual-modern-stdio")
def test_a_refused_version_is_tried_once_more_with_what_is_offered(tmp_path):
    """Even though it is the version that was refused: the server may know better by now."""
    stub = modern_stub(tmp_path, [refused(MODERN), discovered()])
    with Client(stub.command) as client:
        assert (client.era, client.protocol_version) == ("modern", MODERN)
        assert client.call_tool("any", {}).text == "called"
    assert stub.methods() == ["server/discover", "server/discover", "tools/call"]


@pytest.mark.req("C-VER-20", "C-STDIO-20")
def test_a_version_refused_twice_is_refused(tmp_path):
    stub = modern_stub(tmp_path, refused(MODERN))
    with pytest.raises(ProtocolError) as caught:
        Client(stub.command)
    assert caught.value.code == -32022
    assert caught.value.data == {"supported": [MODERN], "requested": MODERN}
    assert stub.methods() == ["server/discover", "server/discover"]


@pytest.mark.req("C-VER-21", "C-STDIO-20")
@pytest.mark.parametrize("probe", [refused("2030-01-01"), discovered("2030-01-01")])
def test_no_common_version_is_an_error_that_names_theirs(tmp_path, probe):
    stub = modern_stub(tmp_path, probe)
    with pytest.raises(ConnectionError, match="2030-01-01"), Client(stub.command):
        pass
    assert "initialize" not in stub.methods()


@pytest.mark.req("C-VER-22", "C-VER-23", "C-DISC-11")
@pytest.mark.parametrize("era", ["auto", "legacy"])
def test_the_handshake_is_initialize_then_initialized_then_the_rest(tmp_path, era):
    stub, on_input = legacy_stub(tmp_path), {"roots/list": lambda params: {"roots": []}}
    with Client(stub.command, era=era, on_input=on_input) as client:
        assert client.call_tool("any", {}).text == "called"
    messages = [m for m in stub.received() if m["method"] != "server/discover"]
    methods = [message["method"] for message in messages]
    assert methods == ["initialize", "notifications/initialized", "tools/call"]
    params = messages[0]["params"]
    assert params["protocolVersion"] == LEGACY
    assert params["capabilities"] == {"roots": {}}
    assert isinstance(params["clientInfo"]["name"], str)
    assert isinstance(params["clientInfo"]["version"], str)
    assert "id" not in messages[1]
    assert all(VERSION not in m.get("params", {}).get("_meta", {}) for m in messages)


@pytest.mark.req("C-VER-22", "MATRIX-legacy-legacy-stdio")
@pytest.mark.parametrize("version", [LEGACY, OLD])
def test_a_legacy_client_speaks_each_legacy_revision_to_a_legacy_server(tmp_path, version):
    stub = legacy_stub(tmp_path, version=version)
    with Client(stub.command, era="legacy") as client:
        assert (client.era, client.protocol_version) == ("legacy", version)
        assert client.call_tool("any", {}).text == "called"
    assert stub.methods()[0] == "initialize"


@pytest.mark.req("C-VER-24")
@pytest.mark.parametrize("version", ["2024-11-05", "2099-01-01", MODERN])
def test_a_legacy_server_of_an_unsupported_version_is_left(tmp_path, version):
    stub = legacy_stub(tmp_path, version=version)
    threads = set(threading.enumerate())
    with pytest.raises(ConnectionError, match=version), Client(stub.command):
        pass
    until(lambda: set(threading.enumerate()) <= threads)  # those of the wire end with the server
    assert "tools/call" not in stub.methods()
    assert "notifications/initialized" not in stub.methods()


@pytest.mark.req("C-VER-24")
def test_a_server_of_the_revision_before_is_tolerated(tmp_path):
    stub = legacy_stub(tmp_path, version="2025-03-26")
    with Client(stub.command) as client:
        assert client.protocol_version == "2025-03-26"
        assert client.call_tool("any", {}).text == "called"


@pytest.mark.req("C-VER-25")
def test_a_client_probes_once(tmp_path):
    for stub in legacy_stub(tmp_path), modern_stub(tmp_path, discovered()):
        with Client(stub.command) as client:
            for _ in range(3):
                client.call_tool("any", {})
        assert stub.methods().count("server/discover") == 1
        assert stub.methods().count("tools/call") == 3


@pytest.mark.req("C-VER-25")
def test_a_server_that_comes_back_in_another_era_is_probed_again(tmp_path):
    newer = Stub(tmp_path, {"server/discover": discovered(), "tools/call": {"exit": 0}})
    older = legacy_stub(tmp_path)
    source = f"""
        import pathlib, runpy, sys
        ran = pathlib.Path({str(tmp_path / "ran")!r})
        sys.argv = ({older.command!r} if ran.exists() else {newer.command!r})[1:]
        ran.touch()
        runpy.run_path(sys.argv[0])
    """
    with Client(server_file(tmp_path, source)) as client:
        assert client.era == "modern"
        with pytest.raises(ConnectionError):
            client.call_tool("any", {})
        assert client.call_tool("any", {}).text == "called"
        assert client.era == "legacy"
    assert older.methods()[:2] == ["server/discover", "initialize"]


@pytest.mark.req("C-VER-26", "MATRIX-dual-legacy-stdio")
@pytest.mark.parametrize("probe", [{"result": {}}, discovered(LEGACY), discovered(LEGACY, OLD)])
def test_a_discover_result_without_a_modern_version_means_legacy(tmp_path, probe):
    stub = legacy_stub(tmp_path, probe)
    with Client(stub.command) as client:
        assert (client.era, client.protocol_version) == ("legacy", LEGACY)
        assert client.call_tool("any", {}).text == "called"
    assert stub.methods()[:2] == ["server/discover", "initialize"]


@pytest.mark.req("C-DISC-11")
def test_a_client_picks_its_newest_version_of_those_served(tmp_path):
    stub = modern_stub(tmp_path, discovered("2030-01-01", MODERN))
    with Client(stub.command) as client:
        assert client.protocol_version == MODERN
        assert client.call_tool("any", {}).text == "called"
    for message in stub.received():
        assert message["params"]["_meta"][VERSION] == MODERN


# -- the compatibility matrix over stdio

SILENCE = None
LEGACY_ANSWERS = [
    error(-32601),
    error(-32602),
    error(-32600),
    error(-32000),
    error(-32700),
    error(1),
    {"result": {}},
]


@pytest.mark.req("MATRIX-modern-modern-stdio")
def test_a_modern_client_and_our_server():
    with Client(DEMO, era="modern") as client:
        assert (client.era, client.protocol_version) == ("modern", MODERN)
        assert client.call_tool("calc.add", {"a": 2, "b": 40}).structured == 42


@pytest.mark.req("MATRIX-modern-modern-stdio", "C-VER-20")
def test_a_modern_client_retries_when_its_version_is_refused(tmp_path):
    stub = modern_stub(tmp_path, [refused(MODERN), discovered()])
    with Client(stub.command, era="modern") as client:
        assert client.call_tool("any", {}).text == "called"


@pytest.mark.req("MATRIX-modern-legacy-stdio", "C-STDIO-23")
@pytest.mark.parametrize("probe", LEGACY_ANSWERS)
def test_a_modern_client_tells_what_to_do_about_a_legacy_server(tmp_path, probe):
    stub = legacy_stub(tmp_path, probe)
    with pytest.raises(ConnectionError, match=r"legacy|auto"), Client(stub.command, era="modern"):
        pass
    assert set(stub.methods()) == {"server/discover"}


@pytest.mark.req("MATRIX-modern-legacy-stdio")
def test_a_modern_client_gives_up_on_a_server_that_is_silent(tmp_path):
    stub = legacy_stub(tmp_path, SILENCE)
    with pytest.raises(ConnectionError, match=r"discover|legacy|auto"):
        Client(stub.command, era="modern", probe_timeout=0.3)
    assert set(stub.methods()) <= {"server/discover", "notifications/cancelled"}


def test_a_modern_client_says_so_if_the_second_try_is_met_with_silence(tmp_path):
    stub = modern_stub(tmp_path, [refused(MODERN), SILENCE])
    with pytest.raises(ConnectionError, match=r"server/discover: no answer in 0\.3 s"):
        Client(stub.command, era="modern", probe_timeout=0.3)


def test_a_modern_client_says_in_one_sentence_what_to_do(tmp_path):
    stub = legacy_stub(tmp_path)
    with pytest.raises(ConnectionError) as caught:
        Client(stub.command, era="modern")
    assert str(caught.value) == "the server speaks no modern revision; try era='auto'"


def test_a_handshake_that_is_refused_for_another_reason_is_refused(tmp_path):
    stub = Stub(tmp_path, {"initialize": error(-32603, "out of order"), "*": NO_METHOD})
    with pytest.raises(ProtocolError, match="out of order"):
        Client(stub.command)
    assert stub.methods() == ["server/discover", "initialize"]


def test_a_server_that_refuses_the_handshake_and_is_silent_again_is_given_up(tmp_path):
    stub = Stub(tmp_path, {"initialize": refused(MODERN), "server/discover": SILENCE})
    with pytest.raises(ConnectionError, match=r"server/discover: no answer in 0\.2 s"):
        Client(stub.command, probe_timeout=0.2)


def test_a_modern_revision_that_is_asked_for_is_not_given_up_for_another(tmp_path):
    stub = legacy_stub(tmp_path)
    with pytest.raises(ConnectionError, match="no modern revision"):
        Client(stub.command, version=MODERN)
    assert stub.methods() == ["server/discover"]


def test_a_server_without_capabilities_has_none(tmp_path):
    answer = greeted()
    del answer["result"]["capabilities"]
    stub = Stub(tmp_path, {"initialize": answer, "*": NO_METHOD})
    with Client(stub.command) as client:
        assert client.capabilities == {}


@pytest.mark.req("MATRIX-dual-modern-stdio")
def test_a_dual_client_stays_modern_with_a_modern_server(tmp_path):
    stub = modern_stub(tmp_path, discovered())
    with Client(stub.command) as client:
        assert client.era == "modern"
        assert client.call_tool("any", {}).text == "called"
    assert stub.methods() == ["server/discover", "tools/call"]


@pytest.mark.req("MATRIX-dual-legacy-stdio", "C-STDIO-19")
@pytest.mark.parametrize("probe", LEGACY_ANSWERS)
def test_a_dual_client_falls_back_to_initialize_on_any_odd_answer(tmp_path, probe):
    stub = legacy_stub(tmp_path, probe)
    with Client(stub.command) as client:
        assert (client.era, client.protocol_version) == ("legacy", LEGACY)
        assert client.call_tool("any", {}).text == "called"
    expected = ["server/discover", "initialize", "notifications/initialized", "tools/call"]
    assert stub.methods() == expected


@pytest.mark.req("MATRIX-dual-legacy-stdio", "C-STDIO-19")
def test_a_dual_client_falls_back_to_initialize_on_silence(tmp_path):
    stub = legacy_stub(tmp_path, SILENCE)
    with Client(stub.command, probe_timeout=0.3) as client:
        assert (client.era, client.protocol_version) == ("legacy", LEGACY)
        assert client.call_tool("any", {}).text == "called"
    methods = [m for m in stub.methods() if m != "notifications/cancelled"]
    expected = ["server/discover", "initialize", "notifications/initialized", "tools/call"]
    assert methods == expected


@pytest.mark.req("MATRIX-legacy-dual-stdio", "S-VER-05", "S-VER-07")
@pytest.mark.parametrize("version", [LEGACY, OLD])
def test_our_server_serves_a_legacy_session_of_each_revision(version):
    with Stdio(DEMO) as server:
        assert server.ask(initialize(version))["result"]["protocolVersion"] == version
        server.send(notification("notifications/initialized"))
        listed = server.ask(legacy("tools/list", id=1))["result"]
        assert set(listed) == {"tools"}
        arguments = {"name": "calc.add", "arguments": {"a": 2, "b": 40}}
        called = server.ask(legacy("tools/call", arguments, 2))["result"]
        assert called["content"] == [{"type": "text", "text": "42"}]
        assert "structuredContent" not in called
        assert server.ask(legacy("ping", id=3)) == plain({}, 3)


@pytest.mark.req("S-VER-15")
def test_our_server_asks_nothing_of_a_legacy_client_that_is_not_ready():
    with Stdio(DEMO) as server:
        server.ask(initialize(capabilities={"sampling": {}, "elicitation": {}, "roots": {}}))
        server.ask(legacy("tools/list", id=1))
        server.ask(legacy("tools/call", {"name": "calc.add", "arguments": {}}, 2))
        server.close_stdin()
        assert server.read_all() == []
        assert [message["id"] for message in server.received] == [0, 1, 2]


@pytest.mark.req("MATRIX-legacy-dual-stdio")
def test_our_legacy_client_and_our_server():
    with Client(DEMO, era="legacy") as client:
        assert (client.era, client.protocol_version) == ("legacy", LEGACY)
        assert client.call_tool("calc.add", {"a": 2, "b": 40}).text == "42"


@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_a_client_knows_what_the_server_said_of_itself(era):
    server = Server("demo", version="1.2.3", instructions="Be kind.")
    server.tool(lambda: "x", name="t")
    with Client(server, era=era) as client:
        assert client.server_info == {"name": "demo", "version": "1.2.3"}
        assert client.instructions == "Be kind."
        assert client.capabilities["tools"] == ({"listChanged": True} if era == "modern" else {})
        assert client.connection.answers is (era == "legacy")  # who may ask the other


@pytest.mark.req("MATRIX-mixed-dual-stdio", "S-VER-04", "S-VER-05")
def test_both_eras_at_once_on_one_process():
    arguments = {"name": "calc.add", "arguments": {"a": 2, "b": 40}}
    with Stdio(DEMO) as server:
        server.ask(initialize())
        server.send(*[request("tools/call", arguments, n) for n, request in enumerate(BOTH * 10)])
        for _ in range(20):
            reply = server.read()
            assert ("resultType" in reply["result"]) == (reply["id"] % 2 == 0)


BOTH = [modern, legacy]


def test_our_server_tells_a_client_without_versions_in_common_what_it_serves():
    """What a modern-only client of the future reads."""
    with Stdio(DEMO) as server:
        reply = server.ask(modern("server/discover", meta={VERSION: "2030-01-01"}))
        assert reply["error"]["data"] == {"supported": [MODERN], "requested": "2030-01-01"}


def test_one_server_object_serves_clients_of_both_eras_at_once():
    server = demo()
    with Client(server) as one, Client(server, era="legacy") as two:
        assert (one.era, two.era) == ("modern", "legacy")
        assert one.call_tool("echo", {"text": "x"}).text == "x"
        assert two.call_tool("echo", {"text": "x"}).text == "x"
        assert one.call_tool("echo", {"text": "x"}).text == "x"


SLOW_TO_START = """
    import json, sys, time
    for line in sys.stdin:
        message = json.loads(line)
        if "method" not in message:
            sys.exit(9)
        first = message["id"] == 1
        time.sleep(2 if first else 0)
        reply = {"error": {"code": -32022, "message": "modern", "data": {
            "supported": ["2026-07-28"], "requested": "2025-11-25"}}}
        if message["method"] == "server/discover":
            reply = {"result": {"resultType": "complete", "supportedVersions": ["2026-07-28"],
                                "capabilities": {}}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **reply}), flush=True)
        if "result" in reply and not first:
            print('{"jsonrpc": "2.0", "id": 5, "method": "ping"}', flush=True)
"""


@pytest.mark.req("C-STDIO-20", "C-STDIO-21")
def test_a_modern_server_that_is_slow_to_start_is_still_found(tmp_path):
    """It answers the probe too late, and then says that it knows no handshake."""
    with Client(server_file(tmp_path, SLOW_TO_START), probe_timeout=1) as client:
        assert (client.era, client.protocol_version) == ("modern", "2026-07-28")
        child = client.connection.wire.process
        time.sleep(0.3)
    assert child.returncode == 0  # a modern server has no business asking, and got no answer


@pytest.mark.parametrize(
    "pinned", [{"era": "older"}, {"era": None}, {"version": "2024-11-05"}, {"version": "latest"}]
)
def test_a_client_for_an_unknown_era_or_revision_is_refused_with_the_known_ones(pinned):
    with pytest.raises(ValueError, match=r"auto, modern, legacy.*2026-07-28, 2025-11-25") as caught:
        Client(demo(), **pinned)
    assert repr(next(iter(pinned.values()))) in str(caught.value)


@pytest.mark.parametrize("version", [MODERN, LEGACY, OLD])
def test_a_pinned_revision_is_the_one_that_is_spoken(version):
    with Client(demo(), version=version) as client:
        assert client.protocol_version == version
