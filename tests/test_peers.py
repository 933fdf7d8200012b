"""Real peers: clients and servers of other makers list and call tools on ours, and ours on theirs.

Every client, ours too, is a function `(asked, calls, target) -> report`, and every report has one
shape, so one table says who talks to whom in which era. The era is proven by the revision that was
negotiated. The matrix is printed at the end of the run; `record.py` keeps it for the site.
"""

import json
import shlex
import socket
import subprocess
import sys
import tempfile
from contextlib import ExitStack, contextmanager, suppress
from importlib import metadata, util
from pathlib import Path

import node_tools
import pytest
from support import free_port, until
from support_peers import run
from support_skips import need
from support_tables import tables

from minimcp import Client

TRANSPORTS = ["stdio", "http"]

HERE = Path(__file__).parent
MODERN, LEGACY, OLD = "2026-07-28", "2025-11-25", "2025-06-18"
DUAL = {"auto": MODERN, "modern": MODERN, "legacy": LEGACY, OLD: OLD}
HANDSHAKE = {"auto": LEGACY, "legacy": LEGACY, OLD: OLD}
NPM = "@modelcontextprotocol/"
OURS = "minimcp"


def installed(name):
    """The peer's version; skips (in CI: fails) where the peer is missing."""
    if name == OURS:
        return metadata.version("minimcp-reference")
    if name.startswith(NPM):
        return json.loads((node_tools.ready() / name / "package.json").read_text())["version"]
    need(
        util.find_spec(name.replace("-conform", "_probe")),
        f"no {name}: pip install -e '.[interop]'",
    )
    return metadata.version(name)


# Servers: how each is started, what it lists, and what it answers.


def python(script):
    return lambda *more: [sys.executable, str(HERE / "peers" / script), *more]


def everything(port=None):
    start = node_tools.command(NPM + "server-everything", "streamableHttp" if port else "stdio")
    return [start[0], "--import", str(HERE / "peers/loopback.mjs"), *start[1:]] if port else start


def demo(port=None):
    return [sys.executable, "-m", "minimcp.demo", *(["--http", port] if port else [])]


def ok(text, structured=None):
    return {"text": text, "structured": structured, "is_error": False}


def bad(text):
    return {"text": text, "structured": None, "is_error": True}


SDK_TOOLS = ["add", "shout", "fail"]
SDK_CALLS = [
    (["add", {"a": 2, "b": 40}], ok("42", {"result": 42})),
    (["shout", {"text": "naïve ☃"}], ok("NAÏVE ☃", {"result": "NAÏVE ☃"})),
]
EVERYTHING_TOOLS = [
    *("echo", "get-annotated-message", "get-env", "get-resource-links", "get-resource-reference"),
    *("get-structured-content", "get-sum", "get-tiny-image", "gzip-file-as-resource"),
    *("toggle-simulated-logging", "toggle-subscriber-updates", "trigger-long-running-operation"),
    "simulate-research-query",
]
FILESYSTEM_TOOLS = [
    *("read_file", "read_text_file", "read_media_file", "read_multiple_files", "write_file"),
    *("edit_file", "create_directory", "list_directory", "list_directory_with_sizes"),
    *("directory_tree", "move_file", "search_files", "get_file_info", "list_allowed_directories"),
]
FOLDER = "FOLDER"  # stands for the folder of the run
SERVERS = {  # name: (command, tools, calls with their answers)
    OURS: (
        demo,
        ["calc.add", "text.word_count", "text.summarize_naive"],
        [
            (["calc.add", {"a": 2, "b": 40}], ok("42", 42)),
            (
                ["text.word_count", {"text": "naïve ☃"}],
                ok('{"words":2,"characters":7}', {"words": 2, "characters": 7}),
            ),
            (
                ["calc.add", {"a": 2}],
                bad("calc.add cannot take these arguments:\narguments.b: missing"),
            ),
        ],
    ),
    "mcp": (
        python("mcp_server.py"),
        SDK_TOOLS,
        [*SDK_CALLS, (["fail", {}], bad("Error executing tool fail"))],
    ),
    "fastmcp": (
        python("fastmcp_server.py"),
        SDK_TOOLS,
        [*SDK_CALLS, (["fail", {}], bad("Error calling tool 'fail': on purpose"))],
    ),
    NPM + "server-everything": (
        everything,
        EVERYTHING_TOOLS,
        [
            (["echo", {"message": "naïve ☃"}], ok("Echo: naïve ☃")),
            (["get-sum", {"a": 2, "b": 40}], ok("The sum of 2 and 40 is 42.")),
        ],
    ),
    NPM + "server-filesystem": (
        lambda: node_tools.command(NPM + "server-filesystem", FOLDER),
        FILESYSTEM_TOOLS,
        [
            (["list_directory", {"path": FOLDER}], ok("[FILE] a.txt", {"content": "[FILE] a.txt"})),
            (["read_text_file", {"path": FOLDER + "/a.txt"}], ok("ä\n", {"content": "ä\n"})),
            (
                ["read_text_file", {"path": "/elsewhere"}],
                bad(
                    f"Access denied - path outside allowed directories: /elsewhere not in {FOLDER}"
                ),
            ),
        ],
    ),
}


# Clients: what each saw.


def ours(asked, calls, target):
    pin = {"version": asked} if asked.startswith("20") else {"era": asked}
    with Client(target, timeout=20, probe_timeout=20, **pin) as client:
        tools = client.list_tools()  # first, so that results are held to their output schemas
        results = [client.call_tool(*call) for call in calls]
        return {
            "protocol_version": client.protocol_version,
            "tools": [tool["name"] for tool in tools],
            "results": [
                {"text": each.text, "structured": each.structured, "is_error": each.is_error}
                for each in results
            ],
        }


def output(command, accept=(0,), **more):
    done = subprocess.run(
        command, capture_output=True, timeout=60, env=node_tools.environment(**more)
    )
    assert done.returncode in accept, done.stderr.decode()
    return json.loads(done.stdout)


def sdk(name):
    def client(asked, calls, target):
        target = [target] if isinstance(target, str) else target
        words = [name, asked, json.dumps(calls), *target]
        return run("client.py", *words, env=node_tools.environment())

    return client


def scripted(*command):
    def client(asked, calls, target):
        target = [target] if isinstance(target, str) else target
        return output([*command, asked, json.dumps(calls), *target])

    return client


def inspector(asked, calls, target):
    """One run does one thing; its exit code 5 means that the tool reported an error."""
    target = [target] if isinstance(target, str) else ["--", *target]
    options = ["--cli", "--format", "json", "--protocol-era", asked, "--method"]
    start = node_tools.command(NPM + "inspector", *options)

    def run(*method):
        with tempfile.TemporaryDirectory() as home:  # it keeps a catalog of servers there
            done = output([*start, *method, *target], accept=(0, 5), HOME=home)
        return done["result"]

    def call(name, arguments):
        given = ["--tool-name", name, "--tool-args-json", json.dumps(arguments)]
        result = run("tools/call", *given)
        return {
            "text": "".join(block["text"] for block in result["content"]),
            "structured": result.get("structuredContent"),
            "is_error": result.get("isError", False),
        }

    return {
        "protocol_version": run("initialize")["protocolVersion"],
        "tools": [tool["name"] for tool in run("tools/list")["tools"]],
        "results": [call(*each) for each in calls],
    }


CLIENTS = {
    OURS: ours,
    "mcp": sdk("mcp"),
    "fastmcp": sdk("fastmcp"),
    NPM + "client": scripted(node_tools.node(), str(HERE / "node" / "client.mjs")),
    NPM + "inspector": inspector,
}


# The fixtures: where a server is reached, and the matrix.


@contextmanager
def listening(make, log):
    """Start a server on a free port and yield its URL as soon as it accepts connections."""
    port = free_port()

    def accepts():
        assert process.poll() is None, log.read_text()
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return True

    env = node_tools.environment(PORT=str(port))
    with log.open("wb") as out:
        process = subprocess.Popen(make(str(port)), stdout=out, stderr=out, env=env)
    try:
        until(accepts, what="for the server to listen")
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.wait(20)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("folder").resolve()
    (path / "a.txt").write_text("ä\n", encoding="utf-8")
    return str(path)


@pytest.fixture(scope="module")
def target(folder, tmp_path_factory):
    """`target(server, transport)`: a command, or the URL of a server that this run shares."""
    urls = {}
    with ExitStack() as stack:

        def find(server, transport):
            make = SERVERS[server][0]
            if transport == "stdio":
                return [word.replace(FOLDER, folder) for word in make()]
            if server not in urls:
                log = tmp_path_factory.mktemp("log") / "server.log"
                urls[server] = stack.enter_context(listening(make, log))
            return urls[server]

        yield find


MATRIX = []  # the rows of this run
VERSIONS = {}  # of everybody in it
LEFT_OUT = [
    {
        "client": "mcp-conform",
        "server": OURS,
        "transport": "http",
        "why": "after the handshake it names no revision in MCP-Protocol-Version, which a server "
        "that speaks 2025-06-18 and newer must refuse (400), and ours does",
    }
]


def summary():
    """The matrix, for the end of the run."""
    lines = [list(MATRIX[0]), *([str(cell) for cell in row.values()] for row in MATRIX)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    versions = ", ".join(f"{name} {version}" for name, version in sorted(VERSIONS.items()))
    rows = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]
    return [versions, *rows]


@pytest.fixture(scope="module")
def matrix():
    yield MATRIX
    if MATRIX:
        tables["peers"] = summary()


def new_row(matrix, client, server, transport, asked):
    VERSIONS.update({name: installed(name) for name in (client, server)})
    row = {
        "client": client,
        "server": server,
        "transport": transport,
        "asked": asked,
        "negotiated": None,
        "tools": None,
        "ok": False,
    }
    matrix.append(row)
    return row


def objects(table):
    for _, answer in table:
        if not isinstance(answer["structured"], dict):
            answer["structured"] = None


def check(matrix, client, server, transport, asked, version, target, folder):
    """Let the client list and call the tools of the server, and compare everything it saw."""
    row = new_row(matrix, client, server, transport, asked)
    _, tools, table = json.loads(json.dumps([None, *SERVERS[server][1:]]).replace(FOLDER, folder))
    if version != MODERN:  # older revisions know structured content only as an object
        objects(table)
    report = CLIENTS[client](asked, [call for call, _ in table], target(server, transport))
    row.update(negotiated=report["protocol_version"], tools=len(report["tools"]))
    answers = [answer for _, answer in table]
    assert report == {"protocol_version": version, "tools": tools, "results": answers}
    row["ok"] = True


def cases(table):
    return [
        pytest.param(name, asked, version, wire, id=f"{name.removeprefix(NPM)}-{asked}-{wire}")
        for wire in TRANSPORTS
        for name, eras in table.items()
        for asked, version in eras.items()
        if wire == "stdio" or name not in STDIO_ONLY
    ]


SERVER_ERAS = {
    "mcp": DUAL,
    "fastmcp": DUAL,
    NPM + "server-everything": HANDSHAKE,
    NPM + "server-filesystem": HANDSHAKE,
}
CLIENT_ERAS = {
    "mcp": DUAL,
    "fastmcp": DUAL,
    NPM + "client": DUAL,
    NPM + "inspector": {"modern": MODERN, "legacy": LEGACY},
}
STDIO_ONLY = {NPM + "server-filesystem"}


@pytest.mark.parametrize(("server", "asked", "version", "transport"), cases(SERVER_ERAS))
def test_our_client_lists_and_calls_the_tools_of_their_servers(
    matrix, server, asked, version, transport, target, folder
):
    check(matrix, OURS, server, transport, asked, version, target, folder)


@pytest.mark.parametrize(("client", "asked", "version", "transport"), cases(CLIENT_ERAS))
def test_their_clients_list_and_call_the_tools_of_our_server(
    matrix, client, asked, version, transport, target, folder
):
    check(matrix, client, OURS, transport, asked, version, target, folder)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_server_that_speaks_legacy_only_is_refused_when_modern_is_asked_for(transport, target):
    """That is why server-everything and server-filesystem have no modern row above."""
    installed(NPM + "server-everything")
    with pytest.raises(ConnectionError, match="the server speaks no modern revision"):
        ours("modern", [], target(NPM + "server-everything", transport))


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_legacy_server_asks_our_client_and_uses_the_answers(transport, target):
    """Over HTTP it asks on the stream that belongs to no call."""
    installed(NPM + "server-everything")
    words = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "why not"}}
    answers = {
        "roots/list": lambda params: {"roots": [{"uri": "file:///here", "name": "here"}]},
        "elicitation/create": lambda params: {"action": "accept", "content": {"name": "Ada"}},
        "sampling/createMessage": lambda params: words,
    }
    at = target(NPM + "server-everything", transport)
    with Client(at, era="legacy", timeout=20, on_input=answers) as client:
        assert "Name: Ada" in client.call_tool("trigger-elicitation-request").text
        asked = {"prompt": "one more?", "maxTokens": 5}
        assert "why not" in client.call_tool("trigger-sampling-request", asked).text
        assert "file:///here" in client.call_tool("get-roots-list").text


def test_the_tester_mcp_conform_has_no_complaint_about_our_server(matrix, target):
    """It offers 2025-03-26, which we do not speak, and takes the revision that we answer with."""
    row = new_row(matrix, "mcp-conform", OURS, "stdio", "2025-03-26")
    report = probe("stdio", "--command", shlex.join(target(OURS, "stdio")))
    assert (report["fatal_error"], report["complaints"], report["passed"]) == (None, [], 18)
    [said] = [each["message"] for each in report["checks"] if each["name"] == "protocol_version"]
    assert said.startswith(f"protocolVersion '{LEGACY}'")
    row.update(negotiated=LEGACY, tools=3, ok=True)


def probe(transport, *where):
    command = [sys.executable, "-m", "mcp_probe", "server", "--transport", transport, *where]
    report = output([*command, "--format", "json"], accept=(0, 1))
    wrong = [
        f"{each['name']}: {each['message']}" for each in report["checks"] if not each["passed"]
    ]
    return {**report, "complaints": wrong}


def test_the_tester_mcp_conform_is_turned_away_over_http_since_it_names_no_revision(target):
    """`LEFT_OUT` says why; should it name one some day, then it belongs into the matrix."""
    installed("mcp-conform")
    report = probe("http", "--url", target(OURS, "http").removesuffix("/mcp"))
    said = "tools_list: tools/list request failed: HTTP error: HTTP Error 400: Bad Request"
    assert report["complaints"] == [said]


def test_a_missing_peer_is_a_skip_here_and_a_failure_in_ci(monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no such peer"):
        need(False, "no such peer")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no such peer"):
        need(False, "no such peer")


def test_the_lock_file_names_no_registry():
    lock = json.loads((node_tools.HOME / "package-lock.json").read_text())
    assert [name for name, package in lock["packages"].items() if "resolved" in package] == []
