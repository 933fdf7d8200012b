"""Subscribe and notify: `subscriptions/listen`, and the news that it brings.

A client that wants to hear of changes sends a request that is not answered until one side ends
it. Until then it stays in flight, like a call of a very slow tool, and costs no thread. So there
is little to keep: a listener is a request in flight, and one that is not is gone.

https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions
"""

from threading import Lock

from .context import LATER, Context
from .protocol import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    LISTS,
    SUBSCRIPTION_KEY,
    Params,
    ProtocolError,
    dumps,
)
from .schema import checker, explain
from .server import Server

LIMIT = 10_000  # listeners at once, on all connections of a server
TURN = Lock()  # one at a time: so nobody hears of a change before the acknowledgement

# ## Opening
#
# The client says what it wants to hear of, and the server says what of that it will hear. What
# has the form of a wish is written down as a schema, and our own validator reads it.

LISTS_WANTED = {f"{kind}ListChanged": {"type": "boolean"} for kind in LISTS}
RESOURCES_WANTED = {"resourceSubscriptions": {"type": "array", "items": {"type": "string"}}}
WISH = {"type": "object", "properties": {**LISTS_WANTED, **RESOURCES_WANTED}}
check = checker(
    {"type": "object", "properties": {"notifications": WISH}, "required": ["notifications"]}
)


def listen(params: Params, context: Context) -> Params:
    """Serve `subscriptions/listen`: acknowledge, and leave the request open."""
    if problems := check(params):
        raise ProtocolError(INVALID_PARAMS, explain(problems, "params"))
    server = context.server
    granted = _granted(params["notifications"], server.capabilities)
    with TURN:
        if len(_current(server)) >= LIMIT:
            raise ProtocolError(INTERNAL_ERROR, f"{LIMIT} listeners are enough; try again later")
        server.listeners[context] = granted
        _tell(context, "notifications/subscriptions/acknowledged", {"notifications": granted})
    return LATER


def _granted(wish: Params, capabilities: Params) -> Params:
    """The part of a wish that this server can fulfil."""
    lists = [kind for kind in LISTS if kind in capabilities]
    granted = {f"{kind}ListChanged": True for kind in lists if wish.get(f"{kind}ListChanged")}
    if "resourceSubscriptions" in wish and capabilities.get("resources", {}).get("subscribe"):
        granted["resourceSubscriptions"] = wish["resourceSubscriptions"]
    return granted


def _current(server: Server) -> list[tuple[Context, Params]]:
    """Who listens and to what. Those who are gone are forgotten here, and nowhere else."""
    for context in list(server.listeners):
        if context.modern and context.cancelled:
            server.listeners.pop(context, None)
    return list(server.listeners.items())


# ## Telling
#
# Older clients never asked: the one at the other end of a lasting connection is told of every
# list that changed.


def announce(server: Server, kind: str, uri: str | None = None) -> None:
    """Tell who wants to know that a list changed, or with a `uri` that this resource did."""
    change = "list_changed" if uri is None else "updated"
    about = {} if uri is None else {"uri": uri}
    with TURN:
        for context, wanted in _current(server):
            uris = wanted.get("resourceSubscriptions", ())
            if wanted.get(f"{kind}ListChanged") if uri is None else uri in uris:
                _tell(context, f"notifications/{kind}/{change}", about)
        if server.peer.version and uri is None:
            server.peer.send(dumps({"jsonrpc": "2.0", "method": f"notifications/{kind}/{change}"}))


def _tell(context: Context, method: str, params: Params) -> None:
    """Send one notification; a listener that cannot take it is one no more."""
    tag = {"_meta": {SUBSCRIPTION_KEY: context.id}} if context.modern else {}
    try:
        context.peer.send(dumps({"jsonrpc": "2.0", "method": method, "params": {**params, **tag}}))
    except OSError:
        context.close()


# ## Ending


def close(server: Server) -> None:
    """End all subscriptions, since the server will stop; what is in flight besides goes on.

    Where several share one connection, each is named first in a `notifications/cancelled`.
    """
    with TURN:
        for context, _ in _current(server):
            if context.modern:
                _end(context)


def _end(context: Context) -> None:
    if context.peer is context.server.peer:
        _tell(context, "notifications/cancelled", {"requestId": context.id})
    if context.close():
        meta = {SUBSCRIPTION_KEY: context.id}
        result = context.server.dress({"_meta": meta}, context)
        context.peer.finish({"jsonrpc": "2.0", "id": context.id, "result": result})
