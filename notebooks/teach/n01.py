"""Notebook 1, a line in, a line out: its exercises and its table."""

from __future__ import annotations

import json

from .exercise import Exercise, Mistake
from .lines import error, result

check_kind = Exercise(
    "kind",
    cases=[
        (({"jsonrpc": "2.0", "id": 1, "method": "ping"},), "it asks, and wants an answer"),
        (({"jsonrpc": "2.0", "method": "notifications/initialized"},), "no id: nobody waits"),
        (({"jsonrpc": "2.0", "id": 0, "method": "ping"},), "0 is an id like any other"),
        (({"jsonrpc": "2.0", "id": "", "method": "ping"},), "so is the empty string"),
        (({"jsonrpc": "2.0", "id": 1, "result": {}},), "an answer, and it went well"),
        (
            ({"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "?"}},),
            "an error is an answer too",
        ),
    ],
    solution="""
def kind(message):
    if "method" not in message:
        return "response"
    return "request" if "id" in message else "notification"
""",
    hints=[
        "only two members decide: is there a method, and is there an id?",
        "ask whether a member is there ('id' in message), not what its value is",
        "without a method it is a response; with one, the id tells a request from a notification",
    ],
    mistakes=[
        Mistake(
            """
def kind(message):
    if "method" not in message:
        return "response"
    return "request" if message.get("id") else "notification"
""",
            "you test the value of the id; 0 and '' are false in Python, and good ids",
        ),
        Mistake(
            """
def kind(message):
    if "result" in message:
        return "response"
    return "request" if "id" in message else "notification"
""",
            "you know responses by their result; one that failed has an error instead",
        ),
        Mistake(
            """
def kind(message):
    return "request" if "id" in message else "notification"
""",
            "you take every message with an id for a request; responses carry ids too",
        ),
    ],
)

check_loads = Exercise(
    "loads",
    cases=[
        (('{"a": [1, 2.5, null]}',), "ordinary JSON is read as ever"),
        (("NaN",), "NaN is Python, not JSON"),
        (('{"a": -Infinity}',), "nor is Infinity, at any depth"),
        (('"NaN"',), "a text may say NaN"),
        (("{'a': 1}",), "quotes in JSON are double"),
        (("[" * 100_000,), "very deep nesting is a line that cannot be read, no crash"),
    ],
    solution="""
def loads(line):
    def refuse(constant):
        raise ValueError(f"{constant} is not JSON")

    try:
        return json.loads(line, parse_constant=refuse)
    except RecursionError:
        raise ValueError("nested too deeply") from None
""",
    hints=[
        "help(json.loads) has something about parse_constant",
        "parse_constant is called with 'NaN', 'Infinity' or '-Infinity'; let it raise ValueError",
        "deep nesting raises RecursionError; catch it, and raise ValueError instead",
    ],
    mistakes=[
        Mistake(
            """
def loads(line):
    return json.loads(line)
""",
            "this is json.loads as it is; it reads NaN, and deep nesting is a RecursionError",
        ),
        Mistake(
            """
def loads(line):
    if "NaN" in line or "Infinity" in line:
        raise ValueError("not JSON")
    try:
        return json.loads(line)
    except RecursionError:
        raise ValueError("nested too deeply") from None
""",
            "you search the text; a string that says NaN is good JSON",
        ),
        Mistake(
            """
def loads(line):
    def refuse(constant):
        raise ValueError(f"{constant} is not JSON")

    return json.loads(line, parse_constant=refuse)
""",
            "NaN is refused, well done; now the deep nesting, which is a RecursionError",
        ),
    ],
    given={"json": json},
    raises=ValueError,
    label=lambda line: f"loads({line!r})" if len(line) < 80 else "loads('[' * 100_000)",
)

check_is_id = Exercise(
    "is_id",
    cases=[
        ((1,), "an integer"),
        (("seven",), "a string"),
        ((0,), "0 is an integer"),
        (("",), "an empty string is a string"),
        ((True,), "JSON's true is no number, whatever Python says"),
        ((None,), "null is no id in MCP"),
        ((1.5,), "no fractions"),
        (([1],), "a list cannot even be a key of a dict"),
    ],
    solution="""
def is_id(value):
    return type(value) is int or type(value) is str
""",
    hints=[
        "in Python, isinstance(True, int) is True",
        "type(value) is int asks for exactly this type; isinstance lets subclasses in",
    ],
    mistakes=[
        Mistake(
            """
def is_id(value):
    return isinstance(value, (int, str))
""",
            "you use isinstance; a bool is an int for it, so `true` would be request 1",
        ),
        Mistake(
            """
def is_id(value):
    return value is not None
""",
            "you only refuse null; true, 1.5 and lists are no ids either",
        ),
        Mistake(
            """
def is_id(value):
    return bool(value) and type(value) in (int, str)
""",
            "you refuse what is false in Python, and 0 and '' with it",
        ),
    ],
)


LINES = [
    ('{"jsonrpc":"2.0","id":1,"method":"ping"}', result(1, {})),
    ('{"jsonrpc":"2.0","id":"x","method":"ping"}', result("x", {})),
    ('{"jsonrpc":"2.0","id":0,"method":"ping"}', result(0, {})),
    ('{"jsonrpc":"2.0","method":"notifications/whatever"}', None),
    ("   ", None),
    ('{"jsonrpc":"2.0","id":1,"result":{}}', None),
    ('{"jsonrpc":"2.0","id":2,"method":"make/coffee"}', error(-32601, 2)),
    ("make coffee", error(-32700)),
    ('{"jsonrpc":"2.0","id":NaN,"method":"ping"}', error(-32700)),
    ("[" * 100_000, error(-32700)),
    ("42", error(-32600)),
    ('[{"jsonrpc":"2.0","id":3,"method":"ping"}]', error(-32600)),
    ('{"id":4,"method":"ping"}', error(-32600, 4)),
    ('{"jsonrpc":"2.0","id":5,"method":["ping"]}', error(-32600, 5)),
    ('{"jsonrpc":"2.0","id":true,"method":"ping"}', error(-32600)),
    ('{"jsonrpc":"2.0","id":null,"method":"ping"}', error(-32600)),
    ('{"jsonrpc":"2.0","id":6,"method":"ping","params":[1]}', error(-32602, 6)),
    ('{"jsonrpc":"2.0","method":"make/coffee","params":[1]}', None),
    ('{"jsonrpc":"2.0","id":7,"method":"divide"}', error(-32603, 7)),
]
