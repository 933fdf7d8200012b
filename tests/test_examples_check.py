"""examples/check.py: what a server says on the wire is checked, and a wrong word is found."""

import json
import re
import subprocess
import sys
from importlib import metadata

import node_tools
import pytest
from ledger import LEDGER
from support import server_file
from support_examples import EXAMPLES, command, load
from support_skips import need

CHECKS = load("check").read()
IDS = [check.id for check in CHECKS]
WORDS = {"TOOLS": "[]", "SUPPORTEDVERSIONS": "[]"}  # known when a server has said them


def run(*options):
    """The checker as it is started from a terminal."""
    start = command("check", *options)
    return subprocess.run(start, capture_output=True, text=True, timeout=300)


def verdicts(server):
    """What the checker says of a server: id -> its verdicts, era by era."""
    found = {}
    for check, verdict, _ in load("check").outcomes([*map(str, server)]):
        found.setdefault(check.id, []).append(verdict)
    return found


def failed(found):
    return {ident for ident, said in found.items() if "FAIL" in said}


# The table


def test_every_check_is_a_row_of_the_ledger_with_its_level():
    assert len(IDS) == len(set(IDS)) >= 40
    levels = {check.id: check.level.replace("-", " ") for check in CHECKS}
    assert levels == {ident: LEDGER[ident]["level"] for ident in IDS}


def test_every_group_of_requirements_that_a_stranger_can_check_is_there():
    groups = {ident.split("-")[1] for ident in IDS}
    assert groups == {*"ENV ERR VER DISC META RES LIST CALL CANC SUB STDIO".split()}


def test_every_block_of_the_file_is_read():
    text = (EXAMPLES / "check.txt").read_text(encoding="utf-8")
    assert len(text.split("\n\n")) == len(CHECKS) + 2  # what is said first, and the words


FIT = [
    ({"a": 1}, {"a": "integer"}),
    ({"a": 1}, {"a": 1, "b?": "string"}),
    ([1, 2], {"each": "integer"}),
]
FIT += [
    ({"a": 1}, {"b?": []}),
    ("x", ["x", "y"]),
    ({"a": 1}, [{"b": 1}, {"a": 1}]),
    ({}, {}),
    ([1], [[1]]),
]
NO_FIT = [({"a": True}, {"a": 1}), ({}, {"a": 1}), ({"b": 1}, {"a?": 1, "b": "string"}), ("x", [])]
NO_FIT += [
    ([1, "x"], {"each": "integer"}),
    ({"a": 1}, {}),
    ({"a": 1}, {"a?": []}),
    (None, "object"),
]


def test_what_fits_a_shape_is_told_from_what_does_not():
    fits = load("check").fits
    assert [pair for pair in FIT if not fits(*pair)] == []
    assert [pair for pair in NO_FIT if fits(*pair)] == []


def test_answers_may_come_in_any_order_but_each_once():
    answered, wanted = load("check").answered, ['{"id?": "integer"}', '{"id": 1}']
    assert answered([{"id": 1}, {}], wanted) and answered([{}, {"id": 1}], wanted)
    assert [answered(came, wanted) for came in ([{"id": 1}], [{}, {}], [{"id": 1}] * 3)] == [
        False
    ] * 3


# Servers that are right


@pytest.mark.parametrize(
    "name", [["movies"], ["everything"], ["weather"], ["files", "--root", EXAMPLES], ["git"]]
)
def test_our_examples_pass_every_check(name):
    found = verdicts(command(*name))
    assert (failed(found), {*found}) == (set(), {*IDS})
    skipped = {ident for ident, said in found.items() if "skip" in said}
    assert skipped == (NEED_A_TOOL if name == ["git"] else set())  # git has no required argument


def test_a_folder_of_executables_passes_every_check(tmp_path):
    path = tmp_path / "p"
    listed = {
        "name": "p",
        "inputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}},
    }
    listed["inputSchema"]["required"] = ["n"]
    path.write_text(f"#!/bin/sh\necho '{json.dumps(listed)}'\n")
    path.chmod(0o755)
    found = verdicts(command("folder", tmp_path))
    assert ({one for said in found.values() for one in said}, {*found}) == ({"pass"}, {*IDS})


def test_each_check_is_printed_with_what_was_sent_what_came_what_was_expected_and_where_to_read():
    done = run(sys.executable, "-m", "minimcp.demo")
    block = done.stdout[done.stdout.index("pass S-ERR-01") :].split("pass ")[1].splitlines()
    came = json.loads(block[2].split(maxsplit=1)[1])
    assert came["error"]["code"] == -32700
    assert [block[0], block[1], *block[3:]] == [
        "S-ERR-01   MUST       modern what is no JSON is a parse error",
        '     sent      {"jsonrpc":',
        '     expected  {"id?": [], "error": {"code": -32700}}',
        "     read      https://modelcontextprotocol.io/specification/2026-07-28/basic#error-codes",
    ]
    eras = sum(len(check.eras.split("+")) for check in CHECKS)
    assert (
        done.stdout.splitlines()[-1]
        == f"{eras} passed, 0 failed, 0 skipped; check.txt says how to read this"
    )
    assert done.returncode == 0


def test_what_is_printed_as_sent_has_no_word_in_it_that_stands_for_something_else():
    done = run(sys.executable, "-m", "minimcp.demo")
    sent = [line for line in done.stdout.splitlines() if line.startswith("     sent ")]
    assert [line for line in sent if re.search(r"\b(META|TOOL|WRONG|MODERN)\b", line)] == []
    assert any('"name": "calc.add", "arguments": {"a": "x", "b": "x"}' in line for line in sent)


def test_with_brief_what_passes_takes_one_line_and_what_fails_says_it_all(tmp_path):
    fault, _ = FAULTS["sends a null id"]
    done = run("--brief", *server_file(tmp_path, WRONG.format(fault=fault, more="")))
    lines = done.stdout.splitlines()
    assert lines[0] == 'pass S-ENV-01   MUST       modern only "2.0" is a message'
    assert lines[1] == "FAIL S-ENV-02   MUST       modern an id is a string or an integer"
    assert {line.split()[0] for line in lines[2:12]} == {"sent", "came", "expected"}
    assert lines[-1].endswith(" skipped; check.txt says how to read this")
    assert (done.returncode, " 0 failed" in lines[-1]) == (1, False)


NEED_A_TOOL = {"S-CALL-04", "S-CALL-05", "S-CALL-06", "S-CALL-08"}


def test_a_server_without_tools_that_require_something_skips_what_needs_one(tmp_path):
    source = """
        from minimcp import Server, run
        server = Server("plain")
        server.tool(lambda: "x", name="x")
        run(server)
    """
    found = verdicts(server_file(tmp_path, source))
    assert {ident for ident, said in found.items() if "skip" in said} == NEED_A_TOOL
    assert failed(found) == set()


ONE_ERA = """
import json
from minimcp import Server
from minimcp.stdio import serve

class OneEra(Server):
    def handle_line(self, line, peer=None):
        if ("initialize" in line) if {modern} else ("2026-07-28" in line):
            error = {{"code": -32601, "message": "no"}}
            return json.dumps({{"jsonrpc": "2.0", "id": json.loads(line)["id"], "error": error}})
        return super().handle_line(line, peer)

server = OneEra("one")

@server.tool
def add(a: int) -> int:
    return a

serve(server)
"""


@pytest.mark.parametrize("modern", [True, False])
def test_a_server_of_one_era_is_checked_in_that_era(tmp_path, modern):
    eras = {"modern"} if modern else {"legacy", "new"}
    start = server_file(tmp_path, ONE_ERA.format(modern=modern))
    found = list(load("check").outcomes(start))
    assert {check.eras for check, _, _ in found} == eras
    assert [check.id for check, verdict, _ in found if verdict == "skip"] == (
        [] if modern else ["S-VER-04"]  # there is no modern request that it could serve
    )


# Servers that are wrong. Each one is ours with one fault; together they fail every check.

WRONG = """
import json, os, sys
from minimcp import Server, stdio
from minimcp.stdio import serve
from minimcp.context import Peer

stdio.PATIENCE = 0.1  # one line after the other, even on a busy machine

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
        "S-STDIO-08",
    ),
    "ends as if something were wrong": ("    # until the end there is nothing wrong", "S-STDIO-06"),
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
EXTRA = {
    "lists in any order": "server.turn = 0\nserver.tool(lambda: 'x', name='x')",
    "ends as if something were wrong": "import atexit\natexit.register(os._exit, 3)",
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_by_the_checks_that_are_about_it(tmp_path, name):
    fault, expected = FAULTS[name]
    source = WRONG.format(fault=fault, more=EXTRA.get(name, ""))
    found = verdicts(server_file(tmp_path, source))
    assert set(expected.split()) - failed(found) == set()
    assert {*found} == {*IDS}


def test_a_server_that_has_died_is_started_again_for_what_is_left(tmp_path):
    fault, expected = FAULTS["dies of garbage"]
    found = verdicts(server_file(tmp_path, WRONG.format(fault=fault, more="")))
    assert failed(found) == {*expected.split()}


def test_every_check_is_failed_by_one_of_these_servers():
    claimed = {ident for _, expected in FAULTS.values() for ident in expected.split()}
    assert claimed == {*IDS}


ODD = [
    "'x'",
    "[]",
    "5",
    "[5]",
    "[{'name': 5}]",
    "[{'name': 'x'}]",
    "[{'name': 'x', 'inputSchema': 5}]",
]
ODD += [
    "[{'name': 'x', 'inputSchema': {'properties': {'a': True}, 'required': ['a', 'b']}}]",
    "[{'name': 'x', 'inputSchema': {'properties': 5, 'required': 5}}]",
]


@pytest.mark.parametrize("odd", ODD)
def test_no_list_of_tools_is_too_odd_for_the_checker(tmp_path, odd):
    fault = (
        "    if method == 'tools/list' and reply and 'result' in reply:\n"
        f"        reply['result']['tools'] = {odd}"
    )
    found = verdicts(server_file(tmp_path, WRONG.format(fault=fault, more="")))
    assert {*found} == {*IDS}
    assert "FAIL" in found["S-LIST-05"] or odd == "[]"


def test_nor_is_a_result_that_is_no_object(tmp_path):
    fault = "    if method == 'tools/list' and reply and 'result' in reply: reply['result'] = 'x'"
    found = verdicts(server_file(tmp_path, WRONG.format(fault=fault, more="")))
    assert ({*found}, "FAIL" in found["S-LIST-05"]) == ({*IDS}, True)


# What is no server


@pytest.mark.parametrize("source", ["", "import sys; [print(line, end='') for line in sys.stdin]"])
def test_what_is_no_server_is_told_so(tmp_path, source):
    done = run(*server_file(tmp_path, source))
    assert done.returncode == 1
    assert "it answers neither server/discover nor initialize" in done.stderr


def test_a_command_that_does_not_exist_is_named():
    done = run("no-such-command")
    assert (done.returncode, done.stderr) == (1, "no-such-command: there is no such command\n")


def test_without_a_command_it_says_how_to_use_it():
    done = run()
    assert done.returncode == 1
    assert "python examples/check.py COMMAND" in done.stderr


# Servers of other makers: what `record_check.py` found, for the versions that it looked at. It is
# no verdict on them; most of it is one decision, to drop a line that is no valid message.

RECORD = json.loads((EXAMPLES.parent / "site/results/check.json").read_text(encoding="utf-8"))


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
    found = verdicts(start)
    print(name, version, *sorted(failed(found)))
    assert {*found} >= {check.id for check in CHECKS if "legacy" in check.eras}
    if RECORD["versions"][name] == version:
        assert failed(found) == {row["check"] for row in RECORD["rows"] if row[name] == "FAIL"}
