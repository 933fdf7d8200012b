"""What the tests of the examples share: loading one, running one, and the official client.

- `load("movies")` runs an example as a fresh module, so that every test has state of its own.
- `command("git", "--repo", path)` is how a host would start it.
- `reached(command, transport)` yields a target for a client: the command itself, or the URL of
  a process that serves HTTP on a free port.
- `official(asked, calls, target)` lets the official SDK's client list and call tools.
"""

import json
import socket
import subprocess
import sys
import tempfile
from contextlib import contextmanager, suppress
from importlib import util
from pathlib import Path

from support import until
from support_skips import need

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
PEERS = Path(__file__).parent / "peers"
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
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]

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
    words = [target] if isinstance(target, str) else target
    line = [sys.executable, str(PEERS / script), *first, *words]
    done = subprocess.run(line, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def result(text, structured=None, is_error=False):
    """One call as `official` reports it."""
    return {"text": text, "structured": structured, "is_error": is_error}
