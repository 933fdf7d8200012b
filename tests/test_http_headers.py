"""The header contract: text in headers, arguments in headers, and what a server compares."""

import re

import pytest
from support import assert_error, complete, modern
from support_http import headers_for, request, serving

from minimcp import Server
from minimcp.http_headers import annotated, argument, as_text, encode, stands_for

MISMATCH = -32020
TEXT = {"content": [{"type": "text", "text": "ok"}]}


def marked(name, type="string", **more):
    return {"type": type, "x-mcp-header": name, **more}


def an_object(**properties):
    return {"type": "object", "properties": properties}


# -- text in a header

PLAIN = [
    "us-west1",
    "",
    "a b",
    "file:///x/y.json",
    "=?base64?only the start",
    "only the end?=",
    "~",
]
ENCODED = [
    ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
    (" padded ", "=?base64?IHBhZGRlZCA=?="),
    ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
    ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
    ("a\tb", "=?base64?YQli?="),
    ("größe", "=?base64?Z3LDtsOfZQ==?="),
    ("=?base64?=", "=?base64?PT9iYXNlNjQ/PQ==?="),
    ("\r\nEvil: yes", "=?base64?DQpFdmlsOiB5ZXM=?="),
    ("\x7f", "=?base64?fw==?="),
]


@pytest.mark.parametrize("text", PLAIN)
def test_safe_text_travels_as_it_is(text):
    assert encode(text) == text
    assert stands_for(text, text)


@pytest.mark.parametrize(("text", "value"), ENCODED)
def test_any_other_text_travels_between_markers(text, value):
    """B076"""
    assert encode(text) == value
    assert stands_for(value, text)


STRANGE = [  # value, the text that a kind decoder would find
    ("=?base64?SGVsbG8?=", "Hello"),  # no padding
    ("=?base64?SGVs!!!bG8=?=", "Hello"),  # outside the alphabet
    ("=?base64?SGVsbG8=\n?=", "Hello"),
    ("=?base64?SGVsbG9=?=", "Hello"),  # bits that are not zero
    ("=?base64?/w==?=", "ÿ"),  # Latin-1, no UTF-8
    ("=?base64?SGk_?=", "Hi?"),  # the other alphabet
    ("=?base64?SGVsbG8=?= ", "Hello"),
]


@pytest.mark.parametrize(("value", "text"), STRANGE)
def test_base64_that_is_not_exactly_right_stands_for_nothing(value, text):
    assert not stands_for(value, text)


LITERAL = ["SGVsbG8=", "=?base64?SGVsbG8=", "=?BASE64?SGk=?=", "=?base64?=", "SGk=?="]


@pytest.mark.parametrize("value", LITERAL)
def test_without_both_markers_a_value_stands_for_itself(value):
    assert stands_for(value, value)


def test_what_looks_marked_does_not_stand_for_itself():
    assert not stands_for("=?base64?SGk=?=", "=?base64?SGk=?=")


def test_no_header_stands_for_no_value_and_for_nothing_else():
    assert stands_for(None, None)
    assert not stands_for(None, "")
    assert not stands_for("", None)


VALUES = [
    ("us-west1", "us-west1"),
    ("", ""),
    (42, "42"),
    (-7, "-7"),
    (42.0, "42"),
    (2**53 - 1, "9007199254740991"),
    (True, "true"),
    (False, "false"),
    (None, None),
    ([1], None),
    ({}, None),
]


@pytest.mark.parametrize(("value", "text"), VALUES)
def test_plain_values_have_one_spelling_and_others_none(value, text):
    assert as_text(value) == text


# -- marks in a schema


def test_marks_are_found_with_the_path_of_their_argument():
    where = an_object(region=marked("Region"), zone=an_object(row=marked("Row", "integer")))
    schema = an_object(dry=marked("Dry-Run", "boolean"), where=where, plain={"type": "string"})
    assert annotated(schema) == {
        "Mcp-Param-Dry-Run": ("dry",),
        "Mcp-Param-Region": ("where", "region"),
        "Mcp-Param-Row": ("where", "zone", "row"),
    }


@pytest.mark.parametrize(
    "schema",
    [
        {},
        True,
        {"type": "object"},
        an_object(**{"x-mcp-header": {"type": "string"}}),
        an_object(a={"default": {"x-mcp-header": "A"}, "enum": [{"x-mcp-header": "B"}]}),
        an_object(a={"const": {"x-mcp-header": ""}, "examples": [{"x-mcp-header": "c"}]}),
        {"type": "object", "$defs": {"x-mcp-header": {"type": "string"}}},
    ],
)
def test_a_name_or_a_value_that_reads_like_a_mark_is_none(schema):
    assert annotated(schema) == {}


NAMES = ["", "two words", "Grüße", "a:b", "a\r\nb", "a\x00b", " x", "(x)", "a/b", 5, None, ["A"]]


@pytest.mark.req("S-LIST-17")
@pytest.mark.parametrize("name", NAMES)
def test_a_mark_must_be_the_name_of_a_header(name):
    with pytest.raises(ValueError, match=rf"x-mcp-header {re.escape(repr(name))} is not the name"):
        annotated(an_object(a=marked(name)))


@pytest.mark.parametrize("name", ["Region", "x", "a.b", "1", "!#$%&'*+-.^_`|~"])
def test_every_name_of_a_header_is_a_mark(name):
    assert annotated(an_object(a=marked(name))) == {f"Mcp-Param-{name}": ("a",)}


@pytest.mark.req("S-LIST-17")
def test_the_same_mark_twice_is_refused_whatever_its_case():
    with pytest.raises(ValueError, match="'REGION' is there twice"):
        annotated(an_object(a=marked("Region"), b=an_object(c=marked("REGION"))))


TYPES = ["number", "object", "array", "null", ["string", "null"], ["string"], None]


@pytest.mark.req("S-LIST-17")
@pytest.mark.parametrize("type", TYPES)
def test_a_mark_on_anything_but_a_plain_type_is_refused(type):
    with pytest.raises(ValueError, match="'A' needs one type of string, integer, boolean"):
        annotated(an_object(a=marked("A", type)))


@pytest.mark.req("S-LIST-17")
def test_a_mark_without_a_type_is_refused():
    with pytest.raises(ValueError, match="'A' needs one type"):
        annotated(an_object(a={"$ref": "#/$defs/A", "x-mcp-header": "A"}))


ELSEWHERE = [
    marked("A"),  # the root
    an_object(a={"type": "array", "items": marked("A")}),
    an_object(a={"type": "array", "items": an_object(b=marked("A"))}),
    an_object(a={"type": "array", "prefixItems": [marked("A")]}),
    an_object(a={"anyOf": [marked("A"), {"type": "null"}]}),
    an_object(a={"oneOf": [an_object(b=marked("A"))]}),
    {**an_object(), "allOf": [an_object(a=marked("A"))]},
    {**an_object(), "not": an_object(a=marked("A"))},
    {**an_object(), "if": an_object(a=marked("A"))},
    {**an_object(), "then": an_object(a=marked("A"))},
    {**an_object(), "else": an_object(a=marked("A"))},
    {**an_object(a={"$ref": "#/$defs/A"}), "$defs": {"A": marked("A")}},
    {**an_object(), "definitions": {"A": an_object(a=marked("A"))}},
    {**an_object(), "additionalProperties": marked("A")},
    {**an_object(), "patternProperties": {"^a": marked("A")}},
    {**an_object(), "dependentSchemas": {"a": an_object(b=marked("A"))}},
    an_object(properties={"anyOf": [an_object(properties=marked("A"))]}),
]


@pytest.mark.req("S-LIST-17")
@pytest.mark.parametrize("schema", ELSEWHERE)
def test_a_mark_where_properties_alone_do_not_lead_is_refused(schema):
    with pytest.raises(ValueError, match="'A' stands where 'properties' alone do not lead"):
        annotated(schema)


def test_a_property_may_be_called_like_a_keyword():
    schema = an_object(properties=an_object(items=marked("A")), allOf=marked("B", "integer"))
    assert annotated(schema) == {"Mcp-Param-A": ("properties", "items"), "Mcp-Param-B": ("allOf",)}


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"a": {"b": 1}}, 1),
        ({"a": {"b": None}}, None),
        ({"a": {}}, None),
        ({"a": "text"}, None),
        ({}, None),
        (None, None),
        ([], None),
    ],
)
def test_an_argument_is_read_at_its_path_or_is_not_there(arguments, found):
    assert argument(arguments, ("a", "b")) == found


@pytest.mark.req("S-LIST-17")
@pytest.mark.parametrize("schema", [an_object(a=marked("two words")), ELSEWHERE[1]])
def test_a_tool_with_a_bad_mark_is_refused_at_registration(schema):
    server = Server("demo")
    with pytest.raises(ValueError, match="x-mcp-header"):
        server.tool(lambda **arguments: "ok", name="bad", input_schema=schema)
    assert "bad" not in server.tools


# -- what a server compares


def regional():
    """A server with a tool whose arguments travel in headers too."""
    server = Server("demo", version="1.0.0")
    where = an_object(zone=an_object(row=marked("Row", "integer")))
    schema = an_object(
        region=marked("Region"),
        limit=marked("Limit", "integer"),
        dry=marked("Dry-Run", "boolean"),
        where=where,
        other={"type": "string"},
    )
    server.tool(lambda **arguments: "ok", name="query", description="Query.", input_schema=schema)
    return server


@pytest.fixture(scope="module")
def site():
    with serving(regional()) as site:
        yield site


def query(arguments, headers):
    """The message and the headers of a call of `query`."""
    mirrored = {f"Mcp-Param-{name}": value for name, value in headers.items()}
    return modern("tools/call", {"name": "query", "arguments": arguments}), mirrored


AGREE = [
    ({}, {}),
    ({"region": "us-west1"}, {"Region": "us-west1"}),
    ({"region": "us-west1"}, {"Region": "   us-west1  "}),
    ({"region": "us-west1"}, {"Region": "=?base64?dXMtd2VzdDE=?="}),
    ({"region": "größe"}, {"Region": "=?base64?Z3LDtsOfZQ==?="}),
    ({"region": ""}, {"Region": ""}),
    ({"region": "SGVsbG8="}, {"Region": "SGVsbG8="}),
    ({"region": "=?base64?SGVsbG8="}, {"Region": "=?base64?SGVsbG8="}),
    ({"region": "=?BASE64?SGk=?="}, {"Region": "=?BASE64?SGk=?="}),
    ({"region": "=?base64?="}, {"Region": "=?base64?="}),
    ({"region": "Hello"}, {"Region": "=?base64?SGVsbG8=?="}),
    ({"limit": 42}, {"Limit": "42"}),
    ({"limit": 42}, {"Limit": "42.0"}),
    ({"limit": 42.0}, {"Limit": "42"}),
    ({"limit": 42.0}, {"Limit": "42.0"}),
    ({"limit": -7}, {"Limit": "-7"}),
    ({"limit": 9007199254740991}, {"Limit": "9007199254740991"}),
    ({"dry": True}, {"Dry-Run": "true"}),
    ({"dry": False}, {"Dry-Run": "false"}),
    ({"where": {"zone": {"row": 3}}}, {"Row": "3"}),
    ({"other": "x"}, {"Foo": "x", "Other": "y"}),
]


@pytest.mark.req("S-HTTP-16", "S-HTTP-19", "S-HTTP-21", "S-HTTP-23", "S-HTTP-24", "S-HTTP-25")
@pytest.mark.parametrize(("arguments", "headers"), AGREE)
def test_a_call_whose_headers_say_what_its_arguments_say_is_served(site, arguments, headers):
    message, mirrored = query(arguments, headers)
    reply = site.post(message, headers=mirrored)
    assert (reply.status, reply.json) == (200, complete(TEXT))


@pytest.mark.req("S-HTTP-22")
@pytest.mark.parametrize("arguments", [{"region": None}, {"limit": None}, {"where": None}, {}])
def test_an_argument_that_is_null_or_absent_has_no_header(site, arguments):
    message, _ = query(arguments, {})
    reply = site.post(message)
    assert reply.status == 200
    assert set(reply.json) == {"jsonrpc", "id", "result"}


DISAGREE = [
    ({"region": "us-west1"}, {}, "Region"),
    ({"region": "us-west1"}, {"Region": "us-west2"}, "Region"),
    ({"region": "us-west1"}, {"Region": "US-WEST1"}, "Region"),
    ({"region": "us-west1"}, {"Region": ""}, "Region"),
    ({}, {"Region": "us-west1"}, "Region"),
    ({"region": None}, {"Region": "null"}, "Region"),
    ({"region": "Hello"}, {"Region": "=?base64?SGVsbG8?="}, "Region"),
    ({"region": "Hello"}, {"Region": "=?base64?SGVs!!!bG8=?="}, "Region"),
    ({"region": "ÿ"}, {"Region": "=?base64?/w==?="}, "Region"),
    ({"region": "\ufffd"}, {"Region": "=?base64?/w==?="}, "Region"),
    ({"region": "=?base64?SGk=?="}, {"Region": "=?base64?SGk=?="}, "Region"),
    ({"limit": 42}, {}, "Limit"),
    ({"limit": 42}, {"Limit": "43"}, "Limit"),
    ({"limit": 42}, {"Limit": "42.5"}, "Limit"),
    ({"limit": 42}, {"Limit": "4.2e1"}, "Limit"),
    ({"dry": True}, {"Dry-Run": "True"}, "Dry-Run"),
    ({"dry": True}, {"Dry-Run": "1"}, "Dry-Run"),
    ({"dry": True}, {"Dry-Run": "true.0"}, "Dry-Run"),
    ({"dry": False}, {}, "Dry-Run"),
    ({"where": {"zone": {"row": 3}}}, {}, "Row"),
    ({"where": {"zone": {"row": 3}}}, {"Row": "4"}, "Row"),
    ({"where": {"zone": {}}, "row": 3}, {"Row": "3"}, "Row"),
]


@pytest.mark.req("S-HTTP-18", "S-HTTP-21", "S-HTTP-23", "S-HTTP-24")
@pytest.mark.parametrize(("arguments", "headers", "name"), DISAGREE)
def test_a_call_whose_headers_say_something_else_is_refused(site, arguments, headers, name):
    message, mirrored = query(arguments, headers)
    reply = site.post(message, headers=mirrored)
    assert reply.status == 400
    assert_error(reply.json, MISMATCH, f"Mcp-Param-{name}")


@pytest.mark.req("S-HTTP-23")
@pytest.mark.parametrize("number", [2**53, -(2**53), 10**25, 1e16])
def test_a_marked_number_that_not_everybody_reads_exactly_is_refused(site, number):
    message, mirrored = query({"limit": number}, {"Limit": str(number)})
    reply = site.post(message, headers=mirrored)
    assert reply.status == 400
    assert_error(reply.json, MISMATCH, str(number))


@pytest.mark.req("S-HTTP-18")
@pytest.mark.parametrize("value", ["größe", "a\x01b", "a\x7fb"])
def test_characters_that_a_header_cannot_hold_agree_with_nothing(site, value):
    message, _ = query({"region": value}, {})
    line = f"Mcp-Param-Region: {value}"
    answer = site.raw(request(message, headers_for(message), line, "Connection: close"))
    assert answer.startswith(b"HTTP/1.1 400 ")


ROUTING = ["Mcp-Method", "Mcp-Name", "MCP-Protocol-Version", "Mcp-Param-Region"]


@pytest.mark.req("S-HTTP-20")
@pytest.mark.parametrize("name", ROUTING)
def test_a_routing_header_that_comes_twice_is_refused(site, name):
    message, mirrored = query({"region": "us-west1"}, {"Region": "us-west1"})
    headers = {**headers_for(message), **mirrored}
    again = f"{name}: {headers[name]}"
    answer = site.raw(request(message, headers, again, "Connection: close"))
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b'"code":-32020' in answer and name.encode() in answer


@pytest.mark.req("S-HTTP-25")
def test_other_headers_may_come_twice(site):
    message, _ = query({}, {})
    twice = ["Mcp-Param-Foo: x", "Mcp-Param-Foo: y", "Connection: close"]
    answer = site.raw(request(message, headers_for(message), *twice))
    assert answer.startswith(b"HTTP/1.1 200 ")


def test_a_tool_that_replaces_another_brings_its_own_marks():
    server = regional()
    with serving(server) as site:
        message, mirrored = query({"region": "a"}, {"Region": "a"})
        assert site.post(message, headers=mirrored).status == 200
        server.remove_tool("query")
        schema = an_object(region=marked("Other"))
        server.tool(lambda **arguments: "ok", name="query", description="Q.", input_schema=schema)
        assert site.post(message, headers=mirrored).status == 400
        assert site.post(message, headers={"Mcp-Param-Other": "a"}).status == 200


@pytest.mark.req("S-LIST-12")
def test_marks_are_listed_as_they_were_written(site):
    (tool,) = site.post(modern("tools/list")).json["result"]["tools"]
    assert tool["inputSchema"]["properties"]["region"] == marked("Region")


@pytest.mark.req("S-HTTP-17")
def test_a_tab_inside_a_header_may_stand_as_it_is(site):
    message, _ = query({"region": "a\tb"}, {})
    line = "Mcp-Param-Region: a\tb"
    answer = site.raw(request(message, headers_for(message), line, "Connection: close"))
    assert answer.startswith(b"HTTP/1.1 200 ")
