"""CANC: work that nobody waits for any more, and what neither side may say about it afterwards."""

import threading

import pytest
from support import (
    LEGACY,
    MODERN,
    Stdio,
    Stub,
    cancelled,
    exchange,
    initialize,
    legacy,
    modern,
    notification,
    server_file,
    until,
)

from minimcp import Client, Context, Server
from minimcp.context import Peer

# `polite` works until it is cancelled; `stubborn` until it is released, and then still has things
# to say. `state` tells how far they are, so that no test needs to sleep.
SERVER = """
    import threading
    import time
    from minimcp import Context, Server, run

    server = Server("demo", version="1.0.0")
    server.method("logging/setLevel", capability="logging")(lambda params, context: {})
    gate = threading.Event()
    events = []

    @server.tool
    def polite(context: Context) -> str:
        events.append("polite began")
        while not context.cancelled:
            time.sleep(0.002)
        events.append("polite stopped")
        return "never seen"

    @server.tool
    def stubborn(context: Context) -> str:
        events.append("stubborn began")
        gate.wait(60)
        context.progress(1, 2, "late")
        context.log("error", "late")
        events.append("stubborn ended")
        return "said"

    @server.tool
    def release() -> str:
        gate.set()
        return "released"

    @server.tool
    def state() -> list[str]:
        return events

    run(server)
"""
TOKEN = {"progressToken": "p", "io.modelcontextprotocol/logLevel": "debug"}


def tool(name, id, **options):
    return modern("tools/call", {"name": name}, id, **options)


def old_tool(name, id, **options):
    return legacy("tools/call", {"name": name, "_meta": {"progressToken": "p"}}, id)


def has_seen(server, event, request=tool):
    """Ask until the event has happened; the ids are strings of their own."""

    def seen():
        has_seen.count += 1
        reply = server.ask(request("state", f"state-{has_seen.count}"))
        return event in reply["result"]["content"][0]["text"]

    until(seen, what=f"for {event!r}; {server.stderr}")


has_seen.count = 0


def about(server, id):
    """What the server said about a request: its reply, and every notification."""
    return [message for message in server.received if "method" in message or message["id"] == id]


def shake_hands(server, request):
    if request is old_tool:
        server.ask(initialize(id="hello"))
        server.send(notification("notifications/initialized"))


@pytest.mark.req("S-CANC-02", "S-CANC-03", "S-CANC-11")
@pytest.mark.parametrize("request_", [tool, old_tool])
@pytest.mark.parametrize("id", [5, "five", 0])
def test_a_cancelled_tool_stops_and_is_not_answered(tmp_path, request_, id):
    with Stdio(server_file(tmp_path, SERVER)) as server:
        shake_hands(server, request_)
        server.send(request_("polite", id, meta=TOKEN))
        has_seen(server, "polite began", request_)
        server.send(cancelled(id, "no longer needed"))
        has_seen(server, "polite stopped", request_)
        server.close_stdin()
        server.read_all()
        assert server.wait() == 0
        assert about(server, id) == []


@pytest.mark.req("S-CANC-03", "S-PROG-04")
@pytest.mark.parametrize("request_", [tool, old_tool])
def test_nothing_is_sent_for_a_cancelled_request_whatever_the_tool_does(tmp_path, request_):
    with Stdio(server_file(tmp_path, SERVER)) as server:
        shake_hands(server, request_)
        server.send(request_("stubborn", 5, meta=TOKEN))
        has_seen(server, "stubborn began", request_)
        server.send(cancelled(5))
        server.ask(request_("release", 6))
        has_seen(server, "stubborn ended", request_)
        server.close_stdin()
        server.read_all()
        assert server.wait() == 0
        assert about(server, 5) == []


@pytest.mark.parametrize("request_", [tool, old_tool])
def test_the_stubborn_tool_would_have_been_heard_without_the_cancellation(tmp_path, request_):
    """The control of the test above."""
    with Stdio(server_file(tmp_path, SERVER)) as server:
        shake_hands(server, request_)
        server.send(request_("stubborn", 5, meta=TOKEN))
        has_seen(server, "stubborn began", request_)
        server.send(request_("release", 6))
        server.read_until(5)
        assert [message.get("method", "reply") for message in about(server, 5)] == [
            "notifications/progress",
            "notifications/message",
            "reply",
        ]


@pytest.mark.req("S-CANC-11")
@pytest.mark.parametrize("request_", [tool, old_tool])
def test_a_call_that_is_not_answered_before_the_end_is_not_cancelled_by_the_server(
    tmp_path, request_
):
    with Stdio(server_file(tmp_path, SERVER)) as server:
        shake_hands(server, request_)
        server.send(request_("stubborn", 5))
        has_seen(server, "stubborn began", request_)
        server.close_stdin()
        assert server.read_all() == []
        assert server.wait() == 0


MALFORMED = [
    cancelled(999),
    cancelled("5"),
    cancelled(None),
    cancelled({}),
    cancelled([]),
    cancelled(True),
    cancelled(1.5),
    cancelled([5]),
    notification("notifications/cancelled"),
    notification("notifications/cancelled", {}),
    notification("notifications/cancelled", {"reason": "none"}),
    notification("notifications/cancelled", {"requestId": 999, "reason": {}}),
    {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": [5]},
    {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": None},
    {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": 5},
]


def gated():
    """A server whose tool `hold` waits, and the events that say when."""
    server = Server("demo", version="1.0.0")
    server.began, server.gate = threading.Event(), threading.Event()
    server.saw = []

    @server.tool
    def hold(context: Context) -> str:
        server.began.set()
        server.gate.wait(60)
        server.saw.append(context.cancelled)
        return "held"

    return server


def during_a_call(server, peer, id, messages):
    """Start `hold` with this id, say these messages meanwhile; the answers to all of it."""
    replies = []
    call = modern("tools/call", {"name": "hold"}, id)
    thread = threading.Thread(target=lambda: replies.append(exchange(server, call, peer)))
    thread.start()
    assert server.began.wait(30)
    spoken = [exchange(server, message, peer) for message in messages]
    server.gate.set()
    thread.join(30)
    return replies[0], spoken


@pytest.mark.req("S-CANC-04", "S-CANC-06")
@pytest.mark.parametrize("message", MALFORMED, ids=repr)
def test_a_cancellation_of_nothing_is_ignored(message):
    server, peer = gated(), Peer()
    reply, spoken = during_a_call(server, peer, 5, [message])
    assert reply["result"]["content"] == [{"type": "text", "text": "held"}]
    assert spoken == [None]
    assert server.saw == [False]


@pytest.mark.req("S-CANC-02", "S-CANC-06")
@pytest.mark.parametrize(
    ("id", "named", "cancels"),
    [
        (5, 5, True),
        ("5", "5", True),
        (0, 0, True),
        ("", "", True),
        (5, "5", False),
        ("5", 5, False),
        (1, True, False),
        (0, False, False),
        (0, "", False),
        ("null", None, False),
    ],
)
def test_an_id_is_cancelled_by_the_same_type_and_value_only(id, named, cancels):
    server, peer = gated(), Peer()
    reply, spoken = during_a_call(server, peer, id, [cancelled(named)])
    assert (reply is None) is cancels
    assert server.saw == [cancels]
    assert spoken == [None]


@pytest.mark.req("S-CANC-04", "S-CANC-05")
def test_a_cancellation_that_comes_too_late_is_harmless():
    server, peer = gated(), Peer()
    server.gate.set()
    call = modern("tools/call", {"name": "hold"}, 5)
    for _ in range(3):
        assert exchange(server, call, peer)["id"] == 5
        assert exchange(server, cancelled(5), peer) is None
    assert exchange(server, call, peer)["result"]["content"] == [{"type": "text", "text": "held"}]


@pytest.mark.req("S-CANC-05")
def test_a_cancellation_that_comes_twice_is_harmless():
    server, peer = gated(), Peer()
    reply, spoken = during_a_call(server, peer, 5, [cancelled(5), cancelled(5), cancelled(5)])
    assert (reply, spoken) == (None, [None] * 3)


@pytest.mark.req("S-CANC-05", "S-ENV-13")
def test_the_id_of_a_cancelled_request_is_free_again():
    server, peer = gated(), Peer()
    reply, _ = during_a_call(server, peer, 5, [cancelled(5)])
    assert reply is None
    assert exchange(server, modern("tools/call", {"name": "hold"}, 5), peer)["id"] == 5
    assert peer.in_flight == {}


@pytest.mark.req("S-CANC-04")
def test_one_peer_cannot_cancel_the_request_of_another():
    server, mine, other = gated(), Peer(), Peer()
    replies = []
    call = modern("tools/call", {"name": "hold"}, 5)
    thread = threading.Thread(target=lambda: replies.append(exchange(server, call, mine)))
    thread.start()
    assert server.began.wait(30)
    assert exchange(server, cancelled(5), other) is None
    server.gate.set()
    thread.join(30)
    assert replies[0]["id"] == 5


@pytest.mark.req("B-CANC-17")
def test_the_reason_is_told_to_the_operator(tmp_path):
    with Stdio(server_file(tmp_path, SERVER)) as server:
        server.send(tool("polite", 5))
        has_seen(server, "polite began")
        server.send(cancelled(5, "the user pressed escape"))
        has_seen(server, "polite stopped")
        server.close_stdin()
        assert server.wait() == 0
        assert "the user pressed escape" in server.stderr


# -- the client


def found():
    result = {"supportedVersions": [MODERN], "capabilities": {"tools": {}}, "ttlMs": 0}
    return {"result": {**result, "resultType": "complete", "cacheScope": "private"}}


def greeted():
    info = {"name": "stub", "version": "1"}
    return {"result": {"protocolVersion": LEGACY, "capabilities": {}, "serverInfo": info}}


@pytest.mark.req("C-CANC-12", "C-CLI-01")
@pytest.mark.parametrize("era", ["auto", "legacy"])
def test_initialize_is_never_cancelled(tmp_path, era):
    stub = Stub(tmp_path, {"initialize": None, "*": {"error": {"code": -32601, "message": "no"}}})
    with pytest.raises(ConnectionError, match="initialize"):
        Client(stub.command, era=era, timeout=0.3, probe_timeout=0.3)
    assert stub.methods()[-1] == "initialize"


@pytest.mark.req("C-CANC-13", "C-CANC-16", "B-CANC-17", "C-CLI-02")
@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_a_call_that_takes_too_long_is_cancelled_by_its_id(tmp_path, era):
    stub = Stub(tmp_path, {"server/discover": found(), "initialize": greeted(), "tools/call": None})
    with Client(stub.command, era=era) as client:
        with pytest.raises(TimeoutError):
            client.call_tool("any", {}, timeout=0.2)
        until(lambda: "notifications/cancelled" in stub.methods())
    call, *others = [m for m in stub.received() if m["method"] == "tools/call"]
    (cancel,) = [m for m in stub.received() if m["method"] == "notifications/cancelled"]
    assert others == []
    assert "id" not in cancel
    assert cancel["params"]["requestId"] == call["id"]
    assert type(cancel["params"]["requestId"]) is type(call["id"])
    assert cancel["params"]["reason"] == "time-out"


LATE = """
    import json, sys
    waiting = []
    for line in sys.stdin:
        message = json.loads(line)
        id, method = message.get("id"), message["method"]
        result = {"resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 0,
                  "cacheScope": "private", "capabilities": {"tools": {}},
                  "content": [{"type": "text", "text": str(id)}]}
        reply = {"jsonrpc": "2.0", "id": id, "result": result}
        if method == "tools/call" and message["params"]["name"] == "slow":
            waiting.append(reply)
        elif method == "notifications/cancelled":
            for late in waiting:
                print(json.dumps(late), flush=True)
                print(json.dumps(late), flush=True)
        else:
            print(json.dumps(reply), flush=True)
"""


@pytest.mark.req("C-CANC-16")
def test_an_answer_that_comes_after_the_cancellation_is_dropped(tmp_path):
    command = server_file(tmp_path, LATE)
    with Client(command) as client:
        with pytest.raises(TimeoutError):
            client.call_tool("slow", {}, timeout=0.2)
        texts = [client.call_tool("fast", {}).text for _ in range(3)]
    assert len(set(texts)) == 3


@pytest.mark.req("C-CANC-16")
def test_a_call_that_was_answered_is_never_cancelled(tmp_path):
    called = {"result": {"resultType": "complete", "content": []}}
    stub = Stub(tmp_path, {"server/discover": found(), "tools/call": called})
    with Client(stub.command) as client:
        for _ in range(5):
            client.call_tool("any", {}, timeout=10)
    assert "notifications/cancelled" not in stub.methods()


class Full:
    """A stderr on a full disk."""

    def write(self, text):
        raise OSError("no space left on device")


def test_a_cancellation_that_cannot_be_told_is_one_all_the_same(monkeypatch):
    server, peer = Server("demo"), Peer()

    @server.tool
    def work(context: Context) -> bool:
        monkeypatch.setattr("sys.stderr", Full())
        server.handle(notification("notifications/cancelled", {"requestId": 1}), peer)
        monkeypatch.undo()
        return context.cancelled

    assert server.handle(modern("tools/call", {"name": "work"}), peer) is None
