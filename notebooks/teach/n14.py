"""Notebook 14, the agent loop: its exercises, an odd server, and its table of calls."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

from minimcp import Content, ProtocolError, Server, ToolError
from minimcp.client import ToolResult

from .exercise import Exercise, Mistake

check_names = Exercise(
    "names",
    cases=[
        (([("east", "book")],), "alone, it keeps its name"),
        (([("east", "book"), ("calendar", "free")],), "different names do not collide"),
        (([("east", "book"), ("west", "book")],), "the same name twice"),
        (([("east", "book"), ("west", "book"), ("west", "shows")],), "only these two collide"),
        (([("disk", "files.read")],), "models take letters, digits, _ and -; a dot they refuse"),
        (([("a", "x.y"), ("b", "x_y")],), "these collide once the dot is gone"),
        (([("my server", "book"), ("west", "book")],), "the name of a server has odd letters, too"),
        (([("a", "x" * 100)],), "and 64 characters at the most"),
    ],
    solution="""
def names(listed):
    shared = Counter(plain(name) for _, name in listed)
    offers = {}
    for home, name in listed:
        shown = plain(name)
        shown = shown if shared[shown] == 1 else plain(f"{home}__{name}")
        offers[shown] = (home, name)
    return offers
""",
    hints=[
        "first count the plain names: Counter(plain(name) for _, name in listed)",
        "a plain name that is counted once stays; the others become plain(f'{home}__{name}')",
    ],
    mistakes=[
        Mistake(
            """
def names(listed):
    return {plain(name): (home, name) for home, name in listed}
""",
            "the last one wins: two tools have one name, and the model cannot reach the first",
        ),
        Mistake(
            """
def names(listed):
    return {plain(f"{home}__{name}"): (home, name) for home, name in listed}
""",
            "right, but every name is longer than it has to be, and models choose by names",
        ),
        Mistake(
            """
def names(listed):
    shared = Counter(name for _, name in listed)
    offers = {}
    for home, name in listed:
        shown = name if shared[name] == 1 else f"{home}__{name}"
        offers[plain(shown)] = (home, name)
    return offers
""",
            "you count before the dots are gone; x.y and x_y become the same afterwards",
        ),
    ],
    given={"Counter": Counter, "plain": lambda name: re.sub("[^A-Za-z0-9_-]", "_", name)[:64]},
)

# ## What came of a call


def result(*blocks: dict[str, Any], failed: bool = False) -> Callable[[], ToolResult]:
    """A call that comes back with these blocks."""
    return lambda: ToolResult("", None, list(blocks), failed)


def raising(error: Exception) -> Callable[[], ToolResult]:
    """A call that does not come back."""

    def call() -> ToolResult:
        raise error

    return call


def words(text: str) -> dict[str, Any]:
    """A text block."""
    return {"type": "text", "text": text}


CALLS = {
    "fine": result(words("2 seats")),
    "two texts": result(words("2 seats"), words("row F")),
    "a picture": result(words("the plan:"), {"type": "image", "data": "iVBO", "mimeType": "x/y"}),
    "refused": result(words("sold out; try Friday"), failed=True),
    "no such tool": raising(ProtocolError(-32602, "Unknown tool: bok")),
    "gone": raising(ConnectionError("the server ended")),
    "late": raising(TimeoutError("no answer in 60 s")),
    "long": result(words("x" * 30_000)),
    "just short enough": result(words("x" * 20_000)),
}
check_tell = Exercise(
    "tell",
    cases=[
        (("fine",), "the text"),
        (("two texts",), "one below the other"),
        (("a picture",), "what is no text is at least mentioned"),
        (("refused",), "a refusal must look like one"),
        (("no such tool",), "a mistake of the model's; it can make a better one"),
        (("gone",), "one server is gone, the others are not: the work goes on"),
        (("late",), "perhaps another way is quicker"),
        (("long",), "a model reads what you pay for; 20,000 characters are enough"),
        (("just short enough",), "nothing is missing, so nothing is said about it"),
    ],
    solution="""
def tell(call):
    try:
        result = call()
    except (ProtocolError, ConnectionError, TimeoutError) as error:
        return f"Error: {error}"
    text = "\\n".join(block.get("text") or f"[{block['type']}]" for block in result.content)
    text = text if len(text) <= FULL else f"{text[:FULL]}… and more"
    return f"Error: {text}" if result.is_error else text
""",
    hints=[
        "three kinds of exceptions may come: ProtocolError, ConnectionError, TimeoutError",
        "block.get('text') or f'[{block[\"type\"]}]', for every block in result.content",
        "begin with 'Error: ' if result.is_error; cut the text at FULL, and add '… and more'",
    ],
    mistakes=[
        Mistake(
            """
def tell(call):
    result = call()
    text = "\\n".join(block.get("text") or f"[{block['type']}]" for block in result.content)
    text = text if len(text) <= FULL else f"{text[:FULL]}… and more"
    return f"Error: {text}" if result.is_error else text
""",
            "one server that is gone ends the whole conversation",
        ),
        Mistake(
            """
def tell(call):
    try:
        result = call()
    except (ProtocolError, ConnectionError, TimeoutError) as error:
        return f"Error: {error}"
    text = "\\n".join(block.get("text") or f"[{block['type']}]" for block in result.content)
    return text if len(text) <= FULL else f"{text[:FULL]}… and more"
""",
            "you do not look at is_error; 'sold out' reads like an answer",
        ),
        Mistake(
            """
def tell(call):
    try:
        result = call()
    except (ProtocolError, ConnectionError, TimeoutError):
        return "Error"
    text = "\\n".join(block.get("text") or f"[{block['type']}]" for block in result.content)
    text = text if len(text) <= FULL else f"{text[:FULL]}… and more"
    return f"Error: {text}" if result.is_error else text
""",
            "an error without its text; what should the model make of that (notebook 4)?",
        ),
    ],
    given={"ProtocolError": ProtocolError, "FULL": 20_000},
    use=lambda tell, kind: tell(CALLS[kind]),
    label=lambda kind: f"tell(a call that is {kind})",
)

READ: dict[str, Any] = {"name": "shows", "annotations": {"readOnlyHint": True}}
PAY: dict[str, Any] = {"name": "pay", "annotations": {"readOnlyHint": False}}
MINE = {"east", "calendar"}

check_ask_first = Exercise(
    "ask_first",
    cases=[
        (("east", READ, MINE), "it only reads, and we trust who says so"),
        (("east", PAY, MINE), "it does something"),
        (("east", {"name": "x"}, MINE), "it says nothing about itself: expect the worst"),
        (("stranger", READ, MINE), "anybody can write readOnlyHint into a list of tools"),
        (("stranger", {"name": "x"}, MINE), "a stranger, and silent"),
        (("east", {"name": "x", "annotations": {}}, MINE), "annotations with nothing in them"),
        (("east", {"name": "x", "annotations": {"readOnlyHint": "no"}}, MINE), "only true is true"),
        (("east", {"name": "x", "annotations": {"destructiveHint": False}}, MINE), "another hint"),
    ],
    solution="""
def ask_first(home, tool, trusted):
    reads_only = tool.get("annotations", {}).get("readOnlyHint") is True
    return not (reads_only and home in trusted)
""",
    hints=[
        "two things must be true for not asking; everything else asks",
        "annotations and readOnlyHint may be missing: .get(), and 'is True'",
    ],
    mistakes=[
        Mistake(
            """
def ask_first(home, tool, trusted):
    return tool.get("annotations", {}).get("readOnlyHint") is not True
""",
            "you believe what a stranger says of itself",
        ),
        Mistake(
            """
def ask_first(home, tool, trusted):
    return home not in trusted
""",
            "to trust a server is one thing; a payment you want to see all the same",
        ),
        Mistake(
            """
def ask_first(home, tool, trusted):
    reads_only = tool.get("annotations", {}).get("readOnlyHint")
    return not (reads_only and home in trusted)
""",
            'you take every text for a yes, even "no"',
        ),
    ],
    label=lambda home, tool, trusted: f"ask_first({home!r}, {json.dumps(tool)}, trusted)",
)

# ## What a model says, and what it is told


def odd() -> Server:
    """A server with tools that are trouble."""
    server = Server("odd")

    @server.tool(name="files.read")
    def read(path: str) -> str:
        return f"(the text of {path})"

    @server.tool
    def picture() -> Content:
        return [{"type": "image", "data": "iVBO", "mimeType": "image/png"}]

    @server.tool
    def broken() -> str:
        return str(1 / 0)

    @server.tool
    def pay(amount: int) -> str:
        raise ToolError("must never be reached")

    @server.tool
    def endless() -> str:
        return "x" * 30_000

    return server


def asks(name: str, arguments: Any) -> str:
    """What a model asks for, as a line."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return json.dumps({"name": name, "arguments": text})


def told(text: str) -> dict[str, Any]:
    """What it is told."""
    return {"told": text}


ALL = "east__shows, east__book, west__shows, west__book, files_read, picture, broken, pay, endless"
NO_SEATS = "Error: book cannot take these arguments:\narguments.seats: missing"
NO_JSON = "Expecting value"
CALLS_AND_ANSWERS = [
    (asks("west__book", {"show": "jaws", "seats": 2}), told("2 seats for jaws, in the west")),
    (asks("east__shows", ""), told('["jaws","general"]')),
    (
        asks("west__book", {"show": "general", "seats": 2}),
        told("Error: no show 'general' in the west; there are jaws, psycho"),
    ),
    (asks("east__book", {"show": "jaws"}), told(NO_SEATS)),
    (asks("book", {"show": "jaws"}), told(f"Error: there is no tool 'book'; there are {ALL}")),
    (asks("files_read", {"path": "a.txt"}), told("(the text of a.txt)")),
    (asks("picture", {}), told("[image]")),
    (asks("broken", {}), told("Error: ZeroDivisionError: division by zero")),
    (
        asks("pay", {"amount": 99}),
        told("Error: the user does not allow this call; ask, or find another way"),
    ),
    (asks("endless", {}), told("x" * 20_000 + "… and more")),
    (
        asks("east__shows", "all of them"),
        told(f"Error: Parse error, this is not JSON: {NO_JSON}: line 1 column 1 (char 0) (-32700)"),
    ),
]
