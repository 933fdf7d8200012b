"""Faults over stdio: each test is a row of the table in `support_faults.py`.

The first paragraph of a docstring says the fault and, behind the colon, what is promised.
"""

import contextlib
import itertools
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from stubs.fake import fake_server
from support import PATIENCE, Stdio, cancelled, modern, server_file, until

from minimcp import Client, ProtocolError
from minimcp import child as child_module

FAULTY = """
    import asyncio, os, resource, subprocess, sys, threading, time, warnings
    from concurrent.futures import ThreadPoolExecutor
    from minimcp import Context, Server, run

    server = Server("faulty", version="1.0.0")
    record = open(os.environ["RECORD"], "a", buffering=1) if "RECORD" in os.environ else None
    kept = []
    warnings.filterwarnings("ignore", "This process .* is multi-threaded")  # and forks all the same

    @server.tool
    def echo(text: str) -> str:
        return text

    @server.tool
    def pid() -> int:
        return os.getpid()

    @server.tool
    def work(context: Context) -> str:
        print("begun", file=record)
        while not context.cancelled:
            time.sleep(0.01)
        print("cancelled", file=record)
        return "done"

    @server.tool
    def sleep(seconds: float) -> str:
        time.sleep(seconds)
        return "slept"

    @server.tool
    async def forever() -> str:
        print("begun", file=record)
        await asyncio.Event().wait()

    @server.tool
    def tell(context: Context) -> str:
        context.progress(1, message="x" * 1000)
        return "told"

    @server.tool
    def boom() -> str:
        raise ValueError("no such city")

    @server.tool
    def shout(descriptor: int) -> str:
        os.write(descriptor, b"noise")
        return "shouted"

    @server.tool
    def chatter() -> str:
        print("begun", file=record)
        while True:
            print("and another thing", flush=True)

    @server.tool
    def hog() -> str:
        while True:
            kept.append(open(os.devnull))

    @server.tool
    def release() -> str:
        while kept:
            kept.pop().close()
        return "released"

    @server.tool
    def shrink(mebibytes: int) -> str:
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + mebibytes * 2**20,) * 2)
        return "shrunk"

    @server.tool
    def eat(mebibytes: int) -> int:
        return len("x" * (mebibytes * 2**20))

    @server.tool
    def fork(leaves: bool) -> str:
        child = os.fork()
        if not child and leaves:
            os._exit(0)
        if child and leaves:
            os.waitpid(child, 0)
        return f"forked {child}"

    @server.tool
    def daemon() -> int:
        child = os.fork()
        if child == 0:
            os.setsid()
            time.sleep(600)
            os._exit(0)
        return child

    @server.tool
    def thread() -> str:
        threading.Thread(target=threading.Event().wait).start()
        return "started"

    @server.tool
    def pool() -> str:
        kept.append(ThreadPoolExecutor(1))
        kept[-1].submit(threading.Event().wait)
        return "started"

    run(server)
"""
KILLED = "ended with exit code -9"


@pytest.fixture
def record(tmp_path, monkeypatch):
    return recording(tmp_path, monkeypatch)


def recording(tmp_path, monkeypatch):
    """What the tools of the faulty server did, line by line."""
    file = tmp_path / "record"
    file.touch()
    monkeypatch.setenv("RECORD", str(file))
    return lambda: file.read_text().split()


@pytest.fixture
def faulty(tmp_path):
    """The command of a server that can do all sorts of things."""
    return server_file(tmp_path, FAULTY)


@pytest.fixture
def hurry(monkeypatch):
    """A client that does not wait as long for the end of a server."""
    monkeypatch.setattr(child_module, "POLITE", 0.1)
    monkeypatch.setattr(child_module, "FIRM", 0.1)


def call(name, id=1, **arguments):
    return modern("tools/call", {"name": name, "arguments": arguments}, id)


def line(message):
    return json.dumps(message).encode() + b"\n"


def text_of(reply):
    return reply["result"]["content"][0]["text"]


def state(pid):
    """The letter of a process in /proc: `T` when it is stopped, `Z` when it is dead; or nothing."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    return ""


def gone(pid):
    return state(pid) in ("", "Z")


def stop(pid):
    os.kill(pid, signal.SIGSTOP)
    until(lambda: state(pid) == "T")


def memory(pid="self"):
    """Resident memory in MiB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def script(source, *arguments, **options):
    """A Python program of our own, with pipes."""
    command = [sys.executable, "-c", textwrap.dedent(source), *arguments]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, **{**pipes, **options}, text=True)


@contextlib.contextmanager
def asking(client, name, **arguments):
    """A call in another thread; when the block has ended, `outcome` is its text or its error."""
    asked, outcome = threading.Event(), []
    client.connection.trace = lambda sender, message: asked.set()

    def ask():
        try:
            outcome.append(client.call_tool(name, arguments).text)
        except Exception as error:
            outcome.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    assert asked.wait(PATIENCE)
    yield outcome
    thread.join(PATIENCE)
    assert len(outcome) == 1


# -- the server is killed


def test_a_call_that_was_never_read_is_reported_and_not_repeated(faulty, record):
    """the server is killed before it reads the call: reported at once; the tool never ran, and the
    next call gets a new server
    """
    with Client(faulty, timeout=PATIENCE) as client:
        pid = int(client.call_tool("pid").text)
        stop(pid)
        with asking(client, "work") as outcome:
            os.kill(pid, signal.SIGKILL)
        assert isinstance(outcome[0], ConnectionError) and KILLED in str(outcome[0])
        assert int(client.call_tool("pid").text) != pid
    assert record() == []


def test_a_call_whose_tool_was_running_is_reported_and_not_repeated(faulty, record):
    """the server is killed while the tool runs: reported at once; the tool is never run again, for
    nobody knows how far it came
    """
    with Client(faulty, timeout=PATIENCE) as client:
        pid = int(client.call_tool("pid").text)
        with asking(client, "work") as outcome:
            until(record)
            os.kill(pid, signal.SIGKILL)
        assert isinstance(outcome[0], ConnectionError) and KILLED in str(outcome[0])
        assert client.call_tool("echo", {"text": "again"}).text == "again"
    assert record() == ["begun"]


def test_half_a_reply_is_no_reply(capfd):
    """the server is killed after half a reply was written: reported at once, and the half is thrown
    away
    """
    source = """
        for request in requests():
            write(b'{"jsonrpc": "2.0", "id": %d, "result": {"content": [' % request["id"])
            os.kill(os.getpid(), signal.SIGKILL)
    """
    with (
        Client(fake_server(source), timeout=PATIENCE) as client,
        pytest.raises(ConnectionError, match=KILLED),
    ):
        client.call_tool("any")
    assert "skipped, not a message" in capfd.readouterr().err


def test_what_was_answered_before_a_death_is_answered():
    """the server is killed between two replies: answered what was written, and the rest is reported
    at once
    """
    source = """
        first, second = [request for _, request in zip(range(2), requests())]
        say(first, first["params"]["name"])
        os.kill(os.getpid(), signal.SIGKILL)
    """
    with Client(fake_server(source), timeout=PATIENCE) as client, ThreadPoolExecutor(2) as threads:
        calls = {name: threads.submit(client.call_tool, name) for name in ("one", "two")}
        failed = [name for name, future in calls.items() if future.exception(PATIENCE)]
        [answered] = {*calls} - {*failed}
        assert calls[answered].result().text == answered
        assert KILLED in str(calls[failed[0]].exception())


# -- the client is killed

CLIENT = """
    import sys
    from minimcp import Client
    client = Client(sys.argv[2:])
    print(client.call_tool("pid").text, flush=True)
    if sys.argv[1]:
        client.call_tool(sys.argv[1])
    sys.stdin.read()
"""


@pytest.mark.parametrize("tool", ["", "work", "chatter"])
def test_a_server_does_not_outlive_its_client(faulty, record, tool):
    """the client is killed, idle or in the middle of a call: ended, since its stdin ends; what was
    called is lost
    """
    with script(CLIENT, tool, *faulty) as client:
        pid = int(client.stdout.readline())
        if tool:
            until(record)
        client.kill()
        until_gone(pid)


@pytest.mark.parametrize("tool", ["work", "chatter", "forever"])
def test_a_client_that_ends_in_the_middle_of_a_call_ends_as_it_wanted(faulty, record, tool):
    """the program of the client ends while another thread waits for a call: ended with the exit
    code of the program, and so is the server; the call is lost
    """
    source = """
        import sys, threading
        from minimcp import Client
        client = Client(sys.argv[2:])
        print(client.call_tool("pid").text, flush=True)
        threading.Thread(target=client.call_tool, args=[sys.argv[1]], daemon=True).start()
        sys.stdin.read()
        sys.exit(7)
    """
    with script(source, tool, *faulty, stderr=subprocess.DEVNULL) as client:
        pid = int(client.stdout.readline())
        until(record)
        client.stdin.close()
        assert client.wait(PATIENCE) == 7
        until_gone(pid)


def until_gone(pid):
    """Wait for the end of a server, and if it does not come, see to it before saying so."""
    try:
        until(lambda: gone(pid), 5)
    finally:
        if not gone(pid):
            os.kill(pid, signal.SIGKILL)


# -- somebody does not read


def test_a_client_that_does_not_read_costs_no_thread_for_each_call(faulty):
    """the client asks on and does not read: answered when it reads at last; until then the server
    stops reading, so neither its threads nor its memory grow
    """
    with subprocess.Popen(faulty, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        lines = [line(call("echo", n, text="x" * 10_000)) for n in range(500)]
        with ThreadPoolExecutor(1) as writer:
            server.stdin.write(lines.pop(0))
            server.stdin.flush()
            until(lambda: threads(server.pid) > 1)
            before = memory(server.pid)
            written = writer.submit(write_all, server.stdin, lines)
            most, used = watch(server.pid)
            replies = [json.loads(server.stdout.readline()) for _ in range(500)]
            written.result(PATIENCE)
        assert {reply["id"] for reply in replies} == {*range(500)}
        server.stdin.close()
        assert server.wait(PATIENCE) == 0
        assert most < 20
        assert used - before < 10


SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


@pytest.mark.parametrize("way", ["log", "listen"])
def test_nor_do_calls_that_say_something_to_a_client_that_does_not_read(faulty, way):
    """the client asks on and does not read, and every call has something to say: answered when it
    reads at last; until then a few dozen threads wait, and the server stops reading
    """
    said = {"notifications": {"toolsListChanged": True}}
    with subprocess.Popen(faulty, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        if way == "log":
            params = {"name": "tell", "arguments": {}}
            asked = [
                modern("tools/call", params, n, meta={"progressToken": n}) for n in range(3000)
            ]
        else:
            asked = [modern("subscriptions/listen", said, n) for n in range(3000)]
        with ThreadPoolExecutor(1) as writer:
            written = writer.submit(write_all, server.stdin, [*map(line, asked)])
            until(lambda: threads(server.pid) > 30)
            most, _ = watch(server.pid)
            answered = set()
            while len(answered) < 3000:  # a reply, or what acknowledges a subscription
                message = json.loads(server.stdout.readline())
                meta = message.get("params", {}).get("_meta", {})
                answered |= {message.get("id"), meta.get(SUBSCRIPTION)} - {None}
            written.result(PATIENCE)
        server.stdin.close()
        server.stdout.read()
        assert server.wait(PATIENCE) == 0
        assert most < 60


def write_all(pipe, lines):
    for one in lines:
        pipe.write(one)
    pipe.flush()


def threads(pid):
    return len(os.listdir(f"/proc/{pid}/task"))


def watch(pid, times=100):
    """The most threads and MiB that a process has, of so many looks, or until there are many."""
    most, used = 0, 0.0
    for _ in range(times):
        most, used = max(most, threads(pid)), max(used, memory(pid))
        if most > 100:
            break
        time.sleep(0.01)
    return most, used


def test_a_server_that_does_not_read_costs_no_memory_for_each_call():
    """the server reads no more, and the client asks on: reported, each call when its time is over,
    and what could not be sent is not kept for ever
    """
    source = """
        import sys
        from minimcp import Client, child
        child.POLITE = child.FIRM = 0.1
        def used():
            return int(open("/proc/self/statm").read().split()[1]) * 4096 / 2**20
        late = 0
        with Client(sys.argv[1:]) as client:
            before = used()
            for _ in range(60):
                try:
                    client.call_tool("any", {"text": "x" * 10**6}, timeout=0.01)
                except (TimeoutError, ConnectionError):
                    late += 1
            print(late, round(used() - before))
    """
    deaf = fake_server("next(requests()); time.sleep(600)")
    with script(source, *deaf) as client:
        said, _ = client.communicate(timeout=PATIENCE)
    late, grown = map(int, said.split())
    assert late == 60
    assert grown < 30


def test_half_a_line_is_not_answered_before_the_rest_has_come(faulty):
    """the client sends half a line, and then nothing but the end: reported as a line that is no
    JSON, and nothing is run
    """
    with Stdio(faulty) as server:
        server.ask(call("echo", text="first"))
        server.send_raw(b'{"jsonrpc": "2.0", "id": 2, "meth')
        server.close_stdin()
        [reply] = server.read_all()
        assert (reply["error"]["code"], "id" in reply) == (-32700, False)
        assert (server.wait(), server.stderr) == (0, "")


def test_half_a_line_of_the_server_costs_only_that_call(capfd):
    """the server writes half a line, and then nothing: reported when the time is over; the next
    whole line counts again
    """
    source = """
        asked = requests()
        write(b'{"jsonrpc": "2.0", "id": %d, "resu' % next(asked)["id"])
        request = next(asked)
        write(b"\\n")
        say(request, "whole")
        next(asked)
    """
    with Client(fake_server(source), timeout=PATIENCE) as client:
        with pytest.raises(TimeoutError, match=r"no answer in 0\.2 s"):
            client.call_tool("any", timeout=0.2)
        assert client.call_tool("any").text == "whole"
    assert "skipped, not a message" in capfd.readouterr().err


# -- pipes that are closed

ORDERS = list(itertools.permutations(("stdin", "stdout", "stderr")))


@pytest.mark.parametrize("order", ORDERS, ids="-".join)
@pytest.mark.parametrize("tool", ["echo", "work"])
def test_a_client_may_close_the_pipes_in_every_order(faulty, record, order, tool):
    """the client closes stdin, stdout and stderr of the server, in every order, idle or in the
    middle of a call: ended, with exit code 0
    """
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(faulty, **pipes) as server:
        server.stdin.write(line(call("echo", 0, text="x")))
        server.stdin.flush()
        server.stdout.readline()
        if tool == "work":
            server.stdin.write(line(call("work")))
            server.stdin.flush()
            until(record)
        for name in order:
            getattr(server, name).close()
        assert server.wait(PATIENCE) == 0


@pytest.mark.parametrize("order", ORDERS, ids="-".join)
def test_a_server_may_close_its_pipes_in_every_order(order, hurry):
    """the server closes its stdin, stdout and stderr, in every order, and lives on: reported at
    once, and the process is ended
    """
    source = """
        for request in requests():
            for name in sys.argv[1:]:
                os.close(["stdin", "stdout", "stderr"].index(name))
            signal.pause()
    """
    with Client(fake_server(source, *order), timeout=PATIENCE) as client:
        pid = client.connection.wire.process.pid
        with pytest.raises(ConnectionError, match="closed its output"):
            client.call_tool("any")
    assert state(pid) == ""


REDIRECTED = {
    "closed": "os.close(2)",
    "not read": "r, w = os.pipe(); os.dup2(w, 2); os.close(w); os.close(r)",
    "full": "os.dup2(os.open('/dev/full', os.O_WRONLY), 2)",
}


def with_stderr(kind, command):
    """The command, with something else as its stderr."""
    source = f"import os, sys\n{REDIRECTED[kind]}\nos.execv(sys.argv[1], sys.argv[1:])"
    return [sys.executable, "-c", source, *command]


@pytest.mark.parametrize("kind", REDIRECTED)
def test_nothing_that_is_told_the_operator_can_fail_a_call(faulty, record, kind):
    """stderr is closed, or full, or nobody reads it any more: answered, also what is said about
    failures and cancellations is lost
    """
    with Stdio(with_stderr(kind, faulty)) as server:
        assert "ValueError: no such city" in text_of(server.ask(call("boom")))
        server.send(call("work", 2))
        until(record)
        server.send(cancelled(2, "no longer needed"))
        until(lambda: record() == ["begun", "cancelled"])
        assert text_of(server.ask(call("echo", 3, text="still here"))) == "still here"
        server.send(call("work", 4))
        until(lambda: len(record()) == 3)
        server.close_stdin()
        assert server.read_all() == []
        assert server.wait() == 0


@pytest.mark.parametrize("descriptor", [0, 1, 2])
def test_a_closed_stderr_does_not_let_tools_write_into_the_wire(faulty, descriptor):
    """the server is started without stderr, and a tool writes to descriptors of its own: answered,
    and what it wrote is lost
    """
    ours, theirs = socket.socketpair()
    with ours, subprocess.Popen(
        with_stderr("closed", faulty), stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL
    ) as server:  # fmt: skip
        theirs.close()
        ours.sendall(line(call("shout", descriptor=descriptor)))
        ours.shutdown(socket.SHUT_WR)
        [reply] = ours.makefile("rb").read().splitlines()
        assert json.loads(reply)["id"] == 1
        assert server.wait(PATIENCE) == 0


# -- stopped and continued


def test_a_server_that_is_stopped_for_a_moment_answers_later(faulty):
    """the server is stopped (SIGSTOP) and goes on in time: answered"""
    with Client(faulty, timeout=PATIENCE) as client:
        pid = int(client.call_tool("pid").text)
        stop(pid)
        with asking(client, "echo", text="late") as outcome:
            os.kill(pid, signal.SIGCONT)
        assert outcome == ["late"]


def test_a_server_that_is_stopped_for_longer_costs_the_calls_of_that_time(faulty):
    """the server is stopped (SIGSTOP) for longer than a call may take: reported; when it goes on,
    its late answer is taken for no other
    """
    with Client(faulty, timeout=PATIENCE) as client:
        pid = int(client.call_tool("pid").text)
        stop(pid)
        with pytest.raises(TimeoutError, match=r"no answer in 0\.2 s"):
            client.call_tool("echo", {"text": "too late"}, timeout=0.2)
        os.kill(pid, signal.SIGCONT)
        assert client.call_tool("echo", {"text": "in time"}).text == "in time"


def test_a_stopped_server_is_ended_all_the_same(faulty, hurry):
    """the server is stopped (SIGSTOP) when the client is closed: ended by SIGKILL"""
    with Client(faulty) as client:
        pid = int(client.call_tool("pid").text)
        stop(pid)
    until_gone(pid)
    assert state(pid) == ""


def test_a_client_that_is_stopped_loses_nothing(faulty):
    """the client is stopped (SIGSTOP) in the middle of many calls and goes on: answered, all of
    them
    """
    source = """
        import sys
        from concurrent.futures import ThreadPoolExecutor
        from minimcp import Client
        with Client(sys.argv[1:]) as client, ThreadPoolExecutor(8) as pool:
            texts = [f"{number} " * 2000 for number in range(600)]
            found = pool.map(lambda text: client.call_tool("echo", {"text": text}).text, texts)
            for number, text in enumerate(found):
                assert text == texts[number]
                if number == 100:
                    print("under way", flush=True)
        print("done")
    """
    with script(source, *faulty) as client:
        assert client.stdout.readline() == "under way\n"
        stop(client.pid)
        os.kill(client.pid, signal.SIGCONT)
        assert client.communicate(timeout=PATIENCE) == ("done\n", "")
        assert client.returncode == 0


# -- nothing left


def limited(kind, limit, command):
    """The command under a limit of the system."""
    source = f"import os, resource, sys; resource.setrlimit(resource.{kind}, ({limit}, {limit}))"
    return [sys.executable, "-c", f"{source}; os.execv(sys.argv[1], sys.argv[1:])", *command]


def test_a_server_without_free_descriptors_serves_on(faulty):
    """a tool takes all descriptors of the server (RLIMIT_NOFILE): reported to the model; other
    calls are answered, and what needs a file is an error until there are some again
    """
    wish = {"notifications": {"toolsListChanged": True}}
    with Stdio(limited("RLIMIT_NOFILE", 64, faulty)) as server:
        assert "Too many open files" in text_of(server.ask(call("hog")))
        assert "no such city" in text_of(server.ask(call("boom", 2)))
        assert text_of(server.ask(call("echo", 3, text="here"))) == "here"
        assert server.ask(modern("subscriptions/listen", wish, 4))["error"]["code"] == -32603
        assert text_of(server.ask(call("release", 5))) == "released"
        server.send(modern("subscriptions/listen", wish, 6))
        assert server.read()["method"] == "notifications/subscriptions/acknowledged"


def test_a_client_without_free_descriptors_says_so_and_leaves_nothing(faulty):
    """the client has no free descriptors (RLIMIT_NOFILE): reported, and nothing is left open; with
    free ones it works
    """
    source = """
        import os, resource, sys, threading
        from minimcp import Client
        from minimcp.child import Child
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        used = os.listdir("/proc/self/fd")
        for free in range(6):
            resource.setrlimit(resource.RLIMIT_NOFILE, (len(used) - 1 + free, hard))
            try:
                Client(sys.argv[1:])
            except ConnectionError as error:
                assert "Too many open files" in str(error), error
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        careless = sys.version_info < (3, 11)  # there subprocess itself leaves its pipes open
        assert os.listdir("/proc/self/fd") == used or careless
        assert threading.active_count() == 1
        with Client(sys.argv[1:]) as client:
            print(client.call_tool("echo", {"text": "works"}).text)
    """
    with script(source, *faulty) as client:
        assert client.communicate(timeout=PATIENCE) == ("works\n", "")


@pytest.mark.parametrize("option", ["--log", "--verbose"])
def test_a_full_disk_costs_the_log_and_no_call(faulty, option):
    """no disk for the log (/dev/full): answered, every call; the log is lost, and if stderr is
    another place it says why
    """
    options = {"--log": ["--log", "/dev/full"], "--verbose": ["--verbose"]}[option]
    command = [*faulty, *options]
    with Stdio(with_stderr("full", command) if option == "--verbose" else command) as server:
        for number in range(3):
            assert text_of(server.ask(call("echo", number, text="logged"), 5)) == "logged"
        server.close_stdin()
        assert server.wait() == 0
        assert ("No space left on device" in server.stderr) is (option == "--log")


def test_a_tool_that_needs_too_much_memory_is_reported(faulty):
    """a tool needs more memory than there is (RLIMIT_AS): reported to the model, and the next call
    is answered
    """
    with Stdio(faulty) as server:
        server.ask(call("shrink", mebibytes=30))
        reply = server.ask(call("eat", 2, mebibytes=100))
        assert (reply["result"]["isError"], "MemoryError" in text_of(reply)) == (True, True)
        assert text_of(server.ask(call("echo", 3, text="here"))) == "here"


def test_a_line_for_which_there_is_no_memory_is_reported(faulty):
    """a message needs more memory than the server has (RLIMIT_AS): reported at once, and the next
    call is answered, if need be by a new server
    """
    with Client(faulty, timeout=PATIENCE) as client:
        client.call_tool("shrink", {"mebibytes": 20})
        with pytest.raises((ConnectionError, ProtocolError)):
            client.call_tool("echo", {"text": "x" * 40 * 2**20}, timeout=10)
        assert client.call_tool("echo", {"text": "next"}).text == "next"


# -- processes and threads of tools


@pytest.mark.parametrize("leaves", [True, False])
def test_a_tool_that_forks_is_answered_once(faulty, leaves):
    """a tool forks, and the child ends with `os._exit` or forgets to: answered once, by the parent;
    the child has no wire
    """
    with Stdio(faulty) as server:
        server.send(call("fork", leaves=leaves), call("echo", 2, text="x" * 100_000))
        server.close_stdin()
        replies = server.read_all()
        assert sorted(reply["id"] for reply in replies) == [1, 2]
        [child] = [text_of(reply).split()[1] for reply in replies if reply["id"] == 1]
        assert server.wait() == 0
        until(lambda: gone(int(child)))


def test_a_forked_daemon_does_not_hold_the_wire(faulty):
    """a tool forks a daemon that keeps all it inherits: ended, and the client sees the end of the
    output
    """
    with Stdio(faulty) as server:
        pid = int(text_of(server.ask(call("daemon"))))
        try:
            server.close_stdin()
            assert server.process.wait(PATIENCE) == 0
            assert server.read(5) is None
        finally:
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("tool", ["thread", "forever"])
def test_what_never_ends_does_not_hold_up_the_end(faulty, record, tool):
    """a thread or a coroutine of a tool never ends: ended all the same, half a second after stdin,
    with exit code 0
    """
    with Stdio(faulty) as server:
        server.send(call(tool))
        if tool == "thread":
            server.read()
        else:
            until(record)
        server.close_stdin()
        assert server.wait(10) == 0


def test_a_pool_that_never_ends_needs_the_signal_of_the_client(faulty, hurry):
    """a pool of threads of a tool never ends, and Python waits for it: ended by SIGTERM, which our
    client sends two seconds after it has closed stdin
    """
    with Client(faulty) as client:
        pid = int(client.call_tool("pid").text)
        assert client.call_tool("pool").text == "started"
    assert state(pid) == ""
    assert "exit code -15" in client.connection.wire.obituary()


def test_calls_that_end_with_the_interpreter_give_whole_lines_or_none(faulty):
    """calls end in the very moment in which the interpreter does: lost or answered, but never half;
    exit code 0 and no traceback
    """
    servers = [Stdio(faulty) for _ in range(3)]
    with contextlib.ExitStack() as stack:
        for server in servers:
            stack.enter_context(server)
            server.send(*(call("sleep", n, seconds=0.3 + n / 100) for n in range(40)))
            server.close_stdin()
        for server in servers:
            replies = server.read_all()
            assert {reply["id"] for reply in replies} >= {*range(10)}
            assert server.wait() == 0
            unanswered = {f"no answer in time: tools/call, id {n}" for n in range(40)} - {
                f"no answer in time: tools/call, id {reply['id']}" for reply in replies
            }
            assert {*server.stderr.splitlines()} <= unanswered
            assert server.raw == [one for one in server.raw if one.endswith(b"}\n")]


def test_a_tool_that_prints_while_the_interpreter_ends_does_no_harm(faulty, record):
    """a tool prints and prints while the interpreter ends: ended, with exit code 0"""
    servers = [Stdio(faulty) for _ in range(4)]
    with contextlib.ExitStack() as stack:
        for server in servers:
            stack.enter_context(server)
            server.send(call("chatter"))
        until(lambda: len(record()) == 4)
        for server in servers:
            server.close_stdin()
        assert [server.wait() for server in servers] == [0] * 4
