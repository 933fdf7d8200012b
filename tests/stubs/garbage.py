"""How much of what a call leaves behind only the garbage collector finds: objects for each call.

It prints JSON, and runs in a process of its own, where nothing else makes garbage.
"""

import asyncio
import gc
import json
import os
import sys
from io import StringIO

from minimcp import Client, Context, Server, http

CALLS = 100
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/logLevel": "info",
    "progressToken": 1,
}
HEADERS = {
    "host": "localhost",
    "content-type": "application/json",
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": "tools/call",
}

server = Server("garbage")


@server.tool
def add(a: int, b: int = 1) -> int:
    return a + b


@server.tool
def tells(a: int, context: Context) -> int:
    context.progress(1)
    context.log("info", "x")
    return a


@server.tool
def fails(a: int) -> int:
    raise ValueError(a)


def request(name, **arguments):
    params = {"name": name, "arguments": arguments, "_meta": META}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})


LINES = {
    "a result": request("add", a=1),
    "messages and a result": request("tells", a=1),
    "a failure": request("fails", a=1),
    "bad arguments": request("add", a="x"),
    "an error": request("no such tool"),
    "no JSON": "{",
    "no message": "[]",
    "no metadata": '{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}',
}


def left(work):
    """Objects for each call that are unreachable, and still there."""
    work()
    gc.collect()
    gc.disable()
    for _ in range(CALLS):
        work()
    found = gc.collect() / CALLS
    gc.enable()
    return found


async def post(app, body, headers):
    """One POST, as uvicorn would give it to the app."""

    async def receive():
        if parts:
            return parts.pop()
        return await asyncio.Event().wait()

    async def send(event):
        sent.append(event)

    parts, sent = [{"type": "http.request", "body": body.encode()}], []
    fields = [(key.encode(), value.encode()) for key, value in headers.items()]
    scope = {"type": "http", "path": "/mcp", "method": "POST", "headers": fields}
    await app(scope, receive, send)
    await asyncio.sleep(0)  # whoever was cancelled comes to its end
    assert sent


def main():
    app, loop = http.App(server), asyncio.new_event_loop()
    found = {}
    for what, line in LINES.items():
        name = {} if line[:2] != '{"' else json.loads(line).get("params", {})
        headers = {**HEADERS, "mcp-name": name.get("name", "")}
        found[f"line: {what}"] = left(lambda line=line: server.handle_line(line))
        found[f"POST: {what}"] = left(
            lambda line=line, headers=headers: loop.run_until_complete(post(app, line, headers))
        )
    with Client(server) as client:
        found["client: in the same process"] = left(lambda: client.call_tool("add", {"a": 1}))
    with Client([sys.executable, "-m", "minimcp.demo"]) as client:
        numbers = {"a": 1, "b": 2}
        found["client: stdio"] = left(lambda: client.call_tool("calc.add", numbers))
    if len(sys.argv) > 1:
        with Client(sys.argv[1]) as client:
            found["client: HTTP"] = left(lambda: client.call_tool("calc.add", numbers))
    print(json.dumps(found, indent=1), flush=True)


if __name__ == "__main__":
    sys.stderr = StringIO()
    main()
    os._exit(0)
