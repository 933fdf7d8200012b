"""The client: find the era, list tools, call them, and match replies to calls.

https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns
"""

import time
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from threading import Lock
from typing import Any, Literal, NamedTuple

from . import protocol
from .connection import Connection, reading
from .eras import INFO, declare, negotiate, wish
from .protocol import JSON, MISSING, Message, Params, ProtocolError
from .schema import checker, explain
from .server import Server

MAX_PAGES, MAX_ROUNDS = 1000, 10


# ## What a call goes through
#
# `call_tool` makes the params, `request` answers what the server asks on the way, `ask` adds what
# the era demands and waits for the one reply. A reply with an error is raised, a tool that failed
# is returned: the first is for the programmer, the second for the model.


class ToolResult(NamedTuple):
    """What a tool answered: its text, the structured value if any, all blocks, and if it failed."""

    text: str
    structured: JSON
    content: list[Params]
    is_error: bool


class Client:
    """A conversation with one server: a `Server`, a command as a list, or a URL.

    It connects at once; `ConnectionError` says why it could not. `era` is "auto", "modern" or
    "legacy", and `version` the revision to ask for (a legacy server may answer with another one
    that we speak). `timeout` (seconds) holds for every request that names none, `probe_timeout`
    for the first one: silence means that the server is a legacy one. `on_input` maps what a server
    may ask ("elicitation/create", …) to a function from its params to the result; exactly these
    capabilities are declared. `on_notification` gets the method and the params of each
    notification (the `progressToken` of a call is its id), `trace` the sender ("client" or
    "server") and each message; neither may wait for the server, since nobody listens until they
    return. `env` is merged over ours.
    """

    def __init__(
        self,
        target: Server | Sequence[str] | str,
        *,
        era: Literal["auto", "modern", "legacy"] = "auto",
        version: str | None = None,
        timeout: float = 30.0,
        probe_timeout: float = 5.0,
        env: Mapping[str, str] | None = None,
        on_input: Mapping[str, Callable[[Params], Params]] | None = None,
        on_notification: Callable[[str, Params], Any] | None = None,
        trace: Callable[[str, Message], Any] | None = None,
    ) -> None:
        self.era = self.protocol_version = ""  # known after the first request
        self.server_info, self.capabilities, self.instructions = Params(), Params(), None
        self.target, self.env = target, env
        self.timeout, self.probe_timeout = timeout, probe_timeout
        self.wanted = wish(era, version), version
        self.on_input, self.on_notification, self.trace = on_input or {}, on_notification, trace
        self.declared = declare(self.on_input)
        self.ids, self.lock, self.closed, self.changes = count(1), Lock(), False, 0
        self._connect()

    def _connect(self) -> None:
        self.tools, self.fresh_until = dict[str, Params](), 0.0
        self.connection = Connection(self._wire(), self._hear, self._answer, self.trace)
        try:
            if self.closed:  # meanwhile
                raise ConnectionError("the client is closed")
            with reading("the first request"):
                negotiate(self, *self.wanted)
        except BaseException as error:
            self.connection.close("there was no common revision")
            if isinstance(error, TimeoutError):
                raise ConnectionError(f"{error}; {self.connection.wire.obituary()}") from None
            raise

    def _wire(self) -> Any:
        from .child import Child, InProcess

        if isinstance(self.target, Server):
            return InProcess(self.target)
        if not isinstance(self.target, str):
            return Child(self.target, self.env)
        from .http_client import HTTPWire

        return HTTPWire(self.target, self)

    # Asking

    def request(
        self, method: str, params: Params | None = None, timeout: float | None = None
    ) -> Params:
        """Send a request and wait for its result, answering what the server asks on the way.

        Raises `ProtocolError` if the server answers with an error, `TimeoutError` if it does not
        answer, `ConnectionError` if it is gone or talks nonsense. A server that is gone is
        started again by the next request, which then takes the time of a first one more.
        """
        with self.lock:
            if self.connection.lost and not self.closed:
                self.connection.close("")
                self._connect()
        retry: Params = {}
        for _ in range(MAX_ROUNDS):
            asked = {**(params or {}), **retry}
            result = self.ask(method, asked, self.timeout if timeout is None else timeout)
            if self.era == "legacy" or result.get("resultType") != "input_required":
                return result
            retry = self._inputs(result)
        raise ConnectionError(f"{method}: the server asks back without end")

    def ask(self, method: str, params: Params, timeout: float) -> Params:
        """One request and its result."""
        ident, what = next(self.ids), f"{method} {params.get('name', '')}".strip()
        meta = Params() if self.on_notification is None else {"progressToken": ident}
        meta |= params.get("_meta", {})
        if self.era == "modern":
            meta[protocol.VERSION_KEY] = self.protocol_version
            meta |= {protocol.CAPABILITIES_KEY: self.declared, protocol.CLIENT_KEY: INFO}
        asked = {**params, "_meta": meta} if meta else params
        request = {"jsonrpc": "2.0", "id": ident, "method": method, "params": asked}
        try:
            reply = self.connection.ask(request, timeout)
        except (TimeoutError, ConnectionError) as error:
            # the first request of all is never cancelled
            if isinstance(error, TimeoutError) and method not in ("initialize", "server/discover"):
                self.notify("notifications/cancelled", {"requestId": ident, "reason": "time-out"})
            raise type(error)(f"{what}: {error}") from None
        with reading(what):
            return self._result(reply)

    def _result(self, reply: Message) -> Params:
        if "error" in reply:
            error = reply["error"]
            raise ProtocolError(error["code"] + 0, error["message"], error.get("data"))
        result: Params = reply["result"]
        kind = result.get("resultType", "complete")
        if self.era == "modern" and kind not in ("complete", "input_required"):
            raise ValueError(f"unknown resultType {kind!r}")
        return result

    def notify(self, method: str, params: Params | None = None) -> None:
        """Send a notification; nothing comes back."""
        self.connection.send({"jsonrpc": "2.0", "method": method, "params": params or {}})

    # Tools

    def list_tools(self, timeout: float | None = None) -> list[Params]:
        """All tools of all pages, untouched; kept for as long as the server allows (`ttlMs`).

        `timeout` holds for each page. Over HTTP, tools whose `x-mcp-header` marks break a rule are
        left out.
        """
        if time.monotonic() >= self.fresh_until:
            asked, changes = time.monotonic(), self.changes
            pages = self._pages(timeout)
            with reading("tools/list"):  # only a list can be sliced
                self.tools = {tool["name"]: tool for page in pages for tool in page["tools"][:]}
                ttls = [page.get("ttlMs") for page in pages]
                fresh = min(ttl if type(ttl) is int else 0 for ttl in ttls) / 1000
            self.fresh_until = asked + fresh if changes == self.changes else 0.0
        return list(self.tools.values())

    def _pages(self, timeout: float | None, again: bool = True) -> list[Params]:
        pages = [self.request("tools/list", None, timeout)]
        cursors: list[str] = []
        while (cursor := pages[-1].get("nextCursor")) is not None:
            if cursor in cursors or len(cursors) == MAX_PAGES:
                raise ConnectionError("tools/list: the pages have no end")
            cursors.append(cursor)
            try:
                pages.append(self.request("tools/list", {"cursor": cursor}, timeout))
            except ProtocolError as error:
                if error.code != protocol.INVALID_PARAMS or not again:
                    raise
                return self._pages(timeout, again=False)  # the list has changed: start over, once
        return pages

    def call_tool(
        self, name: str, arguments: Params | None = None, timeout: float | None = None
    ) -> ToolResult:
        """Call a tool. A failure of the tool is a result too, with `is_error`."""
        asked = {"name": name, "arguments": {} if arguments is None else arguments}
        found = self.request("tools/call", asked, timeout)
        structured, failed = found.get("structuredContent", MISSING), found.get("isError") is True
        schema = self.tools.get(name, {}).get("outputSchema", {})
        with reading(f"tools/call {name}"):
            blocks = found["content"]
            text = "\n".join(block["text"] for block in blocks if block["type"] == "text")
            if schema and not failed and (wrong := checker(schema, trusted=False)(structured)):
                raise ValueError(explain(wrong, "structuredContent"))
            return ToolResult(text, found.get("structuredContent"), blocks, failed)

    # Being told, and being asked

    def _hear(self, message: Message) -> None:
        if message["method"] == "notifications/tools/list_changed":
            self.fresh_until, self.changes = 0.0, self.changes + 1
        if self.on_notification is not None:
            self.on_notification(message["method"], message.get("params", {}))

    def _answer(self, request: Message) -> Params:
        method: Any = request.get("method")
        if method == "ping":
            return {}
        if str(method) not in self.on_input:
            raise ProtocolError(protocol.METHOD_NOT_FOUND, f"this client does not answer {method}")
        return self.on_input[method](request.get("params", {}))

    def _inputs(self, result: Params) -> Params:
        """What a retry adds: answers to all questions, and the state untouched."""
        retry = {key: result[key] for key in ("requestState",) if key in result}
        with reading("a request"):
            asked = result.get("inputRequests") or {}
            questions = {key: {**one} for key, one in asked.items()}
        if questions:
            retry["inputResponses"] = {key: self._answer(one) for key, one in questions.items()}
        return retry

    # The end

    def close(self) -> None:
        """End the connection, and the server if it is a child process. Always returns."""
        self.closed = True
        self.connection.close("the client is closed")

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


if __name__ == "__main__":
    from minimcp.cli import main

    raise SystemExit(main())
