"""The fixture server of the field reports: five tools, served over stdio."""

import time

from minimcp import Server, run

server = Server("fixture", version="1.0.0")


@server.tool
def echo(text: str) -> str:
    """Return the text."""
    return text


@server.tool
def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


@server.tool
def rep(text: str, times: int = 2) -> str:
    """Repeat the text."""
    return text * times


@server.tool
def sleep(seconds: float) -> str:
    """Sleep, without ever looking up."""
    time.sleep(seconds)
    return "slept"


@server.tool
def boom() -> str:
    """Fail."""
    raise ValueError("no such city: Atlantis")


if __name__ == "__main__":
    run(server)
