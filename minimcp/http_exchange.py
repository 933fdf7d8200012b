"""One HTTP exchange: a connection that may be kept, a time limit that holds, a stream of events.

This is HTTP and nothing of MCP: what Python's `http.client` leaves to its callers. Not here:
proxies, cookies, redirects.

https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
"""

import os
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from selectors import EVENT_READ, DefaultSelector
from socket import SHUT_RDWR, socket
from threading import Event
from typing import Any
from urllib.parse import urlsplit

LIMIT = 64 * 2**20  # bytes of one reply, or of one event

# ## Connections
#
# One whose reply was read to its end can take another request. One that was left in the middle
# of a stream cannot, nor one that the server has closed meanwhile.


class Endpoint:
    """A URL, and the connections to it. All methods may be called from any thread."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            told = "is no address, which begins with http:// or https://; a command is a list"
            raise ConnectionError(f"{url!r} {told}")
        self.target = (parts.path or "/") + (parts.query and f"?{parts.query}")
        self.dial: Any = partial(HTTPConnection, parts.hostname, parts.port or 80)
        if parts.scheme == "https":  # trusts whom the system trusts, and SSL_CERT_FILE
            trust = ssl.create_default_context()
            self.dial = partial(HTTPSConnection, parts.hostname, parts.port or 443, context=trust)
        self.spare: list[Any] = []
        self.owner = os.getpid()
        self.busy: dict[socket, Any] = {}
        self.closed = Event()

    @contextmanager
    def exchange(
        self, verb: str, headers: dict[str, str], body: bytes | None, deadline: float, why: Any
    ) -> Iterator[HTTPResponse]:
        """Send a request; what is left of the reply at the end of the `with` block is lost.

        `why` tells this exchange from others, for `hang_up`.

        Raises `TimeoutError` when the deadline has passed, or another `OSError` or
        `HTTPException` when something is wrong at the other end.
        """
        connection, kept = self._connection(left(deadline)), False
        self.busy[sock := connection.sock] = why
        try:
            if self.closed.is_set():
                raise ConnectionAbortedError("the connection was closed by us")
            with suppress(BrokenPipeError, ConnectionResetError):  # it may have said why
                connection.request(verb, self.target, body, headers)
            sock.settimeout(left(deadline))
            with connection.getresponse() as response:
                yield response
                over = response.isclosed() and response.status >= 200
                kept = over and connection.sock is sock
        finally:
            del self.busy[sock]
            (self.spare.append if kept else HTTPConnection.close)(connection)
            if self.closed.is_set():  # meanwhile
                self.close()

    def _connection(self, seconds: float) -> Any:
        self._disown()
        with suppress(IndexError):
            while connection := self.spare.pop():
                connection.sock.settimeout(seconds)  # it still has the one of its last request
                if is_quiet(connection.sock):
                    return connection
                connection.close()
        connection = self.dial(timeout=seconds)
        connection.response_class = Reply
        connection.connect()
        return connection

    def _disown(self) -> None:
        """After a fork, the connections are those of our parent."""
        if self.owner != os.getpid():
            self.owner, self.spare, self.busy = os.getpid(), [], {}

    def close(self) -> None:
        """Hang up on what is still going on, and let go of every connection."""
        self._disown()
        self.closed.set()
        self.hang_up(lambda why: True)
        while self.spare:
            self.spare.pop().close()

    def hang_up(self, over: Callable[[Any], bool]) -> None:
        """Break off every exchange whose reason is over: who reads there finds the end."""
        for sock, why in list(self.busy.items()):
            if over(why):
                with suppress(OSError):
                    sock.shutdown(SHUT_RDWR)


def is_quiet(sock: socket) -> bool:
    """Whether a kept connection is still good: nothing comes from it, not even its end."""
    with DefaultSelector() as watch:  # the best that the platform has
        watch.register(sock, EVENT_READ)
        return not watch.select(0)


# ## Time
#
# A socket's timeout holds for each single read, and a server that sends a byte now and then could
# keep us for ever. Here it holds for all reads of a reply together.


def left(deadline: float) -> float:
    """The seconds until a deadline; `TimeoutError` if there are none."""
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise TimeoutError
    return seconds


class Reply(HTTPResponse):
    """A reply that must be read in time, and whose chunks have sizes."""

    def __init__(self, sock: socket, *args: Any, **more: Any) -> None:
        super().__init__(sock, *args, **more)
        deadline = time.monotonic() + (sock.gettimeout() or 0)

        def readinto(buffer: Any) -> int:
            sock.settimeout(left(deadline))
            return sock.recv_into(buffer)

        self.fp.raw.readinto = readinto  # type: ignore[method-assign]  # every read ends here

    def _read_next_chunk_size(self) -> int:  # `http.client` takes one of -1 for all that there is
        size: int = super()._read_next_chunk_size()  # type: ignore[misc]
        if not 0 <= size <= LIMIT:
            raise HTTPException(f"a chunk of {size} bytes")
        return size


# ## Events
#
# Lines end with LF or CRLF, and an empty one ends an event. Comments (they begin with a colon) and
# fields that nobody here asks for mean nothing. A stream that breaks off just ends.


def events(response: HTTPResponse) -> Iterator[dict[str, str]]:
    """The events of a stream, each as its `data`, `id` and `retry`; or the whole body as one."""
    if response.headers.get_content_type() != "text/event-stream":
        body = response.read(LIMIT)
        if response.read(1) or response.length:
            raise OSError(f"the body was cut off, or is larger than {LIMIT} bytes")
        yield {"data": body.decode(errors="surrogateescape")}
    event, data, size = dict[str, str](), list[str](), 0
    with suppress(HTTPException, ConnectionError):
        while line := response.readline(LIMIT):
            size += len(line)
            if size >= LIMIT:
                raise OSError(f"an event is larger than {LIMIT} bytes")
            text = line.decode(errors="surrogateescape").removeprefix("\ufeff").rstrip("\r\n")
            field, _, value = text.partition(":")
            value = value.removeprefix(" ")
            if not line.strip():
                yield {"data": "\n".join(data), **event}
                event, data, size = {}, [], 0
            elif field == "data":
                data.append(value)
            elif value.isascii() and (value.isprintable() if field == "id" else value.isdecimal()):
                event[field] = value
