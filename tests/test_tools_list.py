"""LIST: which tools there are, page by page, in each revision's shape."""

import json

import pytest
from support import (
    LEGACY,
    OLD,
    Stub,
    assert_error,
    complete,
    exchange,
    initialize,
    legacy,
    modern,
    plain,
)

from minimcp import Client, Context, Server
from minimcp.context import Peer

HINTS = {"ttlMs": 60_000, "cacheScope": "public"}
NO_PARAMETERS = {"type": "object", "additionalProperties": False}


def demo(names="abcde", **options):
    server = Server("demo", version="1.0.0", **options)
    for name in names:
        server.tool(lambda: "x", name=name, description=f"Tool {name}.")
    return server


def listed(server, **params):
    return exchange(server, modern("tools/list", params))["result"]


def names(result):
    return [tool["name"] for tool in result["tools"]]


def pages(server):
    found, params = [], {}
    while True:
        result = listed(server, **params)
        found.append(names(result))
        if "nextCursor" not in result:
            return found
        params = {"cursor": result["nextCursor"]}


@pytest.mark.req("S-LIST-02", "S-LIST-15", "S-RES-03")
def test_a_list_is_the_tools_and_the_hints():
    tool = {"name": "a", "description": "Tool a.", "inputSchema": NO_PARAMETERS}
    assert exchange(demo("a"), modern("tools/list")) == complete({"tools": [tool], **HINTS})


@pytest.mark.req("S-LIST-02")
def test_a_tool_registered_later_is_in_the_list():
    server = demo("a")
    assert names(listed(server)) == ["a"]
    server.tool(lambda: "x", name="b")
    assert names(listed(server)) == ["a", "b"]


@pytest.mark.req("S-LIST-01", "S-LIST-02", "S-DISC-03")
def test_without_its_last_tool_a_server_has_an_empty_list_in_either_era():
    server = demo("a")
    exchange(server, initialize())
    server.remove_tool("a")
    assert exchange(server, modern("tools/list")) == complete({"tools": [], **HINTS})
    assert exchange(server, legacy("tools/list")) == plain({"tools": []})
    for message in modern("server/discover"), initialize():
        assert "tools" in exchange(server, message)["result"]["capabilities"]


@pytest.mark.req("S-LIST-03")
def test_the_list_is_the_same_for_everyone_and_after_everything():
    server = demo()
    before = listed(server)
    exchange(server, modern("tools/call", {"name": "a"}))
    exchange(server, modern("tools/call", {"name": "nope"}))
    exchange(server, initialize())
    exchange(server, modern("tools/list", {"cursor": "x"}))
    assert listed(server) == before
    for peer in Peer(), Peer():
        assert exchange(server, modern("tools/list"), peer)["result"] == before
        exchange(server, modern("tools/call", {"name": "a"}), peer)
    assert exchange(server, modern("tools/list", capabilities={"roots": {}}))["result"] == before


@pytest.mark.req("S-LIST-04")
def test_the_order_is_that_of_registration_each_time():
    order = ["zeta", "alpha", "Mid", "a.b", "a-b", "10", "2"]
    assert names(listed(demo(order))) == order
    assert [json.dumps(listed(demo(order))) for _ in range(3)] == [
        json.dumps(listed(demo(order)))
    ] * 3


@pytest.mark.req("S-LIST-05")
def test_every_tool_has_a_name_and_an_object_schema():
    server = Server("demo", version="1.0.0")

    @server.tool
    def undocumented(x):
        return x

    @server.tool(name="calc.add", title="Add", annotations={"readOnlyHint": True})
    def add(a: int, b: int = 2) -> int:
        """Add two integers.

        More about it.
        """
        return a + b

    first, second = listed(server)["tools"]
    assert first["name"] == "undocumented"
    assert first["description"]
    assert first["inputSchema"]["type"] == "object"
    assert (second["name"], second["title"]) == ("calc.add", "Add")
    assert second["description"].startswith("Add two integers.")
    assert second["annotations"] == {"readOnlyHint": True}
    assert second["inputSchema"] == {
        "type": "object",
        "additionalProperties": False,
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer", "default": 2}},
        "required": ["a"],
    }
    exchange(server, initialize())
    del second["outputSchema"]  # an integer is none for an older client
    assert exchange(server, legacy("tools/list")) == plain({"tools": [first, second]})


GOOD_NAMES = ["a", "A", "calc.add", "a-b_c.9", "0", "x" * 64, "x" * 128]
BAD_NAMES = ["", "a b", "a/b", "größe", "a\n", " a", "x" * 129, "a,b", "a:b"]


@pytest.mark.req("S-LIST-06")
@pytest.mark.parametrize("name", GOOD_NAMES)
def test_a_name_of_the_allowed_characters_is_taken(name):
    assert names(listed(demo([name]))) == [name]


@pytest.mark.req("S-LIST-06")
@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_name_outside_the_allowed_characters_is_refused_at_registration(name):
    with pytest.raises((ValueError, TypeError)) as caught:
        demo([name])
    assert repr(name)[1:-1][:100] in str(caught.value)


@pytest.mark.req("S-LIST-07")
def test_a_name_cannot_be_registered_twice():
    server = demo("ab")
    with pytest.raises(ValueError, match="'a'"):
        server.tool(lambda: "y", name="a")
    assert names(listed(server)) == ["a", "b"]


@pytest.mark.req("S-LIST-07")
def test_names_differ_by_case():
    server = Server("demo", version="1.0.0")
    server.tool(lambda: "lower", name="echo")
    server.tool(lambda: "upper", name="Echo")
    for name, text in ("echo", "lower"), ("Echo", "upper"):
        reply = exchange(server, modern("tools/call", {"name": name}))
        assert reply == complete({"content": [{"type": "text", "text": text}]})
    assert_error(exchange(server, modern("tools/call", {"name": "ECHO"})), -32602, "ECHO")


@pytest.mark.req("S-LIST-08")
@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (None, ["abcde"]),
        (1, ["a", "b", "c", "d", "e"]),
        (2, ["ab", "cd", "e"]),
        (4, ["abcd", "e"]),
        (5, ["abcde"]),
        (9, ["abcde"]),
        (0, ["abcde"]),
    ],
)
def test_pages_follow_each_other_to_the_end(size, expected):
    assert pages(demo(page_size=size)) == [list(page) for page in expected]


@pytest.mark.req("S-LIST-08")
def test_legacy_lists_have_pages_too():
    server = demo(page_size=3)
    exchange(server, initialize())
    first = exchange(server, legacy("tools/list"))["result"]
    assert set(first) == {"tools", "nextCursor"}
    second = exchange(server, legacy("tools/list", {"cursor": first["nextCursor"]}))["result"]
    assert set(second) == {"tools"}
    assert names(first) + names(second) == list("abcde")


@pytest.mark.req("S-LIST-09", "S-ERR-05")
def test_an_invalid_cursor_is_refused():
    server = demo(page_size=2)
    exchange(server, initialize())
    cursor = listed(server)["nextCursor"]
    wrong = [
        "garbage",
        "",
        "5",
        "-1",
        "999999",
        "größe",
        "\x00",
        "nope",
        cursor + "x",
        " " + cursor,
    ]
    for bad in wrong:
        assert_error(exchange(server, modern("tools/list", {"cursor": bad})), -32602, "cursor")
        assert_error(exchange(server, legacy("tools/list", {"cursor": bad})), -32602, "cursor")


@pytest.mark.req("S-LIST-09")
def test_an_unpaged_list_refuses_any_cursor_that_it_never_gave():
    for bad in "garbage", "", "0":
        assert_error(exchange(demo(), modern("tools/list", {"cursor": bad})), -32602, "cursor")


@pytest.mark.req("S-LIST-10", "S-ERR-05")
@pytest.mark.parametrize(
    ("cursor", "kind"),
    [(5, "5"), (None, "null"), (True, "true"), ([], "array"), ({}, "object"), (1.5, "1.5")],
)
def test_a_cursor_that_is_no_string_is_refused(cursor, kind):
    server = demo(page_size=2)
    exchange(server, initialize())
    for message in (
        modern("tools/list", {"cursor": cursor}),
        legacy("tools/list", {"cursor": cursor}),
    ):
        assert_error(exchange(server, message), -32602, "cursor", "string", kind)


@pytest.mark.req("S-LIST-11")
def test_a_cursor_of_one_server_is_good_on_another():
    cursor = listed(demo(page_size=2))["nextCursor"]
    other = demo(page_size=2)
    assert names(listed(other, cursor=cursor)) == ["c", "d"]
    exchange(other, initialize())
    assert names(exchange(other, legacy("tools/list", {"cursor": cursor}))["result"]) == ["c", "d"]


@pytest.mark.req("S-LIST-11")
def test_a_cursor_survives_a_tool_that_joins_in_between():
    server = demo("abcd", page_size=2)
    cursor = listed(server)["nextCursor"]
    server.tool(lambda: "x", name="e")
    assert names(listed(server, cursor=cursor)) == ["c", "d"]


VERBATIM = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$defs": {"phone": {"$anchor": "phone", "type": "string"}},
    "type": "object",
    "properties": {
        "phone": {"$ref": "#phone"},
        "method": {"type": "string", "enum": ["phone", "mail"], "x-mcp-header": "Method"},
        "free": {},
    },
    "allOf": [{"required": ["method"]}],
    "if": {"properties": {"method": {"const": "phone"}}},
    "then": {"required": ["phone"]},
    "else": {"properties": {"phone": {"not": {}}}},
    "additionalProperties": False,
    "com.example/unknown": {"kept": [None, 1.5, "größe"]},
}


@pytest.mark.req("S-LIST-12")
@pytest.mark.parametrize("request_", [modern, legacy])
def test_a_hand_written_schema_is_listed_as_it_was_written(request_):
    server = Server("demo", version="1.0.0")
    server.tool(lambda **arguments: "x", name="t", input_schema=VERBATIM, output_schema=VERBATIM)
    exchange(server, initialize())
    (tool,) = exchange(server, request_("tools/list"))["result"]["tools"]
    assert tool["inputSchema"] == VERBATIM
    assert tool["outputSchema"] == VERBATIM
    assert list(tool["inputSchema"]) == list(VERBATIM)


@pytest.mark.req("S-LIST-13", "S-CALL-16", "S-VER-14")
@pytest.mark.parametrize("version", [LEGACY, OLD])
def test_a_legacy_list_leaves_out_an_output_schema_that_is_no_object(version):
    server = Server("demo", version="1.0.0")

    @server.tool
    def numbers() -> list[int]:
        """Numbers."""
        return [1, 2]

    @server.tool
    def table() -> dict[str, int]:
        return {"a": 1}

    exchange(server, initialize(version))
    array, table_ = listed(server)["tools"]
    assert array["outputSchema"] == {"type": "array", "items": {"type": "integer"}}
    without = {key: value for key, value in array.items() if key != "outputSchema"}
    assert exchange(server, legacy("tools/list")) == plain({"tools": [without, table_]})


@pytest.mark.req("S-LIST-13")
@pytest.mark.parametrize("version", [LEGACY, OLD])
def test_a_legacy_list_has_no_boolean_property_schemas(version):
    """`x: true` is refused at registration, or shown as `x: {}`; the oracle would notice it."""
    server = Server("demo", version="1.0.0")
    schema = {"type": "object", "properties": {"x": True}}
    try:
        server.tool(lambda **arguments: "x", name="t", input_schema=schema)
    except (ValueError, TypeError) as error:
        assert "x" in str(error)
        return
    exchange(server, initialize(version))
    (tool,) = exchange(server, legacy("tools/list"))["result"]["tools"]
    assert tool["inputSchema"]["properties"] == {"x": {}}


@pytest.mark.req("S-LIST-13")
def test_an_output_schema_is_spelled_out_as_well():
    server = Server("demo", version="1.0.0")
    schema = {"type": "object", "properties": {"x": True, "y": False, "z": {"type": "string"}}}
    server.tool(lambda: {}, name="t", output_schema=schema)
    exchange(server, initialize())
    (tool,) = exchange(server, legacy("tools/list"))["result"]["tools"]
    spelled = {"x": {}, "y": {"not": {}}, "z": {"type": "string"}}
    assert tool["outputSchema"] == {"type": "object", "properties": spelled}


@pytest.mark.req("S-LIST-14")
def test_a_modern_tool_has_no_member_that_left_the_protocol():
    server = Server("demo", version="1.0.0")

    @server.tool(title="T", description="D", annotations={"title": "T"})
    def full(a: int = 1) -> int:
        return a

    (tool,) = listed(server)["tools"]
    allowed = {"name", "title", "description", "inputSchema", "outputSchema", "annotations"}
    assert set(tool) <= allowed


@pytest.mark.req("S-LIST-15")
def test_a_tool_without_parameters_takes_none():
    server = demo("a")
    server.tool(lambda: "x", name="b", input_schema=None)

    @server.tool
    def c(context: Context) -> str:
        return "x"

    assert [tool["inputSchema"] for tool in listed(server)["tools"]] == [NO_PARAMETERS] * 3


BAD_SCHEMAS = [
    {"type": "array"},
    {"type": "string"},
    {"type": ["object", "null"]},
    {"type": "objct"},
    {"type": "object", "properties": []},
    {"type": "object", "properties": {"a": {"type": "nope"}}},
    {"type": "object", "required": "a"},
    {"type": "object", "properties": {"a": {"pattern": "["}}},
    {"properties": {}},
    {},
    [],
    "object",
    5,
    True,
]


@pytest.mark.req("S-LIST-16", "S-JSCH-04")
@pytest.mark.parametrize("schema", BAD_SCHEMAS, ids=json.dumps)
def test_an_input_schema_that_is_none_is_refused_at_registration(schema):
    server = demo("a")
    with pytest.raises((ValueError, TypeError), match=r"JSON Schema|input schema|input_schema"):
        server.tool(lambda **arguments: "x", name="bad", input_schema=schema)
    assert names(listed(server)) == ["a"]


@pytest.mark.req("S-LIST-16")
def test_no_input_schema_means_that_of_the_function():
    server = Server("demo", version="1.0.0")
    server.tool(lambda: "x", name="t", input_schema=None)
    assert listed(server)["tools"][0]["inputSchema"] == NO_PARAMETERS


@pytest.mark.req("S-LIST-05", "C-JSCH-13")
def test_a_client_returns_the_tools_as_they_came(tmp_path):
    tool = {"name": "t", "inputSchema": VERBATIM, "zzz": {"kept": 1}}
    found = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
    hints = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    replies = {
        "server/discover": {"result": found | hints},
        "tools/list": {"result": {"tools": [tool], **hints}},
    }
    with Client(Stub(tmp_path, replies).command) as client:
        assert client.list_tools() == [tool]
