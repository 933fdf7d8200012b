"""The client: negotiate an era, list tools, call them, and match replies to calls.

It speaks over a *wire*, and any object will do that has `send(message, timeout)`, `close()` and
`obituary()` and calls `receive(line)` for each line that comes, `receive(None)` at the end. A
child process, a server in the same process and HTTP are three of them.

https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning
"""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from threading import Event, Lock, Thread
from typing import Any, Literal, NamedTuple

from . import protocol
from .context import Peer
from .protocol import JSON, MISSING, Message, Params, ProtocolError, describe, dumps, is_id, loads
from .schema import checker, explain
from .server import Server

Inputs = Mapping[str, Callable[[Params], Params]]
TOLERATED = (*protocol.LEGACY, "2025-03-26")  # the same on the wire, as far as we use it
INFO = {"name": "minimcp", "version": "0.1.0"}
MAX_PAGES, MAX_ROUNDS = 1000, 10


class Call(Event):
    """A request that waits for its reply."""

    reply: Any = None  # the reply, or why there is none
    on_progress: Callable[[Params], Any] | None = None


class ToolResult(NamedTuple):
    """What a tool answered: content blocks, the structured value if any, success or failure."""

    content: list[Params]
    structured: JSON
    is_error: bool

    @property
    def text(self) -> str:
        """The text blocks, one below the other."""
        return "\n".join(block["text"] for block in self.content if block.get("type") == "text")


class Client:
    """A conversation with one server: a `Server`, a command as a list, or the URL of one.

    It connects at once and raises `ConnectionError` if that fails. `era` is "auto", "modern" or
    "legacy". `timeout` (seconds) holds for every request that names none of its own. `on_input`
    maps a request of the server ("elicitation/create", …) to a function from its params to the
    result; exactly these capabilities are declared. `on_notification(method, params)` hears what
    the server tells; `trace(sender, message)` sees every message. `env` is merged over ours.
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
        on_input: Inputs | None = None,
        on_notification: Callable[[str, Params], Any] | None = None,
        trace: Callable[[str, Message], Any] | None = None,
    ) -> None:
        self.target, self.env, self.wanted_era = target, env, "legacy" if version else era
        self.offer = version or protocol.LEGACY[0]
        self.timeout, self.probe_timeout = timeout, probe_timeout
        self.on_input = on_input or {}
        self.on_notification, self.trace = on_notification or ignore, trace or ignore
        self.calls: dict[str | int, Call] = {}
        self.ids = count(1)
        self.lock = Lock()
        self.closed = False
        self.connect()

    # ## Which era?

    def connect(self) -> None:
        """Open the wire and find the era."""
        self.lost: str | None = None
        self.tools: dict[str, Params] = {}
        self.stale_at = 0.0
        self.complained = False
        self.wire = self._wire()
        self.wire.open(self.receive)
        try:
            if self.wanted_era == "legacy" or not self._discover():
                self._handshake()
        except BaseException as error:
            self.wire.close()
            if isinstance(error, TimeoutError):
                raise ConnectionError(f"{error}; {self.wire.obituary()}") from None
            raise

    def _wire(self) -> Any:
        if isinstance(self.target, Server):
            return InProcess(self.target)
        if isinstance(self.target, str):
            from .http_client import HTTPWire

            return HTTPWire(self.target, self)
        from .child import Child

        return Child(self.target, self.env)

    def _discover(self) -> bool:
        """Ask in the modern way; whether the server is modern. Silence and odd answers say no."""
        self.era, self.protocol_version = "modern", protocol.MODERN[0]
        try:
            found = self._ask("server/discover", {}, self.probe_timeout)
        except TimeoutError:
            return False
        except ProtocolError as error:
            if error.code not in protocol.MCP_ERRORS:
                return False
            if error.code != protocol.UNSUPPORTED_VERSION:
                raise
            if not self._choose(error.data.get("supported")):
                return False
            found = self._ask("server/discover", {}, self.probe_timeout)
        self._meet(found, found.get("_meta", {}).get(protocol.SERVER_KEY))
        return self._choose(found.get("supportedVersions"))

    def _choose(self, listed: JSON) -> bool:
        """Take the newest modern revision of a list; false if there are only legacy ones."""
        for version in protocol.MODERN:
            if listed and version in listed:
                self.protocol_version = version
                return True
        if listed and not set(listed) & set(protocol.LEGACY):
            raise ConnectionError(f"no common revision: the server speaks {listed}")
        return False

    def _handshake(self) -> None:
        if self.wanted_era == "modern":
            raise ConnectionError("the server speaks no modern revision; try era='auto'")
        self.era, self.protocol_version = "legacy", self.offer
        asked = {"protocolVersion": self.offer, "capabilities": self._capabilities()}
        found = self._ask("initialize", {**asked, "clientInfo": INFO}, self.timeout)
        self.protocol_version = found.get("protocolVersion")
        if self.protocol_version not in TOLERATED:
            raise ConnectionError(f"the server wants revision {self.protocol_version!r}")
        self._meet(found, found.get("serverInfo"))
        self.notify("notifications/initialized")

    def _meet(self, found: Params, info: JSON) -> None:
        self.server_info, self.instructions = info or {}, found.get("instructions")
        self.capabilities = found.get("capabilities", {})

    def _capabilities(self) -> Params:
        return {protocol.INPUTS[method]: {} for method in self.on_input}

    # ## Asking

    def request(
        self,
        method: str,
        params: Params | None = None,
        timeout: float | None = None,
        on_progress: Callable[[Params], Any] | None = None,
    ) -> Params:
        """Send a request and wait for its result, answering what the server asks on the way.

        Raises `ProtocolError` if the server answers with an error, `TimeoutError` if it does not
        answer, `ConnectionError` if it is gone; a server that is gone is started again by the
        next request.
        """
        with self.lock:
            if self.closed:
                raise ConnectionError("the client is closed")
            if self.lost:
                self.wire.close()
                self.connect()
        params, retry = params or {}, {}
        for _ in range(MAX_ROUNDS):
            result = self._ask(method, {**params, **retry}, timeout or self.timeout, on_progress)
            if result.get("resultType") != "input_required" or self.era == "legacy":
                return result
            retry = self._inputs(result)
        raise ConnectionError(f"{method}: the server asks back without end")

    def notify(self, method: str, params: Params | None = None) -> None:
        """Send a notification; there is no answer."""
        extra = {"params": params} if params else {}
        self._send({"jsonrpc": "2.0", "method": method, **extra})

    def _ask(
        self,
        method: str,
        params: Params,
        timeout: float,
        on_progress: Callable[[Params], Any] | None = None,
    ) -> Params:
        ident = next(self.ids)
        call = self.calls[ident] = Call()
        call.on_progress = on_progress
        meta = {**params.get("_meta", {}), **self._metadata()}
        if on_progress:
            meta["progressToken"] = ident
        dressed = {**params, "_meta": meta} if meta else params
        self._send({"jsonrpc": "2.0", "id": ident, "method": method, "params": dressed}, timeout)
        if self.lost is None and not call.wait(timeout):
            self._give_up(ident, method)
            raise TimeoutError(f"{method} {params.get('name', '')}: no answer in {timeout:g} s")
        return self._result(call.reply)

    def _metadata(self) -> Params:
        """What a modern request says about itself, so that the server need not remember us."""
        if self.era == "legacy":
            return {}
        return {
            protocol.VERSION_KEY: self.protocol_version,
            protocol.CAPABILITIES_KEY: self._capabilities(),
            protocol.CLIENT_KEY: INFO,
        }

    def _send(self, message: Message, timeout: float | None = None) -> None:
        self.trace("client", message)
        self.wire.send(message, timeout)

    def _give_up(self, ident: int, method: str) -> None:
        self.calls.pop(ident, None)
        if method not in ("initialize", "server/discover"):  # subtle: these are never cancelled
            self.notify("notifications/cancelled", {"requestId": ident, "reason": "timed out"})

    def _result(self, reply: Message | None) -> Params:
        if reply is None:
            raise ConnectionError(self.lost)
        error, result = reply.get("error"), reply.get("result")
        if isinstance(error, dict):
            code, text = error.get("code"), error.get("message")
            raise ProtocolError(code, text, error.get("data"))
        if not isinstance(result, dict):
            raise ConnectionError(
                f"malformed reply: result: expected object, got {describe(result)}"
            )
        kind = result.get("resultType", "complete")
        if self.era == "modern" and kind not in ("complete", "input_required"):
            raise ConnectionError(f"malformed reply: unknown resultType {describe(kind)}")
        return result

    # ## Tools

    def list_tools(self) -> list[Params]:
        """All tools of all pages, untouched; kept for as long as the server allows (`ttlMs`)."""
        if time.monotonic() >= self.stale_at:
            asked = time.monotonic()
            pages = self._pages()
            listed = [tool for page in pages for tool in need(page, "tools", list)]
            self.tools = {need(tool, "name", str): tool for tool in listed}
            ttl = min(page.get("ttlMs") if type(page.get("ttlMs")) is int else 0 for page in pages)
            self.stale_at = asked + ttl / 1000
        return list(self.tools.values())

    def _pages(self, again: bool = True) -> list[Params]:
        pages = [self.request("tools/list")]
        seen: set[str] = set()
        while "nextCursor" in pages[-1]:
            cursor = need(pages[-1], "nextCursor", str)
            if cursor in seen or len(seen) == MAX_PAGES:
                raise ConnectionError("tools/list: the pages have no end")
            seen.add(cursor)
            try:
                pages.append(self.request("tools/list", {"cursor": cursor}))
            except ProtocolError as error:
                if error.code != protocol.INVALID_PARAMS or not again:
                    raise
                return self._pages(again=False)  # the list changed meanwhile: start over, once
        return pages

    def call_tool(
        self,
        name: str,
        arguments: Params | None = None,
        timeout: float | None = None,
        on_progress: Callable[[Params], Any] | None = None,
    ) -> ToolResult:
        """Call a tool. A failure of the tool is a result too, with `is_error`."""
        params = {"name": name, "arguments": {} if arguments is None else arguments}
        result = self.request("tools/call", params, timeout, on_progress)
        answer = ToolResult(
            need(result, "content", list),
            result.get("structuredContent"),
            result.get("isError") is True,
        )
        schema = self.tools.get(name, {}).get("outputSchema")
        if schema is not None and not answer.is_error:
            if problems := checker(schema, trusted=False)(result.get("structuredContent", MISSING)):
                text = explain(problems, "structuredContent")
                raise ConnectionError(f"{name} breaks its own output schema: {text}")
        return answer

    # ## Listening (on the wire's own thread)

    def receive(self, line: str | None) -> None:
        """Take one line from the wire, or `None` when no more will come."""
        if line is None:
            return self._lose(self.wire.obituary())
        try:
            message = loads(line)
            handle = self._heard if "method" in message else self._replied
            self.trace("server", message)
            handle(message)
        except (ProtocolError, TypeError, AttributeError):
            self._complain(line)

    def _complain(self, line: str) -> None:
        if line.strip() and not self.complained:
            self.complained = True
            print(f"minimcp: skipped, not a message: {line[:200]!r}", file=sys.stderr)

    def _lose(self, reason: str) -> None:
        self.lost = self.lost or reason
        for call in list(self.calls.values()):
            call.set()

    def _replied(self, message: Message) -> None:
        ident = message.get("id")
        if ident is None and "error" in message and len(self.calls) == 1:
            ident = next(iter(self.calls))  # an error without an id can only mean this one
        call = self.calls.pop(ident, None) if is_id(ident) else None
        if call:
            call.reply = message
            call.set()

    def _heard(self, message: Message) -> None:
        if "id" in message:
            if self.era == "legacy":
                Thread(target=self._answer, args=(message,), daemon=True).start()
            return
        method, params = message["method"], message.get("params", {})
        if method == "notifications/tools/list_changed":
            self.stale_at = 0.0
        call = self.calls.get(params.get("progressToken"))
        if call and call.on_progress:
            call.on_progress(params)
        self.on_notification(method, params)

    # ## Being asked

    def _answer(self, request: Message) -> None:
        """Answer a request of a legacy server."""
        try:
            reply: Params = {"result": self._input(request)}
        except ProtocolError as error:
            reply = {"error": {"code": error.code, "message": error.message}}
        self._send({"jsonrpc": "2.0", "id": request["id"], **reply})

    def _input(self, request: Message) -> Params:
        method = request.get("method")
        if method == "ping":
            return {}
        if method not in self.on_input:
            raise ProtocolError(protocol.METHOD_NOT_FOUND, f"this client cannot answer {method}")
        return self.on_input[method](request.get("params", {}))

    def _inputs(self, result: Params) -> Params:
        """What a retry adds to the request: answers to all questions, and the state untouched."""
        asked = result.get("inputRequests", {})
        retry: Params = {}
        if asked:
            retry["inputResponses"] = {key: self._input(one) for key, one in asked.items()}
        if "requestState" in result:
            retry["requestState"] = result["requestState"]
        return retry

    # ## The end

    def close(self) -> None:
        """End the connection, and the server if it is a child process. Always returns."""
        self.closed = True
        self._lose("the client is closed")
        self.wire.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def ignore(*anything: object) -> None:
    """Nobody listens."""


def need(holder: Params, key: str, kind: type) -> Any:
    """A member that a correct server always sends."""
    try:
        return protocol.expect(holder, key, kind, "result")
    except (ProtocolError, AttributeError) as error:
        raise ConnectionError(f"malformed reply: {error}") from None


class InProcess:
    """The wire to a server in the same process: each request is a thread of its own."""

    def __init__(self, server: Server) -> None:
        self.server = server

    def open(self, receive: Callable[[str | None], None]) -> None:
        self.receive, self.peer = receive, Peer(receive)

    def send(self, message: Message, timeout: float | None) -> None:
        if "id" in message:
            Thread(target=self._serve, args=(message,), daemon=True).start()
        else:
            self._serve(message)

    def _serve(self, message: Message) -> None:
        reply = self.server.handle_line(dumps(message), self.peer)
        if reply is not None:
            self.receive(reply)

    def close(self) -> None:
        self.peer.in_flight.clear()


if __name__ == "__main__":
    from minimcp.demo import main

    sys.exit(main())
