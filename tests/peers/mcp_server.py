"""A server made with the official Python SDK: over stdio, or with a port over Streamable HTTP."""

import sys

from mcp.server.mcpserver import MCPServer

server = MCPServer("peer", version="1.0.0", log_level="CRITICAL")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


@server.tool()
def shout(text: str) -> str:
    """Say it in capitals."""
    return text.upper()


@server.tool()
def fail() -> str:
    """Never succeed."""
    raise ValueError("on purpose")


if len(sys.argv) > 1:
    server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
else:
    server.run()
