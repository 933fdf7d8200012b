"""How long a call over a kept HTTP connection takes, beside `http.client` alone.

    python tests/bench_http_client.py [URL]

Without a URL, a server that answers from memory is started in a process of its own. Both clients
send the same bytes, in turns, so that a busy machine is busy for both. The medians are printed.
"""

import asyncio
import json
import statistics
import subprocess
import sys
import time
from http.client import HTTPConnection
from urllib.parse import urlsplit

from minimcp import Client

ROUNDS, CALLS = 5, 1000
ANSWER = {
    "resultType": "complete",
    "content": [{"type": "text", "text": "42"}],
    "structuredContent": 42,
    "supportedVersions": ["2026-07-28"],
    "capabilities": {"tools": {}},
}


async def answer(reader, writer):
    """One connection: the same result for every request."""
    while head := await reader.readline():
        length = 0
        while head.strip():
            name, _, value = head.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
            head = await reader.readline()
        request = json.loads(await reader.readexactly(length))
        reply = {"jsonrpc": "2.0", "id": request["id"], "result": ANSWER}
        body = json.dumps(reply).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
        writer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    writer.close()


async def serve():
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def microseconds(call):
    started = time.perf_counter()
    call()
    return (time.perf_counter() - started) * 1e6


def measure(url):
    """The medians of both clients, round by round."""
    sent = []
    with Client(url, trace=lambda sender, message: sent.append((sender, message))) as client:
        client.call_tool("add", {"a": 2, "b": 40})
        body = json.dumps(next(m for s, m in reversed(sent) if s == "client")).encode()
        client.connection.trace = None
        parts = urlsplit(url)
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": "tools/call",
            "Mcp-Name": "add",
        }
        plain = HTTPConnection(parts.hostname, parts.port)

        def floor():
            plain.request("POST", parts.path or "/", body, headers)
            return json.loads(plain.getresponse().read())

        def ours():
            client.call_tool("add", {"a": 2, "b": 40})

        for _ in range(ROUNDS):
            pairs = [(microseconds(floor), microseconds(ours)) for _ in range(CALLS)]
            one, two = (statistics.median(column) for column in zip(*pairs, strict=True))
            print(f"http.client {one:6.0f} µs   minimcp {two:6.0f} µs   ratio {two / one:.2f}")
        plain.close()


def main():
    if sys.argv[1:] == ["--serve"]:
        asyncio.run(serve())
    elif sys.argv[1:]:
        measure(sys.argv[1])
    else:
        command = [sys.executable, __file__, "--serve"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            measure(f"http://127.0.0.1:{int(server.stdout.readline())}/mcp")
            server.kill()


if __name__ == "__main__":
    main()
