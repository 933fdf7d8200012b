"""The playground's half in Python: lines go to the real server, and every answer is looked at.

It runs in the page (Pyodide), in the build (the menu) and in the tests, and is the same in all
three. It needs no thread, no socket and no process: `handle_line` is a function.
"""

from __future__ import annotations

import contextlib
import io
import json
from typing import Any, NamedTuple

from diagram import Recording

from minimcp import demo, protocol
from minimcp.context import Peer
from minimcp.protocol import ProtocolError, is_id
from minimcp.schema import Schema, explain, validate
from minimcp.server import Server

# ## Lines to try
#
# Each says how the server will answer its last line, and a test holds it to that.

META = {protocol.VERSION_KEY: protocol.MODERN[0], protocol.CAPABILITIES_KEY: {}}
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}}
HELLO["clientInfo"] = {"name": "playground", "version": "1"}
HANDSHAKE = ("initialize", HELLO), ("notifications/initialized", None)


class Entry(NamedTuple):
    """One choice of the menu."""

    label: str
    promise: str  # what comes of the last line, as `outcome` says it
    lesson: str
    lines: list[str]

    @property
    def title(self) -> str:
        return f"{self.label} → {self.promise}"


def line(method: str, params: Any = None, ident: Any = 1, **more: Any) -> str:
    """A message; a notification if it is called one."""
    named = {} if method.startswith("notifications/") else {"id": ident}
    given = {} if params is None else {"params": params}
    return json.dumps({"jsonrpc": "2.0", **named, "method": method, **given, **more})


def modern(method: str, **params: Any) -> str:
    return line(method, {**params, "_meta": META})


def call(name: str, **arguments: Any) -> str:
    return modern("tools/call", name=name, arguments=arguments)


def legacy(*asked: tuple[str, Any]) -> list[str]:
    """Requests, one after another, on a connection without `_meta`."""
    return [line(method, params, number) for number, (method, params) in enumerate(asked, 1)]


ADD = ("tools/call", {"name": "calc.add", "arguments": {"a": 2, "b": 40}})

MENU: dict[str, list[Entry]] = {
    "It works": [
        Entry(
            "Add two numbers",
            "result",
            "One request, one answer. Its _meta says which revision this is; nothing came before.",
            [call("calc.add", a=2, b=40)],
        ),
        Entry(
            "Which tools are there?",
            "result",
            "Every schema was read from the type hints of a Python function.",
            [modern("tools/list")],
        ),
        Entry(
            "Who are you?",
            "result",
            "server/discover is how a modern client learns what a server can do.",
            [modern("server/discover")],
        ),
        Entry(
            "Count words",
            "result",
            "The value comes twice: as text for the model and as structuredContent for programs.",
            [call("text.word_count", text="A client talks to one server.")],
        ),
        Entry(
            "Listen for changes",
            "notification",
            "The request stays open: the server says what it will tell of, and answers at the end.",
            [modern("subscriptions/listen", notifications={"toolsListChanged": True})],
        ),
    ],
    "The model can mend it": [
        Entry(
            "An unknown argument",
            "isError",
            "Dropping it quietly would hide a mistake; naming it lets the model try again.",
            [call("calc.add", a=2, b=40, c=1)],
        ),
        Entry(
            "A word for a number",
            "isError",
            "What was wrong, where, what was expected and what came.",
            [call("calc.add", a="two", b=40)],
        ),
        Entry(
            "Three mistakes at once",
            "isError",
            "All of them are told, so that one more try is enough.",
            [call("text.summarize_naive", txt="One. Two.", sentences=1.5)],
        ),
        Entry(
            "true is not a number",
            "isError",
            "In Python it is one; in JSON it is not.",
            [call("calc.add", a=True, b=40)],
        ),
    ],
    "The client is wrong": [
        Entry(
            "A comma too many",
            "error -32700",
            "No JSON, so no id could be read, so the error has none.",
            ['{"jsonrpc": "2.0", "id": 1, "method": "ping",}'],
        ),
        Entry(
            "NaN",
            "error -32700",
            "Python's json would read it; it is no JSON.",
            ['{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"x": NaN}}'],
        ),
        Entry(
            "One message, three lines",
            "error -32700",
            "A line is a message. Three lines are three messages, and none of these is one.",
            ["{", '"jsonrpc": "2.0", "id": 1, "method": "ping"', "}"],
        ),
        Entry(
            "A batch",
            "error -32600",
            "JSON-RPC has batches; MCP gave them up in revision 2025-06-18.",
            [f"[{line('ping')}, {line('ping', ident=2)}]"],
        ),
        Entry(
            "An id that is null",
            "error -32600",
            "JSON-RPC allows it, MCP does not: nobody could tell which answer is whose.",
            [line("ping", ident=None)],
        ),
        Entry(
            "An unknown method",
            "error -32601",
            "The message is in order, but there is no such method here.",
            [modern("tools/destroy")],
        ),
        Entry(
            "A tool as the method",
            "error -32601",
            "The error says how tools are called.",
            [modern("calc.add", a=2, b=40)],
        ),
        Entry(
            "An unknown tool",
            "error -32602",
            "No tool failed, because there is none: this is an error of the protocol.",
            [call("calc.subtract", a=2, b=40)],
        ),
    ],
    "The wrong era": [
        Entry(
            "No _meta, no handshake",
            "error -32602",
            "A request is modern by its _meta, or legacy by an initialize before it; not this one.",
            legacy(("tools/list", None)),
        ),
        Entry(
            "A revision from 2099",
            "error -32022",
            "The error lists the revisions that there are, so that the client can choose.",
            [line("tools/list", {"_meta": {**META, protocol.VERSION_KEY: "2099-01-01"}})],
        ),
        Entry(
            "A modern ping",
            "error -32601",
            "Modern clients have no ping: any request tells whether the server lives.",
            [modern("ping")],
        ),
        Entry(
            "A modern method",
            "error -32601",
            "Without _meta it is a legacy request, and those knew no server/discover.",
            legacy(*HANDSHAKE, ("server/discover", None)),
        ),
    ],
    "The older era": [
        Entry(
            "A handshake, then a call",
            "result",
            "Three messages before the first answer that anybody wanted.",
            legacy(*HANDSHAKE, ADD),
        ),
        Entry(
            "A handshake for 1999",
            "result",
            "The server answers with one that it does speak, and the client may take it or leave.",
            legacy(("initialize", {**HELLO, "protocolVersion": "1999-12-31"})),
        ),
        Entry(
            "Both eras at once",
            "result",
            "The handshake does not bind a request that brings its own _meta.",
            [*legacy(*HANDSHAKE), call("calc.add", a=2, b=40)],
        ),
    ],
    "Nothing comes back": [
        Entry(
            "A notification",
            "no answer",
            "It has no id, so there is nothing to answer, whatever it says.",
            [line("notifications/cancelled", {"requestId": 7, "reason": "too slow"})],
        ),
        Entry(
            "An answer to nothing",
            "no answer",
            "A response that nobody waits for is dropped; answering it could go on for ever.",
            ['{"jsonrpc": "2.0", "id": 7, "result": {}}'],
        ),
    ],
}


# ## What an answer looks like
#
# Small schemas, read by the validator of the package. They name what must be there; the closed
# ones (the envelope and an error) say that nothing else is.


def having(required: str, closed: bool = False, **properties: Schema) -> Schema:
    """An object with some members that must be there."""
    found = {"type": "object", "properties": properties, "required": required.split()}
    return {**found, "additionalProperties": False} if closed else found


OBJECT: Schema = {"type": "object"}
TEXT: Schema = {"type": "string"}
VERSION: Schema = {"enum": ["2.0"]}
ID: Schema = {"anyOf": [TEXT, {"type": "integer"}]}
FAILURE = having("code message", True, code={"type": "integer"}, message=TEXT, data={})
ERROR = having("jsonrpc error", True, jsonrpc=VERSION, id=ID, error=FAILURE)
NOTIFICATION = having("jsonrpc method", True, jsonrpc=VERSION, method=TEXT, params=OBJECT)

IMPLEMENTATION = having("name version", name=TEXT, version=TEXT)
TOOL = having("name inputSchema", name=TEXT, inputSchema=OBJECT, outputSchema=OBJECT)
TOOLS = {"type": "array", "items": TOOL}
BLOCKS = {"type": "array", "items": having("type", type=TEXT)}
RESULTS: dict[str, tuple[str, dict[str, Schema]]] = {  # what must be there, and what it is
    "initialize": (
        "protocolVersion capabilities serverInfo",
        {
            "protocolVersion": {"enum": list(protocol.LEGACY)},
            "capabilities": OBJECT,
            "serverInfo": IMPLEMENTATION,
        },
    ),
    "server/discover": (
        "supportedVersions capabilities",
        {"supportedVersions": {"type": "array", "items": TEXT}, "capabilities": OBJECT},
    ),
    "tools/list": ("tools", {"tools": TOOLS, "nextCursor": TEXT}),
    "tools/call": ("content", {"content": BLOCKS, "isError": {"type": "boolean"}}),
    "ping": ("", {}),
}
MODERN: dict[str, Schema] = {"resultType": {"enum": ["complete", "input_required"]}}
KEPT: dict[str, Schema] = {
    "ttlMs": {"type": "integer"},
    "cacheScope": {"enum": ["public", "private"]},
}


def result_schema(method: str, is_modern: bool) -> Schema:
    """The schema of an answer to one method, in one era."""
    required, properties = RESULTS.get(method, ("", {}))
    extra = dict(MODERN) if is_modern else {}
    extra |= KEPT if is_modern and method in protocol.CACHEABLE else {}
    result = having(f"{required} {' '.join(extra)}", **properties, **extra)
    return having("jsonrpc id result", True, jsonrpc=VERSION, id=ID, result=result)


# ## Looking at one answer

Check = tuple[bool, str]


def read(text: str) -> Any:
    """A line as JSON, or `None` if it is none."""
    try:
        return protocol.loads(text)
    except ProtocolError:
        return None


def fits(value: Any, schema: Schema, what: str) -> Check:
    problems = explain(validate(value, schema), "answer")
    return not problems, problems or f"It fits the schema of {what}."


def checks(server: Server, sent: str, said: list[str]) -> list[Check]:
    """All that can be said of what came back for one line."""
    asked, found = read(sent), [read(one) for one in said]
    strict = all(isinstance(one, dict) for one in found) and not any("\n" in one for one in said)
    if not strict:
        return [(False, "It is no JSON object on one line.")]
    replies = [one for one in found if "method" not in one]
    results = [(True, "It is strict JSON on one line.")] if said else []
    results += [fits(one, NOTIFICATION, "a notification") for one in found if "method" in one]
    results.append(counted(asked, len(replies)))
    for reply in replies:
        results += of_reply(server, asked, reply)
    return results


def counted(asked: Any, replies: int) -> Check:
    """A request gets one answer, and what needs none gets none."""
    is_message = isinstance(asked, dict) and asked.keys() & {"method", "result", "error"}
    if is_message and "id" not in asked:
        return replies == 0, "A notification is not answered."
    if is_message and "method" not in asked:
        return replies == 0, "A response is not answered."
    if is_message and asked["method"] == "subscriptions/listen" and not replies:
        return True, "The answer comes when the subscription ends."
    return replies == 1, "There is one answer."


def of_reply(server: Server, asked: Any, reply: Any) -> list[Check]:
    request = asked if isinstance(asked, dict) else {}
    method, params = request.get("method"), request.get("params")
    params = params if isinstance(params, dict) else {}
    found = [same_id(request.get("id"), reply)]
    if "error" in reply:
        return [fits(reply, ERROR, "an error"), *found]
    meta = params.get("_meta")
    is_modern = isinstance(meta, dict) and protocol.VERSION_KEY in meta
    revision = protocol.MODERN[0] if is_modern else server.peer.version or "the older era"
    what = f"a result of {method} ({revision})"
    shape = fits(reply, result_schema(str(method), is_modern), what)
    tool = server.tools.get(str(params.get("name"))) if method == "tools/call" else None
    more = of_value(tool.listed(True), reply["result"]) if tool and shape[0] else []
    return [shape, *found, *more]


def same_id(ident: Any, reply: Any) -> Check:
    if not is_id(ident):
        return "id" not in reply, "It has no id, since none could be read."
    same = type(reply.get("id")) is type(ident) and reply["id"] == ident
    return same, f"It has the id of the request, {json.dumps(ident)}."


def of_value(tool: Any, result: Any) -> list[Check]:
    """A structured value fits what its tool promised, and the text says the same."""
    if "structuredContent" not in result:
        return []
    value, promised = result["structuredContent"], tool.get("outputSchema", {})
    text = result["content"][0].get("text") if result["content"] else None
    twice = isinstance(text, str) and read(text) == value
    return [
        fits(value, promised, f"what {tool['name']} returns"),
        (twice, "The text and structuredContent are the same value."),
    ]


def outcome(said: list[str]) -> str:
    """What came back, in a word or two."""
    if not said:
        return "no answer"
    last = read(said[-1])
    if not isinstance(last, dict):
        return "no JSON"
    if "method" in last:
        return "notification"
    result, error = last.get("result"), last.get("error")
    if isinstance(error, dict):
        return f"error {error.get('code')}"
    return "isError" if isinstance(result, dict) and result.get("isError") else "result"


def for_the_model(said: list[str]) -> str:
    """The text that a host would show to its model."""
    last = read(said[-1]) if said else None
    result = last.get("result") if isinstance(last, dict) else None
    blocks = result.get("content") if isinstance(result, dict) else None
    found = [block for block in blocks or () if isinstance(block, dict)]
    return "\n".join(block["text"] for block in found if isinstance(block.get("text"), str))


# ## A conversation


class Conversation:
    """One connection to a server: what was said on it, and the picture of that."""

    def __init__(self, server: Server = demo.server) -> None:
        self.server = server
        self.log = Recording("you", "server")
        self.said: list[str] = []
        server.listeners.clear()
        server.peer = Peer(self.said.append)

    def send(self, text: str) -> dict[str, Any]:
        """Send one line; what came back, and what can be said of it."""
        self.said.clear()
        self.log("you", text)
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors):
            reply = self.server.handle_line(text)
        said = [*self.said, *([] if reply is None else [reply])]
        for one in said:
            self.log("server", one)
        return {
            "sent": text,
            "said": said,
            "outcome": outcome(said),
            "model": for_the_model(said),
            "stderr": errors.getvalue(),
            "checks": checks(self.server, text, said),
        }


conversation: Conversation | None = None


def ask(question: str) -> str:
    """What the page calls, JSON in and out: some lines, on a new connection or the last one."""
    global conversation
    asked = json.loads(question)
    if asked["fresh"] or conversation is None:
        conversation = Conversation()
    exchanges = [conversation.send(one) for one in asked["lines"]]
    return json.dumps({"exchanges": exchanges, "picture": conversation.log._repr_svg_()})
