"""A folder of executables: each one is a provider of tools, in any language.

    python examples/folder.py examples/tools                 over stdio
    python examples/folder.py examples/tools --http 3000     over Streamable HTTP

The contract:

    PROVIDER list           prints its tools, one JSON definition a line
    PROVIDER NAME [JSON]    runs one; the arguments are on stdin, and in JSON too if they are small
    PROVIDER instructions   optional: prints what a model should know

A provider prints a tool result (an object with `content`), any other JSON value, or plain text. A
non-zero exit is a failure, and stderr says why. It runs in the folder, and of our environment it
sees PATH and the like, and every `TOOL_…`. A definition may bound its calls with `"_meta":
{"timeout": seconds, "maxOutput": bytes}`, and `--with` puts a command in front of every program,
such as `--with "prlimit --cpu=10 --as=500000000"` or a sandbox.

The lesson: *a neighbour's trouble stays next door*. A provider may hang, flood, crash, talk
nonsense, take a name that is taken, or change while you look: it is named, on stderr and in the
server's instructions, and the others are served. How to bound a program is shown in bounded.py.
"""

import json
import os
import shlex
import signal
import sys
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Lock, Thread
from types import SimpleNamespace
from typing import Any

sys.path += map(str, Path(__file__).parents[:2])  # so that it runs from a clone, not installed
from bounded import execute

from minimcp import Context, ProtocolError, Server, ToolError, run
from minimcp.protocol import dumps, loads
from minimcp.schema import checker, explain, validate
from minimcp.tools import Tool, call_tool, list_tools

POLL = 1.0  # seconds between two looks at the folder
LISTING = 3.0  # seconds in which a provider says what it has
TIMEOUT, OUTPUT = 30.0, 1_000_000  # seconds and bytes of a call, unless the tool says otherwise
SMALL = 100_000  # bytes that fit an argument on every system
FRESH = 50_000_000  # nanoseconds in which a second edit may get the same time stamp
KEPT = {"PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR"}  # of our environment

# ## What a provider says
#
# Of a definition we pass on what every client can read; a client that stumbles over one tool
# would not see the others.

STRING, NUMBER, FLAG, OBJECT = ({"type": one} for one in ("string number boolean object".split()))
FLAGS = {"type": "object", "additionalProperties": FLAG}
BOUNDS = {"type": "object", "properties": {"timeout": NUMBER, "maxOutput": NUMBER}}
MEMBERS = dict.fromkeys(("name", "title", "description"), STRING)
MEMBERS |= {"inputSchema": OBJECT, "outputSchema": OBJECT, "annotations": FLAGS, "_meta": BOUNDS}
DEFINITION = {"type": "object", "properties": MEMBERS, "required": ["name", "inputSchema"]}


def values(text: str) -> Iterator[Any]:
    """The JSON values in a text, one after the other; `ValueError` where there is none."""
    while text := text.lstrip():
        value, end = json.JSONDecoder().raw_decode(text)
        text = text[end:]
        yield value


def meaning(printed: bytes, definition: Any, context: Context) -> Any:
    """What a provider printed: a tool result (which goes out as it is), some value, or text."""
    try:
        value = loads(printed.decode())
    except (ValueError, ProtocolError):
        return printed.decode(errors="replace").rstrip("\n")
    content = value.get("content") if isinstance(value, dict) else None
    if not isinstance(content, list) or not all(isinstance(one, dict) for one in content):
        return value
    check = checker({} if value.get("isError") else definition.get("outputSchema", {}))
    if problems := check(value.get("structuredContent")):
        raise ToolError(explain(problems, "broke its output schema: structuredContent"))
    if not context.modern and not isinstance(value.get("structuredContent"), dict):
        value.pop("structuredContent", None)  # older clients know only objects there
    return SimpleNamespace(as_result=lambda context: value)


def stamp(path: Path) -> tuple[int, int]:
    """What changes when a file does, in its content or its mode."""
    with suppress(OSError):
        now = path.stat()
        return now.st_ino, now.st_ctime_ns
    return 0, 0


# ## The folder

Stamp = tuple[int, int]  # which file it is, and when it last changed


class Folder:
    """The providers in a folder, and the server that offers their tools."""

    def __init__(self, server: Server, path: Path, env: Any, front: Any) -> None:
        self.server, self.path, self.front = server, path.resolve(strict=True), front
        passed = {k: v for k, v in os.environ.items() if k in KEPT or k.startswith("TOOL_")}
        self.place = {"cwd": self.path, "env": {**passed, **env}}
        self.introduction, self.lock = server.instructions, Lock()
        self.offers, self.files, self.tools = {}, [], []
        server.method("tools/list", capability="tools")(list_tools)  # even if there are none yet
        server.method("tools/call", capability="tools")(call_tool)

    def execute(self, path: Path, name: str, *more: bytes, **bounds: Any) -> bytes:
        return execute(name, [*self.front, path, name, *more], **self.place, **bounds)

    def refresh(self) -> None:
        """Ask what is new or has changed, side by side; then offer all there is, in one step."""
        paths = [path for path in sorted(self.path.glob("[!.#]*")) if path.name[-1] != "~"]
        with self.lock:
            now, files = time.time_ns(), [(path, stamp(path)) for path in paths if path.is_file()]
            new = [file for file in files if file not in self.offers]
            threads = [Thread(target=self.ask, args=file, daemon=True) for file in new]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            if new or files != self.files:
                self.files = files
                self.offer()
            # subtle: a file that is this fresh may change once more and bear the same time
            self.offers = {f: self.offers[f] for f in files if abs(now - f[1][1]) > FRESH}

    def ask(self, path: Path, seen: Stamp) -> None:
        """Ask a file what it offers."""
        tools, told, problems = self.offers[path, seen] = [], [], []
        try:
            for definition in values(self.execute(path, "list", timeout=LISTING).decode()):
                try:
                    tools.append(self.tool(path, definition, seen))
                except Exception as error:
                    problems.append(f"definition refused: {error}")
            with suppress(ToolError):
                told.append(self.execute(path, "instructions", timeout=LISTING))
        except Exception as error:
            problems.append(str(error))

    def tool(self, path: Path, definition: Any, seen: Stamp) -> Tool:
        """The tool that is defined; what its file says counts only while it is as it was seen."""
        if problems := validate(definition, DEFINITION):
            raise ValueError(explain(problems, "definition"))
        definition = {key: one for key, one in definition.items() if key in MEMBERS}
        dumps([[[[[[[[definition]]]]]]]])  # a list of tools must have room for it
        name, meta = definition["name"], definition.get("_meta", {})
        timeout, most = meta.get("timeout", TIMEOUT), meta.get("maxOutput", OUTPUT)

        def call(_context_: Context, **arguments: Any) -> Any:
            text = dumps(arguments).encode()
            bounds = {"timeout": timeout, "most": most, "context": _context_}
            more = [text] if len(text) <= SMALL else []
            printed = stamp(path) == seen and self.execute(path, name, *more, text=text, **bounds)
            if stamp(path) != seen:  # look after it, too: it may be new code that has run
                self.refresh()
                raise ToolError(f"{name} has just changed; look at the tools again, then call it")
            return meaning(printed, definition, _context_)

        return Tool(call, {"description": name, **definition})

    def offer(self) -> None:
        """Put what there is now in the place of what there was."""
        tools = {name: tool for name, tool in self.server.tools.items() if tool not in self.tools}
        homes = dict.fromkeys((*tools, "list", "instructions"), "this server")
        before, self.tools, texts, problems = self.tools, [], [self.introduction], []
        for path, seen in self.files:
            offered, told, wrong = self.offers[path, seen]
            texts += [one.decode(errors="replace").strip() for one in told]
            for tool in offered:
                if tool.name in homes:
                    wrong = [*wrong, f"{tool.name!r} comes from {homes[tool.name]} already"]
                else:
                    tools[tool.name], homes[tool.name] = tool, path.name
                    self.tools.append(tool)
            problems += [f"Not available: {path.name}: {one:.500}" for one in wrong]
        print(*problems, sep="\n", end="\n" if problems else "", file=sys.stderr)
        self.server.tools = tools
        self.server.instructions = "\n\n".join(filter(None, texts + problems)) or None
        if [tool.definition for tool in before] != [tool.definition for tool in self.tools]:
            self.server.announce("tools")

    def watch(self) -> None:
        """Keep up with the folder."""
        while True:
            self.refresh()
            time.sleep(POLL)


def add_folder(server: Server, path: str | Path, env: Any = None, front: Any = ()) -> Folder:
    """Offer the tools of all providers in a folder, and keep up with it.

    `env` is added to what providers see; `front` is a command that stands before each of them.
    """
    folder = Folder(server, Path(path), env or {}, front)
    folder.refresh()
    Thread(target=folder.watch, daemon=True).start()
    return folder


def main() -> None:
    """Serve a folder; other options are those of every server."""
    parser = ArgumentParser(allow_abbrev=False, epilog="and: --http [PORT], --log FILE, --verbose")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--with", dest="front", type=shlex.split, default=[], metavar="COMMAND")
    options, rest = parser.parse_known_args()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    server = Server("folder", version="1.0.0", ttl_ms=1000)  # it may change at any time
    add_folder(server, options.folder, front=options.front)
    run(server, rest)


if __name__ == "__main__":
    main()
