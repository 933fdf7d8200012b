"""SUB: a request that stays open, and what is told on it and nowhere else."""

import gc
import json
import subprocess
import sys
import threading
import weakref

import pytest
from support import (
    Stdio,
    assert_error,
    cancelled,
    complete,
    exchange,
    initialize,
    legacy,
    modern,
    server_file,
    until,
)

from minimcp import Client, Context, Server, listen
from minimcp.context import Peer

ID = "io.modelcontextprotocol/subscriptionId"
INFO = {"io.modelcontextprotocol/serverInfo": {"name": "demo", "version": "1.0.0"}}
EVERYTHING = {
    "toolsListChanged": True,
    "promptsListChanged": True,
    "resourcesListChanged": True,
    "resourceSubscriptions": ["x:a", "x:b"],
}
DONE = {"content": [{"type": "text", "text": "done"}]}


def demo(*capabilities, subscribe=False):
    """A server with one tool, and whatever else it declares."""
    server = Server("demo", version="1.0.0")

    @server.tool
    def work(context: Context) -> str:
        context.progress(1)
        context.log("error", "a message")
        return "done"

    for capability in capabilities:
        server.method(f"{capability}/list", capability=capability)(lambda params, context: {})
    if subscribe:
        server.capabilities["resources"]["subscribe"] = True
    return server


def everything():
    return demo("prompts", "resources", "logging", subscribe=True)


class Listener(Peer):
    """The other end of a connection, which keeps what it hears."""

    def __init__(self):
        self.heard = []
        super().__init__(lambda line: self.heard.append(json.loads(line)))


def listening(server, wish=EVERYTHING, id=1, peer=None):
    """A peer with an open subscription, its acknowledgement taken off."""
    peer = peer or Listener()
    assert (
        exchange(server, modern("subscriptions/listen", {"notifications": wish}, id), peer) is None
    )
    assert peer.heard.pop()["method"] == "notifications/subscriptions/acknowledged"
    return peer


def news(method, id=1, **params):
    """One notification of a subscription."""
    tagged = {**params, "_meta": {ID: id}}
    return {"jsonrpc": "2.0", "method": f"notifications/{method}", "params": tagged}


def add_and_remove(server, name="extra"):
    server.tool(name=name)(lambda: "x")
    server.remove_tool(name)


# -- opening


@pytest.mark.req("S-SUB-01", "S-SUB-02", "S-SUB-15")
@pytest.mark.parametrize("id", [1, "s-1", 0, "", "1", "größe"])
def test_a_subscription_is_acknowledged_under_its_id_and_stays_open(id):
    server, peer = demo(), Listener()
    message = modern("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, id)
    assert exchange(server, message, peer) is None
    granted = {"notifications": {"toolsListChanged": True}}
    assert peer.heard == [news("subscriptions/acknowledged", id, **granted)]
    assert list(peer.in_flight) == [id]
    server.tool(name="late")(lambda: "x")
    assert peer.heard[1:] == [news("tools/list_changed", id)]
    assert type(peer.heard[1]["params"]["_meta"][ID]) is type(id)


@pytest.mark.req("S-SUB-03", "S-SUB-15")
@pytest.mark.parametrize(
    "server, granted",
    [
        (Server("demo", version="1.0.0"), {}),
        (demo(), {"toolsListChanged": True}),
        (demo("prompts"), {"toolsListChanged": True, "promptsListChanged": True}),
        (demo("resources"), {"toolsListChanged": True, "resourcesListChanged": True}),
        (everything(), EVERYTHING),
    ],
)
def test_the_acknowledgement_names_what_is_granted_and_no_more(server, granted):
    peer = Listener()
    exchange(server, modern("subscriptions/listen", {"notifications": EVERYTHING}), peer)
    assert peer.heard == [news("subscriptions/acknowledged", notifications=granted)]


@pytest.mark.req("S-SUB-05")
@pytest.mark.parametrize(
    "wish",
    [{}, {"toolsListChanged": False}, {"resourceSubscriptions": []}, {"unknown": 5, "x": None}],
)
def test_a_wish_for_nothing_is_granted_and_unknown_members_are_ignored(wish):
    server, peer = everything(), Listener()
    exchange(server, modern("subscriptions/listen", {"notifications": wish}), peer)
    assert peer.heard == [news("subscriptions/acknowledged", notifications={})]
    add_and_remove(server)
    server.announce("resources", "x:a")
    assert len(peer.heard) == 1


@pytest.mark.req("S-SUB-05")
@pytest.mark.parametrize(
    "params, where",
    [
        ({}, "notifications"),
        ({"notifications": None}, "params.notifications"),
        ({"notifications": []}, "params.notifications"),
        ({"notifications": {"toolsListChanged": "yes"}}, "params.notifications.toolsListChanged"),
        ({"notifications": {"promptsListChanged": 1}}, "params.notifications.promptsListChanged"),
        ({"notifications": {"resourcesListChanged": None}}, "resourcesListChanged"),
        ({"notifications": {"resourceSubscriptions": "x:a"}}, "resourceSubscriptions"),
        ({"notifications": {"resourceSubscriptions": ["x:a", 5]}}, "resourceSubscriptions"),
    ],
)
def test_a_wish_of_a_wrong_form_is_refused_by_name(params, where):
    server, peer = everything(), Listener()
    reply = exchange(server, modern("subscriptions/listen", params), peer)
    assert_error(reply, -32602, where)
    assert (peer.heard, peer.in_flight, server.listeners) == ([], {}, {})


@pytest.mark.req("S-SUB-14")
@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18"])
def test_an_older_client_cannot_listen(version):
    server, peer = everything(), Peer()
    exchange(server, initialize(version), peer)
    reply = exchange(server, legacy("subscriptions/listen", {"notifications": {}}), peer)
    assert_error(reply, -32601, "subscriptions/listen")


# -- telling


@pytest.mark.req("S-SUB-11", "S-LIST-03", "S-LIST-19")
def test_a_tool_that_comes_or_goes_is_told_to_everybody_who_listens():
    server = demo()
    peers = [listening(server), listening(server, id="b")]
    server.tool(name="late")(lambda: "x")
    server.remove_tool("late")
    for peer, id in zip(peers, (1, "b"), strict=True):
        assert peer.heard == [news("tools/list_changed", id)] * 2


def test_a_tool_that_was_removed_is_gone_and_cannot_be_removed_twice():
    server = demo()
    server.remove_tool("work")
    assert exchange(server, modern("tools/list"))["result"]["tools"] == []
    assert_error(exchange(server, modern("tools/call", {"name": "work"})), -32602, "work")
    with pytest.raises(KeyError):
        server.remove_tool("work")


@pytest.mark.req("S-SUB-04", "S-SUB-02")
@pytest.mark.parametrize("kind", ["tools", "prompts", "resources"])
def test_a_listener_hears_only_of_the_kind_it_asked_for(kind):
    server = everything()
    peer = listening(server, {f"{kind}ListChanged": True})
    for one in ("tools", "prompts", "resources"):
        server.announce(one)
    server.announce("resources", "x:a")
    assert peer.heard == [news(f"{kind}/list_changed")]


@pytest.mark.req("S-SUB-17", "S-SUB-02")
def test_a_resource_that_changed_is_told_to_those_who_named_it():
    server = everything()
    a = listening(server, {"resourceSubscriptions": ["x:a", "x:c"]})
    both = listening(server, {"resourceSubscriptions": ["x:a", "x:b"]})
    for uri in ("x:a", "x:b", "x:none"):
        server.announce("resources", uri)
    assert a.heard == [news("resources/updated", uri="x:a")]
    assert both.heard == [news("resources/updated", uri=uri) for uri in ("x:a", "x:b")]


@pytest.mark.req("S-SUB-06")
def test_one_connection_may_have_several_subscriptions():
    server = everything()
    peer = listening(server, {"toolsListChanged": True}, 1)
    listening(server, {"toolsListChanged": True, "promptsListChanged": True}, 2, peer)
    server.announce("tools")
    server.announce("prompts")
    assert peer.heard == [
        news("tools/list_changed", 1),
        news("tools/list_changed", 2),
        news("prompts/list_changed", 2),
    ]


@pytest.mark.req("S-SUB-12", "S-LOG-03", "S-PROG-06")
def test_progress_and_log_messages_stay_with_their_request():
    server = everything()
    listener, caller = listening(server), Listener()
    meta = {"progressToken": 1, "io.modelcontextprotocol/logLevel": "debug"}
    exchange(server, modern("tools/call", {"name": "work"}, meta=meta), caller)
    methods = [message["method"] for message in caller.heard]
    assert methods == ["notifications/progress", "notifications/message"]
    assert listener.heard == []


@pytest.mark.req("S-SUB-13")
def test_nothing_is_remembered_for_a_listener_that_comes_later():
    server = demo()
    listening(server).in_flight.clear()
    add_and_remove(server)
    peer = listening(server)
    assert peer.heard == []


def test_nobody_hears_of_a_change_before_the_acknowledgement():
    """Listeners come while another thread changes the tools as fast as it can."""
    server, stop = demo(), threading.Event()

    def change():
        while not stop.is_set():
            add_and_remove(server)

    thread = threading.Thread(target=change)
    thread.start()
    peers = [Listener() for _ in range(100)]
    for peer in peers:
        message = modern("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        exchange(server, message, peer)
    stop.set()
    thread.join(30)
    add_and_remove(server)
    for peer in peers:
        methods = [message["method"] for message in peer.heard]
        assert methods[0] == "notifications/subscriptions/acknowledged"
        assert set(methods[1:]) == {"notifications/tools/list_changed"}


def test_a_server_to_which_nobody_listens_does_not_load_the_page():
    script = (
        "import sys\nfrom minimcp import Server\nserver = Server('demo')\n"
        "server.tool(name='x')(lambda: 'x')\nserver.remove_tool('x')\n"
        "print('minimcp.listen' in sys.modules)"
    )
    assert subprocess.check_output([sys.executable, "-c", script], text=True) == "False\n"


# -- ending


@pytest.mark.req("S-SUB-10")
def test_a_client_that_takes_it_back_hears_nothing_more_and_leaves_nothing_behind():
    server = demo()
    peer = listening(server)
    assert exchange(server, cancelled(1), peer) is None
    add_and_remove(server)
    assert (peer.heard, peer.in_flight, server.listeners) == ([], {}, {})


@pytest.mark.req("S-SUB-10")
def test_the_end_of_one_subscription_leaves_the_others_alone():
    server = demo()
    peer = listening(server, id=1)
    listening(server, id=2, peer=peer)
    exchange(server, cancelled(1), peer)
    server.announce("tools")
    assert peer.heard == [news("tools/list_changed", 2)]


def taking_back(server, id, method):
    """A peer with subscriptions 1 and 2 that takes back the other when this comes for one."""
    peer = server.peer = listening(server, id=1)
    listening(server, id=2, peer=peer)
    send = peer.send

    def hear(line):
        send(line)
        if method in line and len(peer.heard) == 1:
            exchange(server, cancelled(id), peer)

    peer.send = hear
    return peer


@pytest.mark.req("S-SUB-10", "S-CANC-03")
def test_a_subscription_that_is_taken_back_while_others_are_told_hears_nothing():
    server = demo()
    peer = taking_back(server, 2, "list_changed")
    server.announce("tools")
    assert peer.heard == [news("tools/list_changed", 1)]


@pytest.mark.req("S-SUB-10", "S-CANC-03")
def test_a_subscription_that_is_taken_back_while_others_end_has_no_end():
    server = demo()
    peer = taking_back(server, 2, "cancelled")
    listen.close(server)
    assert [message.get("id") for message in peer.heard] == [None, 1]
    assert peer.heard[0] == news("cancelled", 1, requestId=1)


@pytest.mark.req("S-SUB-10")
def test_connections_that_are_gone_are_forgotten_though_nothing_ever_changes():
    server, gone = demo(), []
    for _ in range(100):
        peer = listening(server)
        gone.append(weakref.ref(peer))
        peer.in_flight.clear()
        del peer
    kept = listening(server)
    gc.collect()
    assert [one for one in gone if one()] == []
    assert list(server.listeners) == [*kept.in_flight.values()]


def test_there_is_a_limit_and_those_who_leave_make_room(monkeypatch):
    monkeypatch.setattr(listen, "LIMIT", 3)
    server = demo()
    peers = [listening(server) for _ in range(3)]
    message = modern("subscriptions/listen", {"notifications": {}})
    assert_error(exchange(server, message, Listener()), -32603, "listeners")
    peers[0].in_flight.clear()
    listening(server)


@pytest.mark.req("S-SUB-16")
def test_a_listener_that_cannot_be_reached_is_dropped_and_the_others_hear():
    server = demo()
    before, broken, after = listening(server), listening(server), listening(server)

    def fail(line):
        raise BrokenPipeError

    broken.send = fail
    server.announce("tools")
    server.announce("tools")
    assert before.heard == after.heard == [news("tools/list_changed")] * 2
    assert broken.in_flight == {}
    assert len(server.listeners) == 2


@pytest.mark.req("S-SUB-16")
def test_a_listener_that_hangs_holds_up_no_call():
    server = demo()
    hanging, free = listening(server), threading.Event()
    entered, over = threading.Event(), []

    def hang(line):
        entered.set()
        over.append(free.wait(30))

    hanging.send = hang
    thread = threading.Thread(target=server.announce, args=["tools"])
    thread.start()
    assert entered.wait(30)
    assert exchange(server, modern("tools/call", {"name": "work"}), Peer()) == complete(DONE)
    assert over == []
    free.set()
    thread.join(30)


def test_a_listener_may_change_the_server_while_it_hears_of_a_change():
    server = demo("prompts")
    peer = listening(server, {"promptsListChanged": True})
    peer.send = lambda line: server.tool(name="late")(lambda: "x")
    other = listening(server)
    server.announce("prompts")
    assert other.heard == [news("tools/list_changed"), news("prompts/list_changed")]


@pytest.mark.req("S-SUB-07", "S-META-07", "S-RES-01")
def test_a_server_that_ends_a_subscription_answers_it_at_last():
    server = demo()
    peer, other = listening(server, id=7), listening(server, id="b")
    listen.close(server)
    for one, id in ((peer, 7), (other, "b")):
        meta = {"_meta": {**INFO, ID: id}, "resultType": "complete"}
        assert one.heard == [{"jsonrpc": "2.0", "id": id, "result": meta}]
        assert one.in_flight == {}
    listen.close(server)
    add_and_remove(server)
    assert len(peer.heard) == 1


def test_ending_the_subscriptions_leaves_calls_alone():
    server = demo()
    peer = listening(server)
    peer.in_flight["call"] = object()
    listen.close(server)
    assert list(peer.in_flight) == ["call"]


CHANGING = """
    import sys
    from minimcp import Context, Server, run
    server = Server("demo", version="1.0.0")

    @server.tool
    def change() -> str:
        server.tool(name="late")(lambda: "x")
        server.remove_tool("late")
        return "done"

    run(server)
"""


@pytest.mark.req("S-SUB-08", "S-SUB-07", "S-SUB-02")
def test_over_stdio_the_end_of_input_ends_each_subscription_by_name_and_then_by_result(tmp_path):
    with Stdio(server_file(tmp_path, CHANGING)) as server:
        for id in ("a", 2):
            wish = {"notifications": {"toolsListChanged": True}}
            server.send(modern("subscriptions/listen", wish, id))
            assert server.read()["params"]["_meta"] == {ID: id}
        assert server.ask(modern("tools/call", {"name": "change"}, 3))["id"] == 3
        server.close_stdin()
        ends = server.read_all()
        assert server.wait() == 0
    expected = []
    for id in ("a", 2):
        expected.append(news("cancelled", id, requestId=id))
        result = {"resultType": "complete", "_meta": {**INFO, ID: id}}
        expected.append({"jsonrpc": "2.0", "id": id, "result": result})
    assert ends == expected
    assert server.received[2:6] == [
        news("tools/list_changed", "a"),
        news("tools/list_changed", 2),
        news("tools/list_changed", "a"),
        news("tools/list_changed", 2),
    ]
    assert "no answer in time" not in server.stderr


@pytest.mark.req("S-SUB-07", "S-SUB-10")
def test_over_stdio_a_client_that_took_it_back_gets_no_end(tmp_path):
    with Stdio(server_file(tmp_path, CHANGING)) as server:
        server.send(modern("subscriptions/listen", {"notifications": {}}, "a"))
        assert server.read()["params"]["_meta"] == {ID: "a"}
        server.send(cancelled("a"))
        assert server.ask(modern("tools/call", {"name": "change"}, 3))["id"] == 3
        server.close_stdin()
        assert server.read_all() == []
        assert server.wait() == 0


@pytest.mark.req("S-SUB-08")
def test_over_stdio_a_client_that_is_gone_altogether_is_no_error(tmp_path):
    command, line = (
        server_file(tmp_path, CHANGING),
        modern("subscriptions/listen", {"notifications": {}}),
    )
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, **pipes) as process:
        process.stdin.write(json.dumps(line).encode() + b"\n")
        process.stdin.flush()
        assert b"acknowledged" in process.stdout.readline()
        process.stdout.close()
        process.stdin.close()
        assert process.wait(30) == 0
        assert b"Traceback" not in process.stderr.read()


# -- older clients


@pytest.mark.req("S-LIST-20")
@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18"])
def test_over_stdio_an_older_client_is_told_of_changes_unasked(tmp_path, version):
    with Stdio(server_file(tmp_path, CHANGING)) as server:
        declared = server.ask(initialize(version))["result"]["capabilities"]
        assert declared == {"tools": {"listChanged": True}}
        server.ask(legacy("tools/call", {"name": "change"}, 3))
        plain = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
        assert server.received[1:3] == [plain, plain]
        server.close_stdin()
        assert server.read_all() == []
        assert server.wait() == 0


@pytest.mark.req("S-LIST-20")
def test_over_stdio_nobody_is_told_before_the_handshake(tmp_path):
    with Stdio(server_file(tmp_path, CHANGING)) as server:
        server.ask(modern("tools/call", {"name": "change"}, 3))
        assert len(server.received) == 1
        server.send(modern("subscriptions/listen", {"notifications": {}}, 4))
        assert server.read()["method"] == "notifications/subscriptions/acknowledged"
        server.ask(modern("tools/call", {"name": "change"}, 5))
        assert len(server.received) == 3  # somebody listens, but not to this


def test_changes_are_declared_where_they_can_be_told():
    """Modern clients may listen; older ones need a connection that lasts."""
    server = everything()
    told = {
        "tools": {"listChanged": True},
        "prompts": {"listChanged": True},
        "resources": {"listChanged": True, "subscribe": True},
        "logging": {},
    }
    untold = {"tools": {}, "prompts": {}, "resources": {"subscribe": True}, "logging": {}}
    assert exchange(server, modern("server/discover"), Peer())["result"]["capabilities"] == told
    assert exchange(server, initialize(), Peer())["result"]["capabilities"] == untold
    assert exchange(server, initialize(), server.peer)["result"]["capabilities"] == told


# -- the client


def test_a_client_hears_of_changes_and_lists_anew():
    server, heard = demo(), []
    with Client(server, on_notification=lambda *news: heard.append(news)) as client:
        assert [tool["name"] for tool in client.list_tools()] == ["work"]
        wish = {"notifications": {"toolsListChanged": True}}
        results = []
        thread = threading.Thread(
            target=lambda: results.append(client.request("subscriptions/listen", wish, timeout=60))
        )
        thread.start()
        until(lambda: heard)
        assert [tool["name"] for tool in client.list_tools()] == ["work"]
        server.tool(name="late")(lambda: "x")
        until(lambda: len(heard) == 2)
        assert [method for method, _ in heard] == [
            "notifications/subscriptions/acknowledged",
            "notifications/tools/list_changed",
        ]
        assert [tool["name"] for tool in client.list_tools()] == ["work", "late"]
        listen.close(server)
        thread.join(30)
    assert [result["resultType"] for result in results] == ["complete"]


@pytest.fixture
def threads():
    """Runs a function in a thread and keeps what it returned or raised."""
    started = []

    def start(function, *arguments, **options):
        outcome = []

        def run():
            try:
                outcome.append(function(*arguments, **options))
            except Exception as error:
                outcome.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        started.append(thread)
        return outcome

    yield start
    for thread in started:
        thread.join(30)


ENDING = """
    import os
    from minimcp import Server, listen, run
    server = Server("demo", version="1.0.0")
    server.tool(name="change")(lambda: server.announce("tools") or "done")
    server.tool(name="die")(lambda: os._exit(3))

    @server.tool
    def end() -> str:
        listen.close(server)
        return "done"

    run(server)
"""
TOOLS = {"notifications": {"toolsListChanged": True}}


@pytest.mark.req("C-SUB-18", "C-SUB-19")
def test_a_client_can_tell_its_subscriptions_apart_and_sees_what_was_granted(tmp_path, threads):
    heard = []
    command = server_file(tmp_path, ENDING)
    with Client(command, on_notification=lambda *news: heard.append(news)) as client:
        for wish in (TOOLS, {"notifications": {**EVERYTHING}}, {"notifications": {}}):
            before = len(heard)
            threads(client.request, "subscriptions/listen", wish, timeout=60)
            until(lambda before=before: len(heard) > before)
        granted = {params["_meta"][ID]: params["notifications"] for _, params in heard}
        assert list(granted.values()) == [{"toolsListChanged": True}] * 2 + [{}]
        first, second, _ = granted
        del heard[:]
        client.call_tool("change")
        assert sorted(params["_meta"][ID] for _, params in heard) == [first, second]
        client.call_tool("end")


@pytest.mark.req("C-SUB-21")
def test_a_client_knows_an_end_from_a_loss(tmp_path, threads):
    heard = []
    command = server_file(tmp_path, ENDING)
    with Client(command, on_notification=lambda *news: heard.append(news)) as client:
        ended = threads(client.request, "subscriptions/listen", TOOLS, timeout=60)
        until(lambda: heard)
        client.call_tool("end")
        until(lambda: ended)
        assert ended[0]["resultType"] == "complete"
        del heard[:]
        lost = threads(client.request, "subscriptions/listen", TOOLS, timeout=60)
        until(lambda: heard)
        with pytest.raises(ConnectionError):
            client.call_tool("die")
        until(lambda: lost)
        assert isinstance(lost[0], ConnectionError)


@pytest.mark.req("C-SUB-20")
def test_a_client_that_listens_again_after_a_loss_is_heard_by_the_new_server(tmp_path, threads):
    heard = []
    command = server_file(tmp_path, ENDING)
    with Client(command, on_notification=lambda *news: heard.append(news)) as client:
        lost = threads(client.request, "subscriptions/listen", TOOLS, timeout=60)
        until(lambda: heard)
        with pytest.raises(ConnectionError):
            client.call_tool("die")
        until(lambda: lost)
        del heard[:]
        threads(client.request, "subscriptions/listen", TOOLS, timeout=60)
        until(lambda: heard)
        client.call_tool("change")
        assert [method for method, _ in heard] == [
            "notifications/subscriptions/acknowledged",
            "notifications/tools/list_changed",
        ]
        client.call_tool("end")
