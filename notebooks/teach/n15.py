"""Notebook 15, is it right? Its exercises, a planted bug, recorded results, its table of lines."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from importlib import util
from typing import Any

from minimcp.protocol import CAPABILITIES_KEY, SERVER_KEY, VERSION_KEY

from .exercise import Exercise, Mistake
from .lines import error, line, result
from .setup import ROOT

# ## What was recorded where more is installed than a notebook needs

RECORDED = {
    "suite": [  # of the whole suite, what we leave out included
        ["server", "2026-07-28", 164, 30, "the Tasks extension"],
        ["server", "2025-11-25", 75, 2, "sessions over HTTP"],
        ["client", "2026-07-28", 63, 68, "OAuth"],
        ["client", "2025-11-25", 20, 56, "OAuth"],
    ],
    "sdk": {
        "protocol_version": "2026-07-28",
        "tools": ["calc.add", "text.word_count", "text.summarize_naive"],
        "text": "42",
    },
}

# ## Somebody else's server, with one line changed


def planted(line: str) -> str | None:
    """A server in which there is a bug."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return '{"jsonrpc":"2.0","error":{"code":-32700,"message":"this is not JSON"}}'
    if not isinstance(message, dict):
        return '{"jsonrpc":"2.0","error":{"code":-32600,"message":"this is no message"}}'
    if not message.get("id"):
        return None  # a notification
    reply = {"jsonrpc": "2.0", "id": message["id"]}
    if message.get("method") == "ping":
        return json.dumps({**reply, "result": {}})
    return json.dumps({**reply, "error": {"code": -32601, "message": "unknown method"}})


# ## Exercises


def reply(members: dict[str, Any]) -> str:
    """A line that holds a reply with these members."""
    return json.dumps({"jsonrpc": "2.0", "id": 1, "result": {}} | members)


CASES = [
    (1, reply({}), "fine"),
    (1, None, "silence: whoever asked waits for ever"),
    (0, reply({"id": 0}), "0 is an id like any other"),
    (1, reply({"id": 2}), "an answer, but to another question"),
    (1, reply({"id": True}), "true is not 1, though Python finds them equal"),
    (1, reply({"id": 1.0}), "1.0 is not 1 either: it is another text on the wire"),
    ("1", reply({"id": 1}), "the text is not the number"),
    (1, reply({"error": {"code": -32603, "message": "?"}}), "a result and an error at once"),
    (1, '{"jsonrpc": "2.0", "id": 1}', "neither of them"),
    (
        1,
        '{"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "?"}}',
        "an error is a right answer, too",
    ),
    (1, '{"jsonrpc": "2.0",\n"id": 1, "result": {}}', "two lines; on a pipe, two messages"),
    (1, "Traceback (most recent call last):", "no JSON at all"),
    (1, "[]", "JSON, and no reply"),
]
check_holds = Exercise(
    "holds",
    cases=[((ident, answer), why) for ident, answer, why in CASES],
    solution="""
def holds(ident, answer):
    try:
        reply = json.loads(answer)
    except (ValueError, TypeError):
        return False
    if not isinstance(reply, dict) or "\\n" in answer:
        return False
    same = type(reply.get("id")) is type(ident) and reply["id"] == ident
    return same and ("result" in reply) != ("error" in reply)
""",
    hints=[
        "json.loads(None) is a TypeError, json.loads('Traceback') a ValueError",
        "compare the types of the ids as well: type(a) is type(b) and a == b",
        "exactly one of two: ('result' in reply) != ('error' in reply)",
    ],
    mistakes=[
        Mistake(
            """
def holds(ident, answer):
    try:
        reply = json.loads(answer)
        return reply["id"] == ident and ("result" in reply) != ("error" in reply)
    except (ValueError, TypeError, KeyError):
        return False
""",
            "you compare ids with ==, and do not see where a line ends",
        ),
        Mistake(
            """
def holds(ident, answer):
    return answer is not None
""",
            "whatever comes is good enough for you; a fuzzer with this never finds anything",
        ),
        Mistake(
            """
def holds(ident, answer):
    try:
        reply = json.loads(answer)
        same = type(reply["id"]) is type(ident) and reply["id"] == ident
        return same and "result" in reply and "\\n" not in answer
    except (ValueError, TypeError, KeyError):
        return False
""",
            "you want a result from everybody; an error is a right answer, and two at once is none",
        ),
    ],
    given={"json": json},
    label=lambda ident, answer: f"holds({ident!r}, {answer!r})",
)

check_ratio = Exercise(
    "ratio",
    cases=[
        (([2, 2, 2], [1, 1, 1]), "twice as long"),
        (([2, 2, 2, 2, 900], [1, 1, 1, 1, 1]), "once the machine did something else"),
        (([2, 2, 2, 2, 2], [1, 1, 1, 900, 1]), "or while it was the floor's turn"),
        (([1, 2, 2, 2, 2], [1, 1, 1, 1, 1]), "one lucky call is no evidence either"),
        (([3, 2, 4], [2, 2, 2]), "the order in which they came does not matter"),
        (([1, 1, 1], [2, 2, 2]), "faster than the floor? then somebody should look why"),
    ],
    solution="""
def ratio(ours, floor):
    return statistics.median(ours) / statistics.median(floor)
""",
    hints=[
        "one odd value out of many must not change the answer",
        "statistics.median gives the one in the middle",
    ],
    mistakes=[
        Mistake(
            """
def ratio(ours, floor):
    return statistics.mean(ours) / statistics.mean(floor)
""",
            "the mean: a single hiccup of the machine decides",
        ),
        Mistake(
            """
def ratio(ours, floor):
    return min(ours) / min(floor)
""",
            "the best of all: one lucky call decides",
        ),
        Mistake(
            """
def ratio(ours, floor):
    return statistics.median(floor) / statistics.median(ours)
""",
            "upside down: you say how much of ours the floor is",
        ),
    ],
    given={"statistics": statistics},
    use=lambda ratio, ours, floor: float(ratio(ours, floor)),
)

# ## Programs around a server


def checked(command: Sequence[str]) -> Iterator[list[str]]:
    """What examples/check.py says of a server: verdict, requirement and title of each check."""
    check = [sys.executable, str(ROOT / "examples" / "check.py"), "--brief", *command]
    done = subprocess.run(check, capture_output=True, text=True, encoding="utf-8")  # noqa: S603
    for one in done.stdout.splitlines():
        if one[:5] in ("pass ", "FAIL ", "skip "):
            verdict, ident, _, _, title = one.split(maxsplit=4)
            yield [verdict, ident, title]


def official(target: Sequence[str]) -> dict[str, Any]:
    """What the client of the official SDK sees of a server; as recorded if it is not installed."""
    if util.find_spec("mcp") is None:
        return recorded("the official SDK is not installed (pip install 'mcp>=2.3,<3')")
    calls = json.dumps([["calc.add", {"a": 2, "b": 40}]])
    client = [sys.executable, str(ROOT / "tests" / "peers" / "client.py"), "mcp", "auto", calls]
    command = [*client, *target]  # the SDK passes on no PYTHONPATH: start where the package is
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)  # noqa: S603
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["?"]
        return recorded(f"the SDK that is installed could not do it ({said[-1]})")
    found = json.loads(done.stdout)
    (result,) = found.pop("results")
    return {**found, "text": result["text"]}


def recorded(why: str) -> dict[str, Any]:
    """What was recorded, and why that is shown."""
    print(f"{why}; this was recorded with version 2.3.0")
    return RECORDED["sdk"]


class Pipe:
    """A server as a process, and one request that it is sent again and again."""

    def __init__(self, command: Sequence[str], line: str) -> None:
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        pipes["stderr"] = subprocess.DEVNULL
        self.process: Any = subprocess.Popen(command, **pipes)  # noqa: S603
        self.line = line.encode() + b"\n"

    def __call__(self) -> float:
        """The seconds of one round trip."""
        started = time.perf_counter()
        self.process.stdin.write(self.line)
        self.process.stdin.flush()
        self.process.stdout.readline()
        return time.perf_counter() - started

    def __enter__(self) -> Pipe:
        self()  # until it has started
        return self

    def __exit__(self, *exception: object) -> None:
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


# ## What is sent to both

INFO = {"name": "mine", "version": "1"}
HINTS = {"ttlMs": 60_000, "cacheScope": "public"}


def modern(ident: Any, method: str, /, **params: Any) -> str:
    """A modern request as a line."""
    meta = {VERSION_KEY: "2026-07-28", CAPABILITIES_KEY: {}}
    return line(method, ident, **params, _meta=meta)


def call(ident: Any, name: Any, arguments: Any) -> str:
    """A modern call as a line."""
    return modern(ident, "tools/call", name=name, arguments=arguments)


def full(ident: Any, members: dict[str, Any]) -> dict[str, Any]:
    """A modern result."""
    return result(ident, {"resultType": "complete", "_meta": {SERVER_KEY: INFO}, **members})


def text(words: str, **more: Any) -> dict[str, Any]:
    """The members of a tool's result."""
    return {"content": [{"type": "text", "text": words}], **more}


NUMBER = {"type": "integer"}
ADD = {
    "name": "add",
    "description": "Add two integers.",
    "inputSchema": {
        "type": "object",
        "properties": {"a": NUMBER, "b": NUMBER},
        "required": ["a", "b"],
        "additionalProperties": False,
    },
}
ABOUT = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {"listChanged": True}}}
OLD = {"supported": ["2026-07-28"], "requested": "1999-01-01"}
ANCIENT = {VERSION_KEY: "1999-01-01", CAPABILITIES_KEY: {}}
LINES = [
    (modern(1, "server/discover"), full(1, {**ABOUT, **HINTS})),
    (modern("two", "tools/list"), full("two", {"tools": [ADD], **HINTS})),
    (call(0, "add", {"a": 2, "b": 40}), full(0, text("42", structuredContent=42))),
    (call(3, "add", {"a": 2}), full(3, text("…", isError=True))),
    (call(4, "add", {"a": 2, "b": True}), full(4, text("…", isError=True))),
    (call(5, "add", {"a": 2, "b": "40"}), full(5, text("…", isError=True))),
    (call(6, "add", {"a": 2, "b": 40, "c": 1}), full(6, text("…", isError=True))),
    (call(7, "add", [2, 40]), error(-32602, 7)),
    (call(8, "subtract", {}), error(-32602, 8)),
    (call(9, 5, {}), error(-32602, 9)),
    (modern(10, "tools/list", cursor="x"), error(-32602, 10)),
    (modern(11, "initialize"), error(-32601, 11)),
    (modern(12, "ping"), error(-32601, 12)),
    (line("tools/list", 13), error(-32602, 13)),
    (line("tools/list", 14, _meta=ANCIENT), error(-32022, 14, data=OLD)),
    (modern(None, "tools/call", name="add"), None),
    (modern(True, "tools/list"), error(-32600)),
    ('{"id":15}', error(-32600, 15)),
    ('{"jsonrpc":"2.0","id":16,"result":{}}', None),
    ("[]", error(-32600)),
    ('{"jsonrpc":"2.0","id":NaN,"method":"tools/list"}', error(-32700)),
    ("[" * 100_000, error(-32700)),
    ("garbage", error(-32700)),
    ("", None),
]
