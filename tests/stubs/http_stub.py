"""An HTTP server for client tests, made of one function. It imports nothing of minimcp.

    def script(request):
        if request.method == "tools/call":
            return event_stream(result(request, content=[]))
        return in_either_era(request)

    with Site(script) as site, Client(site.url) as client:
        ...
    assert site.methods() == [...]

The function gets each `Request` and returns bytes, or several pieces of bytes, to be written as
they are; `None` hangs up. `site.requests` is everything that was asked, in order.
"""

import contextlib
import json
import socket
import ssl
import threading

MODERN, LEGACY = "2026-07-28", "2025-11-25"


class Request:
    """One HTTP request: its verb, target, headers (lower-case) and JSON body."""

    def __init__(self, site, connection, head, body):
        self.site, self.connection = site, connection
        first, *rest = head.decode("latin-1").split("\r\n")
        self.verb, self.target, _ = first.split(" ")
        pairs = [line.split(":", 1) for line in rest if line]
        self.headers = {name.lower(): value.strip() for name, value in pairs}
        self.names = [name.lower() for name, _ in pairs]
        self.body = json.loads(body) if body else {}
        self.method, self.id = self.body.get("method"), self.body.get("id")
        self.params = self.body.get("params", {})

    def __repr__(self):
        return f"{self.verb} {self.method} {self.id}"

    def hung_up(self, seconds=20):
        """Wait until the client has closed the connection; whether it did."""
        self.connection.settimeout(seconds)
        try:
            return self.connection.recv(1) == b""
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False


class Site:
    """A server on a free port of the loopback interface; `tls` is a certificate with its key."""

    def __init__(self, script, tls=None, path="/mcp", listener=None):
        self.script, self.requests, self.connections = script, [], []
        self.gate = threading.Event()  # while it is not set, nothing but heads is read
        self.gate.set()
        self.listener = listener or socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self.port}{path}"
        self.context = None
        if tls:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(tls)
        self.threads = [threading.Thread(target=self._accept, daemon=True)]
        self.threads[0].start()

    def methods(self):
        """The JSON-RPC methods that were posted, in order."""
        return [request.method for request in self.requests if request.method]

    def verbs(self):
        return [request.verb for request in self.requests]

    def of(self, method):
        """All requests of one method."""
        return [request for request in self.requests if request.method == method]

    def _accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections.append(connection)
            self.threads.append(threading.Thread(target=self._serve, args=(connection,)))
            self.threads[-1].start()

    def _serve(self, connection):
        try:
            if self.context:
                connection = self.context.wrap_socket(connection, server_side=True)
                self.connections.append(connection)
            with connection, connection.makefile("rb") as file:
                while self._serve_one(connection, file):
                    pass
        except OSError:
            pass

    def _serve_one(self, connection, file):
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            line = file.readline()
            if not line:
                return False
            head += line
        lengths = [x.split(b":")[1] for x in head.lower().split(b"\r\n") if b"content-length" in x]
        self.gate.wait(20)
        body = file.read(int(lengths[0]) if lengths else 0)
        if lengths and len(body) < int(lengths[0]):
            return False
        request = Request(self, connection, head, body)
        self.requests.append(request)
        pieces = self.script(request)
        if pieces is None:
            return False
        for piece in [pieces] if isinstance(pieces, bytes) else pieces:
            connection.sendall(piece)
        return not isinstance(pieces, Last)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.stop()

    def stop(self):
        """Stop listening and close every connection."""
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for connection in self.connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()
        for thread in self.threads:
            thread.join(20)


class Last(list):
    """Pieces after which the server hangs up."""


# Replies


def http(status=200, body=b"", content_type="application/json", **headers):
    """A whole HTTP response."""
    body = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status} Reason", f"Content-Length: {len(body)}"]
    if content_type:
        lines.append(f"Content-Type: {content_type}")
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def as_json(message, status=200, **headers):
    return http(status, json.dumps(message, ensure_ascii=False), **headers)


STREAM = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"  # it ends with the connection
)


def event(message, end="\n", **fields):
    """One event of a stream; a message is an object or the text of the data."""
    text = message if isinstance(message, str) else json.dumps(message, ensure_ascii=False)
    lines = [f"{name}: {value}" for name, value in fields.items()] + [f"data: {text}"]
    return "".join(line + end for line in [*lines, ""]).encode()


def event_stream(*messages):
    """A whole stream, chunked, so that the connection could be used again."""
    pieces = [message if isinstance(message, bytes) else event(message) for message in messages]
    chunks = [b"%x\r\n%s\r\n" % (len(piece), piece) for piece in [*pieces, b""]]
    head = STREAM[:-2] + b"Transfer-Encoding: chunked\r\n\r\n"
    return b"".join([head, *chunks])


# Messages


def result(request, **members):
    return {"jsonrpc": "2.0", "id": request.id, "result": members}


def error(request, code, message="no", **more):
    return {"jsonrpc": "2.0", "id": request.id, "error": {"code": code, "message": message, **more}}


def said(request, text="called"):
    """The result of a tool that says something."""
    return result(request, content=[{"type": "text", "text": text}], resultType="complete")


def tool(name, /, **properties):
    return {"name": name, "inputSchema": {"type": "object", "properties": properties}}


def modern(request, versions=(MODERN,)):
    """What a modern server answers to anything."""
    if request.method == "server/discover":
        capabilities = {"tools": {}}
        return as_json(result(request, supportedVersions=list(versions), capabilities=capabilities))
    if request.method == "tools/list":
        return as_json(result(request, tools=[tool("any")]))
    return as_json(said(request)) if request.id is not None else http(202, content_type=None)


def legacy(request, version=LEGACY, session=None, probe=None):
    """What a legacy server answers to anything; `probe` is its answer to `server/discover`."""
    if request.method == "server/discover":
        return probe or http(400)
    if request.method == "initialize":
        info = {"name": "fake", "version": "0"}
        found = result(request, protocolVersion=version, capabilities={}, serverInfo=info)
        return as_json(found, **({"Mcp_Session_Id": session} if session else {}))
    if request.verb != "POST":
        return http(405, content_type=None)
    return modern(request)
