"""The Streamable HTTP binding for servers: an ASGI app, and uvicorn to run it.

It holds no rules of the protocol: it lets a POST in, gives its body to `Server.handle`, and puts
what comes back into a response. It leaves out what the modern revision has dropped: sessions,
the GET stream, resuming. Encryption, and more than one token, are the business of a proxy.

https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http
"""

import asyncio
import hmac
import os
import re
import sys
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final

from . import http_headers, listen, protocol
from .context import Context, Peer, stderr, tell
from .envelope import failure, write
from .protocol import Message, ProtocolError
from .server import Server
from .stdio import PATIENCE, Log

Headers = dict[str, str]

THREADS = 256  # calls at once
KEEP_ALIVE = 15.0  # seconds of silence on a stream, before a comment says that it lives
BACKLOG = 10_000  # events that nobody reads, before we take their reader for gone
READ_TIMEOUT = 10  # seconds that a request may take to arrive, or up to twice that
GRACE = 10  # seconds that calls get to finish once the server was told to stop
QUIET: Final = {"lifespan": "off", "ws": "none", "log_level": "warning", "access_log": False}
QUIET.update(proxy_headers=False, timeout_notify=READ_TIMEOUT, timeout_graceful_shutdown=GRACE)

# ## Threads for calls
#
# A tool may take its time, and the loop that serves all sockets cannot wait for it. But to hand
# every call from thread to thread costs more than most calls. So there is one thread, which takes
# call after call, and one more whenever calls wait and for a moment nobody takes any: then all
# threads are stuck in slow calls. They stay, so nobody waits for the same reason again.


class Crew:
    """Threads that make calls: as many as were slow at the same time, and one."""

    def __init__(self) -> None:
        self.calls: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self.idle: list[None] = []  # one entry for each thread that waits for a call
        self.threads = self.taken = 0
        self.watched = False

    def put(self, call: Callable[[], None]) -> None:
        """Have a call made soon. This and `look` run in the loop."""
        self.calls.put(call)
        if not self.watched:
            self.look(None if self.threads else self.taken)

    def look(self, before: int | None) -> None:
        """Get help if nobody took a call since; look again as long as calls wait."""
        if self.taken == before and not self.idle and self.threads < THREADS:
            with suppress(RuntimeError):  # no thread can be had; we look again
                threading.Thread(target=self.work, daemon=True).start()
                self.threads += 1
        self.watched = not self.calls.empty()
        if self.watched:
            asyncio.get_running_loop().call_later(PATIENCE, self.look, self.taken)

    def work(self) -> None:
        while True:
            self.idle.append(None)
            call = self.calls.get()
            self.idle.pop()
            self.taken += 1
            call()


# ## The door
#
# What is turned away here never reaches a tool. A web page in a browser on this machine can reach
# a server on it, by way of a name that leads here; so host and origin have to be known ones.

TEXT: Final = {"content-type": "text/plain; charset=utf-8"}
TOO_LARGE: Final = (413, "the body is too large", {"connection": "close"})
LOCAL: Final = ("localhost", "127.0.0.1", "[::1]")
HOST = re.compile(r"(?:https?://)?(\[[0-9a-f:.]+\]|[^:/@\[\]]+)(?::\d+)?")


@dataclass
class App:
    """An ASGI app that serves MCP at `path`: run it, or mount it in a larger one.

    `allowed_hosts` and `allowed_origins` are names without ports (an origin may be written out
    too, as in `https://example.com:8443`); `"*"` allows all. With a `token`, a client has to send
    `Authorization: Bearer …` (`serve` looks for one in the environment too, this does not).
    `max_body` is in bytes. `log` sees every message, as in `log("received", text)` and
    `log("sent", text)`.
    """

    server: Server
    _: KW_ONLY
    path: str = "/mcp"
    allowed_hosts: Collection[str] = LOCAL
    allowed_origins: Collection[str] = LOCAL
    token: str | None = None
    max_body: int = 4 * 1024 * 1024
    log: Log | None = None
    crew: Crew = field(default_factory=Crew, init=False)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            headers = read_headers(scope["headers"])
            refusal = self.refusal(scope, headers)
            body = None if refusal else await self.read(receive, headers)
            if body is None:
                await respond(send, *(refusal or TOO_LARGE), TEXT)
            else:
                await Post(self, headers).serve(body, receive, send)

    def refusal(self, scope: Any, headers: Headers) -> Any:
        """Status, text and headers for a request that does not get in, or `None`."""
        host, origin = headers.get("host", ""), headers.get("origin")
        path = scope["path"].removeprefix(scope.get("root_path", "")).rstrip("/")
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        listens = headers.get("mcp-method") == "subscriptions/listen"
        framed = headers.keys() >= {"content-length", "transfer-encoding"}
        rules = (
            (not framed, 400, "a length and a coding: where does it end?", {"connection": "close"}),
            (allowed(host, self.allowed_hosts), 403, f"{host!r} is not an allowed host"),
            (allowed(origin, self.allowed_origins), 403, f"{origin!r} is not an allowed origin"),
            (path == self.path.rstrip("/"), 404, f"MCP is at {self.path}"),
            (self.knows(headers), 401, "no token, or a wrong one", {"www-authenticate": "Bearer"}),
            (scope["method"] == "POST", 405, "messages come by POST", {"allow": "POST"}),
            (kind == "application/json", 415, "messages are application/json"),
            (takes_events(headers) or not listens, 406, "the answer is text/event-stream"),
        )
        return next((rule[1:] for rule in rules if not rule[0]), None)

    def knows(self, headers: Headers) -> bool:
        """Whether the token is right, if there has to be one; compared in constant time."""
        scheme, _, given = headers.get("authorization", "").partition(" ")
        known = hmac.compare_digest(given.encode(errors="replace"), (self.token or "").encode())
        return self.token is None or (known and given != "" and scheme.lower() == "bearer")

    async def read(self, receive: Any, headers: Headers) -> bytes | None:
        """The body; `None` if it is too large, or breaks off."""
        size, body = int(headers.get("content-length", 0)), bytearray()
        event: Any = {"more_body": True}
        while size <= self.max_body and event.get("more_body"):
            event = await receive()
            body += event.get("body", b"")
            size = max(size, len(body))
        broken = event.get("type") != "http.request"
        return None if broken or size > self.max_body else bytes(body)


app = App


def read_headers(fields: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Names in lower case; if one came twice, its values stand on a line each."""
    headers: Headers = {}
    for key, value in fields:
        name, text = key.decode("latin-1"), value.strip(b" \t").decode("ascii", "surrogateescape")
        headers[name] = f"{headers[name]}\n{text}" if name in headers else text
    return headers


def allowed(value: str | None, names: Collection[str]) -> bool:
    """Whether a host or an origin is none, or among the names with whatever port."""
    found = HOST.fullmatch((value or "").lower())
    return value is None or "*" in names or not {value, found and found[1]}.isdisjoint(names)


def takes_events(headers: Headers) -> bool:
    """Whether the client takes a stream of events; without `Accept` it takes everything."""
    accept = headers.get("accept", "*/*").lower()
    return any(kind in accept for kind in ("text/event-stream", "text/*", "*/*"))


async def begin(send: Any, status: int, *headers: Headers) -> None:
    """Write the head of a response."""
    fields = [(name.encode(), value.encode()) for one in headers for name, value in one.items()]
    await send({"type": "http.response.start", "status": status, "headers": fields})


async def respond(send: Any, status: int, text: str, *headers: Headers) -> None:
    """Write a whole response."""
    data = text.encode()
    await begin(send, status, {"content-length": str(len(data))}, *headers)
    await send({"type": "http.response.body", "body": data})


# ## One POST
#
# A modern request needs nothing that came before. So its POST is a peer of its own: made for one
# question, and forgotten with the answer. What the server says goes into a box, from the thread
# of a tool; the loop that writes to the socket empties it. If the answer is the first thing in
# the box, the response is plain JSON; otherwise it is a stream of events, and ends with it.

UNBUFFERED: Final = {"cache-control": "no-cache", "x-accel-buffering": "no"}  # to proxies
GONE: Final = 499  # a status for nobody: the client has left
STATUS: Final = {protocol.METHOD_NOT_FOUND: 404, **dict.fromkeys(protocol.MCP_ERRORS, 400)}


class Post(Peer):  # ADR-0008
    """The sender of one POST."""

    def __init__(self, app: App, headers: Headers) -> None:
        super().__init__()  # subtle: `Peer(self.send)` is a circle, left for the collector to find
        self.app, self.headers = app, headers
        told = headers.get("mcp-protocol-version")  # any bytes; what it says is shown
        self.revision = told and told.encode(errors="backslashreplace").decode()
        self.version = self.revision if self.revision in protocol.LEGACY else None
        self.admitted = False  # errors before that are the sender's, and later ones the handler's
        self.box: deque[str] = deque()
        self.status = 0  # of the response, once the last of it is in the box
        self.news = asyncio.Event()
        self.loop = asyncio.get_running_loop()

    # In the loop: the body in, the response out. After a line with the status nothing follows.

    async def serve(self, body: bytes, receive: Any, send: Any) -> None:
        """Have the body answered, and write the response."""
        self.app.crew.put(lambda: self.answer(body))
        watch = self.loop.create_task(self.watch(receive))
        with suppress(asyncio.CancelledError):  # the server was told to stop, and waited long
            await self.news.wait()
            if self.status and len(self.box) == 1:
                await respond(send, self.status, self.box[0], {"content-type": "application/json"})
            else:
                await self.stream(send)
        watch.cancel()

    async def watch(self, receive: Any) -> None:
        """Notice when the client hangs up."""
        while (await receive())["type"] != "http.disconnect":
            pass
        self.leave()

    async def stream(self, send: Any) -> None:
        """Write events as they come; a comment when none came for a while."""
        await begin(send, 200, {"content-type": "text/event-stream"}, UNBUFFERED)
        done = 0
        while not done:
            beat = self.loop.call_later(KEEP_ALIVE, self.put, "")
            await self.news.wait()
            beat.cancel()
            self.news.clear()
            done, lines = self.status, [self.box.popleft() for _ in range(len(self.box))]
            data = "".join(f"data: {line}\n\n" if line else ":\n\n" for line in lines).encode()
            await send({"type": "http.response.body", "body": data, "more_body": not done})

    # In a thread: the call.

    def answer(self, body: bytes) -> None:
        """Serve the body, whatever it is."""
        text = body.decode(errors="surrogateescape")
        try:
            if self.app.log:
                self.app.log("received", text)
            reply = self.app.server.reply(text, self)
        except BaseException as error:  # of a log: this thread goes on
            reply = failure(error, None)
        if self.status == GONE:
            self.leave()
        elif reply is not None:
            self.finish(reply)
        elif not self.in_flight:  # a notification: not a request that was left open
            self.put("", 202)

    def hear(self, message: Message) -> None:
        """Take a notification and do nothing: a cancellation would need a connection."""
        if self.revision not in (None, *protocol.MODERN, *protocol.LEGACY):
            raise self.unserved()
        if "method" not in message and not self.version:
            raise ProtocolError(protocol.INVALID_REQUEST, "a response, but there was no question")

    def check(self, context: Context) -> None:
        """See that headers and body agree, and that one of them names a revision that we serve."""
        if context.modern:
            self.version = None
            http_headers.check(self.headers, context)
        elif not self.version and context.method != "initialize":
            raise self.unserved()
        self.admitted = True
        if self.status == GONE and not self.version:  # while this waited for a thread
            raise ProtocolError(protocol.INTERNAL_ERROR, "the client has gone")

    def unserved(self) -> ProtocolError:
        """What is wrong with a request that names no revision but perhaps in a header."""
        codes = {None: protocol.HEADER_MISMATCH, protocol.MODERN[0]: protocol.INVALID_PARAMS}
        told = f"MCP-Protocol-Version is {self.revision or 'missing'}"
        text = f"params._meta: {protocol.VERSION_KEY} is missing, and {told}"
        data = {"supported": list(protocol.MODERN), "requested": self.revision}
        code = codes.get(self.revision, protocol.UNSUPPORTED_VERSION)
        return ProtocolError(code, text, None if self.revision in codes else data)

    def send(self, line: str) -> None:
        """Send a notification to a client that takes events.

        Only so many may wait to be read. Then a call goes on unheard, and a listener is gone.
        """
        full = len(self.box) >= BACKLOG
        if full and any(one in self.app.server.listeners for one in [*self.in_flight.values()]):
            self.leave()
            raise BrokenPipeError(f"{BACKLOG} events wait to be read")
        if takes_events(self.headers) and not full and self.status != GONE:
            self.put(line)

    def finish(self, reply: Message) -> None:
        """Send the reply, and nothing after it."""
        code = reply.get("error", {}).get("code")
        admitted = 200 if self.version else STATUS.get(code, 200)
        self.put(write(reply), admitted if self.admitted or not code else 400)

    def leave(self) -> None:
        """Take the client for gone. In the modern era this cancels what it asked for."""
        self.status = self.status or GONE
        if not self.version:
            self.in_flight.clear()
        self.put("", GONE)

    def put(self, line: str, status: int = 0) -> None:
        """Hand a line over to the loop."""
        if line and self.app.log:
            self.app.log("sent", line)
        self.box.append(line)
        self.status = self.status or status
        with suppress(RuntimeError):  # the loop has ended
            self.loop.call_soon_threadsafe(self.news.set)


# ## Running it
#
# uvicorn waits for ever for the end of a request, and for the end of every stream when it should
# stop. It lets us look at its connections now and then, and hear of the signal.


def serve(
    server: Server,
    host: str = "127.0.0.1",
    port: int = 3000,
    *,
    token_file: str | None = None,
    **options: Any,
) -> None:
    """Serve over HTTP until SIGINT or SIGTERM; `options` are those of `app`.

    The token may also stand in a file, or in the environment variable `MINIMCP_TOKEN`.
    """
    try:
        import uvicorn
    except ImportError:
        sys.exit("HTTP needs uvicorn: pip install uvicorn (in a clone: pip install -e '.[http]')")

    need_own_loop()

    class Runner(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            bound = self.servers[0].sockets[0].getsockname()[1]  # another one, if the port is 0
            tell(f"MCP server at http://{host}:{bound}{served.path}; Ctrl+C to stop")

        def handle_exit(self, sig: int, frame: Any) -> None:
            self.force_exit, self.should_exit = self.should_exit, True
            listen.close(server)
            for one in [*self.server_state.connections] if self.force_exit else ():
                one.loop.call_soon_threadsafe(one.transport.abort)  # Python 3.12 waits for them

    sys.stderr = stderr()
    served = App(server, **{"token": read_token(token_file), **options})
    how: Any = {**QUIET, "callback_notify": lambda: hang_up(runner.server_state)}
    runner: Any = Runner(uvicorn.Config(served, host, port, **how))
    if served.token is None and {host, f"[{host}]"}.isdisjoint(LOCAL):
        tell("whoever reaches this port can call the tools; a token would say who may")
    runner.run()


def need_own_loop() -> None:
    """Refuse to serve where a loop is running, since there is one in a thread at most."""
    if asyncio._get_running_loop():
        sys.exit("cannot serve: a loop is running here, as in a notebook; serve in a thread")


def read_token(file: str | None) -> str | None:
    """The token from a file or the environment; with an empty one nobody would get in."""
    token = Path(file).read_text().strip() if file else os.environ.get("MINIMCP_TOKEN")
    if token == "":
        sys.exit("cannot serve: the token is empty")
    return token


async def hang_up(state: Any) -> None:
    """Close connections that wait for the same request as the last time."""
    for one in list(state.connections):
        waits = not one.cycle or one.cycle.more_body or one.cycle.response_complete
        if waits and getattr(one, "last_cycle", one) is one.cycle:
            one.transport.close()
        one.last_cycle = one.cycle
