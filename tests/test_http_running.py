"""HTTP as a process: start, many connections at once, clients that are slow, and the end."""

import asyncio
import contextlib
import json
import os
import re
import selectors
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from support import (
    LEGACY,
    PATIENCE,
    complete,
    free_port,
    initialize,
    legacy,
    modern,
    server_file,
    until,
)
from support_http import Site, headers_for, read_all, request, serving
from test_http import LISTEN, call, demo, said

from minimcp import http
from minimcp.http import Crew, app

SERVER = """
    import sys, threading, time
    from minimcp import Context, Server
    from minimcp import http

    server = Server("demo", version="1.0.0")

    @server.tool
    def add(a: int, b: int) -> int:
        return a + b

    @server.tool
    def sleep(seconds: float) -> str:
        time.sleep(seconds)
        return "slept"

    @server.tool
    def stuck(context: Context) -> str:
        context.progress(1)
        threading.Event().wait()

    @server.tool
    def threads() -> int:
        return threading.active_count()

    http.GRACE = 1
    http.READ_TIMEOUT = 1
    http.serve(server, port=int(sys.argv[1]), {options})
"""


class Process:
    """A server in a subprocess."""

    def __init__(self, command, port, env=None):
        self.process = subprocess.Popen(
            command, stderr=subprocess.PIPE, text=True, env={**os.environ, **(env or {})}
        )
        self.site = Site(port, None)

    def __enter__(self):
        self.first = self.process.stderr.readline()
        until(lambda: self.process.poll() is not None or self.started())
        return self

    def started(self):
        """It listens; where, it says itself if the port was left to it."""
        return not self.site.port or can_connect(self.site.port)

    def __exit__(self, *exc):
        self.process.kill()
        self.process.communicate(timeout=PATIENCE)

    def end(self, number=signal.SIGTERM):
        """Send a signal; the exit code and what was written to stderr."""
        self.process.send_signal(number)
        _, stderr = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, stderr


def can_connect(port):
    with contextlib.suppress(ConnectionError):
        socket.create_connection(("127.0.0.1", port)).close()
        return True
    return False


def running(tmp_path, options="", env=None, source=SERVER):
    port = free_port()
    command = server_file(tmp_path, source.replace("{options}", options))
    return Process([*command, str(port)], port, env)


# -- starting


@pytest.mark.req("S-HTTP-05")
def test_it_listens_on_this_machine_only_and_says_where(tmp_path):
    with running(tmp_path) as server:
        port = server.site.port
        assert server.first == f"MCP server at http://127.0.0.1:{port}/mcp; Ctrl+C to stop\n"
        inode = {
            line.split()[9]
            for line in Path("/proc/net/tcp").read_text().splitlines()[1:]
            if line.split()[1] == f"0100007F:{port:04X}" and line.split()[3] == "0A"
        }
        assert len(inode) == 1
        anywhere = f":{port:04X} "
        for table in ("/proc/net/tcp", "/proc/net/tcp6"):
            for line in Path(table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == "0A" and f"{fields[1]} ".endswith(anywhere):
                    assert fields[1].startswith("0100007F")


def test_the_command_line_of_any_server_has_http(tmp_path):
    port = free_port()
    command = [sys.executable, "-m", "minimcp.demo", "--http", str(port)]
    with Process(command, port) as server:
        message = modern("tools/call", {"name": "calc.add", "arguments": {"a": 2, "b": 40}})
        assert server.site.post(message).json["result"]["structuredContent"] == 42
        assert server.end() == (0, "")


def test_without_uvicorn_one_line_says_what_to_install(tmp_path):
    (tmp_path / "uvicorn.py").write_text("raise ImportError('none')")
    command = [sys.executable, "-m", "minimcp.demo", "--http", str(free_port())]
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 1
    assert done.stderr == (
        "HTTP needs uvicorn: pip install uvicorn (in a clone: pip install -e '.[http]')\n"
    )


def test_a_port_that_is_taken_is_named(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port = sock.getsockname()[1]
        command = [sys.executable, "-m", "minimcp.demo", "--http", str(port)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode != 0
    assert str(port) in done.stderr and "in use" in done.stderr
    assert "Traceback" not in done.stderr
    assert "MCP server at" not in done.stderr


def test_the_port_that_is_named_is_the_one_that_was_found():
    with Process([sys.executable, "-m", "minimcp.demo", "--http", "0"], 0) as server:
        port = int(re.search(r"127\.0\.0\.1:(\d+)/mcp", server.first)[1])
        message = modern("tools/call", {"name": "calc.add", "arguments": {"a": 2, "b": 40}})
        assert Site(port, None).post(message).json["result"]["structuredContent"] == 42
        server.process.terminate()


@pytest.mark.req("S-HTTP-06")
@pytest.mark.parametrize("where", ["file", "environment", "argument"])
def test_a_token_comes_from_a_file_the_environment_or_the_program(tmp_path, where):
    (tmp_path / "token").write_text("s3cret\n")
    options = {"file": f"token_file={str(tmp_path / 'token')!r}", "argument": "token='s3cret'"}
    env = {"MINIMCP_TOKEN": "s3cret" if where == "environment" else "other"}
    with running(tmp_path, options.get(where, ""), env) as server:
        message = call("add", a=2, b=40)
        for given, status in [(None, 401), ("other", 401), ("s3cret", 200)]:
            headers = {"Authorization": f"Bearer {given}"} if given else {}
            assert server.site.post(message, headers=headers).status == status
        assert server.end() == (0, "")


@pytest.mark.parametrize("where", ["file", "environment"])
def test_an_empty_token_is_named_instead_of_refusing_everybody(tmp_path, where):
    (tmp_path / "token").write_text("\n")
    options = ["--token-file", str(tmp_path / "token")] if where == "file" else []
    command = [sys.executable, "-m", "minimcp.demo", "--http", str(free_port()), *options]
    env = {**os.environ, "MINIMCP_TOKEN": ""}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (1, "cannot serve: the token is empty\n")


def test_every_message_can_be_seen():
    seen = []
    with serving(demo(), log=lambda what, text: seen.append((what, text))) as site:
        reply = site.post(call("steps", number=1, meta={"progressToken": 1}))
        assert [what for what, _ in seen] == ["received", "sent", "sent"]
        assert [f"data: {text}\n\n" for _, text in seen[1:]] == re.findall(
            "data: .*\n\n", reply.body.decode()
        )


def test_it_can_be_mounted_in_a_larger_app():
    inner = app(demo())

    async def larger(scope, receive, send):
        await inner({**scope, "root_path": "/api"}, receive, send)

    with serving(larger) as site:
        message = call("steps", number=1, meta={"progressToken": 1})
        body, headers = json.dumps(message).encode(), headers_for(message)
        reply = site.ask("POST", "/api/mcp", body, headers)
        assert (reply.status, reply.events[-1]) == (200, complete(said("done")))
        assert site.ask("POST", "/api/other", body, headers).status == 404


def test_other_scopes_than_http_are_left_alone():
    async def none(*_):
        raise AssertionError("nothing to receive, nothing to send")

    for kind in ("lifespan", "websocket"):
        asyncio.run(app(demo())({"type": kind}, none, none))


# -- slow clients


def test_a_connection_that_asks_nothing_blocks_nobody_and_is_closed(tmp_path):
    """B071"""
    with running(tmp_path) as server:
        message = call("add", a=2, b=40)
        whole = request(message, headers_for(message))
        beginnings = [b"", b"POST /mcp HT", whole[:-5], whole + b"POST", whole]
        sockets = [server.site.socket() for _ in beginnings]
        for sock, data in zip(sockets, beginnings, strict=True):
            sock.sendall(data)
        assert server.site.post(message).status == 200
        answers = [read_all(sock) for sock in sockets]
        assert [answer[:12] for answer in answers] == [b"", b"", b"", *[b"HTTP/1.1 200"] * 2]
        for sock in sockets:
            sock.close()


def test_a_slow_answer_is_not_taken_for_a_slow_question(tmp_path):
    with running(tmp_path) as server:
        assert server.site.post(call("sleep", seconds=4.0)).json == complete(said("slept"))


# -- many at once


@pytest.mark.req("S-HTTP-35")
def test_five_hundred_connections_and_a_slow_tool_on_twenty_of_them(tmp_path):
    """The others are as fast as they are alone; nothing is lost and nothing crossed."""
    with running(tmp_path) as server, Crowd(server.site, 480) as crowd:
        assert any(as_fast_as_alone(server.site, crowd) for _ in range(3))


def as_fast_as_alone(site, crowd):
    """Once is enough: another program may have had the processor, and a slow tool has it always."""
    alone = crowd.round(4)
    slow = [Slow(site) for _ in range(20)]
    together = crowd.round(4)
    for one in slow:
        one.end()
    assert all(one.wrong == [] and one.done > 0 for one in slow)
    return statistics.median(together) < 3 * statistics.median(alone)


class Slow(threading.Thread):
    """A connection that calls the slow tool, again and again."""

    def __init__(self, site):
        super().__init__()
        self.site, self.done, self.wrong, self.ended = site, 0, [], False
        self.start()

    def run(self):
        with self.site.connection() as connection:
            while not self.ended or not self.done:
                message = call("sleep", self.done, seconds=0.2)
                reply = self.site.post(message, connection=connection)
                if reply.json != complete(said("slept"), self.done):
                    self.wrong.append(reply)
                self.done += 1

    def end(self):
        self.ended = True
        self.join(PATIENCE)


class Crowd:
    """Open connections that all ask in turn, whoever was answered asks again."""

    def __init__(self, site, size):
        self.site, self.asked = site, 0
        self.selector = selectors.DefaultSelector()
        self.sockets = [site.socket() for _ in range(size)]

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.selector.close()
        for sock in self.sockets:
            sock.close()

    def ask(self, sock):
        self.asked += 1
        message = call("add", self.asked, a=self.asked, b=0)
        sock.sendall(request(message, headers_for(message)))
        self.selector.register(sock, selectors.EVENT_READ, [self.asked, time.monotonic(), b""])

    def round(self, times):
        """Every connection asks so many times; the seconds that each answer took."""
        took, left = [], dict.fromkeys(self.sockets, times)
        for sock in self.sockets:
            self.ask(sock)
        while left:
            for key, _ in self.selector.select(PATIENCE):
                key.data[2] += key.fileobj.recv(65536)
                if whole(key.data[2]):
                    took.append(self.answered(key.fileobj, *key.data))
                    left[key.fileobj] -= 1
                    if left[key.fileobj]:
                        self.ask(key.fileobj)
                    else:
                        del left[key.fileobj]
        return took

    def answered(self, sock, number, since, answer):
        self.selector.unregister(sock)
        assert answer.startswith(b"HTTP/1.1 200 ")
        reply = json.loads(answer.partition(b"\r\n\r\n")[2])
        assert (reply["id"], reply["result"]["structuredContent"]) == (number, number)
        return time.monotonic() - since


def whole(answer):
    """Whether all of a response is there."""
    length = re.search(rb"content-length: (\d+)", answer)
    return length and len(answer.partition(b"\r\n\r\n")[2]) == int(length[1])


@pytest.mark.req("S-HTTP-35")
def test_slow_calls_get_threads_and_quick_ones_share_one():
    server = demo()
    with serving(server) as site:
        for number in range(50):
            assert site.post(call("add", number, a=1, b=2)).status == 200
        assert site.app.crew.threads <= 2
        with contextlib.ExitStack() as stack:
            slow = [stack.enter_context(site.stream(call("polite", n))) for n in range(12)]
            until(lambda: site.app.crew.threads >= 12)
            assert site.post(call("add", a=1, b=2)).status == 200
            server.gate.set()
            for stream in slow:
                assert stream.begin().response.status == 200
        assert site.app.crew.threads < 30


def test_help_is_hired_only_if_every_thread_is_in_a_call():
    async def scenario():
        crew, called = Crew(), threading.Event()
        crew.threads, crew.idle = 1, [None]  # one that was woken and has not come round yet
        crew.put(called.set)
        crew.look(crew.taken)
        hired = [crew.threads]
        crew.idle.pop()  # now it is busy
        crew.look(crew.taken)
        hired.append(crew.threads)
        return hired, await asyncio.to_thread(called.wait, PATIENCE)

    assert asyncio.run(scenario()) == ([1, 2], True)


def test_more_slow_calls_than_threads_wait_for_their_turn(monkeypatch):
    monkeypatch.setattr("minimcp.http.THREADS", 2)
    server = demo()
    with serving(server) as site, contextlib.ExitStack() as stack:
        slow = [stack.enter_context(site.stream(call("polite", number))) for number in range(5)]
        until(lambda: (site.app.crew.threads, site.app.crew.calls.qsize()) == (2, 3))
        server.gate.set()
        for stream in slow:
            assert stream.begin().response.status == 200
        assert site.app.crew.threads == 2


def memory(pid):
    """Resident memory of a process, in MiB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


@pytest.mark.req("S-SUB-16")
def test_a_thousand_listeners_cost_no_thread_each_and_hear_the_end(tmp_path):
    with running(tmp_path) as server, contextlib.ExitStack() as stack:
        site, pid = server.site, server.process.pid
        before = memory(pid)
        listeners = [stack.enter_context(site.stream(LISTEN)) for _ in range(1000)]
        for listener in listeners:
            listener.begin()
            assert listener.next()["method"] == "notifications/subscriptions/acknowledged"
        assert site.post(call("threads")).json["result"]["structuredContent"] < 100
        assert memory(pid) - before < 100
        server.process.send_signal(signal.SIGTERM)
        for listener in listeners:
            assert listener.next()["result"]["resultType"] == "complete"
            assert listener.next() is None
        assert server.process.wait(PATIENCE) == 0


def test_memory_stays_flat(tmp_path):
    with running(tmp_path) as server:

        def ask(times):
            with server.site.connection() as connection:
                for number in range(times):
                    kind = call("add", number, a=number, b=1) if number % 2 else legacy("ping")
                    version = None if number % 2 else LEGACY
                    assert server.site.post(kind, version, connection=connection).status == 200
                    server.site.post(initialize(), LEGACY, connection=connection)

        ask(500)
        before = memory(server.process.pid)
        ask(1500)
        assert memory(server.process.pid) - before < 2


# -- the end


@pytest.mark.req("S-SUB-07")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_calls_finish_ends_subscriptions_and_exits(tmp_path, number):
    with running(tmp_path) as server:
        site = server.site
        with site.stream(LISTEN) as listener, site.stream(call("sleep", seconds=0.5)) as slow:
            listener.begin().next()
            idle = site.socket()
            until(lambda: site.post(call("threads")).json["result"]["structuredContent"] > 2)
            assert server.end(number) == (0, "")
            assert listener.next()["result"]["resultType"] == "complete"
            assert listener.next() is None
            assert b'"slept"' in slow.begin().response.read()
            assert read_all(idle) == b""
            idle.close()


def test_a_call_that_never_ends_is_given_up_after_a_while(tmp_path):
    with running(tmp_path) as server:
        message = call("stuck", meta={"progressToken": 1})
        with server.site.stream(message) as stuck:
            assert stuck.begin().next()["method"] == "notifications/progress"
            code, stderr = server.end()
            assert code == 0
            assert "timeout graceful shutdown exceeded" in stderr
            assert "Traceback" not in stderr


def test_a_second_signal_waits_for_nothing(tmp_path):
    patient = SERVER.replace("GRACE = 1", "GRACE = 60")
    message = call("stuck", meta={"progressToken": 1})
    with running(tmp_path, source=patient) as server, server.site.stream(message) as stuck:
        stuck.begin().next()
        server.process.send_signal(signal.SIGINT)
        until(lambda: not can_connect(server.site.port))
        assert server.end(signal.SIGINT)[0] == 0


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "0.0.0.0", "::", "192.0.2.1"])
@pytest.mark.parametrize("token", [None, "secret"])
def test_a_port_that_is_open_to_others_without_a_token_is_told(monkeypatch, capsys, host, token):
    monkeypatch.setattr("uvicorn.Server.run", lambda self: None)  # nothing is opened
    http.serve(demo(), host=host, token=token)
    warned = "whoever reaches this port can call the tools" in capsys.readouterr().err
    assert warned is (token is None and host in ("0.0.0.0", "::", "192.0.2.1"))
