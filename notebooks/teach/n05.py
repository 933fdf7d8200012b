"""Notebook 5, a pipe: its exercises and its table."""

from __future__ import annotations

import io
import json
from typing import Any

from .exercise import Exercise, Mistake
from .lines import HANDSHAKE, call, error, line, result, text

check_lines = Exercise(
    "lines",
    cases=[
        (([b'{"id":1}\n'],), "one chunk, one line: the easy day"),
        (([b'{"id":1}\n{"id":2}\n'],), "two messages in one chunk"),
        (([b'{"i', b'd":', b"1}\n"],), "one message in three chunks"),
        (([b'{"id":1}\n{"id"', b":2}\n"],), "one and a half, then the other half"),
        (([b'"caf\xc3', b'\xa9"\n'],), "an é is two bytes, and the cut was between them"),
        ((['"a\u2028b"\n'.encode()],), "U+2028 is a line break for Python, but not on this wire"),
        (([b'{"id":1}\n{"id":'],), "the rest never came: it is no line"),
        (([],), "nothing came at all"),
    ],
    solution=r"""
def lines(chunks):
    whole = b"".join(chunks)
    *complete, unfinished = whole.split(b"\n")
    return [line.decode() for line in complete]
""",
    hints=[
        "stay with bytes until a line is complete, and decode only then",
        r'data.split(b"\n") cuts at this one byte and nowhere else',
        r'the last piece of data.split(b"\n") is what has no newline yet: leave it out',
    ],
    mistakes=[
        Mistake(
            r"""
def lines(chunks):
    return "".join(chunk.decode() for chunk in chunks).split("\n")[:-1]
""",
            "you decode each chunk; a chunk may end in the middle of a character",
        ),
        Mistake(
            r"""
def lines(chunks):
    whole = b"".join(chunks)
    return whole[: whole.rfind(b"\n") + 1].decode().splitlines()
""",
            "you use splitlines(), which cuts at ten characters; on this wire only \\n ends a line",
        ),
        Mistake(
            r"""
def lines(chunks):
    return [chunk.decode().strip() for chunk in chunks]
""",
            "you take each chunk for a line; a pipe does not keep what was written together",
        ),
    ],
)


class Outgoing(io.RawIOBase):
    """The writing end of a pipe: what was not flushed has not arrived."""

    def __init__(self) -> None:
        self.held, self.arrived = b"", b""

    def write(self, data: Any) -> int:
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise TypeError(f"a pipe takes bytes, not {type(data).__name__}")
        self.held += bytes(data)
        return len(bytes(data))

    def flush(self) -> None:
        self.arrived, self.held = self.arrived + self.held, b""


def echo(line: str) -> str | None:
    """A `handle_line` that is easy to foresee."""
    if not line.strip() or "notification" in line:
        return None
    return json.dumps({"got": line.strip()}, ensure_ascii=line.isascii() or not _text(line))


def _text(line: str) -> bool:
    try:
        line.encode()
    except UnicodeEncodeError:
        return False
    return True


def served(serve: Any, incoming: bytes) -> bytes:
    """What arrives at the client if the server gets these bytes."""
    outgoing = Outgoing()
    serve(io.BytesIO(incoming), outgoing, echo)
    return outgoing.arrived


check_serve = Exercise(
    "serve",
    cases=[
        ((b"one\n",), "a line in, a line out: with a newline, and flushed"),
        ((b"one\ntwo\n",), "and so on, until there is no more"),
        ((b"a notification\n",), "handle_line returned None: nothing is written"),
        (("é\n".encode(),), "bytes of UTF-8 in, bytes of UTF-8 out"),
        ((b"\xff\xfe\n",), "no UTF-8: still a line, and handle_line will say what it thinks of it"),
        ((b"one",), "the last line has no newline; it is one all the same"),
        ((b"",), "nobody said anything"),
    ],
    solution=r"""
def serve(incoming, outgoing, handle_line):
    for data in incoming:
        reply = handle_line(data.decode(errors="surrogateescape"))
        if reply is not None:
            outgoing.write(reply.encode() + b"\n")
            outgoing.flush()
""",
    hints=[
        "for data in incoming: gives one line of bytes after the other",
        'data.decode(errors="surrogateescape") never fails; handle_line refuses what is no text',
        r'reply.encode() + b"\n" is what goes out; without flush() it stays in a buffer',
    ],
    mistakes=[
        Mistake(
            r"""
def serve(incoming, outgoing, handle_line):
    for data in incoming:
        reply = handle_line(data.decode(errors="surrogateescape"))
        if reply is not None:
            outgoing.write(reply.encode() + b"\n")
""",
            "you forgot flush(): the replies sit in a buffer, and the client waits",
        ),
        Mistake(
            r"""
def serve(incoming, outgoing, handle_line):
    for data in incoming:
        reply = handle_line(data.decode())
        if reply is not None:
            outgoing.write(reply.encode() + b"\n")
            outgoing.flush()
""",
            "one byte that is no UTF-8 ends the server; let the decoder be lenient",
        ),
        Mistake(
            r"""
def serve(incoming, outgoing, handle_line):
    for data in incoming:
        reply = handle_line(data.decode(errors="surrogateescape"))
        outgoing.write(f"{reply}\n".encode())
        outgoing.flush()
""",
            "you answer notifications, with the word None",
        ),
    ],
    use=served,
    label=lambda incoming: f"serve, with {incoming!r} coming in",
)

check_belongs = Exercise(
    "belongs",
    cases=[
        (("a reply",), "this is what stdout is for"),
        (("print in a tool",), "a print is for people; on stdout it would be taken for a message"),
        (("a traceback",), "for the operator"),
        (("a progress notification",), "a notification is a message of the protocol"),
        (("'server started'",), "for people, even if it is good news"),
        (("output of a child process",), "the client did not ask for it, and cannot read it"),
    ],
    solution="""
belongs = {
    "a reply": "stdout",
    "print in a tool": "stderr",
    "a traceback": "stderr",
    "a progress notification": "stdout",
    "'server started'": "stderr",
    "output of a child process": "stderr",
}
""",
    hints=[
        "the client reads stdout as messages, one a line, and nothing else",
        "messages of the protocol to stdout; everything else, for people, to stderr",
    ],
    mistakes=[
        Mistake(
            """
belongs = dict.fromkeys(
    ["a reply", "print in a tool", "a traceback", "a progress notification",
     "'server started'", "output of a child process"], "stdout")
""",
            "you put all on stdout; the client takes each line for a message",
        ),
        Mistake(
            """
belongs = {
    "a reply": "stdout",
    "print in a tool": "stderr",
    "a traceback": "stderr",
    "a progress notification": "stderr",
    "'server started'": "stderr",
    "output of a child process": "stderr",
}
""",
            "all right but one: notifications/progress is JSON-RPC, and the client waits for it",
        ),
    ],
    use=lambda belongs, what: belongs.get(what),
    label=lambda what: f"belongs[{what!r}]",
)

LINES = [
    (line("ping", 1), result(1, {})),
    (call(2, "add", a=2, b=40), text(2, "42")),
    (call(3, "chatter", word="é"), text(3, "é, said three times")),
    (call(4, "curious"), text(4, "nothing to read")),
    (line("notifications/whatever"), None),
    ("this is no JSON", error(-32700)),
    (call(5, "add", a=1, b="x"), text(5, "…", isError=True)),
    (call(6, "add", a=-1, b=1), text(6, "0")),
]
QUIET = {line for line, reply in LINES if reply is None} | {HANDSHAKE[1]}
