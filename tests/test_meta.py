"""META: the metadata every modern request carries, and what a server may read from it."""

import json
import re

import pytest
from support import (
    META,
    MODERN,
    Stub,
    assert_error,
    assert_tool_error,
    complete,
    exchange,
    initialize,
    legacy,
    modern,
    plain,
)

import minimcp.protocol
from minimcp import Client, Context, Server
from minimcp.context import Peer

VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
CLIENT = "io.modelcontextprotocol/clientInfo"
SERVER_INFO = "io.modelcontextprotocol/serverInfo"
ECHO = {"name": "echo", "arguments": {"text": "x"}}
CONTENT = {"content": [{"type": "text", "text": "x"}]}


def demo():
    server = Server("demo", version="1.0.0")

    @server.tool
    def echo(text: str) -> str:
        return text

    @server.tool
    def report(context: Context) -> str:
        context.progress(1)
        return "x"

    @server.tool
    def sample(context: Context) -> str:
        context.require("sampling")
        return "x"

    return server


METHODS = ["server/discover", "tools/list", "tools/call", "no/such"]


@pytest.mark.req("S-META-01")
@pytest.mark.parametrize("method", METHODS)
def test_a_request_without_params_or_meta_is_refused(method):
    for message in legacy(method), legacy(method, {}), legacy(method, {"name": "echo"}):
        assert_error(exchange(demo(), message), -32602, "_meta")


@pytest.mark.req("S-META-02")
@pytest.mark.parametrize("method", METHODS)
def test_a_meta_without_the_version_is_refused(method):
    message = legacy(method, {"_meta": {CAPABILITIES: {}}}, 102)
    assert_error(exchange(demo(), message), -32602, VERSION, id=102)


@pytest.mark.req("S-META-03")
@pytest.mark.parametrize("method", METHODS)
def test_a_meta_without_the_capabilities_is_refused(method):
    message = legacy(method, {"_meta": {VERSION: MODERN}}, 104)
    assert_error(exchange(demo(), message), -32602, CAPABILITIES, id=104)


@pytest.mark.req("S-META-04", "S-META-09")
@pytest.mark.parametrize(
    "info", [None, {"name": "a", "version": "1"}, {"name": "b", "version": "2"}]
)
def test_who_the_client_is_may_be_said_and_changes_nothing(info):
    meta = {} if info is None else {CLIENT: info}
    assert exchange(demo(), modern("tools/call", ECHO, meta=meta)) == complete(CONTENT)
    expected = exchange(demo(), modern("server/discover"))
    assert exchange(demo(), modern("server/discover", meta=meta)) == expected


WRONG_TYPES = [
    ({"_meta": "x"}, ["_meta", "object"]),
    ({"_meta": []}, ["_meta", "object"]),
    ({"_meta": None}, ["_meta", "object"]),
    ({"_meta": {**META, VERSION: 5}}, [VERSION, "string", "5"]),
    ({"_meta": {**META, VERSION: None}}, [VERSION, "string", "null"]),
    ({"_meta": {**META, VERSION: [MODERN]}}, [VERSION, "string", "array"]),
    ({"_meta": {**META, CAPABILITIES: []}}, [CAPABILITIES, "object", "array"]),
    ({"_meta": {**META, CAPABILITIES: None}}, [CAPABILITIES, "object", "null"]),
    ({"_meta": {**META, CAPABILITIES: "all"}}, [CAPABILITIES, "object", "string"]),
]


@pytest.mark.req("S-META-05")
@pytest.mark.parametrize(("params", "named"), WRONG_TYPES)
def test_metadata_of_a_wrong_type_is_refused_with_what_was_expected(params, named):
    for method in METHODS:
        assert_error(exchange(demo(), legacy(method, {**ECHO, **params})), -32602, *named)


@pytest.mark.req("S-META-05")
def test_a_legacy_meta_of_a_wrong_type_is_refused_too():
    server = demo()
    exchange(server, initialize())
    for meta in "x", [], None:
        assert_error(
            exchange(server, legacy("tools/call", {**ECHO, "_meta": meta})), -32602, "_meta"
        )


@pytest.mark.req("S-META-06", "S-ERR-12")
@pytest.mark.parametrize("declared", [{}, {"elicitation": {}}, {"Sampling": {}}])
def test_a_capability_that_was_not_declared_is_never_used(declared):
    reply = exchange(demo(), modern("tools/call", {"name": "sample"}, capabilities=declared))
    assert_error(reply, -32021, "sampling", data={"requiredCapabilities": {"sampling": {}}})
    declared = {**declared, "sampling": {}}
    reply = exchange(demo(), modern("tools/call", {"name": "sample"}, capabilities=declared))
    assert reply == complete(CONTENT)


@pytest.mark.req("S-META-06", "S-VER-14")
def test_a_legacy_client_declares_its_capabilities_once_in_the_handshake():
    server, call = demo(), legacy("tools/call", {"name": "sample"})
    exchange(server, initialize())
    assert_tool_error(exchange(server, call), "sampling")
    exchange(server, initialize(capabilities={"sampling": {}}))
    assert exchange(server, call) == plain(CONTENT)


@pytest.mark.req("S-META-07", "S-RES-01")
def test_every_result_names_the_server():
    server = demo()

    @server.method("acme/echo", capability="acme")
    def acme(params, context):
        return {"_meta": {"com.example/mine": 1}, "value": 1}

    requests = [
        modern("server/discover"),
        modern("tools/list"),
        modern("tools/call", ECHO),
        modern("tools/call", {"name": "echo", "arguments": {}}),
    ]
    for message in requests:
        meta = exchange(server, message)["result"]["_meta"]
        assert meta == {SERVER_INFO: {"name": "demo", "version": "1.0.0"}}
    meta = exchange(server, modern("acme/echo"))["result"]["_meta"]
    expected = {"com.example/mine": 1, SERVER_INFO: {"name": "demo", "version": "1.0.0"}}
    assert meta == expected


LABEL = "[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
KEY = re.compile(rf"({LABEL}(?:\.{LABEL})*/)?([A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?)?")
RESERVED = re.compile(rf"{LABEL}\.(?:mcp|modelcontextprotocol)[./]")
OFFICIAL = {
    "io.modelcontextprotocol/protocolVersion",
    "io.modelcontextprotocol/clientCapabilities",
    "io.modelcontextprotocol/clientInfo",
    "io.modelcontextprotocol/serverInfo",
    "io.modelcontextprotocol/logLevel",
    "io.modelcontextprotocol/subscriptionId",
}


def test_the_grammar_of_keys_is_what_the_specification_gives_as_examples():
    for key in (
        "com.mcp.tools/x",
        "io.modelcontextprotocol/x",
        "com.mcp/",
        "a.modelcontextprotocol/b",
    ):
        assert KEY.fullmatch(key)
        assert RESERVED.match(key)
    for key in "com.example.mcp/x", "com.example/x", "traceparent", "progressToken":
        assert KEY.fullmatch(key)
        assert not RESERVED.match(key)
    for key in "-a.b/x", "a-/x", "com..x/y", "/x", "x_":
        assert not KEY.fullmatch(key)


@pytest.mark.req("S-META-10")
def test_the_keys_we_use_obey_the_grammar_and_the_reserved_ones_are_official():
    names = [name for name in dir(minimcp.protocol) if name.endswith("_KEY")]
    keys = {getattr(minimcp.protocol, name) for name in names}
    assert len(keys) >= 5
    assert all(KEY.fullmatch(key) for key in keys)
    assert {key for key in keys if RESERVED.match(key)} <= OFFICIAL


@pytest.mark.req("S-META-10")
def test_results_use_no_reserved_key_but_those_that_are_official():
    server = demo()
    for method, params in [("server/discover", {}), ("tools/list", {}), ("tools/call", ECHO)]:
        keys = exchange(server, modern(method, params))["result"]["_meta"].keys()
        assert {key for key in keys if RESERVED.match(key)} <= OFFICIAL


@pytest.mark.req("S-META-11")
@pytest.mark.parametrize("value", [None, 1, "x", {"deep": []}])
def test_unknown_keys_and_traces_are_ignored(value):
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    extra = {"traceparent": trace, "tracestate": "a=b", "com.example/x": value, "": value}
    server = demo()
    assert exchange(server, modern("tools/call", ECHO, meta=extra)) == complete(CONTENT)
    exchange(server, initialize())
    assert exchange(server, legacy("tools/call", {**ECHO, "_meta": extra})) == plain(CONTENT)


@pytest.mark.req("S-META-12")
def test_a_progress_token_alone_does_not_make_a_request_modern():
    told = []
    server, peer = demo(), Peer(told.append)
    exchange(server, initialize(), peer)
    message = legacy("tools/call", {"name": "report", "_meta": {"progressToken": "t"}})
    assert exchange(server, message, peer) == plain(CONTENT)
    params = {"progressToken": "t", "progress": 1}
    progress = {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
    assert [json.loads(line) for line in told] == [progress]


# -- the client


def stub(tmp_path):
    listed = {"tools": [], "ttlMs": 0, "cacheScope": "private"}
    found = {"supportedVersions": [MODERN], "capabilities": {"tools": {}}}
    table = {
        "server/discover": {**found, "ttlMs": 0, "cacheScope": "private"},
        "tools/list": listed,
        "tools/call": CONTENT,
    }
    replies = {k: {"result": {"resultType": "complete", **v}} for k, v in table.items()}
    return Stub(tmp_path, replies)


def metas(tmp_path, **options):
    """The `_meta` of everything that a client with these options sends."""
    server = stub(tmp_path)
    with Client(server.command, **options) as client:
        client.list_tools()
        client.call_tool("any", {})
    assert server.methods() == ["server/discover", "tools/list", "tools/call"]
    return [message["params"]["_meta"] for message in server.received()]


@pytest.mark.req("C-META-13", "C-META-14")
def test_a_client_says_its_version_capabilities_and_name_on_every_request(tmp_path):
    for meta in metas(tmp_path):
        assert meta[VERSION] == MODERN
        assert meta[CAPABILITIES] == {}
        assert set(meta[CLIENT]) >= {"name", "version"}
        assert all(isinstance(value, str) for value in meta[CLIENT].values())


def answer(params):
    return {"action": "decline"}


DECLARED = [
    ({}, {}),
    ({"elicitation/create": answer}, {"elicitation": {}}),
    ({"sampling/createMessage": answer}, {"sampling": {}}),
    ({"roots/list": answer}, {"roots": {}}),
    (
        {"elicitation/create": answer, "sampling/createMessage": answer},
        {"elicitation": {}, "sampling": {}},
    ),
]


@pytest.mark.req("C-META-15")
@pytest.mark.parametrize(("handlers", "declared"), DECLARED)
def test_a_client_declares_exactly_the_capabilities_it_has_handlers_for(
    tmp_path, handlers, declared
):
    for meta in metas(tmp_path, on_input=handlers):
        assert meta[CAPABILITIES] == declared


@pytest.mark.req("C-META-16")
def test_an_older_server_gets_the_metadata_of_the_caller_and_nothing_else():
    sent = []
    trace = lambda sender, message: sent.append(message) if sender == "client" else None  # noqa: E731
    mine = {"traceparent": "00-1-2-03", "progressToken": "mine"}
    with Client(demo(), era="legacy", on_notification=print, trace=trace) as client:
        client.request("tools/call", {**ECHO, "_meta": mine})
    assert sent[-1]["params"]["_meta"] == mine


@pytest.mark.req("C-META-16")
def test_metadata_of_the_caller_is_sent_along_and_cannot_replace_ours(tmp_path):
    server = stub(tmp_path)
    mine = {
        "traceparent": "00-1-2-03",
        "com.example/x": [1],
        VERSION: "1999-01-01",
        CAPABILITIES: 5,
    }
    with Client(server.command) as client:
        client.request("tools/call", {"name": "any", "_meta": mine})
    meta = server.received()[-1]["params"]["_meta"]
    assert (meta["traceparent"], meta["com.example/x"]) == ("00-1-2-03", [1])
    assert (meta[VERSION], meta[CAPABILITIES]) == (MODERN, {})
    assert mine[VERSION] == "1999-01-01"
