"""Three tools, and a tour of them: what `python -m minimcp.client` shows.

`python -m minimcp.demo` serves the tools; `python -m minimcp.client TARGET…` talks to any server.
"""

import json
import sys
from argparse import ArgumentParser, Namespace

from .client import Client
from .protocol import Message, ProtocolError, loads
from .server import Server
from .stdio import run

server = Server("minimcp-demo", version="1.0.0")


@server.tool(name="calc.add")
def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


@server.tool(name="text.word_count")
def word_count(text: str) -> dict[str, int]:
    """Count the words and the characters of a text."""
    return {"words": len(text.split()), "characters": len(text)}


@server.tool(name="text.summarize_naive")
def summarize_naive(text: str, sentences: int = 1) -> str:
    """Keep the first sentences of a text."""
    return ".".join(text.split(".")[:sentences]) + "."


# ## The tour

TEXT = "A host contains a client. A client talks to one server. The model is somewhere else."


def tour(client: Client) -> None:
    """Call each tool once, and one of them wrongly."""
    print("calc.add(2, 40) ->", client.call_tool("calc.add", {"a": 2, "b": 40}).text)
    for name in ("text.word_count", "text.summarize_naive"):
        print(f"{name}({TEXT[:25]!r}…) ->", client.call_tool(name, {"text": TEXT}).text)
    wrong = client.call_tool("calc.add", {"a": "two", "b": 40})
    print("calc.add('two', 40) -> is_error, and the model reads:")
    print("  " + wrong.text.replace("\n", "\n  "))


# ## The command line


def main(argv: list[str] | None = None) -> int:
    """Talk to a server from a terminal; without a target, to the demo server."""
    options = parse(argv)
    command = options.target or [sys.executable, "-m", "minimcp.demo"]
    target = command[0] if command[0].startswith(("http://", "https://")) else command
    try:
        with Client(target, era=options.era, trace=show if options.trace else None) as client:
            return talk(client, options)
    except (ProtocolError, ConnectionError, TimeoutError) as error:
        print(f"error: {printable(str(error))}", file=sys.stderr)
        return 1


def parse(argv: list[str] | None) -> Namespace:
    """The options of `python -m minimcp.client`."""
    parser = ArgumentParser("python -m minimcp.client", description=main.__doc__)
    parser.add_argument(
        "target", nargs="*", help="a URL, or a command (after -- if it has options)"
    )
    parser.add_argument("--call", nargs=2, metavar=("NAME", "JSON"), help="call a tool")
    parser.add_argument("--era", choices=("auto", "modern", "legacy"), default="auto")
    parser.add_argument("--trace", action="store_true", help="show every message on stderr")
    return parser.parse_args(argv)


def talk(client: Client, options: Namespace) -> int:
    """One conversation: who is there, and then the call, the list or the tour."""
    name = client.server_info.get("name", "a server without a name")
    print(printable(f"connected: {name}, protocol {client.protocol_version}"))
    if options.call:
        result = client.call_tool(options.call[0], loads(options.call[1]))
        print(printable(result.text))
        return int(result.is_error)
    tools = client.list_tools()
    print(printable(f"tools discovered: {', '.join(tool['name'] for tool in tools)}"))
    if options.target:
        for tool in tools:
            print(printable(f"  {tool['name']}: {tool.get('description', '')}"))
    else:
        tour(client)
    return 0


def show(sender: str, message: Message) -> None:
    """Print one message, for `--trace`."""
    print("-->" if sender == "client" else "<--", json.dumps(message), file=sys.stderr)


def printable(text: str) -> str:
    """Foreign text without what a terminal would obey."""
    return "".join(c if c.isprintable() or c == "\n" else f"\\x{ord(c):02x}" for c in text)


if __name__ == "__main__":
    run(server)
