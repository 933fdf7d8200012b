"""LHTTP: older clients over HTTP, without sessions: the header says which revision they speak."""

import json
import textwrap

import pytest
from support import (
    LEGACY,
    MODERN,
    OLD,
    Stdio,
    assert_error,
    complete,
    initialize,
    legacy,
    modern,
    notification,
    plain,
    server_file,
    until,
)
from support_http import serving
from test_http import call, demo, said

from minimcp import Client

VERSION = "io.modelcontextprotocol/protocolVersion"
BOTH = [LEGACY, OLD]


def old_call(name, id=1, /, meta=None, **arguments):
    extra = {} if meta is None else {"_meta": meta}
    return legacy("tools/call", {"name": name, "arguments": arguments, **extra}, id)


@pytest.fixture(scope="module")
def site():
    with serving(demo()) as site:
        yield site


# -- the handshake


@pytest.mark.req("S-LHTTP-01", "S-LHTTP-18", "S-VER-05", "S-VER-09")
@pytest.mark.parametrize(
    ("version", "headers"),
    [
        (None, {}),
        (LEGACY, {}),
        (OLD, {}),
        ("2024-11-05", {}),
        ("banana", {}),
        (MODERN, {}),
        (LEGACY, {"Mcp-Method": "initialize"}),
        (MODERN, {"Mcp-Method": "tools/list", "Mcp-Name": "x", "Mcp-Param-Foo": "y"}),
    ],
)
def test_a_handshake_is_answered_whatever_its_headers_say(site, version, headers):
    message = initialize(LEGACY)
    dropped = ["Mcp-Method", *(["MCP-Protocol-Version"] if version is None else [])]
    told = {} if version is None else {"MCP-Protocol-Version": version}
    kept = [name for name in dropped if name not in headers]
    reply = site.post(message, headers=told | headers, drop=kept)
    assert reply.status == 200
    assert "mcp-session-id" not in reply.headers
    info = {"name": "demo", "version": "1.0.0"}
    result = {"protocolVersion": LEGACY, "serverInfo": info, "capabilities": {"tools": {}}}
    assert reply.json == plain(result, 0)


@pytest.mark.req("S-VER-07", "S-VER-08")
@pytest.mark.parametrize(
    ("asked", "answered"),
    [(LEGACY, LEGACY), (OLD, OLD), ("2024-11-05", LEGACY), (MODERN, LEGACY), ("x", LEGACY)],
)
def test_the_handshake_answers_with_a_revision_that_is_served(site, asked, answered):
    reply = site.post(initialize(asked), drop=["MCP-Protocol-Version"])
    assert reply.json["result"]["protocolVersion"] == answered


@pytest.mark.req("S-VER-10", "S-LHTTP-06")
def test_a_handshake_that_lacks_something_is_an_error_with_200(site):
    for params in ({}, {"protocolVersion": LEGACY}, {"protocolVersion": 5, "capabilities": {}}):
        for version in (None, LEGACY):
            drop = ["MCP-Protocol-Version"] if version is None else []
            reply = site.post(legacy("initialize", params), version, drop=drop)
            assert reply.status == 200
            assert_error(reply.json, -32602)


@pytest.mark.req("S-VER-06")
def test_a_handshake_with_modern_metadata_is_an_unknown_method(site):
    reply = site.post(modern("initialize", {"protocolVersion": LEGACY}))
    assert (reply.status, reply.json["error"]["code"]) == (404, -32601)


# -- after it


@pytest.mark.req(
    "S-LHTTP-02", "S-LHTTP-05", "MATRIX-legacy-dual-http", "S-VER-11", "S-VER-12", "S-RES-09"
)
@pytest.mark.parametrize("version", BOTH)
def test_a_whole_conversation_of_an_older_client(site, version):
    assert site.post(initialize(version), version).json["result"]["protocolVersion"] == version
    ready = site.post(notification("notifications/initialized"), version)
    assert (ready.status, ready.body) == (202, b"")
    assert site.post(legacy("ping"), version).json == plain({})
    listed = site.post(legacy("tools/list"), version).json["result"]
    assert set(listed) == {"tools"}
    reply = site.post(old_call("echo", text="x"), version)
    assert (reply.status, reply.json) == (200, plain(said("x")))


@pytest.mark.req("S-LHTTP-02")
@pytest.mark.parametrize("version", BOTH)
def test_a_handler_knows_the_revision_that_the_header_says(version):
    server = demo()
    server.method("acme/revision")(lambda params, context: {"spoken": context.peer.version})
    with serving(server) as site:
        assert site.post(legacy("acme/revision"), version).json == plain({"spoken": version})
        assert site.post(modern("acme/revision")).json["result"]["spoken"] is None


@pytest.mark.req("S-LHTTP-03", "S-VER-14")
@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "banana", "", "2025-11-25, x"])
@pytest.mark.parametrize("method", ["tools/list", "ping", "tools/call", "unknown"])
def test_a_revision_that_is_not_served_is_a_bad_request(site, version, method):
    reply = site.post(legacy(method, {}), version)
    assert reply.status == 400
    data = {"supported": [MODERN], "requested": version}
    assert_error(reply.json, -32022, version, data=data)


@pytest.mark.req("S-LHTTP-04", "S-VER-05")
@pytest.mark.parametrize("method", ["tools/list", "ping", "server/discover"])
def test_a_request_that_says_nothing_of_its_revision_is_a_bad_request(site, method):
    assert site.post(initialize(LEGACY), LEGACY).status == 200  # and nobody remembers it
    reply = site.post(legacy(method), LEGACY, drop=["MCP-Protocol-Version"])
    assert reply.status == 400
    assert_error(reply.json, -32020, "MCP-Protocol-Version")


@pytest.mark.req("S-LHTTP-04")
def test_a_session_that_was_never_given_out_changes_nothing(site):
    drop, session = ["MCP-Protocol-Version"], {"Mcp-Session-Id": "x"}
    assert site.post(legacy("ping"), LEGACY, drop=drop, headers=session).status == 400
    assert site.post(legacy("ping"), LEGACY, headers=session).status == 200


@pytest.mark.req("S-LHTTP-05")
@pytest.mark.parametrize("version", BOTH)
def test_an_older_client_sends_no_headers_of_the_new_kind(site, version):
    assert site.post(old_call("add", a=1, b=2), version).status == 200
    stray = {"Mcp-Method": "prompts/get", "Mcp-Name": "boom", "Mcp-Param-X": "="}
    assert site.post(old_call("add", a=1, b=2), version, headers=stray).status == 200


@pytest.mark.req("S-LHTTP-06", "S-ERR-03")
@pytest.mark.parametrize("version", BOTH)
@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("unknown/method", {}, -32601),
        ("server/discover", {}, -32601),
        ("subscriptions/listen", {"notifications": {}}, -32601),
        ("tools/call", {"name": "nobody"}, -32602),
        ("tools/list", {"cursor": 5}, -32602),
        ("x/leave", {}, -32603),
    ],
)
def test_errors_of_a_request_that_got_in_travel_with_200(site, version, method, params, code):
    reply = site.post(legacy(method, params), version)
    assert reply.status == 200
    assert_error(reply.json, code)


@pytest.mark.req("S-LHTTP-12", "S-CANC-09")
@pytest.mark.parametrize("version", BOTH)
@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "2.0", "id": 9, "result": {}},
        {"jsonrpc": "2.0", "id": "x", "error": {"code": 1, "message": "x"}},
        notification("notifications/cancelled", {"requestId": 1}),
        notification("notifications/roots/list_changed"),
    ],
)
def test_a_response_or_a_notification_is_accepted(site, version, message):
    reply = site.post(message, version)
    assert (reply.status, reply.body) == (202, b"")


@pytest.mark.req("S-LHTTP-11", "S-LHTTP-10")
@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_there_is_no_stream_to_get_and_no_session_to_delete(site, method):
    headers = {"Accept": "text/event-stream", "MCP-Protocol-Version": LEGACY}
    reply = site.ask(method, headers=headers)
    assert (reply.status, reply.headers["allow"]) == (405, "POST")


@pytest.mark.req("S-LHTTP-13")
@pytest.mark.parametrize("version", BOTH)
def test_one_post_is_one_message(site, version):
    site.app.server.calls.clear()
    reply = site.post(json.dumps([old_call("echo", text="x")]).encode(), version)
    assert (reply.status, reply.json["error"]["code"]) == (400, -32600)
    assert site.app.server.calls == []


@pytest.mark.req("S-META-12", "S-PROG-06")
@pytest.mark.parametrize("version", BOTH)
def test_progress_of_an_older_request_travels_on_its_own_stream(site, version):
    reply = site.post(old_call("steps", meta={"progressToken": 1}, number=2), version)
    assert (reply.status, reply.kind) == (200, "text/event-stream")
    *notes, last = reply.events
    assert [note["params"]["progress"] for note in notes] == [0, 1]
    assert last == plain(said("done"))


@pytest.mark.req("S-LHTTP-16", "MATRIX-mixed-dual-http")
def test_what_is_said_about_a_request_is_on_one_stream_only():
    server = demo()
    with serving(server) as site:
        waiting = old_call("wait", 1, meta={"progressToken": 1})
        polite = old_call("polite", 1, meta={"progressToken": 1})
        with site.stream(waiting, LEGACY) as one, site.stream(polite, LEGACY) as other:
            until(lambda: "wait" in server.seen and "polite" in server.seen)
            server.seen["wait"].progress(0.5)
            server.gate.set()
            notes = [one.begin().next(), one.next()]
            assert [note["params"]["progress"] for note in notes] == [0.5, 1]
            assert (one.next(), one.next()) == (plain(said("waited")), None)
            assert json.loads(other.begin().response.read()) == plain(said("over"))


@pytest.mark.req("S-CANC-08")
@pytest.mark.parametrize("version", BOTH)
def test_an_older_client_that_hangs_up_cancels_nothing(version):
    """B073"""
    server = demo()
    with serving(server) as site:
        with site.stream(old_call("polite"), version):
            context = until(lambda: server.seen.get("polite"))
        assert site.post(call("add", a=1, b=2)).status == 200
        assert not context.cancelled
        server.gate.set()
        until(lambda: "finished" in server.calls)


@pytest.mark.req("S-CANC-09")
def test_a_cancellation_by_one_client_does_not_touch_the_request_of_another():
    server = demo()
    with serving(server) as site, site.stream(old_call("polite", 1), LEGACY) as slow:
        context = until(lambda: server.seen.get("polite"))
        site.post(notification("notifications/cancelled", {"requestId": 1}), LEGACY)
        assert not context.cancelled
        server.gate.set()
        assert json.loads(slow.begin().response.read()) == plain(said("over"))


# -- both at once


@pytest.mark.req("MATRIX-mixed-dual-http", "S-VER-04", "S-VER-14")
def test_both_eras_are_served_at_once_each_in_its_own_shape(site):
    assert site.post(initialize(LEGACY), LEGACY).status == 200
    with site.connection() as connection:
        for _ in range(3):
            new = site.post(call("echo", text="x"), connection=connection)
            old = site.post(old_call("echo", text="x"), OLD, connection=connection)
            assert (new.json, old.json) == (complete(said("x")), plain(said("x")))


@pytest.mark.req("MATRIX-mixed-dual-http")
def test_the_body_says_which_era_it_is_and_the_header_must_agree(site):
    reply = site.post(call("echo", text="x"), LEGACY)
    assert reply.status == 400
    assert_error(reply.json, -32020, "MCP-Protocol-Version")
    reply = site.post(modern("tools/list", meta={VERSION: LEGACY}), LEGACY)
    assert (reply.status, reply.json["error"]["code"]) == (400, -32020)


@pytest.mark.req("MATRIX-modern-modern-http", "MATRIX-dual-modern-http", "MATRIX-legacy-dual-http")
@pytest.mark.parametrize(
    ("era", "spoken"), [("modern", MODERN), ("auto", MODERN), ("legacy", LEGACY)]
)
def test_our_client_of_each_era_is_served(site, era, spoken):
    with Client(site.url, era=era) as client:
        assert client.protocol_version == spoken
        assert client.call_tool("add", {"a": 2, "b": 40}).text == "42"


# -- the same over stdio

SERVER = """
    from minimcp import Context, InputRequired, Server, run

    server = Server("demo", version="1.0.0", instructions="Do.", page_size=2)

    @server.tool
    def add(a: int, b: int) -> int:
        "Add."
        return a + b

    @server.tool
    def steps(context: Context) -> list[str]:
        "Say how far it is."
        for step in range(3):
            context.progress(step, 3)
        return ["größe", "\\u2028"]

    @server.tool
    def boom() -> str:
        "Fail."
        raise ValueError("no such city")

    @server.tool
    def ask() -> str:
        "Ask back."
        schema = {"type": "object", "properties": {}}
        form = {"mode": "form", "message": "?", "requestedSchema": schema}
        return InputRequired({"q": {"method": "elicitation/create", "params": form}})

    @server.tool
    def needy(context: Context) -> str:
        "Need something."
        context.require("sampling")
        return "fine"

    @server.tool
    def nan() -> float:
        "No number."
        return float("nan")

    @server.method("resources/read", capability="resources")
    def read(params, context):
        return {"contents": [{"uri": params["uri"], "text": "x"}]}

    @server.method("x/strange")
    def strange(params, context):
        return {"value": float("inf")}

    @server.method("x/broken")
    def broken(params, context):
        raise RuntimeError("secret")

    if __name__ == "__main__":
        run(server)
"""

REQUESTS = [  # method, params
    ("server/discover", {}),
    ("initialize", {"protocolVersion": OLD, "capabilities": {}, "clientInfo": {"name": "x"}}),
    ("initialize", {}),
    ("ping", {}),
    ("tools/list", {}),
    ("tools/list", {"cursor": "steps"}),
    ("tools/list", {"cursor": "?"}),
    ("tools/list", {"cursor": 5}),
    ("tools/call", {"name": "add", "arguments": {"a": 2, "b": 40}}),
    ("tools/call", {"name": "add", "arguments": {"a": "x"}}),
    ("tools/call", {"name": "add"}),
    ("tools/call", {"name": "nobody"}),
    ("tools/call", {"name": "steps"}),
    ("tools/call", {"name": "steps", "_meta": {"progressToken": "t"}}),
    ("tools/call", {"name": "boom"}),
    ("tools/call", {"name": "ask"}),
    ("tools/call", {"name": "needy"}),
    ("tools/call", {"name": "nan"}),
    ("tools/call", {}),
    ("resources/read", {"uri": "größe://x"}),
    ("resources/read", {}),
    ("prompts/list", {}),
    ("x/strange", {}),
    ("x/broken", {}),
    ("no/such", {}),
]


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """The same server over stdio, and over HTTP in this process."""
    command = server_file(tmp_path_factory.mktemp("both"), SERVER)
    names = {"__name__": "served"}
    exec(textwrap.dedent(SERVER), names)
    with serving(names["server"]) as site, Stdio(command) as stdio:
        yield site, stdio


def over_stdio(stdio, message):
    stdio.send(message)
    return stdio.read_until(message["id"])


def over_http(site, message, version):
    reply = site.post(message, version)
    return reply.events if reply.kind == "text/event-stream" else [reply.json]


def same(message):
    """A message without the signed state, which is new each time."""
    message.get("result", {}).pop("requestState", None)
    return message


@pytest.mark.req("S-HTTP-07", "S-ENV-07")
@pytest.mark.parametrize(("method", "params"), REQUESTS)
def test_a_modern_request_gives_the_same_json_over_stdio_and_http(both, method, params):
    site, stdio = both
    meta = params.get("_meta", {})
    message = modern(method, params, f"{method} é", meta=meta, capabilities={"elicitation": {}})
    expected = [same(one) for one in over_stdio(stdio, message)]
    assert [same(one) for one in over_http(site, message, None)] == expected


@pytest.mark.req("S-LHTTP-06")
@pytest.mark.parametrize(("method", "params"), REQUESTS)
def test_a_legacy_request_gives_the_same_json_over_stdio_and_http(both, method, params):
    """One thing differs: only stdio can tell of changes without having been asked."""
    site, stdio = both
    over_stdio(stdio, initialize(LEGACY, "again"))
    message = legacy(method, params, 7)
    expected = [same(one) for one in over_stdio(stdio, message)]
    found = [same(one) for one in over_http(site, message, LEGACY)]
    for kind in expected[-1].get("result", {}).get("capabilities", {}).values():
        assert kind.pop("listChanged", True)
    assert found == expected


def test_every_method_was_compared(both):
    site, _ = both
    methods = {*site.app.server.methods["modern"], *site.app.server.methods["legacy"]}
    assert methods - {method for method, _ in REQUESTS} == {"subscriptions/listen"}


def test_a_subscription_tells_the_same_over_stdio_and_http(both):
    from minimcp.listen import close

    site, stdio = both
    message = modern("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, "l")
    stdio.send(message)
    told = stdio.read()
    with site.stream(message) as stream:
        assert stream.begin().next() == told
        close(site.app.server)
        stdio.close_stdin()
        *_, over = stdio.read_all()
        assert stream.next() == over
