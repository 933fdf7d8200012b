"""Notebook 12, beyond tools: its exercises, and its table of lines."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

from minimcp import ProtocolError
from minimcp.protocol import CAPABILITIES_KEY, SERVER_KEY, VERSION_KEY

from .exercise import Exercise, Mistake
from .lines import error, line, result

TOOLS: dict[str, Any] = {"tools": {}}
NOTES: dict[str, Any] = {"resources": {}, "prompts": {"listChanged": True}}
WATCH: dict[str, Any] = {"resources": {"subscribe": True}}

check_may_ask = Exercise(
    "may_ask",
    cases=[
        ((TOOLS, "tools/list"), "an empty object is a yes: the key is there"),
        ((TOOLS, "resources/list"), "not declared, so not there"),
        ((NOTES, "resources/read"), "one capability, several methods"),
        ((NOTES, "prompts/get"), "what else stands in it does not matter here"),
        ((NOTES, "tools/call"), "a server without tools is a server, too"),
        (({}, "server/discover"), "the question for the capabilities needs none"),
        (({"completions": {}}, "completion/complete"), "the one name with a letter too many"),
        ((NOTES, "resources/subscribe"), "to be told of changes stands inside, on its own"),
        ((WATCH, "resources/subscribe"), "here it is"),
        ((TOOLS, "resources/subscribe"), "and here there are no resources at all"),
        (({"resources": {"subscribe": False}}, "resources/subscribe"), "and here it is denied"),
    ],
    solution="""
def may_ask(capabilities, method):
    kind = method.split("/")[0]
    if kind == "server":
        return True
    if method == "resources/subscribe":
        return capabilities.get("resources", {}).get("subscribe", False)
    return {"completion": "completions"}.get(kind, kind) in capabilities
""",
    hints=[
        "the part before the slash is nearly always the name of the capability",
        "ask whether the key is in the dict; its value may be {}, which is false for Python",
        "three are special: server/discover, completion/complete and resources/subscribe",
    ],
    mistakes=[
        Mistake(
            """
def may_ask(capabilities, method):
    return bool(capabilities.get(method.split("/")[0]))
""",
            "you ask whether the value is true; {} is a yes here, and for Python it is false",
        ),
        Mistake(
            """
def may_ask(capabilities, method):
    kind = method.split("/")[0]
    return kind == "server" or {"completion": "completions"}.get(kind, kind) in capabilities
""",
            "you take resources for all there is to it; subscribe must be declared inside of it",
        ),
        Mistake(
            """
def may_ask(capabilities, method):
    return method.split("/")[0] in capabilities
""",
            "you follow the slash alone; three methods are special",
        ),
    ],
)

NAMES = ["tea.txt", "shopping list.txt"]
check_name_of = Exercise(
    "name_of",
    cases=[
        (("notes://tea.txt", NAMES), "a note that is in the list"),
        (("notes://shopping%20list.txt", NAMES), "in a URI a space is written %20"),
        (("notes://../secret.txt", NAMES), "a way out of the folder"),
        (("notes://%2e%2e/secret.txt", NAMES), "the same way out, written differently"),
        (("notes:///secret.txt", NAMES), "an absolute path"),
        (("file://tea.txt", NAMES), "another scheme is another thing"),
        (("tea.txt", NAMES), "no scheme at all"),
        ((5, NAMES), "anything may stand in params.uri"),
        ((None, NAMES), "or nothing"),
    ],
    solution="""
def name_of(uri, names):
    known = {f"notes://{name}": name for name in names}
    if not isinstance(uri, str) or unquote(uri) not in known:
        raise ProtocolError(-32602, f"no resource {uri}", {"uri": uri})
    return known[unquote(uri)]
""",
    hints=[
        "do not look for what is forbidden; look whether it is in the list of what is allowed",
        "unquote(uri) turns %20 into a space; then it must be notes:// and a name of the list",
        "isinstance(uri, str) comes first",
    ],
    mistakes=[
        Mistake(
            """
def name_of(uri, names):
    return unquote(uri.removeprefix("notes://"))
""",
            "you take every name; the way out of the folder is still open",
        ),
        Mistake(
            """
def name_of(uri, names):
    if ".." in uri:
        raise ProtocolError(-32602, f"no resource {uri}", {"uri": uri})
    return unquote(uri.removeprefix("notes://"))
""",
            "you forbid two dots; they can be written %2e%2e, and '/' leads out as well",
        ),
        Mistake(
            """
def name_of(uri, names):
    name = uri.removeprefix("notes://")
    if name not in names:
        raise ProtocolError(-32602, f"no resource {uri}", {"uri": uri})
    return name
""",
            "nearly: nobody outside the folder is reached, but %20 is not read, no scheme is taken "
            "for ours, and a number has no removeprefix",
        ),
    ],
    given={"ProtocolError": ProtocolError, "unquote": unquote},
)

check_letter = Exercise(
    "letter",
    cases=[
        (({"to": "Ada"},), "the tone may be left out"),
        (({"to": "Ada", "tone": "stern"},), "both"),
        (({"to": "{tone}", "tone": "stern"},), "what a person typed is no template"),
        (({"tone": "stern"},), "an argument that must be there"),
        (({},), "nothing"),
        (({"to": 5},), "arguments of prompts are strings, always"),
        (({"to": "Ada", "tone": None},), "null is no string either"),
    ],
    solution="""
def letter(arguments):
    to, tone = arguments.get("to"), arguments.get("tone", "friendly")
    if not isinstance(to, str) or not isinstance(tone, str):
        raise ProtocolError(-32602, "params.arguments: expected a string 'to', maybe a 'tone'")
    text = f"Write a {tone} letter to {to}."
    return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}
""",
    hints=[
        "arguments.get('tone', 'friendly') fills in what may be left out",
        "raise ProtocolError(-32602, …) for what must be there and is not, or is no string",
    ],
    mistakes=[
        Mistake(
            """
def letter(arguments):
    text = f"Write a {arguments.get('tone', 'friendly')} letter to {arguments.get('to')}."
    return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}
""",
            "a letter to None: you never notice that somebody is missing",
        ),
        Mistake(
            """
def letter(arguments):
    to, tone = arguments.get("to"), arguments.get("tone", "friendly")
    if not isinstance(to, str) or not isinstance(tone, str):
        raise ProtocolError(-32602, "params.arguments: expected a string 'to', maybe a 'tone'")
    return f"Write a {tone} letter to {to}."
""",
            "that is only the text; a prompt is a list of messages, each with a role",
        ),
        Mistake(
            """
def letter(arguments):
    text = f"Write a {arguments.get('tone', 'friendly')} letter to {arguments['to']}."
    return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}
""",
            "a KeyError is an accident: the client would hear 'Internal error', as if you were "
            "broken",
        ),
    ],
    given={"ProtocolError": ProtocolError},
)

# ## What is sent to both

HINTS = {"ttlMs": 60_000, "cacheScope": "public"}
INFO = {"name": "notes", "version": "0.1.0"}


def modern(method: str, ident: int, /, **params: Any) -> str:
    """A modern request as a line."""
    meta = {VERSION_KEY: "2026-07-28", CAPABILITIES_KEY: {}}
    return line(method, ident, **params, _meta=meta)


def full(ident: int, members: dict[str, Any], hints: Any = HINTS) -> dict[str, Any]:
    """A modern result."""
    return result(
        ident, {"resultType": "complete", **hints, "_meta": {SERVER_KEY: INFO}, **members}
    )


def unknown(ident: int, uri: Any) -> dict[str, Any]:
    """The reply for a resource that is not there."""
    return error(-32602, ident, data={"uri": uri})


ABOUT = {"resources": {"listChanged": True}, "prompts": {"listChanged": True}}
LISTED = [
    {"uri": "notes://shopping%20list.txt", "name": "shopping list.txt", "mimeType": "text/plain"},
    {"uri": "notes://tea.txt", "name": "tea.txt", "mimeType": "text/plain"},
]
TEA = {"uri": "notes://tea.txt", "mimeType": "text/plain", "text": "Assam, 200 g"}
LETTER = {
    "name": "letter",
    "description": "Write a letter.",
    "arguments": [{"name": "to", "required": True}, {"name": "tone", "required": False}],
}
SAID = {"type": "text", "text": "Write a friendly letter to Ada."}
WRITTEN = {"messages": [{"role": "user", "content": SAID}]}
LINES = [
    (
        modern("server/discover", 1),
        full(1, {"supportedVersions": ["2026-07-28"], "capabilities": ABOUT}),
    ),
    (modern("resources/list", 2), full(2, {"resources": LISTED})),
    (modern("resources/read", 3, uri="notes://tea.txt"), full(3, {"contents": [TEA]})),
    (modern("resources/read", 4, uri="notes://../secret.txt"), unknown(4, "notes://../secret.txt")),
    (modern("resources/read", 5, uri="notes://"), unknown(5, "notes://")),
    (modern("resources/read", 6), unknown(6, None)),
    (modern("prompts/list", 7), full(7, {"prompts": [LETTER]})),
    (modern("prompts/get", 8, name="letter", arguments={"to": "Ada"}), full(8, WRITTEN, {})),
    (modern("prompts/get", 9, name="letter"), error(-32602, 9)),
    (modern("prompts/get", 10, name="poem", arguments={"to": "Ada"}), error(-32602, 10)),
    (modern("tools/list", 11), error(-32601, 11)),
    (modern("resources/subscribe", 12, uri="notes://tea.txt"), error(-32601, 12)),
]
