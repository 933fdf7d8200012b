"""The server: a table of methods, and one `handle_line` for both eras.

`handle_line` takes a line and returns a line. It opens nothing, waits for nothing but the tool, and
raises nothing but Ctrl+C. So all else (stdio, HTTP, a test, a notebook, a page in a browser) is a
caller.

https://modelcontextprotocol.io/specification/2026-07-28/server
"""

from collections.abc import Callable
from typing import Any, Literal

from . import protocol
from .context import LATER, Context, Era, Peer
from .envelope import failure, is_request, write
from .eras import admit, discover, dress, initialize
from .protocol import JSON, Message, Params, ProtocolError, expect, loads
from .schema import Schema
from .tools import Tool, call_tool, finish, list_tools

Handler = Callable[[Params, Context], Any]  # returns the members of the result

# ## What happens to a line
#
# It is read as JSON, recognised as a request, and put in flight. Its era is settled, the handler
# of its method is called, and the result is dressed for the era. Every one of these steps may
# refuse it, and all refusals meet in one `except` clause of `handle`; the last step takes the
# request out of flight. So each request gets one reply, and one that was cancelled gets none.
#
# The server's own methods stand in the same table as those that you add with `@server.method`:
# there is nothing that only the server can do.


class Server:
    """Tools, and the two conversations (modern and legacy) in which they are offered.

    `ttl_ms` (milliseconds) and `cache_scope` tell clients how long and for whom a list may be
    kept; "public" is right as long as every user sees the same tools. `page_size` is the number
    of tools on a page of `tools/list`; without one, all of them are on one page.
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
        self.methods: dict[Era, dict[str, Handler]] = {
            "modern": {"server/discover": discover, "subscriptions/listen": self._listen},
            "legacy": {"initialize": initialize, "ping": lambda params, context: {}},
        }
        self.listeners: dict[Context, Params] = {}  # what each of them wants to hear of
        self.peer = Peer()  # of a server with one lasting connection: stdio, a notebook, a test

    # The seam

    def handle_line(self, line: str, peer: Peer | None = None) -> str | None:  # ADR-0001
        """Answer one line with one line, or with `None` when there is nothing to say."""
        reply = None if not line or line.isspace() else self.reply(line, peer or self.peer)
        return None if reply is None else write(reply)

    def reply(self, line: str, peer: Peer) -> Message | None:
        """Answer one line with one message."""
        try:
            return self.handle(loads(line), peer)
        except ProtocolError as error:
            return error.reply(None)

    def handle(self, message: JSON, peer: Peer) -> Message | None:
        """Answer one message that has been read from JSON."""
        ident = message.get("id") if isinstance(message, dict) else None
        context = None
        try:
            if not is_request(message):
                ident = None  # to a refusal of what asked nothing, too
                peer.hear(message)
                return None
            context = Context(self, peer, message).open()
            reply = {"jsonrpc": "2.0", "id": ident, "result": self._result(context)}
        except BaseException as error:
            reply = failure(error, ident, context is not None and context.modern)
        if reply.get("result") is LATER or (context and not context.close()):
            return None
        return reply

    def _result(self, context: Context) -> Params:
        admit(context)
        handler = self.methods[context.era].get(context.method)
        if handler is None:
            known = f", but a tool; send tools/call with params.name {context.method!r}"
            text = f"unknown method {context.method}{known if context.method in self.tools else ''}"
            raise ProtocolError(protocol.METHOD_NOT_FOUND, text)
        retried = "requestState" in context.params or "inputResponses" in context.params
        if retried and context.modern and context.method in protocol.NAMED:
            from .mrtr import resume

            resume(context)
        result = handler(context.params, context)
        if not isinstance(result, dict):  # of an `async def`, or it depends on who asked
            result = finish(result)
            result = result.as_result(context) if hasattr(result, "as_result") else result
        return dress(result, context)

    # Registering

    def method(
        self, name: str, *, capability: str | None = None, era: Era | None = None
    ) -> Callable[[Handler], Handler]:
        """Register `handler(params, context)`, `async` or not; it returns the result's members.

        `capability` is declared to clients; `era` keeps the method to one of the two.
        """
        if not isinstance(name, str):
            raise TypeError("a method needs its name: @server.method('resources/list')")

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

        Its type hints become the input schema (or `input_schema` does, any JSON Schema 2020-12, and
        then arguments arrive as JSON has them), its docstring the description. An `async def` runs
        in a loop of its own, so it shares no lock and no connection with other calls. `TypeError`
        or `ValueError` says what cannot be.
        """

        def register(function: Any) -> Any:
            named = {"name": name, "title": title, "description": description}
            schemas = {"inputSchema": input_schema, "outputSchema": output_schema}
            given = named | schemas | {"annotations": annotations}
            self._add(Tool(function, {key: one for key, one in given.items() if one is not None}))
            return function

        return register if function is None else register(function)

    def _add(self, tool: Tool) -> None:
        if tool.name in self.tools:
            raise ValueError(f"there is a tool {tool.name!r} already")
        self.method("tools/list", capability="tools")(list_tools)
        self.method("tools/call", capability="tools")(call_tool)
        self.tools[tool.name] = tool
        self.announce("tools")

    def remove_tool(self, name: str) -> None:
        """Offer a tool no more; `KeyError` if there is none of that name."""
        del self.tools[name]
        self.announce("tools")

    # For handlers

    def page(self, names: list[str], params: Params) -> tuple[list[str], Params]:
        """One page of names, and `nextCursor` if there are more: the last name on the page."""
        if "cursor" in params:
            cursor = expect(params, "cursor", str, "params")
            if cursor not in names:
                text = f"params.cursor: {cursor!r} is not in the list any more; start again"
                raise ProtocolError(protocol.INVALID_PARAMS, text)
            names = names[names.index(cursor) + 1 :]
        page = names[: self.page_size or None]
        return page, {"nextCursor": page[-1]} if len(page) < len(names) else {}

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
