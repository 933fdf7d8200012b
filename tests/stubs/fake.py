"""What a fake server is made of: read requests, write lines. It imports nothing of minimcp.

A test writes the server it needs where it needs it:

    command = fake_server('''
        for request in requests():
            reply(request, tools=[])
    ''')

`FAKE_LOG` in the environment names a file that receives every line the fake server was sent.
"""

import json
import os
import signal  # noqa: F401  (fake servers use it)
import sys
import textwrap
import time  # noqa: F401  (fake servers use it)

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
HERE = os.path.dirname(os.path.abspath(__file__))


def fake_server(source, *arguments):
    """The command that runs `source` as a server."""
    prelude = f"import sys; sys.path.insert(0, {HERE!r}); from fake import *\n"
    return [sys.executable, "-c", prelude + textwrap.dedent(source), *arguments]


def lines():
    """Every line on standard input, recorded."""
    log = os.environ.get("FAKE_LOG")
    for line in sys.stdin.buffer:
        if log:
            with open(log, "ab") as file:
                file.write(line)
        yield line


def messages():
    """Every message, notifications included."""
    for line in lines():
        yield json.loads(line)


def requests(discover=True, initialize=True):
    """Every request that is left when the handshakes of both eras have been answered."""
    for message in messages():
        method = message.get("method")
        if discover and method == "server/discover":
            reply(message, **discovery())
        elif initialize and method == "initialize":
            reply(message, **handshake())
        elif method and "id" in message:
            yield message


def legacy_requests():
    """The requests of a server that has never heard of `server/discover`."""
    for request in requests(discover=False):
        if request["method"] == "server/discover":
            fail(request, -32601, "Method not found")
        else:
            yield request


def discovery(versions=(MODERN,)):
    return {
        "resultType": "complete",
        "supportedVersions": list(versions),
        "capabilities": {"tools": {}},
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "fake", "version": "0"}},
    }


def handshake(version=LEGACY):
    return {
        "protocolVersion": version,
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "fake", "version": "0"},
    }


def write(data):
    """Bytes on standard output, at once."""
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def send(message):
    write(json.dumps(message).encode() + b"\n")


def reply(request, **result):
    send({"jsonrpc": "2.0", "id": request["id"], "result": result})


def say(request, text, **more):
    """A tool's answer in text."""
    reply(request, resultType="complete", content=[{"type": "text", "text": text}], **more)


def fail(request, code, message, **error):
    send(
        {
            "jsonrpc": "2.0",
            "id": request["id"],
            "error": {"code": code, "message": message, **error},
        }
    )
