"""A server made with FastMCP: over stdio, or with a port over Streamable HTTP."""

import sys

from fastmcp import FastMCP

server = FastMCP("peer", version="1.0.0")


@server.tool
def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


@server.tool
def shout(text: str) -> str:
    """Say it in capitals."""
    return text.upper()


@server.tool
def fail() -> str:
    """Never succeed."""
    raise ValueError("on purpose")


if len(sys.argv) > 1:
    server.run("http", host="127.0.0.1", port=int(sys.argv[1]), show_banner=False)
else:
    server.run(show_banner=False)
