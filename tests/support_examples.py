"""What the tests of the examples share: loading one, running one, and the official client.

- `load("movies")` runs an example as a fresh module, so that every test has state of its own.
- `command("git", "--repo", path)` is how a host would start it.
- `reached(command, transport)` yields a target for a client: the command itself, or the URL of
  a process that serves HTTP on a free port.
- `stand_in()` yields a service on a free port; `http(body)` is an answer it can give, and `GOOD`
  the body of a good forecast.
- `official(asked, calls, target)` lets the official SDK's client list and call tools.
"""

import json
import socket
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager, suppress
from importlib import util
from pathlib import Path

from support import free_port, until
from support_peers import run
from support_skips import need

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
MODERN, LEGACY = "2026-07-28", "2025-11-25"
ERAS = {"modern": MODERN, "legacy": LEGACY}


def load(name):
    """The example as a module of its own, not shared with any other test."""
    path = EXAMPLES / f"{name}.py"
    spec = util.spec_from_file_location(f"example_{name}", path)
    module = util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its type hints are looked up there
    before = list(sys.path)
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path[:] = before
    return module


def command(name, *arguments):
    return [sys.executable, str(EXAMPLES / f"{name}.py"), *map(str, arguments)]


@contextmanager
def reached(start, transport, env=None):
    """Where a client finds the server: over stdio the client starts it, over HTTP we do."""
    if transport == "stdio":
        yield start
        return
    need(util.find_spec("minimcp.http"), "minimcp has no HTTP binding yet")
    port = free_port()
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen([*start, "--http", str(port)], stdout=log, stderr=log, env=env)

        def accepts():
            if process.poll() is not None:
                log.seek(0)
                raise AssertionError(log.read().decode(errors="replace"))
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                return True

        try:
            until(accepts, what="for the server to listen")
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.terminate()
            process.wait(20)


def official(asked, calls, target):
    """What the official SDK's client saw: `protocol_version`, `tools` and `results`."""
    return peer("client.py", "mcp", asked, json.dumps(calls), target)


def peer(script, *arguments):
    """Run a script of `tests/peers` whose last argument is a target, and read what it printed."""
    need(util.find_spec("mcp"), "no mcp: pip install -e '.[interop]'")
    *first, target = arguments
    return run(script, *first, *([target] if isinstance(target, str) else target))


def result(text, structured=None, is_error=False):
    """One call as `official` reports it."""
    return {"text": text, "structured": structured, "is_error": is_error}


# A service that can be told to misbehave

GOOD = {
    "latitude": 52.52,
    "daily_units": {"temperature_2m_max": "°C"},
    "daily": {
        "time": ["2026-11-30", "2026-12-01", "2026-12-02"],
        "temperature_2m_max": [4.5, 6, -0.1],
        "temperature_2m_min": [-1.0, 0.5, -7.25],
        "precipitation_sum": [0.0, 12.3, 0],
        "sunrise": ["2026-11-30T07:52", "2026-12-01T07:53", "2026-12-02T07:55"],
    },
}


def http(body, status="200 OK", *headers):
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


class StandIn:
    """A service on a free port. `answer` is bytes to send, or a function of the connection."""

    def __init__(self, listener):
        self.listener, self.answer, self.requests = listener, b"", []
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1/forecast"
        self.done = threading.Event()
        self.threads = [threading.Thread(target=self.serve)]
        self.threads[0].start()

    def serve(self):
        while not self.done.is_set():
            with suppress(OSError):
                connection, _ = self.listener.accept()
                thread = threading.Thread(target=self.reply, args=(connection,))
                self.threads.append(thread)
                thread.start()

    def reply(self, connection):
        with connection, suppress(OSError):
            data = b""
            while b"\r\n\r\n" not in data:
                data += connection.recv(65536) or b"\r\n\r\n"
            if len(data) > 4:
                self.requests.append(data.decode("latin-1"))
            if callable(self.answer):
                self.answer(connection, self.done)
            else:
                connection.sendall(self.answer)

    def close(self):
        self.done.set()
        with suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for thread in self.threads:
            thread.join(20)


@contextmanager
def stand_in():
    service = StandIn(socket.create_server(("127.0.0.1", 0)))
    try:
        yield service
    finally:
        service.close()
