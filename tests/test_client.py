"""The client: eras, calls, timeouts, threads, servers that misbehave, the command line."""

import asyncio
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest
from stubs.fake import fake_server
from support import until

from minimcp import Client, Context, ProtocolError, Server, child
from minimcp.connection import Connection

TOOLS = [sys.executable, str(Path(__file__).parent / "stubs" / "tools_server.py")]


LOCAL = (ProtocolError, ConnectionError, ValueError)  # a peer that cannot be understood


class Recorded:
    """A fake server that writes down every line it is sent."""

    def __init__(self, tmp_path, source, *arguments):
        self.file = tmp_path / "sent.jsonl"
        self.file.touch()
        self.command = fake_server(source, *arguments)
        self.env = {"FAKE_LOG": str(self.file)}

    def client(self, **options):
        return Client(self.command, env=self.env, **options)

    def sent(self):
        return [json.loads(line) for line in self.file.read_bytes().splitlines()]

    def methods(self):
        return [message.get("method") for message in self.sent()]


def ended(pid):
    """Whether a process has ended and nothing of it is left, not even its exit code."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def quickly(started, seconds=10):
    return time.monotonic() - started < seconds


# Targets


def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


def in_process(*functions):
    server = Server("in-process", version="1.2.3")
    for function in functions:
        server.tool(function)
    return server


@pytest.mark.parametrize("target", [in_process(add), TOOLS], ids=["object", "command"])
@pytest.mark.parametrize(
    ("era", "version", "spoken"),
    [
        ("auto", "2026-07-28", "modern"),
        ("modern", "2026-07-28", "modern"),
        ("legacy", "2025-11-25", "legacy"),
    ],
)
def test_a_client_lists_and_calls_in_every_era(target, era, version, spoken):
    with Client(target, era=era) as client:
        assert (client.era, client.protocol_version) == (spoken, version)
        assert client.server_info["name"] in ("in-process", "fixture")
        assert "add" in [tool["name"] for tool in client.list_tools()]
        result = client.call_tool("add", {"a": 2, "b": 40})
        assert (result.text, result.structured, result.is_error) == (
            "42",
            legacy_or(42, spoken),
            False,
        )
        assert result.content == [{"type": "text", "text": "42"}]


def legacy_or(value, era):
    """Structured content that is no object exists in the modern era only."""
    return None if era == "legacy" else value


def test_a_tool_error_is_a_result_and_a_protocol_error_is_raised():
    with Client(TOOLS) as client:
        result = client.call_tool("boom", {})
        assert (result.is_error, result.text) == (True, "ValueError: no such city: Atlantis")
        with pytest.raises(ProtocolError, match="nope") as caught:
            client.call_tool("nope", {})
        assert caught.value.code == -32602


def test_an_error_of_the_server_keeps_its_code_its_message_and_its_data():
    source = """
        for request in requests():
            fail(request, -32002, "Resource not found", data={"uri": "x:y"})
    """
    with Client(fake_server(source)) as client:
        with pytest.raises(ProtocolError) as caught:
            client.request("resources/read", {"uri": "x:y"})
        error = caught.value
        assert (error.code, error.message, error.data) == (
            -32002,
            "Resource not found",
            {"uri": "x:y"},
        )


def test_a_server_and_its_client_in_one_process_keep_their_connections_apart():
    server = in_process(add)
    with Client(server, era="legacy") as old, Client(server) as new:
        assert (old.era, new.era) == ("legacy", "modern")
        assert (
            old.call_tool("add", {"a": 1, "b": 1}).text,
            new.call_tool("add", {"a": 2, "b": 2}).text,
        ) == ("2", "4")


@pytest.mark.req("C-STDIO-14")
@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_a_server_is_sent_nothing_but_messages(tmp_path, era):
    source = """
        for request in requests():
            send({"jsonrpc": "2.0", "id": 5, "method": "ping"})
            say(request, "done")
    """
    fake = Recorded(tmp_path, source)
    with fake.client(era=era) as client:
        client.call_tool("any", {"text": "a\nb"})
        client.call_tool("again", {})
    assert [message["jsonrpc"] for message in fake.sent()] == ["2.0"] * len(fake.sent())
    answers = [message for message in fake.sent() if "method" not in message]
    pong = {"jsonrpc": "2.0", "id": 5, "result": {}}
    assert answers == ([] if era == "modern" else [pong, pong])


def test_a_server_may_ask_as_often_as_it_likes(tmp_path):
    """Only so many questions are answered at once, but one after the other there is no limit."""
    source = """
        for request in requests():
            for number in range(100):
                send({"jsonrpc": "2.0", "id": number, "method": "ping"})
                next(message for message in messages() if message.get("id") == number)
            say(request, "done")
    """
    fake = Recorded(tmp_path, source)
    with fake.client(era="legacy", timeout=20) as client:
        assert client.call_tool("any", {}).text == "done"
    pongs = [message["id"] for message in fake.sent() if "method" not in message]
    assert pongs == [*range(100)]


# Which era


@pytest.mark.req("C-STDIO-18", "C-STDIO-23")
@pytest.mark.parametrize("era", ["auto", "modern"])
def test_the_first_line_is_a_probe_at_the_newest_version(tmp_path, era):
    fake = Recorded(tmp_path, "for request in requests(): say(request, 'done')")
    with fake.client(era=era) as client:
        client.call_tool("any", {})
        client.call_tool("any", {})
    assert fake.methods() == ["server/discover", "tools/call", "tools/call"]
    assert (
        fake.sent()[0]["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
    )


PROBE_ANSWERS = {
    "method not found": "fail(request, -32601, 'Method not found')",
    "invalid params": "fail(request, -32602, 'Invalid params')",
    "own code": "fail(request, -32000, 'Not initialized')",
    "no id": "fail({'id': None}, -32000, 'Bad request')",
    "missing id": "send({'jsonrpc': '2.0', 'error': {'code': -32600, 'message': 'Bad'}})",
    "empty result": "reply(request)",
    "old versions": "reply(request, **discovery(['2025-11-25']))",
    "silence": "pass",
}


@pytest.mark.req("C-STDIO-19")
@pytest.mark.parametrize("answer", PROBE_ANSWERS.values(), ids=PROBE_ANSWERS)
def test_any_answer_that_is_not_modern_leads_to_initialize(tmp_path, answer):
    source = f"""
        for request in requests(discover=False):
            if request["method"] == "server/discover":
                {answer}
            else:
                say(request, "done")
    """
    fake = Recorded(tmp_path, source)
    started = time.monotonic()
    with fake.client(timeout=60, probe_timeout=0.5) as client:
        assert (client.era, client.protocol_version) == ("legacy", "2025-11-25")
        assert client.call_tool("any", {}).text == "done"
    assert quickly(started)
    assert [m for m in fake.methods() if m != "notifications/cancelled"] == [
        "server/discover",
        "initialize",
        "notifications/initialized",
        "tools/call",
    ]


@pytest.mark.req("C-STDIO-19")
def test_a_modern_client_says_so_when_the_server_is_not(tmp_path):
    fake = Recorded(tmp_path, "for request in legacy_requests(): say(request, 'done')")
    with pytest.raises((ProtocolError, ConnectionError)), fake.client(era="modern"):
        pass
    assert set(fake.methods()) == {"server/discover"}


@pytest.mark.req("C-STDIO-20")
def test_a_refused_version_is_tried_again_and_never_answered_with_initialize(tmp_path):
    source = """
        count = 0
        for request in requests(discover=False):
            count += 1
            if count == 1:
                data = {"supported": ["2026-07-28"], "requested": "2026-07-28"}
                fail(request, -32022, "Unsupported protocol version", data=data)
            elif request["method"] == "server/discover":
                reply(request, **discovery())
            else:
                say(request, "done")
    """
    fake = Recorded(tmp_path, source)
    with fake.client() as client:
        assert client.era == "modern"
        assert client.call_tool("any", {}).text == "done"
    assert "initialize" not in fake.methods()


@pytest.mark.req("C-STDIO-20")
@pytest.mark.parametrize("code", [-32020, -32021, -32022])
def test_a_modern_error_is_told_and_never_answered_with_initialize(tmp_path, code):
    source = f"""
        for request in requests(discover=False):
            data = {{"supported": ["2030-01-01"], "requested": "2026-07-28"}}
            fail(request, {code}, "modern complaint", data=data)
    """
    fake = Recorded(tmp_path, source)
    with pytest.raises((ProtocolError, ConnectionError)) as caught, fake.client():
        pass
    assert "modern complaint" in str(caught.value) or "2030-01-01" in str(caught.value)
    assert "initialize" not in fake.methods()


@pytest.mark.req("C-STDIO-21")
def test_a_late_answer_to_the_probe_is_ignored(tmp_path):
    source = """
        probe = None
        for request in requests(discover=False):
            if request["method"] == "server/discover":
                probe = request
            else:
                reply(probe, **discovery())
                say(request, "done")
    """
    fake = Recorded(tmp_path, source)
    with fake.client(timeout=60, probe_timeout=0.2) as client:
        assert client.era == "legacy"
        assert client.call_tool("any", {}).text == "done"
        assert client.call_tool("any", {}).text == "done"
        assert client.era == "legacy"


@pytest.mark.req("C-STDIO-24")
def test_a_legacy_server_gets_answers_to_its_requests(tmp_path):
    source = """
        asked = ["ping", "foo/bar", "elicitation/create", "sampling/createMessage", "roots/list"]
        for request in requests():
            for method in asked:
                params = {"message": "Who?"}
                send({"jsonrpc": "2.0", "id": method, "method": method, "params": params})
            say(request, "done")
    """
    answers = {
        "elicitation/create": lambda params: {"said": params["message"]},
        "sampling/createMessage": lambda params: {"model": "m"},
        "roots/list": lambda params: {"roots": []},
    }
    fake = Recorded(tmp_path, source)
    with fake.client(era="legacy", on_input=answers) as client:
        client.call_tool("any", {})
        until(lambda: len([m for m in fake.sent() if "method" not in m]) == 5)
    handshake = next(m for m in fake.sent() if m["method"] == "initialize")
    assert set(handshake["params"]["capabilities"]) == {"elicitation", "sampling", "roots"}
    got = {m["id"]: m for m in fake.sent() if "method" not in m}
    assert got.pop("foo/bar")["error"]["code"] == -32601
    assert {method: m["result"] for method, m in got.items()} == {
        "ping": {},
        "elicitation/create": {"said": "Who?"},
        "sampling/createMessage": {"model": "m"},
        "roots/list": {"roots": []},
    }


@pytest.mark.req("C-STDIO-24")
@pytest.mark.parametrize("method", ["elicitation/create", "sampling/createMessage", "roots/list"])
def test_what_nobody_answers_is_an_unknown_method_to_a_legacy_server(tmp_path, method):
    source = f"""
        for request in requests():
            send({{"jsonrpc": "2.0", "id": "s", "method": "{method}", "params": {{}}}})
            say(request, "done")
    """
    fake = Recorded(tmp_path, source)
    with fake.client(era="legacy") as client:
        client.call_tool("any", {})
        (answer,) = until(lambda: [m for m in fake.sent() if "method" not in m])
    assert (answer["id"], answer["error"]["code"]) == ("s", -32601)


def test_an_answer_that_fails_is_an_error_for_the_server_and_not_the_end(tmp_path):
    source = """
        for request in requests():
            send({"jsonrpc": "2.0", "id": "s", "method": "roots/list"})
            say(request, "done")
    """
    fake = Recorded(tmp_path, source)
    with fake.client(era="legacy", on_input={"roots/list": lambda params: 1 / 0}) as client:
        assert client.call_tool("any", {}).text == "done"
        until(lambda: any("method" not in m for m in fake.sent()))
        assert client.call_tool("any", {}).text == "done"
    assert next(m for m in fake.sent() if "method" not in m)["error"]["code"] == -32603


# Timeouts


SILENT = """
    for request in requests():
        if request["params"].get("name") == "loud":
            say(request, "fine")
"""
WAITS = {
    "call_tool": lambda client: client.call_tool("silent", {}, timeout=0.2),
    "list_tools": lambda client: client.list_tools(timeout=0.2),
    "request": lambda client: client.request("resources/list", timeout=0.2),
}


@pytest.mark.req("C-CLI-01")
@pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS)
def test_a_timeout_is_set_for_one_call(wait):
    with Client(fake_server(SILENT)) as client:
        started = time.monotonic()
        with pytest.raises(TimeoutError, match=r"0\.2"):
            wait(client)
        assert quickly(started)
        assert client.call_tool("loud", {}).text == "fine"


@pytest.mark.req("C-CLI-01")
def test_a_timeout_is_set_for_all_calls():
    with Client(fake_server(SILENT), timeout=0.5) as client:
        with pytest.raises(TimeoutError):
            client.call_tool("silent", {})
        with pytest.raises(TimeoutError):
            client.request("tools/call", {"name": "silent"})


@pytest.mark.req("C-CLI-02")
@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_a_call_that_times_out_is_cancelled_once(tmp_path, era):
    fake = Recorded(tmp_path, SILENT)
    with fake.client(era=era) as client:
        with pytest.raises(TimeoutError):
            client.call_tool("silent", {}, timeout=0.2)
        client.call_tool("loud", {})
    (silent,) = [m["id"] for m in fake.sent() if m.get("params", {}).get("name") == "silent"]
    cancels = [
        m["params"]["requestId"] for m in fake.sent() if m["method"] == "notifications/cancelled"
    ]
    assert cancels == [silent]


@pytest.mark.req("C-CLI-02")
def test_an_answer_after_the_timeout_is_dropped():
    source = """
        late = None
        for request in requests():
            if request["params"]["name"] == "late":
                late = request
            else:
                say(late, "too late")
                say(request, "in time")
    """
    with Client(fake_server(source)) as client:
        with pytest.raises(TimeoutError):
            client.call_tool("late", {}, timeout=0.2)
        assert client.connection.waiting == {}  # nothing is kept of it
        assert client.call_tool("next", {}).text == "in time"


def test_a_timeout_cancels_the_tool_in_the_same_process_too():
    stopped = threading.Event()

    def wait(context: Context) -> str:
        until(lambda: context.cancelled)
        stopped.set()
        return "never read"

    with Client(in_process(wait)) as client:
        with pytest.raises(TimeoutError):
            client.call_tool("wait", {}, timeout=0.2)
        assert stopped.wait(20)


def test_what_is_asked_just_when_a_server_is_lost_fails_at_once():
    """The end may be heard before the question is on its way: it must not wait for an answer."""
    wire = SimpleNamespace(open=lambda receive: None, send=lambda message, timeout: None)
    connection = Connection(wire, print, print, None)
    connection.lose("it is gone")
    with pytest.raises(ConnectionError, match="it is gone"):
        connection.ask({"jsonrpc": "2.0", "id": 1, "method": "ping"}, 5)


def test_closing_cancels_the_tool_in_the_same_process():
    started, stopped = threading.Event(), threading.Event()

    def wait(context: Context) -> str:
        started.set()
        until(lambda: context.cancelled)
        stopped.set()
        return "never read"

    def call():
        with pytest.raises(ConnectionError, match="the client is closed"):
            client.call_tool("wait", {})

    with Client(in_process(wait)) as client:
        caller = threading.Thread(target=call)
        caller.start()
        assert started.wait(20)
    assert stopped.wait(20)
    caller.join(20)


# Answers and callers


def test_many_threads_get_their_own_answers_in_any_order(tmp_path):
    source = """
        import itertools, random
        waiting = []
        for request in requests():
            waiting.append(request)
            if len(waiting) == 50:
                random.Random(1).shuffle(waiting)
                for one in waiting:
                    say(one, one["params"]["arguments"]["text"])
                waiting = []
    """
    fake = Recorded(tmp_path, source)
    texts = {}
    with fake.client(timeout=60) as client:

        def ask(text):
            texts[text] = client.call_tool("echo", {"text": text}).text

        threads = [threading.Thread(target=ask, args=(str(number),)) for number in range(50)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert texts == {str(number): str(number) for number in range(50)}
    ids = [message["id"] for message in fake.sent()]
    assert len(set(ids)) == len(ids)


def test_many_threads_share_a_real_server():
    totals = []
    with Client(TOOLS, timeout=60) as client:

        def work(start):
            totals.extend(
                client.call_tool("add", {"a": start, "b": n}).structured for n in range(20)
            )

        threads = [threading.Thread(target=work, args=(100 * number,)) for number in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(totals) == sorted(100 * number + n for number in range(10) for n in range(20))


@pytest.mark.req("C-CLI-03")
@pytest.mark.parametrize("kind", ["'banana'", "5", "None", "['complete']"])
def test_an_unknown_kind_of_result_is_an_error(kind):
    source = f"""
        for request in requests():
            reply(request, resultType={kind}, content=[])
    """
    with Client(fake_server(source)) as client:
        started = time.monotonic()
        with pytest.raises((ProtocolError, ConnectionError, ValueError), match="resultType"):
            client.call_tool("any", {})
        assert quickly(started)


@pytest.mark.req("C-CLI-04")
def test_a_result_without_a_kind_is_complete():
    source = """
        for request in requests():
            reply(request, content=[{"type": "text", "text": "done"}])
    """
    with Client(fake_server(source)) as client:
        result = client.call_tool("any", {})
        assert (result.text, result.is_error, result.structured) == ("done", False, None)


# Lists

PAGES = """
    for request in requests():
        cursor = request["params"].get("cursor")
        following = {None: "", "": "next", "next": None}[cursor]
        more = {} if following is None else {"nextCursor": following}
        tool = {"name": f"after {cursor!r}", "inputSchema": {"type": "object"}, "x-own": 1}
        more |= {"ttlMs": 60000, "cacheScope": "public"}
        reply(request, resultType="complete", tools=[tool], **more)
"""


@pytest.mark.req("C-CLI-11")
def test_pages_are_read_until_there_is_no_cursor_even_if_it_is_empty(tmp_path):
    fake = Recorded(tmp_path, PAGES)
    with fake.client() as client:
        names = [tool["name"] for tool in client.list_tools()]
    assert names == ["after None", "after ''", "after 'next'"]
    cursors = [m["params"].get("cursor") for m in fake.sent() if m["method"] == "tools/list"]
    assert cursors == [None, "", "next"]
    assert "cursor" not in fake.sent()[1]["params"]


def test_tools_are_handed_over_untouched():
    with Client(fake_server(PAGES)) as client:
        assert client.list_tools()[0] == {
            "name": "after None",
            "inputSchema": {"type": "object"},
            "x-own": 1,
        }


class Clock:
    """Stands in for the module `time` in the client."""

    now = 1000.0

    def monotonic(self):
        return self.now


@pytest.mark.req("C-CLI-05")
def test_a_list_is_kept_as_long_as_the_server_says(tmp_path, monkeypatch):
    clock = Clock()
    monkeypatch.setattr("minimcp.client.time", clock)
    fake = Recorded(tmp_path, PAGES)
    with fake.client() as client:
        fetched = []
        for passed in (0, 59.9, 0.2, 0):
            clock.now += passed
            assert len(client.list_tools()) == 3
            fetched.append(fake.methods().count("tools/list"))
    assert fetched == [3, 3, 6, 6]


@pytest.mark.req("C-CLI-06")
@pytest.mark.parametrize("era", ["modern", "legacy"])
@pytest.mark.parametrize(
    "ttl", ["", "ttlMs=0", "ttlMs=-1", "ttlMs=60000.5", "ttlMs=True", "ttlMs='9'"]
)
def test_a_list_without_a_proper_lifetime_is_fetched_every_time(tmp_path, ttl, era):
    source = f"""
        for request in requests():
            reply(request, resultType="complete", tools=[], {ttl})
    """
    fake = Recorded(tmp_path, source)
    with fake.client(era=era) as client:
        assert (client.list_tools(), client.list_tools()) == ([], [])
    assert fake.methods().count("tools/list") == 2


@pytest.mark.req("C-CLI-07")
def test_what_is_kept_never_answers_another_question(tmp_path):
    fake = Recorded(tmp_path, PAGES)
    with fake.client() as client:
        client.list_tools()
        page = client.request("tools/list", {"cursor": "next"})
    assert [tool["name"] for tool in page["tools"]] == ["after 'next'"]
    assert fake.methods().count("tools/list") == 4


@pytest.mark.req("C-CLI-08")
def test_what_is_kept_belongs_to_one_client(tmp_path):
    fake = Recorded(tmp_path, PAGES)
    for _ in range(2):
        with fake.client() as client:
            client.list_tools()
    assert fake.methods().count("tools/list") == 6


@pytest.mark.req("C-CLI-09")
def test_news_of_a_change_ends_the_life_of_a_list_at_once(tmp_path):
    source = """
        for request in requests():
            if request["method"] == "tools/list":
                reply(request, resultType="complete", tools=[], ttlMs=60000, cacheScope="public")
            else:
                send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
                say(request, "changed")
    """
    fake = Recorded(tmp_path, source)
    with fake.client() as client:
        client.list_tools()
        client.call_tool("change", {})
        client.list_tools()
        client.list_tools()
    assert fake.methods().count("tools/list") == 2


@pytest.mark.req("C-CLI-10")
def test_an_idle_client_sends_nothing(tmp_path):
    source = """
        for request in requests():
            reply(request, resultType="complete", tools=[], ttlMs=1, cacheScope="public")
    """
    fake = Recorded(tmp_path, source)
    with fake.client() as client:
        client.list_tools()
        before = fake.methods()
        time.sleep(0.1)  # a hundred times the server's ttlMs
        assert fake.methods() == before == ["server/discover", "tools/list"]


@pytest.mark.req("C-CLI-12")
@pytest.mark.parametrize("cursor", ["'again'", "str(number % 3)", "str(number)"])
def test_a_list_that_never_ends_is_an_error(cursor, monkeypatch):
    monkeypatch.setattr("minimcp.client.MAX_PAGES", 20)
    source = f"""
        for number, request in zip(range(100), requests()):
            reply(request, resultType="complete", tools=[], nextCursor={cursor})
    """
    with Client(fake_server(source)) as client, pytest.raises(LOCAL, match="no end"):
        client.list_tools()


@pytest.mark.req("C-CLI-13")
def test_a_cursor_that_is_refused_midway_starts_the_list_again_once(tmp_path):
    source = """
        refused = False
        for request in requests():
            cursor = request["params"].get("cursor")
            if cursor and not refused:
                refused = True
                fail(request, -32602, "stale cursor")
            elif cursor:
                tool = {"name": "second", "inputSchema": {"type": "object"}}
                reply(request, resultType="complete", tools=[tool])
            else:
                name = "first" if refused else "gone"
                tool = {"name": name, "inputSchema": {"type": "object"}}
                reply(request, resultType="complete", tools=[tool], nextCursor="c")
    """
    fake = Recorded(tmp_path, source)
    with fake.client() as client:
        assert [tool["name"] for tool in client.list_tools()] == ["first", "second"]


@pytest.mark.req("C-CLI-13")
def test_a_cursor_that_is_refused_again_is_an_error(tmp_path):
    source = """
        for request in requests():
            if "cursor" in request["params"]:
                fail(request, -32602, "stale cursor")
            else:
                reply(request, resultType="complete", tools=[], nextCursor="c")
    """
    fake = Recorded(tmp_path, source)
    with fake.client() as client, pytest.raises(ProtocolError, match="stale cursor"):
        client.list_tools()
    assert fake.methods().count("tools/list") == 4


def test_a_result_whose_schema_is_nested_too_deeply_is_a_malformed_reply():
    source = """
        schema = {}
        for _ in range(200):
            schema = {"type": "object", "properties": {"p": schema}}
        tool = {"name": "t", "inputSchema": {"type": "object"}, "outputSchema": schema}
        for request in requests():
            if request["method"] == "tools/list":
                reply(request, resultType="complete", tools=[tool])
            else:
                say(request, "done", structuredContent={})
    """
    with Client(fake_server(source)) as client:
        client.list_tools()
        with pytest.raises(ConnectionError, match="malformed reply to tools/call t: Recursion"):
            client.call_tool("t")


@pytest.mark.req("C-CLI-14")
def test_a_schema_that_points_into_the_network_is_never_fetched():
    hits = []

    class Canary(BaseHTTPRequestHandler):
        def do_GET(self):
            hits.append(self.path)
            self.send_error(404)

        def log_message(self, *arguments):
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Canary) as canary:
        thread = threading.Thread(target=canary.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{canary.server_port}/schema.json"
        source = """
            schema = {"type": "object", "properties": {"p": {"$ref": sys.argv[1]}}}
            tool = {"name": "t", "inputSchema": schema, "outputSchema": schema}
            for request in requests():
                if request["method"] == "tools/list":
                    reply(request, resultType="complete", tools=[tool])
                else:
                    say(request, "done", structuredContent={"p": 1})
        """
        with Client(fake_server(source, url)) as client:
            assert client.list_tools()[0]["inputSchema"]["properties"] == {"p": {"$ref": url}}
            try:
                client.call_tool("t", {"p": 1})
            except LOCAL as error:  # what cannot be resolved may be refused
                assert url in str(error)
        canary.shutdown()
        thread.join()
    assert hits == []


@pytest.mark.req("C-CLI-15")
@pytest.mark.parametrize(
    "arguments", [{"a": None}, {}, {"a": [], "b": {}, "c": "", "d": 0, "e": False}]
)
def test_arguments_are_sent_as_they_are_given(tmp_path, arguments):
    fake = Recorded(tmp_path, "for request in requests(): say(request, 'done')")
    with fake.client() as client:
        client.call_tool("any", arguments)
    assert fake.sent()[-1]["params"]["arguments"] == arguments


# Servers that misbehave

NONSENSE = {
    "no result and no error": '{"jsonrpc": "2.0", "id": ID}',
    "a list as result": '{"jsonrpc": "2.0", "id": ID, "result": []}',
    "a text as result": '{"jsonrpc": "2.0", "id": ID, "result": "x"}',
    "null as result": '{"jsonrpc": "2.0", "id": ID, "result": null}',
    "a text as error": '{"jsonrpc": "2.0", "id": ID, "error": "x"}',
    "an empty error": '{"jsonrpc": "2.0", "id": ID, "error": {}}',
    "an error with odd members": '{"jsonrpc": "2.0", "id": ID, "error": {"code": "x"}}',
}
LISTS = {
    "no tools": "{}",
    "tools are an object": '{"tools": {}}',
    "tools are null": '{"tools": null}',
    "a tool is a text": '{"tools": ["x"]}',
    "a cursor is a number": '{"tools": [], "nextCursor": 5}',
}
CALLS = {
    "no content": "{}",
    "content is a text": '{"content": "x"}',
    "a block is a text": '{"content": ["x"]}',
}


def answering(line):
    """A fake server that answers every request with this line."""
    return fake_server(
        """
        for request in requests():
            write(sys.argv[1].replace("ID", json.dumps(request["id"])).encode() + b"\\n")
        """,
        line,
    )


def whole(result):
    return f'{{"jsonrpc": "2.0", "id": ID, "result": {result}}}'


@pytest.mark.req("C-CLI-16")
@pytest.mark.parametrize("line", NONSENSE.values(), ids=NONSENSE)
def test_an_answer_that_is_none_is_an_error_at_once(line):
    with Client(answering(line), timeout=60) as client:
        started = time.monotonic()
        with pytest.raises(LOCAL):
            client.request("tools/call", {"name": "any"})
        assert quickly(started)


@pytest.mark.req("C-CLI-16")
@pytest.mark.parametrize("result", LISTS.values(), ids=LISTS)
def test_a_list_that_is_none_is_an_error_at_once(result):
    with Client(answering(whole(result)), timeout=60) as client:
        started = time.monotonic()
        with pytest.raises(LOCAL, match=r"malformed|no end"):
            client.list_tools()
        assert quickly(started)


@pytest.mark.req("C-CLI-16")
@pytest.mark.parametrize("result", CALLS.values(), ids=CALLS)
def test_a_tool_result_that_is_none_is_an_error_at_once(result):
    with Client(answering(whole(result)), timeout=60) as client:
        started = time.monotonic()
        with pytest.raises(LOCAL, match=r"malformed|no end"):
            _ = client.call_tool("any", {}).text
        assert quickly(started)


HELLOS = {
    "a list": '"result": []',
    "nothing": '"result": {}',
    "versions are a number": '"result": {"supportedVersions": 5}',
    "versions are objects": '"result": {"supportedVersions": [{}]}',
    "meta is a list": '"result": {"supportedVersions": ["2026-07-28"], "_meta": []}',
    "capabilities are odd": '"result": {"supportedVersions": ["2026-07-28"], "capabilities": []}',
    "a version is a number": '"result": {"protocolVersion": 5}',
    "a version is an object": '"result": {"protocolVersion": {}}',
    "an old version": '"result": {"protocolVersion": "2024-11-05"}',
    "server info is a list": '"result": {"protocolVersion": "2025-11-25", "serverInfo": []}',
    "error data is a list": '"error": {"code": -32022, "message": "m", "data": [1]}',
    "error data is a text": '"error": {"code": -32022, "message": "no", "data": "x"}',
    "supported is a number": '"error": {"code": -32022, "message": "no", "data": {"supported": 5}}',
    "supported is odd": '"error": {"code": -32022, "message": "m", "data": {"supported": [{}]}}',
}


@pytest.mark.req("C-CLI-16")
@pytest.mark.parametrize("era", ["auto", "modern", "legacy"])
@pytest.mark.parametrize("hello", HELLOS.values(), ids=HELLOS)
def test_a_handshake_that_makes_no_sense_is_an_error_at_once(hello, era):
    source = """
        for message in messages():
            if "id" in message:
                whole = f'{{"jsonrpc": "2.0", "id": {message["id"]}, {sys.argv[1]}}}'
                write(whole.encode() + b"\\n")
    """
    started = time.monotonic()
    try:
        with Client(fake_server(source, hello), era=era, timeout=60, probe_timeout=60) as client:
            assert client.protocol_version in ("2026-07-28", "2025-11-25")
    except LOCAL as error:
        assert str(error) != ""
    assert quickly(started)


@pytest.mark.req("C-STDIO-22")
def test_lines_that_are_no_messages_and_unknown_ids_are_skipped(capfd):
    source = r"""
        write(b"a banner\n\n  \n\xff\xfe\n")
        for request in requests():
            write(b"[1, 2]\n5\nnull\n{}\n{\"jsonrpc\": \"2.0\"}\n" + b"[" * 100000 + b"\n")
            reply({"id": 999999}, content=[])
            reply({"id": None}, content=[])
            send({"jsonrpc": "2.0", "method": "notifications/unknown"})
            send({"jsonrpc": "2.0", "method": 5, "id": {}})
            say(request, "found")
    """
    with Client(fake_server(source)) as client:
        assert client.call_tool("any", {}).text == "found"
        assert client.call_tool("any", {}).text == "found"
    told = capfd.readouterr().err
    assert "a banner" in told
    assert len(told.splitlines()) == 1


@pytest.mark.req("C-STDIO-15")
def test_a_megabyte_on_stderr_blocks_nothing_and_is_no_failure():
    source = """
        for request in requests():
            sys.stderr.write("ERROR: not really\\n" * 60000)
            sys.stderr.flush()
            say(request, "fine")
    """
    with Client(fake_server(source)) as client:
        assert [client.call_tool("any", {}).text for _ in range(3)] == ["fine"] * 3


@pytest.mark.req("C-STDIO-17")
def test_a_server_that_dies_fails_all_pending_calls_at_once_and_says_why():
    source = """
        waiting = [request for _, request in zip(range(3), requests())]
        sys.stderr.write("first line\\nthe disk is full\\n")
        sys.exit(42)
    """
    errors = []
    with Client(fake_server(source), timeout=60) as client:

        def ask(name):
            try:
                client.call_tool(name, {})
            except ConnectionError as error:
                errors.append(str(error))

        started = time.monotonic()
        threads = [threading.Thread(target=ask, args=(name,)) for name in ("one", "two", "three")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert quickly(started)
    assert len(errors) == 3
    for error in errors:
        assert [
            part for part in ("42", "the disk is full", sys.executable) if part not in error
        ] == []


@pytest.mark.req("C-STDIO-17")
@pytest.mark.parametrize(
    ("era", "greeting"), [("modern", "server/discover"), ("legacy", "initialize")]
)
def test_the_call_after_a_death_reaches_a_new_process(tmp_path, era, greeting):
    source = """
        for request in requests():
            if request["params"]["name"] == "die":
                sys.exit(1)
            say(request, str(os.getpid()))
    """
    fake = Recorded(tmp_path, source)
    pids = []
    with fake.client(era=era) as client:
        for _ in range(3):
            pids.append(client.call_tool("pid", {}).text)
            with pytest.raises(ConnectionError):
                client.call_tool("die", {})
    assert len(set(pids)) == fake.methods().count(greeting) == 3
    ids = [message["id"] for message in fake.sent() if "id" in message]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize(
    "source", ["sys.exit(3)", "sys.stderr.write('no licence\\n'); sys.exit(3)", "os.abort()"]
)
@pytest.mark.parametrize("era", ["auto", "legacy"])
def test_a_server_that_dies_at_once_is_an_error_with_its_exit_code(source, era):
    started = time.monotonic()
    with pytest.raises(ConnectionError) as caught, Client(fake_server(source), era=era, timeout=60):
        pass
    assert quickly(started)
    said = str(caught.value)
    assert sys.executable in said
    assert ("6" if "abort" in source else "3") in said
    assert ("no licence" in said) is ("no licence" in source)


@pytest.mark.parametrize("command", [["no-such-cmd"], ["/no/such/file", "x"], ["/"], [__file__]])
def test_a_command_that_cannot_be_started_is_an_error_that_names_it(command):
    with pytest.raises(ConnectionError) as caught, Client(command):
        pass
    assert command[0] in str(caught.value)


@pytest.mark.parametrize("era", ["auto", "modern", "legacy"])
def test_a_server_that_never_answers_is_an_error_that_names_it(era):
    pid = None
    source = "sys.stderr.write('still loading\\n'); sys.stderr.flush(); sys.stdin.read()"
    started = time.monotonic()
    with (
        pytest.raises((TimeoutError, ConnectionError)) as caught,
        Client(fake_server(source), era=era, timeout=1, probe_timeout=0.5) as client,
    ):
        pid = client
    assert pid is None
    assert quickly(started, 15)
    said = str(caught.value)
    assert said.startswith(("server/discover: no answer in", "initialize: no answer in"))
    assert "ended with exit code 0, after we had given up" in said
    assert said.endswith("still loading")


def test_a_server_that_closes_its_output_but_lives_is_an_error_at_once():
    source = """
        for request in requests():
            os.close(1)
            time.sleep(600)
    """
    with Client(fake_server(source), timeout=60) as client:
        started = time.monotonic()
        with pytest.raises(ConnectionError):
            client.call_tool("any", {})
        assert quickly(started, 15)


def test_a_server_that_stops_reading_cannot_hang_a_call():
    source = """
        next(requests())
        time.sleep(600)
    """
    with Client(fake_server(source)) as client:
        started = time.monotonic()
        with pytest.raises((TimeoutError, ConnectionError)):
            client.call_tool("any", {"text": "x" * 5_000_000}, timeout=1)
        assert quickly(started, 15)


# Notifications and the trace


def test_notifications_reach_the_callback_and_its_failures_are_told_and_do_no_harm(capsys):
    source = """
        for request in requests():
            for number in range(2):
                send({"jsonrpc": "2.0", "method": "notifications/any", "params": {"n": number}})
            say(request, "done")
    """
    seen = []

    def notice(method, params):
        seen.append((method, params))
        raise RuntimeError("in the callback")

    with Client(fake_server(source), on_notification=notice) as client:
        assert client.call_tool("any", {}).text == "done"
    assert seen == [("notifications/any", {"n": 0}), ("notifications/any", {"n": 1})]
    assert capsys.readouterr().err.count("RuntimeError: in the callback") == 2


def test_progress_is_asked_for_when_somebody_listens():
    def count(context: Context) -> str:
        for number in (1, 2, 3):
            context.progress(number, 3)
        return "counted"

    seen = []
    heard = lambda method, params: seen.append((method, params["progress"]))  # noqa: E731
    with Client(in_process(count), on_notification=heard) as client:
        assert client.call_tool("count", {}).text == "counted"
    assert seen == [("notifications/progress", number) for number in (1, 2, 3)]


def test_what_died_with_a_server_does_not_disturb_the_next_one(tmp_path):
    source = """
        for message in messages():
            if message.get("method") == "server/discover":
                send({"jsonrpc": "2.0", "error": {"code": -32000, "message": "what?"}})
            elif message.get("method") == "initialize":
                reply(message, **handshake())
            elif message.get("method") == "tools/call":
                if message["params"]["name"] == "die":
                    sys.exit(1)
                say(message, "alive")
    """
    with Client(fake_server(source), probe_timeout=60) as client:
        with pytest.raises(ConnectionError):
            client.call_tool("die", {})
        started = time.monotonic()
        assert client.call_tool("live", {}).text == "alive"
        assert quickly(started)


def test_a_notification_is_sent_and_waits_for_nothing(tmp_path):
    fake = Recorded(tmp_path, "for request in requests(): say(request, 'done')")
    with fake.client() as client:
        client.notify("notifications/roots/list_changed", {"a": 1})
        client.call_tool("any", {})
    note = fake.sent()[1]
    assert (note["method"], note["params"]["a"], "id" in note) == (
        "notifications/roots/list_changed",
        1,
        False,
    )


class Log(list):
    """Something to call that is false as long as it is empty."""

    def __call__(self, *entry):
        self.append(entry)


def test_a_callback_that_is_empty_is_called_all_the_same():
    server = in_process(add)
    trace, notes = Log(), Log()

    @server.tool
    def report(context: Context) -> str:
        context.progress(1)
        return "done"

    with Client(server, trace=trace, on_notification=notes) as client:
        client.call_tool("report")
    assert len(trace) == 5
    assert [(method, params["progress"]) for method, params in notes] == [
        ("notifications/progress", 1)
    ]


@pytest.mark.parametrize("target", [in_process(add), TOOLS], ids=["object", "command"])
def test_the_trace_gets_every_message_with_its_direction(target):
    seen = []
    with Client(
        target, trace=lambda direction, message: seen.append((direction, message))
    ) as client:
        client.call_tool("add", {"a": 2, "b": 40})
    directions = [direction for direction, _ in seen]
    assert len(seen) == 4
    assert directions[0] == directions[2] != directions[1] == directions[3]
    methods = [message.get("method") for _, message in seen]
    assert methods == ["server/discover", None, "tools/call", None]
    assert seen[0][1]["id"] == seen[1][1]["id"] != seen[2][1]["id"] == seen[3][1]["id"]


# The end


def descriptors():
    return set(os.listdir("/proc/self/fd"))


PID = "for request in requests(): say(request, str(os.getpid()))"


@pytest.mark.req("C-STDIO-16")
def test_a_polite_server_is_never_signalled(tmp_path):
    source = f"""
        signal.signal(signal.SIGTERM, lambda *_: open({str(tmp_path / "signalled")!r}, "w").close())
        for request in requests():
            say(request, str(os.getpid()))
        time.sleep(0.3)
        open({str(tmp_path / "left")!r}, "w").close()
    """
    with Client(fake_server(source)) as client:
        pid = int(client.call_tool("pid", {}).text)
    assert ended(pid)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["left"]


@pytest.mark.req("C-STDIO-16")
@pytest.mark.parametrize("ignored", ["", "signal.signal(signal.SIGTERM, signal.SIG_IGN)"])
def test_a_server_that_ignores_the_end_of_input_is_ended(ignored):
    source = f"""
        {ignored or "pass"}
        for request in requests():
            say(request, str(os.getpid()))
        time.sleep(600)
    """
    with Client(fake_server(source)) as client:
        pid = int(client.call_tool("pid", {}).text)
        started = time.monotonic()
    assert quickly(started, 20)
    assert ended(pid)


@pytest.mark.req("C-STDIO-16")
def test_a_server_that_ignores_the_end_of_input_is_asked_to_end_before_it_is_killed(monkeypatch):
    monkeypatch.setattr(child, "POLITE", 0.1)
    monkeypatch.setattr(child, "FIRM", 20)
    source = """
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
        list(requests())
        time.sleep(600)
    """
    with Client(fake_server(source)) as client:
        process = client.connection.wire.process
    assert process.returncode == 7


def test_closing_leaves_no_process_no_descriptor_and_no_thread():
    threads, before = set(threading.enumerate()), descriptors()
    for _ in range(3):
        with Client(fake_server(PID)) as client:
            pid = int(client.call_tool("pid", {}).text)
        assert ended(pid)
    until(lambda: set(threading.enumerate()) <= threads)
    assert descriptors() == before


@pytest.mark.parametrize("source", ["sys.exit(1)", "sys.stdin.read()", "time.sleep(600)"])
def test_a_client_that_cannot_connect_leaves_nothing_behind(source):
    threads, before = set(threading.enumerate()), descriptors()
    children = set(running_children())
    with (
        pytest.raises((TimeoutError, ConnectionError)),
        Client(fake_server(source), timeout=0.5, probe_timeout=0.5),
    ):
        pass
    until(lambda: set(threading.enumerate()) <= threads)
    assert descriptors() == before
    assert set(running_children()) == children


def running_children():
    """The process ids of this process's children, zombies included."""
    return Path(f"/proc/self/task/{threading.get_native_id()}/children").read_text().split()


def test_closing_twice_and_closing_a_dead_client_are_harmless():
    client = Client(fake_server("next(requests()); sys.exit(1)"))
    with client:
        with pytest.raises(ConnectionError):
            client.call_tool("any", {})
        client.close()
        client.close()
    client.close()


def test_closing_while_a_call_waits_ends_it():
    asked, errors = threading.Event(), []

    def trace(direction, message):
        if message.get("method") == "tools/call":
            asked.set()

    def ask():
        try:
            client.call_tool("any", {})
        except ConnectionError as error:
            errors.append(error)

    thread = threading.Thread(target=ask)
    with Client(fake_server("for request in requests(): pass"), timeout=60, trace=trace) as client:
        thread.start()
        assert asked.wait(20)
    thread.join(20)
    assert not thread.is_alive()
    assert len(errors) == 1


def test_closing_ends_the_children_of_the_server_too():
    source = """
        import subprocess
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        for request in requests():
            say(request, str(child.pid))
    """
    with Client(fake_server(source)) as client:
        pid = int(client.call_tool("pid", {}).text)
    try:
        until(lambda: gone(pid))
    finally:
        if not gone(pid):
            os.kill(pid, signal.SIGKILL)


def gone(pid):
    """Whether a process that is not our child has ended: there is no entry, or only a zombie's."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_a_child_of_the_server_that_keeps_the_pipes_open_does_not_hold_up_closing():
    source = """
        import subprocess
        sleep = [sys.executable, "-c", "import time; time.sleep(600)"]
        child = subprocess.Popen(sleep, start_new_session=True)
        for request in requests():
            say(request, str(child.pid))
    """
    with Client(fake_server(source)) as client:
        pid = int(client.call_tool("pid", {}).text)
        started = time.monotonic()
    try:
        assert quickly(started, 20)
    finally:
        os.kill(pid, signal.SIGKILL)


# Notebooks


class Cell(io.StringIO):
    """What a notebook puts in the place of standard error: a stream without a descriptor."""


def test_what_a_server_says_on_stderr_is_passed_on_in_whole_lines(monkeypatch):
    """Even where nothing is buffered, and somebody else prints at the same time."""
    written = []
    monkeypatch.setattr(sys, "stderr", SimpleNamespace(write=written.append, flush=lambda: None))
    code = "import sys; sys.stderr.write('one\\ntwo\\n'); from minimcp import demo, run"
    with Client([sys.executable, "-c", f"{code}; run(demo.server)"]) as client:
        client.list_tools()
    assert [text for text in written if text] == ["one\n", "two\n"]


def test_a_stderr_that_takes_nothing_does_not_hold_the_server_up(monkeypatch):
    def fail(text):
        raise OSError("no space left")

    monkeypatch.setattr(sys, "stderr", SimpleNamespace(write=fail, flush=lambda: None))
    code = "import sys; sys.stderr.write('x\\n' * 500_000); from minimcp import demo, run"
    with Client([sys.executable, "-c", f"{code}; run(demo.server)"]) as client:
        assert len(client.list_tools()) == 3


def test_a_client_works_where_stderr_has_no_descriptor(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Cell())
    with Client(TOOLS) as client:
        assert client.call_tool("add", {"a": 2, "b": 40}).text == "42"
        assert client.call_tool("boom", {}).is_error is True


def test_a_client_works_where_there_is_no_stderr_at_all(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    with Client(TOOLS) as client:
        assert client.call_tool("boom", {}).is_error is True


def test_a_client_works_inside_a_running_loop():
    async def later(n: int) -> int:
        await asyncio.sleep(0)
        return n

    async def cell():
        with Client(TOOLS) as child, Client(in_process(later)) as own:
            return child.call_tool("add", {"a": 2, "b": 40}).text, own.call_tool(
                "later", {"n": 5}
            ).text

    assert asyncio.run(cell()) == ("42", "5")


def test_a_client_works_inside_a_thread():
    texts = []

    def work():
        with Client(TOOLS) as client:
            texts.append(client.call_tool("echo", {"text": "a"}).text)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(60)
    assert texts == ["a"]


# The environment


def test_the_environment_is_merged_over_the_parents(monkeypatch):
    monkeypatch.setenv("KEPT", "kept")
    monkeypatch.setenv("CHANGED", "before")
    source = """
        for request in requests():
            say(request, " ".join(os.environ[name] for name in ("KEPT", "CHANGED", "PATH")))
    """
    with Client(fake_server(source), env={"CHANGED": "after"}) as client:
        assert client.call_tool("any", {}).text == f"kept after {os.environ['PATH']}"


# The command line


def client_command(*arguments, timeout=60):
    command = [sys.executable, "-m", "minimcp.client", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout)


def test_the_command_line_lists_the_tools_of_any_server():
    done = client_command("--", *TOOLS)
    assert done.returncode == 0
    assert "connected: fixture, protocol 2026-07-28" in done.stdout
    assert [
        name for name in ("echo", "add", "rep", "sleep", "boom") if name not in done.stdout
    ] == []


def test_the_command_line_calls_a_tool():
    done = client_command("--call", "add", '{"a": 2, "b": 40}', "--", *TOOLS)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "42")


def test_the_command_line_speaks_the_era_it_is_told():
    done = client_command("--era", "legacy", "--", *TOOLS)
    assert "protocol 2025-11-25" in done.stdout


def test_the_command_line_shows_the_wire():
    done = client_command("--trace", "--call", "echo", '{"text": "hello"}', "--", *TOOLS)
    shown = done.stdout + done.stderr
    assert done.returncode == 0
    assert '"method"' in shown
    assert "server/discover" in shown
    assert "tools/call" in shown


def test_the_command_line_fails_when_the_tool_fails():
    done = client_command("--call", "boom", "{}", "--", *TOOLS)
    assert done.returncode != 0
    assert "no such city: Atlantis" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout


def test_the_command_line_ends_quietly_at_ctrl_c(tmp_path):
    (tmp_path / "silent.py").write_text(
        "import sys\nprint('up', file=sys.stderr)\nsys.stdin.read()"
    )
    command = [sys.executable, "-m", "minimcp.client", sys.executable, str(tmp_path / "silent.py")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stderr.readline() == b"up\n"
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=20) == (b"", b"")
    assert process.returncode == 130


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--", "no-such-cmd"], "no-such-cmd"),
        ([sys.executable, "-c", "print(1)"], "-- COMMAND"),
        (["http://127.0.0.1:abc/mcp"], "error: Port could not be cast"),
        (["--call", "nope", "{}", "--", *TOOLS], "nope"),
        (["--call", "add", "{not json", "--", *TOOLS], "JSON"),
    ],
)
def test_the_command_line_says_what_is_wrong_without_a_traceback(arguments, said):
    done = client_command(*arguments)
    assert done.returncode != 0
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_where_there_are_no_process_groups_a_server_that_will_not_go_is_ended_too(monkeypatch):
    """As on Windows."""
    monkeypatch.delattr(os, "killpg")
    monkeypatch.setattr(child, "POLITE", 0.1)
    with Client(fake_server("list(requests()); time.sleep(600)")) as client:
        process = client.connection.wire.process
    assert process.returncode == -signal.SIGKILL


# Found by people who tried to break it


@pytest.mark.req("C-CLI-09")
def test_a_list_that_changes_while_it_is_told_is_asked_for_again():
    source = """
        for number, request in enumerate(requests()):
            tool = {"name": f"v{number}", "inputSchema": {}}
            both = [{"jsonrpc": "2.0", "id": request["id"], "result": {
                "resultType": "complete", "tools": [tool], "ttlMs": 3600000}}]
            if number == 0:
                both.append({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
            write("".join(json.dumps(one) + "\\n" for one in both).encode())
    """
    heard = []
    with Client(fake_server(source), on_notification=lambda *what: heard.append(what)) as client:
        client.list_tools()
        until(lambda: heard)
        assert [client.list_tools()[0]["name"] for _ in range(2)] == ["v1", "v1"]


DETACHED = """
    import subprocess
    left = subprocess.Popen(["sleep", "60"], start_new_session=True)  # it holds our stdout
    print(f"left {left.pid}", file=sys.stderr, flush=True)
    for request in requests():
        print("the disk is full", file=sys.stderr, flush=True)
        os._exit(3)
"""


def test_a_server_that_died_is_noticed_though_what_it_left_behind_holds_its_output(capfd):
    started = time.monotonic()
    with Client(fake_server(DETACHED), timeout=30) as client:
        for _ in range(2):  # the second call starts it again
            with pytest.raises(ConnectionError, match=r"exit code 3(?s:.*)the disk is full"):
                client.call_tool("any")
    assert quickly(started, 20)
    for word in capfd.readouterr().err.split("left ")[1:]:
        os.kill(int(word.split()[0]), signal.SIGKILL)


def test_a_client_that_is_closed_while_it_starts_a_server_again_leaves_none(tmp_path):
    file = tmp_path / "pids"
    source = f"""
        open({str(file)!r}, "a").write(f"{{os.getpid()}}\\n")
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        for request in requests():
            os.close(1)
            time.sleep(60)
    """
    client, found = Client(fake_server(source)), []

    def call():
        try:
            client.call_tool("any")
        except ConnectionError as error:
            found.append(str(error))

    call()
    thread = threading.Thread(target=call)
    thread.start()  # it takes a while to end the old one
    time.sleep(0.3)
    client.close()
    thread.join(20)
    assert "the client is closed" in found[-1]
    until(lambda: all(ended(int(pid)) for pid in file.read_text().split()))


@pytest.mark.parametrize("broken", ["NaN", "-Infinity", '"cut \\\\ud83d"'])
def test_a_reply_that_is_no_strict_json_is_an_error_at_once(broken):
    source = """
        for request in requests():
            write(b'{"jsonrpc":"2.0","id":%d,"result":{"x":BROKEN}}\\n' % request["id"])
    """.replace("BROKEN", broken)
    with Client(fake_server(source), timeout=30) as client:
        for _ in range(2):
            started = time.monotonic()
            with pytest.raises(ConnectionError, match=r"malformed reply: .*not JSON"):
                client.call_tool("any")
            assert quickly(started)


def test_a_request_that_is_no_strict_json_is_not_taken_for_a_reply():
    source = """
        for request in requests():
            write(b'{"jsonrpc":"2.0","id":%d,"method":"ping","x":NaN}\\n' % request["id"])
            say(request, "found")
    """
    with Client(fake_server(source)) as client:
        assert client.call_tool("any").text == "found"


def test_a_callback_that_waits_for_the_server_learns_at_once_that_it_must_not(capfd):
    source = """
        for request in requests():
            send({"jsonrpc": "2.0", "method": "notifications/message"})
            say(request, "found")
    """
    with Client(fake_server(source), on_notification=lambda *_: client.list_tools()) as client:
        assert client.call_tool("any", timeout=10).text == "found"
    assert "a callback must not wait for the server" in capfd.readouterr().err


def test_a_trace_that_fails_loses_no_reply(capfd):
    def trace(sender, message):
        assert sender == "client", "no trace today"

    with Client(TOOLS, trace=trace) as client:
        assert client.list_tools()
    assert "no trace today" in capfd.readouterr().err


@pytest.mark.parametrize("target", [TOOLS, in_process(add)])
def test_after_the_end_nothing_is_sent_and_nothing_is_waited_for(target):
    client = Client(target, timeout=30)
    client.close()
    started = time.monotonic()
    for _ in range(40):
        with pytest.raises(ConnectionError, match="the client is closed"):
            client.call_tool("add", {"a": 1, "b": 2})
    assert quickly(started)


@pytest.mark.parametrize(
    ("era", "version"),
    [("legacy", "2026-07-28"), ("modern", "2025-11-25"), ("modern", "2025-06-18")],
)
def test_an_era_and_a_version_of_the_other_one_contradict_each_other(era, version):
    with pytest.raises(ValueError, match=f"{version} is of the"):
        Client(in_process(add), era=era, version=version)


HUGE = 10**400
NONSENSE = [
    ("tools=[], ttlMs=10**400", lambda client: client.list_tools()),
    ("resultType='input_required', inputRequests=['x']", lambda client: client.call_tool("t")),
    ("resultType='input_required', inputRequests={'a': 'x'}", lambda client: client.call_tool("t")),
    ("resultType='input_required', inputRequests=5", lambda client: client.call_tool("t")),
]


@pytest.mark.parametrize(("members", "ask"), NONSENSE)
def test_nonsense_in_a_result_has_a_name(members, ask):
    source = f"""
        for request in requests():
            reply(request, **{{"resultType": "complete", **dict({members})}})
    """
    with Client(fake_server(source)) as client, pytest.raises(ConnectionError, match="malformed"):
        ask(client)


def test_a_server_that_says_no_object_about_itself_is_told_so():
    source = """
        for request in requests(discover=False):
            reply(request, supportedVersions=["2026-07-28"],
                  _meta={"io.modelcontextprotocol/serverInfo": "text"})
    """
    with pytest.raises(ConnectionError, match="malformed reply to the first request"):
        Client(fake_server(source))


def test_the_end_of_a_server_is_noticed_at_once_and_nobody_waits_for_anybody(monkeypatch):
    monkeypatch.setattr(child, "FIRM", 30)
    source = """
        for request in requests():
            os._exit(1)
    """
    started = time.monotonic()
    with Client(fake_server(source)) as client, pytest.raises(ConnectionError, match="exit code 1"):
        client.call_tool("any")
    assert quickly(started)


def test_what_was_said_before_the_end_is_read_to_its_end_however_slowly(monkeypatch):
    monkeypatch.setattr(child, "FIRM", 0.5)
    source = """
        for request in requests():
            for _ in range(12):
                send({"jsonrpc": "2.0", "method": "notifications/message"})
            say(request, "done")
            os._exit(0)
    """
    with Client(fake_server(source), on_notification=lambda *_: time.sleep(0.1)) as client:
        assert client.call_tool("any").text == "done"


def test_a_command_that_ends_at_once_is_no_server_and_nothing_else_goes_wrong():
    for _ in range(30):  # an exception in a thread would be an error of the test
        with pytest.raises(ConnectionError, match="exit code 0"):
            Client([sys.executable, "-S", "-c", ""])


def test_in_process_a_time_limit_holds_while_a_callback_takes_its_time():
    server = in_process()

    @server.tool
    def work(context: Context) -> int:
        context.progress(1)
        return 1

    over = threading.Event()
    with Client(server, on_notification=lambda *_: over.wait(20)) as client:
        started = time.monotonic()
        with pytest.raises(TimeoutError):
            client.call_tool("work", timeout=0.2)
        assert quickly(started)
        over.set()


def test_a_list_that_was_asked_of_a_new_server_is_kept(tmp_path):
    source = """
        for request in requests():
            if request["method"] == "tools/call":
                os._exit(1)
            reply(request, tools=[], ttlMs=3600000)
    """
    server = Recorded(tmp_path, source)
    with server.client() as client:
        with pytest.raises(ConnectionError):
            client.call_tool("any")
        for _ in range(3):
            client.list_tools()
        assert server.methods().count("tools/list") == 1


def test_a_server_may_say_that_it_asks_nothing():
    source = """
        for number, request in enumerate(requests()):
            more = {"resultType": "input_required", "requestState": "s", "inputRequests": None}
            reply(request, content=[], **(more if number == 0 else {}))
    """
    with Client(fake_server(source)) as client:
        assert client.call_tool("any").content == []
