"""The client: negotiate an era, list tools, call them, and match replies to calls.

It speaks over a *wire*: any object with `open(receive)`, `send(message, timeout)`, `close()` and
`obituary()` that calls `receive(line)` for each line that comes, and `receive(None)` at the end.
A child process, a server in the same process and HTTP are three of them.

https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning
"""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, Literal, NamedTuple

from . import protocol
from .context import Peer
from .protocol import JSON, MISSING, Message, Params, ProtocolError, dumps, is_id, loads
from .schema import Schema, checker, explain, validate
from .server import Server, unexpected

INFO = {"name": "minimcp", "version": "0.1.0"}
TOLERATED = (*protocol.LEGACY, "2025-03-26")  # on the wire all the same, as far as we use them
MAX_PAGES, MAX_ROUNDS = 1000, 10


# ## What a correct server sends


def having(**members: Schema) -> Schema:
    """The schema of an object with these members, and any others."""
    return {"type": "object", "properties": members, "required": [*members]}


OBJECT, TEXT = {"type": "object"}, {"type": "string"}
ERROR = having(code={"type": "integer"}, message=TEXT)
RESULTS = {
    "initialize": having(protocolVersion=TEXT),
    "tools/list": having(tools={"type": "array", "items": having(name=TEXT)}),
    "tools/call": having(content={"type": "array", "items": having(type=TEXT)}),
}


RESULTS["tools/list"]["properties"]["nextCursor"] = TEXT  # not required


class ToolResult(NamedTuple):
    """What a tool answered: content blocks, the structured value if any, success or failure."""

    content: list[Params]
    structured: JSON
    is_error: bool

    @property
    def text(self) -> str:
        """The text blocks, one below the other."""
        return "\n".join(
            str(block.get("text")) for block in self.content if block["type"] == "text"
        )


class Client:
    """A conversation with one server: a `Server`, a command as a list, or a URL.

    It connects at once; `ConnectionError` says why it could not. `era` is "auto", "modern" or
    "legacy", and `version` pins a legacy revision. `timeout` (seconds) holds for every request
    that names none. `on_input` maps what a server may ask ("elicitation/create", …) to a function
    from its params to the result; exactly these capabilities are declared. `on_notification`
    gets the method and the params of each notification, `trace` the sender ("client" or
    "server") and each message. `env` is merged over our own environment.
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
        self.target, self.env, self.wanted, self.version = target, env, era, version
        self.timeout, self.probe_timeout = timeout, probe_timeout
        self.on_input = on_input or {}
        self.on_notification, self.trace = on_notification, trace
        self.calls: dict[Any, SimpleQueue[Message | None]] = {}
        self.ids, self.lock, self.closed = count(1), Lock(), False
        self._connect()

    # ## Which era?

    def _connect(self) -> None:
        self.lost = ""  # why there is no server any more
        self.tools: dict[str, Params] = {}
        self.fresh_until, self.complained = 0.0, False
        self.wire = self._wire()
        self.wire.open(self.receive)
        try:
            self._negotiate()
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

    def _negotiate(self) -> None:
        """Modern if both are; otherwise the handshake, if both can."""
        listed = None if self.wanted == "legacy" else self._discover()
        if protocol.MODERN[0] in (listed or ()):
            return
        if listed and not set(listed) & set(protocol.LEGACY):
            raise ConnectionError(f"no common revision: the server speaks {listed}")
        if self.wanted == "modern":
            raise ConnectionError("the server speaks no modern revision; try era='auto'")
        self._handshake()

    def _discover(self, again: bool = True) -> JSON:
        """The revisions that a modern server lists; `None` (silence, odd answers): it is none."""
        self.era, self.protocol_version = "modern", protocol.MODERN[0]
        try:
            found = self._ask("server/discover", {}, self.probe_timeout)
        except TimeoutError:
            if self.wanted == "modern":
                raise
            return None
        except ProtocolError as error:
            if error.code not in protocol.MCP_ERRORS:
                return None
            listed = (error.data or {}).get("supported")
            if error.code != protocol.UNSUPPORTED_VERSION or not listed or not again:
                raise
            return self._discover(again=False) if protocol.MODERN[0] in listed else listed
        self._meet(found, found.get("_meta", {}).get(protocol.SERVER_KEY))
        return found.get("supportedVersions")

    def _handshake(self) -> None:
        self.era, self.protocol_version = "legacy", self.version or protocol.LEGACY[0]
        asked = {"protocolVersion": self.protocol_version, "capabilities": self._capabilities()}
        found = self._ask("initialize", {**asked, "clientInfo": INFO}, self.timeout)
        self.protocol_version = found["protocolVersion"]
        if self.protocol_version not in TOLERATED:
            raise ConnectionError(f"no common revision: the server wants {self.protocol_version}")
        self._meet(found, found.get("serverInfo"))
        self.notify("notifications/initialized")

    def _meet(self, found: Params, info: JSON) -> None:
        self.server_info, self.instructions = info or {}, found.get("instructions")
        self.capabilities = found.get("capabilities", {})

    def _capabilities(self) -> Params:
        return {protocol.INPUTS[method]: {} for method in self.on_input}

    # ## Asking

    def request(
        self, method: str, params: Params | None = None, timeout: float | None = None
    ) -> Params:
        """Send a request and wait for its result, answering what the server asks on the way.

        Raises `ProtocolError` if the server answers with an error, `TimeoutError` if it does not
        answer, `ConnectionError` if it is gone or talks nonsense. A server that is gone is
        started again by the next request.
        """
        with self.lock:
            if self.lost and not self.closed:
                self.wire.close()
                self._connect()
        retry: Params = {}
        for _ in range(MAX_ROUNDS):
            asked = {**(params or {}), **retry}
            result = self._ask(method, asked, self.timeout if timeout is None else timeout)
            if self.era == "legacy" or result.get("resultType") != "input_required":
                return result
            retry = self._inputs(result)
        raise ConnectionError(f"{method}: the server asks back without end")

    def notify(self, method: str, params: Params | None = None) -> None:
        """Send a notification; nothing comes back."""
        self._send({"jsonrpc": "2.0", "method": method, "params": params or {}})

    def _send(self, message: Message, timeout: float | None = None) -> None:
        if self.trace:
            self.trace("client", message)
        self.wire.send(message, timeout)

    def _ask(self, method: str, params: Params, timeout: float) -> Params:
        ident = next(self.ids)
        replies = self.calls[ident] = SimpleQueue()
        if meta := self._meta(ident, params.get("_meta", {})):
            params = {**params, "_meta": meta}
        self._send({"jsonrpc": "2.0", "id": ident, "method": method, "params": params}, timeout)
        if self.lost:  # meanwhile
            self._lose(self.lost)
        try:
            return self._result(method, params, replies.get(timeout=timeout))
        except Empty:
            self.calls.pop(ident, None)
            if method not in ("initialize", "server/discover"):  # subtle: never cancelled
                self.notify("notifications/cancelled", {"requestId": ident, "reason": "time-out"})
            name = params.get("name", "")
            raise TimeoutError(f"{method} {name}: no answer in {timeout:g} s") from None

    def _meta(self, ident: int, own: Params) -> Params:
        """What a modern request says of itself, and a token that asks for progress."""
        meta = {"progressToken": ident, **own} if self.on_notification else {**own}
        if self.era == "modern":
            meta[protocol.VERSION_KEY] = self.protocol_version
            meta[protocol.CAPABILITIES_KEY] = self._capabilities()
            meta[protocol.CLIENT_KEY] = INFO
        return meta

    def _result(self, method: str, params: Params, reply: Message | None) -> Params:
        if reply is None:
            raise ConnectionError(f"{method} {params.get('name', '')}: {self.lost}")
        result = reply.get("result")
        kind = result.get("resultType", "complete") if isinstance(result, dict) else "complete"
        expected = RESULTS.get(method, OBJECT) if kind == "complete" else OBJECT
        schema = having(error=ERROR) if "error" in reply else having(result=expected)
        if problems := validate(reply, schema):
            raise ConnectionError(f"malformed reply to {method}: {explain(problems, 'reply')}")
        if "error" in reply:
            error = reply["error"]
            raise ProtocolError(error["code"], error["message"], error.get("data"))
        if self.era == "modern" and kind not in ("complete", "input_required"):
            raise ConnectionError(f"malformed reply to {method}: unknown resultType {kind!r}")
        return result

    # ## Tools

    def list_tools(self) -> list[Params]:
        """All tools of all pages, untouched; kept for as long as the server allows (`ttlMs`)."""
        if time.monotonic() >= self.fresh_until:
            asked, pages = time.monotonic(), self._pages()
            self.tools = {tool["name"]: tool for page in pages for tool in page["tools"]}
            ttls = [page.get("ttlMs") for page in pages]
            self.fresh_until = asked + min(ttl if type(ttl) is int else 0 for ttl in ttls) / 1000
        return list(self.tools.values())

    def _pages(self, again: bool = True) -> list[Params]:
        pages = [self.request("tools/list")]
        cursors: list[str] = []
        while (cursor := pages[-1].get("nextCursor")) is not None:
            if cursor in cursors or len(cursors) == MAX_PAGES:
                raise ConnectionError("tools/list: the pages have no end")
            cursors.append(cursor)
            try:
                pages.append(self.request("tools/list", {"cursor": cursor}))
            except ProtocolError as error:
                if error.code != protocol.INVALID_PARAMS or not again:
                    raise
                return self._pages(again=False)  # the list changed meanwhile: start over, once
        return pages

    def call_tool(
        self, name: str, arguments: Params | None = None, timeout: float | None = None
    ) -> ToolResult:
        """Call a tool. A failure of the tool is a result too, with `is_error`."""
        asked = {"name": name, "arguments": {} if arguments is None else arguments}
        found = self.request("tools/call", asked, timeout)
        structured, is_error = found.get("structuredContent", MISSING), found.get("isError") is True
        schema = self.tools.get(name, {}).get("outputSchema")
        if schema is not None and not is_error:
            if problems := checker(schema, trusted=False)(structured):
                text = explain(problems, "structuredContent")
                raise ConnectionError(f"{name} breaks its own output schema: {text}")
        return ToolResult(found["content"], found.get("structuredContent"), is_error)

    # ## Listening (on a thread of the wire)

    def receive(self, line: str | None) -> None:
        """Take one line from the wire, or `None` when no more will come."""
        if line is None:
            return self._lose(self.wire.obituary())
        try:
            message = loads(line)
        except ProtocolError:
            message = None
        if not isinstance(message, dict):
            return self._complain(line)
        try:
            if self.trace:
                self.trace("server", message)
            (self._hear if "method" in message else self._match)(message)
        except Exception as error:  # of a callback; we go on listening
            sys.excepthook(type(error), error, error.__traceback__)

    def _complain(self, line: str) -> None:
        if line.strip() and not self.complained:
            self.complained = True
            print(f"minimcp: skipped, not a message: {line[:200]!r}", file=sys.stderr)

    def _lose(self, reason: str) -> None:
        self.lost = self.lost or reason
        while self.calls:
            self.calls.popitem()[1].put(None)

    def _match(self, reply: Message) -> None:
        ident = reply.get("id")
        if ident is None and "error" in reply and len(self.calls) == 1:
            ident = next(iter(self.calls))  # it can only mean this one
        if is_id(ident) and ident in self.calls:
            self.calls.pop(ident).put(reply)

    def _hear(self, message: Message) -> None:
        method, params = message["method"], message.get("params", {})
        if "id" in message:
            if self.era == "legacy":  # a modern server has no business asking
                Thread(target=self._answer, args=(message,), daemon=True).start()
            return
        if method == "notifications/tools/list_changed":
            self.fresh_until = 0.0
        if self.on_notification:
            self.on_notification(method, params)

    # ## Being asked

    def _answer(self, request: Message) -> None:
        try:
            reply = {"jsonrpc": "2.0", "id": request["id"], "result": self._input(request)}
        except ProtocolError as error:
            reply = error.reply(request["id"])
        except Exception as error:
            reply = unexpected(error).reply(request["id"])
        self._send(reply)

    def _input(self, request: Message) -> Params:
        method = request.get("method")
        if method == "ping":
            return {}
        if method not in self.on_input:
            raise ProtocolError(protocol.METHOD_NOT_FOUND, f"this client does not answer {method}")
        return self.on_input[method](request.get("params", {}))

    def _inputs(self, result: Params) -> Params:
        """What a retry adds: answers to all questions, and the state untouched."""
        questions = result.get("inputRequests")
        answers = {key: self._input(one) for key, one in (questions or {}).items()}
        state = {key: result[key] for key in ("requestState",) if key in result}
        return {**({"inputResponses": answers} if questions else {}), **state}

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


class InProcess:
    """The wire to a server in the same process: every request is a thread."""

    def __init__(self, server: Server) -> None:
        self.server = server

    def open(self, receive: Callable[[str | None], None]) -> None:
        self.receive, self.peer = receive, Peer(receive)

    def send(self, message: Message, timeout: float | None) -> None:
        line = dumps(message)
        if "id" in message:
            Thread(target=self._serve, args=(line,), daemon=True).start()
        else:
            self._serve(line)

    def _serve(self, line: str) -> None:
        reply = self.server.handle_line(line, self.peer)
        if reply is not None:
            self.receive(reply)

    def close(self) -> None:
        self.peer.in_flight.clear()

    def obituary(self) -> str:
        return "the server in this process does not answer"


if __name__ == "__main__":
    from minimcp.demo import main

    sys.exit(main())
