"""The other end of a connection (`Peer`), and what a tool may ask of it (`Context`).

A request is *in flight* while it is in its peer's `in_flight`. Cancelling it, answering it and
losing its stream are the same thing: one removal from that dict.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from .protocol import (
    CAPABILITIES_KEY,
    INVALID_REQUEST,
    JSON,
    LOG_LEVEL_KEY,
    LOG_LEVELS,
    MISSING_CAPABILITY,
    VERSION_KEY,
    Message,
    Params,
    ProtocolError,
    ToolError,
    dumps,
    expect,
    is_id,
)

if TYPE_CHECKING:
    from .server import Server

LATER: Final[Params] = {}  # what a handler returns when the answer comes by `peer.finish`


class Peer:
    """The other end: where messages go, what is in flight, and what a handshake agreed on.

    A binding makes one for each connection, or for each request where there is no connection.
    `send` takes a line (a notification); `finish` takes the reply to a request whose handler
    returned `LATER`.
    """

    def __init__(self, send: Callable[[str], None] = lambda line: None) -> None:
        self.send = send
        self.in_flight: dict[str | int, Context] = {}
        self.version: str | None = None  # the legacy revision, once there was an initialize
        self.capabilities: Params = {}
        self.log_level = "info"  # legacy: until logging/setLevel says otherwise
        self.lasting = False  # whether it outlives its requests, so that changes can be told
        self.principal: str | None = None  # who it is, if the binding knows

    def check(self, context: Context) -> None:
        """What a binding must verify once the metadata is known; HTTP compares its headers."""

    def finish(self, reply: Message) -> None:
        """Send the reply to a request that was left open."""
        self.send(dumps(reply))


class Context:
    """One request while it is served; a tool gets it in the parameter annotated `Context`.

    https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns
    """

    def __init__(self, server: Server, peer: Peer, message: Message) -> None:
        self.server, self.peer = server, peer
        self.id: str | int = message["id"]
        self.method: str = message["method"]
        self.params: Params = expect(message, "params", dict, "message", {})
        self.meta: Params = expect(self.params, "_meta", dict, "params", {})
        self.modern = VERSION_KEY in self.meta
        self.capabilities = self.meta.get(CAPABILITIES_KEY) if self.modern else peer.capabilities
        self.reported = float("-inf")
        self.inputs: Params = {}  # on a retry: the client's answers, by the key of the question
        self.state: JSON = None  # on a retry: what the tool wanted to remember

    def open(self) -> None:
        """Put the request in flight; refuse an id that is there already."""
        if self.peer.in_flight.setdefault(self.id, self) is not self:
            raise ProtocolError(INVALID_REQUEST, f"id {self.id!r} is in flight already")

    def close(self) -> bool:
        """Take the request out of flight; false if it was not wanted any more."""
        in_flight = self.peer.in_flight
        return in_flight.get(self.id) is self and in_flight.pop(self.id, None) is self

    @property
    def cancelled(self) -> bool:
        """Whether nobody waits for the answer any more; long work looks at it now and then."""
        return self.peer.in_flight.get(self.id) is not self

    def notify(self, method: str, params: Params) -> None:
        """Send a notification about this request, unless it is over."""
        if not self.cancelled:
            self.peer.send(dumps({"jsonrpc": "2.0", "method": method, "params": params}))

    def progress(
        self, value: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Report how far the work is; only sent if the client asked, and only if it grew."""
        token = self.meta.get("progressToken")
        if is_id(token) and value > self.reported:
            self.reported = value
            extra = {"total": total, "message": message}
            shown = {name: one for name, one in extra.items() if one is not None}
            self.notify(
                "notifications/progress", {"progressToken": token, "progress": value, **shown}
            )

    def log(self, level: str, data: JSON, logger: str | None = None) -> None:
        """Send a log message, if the server declares `logging` and the client wants this level."""
        wanted = self.meta.get(LOG_LEVEL_KEY) if self.modern else self.peer.log_level
        order = LOG_LEVELS.index
        if "logging" not in self.server.capabilities or wanted is None:
            return
        if order(level) >= order(wanted):
            named = {} if logger is None else {"logger": logger}
            self.notify("notifications/message", {"level": level, **named, "data": data})

    def require(self, capability: str) -> None:
        """Refuse the request if the client did not declare a capability, such as `sampling`."""
        if capability not in self.capabilities:
            text = f"this needs the client capability {capability!r}, which was not declared"
            if not self.modern:
                raise ToolError(text)
            data = {"requiredCapabilities": {capability: {}}}
            raise ProtocolError(MISSING_CAPABILITY, text, data)
