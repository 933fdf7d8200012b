"""HTTP: one POST, one peer; what gets in, what comes back, and with which status."""

import asyncio
import contextlib
import json
import threading
import types

import pytest
from support import LEGACY, MODERN, assert_error, complete, legacy, modern, notification, until
from support_http import headers_for, request, serving

from minimcp import Context, ProtocolError, Server
from minimcp.http import Post, app, hang_up, read_headers

VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
EVIL = ["https://evil.example", "null", "http://localhost.evil.example", "http://localhost@evil"]
EVIL += [
    "http://evil.example:80",
    "http://127.0.0.1.evil.example",
    "file://",
    "localhost.",
    "//",
    "",
]


def said(text):
    return {"content": [{"type": "text", "text": text}]}


def call(name, id=1, /, capabilities=None, meta=None, **arguments):
    params = {"name": name, "arguments": arguments}
    return modern("tools/call", params, id, capabilities=capabilities, meta=meta)


def demo():
    """A server with tools that answer, fail, talk and wait; `server.calls` has their names."""
    server = Server("demo", version="1.0.0")
    server.calls, server.gate, server.seen = [], threading.Event(), {}

    @server.tool
    def echo(text: str) -> str:
        server.calls.append("echo")
        return text

    @server.tool
    def add(a: int, b: int) -> int:
        server.calls.append("add")
        return a + b

    @server.tool
    def size(text: str) -> int:
        return len(text)

    @server.tool
    def steps(number: int, context: Context) -> str:
        for step in range(number):
            context.progress(step, number)
        return "done"

    @server.tool
    def wait(context: Context) -> str:
        server.seen["wait"] = context
        assert server.gate.wait(30)
        context.progress(1)
        return "waited"

    @server.tool
    def polite(context: Context) -> str:
        server.seen["polite"] = context
        until(lambda: context.cancelled or server.gate.is_set())
        server.calls.append("cancelled" if context.cancelled else "finished")
        return "over"

    @server.tool
    def needy(context: Context) -> str:
        context.require("sampling")
        return "fine"

    @server.tool
    def boom() -> str:
        raise ValueError("no such city")

    @server.method("x/leave")
    def leave(params, context):
        raise KeyboardInterrupt

    return server


def scope_of(message):
    """What an ASGI server says of the POST of a message."""
    lines = [("host", "localhost"), *headers_for(message).items()]
    fields = [(name.lower().encode(), value.encode()) for name, value in lines]
    return {"type": "http", "method": "POST", "path": "/mcp", "headers": fields}


@pytest.fixture(scope="module")
def site():
    with serving(demo()) as site:
        yield site


# -- the endpoint


@pytest.mark.req("S-HTTP-01", "S-HTTP-07")
def test_a_request_is_answered_with_one_json_object_on_one_line(site):
    reply = site.post(call("add", a=2, b=40))
    assert (reply.status, reply.kind) == (200, "application/json")
    assert reply.json == complete({**said("42"), "structuredContent": 42})
    assert b"\n" not in reply.body


@pytest.mark.parametrize("path", ["/mcp", "/mcp/", "/mcp?x=1"])
def test_the_endpoint_is_found_with_and_without_a_slash_and_never_redirects(site, path):
    """B074"""
    message = call("add", a=2, b=40)
    body = json.dumps(message).encode()
    reply = site.ask("POST", path, body, headers_for(message))
    assert reply.status == 200


@pytest.mark.req("S-HTTP-01")
@pytest.mark.parametrize("path", ["/", "/other", "/mcp/more", "/MCP", "/xmcp", "/sse"])
def test_any_other_path_is_not_found_in_plain_words(site, path):
    message = call("add", a=2, b=40)
    reply = site.ask("POST", path, json.dumps(message).encode(), headers_for(message))
    assert (reply.status, reply.kind) == (404, "text/plain; charset=utf-8")
    assert reply.body == b"MCP is at /mcp"


@pytest.mark.req("S-HTTP-01")
@pytest.mark.parametrize(("path", "asked"), [("/", "/"), ("/api/v1", "/api/v1"), ("/a/", "/a")])
def test_the_path_is_a_choice(path, asked):
    with serving(demo(), path=path) as site:
        message = call("add", a=2, b=40)
        body = json.dumps(message).encode()
        assert site.ask("POST", asked, body, headers_for(message)).status == 200
        assert site.ask("POST", "/mcp", body, headers_for(message)).status == 404


@pytest.mark.req("S-HTTP-28")
@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "PATCH", "HEAD", "OPTIONS"])
def test_only_post_is_allowed(site, method):
    """B069"""
    headers = {"Accept": "text/event-stream", "Mcp-Session-Id": "x"}
    reply = site.ask(method, headers=headers)
    assert reply.status == 405
    assert reply.headers["allow"] == "POST"


# -- who may ask


@pytest.mark.req("S-HTTP-02")
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE", "OPTIONS"])
@pytest.mark.parametrize("origin", EVIL)
def test_a_strange_origin_is_refused_whatever_it_asks(site, origin, method):
    """B065"""
    site.app.server.calls.clear()
    message = call("echo", text="x")
    headers = headers_for(message) | {"Origin": origin}
    reply = site.ask(method, body=json.dumps(message).encode(), headers=headers)
    assert reply.status == 403
    assert site.app.server.calls == []


@pytest.mark.req("S-HTTP-02")
def test_a_strange_origin_is_refused_before_anything_is_parsed(site):
    reply = site.post(b"{no json", headers={"Origin": EVIL[0], "Content-Type": "text/plain"})
    assert reply.status == 403


LOCAL = ["http://localhost", "http://localhost:5173", "https://localhost:1", "http://127.0.0.1:1"]
LOCAL += ["http://127.0.0.1", "http://[::1]:9", "http://[::1]", "HTTP://LOCALHOST:80"]


@pytest.mark.req("S-HTTP-03")
@pytest.mark.parametrize("origin", LOCAL)
def test_a_local_origin_is_served_on_every_port(site, origin):
    """B065"""
    assert site.post(call("echo", text="x"), headers={"Origin": origin}).status == 200


@pytest.mark.req("S-HTTP-03")
def test_no_origin_is_served(site):
    assert site.post(call("echo", text="x")).status == 200


@pytest.mark.req("S-HTTP-04")
@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:3000", "localhost.evil", "10.0.0.1"]
)
def test_a_strange_host_is_refused(site, host):
    site.app.server.calls.clear()
    assert site.post(call("echo", text="x"), headers={"Host": host}).status == 403
    assert site.app.server.calls == []


@pytest.mark.req("S-HTTP-04")
@pytest.mark.parametrize(
    "host", ["localhost", "LocalHost:3000", "127.0.0.1:1", "[::1]:80", "[::1]"]
)
def test_a_local_host_is_served(site, host):
    assert site.post(call("echo", text="x"), headers={"Host": host}).status == 200


@pytest.mark.req("S-HTTP-04")
def test_a_request_without_a_host_is_refused(site):
    head, body = request(call("echo", text="x"), headers_for(call("echo", text="x"))).split(
        b"\r\n\r\n", 1
    )
    lines = head.replace(b"HTTP/1.1", b"HTTP/1.0").replace(b"\r\nHost: localhost", b"")
    assert site.raw(lines + b"\r\n\r\n" + body).startswith(b"HTTP/1.1 403 ")


def test_hosts_and_origins_can_be_allowed_by_name_in_full_or_altogether():
    options = {
        "allowed_hosts": ["mcp.example"],
        "allowed_origins": ["https://app.example:8443", "x.example"],
    }
    message = call("echo", text="x")
    with serving(demo(), **options) as site:
        tries = {
            ("mcp.example", "https://app.example:8443"): 200,
            ("mcp.example:444", "http://x.example:99"): 200,
            ("mcp.example", "https://app.example"): 403,
            ("mcp.example", "http://localhost"): 403,
            ("localhost", "http://x.example"): 403,
        }
        found = {
            (host, origin): site.post(message, headers={"Host": host, "Origin": origin}).status
            for host, origin in tries
        }
        assert found == tries
        assert site.post(message, headers={"Host": "mcp.example"}).status == 200, "no origin"
    with serving(demo(), allowed_hosts="*", allowed_origins="*") as site:
        headers = {"Host": "any.example", "Origin": "null"}
        assert site.post(message, headers=headers).status == 200


@pytest.mark.req("S-HTTP-06")
@pytest.mark.parametrize(
    ("authorization", "status"),
    [
        (None, 401),
        ("", 401),
        ("Bearer", 401),
        ("Bearer ", 401),
        ("Bearer wrong", 401),
        ("Bearer s3cre", 401),
        ("Bearer s3cret!", 401),
        ("Basic s3cret", 401),
        ("s3cret", 401),
        ("Bearer ß", 401),
        ("Bearer s3cret", 200),
        ("bearer s3cret", 200),
    ],
)
def test_a_token_lets_in_who_knows_it(authorization, status):
    with serving(demo(), token="s3cret") as site:
        headers = {} if authorization is None else {"Authorization": authorization.encode("utf-8")}
        reply = site.post(call("echo", text="x"), headers=headers)
        assert reply.status == status
        assert reply.headers.get("www-authenticate") == ("Bearer" if status == 401 else None)
        assert site.app.server.calls == (["echo"] if status == 200 else [])


@pytest.mark.req("S-HTTP-06")
def test_an_empty_token_lets_nobody_in():
    with serving(demo(), token="") as site:
        for value in ("Bearer ", "Bearer", "Bearer x"):
            reply = site.post(call("echo", text="x"), headers={"Authorization": value})
            assert reply.status == 401


# -- bodies


@pytest.mark.req("S-HTTP-36")
@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "", "json", None]
)
def test_a_body_that_does_not_say_json_is_refused_and_the_connection_goes_on(site, kind):
    site.app.server.calls.clear()
    message = call("echo", text="x")
    with site.connection() as connection:
        headers = {} if kind is None else {"Content-Type": kind}
        drop = ["Content-Type"] if kind is None else []
        reply = site.post(message, headers=headers, drop=drop, connection=connection)
        assert reply.status == 415
        assert site.app.server.calls == []
        assert site.post(message, connection=connection).status == 200


@pytest.mark.parametrize(
    "kind", ["application/json; charset=utf-8", "Application/JSON", "application/json ;x=y"]
)
def test_json_may_come_with_a_charset(site, kind):
    """B068"""
    assert site.post(call("echo", text="x"), headers={"Content-Type": kind}).status == 200


def test_a_refused_post_leaves_nothing_behind_on_its_connection(site):
    """B070"""
    message = call("echo", text="x" * 100_000)
    body = json.dumps(message).encode()
    refused = [
        ("/wrong", {}, 404),
        ("/mcp", {"Origin": EVIL[0]}, 403),
        ("/mcp", {"Content-Type": "text/plain"}, 415),
        ("/mcp", {"Mcp-Method": "other"}, 400),
    ]
    with site.connection() as connection:
        for path, headers, status in refused:
            reply = site.ask("POST", path, body, headers_for(message) | headers, connection)
            assert reply.status == status
            sock = connection.sock
            assert site.post(message, connection=connection).status == 200
            assert connection.sock is sock, "the connection was kept"


@pytest.mark.req("S-HTTP-36")
def test_a_huge_body_is_refused_without_waiting_for_it(site):
    """B016"""
    with site.socket() as sock:
        head = request(b"", headers_for(call("echo"))).replace(
            b"Content-Length: 0", b"Content-Length: 5000000000"
        )
        sock.sendall(head)
        found = b""
        while data := sock.recv(65536):
            found += data
    assert found.startswith(b"HTTP/1.1 413 ")
    assert b"connection: close" in found
    assert site.post(call("echo", text="alive")).status == 200


@pytest.mark.req("S-HTTP-36")
def test_the_limit_of_a_body_is_exact_with_a_length_and_without(site):
    message = call("echo", text="x" * 1000)
    body = json.dumps(message).encode()
    chunked = {**headers_for(message), "Transfer-Encoding": "chunked"}
    for limit, status in [(len(body), 200), (len(body) - 1, 413)]:
        with serving(demo(), max_body=limit) as small:
            assert small.post(message).status == status
            with small.connection() as connection:
                connection.request(
                    "POST", "/mcp", iter([body[:500], body[500:]]), chunked, encode_chunked=True
                )
                response = connection.getresponse()
                assert response.status == status
                assert response.headers["connection"] == ("close" if status == 413 else None)
                response.read()


@pytest.mark.req("S-HTTP-36")
def test_a_body_of_four_mebibytes_is_served_and_one_more_is_not(site):
    """B015"""
    fixed = len(json.dumps(call("size", text="")))
    most = 4 * 1024 * 1024 - fixed
    reply = site.post(call("size", text="x" * most))
    assert (reply.status, reply.json["result"]["structuredContent"]) == (200, most)
    with contextlib.suppress(ConnectionError):  # it may hang up while we write
        assert site.post(call("size", text="x" * (most + 1))).status == 413
    assert site.post(call("echo", text="alive")).status == 200


@pytest.mark.req("S-HTTP-38")
def test_a_chunked_body_is_read(site):
    """B067"""
    message = modern("tools/list")
    body = json.dumps(message).encode()
    pieces = [body[i : i + 7] for i in range(0, len(body), 7)]
    headers = {**headers_for(message), "Transfer-Encoding": "chunked"}
    with site.connection() as connection:
        for _ in range(2):
            connection.request("POST", "/mcp", iter(pieces), headers, encode_chunked=True)
            response = connection.getresponse()
            assert response.status == 200
            assert json.loads(response.read())["id"] == 1


@pytest.mark.req("S-HTTP-38")
def test_a_body_that_breaks_off_is_not_served():
    message = call("echo", text="x")
    body = json.dumps(message).encode()  # whole, but nobody said that this was all
    events = [
        {"type": "http.disconnect"},
        {"type": "http.request", "body": body, "more_body": True},
    ]

    async def receive():
        return events.pop()

    async def send(event):
        assert event.get("status") != 200

    served = app(demo())
    asyncio.run(served(scope_of(message), receive, send))
    assert events == []
    assert served.crew.threads == 0


@pytest.mark.req("S-ENV-07", "S-ERR-01", "S-ERR-15", "S-ENV-18")
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b"{",
        b"\xff\xfe",
        b'{"a":"\xff"}',
        b'{"a":NaN}',
        b'{"a":"\\ud800"}',
        b"[" * 100_000,
        b"1" * 5_000,
        '{"jsonrpc":"2.0"}'.encode("utf-16"),
    ],
)
def test_a_body_that_is_no_json_is_a_parse_error_without_an_id(site, body):
    reply = site.post(body)
    assert (reply.status, reply.kind) == (400, "application/json")
    assert set(reply.json) == {"jsonrpc", "error"}
    assert reply.json["error"]["code"] == -32700


SHAPES = [  # body, id
    ("5", None),
    ("null", None),
    ('"x"', None),
    ("[]", None),
    ("{}", None),
    ('{"id":1}', 1),
    ('{"jsonrpc":"1.0","id":1,"method":"ping"}', 1),
    ('{"jsonrpc":"2.0","id":"x","method":5}', "x"),
    ('{"jsonrpc":"2.0","id":null,"method":"tools/list"}', None),
    ('{"jsonrpc":"2.0","id":true,"method":"tools/list"}', None),
    ('{"jsonrpc":"2.0","id":1.5,"method":"tools/list"}', None),
    ('{"jsonrpc":"2.0","method":5}', None),
]


@pytest.mark.req("S-HTTP-09", "S-ENV-01", "S-ENV-02", "S-ERR-02", "S-ERR-14")
@pytest.mark.parametrize(("body", "id"), SHAPES)
@pytest.mark.parametrize("version", [None, LEGACY])
def test_what_is_no_message_is_an_invalid_request_in_either_era(site, body, id, version):
    """B022"""
    reply = site.post(body.encode(), version)
    assert (reply.status, reply.kind) == (400, "application/json")
    assert reply.json.get("id") == id
    assert reply.json["error"]["code"] == -32600


@pytest.mark.req("S-ENV-08")
def test_a_batch_is_one_invalid_request_and_nothing_of_it_runs(site):
    """B029"""
    site.app.server.calls.clear()
    batch = [modern("ping"), call("echo", 2, text="x")]
    headers = headers_for(modern("ping")) | {"Mcp-Method": "ping"}
    for version in (None, LEGACY):
        reply = site.post(
            json.dumps(batch).encode(), version, headers=headers if not version else {}
        )
        assert reply.status == 400
        assert set(reply.json) == {"jsonrpc", "error"}
        assert reply.json["error"]["code"] == -32600
        assert "batches" in reply.json["error"]["message"]
    assert site.app.server.calls == []


# -- notifications and responses


@pytest.mark.req("S-HTTP-08", "S-ENV-04", "S-ENV-17", "S-CANC-01", "S-VER-11")
@pytest.mark.parametrize(
    "message",
    [
        notification("notifications/initialized"),
        notification("no/such"),
        notification("tools/call", {"name": "echo", "arguments": {"text": "x"}}),
        notification("notifications/progress", {"progressToken": 1}),
    ],
)
@pytest.mark.parametrize("drop", [[], ["MCP-Protocol-Version", "Mcp-Method", "Accept"]])
@pytest.mark.parametrize("version", [None, LEGACY])
def test_a_notification_is_accepted_and_answered_with_nothing(site, message, drop, version):
    """B066"""
    site.app.server.calls.clear()
    reply = site.post(message, version, drop=drop)
    assert (reply.status, reply.body) == (202, b"")
    assert site.app.server.calls == []


@pytest.mark.req("S-ENV-10")
@pytest.mark.parametrize("answer", [{"result": {}}, {"error": {"code": 1, "message": "x"}}])
def test_a_posted_response_is_refused(site, answer):
    reply = site.post({"jsonrpc": "2.0", "id": 9, **answer})
    assert reply.status == 400
    assert reply.json["error"]["code"] == -32600


# -- metadata, headers and their order

WITHOUT_META = [
    {"jsonrpc": "2.0", "id": 101, "method": "server/discover"},
    {"jsonrpc": "2.0", "id": 101, "method": "server/discover", "params": {}},
    {"jsonrpc": "2.0", "id": 101, "method": "tools/list", "params": {"_meta": {}}},
    {"jsonrpc": "2.0", "id": 101, "method": "ping", "params": {}},
    {"jsonrpc": "2.0", "id": 101, "method": "tools/list", "params": {"_meta": {CAPABILITIES: {}}}},
    {"jsonrpc": "2.0", "id": 101, "method": "tools/list", "params": {"_meta": {VERSION: MODERN}}},
    {"jsonrpc": "2.0", "id": 101, "method": "tools/list", "params": {"_meta": "x"}},
    {"jsonrpc": "2.0", "id": 101, "method": "tools/list", "params": [1]},
    {"jsonrpc": "2.0", "id": 101, "method": "tools/list", "params": {"_meta": {VERSION: 5}}},
    {
        "jsonrpc": "2.0",
        "id": 101,
        "method": "tools/list",
        "params": {"_meta": {VERSION: MODERN, CAPABILITIES: []}},
    },
]


@pytest.mark.req(
    "S-HTTP-27", "S-META-01", "S-META-02", "S-META-03", "S-META-05", "S-DISC-04", "S-ENV-05"
)
@pytest.mark.parametrize("message", WITHOUT_META)
def test_a_request_without_the_metadata_is_invalid_and_keeps_its_id(site, message):
    """B063"""
    reply = site.post(message, headers={"MCP-Protocol-Version": MODERN})
    assert reply.status == 400
    assert (reply.json["id"], reply.json["error"]["code"]) == (101, -32602)


@pytest.mark.req("S-META-04")
def test_the_name_of_the_client_is_not_needed(site):
    assert site.post(modern("server/discover")).status == 200


@pytest.mark.req("S-HTTP-10", "S-HTTP-14", "S-HTTP-15")
@pytest.mark.parametrize("header", ["MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"])
def test_a_missing_header_is_named(site, header):
    """B075"""
    site.app.server.calls.clear()
    reply = site.post(call("echo", 7, text="x"), drop=[header])
    assert reply.status == 400
    assert_error(reply.json, -32020, header, id=7)
    assert site.app.server.calls == []


MISMATCHES = [
    ("MCP-Protocol-Version", "2025-11-25"),
    ("MCP-Protocol-Version", "2026-07-27"),
    ("Mcp-Method", "prompts/list"),
    ("Mcp-Method", "TOOLS/CALL"),
    ("Mcp-Method", ""),
    ("Mcp-Method", "=?base64?dG9vbHMvY2FsbA==?="),
    ("Mcp-Name", "boom"),
    ("Mcp-Name", "Echo"),
    ("Mcp-Name", ""),
    ("Mcp-Name", "=?base64?ZWNobw=?="),
    ("Mcp-Name", "=?base64?Ym9vbQ==?="),
    ("Mcp-Name", "=?base64?ZWNob!!!w==?="),
    ("Mcp-Name", "=?base64?/w==?="),
]


@pytest.mark.req("S-HTTP-11", "S-HTTP-14", "S-HTTP-15", "S-HTTP-18")
@pytest.mark.parametrize(("header", "value"), MISMATCHES)
def test_a_header_that_differs_from_the_body_is_refused(site, header, value):
    """B075"""
    site.app.server.calls.clear()
    reply = site.post(call("echo", 7, text="x"), headers={header: value})
    assert reply.status == 400
    assert_error(reply.json, -32020, header, id=7)
    assert site.app.server.calls == []


@pytest.mark.req("S-HTTP-11")
@pytest.mark.parametrize("header", [MODERN, LEGACY, "v998.0.0"])
def test_a_version_that_differs_is_refused_for_that_even_if_it_is_not_served(site, header):
    message = modern("tools/list", meta={VERSION: "v999.0.0"})
    reply = site.post(message, headers={"MCP-Protocol-Version": header})
    assert reply.status == 400
    assert_error(reply.json, -32020, "MCP-Protocol-Version", "v999.0.0")


@pytest.mark.req("S-HTTP-10", "S-HTTP-14")
@pytest.mark.parametrize("header", ["MCP-Protocol-Version", "Mcp-Method"])
@pytest.mark.parametrize("method", ["server/discover", "tools/list", "unknown/method"])
def test_every_request_needs_the_headers_that_say_what_it_is(site, method, header):
    for options in ({"drop": [header]}, {"headers": {header: "other"}}):
        reply = site.post(modern(method), **options)
        assert reply.status == 400
        assert_error(reply.json, -32020, header)


@pytest.mark.req("S-HTTP-17")
def test_an_encoded_name_is_decoded_before_it_is_compared(site):
    """B076"""
    reply = site.post(call("echo", text="x"), headers={"Mcp-Name": "=?base64?ZWNobw==?="})
    assert (reply.status, reply.json) == (200, complete(said("x")))


@pytest.mark.req("S-HTTP-15", "S-HTTP-17", "S-HTTP-19")
@pytest.mark.parametrize("uri", ["größe://x", " x ", "=?base64?a?=", "SGVsbG8=", "file:///a b"])
def test_names_and_uris_outside_of_plain_text_travel_encoded(uri):
    server = demo()

    @server.method("resources/read", capability="resources")
    def read(params, context):
        return {"contents": [{"uri": params["uri"], "text": "x"}]}

    @server.method("prompts/get", capability="prompts")
    def get(params, context):
        return {"messages": []}

    with serving(server) as site:
        for method, name in ("resources/read", "uri"), ("prompts/get", "name"):
            message = modern(method, {name: uri})
            assert site.post(message).status == 200
            for wrong in ({"headers": {"Mcp-Name": "other"}}, {"drop": ["Mcp-Name"]}):
                reply = site.post(message, **wrong)
                assert reply.status == 400
                assert_error(reply.json, -32020, "Mcp-Name")


@pytest.mark.req("S-HTTP-16")
def test_header_names_have_no_case_and_values_no_blanks_around_them(site):
    message = call("echo", text="x")
    headers = {
        "mcp-method": " tools/call ",
        "MCP-NAME": "   echo  ",
        "mCp-pRoToCoL-vErSiOn": MODERN,
    }
    assert site.post(message, headers=headers).status == 200


@pytest.mark.req("S-HTTP-16")
def test_blanks_around_a_value_go_even_where_the_web_server_leaves_them():
    assert read_headers([(b"mcp-name", b" \t a b\t")]) == {"mcp-name": "a b"}


@pytest.mark.req("S-HTTP-12", "S-VER-01", "S-VER-02", "S-ERR-13")
@pytest.mark.parametrize("version", ["1900-01-01", "v999.0.0", LEGACY, "2025-06-18", ""])
def test_a_version_that_is_not_served_is_named_with_those_that_are(site, version):
    reply = site.post(modern("tools/list", meta={VERSION: version}))
    assert reply.status == 400
    data = {"supported": [MODERN], "requested": version}
    assert_error(reply.json, -32022, version, data=data)


GONE = ["unknown/method", "initialize", "ping", "logging/setLevel", "resources/subscribe"]
GONE += ["resources/unsubscribe", "prompts/list"]


@pytest.mark.req("S-HTTP-13", "S-ERR-03", "S-VER-06", "S-VER-13")
@pytest.mark.parametrize("method", GONE)
def test_an_unknown_method_is_not_found(site, method):
    reply = site.post(modern(method))
    assert (reply.status, reply.kind) == (404, "application/json")
    assert_error(reply.json, -32601, method)


@pytest.mark.req("S-HTTP-26", "S-CALL-22", "S-META-06", "S-ERR-12", "S-ENV-14")
def test_a_missing_capability_is_a_bad_request_and_nothing_is_remembered(site):
    data = {"requiredCapabilities": {"sampling": {}}}
    for capabilities, status in [({"sampling": {}}, 200), ({}, 400), ({"sampling": {}}, 200)]:
        reply = site.post(call("needy", capabilities=capabilities))
        assert reply.status == status
        if status == 400:
            assert_error(reply.json, -32021, "sampling", data=data)


@pytest.mark.req("S-HTTP-13")
def test_an_unknown_method_is_only_missed_when_its_metadata_and_headers_are_right(site):
    without = modern("unknown/method")
    del without["params"]["_meta"][CAPABILITIES]
    reply = site.post(without)
    assert (reply.status, reply.json["error"]["code"]) == (400, -32602)
    reply = site.post(modern("unknown/method"), headers={"Mcp-Method": "tools/list"})
    assert (reply.status, reply.json["error"]["code"]) == (400, -32020)


def refusing(code):
    server = demo()

    @server.method("x/refuse")
    def refuse(params, context):
        raise ProtocolError(code, "refused")

    return server


@pytest.mark.req("S-LIST-09", "S-CALL-01", "S-ERR-05", "S-ERR-06", "S-ERR-11")
def test_errors_of_a_handler_travel_with_200(site):
    unknown = site.post(call("nobody"))
    assert unknown.status == 200
    assert_error(unknown.json, -32602, "nobody")
    cursor = site.post(modern("tools/list", {"cursor": "?"}))
    assert (cursor.status, cursor.json["error"]["code"]) == (200, -32602)
    for code in (-32602, -32603, 1001):
        with serving(refusing(code)) as other:
            reply = other.post(modern("x/refuse"))
            assert reply.status == 200
            assert_error(reply.json, code)


@pytest.mark.req("S-CALL-02")
def test_a_tool_that_fails_is_a_result(site, capsys):
    reply = site.post(call("boom"))
    assert reply.status == 200
    assert reply.json["result"]["isError"] is True


def test_not_even_a_handler_that_wants_to_leave_ends_a_thread(site, monkeypatch):
    monkeypatch.setattr("sys.excepthook", lambda *error: None)
    for _ in range(3):
        reply = site.post(modern("x/leave"))
        assert reply.status == 200
        assert_error(reply.json, -32603)
    assert site.post(call("add", a=1, b=2)).status == 200


ORDER = [  # each has two faults, and the first of them is the one that is named
    ({"headers": {"Origin": EVIL[0]}, "path": "/other"}, call("echo"), 403),
    ({"headers": {"Origin": EVIL[0]}, "method": "GET"}, call("echo"), 403),
    ({"headers": {"Content-Type": "text/plain"}, "method": "GET"}, call("echo"), 405),
    ({"headers": {"Content-Type": "text/plain"}}, b"{", 415),
    ({}, b"{", -32700),
    ({}, b'{"jsonrpc":"1.0","id":1,"method":"x"}', -32600),
    ({"headers": {"Mcp-Method": "x"}}, legacy("tools/list", {}), -32602),
    ({"headers": {"Mcp-Method": "x"}}, modern("tools/list", meta={CAPABILITIES: 5}), -32602),
    ({"headers": {"Mcp-Method": "x"}}, modern("tools/list", meta={VERSION: "v9"}), -32020),
    ({"headers": {"MCP-Protocol-Version": MODERN}}, modern("x", meta={VERSION: "v9"}), -32020),
    ({}, modern("x", meta={VERSION: "v9"}), -32022),
    ({"headers": {"Mcp-Name": "x"}}, modern("tools/call", {"name": "nobody"}), -32020),
    ({}, modern("x", {"cursor": 5}), -32601),
    ({}, modern("tools/list", {"cursor": 5}), -32602),
]


@pytest.mark.req("S-HTTP-39")
@pytest.mark.parametrize(("options", "message", "first"), ORDER)
def test_checks_come_in_the_order_of_the_specification(site, options, message, first):
    headers = headers_for(message) | options.get("headers", {})
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    reply = site.ask(options.get("method", "POST"), options.get("path", "/mcp"), body, headers)
    assert (reply.json["error"]["code"] if first < 0 else reply.status) == first


@pytest.mark.req("S-HTTP-29", "S-HTTP-30")
def test_sessions_and_resuming_are_ignored(site):
    headers = {"Mcp-Session-Id": "x", "Last-Event-ID": "5"}
    for message in (call("echo", text="x"), call("steps", number=2, meta={"progressToken": 1})):
        plainly, reply = site.post(message), site.post(message, headers=headers)
        assert (reply.status, reply.body) == (200, plainly.body)
        for one in (plainly, reply):
            assert "mcp-session-id" not in one.headers
            assert b"\nid:" not in one.body and not one.body.startswith(b"id:")


# -- JSON or a stream


@pytest.mark.req("S-HTTP-07", "S-HTTP-31", "S-HTTP-32", "S-HTTP-33", "S-PROG-06")
def test_a_tool_that_speaks_first_gets_a_stream_that_ends_with_the_reply(site):
    reply = site.post(call("steps", number=3, meta={"progressToken": "t"}))
    assert (reply.status, reply.kind) == (200, "text/event-stream")
    assert reply.headers["cache-control"] == "no-cache"
    assert reply.headers["x-accel-buffering"] == "no"
    compact = [json.dumps(one, separators=(",", ":")) for one in reply.events]
    assert reply.body.decode() == "".join(f"data: {one}\n\n" for one in compact)
    *notes, last = reply.events
    assert [(note["method"], note["params"]) for note in notes] == [
        ("notifications/progress", {"progressToken": "t", "progress": step, "total": 3})
        for step in range(3)
    ]
    assert last == complete(said("done"))


@pytest.mark.req("S-HTTP-07")
def test_a_tool_that_nobody_asked_to_speak_is_answered_in_json(site):
    reply = site.post(call("steps", number=3))
    assert (reply.kind, reply.json) == ("application/json", complete(said("done")))


ACCEPTS = ["*/*", "application/json", None, "application/*", "text/html, */*;q=0.1"]


@pytest.mark.req("S-HTTP-37")
@pytest.mark.parametrize("accept", ACCEPTS)
def test_whoever_takes_json_gets_it(site, accept):
    """B066"""
    options = {"drop": ["Accept"]} if accept is None else {"headers": {"Accept": accept}}
    reply = site.post(call("add", a=2, b=40), **options)
    assert (reply.status, reply.kind) == (200, "application/json")


@pytest.mark.req("S-HTTP-37")
@pytest.mark.parametrize("accept", ["*/*", None, "text/event-stream", "text/*;q=0.5"])
def test_whoever_takes_a_stream_hears_what_is_said_on_the_way(site, accept):
    options = {"drop": ["Accept"]} if accept is None else {"headers": {"Accept": accept}}
    reply = site.post(call("steps", number=3, meta={"progressToken": 1}), **options)
    assert (reply.kind, len(reply.events)) == ("text/event-stream", 4)


@pytest.mark.req("S-HTTP-37")
def test_who_takes_nothing_but_json_gets_the_reply_without_what_was_said_before(site):
    message = call("steps", number=3, meta={"progressToken": 1})
    reply = site.post(message, headers={"Accept": "application/json"})
    assert (reply.kind, reply.json) == ("application/json", complete(said("done")))


LISTEN = modern("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, "l")


@pytest.mark.req("S-HTTP-37")
def test_who_takes_no_stream_cannot_listen(site):
    reply = site.post(LISTEN, headers={"Accept": "application/json"})
    assert reply.status == 406
    assert b"text/event-stream" in reply.body


@pytest.mark.req("S-HTTP-34", "S-LOG-03", "S-SUB-12", "S-PROG-06")
@pytest.mark.parametrize("way", ["progress", "log"])
def test_what_is_said_about_a_request_goes_to_that_request_alone(way):
    server = demo()
    server.capabilities["logging"] = {}
    both = threading.Barrier(2, timeout=20)

    @server.tool
    def together(mark: str, context: Context) -> str:
        for step in range(20):
            both.wait()
            if way == "progress":
                context.progress(step, message=mark)
            else:
                context.log("info", step, mark)
        return mark

    with serving(server) as site, site.stream(LISTEN) as listener:
        listener.begin().next()
        found = {}

        def ask(mark):
            meta = {"progressToken": mark, "io.modelcontextprotocol/logLevel": "info"}
            message = call("together", mark, mark=mark, meta=meta)
            found[mark] = site.post(message).events

        threads = [threading.Thread(target=ask, args=(mark,)) for mark in "ab"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        for mark in "ab":
            *notes, last = found[mark]
            told = [note["params"] for note in notes]
            if way == "progress":
                assert {one["progressToken"] for one in told} == {mark}
            key, value = ("message", "progress") if way == "progress" else ("logger", "data")
            assert [(one[key], one[value]) for one in told] == [(mark, step) for step in range(20)]
            assert last == complete(said(mark), mark)
        server.announce("tools")
        assert listener.next()["method"] == "notifications/tools/list_changed"


@pytest.mark.req("S-HTTP-35", "S-ENV-15")
def test_a_slow_call_delays_no_other(site):
    site.app.server.gate.clear()
    with site.stream(call("wait", meta={"progressToken": 1})) as slow:
        until(lambda: "wait" in site.app.server.seen)
        for _ in range(3):
            assert site.post(call("add", a=2, b=40)).status == 200
        site.app.server.gate.set()
        assert slow.begin().next()["method"] == "notifications/progress"
        assert slow.next() == complete(said("waited"))
        assert slow.next() is None


# -- hanging up


@pytest.mark.req("S-CANC-07")
@pytest.mark.parametrize("speaks", [False, True])
def test_a_closed_connection_cancels_the_call(speaks):
    """B073"""
    server = demo()
    with serving(server) as site:
        with site.stream(call("polite")):
            context = until(lambda: server.seen.get("polite"))
            if speaks:
                context.notify("notifications/message", {"level": "info", "data": "x"})
            assert not context.cancelled
        until(lambda: server.calls)
        assert server.calls == ["cancelled"]


@pytest.mark.req("S-CANC-03", "S-CANC-07")
def test_nothing_is_written_to_a_client_that_is_gone(capfd):
    """B072"""
    server = demo()
    with serving(server) as site:
        for message in (
            call("wait", meta={"progressToken": 1}),
            call("echo", text="x" * 1_000_000),
        ):
            with site.stream(message):
                pass
        with site.stream(call("wait", meta={"progressToken": 1})):
            until(lambda: "wait" in server.seen)
        server.gate.set()
        until(lambda: site.post(call("add", a=1, b=1)).status == 200)
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.req("S-CANC-10")
def test_a_posted_cancellation_is_accepted_and_has_no_effect():
    server = demo()
    with serving(server) as site, site.stream(call("polite", 5)) as slow:
        context = until(lambda: server.seen.get("polite"))
        for version in (None, LEGACY):
            reply = site.post(notification("notifications/cancelled", {"requestId": 5}), version)
            assert (reply.status, reply.body) == (202, b"")
        assert not context.cancelled
        server.gate.set()
        slow.begin()
        assert json.loads(slow.response.read()) == complete(said("over"), 5)
        assert server.calls == ["finished"]


def test_the_same_id_at_the_same_time_belongs_to_two_requests():
    server = demo()
    with serving(server) as site, site.stream(call("polite", 5)) as slow:
        until(lambda: server.seen.get("polite"))
        assert site.post(call("echo", 5, text="x")).json == complete(said("x"), 5)
        server.gate.set()
        assert slow.begin().response.status == 200


# -- streams that stay open


@pytest.mark.req("S-SUB-09")
def test_a_silent_stream_shows_that_it_lives(monkeypatch):
    monkeypatch.setattr("minimcp.http.KEEP_ALIVE", 0.02)
    with serving(demo()) as site, site.stream(LISTEN) as listener:
        listener.begin()
        assert listener.response.status == 200
        assert listener.response.headers["content-type"] == "text/event-stream"
        assert listener.line().startswith("data: ")
        assert [listener.line() for _ in range(5)] == ["\n", ":\n", "\n", ":\n", "\n"]


@pytest.mark.req("S-SUB-10")
def test_a_listener_that_hangs_up_is_forgotten():
    server = demo()
    with serving(server) as site:
        with site.stream(LISTEN) as listener:
            listener.begin().next()
            (context,) = server.listeners
        until(lambda: context.cancelled)
        server.announce("tools")
        assert server.listeners == {}


@pytest.mark.req("S-SUB-16")
def test_a_listener_that_does_not_read_is_given_up_and_then_its_stream_ends(monkeypatch):
    monkeypatch.setattr("minimcp.http.BACKLOG", 50)
    server, asked, sent = demo(), json.dumps(LISTEN).encode(), []

    async def scenario():
        full, never = asyncio.Event(), asyncio.Event()

        async def receive():
            if asked in sent:
                await never.wait()
            sent.append(asked)
            return {"type": "http.request", "body": asked}

        async def send(event):
            sent.append(event)
            if len(sent) == 4:  # the acknowledgement, and then the pipe is full
                await full.wait()

        stream = asyncio.create_task(app(server)(scope_of(LISTEN), receive, send))
        while len(sent) < 3:
            await asyncio.sleep(0)
        changes = 0
        while server.listeners:
            server.announce("tools")
            changes += 1
            await asyncio.sleep(0)
        full.set()
        await asyncio.wait_for(stream, 20)
        return changes

    assert 50 <= asyncio.run(scenario()) <= 60
    assert sent[-1]["more_body"] is False
    assert b'"result"' not in sent[-1]["body"]


@pytest.mark.req("S-SUB-16")
def test_a_listener_that_does_not_read_holds_up_no_other_and_no_call(monkeypatch):
    monkeypatch.setattr("minimcp.http.BACKLOG", 50)
    server, never = demo(), asyncio.Event()
    served, stuck, heard, answered = app(server), [], [], []

    def post(message, send):
        asked = [{"type": "http.request", "body": json.dumps(message).encode()}]

        async def receive():
            return asked.pop() if asked else await never.wait()

        return asyncio.create_task(served(scope_of(message), receive, send))

    async def hang(event):
        stuck.append(event)
        await (never.wait() if len(stuck) == 2 else asyncio.sleep(0))

    async def hear(event):
        heard.extend(event.get("body", b"").decode().split("\n\n")[:-1])

    async def take(event):
        answered.append(event)

    async def scenario():
        streams = post(LISTEN, hang), post(LISTEN, hear)
        while not (heard and len(stuck) == 2):
            await asyncio.sleep(0)
        for changes in range(1, 101):
            server.announce("tools")
            while len(heard) <= changes:
                await asyncio.sleep(0)
        await post(call("add", a=1, b=1), take)
        for stream in streams:
            stream.cancel()

    asyncio.run(asyncio.wait_for(scenario(), 20))
    assert ["list_changed" in line for line in heard] == [False] + [True] * 100
    assert b'"structuredContent":2' in answered[-1]["body"]


@pytest.mark.req("S-SUB-07", "S-SUB-09")
def test_the_end_of_a_subscription_is_its_result_and_the_end_of_the_stream():
    from minimcp.listen import close

    server = demo()
    with serving(server) as site, site.stream(LISTEN) as listener:
        assert listener.begin().next()["method"] == "notifications/subscriptions/acknowledged"
        close(server)
        last = listener.next()
        assert last["id"] == "l"
        assert last["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == "l"
        assert listener.next() is None


def test_only_a_disconnect_is_a_disconnect():
    """What else comes after the body is no reason to cancel."""
    message = call("echo", text="x")
    body = {"type": "http.request", "body": json.dumps(message).encode()}
    coming, sent = [body, {"type": "http.request"}, {"type": "http.request"}], []

    async def receive():
        return coming.pop(0) if coming else await asyncio.Event().wait()

    async def send(event):
        sent.append(event)

    asyncio.run(app(demo())(scope_of(message), receive, send))
    assert (sent[0]["status"], coming) == (200, [])
    assert json.loads(sent[1]["body"])["result"]["content"][0]["text"] == "x"


def test_a_connection_that_waits_for_the_same_request_twice_is_closed():
    """One look finds it waiting, and the next finds it waiting for the same."""
    asked = types.SimpleNamespace(more_body=False, response_complete=False)
    done = types.SimpleNamespace(more_body=False, response_complete=True)
    half = types.SimpleNamespace(more_body=True, response_complete=False)
    closed, all_of_them = [], []
    for name, cycle in {"new": None, "idle": done, "slow": half, "busy": asked}.items():
        transport = types.SimpleNamespace(close=lambda name=name: closed.append(name))
        all_of_them.append(types.SimpleNamespace(cycle=cycle, transport=transport))
    state = types.SimpleNamespace(connections=all_of_them)
    asyncio.run(hang_up(state))
    assert closed == []
    asyncio.run(hang_up(state))
    assert closed == ["new", "idle", "slow"]


@pytest.mark.req("S-CANC-07")
def test_who_hung_up_before_the_call_began_has_cancelled_it():
    server, found = Server("demo"), []

    @server.tool
    def look(context: Context) -> None:
        found.append(context.cancelled)

    async def late():
        message = call("look")
        post = Post(app(server), {key.lower(): one for key, one in headers_for(message).items()})
        post.leave()
        post.answer(json.dumps(message).encode())
        assert [line for line in post.box if line] == []

    asyncio.run(late())
    assert found == []  # it never began


@pytest.mark.req("S-CANC-07")
def test_a_call_goes_on_when_what_it_says_is_not_read_and_its_reply_still_comes(monkeypatch):
    monkeypatch.setattr("minimcp.http.BACKLOG", 50)
    server, message = Server("demo"), call("chatter", meta={"progressToken": 1})
    over = threading.Event()

    @server.tool
    def chatter(context: Context) -> int:
        for number in range(1000):
            context.progress(number)
        over.set()
        return number

    async def scenario():
        sent, never = [], asyncio.Event()

        async def receive():
            await (never.wait() if sent else asyncio.sleep(0))
            return {"type": "http.request", "body": json.dumps(message).encode()}

        async def send(event):
            sent.append(event)
            while not over.is_set():  # a slow reader
                await asyncio.sleep(0.01)

        await asyncio.wait_for(app(server)(scope_of(message), receive, send), 20)
        return b"".join(event.get("body", b"") for event in sent)

    events = [*filter(None, asyncio.run(scenario()).decode().split("\n\n"))]
    assert 2 <= len(events) <= 60
    assert json.loads(events[-1].removeprefix("data: "))["result"]["structuredContent"] == 999


@pytest.mark.req("S-CANC-08")
def test_a_legacy_call_goes_on_however_much_it_says_to_a_client_that_is_gone(monkeypatch):
    monkeypatch.setattr("minimcp.http.BACKLOG", 50)
    server, found = Server("demo"), []

    @server.tool
    def chatter(context: Context) -> None:
        for number in range(1000):
            context.progress(number)
        found.append(number)

    async def late():
        message = legacy("tools/call", {"name": "chatter", "_meta": {"progressToken": 1}})
        headers = headers_for(message) | {"MCP-Protocol-Version": LEGACY}
        post = Post(app(server), {key.lower(): one for key, one in headers.items()})
        post.leave()
        post.answer(json.dumps(message).encode())
        assert [line for line in post.box if line] == []

    asyncio.run(late())
    assert found == [999]


@pytest.mark.req("S-LHTTP-03", "S-HTTP-09")
@pytest.mark.parametrize("version", ["banana", "1999-01-01", "2024-11-05"])
def test_what_names_a_revision_that_is_not_served_is_refused_even_if_it_asks_nothing(site, version):
    told = {"MCP-Protocol-Version": version}
    for message in (notification("notifications/initialized"), {"id": 9, "result": {}}):
        reply = site.post({"jsonrpc": "2.0", **message}, headers=told)
        assert reply.status == 400
        assert (reply.json["error"]["code"], "id" in reply.json) == (-32022, False)


def test_a_log_that_fails_is_an_internal_error_and_costs_no_thread(capsys):
    def log(way, text):
        assert "unlogged" not in text

    with serving(demo(), log=log) as site:
        for _ in range(3):
            reply = site.post(call("echo", text="unlogged"))
            assert (reply.status, reply.json["error"]["code"]) == (400, -32603)
        assert site.post(call("add", a=2, b=40)).status == 200
        assert site.app.crew.threads <= 2
    assert "AssertionError" in capsys.readouterr().err
