"""Notebook 13, any executable is a tool: its exercises, and its table of lines."""

from __future__ import annotations

import json
from typing import Any

from minimcp import ToolError

from .exercise import Exercise, Mistake
from .lines import call, error, failed, line, result, text


def understood(meaning: Any, code: int, out: str, err: str) -> Any:
    """What it means, and if it failed, whether one learns why."""
    try:
        return meaning(code, out, err)
    except ToolError as error:
        why = str(error).strip()
        return {"raises": "ToolError", "says why": why != "" and err.strip() in why}


check_meaning = Exercise(
    "meaning",
    cases=[
        ((0, "Hello, Ada!\n", ""), "plain text, without the newline that echo adds"),
        ((0, '{"mean": 3}\n', ""), "JSON is a value"),
        ((0, "[1, 2]\n", ""), "also this"),
        ((0, "2 and 2\n", ""), "begins like JSON, and is none"),
        ((0, "Name: \n", ""), "only the newline goes; the blank was meant"),
        ((0, "", ""), "it had nothing to say"),
        ((0, "fine\n", "warning: this is old\n"), "who talks on stderr has not failed"),
        ((1, "", "no numbers\n"), "the exit code says that it failed, and stderr says why"),
        ((-9, "", ""), "ended by a signal: Python shows that as a negative code"),
        ((2, '{"mean": 3}\n', "no\n"), "what a failed program printed is no answer"),
    ],
    solution="""
def meaning(code, out, err):
    if code != 0:
        raise ToolError(err.strip() or f"failed with exit code {code}")
    try:
        return json.loads(out)
    except ValueError:
        return out.rstrip("\\n")
""",
    hints=[
        "the exit code alone decides whether it failed: code != 0",
        "try json.loads(out); a ValueError means that it is plain text",
    ],
    mistakes=[
        Mistake(
            """
def meaning(code, out, err):
    if err:
        raise ToolError(err.strip())
    try:
        return json.loads(out)
    except ValueError:
        return out.rstrip("\\n")
""",
            "you take a word on stderr for a failure; programs warn there, and show progress",
        ),
        Mistake(
            """
def meaning(code, out, err):
    if code > 0:
        raise ToolError(err.strip() or f"failed with exit code {code}")
    try:
        return json.loads(out)
    except ValueError:
        return out.rstrip("\\n")
""",
            "a program that was killed has a negative code, and its silence passes for an answer",
        ),
        Mistake(
            """
def meaning(code, out, err):
    if code != 0:
        raise ToolError(err.strip() or f"failed with exit code {code}")
    return json.loads(out)
""",
            "you want JSON from everybody; 'echo Hello' should be good enough",
        ),
        Mistake(
            """
def meaning(code, out, err):
    if code != 0:
        raise ToolError(out)
    try:
        return json.loads(out)
    except ValueError:
        return out.rstrip("\\n")
""",
            "you say what it printed; why it failed stands on stderr",
        ),
    ],
    given={"ToolError": ToolError, "json": json},
    use=understood,
)

A = '{"name": "a", "inputSchema": {"type": "object"}}'
B = '{"name": "b", "inputSchema": {"type": "object"}}'
check_definitions = Exercise(
    "definitions",
    cases=[
        ((f"{A}\n{B}\n",), "two tools, a line each"),
        ((f"{A}\nWelcome!\n{B}\n",), "nonsense in the middle; the tool after it is fine"),
        ((f"{A}\n\n{B}",), "an empty line is nothing, and not even a problem"),
        ((f'{A}\n{{"name": "c"}}\n',), "a definition without inputSchema"),
        (('{"name": 5, "inputSchema": {}}\n',), "a name is a string"),
        (("42\n[]\nnull\n",), "JSON, but no objects"),
        (("",), "no tools at all"),
    ],
    solution="""
def definitions(printed):
    good, bad = [], []
    for line in filter(None, map(str.strip, printed.splitlines())):
        try:
            one = json.loads(line)
            fits = isinstance(one["name"], str) and isinstance(one["inputSchema"], dict)
            (good if fits else bad).append(one if fits else line)
        except (ValueError, KeyError, TypeError):
            bad.append(line)
    return good, bad
""",
    hints=[
        "a try around each line, and not one around all of them",
        "json.loads('42')['name'] is a TypeError, a missing member a KeyError",
        "isinstance(one['name'], str) and isinstance(one['inputSchema'], dict)",
    ],
    mistakes=[
        Mistake(
            """
def definitions(printed):
    try:
        return [json.loads(line) for line in printed.splitlines()], []
    except ValueError:
        return [], [printed]
""",
            "one bad line, and all the tools are gone",
        ),
        Mistake(
            """
def definitions(printed):
    good, bad = [], []
    for line in filter(None, map(str.strip, printed.splitlines())):
        try:
            good.append(json.loads(line))
        except ValueError:
            bad.append(line)
    return good, bad
""",
            "what is JSON passes for a definition; 42 will break something far from here",
        ),
    ],
    given={"json": json},
)

ONE = {"greet": 100, "mean": 100}
check_changes = Exercise(
    "changes",
    cases=[
        ((ONE, ONE), "nothing happened"),
        (({}, ONE), "the first look"),
        ((ONE, {**ONE, "mean": 200}), "one was edited"),
        ((ONE, {**ONE, "mean": 50}), "an older copy was put back: it is another file all the same"),
        ((ONE, {"greet": 100}), "one was removed"),
        ((ONE, {"greet": 100, "average": 100}), "one got another name"),
        ((ONE, {}), "all are gone"),
    ],
    solution="""
def changes(before, now):
    ask = [name for name in now if before.get(name) != now[name]]
    gone = [name for name in before if name not in now]
    return sorted(ask), sorted(gone)
""",
    hints=[
        "before.get(name) is None for a file that is new; and no time is None",
        "different is enough; it need not be later",
    ],
    mistakes=[
        Mistake(
            """
def changes(before, now):
    return sorted(now.keys() - before.keys()), sorted(before.keys() - now.keys())
""",
            "you see what comes and goes, and miss what was edited",
        ),
        Mistake(
            """
def changes(before, now):
    ask = [name for name in now if now[name] > before.get(name, 0)]
    return sorted(ask), sorted(before.keys() - now.keys())
""",
            "you wait for a later time; a file from a backup has an earlier one",
        ),
        Mistake(
            """
def changes(before, now):
    ask = [name for name in now if before.get(name) != now[name]]
    return sorted(ask), []
""",
            "you never forget: tools of a file that is gone stay in the list",
        ),
    ],
)

# ## What both servers are asked, after a handshake


def closed(**properties: Any) -> dict[str, Any]:
    """The schema of a closed object."""
    required = {"required": [*properties], "additionalProperties": False}
    return {"type": "object", "properties": properties, **required}


STRING = {"type": "string"}
NUMBERS = {"type": "array", "items": {"type": "number"}}
LISTED = [
    {"name": "greet", "description": "Greet somebody.", "inputSchema": closed(name=STRING)},
    {"name": "mean", "description": "The mean of numbers.", "inputSchema": closed(numbers=NUMBERS)},
]
THIEF = "'; touch stolen; '"
LINES = [
    (line("tools/list", 1), result(1, {"tools": LISTED})),
    (call(2, "greet", name="Ada"), text(2, "Hello, Ada!")),
    (call(3, "greet", name='"quoted"\n$(ls)'), text(3, 'Hello, "quoted"\n$(ls)!')),
    (call(4, "greet", name=THIEF), text(4, f"Hello, {THIEF}!")),
    (call(5, "mean", numbers=[1, 2, 6]), text(5, '{"mean":3}', structuredContent={"mean": 3})),
    (call(6, "mean", numbers=[]), failed(6)),
    (call(7, "mean", numbers=["a"]), failed(7)),
    (call(8, "greet"), failed(8)),
    (call(9, "greet", name="Ada", loud=True), failed(9)),
    (call(10, "list"), error(-32602, 10)),
    (call(11, "nonsense"), error(-32602, 11)),
]
