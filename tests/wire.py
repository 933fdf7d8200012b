"""The oracle: is this message what its revision of the protocol allows?

The JSON Schemas come from the official wire types (the package `mcp-types`), one per method and
revision, and are applied with `jsonschema`. On top of them stand a few rules that a schema of one
message cannot hold, or that the generated types are too kind about:

- An optional member may be absent but is never null (the types say `X | None` for "may be absent").
- A modern result is `complete` or `input_required`; the latter only where the specification lets a
  server ask back, and with something to ask. `complete` never passes as the other arm of the union.
- A legacy result has none of the modern members; `ping` and `logging/setLevel` answer exactly `{}`.
- A legacy tool's property schemas are objects.
- -32000 to -32019 are nobody's; -32020 to -32099 hold three codes, modern only; -32002 and -32042
  are not modern.
- An error carries the id of its request if that could be read, and no `id` member otherwise.

`mcp-types` has one module for all legacy revisions, generated from 2025-11-25, and uses it for
2025-06-18 too. What matters of the difference: 2025-06-18 gives an error without a readable id no
legal form at all (`id` is required, and null is no id). The specification's later revisions leave
the member out, and this oracle accepts that for 2025-06-18 as well. Everything else in a reply of
ours is legal under both, so a legacy reply is held to the union of the rules of both revisions.

`check_reply` and `check_notification` raise `WireError`. `Conversation` applies them to one
connection; `watch` to every server in this process, with what it found in `violations`.
"""

from __future__ import annotations

import json
import threading
import types
import weakref
from collections.abc import Mapping
from functools import cache
from typing import Any, get_args

import mcp_types._v2025_11_25 as v2025
import mcp_types._v2026_07_28 as v2026
from jsonschema import Draft202012Validator
from mcp_types import methods
from pydantic import TypeAdapter

MODERN = "2026-07-28"
LEGACY = ("2025-11-25", "2025-06-18")
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
SERVER_INFO_KEY = "io.modelcontextprotocol/serverInfo"
MODERN_MEMBERS = {"resultType", "ttlMs", "cacheScope"}
EMPTY = {"ping", "logging/setLevel"}

ERROR_OBJECTS = {
    -32700: v2026.ParseError,
    -32600: v2026.InvalidRequestError,
    -32601: v2026.MethodNotFoundError,
    -32602: v2026.InvalidParamsError,
    -32603: v2026.InternalError,
}
MODERN_ERRORS = {
    -32020: v2026.HeaderMismatchError,
    -32021: v2026.MissingRequiredClientCapabilityError,
    -32022: v2026.UnsupportedProtocolVersionError,
}


class WireError(AssertionError):
    """A message that the protocol does not allow."""


# -- schemas


@cache
def validator(wire_type: Any) -> Draft202012Validator:
    """The JSON Schema of a wire type, with absent meaning absent."""
    return Draft202012Validator(strict(TypeAdapter(wire_type).json_schema()))


def strict(schema: Any) -> Any:
    """`X | null, default null` is how the types spell an optional member; make it `X`."""
    if isinstance(schema, list):
        return [strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    arms = schema.get("anyOf", [])
    if {"type": "null"} in arms and schema.get("default", 0) is None:
        rest = [arm for arm in arms if arm != {"type": "null"}]
        return {"anyOf": [strict(arm) for arm in rest]}
    return {key: strict(value) for key, value in schema.items()}


def fits(value: Any, wire_type: Any, what: str) -> None:
    for problem in validator(wire_type).iter_errors(value):
        where = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in problem.absolute_path)
        raise WireError(f"{what}{where}: {problem.message[:500]}")


def demand(condition: object, text: str) -> None:
    if not condition:
        raise WireError(text)


# -- single messages


def revision_of(message: Any, negotiated: str | None = None) -> str:
    """The revision that a client's message speaks: its own `_meta` decides, then the handshake."""
    params = message.get("params") if isinstance(message, Mapping) else None
    meta = params.get("_meta") if isinstance(params, Mapping) else None
    if isinstance(meta, Mapping) and VERSION_KEY in meta:
        return MODERN
    return negotiated or LEGACY[0]


def is_id(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def id_key(value: Any) -> tuple[str, Any]:
    """Ids are the same if type and value are; 1.0 may be taken as 1."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return type(value).__name__, value if is_id(value) else None


def answers(message: Any, id: Any) -> bool:
    """Is this message the reply to the request with that id?"""
    return (
        isinstance(message, dict)
        and "method" not in message
        and "id" in message
        and id_key(message["id"]) == id_key(id)
    )


def check_reply(request: Any, reply: Any, revision: str) -> None:
    """Raise `WireError` if `reply` is no legal answer to `request` in this revision.

    `request` is the client's message as an object, or None if no message could be read.
    """
    demand(isinstance(reply, dict), f"a reply is an object, got {reply!r}")
    demand(reply.get("jsonrpc") == "2.0", f"a reply has jsonrpc 2.0, got {reply!r}")
    demand("method" not in reply, f"a reply has no method: {reply!r}")
    demand(("result" in reply) != ("error" in reply), f"either result or error: {reply!r}")
    demand(set(reply) <= {"jsonrpc", "id", "result", "error"}, f"unknown members: {reply!r}")
    check_id(request, reply)
    if "error" in reply:
        check_error(reply, revision)
    else:
        demand(isinstance(request, dict), f"a result for no request: {reply!r}")
        if revision == MODERN and knows_tasks(request) and is_task(request, reply["result"]):
            check_task(request["method"], reply["result"])
        else:
            check_result(request.get("method"), reply["result"], revision)


def check_id(request: Any, reply: dict[str, Any]) -> None:
    asked = isinstance(request, dict)
    if asked and "id" not in request:
        # Only an object that is no message at all is answered without having asked.
        is_notification = request.get("jsonrpc") == "2.0" and isinstance(request.get("method"), str)
        header = "MCP-Protocol-Version is" in str(reply.get("error"))  # only HTTP has one
        demand(not is_notification or header, f"a notification got a reply: {reply!r}")
    response = asked and "method" not in request and request.keys() & {"result", "error"}
    known = asked and not response and id_key(request.get("id"))[1] is not None
    if known and isinstance(request["id"], float) and "id" not in reply and "error" in reply:
        return  # 1.0 may also be refused
    if not known:
        demand("id" not in reply, f"an id out of nowhere: {reply!r}")
        return
    demand("id" in reply, f"the reply to {request['id']!r} has no id: {reply!r}")
    same = is_id(reply["id"]) and id_key(reply["id"]) == id_key(request["id"])
    demand(same, f"asked with id {request['id']!r}, got {reply['id']!r}")


def check_error(reply: dict[str, Any], revision: str) -> None:
    response = v2026.JSONRPCErrorResponse if revision == MODERN else v2025.JSONRPCErrorResponse
    fits(reply, response, "reply")
    code = reply["error"]["code"]
    demand(not isinstance(code, bool), f"a code is a number: {reply!r}")
    demand(not -32019 <= code <= -32000 or code == -32002, f"the code {code} has no meaning")
    if code in ERROR_OBJECTS:
        fits(reply["error"], ERROR_OBJECTS[code], "error")
    if revision == MODERN:
        demand(code not in (-32002, -32042), f"the code {code} is not modern")
    if -32099 <= code <= -32020:
        demand(code in MODERN_ERRORS or code == -32042, f"the code {code} is reserved")
    if code in MODERN_ERRORS:
        fits(reply, MODERN_ERRORS[code], "reply")


def check_result(method: Any, result: Any, revision: str) -> None:
    demand(isinstance(result, dict), f"a result is an object, got {result!r}")
    if revision == MODERN:
        check_modern_result(method, result)
    else:
        check_legacy_result(method, result, revision)


def check_modern_result(method: str, result: dict[str, Any]) -> None:
    kind = result.get("resultType")
    demand(kind in ("complete", "input_required"), f"resultType {kind!r} of {method}")
    declared = methods.SERVER_RESULTS.get((method, MODERN), v2026.Result)
    arms = get_args(declared) if isinstance(declared, types.UnionType) else (declared,)
    if kind == "input_required":
        demand(v2026.InputRequiredResult in arms, f"{method} cannot ask for input")
        fits(result, v2026.InputRequiredResult, method)
        demand(result.keys() & {"inputRequests", "requestState"}, f"{method} asks for nothing")
        demand(not result.keys() & {"ttlMs", "cacheScope"}, f"{method}: hints on input_required")
    else:
        fits(result, arms[0], method)
    info = result.get("_meta", {}).get(SERVER_INFO_KEY)
    if info is not None:
        fits(info, v2026.Implementation, f"{method} serverInfo")
    for tool in result.get("tools", []) if method == "tools/list" else []:
        demand("execution" not in tool, f"tool {tool['name']}: execution is not modern")


# The tasks extension has no package of types. A client that declared it may get a task instead of
# a result: https://github.com/modelcontextprotocol/ext-tasks

TASK = {
    "type": "object",
    "required": ["resultType", "taskId", "status", "createdAt", "lastUpdatedAt", "ttlMs"],
    "properties": {
        "taskId": {"type": "string"},
        "statusMessage": {"type": "string"},
        "createdAt": {"type": "string"},
        "lastUpdatedAt": {"type": "string"},
        "ttlMs": {"type": ["integer", "null"], "minimum": 1},
        "pollIntervalMs": {"type": "integer", "minimum": 1},
        "resultType": {"enum": ["complete", "task"]},
        "_meta": {"type": "object"},
    },
}
OUTCOMES = {"input_required": "inputRequests", "completed": "result", "failed": "error"}


def knows_tasks(request: dict[str, Any]) -> bool:
    declared = request["params"]["_meta"].get("io.modelcontextprotocol/clientCapabilities", {})
    extensions = declared.get("extensions")
    return isinstance(extensions, dict) and "io.modelcontextprotocol/tasks" in extensions


def is_task(request: dict[str, Any], result: Any) -> bool:
    begun = request.get("method") == "tools/call" and result.get("resultType") == "task"
    return begun or request.get("method") == "tasks/get"


def check_task(method: str, task: dict[str, Any]) -> None:
    for problem in Draft202012Validator(TASK).iter_errors(task):
        raise WireError(f"{method}: {problem.message[:500]}")
    begun = method == "tools/call"
    demand(task["resultType"] == ("task" if begun else "complete"), f"resultType of {method}")
    status = task["status"]
    demand(status in (*OUTCOMES, "working", "cancelled"), f"a task is {status!r}")
    wanted = set() if begun else {OUTCOMES.get(status)} - {None}
    more = task.keys() - TASK["properties"].keys() - {"status"}
    demand(more == wanted, f"a task that is {status} has {sorted(more)}")
    if "result" in task:
        check_modern_result("tools/call", task["result"])
    if "error" in task:
        check_error({"jsonrpc": "2.0", "id": 1, "error": task["error"]}, MODERN)
    if "inputRequests" in task:
        asked = {"resultType": "input_required", "inputRequests": task["inputRequests"]}
        check_modern_result("tools/call", asked)


def check_legacy_result(method: str, result: dict[str, Any], revision: str) -> None:
    fits(result, methods.SERVER_RESULTS.get((method, revision), v2025.Result), method)
    demand(not result.keys() & MODERN_MEMBERS, f"modern members in a legacy {method}: {result!r}")
    demand(SERVER_INFO_KEY not in result.get("_meta", {}), f"modern _meta in a legacy {method}")
    demand(method not in EMPTY or result == {}, f"{method} answers {{}}, got {result!r}")
    for tool in result.get("tools", []) if method == "tools/list" else []:
        for key in "inputSchema", "outputSchema":
            for name, schema in tool.get(key, {}).get("properties", {}).items():
                is_object = isinstance(schema, dict)
                demand(is_object, f"{tool['name']}.{key}.{name} is {schema!r}, not a schema object")


def check_notification(message: Any, revision: str) -> None:
    """Raise `WireError` if a server may not send this notification in this revision."""
    demand(isinstance(message, dict), f"a notification is an object, got {message!r}")
    demand("id" not in message, f"a server sent a request: {message!r}")
    method = message.get("method")
    known = methods.SERVER_NOTIFICATIONS.get((method, revision))
    official = any(name == method for name, _ in methods.SERVER_NOTIFICATIONS)
    demand(known or not official, f"{method} does not exist in {revision}")
    base = v2026.JSONRPCNotification if revision == MODERN else v2025.JSONRPCNotification
    fits(message, known or base, str(method))


# -- a connection


def parse(line: str) -> Any:
    """One line as strict JSON: no line break inside, no NaN, encodable."""
    demand("\n" not in line.rstrip("\n") and "\r" not in line, f"a line break in {line!r}")
    line.encode()  # a lone surrogate cannot be sent

    def refuse(token: str) -> None:
        raise WireError(f"{token} is no JSON: {line!r}")

    return json.loads(line, parse_constant=refuse)


def readable(line: str) -> Any:
    """The message in a client's line, or None if there is no telling what it says."""
    try:
        message = json.loads(line.removeprefix("\ufeff"), parse_constant=int)  # int("NaN") raises
        json.dumps(message, ensure_ascii=False, allow_nan=False).encode()  # 1e999
    except (ValueError, RecursionError):
        return None
    return message


class Conversation:
    """The requests and replies of one connection, matched by id and checked as they come."""

    def __init__(self) -> None:
        self.negotiated: str | None = None
        self.revisions: set[str] = set()
        self._open: dict[tuple[str, Any], list[Any]] = {}
        self._lock = threading.Lock()

    def asked(self, message: Any) -> None:
        """The client sent this."""
        if isinstance(message, dict) and "method" in message:
            self.revisions.add(revision_of(message, self.negotiated))
        if isinstance(message, dict) and "id" in message:
            with self._lock:
                self._open.setdefault(id_key(message["id"]), []).append(message)

    def answered(self, line: str) -> None:
        """The server sent this line."""
        message = parse(line)
        if isinstance(message, dict) and "method" in message:
            self.told(message)
        else:
            self.replied(message)

    def told(self, message: Any) -> None:
        """A notification may belong to any revision that this connection has spoken."""
        problems = []
        for revision in self.revisions or {MODERN}:
            try:
                return check_notification(message, revision)
            except WireError as problem:
                problems.append(problem)
        raise problems[0]

    def replied(self, reply: Any) -> None:
        key = id_key(reply.get("id")) if isinstance(reply, dict) and "id" in reply else None
        with self._lock:
            asked = self._open.get(key, []) if key else []
            request = asked.pop(0) if asked else None
        demand(key is None or request is not None, f"an answer to no request: {reply!r}")
        self.settle(request, reply)

    def forget(self, request: Any) -> None:
        """This request was answered by another way."""
        if isinstance(request, dict) and "id" in request:
            with self._lock:
                asked = self._open.get(id_key(request["id"]), [])
                asked[:] = [one for one in asked if one is not request]

    def settle(self, request: Any, reply: Any) -> None:
        check_reply(request, reply, revision_of(request, self.negotiated))
        if isinstance(request, dict) and request.get("method") == "initialize":
            version = reply.get("result", {}).get("protocolVersion")
            demand(version is None or version in LEGACY, f"initialize answered {version!r}")
            self.negotiated = version or self.negotiated


# -- every server in this process

violations: list[str] = []


def watch(server_class: Any, peer_class: Any = None) -> None:
    """Check everything that servers of this class say, from now on.

    Nothing is raised inside the server, where it could be caught; `violations` collects.
    """
    talks: weakref.WeakKeyDictionary[Any, Conversation] = weakref.WeakKeyDictionary()
    handle, handle_line = server_class.handle, server_class.handle_line

    def watched_handle(self: Any, message: Any, peer: Any = None) -> Any:
        talk = talks.setdefault(self if peer is None else peer, Conversation())
        talk.asked(message)
        reply = handle(self, message, peer)
        if reply is not None:
            talk.forget(message)
            guarded(lambda: talk.settle(message, json.loads(json.dumps(reply))), message)
        return reply

    def watched_line(self: Any, line: str, peer: Any = None) -> Any:
        reply = handle_line(self, line, peer)
        if reply is not None:
            guarded(lambda: check_line(line, reply), line)
        return reply

    server_class.handle, server_class.handle_line = watched_handle, watched_line
    if peer_class is not None:
        watch_peers(peer_class, talks)


def watch_peers(peer_class: Any, talks: Any) -> None:
    """Check what servers say of their own accord, and the replies that come later."""
    init = peer_class.__init__

    def watched_init(self: Any, send: Any = None) -> None:
        def watched_send(line: str) -> None:
            talk = talks.setdefault(self, Conversation())
            guarded(lambda: talk.answered(line), line)
            original(line)

        init(self) if send is None else init(self, send)
        original, self.send = self.send, watched_send

    peer_class.__init__ = watched_init


def check_line(line: str, reply: str) -> None:
    """What can be said of a line without knowing what was negotiated."""
    parsed, message = parse(reply), readable(line)
    check_id(message, parsed)
    if "error" in parsed:
        check_error(parsed, revision_of(message))


def guarded(check: Any, about: Any) -> None:
    try:
        check()
    except Exception as problem:
        violations.append(f"{problem!s}\n  in answer to {str(about)[:300]}")
