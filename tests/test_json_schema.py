"""JSCH: schemas written by hand: which dialects, which references, and what cannot hang us."""

import http.server
import json
import re
import sys
import threading
from pathlib import Path

import pytest
from support import MODERN, Stub, assert_tool_error, complete, exchange, modern

from minimcp import Client, Server
from minimcp.dialects import DIALECTS
from minimcp.schema import checker

DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema"
DRAFT_07 = "http://json-schema.org/draft-07/schema#"
DONE = complete({"content": [{"type": "text", "text": "done"}]})


def serving(schema):
    """A server with the tool `t`, whose input schema this is."""
    server = Server("demo", version="1.0.0")

    @server.tool(name="t", input_schema=schema)
    def tool(**arguments):
        return "done"

    return server


def call(server, arguments):
    return exchange(server, modern("tools/call", {"name": "t", "arguments": arguments}))


def accepts(schema, arguments):
    """Whether the tool runs; if not, the answer is an error that the model can read."""
    reply = call(serving(schema), arguments)
    if reply == DONE:
        return True
    assert_tool_error(reply, "arguments")
    return False


def properties(**schemas):
    return {"type": "object", "properties": schemas}


TUPLE = properties(a={"prefixItems": [{"type": "integer"}], "items": False})
DEPENDENT = {"type": "object", "dependentRequired": {"a": ["b"]}}
CLOSED = {"type": "object", "allOf": [properties(a={})], "unevaluatedProperties": False}
SEMANTICS = [
    (TUPLE, {"a": [1]}, True),
    (TUPLE, {"a": [1, 2]}, False),
    (TUPLE, {"a": ["x"]}, False),
    (DEPENDENT, {"b": 1}, True),
    (DEPENDENT, {"a": 1, "b": 1}, True),
    (DEPENDENT, {"a": 1}, False),
    (CLOSED, {"a": 1}, True),
    (CLOSED, {"b": 1}, False),
    (properties(a={"const": 1}), {"a": 1.0}, True),
    (properties(a={"const": 1}), {"a": True}, False),
    (properties(a={"type": ["integer", "null"]}), {"a": None}, True),
    (properties(a={"type": ["integer", "null"]}), {"a": "x"}, False),
    (properties(a={"pattern": "^b"}), {"a": "abc"}, False),
    (properties(a={"pattern": "b"}), {"a": "abc"}, True),
    (properties(a={"minLength": 2}), {"a": "𝄞"}, False),
    (properties(a={"multipleOf": 0.5}), {"a": 1.5}, True),
    (properties(a={"multipleOf": 0.01}), {"a": 19.99}, True),
    (properties(a={"multipleOf": 0.01}), {"a": 19.995}, False),
    (properties(a={"multipleOf": 0.1}), {"a": 1e300}, True),
    (properties(a={"multipleOf": 3}), {"a": 9.0}, True),
    (properties(a={"multipleOf": 3}), {"a": 10}, False),
    (properties(a={"multipleOf": 3}), {"a": True}, True),
    (properties(a={"not": {"type": "string"}}), {"a": "x"}, False),
    (properties(a={"oneOf": [{"minimum": 1}, {"maximum": 5}]}), {"a": 3}, False),
    (properties(a={"uniqueItems": True}), {"a": [1, 1.0]}, False),
    (properties(a={"uniqueItems": True}), {"a": [1, True]}, True),
    ({"type": "object", "patternProperties": {"^x": {"type": "integer"}}}, {"xy": "z"}, False),
    ({"type": "object", "propertyNames": {"maxLength": 1}}, {"ab": 1}, False),
]


@pytest.mark.req("B-JSCH-01")
@pytest.mark.parametrize("declared", [{}, {"$schema": DRAFT_2020}, {"$schema": DRAFT_2020 + "#"}])
@pytest.mark.parametrize(("schema", "arguments", "fits"), SEMANTICS)
def test_a_schema_without_a_dialect_means_2020_12(schema, arguments, fits, declared):
    assert accepts({**declared, **schema}, arguments) is fits


SEVENTH = {"$schema": DRAFT_07}
LISTED = {**SEVENTH, **properties(a={"items": [{"type": "integer"}], "additionalItems": False})}
NEEDS = {**SEVENTH, "type": "object", "dependencies": {"a": ["b"]}}
DRAFT_07_SEMANTICS = [
    (LISTED, {"a": [1]}, True),
    (LISTED, {"a": [1, 2]}, False),
    (LISTED, {"a": ["x"]}, False),
    (NEEDS, {"a": 1}, False),
    (NEEDS, {"a": 1, "b": 1}, True),
    ({**SEVENTH, **DEPENDENT}, {"a": 1}, True),  # a keyword of later drafts
    ({**SEVENTH, **properties(a={"if": {"const": 1}, "then": False})}, {"a": 1}, False),
]


@pytest.mark.req("B-JSCH-02")
@pytest.mark.parametrize(("schema", "arguments", "fits"), DRAFT_07_SEMANTICS)
def test_draft_07_is_honoured_when_it_is_declared(schema, arguments, fits):
    assert accepts(schema, arguments) is fits


UNKNOWN_DIALECTS = [
    "http://example.com/x",
    "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-04/schema#",
    "https://json-schema.org/draft/next/schema",
    "",
    "2020-12",
]


@pytest.mark.req("B-JSCH-02", "B-JSCH-03")
@pytest.mark.parametrize("dialect", UNKNOWN_DIALECTS)
def test_an_unknown_dialect_is_refused_by_name_with_the_known_ones(dialect):
    with pytest.raises(ValueError, match="t") as caught:
        serving({"$schema": dialect, "type": "object"})
    for name in dialect.rstrip("#"), DRAFT_2020, "draft-07":
        assert name in str(caught.value)


@pytest.mark.req("B-JSCH-03")
def test_the_readme_names_the_dialects():
    readme = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
    names = [re.search(r"draft-\d+|\d{4}-\d\d", dialect)[0] for dialect in DIALECTS]
    assert names == ["2020-12", "draft-07"]
    assert f"JSON Schema {' and '.join(names)}" in readme


FOREIGN = [
    (TUPLE, {"a": [1]}, None),
    (TUPLE, {"a": [1, 2]}, "structuredContent.a: "),
    (LISTED, {"a": [1]}, None),
    (LISTED, {"a": [1, 2]}, "structuredContent.a: "),
    ({"$schema": "http://example.com/x"}, {}, "dialect not supported: http://example.com/x;"),
]


@pytest.mark.req("B-JSCH-01", "B-JSCH-02")
@pytest.mark.parametrize(("schema", "structured", "wrong"), FOREIGN)
def test_a_client_reads_a_foreign_schema_in_its_dialect(tmp_path, schema, structured, wrong):
    tool = {"name": "t", "inputSchema": {"type": "object"}, "outputSchema": schema}
    with Client(stub(tmp_path, [tool], structured).command) as client:
        client.list_tools()
        if wrong is None:
            assert client.call_tool("t", {}).structured == structured
        else:
            with pytest.raises(ConnectionError, match=re.escape(wrong)):
                client.call_tool("t", {})


INVALID = [
    {"type": "objct"},
    {"type": "object", "properties": {"a": {"type": "objct"}}},
    {"type": "object", "properties": {"a": {"minimum": "x"}}},
    {"type": "object", "properties": {"a": 5}},
    {"type": "object", "required": ["a", "a"]},
    {"type": "object", "$defs": {"a": {"pattern": 5}}},
    {"type": "object", "properties": {"a": {"pattern": "("}}},
    {"type": "object", "properties": {"a": {"pattern": "a{9999999999999}"}}},
    {"type": "object", "properties": {"a": {"enum": "x"}}},
    {"type": "object", "properties": {"a": {"anyOf": []}}},
    {"$schema": DRAFT_07, "type": "object", "properties": {"a": {"items": 5}}},
    {"$schema": DRAFT_07, "type": "object", "properties": {"a": {"additionalItems": 5}}},
]


@pytest.mark.req("S-JSCH-04")
@pytest.mark.parametrize("schema", INVALID, ids=json.dumps)
def test_an_invalid_schema_is_refused_at_registration(schema):
    with pytest.raises((ValueError, TypeError), match="t"):
        serving(schema)
    server = Server("demo", version="1.0.0")
    with pytest.raises((ValueError, TypeError), match="t"):
        server.tool(lambda: "x", name="t", output_schema=schema)
    assert server.tools == {}


@pytest.fixture
def canary():
    """A loopback HTTP server that has a schema for everybody, and notes who asks for it."""
    hits = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            hits.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/schema.json", hits
        server.shutdown()
        thread.join()


@pytest.mark.req("B-JSCH-05", "B-JSCH-06", "B-JSCH-07", "C-CLI-14")
@pytest.mark.parametrize("dialect", [{}, {"$schema": DRAFT_07}])
def test_a_reference_into_the_network_is_never_followed_and_refuses_the_value(canary, dialect):
    url, hits = canary
    schema = {**dialect, **properties(a={"$ref": url}, b={"$ref": url + "#/$defs/x"}, c={})}
    try:
        server = serving(schema)
    except ValueError as error:
        assert url in str(error)
    else:
        listed = exchange(server, modern("tools/list"))["result"]["tools"]
        assert listed[0]["inputSchema"] == schema
        assert_tool_error(call(server, {"a": 1}), "arguments")
        assert_tool_error(call(server, {"b": 1}), "arguments")
        assert call(server, {"c": 1}) == DONE
    assert hits == []


@pytest.mark.req("B-JSCH-05", "B-JSCH-06", "C-CLI-14")
def test_a_client_never_follows_a_reference_of_a_foreign_output_schema(tmp_path, canary):
    url, hits = canary
    tool = {"name": "t", "inputSchema": {"type": "object"}}
    tool["outputSchema"] = {"type": "object", "properties": {"a": {"$ref": url}}}
    with Client(stub(tmp_path, [tool], {"a": 1}).command) as client:
        assert client.list_tools() == [tool]
        with pytest.raises(Exception, match="structuredContent"):
            client.call_tool("t", {})
    assert hits == []


def stub(tmp_path, tools, structured):
    found = {"supportedVersions": [MODERN], "capabilities": {"tools": {}}}
    hints = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    called = {"content": [], "structuredContent": structured, "resultType": "complete"}
    table = {
        "server/discover": {"result": found | hints},
        "tools/list": {"result": {"tools": tools, **hints}},
        "tools/call": {"result": called},
    }
    return Stub(tmp_path, table)


@pytest.mark.req("B-JSCH-06")
@pytest.mark.parametrize("reference", ["#/$defs/nope", "#nope", "other.json", "file:///etc/passwd"])
def test_a_reference_that_leads_nowhere_refuses_the_value(reference):
    schema = properties(a={"$ref": reference}, c={})
    try:
        server = serving(schema)
    except ValueError as error:
        assert reference in str(error)
    else:
        assert_tool_error(call(server, {"a": 1}), "arguments")
        assert call(server, {"c": 1}) == DONE


LOOP = {"$defs": {"x": {"$ref": "#/$defs/x"}}, **properties(a={"$ref": "#/$defs/x"})}
RING = {
    "$defs": {"x": {"$ref": "#/$defs/y"}, "y": {"allOf": [{"$ref": "#/$defs/x"}]}},
    **properties(a={"$ref": "#/$defs/x"}),
}


def deep(keyword, levels):
    schema = {"type": "integer"}
    for _ in range(levels):
        schema = {keyword: [schema] if keyword == "allOf" else schema}
    return properties(a=schema)


def bomb(keyword, levels):
    """Each level doubles the work: 2 ** levels subschemas from a schema of a few lines."""
    definitions = {
        f"d{n}": {keyword: [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": f"#/$defs/d{n + 1}"}]}
        for n in range(levels)
    }
    definitions[f"d{levels}"] = {"type": "string" if keyword == "anyOf" else "integer"}
    return {"$defs": definitions, **properties(a={"$ref": "#/$defs/d0"})}


HOSTILE = {
    "a reference to itself": LOOP,
    "a ring of references": RING,
    "100,000 nested allOf": deep("allOf", 100_000),
    "100,000 nested not": deep("not", 100_000),
    "an anyOf bomb": bomb("anyOf", 40),
    "an allOf bomb": bomb("allOf", 40),
    "a oneOf bomb": bomb("oneOf", 40),
}


@pytest.mark.req("B-JSCH-08")
@pytest.mark.timeout(30)
@pytest.mark.parametrize("schema", HOSTILE.values(), ids=HOSTILE)
def test_a_schema_made_to_exhaust_us_ends_in_an_error(schema):
    """Refused at registration, or the call is; either way soon."""
    try:
        server = serving(schema)
    except ValueError as error:
        assert "t" in str(error)
    else:
        assert_tool_error(call(server, {"a": 1}), "arguments")
        assert call(server, {}) == DONE


EMPTY = {"minProperties": 0}
FOREIGN_AND_HOSTILE = {
    "a ring of references": (RING, {"a": 1}),
    "an anyOf bomb": (bomb("anyOf", 40), {"a": 1}),
    "more than 100,000 characters": ({"type": "object", "allOf": [EMPTY] * 5000}, {}),
}


@pytest.mark.req("B-JSCH-08")
@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    ("schema", "structured"), FOREIGN_AND_HOSTILE.values(), ids=FOREIGN_AND_HOSTILE
)
def test_a_client_cannot_be_exhausted_by_a_foreign_schema(tmp_path, schema, structured):
    tool = {"name": "t", "inputSchema": {"type": "object"}, "outputSchema": schema}
    with Client(stub(tmp_path, [tool], structured).command) as client:
        client.list_tools()
        with pytest.raises(ConnectionError, match="malformed reply to tools/call t"):
            client.call_tool("t", {})


@pytest.mark.req("B-JSCH-08")
def test_a_client_counts_the_plainest_rules_of_a_foreign_schema_too(tmp_path, monkeypatch):
    monkeypatch.setattr("minimcp.dialects.MAX_WORK", 5000)
    tool = {"name": "t", "inputSchema": {"type": "object"}}
    tool["outputSchema"] = properties(a={"items": {"allOf": [{"minLength": 0}] * 100}})
    with Client(stub(tmp_path, [tool], {"a": ["x"] * 100}).command) as client:
        client.list_tools()
        with pytest.raises(ConnectionError, match="too much work"):
            client.call_tool("t", {})


@pytest.mark.req("B-JSCH-09")
@pytest.mark.parametrize("named", [{}, {"$id": "https://example.com/contact"}])
def test_local_references_and_anchors_resolve(named):
    schema = {
        **named,
        "$schema": DRAFT_2020,
        "type": "object",
        "$defs": {
            "phone": {"$anchor": "phone", "type": "string"},
            "address": {"type": "object", "properties": {"street": {"type": "string"}}},
        },
        "properties": {
            "phone": {"$ref": "#phone"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"enum": ["phone", "email"]},
            "children": {"type": "array", "items": {"$ref": "#"}},
        },
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "additionalProperties": False,
    }
    for arguments, fits in [
        ({"phone": "1", "contactMethod": "phone"}, True),
        ({"contactMethod": "phone"}, False),
        ({"phone": 1}, False),
        ({"address": {"street": "x"}}, True),
        ({"address": {"street": 5}}, False),
        ({"children": [{"phone": "1"}, {"children": []}]}, True),
        ({"children": [{"phone": 1}]}, False),
        ({"other": 1}, False),
    ]:
        assert accepts(schema, arguments) is fits, arguments


PYTHON_TRAPS = [
    ("integer", 1, True),
    ("integer", 1.0, True),
    ("integer", True, False),
    ("integer", "1", False),
    ("integer", 1.5, False),
    ("integer", 2**70, True),
    ("number", 1, True),
    ("number", 1.5, True),
    ("number", False, False),
    ("number", "1", False),
    ("boolean", True, True),
    ("boolean", 1, False),
    ("boolean", 0, False),
    ("string", "1", True),
    ("string", 1, False),
    ("null", None, True),
    ("null", 0, False),
    ("array", [], True),
    ("array", "", False),
    ("object", {}, True),
    ("object", [], False),
]


@pytest.mark.req("B-JSCH-10")
@pytest.mark.parametrize(("kind", "value", "fits"), PYTHON_TRAPS)
def test_pythons_idea_of_a_number_is_not_jsons(kind, value, fits):
    """The same with the small validator and with the full one (which `minLength` asks for)."""
    assert accepts(properties(a={"type": kind}), {"a": value}) is fits
    assert accepts(properties(a={"type": kind}, b={"minLength": 1}), {"a": value}) is fits


ROOTS = [
    ({"type": "array", "items": {"type": "integer"}}, [1, 2], ["x"]),
    ({"type": "integer", "minimum": 1}, 1, 0),
    ({"type": "string"}, "x", 5),
    ({"anyOf": [{"type": "null"}, {"type": "boolean"}]}, None, 0),
    ({"enum": [1, "a"]}, "a", "b"),
    ({"$ref": "#/$defs/n", "$defs": {"n": {"type": "number"}}}, 1.5, "x"),
    ({}, [1], None),
]


@pytest.mark.req("S-JSCH-11", "S-CALL-18", "S-LIST-12")
@pytest.mark.parametrize(("schema", "good", "bad"), ROOTS)
def test_an_output_schema_may_have_any_root(schema, good, bad):
    server = Server("demo", version="1.0.0")
    given = [good, bad]
    server.tool(lambda: given[0], name="t", output_schema=schema)
    (tool,) = exchange(server, modern("tools/list"))["result"]["tools"]
    assert tool["outputSchema"] == schema
    assert call(server, {})["result"]["structuredContent"] == good
    if schema:
        given.reverse()
        assert_tool_error(call(server, {}))


EVIL = [
    "^([^a]|b)+$",
    "^(a|ab|b)*$",
    "^(a|b|ab)*c",
    "(?i)^(a|Ab|b)*$",
    "(a+)+$",
    "^(a+)+$",
    "(a*)*b",
    "^(([a-z])+.)+[A-Z]([a-z])+$",
    "(a|aa)+$",
    "(.*a){25}",
    "^(-a+a+)*$",
    "^(-(a+)+)*$",
    "^(-((a*){1,3})?)+$",
    "(?i)^([A-Z][a-z]+)*$",
    "^((?i:A)a+)*$",
    "^(a+b?)*$",
    "a*a*a*a*a*a*!!",
    "^(?=(a|ab|b)*$)",
]


@pytest.mark.req("B-JSCH-12")
@pytest.mark.timeout(20)
@pytest.mark.parametrize("pattern", EVIL)
@pytest.mark.parametrize("letters", ["a", "ab"])
def test_no_pattern_and_no_text_can_hold_an_answer_back(pattern, letters):
    server = serving(properties(a={"type": "string", "pattern": pattern}))
    assert call(server, {"a": letters * 5000 + "!"})["result"]["content"]


SLOW = properties(a={"type": "string", "pattern": "^(a|a)*$"})


@pytest.mark.req("B-JSCH-12", "S-CALL-05")
@pytest.mark.timeout(20)
def test_who_sends_a_text_that_takes_too_long_reads_why_it_was_refused():
    reply = call(serving(SLOW), {"a": "a" * 60 + "!"})
    assert_tool_error(reply, "arguments: takes too long to compare with the patterns")


@pytest.mark.req("B-JSCH-12")
@pytest.mark.timeout(20)
def test_many_texts_that_take_a_little_have_the_time_of_one():
    server = serving(properties(a={"items": {"pattern": "^(a|a)*$|!$"}}))
    reply = call(server, {"a": ["a" * 14 + "!"] * 20_000})
    assert_tool_error(reply, "takes too long")


@pytest.mark.req("B-JSCH-12")
def test_other_calls_go_on_while_a_pattern_takes_its_time():
    server = serving(SLOW)
    slow = threading.Thread(target=server.tools["t"].check, args=({"a": "a" * 60 + "!"},))
    slow.start()
    assert call(server, {"a": "aaa"}) == DONE
    assert slow.is_alive()
    slow.join()


@pytest.mark.req("B-JSCH-12")
@pytest.mark.timeout(20)
def test_a_long_text_is_searched_in_linear_time():
    server = serving(properties(a={"type": "string", "pattern": "[0-9]+-[0-9]+"}))
    assert_tool_error(call(server, {"a": "1" * 2_000_000}), "arguments")


LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
HONEST = [
    ("^[a-z]+$", "abc", "abc1"),
    (r"^\d{4}-\d{2}$", "2026-07", "2026-7"),
    ("^(red|green|blue)*$", "redblue", "reblue"),
    ("^[a-z0-9]+(-[a-z0-9]+)*$", "a-b-c1", "a--b"),
    (r"^([a-z]+\.)+[a-z]{2,}$", "www.example.org", "example"),
    (r"^-?\d{1,3}(,\d{3})*(\.\d+)?$", "-1,000.5", "1,00"),
    (rf"^{LABEL}(\.{LABEL})*$", "my-host.example.org", "-host.example.org"),
    (
        r"^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-([0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*))?$",
        "1.0.2-rc.1",
        "1.02.3",
    ),
    (r"^(?=.*\d)(?=.*[a-z]).{8,}$", "passw0rd", "password"),
    (r"^\p{L}+$", "größe", "x1"),
    (r"^(?<year>\d{4})$", "2026", "26"),
]


@pytest.mark.req("B-JSCH-12", "B-JSCH-01")
@pytest.mark.parametrize(("pattern", "good", "bad"), HONEST)
def test_an_honest_pattern_is_welcome(pattern, good, bad):
    schema = properties(a={"type": "string", "pattern": pattern})
    assert [accepts(schema, {"a": text}) for text in (good, bad)] == [True, False]


@pytest.mark.req("B-JSCH-12")
@pytest.mark.parametrize("pattern", ["(a+)+$", "^(a|a)*$", "^(a?a?)+$", "^(b(a+b?)*){2}$"])
def test_a_pattern_of_names_that_could_hang_is_refused(pattern):
    with pytest.raises(ValueError, match="repeats a repetition") as caught:
        serving({"type": "object", "patternProperties": {pattern: {}}})
    assert pattern in str(caught.value)


@pytest.mark.req("B-JSCH-12")
@pytest.mark.parametrize("pattern", ["^x-", "^[a-z]+$", "^(a|b)-[0-9]*$", "^([0-9a-f]{2}){4}$"])
def test_an_honest_pattern_of_names_is_welcome(pattern):
    schema = {"patternProperties": {pattern: {}}, "additionalProperties": False}
    assert accepts({"type": "object", **schema}, {"?": 1}) is False


@pytest.mark.req("B-JSCH-12")
def test_a_pattern_is_looked_for_in_schemas_only():
    default = {"pattern": "[", "patternProperties": ["("]}
    server = serving(properties(a={"default": default, "minProperties": 0}))
    assert call(server, {"a": {}})["result"]["content"]


@pytest.mark.req("B-JSCH-12", "C-CALL-25")
@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "rest", [{}, *({f"{word}Properties": False} for word in ("additional", "unevaluated"))]
)
def test_no_foreign_pattern_of_names_is_ever_run(rest):
    check = checker({"patternProperties": {"(a+)+$": {}}, **rest}, trusted=False)
    assert check({"a" * 60 + "!": 1}) == []


@pytest.mark.req("C-CALL-25")
def test_a_foreign_pattern_that_python_cannot_read_is_no_trouble():
    check = checker(properties(a={"type": "string", "pattern": "[^]"}), trusted=False)
    assert (check({"a": "x"}), check({"a": 1}) != []) == ([], True)


@pytest.mark.req("B-JSCH-12", "C-CALL-25")
@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    ("schema", "structured"),
    [
        (properties(a={"type": "string", "pattern": "(a+)+$"}), {"a": "a" * 40 + "!"}),
        ({"type": "object", "patternProperties": {"(a+)+$": {}}}, {"a" * 40 + "!": 1}),
    ],
)
def test_a_client_cannot_be_hung_by_a_foreign_pattern(tmp_path, schema, structured):
    tool = {"name": "t", "inputSchema": {"type": "object"}, "outputSchema": schema}
    with Client(stub(tmp_path, [tool], structured).command) as client:
        client.list_tools()
        try:
            client.call_tool("t", {})
        except Exception as error:
            assert "structuredContent" in str(error)


@pytest.mark.req("C-JSCH-13", "C-CALL-25")
def test_a_client_keeps_what_it_does_not_know_and_does_not_stumble_over_it(tmp_path):
    schema = {"type": "object", "x-unknown": {"deep": [1]}, "$comment": "kept", "format": "zzz"}
    tool = {"name": "t", "inputSchema": schema, "outputSchema": schema}
    with Client(stub(tmp_path, [tool], {"a": 1}).command) as client:
        assert client.list_tools() == [tool]
        assert client.call_tool("t", {}).structured == {"a": 1}


@pytest.mark.parametrize("library", ["jsonschema", "regex"])
def test_without_a_library_its_absence_is_told_with_what_to_do(monkeypatch, library):
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.delitem(sys.modules, "minimcp.dialects", raising=False)
    with pytest.raises(ImportError) as caught:
        serving(properties(a={"pattern": "x"}))
    told = "this schema needs the full validator: pip install 'jsonschema>=4.23' regex"
    assert str(caught.value) == told
