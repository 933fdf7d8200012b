"""The stdio binding: framing, a private wire, slow tools, cancellation, and every way to end."""

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
import types
from pathlib import Path

import pytest
from stubs.terminal import END_OF_INPUT, on_a_terminal
from support import (
    LEGACY,
    META,
    Stdio,
    cancelled,
    initialize,
    legacy,
    modern,
    notification,
    server_file,
    until,
)

from minimcp import Server
from minimcp.stdio import Loop

TOOLS = [sys.executable, str(Path(__file__).parent / "stubs" / "tools_server.py")]


def call(name, id=1, **arguments):
    return modern("tools/call", {"name": name, "arguments": arguments}, id)


def line(message):
    return json.dumps(message, ensure_ascii=False).encode() + b"\n"


def send_bytes(server, data, *messages):
    """Write bytes as they are; `messages` are the requests in them, for the oracle."""
    for message in messages:
        server._note(message)
    server.send_raw(data)


def text_of(reply):
    return reply["result"]["content"][0]["text"]


def ends_quietly(server, code=0):
    """The server ends by itself, with this exit code and nothing to say about it."""
    return (server.wait(), server.stderr) == (code, "")


# Framing


@pytest.mark.req("S-STDIO-01")
def test_two_requests_in_one_write_are_both_answered():
    with Stdio(TOOLS) as server:
        server.send(call("echo", 1, text="one"), call("echo", 2, text="two"))
        replies = {reply["id"]: text_of(reply) for reply in (server.read(), server.read())}
        assert replies == {1: "one", 2: "two"}


@pytest.mark.req("S-STDIO-01")
def test_one_request_in_many_writes_is_answered_once():
    request = call("echo", text="Gerät ✓ 世界")
    data = line(request)
    with Stdio(TOOLS) as server:
        send_bytes(server, data[:7], request)
        for start in range(7, len(data), 7):
            server.send_raw(data[start : start + 7])
        server.close_stdin()
        assert [text_of(reply) for reply in server.read_all()] == ["Gerät ✓ 世界"]


@pytest.mark.req("S-STDIO-02")
@pytest.mark.parametrize("text", ["a\nb", "a\r\nb", "a\rb", "a\u2028b", "a\u2029b\x85c\x1ed"])
def test_a_reply_with_line_breaks_in_it_is_one_line(text):
    with Stdio(TOOLS) as server:
        assert text_of(server.ask(call("echo", text=text))) == text
        server.close_stdin()
        assert server.read() is None
        assert len(server.raw) == 1
        assert server.raw[0].endswith(b"\n")
        assert b"\r" not in server.raw[0]


@pytest.mark.req("S-STDIO-05")
def test_a_hundred_calls_at_once_give_a_hundred_whole_lines():
    texts = {number: f"{number} " * 5000 for number in range(100)}
    with Stdio(TOOLS) as server:
        server.send(*(call("echo", number, text=text) for number, text in texts.items()))
        replies = [server.read() for _ in texts]
        assert {reply["id"]: text_of(reply) for reply in replies} == texts


CHATTER = """
from threading import Barrier
from minimcp import Context, Server, run

server = Server("chatter", version="1.0.0")
together = Barrier(4, timeout=20)


@server.tool
def talk(letter: str, context: Context) -> str:
    together.wait()
    for number in range(10):
        context.progress(number, message=letter * 300_000)
    return letter * 300_000


run(server)
"""


@pytest.mark.req("S-STDIO-05")
def test_long_messages_of_tools_that_talk_at_once_are_whole_lines(tmp_path):
    talks = {one: {"name": "talk", "arguments": {"letter": one}} for one in "abcd"}
    asked = [modern("tools/call", talks[one], one, meta={"progressToken": one}) for one in talks]
    with Stdio(server_file(tmp_path, CHATTER)) as server:
        server.send(*asked)
        said = [server.read() for _ in range(44)]
    texts = {one["id"]: text_of(one) for one in said if "id" in one}
    assert texts == {letter: letter * 300_000 for letter in "abcd"}


@pytest.mark.parametrize("way", ["raise KeyboardInterrupt", "raise SystemExit", "sys.exit(3)"])
def test_a_tool_that_wants_to_end_the_process_is_answered_like_any_that_failed(tmp_path, way):
    """Only Ctrl+C may do that, and it never arrives where tools run."""
    command = server_file(
        tmp_path,
        f"""
        import sys
        from minimcp import Server, run

        server = Server("leaving", version="1.0.0")

        @server.tool
        def leave() -> None:
            {way}

        @server.method("acme/leave")
        def leave_too(params, context):
            {way}

        run(server)
        """,
    )
    with Stdio(command) as server:
        assert server.ask(call("leave"))["result"]["isError"]
        assert server.ask(modern("acme/leave", id=2))["error"]["code"] == -32603
        assert server.ask(modern("tools/list", id=3))["result"]["tools"]
        server.close_stdin()
        assert server.wait() == 0


@pytest.mark.req("S-STDIO-05")
def test_a_reply_leaves_at_once_and_does_not_wait_for_the_next_request():
    with Stdio(TOOLS) as server:
        for number in range(20):
            assert text_of(server.ask(call("echo", number, text="now"))) == "now"


BAD_LINES = [
    (b"garbage\n", -32700),
    (b'{"jsonrpc":"2.0","id":1,\n', -32700),
    (b'{"jsonrpc":"2.0","id":1,"method":"x\xff"}\n', -32700),
    (b'{"jsonrpc":"2.0","id":' + b"9" * 5000 + b',"method":"ping"}\n', -32700),
    (b"[" * 100_000 + b"\n", -32700),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","x":NaN}\n', -32700),
    (b"[]\n", -32600),
    (b"5\n", -32600),
    (b"null\n", -32600),
]


@pytest.mark.req("S-STDIO-08")
@pytest.mark.parametrize(("bad", "code"), BAD_LINES)
def test_a_bad_line_is_answered_and_the_next_request_is_served(bad, code):
    with Stdio(TOOLS) as server:
        server.send_raw(bad)
        reply = server.read()
        assert (reply["error"]["code"], "id" in reply) == (code, False)
        assert text_of(server.ask(call("echo", text="still here"))) == "still here"


IGNORED = [b"\n", b"\r\n", b"   \n", b"\t\r\n", b"\n\n\n"]


@pytest.mark.req("S-STDIO-09")
@pytest.mark.parametrize("blank", IGNORED)
def test_a_blank_line_gets_no_answer(blank):
    with Stdio(TOOLS) as server:
        request = call("echo", text="a")
        send_bytes(server, blank + line(request) + blank, request)
        server.close_stdin()
        assert [text_of(reply) for reply in server.read_all()] == ["a"]


@pytest.mark.req("S-STDIO-09")
def test_lines_may_end_in_carriage_return_and_newline():
    with Stdio(TOOLS) as server:
        for number in (1, 2):
            request = call("echo", number, text="a")
            send_bytes(server, line(request).replace(b"\n", b"\r\n"), request)
        server.close_stdin()
        assert sorted(reply["id"] for reply in server.read_all()) == [1, 2]


@pytest.mark.req("S-STDIO-09")
def test_a_last_line_without_a_newline_is_served():
    with Stdio(TOOLS) as server:
        request = call("echo", text="last")
        send_bytes(server, line(request).rstrip(), request)
        server.close_stdin()
        assert [text_of(reply) for reply in server.read_all()] == ["last"]
        assert ends_quietly(server)


def test_a_byte_order_mark_before_the_first_line_is_skipped():
    with Stdio(TOOLS) as server:
        send_bytes(server, b"\xef\xbb\xbf" + line(initialize()), initialize())
        assert server.read()["result"]["protocolVersion"] == LEGACY


LOCALES = [
    {"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
    {"LC_ALL": "C", "PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
]


@pytest.mark.req("S-STDIO-10", "S-ENV-07")
@pytest.mark.parametrize("env", LOCALES)
def test_the_wire_is_utf_8_whatever_the_locale(env):
    with Stdio(TOOLS, env=env) as server:
        request = call("echo", text="Gerät ✓ 世界 😀")
        send_bytes(server, line(request), request)
        assert text_of(server.read()) == "Gerät ✓ 世界 😀"


@pytest.mark.req("S-STDIO-12")
def test_a_request_carries_its_version_and_capabilities_itself():
    with Stdio(TOOLS) as server:
        reply = server.ask(
            {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": META}}
        )
        assert [tool["name"] for tool in reply["result"]["tools"]] == [
            "echo",
            "add",
            "rep",
            "sleep",
            "boom",
        ]


@pytest.mark.req("S-STDIO-12")
def test_the_capabilities_of_a_handshake_are_not_those_of_a_request_with_its_own(tmp_path):
    command = server_file(
        tmp_path,
        """
        from minimcp import Context, Server, run
        server = Server("needy")

        @server.tool
        def need(context: Context) -> str:
            context.require("sampling")
            return "fine"

        run(server)
        """,
    )
    with Stdio(command) as server:
        server.ask(initialize(capabilities={"sampling": {}}))
        asked = modern("tools/call", {"name": "need"}, capabilities={"sampling": {}})
        assert text_of(server.ask(asked)) == "fine"
        assert server.ask(call("need", 2))["error"]["code"] == -32021


@pytest.mark.req("S-STDIO-13")
@pytest.mark.parametrize("megabytes", [4, 16])
def test_a_large_message_works_both_ways(megabytes):
    text = "0123456789abcde\n" * (megabytes << 16)
    with Stdio(TOOLS) as server:
        assert text_of(server.ask(call("echo", text=text))) == text


# The private wire


POLLUTER = """
    import ctypes, logging, os, subprocess, sys
    logging.basicConfig(stream=sys.stdout, level="INFO")
    early = sys.stdout
    from minimcp import Server, run
    server = Server("polluter")

    @server.tool
    def pollute(how: str) -> str:
        WAYS[how]()
        return "done"

    WAYS = {
        "print": lambda: print("noise"),
        "early print": lambda: print("noise", file=early, flush=True),
        "descriptor": lambda: os.write(1, b"noise" + bytes([10])),
        "child": lambda: subprocess.run(["echo", "noise"]),
        "shell": lambda: os.system("echo noise"),
        "C": lambda: (ctypes.CDLL(None).puts(b"noise"), ctypes.CDLL(None).fflush(None)),
        "logging": lambda: logging.info("noise"),
    }
    run(server)
"""
WAYS = ["print", "early print", "descriptor", "child", "shell", "C", "logging"]


@pytest.mark.req("S-STDIO-03")
@pytest.mark.parametrize("way", WAYS)
def test_no_output_of_a_tool_reaches_the_wire(tmp_path, way):
    with Stdio(server_file(tmp_path, POLLUTER)) as server:
        assert text_of(server.ask(call("pollute", how=way))) == "done"
        server.close_stdin()
        assert server.read() is None
        assert server.wait() == 0
        assert server.stderr.count("noise") == 1


def test_a_print_in_a_tool_is_seen_while_the_server_runs(tmp_path):
    with Stdio(server_file(tmp_path, POLLUTER), env={"PYTHONUNBUFFERED": ""}) as server:
        server.ask(call("pollute", how="print"))
        until(lambda: "noise" in server.stderr)
        assert server.process.poll() is None


def test_a_tool_reads_an_empty_standard_input(tmp_path):
    command = server_file(
        tmp_path,
        """
        import os, subprocess, sys
        from minimcp import Server, run
        server = Server("reader")

        @server.tool
        def read(how: str) -> str:
            if how == "child":
                return subprocess.run(["cat"], capture_output=True, text=True).stdout
            return os.read(0, 100).decode() if how == "descriptor" else sys.stdin.read()

        run(server)
        """,
    )
    with Stdio(command) as server:
        for number, how in enumerate(["child", "descriptor", "sys.stdin"]):
            assert text_of(server.ask(call("read", number, how=how))) == ""


def test_a_child_that_outlives_the_server_does_not_hold_the_wire(tmp_path):
    command = server_file(
        tmp_path,
        """
        import subprocess, sys
        from minimcp import Server, run
        server = Server("parent")

        @server.tool
        def spawn() -> int:
            code = "import time; time.sleep(60)"
            child = subprocess.Popen([sys.executable, "-c", code], close_fds=False)
            return child.pid

        run(server)
        """,
    )
    with Stdio(command) as server:
        child = int(text_of(server.ask(call("spawn"))))
        try:
            server.close_stdin()
            assert server.read() is None
        finally:
            os.kill(child, signal.SIGKILL)


def test_a_forked_child_of_a_tool_dies_of_sigterm_as_it_would_elsewhere(tmp_path):
    command = server_file(
        tmp_path,
        """
        import multiprocessing, time
        from minimcp import Server, run
        server = Server("parent")

        @server.tool
        def fork() -> int:
            context = multiprocessing.get_context("fork")
            started = context.Event()
            child = context.Process(target=lambda: (started.set(), time.sleep(600)))
            child.start()
            started.wait()
            child.terminate()
            child.join()
            return child.exitcode

        run(server)
        """,
    )
    with Stdio(command) as server:
        assert text_of(server.ask(call("fork"))) == str(-signal.SIGTERM)


@pytest.mark.req("S-STDIO-04")
def test_the_trace_of_an_exception_goes_to_stderr_only():
    with Stdio(TOOLS) as server:
        reply = server.ask(call("boom"))
        assert reply["result"]["isError"] is True
        assert "Traceback" not in json.dumps(reply)
        server.close_stdin()
        assert server.wait() == 0
        assert "Traceback" in server.stderr
        assert "ValueError: no such city: Atlantis" in server.stderr


@pytest.mark.req("S-STDIO-04")
@pytest.mark.parametrize(
    ("locale", "said"), [("C.UTF-8", "größe ✓".encode()), ("POSIX", rb"gr\xf6\xdfe \u2713")]
)
def test_what_goes_to_stderr_is_utf_8_whatever_the_locale(tmp_path, locale, said):
    command = server_file(
        tmp_path,
        """
        from minimcp import Server, run
        server = Server("failing")

        @server.tool
        def fail() -> str:
            print("größe ✓")
            raise ValueError("größe ✓")

        run(server)
        """,
    )
    env = {"LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    wanted = {"capture_output": True, "env": os.environ | env, "timeout": 60}
    done = subprocess.run(command, input=line(call("fail")), **wanted)
    assert {said, b"ValueError: " + said} <= {*done.stderr.splitlines()}


@pytest.mark.req("S-STDIO-07")
def test_a_server_writes_replies_and_notifications_but_no_requests(tmp_path):
    command = server_file(
        tmp_path,
        """
        from minimcp import Context, Server, run
        server = Server("talker")

        @server.tool
        def talk(context: Context) -> str:
            context.progress(1, 2, "half")
            context.progress(2, 2)
            return "done"

        run(server)
        """,
    )
    with Stdio(command) as server:
        server.ask(modern("tools/call", {"name": "talk"}, meta={"progressToken": "t"}))
        server.ask(modern("server/discover", id=2))
        shapes = [("method" in message, "id" in message) for message in server.received]
        assert shapes == [(True, False), (True, False), (False, True), (False, True)]


# Slow tools and cancellation


GATE = """
    import threading
    from minimcp import Context, Server, run
    server = Server("gate")
    gate = threading.Event()

    @server.tool
    def wait(context: Context) -> str:
        print("waiting")
        while not (context.cancelled or gate.wait(0.01)):
            pass
        print("cancelled" if context.cancelled else "released")
        return "released"

    @server.tool
    def release() -> str:
        gate.set()
        return "open"

    run(server)
"""


def waits(server, count):
    """`count` calls of `wait` are running."""
    return until(lambda: server.stderr.count("waiting") == count)


def test_slow_tools_hold_up_no_other_call(tmp_path):
    with Stdio(server_file(tmp_path, GATE)) as server:
        server.send(*(call("wait", number) for number in range(50)))
        assert text_of(server.ask(call("release", "last"))) == "open"
        while len(server.received) < 51:  # the gate is open: they come in any order
            server.read()
        assert {reply["id"] for reply in server.received} == {*range(50), "last"}


@pytest.mark.parametrize("id", [7, "7", 0, ""])
def test_a_cancelled_call_stops_and_is_never_answered(tmp_path, id):
    with Stdio(server_file(tmp_path, GATE)) as server:
        server.send(call("wait", id))
        waits(server, 1)
        server.send(cancelled(id, "no longer needed"))
        until(lambda: "cancelled" in server.stderr)
        server.ask(call("release", "last"))
        server.close_stdin()
        assert server.read_all() == []
        assert [reply["id"] for reply in server.received] == ["last"]


def test_cancelling_another_id_leaves_a_call_alone(tmp_path):
    with Stdio(server_file(tmp_path, GATE)) as server:
        server.send(call("wait", 1))
        waits(server, 1)
        server.send(*(cancelled(id) for id in ("1", True, 1.5, None, {}, [1], 2)))
        server.send(notification("notifications/cancelled"), call("release", 3))
        assert {server.read()["id"], server.read()["id"]} == {1, 3}


# The end


def test_every_request_read_before_the_end_of_input_is_answered():
    with Stdio(TOOLS) as server:
        server.send(call("sleep", 1, seconds=0.2), call("echo", 2, text="a"))
        server.close_stdin()
        assert sorted(reply["id"] for reply in server.read_all()) == [1, 2]
        assert ends_quietly(server)


@pytest.mark.req("S-STDIO-06")
def test_the_end_of_input_ends_an_idle_server():
    with Stdio(TOOLS) as server:
        server.ask(call("echo", text="a"))
        server.close_stdin()
        assert server.wait(5) == 0
        assert server.stderr == ""


@pytest.mark.req("S-STDIO-06")
def test_the_end_of_input_ends_a_server_with_a_call_that_never_returns():
    with Stdio(TOOLS) as server:
        server.send(call("sleep", seconds=600))
        server.close_stdin()
        assert server.wait(5) == 0
        assert server.stderr == "no answer in time: tools/call, id 1\n"


@pytest.mark.req("S-STDIO-06")
def test_the_end_of_input_ends_a_server_with_an_open_subscription():
    with Stdio(TOOLS) as server:
        wish = {"notifications": {"toolsListChanged": True}}
        server.send(modern("subscriptions/listen", wish, "news"))
        assert server.read()["method"] == "notifications/subscriptions/acknowledged"
        server.close_stdin()
        assert server.wait(5) == 0
        assert server.stderr == ""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("busy", [False, True])
def test_a_signal_ends_the_server_quietly(number, code, busy):
    with Stdio(TOOLS) as server:
        server.ask(call("echo", text="a"))
        if busy:
            server.send(call("sleep", 1, seconds=600))
            server.ask(call("echo", 2, text="a"))
        server.process.send_signal(number)
        assert server.wait(10) in (code, -number)
        assert server.stderr == ""


@pytest.mark.req("S-STDIO-11")
def test_a_client_that_closes_the_servers_output_ends_it_quietly():
    with subprocess.Popen(
        TOOLS, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdin.write(line(call("echo", text="a")))
        process.stdin.flush()
        process.stdout.readline()
        process.stdout.close()
        for number in range(100):
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(line(call("echo", number, text="a")))
                process.stdin.flush()
        assert process.wait(10) == 0
        assert process.stderr.read() == b""
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()


@pytest.mark.req("S-STDIO-11")
def test_a_client_that_is_gone_when_a_slow_call_ends_ends_the_server_quietly():
    with subprocess.Popen(
        TOOLS, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdin.write(line(call("sleep", seconds=0.3)))
        process.stdin.flush()
        process.stdout.close()
        assert process.wait(10) == 0
        assert process.stderr.read() == b""


def test_a_server_that_cannot_read_on_says_why_and_ends(tmp_path):
    command = server_file(
        tmp_path,
        """
        import minimcp, minimcp.stdio
        def read(wire):
            raise MemoryError("a line of a terabyte")
        minimcp.stdio.Wire.read = read
        minimcp.run(minimcp.Server("full"))
        """,
    )
    with Stdio(command) as server:
        assert server.wait() == 1
        assert "MemoryError: a line of a terabyte" in server.stderr


def test_a_tool_that_prints_in_a_loop_does_not_disturb_the_end(tmp_path):
    command = server_file(
        tmp_path,
        """
        from minimcp import Server, run
        server = Server("chatter")

        @server.tool
        def chatter() -> str:
            while True:
                print("and another thing", flush=True)

        run(server)
        """,
    )
    with Stdio(command) as server:
        server.send(call("chatter"))
        until(lambda: "and another thing" in server.stderr)
        server.process.send_signal(signal.SIGTERM)
        assert server.wait(10) in (143, -signal.SIGTERM)
        assert set(server.stderr.splitlines()[:-1]) == {"and another thing"}


# Starting


def test_a_person_who_starts_a_server_in_a_terminal_reads_one_line_about_it():
    with on_a_terminal(TOOLS) as (server, type_in):
        explanation = server.stderr.readline().decode()
        assert [word for word in ("stdin", "Ctrl+C") if word not in explanation] == []
        type_in(END_OF_INPUT)
        assert server.wait(10) == 0
        assert (server.stdout.read(), server.stderr.read()) == (b"", b"")


def test_a_server_that_is_piped_says_nothing_on_its_own():
    with Stdio(TOOLS) as server:
        server.close_stdin()
        assert server.read() is None
        assert ends_quietly(server)


@pytest.mark.parametrize("closed", ["<&-", ">&-", "<&- >&-"])
def test_a_server_without_a_wire_says_so_in_one_line(closed):
    command = ["sh", "-c", f'exec "$@" {closed}', "sh", *TOOLS]
    done = subprocess.run(command, input="", capture_output=True, text=True, timeout=60)
    said = "cannot serve: stdin and stdout have to be open\n"
    assert (done.returncode, done.stderr) == (1, said)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--log", "/no/such/folder/x"], "No such file or directory: '/no/such/folder/x'"),
        (["--http", "0", "--token-file", "/no/such"], "No such file or directory: '/no/such'"),
        (["--http", "65536"], "port must be 0-65535"),
    ],
)
def test_a_server_that_cannot_start_says_why_without_a_traceback(arguments, said):
    done = subprocess.run([*TOOLS, *arguments], capture_output=True, text=True, timeout=60)
    last = done.stderr.splitlines()[-1]
    assert (done.returncode, last.startswith("cannot serve: "), said in last) == (1, True, True)
    assert "Traceback" not in done.stderr


def test_serve_is_what_run_does_without_a_command_line(tmp_path):
    command = server_file(
        tmp_path,
        """
        import minimcp, minimcp.stdio
        server = minimcp.Server("explicit")
        server.tool(lambda: "hello", name="hello", description="Greet.")
        minimcp.stdio.serve(server)
        """,
    )
    with Stdio([*command, "--http"]) as server:
        assert text_of(server.ask(call("hello"))) == "hello"


def test_a_log_file_gets_every_message_with_its_direction(tmp_path):
    log = tmp_path / "wire.log"
    with Stdio([*TOOLS, "--log", str(log)]) as server:
        server.ask(call("echo", 41, text="logged"))
        server.close_stdin()
        assert server.wait() == 0
    recorded = log.read_text(encoding="utf-8").splitlines()
    request, reply = [entry for entry in recorded if "logged" in entry]
    assert '"method": "tools/call"' in request
    assert server.raw[0].decode().strip() in reply
    assert request.split("{")[0] != reply.split("{")[0]


def test_verbose_writes_every_message_to_stderr():
    with Stdio([*TOOLS, "--verbose"]) as server:
        server.ask(call("echo", text="logged"))
        server.close_stdin()
        assert server.wait() == 0
        assert len([entry for entry in server.stderr.splitlines() if "logged" in entry]) == 2
        assert len(server.raw) == 1


def test_both_eras_are_served_on_one_process():
    with Stdio(TOOLS) as server:
        server.ask(initialize())
        server.send(notification("notifications/initialized"))
        old = server.ask(legacy("tools/call", {"name": "add", "arguments": {"a": 2, "b": 40}}))
        new = server.ask(call("add", 2, a=2, b=40))
        assert (text_of(old), text_of(new)) == ("42", "42")
        assert ("resultType" in old["result"], "resultType" in new["result"]) == (False, True)


def test_a_leader_that_cannot_be_replaced_leads_on(monkeypatch):
    """A flood of slow calls takes the last thread; that must not be the end."""
    lines = queue.SimpleQueue()
    loop = Loop(Server("demo"), types.SimpleNamespace(read=lines.get, write=lines.put))
    (leader,) = loop.threads

    def fail(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", fail)
    loop.appoint()
    assert loop.threads == [leader]
    lines.put("")
    leader.join(10)
    assert loop.ended


def test_who_watches_does_not_sleep_through_the_end():
    """The end may come after the watch has last looked, and before it sleeps."""
    loop = Loop.__new__(Loop)
    loop.ended, loop.awake = False, threading.Event()

    def locked():
        loop.ended = True  # by the thread that reads, which says so
        loop.awake.set()
        return True

    loop.reading = types.SimpleNamespace(locked=locked)
    loop.replying = threading.Lock()
    watching = threading.Thread(target=loop.watch, daemon=True)
    watching.start()
    watching.join(10)
    assert not watching.is_alive()


def test_a_system_that_cannot_fork_is_served_too(tmp_path):
    command = server_file(
        tmp_path,
        """
        import os
        del os.register_at_fork  # as on Windows
        from minimcp import Server, run

        server = Server("windows")
        server.tool(lambda: "here", name="where")
        run(server)
        """,
    )
    with Stdio(command) as server:
        assert text_of(server.ask(call("where"))) == "here"
        server.close_stdin()
        assert server.wait() == 0


def test_a_call_that_is_answered_at_the_last_moment_is_not_called_unanswered(capsys):
    taken = {"method": "tools/call", "id": 2, "close": lambda: True}
    answered = {"method": "tools/call", "id": 1, "close": lambda: False}
    loop = Loop.__new__(Loop)
    loop.server, loop.threads = Server("demo"), []
    loop.peer = types.SimpleNamespace(
        in_flight={1: types.SimpleNamespace(**answered), 2: types.SimpleNamespace(**taken)}
    )
    loop.drain(0)
    assert capsys.readouterr().err == "no answer in time: tools/call, id 2\n"


def test_who_watches_sleeps_while_nothing_happens():
    class Awake:
        def clear(self):
            assert loop.ended, "it looks again and again"

        def wait(self):
            loop.ended = True

        def is_set(self):
            return True

    loop = Loop.__new__(Loop)
    loop.ended, loop.awake, loop.reading = False, Awake(), threading.Lock()
    loop.replying = threading.Lock()
    with loop.reading:
        loop.watch()
    assert loop.ended


TALKATIVE = """
    from minimcp import Context, Server, run
    server = Server("talkative")

    @server.tool
    def talk(context: Context) -> str:
        done = 0
        while not context.cancelled:
            done += 1
            context.progress(done, message="x" * 100)
        print("stopped")
        return "said it all"

    @server.tool
    def quick() -> str:
        return "here"

    run(server)
"""
TALK = modern("tools/call", {"name": "talk"}, 1, meta={"progressToken": "t"})


@pytest.mark.req("S-ENV-15", "S-CANC-02")
def test_a_tool_that_talks_faster_than_the_client_reads_can_be_cancelled(tmp_path):
    with Stdio(server_file(tmp_path, TALKATIVE)) as server:
        server.send(TALK)
        for _ in range(300):
            server.read()
        server.send(cancelled(1), call("quick", 2))
        said = 0
        while server.read().get("id") != 2:
            said += 1
            time.sleep(0.00002)  # the client has something to do as well
            assert said < 200_000
        until(lambda: "stopped" in server.stderr)
        assert server.ask(call("quick", 3))["id"] == 3


@pytest.mark.req("S-STDIO-11")
def test_a_tool_that_talks_to_a_client_that_is_gone_is_cancelled_and_nothing_is_said(tmp_path):
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(server_file(tmp_path, TALKATIVE), **pipes) as server:
        server.stdin.write(line(TALK) + line(call("quick", 2)))
        server.stdin.flush()
        while json.loads(server.stdout.readline()).get("id") != 2:
            pass
        time.sleep(0.2)  # nobody reads, and who watches sleeps
        server.stdout.close()
        assert server.wait(10) == 0
        assert server.stderr.read() == b"stopped\n"


@pytest.mark.req("S-STDIO-06")
def test_the_end_of_input_ends_a_server_whose_tool_talks_on(tmp_path):
    with Stdio(server_file(tmp_path, TALKATIVE)) as server:
        server.send(TALK)
        server.read()
        server.close_stdin()
        server.read_all()
        assert server.wait() == 0


@pytest.mark.req("S-STDIO-06")
def test_the_end_of_input_ends_a_server_that_talks_to_a_client_that_does_not_read(tmp_path):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(server_file(tmp_path, TALKATIVE), **pipes) as server:
        server.stdin.write(line(TALK))
        server.stdin.flush()
        server.stdout.read(1)
        time.sleep(0.5)  # the pipe is full by now
        server.stdin.close()
        try:
            assert server.wait(20) == 0
        finally:
            server.kill()


def test_only_a_crowd_waits_for_a_client_that_does_not_read():
    lines = queue.SimpleQueue()
    wire = types.SimpleNamespace(read=lines.get, write=lines.put, writing=threading.Lock())
    loop = Loop(Server("demo"), wire)
    (leader,) = loop.threads
    loop.threads = [leader] * 40
    with wire.writing:
        loop.appoint()
    assert loop.threads == [leader] * 40
    lines.put("")
    leader.join(10)
