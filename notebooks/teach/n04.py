"""Notebook 4, two kinds of failure: its exercises, its tools and its table."""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stderr
from typing import Any, Literal

from minimcp import ProtocolError, Server, ToolError

from .exercise import Exercise, Mistake
from .lines import call, error, failed, line, text

KINDS = {
    "the line is no JSON": "error",
    "there is no method tools/cal": "error",
    "there is no tool ad, only add": "error",
    "arguments.count is a text, and should be an integer": "?",
    "the file that the tool should read does not exist": "?",
    "arguments is a list, not an object": "?",
    "the tool divided by zero": "?",
    "no table is free on Friday": "?",
    "the server's code for tools/list has a bug": "?",
}
RIGHT = dict(
    zip(KINDS, ["error"] * 3 + ["result"] * 2 + ["error"] + ["result"] * 2 + ["error"], strict=True)
)
REASONS = {
    "the line is no JSON": "no tool was called; the client program is broken",
    "there is no method tools/cal": "a slip in a program, not in what the model chose",
    "there is no tool ad, only add": "the host should only offer what was listed; MCP says -32602",
    "arguments.count is a text, and should be an integer": "the model wrote it, and can write it "
    "better",
    "the file that the tool should read does not exist": "the model can ask for another one",
    "arguments is a list, not an object": "no model chose this: it is the shape of the request",
    "the tool divided by zero": "a tool that fails is a result, whatever the reason; the model may "
    "try other numbers",
    "no table is free on Friday": "nothing is broken at all; the model can try Saturday",
    "the server's code for tools/list has a bug": "no tool was called; only its author can help",
}

check_kinds = Exercise(
    "kinds",
    cases=[((situation,), REASONS[situation]) for situation in KINDS],
    solution=f"kinds = {RIGHT!r}".replace(", '", ",\n    '").replace("{", "{\n    "),
    hints=[
        "who can do something about it: the model, or only somebody who changes a program?",
        "what the model chose, or what happened inside a tool, is a result; all else is an error",
    ],
    mistakes=[
        Mistake(
            f"kinds = dict.fromkeys({list(KINDS)!r}, 'error')",
            "to you, everything that fails is an error; then no model ever learns anything",
        ),
        Mistake(
            f"kinds = {RIGHT!r} | {{'the tool divided by zero': 'error'}}",
            "a bug in a tool is a result as well: the conversation goes on, and the operator has "
            "the traceback",
        ),
        Mistake(
            f"kinds = {RIGHT!r} | {{'arguments is a list, not an object': 'result'}}",
            "you mix up arguments that do not fit the schema, and arguments that are no arguments",
        ),
    ],
    use=lambda kinds, situation: kinds.get(situation),
    label=lambda situation: f"kinds[{situation!r}]",
)


def _fine() -> str:
    return "fine"


def _full() -> str:
    raise ToolError("no table is free on fri; free: sat, sun")


def _buggy() -> str:
    return str(1 / 0)


def _quits() -> str:
    sys.exit("tired")


def _protocol() -> str:
    raise ProtocolError(-32602, "no such thing")


def outcome(run: Any, tool: Any) -> Any:
    """What an answer makes of a tool; what a traceback would go to is kept apart."""
    try:
        with redirect_stderr(io.StringIO()):
            return run(tool)
    except SystemExit:
        return "the server ended"


check_run = Exercise(
    "run",
    cases=[
        ((_fine,), "a tool that works"),
        ((_full,), "a ToolError was written for the model: its text, and nothing else"),
        ((_buggy,), "any other exception: its kind and its text, in one line"),
        ((_quits,), "a tool that calls exit() must not end the server"),
        ((_protocol,), "a ProtocolError is meant for the client, and goes on as it is"),
    ],
    solution="""
def run(tool):
    try:
        return {"text": tool(), "isError": False}
    except ToolError as error:
        return {"text": str(error), "isError": True}
    except ProtocolError:
        raise
    except (Exception, SystemExit) as error:
        return {"text": f"{type(error).__name__}: {error}", "isError": True}
""",
    hints=[
        "one try, and an except for each kind; Python takes the first that matches",
        "'except ProtocolError: raise' lets it pass",
        "SystemExit is no Exception: except (Exception, SystemExit)",
    ],
    mistakes=[
        Mistake(
            """
def run(tool):
    try:
        return {"text": tool(), "isError": False}
    except Exception as error:
        return {"text": f"{type(error).__name__}: {error}", "isError": True}
""",
            "all failures look alike: the model reads the names of Python classes in what was "
            "written for it, and a ProtocolError is lost",
        ),
        Mistake(
            """
def run(tool):
    try:
        return {"text": tool(), "isError": False}
    except ToolError as error:
        return {"text": str(error), "isError": True}
    except ProtocolError:
        raise
    except Exception as error:
        return {"text": f"{type(error).__name__}: {error}", "isError": True}
""",
            "nearly: SystemExit is no Exception, so sys.exit() in a tool ends your server",
        ),
        Mistake(
            """
def run(tool):
    try:
        return {"text": tool(), "isError": False}
    except ProtocolError:
        raise
    except (Exception, SystemExit) as error:
        return {"text": str(error), "isError": False}
""",
            "you say isError: False about a failure; the host takes the text for the answer",
        ),
    ],
    given={"ToolError": ToolError, "ProtocolError": ProtocolError},
    use=outcome,
    label=lambda tool: f"run({tool.__name__.strip('_')})",
)

NOTES = {"monday": "buy tea", "friday": "table for two"}


def useful(read_note: Any, name: str) -> Any:
    """What a model could do with what it reads."""
    try:
        return read_note(name)
    except ToolError as error:
        said = str(error)
        return {
            "raises": "ToolError",
            "says what came": name in said,
            "says what there is": all(note in said for note in NOTES),
            "says what is in the notes": any(note in said for note in NOTES.values()),
        }


check_read_note = Exercise(
    "read_note",
    cases=[
        (("monday",), "a note that is there"),
        (("friday",), "another one"),
        (("sunday",), "a note that is not there: the model needs to know which there are"),
        (("Monday",), "nearly right is not there either, and the model can see the difference"),
    ],
    solution="""
def read_note(name):
    if name not in NOTES:
        raise ToolError(f"no note {name!r}; there are: {', '.join(NOTES)}")
    return NOTES[name]
""",
    hints=[
        "raise ToolError(...) before the KeyError can happen",
        "say what came (name), and what would have been right (the names in NOTES)",
    ],
    mistakes=[
        Mistake(
            """
def read_note(name):
    return NOTES[name]
""",
            "you let the KeyError out: the model reads \"KeyError: 'sunday'\", and can only guess",
        ),
        Mistake(
            """
def read_note(name):
    if name not in NOTES:
        raise ToolError("not found")
    return NOTES[name]
""",
            "the right kind of failure, but a text that helps nobody: what was not found, and "
            "what could be?",
        ),
        Mistake(
            """
def read_note(name):
    return NOTES.get(name, "")
""",
            "you return an empty note, as if there were one; that is a wrong answer that looks "
            "right",
        ),
    ],
    given={"ToolError": ToolError, "NOTES": NOTES},
    use=useful,
)


# ## The tools that both servers get, and what they are asked


def book(name: str, seats: int, day: Literal["fri", "sat", "sun"]) -> str:
    """Book a table."""
    if day == "sun":
        raise ToolError("no table is free on sun; free: fri, sat")
    return f"{name}: {seats} on {day}"


def divide(a: int, b: int) -> str:
    """Divide two integers."""
    return str(a // b)


def leave() -> str:
    """End the program."""
    sys.exit("tired")


def missing(uri: str) -> str:
    """A tool that knows that the request was wrong."""
    raise ProtocolError(-32602, f"no resource {uri}", {"uri": uri})


def handler(params: Any, context: Any) -> Any:
    """A method that is no tool, and has a bug."""
    return 1 / 0


def add_method(server: Server) -> None:
    """Give a server the method with the bug."""
    server.method("buggy")(handler)


TOOLS = [book, divide, leave, missing]
LINES = [
    (call(1, "book", name="Ada", seats=2, day="fri"), text(1, "Ada: 2 on fri")),
    (call(2, "book", name="Ada", seats="two", day="fri"), failed(2)),
    (call(3, "book", name="Ada", seats=2, day="sun"), failed(3)),
    (call(4, "divide", a=84, b=2), text(4, "42")),
    (call(5, "divide", a=84, b=0), failed(5)),
    (call(6, "leave"), failed(6)),
    (call(7, "missing", uri="x:y"), error(-32602, 7, data={"uri": "x:y"})),
    (call(8, "boook", name="Ada"), error(-32602, 8)),
    (line("tools/call", 9, name="book", arguments=["Ada", 2, "fri"]), error(-32602, 9)),
    (line("tools/cal", 10, name="book"), error(-32601, 10)),
    (line("buggy", 11), error(-32603, 11)),
    ('{"jsonrpc":"2.0","id":12,"method":"tools/call"', error(-32700)),
]
