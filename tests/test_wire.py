"""The oracle itself: it accepts what is right, and every wrong reply in the table is refused.

Without this, a suite in which every reply is "validated" would prove nothing.
"""

import json

import pytest
import wire
from support import LEGACY, META, MODERN, OLD, Stdio, Stub, initialize, legacy, modern
from wire import WireError, check_notification, check_reply

INFO = {"io.modelcontextprotocol/serverInfo": {"name": "s", "version": "1"}}
HINTS = {"ttlMs": 0, "cacheScope": "private"}
DISCOVERED = {"supportedVersions": [MODERN], "capabilities": {}, **HINTS}
TOOL = {"name": "t", "inputSchema": {"type": "object"}}


def result(_id=1, **members):
    return {"jsonrpc": "2.0", "id": _id, "result": members}


def modern_result(_id=1, **members):
    return result(_id, **{"resultType": "complete", "_meta": INFO, **members})


def error(code, data=None, **members):
    body = {"code": code, "message": "m"} | ({} if data is None else {"data": data})
    return {"jsonrpc": "2.0", "id": 1, "error": body} | members


def without(message, member):
    return {key: value for key, value in message.items() if key != member}


CALL = modern("tools/call", {"name": "t"})
TEXT = [{"type": "text", "text": "x"}]
ROOTS = {"who": {"method": "roots/list"}}

RIGHT = [
    (modern("tools/list"), modern_result(tools=[TOOL], **HINTS), MODERN),
    (modern("server/discover"), modern_result(**DISCOVERED), MODERN),
    (CALL, modern_result(content=TEXT, structuredContent=None), MODERN),
    (CALL, modern_result(content=[], structuredContent=[1]), MODERN),
    (CALL, result(resultType="input_required", inputRequests=ROOTS), MODERN),
    (CALL, result(resultType="input_required", requestState="s"), MODERN),
    (CALL, error(-32602), MODERN),
    (CALL, error(1001, {"any": 1}), MODERN),
    (CALL, error(-32021, {"requiredCapabilities": {"sampling": {}}}), MODERN),
    (CALL, error(-32022, {"supported": [MODERN], "requested": "x"}), MODERN),
    (modern("acme/echo"), modern_result(anything=1), MODERN),
    (legacy("tools/list"), result(tools=[TOOL]), LEGACY),
    (legacy("tools/call"), result(content=TEXT, structuredContent={}), OLD),
    (legacy("ping", id="p"), result("p"), LEGACY),
    (legacy("resources/read"), error(-32002, {"uri": "x"}), LEGACY),
    (None, without(error(-32700), "id"), MODERN),
    (None, without(error(-32700), "id"), OLD),
    (legacy("ping", id=None), without(error(-32600), "id"), LEGACY),
    (legacy("ping", id=1.0), result(1), LEGACY),
]  # fmt: skip

WRONG = {
    "an array": (CALL, [], MODERN),
    "nothing but jsonrpc": (CALL, {"jsonrpc": "2.0", "id": 1}, MODERN),
    "another jsonrpc": (CALL, modern_result(content=[]) | {"jsonrpc": "1.0"}, MODERN),
    "result and error": (CALL, modern_result(content=[]) | error(-32602), MODERN),
    "a member too many": (CALL, modern_result(content=[]) | {"x": 1}, MODERN),
    "no id": (CALL, without(modern_result(content=[]), "id"), MODERN),
    "another id": (CALL, modern_result(2, content=[]), MODERN),
    "the id as a string": (CALL, modern_result("1", content=[]), MODERN),
    "true for 1": (CALL, modern_result(True, content=[]), MODERN),
    "id null": (None, error(-32700, id=None), MODERN),
    "id null for 2025-06-18": (None, error(-32700, id=None), OLD),
    "an id out of nowhere": (None, error(-32700), MODERN),
    "an answer to a notification": (without(CALL, "id"), without(error(-32601), "id"), MODERN),
    "a result for nothing": (None, without(modern_result(), "id"), MODERN),
    "no resultType": (CALL, result(content=[]), MODERN),
    "resultType banana": (CALL, modern_result(content=[], resultType="banana"), MODERN),
    "no content": (CALL, modern_result(structuredContent={}), MODERN),
    "content null": (CALL, modern_result(content=None), MODERN),
    "isError null": (CALL, modern_result(content=[], isError=None), MODERN),
    "isError yes": (CALL, modern_result(content=[], isError="yes"), MODERN),
    "an unknown block": (CALL, modern_result(content=[{"type": "video"}]), MODERN),
    "a text block without text": (CALL, modern_result(content=[{"type": "text"}]), MODERN),
    "a question that asks nothing": (CALL, result(resultType="input_required"), MODERN),
    "a question about an odd thing": (
        CALL,
        result(resultType="input_required", inputRequests={"a": {"method": "tools/list"}}),
        MODERN,
    ),
    "a question from tools/list": (
        modern("tools/list"),
        result(resultType="input_required", requestState="s"),
        MODERN,
    ),
    "a question with hints": (
        CALL,
        result(resultType="input_required", requestState="s", ttlMs=1),
        MODERN,
    ),
    "a list without hints": (modern("tools/list"), modern_result(tools=[]), MODERN),
    "a negative ttl": (
        modern("tools/list"),
        modern_result(tools=[], **HINTS | {"ttlMs": -1}),
        MODERN,
    ),
    "ttl true": (modern("tools/list"), modern_result(tools=[], **HINTS | {"ttlMs": True}), MODERN),
    "ttl 1.5": (modern("tools/list"), modern_result(tools=[], **HINTS | {"ttlMs": 1.5}), MODERN),
    "an odd scope": (
        modern("tools/list"),
        modern_result(tools=[], ttlMs=1, cacheScope="all"),
        MODERN,
    ),
    "a tool without a schema": (
        modern("tools/list"),
        modern_result(tools=[{"name": "t"}], **HINTS),
        MODERN,
    ),
    "a tool with execution": (
        modern("tools/list"),
        modern_result(tools=[TOOL | {"execution": {}}], **HINTS),
        MODERN,
    ),
    "an input schema of an array": (
        modern("tools/list"),
        modern_result(tools=[TOOL | {"inputSchema": {"type": "array"}}], **HINTS),
        MODERN,
    ),
    "description null": (
        modern("tools/list"),
        modern_result(tools=[TOOL | {"description": None}], **HINTS),
        MODERN,
    ),
    "serverInfo without version": (
        CALL,
        modern_result(content=[], _meta={wire.SERVER_INFO_KEY: {"name": "s"}}),
        MODERN,
    ),
    "a discover without versions": (
        modern("server/discover"),
        modern_result(capabilities={}, **HINTS),
        MODERN,
    ),
    "a code as a string": (CALL, error("-32602"), MODERN),
    "a code true": (CALL, error(True), MODERN),
    "a message that is none": (CALL, {"jsonrpc": "2.0", "id": 1, "error": {"code": 1}}, MODERN),
    "a code of nobody's": (CALL, error(-32000), MODERN),
    "a reserved code": (CALL, error(-32050), MODERN),
    "a legacy code": (CALL, error(-32002), MODERN),
    "another legacy code": (CALL, error(-32042), MODERN),
    "a list for a capability": (
        CALL,
        error(-32021, {"requiredCapabilities": ["sampling"]}),
        MODERN,
    ),
    "a missing capability without data": (CALL, error(-32021), MODERN),
    "a version error without data": (CALL, error(-32022), MODERN),
    "a modern code for a legacy client": (legacy("tools/list"), error(-32050), LEGACY),
    "modern members in a legacy result": (legacy("tools/list"), modern_result(tools=[]), LEGACY),
    "hints in a legacy result": (legacy("tools/list"), result(tools=[], ttlMs=1), LEGACY),
    "serverInfo in a legacy result": (legacy("tools/list"), result(tools=[], _meta=INFO), LEGACY),
    "a ping that says something": (legacy("ping"), result(_meta={}), LEGACY),
    "a structured array for a legacy client": (
        legacy("tools/call"),
        result(content=[], structuredContent=[]),
        LEGACY,
    ),
    "a structured null for a legacy client": (
        legacy("tools/call"),
        result(content=[], structuredContent=None),
        OLD,
    ),
    "an output schema of an array for a legacy client": (
        legacy("tools/list"),
        result(tools=[TOOL | {"outputSchema": {"type": "array"}}]),
        LEGACY,
    ),
    "a boolean property schema for a legacy client": (
        legacy("tools/list"),
        result(tools=[{"name": "t", "inputSchema": {"type": "object", "properties": {"x": True}}}]),
        OLD,
    ),
    "an initialize without serverInfo": (
        initialize(),
        result(0, protocolVersion=LEGACY, capabilities={}),
        LEGACY,
    ),
}


@pytest.mark.parametrize(("request_", "reply", "revision"), RIGHT)
def test_a_right_reply_is_accepted(request_, reply, revision):
    check_reply(request_, reply, revision)


@pytest.mark.parametrize(("request_", "reply", "revision"), WRONG.values(), ids=WRONG)
def test_a_wrong_reply_is_refused(request_, reply, revision):
    with pytest.raises(WireError):
        check_reply(request_, reply, revision)


NOTIFICATIONS = [
    ("notifications/progress", {"progressToken": 7, "progress": 0.5}, MODERN, True),
    ("notifications/progress", {"progressToken": 7}, MODERN, False),
    ("notifications/progress", {"progressToken": {}, "progress": 1}, LEGACY, False),
    ("notifications/message", {"level": "info", "data": None}, MODERN, True),
    ("notifications/message", {"level": "loud", "data": 1}, LEGACY, False),
    ("notifications/subscriptions/acknowledged", {"notifications": {}}, LEGACY, False),
    ("notifications/elicitation/complete", {"elicitationId": "x"}, MODERN, False),
    ("notifications/tools/list_changed", None, LEGACY, True),
    ("notifications/acme", {}, MODERN, True),
]


@pytest.mark.parametrize(("method", "params", "revision", "allowed"), NOTIFICATIONS)
def test_a_notification_is_held_to_its_revision(method, params, revision, allowed):
    message = {"jsonrpc": "2.0", "method": method} | ({} if params is None else {"params": params})
    if allowed:
        check_notification(message, revision)
    else:
        with pytest.raises(WireError):
            check_notification(message, revision)


def test_a_request_from_a_server_is_refused():
    with pytest.raises(WireError, match="a server sent a request"):
        check_notification(modern("elicitation/create"), MODERN)


def test_a_line_must_be_strict_json():
    for line in ('{"a": NaN}', '{"a": -Infinity}', '{"a":\n1}', '{"a":1}\r', '{"a": "\ud800"}'):
        with pytest.raises((WireError, UnicodeEncodeError)):
            wire.parse(line)


class Liar:
    """A server whose replies break the protocol in a way that no assertion below looks at."""

    def handle(self, message, peer=None):
        return {"jsonrpc": "2.0", "id": message["id"], "result": {"tools": [], "ttlMs": -1}}

    def handle_line(self, line, peer=None):
        return json.dumps(self.handle(json.loads(line), peer))


def test_a_watched_server_cannot_lie_unnoticed():
    wire.watch(Liar)
    server = Liar()
    assert server.handle_line(json.dumps(modern("tools/list"))) is not None
    (violation,) = wire.violations
    wire.violations.clear()
    assert "resultType None of tools/list" in violation


def test_a_watched_peer_is_held_to_the_revision_it_negotiated():
    class Forgetful(Liar):
        def handle(self, message, peer=None):
            if message["method"] == "initialize":
                info = {"name": "s", "version": "1"}
                body = {"protocolVersion": OLD, "capabilities": {}, "serverInfo": info}
            else:
                body = {"tools": []}
            return {"jsonrpc": "2.0", "id": message["id"], "result": body}

    wire.watch(Forgetful)
    server = Forgetful()
    server.handle_line(json.dumps(initialize(OLD)))
    server.handle_line(json.dumps(legacy("tools/list")))
    assert wire.violations == []
    server.handle_line(json.dumps(modern("tools/list")))
    assert len(wire.violations) == 1
    wire.violations.clear()


def test_a_subprocess_cannot_lie_unnoticed(tmp_path):
    stub = Stub(tmp_path, {"tools/list": {"result": {"tools": [], "_meta": META}}})
    with Stdio(stub.command) as server:
        server.ask(initialize_free := legacy("tools/list"))
        assert stub.received() == [initialize_free]
        with pytest.raises(WireError, match="resultType None"):
            server.ask(modern("tools/list", id=2))


def test_a_subprocess_that_answers_nobody_is_noticed(tmp_path):
    stub = Stub(tmp_path, {"tools/list": {"id": 5, "result": {"tools": []}}})
    with Stdio(stub.command) as server, pytest.raises(WireError, match="an answer to no request"):
        server.ask(legacy("tools/list"))
