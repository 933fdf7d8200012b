"""Notebook 10, talking while working: its exercises, some tools and its table."""

from __future__ import annotations

from typing import Any

from minimcp import Context

from .exercise import Exercise, Mistake
from .lines import error, line, result
from .n07 import SERVER, modern, says

SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"

check_worth_sending = Exercise(
    "worth_sending",
    cases=[
        (([1, 2, 3],), "ordinary progress"),
        (([1, 1, 2],), "saying the same again tells nobody anything"),
        (([3, 1, 4],), "progress never goes back"),
        (([3, 1, 2, 4],), "2 is more than 1, but less than what was said before"),
        (([0, 1],), "0 is a beginning, and worth a word"),
        (([-2, -1],), "there is no rule that it begins at 0"),
        (([0.25, 0.5],), "fractions are fine"),
        (([],), "and so is silence"),
    ],
    solution="""
def worth_sending(values):
    sent = []
    for value in values:
        if not sent or value > sent[-1]:
            sent.append(value)
    return sent
""",
    hints=[
        "compare with the last one that was sent, not with the last one that came",
        "the first one is always worth sending",
    ],
    mistakes=[
        Mistake(
            """
def worth_sending(values):
    pairs = zip(values[:1] + values, values)
    return values[:1] + [value for before, value in list(pairs)[1:] if value > before]
""",
            "you compare with the value before, which may not have been sent",
        ),
        Mistake(
            """
def worth_sending(values):
    sent, highest = [], 0
    for value in values:
        if value > highest:
            sent.append(value)
            highest = value
    return sent
""",
            "you begin at 0, so 0 itself and all below it are never sent",
        ),
        Mistake(
            """
def worth_sending(values):
    return sorted(set(values))
""",
            "you sort; but what is said is said, it cannot be put in order afterwards",
        ),
    ],
)


def cancels(ident: Any, method: str = "notifications/cancelled") -> dict[str, Any]:
    """A notification about this request."""
    return {"jsonrpc": "2.0", "method": method, "params": {"requestId": ident}}


check_hear = Exercise(
    "hear",
    cases=[
        (({1: "count", 2: "sing"}, cancels(1)), "1 is not wanted any more; 2 goes on"),
        (({1: "count"}, cancels(9)), "answered long ago, perhaps: the two passed each other"),
        (({1: "count"}, cancels("1")), "another id"),
        (({1: "count"}, cancels(True)), "true is no id, though True == 1 in Python"),
        (({1: "count"}, cancels([1])), "a list cannot be looked up"),
        (
            ({1: "count"}, {"jsonrpc": "2.0", "method": "notifications/cancelled"}),
            "it has no params",
        ),
        (
            ({1: "count"}, {**cancels(1), "params": [1]}),
            "its params are no object; nobody waits for an error, so ignore it",
        ),
        (({1: "count"}, cancels(1, "notifications/progress")), "that was about something else"),
        (({"ears": "listen"}, cancels("ears")), "ids may be strings"),
    ],
    solution="""
def hear(in_flight, message):
    params = message.get("params")
    if message["method"] != "notifications/cancelled" or not isinstance(params, dict):
        return
    ident = params.get("requestId")
    if type(ident) in (int, str):
        in_flight.pop(ident, None)
""",
    hints=[
        "nobody waits for an answer to a notification: whatever is wrong with it, ignore it",
        "in_flight.pop(ident, None) does not mind if there is none",
        "the type of the id first, as in notebook 6: type(ident) in (int, str)",
    ],
    mistakes=[
        Mistake(
            """
def hear(in_flight, message):
    if message["method"] == "notifications/cancelled":
        del in_flight[message["params"]["requestId"]]
""",
            "you take it for granted that the request is there; it may have been answered",
        ),
        Mistake(
            """
def hear(in_flight, message):
    params = message.get("params")
    if message["method"] == "notifications/cancelled" and isinstance(params, dict):
        if params.get("requestId") in list(in_flight):
            in_flight.pop(params["requestId"])
""",
            "you do not look at the type of the id; true cancels request 1",
        ),
        Mistake(
            """
def hear(in_flight, message):
    if message["method"] == "notifications/cancelled":
        in_flight.clear()
""",
            "you cancel everything",
        ),
    ],
    use=lambda hear, in_flight, message: (hear(in_flight, message), in_flight)[1],
    label=lambda in_flight, message: (
        f"in flight {in_flight}, and there comes {message['method']} {message.get('params', '')}"
    ),
)

ALL = {"tools": {}, "prompts": {}, "resources": {"subscribe": True}}

check_granted = Exercise(
    "granted",
    cases=[
        (({"toolsListChanged": True}, {"tools": {}}), "there are tools, so that can be done"),
        (
            ({"toolsListChanged": True, "promptsListChanged": True}, {"tools": {}}),
            "no prompts here",
        ),
        (({"promptsListChanged": False}, ALL), "false is no wish"),
        (({}, ALL), "nothing was wished, so nothing is sent"),
        (({"moonPhaseChanged": True}, ALL), "nobody has heard of that"),
        (({"resourcesListChanged": True}, {"resources": {}}), "the list of resources"),
        (({"resourceSubscriptions": ["bank:/rates"]}, ALL), "single resources, by their uri"),
        (
            ({"resourceSubscriptions": ["bank:/rates"]}, {"resources": {}}),
            "there are resources, but this server does not watch them",
        ),
    ],
    solution="""
def granted(wish, capabilities):
    possible = [f"{kind}ListChanged" for kind in capabilities]
    if capabilities.get("resources", {}).get("subscribe"):
        possible.append("resourceSubscriptions")
    return {name: wish[name] for name in possible if wish.get(name)}
""",
    hints=[
        "make the list of what is possible from the capabilities: f'{kind}ListChanged'",
        "resourceSubscriptions is possible if capabilities['resources'] has subscribe",
        "then keep of the wish what is possible, and true",
    ],
    mistakes=[
        Mistake(
            """
def granted(wish, capabilities):
    return {name: one for name, one in wish.items() if one}
""",
            "you promise everything; the client will wait for news that never comes",
        ),
        Mistake(
            """
def granted(wish, capabilities):
    possible = [f"{kind}ListChanged" for kind in capabilities]
    return {name: wish[name] for name in possible if wish.get(name)}
""",
            "you forget the single resources",
        ),
        Mistake(
            """
def granted(wish, capabilities):
    possible = [f"{kind}ListChanged" for kind in capabilities]
    if "resources" in capabilities:
        possible.append("resourceSubscriptions")
    return {name: wish[name] for name in possible if name in wish}
""",
            "you do not look closely: false is no wish, and subscribe is a capability of its own",
        ),
    ],
)

# ## Tools that do something odd, so that a line of the table can show it


def stumble(context: Context) -> str:
    """Report progress, forwards and backwards."""
    for value in (2, 1, 2, 3):
        context.progress(value, 3)
    return "there"


def regret(context: Context) -> str:
    """Be cancelled in the middle of it."""
    context.progress(1, 2)
    context.peer.hear(cancels(context.id))
    context.progress(2, 2)
    return "too late"


def learn(context: Context) -> str:
    """Change the list of tools, or say so."""
    context.server.announce("tools")
    return "learnt"


INFO = {"name": "meadow", "version": "1.0.0"}


def asks(ident: int | str, name: str, token: Any = None, **arguments: Any) -> str:
    """A call, with a token if there is one."""
    meta = says()["_meta"]
    meta = meta if token is None else {**meta, "progressToken": token}
    return modern("tools/call", ident, name=name, arguments=arguments, meta=meta)


def listens(ident: int | str, **wish: bool) -> str:
    """A request to listen."""
    return modern("subscriptions/listen", ident, notifications=wish)


def moved(token: Any, *values: int, total: int = 3) -> list[dict[str, Any]]:
    """Notifications of progress."""
    told = [{"progressToken": token, "progress": one, "total": total} for one in values]
    return [note("progress", **one) for one in told]


def note(about: str, **params: Any) -> dict[str, Any]:
    """A notification."""
    return {"jsonrpc": "2.0", "method": f"notifications/{about}", "params": params}


def comes(reply: dict[str, Any] | None, said: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    """All that one line brings about: what is said on the way, and the reply."""
    return {"said": said or [], **(reply or {})}


def words(ident: int | str, text: str) -> dict[str, Any]:
    """A good answer of a tool."""
    dress = {"resultType": "complete", "_meta": {SERVER: INFO}}
    return result(ident, {**dress, "content": [{"type": "text", "text": text}]})


TAG = {"_meta": {SUBSCRIPTION: "ears"}}
AGREED = note("subscriptions/acknowledged", notifications={"toolsListChanged": True}, **TAG)
CHANGED = note("tools/list_changed", **TAG)
LINES = [
    (asks(1, "count", "t", sheep=3), comes(words(1, "3 sheep"), moved("t", 1, 2, 3))),
    (asks(2, "count", 0, sheep=1), comes(words(2, "1 sheep"), moved(0, 1, total=1))),
    (asks(3, "count", sheep=3), comes(words(3, "3 sheep"))),
    (asks(4, "count", True, sheep=3), comes(words(4, "3 sheep"))),
    (asks(5, "stumble", 5), comes(words(5, "there"), moved(5, 2, 3))),
    (asks(6, "regret", 6), comes(None, moved(6, 1, total=2))),
    (line("notifications/cancelled", requestId=6), comes(None)),
    (line("notifications/cancelled", requestId=[6]), comes(None)),
    (line("notifications/cancelled"), comes(None)),
    (modern("subscriptions/listen", 7), comes(error(-32602, 7))),
    (listens("ears", toolsListChanged=True, promptsListChanged=True), comes(None, [AGREED])),
    (listens("ears", toolsListChanged=True), comes(error(-32600, "ears"))),
    (asks(8, "learn"), comes(words(8, "learnt"), [CHANGED])),
    (asks(9, "regret"), comes(None)),
    (asks(10, "learn"), comes(words(10, "learnt"), [CHANGED])),
    (line("notifications/cancelled", requestId="ears"), comes(None)),
    (asks(11, "learn"), comes(words(11, "learnt"))),
    (listens("ears", toolsListChanged=True), comes(None, [AGREED])),
]
