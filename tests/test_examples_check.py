"""examples/check.py: what a server says on the wire is checked, and a wrong word is found."""

import json
import subprocess
import sys
from importlib import metadata

import node_tools
import pytest
from ledger import LEDGER
from support import server_file
from support_examples import EXAMPLES, command, load
from support_skips import need

from minimcp.schema import SUBSET, validate

CHECKS = [*load("check").read((EXAMPLES / "check.txt").read_text(encoding="utf-8"))]
IDS = [check.id for check in CHECKS]


def verdicts(server, *options, patience=300):
    """What the checker says of a server: id -> verdict, the exit code, and all it printed."""
    start = command("check", *options, *server)
    done = subprocess.run(start, capture_output=True, text=True, timeout=patience)
    lines = [
        line.split() for line in done.stdout.splitlines() if line[:4] in ("pass", "FAIL", "skip")
    ]
    return {line[1]: line[0] for line in lines}, done.returncode, done.stdout


def failed(found):
    return {ident for ident, verdict in found.items() if verdict == "FAIL"}


# The table


def test_every_check_is_a_row_of_the_ledger_with_its_level():
    assert len(IDS) == len(set(IDS)) >= 40
    levels = {check.id: check.level.replace("-", " ") for check in CHECKS}
    assert levels == {ident: LEDGER[ident]["level"] for ident in IDS}


def test_every_group_of_requirements_that_a_stranger_can_check_is_there():
    groups = {ident.split("-")[1] for ident in IDS}
    assert groups == {*"ENV ERR VER DISC META RES LIST CALL CANC SUB STDIO".split()}


def test_what_is_expected_needs_only_our_own_validator():
    """So the checker runs on a bare Python."""
    module = load("check")
    words = {"LISTED": "[]", "SUPPORTED": "[]"}
    for check in CHECKS:
        for wanted in check.wanted:
            if wanted in ("nothing", "exit code 0"):
                continue
            for word, value in words.items():
                wanted = wanted.replace(word, value)
            assert validate(module.schema(wanted), SUBSET) == []


# Servers that are right


@pytest.mark.parametrize(
    "name", [["movies"], ["everything"], ["weather"], ["files", "--root", EXAMPLES], ["git"]]
)
def test_our_examples_pass_every_check(name):
    found, code, printed = verdicts(command(*name), "--brief")
    assert (failed(found), {*found}, code) == (set(), {*IDS}, 0), printed
    if name != ["git"]:  # none of its tools requires an argument
        last = f"{len(CHECKS)} passed, 0 failed, 0 skipped (modern, legacy)"
        assert printed.splitlines()[-1] == last


def test_a_folder_of_executables_passes_every_check(tmp_path):
    path = tmp_path / "p"
    listed = {
        "name": "p",
        "inputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}},
    }
    listed["inputSchema"]["required"] = ["n"]
    path.write_text(f"#!/bin/sh\necho '{json.dumps(listed)}'\n")
    path.chmod(0o755)
    found, code, _ = verdicts(command("folder", tmp_path))
    assert ({*found.values()}, {*found}, code) == ({"pass"}, {*IDS}, 0)


def test_each_check_is_printed_with_what_was_sent_what_came_what_was_expected_and_where_to_read():
    _, _, printed = verdicts([sys.executable, "-m", "minimcp.demo"])
    block = printed[printed.index("pass S-ERR-01") :].split("pass ")[1].splitlines()
    came = json.loads(block[2].split(maxsplit=1)[1])
    assert came["error"]["code"] == -32700
    assert [block[0], block[1], block[3], *block[4:]] == [
        "S-ERR-01   MUST     what is no JSON is a parse error",
        '     sent      {"jsonrpc":',
        "     expected  error -32700 without id",
        "     why       ",
        "     read      https://modelcontextprotocol.io/specification/2026-07-28/basic#error-codes",
    ]


def test_a_server_without_tools_that_require_something_skips_what_needs_one(tmp_path):
    source = """
        from minimcp import Server, run
        server = Server("plain")
        server.tool(lambda: "x", name="x")
        run(server)
    """
    found, code, _ = verdicts(server_file(tmp_path, source), "--brief")
    skipped = {ident for ident, verdict in found.items() if verdict == "skip"}
    assert skipped == {"S-CALL-04", "S-CALL-05", "S-CALL-06", "S-CALL-08"}
    assert (failed(found), code) == (set(), 0)


# Servers that are wrong. Each one is ours with one fault; together they fail every check.

WRONG = """
import json, os, sys
from minimcp import Server
from minimcp.stdio import serve
from minimcp.context import Peer

class Faulty(Server):
    def handle_line(self, line, peer=None):
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            message = line
        asked = message if isinstance(message, dict) else {{}}
        method = asked.get("method")
        modern = "io.modelcontextprotocol/protocolVersion" in str(asked.get("params"))
        reply = super().handle_line(line, peer)
        reply = None if reply is None else json.loads(reply)
        last = str(asked.get("id")).startswith("last")
        reply = fault(message, asked, method, modern, reply, last)
        return reply if reply is None or isinstance(reply, str) else json.dumps(reply)

def fault(message, asked, method, modern, reply, last):
{fault}
    return reply

def no(asked):
    return {{"jsonrpc": "2.0", "id": asked["id"], "error": {{"code": -32603, "message": "no"}}}}

server = Faulty("faulty")

@server.tool
def add(a: int, b: str) -> str:
    return f"{{a}} {{b}}"

{more}
serve(server)
"""
FAULTS = {
    "drops what it cannot use": (
        "    if reply and 'error' in reply and not last: return None",
        "S-ENV-01 S-ENV-02 S-ENV-05 S-ENV-07 S-ENV-08 S-ENV-16 S-ENV-18 S-ERR-01 S-ERR-02 S-ERR-03 "
        "S-ERR-13 S-ERR-14 S-VER-01 S-VER-02 S-VER-03 S-VER-06 S-VER-10 S-VER-13 S-DISC-04 "
        "S-DISC-07 S-META-01 S-META-02 S-META-03 S-META-05 S-LIST-09 S-LIST-10 S-CALL-01 S-CALL-02 "
        "S-CALL-04",
    ),
    "answers what asks for nothing": (
        "    if reply is None and message != '\\n': reply = {'jsonrpc': '2.0', 'result': {}}",
        "S-ENV-04 S-ENV-10 S-ENV-17 S-CANC-04 S-META-07 S-RES-01",
    ),
    "sends a null id": (
        "    if reply and 'id' not in reply and 'error' in reply: reply['id'] = None",
        "S-ERR-15 S-ENV-02",
    ),
    "makes every id a text": (
        "    if reply and 'id' in reply: reply['id'] = str(reply['id'])",
        "S-ENV-03 S-ENV-01 S-ERR-14",
    ),
    "answers with result and error": (
        "    if reply and 'error' in reply: reply['result'] = {}",
        "S-ENV-06",
    ),
    "asks the client": (
        "    ping = {'jsonrpc': '2.0', 'id': 'q', 'method': 'ping'}\n"
        "    if modern and not last: server.peer.send(json.dumps(ping))",
        "S-ENV-09",
    ),
    "refuses what it does not know": (
        "    if 'x' in asked or 'zzz' in str(asked) or 'traceparent' in str(asked):\n"
        "        return no(asked)",
        "B-ENV-11 S-META-11 S-STDIO-13",
    ),
    "uses codes of its own": (
        "    if reply and 'error' in reply: reply['error'] = {'code': -32001, 'message': 5}",
        "S-ERR-07 S-ERR-10",
    ),
    "forgets a handshake's answers": (
        "    if method == 'initialize' and reply and 'result' in reply:\n"
        "        reply['result'] = {'protocolVersion': '2024-01-01'}",
        "S-VER-07 S-VER-08 S-VER-09",
    ),
    "sticks to the first era": (
        "    if modern and server.peer.version:\n        return no(asked)",
        "S-VER-04",
    ),
    "adds to an empty result": (
        "    if method == 'ping' and reply and 'result' in reply: reply['result'] = {'ok': True}",
        "S-VER-12",
    ),
    "mixes the eras": (
        "    if reply and 'result' in reply and method in ('tools/list', 'server/discover'):\n"
        "        if modern: del reply['result']['cacheScope'], reply['result']['_meta']\n"
        "        else: reply['result'] |= {'resultType': 'complete'}",
        "S-DISC-01 S-RES-03 S-RES-10 S-META-07",
    ),
    "has no result type": (
        "    if reply and 'result' in reply: reply['result'].pop('resultType', None)",
        "S-RES-01",
    ),
    "lists in any order": (
        "    if method == 'tools/list' and reply and 'result' in reply:\n"
        "        server.turn += 1\n"
        "        if server.turn > 1: reply['result']['tools'].reverse()",
        "S-LIST-04",
    ),
    "lists a tool without a schema": (
        "    if method == 'tools/list' and reply and 'result' in reply:\n"
        "        reply['result']['tools'].append({'name': 'x', 'inputSchema': {}})",
        "S-LIST-05",
    ),
    "takes any arguments": (
        "    if method == 'tools/call' and reply and 'result' in reply: reply['result'] = {}",
        "S-CALL-05 S-CALL-06 S-CALL-08",
    ),
    "listens without a word": (
        "    if method == 'subscriptions/listen':\n        return no(asked)",
        "S-SUB-15",
    ),
    "talks on its output": ("    if not last and reply: server.peer.send('hello')", "S-STDIO-03"),
    "dies of garbage": (
        "    if isinstance(message, str) and 'garbage' in message: os._exit(3)",
        "S-STDIO-08 S-STDIO-06",
    ),
    "is annoyed by an empty line": (
        "    if isinstance(message, str) and not message.strip():\n"
        "        return {'jsonrpc': '2.0', 'error': {'code': -32700, 'message': 'no'}}",
        "S-STDIO-09",
    ),
    "obeys the locale": (
        "    if reply and not str(reply.get('id')).isascii(): reply['id'] = '??'",
        "S-STDIO-10",
    ),
    "dies of a large message": ("    if len(str(message)) > 900_000: os._exit(3)", "S-STDIO-13"),
}
EXTRA = {"lists in any order": "server.turn = 0\nserver.tool(lambda: 'x', name='x')"}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_by_the_checks_that_are_about_it(tmp_path, name):
    fault, expected = FAULTS[name]
    source = WRONG.format(fault=fault, more=EXTRA.get(name, ""))
    found, code, printed = verdicts(server_file(tmp_path, source), "--brief")
    assert set(expected.split()) <= failed(found), printed
    assert code == 1
    assert {*found} == {*IDS}


def test_every_check_is_failed_by_one_of_these_servers():
    claimed = {ident for _, expected in FAULTS.values() for ident in expected.split()}
    assert claimed == {*IDS}


# What is no server


@pytest.mark.parametrize("source", ["", "import sys; [print(line, end='') for line in sys.stdin]"])
def test_what_is_no_server_is_told_so(tmp_path, source):
    start = command("check", *server_file(tmp_path, source))
    done = subprocess.run(start, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "the server answers neither server/discover nor initialize" in done.stderr


def test_a_command_that_does_not_exist_is_named():
    start = command("check", "no-such-command")
    done = subprocess.run(start, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "no-such-command" in done.stderr


def test_without_a_command_it_says_how_to_use_it():
    done = subprocess.run(command("check"), capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "python examples/check.py COMMAND" in done.stderr


# Servers of other makers: what we found, for the versions that we looked at. It is no verdict on
# them. Most of it is one decision: they drop a line that is no valid message without a word.

SDK = {
    *("S-ENV-01 S-ENV-02 S-ENV-05 S-ENV-07 S-ENV-08 S-ENV-16 S-ENV-18 S-ERR-01 S-ERR-02".split()),
    *("S-ERR-14 S-VER-04 S-VER-06 S-LIST-09 S-CALL-01".split()),
}
EVERYTHING = {
    *("S-ENV-01 S-ENV-02 S-ENV-03 S-ENV-05 S-ENV-07 S-ENV-08 B-ENV-11 S-ENV-16 S-ENV-18".split()),
    *("S-ERR-01 S-ERR-02 S-ERR-14 S-VER-10 S-LIST-09 S-LIST-10 S-CALL-01 S-CALL-02".split()),
    "S-CALL-04",
}
FOUND = {
    ("mcp", "2.3.0"): SDK,
    ("fastmcp", "4.2.3"): SDK | {"S-SUB-15"},
    ("server-everything", "2026.8.31"): EVERYTHING,
}


def peer(name):
    """The command of a peer, and its version."""
    if name == "server-everything":
        package = "@modelcontextprotocol/server-everything"
        version = json.loads((node_tools.ready() / package / "package.json").read_text())["version"]
        return node_tools.command(package, "stdio"), version
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        need(False, f"no {name}: pip install -e '.[interop]'")
    return [sys.executable, str(EXAMPLES.parent / f"tests/peers/{name}_server.py")], version


@pytest.mark.parametrize("name", ["mcp", "fastmcp", "server-everything"])
def test_servers_of_other_makers_are_checked_to_the_end(name):
    start, version = peer(name)
    found, code, printed = verdicts(start, "--brief")
    print(printed)
    assert {*found} == {*IDS}
    assert code == 1
    assert failed(found) == FOUND.get((name, version), failed(found))
