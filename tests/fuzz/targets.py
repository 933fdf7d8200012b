"""What is fuzzed, and what must hold: one function a target, from bytes to nothing.

A target reads its bytes as text in lines, gives them to the code, and raises `AssertionError` if
the code does what it never may. Any other exception is a finding too. Nothing here needs the
fuzzer: the suite runs every seed and every old crash through the same functions.

| target | its lines |
|---|---|
| seam | a conversation: one message a line, to one server |
| schema | a schema of the small subset, and a value |
| dialects | any schema, and a value |
| headers | header lines, an empty line, a body: to the header contract alone |
| asgi | the same, to the whole app |
"""

from __future__ import annotations

import asyncio
import atexit
import base64
import contextlib
import json
import re
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import wire
from everything import everything
from jsonschema import Draft7Validator, Draft202012Validator
from jsonschema.exceptions import SchemaError

from minimcp.context import Context, Peer
from minimcp.envelope import is_request
from minimcp.http import App, read_headers
from minimcp.http_headers import MARK, annotated, argument, as_text, check, encode, stands_for
from minimcp.protocol import HEADER_MISMATCH, NAMED, ProtocolError, dumps, loads
from minimcp.schema import SUBSET, checker, explain, validate

LISTEN = "subscriptions/listen"
ANSWERS = {"result", "error"}
LINES = 6  # of one conversation
NONSENSE = object()
SERVER = everything()


class Sink:
    """A stderr for tests of ten million inputs."""

    def write(self, text: str) -> int:
        return len(text)

    def flush(self) -> None:
        pass


@contextlib.contextmanager
def no_surprise() -> Iterator[None]:
    """Nothing that happens inside may surprise the server: no traceback reaches the operator."""
    surprises: list[Any] = []
    hook, stderr = sys.excepthook, sys.stderr
    sys.excepthook, sys.stderr = lambda *found: surprises.append(found[1]), Sink()
    try:
        yield
    finally:
        sys.excepthook, sys.stderr = hook, stderr
    if surprises:
        raise AssertionError(f"a surprise for the server: {surprises[0]!r}") from surprises[0]


# -- replies


def readable(line: str) -> Any:
    """The message in a line; `NONSENSE` if it is no strict JSON with numbers that can be kept."""
    message = wire.readable(line)
    return NONSENSE if message is None and line.strip("\ufeff \t\r\n") != "null" else message


def wants_reply(message: Any) -> bool:
    """Whether this is a request that has to be answered at once."""
    named = isinstance(message, dict) and isinstance(message.get("method"), str)
    asks = named and message.get("jsonrpc") == "2.0" and wire.is_id(message.get("id"))
    return asks and message["method"] != LISTEN


def is_unaddressed(message: Any) -> bool:
    """Whether an error has to say that this is no message, and cannot say to which request."""
    if not isinstance(message, dict):
        return True
    if wire.is_id(message.get("id")) or ("method" not in message and message.keys() & ANSWERS):
        return False
    named = message.get("jsonrpc") == "2.0" and isinstance(message.get("method"), str)
    return "id" in message or not named


def forget_cancelled(talk: wire.Conversation, message: Any) -> None:
    """What was cancelled is answered no more, and its id is free again."""
    told = isinstance(message, dict) and message.get("jsonrpc") == "2.0" and "id" not in message
    params = message.get("params") if told else None
    if isinstance(params, dict) and message.get("method") == "notifications/cancelled":
        talk._open.pop(wire.id_key(params.get("requestId")), None)


def check_answer(talk: wire.Conversation, line: str, reply: str | None) -> None:
    """One line and what came back on it; `talk` knows the lines before."""
    if not line or line.isspace():
        assert reply is None, reply
        return
    message = readable(line)
    talk.asked(message)
    forget_cancelled(talk, message)
    blind = is_unaddressed(message)
    if reply is None:
        assert not blind and not wants_reply(message), f"no word about {line!r}"
        return
    said = wire.parse(reply)
    talk.replied(said)
    if "id" not in said:
        talk.forget(message)  # it was about this line, and leaves nothing open
    error = said.get("error", {})
    greeted = talk.negotiated or wire.revision_of(message) == wire.MODERN
    assert "result" not in said or greeted or message["method"] == "ping", f"no handshake: {line}"
    assert blind is ("id" not in said), f"{line!r}: {reply}"
    assert error.get("code") != -32603, f"an internal error for {line!r}: {reply}"
    assert (error.get("code") == -32700) is (message is NONSENSE), f"{line!r}: {reply}"
    assert len(reply) < 20_000 + 8 * len(line), f"{len(line)} bytes in, {len(reply)} out"


def seam(data: bytes) -> None:
    heard: list[str] = []
    peer, talk = Peer(heard.append), wire.Conversation()
    with no_surprise():
        for line in data.decode(errors="surrogateescape").split("\n")[:LINES]:
            before = len(heard)
            reply = SERVER.handle_line(line, peer)
            check_answer(talk, line, reply)
            for told in heard[before:]:
                talk.answered(told)
    listening = {context.id for context in SERVER.listeners if not context.cancelled}
    assert set(peer.in_flight) == listening, f"left in flight: {peer.in_flight}"
    SERVER.listeners.clear()


# -- schemas


def pair(data: bytes) -> tuple[Any, Any]:
    """A schema and a value, one a line; nothing if they are none."""
    first, _, second = data.decode(errors="replace").partition("\n")
    with contextlib.suppress(ProtocolError):
        return loads(first), loads(second)
    return None, None


@lru_cache(1000)
def is_a_schema(text: str) -> bool:
    try:
        Draft202012Validator.check_schema(json.loads(text))
    except SchemaError:
        return False
    return True


def leads_into(where: str, value: Any) -> bool:
    """Whether the path of a problem can be walked in the value."""
    for name, bracket in re.findall(r'\.(\w+)|\[(\d+|"(?:[^"\\]|\\.)*")\]', where):
        try:
            value = value[name or json.loads(bracket)]
        except (KeyError, IndexError, TypeError):
            return False
    return True


def schema(data: bytes) -> None:
    """Our validator and the library agree on schemas of the subset."""
    found, value = pair(data)
    if not isinstance(found, dict) or validate(found, SUBSET):
        return
    assert is_a_schema(kept(found)), f"the subset holds what is no schema: {found}"
    problems = checker(found)(value)
    expected = Draft202012Validator(found).is_valid(value)
    assert (not problems) is expected, f"{found} and {value}: {problems}, the library: {expected}"
    for where, what in problems:
        assert leads_into(where, value) is (what != "missing"), (where, what)
    explain(problems, "value").encode()


def kept(found: Any) -> str:
    """A schema without what no rule looks at, so that fewer have to be looked up."""
    if isinstance(found, dict):
        found = {key: one for key, one in found.items() if key not in ("default", "description")}
    return json.dumps(found)


def dialects(data: bytes) -> None:
    """Any schema at all is refused or can be used, and says what the library says."""
    found, value = pair(data)
    if not isinstance(found, dict):
        return
    try:
        problems = checker(found, trusted=False)(value)
        explain(problems, "value").encode(errors="replace")
    except ValueError:
        return
    text = json.dumps(found)
    if not any(word in text for word in ("ef", "pattern", "unevaluated", "depend", "contains")):
        library = Draft7Validator if "draft-07" in str(found.get("$schema")) else None
        library = library or Draft202012Validator
        assert (not problems) is library(found).is_valid(value), f"{found} and {value}: {problems}"


# -- headers


def post(data: bytes) -> tuple[list[tuple[bytes, bytes]], bytes]:
    """The fields of a head, with names in lower case, and the body."""
    head, _, body = data.partition(b"\n\n")
    fields = [line.partition(b":") for line in head.split(b"\n") if b":" in line]
    return [(name.strip().lower(), value.strip(b" \t\r")) for name, _, value in fields], body


def meaning(value: str | None) -> Any:
    """What a header says, read by other means than the code; `NONSENSE` if nothing can be meant."""
    if value is None or not (len(value) > 10 and value.startswith("=?base64?")):
        return value if value is None or value.isprintable() else NONSENSE
    if not value.endswith("?="):
        return value if value.isprintable() else NONSENSE
    try:
        code = value[len("=?base64?") : -len("?=")].encode("ascii")
        text = base64.b64decode(code, validate=True).decode()
    except ValueError:
        return NONSENSE
    return text if base64.b64encode(text.encode()) == code else NONSENSE


def spoken(header: str | None, value: Any) -> bool:
    """Whether a header says this argument."""
    text = None if value is None or isinstance(value, (list, dict)) else value
    if isinstance(text, (bool, int, float)):
        text = json.dumps(text).removesuffix(".0")
        header = header and header.removesuffix(".0") if not isinstance(value, bool) else header
    return meaning(header) == text


def agree(headers: dict[str, str], message: Any) -> bool:
    """Whether headers and body tell one story, by a second opinion."""
    params = message.get("params", {})
    version = params["_meta"]["io.modelcontextprotocol/protocolVersion"]
    if headers.get("mcp-protocol-version") != version:
        return False
    if headers.get("mcp-method") != message["method"]:
        return False
    method, wanted = message["method"], {}
    if method in NAMED:
        wanted["mcp-name"] = params.get(NAMED[method])
    if method == "tools/call" and params.get("name") == "marked":
        for header in "region", "zone":
            wanted[f"mcp-param-{header}"] = argument(params.get("arguments"), (header,))
    return all(spoken(headers.get(header), value) for header, value in wanted.items())


def headers(data: bytes) -> None:
    fields, body = post(data)
    found = read_headers(fields)
    text = body.decode(errors="replace")
    assert stands_for(encode(text), text)
    assert meaning(encode(text)) == text
    assert re.fullmatch(r"([!-~]([ -~]*[!-~])?)?", encode(text)), encode(text)
    with contextlib.suppress(ProtocolError):
        message = loads(text)
        if MARK in text:  # a body may be a schema, too
            with contextlib.suppress(ValueError):
                assert all(header.isascii() for header in annotated(message))
        if not is_request(message):
            return
        context = Context(SERVER, Peer(), message)
        version = context.meta.get("io.modelcontextprotocol/protocolVersion")
        if not isinstance(version, str):
            return
        try:
            check(found, context)
            passed = True
        except ProtocolError as error:
            assert error.code == HEADER_MISMATCH
            dumps(error.reply(context.id))
            passed = False
        assert passed is agree(found, message), f"{found} and {message}: {passed}"
        told = rightly(message)
        check(told, context)
        assert agree(told, message)


def rightly(message: Any) -> dict[str, str]:
    """The headers that an honest client sends with a message."""
    params, method = message["params"], message["method"]
    says = {"mcp-method": method}
    says["mcp-protocol-version"] = params["_meta"]["io.modelcontextprotocol/protocolVersion"]
    more = {"mcp-name": params.get(NAMED.get(method, ""))}
    if method == "tools/call" and params.get("name") == "marked":
        for header in "region", "zone":
            more[f"mcp-param-{header}"] = argument(params.get("arguments"), (header,))
    texts = {header: as_text(value) for header, value in more.items()}
    return says | {header: encode(text) for header, text in texts.items() if text is not None}


# -- the app


class Here:
    """A crew of none: calls are made by who brings them."""

    def put(self, call: Any) -> None:
        call()


STATUSES = {200, 202, 400, 401, 403, 404, 405, 406, 413, 415}
LOOP = asyncio.new_event_loop()
atexit.register(LOOP.close)


class Caller:
    """The server of ASGI: brings a body, takes a response, and hangs up on an open stream."""

    def __init__(self, body: bytes, pieces: int = 1) -> None:
        size = len(body) // pieces + 1
        self.pieces = [body[at : at + size] for at in range(0, len(body) + 1, size)]
        self.taken = 0  # bytes
        self.sent: list[Any] = []
        self.bored = asyncio.Event()

    async def receive(self) -> Any:
        if self.pieces:
            piece = self.pieces.pop(0)
            self.taken += len(piece)
            return {"type": "http.request", "body": piece, "more_body": bool(self.pieces)}
        await self.bored.wait()
        return {"type": "http.disconnect"}

    async def send(self, event: Any) -> None:
        self.sent.append(event)
        if b"subscriptions/acknowledged" in event.get("body", b""):
            self.bored.set()


def scope(fields: list[tuple[bytes, bytes]], method: str = "POST", path: str = "/mcp") -> Any:
    return {"type": "http", "method": method, "path": path, "headers": fields}


def check_response(caller: Caller, fields: Any, body: bytes) -> int:
    """One whole response, and what it says is allowed; the status."""
    start, *parts = caller.sent
    assert start["type"] == "http.response.start", start
    assert start["status"] in STATUSES, start
    assert all(isinstance(one, bytes) for field in start["headers"] for one in field), start
    assert parts, "a response without a body"
    assert all(part["type"] == "http.response.body" for part in parts), parts
    assert [part.get("more_body", False) for part in parts] == [True] * (len(parts) - 1) + [False]
    found = b"".join(part["body"] for part in parts)
    told = dict(start["headers"])
    kind = told.get(b"content-type", b"").decode()
    if start["status"] == 202:
        assert not found, found
    elif kind == "application/json" or kind == "text/event-stream":
        check_content(kind, found.decode(), fields, body, caller.bored.is_set())
    else:
        assert start["status"] >= 400 and kind.startswith("text/plain"), start
    if b"content-length" in told:
        assert int(told[b"content-length"]) == len(found)
    return start["status"]


def check_content(kind: str, text: str, fields: Any, body: bytes, open_end: bool) -> None:
    """At most one reply, the last of all, and everything as the revision allows."""
    lines = [text]
    if kind == "text/event-stream":
        blocks = text.split("\n\n")
        assert blocks.pop() == "", text
        lines = [block.removeprefix("data: ") for block in blocks if not block.startswith(":")]
        assert all("\n" not in line for line in lines), text
    message = readable(body.decode(errors="surrogateescape"))
    version = read_headers(fields).get("mcp-protocol-version")
    talk = wire.Conversation()
    talk.negotiated = version if version in wire.LEGACY else None
    talk.asked(message)
    replies = []
    for line in lines:
        talk.answered(line)
        said = wire.parse(line)
        if "method" not in said:
            replies.append(said)
            assert line is lines[-1], "something after the reply"
            assert said.get("error", {}).get("code") != -32603, said
    assert len(replies) == (0 if open_end else 1), text


def asgi(data: bytes) -> None:
    fields, body = post(data)
    app = App(SERVER, max_body=10_000)
    app.crew = Here()  # type: ignore[assignment]
    fields.append((b"host", b"localhost"))
    LOOP.run_until_complete(exchange(app, scope(fields), fields, body))
    SERVER.listeners.clear()


async def exchange(app: Any, where: Any, fields: Any, body: bytes, pieces: int = 1) -> Caller:
    caller = Caller(body, pieces)
    with no_surprise():
        await asyncio.wait_for(app(where, caller.receive, caller.send), 20)
    check_response(caller, fields, body)
    return caller


TARGETS = {one.__name__: one for one in (seam, schema, dialects, headers, asgi)}


def seeds(name: str) -> list[bytes]:
    """The paragraphs of a corpus; a line with a dot stands for an empty one."""
    text = (Path(__file__).parent / "corpus" / f"{name}.txt").read_bytes()
    paragraphs = [one.strip(b"\n") for one in text.split(b"\n\n")]
    return [re.sub(rb"(?m)^\.$", b"", one) for one in paragraphs if one]


# -- speed

LEAVES = {"structuredContent", "requestState", "data", "value"}  # any JSON may stand there
LEAVES |= {"inputSchema", "outputSchema"}  # always the same
TELLING = {"jsonrpc", "resultType", "type", "method", "cacheScope", "protocolVersion", "code"}


def form(value: Any, key: str = "") -> Any:
    """The form of a message: its names and kinds, without its contents."""
    if isinstance(value, dict) and key not in LEAVES:
        return tuple(sorted((name, form(one, name)) for name, one in value.items()))
    if isinstance(value, list) and key not in LEAVES:
        return frozenset(form(one) for one in value)
    return value if key in TELLING and isinstance(value, (str, int)) else type(value).__name__


def check_each_kind_once() -> None:
    """Ask the official types only about forms that were not seen before: they are slow."""
    seen: set[Any] = set()
    checks = wire.check_reply, wire.check_notification

    def check_reply(request: Any, reply: Any, revision: str) -> None:
        method = request.get("method") if isinstance(request, dict) else None
        kind = (revision, method if isinstance(method, str) else None, form(reply))
        wire.check_id(request, reply)
        if kind not in seen:
            checks[0](request, reply, revision)
            remember(kind)

    def check_notification(message: Any, revision: str) -> None:
        kind = (revision, form(message))
        if kind not in seen:
            checks[1](message, revision)
            remember(kind)

    def remember(kind: Any) -> None:
        if len(seen) > 100_000:
            seen.clear()
        seen.add(kind)

    wire.check_reply, wire.check_notification = check_reply, check_notification
