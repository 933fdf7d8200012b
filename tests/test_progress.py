"""PROG: how far the work is, told to those who asked, and to nobody else."""

import itertools
import json
import sys
import threading
import time

import pytest
from support import (
    MODERN,
    assert_error,
    cancelled,
    complete,
    exchange,
    initialize,
    legacy,
    modern,
    plain,
    server_file,
    until,
)

from minimcp import Client, Context, Server
from minimcp.context import Peer

DONE = {"content": [{"type": "text", "text": "done"}]}


def reporting(*reports):
    """A server whose tool `work` makes these reports, each a tuple of arguments."""
    server = Server("demo", version="1.0.0")
    server.contexts = []

    @server.tool
    def work(context: Context) -> str:
        server.contexts.append(context)
        for report in reports:
            context.progress(*report)
        return "done"

    return server


def told(server, token=None, request=modern, id=1):
    """The params of the progress notifications for one call, and the reply."""
    lines = []
    peer = Peer(lines.append)
    meta = {} if token is None else {"progressToken": token}
    if request is legacy:
        exchange(server, initialize(), peer)
        message = legacy("tools/call", {"name": "work", "_meta": meta}, id)
    else:
        message = modern("tools/call", {"name": "work"}, id, meta=meta)
    reply = exchange(server, message, peer)
    notes = [json.loads(line) for line in lines]
    assert all(note["method"] == "notifications/progress" for note in notes)
    return [note["params"] for note in notes], reply


@pytest.mark.req("S-PROG-01")
@pytest.mark.parametrize("request_", [modern, legacy])
@pytest.mark.parametrize("token", [7, "7", 0, "", "größe", 2**53])
def test_progress_repeats_the_token_with_its_type(request_, token):
    notes, reply = told(reporting((1,), (2,)), token, request_)
    assert reply == (complete if request_ is modern else plain)(DONE)
    assert notes == [{"progressToken": token, "progress": n} for n in (1, 2)]
    assert {type(note["progressToken"]) for note in notes} == {type(token)}


@pytest.mark.req("S-PROG-02")
@pytest.mark.parametrize("request_", [modern, legacy])
def test_nobody_asked_nobody_is_told(request_):
    notes, reply = told(reporting((1,), (2,)), None, request_)
    assert notes == []
    assert reply["result"]["content"] == DONE["content"]


@pytest.mark.req("S-PROG-01", "S-PROG-02", "S-ENV-14")
def test_a_token_is_good_for_its_own_request_only():
    server, lines = reporting((1,)), []
    peer = Peer(lines.append)
    asked = modern("tools/call", {"name": "work"}, 1, meta={"progressToken": "t"})
    exchange(server, asked, peer)
    exchange(server, modern("tools/call", {"name": "work"}, 2), peer)
    assert len(lines) == 1


@pytest.mark.req("S-PROG-01")
def test_each_of_two_calls_at_once_reports_under_its_own_token():
    server, lines = Server("demo", version="1.0.0"), []
    peer, together = Peer(lines.append), threading.Barrier(2)

    @server.tool
    def work(n: int, context: Context) -> str:
        together.wait(30)
        context.progress(n)
        return "done"

    def one(n):
        params = {"name": "work", "arguments": {"n": n}}
        exchange(server, modern("tools/call", params, n, meta={"progressToken": f"t{n}"}), peer)

    threads = [threading.Thread(target=one, args=[n]) for n in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    params = sorted((json.loads(line)["params"] for line in lines), key=lambda p: p["progress"])
    assert params == [{"progressToken": f"t{n}", "progress": n} for n in (1, 2)]


@pytest.mark.req("S-PROG-03")
def test_progress_only_ever_grows():
    reports = [(5,), (5,), (3,), (5.5,), (5.5,), (-1,), (6,), (6.0,)]
    notes, _ = told(reporting(*reports), "t")
    assert [note["progress"] for note in notes] == [5, 5.5, 6]


@pytest.mark.req("S-PROG-03")
def test_progress_may_begin_at_zero_or_below():
    notes, _ = told(reporting((-2,), (0,), (1,)), "t")
    assert [note["progress"] for note in notes] == [-2, 0, 1]


@pytest.mark.req("S-PROG-04")
def test_a_report_after_the_answer_goes_nowhere():
    server = reporting((1,))
    lines = []
    peer = Peer(lines.append)
    meta = {"progressToken": "t"}
    exchange(server, initialize(), peer)
    for message in (
        modern("tools/call", {"name": "work"}, 1, meta=meta),
        legacy("tools/call", {"name": "work", "_meta": meta}, 1),
    ):
        exchange(server, message, peer)
    assert len(lines) == 2
    for context in server.contexts:
        context.progress(2)
        assert context.cancelled
    assert len(lines) == 2


@pytest.mark.req("S-PROG-04")
def test_a_late_report_does_not_pass_for_one_of_a_new_request_with_the_same_id():
    server = Server("demo", version="1.0.0")
    contexts, lines = [], []
    peer = Peer(lines.append)

    @server.tool
    def work(context: Context) -> str:
        contexts.append(context)
        contexts[0].progress(len(contexts))
        return "done"

    message = modern("tools/call", {"name": "work"}, 1, meta={"progressToken": "t"})
    exchange(server, message, peer)
    exchange(server, message, peer)
    assert [json.loads(line)["params"]["progress"] for line in lines] == [1]


@pytest.mark.req("S-PROG-05")
def test_progress_may_be_a_fraction_with_a_total_and_a_message():
    reports = [(0.25, 1.0, "a quarter"), (0.5, 1.0), (0.75, None, "größer"), (1, 1)]
    notes, _ = told(reporting(*reports), "t")
    assert notes == [
        {"progressToken": "t", "progress": 0.25, "total": 1.0, "message": "a quarter"},
        {"progressToken": "t", "progress": 0.5, "total": 1.0},
        {"progressToken": "t", "progress": 0.75, "message": "größer"},
        {"progressToken": "t", "progress": 1, "total": 1},
    ]


@pytest.mark.req("S-PROG-07")
@pytest.mark.parametrize("token", [{}, [], None, True, False, 1.5, {"a": 1}])
@pytest.mark.parametrize("request_", [modern, legacy])
def test_a_token_of_a_wrong_type_is_never_echoed(token, request_):
    """Refused or ignored; the tool need not know."""
    lines = []
    server, peer = reporting((1,)), Peer(lines.append)
    exchange(server, initialize(), peer)
    if request_ is modern:
        message = modern("tools/call", {"name": "work"}, meta={"progressToken": token})
    else:
        message = legacy("tools/call", {"name": "work", "_meta": {"progressToken": token}})
    reply = exchange(server, message, peer)
    if "error" in reply:
        assert_error(reply, -32602, "progressToken")
    else:
        assert reply["result"]["content"] == DONE["content"]
    assert lines == []


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "half", None])
def test_progress_that_is_no_number_is_the_tools_fault_and_never_sent(value):
    notes, reply = told(reporting((value,)), "t")
    assert notes == []
    assert reply["result"].get("isError", False) in (True, False)
    assert reply["id"] == 1


# -- the client


@pytest.mark.req("C-PROG-09")
@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_tokens_of_active_requests_differ(era):
    """Twenty calls at once, each waiting for all others; each report names its own call."""
    server = Server("demo", version="1.0.0")
    together = threading.Barrier(20)
    tokens, heard = {}, []

    @server.tool
    def work(n: int, context: Context) -> str:
        tokens[n] = context.meta["progressToken"]
        together.wait(30)
        context.progress(n)
        return "done"

    def one(n):
        client.call_tool("work", {"n": n})

    def on_notification(method, params):
        assert method == "notifications/progress"
        heard.append((params["progressToken"], params["progress"]))

    with Client(server, era=era, on_notification=on_notification) as client:
        threads = [threading.Thread(target=one, args=[n]) for n in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert len(set(tokens.values())) == 20
    assert sorted(heard) == sorted((token, n) for n, token in tokens.items())


CHATTY = """
    from minimcp import Context, Server, run
    import itertools, time
    server = Server("chatty", version="1.0.0")

    @server.tool
    def chat(context: Context) -> str:
        for n in itertools.count():
            if context.cancelled:
                return "stopped"
            context.progress(n)
            time.sleep(0.002)

    @server.tool
    def quick() -> str:
        return "quick"

    run(server)
"""


@pytest.mark.req("C-PROG-10", "C-CLI-01")
def test_a_server_that_keeps_talking_cannot_put_off_the_timeout(tmp_path):
    notes = []
    target = server_file(tmp_path, CHATTY)
    with Client(target, on_notification=lambda method, params: notes.append(params)) as client:
        assert client.protocol_version == MODERN
        with pytest.raises(TimeoutError):
            client.call_tool("chat", timeout=0.5)
        assert client.call_tool("quick", {}).text == "quick"
    assert len(notes) > 3


def busy(tell):
    """A server whose tool `work` makes four threads report at once, by way of `tell`."""
    server = Server("demo", version="1.0.0")

    @server.tool
    def work(context: Context) -> str:
        threads = [threading.Thread(target=tell, args=(context,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(0.02)
        return "done"

    return server


@pytest.fixture
def eager():
    """Threads change places as often as they can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.req("S-PROG-03")
def test_progress_of_many_threads_only_grows(eager):
    numbers = itertools.count(1)

    def tell(context):
        for _ in range(500):
            context.progress(next(numbers))

    values = [note["progress"] for note in told(busy(tell), 7)[0]]
    assert len(values) > 1
    assert values == sorted(set(values))


@pytest.mark.req("S-PROG-04", "S-CANC-03")
@pytest.mark.parametrize("end", ["answered", "cancelled"])
@pytest.mark.parametrize("way", ["progress", "notify"])
def test_nothing_is_said_after_the_end_however_many_threads_speak(eager, end, way):
    late = []

    def tell(context):
        while not context.cancelled:
            if way == "progress":
                context.progress(next(numbers))
            else:
                context.notify("notifications/message", {"level": "info", "data": "x"})

    for _ in range(20):
        numbers, over, said = itertools.count(1), [], []
        peer = Peer(lambda line: late.append(line) if over else said.append(line))  # noqa: B023
        message = modern("tools/call", {"name": "work"}, 1, meta={"progressToken": 7})
        server = busy(tell)
        call = threading.Thread(target=server.handle, args=(message, peer))
        call.start()
        if end == "cancelled":
            until(lambda: said)  # noqa: B023
            peer.hear(cancelled(1))
            over.append(True)
        call.join()
        over.append(True)
        time.sleep(0.005)
    assert late == []
