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
{"timeout": seconds, "maxOutput": bytes}`. The words in the variable `FRONT` are put in front of
every program: `prlimit --cpu=10 --as=500000000`, say, or a sandbox.

The lesson: *a neighbour's trouble stays next door*. A provider may hang, flood, crash, talk
nonsense, take a name that is taken, or change while you look: it is named, on stderr and in the
server's instructions, and the others are served. All of this needs a POSIX system.
"""

import json
import os
import signal
import sys
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from subprocess import PIPE, Popen, TimeoutExpired
from tempfile import TemporaryFile
from threading import Lock, Thread

sys.path.append(str(Path(__file__).parents[1]))  # so that it runs from a clone, not installed
from minimcp import Context, ProtocolError, Server, ToolError, run
from minimcp.protocol import JSON, dumps, loads
from minimcp.schema import explain, validate
from minimcp.tools import Tool, call_tool, list_tools

# Seconds: between two looks at the folder, for a list, for a call (unless the tool says otherwise),
# to end or to say the last words, between two looks at a program. Bytes: of what a call may print
# (unless the tool says otherwise), of what fits an argument on every system. And how a line begins
# in a JSON text with indents that is deeper than every client reads; the official one stops at 200.
POLL, LISTING, TIMEOUT, GRACE, TICK = 1.0, 3.0, 30.0, 0.5, 0.02
OUTPUT, SMALL, DEEP = 1_000_000, 100_000, "\n" + 99 * " "
KEPT = {"PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR"}  # of our environment

# ## The folder
#
# What a provider says is kept under its path and its stamp. So a change is a key that is missing,
# and there is one way to offer what there is: all of it, at once.


class Folder:
    """The providers in a folder, and the server that offers their tools."""

    def __init__(self, server: Server, path: str | Path, front: JSON) -> None:
        self.server, self.path, self.front = server, Path(path).resolve(strict=True), front
        env = {k: v for k, v in os.environ.items() if k in KEPT or k.startswith("TOOL_")}
        self.place = {"cwd": self.path, "env": env, "start_new_session": True}
        self.introduction, self.lock, self.asked = server.instructions or "", Lock(), {}
        server.method("tools/list", capability="tools")(list_tools)  # even if there are none yet
        server.method("tools/call", capability="tools")(call_tool)
        self.refresh()

    def refresh(self) -> None:
        """Ask what is new or has changed, side by side; then offer all there is."""
        with self.lock, ThreadPoolExecutor(32) as pool:
            files = [(path, stamp(path)) for path in sorted(self.path.glob("[!.#]*"))]
            asked = {f: self.asked.get(f) or pool.submit(self.ask, *f) for f in files if f[1]}
            if asked != self.asked:
                self.offer(asked)

    def ask(self, path: Path, seen: JSON) -> list[JSON]:
        """The tools of a provider, then what it says about them; or what is wrong with it."""
        try:
            # Definitions may be spread over lines. A string in JSON has no line break in it, so
            # where one object ends a line and one begins the next, there are two of them.
            lines = map(str.strip, self.run(path, "list", LISTING).decode().splitlines())
            listed = loads("[" + "\n".join(filter(None, lines)).replace("}\n{", "},{") + "]")
            items = [Program(self, path, seen, definition) for definition in listed]
            with suppress(ToolError):
                items += [self.run(path, "instructions", LISTING).decode(errors="replace")[:9999]]
        except OSError as error:
            items = [f"Not available: {path.name}: {error.strerror}; check its mode and '#!' line"]
        except Exception as error:
            items = [f"Not available: {path.name}: {error!s:.500}"]
        return items

    def offer(self, asked: JSON) -> None:
        """Put what there is now in the place of what there was, in one step."""
        texts, old, self.asked = [self.introduction], self.server.tools, asked
        tools = {name: tool for name, tool in old.items() if getattr(tool, "folder", 0) is not self}
        for item in [item for one in asked.values() for item in one.result()]:
            if isinstance(item, str):
                texts.append(item)
            elif (first := tools.setdefault(item.name, item)) is not item:
                home = getattr(first, "home", "this server")
                texts.append(f"Not available: {item.home}: {item.name!r} comes from {home} already")
        sys.stderr.writelines(f"{text}\n" for text in texts if text.startswith("Not available"))
        self.server.tools = tools
        self.server.instructions = "\n\n".join(filter(None, map(str.strip, texts))) or None
        self.server.announce("tools")

    def watch(self) -> None:
        """Keep up with the folder."""
        while not time.sleep(POLL):
            self.refresh()

    def run(self, path: Path, name: str, timeout: float, most=OUTPUT, text=b"", call=None) -> bytes:
        """What a provider prints within its bounds; `ToolError` if it fails, or leaves them."""
        command = [*self.front, path, name, *([text] if 0 < len(text) <= SMALL else [])]
        with TemporaryFile() as stdin:  # a program that never reads it holds nobody up
            os.pwrite(stdin.fileno(), text, 0)
            process = Popen(command, stdin=stdin, stdout=PIPE, stderr=PIPE, **self.place)  # noqa: S603
        # In the end all of it is ended; by the finalizer, if we are the first to go.
        ending, deadline = weakref.finalize(process, end, process), time.monotonic() + timeout
        try:
            for out, err, news in said(process):
                if len(out + err) > most:
                    raise ToolError("printed too much, and was ended")
                if call and news:
                    call.progress(len(out + err), message=news.decode(errors="replace").strip())
                if time.monotonic() > deadline or (call and call.cancelled):
                    raise ToolError(f"timed out after {timeout:g} s, and was ended")
            if process.returncode:
                raise ToolError(f"failed with exit code {process.returncode}")
        except ToolError as error:
            last_words = (err + out)[-4000:].decode(errors="replace")
            raise ToolError(f"{name} {error}\n{last_words}".strip()) from None
        finally:
            ending()
        sys.stderr.write(err.decode(errors="replace"))
        return out


def add_folder(server: Server, path: str | Path, front: JSON = ()) -> None:
    """Offer the tools of all providers in a folder, and keep up with it.

    `front` is a command that stands before each of them, word by word.
    """
    Thread(target=Folder(server, path, front).watch, daemon=True).start()


def stamp(path: Path) -> JSON:
    """What changes when a file does, in its content or its mode; false if it is no provider."""
    with suppress(OSError):
        now = path.stat()
        return path.is_file() and path.name[-1] != "~" and (now.st_ino, now.st_ctime_ns)
    return False


# ## A tool
#
# Of a definition we pass on what every client can read; a client that stumbles over one tool
# would not see the others. In `annotations`, a title is a text as well, and all else are flags.

MEMBERS = {key: {"type": "string"} for key in ("name", "title", "description")}
MEMBERS |= {key: {"type": "object"} for key in ("inputSchema", "outputSchema", "_meta")}
DEFINITION = {"type": "object", "properties": MEMBERS, "required": ["name", "inputSchema"]}
MEMBERS["annotations"] = {**DEFINITION, "required": [], "additionalProperties": {"type": "boolean"}}


class Program(Tool):
    """A tool that is a program: a call runs it, and what it prints is the result."""

    def __init__(self, folder: Folder, path: Path, seen: JSON, definition: JSON) -> None:
        shown = json.dumps(definition, allow_nan=False, indent=1)  # a `ValueError` for 1e999
        if (problems := validate(definition, DEFINITION)) or DEEP in shown:
            raise ValueError(explain(problems, "definition") or "definition: nested too deeply")
        super().__init__(self.start, {key: definition[key] for key in MEMBERS if key in definition})
        self.folder, self.path, self.seen, self.home = folder, path, seen, path.name
        bounds = {"timeout": TIMEOUT, "maxOutput": OUTPUT, **definition.get("_meta", {})}
        self.bounds = float(bounds["timeout"]), int(bounds["maxOutput"])

    # Run the program, if it is still the one whose definition the client has seen. (No docstring:
    # it would become a description.)
    def start(self, /, _context_: Context, **arguments: JSON) -> bytes:
        call = [self.path, self.name, *self.bounds, dumps(arguments).encode(), _context_]
        printed = stamp(self.path) == self.seen and self.folder.run(*call)
        if stamp(self.path) != self.seen:  # look after it, too: it may be new code that has run
            self.folder.refresh()
            raise ToolError(f"{self.name} has just changed; look at the tools again, then call it")
        return printed

    def result(self, printed: bytes, modern: bool) -> JSON:
        """A tool result goes out as it is; other JSON is a value, and what is no JSON a text."""
        out = printed.decode(errors="replace").rstrip("\n")
        with suppress(ProtocolError):
            out = loads(out)
        blocks = out.get("content") if isinstance(out, dict) else None
        if not isinstance(blocks, list) or not all(isinstance(one, dict) for one in blocks):
            return super().result(out, modern)
        own = {} if out.get("isError") else super().result(out.pop("structuredContent", ""), modern)
        return {**own, **out}


# ## A program


def said(process: JSON) -> JSON:
    """What a program has said on stdout and stderr, and what is new of it, until it has ended."""
    out, err, looks = b"", b"", iter(range(int(GRACE / TICK), 0, -1))
    with process.stdout, process.stderr:
        # Something that it has started may hold the pipes, so after its end we look for a while.
        while process.poll() is None or next(looks, 0):
            before = len(out), len(err)
            try:
                out, err = process.communicate(timeout=TICK)
                looks = iter(())
            except TimeoutExpired as so_far:
                out, err = so_far.output or out, so_far.stderr or err
            yield out, err, out[before[0] :] + err[before[1] :]


def end(process: JSON) -> None:
    """End a program with all that it started, politely at first.

    A shell with job control gives what it starts groups of their own; its session is the same.
    """
    for number in (signal.SIGTERM, signal.SIGKILL):
        for path in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if os.getsid(pid := int(path.name)) == process.pid != os.getpgid(pid):
                    os.kill(pid, number)
        with suppress(OSError, TimeoutExpired):
            os.killpg(process.pid, number)
            process.wait(GRACE)


if __name__ == "__main__":
    path, *options = sys.argv[1:] or [""]
    if not os.path.isdir(path):
        sys.exit(f"{path!r} is no folder; name one that is: folder.py DIR [--http [PORT]]")
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    server = Server("folder", version="1.0.0", ttl_ms=1000)  # it may change at any time
    add_folder(server, path, os.environ.get("FRONT", "").split())
    run(server, options)
