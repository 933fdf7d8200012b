"""Two command lines: of a server (`run`), and of a client that talks to any server (`main`)."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING

from .context import tell
from .protocol import Message, ProtocolError, loads
from .server import Server
from .stdio import Log, serve

if TYPE_CHECKING:
    from argparse import Namespace

    from .client import Client

# ## A server


def run(server: Server, argv: list[str] | None = None) -> None:
    """Serve over stdio, or over HTTP with `--http [PORT]`; `--log FILE` and `--verbose` show all.

    `argv` are the words behind the name of the program, if not those that it was called with.
    """
    argv = sys.argv[1:] if argv is None else argv
    options = server_options(argv) if argv else None
    try:
        log = logger(options) if options else None
        if options and options.http is not None:
            from .http import serve as serve_http

            serve_http(server, port=options.http, log=log, token_file=options.token_file)
        else:
            serve(server, log)
    except (OSError, OverflowError) as error:  # a file or a port that cannot be had
        sys.exit(f"cannot serve: {error}")


def server_options(argv: list[str]) -> Namespace:
    """What a server can be told on its command line."""
    from argparse import ArgumentParser

    parser = ArgumentParser()
    add = parser.add_argument
    add("--http", nargs="?", type=int, const=3000, metavar="PORT", help="serve HTTP")
    add("--token-file", metavar="FILE", help="over HTTP, demand this bearer token")
    add("--log", metavar="FILE", help="append every message to a file")
    add("--verbose", action="store_true", help="show every message on stderr")
    return parser.parse_args(argv)


def logger(options: Namespace) -> Log | None:
    """Write every message with its time, to the file that was named or to stderr."""
    if not options.log and not options.verbose:
        return None
    file = open(options.log, "a", encoding="utf-8") if options.log else sys.stderr  # noqa: SIM115

    def log(way: str, line: str) -> None:
        try:
            shown = printable(line.strip()).replace("\n", "\\n")  # one line, whatever was sent
            print(f"{time.strftime('%F %T')} {way} {shown}\n", end="", file=file, flush=True)
        except OSError as error:
            tell(f"cannot log: {error}")

    return log


# ## A client


def main(argv: list[str] | None = None) -> int:
    """Talk to a server from a terminal; without a target, to the demo server."""
    from .client import Client

    options = client_options(argv)
    # line by line, in an ASCII locale too
    getattr(sys.stdout, "reconfigure", dict)(errors="backslashreplace", line_buffering=True)
    command = options.target or [sys.executable, "-m", "minimcp.demo"]
    target = command[0] if command[0].startswith(("http://", "https://")) else command
    try:
        with Client(target, era=options.era, trace=show if options.trace else None) as client:
            return talk(client, options)
    except BrokenPipeError:  # nobody reads on, as after `| head -1`
        sys.stdout = None
        return 1
    except (ProtocolError, ConnectionError, TimeoutError, ValueError) as error:
        print(f"error: {printable(str(error))}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def client_options(argv: list[str] | None) -> Namespace:
    """The options of `python -m minimcp.client`."""
    from argparse import ArgumentParser

    usage = "%(prog)s [--call NAME JSON] [--era ERA] [--trace] [URL | COMMAND | -- COMMAND -OPTION]"
    parser = ArgumentParser("python -m minimcp.client", usage, description=main.__doc__)
    add = parser.add_argument
    add("target", nargs="*", help="a URL, or a command (after -- if it has options)")
    add("--call", nargs=2, metavar=("NAME", "JSON"), help="call a tool")
    add("--era", choices=("auto", "modern", "legacy"), default="auto")
    add("--trace", action="store_true", help="show every message on stderr")
    return parser.parse_args(argv)


def talk(client: Client, options: Namespace) -> int:
    """One conversation: who is there, and then a call, the list of tools, or the tour."""
    name = client.server_info.get("name", "a server without a name")
    print(printable(f"connected: {name}, protocol {client.protocol_version}"))
    if options.call:
        result = client.call_tool(options.call[0], loads(options.call[1]))
        print(printable(result.text))
        return int(result.is_error)
    tools = client.list_tools()
    print(printable(f"tools discovered: {', '.join(str(tool['name']) for tool in tools)}"))
    if options.target:
        for tool in tools:
            print(printable(f"  {tool['name']}: {tool.get('description', '')}"))
    else:
        from .demo import tour

        tour(client)
    return 0


def show(sender: str, message: Message) -> None:
    """Print one message, for `--trace`."""
    tell(f"{'-->' if sender == 'client' else '<--'} {json.dumps(message)}")


def printable(text: str) -> str:
    """Foreign text without what a terminal would obey."""
    return "".join(c if c.isprintable() or c == "\n" else f"\\x{ord(c):02x}" for c in text)
