"""Whatever comes in: nothing is raised, nobody is answered twice, only what is allowed goes out.

Three doors (the seam, a stdio server that lives through all of it, the ASGI app), three kinds of
input (bytes, JSON, valid messages that were changed), both eras. What must hold is written once,
in `fuzz/targets.py`, and the fuzzer (`make fuzz`) holds the same code to it for longer. The server
that is asked never fails by itself, so a traceback on stderr is a failure too.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import resource
import subprocess
import sys
import textwrap
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
import wire
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import (
    LEGACY,
    MODERN,
    OLD,
    PATIENCE,
    Stdio,
    cancelled,
    complete,
    initialize,
    legacy,
    modern,
    notification,
    server_file,
)

from minimcp import Server
from minimcp.context import Peer
from minimcp.http import app
from minimcp.protocol import dumps
from minimcp.schema import validate

FUZZ = Path(__file__).parent / "fuzz"
sys.path.insert(0, str(FUZZ))

import targets  # noqa: E402
from everything import everything  # noqa: E402
from mutations import ODD, mutate  # noqa: E402

# -- what comes in

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(),
    st.sampled_from(ODD),
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
TALK = {"progressToken": "p", "io.modelcontextprotocol/logLevel": "debug"}
WISH = {"notifications": {"toolsListChanged": True, "resourceSubscriptions": ["x:a"]}}
CALLS = [
    ("add", {"a": 2}),
    ("add", {"a": "2", "c": 1}),
    ("echo", {"value": [1, {"a": None}]}),
    ("text.echo", {"text": "é"}),
    ("shapes", {"size": "small", "point": {"x": 1}, "orders": [{"item": "tea", "count": 2}]}),
    ("chatty", {"steps": 2}),
    ("blocks", {"text": "a"}),
    ("by_hand", {"code": "ab", "tree": {"children": [{}]}}),
    ("marked", {"region": "eu", "zone": 1}),
    ("ask", {"question": "q"}),
    ("no such tool", {}),
]
OTHERS = [
    ("tools/list", {"cursor": "shapes"}),
    ("resources/list", {}),
    ("resources/read", {"uri": "x:a"}),
    ("prompts/get", {"name": "p"}),
    ("no/such", {}),
]
ABILITIES = {"elicitation": {}}
VALID = [
    *(
        modern("tools/call", {"name": one, "arguments": two}, id)
        for id, (one, two) in enumerate(CALLS)
    ),
    *(
        modern(
            "tools/call", {"name": one, "arguments": two}, "m", meta=TALK, capabilities=ABILITIES
        )
        for one, two in CALLS
    ),
    *(modern(method, params) for method, params in OTHERS),
    modern("server/discover"),
    modern("subscriptions/listen", WISH, "s"),
    *(
        legacy("tools/call", {"name": one, "arguments": two}, f"l{id}")
        for id, (one, two) in enumerate(CALLS)
    ),
    *(legacy(method, params, 3) for method, params in OTHERS),
    initialize(),
    initialize(OLD, "i", ABILITIES),
    legacy("ping"),
    legacy("logging/setLevel", {"level": "debug"}),
    notification("notifications/initialized"),
    cancelled("s", "enough"),
]

BYTES = st.binary(max_size=200) | st.text(max_size=100).map(
    lambda one: one.encode(errors="replace")
)
ANY_JSON = JSON.map(json.dumps).map(str.encode)


@st.composite
def changed(draw):
    """A valid message after some changes: of its meaning, or of its bytes."""
    message, chance = draw(st.sampled_from(VALID)), draw(st.randoms(use_true_random=False))
    for _ in range(draw(st.integers(0, 3))):
        message = mutate(message, chance)
    data = json.dumps(message, ensure_ascii=draw(st.booleans())).encode(errors="surrogatepass")
    if draw(st.integers(0, 3)) == 0:
        at = draw(st.integers(0, len(data)))
        data = data[:at] + draw(st.binary(max_size=4)) + data[at + draw(st.integers(0, 4)) :]
    return data


CHANGED = changed()
GREETINGS = st.sampled_from([b"", *(json.dumps(initialize(one)).encode() for one in (LEGACY, OLD))])


def conversations(lines):
    """Some lines, after a handshake or none."""
    several = st.tuples(GREETINGS, st.lists(lines, min_size=1, max_size=5))
    return several.map(lambda pair: b"\n".join([pair[0], *pair[1]]))


KINDS = [BYTES, ANY_JSON, CHANGED]
NAMES = ["any bytes", "any JSON", "changed messages"]
QUICK = settings(
    max_examples=100, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)
SLOWER = settings(QUICK, max_examples=60)
every_kind = pytest.mark.parametrize("kind", KINDS, ids=NAMES)


# -- the seam


@every_kind
def test_the_seam_takes_everything_and_says_only_what_is_allowed(kind):
    @QUICK
    @given(conversations(kind))
    def holds(data):
        targets.seam(data)

    holds()


@every_kind
def test_what_came_before_does_not_harm_what_comes_after(kind):
    """After any line from one peer, another one gets the right answer to a right question."""
    server = everything()
    question = json.dumps(modern("tools/call", {"name": "add", "arguments": {"a": 2}}, "q"))
    answer = {"content": [{"type": "text", "text": "42"}], "structuredContent": 42}
    right = complete(answer, "q", "everything")

    @QUICK
    @given(conversations(kind))
    def holds(data):
        peer = Peer()
        with targets.no_surprise():
            for line in data.decode(errors="surrogateescape").split("\n"):
                server.handle_line(line, peer)
            assert json.loads(server.handle_line(question, Peer())) == right

    holds()


@QUICK
@given(JSON)
def test_a_value_that_is_echoed_comes_back_as_it_was(value):
    line = json.dumps(modern("tools/call", {"name": "echo", "arguments": {"value": value}}))
    with targets.no_surprise():
        result = json.loads(targets.SERVER.handle_line(line, Peer()))["result"]
    if isinstance(value, str):
        assert result["content"] == [{"type": "text", "text": value}]
    else:
        assert result["structuredContent"] == value
        assert json.loads(result["content"][0]["text"]) == value


# -- memory


def in_a_process_of_its_own(script, given):
    """What a script prints about what it is given, as JSON; the checks in ours take memory too."""
    where = {**os.environ, "PYTHONPATH": os.pathsep.join([str(FUZZ), str(FUZZ.parent)])}
    command = [sys.executable, "-c", textwrap.dedent(script)]
    found = subprocess.run(
        command, input=json.dumps(given), env=where, capture_output=True, text=True, timeout=100
    )
    assert found.returncode == 0, found.stderr
    return json.loads(found.stdout)


FLAT = """
    import gc, json, random, sys, tracemalloc
    from everything import everything
    from mutations import mutate_line
    from targets import no_surprise

    server, chance, valid = everything(), random.Random(7), json.load(sys.stdin)
    heard = []
    server.peer.send = lambda line: heard.append(0)

    def garbage(lines):
        for _ in range(lines):
            line = json.dumps(chance.choice(valid))
            for _ in range(chance.randrange(3)):
                line = mutate_line(line, chance)
            yield line if chance.random() < 0.9 else line[: chance.randrange(len(line))]

    def feed(lines):
        with no_surprise():
            for line in garbage(lines):
                server.handle_line(line)
            for context in list(server.peer.in_flight.values()):
                params = {"requestId": context.id}
                cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
                server.handle_line(json.dumps(cancel))
            server.announce("tools")
        gc.collect()

    feed(600)
    tracemalloc.start()
    feed(100)
    before = tracemalloc.get_traced_memory()[0]
    feed(2000)
    grown = tracemalloc.get_traced_memory()[0] - before
    print(json.dumps([grown, len(heard), len(server.peer.in_flight), len(server.listeners)]))
"""


def test_memory_is_flat_however_much_comes_in():
    """Messages that were changed once or twice, and halves of some: the same ones each time."""
    grown, heard, in_flight, listeners = in_a_process_of_its_own(FLAT, VALID)
    assert heard > 100
    assert (in_flight, listeners) == (0, 0)
    assert grown < 50_000, f"{grown} bytes were kept"


ECHO = json.dumps(modern("tools/call", {"name": "echo", "arguments": {"value": "HERE"}}))
ROOM = """
    import json, sys, tracemalloc
    from targets import SERVER, no_surprise

    def measured(line):
        tracemalloc.start()
        with no_surprise():
            size = len(SERVER.handle_line(line))
        kept, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return size / len(line), most / len(line), kept

    echo, much = json.load(sys.stdin), 2**18
    large = {
        "text": json.dumps("é" * much, ensure_ascii=False),
        "lists": "[" + "[]," * (much // 3) + "[]]",
        "objects": "[" + '{"a":1},' * (much // 8) + "0]",
        "names": "{" + ",".join(f'"n{one}":0' for one in range(much // 10)) + "}",
        "digits": "1" * much,
        "depth": "[" * much,
        "blanks": "[" + " " * much + "]",
    }
    SERVER.handle_line(echo)
    found = {}
    for kind, text in large.items():
        found[kind] = measured(text)
        found[f"{kind} as an argument"] = measured(echo.replace('"HERE"', text))
        found[f"{kind} for arguments"] = measured(echo.replace('{"value": "HERE"}', text))
    print(json.dumps(found))
"""


def test_a_large_line_takes_memory_in_proportion_and_gives_it_back():
    """What is kept are the free lists of Python, which have a fixed size."""
    found = in_a_process_of_its_own(ROOM, ECHO)
    assert len(found) == 21
    for kind, (size, most, kept) in found.items():
        assert size < 8, f"{kind}: the answer is {size:.1f} times as long"
        assert most < 64, f"{kind}: {most:.1f} bytes for each that came"
        assert kept < 300_000, f"{kind}: {kept} bytes were kept"


def test_a_thousand_mistakes_make_no_longer_answer_than_twenty():
    """A reply that named every problem, and each time all known names, was 55 times the line."""
    server = Server("demo", version="1.0.0")
    known = {f"parameter_{number}": {"type": "integer"} for number in range(40)}
    schema = {"type": "object", "properties": known, "additionalProperties": False}
    server.tool(lambda: "x", name="many", input_schema=schema)

    def answer(mistakes):
        arguments = {f"n{number}": 0 for number in range(mistakes)}
        return server.handle_line(
            json.dumps(modern("tools/call", {"name": "many", "arguments": arguments}))
        )

    assert len(answer(1000)) < len(answer(25)) + 500
    assert "n0: unknown name" in answer(1000)


def test_whether_items_differ_is_found_in_time_in_proportion():
    """Each item was compared with every other one: 40,000 took minutes."""
    schema = {"type": "array", "uniqueItems": True}
    values = [[number, str(number)] for number in range(40_000)]
    began = time.process_time()
    assert validate(values, schema) == []
    assert validate([*values, [0.0, "0"]], schema) == [("", "expected items that differ")]
    assert time.process_time() - began < 10


# -- stdio


class Talk(wire.Conversation):
    """A conversation in which requests with one id may be answered in any order."""

    def replied(self, reply):
        key = wire.id_key(reply["id"]) if "id" in reply else None
        asked = self._open.get(key, []) if key else [None]
        problems = [wire.WireError(f"an answer to no request: {reply!r}")]
        for request in list(asked):
            try:
                self.settle(request, reply)
                return asked.remove(request)
            except (wire.WireError, AttributeError, KeyError) as problem:  # it fits another one
                problems.append(problem)
        raise problems[-1]

    def waits_for(self, requests):
        """Whether one of these has no answer yet."""
        keys = Counter(wire.id_key(one["id"]) for one in requests)
        others = {key: sum(map(targets.wants_reply, self._open.get(key, []))) for key in keys}
        return any(others.values())


@pytest.fixture(scope="module")
def long_lived():
    """One server process for all examples; in the end it is as well as at the beginning."""
    with Stdio([sys.executable, str(FUZZ / "everything.py")], check=False) as server:
        server.talk, server.rounds = Talk(), 0
        talk_to(server, b"")
        size = memory_of(server.process.pid)
        yield server
        grown = memory_of(server.process.pid) - size
        server.close_stdin()
        assert server.wait() == 0
        assert "Traceback" not in server.stderr, server.stderr[-3000:]
        assert grown < 16 * 2**20, f"it has grown by {grown} bytes"


def memory_of(pid):
    """The bytes that a process has in memory; nothing where there is no telling."""
    table = Path(f"/proc/{pid}/statm")
    return int(table.read_text().split()[1]) * resource.getpagesize() if table.exists() else 0


def talk_to(server, data):
    """Write lines, then a question; check what comes until all of it is answered."""
    server.rounds += 1
    last = f"the end of round {server.rounds}"
    lines = data.decode(errors="surrogateescape").split("\n")
    messages = [targets.readable(line) for line in lines]
    listens = [one for one in messages if isinstance(one, dict) and "id" in one]
    listens = [one for one in listens if one.get("method") == targets.LISTEN]
    end = [cancelled(one["id"]) for one in listens]
    end.append(modern("tools/call", {"name": "text.echo", "arguments": {"text": last}}, last))
    for message in [*messages, *end]:
        server.talk.asked(message)
    server.send_raw(b"\n".join([data, *(json.dumps(one).encode() for one in end), b""]))
    owed = [one for one in [*messages, end[-1]] if targets.wants_reply(one)]
    over = {wire.id_key(one["params"].get("requestId")) for one in messages if is_cancel(one)}
    owed = [one for one in owed if wire.id_key(one["id"]) not in over]
    pairs = zip(lines, messages, strict=True)
    said = [message for line, message in pairs if line and not line.isspace()]
    errors = sum(map(targets.is_unaddressed, said))
    while server.talk.waits_for(owed) or errors > 0:
        line = server.read_raw(PATIENCE)
        assert line is not None, f"the server has ended: {server.stderr[-2000:]}"
        server.talk.answered(line.decode())
        found = json.loads(line)
        assert found.get("error", {}).get("code") != -32603, found
        errors -= found.keys() == {"jsonrpc", "error"}  # to what has no id
    assert errors == 0, "an error that nobody had asked for"
    server.talk._open.clear()  # what is left was cancelled, or no request


def is_cancel(message):
    found = isinstance(message, dict) and message.get("method") == "notifications/cancelled"
    return found and isinstance(message.get("params"), dict)


@every_kind
def test_a_server_on_stdio_lives_through_everything(long_lived, kind):
    @SLOWER
    @given(conversations(kind))
    def holds(data):
        talk_to(long_lived, data)

    holds()


def test_a_server_on_stdio_can_be_asked_twice_at_once_and_answers_each_once(long_lived):
    """All valid messages, many times, without waiting for anything."""
    data = b"\n".join(json.dumps(one).encode() for one in VALID)
    for _ in range(10):
        talk_to(long_lived, data)


HURRIED = """
    import sys
    from everything import everything
    from minimcp import stdio

    stdio.PATIENCE = 1e-5
    stdio.serve(everything())
"""


def test_lines_stay_whole_when_the_leader_changes_all_the_time(tmp_path):
    """Found by these tests on a busy machine: two leaders read at once, and lines were torn.

    A leader that is deposed between two lines reads on, while the new one reads already; and
    `readline` of one buffered pipe by two threads loses lines and puts parts of them together.
    """
    calls = [
        modern("tools/call", {"name": "add", "arguments": {"a": id, "b": 0}}, id)
        for id in range(5000)
    ]
    where = {"PYTHONPATH": os.pathsep.join([str(FUZZ), str(FUZZ.parents[1])])}
    with Stdio(server_file(tmp_path, HURRIED), env=where, check=False) as server:
        lines = "".join(json.dumps(call) + "\n" for call in calls).encode()
        writer = threading.Thread(target=server.send_raw, args=(lines,), daemon=True)
        writer.start()
        replies = [json.loads(server.read_raw()) for _ in calls]
        server.close_stdin()
        assert server.read_raw() is None
    sums = {reply.get("id"): reply.get("result", {}).get("structuredContent") for reply in replies}
    assert sums == {id: id for id in range(5000)}


# -- HTTP

HEADERS = [b"host", b"origin", b"content-type", b"accept", b"mcp-protocol-version", b"mcp-method"]
HEADERS += [b"mcp-name", b"mcp-param-region", b"mcp-param-zone", b"authorization", b"x-other"]
VALUES = [b"", b"localhost", b"http://localhost:1", b"evil.example", b"application/json", b"*/*"]
VALUES += [b"text/event-stream", MODERN.encode(), LEGACY.encode(), b"2030-01-01", b"tools/call"]
VALUES += [b"add", b"=?base64?YQ==?=", b"=?base64?", b"Bearer x", b"\xff", b"a, b", b"1.0"]
FIELDS = st.tuples(st.sampled_from(HEADERS), st.sampled_from(VALUES) | st.binary(max_size=12))


@st.composite
def posts(draw, kind):
    """A body, the headers that belong to it, and some that do not."""
    body = draw(kind)
    right = {b"host": b"localhost", b"content-type": b"application/json"}
    message = targets.readable(body.decode(errors="surrogateescape"))
    try:
        says = targets.rightly(message)
    except (KeyError, TypeError, AttributeError):
        says = {"mcp-protocol-version": draw(st.sampled_from([MODERN, LEGACY, OLD]))}
    right |= {key.encode(): str(one).encode(errors="replace") for key, one in says.items()}
    fields = list(right.items())
    if draw(st.integers(0, 2)) == 0:
        fields = [one for one in fields if draw(st.integers(0, 5))]
        fields += draw(st.lists(FIELDS, max_size=3))
    return fields, body


PATHS = ["/mcp", "/mcp/", "/", "", "/mcp/x", "//mcp", "/MCP", "/\ud800", "/mcp\0", "mcp"]


@pytest.fixture(scope="module")
def served():
    """The app with its threads, and a loop to run it in."""
    loop = asyncio.new_event_loop()
    yield app(targets.SERVER, max_body=10_000), loop
    loop.close()


@every_kind
def test_the_app_answers_every_post_once(served, kind):
    @SLOWER
    @given(posts(kind), st.integers(1, 3))
    def holds(request, pieces):
        (fields, body), (found, loop) = request, served
        scope = targets.scope(fields)
        loop.run_until_complete(targets.exchange(found, scope, fields, body, pieces))

    holds()


@SLOWER
@given(posts(CHANGED), st.sampled_from(["GET", "PUT", "OPTIONS", "post"]), st.sampled_from(PATHS))
def test_the_app_turns_every_other_request_away(served, request, method, path):
    (fields, body), (found, loop) = request, served
    scope = targets.scope(fields, method, path)
    caller = loop.run_until_complete(targets.exchange(found, scope, fields, body))
    assert caller.sent[0]["status"] in (403, 404, 405)
    assert caller.taken == 0


@pytest.mark.parametrize("size", [9_999, 10_001, 10**6])
def test_the_app_reads_no_more_than_a_body_may_have(served, size):
    found, loop = served
    fields = [(b"host", b"localhost"), (b"content-type", b"application/json")]
    body, pieces = b"[" * size, size // 1000
    caller = loop.run_until_complete(
        targets.exchange(found, targets.scope(fields), fields, body, pieces)
    )
    assert caller.sent[0]["status"] == (400 if size <= 10_000 else 413)
    assert caller.taken <= min(size, 12_000)


def kind_base64(text):
    """What a decoder that is not strict would take for the text, and a strict one does not."""
    code = base64.b64encode(text.encode())
    strange = [code.rstrip(b"="), code + b"=", code[:2] + b" " + code[2:], code + b"!", b""]
    return [b"=?base64?" + one + b"?=" for one in strange]


@st.composite
def nearly_right(draw):
    """A modern message with its headers, one of which says it in another way, or something else."""
    message = draw(st.sampled_from([one for one in VALID if "_meta" in one.get("params", {})]))
    says = {key.encode(): value.encode() for key, value in targets.rightly(message).items()}
    name = draw(st.sampled_from([*says, b"mcp-param-region", b"mcp-param-zone"]))
    value = says.get(name, b"")
    text = value.decode("latin-1")
    code = b"=?base64?" + base64.b64encode(value) + b"?="
    others = [code, code.upper(), code[:-2], code + b" ", *kind_base64(text), value + b".0"]
    says[name] = draw(
        st.sampled_from([value, *others, value.upper(), b"", b"\xff", value + b"\xa0"])
    )
    lines = [key + b": " + one for key, one in says.items()]
    return b"\n".join([*lines, b"", json.dumps(message).encode()])


@settings(QUICK, max_examples=400)
@given(nearly_right())
def test_headers_that_say_something_else_than_the_body_are_refused_and_no_others(data):
    targets.headers(data)


# -- what the fuzzer knows, and what it has found


@pytest.mark.parametrize("target", targets.TARGETS)
def test_every_seed_of_the_fuzzer_holds(target):
    seeds = targets.seeds(target)
    assert len(seeds) > 5
    for seed in seeds:
        targets.TARGETS[target](seed)


def fail(*_):
    raise RuntimeError("planted")


def said_twice(post, reply):
    for _ in range(2):
        post.put(dumps(reply), 200)


QUESTION = json.dumps(modern("tools/call", {"name": "add", "arguments": {"a": 2}}))
POST = b"content-type: application/json\nmcp-protocol-version: 2025-11-25\n\n"
POST += json.dumps(legacy("tools/list")).encode()
PLANTED = {
    "an exception gets out": ("minimcp.server.loads", fail, "seam", "{}"),
    "an exception inside": ("minimcp.server.admit", fail, "seam", QUESTION),
    "NaN is read": ("minimcp.server.loads", json.loads, "seam", ECHO.replace('"HERE"', "NaN")),
    "no answer": ("minimcp.server.write", lambda reply: None, "seam", QUESTION),
    "no word about nonsense": ("minimcp.server.write", lambda reply: None, "seam", "nonsense"),
    "an answer on two lines": (
        "minimcp.server.write",
        lambda reply: json.dumps(reply, indent=1),
        "seam",
        QUESTION,
    ),
    "half a character": ("minimcp.server.write", lambda reply: '{"a":"\ud800"}', "seam", QUESTION),
    "NaN is written": ("minimcp.server.write", lambda reply: '{"a":NaN}', "seam", QUESTION),
    "another id": (
        "minimcp.server.write",
        lambda reply: dumps({**reply, "id": 9}),
        "seam",
        QUESTION,
    ),
    "no type of a result": ("minimcp.server.dress", lambda result, _: result, "seam", QUESTION),
    "a call that never ends": ("minimcp.context.Context.close", lambda _: True, "seam", QUESTION),
    "a notification is answered": ("minimcp.server.is_request", bool, "seam", '{"method": "x"}'),
    "everything is of every type": (
        "minimcp.schema.is_type",
        lambda value, name: True,
        "schema",
        '{"type": "integer"}\n"x"',
    ),
    "headers are not compared": (
        "targets.check",
        lambda *_: None,
        "headers",
        "mcp-method: x\n\n" + QUESTION,
    ),
    "two answers": ("minimcp.http.Post.finish", said_twice, "asgi", POST.decode()),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_found(monkeypatch, bug):
    """What never fails shows nothing: with a bug in the code, each target says so."""
    where, wrong, target, data = PLANTED[bug]
    targets.TARGETS[target](data.encode())
    monkeypatch.setattr(where, wrong)
    with pytest.raises((AssertionError, RuntimeError, UnicodeError)):
        targets.TARGETS[target](data.encode())
    targets.SERVER.listeners.clear()
    wire.violations.clear()  # they belong to the bug


HUGE = ["1e999", "-1e999", "1" * 400 + ".0", '["é", 1e999]']


@pytest.mark.parametrize("number", HUGE)
def test_a_number_that_no_float_can_hold_is_refused_as_it_is_read(number):
    """Found by the fuzzer: it became an infinity, which no reply can hold.

    Whether such a line was refused depended on the other letters in it.
    """
    line = ECHO.replace('"HERE"', number)
    reply = json.loads(targets.SERVER.handle_line(line))
    assert reply["error"]["code"] == -32700
    targets.seam(line.encode())


def test_a_revision_in_a_header_that_is_no_ascii_is_refused_in_words():
    """Found by the fuzzer: half a character went into the error, which nobody could write."""
    told = b"content-type: application/json\nmcp-protocol-version: 2030-01-0\x98\n\n"
    targets.asgi(told + json.dumps(legacy("tools/list")).encode())


@pytest.mark.parametrize("value", [1.0, "form", ["form"], None, True])
def test_a_capability_that_is_no_object_is_no_trouble_of_the_server(value):
    """Found by the fuzzer: whether the client can fill in forms was asked of a number."""
    call = modern("tools/call", {"name": "ask"}, capabilities={"elicitation": value})
    targets.seam(json.dumps(call).encode())
    reply = json.loads(targets.SERVER.handle_line(json.dumps(call)))
    assert reply["error"]["code"] in (-32602, -32021)


def test_an_id_that_was_refused_is_free():
    """Found by the fuzzer, in its own checks: they took the next answer for one to `-0.0`."""
    greeting = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {}}
    lines = [
        legacy("initialize", greeting, 0),
        legacy("tools/call", {"name": "chatty", "arguments": {"steps": 9}}, -0.0),
        legacy("initialize", greeting, 0),
    ]
    targets.seam("\n".join(map(json.dumps, lines)).encode())
