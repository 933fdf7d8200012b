"""The HTTP wire of the client, against servers that are scripts: headers, replies, both eras."""

import json
import os
import queue
import re
import shutil
import socket
import subprocess
import threading
import time

import pytest
from stubs.http_stub import (
    LEGACY,
    MODERN,
    STREAM,
    Last,
    Site,
    as_json,
    error,
    event,
    event_stream,
    http,
    legacy,
    modern,
    result,
    said,
    tool,
)
from support import OLD, free_port, until
from support_skips import need

from minimcp import Client, ProtocolError
from minimcp.http_exchange import Endpoint

VERSION = "io.modelcontextprotocol/protocolVersion"
ACCEPT = "application/json, text/event-stream"


def calling(answer, otherwise=modern):
    """A script in which `answer` serves `tools/call`."""

    def script(request):
        return answer(request) if request.method == "tools/call" else otherwise(request)

    return script


def quickly(started, seconds=10):
    return time.monotonic() - started < seconds


# -- requests and their headers


@pytest.mark.req("C-HTTP-40")
@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_every_message_is_a_post_of_its_own_that_takes_json_and_streams(era):
    """B066: a server may refuse a client that does not take both."""
    with Site(legacy if era == "legacy" else modern) as site, Client(site.url, era=era) as client:
        client.list_tools()
        client.call_tool("any", {})
        client.notify("notifications/roots/list_changed")
        assert len(site.methods()) == len(site.requests) == {"modern": 4, "legacy": 5}[era]
        for request in site.requests:
            assert (request.verb, request.target) == ("POST", "/mcp")
            assert request.headers["accept"] == ACCEPT
            assert request.headers["content-type"] == "application/json"
            assert request.headers["host"] == f"127.0.0.1:{site.port}"
            assert len(request.names) == len(set(request.names))


@pytest.mark.req("C-HTTP-41")
def test_the_headers_of_a_modern_request_say_what_its_body_says():
    with Site(modern) as site, Client(site.url) as client:
        client.list_tools()
        client.call_tool("calc.add", {"a": 1})
        client.request("resources/read", {"uri": "file:///a%20b.txt"})
        client.request("prompts/get", {"name": "greet"})
        client.request("resources/list")
        client.request("x/name", {"name": "not a name for a header"})
        named = [request.headers.get("mcp-name") for request in site.requests]
        assert named == [None, None, "calc.add", "file:///a%20b.txt", "greet", None, None]
        for request in site.requests:
            assert request.headers["mcp-method"] == request.method
            assert request.headers["mcp-protocol-version"] == MODERN
            assert request.params["_meta"][VERSION] == MODERN
            assert "mcp-session-id" not in request.headers


@pytest.mark.req("C-HTTP-42")
@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("plain-name_1.x", "plain-name_1.x"),
        ("two words", "two words"),
        ("größe", "=?base64?Z3LDtsOfZQ==?="),
        (" x ", "=?base64?IHgg?="),
        ("a\nb", "=?base64?YQpi?="),
        ("=?base64?a?=", "=?base64?PT9iYXNlNjQ/YT89?="),
    ],
)
def test_a_name_that_is_no_plain_ascii_travels_as_base64(name, header):
    with Site(modern) as site, Client(site.url) as client:
        assert client.call_tool(name, {}).text == "called"
        assert site.requests[-1].headers["mcp-name"] == header
        assert site.requests[-1].params["name"] == name


def listing(*tools, then=modern):
    """A script that lists these tools."""

    def script(request):
        if request.method == "tools/list":
            return as_json(result(request, tools=list(tools)))
        return then(request)

    return script


@pytest.mark.req("C-HTTP-43", "C-HTTP-44")
@pytest.mark.parametrize(
    ("kind", "value", "header"),
    [
        ("string", "us-west1", "us-west1"),
        ("string", "two inner words", "two inner words"),
        ("string", "", ""),
        ("string", "Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        ("string", " padded ", "=?base64?IHBhZGRlZCA=?="),
        ("string", "end ", "=?base64?ZW5kIA==?="),
        ("string", "line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
        ("string", "a\r\nX-Evil: 1", "=?base64?YQ0KWC1FdmlsOiAx?="),
        ("string", "a\tb", "=?base64?YQli?="),
        ("string", "\x00", "=?base64?AA==?="),
        ("string", "\x7f", "=?base64?fw==?="),
        ("string", "=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ("string", "true", "true"),
        ("integer", 42, "42"),
        ("integer", -7, "-7"),
        ("integer", 0, "0"),
        ("integer", 9007199254740991, "9007199254740991"),
        ("integer", 42.0, "42"),
        ("boolean", True, "true"),
        ("boolean", False, "false"),
    ],
)
def test_a_marked_argument_is_mirrored_into_its_header(kind, value, header):
    marked = tool("t", p={"type": kind, "x-mcp-header": "Pa"}, q={"type": "string"})
    with Site(listing(marked)) as site, Client(site.url) as client:
        client.list_tools()
        client.call_tool("t", {"p": value, "q": "unmarked"})
        request = site.requests[-1]
        assert request.params["arguments"] == {"p": value, "q": "unmarked"}
        mirrored = {name: x for name, x in request.headers.items() if name.startswith("mcp-param")}
        assert mirrored == {"mcp-param-pa": header}


@pytest.mark.req("C-HTTP-43")
@pytest.mark.parametrize("number", [2**53, -(2**53), 10**25, 1e16])
def test_a_marked_number_that_not_everybody_reads_exactly_is_not_sent(number):
    marked = tool("t", p={"type": "integer", "x-mcp-header": "P"})
    with Site(listing(marked)) as site, Client(site.url) as client:
        client.list_tools()
        with pytest.raises(ProtocolError, match=re.escape(str(number))):
            client.call_tool("t", {"p": number})
        assert client.call_tool("t", {"p": 1}).text == "called"
    assert site.methods().count("tools/call") == 1


@pytest.mark.req("C-HTTP-43", "C-HTTP-45")
@pytest.mark.parametrize(
    ("arguments", "mirrored"),
    [
        ({"where": {"region": "eu"}, "n": 1}, {"mcp-param-region": "eu", "mcp-param-n": "1"}),
        ({"where": {"region": None}, "n": None}, {}),
        ({"where": {}}, {}),
        ({"where": "no object"}, {}),
        ({}, {}),
        ({"region": "elsewhere"}, {}),
    ],
)
def test_an_argument_that_is_null_or_absent_has_no_header(arguments, mirrored):
    region = {"type": "string", "x-mcp-header": "Region"}
    where = {"type": "object", "properties": {"region": region}}
    marked = tool("t", where=where, n={"type": "integer", "x-mcp-header": "N"})
    with Site(listing(marked)) as site, Client(site.url) as client:
        client.list_tools()
        client.call_tool("t", arguments)
        sent = site.requests[-1]
        assert sent.params["arguments"] == arguments
        found = {name: x for name, x in sent.headers.items() if name.startswith("mcp-param")}
        assert found == mirrored


def marked(mark, kind="string"):
    return {"type": kind, "x-mcp-header": mark}


BAD = {
    "empty": tool("empty", p=marked("")),
    "space": tool("space", p=marked("a b")),
    "colon": tool("colon", p=marked("a:b")),
    "control": tool("control", p=marked("a\r\nb")),
    "letters": tool("letters", p=marked("größe")),
    "no_text": tool("no_text", p=marked(1)),
    "twice": tool("twice", p=marked("Same"), q=marked("sAME")),
    "number": tool("number", p=marked("N", "number")),
    "object": tool("object", p=marked("N", "object")),
    "array": tool("array", p=marked("N", "array")),
    "untyped": tool("untyped", p={"x-mcp-header": "N"}),
    "null": tool("null", p=marked("N", "null")),
    "types": tool("types", p=marked("N", ["string", "null"])),
    "items": tool("items", p={"type": "array", "items": marked("N")}),
    "any_of": tool("any_of", p={"anyOf": [marked("N")]}),
    "defs": {"name": "defs", "inputSchema": {"type": "object", "$defs": {"d": marked("N")}}},
    "when": {
        "name": "when",
        "inputSchema": {"type": "object", "if": {"properties": {"p": marked("N")}}},
    },
    "root": {"name": "root", "inputSchema": marked("N", "object")},
}
UNTYPED, ELSEWHERE = "needs one type of string", "alone do not lead"
REASONS = {"twice": "is there twice"}
REASONS |= dict.fromkeys(("number", "object", "array", "untyped", "null", "types"), UNTYPED)
REASONS |= dict.fromkeys(("items", "any_of", "defs", "when", "root"), ELSEWHERE)


@pytest.mark.req("C-HTTP-46", "C-HTTP-47")
@pytest.mark.parametrize("name", BAD)
def test_a_tool_with_a_bad_mark_is_left_out_and_named(name, capfd):
    good = tool("good", region=marked("Region"))
    with Site(listing(good, BAD[name], tool("plain"))) as site, Client(site.url) as client:
        assert client.list_tools() == [good, tool("plain")]
    (warning,) = capfd.readouterr().err.splitlines()
    assert f"'{name}'" in warning
    assert "x-mcp-header" in warning
    assert REASONS.get(name, "is not the name of a header") in warning


@pytest.mark.parametrize("depth", [300, 2000, 20_000])
def test_a_list_nested_beyond_reason_never_ends_in_a_recursion_error(depth):
    """How deep is too deep, and whether the parser says so, depends on the Python."""
    inner = '{"type":"object","properties":{"p":' * depth + "{}" + "}}" * depth
    tools = '[{"name":"plain","inputSchema":{}},{"name":"deep","inputSchema":' + inner + "}]"

    def script(request):
        if request.method != "tools/list":
            return modern(request)
        shallow = json.dumps(result(request, tools=["here"]))
        return http(200, shallow.replace('["here"]', tools))

    with Site(script) as site, Client(site.url) as client:
        try:
            assert client.list_tools()[0]["name"] == "plain"
        except ConnectionError as error:
            assert "tools/list" in str(error)


@pytest.mark.req("C-HTTP-46")
def test_a_legacy_list_is_left_as_it_is(capfd):
    """That revision knows no marks."""
    with Site(listing(BAD["empty"], then=legacy)) as site, Client(site.url) as client:
        assert client.list_tools() == [BAD["empty"]]
        client.call_tool("empty", {"p": "x"})
        assert [n for n in site.requests[-1].names if n.startswith(("mcp-name", "mcp-param"))] == []
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("tools", [None, {}, "text", [1], [None], [[]], [{"inputSchema": {}}]])
def test_a_list_that_makes_no_sense_is_an_error(tools):
    script = lambda r: as_json(result(r, tools=tools)) if r.method == "tools/list" else modern(r)  # noqa: E731
    with Site(script) as site, Client(site.url) as client:
        with pytest.raises(ConnectionError, match="tools/list"):
            client.list_tools()
        assert client.call_tool("any", {}).text == "called"


@pytest.mark.req("C-HTTP-48")
def test_a_header_mismatch_leads_to_a_new_list_and_one_retry():
    """The server has changed what it wants, and the list that the client keeps is old."""
    schemas = [tool("t", p=marked("P")), tool("t", p={"type": "string"})]

    def script(request):
        if request.method == "tools/list":
            return as_json(result(request, tools=[schemas.pop()], ttlMs=60_000))
        if request.method == "tools/call" and "mcp-param-p" not in request.headers:
            return as_json(error(request, -32020, "Header mismatch: Mcp-Param-P"), 400)
        return modern(request)

    with Site(script) as site, Client(site.url) as client:
        client.list_tools()
        assert client.call_tool("t", {"p": "x"}).text == "called"
        assert client.call_tool("t", {"p": "y"}).text == "called"
        calls = ["tools/list", "tools/call", "tools/list", "tools/call", "tools/call"]
        assert site.methods() == ["server/discover", *calls]
        assert site.requests[-1].headers["mcp-param-p"] == "y"


@pytest.mark.req("C-HTTP-48")
def test_a_header_mismatch_that_stays_is_an_error():
    mismatch = calling(lambda request: as_json(error(request, -32020, "still not"), 400))
    with Site(mismatch) as site, Client(site.url) as client:
        with pytest.raises(ProtocolError, match="still not") as caught:
            client.call_tool("t", {})
        assert caught.value.code == -32020
        assert site.methods()[1:] == ["tools/call", "tools/list", "tools/call"]


def test_a_token_in_the_environment_is_sent_with_every_message(monkeypatch):
    with Site(modern) as site:
        with Client(site.url, env={"MINIMCP_TOKEN": "secret"}) as client:
            client.call_tool("any", {})
        monkeypatch.setenv("MINIMCP_TOKEN", "another")
        with Client(site.url):
            pass
        sent = [request.headers["authorization"] for request in site.requests]
        assert sent == ["Bearer secret", "Bearer secret", "Bearer another"]


def test_without_a_token_nothing_is_authorized(monkeypatch):
    monkeypatch.delenv("MINIMCP_TOKEN", raising=False)
    with Site(modern) as site, Client(site.url):
        assert "authorization" not in site.requests[0].headers


# -- replies


def with_line_ends(end):
    return lambda r: event_stream(event(said(r, "größe €"), end=end, event="message"))


def in_several_lines(request):
    text = json.dumps(said(request, "größe €"), indent=2)
    return event_stream("".join(f"data: {x}\n" for x in text.splitlines()).encode() + b"\n")


def byte_by_byte(request):
    return Last([STREAM, *(bytes([b]) for b in event(said(request, "größe €")))])


REPLIES = {
    "json": lambda r: as_json(said(r, "größe €")),
    "json with a charset": lambda r: http(
        200, json.dumps(said(r, "größe €")), "application/json; charset=utf-8"
    ),
    "json in upper case": lambda r: http(200, json.dumps(said(r, "größe €")), "Application/JSON"),
    "json of no type": lambda r: http(200, json.dumps(said(r, "größe €")), None),
    "json until the end": lambda r: Last(
        [b"HTTP/1.1 200 OK\r\n\r\n", json.dumps(said(r, "größe €")).encode()]
    ),
    "json by HTTP/1.0": lambda r: Last(
        [b"HTTP/1.0 200 OK\r\n\r\n", json.dumps(said(r, "größe €")).encode()]
    ),
    "json in pieces": lambda r: [bytes([b]) for b in as_json(said(r, "größe €"))],
    "stream": lambda r: event_stream(said(r, "größe €")),
    "stream until the end": lambda r: Last([STREAM, event(said(r, "größe €"))]),
    "stream with a charset": lambda r: Last(
        [STREAM.replace(b"-stream", b"-stream; charset=utf-8"), event(said(r, "größe €"))]
    ),
    "LF": with_line_ends("\n"),
    "CRLF": with_line_ends("\r\n"),
    "several lines": in_several_lines,
    "byte by byte": byte_by_byte,
    "no space": lambda r: event_stream(
        b"data:" + json.dumps(said(r, "größe €")).encode() + b"\n\n"
    ),
    "unknown fields": lambda r: event_stream(
        b"id: 1\nx: y\nnothing\nevent: message\nretry: soon\n" + event(said(r, "größe €"))
    ),
    "comments": lambda r: event_stream(b": hi\n\n:\n:\n\n", event(said(r, "größe €"))),
    "a comment in an event": lambda r: event_stream(b": hi\n" + event(said(r, "größe €"))),
    "empty data": lambda r: event_stream(b"data:\n\ndata: \n\ndata\n\n", event(said(r, "größe €"))),
    "garbage before": lambda r: event_stream("no JSON", "[]", "7", event(said(r, "größe €"))),
    "others before": lambda r: event_stream(
        {"jsonrpc": "2.0", "id": 999, "result": {}},
        {"jsonrpc": "2.0", "id": True, "result": {}},
        event(said(r, "größe €")),
    ),
}


@pytest.mark.req("S-ENV-07", "S-ENV-16")
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("text", [b'"\xff"', b'"\xed\xa0\x80"', b'"x", "y": NaN'])
def test_a_reply_that_is_no_strict_json_is_no_answer(text, stream):
    def broken(request):
        data = json.dumps(said(request, "TEXT")).encode().replace(b'"TEXT"', text)
        return event_stream(b"data: " + data + b"\n\n") if stream else http(200, data)

    refused = pytest.raises(ConnectionError, match=r"not JSON|no answer")
    with Site(calling(broken)) as site, Client(site.url) as client, refused:
        client.call_tool("any", {})


@pytest.mark.req("C-HTTP-49")
@pytest.mark.parametrize("era", ["modern", "legacy"])
@pytest.mark.parametrize("form", REPLIES)
def test_a_reply_is_read_in_every_form(form, era, capfd):
    script = calling(REPLIES[form], legacy if era == "legacy" else modern)
    with Site(script) as site, Client(site.url, era=era) as client:
        for _ in range(2):
            assert client.call_tool("t", {}).text == "größe €"
        assert site.methods().count("tools/call") == 2
    assert capfd.readouterr().err == ""


@pytest.mark.req("C-HTTP-49")
@pytest.mark.parametrize("form", [as_json, event_stream])
def test_text_with_odd_line_separators_arrives_whole(form):
    text = "one\u2028two\u2029three\x85four\x0bfive\x0csix\x1cseven"
    script = calling(lambda request: form(said(request, text)))
    with Site(script) as site, Client(site.url) as client:
        assert client.call_tool("t", {}).text == text


@pytest.mark.req("C-HTTP-49")
def test_events_may_end_with_crlf():
    """B077: servers that are built on the Python SDK send CRLF."""
    script = calling(
        lambda r: event_stream(b"event: message\r\ndata: %s\r\n\r\n" % json.dumps(said(r)).encode())
    )
    with Site(script) as site, Client(site.url) as client:
        assert client.call_tool("t", {}).text == "called"


@pytest.mark.req("C-HTTP-49")
def test_comments_and_empty_data_are_no_messages(capfd):
    """B078: they were parsed as JSON."""
    script = calling(
        lambda r: event_stream(b": ping\n\ndata:\n\ndata: %s\n\n" % json.dumps(said(r)).encode())
    )
    seen = []
    with (
        Site(script) as site,
        Client(site.url, trace=lambda sender, message: seen.append((sender, message))) as client,
    ):
        assert client.call_tool("t", {}).text == "called"
    assert [sender for sender, _ in seen] == ["client", "server"] * 2
    assert capfd.readouterr().err == ""


@pytest.mark.req("C-HTTP-49")
def test_notifications_before_the_answer_reach_the_caller_in_order():
    def progress(request):
        for value in range(3):
            token = request.params["_meta"]["progressToken"]
            params = {"progressToken": token, "progress": value}
            yield event({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})

    heard = []
    script = calling(lambda r: event_stream(*progress(r), said(r)))
    hear = lambda method, params: heard.append((method, params["progress"]))  # noqa: E731
    with Site(script) as site, Client(site.url, on_notification=hear) as client:
        assert client.call_tool("t", {}).text == "called"
        assert heard == [("notifications/progress", value) for value in range(3)]


def test_an_answer_is_taken_while_its_stream_stays_open():
    ended = threading.Event()

    def script(request):
        yield STREAM
        yield event(said(request))
        assert request.hung_up()
        ended.set()

    with Site(calling(script)) as site, Client(site.url) as client:
        started = time.monotonic()
        assert client.call_tool("t", {}).text == "called"
        assert quickly(started)
        assert ended.wait(10)


ODD = {
    "a page": http(200, "<html><body>Welcome to <b>nginx</b>", "text/html"),
    "a bad gateway": http(502, "<html><h1>Bad Gateway</h1>", "text/html"),
    "nothing": http(200),
    "no content": http(204, content_type=None),
    "accepted": http(202, content_type=None),
    "an object": http(200, "{}"),
    "an array": http(200, "[]"),
    "half an object": http(200, '{"jsonrpc":'),
    "unauthorized": http(401, '{"error": "invalid_token"}'),
    "too many": http(429, "slow down", "text/plain"),
    "a stream that ends": Last([STREAM]),
    "a stream cut off": Last([STREAM, b'data: {"jsonrpc"']),
    "a chunk cut off": Last([event_stream("x")[:-9]]),
    "a body cut off": Last([http(200, '{"jsonrpc": "2.0"}')[:-4]]),
    "no HTTP": Last([b"SSH-2.0-OpenSSH_9.6\r\n"]),
    "half a header": Last([b"HTTP/1.1 200 OK\r\nContent-Le"]),
    "hanging up": None,
}


@pytest.mark.req("C-HTTP-51")
@pytest.mark.parametrize("era", ["modern", "legacy"])
@pytest.mark.parametrize("what", ODD)
def test_a_reply_that_is_no_answer_is_an_error_at_once_that_names_the_tool(what, era):
    script = calling(lambda request: ODD[what], legacy if era == "legacy" else modern)
    with Site(script) as site, Client(site.url, era=era) as client:
        started = time.monotonic()
        with pytest.raises(ConnectionError, match="tools/call charge") as caught:
            client.call_tool("charge", {})
        assert quickly(started)
        assert site.url in str(caught.value)
        assert len(str(caught.value)) < 500
        assert site.methods().count("tools/call") == 1  # it may have been charged already
        assert client.request("x/next")["resultType"] == "complete"


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (ODD["a page"], ["200", "nginx"]),
        (ODD["a bad gateway"], ["502", "Bad Gateway"]),
        (ODD["unauthorized"], ["401", "invalid_token"]),
        (ODD["a body cut off"], ["cut off"]),
        (ODD["no HTTP"], ["SSH"]),
    ],
)
def test_the_error_shows_what_came_instead(reply, words):
    with Site(calling(lambda request: reply)) as site, Client(site.url) as client:
        with pytest.raises(ConnectionError) as caught:
            client.call_tool("t", {})
        assert [word for word in words if word not in str(caught.value)] == []


def test_a_server_that_dies_during_a_call_is_an_error_that_names_the_tool():
    """B086: the pending call never ended."""
    with Site(calling(lambda request: None)) as site, Client(site.url) as client:
        started = time.monotonic()
        with pytest.raises(ConnectionError, match="tools/call slow"):
            client.call_tool("slow", {})
        assert quickly(started)
        assert site.methods() == ["server/discover", "tools/call"]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("era", ["auto", "modern", "legacy"])
def test_a_redirect_is_named_and_not_followed(status, era):
    with Site(modern) as other:
        script = lambda request: http(status, Location=other.url)  # noqa: E731
        with Site(script) as site, pytest.raises(ConnectionError) as caught:
            Client(site.url, era=era, env={"MINIMCP_TOKEN": "secret"})
        assert other.url in str(caught.value)
        assert str(status) in str(caught.value)
        assert len(site.requests) == 1
        assert other.requests == []


@pytest.mark.parametrize("era", ["auto", "modern", "legacy"])
def test_a_refused_connection_is_an_error_that_names_the_address(era):
    port = free_port()
    with pytest.raises(ConnectionError, match=f"127.0.0.1:{port}") as caught:
        Client(f"http://127.0.0.1:{port}/mcp", era=era)
    assert "refused" in str(caught.value)


@pytest.mark.parametrize("url", ["localhost:3000", "ftp://x/", "http://", "/mcp", "", "http:///x"])
def test_a_target_that_is_no_address_is_an_error_that_shows_one(url):
    with pytest.raises(ConnectionError, match="http://"):
        Client(url)


def test_an_error_of_the_server_is_raised_whatever_id_it_has():
    for ident in ({"id": None}, {}, {"id": "server-error"}, {"id": 999}):
        reply = {"jsonrpc": "2.0", **ident, "error": {"code": -32603, "message": "oh"}}
        for form in as_json(reply, 500), as_json(reply), event_stream(reply):
            with Site(calling(lambda r, form=form: form)) as site, Client(site.url) as client:
                with pytest.raises(ProtocolError, match="oh") as caught:
                    client.call_tool("t", {})
                assert caught.value.code == -32603


def test_method_not_found_is_an_error_of_the_server():
    script = calling(lambda request: as_json(error(request, -32601, "no such method"), 404))
    with Site(script) as site, Client(site.url) as client:
        with pytest.raises(ProtocolError, match="no such method") as caught:
            client.call_tool("t", {})
        assert caught.value.code == -32601


@pytest.mark.req("C-HTTP-52")
def test_a_request_on_a_modern_stream_is_never_answered():
    asked = {"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": {}}
    answers = []
    script = calling(
        lambda r: event_stream(
            {**asked, "method": "ping"}, asked, {**asked, "id": r.id, "result": {}}, said(r)
        )
    )
    handlers = {"elicitation/create": lambda params: answers.append(params) or {}}
    with Site(script) as site, Client(site.url, on_input=handlers) as client:
        assert client.call_tool("t", {}).text == "called"
        assert client.call_tool("t", {}).text == "called"
    assert answers == []
    assert site.methods() == ["server/discover", "tools/call", "tools/call"]
    assert len(site.requests) == 3


# -- notifications


@pytest.mark.req("C-HTTP-53")
@pytest.mark.parametrize("era", ["modern", "legacy"])
@pytest.mark.parametrize(
    "reply",
    [
        http(202, content_type=None),
        http(204, content_type=None),
        http(200),
        http(200, "{}"),
        http(200, '{"jsonrpc":"2.0","result":{}}'),
        http(202, "Accepted", "text/plain"),
        event_stream(),
    ],
)
def test_a_notification_is_taken_with_any_success_and_any_body(reply, era, capfd):
    def script(request):
        if request.id is None:
            return reply
        return legacy(request) if era == "legacy" else modern(request)

    with Site(script) as site, Client(site.url, era=era) as client:
        client.notify("notifications/roots/list_changed")
        assert client.call_tool("any", {}).text == "called"
    assert capfd.readouterr().err == ""


@pytest.mark.req("C-HTTP-53")
def test_202_without_a_body_is_no_error(capfd):
    """B079: it was reported as one."""
    with Site(modern) as site, Client(site.url) as client:
        client.notify("notifications/roots/list_changed")
        assert site.methods() == ["server/discover", "notifications/roots/list_changed"]
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("reply", [http(400, "no"), http(500), None])
def test_a_notification_that_is_refused_leaves_a_line_and_no_exception(reply, capfd):
    script = lambda request: reply if request.id is None else modern(request)  # noqa: E731
    with Site(script) as site, Client(site.url) as client:
        client.notify("notifications/roots/list_changed")
        assert client.call_tool("any", {}).text == "called"
    assert "notifications/roots/list_changed" in capfd.readouterr().err


@pytest.mark.req("C-HTTP-53")
@pytest.mark.parametrize(
    ("end", "target"),
    [
        ("", "/"),
        ("/", "/"),
        ("/a/b?c=d&e=%20", "/a/b?c=d&e=%20"),
        ("?x=1", "/?x=1"),
        ("/p#f", "/p"),
    ],
)
def test_an_address_may_have_any_path_or_none(end, target):
    with Site(modern, path=end) as site, Client(site.url) as client:
        assert client.call_tool("any", {}).text == "called"
        assert {request.target for request in site.requests} == {target}


# -- connections


def connections(site):
    return len({id(request.connection) for request in site.requests})


def test_a_connection_is_kept_for_the_next_message():
    with Site(modern) as site, Client(site.url) as client:
        for _ in range(20):
            client.call_tool("any", {})
        assert connections(site) == 1
        endpoint = client.connection.wire.endpoint
        assert (len(endpoint.spare), len(endpoint.busy)) == (1, 0)


def test_a_kept_connection_that_was_dropped_is_replaced():
    with Site(modern) as site, Client(site.url) as client:
        for _ in range(3):
            before = len(site.connections)
            site.connections[-1].shutdown(socket.SHUT_RDWR)
            assert client.call_tool("any", {}).text == "called"
            assert len(site.connections) == before + 1
        assert site.methods().count("tools/call") == 3


def test_a_server_may_close_after_every_reply():
    def script(request):
        return Last([as_json(said(request), Connection="close")])

    with Site(calling(script)) as site, Client(site.url) as client:
        for _ in range(5):
            assert client.call_tool("any", {}).text == "called"


def test_a_server_that_was_restarted_is_found_again():
    site = Site(modern, listener=socket.create_server(("127.0.0.1", free_port())))
    with Client(site.url) as client:
        assert client.call_tool("any", {}).text == "called"
        site.stop()
        with pytest.raises(ConnectionError, match="tools/call any"):
            client.call_tool("any", {})
        with Site(modern, listener=until(lambda: listen_on(site.port))):
            assert client.call_tool("any", {}).text == "called"


def listen_on(port):
    try:
        return socket.create_server(("127.0.0.1", port))
    except OSError:
        return None


def test_a_call_after_a_short_time_limit_has_its_own():
    """The time limit of a kept connection was that of the call before."""

    def script(request):
        time.sleep(0.3)
        return as_json(said(request))

    with Site(calling(script)) as site, Client(site.url) as client:
        client.request("x/fast", timeout=0.2)
        assert client.call_tool("slow", {}, timeout=20).text == "called"
        assert connections(site) == 1


def test_calls_of_many_threads_get_their_own_answers():
    def script(request):
        text = str(request.params["arguments"]["n"])
        return event_stream(said(request, text)) if int(text) % 2 else as_json(said(request, text))

    with Site(calling(script)) as site, Client(site.url) as client:
        found = {}

        def work(first):
            for n in range(first, first + 25):
                found[n] = client.call_tool("t", {"n": n}).text

        threads = [threading.Thread(target=work, args=(100 * k,)) for k in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert found == {100 * k + n: str(100 * k + n) for k in range(8) for n in range(25)}
        ids = [request.id for request in site.of("tools/call")]
        assert len(ids) == len(set(ids)) == 200


def test_a_slow_call_holds_no_other_call_up():
    release = threading.Event()

    def script(request):
        if request.params["name"] == "slow":
            release.wait(20)
        return as_json(said(request, request.params["name"]))

    with Site(calling(script)) as site, Client(site.url) as client:
        slow = threading.Thread(target=client.call_tool, args=("slow", {}))
        slow.start()
        until(lambda: len(site.requests) == 2)
        assert client.call_tool("quick", {}).text == "quick"
        release.set()
        slow.join(20)
        assert not slow.is_alive()


def test_nothing_is_left_open_when_the_client_is_closed():
    with Site(modern) as site:
        with Client(site.url) as client:
            client.call_tool("any", {})
        until(lambda: not site.threads[1].is_alive())  # it serves until the client hangs up


def test_closing_ends_a_call_that_another_thread_waits_for():
    hung_up, raised = threading.Event(), []

    def script(request):
        assert request.hung_up()
        hung_up.set()

    with Site(calling(script)) as site, Client(site.url) as client:

        def call():
            with pytest.raises(ConnectionError) as caught:
                client.call_tool("slow", {})
            raised.append(caught.value)

        thread = threading.Thread(target=call)
        thread.start()
        until(lambda: len(site.requests) == 2)
        client.close()
        thread.join(20)
        assert len(raised) == 1
        assert hung_up.wait(10)


# -- time


@pytest.mark.req("C-CANC-14", "C-CLI-01", "C-CLI-02")
@pytest.mark.parametrize("begun", [False, True])
def test_a_modern_call_that_takes_too_long_is_cancelled_by_hanging_up(begun):
    hung_up = threading.Event()

    def script(request):
        yield STREAM if begun else b""
        yield event({"jsonrpc": "2.0", "method": "notifications/x"}) if begun else b""
        assert request.hung_up()
        hung_up.set()

    with Site(calling(script)) as site, Client(site.url) as client:
        started = time.monotonic()
        with pytest.raises(TimeoutError, match=r"tools/call slow: no answer in 0\.3 s"):
            client.call_tool("slow", {}, timeout=0.3)
        assert quickly(started)
        assert hung_up.wait(10)
        assert client.request("x/next")["resultType"] == "complete"
        assert site.methods() == ["server/discover", "tools/call", "x/next"]


def test_no_time_at_all_is_no_time():
    with Site(modern) as site, Client(site.url) as client:
        with pytest.raises(TimeoutError, match="tools/call any"):
            client.call_tool("any", {}, timeout=0)
        assert client.call_tool("any", {}).text == "called"


@pytest.mark.req("C-CANC-15", "C-CLI-02")
def test_a_legacy_call_that_takes_too_long_is_cancelled_by_a_post():
    def script(request):
        request.hung_up()

    with Site(calling(script, legacy)) as site, Client(site.url, era="legacy") as client:
        with pytest.raises(TimeoutError, match="tools/call slow"):
            client.call_tool("slow", {}, timeout=0.3)
        (cancelled,) = until(lambda: site.of("notifications/cancelled"))
        (call,) = site.of("tools/call")
        assert cancelled.params["requestId"] == call.id
        assert cancelled.headers["mcp-protocol-version"] == LEGACY


def test_a_cancellation_is_not_waited_for_long(monkeypatch):
    monkeypatch.setattr("minimcp.http_client.NOTE", 0.2)
    silent = ("tools/call", "notifications/cancelled")

    def script(request):
        if request.method in silent:
            return request.hung_up() and None
        return legacy(request)

    with Site(script) as site, Client(site.url, era="legacy", timeout=60) as client:
        started = time.monotonic()
        with pytest.raises(TimeoutError, match="tools/call slow"):
            client.call_tool("slow", {}, timeout=0.2)
        assert quickly(started)
        assert site.methods()[-2:] == [*silent]


def test_the_end_of_a_session_is_not_waited_for_long(monkeypatch):
    monkeypatch.setattr("minimcp.http_client.NOTE", 0.2)

    def script(request):
        if request.verb == "DELETE":
            return request.hung_up() and None
        return legacy(request, session="s")

    with Site(script) as site:
        client = Client(site.url, era="legacy", timeout=60)
        started = time.monotonic()
        client.close()
        assert quickly(started)
        assert site.verbs()[-1] == "DELETE"


def test_initialized_and_answers_have_the_time_of_a_call(monkeypatch, capfd):
    """A server on a loaded machine takes its time for them too."""
    monkeypatch.setattr("minimcp.http_client.NOTE", 0.05)
    never, answered = threading.Event(), threading.Event()

    def script(request):
        if request.method == "tools/call":
            return ask(request)
        if request.method in ("notifications/initialized", None):
            never.wait(0.4)
        if request.method is None:
            answered.set()
            return http(202, content_type=None)
        return legacy(request)

    def ask(request):
        yield STREAM
        yield event({"jsonrpc": "2.0", "id": "q", "method": "ping"})
        assert answered.wait(20)
        yield event(said(request))

    with Site(script) as site, Client(site.url, era="legacy") as client:
        assert client.call_tool("any", {}).text == "called"
        until(lambda: not client.connection.wire.endpoint.busy)
    assert capfd.readouterr().err == ""


@pytest.mark.req("C-CANC-12")
def test_a_handshake_that_takes_too_long_is_never_cancelled():
    def script(request):
        request.hung_up()

    with Site(script) as site:
        with pytest.raises(ConnectionError, match="initialize"):
            Client(site.url, era="legacy", timeout=0.3)
        assert site.methods() == ["initialize"]


@pytest.mark.req("C-CANC-14", "MATRIX-dual-legacy-http")
def test_the_probe_is_never_cancelled_and_its_silence_means_legacy():
    def script(request):
        if request.method == "server/discover":
            request.hung_up()
            return None
        return legacy(request)

    with Site(script) as site, Client(site.url, probe_timeout=0.3) as client:
        assert client.era == "legacy"
        until(lambda: "notifications/initialized" in site.methods())
        assert site.methods()[:2] == ["server/discover", "initialize"]


@pytest.mark.parametrize("what", ["head", "body", "stream"])
def test_a_server_that_sends_a_byte_now_and_then_gains_no_time(what):
    """A time limit of each read would be renewed by every byte."""

    def script(request):
        start = {
            "head": b"HTTP/1.1 200 OK\r\nX: ",
            "body": b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n",
            "stream": STREAM + b"data: ",
        }
        yield start[what]
        while not request.hung_up(0.05):
            yield b"x"

    with Site(calling(script)) as site, Client(site.url) as client:
        started = time.monotonic()
        with pytest.raises(TimeoutError, match="tools/call slow"):
            client.call_tool("slow", {}, timeout=0.5)
        assert quickly(started)


def test_a_server_that_never_stops_talking_gains_no_time():
    def script(request):
        yield STREAM
        while True:
            yield event({"jsonrpc": "2.0", "method": "notifications/x"}) * 100

    with Site(calling(script)) as site, Client(site.url) as client:
        started = time.monotonic()
        with pytest.raises(TimeoutError, match="tools/call slow"):
            client.call_tool("slow", {}, timeout=0.5)
        assert quickly(started)


def test_a_server_that_reads_nothing_gains_no_time():
    with Site(modern) as site, Client(site.url, probe_timeout=60) as client:
        site.gate.clear()
        started = time.monotonic()
        with pytest.raises(TimeoutError, match="tools/call slow"):
            client.call_tool("slow", {"text": "x" * 20_000_000}, timeout=0.5)
        assert quickly(started)
        site.gate.set()
        assert client.call_tool("any", {}).text == "called"
        assert site.methods() == ["server/discover", "tools/call"]


@pytest.mark.parametrize("form", ["body", "line", "event"])
def test_a_reply_without_end_is_refused(form, monkeypatch):
    monkeypatch.setattr("minimcp.http_exchange.LIMIT", 100_000)

    def script(request):
        yield STREAM if form != "body" else b"HTTP/1.1 200 OK\r\n\r\n"
        while True:
            yield b"data: " + b"x" * 1000 + (b"\n" if form == "event" else b"")

    with Site(calling(script)) as site, Client(site.url) as client:
        with pytest.raises(ConnectionError, match="100000 bytes"):
            client.call_tool("t", {}, timeout=20)
        assert len(site.of("tools/call")) == 1


def test_a_subscription_lives_until_the_client_closes():
    hung_up, heard, raised = threading.Event(), [], []

    def script(request):
        yield STREAM
        yield event({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged"})
        yield b":\r\n"
        assert request.hung_up()
        hung_up.set()

    def route(request):
        return script(request) if request.method == "subscriptions/listen" else modern(request)

    hear = lambda method, params: heard.append(method)  # noqa: E731
    with Site(route) as site, Client(site.url, on_notification=hear) as client:

        def listen():
            with pytest.raises(ConnectionError) as caught:
                client.request("subscriptions/listen", {"notifications": {}}, timeout=60)
            raised.append(caught.value)

        thread = threading.Thread(target=listen)
        thread.start()
        until(lambda: heard == ["notifications/subscriptions/acknowledged"])
        assert client.call_tool("any", {}).text == "called"
        client.close()
        thread.join(20)
        assert len(raised) == 1
        assert hung_up.wait(10)


# -- which era?

REFUSED = {"supported": [MODERN], "requested": MODERN}


@pytest.mark.req("MATRIX-modern-modern-http")
@pytest.mark.parametrize("era", ["modern", "auto"])
def test_a_modern_server_is_served_in_the_modern_way(era):
    with Site(modern) as site, Client(site.url, era=era) as client:
        assert (client.era, client.protocol_version) == ("modern", MODERN)
        assert client.call_tool("any", {}).text == "called"
        assert site.methods() == ["server/discover", "tools/call"]


@pytest.mark.req("MATRIX-modern-modern-http", "MATRIX-dual-modern-http", "C-VER-20", "C-HTTP-50")
@pytest.mark.parametrize("era", ["modern", "auto"])
def test_a_refused_version_is_tried_once_more(era):
    def script(request):
        if len(request.site.requests) == 1:
            return as_json(error(request, -32022, data=REFUSED), 400)
        return modern(request)

    with Site(script) as site, Client(site.url, era=era) as client:
        assert client.era == "modern"
        assert client.call_tool("any", {}).text == "called"
        assert site.methods() == ["server/discover", "server/discover", "tools/call"]


@pytest.mark.req("MATRIX-dual-modern-http", "C-HTTP-50")
@pytest.mark.parametrize("code", [-32020, -32021, -32022])
def test_a_modern_error_means_a_modern_server(code):
    data = {-32021: {"requiredCapabilities": {"sampling": {}}}, -32022: REFUSED}.get(code)
    reply = lambda r: as_json(error(r, code, "modern", data=data), 400)  # noqa: E731
    with Site(reply) as site:
        with pytest.raises(ProtocolError, match="modern") as caught:
            Client(site.url)
        assert caught.value.code == code
        assert set(site.methods()) == {"server/discover"}


@pytest.mark.req("C-VER-21")
def test_no_common_version_is_an_error_that_names_theirs():
    data = {"supported": ["2030-01-01"], "requested": MODERN}
    with Site(lambda r: as_json(error(r, -32022, data=data), 400)) as site:
        with pytest.raises(ConnectionError, match="2030-01-01"):
            Client(site.url)
        assert site.methods() == ["server/discover"]


OTHER_ANSWERS = {
    "400 and nothing": lambda r: http(400, content_type=None),
    "400 and words": lambda r: http(400, "Bad Request: no session", "text/plain"),
    "400 and an error": lambda r: as_json(error(r, -32000, "no session"), 400),
    "400 and an error without id": lambda r: as_json(
        {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "no session"}}, 400
    ),
    "400 and an error with another id": lambda r: as_json(
        {"jsonrpc": "2.0", "id": "server-error", "error": {"code": -32600, "message": "no"}}, 400
    ),
    "400 and a bare error": lambda r: as_json({"error": {"code": -32000}}, 400),
    "400 and some JSON": lambda r: as_json({"error": "unsupported", "detail": ["version"]}, 400),
    "400 and an odd error": lambda r: as_json({"error": {"code": "BadRequest"}}, 400),
    "400 and a bad request": lambda r: as_json(error(r, -32600), 400),
    "400 and bad params": lambda r: as_json(error(r, -32602), 400),
    "404 and a page": lambda r: http(404, "<html>Not Found", "text/html"),
    "404 and an unknown method": lambda r: as_json(error(r, -32601), 404),
    "405": lambda r: http(405, content_type=None, Allow="GET"),
    "406": lambda r: http(406),
    "415": lambda r: http(415),
    "422 and some JSON": lambda r: as_json({"detail": [{"loc": ["body"]}]}, 422),
    "500": lambda r: http(500, "Internal Server Error", "text/plain"),
    "200 and an error": lambda r: as_json(error(r, -32601)),
    "200 and an error on a stream": lambda r: event_stream(error(r, -32601)),
    "200 and nothing in it": lambda r: as_json(result(r)),
    "200 and legacy versions": lambda r: as_json(result(r, supportedVersions=[LEGACY, OLD])),
}


@pytest.mark.req("MATRIX-dual-legacy-http", "C-HTTP-50", "C-VER-22", "C-VER-23", "C-VER-26")
@pytest.mark.parametrize("what", OTHER_ANSWERS)
def test_any_other_answer_to_the_probe_means_legacy(what):
    def script(request):
        if request.method == "server/discover":
            return OTHER_ANSWERS[what](request)
        return legacy(request)

    with Site(script) as site, Client(site.url) as client:
        assert (client.era, client.protocol_version) == ("legacy", LEGACY)
        assert client.call_tool("any", {}).text == "called"
        first = ["server/discover", "initialize", "notifications/initialized", "tools/call"]
        assert site.methods() == first
        hello = site.requests[1]
        assert hello.params["protocolVersion"] == LEGACY
        assert hello.params["clientInfo"]["name"] == "minimcp"
        assert hello.params["capabilities"] == {}
        assert "_meta" not in hello.params
        for request in site.requests[1:]:
            assert not {"mcp-method", "mcp-name"} & set(request.names)


@pytest.mark.req("MATRIX-modern-legacy-http")
@pytest.mark.parametrize("what", OTHER_ANSWERS)
def test_a_modern_client_says_what_to_do_about_a_legacy_server(what):
    with Site(OTHER_ANSWERS[what]) as site:
        with pytest.raises(ConnectionError, match="era='auto'"):
            Client(site.url, era="modern")
        assert site.methods() == ["server/discover"]


@pytest.mark.req("MATRIX-modern-legacy-http")
def test_a_modern_client_gives_up_on_a_server_that_is_silent():
    with Site(lambda request: request.hung_up() and None) as site:
        with pytest.raises(ConnectionError, match="server/discover") as caught:
            Client(site.url, era="modern", probe_timeout=0.3)
        assert site.url in str(caught.value)
        assert site.methods() == ["server/discover"]


@pytest.mark.parametrize("reply", [http(401), http(403), http(404), http(200, "<html>")])
def test_an_address_that_is_no_server_is_an_error(reply):
    with Site(lambda request: reply) as site:
        with pytest.raises(ConnectionError, match=r"initialize|discover") as caught:
            Client(site.url)
        assert site.url in str(caught.value)


@pytest.mark.req("MATRIX-legacy-legacy-http", "C-VER-22", "C-VER-24")
@pytest.mark.parametrize("version", [LEGACY, OLD, "2025-03-26"])
def test_a_legacy_client_speaks_each_legacy_revision(version):
    script = lambda request: legacy(request, version=version)  # noqa: E731
    with Site(script) as site, Client(site.url, era="legacy") as client:
        assert (client.era, client.protocol_version) == ("legacy", version)
        assert client.call_tool("any", {}).text == "called"
        assert site.methods() == ["initialize", "notifications/initialized", "tools/call"]


@pytest.mark.req("C-VER-24", "C-LHTTP-23")
def test_a_legacy_server_of_an_unknown_revision_is_left():
    script = lambda request: legacy(request, version="2024-11-05", session="s")  # noqa: E731
    with Site(script) as site:
        with pytest.raises(ConnectionError, match="2024-11-05"):
            Client(site.url)
        assert site.methods() == ["server/discover", "initialize"]
        assert site.verbs()[-1] == "DELETE"


@pytest.mark.parametrize("version", [None, 7, {}, [], "a\r\nb", "größe €"])
def test_a_handshake_that_makes_no_sense_is_an_error(version):
    script = lambda request: legacy(request, version=version, session="s")  # noqa: E731
    with Site(script) as site, pytest.raises(ConnectionError):
        Client(site.url)


@pytest.mark.req("C-VER-25")
@pytest.mark.parametrize("script", [modern, legacy])
def test_a_client_probes_once(script):
    with Site(script) as site, Client(site.url) as client:
        for _ in range(3):
            client.call_tool("any", {})
        assert site.methods().count("server/discover") == 1


def test_a_server_that_answers_anything_is_a_legacy_one():
    """Any method gets `{}`, notifications too."""

    def script(request):
        if request.method == "initialize":
            return legacy(request)
        return as_json({**result(request), "id": request.id})

    with Site(script, path="") as site, Client(site.url) as client:
        assert client.era == "legacy"
        assert client.request("tools/list") == {}


# -- legacy: sessions, requests of the server, streams that go on


@pytest.mark.req("C-LHTTP-20")
@pytest.mark.parametrize("version", [LEGACY, OLD])
def test_what_follows_the_handshake_names_its_version(version):
    script = lambda request: legacy(request, version=version)  # noqa: E731
    with Site(script) as site, Client(site.url, era="legacy") as client:
        client.call_tool("any", {})
        client.notify("notifications/roots/list_changed")
        named = [request.headers.get("mcp-protocol-version") for request in site.requests]
        assert named == [None, version, version, version]


@pytest.mark.req("C-LHTTP-20", "C-LHTTP-21", "C-LHTTP-23", "C-LHTTP-26")
@pytest.mark.parametrize("ending", [http(200), http(204, content_type=None), http(405), None])
def test_a_session_is_named_in_every_message_and_deleted_at_the_end(ending):
    def script(request):
        return ending if request.verb == "DELETE" else legacy(request, session="s-1~!")

    with Site(script) as site:
        with Client(site.url) as client:
            client.call_tool("any", {})
            client.list_tools()
        sessions = [request.headers.get("mcp-session-id") for request in site.requests]
        assert sessions == [None, None, *["s-1~!"] * 4]
        assert site.verbs() == [*["POST"] * 5, "DELETE"]
        assert site.requests[-1].headers["mcp-protocol-version"] == LEGACY


@pytest.mark.req("C-LHTTP-23", "C-LHTTP-26")
def test_without_a_session_there_is_nothing_to_delete():
    with Site(legacy) as site:
        with Client(site.url) as client:
            client.call_tool("any", {})
        assert set(site.verbs()) == {"POST"}


def test_a_modern_server_gets_no_session():
    """It may hand one out; it has no meaning."""

    def script(request):
        return modern(request).replace(b"\r\n", b"\r\nMcp-Session-Id: s\r\n", 1)

    with Site(script) as site:
        with Client(site.url) as client:
            client.call_tool("any", {})
        assert [r for r in site.requests if "mcp-session-id" in r.headers] == []
        assert set(site.verbs()) == {"POST"}


def forgetful(lives):
    """A legacy server whose sessions last for so many calls; their count is their name."""
    state = {"session": 0, "calls": 0}

    def script(request):
        if request.method == "initialize":
            state.update(session=state["session"] + 1, calls=0)
            return legacy(request, session=f"s{state['session']}")
        if request.method == "tools/call":
            state["calls"] += 1
        current = request.headers.get("mcp-session-id") == f"s{state['session']}"
        if request.method and (not current or state["calls"] > lives):
            return as_json(error(request, -32600, "Session not found"), 404)
        return legacy(request)

    return script


@pytest.mark.req("C-LHTTP-22")
def test_a_forgotten_session_leads_to_a_new_one_and_the_caller_sees_nothing():
    with Site(forgetful(2)) as site, Client(site.url, era="legacy") as client:
        for _ in range(5):
            assert client.call_tool("any", {}).text == "called"
        hellos = site.of("initialize")
        assert [hello.headers.get("mcp-session-id") for hello in hellos] == [None] * 3
        assert site.methods().count("notifications/initialized") == 3
        served = [request.headers["mcp-session-id"] for request in site.of("tools/call")]
        assert served == ["s1", "s1", "s1", "s2", "s2", "s2", "s3"]


@pytest.mark.req("C-ERR-16", "C-ERR-17")
@pytest.mark.parametrize("status", [200, 400])
@pytest.mark.parametrize("code", [-32000, -32001, -32002, -32019])
def test_no_code_means_that_a_session_is_lost(code, status):
    script = calling(lambda r: as_json(error(r, code), status), lambda r: legacy(r, session="s"))
    with Site(script) as site, Client(site.url, era="legacy") as client:
        with pytest.raises(ProtocolError) as caught:
            client.call_tool("any", {})
        assert caught.value.code == code
        assert site.methods() == ["initialize", "notifications/initialized", "tools/call"]


@pytest.mark.req("C-LHTTP-22")
def test_a_session_that_is_forgotten_again_at_once_is_an_error():
    with Site(forgetful(0)) as site, Client(site.url, era="legacy") as client:
        with pytest.raises(ConnectionError, match="tools/call any"):
            client.call_tool("any", {})
        assert site.methods().count("initialize") == 2
        assert site.methods().count("tools/call") == 2


@pytest.mark.req("C-LHTTP-22")
def test_many_threads_make_one_new_session():
    state = {"session": "s1"}

    def script(request):
        if request.method == "initialize":
            return legacy(request, session=state["session"])
        if request.method and request.headers["mcp-session-id"] != state["session"]:
            return http(404)
        return legacy(request)

    with Site(script) as site, Client(site.url, era="legacy") as client:
        state["session"] = "s2"
        texts = []
        work = lambda: texts.append(client.call_tool("any", {}).text)  # noqa: E731
        threads = [threading.Thread(target=work) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        assert texts == ["called"] * 6
        assert site.methods().count("initialize") == 2


@pytest.mark.req("C-LHTTP-20", "C-LHTTP-21", "C-LHTTP-25")
def test_a_request_of_a_legacy_server_is_answered_by_a_post():
    answers, ready = {}, threading.Event()
    defaults = {"name": "John Doe", "age": 30, "score": 95.5, "verified": True}

    def script(request):
        if "result" in request.body or "error" in request.body:
            answers[request.id] = request
            if len(answers) == 3:
                ready.set()
            return http(202, content_type=None)
        if request.method != "tools/call":
            return legacy(request, session="s")
        return ask(request)

    def ask(request):
        yield STREAM
        for ident, method in ("a", "elicitation/create"), (7, "ping"), ("c", "roots/list"):
            schema = {key: {"default": value} for key, value in defaults.items()}
            params = {"message": "?", "requestedSchema": {"type": "object", "properties": schema}}
            yield event({"jsonrpc": "2.0", "id": ident, "method": method, "params": params})
        assert ready.wait(20)
        yield event(said(request, "thanks"))

    def fill_in(params):
        fields = params["requestedSchema"]["properties"]
        content = {key: field["default"] for key, field in fields.items()}
        return {"action": "accept", "content": content}

    handlers = {"elicitation/create": fill_in}
    with Site(script) as site, Client(site.url, era="legacy", on_input=handlers) as client:
        assert client.call_tool("t", {}).text == "thanks"
    bodies = {ident: request.body for ident, request in answers.items()}
    refused = bodies.pop("c")
    assert bodies == {
        "a": {"jsonrpc": "2.0", "id": "a", "result": {"action": "accept", "content": defaults}},
        7: {"jsonrpc": "2.0", "id": 7, "result": {}},
    }
    assert refused["error"]["code"] == -32601
    for request in answers.values():
        assert request.headers["mcp-session-id"] == "s"
        assert request.headers["mcp-protocol-version"] == LEGACY


def broken_stream(retry=None, breaks=1, first=True):
    """A legacy server whose answer comes on the stream after so many breaks."""
    state = {"request": None, "gets": 0}

    def script(request):
        if request.method == "tools/call":
            state["request"] = request
            wish = {} if retry is None else {"retry": retry}
            return Last([STREAM, event("", id="e-0", **wish) if first else b":\n\n"])
        if request.verb == "GET":
            state["gets"] += 1
            if state["gets"] < breaks:
                return Last([STREAM, event("", id=f"e-{state['gets']}")])
            return Last([STREAM, event(said(state["request"], "at last"), id="e-9")])
        return legacy(request, session="s", version="2025-03-26")

    return script


@pytest.mark.req("C-LHTTP-20", "C-LHTTP-21", "C-LHTTP-24")
@pytest.mark.parametrize("breaks", [1, 4])
def test_a_legacy_stream_that_breaks_off_goes_on_with_a_get(breaks):
    with Site(broken_stream(retry=50, breaks=breaks)) as site:
        with Client(site.url, era="legacy") as client:
            assert client.call_tool("t", {}).text == "at last"
            client.list_tools()
        gets = [request for request in site.requests if request.verb == "GET"]
        assert [get.headers["last-event-id"] for get in gets] == [f"e-{n}" for n in range(breaks)]
        for get in gets:
            assert get.headers["mcp-session-id"] == "s"
            assert get.headers["mcp-protocol-version"] == "2025-03-26"
            assert "text/event-stream" in get.headers["accept"]
            assert get.body == {}
        assert site.methods().count("tools/call") == 1


@pytest.mark.req("C-LHTTP-24")
def test_the_time_that_a_server_wishes_is_waited():
    arrived = []

    def script(request):
        arrived.append((request.verb, time.monotonic()))
        return answer(request)

    answer = broken_stream(retry=400)
    with Site(script) as site, Client(site.url, era="legacy") as client:
        assert client.call_tool("t", {}).text == "at last"
        (get,) = [moment for verb, moment in arrived if verb == "GET"]
        (before,) = [moment for verb, moment in arrived[-2:] if verb == "POST"]
        assert get - before >= 0.4


@pytest.mark.req("C-LHTTP-24")
def test_a_server_that_wishes_too_long_a_wait_runs_into_the_time_limit():
    with Site(broken_stream(retry=100_000)) as site, Client(site.url, era="legacy") as client:
        started = time.monotonic()
        with pytest.raises(TimeoutError, match="tools/call t"):
            client.call_tool("t", {}, timeout=0.3)
        assert quickly(started)
        assert "GET" not in site.verbs()


@pytest.mark.req("C-LHTTP-24")
@pytest.mark.parametrize("reply", [http(405), http(404), http(400), None])
def test_a_stream_that_cannot_go_on_is_an_error_and_nothing_is_called_twice(reply):
    answer = broken_stream(retry=10)
    script = lambda request: reply if request.verb == "GET" else answer(request)  # noqa: E731
    with Site(script) as site, Client(site.url, era="legacy") as client:
        with pytest.raises(ConnectionError, match="tools/call t"):
            client.call_tool("t", {})
        assert site.methods().count("tools/call") == 1
        assert site.methods().count("initialize") == 1
        assert site.verbs().count("GET") == 1


@pytest.mark.req("C-HTTP-51")
def test_a_stream_without_numbers_does_not_go_on():
    with Site(broken_stream(first=False)) as site, Client(site.url, era="legacy") as client:
        with pytest.raises(ConnectionError, match="tools/call t"):
            client.call_tool("t", {})
        assert "GET" not in site.verbs()


@pytest.mark.req("C-HTTP-51")
def test_a_modern_stream_never_goes_on():
    script = calling(lambda request: Last([STREAM, event("", id="e-0", retry=10)]))
    with Site(script) as site, Client(site.url) as client:
        with pytest.raises(ConnectionError, match="tools/call t"):
            client.call_tool("t", {})
        assert "GET" not in site.verbs()


CUT = {  # what may come between the first event and the break
    "nothing": [],
    "half an event": [b"id: e-1\ndata: {"],
    "half a line": [b"id: e-"],
    "an event without a number": [b"data: \n\n"],
    "a comment": [b": e-2\n\n"],
}


@pytest.mark.req("C-LHTTP-24", "C-HTTP-49")
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("cut", CUT)
def test_a_stream_goes_on_after_the_last_event_that_was_whole(cut, chunked, end):
    """A half event does not count: if its number were named, what it said would be lost."""
    answer = broken_stream()
    pieces = [event("", end, id="e-0", retry=10), *CUT[cut]]
    whole = [STREAM, *pieces]
    if chunked:
        whole = [event_stream(*pieces).removesuffix(b"0\r\n\r\n"), b"99\r\n"]

    def script(request):
        found = answer(request)
        return Last(whole) if request.method == "tools/call" else found

    with Site(script) as site, Client(site.url, era="legacy") as client:
        assert client.call_tool("t", {}).text == "at last"
        (get,) = [request for request in site.requests if request.verb == "GET"]
        assert get.headers["last-event-id"] == "e-0"


@pytest.mark.req("C-LHTTP-24")
@pytest.mark.parametrize("number", ["5 €", "a\rX-Evil: 1", "\x00"])
def test_a_number_that_no_header_can_hold_is_none(number):
    script = calling(lambda request: Last([STREAM, event("", id=number)]), legacy)
    with Site(script) as site, Client(site.url, era="legacy") as client:
        with pytest.raises(ConnectionError, match="tools/call t"):
            client.call_tool("t", {})
        assert "GET" not in site.verbs()


def with_a_stream(answer, session="s"):
    """A legacy server; `answer` is what it says to a GET."""

    def script(request):
        return answer(request) if request.verb == "GET" else legacy(request, session=session)

    return script


@pytest.mark.req("C-LHTTP-20", "C-LHTTP-21", "C-LHTTP-26")
@pytest.mark.parametrize(
    "reply",
    [http(405), http(404), http(400), http(200, "<html>", "text/html"), Last([STREAM]), None],
)
def test_a_legacy_server_needs_no_stream_of_its_own(reply, capfd):
    """B069: 405 was taken for a failure."""
    with Site(with_a_stream(lambda request: reply)) as site:
        with Client(site.url, era="legacy", on_notification=print) as client:
            until(lambda: "GET" in site.verbs())
            assert client.call_tool("any", {}).text == "called"
        (get,) = [request for request in site.requests if request.verb == "GET"]
        assert get.headers["mcp-session-id"] == "s"
        assert get.headers["mcp-protocol-version"] == LEGACY
        assert "text/event-stream" in get.headers["accept"]
        assert "last-event-id" not in get.headers
    assert capfd.readouterr() == ("", "")


@pytest.mark.req("C-LHTTP-25", "C-LHTTP-26")
def test_what_a_legacy_server_says_unasked_is_heard_and_answered():
    hung_up, heard, answers = threading.Event(), [], []

    def stream(request):
        yield STREAM
        yield event({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        yield event({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": {}})
        assert request.hung_up()
        hung_up.set()

    def script(request):
        if "result" in request.body:
            answers.append(request.body)
        return with_a_stream(stream)(request)

    handlers = {"elicitation/create": lambda params: {"action": "decline"}}
    hear = lambda method, params: heard.append(method)  # noqa: E731
    with Site(script) as site:
        with Client(site.url, era="legacy", on_input=handlers, on_notification=hear) as client:
            until(lambda: answers and heard)
            assert client.call_tool("any", {}).text == "called"
        assert hung_up.wait(10)
    assert heard == ["notifications/tools/list_changed"]
    assert answers == [{"jsonrpc": "2.0", "id": "q", "result": {"action": "decline"}}]


@pytest.mark.req("C-LHTTP-25", "C-LHTTP-26")
def test_nothing_is_asked_before_the_stream_of_the_server_is_open():
    """What a server asks while there is no stream is lost, and its tool waits for ever."""
    called, answered, early = threading.Event(), threading.Event(), []
    lines = queue.SimpleQueue()

    def stream(request):
        early.append(called.wait(0.5))
        yield STREAM
        yield lines.get(timeout=20)
        assert request.hung_up()

    def script(request):
        if "result" in request.body:
            answered.set()
        if request.method == "tools/call":
            called.set()
            asked = {"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": {}}
            lines.put(event(asked))
            assert answered.wait(20)
        return with_a_stream(stream)(request)

    handlers = {"elicitation/create": lambda params: {"action": "decline"}}
    with Site(script) as site, Client(site.url, era="legacy", on_input=handlers) as client:
        assert client.call_tool("any", {}).text == "called"
        assert early == [False]


@pytest.mark.req("C-LHTTP-26")
def test_a_stream_that_does_not_open_is_not_waited_for_long():
    script = with_a_stream(lambda request: request.hung_up() and None)
    options = {"era": "legacy", "on_notification": print, "probe_timeout": 0.3}
    started = time.monotonic()
    with Site(script) as site, Client(site.url, **options) as client:
        assert client.call_tool("any", {}).text == "called"
        assert site.verbs() == ["POST", "POST", "GET", "POST"]
        assert quickly(started)


@pytest.mark.req("C-LHTTP-26")
@pytest.mark.parametrize("reply", [http(405), http(200, "<html>", "text/html"), None])
def test_a_stream_that_is_refused_is_not_waited_for(reply):
    options = {"era": "legacy", "on_notification": print, "probe_timeout": 60}
    started = time.monotonic()
    with Site(with_a_stream(lambda request: reply)) as site, Client(site.url, **options) as client:
        assert client.call_tool("any", {}).text == "called"
        assert quickly(started)


@pytest.mark.req("C-LHTTP-26")
def test_the_refusal_of_a_stream_is_no_answer_to_a_call():
    """It has no id, and so it could be taken for the answer to the only call that waits."""
    called, refused = threading.Event(), threading.Event()

    def stream(request):
        assert called.wait(20)
        yield as_json({"jsonrpc": "2.0", "id": None, "error": {"code": -32000}}, 405)
        refused.set()

    def script(request):
        if request.method == "tools/call":
            called.set()
            assert refused.wait(20)
        return with_a_stream(stream)(request)

    options = {"era": "legacy", "on_notification": print, "probe_timeout": 0.1}
    with Site(script) as site, Client(site.url, **options) as client:
        wire, seen = client.connection.wire, []
        client.connection.trace = lambda sender, message: seen.append(message.get("id"))
        called_id = 2
        until(lambda: "GET" in site.verbs())
        assert client.call_tool("any", {}).text == "called"
        assert wire.overhears.wait(20)
        assert seen == [called_id, called_id]


NEWS = {"jsonrpc": "2.0", "method": "notifications/x"}
BEGUN = {
    "nothing": [],
    "the head": [STREAM],
    "a message": [STREAM, event(NEWS)],
    "a number": [STREAM, event(NEWS, id="e-0", retry=10)],
}


@pytest.mark.req("C-LHTTP-26")
@pytest.mark.parametrize("begun", BEGUN)
def test_an_answer_on_another_stream_ends_the_wait_on_the_right_one(begun):
    """Servers must not do that. The thread that had posted waited until its time was over."""
    lines, heard, hung_up = queue.SimpleQueue(), threading.Event(), threading.Event()

    def stream(request):
        yield STREAM
        yield lines.get(timeout=20)
        assert request.hung_up()

    def answer(request):
        yield from BEGUN[begun]
        assert heard.wait(20)
        lines.put(event(said(request, "elsewhere")))
        assert request.hung_up()
        hung_up.set()

    script = calling(answer, with_a_stream(stream))
    hear = lambda method, params: heard.set()  # noqa: E731
    with Site(script) as site, Client(site.url, era="legacy", on_notification=hear) as client:
        if len(BEGUN[begun]) < 2:
            heard.set()
        started = time.monotonic()
        assert client.call_tool("t", {}, timeout=60).text == "elsewhere"
        assert hung_up.wait(10)
        assert quickly(started)
        assert client.request("x/next")["resultType"] == "complete"
        assert site.verbs().count("GET") == 1
        assert "notifications/cancelled" not in site.methods()


def test_an_error_on_another_stream_is_an_answer_and_that_stream_goes_on():
    lines = queue.SimpleQueue()

    def stream(request):
        yield STREAM
        for _ in range(2):
            yield lines.get(timeout=20)
        assert request.hung_up()

    def answer(request):
        lines.put(event(error(request, -32603, f"no {request.params['name']}")))
        return request.hung_up() and None

    script = calling(answer, with_a_stream(stream))
    with Site(script) as site, Client(site.url, era="legacy", on_notification=print) as client:
        for name in "first", "second":
            with pytest.raises(ProtocolError, match=f"no {name}"):
                client.call_tool(name, {})


def test_an_answer_on_another_stream_disturbs_no_other_call():
    lines, released, found = queue.SimpleQueue(), threading.Event(), []

    def stream(request):
        yield STREAM
        yield lines.get(timeout=20)
        assert request.hung_up()

    def answer(request):
        if request.params["name"] == "slow":
            assert released.wait(20)
            return as_json(said(request, "slow"))
        lines.put(event(said(request, "elsewhere")))
        return request.hung_up() and None

    script = calling(answer, with_a_stream(stream))
    with Site(script) as site, Client(site.url, era="legacy", on_notification=print) as client:
        work = lambda: found.append(client.call_tool("slow", {}).text)  # noqa: E731
        slow = threading.Thread(target=work)
        slow.start()
        until(lambda: site.of("tools/call"))
        assert client.call_tool("quick", {}).text == "elsewhere"
        released.set()
        slow.join(20)
        assert found == ["slow"]


def test_nothing_stays_open_that_ends_after_the_client():
    """An answer to the server is still under way when the client is closed."""
    arrived, ended = threading.Event(), threading.Event()

    def script(request):
        if "result" in request.body:
            arrived.set()
            ended.wait(20)
            return http(202, content_type=None)
        if request.method == "tools/call":
            return ask(request)
        return legacy(request)

    def ask(request):
        yield STREAM
        yield event({"jsonrpc": "2.0", "id": "q", "method": "ping"})
        assert arrived.wait(20)
        yield event(said(request))

    with Site(script) as site:
        with Client(site.url, era="legacy") as client:
            assert client.call_tool("any", {}).text == "called"
        ended.set()
        until(lambda: not any(thread.is_alive() for thread in site.threads[1:]))


@pytest.mark.req("C-LHTTP-24", "C-LHTTP-26")
def test_a_stream_of_its_own_goes_on_if_its_events_have_numbers():
    heard = []

    def stream(request):
        number = request.headers.get("last-event-id", "0") + "1"
        news = {"jsonrpc": "2.0", "method": f"notifications/{number}"}
        return Last([STREAM, event(news, id=number, retry=10)]) if len(heard) < 3 else http(204)

    hear = lambda method, params: heard.append(method)  # noqa: E731
    options = {"era": "legacy", "on_notification": hear}
    with Site(with_a_stream(stream)) as site, Client(site.url, **options):
        until(lambda: site.verbs().count("GET") == 4)
    assert heard == ["notifications/01", "notifications/011", "notifications/0111"]


@pytest.mark.parametrize("script", [modern, with_a_stream(lambda request: Last([STREAM]))])
def test_nothing_is_overheard_by_a_modern_client_or_by_one_without_ears(script):
    listens = {"on_notification": print} if script is modern else {}
    with Site(script) as site, Client(site.url, **listens) as client:
        for _ in range(3):
            assert client.call_tool("any", {}).text == "called"
        assert set(site.verbs()) == {"POST"}


# -- https


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate for 127.0.0.1 that nobody but its maker trusts, and its key."""
    need(shutil.which("openssl"), "the openssl command makes the certificate")
    folder = tmp_path_factory.mktemp("tls")
    key, page, both = folder / "key.pem", folder / "page.pem", folder / "both.pem"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1 -addext"
    more = [
        "subjectAltName=IP:127.0.0.1",
        "-addext",
        "keyUsage=critical,digitalSignature,keyCertSign",
    ]
    files = ["-keyout", str(key), "-out", str(page)]
    subprocess.run([*command.split(), *more, *files], check=True, capture_output=True)
    both.write_bytes(page.read_bytes() + key.read_bytes())
    return both


def test_https_is_spoken_with_a_server_that_is_trusted(certificate, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    streaming = calling(lambda request: event_stream(said(request, "secret")))
    for script in modern, legacy, streaming:
        with Site(script, tls=certificate) as site, Client(site.url) as client:
            for _ in range(3):
                assert client.call_tool("any", {}).text in ("called", "secret")
            if script is modern:
                assert connections(site) == 1


def test_https_is_not_spoken_with_a_server_that_is_not_trusted(certificate, monkeypatch):
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    with Site(modern, tls=certificate) as site:
        with pytest.raises(ConnectionError, match=r"(?i)certificate"):
            Client(site.url, env={"MINIMCP_TOKEN": "secret"})
        assert site.requests == []


def test_closing_ends_a_call_over_https_too(certificate, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    script = calling(lambda request: request.hung_up() and None)
    with Site(script, tls=certificate) as site, Client(site.url) as client:
        raised = []

        def call():
            with pytest.raises(ConnectionError) as caught:
                client.call_tool("slow", {})
            raised.append(caught.value)

        thread = threading.Thread(target=call)
        thread.start()
        until(lambda: len(site.requests) == 2)
        client.close()
        thread.join(20)
        assert len(raised) == 1


# -- found by people who tried to break it


def who(request):
    time.sleep(0.2)
    return as_json(said(request, request.params["arguments"]["who"]))


FORKS = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")


@FORKS
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
def test_after_a_fork_nobody_gets_the_answer_of_the_other_process():
    with Site(calling(who)) as site, Client(site.url) as client:
        client.list_tools()  # a connection is left over
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.write(writer, client.call_tool("t", {"who": "child"}, timeout=10).text.encode())
            finally:
                os._exit(0)
        mine = client.call_tool("t", {"who": "parent"}, timeout=10).text
        os.waitpid(pid, 0)
        os.close(writer)
        assert (mine, os.read(reader, 100)) == ("parent", b"child")


def test_an_error_on_the_stream_of_another_call_goes_to_whom_it_names():
    calls, both, found = {}, threading.Event(), {}

    def answer(request):
        def stream():
            yield STREAM
            calls[request.params["name"]] = request
            if len(calls) == 2:
                both.set()
            both.wait(10)
            if request.params["name"] == "A":
                yield event(error(calls["B"], -32602, "B went wrong"))
                yield event(said(request, "A is fine"))
            else:
                request.hung_up(20)

        return stream()

    def call(name):
        try:
            found[name] = client.call_tool(name, timeout=15).text
        except ProtocolError as problem:
            found[name] = problem.message

    with Site(calling(answer, legacy)) as site, Client(site.url, era="legacy") as client:
        threads = [threading.Thread(target=call, args=(name,)) for name in "AB"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
    assert found == {"A": "A is fine", "B": "B went wrong"}


def test_half_a_handshake_with_a_server_that_forgot_the_session_is_begun_anew():
    state = {"session": "s1", "ready": True, "slow": False}

    def script(request):
        if request.method == "initialize":
            state["session"], state["ready"] = f"{state['session']}+", False

            def go():
                session = f"Mcp-Session-Id: {state['session']}\r\n\r\n".encode()
                yield STREAM.removesuffix(b"\r\n") + session
                if state["slow"]:
                    request.hung_up(5)
                yield event(
                    result(
                        request,
                        protocolVersion=LEGACY,
                        capabilities={},
                        serverInfo={"name": "x", "version": "1"},
                    )
                )

            return go()
        if request.verb != "POST":
            return http(405)
        if request.headers.get("mcp-session-id") != state["session"]:
            return http(404)
        if request.method == "notifications/initialized":
            state["ready"] = True
        if request.id is None:
            return http(202, content_type=None)
        return as_json(said(request) if state["ready"] else error(request, -32602, "too early"))

    with Site(script) as site, Client(site.url, era="legacy") as client:
        client.call_tool("t")
        state.update(session="other", slow=True)
        with pytest.raises(TimeoutError):
            client.call_tool("t", timeout=0.5)
        state["slow"] = False
        assert not client.call_tool("t").is_error


def test_the_time_of_a_call_holds_when_the_list_of_tools_has_to_be_asked_for_again():
    def script(request):
        if request.method == "tools/call":
            return as_json(error(request, -32020, "mismatch"), 400)
        if request.method == "tools/list":
            request.hung_up(20)
            return None
        return modern(request)

    with Site(script) as site, Client(site.url) as client:
        started = time.monotonic()
        with pytest.raises(TimeoutError):
            client.call_tool("t", timeout=0.5)
        assert quickly(started)


def test_the_time_of_a_call_holds_while_a_stream_asks_more_than_can_be_answered():
    def script(request):
        if request.method == "tools/call":
            pings = [{"jsonrpc": "2.0", "id": number, "method": "ping"} for number in range(150)]
            return [STREAM, b"".join(map(event, pings)), event(said(request))]
        if request.method is None and request.id is not None:
            request.hung_up(5)  # it does not take our answers
            return None
        return legacy(request)

    with Site(script) as site, Client(site.url, era="legacy") as client:
        started = time.monotonic()
        with pytest.raises(TimeoutError):
            client.call_tool("t", timeout=0.5)
        assert quickly(started)


def test_a_stream_may_begin_with_a_byte_order_mark_and_have_many_lines():
    def answer(request):
        text = json.dumps(said(request, "x" * 10), indent=1)
        return [
            STREAM,
            b"\xef\xbb\xbf"
            + "".join(f"data: {one}\n" for one in text.splitlines()).encode()
            + b"\n",
        ]

    with Site(calling(answer)) as site, Client(site.url) as client:
        assert client.call_tool("t", timeout=10).text == "x" * 10


def test_a_connection_with_an_answer_too_many_is_not_used_again():
    def answer(request):
        return [b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", as_json(said(request))]

    hints = [True]
    script = calling(lambda request: answer(request) if hints.pop() else as_json(said(request)))
    with Site(script) as site, Client(site.url) as client:
        with pytest.raises(ConnectionError, match="103"):
            client.call_tool("t", timeout=10)
        hints.append(False)
        assert not client.call_tool("t", timeout=10).is_error


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("http://[::1]/mcp", ("::1", 80)),
        ("https://[2001:db8::1]/mcp", ("2001:db8::1", 443)),
        ("http://[fe80::abcd]:8000/mcp", ("fe80::abcd", 8000)),
        ("http://example.com", ("example.com", 80)),
    ],
)
def test_an_address_without_a_port_has_the_one_of_its_scheme(url, address):
    connection = Endpoint(url).dial(timeout=1)
    assert (connection.host, connection.port) == address


def test_a_server_that_refuses_a_body_before_it_has_read_it_is_understood():
    def script(request):
        return modern(request)

    with Site(script) as site, Client(site.url) as client:
        client.list_tools()
        listener = socket.create_server(("127.0.0.1", 0))

        def refuse():
            peer, _ = listener.accept()
            peer.recv(1000)
            peer.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig")
            peer.shutdown(socket.SHUT_RDWR)
            time.sleep(0.5)
            peer.close()

        threading.Thread(target=refuse, daemon=True).start()
        other = Endpoint(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp")
        with other.exchange("POST", {}, b"x" * 20_000_000, time.monotonic() + 20, None) as response:
            assert (response.status, response.read()) == (413, b"big")
        other.close()
        listener.close()


@FORKS
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
def test_a_forked_child_that_closes_the_client_disturbs_no_call_of_its_parent():
    def answer(request):
        time.sleep(0.5)
        return as_json(said(request, "slow"))

    with Site(calling(answer)) as site, Client(site.url) as client:
        found = []
        thread = threading.Thread(target=lambda: found.append(client.call_tool("t").text))
        thread.start()
        time.sleep(0.2)
        pid = os.fork()
        if pid == 0:
            try:
                client.connection.wire.endpoint.close()
            finally:
                os._exit(0)
        os.waitpid(pid, 0)
        thread.join(20)
    assert found == ["slow"]
