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
from contextlib import ExitStack, contextmanager, suppress
from itertools import islice
from mimetypes import guess_type
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote, unquote, unquote_to_bytes

sys.path.append(str(Path(__file__).parents[1]))  # so that it runs from a clone, not installed
from minimcp import Context, ProtocolError, Server, ToolError, run
from minimcp.protocol import INVALID_PARAMS, Params, expect

CHUNK = 100_000  # bytes that one call of read_file returns
LIMIT = 5_000_000  # bytes of a resource, which is sent whole
MOST = 1000  # entries of a folder; ten times as many resources
SCHEME = "files:///"  # our own: no host takes it for a path on its disk
TEMPLATES = {"resourceTemplates": [{"uriTemplate": SCHEME + "{+path}", "name": "any file"}]}
FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
PathHere = Annotated[str, "a path, seen from the root"]


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
        with ExitStack() as opened:
            try:
                real = Path(os.path.realpath(os.path.join(self.path, path), strict=True))
                here, parts = self.descriptor, real.relative_to(self.path).parts
                if not is_kind(os.stat(real).st_mode):  # what is no file is not even opened
                    raise refusal
                for part in (".", *parts):
                    here = os.open(part, FLAGS, dir_fd=here)
                    opened.callback(os.close, here)
                if not is_kind(os.fstat(here).st_mode):
                    raise refusal
            except (OSError, ValueError):
                raise refusal from None
            yield here

    # ## Tools

    def list_folder(self, path: PathHere = ".") -> Params:
        """List a folder. Names of folders end in a slash; `truncated`: there are more."""
        with self.open(path, stat.S_ISDIR) as folder, os.scandir(folder) as found:
            some = islice(found, MOST + 1)
            names = [one.name + "/" * one.is_dir(follow_symlinks=False) for one in some]
        entries = sorted(os.fsencode(name).decode(errors="backslashreplace") for name in names)
        return {"entries": entries[:MOST], "truncated": len(entries) > MOST}

    def read_file(self, path: PathHere, offset: int = 0) -> Params:
        """Read a text file, or the part from an offset in bytes; the next is at `next_offset`."""
        with self.open(path) as file:
            size = os.fstat(file).st_size
            if not 0 <= offset <= size:
                raise ToolError(f"offset: from 0 to {size}, the size of {path[:200]!r}")
            data = os.pread(file, CHUNK + 1, offset)
        is_last = len(data) <= CHUNK
        text, used = as_text(data[:CHUNK], is_last)
        if text is None:
            raise ToolError(f"{path[:200]!r} is no text ({size} bytes); read it as a resource")
        return {"text": text, "size": size, "next_offset": None if is_last else offset + used}

    # ## Resources

    def list_resources(self, params: Params, context: Context) -> Params:
        """The files, page by page."""
        paths = sorted(islice(self.files(), 10 * MOST))
        uris, more = context.server.page([SCHEME + quote(path) for path in paths], params)
        return {"resources": [described(uri) for uri in uris], **more}

    def read_resource(self, params: Params, context: Context) -> Params:
        """The whole content of a file: text if it is text, Base64 if not."""
        uri = expect(params, "uri", str, "params")
        path = os.fsdecode(unquote_to_bytes(uri[len(SCHEME) :])) if uri.startswith(SCHEME) else ""
        try:
            with self.open(path) as file:
                data = os.pread(file, LIMIT + 1, 0)
        except ToolError:
            code = INVALID_PARAMS if context.era == "modern" else -32002  # as it was then
            raise ProtocolError(code, f"there is no resource {uri}", {"uri": uri}) from None
        if len(data) > LIMIT:
            raise ProtocolError(INVALID_PARAMS, f"too large; use read_file: {uri}", {"uri": uri})
        text, _ = as_text(data)
        body = {"blob": base64.b64encode(data).decode()} if text is None else {"text": text}
        return {"contents": [{"uri": uri, "mimeType": described(uri)["mimeType"], **body}]}

    def files(self) -> Iterator[bytes]:
        """Every file below the root; a link is left out, wherever it leads."""
        for folder, _, names, here in os.fwalk(b".", dir_fd=self.descriptor):
            for name in names:
                with suppress(OSError):  # it may be gone by now
                    if stat.S_ISREG(os.stat(name, dir_fd=here, follow_symlinks=False).st_mode):
                        yield os.path.normpath(os.path.join(folder, name))


def as_text(data: bytes, is_last: bool = True) -> tuple[str | None, int]:
    """The text, and how many bytes it is: a character may be cut in two. `None` for no text."""
    try:
        text, used = codecs.utf_8_decode(data, "strict", is_last)
    except UnicodeDecodeError:
        return None, 0
    return None if "\0" in text else text, used


def described(uri: str) -> dict[str, str]:
    """A resource as it is listed; its name is what a person would call it."""
    name = unquote(uri.removeprefix(SCHEME), errors="backslashreplace")
    mime = guess_type(uri)[0] or "application/octet-stream"
    return {"uri": uri, "name": name, "mimeType": mime}


def make_server(folder: str) -> Server:
    """A server for one folder; what it says may be kept for five seconds, by this user only."""
    root = Root(folder)
    server = Server("files", version="1.0.0", ttl_ms=5000, cache_scope="private", page_size=100)
    for tool in (root.list_folder, root.read_file):
        server.tool(annotations={"readOnlyHint": True})(tool)
    server.method("resources/list", capability="resources")(root.list_resources)
    server.method("resources/templates/list")(lambda params, context: TEMPLATES)
    server.method("resources/read")(root.read_resource)
    return server


if __name__ == "__main__":
    parser = ArgumentParser(epilog="and --http [PORT], --log FILE, --verbose", allow_abbrev=False)
    parser.add_argument("--root", required=True, metavar="DIR", help="the folder to read from")
    options, rest = parser.parse_known_args()
    if not (os.path.isdir(options.root) and os.access(options.root, os.R_OK | os.X_OK)):
        sys.exit(f"--root {options.root}: this is no folder that can be read; name another")
    run(make_server(options.root), rest)
