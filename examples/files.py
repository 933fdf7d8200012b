"""Files: read what lies below one folder, and nothing else.

    python examples/files.py --root ~/notes                 over stdio
    python examples/files.py --root ~/notes --http 3000     over Streamable HTTP

The lesson: *resolve first, compare after, and open what you compared*. A path is followed to its
end (`..`, links, absolute paths), and only then asked whether it lies below the root. Between
that question and the opening, somebody may put a link where a folder was; so the way is gone
again, from the root's own descriptor, step by step and through no link at all. What is no
regular file is not even opened: a device may act on it, a FIFO may wait for ever. And every
refusal has the same words, so that nobody can find out what exists elsewhere.

Tools are for the model; resources are for the host, which lets its user pick. Here both read the
same files. Resources stand on `server.method`, the extension point: the package knows only tools.
It needs POSIX, and it cannot see a *hard* link: that is no link to a file but the file itself.
"""

import base64
import codecs
import os
import stat
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from mimetypes import guess_type
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import quote, unquote_to_bytes

sys.path.append(str(Path(__file__).parents[1]))  # so that it runs from a clone, not installed
from minimcp import Context, ProtocolError, Server, ToolError, run
from minimcp.protocol import INVALID_PARAMS, expect

CHUNK = 100_000  # bytes that one call of read_file returns
LIMIT = 5_000_000  # bytes of a resource, which is sent whole
MOST = 1000  # entries of a folder; ten times as many resources
SCHEME = "files:///"  # our own: no host takes it for a path on its disk
FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
PathHere = Annotated[str, "a path, seen from the root"]


@dataclass
class Entry:
    name: str
    kind: Literal["file", "folder", "link", "other"]


@dataclass
class Listing:
    entries: list[Entry]
    truncated: bool


@dataclass
class Text:
    """Part of a file; if there is more, it starts at `next_offset`."""

    text: str
    size: int
    next_offset: int | None


class Root:
    """A folder, and what may be read below it."""

    def __init__(self, folder: str) -> None:
        self.path = os.path.realpath(folder)
        self.descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)

    # ## Saying no

    @contextmanager
    def open(self, path: str, is_kind: Any = stat.S_ISREG) -> Iterator[int]:
        """A descriptor of a file below the root; the same `ToolError` for everything else."""
        refusal = ToolError(f"below the root there is no {path[:200]!r}; use list_folder")
        try:
            real = Path(os.path.realpath(os.path.join(self.path, path), strict=True))
            descriptor = self.walk(real.relative_to(self.path).parts)
        except (OSError, ValueError):
            raise refusal from None
        try:
            if not is_kind(os.fstat(descriptor).st_mode):
                raise refusal
            yield descriptor
        finally:
            os.close(descriptor)

    def walk(self, parts: tuple[str, ...]) -> int:
        """Go down from the root through real folders; `OSError` if the way has changed."""
        here = os.open(".", FLAGS, dir_fd=self.descriptor)
        for part in parts:
            try:
                mode = os.stat(part, dir_fd=here, follow_symlinks=False).st_mode
                if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                    raise OSError(f"neither file nor folder: {part}")
                inner = os.open(part, FLAGS, dir_fd=here)
            finally:
                os.close(here)
            here = inner
        return here

    # ## Tools

    def list_folder(self, path: PathHere = ".") -> Listing:
        """List a folder."""
        with self.open(path, stat.S_ISDIR) as folder, os.scandir(folder) as found:
            entries = [Entry(readable(one.name), kind(one)) for one in islice(found, MOST + 1)]
        entries.sort(key=lambda entry: entry.name)
        return Listing(entries[:MOST], len(entries) > MOST)

    def read_file(self, path: PathHere, offset: int = 0) -> Text:
        """Read a text file, or the part of it that starts at an offset in bytes."""
        with self.open(path) as file:
            size = os.fstat(file).st_size
            if not 0 <= offset <= size:
                raise ToolError(f"offset: from 0 to {size}, the size of {path[:200]!r}")
            data = read(file, CHUNK, offset)
        decoder = codecs.getincrementaldecoder("utf-8")()
        try:
            text = decoder.decode(data, final=len(data) < CHUNK)
        except UnicodeDecodeError:
            text = "\0"
        if "\0" in text:
            raise ToolError(f"{path[:200]!r} is no text ({size} bytes); read it as a resource")
        half_a_character = len(decoder.getstate()[0])
        end = offset + len(data) - half_a_character
        return Text(text, size, end if len(data) == CHUNK else None)

    # ## Resources

    def list_resources(self, params: dict[str, Any], context: Context) -> dict[str, Any]:
        """The files, page by page."""
        paths = sorted(islice(self.files(), 10 * MOST))
        uris, more = context.server.page([SCHEME + quote(path) for path in paths], params)
        return {"resources": [describe(uri) for uri in uris], **more}

    def list_templates(self, params: dict[str, Any], context: Context) -> dict[str, Any]:
        """What can be asked for without having been listed."""
        return {"resourceTemplates": [{"uriTemplate": SCHEME + "{+path}", "name": "any file"}]}

    def read_resource(self, params: dict[str, Any], context: Context) -> dict[str, Any]:
        """The whole content of a file: text if it is text, Base64 if not."""
        uri = expect(params, "uri", str, "params")
        try:
            with self.open(path_of(uri)) as file:
                data = read(file, LIMIT + 1)
        except ToolError:
            code = INVALID_PARAMS if context.era == "modern" else -32002  # as it was then
            raise ProtocolError(code, f"there is no resource {uri}", {"uri": uri}) from None
        if len(data) > LIMIT:
            raise ProtocolError(INVALID_PARAMS, f"too large; use read_file: {uri}", {"uri": uri})
        kind = {key: one for key, one in describe(uri).items() if key != "name"}
        return {"contents": [{**kind, **text_or_blob(data)}]}

    def files(self) -> Iterator[bytes]:
        """Every file below the root; a link is left out, wherever it leads."""
        for folder, _, names, descriptor in os.fwalk(b".", dir_fd=self.descriptor):
            for name in names:
                with suppress(OSError):  # it may be gone by now
                    mode = os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode
                    if stat.S_ISREG(mode):
                        yield os.path.normpath(os.path.join(folder, name))


# ## Names and contents
#
# On disk a name is bytes: any but NUL and "/". A URI can spell all of them; a text cannot.


def readable(name: str) -> str:
    return os.fsencode(name).decode(errors="backslashreplace")


def path_of(uri: str) -> str:
    """The path in a URI of ours; NUL, which no path has, for any other."""
    known = uri.startswith(SCHEME)
    return os.fsdecode(unquote_to_bytes(uri.removeprefix(SCHEME))) if known else "\0"


def describe(uri: str) -> dict[str, Any]:
    mime = guess_type(uri)[0] or "application/octet-stream"
    return {"uri": uri, "name": readable(path_of(uri)), "mimeType": mime}


def kind(entry: os.DirEntry[str]) -> Literal["file", "folder", "link", "other"]:
    if entry.is_symlink():
        return "link"
    if entry.is_dir():
        return "folder"
    return "file" if entry.is_file() else "other"


def read(descriptor: int, most: int, offset: int = 0) -> bytes:
    """Bytes of a file, never more than asked for, whatever size it says it has."""
    with open(descriptor, "rb", closefd=False) as file:
        file.seek(offset)
        return file.read(most)


def text_or_blob(data: bytes) -> dict[str, str]:
    try:
        return {"text": data.decode()}
    except UnicodeDecodeError:
        return {"blob": base64.b64encode(data).decode()}


def make_server(folder: str) -> Server:
    """A server for one folder; what it says may be kept for five seconds, by this user only."""
    root = Root(folder)
    server = Server("files", version="1.0.0", ttl_ms=5000, cache_scope="private", page_size=100)
    for tool in (root.list_folder, root.read_file):
        server.tool(annotations={"readOnlyHint": True})(tool)
    server.method("resources/list", capability="resources")(root.list_resources)
    server.method("resources/templates/list", capability="resources")(root.list_templates)
    server.method("resources/read", capability="resources")(root.read_resource)
    return server


if __name__ == "__main__":
    parser = ArgumentParser(epilog="and --http [PORT], --log FILE, --verbose", allow_abbrev=False)
    parser.add_argument("--root", required=True, metavar="DIR", help="the folder to read from")
    options, rest = parser.parse_known_args()
    run(make_server(options.root), rest)
