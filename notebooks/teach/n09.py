"""Notebook 9, HTTP: its exercises, the bank, and its table."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

from minimcp import Context, Server

from .exercise import Exercise, Mistake
from .lines import error, result
from .n07 import SERVER, VERSION, says


def message(method: str, version: str = "2026-07-28", **params: Any) -> dict[str, Any]:
    """A modern request as a dict."""
    asked = {**params, **says(version)}
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": asked}


def headers(method: str, name: str | None = None, version: str = "2026-07-28") -> dict[str, str]:
    """What the headers say, in lower case."""
    said = {"mcp-protocol-version": version, "mcp-method": method}
    return {**said, "mcp-name": name} if name is not None else said


PAY = message("tools/call", name="pay", arguments={"coins": 1})
READ = message("resources/read", uri="bank:/rates")
ASK = message("prompts/get", name="letter")

check_mismatch = Exercise(
    "mismatch",
    cases=[
        ((headers("tools/call", "pay"), PAY), "all three say what the body says"),
        ((headers("tools/call", "balance"), PAY), "the attack"),
        ((headers("tools/call"), PAY), "what is missing does not match either"),
        ((headers("tools/list", "pay"), PAY), "a gateway may count lists and calls differently"),
        (
            (headers("tools/call", "pay", "2025-11-25"), PAY),
            "or treat another revision differently",
        ),
        ((headers("resources/read", "bank:/rates"), READ), "of a resource, the name is its uri"),
        ((headers("resources/read", "bank:/secrets"), READ), "so this one is wrong"),
        ((headers("tools/list"), message("tools/list")), "a list is about nothing: no name needed"),
        ((headers("tools/list", "x"), message("tools/list")), "and nobody looks at one"),
        ((headers("tools/call", "PAY"), PAY), "header names ignore case, their values do not"),
        ((headers("prompts/get", "letter"), ASK), "a prompt has a name, like a tool"),
        ((headers("prompts/get", "poem"), ASK), "and it may be another"),
        ((headers("tools/list", "pay", "2025-11-25"), PAY), "two are wrong: the first one counts"),
    ],
    solution="""
def mismatch(headers, message):
    params, method = message["params"], message["method"]
    body = {"mcp-protocol-version": params["_meta"][VERSION], "mcp-method": method}
    if method in NAMED:
        body["mcp-name"] = params.get(NAMED[method])
    for header, value in body.items():
        if headers.get(header) != value:
            return header
    return None
""",
    hints=[
        "make a dict of what the headers should say, from the body; then compare",
        "mcp-name only for the methods in NAMED, which says in which member the name stands",
        "headers.get(header) is None for what is missing, and None is not equal to any text",
    ],
    mistakes=[
        Mistake(
            """
def mismatch(headers, message):
    params, method = message["params"], message["method"]
    body = {"mcp-protocol-version": params["_meta"][VERSION], "mcp-method": method}
    if method in NAMED:
        body["mcp-name"] = params.get(NAMED[method])
    for header, value in body.items():
        if header in headers and headers[header] != value:
            return header
    return None
""",
            "you let through what is missing; then an attacker leaves the header out",
        ),
        Mistake(
            """
def mismatch(headers, message):
    params, method = message["params"], message["method"]
    body = {"mcp-protocol-version": params["_meta"][VERSION], "mcp-method": method}
    if method == "tools/call":
        body["mcp-name"] = params.get("name")
    for header, value in body.items():
        if headers.get(header) != value:
            return header
    return None
""",
            "you think of tools only; resources and prompts have names, too",
        ),
        Mistake(
            """
def mismatch(headers, message):
    params, method = message["params"], message["method"]
    body = {"mcp-protocol-version": params["_meta"][VERSION], "mcp-method": method}
    body["mcp-name"] = params.get("name", params.get("uri", ""))
    for header, value in body.items():
        if headers.get(header, "") != value:
            return header
    return None
""",
            "you ask for a name where there is none, or take an empty one for a missing one",
        ),
    ],
    given={
        "VERSION": VERSION,
        "NAMED": {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"},
    },
    label=lambda headers, message: (
        f"headers {list(headers.values())}, body {message['method']} "
        f"{message['params'].get('name', message['params'].get('uri', ''))}"
    ),
)

check_encode = Exercise(
    "encode",
    cases=[
        (("balance",), "what a header can hold stays as it is"),
        (("bank:/rates today",), "blanks inside are fine"),
        (("",), "so is nothing"),
        (("Zürich",), "a header is ASCII"),
        ((" balance",), "blanks at the ends get lost on the way"),
        (("pay\r\nAuthorization: Bearer boss",), "a line break would begin a header of its own!"),
        (("a\tb",), "other control characters are not printable either"),
        (("=?base64?cGF5?=",), "this looks encoded, and would be read as something else"),
        (("=?base64? is the mark",), "this only begins like it, and can stay"),
        (("coins=how many?=",), "and this only ends like it"),
    ],
    solution="""
def encode(text):
    plain = text.isascii() and text.isprintable() and text == text.strip()
    if plain and not (text.startswith("=?base64?") and text.endswith("?=")):
        return text
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="
""",
    hints=[
        "three questions: is it ASCII, is it printable, and does it survive strip()?",
        "and a fourth: could the other side take it for something that was encoded?",
        "base64.b64encode(text.encode()).decode(), between =?base64? and ?=",
    ],
    mistakes=[
        Mistake(
            """
def encode(text):
    if text.isascii():
        return text
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="
""",
            "a line break is ASCII; with it, the name of a tool can add headers of its own",
        ),
        Mistake(
            """
def encode(text):
    if text.isascii() and text.isprintable() and text == text.strip():
        return text
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="
""",
            "you forget the text that looks encoded but is not; two names would look the same",
        ),
        Mistake(
            """
def encode(text):
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="
""",
            "you encode everything; a gateway should be able to read plain names",
        ),
    ],
    given={"base64": base64},
)

check_is_local = Exercise(
    "is_local",
    cases=[
        (("localhost",), "us"),
        (("localhost:3000",), "with the port"),
        (("127.0.0.1:3000",), "by number"),
        (("[::1]:3000",), "by the longer number; there are colons in the name itself"),
        (("LocalHost:3000",), "names ignore case"),
        (("evil.example:3000",), "the attack"),
        (("localhost.evil.example",), "begins with our name, and is somebody else's"),
        (("notlocalhost",), "ends with it, the same"),
        (("localhost:3000.evil.example",), "a port is a number"),
        (("",), "no host at all"),
    ],
    solution="""
def is_local(host):
    found = re.fullmatch(r"(\\[[0-9a-f:]+\\]|[^:]+)(:[0-9]+)?", host.lower())
    return bool(found) and found[1] in LOCAL
""",
    hints=[
        "take the port off, and compare the whole name: == or in, not startswith",
        "the name ends at the last colon, but in [::1] there are colons inside the brackets",
        'a pattern: re.fullmatch(r"(\\[[0-9a-f:]+\\]|[^:]+)(:[0-9]+)?", host.lower())',
    ],
    mistakes=[
        Mistake(
            """
def is_local(host):
    return host.lower().startswith(LOCAL)
""",
            "you look at the beginning; localhost.evil.example begins well, too",
        ),
        Mistake(
            """
def is_local(host):
    return host.lower().split(":")[0] in LOCAL
""",
            "you cut at the first colon; [::1] has some inside, and what follows may be anything",
        ),
        Mistake(
            """
def is_local(host):
    return any(name in host.lower() for name in LOCAL)
""",
            "you look whether our name is somewhere in it",
        ),
    ],
    given={"re": re, "LOCAL": ("localhost", "127.0.0.1", "[::1]")},
)

# ## The bank


def new_bank() -> Server:
    """A bank with a hundred coins."""
    bank = Server("bank", version="1.0.0")
    vault = {"coins": 100}

    @bank.tool
    def balance() -> str:
        """Say how many coins there are."""
        return f"{vault['coins']} coins"

    @bank.tool
    def pay(coins: int) -> str:
        """Pay some coins to whoever asks."""
        vault["coins"] -= coins
        return f"paid {coins}"

    @bank.tool
    def count(context: Context) -> str:
        """Count the coins by hand, box by box."""
        for box in (1, 2, 3):
            context.progress(box, 3, f"box {box}")
        return f"{vault['coins']} coins"

    return bank


# ## The table
#
# Each line is what is different from a good POST: headers (`null` leaves one out), the message
# or its parts, or the first line.

HEADERS = {
    "Host": "localhost",
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": "2026-07-28",
    "Mcp-Method": "tools/call",
    "Mcp-Name": "balance",
}
CALL = message("tools/call", name="balance", arguments={})


def good_but(line: str) -> tuple[str, dict[str, Any], str]:
    """The body, the headers and the first line of a POST that is good but for this."""
    change = json.loads(line)
    start, body = change.pop("start", "POST /mcp"), change.pop("body", None)
    params = {**CALL["params"], **change.pop("params", {})}
    asked = {**CALL, "method": change.get("Mcp-Method", CALL["method"]), "params": params}
    if "method" in change:
        asked["method"] = change.pop("method")
    if change.pop("notification", False):
        del asked["id"]
    said = {key: value for key, value in {**HEADERS, **change}.items() if value is not None}
    return json.dumps(asked) if body is None else body, said, start


def outcome(response: str) -> dict[str, Any]:
    """What matters of a response: its status, what was said before, the reply."""
    head, _, body = response.partition("\r\n\r\n")
    found: dict[str, Any] = {"status": int(head.split()[1])}
    if "text/event-stream" in head:
        *said, body = re.findall("^data: (.*)$", body, re.M)
        found["said"] = [json.loads(event) for event in said]
    reply = json.loads(body) if body.startswith("{") else {}
    return {**found, **reply}


def status(code: int, reply: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """What is expected."""
    return {"status": code, **more, **(reply or {})}


def text(words: str) -> dict[str, Any]:
    """A good answer."""
    content = {"content": [{"type": "text", "text": words}]}
    return result(1, {"resultType": "complete", "_meta": {SERVER: INFO}, **content})


INFO = {"name": "bank", "version": "1.0.0"}
FINE = status(200, text("100 coins"))
WRONG = status(400, error(-32020, 1))
FAILED = text("…")["result"] | {"isError": True}
OLD = says("1900-01-01")
UNSPOKEN = {"supported": ["2026-07-28"], "requested": "1900-01-01"}
COUNT = {"name": "count", "_meta": {**says()["_meta"], "progressToken": 7}}
TOLD = [{"progressToken": 7, "progress": n, "total": 3, "message": f"box {n}"} for n in (1, 2, 3)]
PROGRESS = {"jsonrpc": "2.0", "method": "notifications/progress"}
BOXES = [{**PROGRESS, "params": one} for one in TOLD]
LINES = [
    ("{}", FINE),
    ('{"Mcp-Name": "pay"}', WRONG),
    ('{"Mcp-Name": null}', WRONG),
    ('{"Mcp-Name": ["balance", "pay"]}', WRONG),
    ('{"Mcp-Name": "=?base64?YmFsYW5jZQ==?="}', FINE),
    ('{"Mcp-Name": "=?base64?cGF5?="}', WRONG),
    ('{"Mcp-Method": "tools/list", "method": "tools/call"}', WRONG),
    ('{"Mcp-Method": null, "method": "tools/call"}', WRONG),
    ('{"MCP-Protocol-Version": "2025-11-25"}', WRONG),
    ('{"MCP-Protocol-Version": null}', WRONG),
    ('{"Host": "evil.example"}', status(403)),
    ('{"Host": "localhost.evil.example"}', status(403)),
    ('{"Host": "LOCALHOST:3000"}', FINE),
    ('{"Host": "[::1]:3000"}', FINE),
    ('{"Origin": "http://evil.example"}', status(403)),
    ('{"Origin": "null"}', status(403)),
    ('{"Origin": "http://localhost:8080"}', FINE),
    ('{"start": "POST /elsewhere"}', status(404)),
    ('{"start": "GET /mcp"}', status(405)),
    ('{"Content-Type": "text/plain"}', status(415)),
    ('{"Content-Type": "application/json; charset=utf-8"}', FINE),
    ('{"body": "one hundred coins, please"}', status(400, error(-32700))),
    ('{"notification": true}', status(202)),
    ('{"Mcp-Method": "make/coffee"}', status(404, error(-32601, 1))),
    ('{"Mcp-Name": "rob", "params": {"name": "rob"}}', status(200, error(-32602, 1))),
    ('{"params": {"arguments": {"coins": 5}}}', status(200, result(1, FAILED))),
    ('{"params": {"_meta": {}}}', status(400, error(-32602, 1))),
    (
        json.dumps({"MCP-Protocol-Version": "1900-01-01", "params": OLD}),
        status(400, error(-32022, 1, data=UNSPOKEN)),
    ),
    ('{"Mcp-Name": "count", "params": {"name": "count"}}', FINE),
    (
        json.dumps({"Mcp-Name": "count", "params": COUNT}),
        status(200, text("100 coins"), said=BOXES),
    ),
    (json.dumps({"Accept": "application/json", "Mcp-Name": "count", "params": COUNT}), FINE),
]
