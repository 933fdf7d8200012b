"""Subscribe and notify: `subscriptions/listen`, and the news that it brings.

A client that wants to hear of changes sends a request that is not answered until one side ends
it. Until then it stays in flight, like a call of a very slow tool, but costs no thread. So there
is little to keep: a listener is a request in flight, and one that is in flight no more is gone.

https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions
"""

from threading import RLock

from . import protocol
from .context import LATER, Context
from .eras import dress
from .protocol import LISTS, Params, ProtocolError, dumps
from .schema import checker, explain
from .server import Server

LIMIT = 10_000  # listeners at once, on all connections of a server
TURN = RLock()  # one thread at a time, so that nobody hears of a change before the acknowledgement

# ## Opening
#
# The client says what it wants to hear of, and the server says what of that it will hear. A wish
# is JSON of a certain form, so it is described by a schema, and our own validator reads it.

WISH: Params = {f"{kind}ListChanged": {"type": "boolean"} for kind in LISTS}
WISH["resourceSubscriptions"] = {"type": "array", "items": {"type": "string"}}
PARAMS = {"notifications": {"type": "object", "properties": WISH}}
check = checker({"type": "object", "properties": PARAMS, "required": ["notifications"]})


def listen(params: Params, context: Context) -> Params:
    """Serve `subscriptions/listen`: acknowledge, and leave the request open."""
    if problems := check(params):
        raise ProtocolError(protocol.INVALID_PARAMS, explain(problems, "params"))
    server = context.server
    with TURN:
        if len(_current(server)) >= LIMIT:
            raise ProtocolError(protocol.INTERNAL_ERROR, "too many listeners; try again later")
        agreed = server.listeners[context] = granted(params["notifications"], server.capabilities)
        _tell(context, "notifications/subscriptions/acknowledged", {"notifications": agreed})
    return LATER


def granted(wish: Params, capabilities: Params) -> Params:
    """The part of a wish that a server of these capabilities can fulfil."""
    possible = [f"{kind}ListChanged" for kind in LISTS if kind in capabilities]
    if capabilities.get("resources", {}).get("subscribe"):
        possible.append("resourceSubscriptions")
    return {name: wish[name] for name in possible if wish.get(name)}


def _current(server: Server) -> list[tuple[Context, Params]]:
    """Who listens and to what. Those who are gone are forgotten here, and nowhere else."""
    for context in list(server.listeners):
        if context.modern and context.cancelled:
            del server.listeners[context]
    return list(server.listeners.items())


# ## Telling
#
# Every message carries the id of the request that it answers. An older client cannot listen; it
# is told of every list that changed, if its connection lasts.


def announce(server: Server, kind: str, uri: str | None = None) -> None:
    """Tell who wants to know that a list changed or, with its `uri`, a resource."""
    method = f"notifications/{kind}/" + ("list_changed" if uri is None else "updated")
    with TURN:
        for context, wanted in _current(server):
            uris = wanted.get("resourceSubscriptions", ())
            if wanted.get(f"{kind}ListChanged") if uri is None else uri in uris:
                _tell(context, method, {} if uri is None else {"uri": uri})
        if server.peer.version and uri is None:
            server.peer.send(dumps({"jsonrpc": "2.0", "method": method}))


def _tell(context: Context, method: str, params: Params) -> None:
    """Send one notification, if it is still wanted; a listener that cannot take it is gone."""
    told = params | ({"_meta": {protocol.SUBSCRIPTION_KEY: context.id}} if context.modern else {})
    try:
        with context.turn:
            if not (context.modern and context.cancelled):
                context.peer.send(dumps({"jsonrpc": "2.0", "method": method, "params": told}))
    except OSError:
        context.close()


# ## Ending
#
# The answer comes at last. Where several share one connection, the one that ends is named first.


def close(server: Server) -> None:
    """End all subscriptions, as a server does before it stops."""
    with TURN:
        for context in [one for one, _ in _current(server) if one.modern]:
            _end(context)


def _end(context: Context) -> None:
    if context.peer is context.server.peer:
        _tell(context, "notifications/cancelled", {"requestId": context.id})
    if context.close():
        result = dress({"_meta": {protocol.SUBSCRIPTION_KEY: context.id}}, context)
        context.peer.finish({"jsonrpc": "2.0", "id": context.id, "result": result})
