"""The server: tools, and one `handle_line` for both eras.

`handle_line` takes a line and returns a line. It opens nothing, waits for nothing and never
raises, so everything else (stdio, HTTP, a test, a notebook, a page in a browser) is a caller.

https://modelcontextprotocol.io/specification/2026-07-28/server
"""

import sys
from collections.abc import Callable
from typing import Any, Literal

from . import protocol
from .context import LATER, Context, Era, Peer
from .protocol import JSON, Message, Params, ProtocolError, ToolError, dumps, expect, is_id, loads
from .schema import Schema, explain, validate
from .tool import Tool, error_result

Handler = Callable[[Params, Context], Any]  # returns the members of the result


class Server:
    """Tools, and the two conversations (modern and legacy) in which they are offered.

    `ttl_ms` (milliseconds) and `cache_scope` tell clients how long and for whom a list may be
    kept; "public" is right as long as every user sees the same tools. `page_size` is the number
    of tools on a page of `tools/list`; `None` puts all of them on one.
    """

    def __init__(
        self,
        name: str,
        version: str = "0.1.0",
        instructions: str | None = None,
        ttl_ms: int = 60_000,
        cache_scope: Literal["public", "private"] = "public",
        page_size: int | None = None,
    ) -> None:
        if type(ttl_ms) is not int or ttl_ms < 0 or cache_scope not in ("public", "private"):
            raise ValueError("ttl_ms is an int of 0 or more, cache_scope 'public' or 'private'")
        self.info = {"name": name, "version": version}
        self.instructions, self.page_size = instructions, page_size
        self.hints = {"ttlMs": ttl_ms, "cacheScope": cache_scope}
        self.tools: dict[str, Tool] = {}
        self.capabilities: dict[str, Params] = {}
        self.methods: dict[Era, dict[str, Handler]] = {"modern": {}, "legacy": {}}
        self.method("server/discover", era="modern")(self._discover)
        self.method("initialize", era="legacy")(self._initialize)
        self.method("ping", era="legacy")(lambda params, context: {})
        self.method("subscriptions/listen", era="modern")(self._listen)
        self.listeners: dict[Context, Params] = {}  # what each of them wants to hear of
        self.peer = Peer()  # of a server with one lasting connection: stdio, a notebook, a test

    # ## The seam

    def handle_line(self, line: str, peer: Peer | None = None) -> str | None:
        """Answer one line with one line, or with `None` when there is nothing to say."""
        if not line or line.isspace():
            return None
        try:
            reply = self.handle(loads(line), peer or self.peer)
        except ProtocolError as error:
            reply = error.reply(None)
        return None if reply is None else write(reply)

    def handle(self, message: JSON, peer: Peer) -> Message | None:
        """Answer one message that has been read from JSON."""
        ident = message.get("id") if isinstance(message, dict) else None
        context = None
        try:
            if not is_request(message):
                return self._hear(message, peer)
            context = Context(self, peer, message).open()
            reply = {"jsonrpc": "2.0", "id": ident, "result": self._result(context)}
        except ProtocolError as error:
            reply = error.reply(ident)
        except (Exception, SystemExit) as error:
            reply = unexpected(error).reply(ident)
        if reply.get("result") is LATER or (context and not context.close()):
            return None
        return reply

    def _hear(self, message: Message, peer: Peer) -> None:
        """Take a notification; the only one that means anything to us takes back a request."""
        params = message.get("params")
        if message.get("method") == "notifications/cancelled" and isinstance(params, dict):
            ident = params.get("requestId")
            if is_id(ident) and peer.in_flight.pop(ident, None):
                print(f"{ident!r} cancelled: {params.get('reason')!r}", file=sys.stderr)

    # ## Which era, which method

    def _result(self, context: Context) -> Params:
        self._admit(context)
        handler = self.methods[context.era].get(context.method)
        if handler is None:
            known = f", but a tool; send tools/call with params.name {context.method!r}"
            text = f"unknown method {context.method}{known if context.method in self.tools else ''}"
            raise ProtocolError(protocol.METHOD_NOT_FOUND, text)
        if "requestState" in context.params or "inputResponses" in context.params:
            from .mrtr import resume

            resume(context)
        result = handler(context.params, context)
        if hasattr(result, "as_result"):  # an answer that depends on who asked
            result = result.as_result(context)
        return self.dress(result, context)

    def _admit(self, context: Context) -> None:
        """A modern request brings all it needs; a legacy one needs a handshake before it."""
        if context.era == "legacy":
            if not context.peer.version and context.method not in ("initialize", "ping"):
                text = f"params._meta: {protocol.VERSION_KEY} is missing, and so is an initialize"
                raise ProtocolError(protocol.INVALID_PARAMS, text)
            return
        version = expect(context.meta, protocol.VERSION_KEY, str, "params._meta")
        expect(context.meta, protocol.CAPABILITIES_KEY, dict, "params._meta")
        context.peer.check(context)
        if version not in protocol.MODERN:
            data = {"supported": list(protocol.MODERN), "requested": version}
            text = f"protocol version {version!r} is not supported"
            raise ProtocolError(protocol.UNSUPPORTED_VERSION, text, data)
        if context.meta.get(protocol.LOG_LEVEL_KEY, "info") not in protocol.LOG_LEVELS:
            text = f"params._meta: the log level is one of {', '.join(protocol.LOG_LEVELS)}"
            raise ProtocolError(protocol.INVALID_PARAMS, text)

    def dress(self, result: Params | None, context: Context) -> Params:
        """What every modern result wears: its type, its sender, how long it may be kept."""
        result = {} if result is None else result
        if not isinstance(result, dict):
            raise TypeError(f"{context.method}: a handler returns a dict")
        if result is LATER or context.era == "legacy":
            return result
        asks_back = "resultType" in result
        hints = self.hints if context.method in protocol.CACHEABLE and not asks_back else {}
        meta = {protocol.SERVER_KEY: self.info, **result.get("_meta", {})}
        return {"resultType": "complete", **hints, **result, "_meta": meta}

    # ## Opening a conversation

    def _about(self, context: Context) -> Params:
        news = {"listChanged": True} if context.modern or context.peer is self.peer else {}
        own = {k: (news if k in protocol.LISTS else {}) | v for k, v in self.capabilities.items()}
        extra = {"instructions": self.instructions} if self.instructions else {}
        return {"capabilities": own, **extra}

    def _discover(self, params: Params, context: Context) -> Params:
        return {"supportedVersions": list(protocol.MODERN), **self._about(context)}

    def _initialize(self, params: Params, context: Context) -> Params:
        wanted = expect(params, "protocolVersion", str, "params")
        expect(params, "clientInfo", dict, "params")
        context.peer.capabilities = expect(params, "capabilities", dict, "params")
        context.peer.version = wanted if wanted in protocol.LEGACY else protocol.LEGACY[0]
        about = {"serverInfo": self.info, **self._about(context)}
        return {"protocolVersion": context.peer.version, **about}

    # ## Tools

    def _list_tools(self, params: Params, context: Context) -> Params:
        tools = dict(self.tools)
        names, more = self.page(list(tools), params)
        return {"tools": [tools[name].listed(context.era) for name in names], **more}

    def page(self, names: list[str], params: Params) -> tuple[list[str], Params]:
        """One page of names, and `nextCursor` if there are more: the last name on the page."""
        start = 0
        if "cursor" in params:
            cursor = expect(params, "cursor", str, "params")
            if cursor not in names:
                text = f"params.cursor: {cursor!r} is not in the list any more; start again"
                raise ProtocolError(protocol.INVALID_PARAMS, text)
            start = names.index(cursor) + 1
        end = start + (self.page_size or len(names))
        return names[start:end], {"nextCursor": names[end - 1]} if end < len(names) else {}

    def _call_tool(self, params: Params, context: Context) -> Any:
        name = expect(params, "name", str, "params")
        arguments = expect(params, "arguments", dict, "params", {})
        if name not in self.tools:
            raise ProtocolError(protocol.INVALID_PARAMS, f"Unknown tool: {name}")
        try:
            return self.tools[name].call(arguments, context)
        except ToolError as error:
            return error_result(str(error))
        except (ProtocolError, KeyboardInterrupt):
            raise
        except BaseException as error:
            unexpected(error)
            return error_result(f"{type(error).__name__}: {error}")

    # ## Registering

    def method(
        self, name: str, *, capability: str | None = None, era: Era | None = None
    ) -> Callable[[Handler], Handler]:
        """Register `handler(params, context)` for a method; it returns the result's members.

        `capability` is declared to clients; `era` keeps the method to one of the two.
        """

        def register(handler: Handler) -> Handler:
            for one in self.methods if era is None else (era,):
                self.methods[one][name] = handler
            if capability:
                self.capabilities.setdefault(capability, {})
            return handler

        return register

    def tool(
        self,
        function: Any = None,
        /,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        input_schema: Schema | None = None,
        output_schema: Schema | None = None,
        annotations: Params | None = None,
    ) -> Any:
        """Register a function as a tool: `@server.tool`, or `@server.tool(name=…)`.

        Its type hints become the input schema (or `input_schema` does, any JSON Schema 2020-12),
        its docstring the description. `TypeError` or `ValueError` says what cannot be.
        """

        def register(function: Any) -> Any:
            own = name or getattr(function, "__name__", type(function).__name__)
            shown = {"name": own, "title": title, "annotations": annotations}
            lines = (description or function.__doc__ or own).strip().splitlines()
            shown["description"] = "\n".join(line.strip() for line in lines)
            schemas = {"inputSchema": input_schema, "outputSchema": output_schema}
            given = {key: one for key, one in (shown | schemas).items() if one is not None}
            if own in self.tools:
                raise ValueError(f"there is a tool {own!r} already")
            self.tools[own] = Tool(function, given)
            self.method("tools/list", capability="tools")(self._list_tools)
            self.method("tools/call", capability="tools")(self._call_tool)
            self.announce("tools")
            return function

        return register if function is None else register(function)

    def remove_tool(self, name: str) -> None:
        """Offer a tool no more; `KeyError` if there is none of that name."""
        del self.tools[name]
        self.announce("tools")

    # ## News

    def announce(self, kind: str, uri: str | None = None) -> None:
        """Tell who listens that a list changed or, with its `uri`, a resource.

        `kind` is "prompts" or "resources"; the server tells of its tools by itself.
        """
        if self.listeners or self.peer.version:
            from .listen import announce

            announce(self, kind, uri)

    def _listen(self, params: Params, context: Context) -> Params:
        from .listen import listen

        return listen(params, context)


# ## The envelope

TEXT_OR_INTEGER = {"anyOf": [{"type": "string"}, {"type": "integer"}]}
MEMBERS = {"jsonrpc": {"enum": ["2.0"]}, "id": TEXT_OR_INTEGER, "method": {"type": "string"}}
ENVELOPE = {"type": "object", "properties": MEMBERS, "required": ["jsonrpc", "method"]}


def is_request(message: JSON) -> bool:
    """Whether a message wants an answer; `ProtocolError` (-32600) if it is none."""
    if isinstance(message, dict):
        if "method" not in message and ("result" in message or "error" in message):
            return False  # a response, and we asked nothing
        is_named = message.get("jsonrpc") == "2.0" and isinstance(message.get("method"), str)
        if is_named and is_id(message.get("id", "")):
            return "id" in message
    text = explain(validate(message, ENVELOPE), "message") or "message.id: expected no fraction"
    if isinstance(message, list):
        text = "batches are not supported since revision 2025-06-18; send one message at a time"
    raise ProtocolError(protocol.INVALID_REQUEST, text)


def write(reply: Message) -> str:
    """A reply as a line; what has no JSON form becomes an error."""
    try:
        return dumps(reply)
    except Exception as error:
        return dumps(unexpected(error).reply(reply.get("id")))


def unexpected(error: BaseException) -> ProtocolError:
    """Tell the operator everything (on stderr), and the peer only that it failed."""
    sys.excepthook(type(error), error, error.__traceback__)
    return ProtocolError(protocol.INTERNAL_ERROR, "Internal error")
