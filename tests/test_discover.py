"""DISC: what a server says of itself before anything else, and what a client makes of it."""

import pytest
from support import MODERN, Stub, assert_error, complete, exchange, initialize, legacy, modern

from minimcp import Client, Server

INFO = {"name": "demo", "version": "1.0.0"}
SERVER_INFO = "io.modelcontextprotocol/serverInfo"
HINTS = {"ttlMs": 60_000, "cacheScope": "public"}


def demo(**options):
    server = Server("demo", version="1.0.0", **options)

    @server.tool
    def echo(text: str) -> str:
        return text

    return server


def capabilities(server):
    return exchange(server, modern("server/discover"))["result"]["capabilities"]


@pytest.mark.req("S-DISC-01", "S-DISC-02", "S-RES-03")
def test_discover_says_all_there_is_to_know():
    reply = exchange(demo(), modern("server/discover"))
    expected = {"supportedVersions": [MODERN], "capabilities": {"tools": {}}, **HINTS}
    tools = reply["result"]["capabilities"]["tools"]
    assert reply == complete(expected | {"capabilities": {"tools": tools}})


@pytest.mark.req("S-DISC-02")
def test_the_servers_name_is_in_meta_and_not_in_the_body():
    result = exchange(demo(), modern("server/discover"))["result"]
    assert result["_meta"] == {SERVER_INFO: INFO}
    assert not result.keys() & {"serverInfo", "name", "version"}


@pytest.mark.req("S-DISC-03", "S-LIST-01")
def test_tools_are_advertised_exactly_if_there_are_any():
    empty = Server("demo", version="1.0.0")
    assert "tools" not in capabilities(empty)
    assert_error(exchange(empty, modern("tools/list")), -32601, "tools/list")
    assert_error(exchange(empty, modern("tools/call", {"name": "x"})), -32601, "tools/call")
    assert "tools" in capabilities(demo())
    assert exchange(demo(), modern("tools/list"))["result"]["tools"]
    call = {"name": "echo", "arguments": {"text": "x"}}
    assert "isError" not in exchange(demo(), modern("tools/call", call))["result"]


@pytest.mark.req("S-DISC-03", "S-DISC-08", "S-LIST-01")
def test_each_registered_method_brings_its_capability_in_both_eras():
    server = demo()
    before = exchange(server, initialize())["result"]["capabilities"]
    assert before == capabilities(server)

    @server.method("prompts/list", capability="prompts")
    def prompts(params, context):
        return {"prompts": []}

    @server.method("completion/complete", capability="completions")
    def completions(params, context):
        return {"completion": {"values": []}}

    assert prompts({}, None) == {"prompts": []}  # the decorator gives the function back
    after = capabilities(server)
    assert after == before | {"prompts": {"listChanged": True}, "completions": {}}
    assert exchange(server, initialize())["result"]["capabilities"] == after
    assert exchange(server, modern("prompts/list")) == complete({"prompts": [], **HINTS})
    assert exchange(server, legacy("prompts/list"))["result"] == {"prompts": []}


@pytest.mark.req("S-DISC-04", "S-META-01")
def test_discover_without_meta_is_refused_like_any_request():
    for params in None, {}, {"_meta": {}}:
        assert_error(exchange(demo(), legacy("server/discover", params)), -32602, "_meta")


@pytest.mark.req("S-DISC-05")
@pytest.mark.parametrize("instructions", ["Use echo.", "größe\nzwei"])
def test_instructions_are_passed_on(instructions):
    server = demo(instructions=instructions)
    result = exchange(server, modern("server/discover"))["result"]
    assert result["instructions"] == instructions


@pytest.mark.req("S-DISC-05")
def test_no_instructions_means_no_member():
    assert "instructions" not in exchange(demo(), modern("server/discover"))["result"]


@pytest.mark.req("S-DISC-07")
def test_discover_is_no_legacy_method():
    server = demo()
    exchange(server, initialize())
    assert_error(exchange(server, legacy("server/discover")), -32601, "server/discover")
    assert_error(exchange(server, legacy("server/discover", {})), -32601, "server/discover")


def stub_named(tmp_path, info):
    result = {
        "supportedVersions": [MODERN],
        "capabilities": {"tools": {}},
        "resultType": "complete",
    }
    hints = {
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": {} if info is None else {SERVER_INFO: info},
    }
    content = {"content": [{"type": "text", "text": "x"}], "resultType": "complete"}
    table = {"server/discover": {"result": result | hints}, "tools/call": {"result": content}}
    return Stub(tmp_path, table)


def spoken(tmp_path, info):
    stub = stub_named(tmp_path, info)
    with Client(stub.command) as client:
        assert client.call_tool("any", {"a": 1}).text == "x"
        named = client.server_info
    return named, stub.received()


@pytest.mark.req("C-DISC-10")
def test_the_name_of_a_server_changes_nothing_that_a_client_does(tmp_path):
    other = {"name": "minimcp-demo", "version": "9", "title": "T"}
    (one, first), (two, second) = spoken(tmp_path, INFO), spoken(tmp_path, other)
    assert (one, two) == (INFO, other)
    assert first == second


@pytest.mark.req("C-DISC-10")
def test_a_server_may_stay_anonymous(tmp_path):
    named, messages = spoken(tmp_path, None)
    assert not named
    assert [message["method"] for message in messages] == ["server/discover", "tools/call"]
