"""Notebook 6, the client: its exercises and its table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minimcp import ProtocolError

from .exercise import Exercise, Mistake
from .lines import error, line, result

SOUP, TOAST = {"dish": "soup"}, {"dish": "toast"}

check_match = Exercise(
    "match",
    cases=[
        (({1: "soup", 2: "toast"}, result(2, TOAST)), "the number says whose answer it is"),
        (({1: "soup"}, error(-32601, 1)), "an error is an answer too"),
        (({1: "soup"}, result(7, TOAST)), "nobody waits for 7 (any more): ignore it"),
        (({"1": "soup"}, result(1, SOUP)), 'we asked with the string "1", not with the number'),
        (({1: "soup"}, result(True, SOUP)), "true is no id, though True == 1 in Python"),
        (
            ({1: "soup"}, {"jsonrpc": "2.0", "id": [1], "result": SOUP}),
            "a list cannot be looked up",
        ),
        (({7: "soup"}, error(-32700)), "an error without an id can only mean the one who waits"),
        (({7: "soup", 8: "toast"}, error(-32700)), "two wait; do not guess which of them"),
        (({7: "soup"}, {"jsonrpc": "2.0", "result": SOUP}), "a result without an id is nobody's"),
        (({1: "soup"}, error(-32601, 7)), "an error with an id is for that one, and nobody else"),
        (({1: "soup"}, result(1.0, SOUP)), "1.0 is another id than 1, though 1.0 == 1 in Python"),
        (({"a": "soup"}, result("a", SOUP)), "a string is an id like any other"),
    ],
    solution="""
def match(waiting, reply):
    ident = reply.get("id")
    if ident is None and "error" in reply and len(waiting) == 1:
        return next(iter(waiting))
    if type(ident) in (int, str) and ident in waiting:
        return ident
    return None
""",
    hints=[
        "look at the type of the id first: only strings and integers can be looked up",
        "type(ident) in (int, str) lets no True through, and no list",
        "an error without an id: if exactly one waits, next(iter(waiting)) is that one",
    ],
    mistakes=[
        Mistake(
            """
def match(waiting, reply):
    ident = reply.get("id")
    return ident if ident in waiting else None
""",
            "you look up whatever came; true finds request 1, and a list is a TypeError",
        ),
        Mistake(
            """
def match(waiting, reply):
    ident = reply.get("id")
    if "error" in reply and ident is None:
        return next(iter(waiting))
    if type(ident) in (int, str) and ident in waiting:
        return ident
    return None
""",
            "you give an error without an id to the first who waits, even if there are two",
        ),
        Mistake(
            """
def match(waiting, reply):
    for ident in waiting:
        if str(ident) == str(reply.get("id")):
            return ident
    return None
""",
            'you compare texts; 1 and "1" are different ids',
        ),
    ],
)

SAID = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}}

check_outcome = Exercise(
    "outcome",
    cases=[
        (([(0.4, result(1, SOUP))], 1, 1.0), "it came in time"),
        (([(1.4, result(1, SOUP))], 1, 1.0), "it came too late"),
        (([], 1, 1.0), "it never came"),
        (([(0.1, result(2, TOAST)), (0.4, result(1, SOUP))], 1, 1.0), "the first was for another"),
        (([(0.4, error(-32603, 1))], 1, 1.0), "an error is an answer"),
        (([(0.2, SAID), (0.4, result(1, SOUP))], 1, 1.0), "a notification has no id"),
        (
            ([(0.6, SAID), (1.2, SAID), (1.8, result(1, SOUP))], 1, 1.0),
            "who says something now and then must not keep us for ever",
        ),
    ],
    solution="""
def outcome(events, ident, timeout):
    for seconds, message in events:
        if seconds > timeout:
            break
        if message.get("id") == ident:
            return message
    return "time-out"
""",
    hints=[
        "the time-out counts from the question, not from the last thing that came",
        "skip messages with another id or none; stop at the first that is later than the time-out",
    ],
    mistakes=[
        Mistake(
            """
def outcome(events, ident, timeout):
    last = 0
    for seconds, message in events:
        if seconds - last > timeout:
            break
        if message.get("id") == ident:
            return message
        last = seconds
    return "time-out"
""",
            "you start the clock again with everything that comes; a chatty server keeps you",
        ),
        Mistake(
            """
def outcome(events, ident, timeout):
    for seconds, message in events:
        if message.get("id") == ident:
            return message
    return "time-out"
""",
            "you never look at the clock",
        ),
        Mistake(
            """
def outcome(events, ident, timeout):
    for seconds, message in events:
        return message if seconds <= timeout else "time-out"
    return "time-out"
""",
            "you take the first thing that comes for the answer",
        ),
    ],
)

check_result_of = Exercise(
    "result_of",
    cases=[
        ((result(1, TOAST),), "the ordinary case"),
        ((result(1, {}),), "an empty result is a result"),
        (
            ({"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "no tea"}},),
            "it said no",
        ),
        (({"jsonrpc": "2.0", "id": 1},), "neither a result nor an error"),
        (({"jsonrpc": "2.0", "id": 1, "result": "toast"},), "in MCP a result is an object"),
        (({"jsonrpc": "2.0", "id": 1, "result": None},), "null is no object either"),
        (({"jsonrpc": "2.0", "id": 1, "error": "no tea"},), "an error has a code and a message"),
        (({"jsonrpc": "2.0", "id": 1, "error": {"message": "no tea"}},), "this one has no code"),
        (({"jsonrpc": "2.0", "id": 1, "error": {"code": -32603}},), "and this one no message"),
    ],
    solution="""
def result_of(reply):
    error = reply.get("error")
    if isinstance(error, dict) and isinstance(error.get("code"), int) and "message" in error:
        raise ProtocolError(error["code"], error["message"])
    if isinstance(reply.get("result"), dict):
        return reply["result"]
    raise ConnectionError(f"malformed reply: {reply}")
""",
    hints=[
        "look at the error first, then at the result; each of them may be malformed",
        'an error is a dict with a "code", which is an int, and a "message"',
        "what is neither such an error nor a dict as result is malformed, whatever it is",
    ],
    mistakes=[
        Mistake(
            """
def result_of(reply):
    if "error" in reply:
        raise ProtocolError(reply["error"]["code"], reply["error"]["message"])
    return reply["result"]
""",
            "you trust the reply; what is malformed becomes a KeyError, far from its cause",
        ),
        Mistake(
            """
def result_of(reply):
    if "error" in reply:
        raise ProtocolError(-32603, str(reply["error"]))
    return reply.get("result")
""",
            "you make something of everything; a missing result is None, as if all were well",
        ),
        Mistake(
            """
def result_of(reply):
    if isinstance(reply.get("result"), dict):
        return reply["result"]
    raise ConnectionError("malformed reply")
""",
            "you forget that a server may say no: an error is an answer, and well-formed",
        ),
    ],
    given={"ProtocolError": ProtocolError},
    raises=ConnectionError,
)

# What comes back for request 1, and what whoever asked gets for it: the reply, or nothing.
LINES = [
    ('{"jsonrpc":"2.0","id":1,"result":{"dish":"soup"}}', result(1, SOUP)),
    ('{"id":1,"result":{"dish":"soup"}}', {"id": 1, "result": SOUP}),
    ('{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"?"}}', error(-32601, 1)),
    ('{"jsonrpc":"2.0","error":{"code":-32700,"message":"?"}}', error(-32700)),
    ('{"jsonrpc":"2.0","id":2,"result":{}}', None),
    ('{"jsonrpc":"2.0","id":"1","result":{}}', None),
    ('{"jsonrpc":"2.0","id":true,"result":{}}', None),
    ('{"jsonrpc":"2.0","id":1.0,"result":{}}', None),
    ('{"jsonrpc":"2.0","id":[1],"result":{}}', None),
    ('{"jsonrpc":"2.0","result":{}}', None),
    (line("ping", 1), None),
    (line("notifications/message"), None),
    ("Welcome to the kitchen!", None),
    ("", None),
    ("42", None),
    ("null", None),
    ('[{"jsonrpc":"2.0","id":1,"result":{}}]', None),
    ('{"jsonrpc":"2.0","id":1,"result":{"grams":NaN}}', None),
    ('{"jsonrpc":"2.0","id":1,"result":{"dish":"\\ud83c"}}', None),
    ("[" * 100_000, None),
]


class Says:
    """A wire at whose other end somebody answers everything with one line, and hangs up."""

    def __init__(self, line: str) -> None:
        self.line = line

    def open(self, receive: Callable[[str | None], None]) -> None:
        """Remember who wants to hear it."""
        self.receive = receive

    def send(self, message: dict[str, Any], timeout: float | None = None) -> None:
        """Answer at once, whatever it was."""
        self.receive(self.line)
        self.receive(None)

    def obituary(self) -> str:
        """What is known about the end."""
        return "hung up"
