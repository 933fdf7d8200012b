"""RES: what every modern result carries, what a legacy one must not, and the caching hints."""

import json

import pytest
from support import (
    assert_error,
    assert_tool_error,
    complete,
    exchange,
    initialize,
    legacy,
    modern,
    plain,
)

from minimcp import Content, InputRequired, Server

HINTS = {"ttlMs": 60_000, "cacheScope": "public"}
CACHEABLE = [
    "server/discover",
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
]
RESULTS = {
    "prompts/list": {"prompts": []},
    "resources/list": {"resources": []},
    "resources/templates/list": {"resourceTemplates": []},
    "resources/read": {"contents": [{"uri": "x:y", "text": "z"}]},
    "prompts/get": {"messages": []},
    "completion/complete": {"completion": {"values": []}},
    "acme/echo": {"value": [1]},
    "acme/empty": {},
}


def everything(**options):
    server = Server("demo", version="1.0.0", **options)

    @server.tool
    def echo(text: str) -> str:
        return text

    def answers(method, result):
        @server.method(method, capability=method.split("/")[0])
        def handler(params, context):
            return result

    for method, result in RESULTS.items():
        answers(method, result)

    @server.method("acme/none", capability="acme")
    def nothing(params, context):
        return None

    return server


METHODS = [*RESULTS, "acme/none", "server/discover", "tools/list", "tools/call"]


def ask(server, method, request=modern):
    params = {"name": "echo", "arguments": {"text": "x"}, "uri": "x:y"}
    return exchange(server, request(method, params))["result"]


@pytest.mark.req("S-RES-01", "S-RES-02")
@pytest.mark.parametrize("method", METHODS)
def test_every_modern_result_is_complete_and_says_so(method):
    assert ask(everything(), method)["resultType"] == "complete"


@pytest.mark.req("S-RES-03", "S-RES-06")
@pytest.mark.parametrize("method", METHODS)
def test_the_cacheable_results_and_no_others_carry_hints(method):
    result = ask(everything(), method)
    found = {key: result[key] for key in ("ttlMs", "cacheScope") if key in result}
    assert found == (HINTS if method in CACHEABLE else {})


@pytest.mark.req("S-RES-06")
def test_a_question_carries_no_hints_even_where_its_answer_would():
    server = Server("demo", version="1.0.0")

    @server.method("resources/read", capability="resources")
    def read(params, context):
        return InputRequired(state="seen") if context.state is None else {"contents": []}

    asked = ask(server, "resources/read")
    assert (asked["resultType"], asked.keys() & HINTS.keys()) == ("input_required", set())
    params = {"name": "echo", "arguments": {"text": "x"}, "uri": "x:y"}
    again = modern("resources/read", {**params, "requestState": asked["requestState"]})
    assert exchange(server, again) == complete({"contents": [], **HINTS})


@pytest.mark.req("S-RES-03")
@pytest.mark.parametrize("method", CACHEABLE[2:])
def test_a_result_that_says_itself_that_it_is_complete_has_hints_too(method):
    server = Server("demo", version="1.0.0")
    server.method(method)(lambda params, context: {"resultType": "complete", **RESULTS[method]})
    reply = exchange(server, modern(method, {"uri": "x:y"}))
    assert reply == complete({**RESULTS[method], **HINTS})


@pytest.mark.req("S-RES-03")
def test_a_handler_may_give_its_own_hints():
    server = Server("demo", version="1.0.0")

    @server.method("resources/read", capability="resources")
    def read(params, context):
        return {"contents": [], "ttlMs": 5, "cacheScope": "private"}

    expected = complete({"contents": [], "ttlMs": 5, "cacheScope": "private"})
    assert exchange(server, modern("resources/read", {"uri": "x:y"})) == expected


@pytest.mark.req("S-RES-10", "S-VER-14")
def test_an_older_client_gets_nothing_of_the_hints_that_a_handler_gives():
    server = Server("demo", version="1.0.0")

    @server.method("resources/read", capability="resources")
    def read(params, context):
        return {"resultType": "complete", "contents": [], "ttlMs": 5, "cacheScope": "private"}

    exchange(server, initialize())
    assert exchange(server, legacy("resources/read", {"uri": "x:y"})) == plain({"contents": []})
    assert exchange(server, modern("resources/read", {"uri": "x:y"}))["result"]["ttlMs"] == 5


@pytest.mark.req("S-RES-01", "S-RES-02", "S-RES-06", "S-META-07")
@pytest.mark.parametrize("method", ["tools/call", "prompts/get", "resources/read"])
def test_a_result_that_asks_back_names_its_type_and_the_server_and_has_no_hints(method):
    server = Server("demo", version="1.0.0")
    question = {"a": {"method": "roots/list"}}
    server.tool(lambda: InputRequired(question), name="ask")
    for other in "prompts/get", "resources/read":
        server.method(other)(lambda params, context: InputRequired(question))
    request = modern(method, {"name": "ask", "uri": "x:y"}, capabilities={"roots": {}})
    expected = {"resultType": "input_required", "inputRequests": question}
    assert exchange(server, request) == complete(expected)


@pytest.mark.req("S-RES-04", "S-RES-05")
@pytest.mark.parametrize("ttl", [0, 1, 86_400_000, 2**53])
@pytest.mark.parametrize("scope", ["public", "private"])
def test_configured_hints_are_sent(ttl, scope):
    server = everything(ttl_ms=ttl, cache_scope=scope)
    for method in CACHEABLE:
        result = ask(server, method)
        assert (type(result["ttlMs"]), result["ttlMs"], result["cacheScope"]) == (int, ttl, scope)


@pytest.mark.req("S-RES-04")
@pytest.mark.parametrize("ttl", [-1, 1.5, 1.0, True, False, "1", None])
def test_a_ttl_that_is_no_natural_number_is_refused_when_the_server_is_made(ttl):
    with pytest.raises((ValueError, TypeError), match="ttl_ms"):
        Server("demo", version="1.0.0", ttl_ms=ttl)


@pytest.mark.req("S-RES-05")
@pytest.mark.parametrize("scope", ["Public", "all", "", None, 1])
def test_a_scope_that_is_neither_is_refused_when_the_server_is_made(scope):
    with pytest.raises((ValueError, TypeError), match="cache_scope"):
        Server("demo", version="1.0.0", cache_scope=scope)


@pytest.mark.req("S-RES-07")
@pytest.mark.parametrize("scope", ["public", "private"])
def test_all_pages_have_the_same_hints(scope):
    server = Server("demo", version="1.0.0", cache_scope=scope, page_size=2)
    for name in "abcde":
        server.tool(lambda: "x", name=name)
    found, cursor = [], None
    while True:
        result = exchange(server, modern("tools/list", {"cursor": cursor} if cursor else {}))[
            "result"
        ]
        found.append((result["ttlMs"], result["cacheScope"]))
        cursor = result.get("nextCursor")
        if cursor is None:
            break
    assert found == [(60_000, scope)] * 3


@pytest.mark.req("S-RES-08")
def test_the_public_default_is_true_because_the_list_is_the_same_for_everybody():
    """Whoever asks, with whatever capabilities or name, gets the same bytes."""
    server = everything()
    info = {"io.modelcontextprotocol/clientInfo": {"name": "other", "version": "2"}}
    asked = [
        modern("tools/list"),
        modern("tools/list", capabilities={"sampling": {}, "elicitation": {}}),
        modern("tools/list", meta=info),
    ]
    replies = [json.dumps(exchange(server, message)) for message in asked]
    assert len(set(replies)) == 1
    assert exchange(server, asked[0])["result"]["cacheScope"] == "public"


@pytest.mark.req("S-RES-09", "S-RES-10")
@pytest.mark.parametrize("method", [*RESULTS, "acme/none"])
def test_a_legacy_result_is_exactly_what_the_handler_gave(method):
    server = everything()
    exchange(server, initialize())
    assert ask(server, method, legacy) == RESULTS.get(method, {})


@pytest.mark.req("S-RES-11")
def test_a_handler_that_returns_nothing_answers_with_an_empty_result():
    assert exchange(everything(), modern("acme/none")) == complete({})
    assert exchange(everything(), modern("acme/empty")) == complete({})


@pytest.mark.req("S-RES-11", "S-ENV-06")
@pytest.mark.parametrize("value", [[], "x", 5, False, object()])
def test_a_handler_that_returns_no_object_is_at_fault(value):
    server = Server("demo", version="1.0.0")

    @server.method("acme/wrong", capability="acme")
    def wrong(params, context):
        return value

    exchange(server, initialize())
    for request in modern, legacy:
        assert_error(exchange(server, request("acme/wrong")), -32603)
        assert_error(exchange(server, request("no/such")), -32601)


PICTURE = [{"type": "image", "data": "aGk=", "mimeType": "image/png"}]


@pytest.mark.parametrize("hint", [Content, Content | None, Content | InputRequired])
def test_blocks_are_blocks_whatever_else_a_tool_may_return(hint):
    server = Server("demo", version="1.0.0")

    def look():
        return PICTURE

    look.__annotations__["return"] = hint
    server.tool(look)
    assert "outputSchema" not in server.tools["look"].definition
    reply = exchange(server, modern("tools/call", {"name": "look"}))
    assert reply["result"]["content"] == PICTURE


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (Content | None, None),
        (Content | int, 3),
        (dict[str, Content], {"a": PICTURE}),
        (list[Content], [PICTURE, PICTURE]),
    ],
)
def test_what_is_no_block_may_be_returned_where_blocks_are_one_way(hint, value):
    server = Server("demo", version="1.0.0")

    def look():
        return value

    look.__annotations__["return"] = hint
    server.tool(look)
    reply = exchange(server, modern("tools/call", {"name": "look"}))
    assert reply["result"]["structuredContent"] == value


@pytest.mark.req("S-CALL-08")
@pytest.mark.parametrize(
    "blocks", [{"type": "text", "text": "x"}, ["x"], 5, None, [{}], [{"type": 5}]]
)
def test_blocks_that_are_none_are_not_sent(blocks):
    server = Server("demo", version="1.0.0")

    @server.tool
    def look() -> Content:
        return blocks

    assert_tool_error(exchange(server, modern("tools/call", {"name": "look"})), "result")
