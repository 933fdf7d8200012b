"""A server on a free port of this machine, and a plain client that shows all of HTTP."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import uvicorn
from support import MODERN, PATIENCE, Message, until

from minimcp.http import app
from minimcp.http_headers import encode

NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"


class Reply(NamedTuple):
    """A whole response."""

    status: int
    headers: dict[str, str]  # names in lower case
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def events(self) -> list[Message]:
        return events(self.body.decode())

    @property
    def message(self) -> Message:
        """The reply to a request, whichever way it came."""
        return self.events[-1] if self.kind == "text/event-stream" else self.json

    @property
    def kind(self) -> str:
        return self.headers.get("content-type", "")


def events(text: str) -> list[Message]:
    """A strict reading of a stream: events of one `data` line, comments, nothing else."""
    assert text.endswith("\n\n"), text
    found = []
    for block in text[:-2].split("\n\n"):
        if not block.startswith(":"):
            assert block.startswith("data: ") and "\n" not in block, block
            found.append(json.loads(block.removeprefix("data: ")))
    return found


def headers_for(message: Any, version: str | None = None) -> dict[str, str]:
    """The headers that a client sends with this message; `version` makes them legacy."""
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    if version is not None:
        return headers | {"MCP-Protocol-Version": version}
    params = message.get("params", {}) if isinstance(message, dict) else {}
    meta = params.get("_meta", {}) if isinstance(params, dict) else {}
    told = meta.get(VERSION_KEY, MODERN) if isinstance(meta, dict) else MODERN
    headers["MCP-Protocol-Version"] = str(told)
    method = message.get("method", "none") if isinstance(message, dict) else "none"
    headers["Mcp-Method"] = str(method)
    if method in NAMED and NAMED[method] in params:
        headers["Mcp-Name"] = encode(str(params[NAMED[method]]))
    return headers


class Site(NamedTuple):
    """Where a server is, and ways to talk to it."""

    port: int
    app: Any

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def post(
        self, message: Any, version: str | None = None, *, drop: Iterable[str] = (), **options: Any
    ) -> Reply:
        """POST a message with its headers, without those to `drop`; `version`: as a legacy one.

        `headers` adds to them or replaces them, in whatever case.
        """
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        wanted = headers_for(message, version)
        given = {name.lower() for name in options.get("headers", {})} | {n.lower() for n in drop}
        kept = {name: value for name, value in wanted.items() if name.lower() not in given}
        options["headers"] = kept | options.get("headers", {})
        return self.ask("POST", body=body, **options)

    def ask(
        self,
        method: str,
        path: str = "/mcp",
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        connection: http.client.HTTPConnection | None = None,
    ) -> Reply:
        """Send any request, on a connection of its own unless one is given."""
        with contextlib.ExitStack() as stack:
            if connection is None:
                connection = stack.enter_context(self.connection())
            connection.request(method, path, body, dict(headers or {}))
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            return Reply(response.status, found, response.read())

    @contextlib.contextmanager
    def connection(self) -> Iterator[http.client.HTTPConnection]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        with contextlib.closing(connection):
            yield connection

    def socket(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), PATIENCE)

    def raw(self, data: bytes) -> bytes:
        """Send these bytes on a new connection, and read until the server closes it."""
        with self.socket() as sock:
            sock.sendall(data)
            return read_all(sock)

    @contextlib.contextmanager
    def stream(self, message: Message, version: str | None = None) -> Iterator[Stream]:
        """POST a message and read its events one by one."""
        with self.socket() as sock:
            sock.sendall(request(message, headers_for(message, version)))
            with contextlib.closing(http.client.HTTPResponse(sock, method="POST")) as response:
                yield Stream(response)


class Stream:
    """A response that is read while it comes."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.response = response

    def begin(self) -> Stream:
        self.response.begin()
        return self

    def line(self) -> str:
        return self.response.readline().decode()

    def next(self) -> Message | None:
        """The next event; `None` at the end."""
        line = self.line()
        while line.startswith((":", "\n")):
            line = self.line()
        return json.loads(line.removeprefix("data: ")) if line else None


def request(message: Any, headers: Mapping[str, str], *more: str) -> bytes:
    """The bytes of a POST; `more` are further lines of its head, in Latin-1."""
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    lines = ["POST /mcp HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, *more, "", ""]).encode("latin-1") + body


def read_all(sock: socket.socket) -> bytes:
    """What comes until the other side closes the connection."""
    found = b""
    while data := sock.recv(65536):
        found += data
    return found


@contextlib.contextmanager
def serving(server: Any, **options: Any) -> Iterator[Site]:
    """A server (or an ASGI app of its own) under uvicorn, in a thread of this process."""
    served = server if callable(server) else app(server, **options)
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(served, log_level="warning", lifespan="off", ws="none")
    runner = uvicorn.Server(config)
    thread = threading.Thread(target=runner.run, args=([listener],))
    thread.start()
    try:
        until(lambda: runner.started)
        yield Site(listener.getsockname()[1], served)
    finally:
        runner.should_exit = runner.force_exit = True
        thread.join(PATIENCE)
        listener.close()
