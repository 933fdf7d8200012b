"""Faults over HTTP: each test is a row of the table in `support_faults.py`.

The first paragraph of a docstring says the fault and, behind the colon, what is promised.
"""

import contextlib
import json
import os
import resource
import signal
import socket
import sys
import threading
import time

import pytest
from support import PATIENCE, server_file, until
from support_http import Site, headers_for, read_all, request, serving
from test_http import demo
from test_http_running import Crowd, Process, can_connect, free_port, running
from test_trust_faults_stdio import (
    FAULTY,
    REDIRECTED,
    asking,
    call,
    gone,
    recording,
    script,
    stop,
    text_of,
    threads,
    with_stderr,
)

from minimcp import Client, ProtocolError

SERVER = FAULTY.replace(
    "run(server)",
    """
    from minimcp import http

    @server.tool
    def steps(context: Context) -> str:
        context.progress(1)
        return work(context)

    @server.tool
    def here(context: Context) -> str:
        print(os.getpid(), file=record)
        return work(context)

    http.GRACE = http.READ_TIMEOUT = 1
    if __name__ == "__main__":
        run(server, ["--http", sys.argv[1], *sys.argv[2:]])
""",
)


class Faulty:
    """A server on a port, which can be started again there."""

    def __init__(self, tmp_path, source=SERVER):
        self.command, self.port = server_file(tmp_path, source), free_port()
        self.stack = contextlib.ExitStack()
        self.site = Site(self.port, None)

    def start(self, *options, wrap=lambda command: command):
        command = wrap([*self.command, str(self.port), *options])
        self.running = self.stack.enter_context(Process(command, self.port))
        self.pid = self.running.process.pid
        return self

    def kill(self):
        self.running.process.kill()
        self.running.process.wait(PATIENCE)

    def client(self, **options):
        return Client(self.site.url, timeout=PATIENCE, **options)

    def end(self):
        """What SIGTERM leads to: the exit code, and what was written to stderr."""
        return self.running.end()


@pytest.fixture
def record(tmp_path, monkeypatch):
    return recording(tmp_path, monkeypatch)


@pytest.fixture
def faulty(tmp_path):
    server = Faulty(tmp_path)
    with server.stack:
        yield server


def bytes_of(message):
    return request(message, headers_for(message))


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def echoes(site, text="still here"):
    """The server answers a call of somebody else."""
    return text_of(site.post(call("echo", text=text)).json) == text


# -- the server is killed


def test_a_call_that_was_never_read_is_reported_and_not_repeated(faulty, record):
    """the server is killed before it reads the call: reported at once; the tool never ran, and once
    there is a server again, the next call is answered
    """
    with faulty.start().client() as client:
        assert client.call_tool("echo", {"text": "first"}).text == "first"
        stop(faulty.pid)
        with asking(client, "work") as outcome:
            faulty.kill()
        assert isinstance(outcome[0], ConnectionError) and faulty.site.url in str(outcome[0])
        faulty.start()
        assert client.call_tool("echo", {"text": "again"}).text == "again"
    assert record() == []


@pytest.mark.parametrize("tool", ["work", "steps"])
def test_a_call_whose_tool_was_running_is_reported_and_not_repeated(faulty, record, tool):
    """the server is killed while the tool runs, silent or in the middle of a stream: reported at
    once; the tool is never run again, for nobody knows how far it came
    """
    heard = []
    with faulty.start().client(on_notification=lambda *event: heard.append(event)) as client:
        with asking(client, tool) as outcome:
            until(record)
            until(lambda: heard or tool == "work")
            faulty.kill()
        assert isinstance(outcome[0], ConnectionError)
        faulty.start()
        assert client.call_tool("echo", {"text": "again"}).text == "again"
    assert record() == ["begun"]


HALF = """
    import asyncio, os, signal, sys
    import uvicorn
    from minimcp import Server
    from minimcp.http import app

    server = Server("half")
    server.tool(lambda: "whole", name="any")
    inner = app(server)

    async def outer(scope, receive, send):
        async def half(event):
            if event["type"] == "http.response.body" and b'"whole"' in event["body"]:
                body = event["body"][: len(event["body"]) // 2]
                await send({**event, "body": body, "more_body": True})
                os.kill(os.getpid(), signal.SIGKILL)
            await send(event)

        await inner(scope, receive, half)

    uvicorn.run(outer, port=int(sys.argv[1]), log_level="critical", lifespan="off")
"""


def test_half_a_reply_is_no_reply(tmp_path):
    """the server is killed after half a reply was written: reported at once, and the half is thrown
    away
    """
    server = Faulty(tmp_path, HALF)
    server.running = server.stack.enter_context(quiet(server))
    with server.stack, server.client() as client, pytest.raises(ConnectionError):
        client.call_tool("any")
    assert server.running.process.returncode == -signal.SIGKILL


@contextlib.contextmanager
def quiet(server):
    """A process that says nothing when it starts."""
    command = ["sh", "-c", 'exec "$@" 2>/dev/null', "sh", *server.command, str(server.port)]
    with Process(command, server.port) as process:
        yield process
        process.process.wait(PATIENCE)


# -- the client is killed


def test_a_call_of_a_client_that_was_killed_is_cancelled(faulty, record):
    """the client is killed in the middle of a call: lost; the tool is told to stop, and others are
    served
    """
    source = """
        import sys
        from minimcp import Client, ProtocolError
        Client(sys.argv[1]).call_tool("work")
    """
    faulty.start()
    with script(source, faulty.site.url) as client:
        until(record)
        client.kill()
        until(lambda: record() == ["begun", "cancelled"])
    assert echoes(faulty.site)


# -- stopped and continued


def test_a_server_that_is_stopped_for_a_moment_answers_later(faulty):
    """the server is stopped (SIGSTOP) and goes on in time: answered"""
    with faulty.start().client() as client:
        stop(faulty.pid)
        with asking(client, "echo", text="late") as outcome:
            os.kill(faulty.pid, signal.SIGCONT)
        assert outcome == ["late"]


def test_a_server_that_is_stopped_for_longer_costs_the_calls_of_that_time(faulty, record):
    """the server is stopped (SIGSTOP) for longer than a call may take: reported; when it goes on,
    the tool finds itself cancelled
    """
    with faulty.start().client() as client:
        stop(faulty.pid)
        with pytest.raises(TimeoutError, match=r"no answer in 0\.2 s"):
            client.call_tool("work", timeout=0.2)
        os.kill(faulty.pid, signal.SIGCONT)
        assert client.call_tool("echo", {"text": "in time"}).text == "in time"
        until(lambda: record() in ([], ["begun", "cancelled"]))


# -- clients that are slow, idle, half closed or many


def test_pipelined_requests_are_answered_in_their_order(faulty):
    """a hundred requests in one write: answered, in their order"""
    faulty.start()
    messages = [call("echo", number, text=f"{number} " * 50) for number in range(100)]
    last = request(call("pid", "last"), {**headers_for(call("pid")), "Connection": "close"})
    data = faulty.site.raw(b"".join(map(bytes_of, messages)) + last)
    bodies = [part.split(b"\r\n\r\n")[1] for part in data.split(b"HTTP/1.1 200 OK\r\n")[1:]]
    replies = [json.loads(body) for body in bodies]
    assert [reply["id"] for reply in replies] == [*range(100), "last"]
    assert [text_of(reply) for reply in replies[:100]] == [f"{n} " * 50 for n in range(100)]


def test_a_client_that_pipelines_and_does_not_read_holds_nobody_up(faulty):
    """a client asks on and on over one connection and reads nothing: answered, whoever else asks;
    what it sent is kept by uvicorn, which sets no limit, so a proxy has to
    """
    faulty.start()
    data = bytes_of(call("echo", text="x" * 1000))
    with faulty.site.socket() as sock:
        sock.setblocking(False)
        push(sock, data * 4_000)
        assert echoes(faulty.site)
    assert echoes(faulty.site)


def push(sock, data):
    """Write until half a second goes by in which nothing could be written."""
    left, since = memoryview(data), time.monotonic()
    with contextlib.suppress(ConnectionError):
        while left and time.monotonic() - since < 0.5:
            try:
                left, since = left[sock.send(left) :], time.monotonic()
            except BlockingIOError:
                time.sleep(0.005)


def test_a_client_that_does_not_read_its_reply_holds_nobody_up(faulty):
    """ten clients ask for three megabytes and read nothing: answered, whoever else asks; when they
    hang up, nothing is left of them
    """
    faulty.start()
    large = bytes_of(call("echo", text="x" * 3_000_000))
    assert echoes(faulty.site)
    before = descriptors(faulty.pid)
    with contextlib.ExitStack() as stack:
        for _ in range(10):
            sock = stack.enter_context(faulty.site.socket())
            sock.sendall(large)
        assert echoes(faulty.site)  # and it came later than they did
        assert descriptors(faulty.pid) > before
        assert threads(faulty.pid) < 10
    until(lambda: descriptors(faulty.pid) <= before)


def test_who_closes_his_half_of_a_connection_has_hung_up(faulty, record):
    """a client sends its request and closes its half of the connection: lost; that is hanging up,
    so the tool is told to stop
    """
    faulty.start()
    with faulty.site.socket() as sock:
        sock.sendall(bytes_of(call("work")))
        until(record)
        sock.shutdown(socket.SHUT_WR)
        assert read_all(sock) == b""
    until(lambda: record() == ["begun", "cancelled"])
    assert echoes(faulty.site)


def test_a_thousand_clients_at_once_are_answered(tmp_path):
    """a thousand connections that all ask at the same time: answered, none crossed"""
    with running(tmp_path) as server, Crowd(server.site, 1000) as crowd:
        assert len(crowd.round(2)) == 2000
        assert threads(server.process.pid) < 20


def test_a_thousand_connections_that_ask_nothing_are_closed(tmp_path):
    """a thousand connections that ask nothing: ended after a while; calls are answered meanwhile"""
    with running(tmp_path) as server, contextlib.ExitStack() as stack:
        pid = server.process.pid
        before = descriptors(pid)
        idle = [stack.enter_context(server.site.socket()) for _ in range(1000)]
        message = call("add", a=2, b=40)
        assert server.site.post(message).json["result"]["structuredContent"] == 42
        assert [read_all(sock) for sock in idle] == [b""] * 1000
        until(lambda: descriptors(pid) <= before)


# -- nothing left


def silenced(command):
    return ["sh", "-c", 'exec "$@" 2>/dev/null', "sh", *command]


def test_a_server_without_free_descriptors_lets_the_others_wait(faulty):
    """more clients than the server has descriptors (RLIMIT_NOFILE): answered, those that have a
    connection; the others wait until some hang up
    """
    faulty.start(wrap=silenced)
    with contextlib.closing(faulty.site.socket()) as kept:
        ask(kept, 0)
        free = 8
        limit = descriptors(faulty.pid) + free
        resource.prlimit(faulty.pid, resource.RLIMIT_NOFILE, (limit, limit))
        many = [faulty.site.socket() for _ in range(2 * free)]
        until(lambda: descriptors(faulty.pid) == limit)
        ask(kept, 1)
        for sock in many[:free]:
            sock.close()
        for number, sock in enumerate(many[free:], 2):
            ask(sock, number)
            sock.close()


def ask(sock, number):
    """One call over an open connection."""
    sock.sendall(bytes_of(call("echo", number, text="x")))
    data = b""
    while not data.endswith(b"}"):
        more = sock.recv(65536)
        assert more, data
        data += more
    assert json.loads(data.partition(b"\r\n\r\n")[2])["id"] == number


def test_a_client_without_free_descriptors_says_so_and_leaves_nothing(faulty):
    """the client has no free descriptors (RLIMIT_NOFILE): reported, and nothing is left open; with
    free ones it works
    """
    source = """
        import os, resource, sys
        from minimcp import Client, ProtocolError
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        with Client(sys.argv[1]) as client:
            used = os.listdir("/proc/self/fd")
            for free in range(3):
                resource.setrlimit(resource.RLIMIT_NOFILE, (len(used) - 1 + free, hard))
                try:
                    client.call_tool("echo", {"text": "x"})
                except ConnectionError as error:
                    assert "Too many open files" in str(error), error
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            assert len(os.listdir("/proc/self/fd")) <= len(used)
            print(client.call_tool("echo", {"text": "works"}).text)
    """
    faulty.start()
    with script(source, faulty.site.url) as client:
        assert client.communicate(timeout=PATIENCE) == ("works\n", "")


@pytest.mark.parametrize("option", ["--log", "--verbose"])
def test_a_full_disk_costs_the_log_and_no_call(faulty, option):
    """no disk for the log (/dev/full): answered, every call; the log is lost, and if stderr is
    another place it says why
    """
    if option == "--log":
        faulty.start("--log", "/dev/full")
    else:
        faulty.start("--verbose", wrap=lambda command: with_stderr("full", command))
    with faulty.client() as client:
        for _ in range(3):
            assert client.call_tool("echo", {"text": "logged"}, timeout=5).text == "logged"
    code, stderr = faulty.end()
    assert (code, "No space left on device" in stderr) == (0, option == "--log")


@pytest.mark.parametrize("kind", REDIRECTED)
def test_nothing_that_is_told_the_operator_can_fail_a_call(faulty, kind):
    """stderr is closed, or full, or nobody reads it any more: answered, also what is said about
    failures is lost
    """
    faulty.start(wrap=lambda command: with_stderr(kind, command))
    with faulty.client() as client:
        assert client.call_tool("boom").text == "ValueError: no such city"
        assert client.call_tool("echo", {"text": "still here"}).text == "still here"
    assert faulty.end()[0] == 0


def test_a_message_for_which_there_is_no_memory_is_reported(faulty):
    """a tool or a message needs more memory than the server has (RLIMIT_AS): reported at once, and
    the next call is answered by the same server
    """
    with faulty.start().client() as client:
        for mebibytes in (24, 20, 16, 12, 8):
            client.call_tool("shrink", {"mebibytes": mebibytes})
            assert "MemoryError" in client.call_tool("eat", {"mebibytes": 100}).text
            with contextlib.suppress(ConnectionError, ProtocolError):  # and no TimeoutError
                client.call_tool("echo", {"text": "x" * 4_000_000}, timeout=5)
            assert client.call_tool("echo", {"text": "next"}, timeout=5).text == "next"
        assert int(client.call_tool("pid").text) == faulty.pid


@pytest.mark.parametrize("failures", [1, 5])
def test_a_call_waits_for_a_thread_that_cannot_be_had(monkeypatch, failures):
    """no thread can be had for a call, and a moment later one can: answered then"""
    refused, start = [], threading.Thread.start

    def starts(thread):
        if thread.daemon and len(refused) < failures:
            refused.append(thread)
            raise RuntimeError("can't start new thread")
        start(thread)

    server = demo()
    with serving(server) as site, site.stream(call("polite", 1)) as slow:
        until(lambda: site.app.crew.threads == 1)  # one that is busy now
        monkeypatch.setattr(threading.Thread, "start", starts)
        assert site.post(call("add", 2, a=2, b=40)).json["id"] == 2
        assert len(refused) == failures
        assert site.app.crew.threads == 2
        server.gate.set()
        slow.begin().response.read()


# -- processes and threads of tools


def test_a_tool_that_forks_is_answered_once_and_the_child_keeps_no_port(faulty):
    """a tool forks, and the child ends with `os._exit`: answered once, by the parent; the child
    keeps no port (one that forgets to end lives on, and does)
    """
    faulty.start()
    reply = faulty.site.post(call("fork", leaves=True))
    child = int(text_of(reply.json).removeprefix("forked "))
    try:
        assert child > 0
        assert echoes(faulty.site)
        until(lambda: gone(child), 5)
        assert faulty.end() == (0, "")
        assert not can_connect(faulty.port)
    finally:
        if not gone(child):
            os.kill(child, signal.SIGKILL)


def test_what_never_ends_does_not_hold_up_the_end(faulty, record):
    """a thread and a coroutine of tools never end: ended all the same, ten seconds after SIGTERM"""
    faulty.start()
    faulty.site.post(call("thread"))
    with faulty.site.socket() as sock:
        sock.sendall(bytes_of(call("forever")))
        until(record)
        assert faulty.end()[0] == 0


def test_a_pool_that_never_ends_needs_a_second_signal(faulty):
    """a pool of threads of a tool never ends, and Python waits for it: ended by a second SIGTERM"""
    faulty.start()
    faulty.site.post(call("pool"))
    faulty.running.process.send_signal(signal.SIGTERM)
    until(lambda: not can_connect(faulty.port))
    until(lambda: ended_by(faulty.running.process, signal.SIGTERM))


def ended_by(process, number):
    """Send a signal until the process has ended."""
    process.send_signal(number)
    return process.poll() is not None


# -- several workers


def test_a_worker_that_was_killed_costs_its_calls_only(tmp_path, record):
    """a worker of uvicorn is killed: reported, to the calls that it was working on; all others are
    answered, and there is a new worker
    """
    server_file(tmp_path, SERVER, "faulty_app.py")
    (tmp_path / "workers_app.py").write_text(
        "from faulty_app import server\nfrom minimcp.http import app\napp = app(server)\n"
    )
    port = free_port()
    options = ["--workers", "2", "--port", str(port), "--log-level", "error", "--lifespan", "off"]
    command = [sys.executable, "-m", "uvicorn", "workers_app:app", "--app-dir", str(tmp_path)]
    site, seen = Site(port, None), set()
    with Process(silenced([*command, *options]), port) as parent:
        try:
            before = until(lambda: workers_of(site, seen))
            with Client(site.url, timeout=PATIENCE) as client:
                with asking(client, "here") as outcome:
                    until(lambda: len(record()) == 2)
                    victim = int(record()[0])
                    os.kill(victim, signal.SIGKILL)
                assert isinstance(outcome[0], ConnectionError)
                replies = [client.call_tool("pid").text for _ in range(20)]
                assert victim not in map(int, replies)
                after = until(lambda: workers_of(site, seen))
            assert (len(before & after), victim in before - after) == (1, True)
            assert record() == [str(victim), "begun"]
            assert parent.end()[0] == 0
            until(lambda: all(map(gone, seen)))
        finally:
            for pid in seen:
                if not gone(pid):
                    os.kill(pid, signal.SIGKILL)


def workers_of(site, seen):
    """The two workers that answer now, if there are two; `seen` remembers all of them."""
    found = {int(text_of(site.post(call("pid")).json)) for _ in range(20)}
    seen |= found
    return found if len(found) == 2 else None
