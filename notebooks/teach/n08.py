"""Notebook 8, two eras: its exercises and its table."""

from __future__ import annotations

from typing import Any

from .exercise import Exercise, Mistake
from .lines import error, line, result, text
from .n07 import SERVER, VERSION, modern, says

MODERN, LEGACY = ["2026-07-28"], ["2025-11-25", "2025-06-18"]

check_agree_on = Exercise(
    "agree_on",
    cases=[
        (("2025-11-25",), "the newest that has a handshake"),
        (("2025-06-18",), "we speak the older one as well, so the client gets what it asks for"),
        (("2099-01-01",), "unknown: offer the newest, the client may take it or leave"),
        (("2024-11-05",), "too old: the same"),
        (("2025-09-01",), "never existed: the same"),
        (("2026-07-28",), "it has no handshake, so it cannot be agreed on in one"),
    ],
    solution="""
def agree_on(wanted):
    return wanted if wanted in LEGACY else LEGACY[0]
""",
    hints=[
        "the handshake never fails because of the revision: the server makes an offer instead",
        "what was wanted, if it is in LEGACY; else the first of LEGACY, which is the newest",
    ],
    mistakes=[
        Mistake(
            """
def agree_on(wanted):
    return wanted
""",
            "you promise what you do not speak",
        ),
        Mistake(
            """
def agree_on(wanted):
    if wanted not in LEGACY:
        raise ValueError("not supported")
    return wanted
""",
            "you refuse; in a handshake the server names what it can do, and the client decides",
        ),
        Mistake(
            """
def agree_on(wanted):
    return min(wanted, LEGACY[0])
""",
            "you compare dates; a revision that lies between two others need not exist",
        ),
        Mistake(
            """
def agree_on(wanted):
    return LEGACY[0]
""",
            "you always offer the newest, also to a client that asked for one you speak",
        ),
    ],
    given={"LEGACY": LEGACY},
)

ASKED = {"name": "notebook", "version": "1"}


def message(method: str, **params: Any) -> dict[str, Any]:
    """A request as a dict."""
    return {"method": method, "params": params}


check_era_of = Exercise(
    "era_of",
    cases=[
        ((message("tools/list", **says()), None), "it says its revision: modern"),
        ((message("tools/list"), "2025-11-25"), "it does not, and there was a handshake: legacy"),
        ((message("tools/list"), None), "neither: somebody has forgotten something"),
        ((message("initialize", protocolVersion="2025-11-25"), None), "this is the handshake"),
        ((message("ping"), None), "a legacy client may ping before it shakes hands"),
        (
            (message("tools/list", **says()), "2025-11-25"),
            "the request decides, not what was said before",
        ),
        (
            (message("tools/list", _meta={"progressToken": 1}), "2025-11-25"),
            "a _meta without a revision is older than the modern era",
        ),
        ((message("tools/list", _meta={"progressToken": 1}), None), "and no handshake either"),
        ((message("initialize", **says()), None), "modern, and there such a method is unknown"),
    ],
    solution="""
def era_of(message, agreed):
    if VERSION in message["params"].get("_meta", {}):
        return "modern"
    if agreed or message["method"] in ("initialize", "ping"):
        return "legacy"
    return -32602
""",
    hints=[
        "look at the request first: does its _meta have VERSION?",
        "without it there must have been a handshake, unless this is one, or a ping",
    ],
    mistakes=[
        Mistake(
            """
def era_of(message, agreed):
    if agreed or message["method"] in ("initialize", "ping"):
        return "legacy"
    return "modern" if VERSION in message["params"].get("_meta", {}) else -32602
""",
            "you let the handshake decide; one wire may carry requests of both eras",
        ),
        Mistake(
            """
def era_of(message, agreed):
    if "_meta" in message["params"]:
        return "modern"
    if agreed or message["method"] in ("initialize", "ping"):
        return "legacy"
    return -32602
""",
            "you take every _meta for modern; legacy requests have had it for progress tokens",
        ),
        Mistake(
            """
def era_of(message, agreed):
    if VERSION in message["params"].get("_meta", {}):
        return "modern"
    return "legacy" if agreed or message["method"] == "initialize" else -32602
""",
            "you have forgotten ping, which needs no handshake",
        ),
    ],
    given={"VERSION": VERSION},
    label=lambda message, agreed: (
        f"era_of({str(message).replace('io.modelcontextprotocol/', '…/')}, {agreed!r})"
    ),
)


def lists(*versions: str) -> dict[str, Any]:
    """The answer to `server/discover`."""
    return result(1, {"supportedVersions": list(versions)})


def speaks(*versions: str) -> dict[str, Any]:
    """The refusal of a modern server."""
    return error(-32022, 1, data={"supported": list(versions), "requested": "2026-07-28"})


check_next_step = Exercise(
    "next_step",
    cases=[
        ((lists("2026-07-28"),), "modern, and we speak the same"),
        ((error(-32601, 1),), "legacy: never heard of server/discover"),
        ((error(-32602, 1),), "legacy, and it says so in another way"),
        ((error(-32000, 1),), "legacy: there is no agreed code for 'you have not shaken hands'"),
        ((None,), "silence: some legacy servers ignore what comes before the handshake"),
        ((result(1, {}),), "a result that says nothing: somebody says yes to everything"),
        ((speaks("2027-01-15"),), "modern, but not ours; a handshake would only fail later"),
        ((speaks("2027-01-15", "2025-11-25"),), "here it says itself that a handshake is possible"),
        ((lists("2027-01-15"),), "the same without an error"),
        ((lists("2025-11-25"),), "it discovers, and what it found is legacy"),
        ((speaks("2026-07-28"),), "it has just refused this and says that it speaks it: try again"),
        ((error(-32020, 1),), "a modern error: we did something wrong, and should hear about it"),
        ((error(-32021, 1),), "another one of that kind"),
    ],
    solution="""
def next_step(reply):
    reply = reply or {}
    code = reply.get("error", {}).get("code")
    if code in (-32020, -32021):
        return "give up"
    data = reply["error"]["data"] if code == -32022 else reply.get("result", {})
    listed = data.get("supported") or data.get("supportedVersions") or []
    if set(listed) & set(MODERN):
        return "modern"
    return "give up" if listed and not set(listed) & set(LEGACY) else "handshake"
""",
    hints=[
        "only three codes are modern (-32020, -32021, -32022); every other error means legacy",
        "get the list of revisions first, from the result or from the data of a -32022",
        "no list: handshake. Ours is on it: modern. A legacy one is: handshake. Else: give up",
    ],
    mistakes=[
        Mistake(
            """
def next_step(reply):
    if reply and "result" in reply:
        return "modern"
    if reply and reply["error"]["code"] == -32601:
        return "handshake"
    return "give up"
""",
            "you wait for one code; legacy servers answer with -32601, -32602, -32000, or nothing",
        ),
        Mistake(
            """
def next_step(reply):
    if reply and "2026-07-28" in reply.get("result", {}).get("supportedVersions", []):
        return "modern"
    return "handshake"
""",
            "you shake hands with modern servers too, and their good error message is lost",
        ),
        Mistake(
            """
def next_step(reply):
    if reply is None:
        return "give up"
    code = reply.get("error", {}).get("code")
    if code in (-32020, -32021):
        return "give up"
    data = reply["error"]["data"] if code == -32022 else reply.get("result", {})
    listed = data.get("supported") or data.get("supportedVersions") or []
    if set(listed) & set(MODERN):
        return "modern"
    return "give up" if listed and not set(listed) & set(LEGACY) else "handshake"
""",
            "you give up on silence; a time-out on the first question means legacy",
        ),
    ],
    given={"MODERN": MODERN, "LEGACY": LEGACY},
)

# One server, one wire, both eras; the order of the lines matters.

INFO = {"name": "greeter", "version": "1.0.0"}
CAPABLE = {"capabilities": {"tools": {"listChanged": False}}}
CLOSED = {"type": "object", "additionalProperties": False}
TOOLS = {"tools": [{"name": "hello", "description": "Say hello.", "inputSchema": CLOSED}]}
DRESS = {"resultType": "complete", "_meta": {SERVER: INFO}}
KEPT = {**DRESS, "ttlMs": 60_000, "cacheScope": "public"}


def shake(ident: int, version: Any = "2025-11-25", **more: Any) -> str:
    """A handshake."""
    asked = {"protocolVersion": version, "capabilities": {}, "clientInfo": ASKED, **more}
    return line("initialize", ident, **{key: one for key, one in asked.items() if one is not ...})


def shaken(ident: int, version: str) -> dict[str, Any]:
    """What comes back from it."""
    return result(ident, {"protocolVersion": version, "serverInfo": INFO, **CAPABLE})


HELLO = {"name": "hello", "arguments": {}}
SAID = {"content": [{"type": "text", "text": "hello"}]}
LINES = [
    (line("tools/list", 1), error(-32602, 1)),
    (line("ping", 2), result(2, {})),
    (modern("tools/call", 3, **HELLO), result(3, {**DRESS, **SAID})),
    (shake(4, version=...), error(-32602, 4)),
    (shake(5, version=20251125), error(-32602, 5)),
    (shake(6, clientInfo=...), error(-32602, 6)),
    (line("tools/list", 7), error(-32602, 7)),
    (shake(8), shaken(8, "2025-11-25")),
    (line("notifications/initialized"), None),
    (line("tools/list", 9), result(9, TOOLS)),
    (line("tools/call", 10, **HELLO), text(10, "hello")),
    (line("tools/call", 11, **HELLO, _meta={"progressToken": 11}), text(11, "hello")),
    (line("server/discover", 12), error(-32601, 12)),
    (line("ping", 13), result(13, {})),
    (modern("tools/list", 14), result(14, {**KEPT, **TOOLS})),
    (modern("server/discover", 15), result(15, {**KEPT, **CAPABLE, "supportedVersions": MODERN})),
    (modern("ping", 16), error(-32601, 16)),
    (modern("initialize", 17, protocolVersion="2025-11-25"), error(-32601, 17)),
    (
        line("tools/list", 18, **says(version="2025-11-25")),
        error(-32022, 18, data={"supported": MODERN, "requested": "2025-11-25"}),
    ),
    (shake(19, "2025-06-18"), shaken(19, "2025-06-18")),
    (shake(20, "2024-11-05"), shaken(20, "2025-11-25")),
    (line("tools/list", 21), result(21, TOOLS)),
]
