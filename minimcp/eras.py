"""Two eras: what a modern request brings along, and what a legacy handshake agrees on.

Both ends are here, face to face. The server looks at each request: with a version in its
`_meta` it is modern and stands alone; without one it needs an `initialize` before it. The client
asks in the modern way first, and shakes hands if the answer says that it must.

https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from . import protocol
from .context import LATER, Context
from .protocol import CACHEABLE, JSON, LEGACY, MODERN, SERVER_KEY, Params, ProtocolError, expect

if TYPE_CHECKING:
    from .client import Client

INFO = {"name": "minimcp", "version": "0.1.0"}  # of the client
ONLY_MODERN = ("resultType", "ttlMs", "cacheScope")  # members of a result
TOLERATED = (*LEGACY, "2025-03-26")  # the same on the wire, as far as a client of ours uses it

# ## The server's end


def admit(context: Context) -> None:  # ADR-0002
    """Refuse a request that lacks what its era demands, before anything else looks at it."""
    if not context.modern:
        context.peer.check(context)
        if context.peer.version or context.method in ("initialize", "ping"):
            return
        text = f"params._meta: {protocol.VERSION_KEY} is missing, and so is an initialize"
        raise ProtocolError(protocol.INVALID_PARAMS, text)
    version = expect(context.meta, protocol.VERSION_KEY, str, "params._meta")
    expect(context.meta, protocol.CAPABILITIES_KEY, dict, "params._meta")
    context.peer.check(context)
    if version not in MODERN:
        data = {"supported": list(MODERN), "requested": version}
        text = f"protocol version {version!r} is not supported"
        raise ProtocolError(protocol.UNSUPPORTED_VERSION, text, data)
    if context.meta.get(protocol.LOG_LEVEL_KEY, "info") not in protocol.LOG_LEVELS:
        text = f"params._meta: a log level is one of {', '.join(protocol.LOG_LEVELS)}"
        raise ProtocolError(protocol.INVALID_PARAMS, text)


def dress(result: Params | None, context: Context) -> Params:
    """What every modern result wears: its type, its sender, how long it may be kept."""
    result = {} if result is None else result
    if not isinstance(result, dict):
        raise TypeError(f"{context.method}: a handler returns a dict")
    if result is LATER:
        return result
    if not context.modern:
        return {key: one for key, one in result.items() if key not in ONLY_MODERN}
    lasting = context.method in CACHEABLE and result.get("resultType", "complete") == "complete"
    hints = context.server.hints if lasting else {}
    meta = {SERVER_KEY: context.server.info, **result.get("_meta", {})}
    return {"resultType": "complete", **hints, **result, "_meta": meta}


def discover(params: Params, context: Context) -> Params:
    """Serve `server/discover`."""
    return {"supportedVersions": list(MODERN), **_about(context)}


def initialize(params: Params, context: Context) -> Params:
    """Serve `initialize`: from now on this peer is a legacy one."""
    wanted = expect(params, "protocolVersion", str, "params")
    expect(params, "clientInfo", dict, "params")
    context.peer.capabilities = expect(params, "capabilities", dict, "params")
    context.peer.version = wanted if wanted in LEGACY else LEGACY[0]
    about = {"serverInfo": context.server.info, **_about(context)}
    return {"protocolVersion": context.peer.version, **about}


def _about(context: Context) -> Params:
    server, declared = context.server, dict(context.server.capabilities)
    if context.modern or context.peer is server.peer:  # there is a way to tell of changes
        lists = declared.keys() & protocol.LISTS
        declared |= {kind: {"listChanged": True, **declared[kind]} for kind in lists}
    extra = {"instructions": server.instructions} if server.instructions else {}
    return {"capabilities": declared, **extra}


# ## The client's end

ERAS = ("auto", "modern", "legacy")


def wish(era: str, version: str | None) -> str:
    """The era to try for; `ValueError` if there is no such era or revision."""
    if era not in ERAS or version not in (None, *MODERN, *LEGACY):
        known = f"era is one of {', '.join(ERAS)}, version one of {', '.join(MODERN + LEGACY)}"
        raise ValueError(f"{known}; got {era!r}, {version!r}")
    meant = era if version is None else "modern" if version in MODERN else "legacy"
    if era not in ("auto", meant):
        raise ValueError(f"version {version} is of the {meant} era; got era {era!r}")
    return meant


def declare(methods: Iterable[str]) -> Params:
    """The capabilities of a client that answers these; `ValueError` if a server asks no such."""
    if unknown := [method for method in methods if method not in protocol.INPUTS]:
        raise ValueError(f"on_input: {unknown[0]!r} is none of {', '.join(protocol.INPUTS)}")
    return {protocol.INPUTS[method]: {} for method in methods}


def negotiate(client: Client, wanted: str, version: str | None) -> None:
    """Go modern if both can, or else shake hands; `ConnectionError` if they have nothing in common.

    `wanted` is "auto", "modern" or "legacy"; `version` the legacy revision to offer.
    """
    listed = None if wanted == "legacy" else _probe(client, wanted)
    if MODERN[0] in (listed or ()):
        return
    if listed and not {*listed} & {*LEGACY}:
        raise ConnectionError(f"no common revision: the server speaks {listed}")
    if wanted == "modern":
        raise ConnectionError("the server speaks no modern revision; try era='auto'")
    try:
        _shake_hands(client, version or LEGACY[0])
    except ProtocolError as error:  # perhaps a modern server that was slow to start
        slow = error.code == protocol.UNSUPPORTED_VERSION and wanted == "auto"
        if not slow or MODERN[0] not in (_probe(client, "modern") or ()):
            raise


def _probe(client: Client, wanted: str, again: bool = True) -> JSON:
    """The revisions that a modern server lists; `None` if it is none, which silence says too."""
    client.era, client.protocol_version = "modern", MODERN[0]
    client.connection.answers = False  # a modern server has no business asking
    try:
        found = client.ask("server/discover", {}, client.probe_timeout)
    except TimeoutError:
        if wanted == "modern":
            raise
        return None
    except ProtocolError as error:
        if error.code == protocol.UNSUPPORTED_VERSION and again:
            listed = error.data["supported"]
            return _probe(client, wanted, again=False) if MODERN[0] in listed else listed
        if error.code in protocol.MCP_ERRORS:
            raise
        return None
    _remember(client, found, found.get("_meta", {}).get(SERVER_KEY))
    return found.get("supportedVersions")


def _shake_hands(client: Client, version: str) -> None:
    client.era, client.protocol_version = "legacy", version
    client.connection.answers = True
    asked = {"protocolVersion": version, "capabilities": client.declared, "clientInfo": INFO}
    found = client.ask("initialize", asked, client.timeout)
    client.protocol_version = found["protocolVersion"]
    if client.protocol_version not in TOLERATED:
        raise ConnectionError(f"no common revision: the server wants {client.protocol_version}")
    _remember(client, found, found.get("serverInfo"))
    client.notify("notifications/initialized")


def _remember(client: Client, found: Params, info: JSON) -> None:
    client.server_info, client.instructions = dict(info or {}), found.get("instructions")
    client.capabilities = found.get("capabilities", {})
