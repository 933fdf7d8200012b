"""Notebook 11, asking back: its exercises, and its table of lines."""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable
from typing import Any

from minimcp.protocol import CAPABILITIES_KEY, SERVER_KEY, VERSION_KEY

from .exercise import Exercise, Mistake
from .lines import error, line, result

KEY = b"only the ticket desk knows this"
YES = {"action": "accept", "content": {"ok": True}}

check_answered = Exercise(
    "answered",
    cases=[
        (({}, "confirm"), "nobody has been asked yet"),
        (({"confirm": YES}, "confirm"), "the person filled in the form"),
        (({"confirm": {"action": "decline"}}, "confirm"), "the person said no"),
        (({"confirm": {"action": "cancel"}}, "confirm"), "the person closed the window"),
        (({"seat": YES}, "confirm"), "the answer to another question"),
        (({"confirm": {"action": "accept"}}, "confirm"), "accepted, but nothing came with it"),
        (
            ({"confirm": {"action": "decline", "content": {"ok": True}}}, "confirm"),
            "half filled in, and then declined: a no is a no",
        ),
        (({"confirm": {"content": {"ok": True}}}, "confirm"), "no action at all is no consent"),
    ],
    solution="""
def answered(inputs, key):
    answer = inputs.get(key, {})
    return answer.get("content") if answer.get("action") == "accept" else None
""",
    hints=[
        "inputs may lack the key, and an answer may lack its content: .get() gives None for both",
        "look at the action first; only 'accept' is a yes",
    ],
    mistakes=[
        Mistake(
            """
def answered(inputs, key):
    return inputs.get(key, {}).get("content")
""",
            "you never look at the action; who declined has bought a ticket",
        ),
        Mistake(
            """
def answered(inputs, key):
    answer = inputs[key]
    return answer.get("content") if answer["action"] == "accept" else None
""",
            "you trust that an answer is there; the first time round there is none",
        ),
        Mistake(
            """
def answered(inputs, key):
    answer = inputs.get(key, {})
    return answer.get("content") if answer.get("action") != "decline" else None
""",
            "there are two ways to say no: decline, and cancel (the window was closed)",
        ),
    ],
    label=lambda inputs, key: f"answered({json.dumps(inputs)}, {key!r})",
)


# ## Seals


def code(text: str) -> str:
    """What only the owner of the key can write behind a text."""
    return hmac.digest(KEY, text.encode(), "sha256").hex()


def tampered(text: str, other: str) -> str:
    """A sealed text, with another text in its place."""
    return f"{other}.{code(text)}"


PROMISE = '{"price": 9.5}'
check_opened = Exercise(
    "opened",
    cases=[
        ((f"[1].{code('[1]')}",), "as it was sealed"),
        ((f"{PROMISE}.{code(PROMISE)}",), "a text may have a dot of its own"),
        ((tampered(PROMISE, '{"price": 0.5}'),), "the text was changed"),
        ((f"{PROMISE}.{code(PROMISE)[:-1]}0x",), "the code was changed"),
        ((f"{PROMISE}.",), "the code was left out"),
        ((PROMISE,), "no seal at all"),
        (("",), "nothing at all"),
        ((f"{PROMISE}.é",), "a letter that is in no code; compare_digest wants ASCII, or bytes"),
    ],
    solution="""
def opened(sealed):
    text, _, came = sealed.rpartition(".")
    if not hmac.compare_digest(came.encode(), code(text).encode()):
        raise ValueError("not sealed by us")
    return json.loads(text)
""",
    hints=[
        "cut at the last dot: sealed.rpartition('.')",
        "compute code(text) again, and compare it with what came: hmac.compare_digest",
        "bytes can always be compared: came.encode()",
    ],
    mistakes=[
        Mistake(
            """
def opened(sealed):
    text, _, came = sealed.rpartition(".")
    return json.loads(text)
""",
            "you cut the seal off, and never look at it",
        ),
        Mistake(
            """
def opened(sealed):
    text, _, came = sealed.partition(".")
    if not hmac.compare_digest(came.encode(), code(text).encode()):
        raise ValueError("not sealed by us")
    return json.loads(text)
""",
            "you cut at the first dot, and 9.5 has one",
        ),
        Mistake(
            """
def opened(sealed):
    text, _, came = sealed.rpartition(".")
    if not code(text).startswith(came):
        raise ValueError("not sealed by us")
    return json.loads(text)
""",
            "every code begins with nothing: an empty seal opens your door",
        ),
    ],
    given={"hmac": hmac, "json": json, "code": code},
    raises=ValueError,
    label=lambda sealed: f"opened({sealed[:30]!r}{'…' if len(sealed) > 30 else ''})",
)

CALL = {"name": "buy", "arguments": {"film": "matinee"}}
check_belongs = Exercise(
    "belongs",
    cases=[
        ((CALL,), "a call as it is"),
        (({**CALL, "requestState": "x"},), "the state cannot cover itself: it is made from this"),
        (({**CALL, "inputResponses": {"confirm": YES}},), "the answers come only with the retry"),
        (({**CALL, "_meta": {"progressToken": 3}},), "remarks differ from request to request"),
        (({"name": "sell", "arguments": {}},), "a state of one tool is of no use to another"),
        (({"uri": "notes://1"},), "resources may ask back too, and their name is a uri"),
    ],
    solution="""
def belongs(params):
    own = ("_meta", "inputResponses", "requestState")
    return {key: value for key, value in params.items() if key not in own}
""",
    hints=[
        "what is the same in the first request and in the retry?",
        "leave three members out: _meta, inputResponses and requestState",
    ],
    mistakes=[
        Mistake(
            """
def belongs(params):
    return params
""",
            "you seal all of it; the retry has more members, so no seal will ever fit",
        ),
        Mistake(
            """
def belongs(params):
    return params.get("arguments", {})
""",
            "the arguments alone: a state of the tool 'sell' would do for 'buy'",
        ),
        Mistake(
            """
def belongs(params):
    own = ("inputResponses", "requestState")
    return {key: value for key, value in params.items() if key not in own}
""",
            "you kept _meta; it has the progress token, which is another one for the retry",
        ),
    ],
)

# ## What is sent to both desks

FOREVER = 4_102_444_800  # the year 2100
INFO = {"name": "desk", "version": "0.1.0"}
ABLE: dict[str, Any] = {"elicitation": {}}


def seal(state: Any, film: str, expires: int = FOREVER) -> str:
    """A state as both desks seal it."""
    text = json.dumps([expires, state], separators=(",", ":"))
    request = {"name": "buy", "arguments": {"film": film}}
    bound = json.dumps([text, "tools/call", request, None], sort_keys=True)
    return f"{text}.{code(bound)}"


def modern(ident: int, film: str, able: Any = None, /, **more: Any) -> str:
    """A call of the desk, from a client that can be asked."""
    meta = {VERSION_KEY: "2026-07-28", CAPABILITIES_KEY: ABLE if able is None else able}
    return line("tools/call", ident, name="buy", arguments={"film": film}, **more, _meta=meta)


def said(ident: int, words: str) -> dict[str, Any]:
    """The result of the tool."""
    content = [{"type": "text", "text": words}]
    dress = {"resultType": "complete", "_meta": {SERVER_KEY: INFO}}
    return result(ident, {**dress, "content": content})


def asked(ident: int, film: str, price: int) -> dict[str, Any]:
    """The question of the tool."""
    flag = {"ok": {"type": "boolean"}}
    schema = {"type": "object", "properties": flag, "required": ["ok"]}
    params = {"message": f"{film}: {price} euros. Buy?", "requestedSchema": schema}
    requests = {"confirm": {"method": "elicitation/create", "params": params}}
    kept = {"requestState": "…", "_meta": {SERVER_KEY: INFO}}
    return result(ident, {"resultType": "input_required", "inputRequests": requests, **kept})


def without_state(handle_line: Callable[[str], str | None]) -> Callable[[str], str | None]:
    """The same desk, but its states (which have the time in them) are not compared."""

    def handle(line: str) -> str | None:
        reply = json.loads(handle_line(line) or "null")
        if "requestState" in reply.get("result", {}):
            reply["result"]["requestState"] = "…"
        return json.dumps(reply)

    return handle


GIVEN = {"inputResponses": {"confirm": YES}}
TEN = seal({"price": 10}, "premiere")
LINES = [
    (modern(1, "matinee"), asked(1, "matinee", 9)),
    (
        modern(2, "matinee", {}),
        error(-32021, 2, data={"requiredCapabilities": {"elicitation": {}}}),
    ),
    (modern(3, "matinee", **GIVEN), said(3, "matinee: paid 9")),
    (
        modern(4, "matinee", inputResponses={"confirm": {"action": "decline"}}),
        said(4, "nothing was bought"),
    ),
    (
        modern(5, "matinee", inputResponses={"confirm": {"action": "cancel"}}),
        said(5, "nothing was bought"),
    ),
    (modern(6, "premiere", requestState=TEN, **GIVEN), said(6, "premiere: paid 10")),
    (modern(7, "premiere", requestState=TEN), asked(7, "premiere", 10)),
    (modern(8, "premiere", requestState=TEN.replace("10", "1", 1), **GIVEN), error(-32602, 8)),
    (modern(9, "premiere", requestState=TEN[:-1], **GIVEN), error(-32602, 9)),
    (modern(10, "matinee", requestState=TEN, **GIVEN), error(-32602, 10)),
    (
        modern(11, "matinee", requestState=seal({"price": 9}, "matinee", 1), **GIVEN),
        error(-32602, 11),
    ),
    (modern(12, "matinee", requestState='{"price": 1}', **GIVEN), error(-32602, 12)),
    (modern(13, "matinee", requestState="", **GIVEN), error(-32602, 13)),
    (modern(14, "matinee", requestState=5, **GIVEN), error(-32602, 14)),
    (modern(15, "matinee", inputResponses=["yes"]), error(-32602, 15)),
    (modern(16, "matinee", inputResponses={"confirm": "yes"}), error(-32602, 16)),
]
