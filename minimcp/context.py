"""The other end of a connection (`Peer`), and what a tool may ask of it (`Context`).

A request is *in flight* while it is in its peer's `in_flight`. Cancelling it, answering it and
losing its stream are the same thing: one removal from that dict.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from io import FileIO, TextIOWrapper
from threading import RLock
from typing import TYPE_CHECKING, Any, Final, Literal

from . import protocol
from .protocol import JSON, Message, Params, ProtocolError, ToolError, dumps, expect, is_id

if TYPE_CHECKING:
    from .server import Server

Era = Literal["modern", "legacy"]
WAIT: Final = 0.1  # seconds, if the other end does not read
LATER: Final[Params] = {}  # what a handler returns when the answer comes by `peer.finish`


def tell(text: str) -> None:
    """Say a line on stderr, if that can be."""
    with suppress(OSError):
        print(f"{text}\n", end="", file=stderr())  # in one piece: other threads speak too


def stderr() -> Any:
    """Stderr without a buffer: in it is kept what cannot be written, and fails again at the exit.

    A stream that somebody put in its place is left as it is.
    """
    if sys.stderr is None or sys.stderr is not sys.__stderr__:
        return sys.stderr
    raw = FileIO(2, "w", closefd=False)
    return TextIOWrapper(raw, errors="backslashreplace", write_through=True)


class Peer:
    """The other end: where messages go, what is in flight, and what a handshake agreed on.

    A binding makes one for each connection, or for each request where there is no connection.
    `send` takes a line (a notification); `finish` takes the reply to a request whose handler
    returned `LATER`. `principal` is who is asking, where the binding knows.
    """

    version: str | None = None  # the legacy revision, once there was an `initialize`
    log_level: str | None = "info"  # of a legacy client, until it says `logging/setLevel`
    principal: str | None = None

    def __init__(self, out: Callable[[str], object] = lambda line: None) -> None:
        self.out = out
        self.in_flight: dict[str | int, Context] = {}
        self.capabilities: Params = {}  # of a legacy client

    def send(self, line: str) -> None:
        """Give a line to the other end."""
        self.out(line)

    def check(self, context: Context) -> None:
        """What a binding must verify once the metadata is known; HTTP compares its headers."""

    def hear(self, message: Message) -> None:
        """Take a notification; the only one that we know takes a request out of flight."""
        params = message.get("params")
        if message.get("method") == "notifications/cancelled" and isinstance(params, dict):
            ident: Any = params.get("requestId")
            wanted = self.in_flight.pop(ident, None) if is_id(ident) else None
            if wanted:
                if wanted.turn.acquire(timeout=WAIT):  # what it is about to say is said first
                    wanted.turn.release()
                tell(f"{ident!r} cancelled: {params.get('reason')!r}")

    def finish(self, reply: Message) -> None:
        """Send the reply to a request that was left open."""
        self.send(dumps(reply))


class Context:
    """One request while it is served; a tool gets it in the parameter annotated `Context`.

    On a retry after `InputRequired`, `inputs` has the answers by key and `state` what was kept.
    https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns
    """

    state: JSON = None
    progress_made = float("-inf")

    def __init__(self, server: Server, peer: Peer, message: Message) -> None:
        self.server, self.peer = server, peer
        self.id, self.method = message["id"], message["method"]
        self.params: Params = expect(message, "params", dict, "message", {})
        self.meta: Params = expect(self.params, "_meta", dict, "params", {})
        self.modern = protocol.VERSION_KEY in self.meta
        self.era: Era = "modern" if self.modern else "legacy"
        declared = self.meta.get(protocol.CAPABILITIES_KEY)
        self.capabilities: Params = declared if self.modern else peer.capabilities
        self.inputs: Params = {}
        self.turn = RLock()  # one thread at a time, and none after the answer

    def open(self) -> Context:
        """Put the request in flight; refuse an id that is there already."""
        if self.peer.in_flight.setdefault(self.id, self) is not self:
            text = f"id {self.id!r} is in flight already"
            raise ProtocolError(protocol.INVALID_REQUEST, text)
        return self

    def close(self) -> bool:  # ADR-0015
        """Take the request out of flight; false if it was not wanted any more."""
        with self.turn:
            return not self.cancelled and self.peer.in_flight.pop(self.id, None) is self

    @property
    def cancelled(self) -> bool:
        """Whether nobody waits for the answer any more; long work looks at it now and then."""
        return self.peer.in_flight.get(self.id) is not self

    def notify(self, method: str, params: Params) -> None:
        """Send a notification about this request, unless it is over."""
        with self.turn:
            if not self.cancelled:
                self.peer.send(dumps({"jsonrpc": "2.0", "method": method, "params": params}))

    def progress(
        self, value: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Say how far the work is; only what grew is sent, and only to a client that asked."""
        token = self.meta.get("progressToken")
        if not is_id(token):
            return
        said = {"progressToken": token, "progress": value, "total": total, "message": message}
        shown = {key: one for key, one in said.items() if one is not None}
        with self.turn:
            if value > self.progress_made:
                self.progress_made = value
                self.notify("notifications/progress", shown)

    def log(self, level: str, data: JSON, logger: str | None = None) -> None:
        """Send a log message, if the server declares `logging` and the client wants this level."""
        wanted = self.meta.get(protocol.LOG_LEVEL_KEY) if self.modern else self.peer.log_level
        order = protocol.LOG_LEVELS.index
        if level not in protocol.LOG_LEVELS:  # a mistake, heard or not
            raise ValueError(f"log level {level!r}: one of {', '.join(protocol.LOG_LEVELS)}")
        if "logging" in self.server.capabilities and wanted and order(level) >= order(wanted):
            named = {"logger": logger} if logger else {}
            self.notify("notifications/message", {"level": level, "data": data, **named})

    def require(self, capability: str, part: str | None = None) -> None:
        """Refuse the request unless the client declared a capability, such as `sampling`.

        `part` is one inside of it, such as `tools`; an empty `elicitation` has the part `form`.
        """
        declared = self.capabilities.get(capability)
        if isinstance(declared, dict) and (part is None or part in (declared or ["form"])):
            return
        lacking: Params = {part: {}} if part and (declared or part != "form") else {}
        name = ".".join([capability, *lacking])
        text = f"this needs the client capability {name!r}, which was not declared"
        if not self.modern:
            raise ToolError(text)
        data: Params = {"requiredCapabilities": {capability: lacking}}
        raise ProtocolError(protocol.MISSING_CAPABILITY, text, data)
