"""The server: tools, and one `handle_line` for both eras.

`handle_line` takes a line and returns a line. It opens nothing, waits for nothing and never
raises, so everything else (stdio, HTTP, a test, a notebook, a page in a browser) is a caller.

https://modelcontextprotocol.io/specification/2026-07-28/server
"""

import string
import sys
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from . import protocol
from .context import LATER, Context, Peer
from .hints import Content, read_hint, signature
from .protocol import (
    JSON,
    MISSING,
    Message,
    Params,
    ProtocolError,
    ToolError,
    dumps,
    expect,
    is_id,
    loads,
)
from .schema import Check, Schema, checker, explain

Handler = Callable[[Params, Context], Any]  # returns the members of the result
Era = Literal["modern", "legacy"]
NAME_CHARACTERS = set(string.ascii_letters + string.digits + "_.-")


class Tool(NamedTuple):
    """A registered tool: how it is listed, how to call it, and how to check both ends."""

    definition: Params
    check_arguments: Check
    call: Callable[[Params, Context], Any]
    check_result: Check | None
    makes_content: bool


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
        self.methods: dict[str, tuple[Handler, Era | None]] = {}
        self.method("server/discover", era="modern")(self._discover)
        self.method("initialize", era="legacy")(self._initialize)
        self.method("ping", era="legacy")(lambda params, context: {})
        self.peer = Peer()

    # ## The seam

    def handle_line(self, line: str, peer: Peer | None = None) -> str | None:
        """Answer one line with one line, or with `None` when there is nothing to say."""
        if not line or line.isspace():
            return None
        message: JSON = None
        try:
            message = loads(line)
            reply = self.handle(message, peer or self.peer)
            return None if reply is None else dumps(reply)
        except ProtocolError as error:
            return dumps(failure(None, error))
        except Exception as error:  # the reply has no JSON form
            return dumps(failure(readable_id(message), unexpected(error)))

    def handle(self, message: JSON, peer: Peer) -> Message | None:
        """Answer one message that has been read from JSON."""
        try:
            check_envelope(message)
            if "id" not in message:
                return self._notified(message, peer)
            if "method" not in message:
                return None  # a response, to a question that nobody here asked
            context = Context(self, peer, message)
            context.open()
        except ProtocolError as error:
            return failure(readable_id(message), error)
        try:
            reply = self._answer(context)
        except ProtocolError as error:
            reply = failure(context.id, error)
        except (Exception, SystemExit) as error:
            reply = failure(context.id, unexpected(error))
        return reply if reply is not LATER and context.close() else None

    # ## Which era, which method

    def _answer(self, context: Context) -> Message:
        self._admit(context)
        handler, era = self.methods.get(context.method, (None, None))
        if handler is None or era == ("legacy" if context.modern else "modern"):
            raise self._unknown(context.method)
        if context.modern and {"inputResponses", "requestState"} & context.params.keys():
            from .mrtr import resume

            resume(context)
        result = handler(context.params, context)
        if hasattr(result, "as_result"):  # an answer that wants to know who asked
            result = result.as_result(context)
        if result is LATER:
            return LATER
        result = self._dress(result or {}, context) if context.modern else result or {}
        return {"jsonrpc": "2.0", "id": context.id, "result": result}

    def _admit(self, context: Context) -> None:
        """A modern request brings all it needs; a legacy one needs a handshake before it."""
        if not context.modern:
            if context.peer.version or context.method in ("initialize", "ping"):
                return
            text = f"params._meta.{protocol.VERSION_KEY}: missing, and there was no initialize"
            raise ProtocolError(protocol.INVALID_PARAMS, text)
        version = expect(context.meta, protocol.VERSION_KEY, str, "params._meta")
        expect(context.meta, protocol.CAPABILITIES_KEY, dict, "params._meta")
        context.peer.check(context)
        if version not in protocol.MODERN:
            data = {"supported": list(protocol.MODERN), "requested": version}
            text = f"Unsupported protocol version: {version}"
            raise ProtocolError(protocol.UNSUPPORTED_VERSION, text, data)
        level = context.meta.get(protocol.LOG_LEVEL_KEY, "info")
        if level not in protocol.LOG_LEVELS:
            raise ProtocolError(protocol.INVALID_PARAMS, f"unknown log level: {level!r}")

    def _unknown(self, method: str) -> ProtocolError:
        hint = f"; to use this tool, send tools/call with params.name {method!r}"
        text = f"Unknown method: {method}{hint if method in self.tools else ''}"
        return ProtocolError(protocol.METHOD_NOT_FOUND, text)

    def _dress(self, result: Params, context: Context) -> Params:
        """What every modern result wears: its type, its sender, how long it may be kept."""
        complete = "resultType" not in result
        hints = self.hints if complete and context.method in protocol.CACHEABLE else {}
        meta = {protocol.SERVER_KEY: self.info, **result.get("_meta", {})}
        return {"resultType": "complete", **hints, **result, "_meta": meta}

    def _notified(self, message: Message, peer: Peer) -> None:
        params = message.get("params")
        if message["method"] == "notifications/cancelled" and isinstance(params, dict):
            ident = params.get("requestId")
            if is_id(ident) and peer.in_flight.pop(ident, None):
                print(f"{ident!r} cancelled: {params.get('reason')!r}", file=sys.stderr)

    # ## Opening a conversation

    def _about(self) -> Params:
        extra = {"instructions": self.instructions} if self.instructions else {}
        return {"capabilities": self.capabilities, **extra}

    def _discover(self, params: Params, context: Context) -> Params:
        return {"supportedVersions": list(protocol.MODERN), **self._about()}

    def _initialize(self, params: Params, context: Context) -> Params:
        wanted = expect(params, "protocolVersion", str, "params")
        context.peer.capabilities = expect(params, "capabilities", dict, "params")
        expect(params, "clientInfo", dict, "params")
        version = wanted if wanted in protocol.LEGACY else protocol.LEGACY[0]
        context.peer.version = version
        return {"protocolVersion": version, "serverInfo": self.info, **self._about()}

    # ## Tools

    def _list_tools(self, params: Params, context: Context) -> Params:
        tools = dict(self.tools)
        names, more = self.page(list(tools), params)
        listed = [tools[name].definition for name in names]
        return {"tools": listed if context.modern else [legacy(one) for one in listed], **more}

    def page(self, names: list[str], params: Params) -> tuple[list[str], Params]:
        """One page of names, and `nextCursor` if there are more: the last name of the page."""
        start = 0
        if "cursor" in params:
            cursor = expect(params, "cursor", str, "params")
            if cursor not in names:
                text = f"params.cursor: {cursor!r} is not, or no longer, in the list; start again"
                raise ProtocolError(protocol.INVALID_PARAMS, text)
            start = names.index(cursor) + 1
        end = start + (self.page_size or len(names))
        return names[start:end], {"nextCursor": names[end - 1]} if end < len(names) else {}

    def _call_tool(self, params: Params, context: Context) -> Any:
        name = expect(params, "name", str, "params")
        arguments = expect(params, "arguments", dict, "params", {})
        tool = self.tools.get(name)
        if tool is None:
            raise ProtocolError(protocol.INVALID_PARAMS, f"Unknown tool: {name}")
        try:
            if problems := tool.check_arguments(arguments):
                text = f"{name} cannot take these arguments:\n"
                raise ToolError(text + explain(problems, "arguments"))
            value = tool.call(arguments, context)
            return value if hasattr(value, "as_result") else tool_result(tool, value, context)
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
            self.methods[name] = (handler, era)
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
            listed = {
                "name": name or getattr(function, "__name__", type(function).__name__),
                "title": title,
                "description": description or function.__doc__,
                "inputSchema": input_schema,
                "outputSchema": output_schema,
                "annotations": annotations,
            }
            self.add_tool(make_tool(function, {k: v for k, v in listed.items() if v is not None}))
            return function

        return register if function is None else register(function)

    def add_tool(self, tool: Tool) -> None:
        """Offer a tool; `ValueError` if its name is bad or taken."""
        name = tool.definition["name"]
        if name in self.tools:
            raise ValueError(f"there is a tool {name!r} already")
        if not self.tools:
            self.method("tools/list", capability="tools")(self._list_tools)
            self.method("tools/call", capability="tools")(self._call_tool)
        self.tools[name] = tool


# ## From a function to a tool


def make_tool(function: Any, listed: Params) -> Tool:
    """Build a tool from a function and what is to be listed about it beyond its signature."""
    name = listed["name"]
    if not 1 <= len(name) <= 128 or set(name) - NAME_CHARACTERS:
        raise ValueError(f"{name!r}: a tool's name is 1 to 128 of A-Z a-z 0-9 _ . -")
    arguments, returned, special = signature(function, Context, "inputSchema" in listed)
    definition = {"description": name, "inputSchema": arguments.schema, **listed}
    if "outputSchema" not in listed and (output := result_schema(returned)):
        definition["outputSchema"] = output
    if definition["inputSchema"].get("type") != "object":
        raise ValueError(f"{name}: the input schema of a tool has type 'object'")

    def call(values: Params, context: Context) -> Any:
        value = arguments.read(values, **({special: context} if special else {}))
        return finish(value) if hasattr(value, "__await__") else value

    output = definition.get("outputSchema")
    return Tool(
        definition,
        checker(definition["inputSchema"]),
        call,
        None if output is None else checker(output),
        returned == Content,
    )


def result_schema(hint: Any) -> Schema | None:
    """The output schema of a return hint, if it promises JSON; text and content promise none."""
    if hint in (str, Any) or hint == Content:
        return None
    try:
        return read_hint(hint).schema or None
    except (TypeError, RecursionError):
        return None


def finish(coroutine: Any) -> Any:
    """Run an `async def` tool to its end, also where a loop is running already (a notebook)."""
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()


# ## What goes on the wire


def tool_result(tool: Tool, value: Any, context: Context) -> Params:
    """A tool's return value as a result: text, content blocks, or JSON and the same as text."""
    if isinstance(value, str) and tool.check_result is None:
        dumps(value)
        return {"content": [{"type": "text", "text": value}]}
    text = dumps(value)
    value = loads(text)  # plain JSON, whatever came: dataclasses, tuples, enums
    if tool.makes_content:
        return {"content": value}
    if tool.check_result and (problems := tool.check_result(value)):
        raise ToolError(f"the result breaks the output schema:\n{explain(problems, 'result')}")
    structured = {"structuredContent": value} if context.modern or isinstance(value, dict) else {}
    return {"content": [{"type": "text", "text": text}], **structured}


def error_result(text: str) -> Params:
    """A failure that the model can read."""
    text = text.encode(errors="replace").decode()
    return {"content": [{"type": "text", "text": text}], "isError": True}


def legacy(definition: Params) -> Params:
    """A tool as older revisions know it: an output schema describes an object, or there is none."""
    kept = dict(definition)
    if kept.get("outputSchema", {}).get("type") != "object":
        kept.pop("outputSchema", None)
    return kept


def check_envelope(message: JSON) -> None:
    """Raise `ProtocolError` (-32600) unless this is a JSON-RPC 2.0 message."""
    text = None
    if isinstance(message, list):
        text = "batches ended with revision 2025-06-18; send one message a line"
    elif not isinstance(message, dict):
        text = f"expected a JSON-RPC object, got {protocol.describe(message)}"
    elif message.get("jsonrpc") != "2.0":
        text = f'jsonrpc: expected "2.0", got {protocol.describe(message.get("jsonrpc", MISSING))}'
    elif "id" in message and not is_id(message["id"]):
        text = f"id: expected string or integer, got {protocol.describe(message['id'])}"
    elif "method" not in message and ("result" in message or "error" in message):
        return
    elif not isinstance(message.get("method"), str):
        text = f"method: expected string, got {protocol.describe(message.get('method', MISSING))}"
    if text:
        raise ProtocolError(protocol.INVALID_REQUEST, text)


def readable_id(message: JSON) -> str | int | None:
    """The id to answer to, if there is a usable one, however broken the rest is."""
    ident = message.get("id") if isinstance(message, dict) else None
    return ident if is_id(ident) else None


def failure(ident: str | int | None, error: ProtocolError) -> Message:
    """An error reply; without an `id` when none could be read."""
    known = error.code not in protocol.RESERVED or error.code in protocol.MCP_ERRORS
    code = error.code if known else protocol.INTERNAL_ERROR
    data = {} if error.data is None else {"data": error.data}
    named = {} if ident is None else {"id": ident}
    return {"jsonrpc": "2.0", **named, "error": {"code": code, "message": error.message, **data}}


def unexpected(error: BaseException) -> ProtocolError:
    """Tell the operator all (on stderr), and the peer nothing but that it failed."""
    sys.excepthook(type(error), error, error.__traceback__)
    return ProtocolError(protocol.INTERNAL_ERROR, "Internal error")
