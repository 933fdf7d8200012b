"""Notebook 7, stateless: its exercises and its table."""

from __future__ import annotations

from typing import Any

from .exercise import Exercise, Mistake
from .lines import error, line, result, text

VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
CLIENT = "io.modelcontextprotocol/clientInfo"
SERVER = "io.modelcontextprotocol/serverInfo"


def says(version: Any = "2026-07-28", capabilities: Any = None, **more: Any) -> dict[str, Any]:
    """Params with metadata that says this; `...` leaves a member out."""
    members = {VERSION: version, CAPABILITIES: {} if capabilities is None else capabilities, **more}
    return {"_meta": {key: one for key, one in members.items() if one is not ...}}


check_problem = Exercise(
    "problem",
    cases=[
        ((says(),), "this is all that has to be there"),
        ((says(**{CLIENT: {"name": "x", "version": "1"}}),), "who it is may be said, too"),
        (({},), "no metadata at all"),
        (({"_meta": "2026-07-28"},), "metadata that is no object"),
        ((says(version=...),), "which revision? It has to say"),
        ((says(version=20260728),), "a revision is a string"),
        ((says(capabilities=...),), "what can it do? It has to say that too, if only {}"),
        ((says(capabilities=["elicitation"]),), "capabilities are an object"),
        ((says(version="1900-01-01"),), "well said, but we do not speak it"),
        ((says(version="2027-01-15"),), "newer is not the same as understood"),
        ((says(version="1900-01-01", capabilities=...),), "malformed comes first"),
    ],
    solution="""
def problem(params):
    meta = params.get("_meta")
    if not isinstance(meta, dict) or not isinstance(meta.get(VERSION), str):
        return -32602
    if not isinstance(meta.get(CAPABILITIES), dict):
        return -32602
    return None if meta[VERSION] in SUPPORTED else -32022
""",
    hints=[
        "two members have to be there: a string under VERSION and an object under CAPABILITIES",
        "first see whether it is well-formed (else -32602), then whether we speak it (else -32022)",
        "isinstance(meta.get(VERSION), str) is false for what is missing, too",
    ],
    mistakes=[
        Mistake(
            """
def problem(params):
    meta = params.get("_meta")
    if not isinstance(meta, dict) or not isinstance(meta.get(VERSION), str):
        return -32602
    if meta[VERSION] not in SUPPORTED:
        return -32022
    return None if isinstance(meta.get(CAPABILITIES), dict) else -32602
""",
            "you look at the revision before you know whether the request is well-formed",
        ),
        Mistake(
            """
def problem(params):
    meta = params.get("_meta")
    if not isinstance(meta, dict) or not isinstance(meta.get(VERSION), str):
        return -32602
    if not isinstance(meta.get(CAPABILITIES), dict):
        return -32602
    return None if meta[VERSION] >= SUPPORTED[0] else -32022
""",
            "you compare dates; a newer revision is one that nobody has read yet",
        ),
        Mistake(
            """
def problem(params):
    meta = params.get("_meta")
    if not isinstance(meta, dict) or not isinstance(meta.get(VERSION), str):
        return -32602
    if not meta.get(CAPABILITIES):
        return -32602
    return None if meta[VERSION] in SUPPORTED else -32022
""",
            "you test the truth of the capabilities; {} is false in Python, and a good answer",
        ),
    ],
    given={"VERSION": VERSION, "CAPABILITIES": CAPABILITIES, "SUPPORTED": ["2026-07-28"]},
    label=lambda params: f"problem({str(params).replace('io.modelcontextprotocol/', '…/')})",
)


def refused(*supported: Any, requested: str = "2027-01-15", code: int = -32022) -> dict[str, Any]:
    """The error of a server that speaks these."""
    data = {"supported": list(supported), "requested": requested}
    return {"code": code, "message": "…", "data": data}


MINE = ["2027-01-15", "2026-07-28"]
NEWER = ["2028-03-01", *MINE]

check_choose = Exercise(
    "choose",
    cases=[
        ((MINE, refused("2026-07-28")), "the one that both speak"),
        ((MINE, refused("2028-03-01", "2026-07-28")), "not the newest of theirs: one of ours, too"),
        (
            (NEWER, refused("2026-07-28", "2027-01-15", requested="2028-03-01")),
            "both have two; ours are in the order in which we like them",
        ),
        ((MINE, refused("2025-11-25")), "nothing in common"),
        ((MINE, refused("2027-01-15")), "it lists what it has just refused: take it at its word"),
        ((MINE, {"code": -32022, "message": "no"}), "it does not say what it speaks"),
        ((MINE, {"code": -32022, "message": "no", "data": {}}), "nor does this one"),
        ((MINE, refused("2026-07-28", code=-32602)), "another error says nothing about revisions"),
    ],
    solution="""
def choose(mine, error):
    data = error.get("data")
    if error["code"] != -32022 or not isinstance(data, dict):
        return None
    for version in mine:
        if version in data.get("supported", []):
            return version
    return None
""",
    hints=[
        "only -32022 is about revisions, and only its data says which there are",
        "go through our own list, in our order, and take the first that they list as well",
        "data may be missing, or lack 'supported'; then there is nothing to choose from",
    ],
    mistakes=[
        Mistake(
            """
def choose(mine, error):
    return max(error.get("data", {}).get("supported", []), default=None)
""",
            "you take the newest that they speak; you may not speak it",
        ),
        Mistake(
            """
def choose(mine, error):
    for version in mine:
        if version in error.get("data", {}).get("supported", []):
            return version
    return None
""",
            "you never look at the code; what another error lists is no offer",
        ),
        Mistake(
            """
def choose(mine, error):
    data = error.get("data")
    if error["code"] != -32022 or not isinstance(data, dict):
        return None
    for version in data.get("supported", []):
        if version in mine:
            return version
    return None
""",
            "you go through their list; which of two is better is for you to say",
        ),
        Mistake(
            """
def choose(mine, error):
    data = error.get("data")
    if error["code"] != -32022 or not isinstance(data, dict):
        return None
    for version in mine:
        if version in data.get("supported", []) and version != data.get("requested"):
            return version
    return None
""",
            "you leave out what was just refused; the server says that it speaks it, so try again",
        ),
    ],
    label=lambda mine, error: (
        f"choose({mine}, {{'code': {error['code']}, 'data': {error.get('data')}}})"
    ),
)


def kept(ttl: Any = 60_000, scope: Any = "public", kind: str = "complete") -> dict[str, Any]:
    """A result with these hints; `...` leaves one out."""
    members = {"resultType": kind, "tools": [], "ttlMs": ttl, "cacheScope": scope}
    return {key: one for key, one in members.items() if one is not ...}


check_may_use = Exercise(
    "may_use",
    cases=[
        ((kept(), 1_000, True), "fresh"),
        ((kept(), 61_000, True), "stale"),
        ((kept(), 60_000, True), "fresh means: younger than ttlMs"),
        ((kept(ttl=0), 0, True), "0 means: never keep this"),
        ((kept(ttl=...), 0, True), "no hint is no permission (an older server)"),
        ((kept(ttl=-5), 0, True), "nonsense is no permission either"),
        ((kept(ttl="60000"), 0, True), "nor is a text"),
        ((kept(), 1_000, False), "public: the same for everybody"),
        ((kept(scope="private"), 1_000, True), "private, and it is for the same user"),
        ((kept(scope="private"), 1_000, False), "private, and now somebody else asks"),
        ((kept(scope=...), 1_000, False), "it does not say for whom; then not for others"),
        ((kept(scope="everybody"), 1_000, False), "a word that nobody knows is no permission"),
    ],
    solution="""
def may_use(result, age_ms, same_user):
    ttl = result.get("ttlMs")
    if type(ttl) is not int or age_ms >= ttl:
        return False
    return same_user or result.get("cacheScope") == "public"
""",
    hints=[
        "two questions: is it fresh, and may this user see it?",
        "a missing or malformed ttlMs counts as 0, and nothing is younger than 0",
        'for others, only what says "public" in so many words',
    ],
    mistakes=[
        Mistake(
            """
def may_use(result, age_ms, same_user):
    ttl = result.get("ttlMs")
    return type(ttl) is int and age_ms < ttl
""",
            "you forget for whom it was; one user gets to see the list of another",
        ),
        Mistake(
            """
def may_use(result, age_ms, same_user):
    ttl = result.get("ttlMs")
    if type(ttl) is not int or age_ms >= ttl:
        return False
    return same_user or result.get("cacheScope") != "private"
""",
            "you take silence about the scope for public; it should be the other way round",
        ),
        Mistake(
            """
def may_use(result, age_ms, same_user):
    ttl = result.get("ttlMs")
    if type(ttl) is not int or age_ms > ttl:
        return False
    return same_user or result.get("cacheScope") == "public"
""",
            "you keep it for a moment too long; with ttlMs 0 it would never be asked again",
        ),
    ],
)

# The shop, and what it is asked.

INFO = {"name": "shop", "version": "1.0.0"}
HINTS = {"ttlMs": 60_000, "cacheScope": "public"}
ABOUT = "Say whether this client could be asked something."
CLOSED = {"type": "object", "additionalProperties": False}
ENTRY = {"name": "can_you_answer", "description": ABOUT, "inputSchema": CLOSED}


def modern(method: str, ident: int | str | None = None, /, *, meta: Any = None, **more: Any) -> str:
    """A request of the modern kind as a line."""
    return line(method, ident, **more, _meta=says()["_meta"] if meta is None else meta)


def full(ident: int | str, members: dict[str, Any], cached: bool = True) -> dict[str, Any]:
    """A result with all that modern ones wear."""
    hints = HINTS if cached else {}
    dress = {"resultType": "complete", **hints, "_meta": {SERVER: INFO}}
    return result(ident, {**dress, **members})


def answer(ident: int, words: str) -> dict[str, Any]:
    """The result of the tool."""
    return full(ident, text(ident, words)["result"], cached=False)


CALL = {"name": "can_you_answer", "arguments": {}}
UNSPOKEN = {"supported": ["2026-07-28"], "requested": "1900-01-01"}
ASKABLE = says(capabilities={"elicitation": {}})["_meta"]
LINES = [
    (
        modern("server/discover", 1),
        full(
            1,
            {
                "supportedVersions": ["2026-07-28"],
                "capabilities": {"tools": {"listChanged": False}},
                "instructions": "Ask before you buy.",
            },
        ),
    ),
    (modern("tools/list", 2), full(2, {"tools": [ENTRY]})),
    (modern("tools/call", 3, **CALL), answer(3, "no")),
    (modern("tools/call", 4, **CALL, meta=ASKABLE), answer(4, "yes")),
    (modern("tools/call", "five", **CALL), {**answer(5, "no"), "id": "five"}),
    (modern("tools/call", 6, name="buy"), error(-32602, 6)),
    (modern("tools/call", 7), error(-32602, 7)),
    (modern("make/coffee", 8), error(-32601, 8)),
    (modern("ping", 9), error(-32601, 9)),
    (line("tools/list", 10), error(-32602, 10)),
    (line("tools/list", 11, _meta={}), error(-32602, 11)),
    (line("tools/list", 12, _meta=[]), error(-32602, 12)),
    (line("tools/list", 13, **says(version=1)), error(-32602, 13)),
    (line("tools/list", 14, **says(capabilities=...)), error(-32602, 14)),
    (line("tools/list", 15, **says(version="1900-01-01")), error(-32022, 15, data=UNSPOKEN)),
    (line("tools/list", 16, **says(version="1900-01-01", capabilities=1)), error(-32602, 16)),
    (line("make/coffee", 17, **says(version="1900-01-01")), error(-32022, 17, data=UNSPOKEN)),
    (modern("notifications/cancelled", requestId=99), None),
    ("buy", error(-32700)),
    ("42", error(-32600)),
]
