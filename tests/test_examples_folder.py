"""examples/folder.py: any executable is a provider, and a neighbour's trouble stays next door."""

import json
import os
import re
import shutil
import signal
import sys
import threading
import time
from pathlib import Path

import pytest
from support import Stdio, cancelled, initialize, legacy, modern, until
from support_examples import ERAS, EXAMPLES, command, load, official, reached, result
from support_skips import need
from test_budget import code_lines

from minimcp import Client, Server

ANY = {"type": "object"}


def define(name, **more):
    return {"name": name, "inputSchema": ANY, **more}


def provider(folder, file, *definitions, start="", run="", mode=0o755, instructions="exit 1"):
    """Write a provider in sh: it lists `definitions`, and for any other name does `run`."""
    listed = "\n".join(json.dumps(each) for each in definitions)
    script = f"""#!/bin/sh
{start}
case $1 in
list) cat <<'END'
{listed}
END
;;
instructions) {instructions} ;;
*) {run} ;;
esac
"""
    return write(folder / file, script, mode)


def write(path, text, mode=0o755):
    """Put a file in its place in one step, as a careful editor does."""
    new = path.parent / f".{path.name}.new"
    new.write_bytes(text if isinstance(text, bytes) else text.encode())
    new.chmod(mode)
    new.replace(path)
    return path


class Served:
    """A folder that is looked at only when the test says so, and a client of its server."""

    def __init__(self, path, **options):
        self.module = load("folder")
        self.module.LISTING = options.get("listing", 20)
        self.server = Server("folder", ttl_ms=0)
        self.folder = self.module.Folder(self.server, path, ())
        self.client = Client(self.server, era=options.get("era", "auto"))
        self.call = self.client.call_tool

    def names(self):
        return [tool["name"] for tool in self.client.list_tools()]

    def failure(self, name, arguments=None):
        found = self.call(name, arguments)
        assert found.is_error
        return found.text


def is_alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def pid_in(path):
    """The process id that a provider wrote into a file, once it is there."""
    return int(until(lambda: path.exists() and path.read_text().strip()))


# What goes in


ODD = "a\nb \"c\" 'd' $(id) `id` ; touch owned \\ é ☃"


def test_b091_a_text_with_quotes_and_newlines_arrives_unchanged_on_stdin_and_as_argument(tmp_path):
    """B091: no shell of ours ever reads what a client sent."""
    provider(tmp_path, "say", define("stdin"), define("argument"), run='"$1"')
    body = """stdin() { cat; }
argument() { cat > /dev/null; printf %s "$argument"; }
argument=${2:-}"""
    provider(tmp_path, "say", define("stdin"), define("argument"), start=body, run='"$1"')
    served = Served(tmp_path)
    for name in ("stdin", "argument"):
        assert served.call(name, {"text": ODD}).structured == {"text": ODD}
    assert [path.name for path in tmp_path.iterdir()] == ["say"]


def test_large_arguments_come_on_stdin_alone(tmp_path):
    provider(tmp_path, "count", define("count"), run='echo "$# $(wc -c)"')
    served = Served(tmp_path)
    assert served.call("count", {}).text.split() == ["2", "2"]
    assert served.call("count", {"text": "x" * 2_000_000}).text.split() == ["1", "2000011"]


def test_a_provider_that_never_reads_its_arguments_is_no_problem(tmp_path):
    provider(tmp_path, "deaf", define("deaf"), run="echo done")
    assert Served(tmp_path).call("deaf", {"text": "x" * 2_000_000}).text == "done"


def test_arguments_are_validated_before_a_process_starts(tmp_path):
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    listed = {"name": "note", "inputSchema": {**schema, "additionalProperties": False}}
    provider(tmp_path, "note", listed, run="date > build/started; echo started")
    (tmp_path / "build").mkdir()
    served = Served(tmp_path)
    assert served.failure("note", {"n": "one", "m": 2}) == (
        "note cannot take these arguments:\n"
        'arguments.n: expected integer, got string "one"\n'
        "arguments.m: unknown name; known: n"
    )
    assert list((tmp_path / "build").iterdir()) == []
    assert served.call("note", {"n": 1}).text == "started"
    assert (tmp_path / "build" / "started").exists()


def test_an_argument_may_have_any_name(tmp_path):
    provider(tmp_path, "echo", define("echo"), run="cat")
    arguments = {"self": 1, "context": 2, "arguments": 3, "name": 4, "_": 5, "not a name": 6}
    assert Served(tmp_path).call("echo", arguments).structured == arguments


def test_a_provider_sees_what_it_should_of_the_environment_and_runs_in_its_folder(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("BANK_PASSWORD", "secret")
    monkeypatch.setenv("TOOL_CITY", "Graz")
    provider(tmp_path, "look", define("look"), run="env | sort; pwd")
    lines = Served(tmp_path).call("look").text.splitlines()
    seen = dict(line.partition("=")[::2] for line in lines[:-1])
    assert lines[-1] == str(tmp_path)
    assert (seen["TOOL_CITY"], seen["PATH"]) == ("Graz", os.environ["PATH"])
    assert "BANK_PASSWORD" not in seen


def test_a_provider_inherits_no_open_file(tmp_path):
    need(os.path.exists("/proc/self/fd"), "no /proc")
    provider(tmp_path, "look", define("look"), run="exec ls /proc/self/fd")
    with open(tmp_path / ".secret", "w") as secret:
        os.set_inheritable(secret.fileno(), True)
        assert Served(tmp_path).call("look").text.split() == ["0", "1", "2", "3"]  # 3 is ls's own


# What comes out


def blocks(text):
    return {"content": [{"type": "text", "text": text}]}


def both(text, structured):
    """What is sent of a JSON value to modern clients, and to older ones."""
    whole = {**blocks(text), "structuredContent": structured}
    return whole, (whole if isinstance(structured, dict) else blocks(text))


PICTURE = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
OWN = {"content": [PICTURE], "isError": True, "structuredContent": {"a": 1}, "_meta": {"x": 1}}
LISTY = {"content": [PICTURE], "structuredContent": [1]}
PRINTED = {
    "plain": ("two\\nlines\\n\\n", (blocks("two\nlines"),) * 2),
    "nothing": ("", (blocks(""),) * 2),
    "object": ('{"a": [1, null]}\\n', both('{"a":[1,null]}', {"a": [1, None]})),
    "array": ("[1, 2]", both("[1,2]", [1, 2])),
    "number": ("42\\n", both("42", 42)),
    "null": ("null", both("null", None)),
    "string": ('"42"', (blocks("42"),) * 2),
    "result": (json.dumps(OWN), (OWN, OWN)),
    "result with a list": (json.dumps(LISTY), (LISTY, {"content": [PICTURE]})),
    "content that is none": ('{"content": "x"}', both('{"content":"x"}', {"content": "x"})),
    "no strict JSON": ('{"a": NaN}', (blocks('{"a": NaN}'),) * 2),
    "two values": ("1\\n2\\n", (blocks("1\n2"),) * 2),
    "half a character": ('"\\\\ud800"', (blocks('"\\ud800"'),) * 2),
    "no UTF-8": ("\\377\\n", (blocks("\ufffd"),) * 2),
}


@pytest.mark.parametrize("era", ["modern", "legacy"])
@pytest.mark.parametrize("case", PRINTED)
def test_what_is_printed_is_a_tool_result_a_json_value_or_plain_text(tmp_path, case, era):
    printed, expected = PRINTED[case]
    provider(tmp_path, "print", define("print"), run=f"printf '{printed}'")
    server = Served(tmp_path, era=era).server
    ask = {"modern": modern, "legacy": legacy}[era]
    server.handle_line(json.dumps(initialize()))
    reply = json.loads(server.handle_line(json.dumps(ask("tools/call", {"name": "print"}))))
    found = reply["result"]
    if era == "modern":
        assert found.pop("resultType") == "complete"
        del found["_meta"]["io.modelcontextprotocol/serverInfo"]
        if not found["_meta"]:
            del found["_meta"]
    assert found == expected[era == "legacy"]


@pytest.mark.parametrize(
    "printed", ["[]", '{"content": [], "structuredContent": {"n": "x"}}', '{"content": []}', "text"]
)
def test_a_value_that_breaks_its_output_schema_is_an_error(tmp_path, printed):
    schema = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}
    provider(tmp_path, "lie", define("lie", outputSchema=schema), run=f"echo '{printed}'")
    assert "its" in (text := Served(tmp_path).failure("lie")) and "schema" in text


def test_a_failing_result_needs_no_structured_content(tmp_path):
    schema = {"type": "object", "required": ["n"]}
    told = '{"isError": true, "content": [{"type": "text", "text": "no"}]}'
    provider(tmp_path, "fail", define("fail", outputSchema=schema), run=f"echo '{told}'")
    assert Served(tmp_path).failure("fail") == "no"


@pytest.mark.parametrize(
    ("run", "text"),
    [
        ("echo 'no such city' >&2; exit 3", "go failed with exit code 3\nno such city"),
        ("echo only here; exit 1", "go failed with exit code 1\nonly here"),
        ("echo out; echo err >&2; exit 1", "go failed with exit code 1\nerr\nout"),
        ("exit 7", "go failed with exit code 7"),
        ("kill -SEGV $$", "go failed with exit code -11"),
    ],
)
def test_a_failure_is_an_error_result_with_what_was_said(tmp_path, run, text):
    provider(tmp_path, "go", define("go"), run=run)
    assert Served(tmp_path).failure("go") == text


def test_what_a_provider_says_on_stderr_goes_to_the_operator(tmp_path, capfd):
    provider(tmp_path, "go", define("go"), run="echo done; echo by the way >&2")
    assert Served(tmp_path).call("go").text == "done"
    assert capfd.readouterr().err == "by the way\n"


# Bounds


def test_b089_a_time_out_ends_the_grandchildren_too(tmp_path):
    """B089: killing only the child leaves a grandchild that holds the pipe, and the call hangs."""
    slow = define("slow", _meta={"timeout": 0.5})
    provider(tmp_path, "slow", slow, run="sleep 600 & echo $! > .pid; echo begun; wait")
    begun = time.monotonic()
    text = Served(tmp_path).failure("slow")
    assert text == "slow timed out after 0.5 s, and was ended\nbegun"
    assert time.monotonic() - begun < 30
    until(lambda: not is_alive(pid_in(tmp_path / ".pid")))


def test_a_time_out_reaches_what_a_shell_with_job_control_started(tmp_path):
    need(shutil.which("bash"), "no bash")
    need(os.path.exists("/proc/self/stat"), "no /proc")
    body = """#!/usr/bin/env bash
set -Eeuom pipefail
if [[ $1 == list ]]; then echo '{"name": "slow", "inputSchema": {"type": "object"},
  "_meta": {"timeout": 0.5}}'; fi
if [[ $1 == slow ]]; then (echo $BASHPID > .pid; exec sleep 600) | cat; fi
"""
    write(tmp_path / "slow", body)
    assert "timed out" in Served(tmp_path).failure("slow")
    until(lambda: not is_alive(pid_in(tmp_path / ".pid")))


def test_a_provider_that_ignores_sigterm_is_killed(tmp_path):
    run = "trap '' TERM; echo $$ > .pid; while :; do sleep 0.05; done"
    provider(tmp_path, "stubborn", define("stubborn", _meta={"timeout": 0.3}), run=run)
    assert "timed out" in Served(tmp_path).failure("stubborn")
    until(lambda: not is_alive(pid_in(tmp_path / ".pid")))


def test_a_provider_may_clean_up_when_it_is_ended(tmp_path):
    run = "trap 'touch .cleaned; exit' TERM; sleep 600 & wait"
    provider(tmp_path, "clean", define("clean", _meta={"timeout": 0.3}), run=run)
    assert "timed out" in Served(tmp_path).failure("clean")
    assert (tmp_path / ".cleaned").exists()


def test_a_time_out_holds_for_a_provider_that_closed_its_output(tmp_path):
    run = "exec >&- 2>&-; exec sleep 600"
    provider(tmp_path, "mute", define("mute", _meta={"timeout": 0.3}), run=run)
    assert Served(tmp_path).failure("mute") == "mute timed out after 0.3 s, and was ended"


@pytest.mark.parametrize("stream", ["1", "2"])
def test_a_flood_is_cut_off(tmp_path, stream):
    flood = define("flood", _meta={"maxOutput": 20_000})
    provider(tmp_path, "flood", flood, run=f"echo $$ > .pid; exec yes >&{stream}")
    text = Served(tmp_path).failure("flood")
    assert text.startswith("flood printed too much, and was ended\n")
    assert set(text.split("\n", 1)[1].split()) == {"y"}
    assert len(text) < 5000
    assert not is_alive(pid_in(tmp_path / ".pid"))


def test_a_child_left_behind_neither_delays_the_answer_nor_outlives_it(tmp_path):
    run = "sleep 600 & echo $! > .pid; echo done"
    provider(tmp_path, "leave", define("leave", _meta={"timeout": 300}), run=run)
    begun = time.monotonic()
    assert Served(tmp_path).call("leave").text == "done"
    assert time.monotonic() - begun < 30
    until(lambda: not is_alive(pid_in(tmp_path / ".pid")))


def test_a_child_that_left_the_session_with_our_pipe_does_not_delay_the_answer(tmp_path):
    need(shutil.which("setsid"), "no setsid (util-linux)")
    run = "setsid sleep 600 & echo $! > .pid; echo done"
    provider(tmp_path, "escape", define("escape", _meta={"timeout": 300}), run=run)
    begun = time.monotonic()
    assert Served(tmp_path).call("escape").text == "done"
    assert time.monotonic() - begun < 30
    os.kill(pid_in(tmp_path / ".pid"), signal.SIGKILL)


def test_what_a_child_still_has_to_say_is_heard(tmp_path):
    need(shutil.which("bash"), "no bash")
    body = f"""#!/usr/bin/env bash
if [[ $1 == list ]]; then echo '{json.dumps(define("tee"))}'; exit; fi
exec > >(sleep 0.1; cat)
echo late
"""
    write(tmp_path / "tee", body)
    assert Served(tmp_path).call("tee").text == "late"


def test_a_command_in_front_confines_every_provider(tmp_path):
    need(shutil.which("prlimit"), "no prlimit (util-linux)")
    provider(tmp_path, "limits", define("limits"), run="ulimit -n")
    front = {"FRONT": "prlimit --nofile=64"}
    with Client(command("folder", tmp_path), env=front) as client:
        assert client.call_tool("limits").text == "64"


# Talking while working


def test_output_is_streamed_as_progress_if_the_client_asks(tmp_path):
    steps = "echo one; until [ -e .go ]; do sleep 0.02; done; echo two >&2; echo three"
    provider(tmp_path, "work", define("work"), run=steps)
    heard = []

    def hear(method, params):
        heard.append((method, params["message"]))
        (tmp_path / ".go").touch()

    served = Served(tmp_path)
    with Client(served.server, on_notification=hear) as client:
        assert client.call_tool("work").text == "one\nthree"
    assert heard[0] == ("notifications/progress", "one")
    assert sorted("\n".join(text for _, text in heard[1:]).split()) == ["three", "two"]
    (tmp_path / ".go").unlink()
    with Stdio(command("folder", tmp_path)) as server:
        server.send(modern("tools/call", {"name": "work"}))
        (tmp_path / ".go").touch()
        assert server.read()["result"]["content"][0]["text"] == "one\nthree"  # and no progress


def test_a_cancelled_call_ends_its_process(tmp_path):
    provider(tmp_path, "slow", define("slow"), run="echo $$ > .pid; exec sleep 600")
    with Stdio(command("folder", tmp_path)) as server:
        server.send(modern("tools/call", {"name": "slow"}, 7))
        pid = pid_in(tmp_path / ".pid")
        assert is_alive(pid)
        server.send(cancelled(7))
        until(lambda: not is_alive(pid))


@pytest.mark.parametrize("how", ["end of input", "SIGTERM"])
def test_no_provider_outlives_the_server(tmp_path, how):
    provider(tmp_path, "slow", define("slow"), run="echo $$ > .pid; echo begun; exec sleep 600")
    with Stdio(command("folder", tmp_path)) as server:
        server.send(modern("tools/call", {"name": "slow"}, meta={"progressToken": 1}))
        assert server.read()["params"]["message"] == "begun"
        pid = pid_in(tmp_path / ".pid")
        if how == "SIGTERM":
            server.process.send_signal(signal.SIGTERM)
        else:
            server.close_stdin()
        server.wait()
        until(lambda: not is_alive(pid))


def test_no_provider_outlives_a_server_that_is_ended_while_it_starts(tmp_path):
    provider(tmp_path, "slow", start="echo $$ > .pid; exec sleep 600")
    with Stdio(command("folder", tmp_path)) as server:
        pid = pid_in(tmp_path / ".pid")
        server.process.send_signal(signal.SIGTERM)
        assert server.wait() == 128 + signal.SIGTERM
        until(lambda: not is_alive(pid))


def test_a_slow_tool_holds_nobody_up(tmp_path):
    provider(tmp_path, "wait", define("wait"), run="until [ -e .go ]; do sleep 0.02; done; echo w")
    provider(tmp_path, "go", define("go"), run="touch .go; echo g")
    with Stdio(command("folder", tmp_path)) as server:
        server.send(modern("tools/call", {"name": "wait"}, 1))
        server.send(modern("tools/call", {"name": "go"}, 2))
        ended = [server.read(), server.read()]  # the first cannot end before the second has begun
    said = {reply["id"]: reply["result"]["content"] for reply in ended}
    assert said == {1: [{"type": "text", "text": "w"}], 2: [{"type": "text", "text": "g"}]}


# Trouble next door


def deep(levels):
    inside = "[" * levels + "]" * levels
    return (
        f'#!/bin/sh\necho \'{{"name":"x","inputSchema":{{"type":"object","default":{inside}}}}}\''
    )


TROUBLE = {
    "no shebang": ("echo hi\n", "Exec format error", "#!"),
    "no interpreter": ("#!/no/such/thing\n", "No such file", "#!"),
    "line ends of Windows": ("#!/bin/sh\r\necho\r\n", "No such file", "#!"),
    "unknown program": ("#!/usr/bin/env no-such-program\n", "exit code 127", "no-such-program"),
    "garbage": ("#!/bin/sh\necho Hello, I am no provider\n", "Expecting value"),
    "no UTF-8": (b"#!/bin/sh\nprintf '\\377'\n", "utf-8"),
    "a crash": ("#!/bin/sh\necho broken >&2\nexit 9\n", "exit code 9", "broken"),
    "an array": ("#!/bin/sh\necho '[1]'\n", "definition", "expected object"),
    "no name": ("#!/bin/sh\necho '{\"inputSchema\": {}}'\n", "definition.name", "missing"),
    "no schema": ('#!/bin/sh\necho \'{"name": "x"}\'\n', "definition.inputSchema", "missing"),
    "odd name": (f"#!/bin/sh\necho '{json.dumps(define('a b'))}'\n", "'a b'"),
    "odd schema": ('#!/bin/sh\necho \'{"name":"x","inputSchema":{"type":"thing"}}\'\n', "x"),
    "odd hints": (
        f"#!/bin/sh\necho '{json.dumps(define('x', annotations={'readOnlyHint': 'yes'}))}'\n",
        "definition.annotations.readOnlyHint",
    ),
    "odd bounds": (
        f"#!/bin/sh\necho '{json.dumps(define('x', _meta={'timeout': 'soon'}))}'\n",
        "'soon'",
    ),
    "NaN": (
        '#!/bin/sh\necho \'{"name":"x","inputSchema":{"type":"object","default":NaN}}\'\n',
        "JSON",
    ),
    "endless": (
        f'#!/bin/sh\necho \'{json.dumps(define("x"))[:-1]}, "_meta": {{"x": 1e999}}}}\'\n',
        "JSON",
    ),
    "deep": (deep(150), "nested too deeply"),
    "deeper than Python reads": (deep(100_000), "not JSON"),
    "a flood": ("#!/bin/sh\nexec yes\n", "printed too much"),
}


@pytest.mark.parametrize("case", TROUBLE)
def test_trouble_is_named_on_stderr_and_in_the_instructions_and_hides_nobody(tmp_path, case, capfd):
    body, *named = TROUBLE[case]
    write(tmp_path / "bad", body)
    provider(tmp_path, "good", define("good"), run="echo fine")
    served = Served(tmp_path)
    assert served.names() == ["good"]
    assert served.call("good").text == "fine"
    for told in (capfd.readouterr().err, served.client.instructions):
        assert "Not available: bad: " in told
        for each in named:
            assert each in told


def test_b088_a_file_without_shebang_is_named_and_the_others_work(tmp_path):
    """B088: it was an 'Exec format error' that nobody saw."""
    write(tmp_path / "bad.sh", "echo hi\n")
    provider(tmp_path, "good.sh", define("good"), run="echo fine")
    with Client(command("folder", tmp_path)) as client:
        assert [tool["name"] for tool in client.list_tools()] == ["good"]
        assert client.instructions == (
            "Not available: bad.sh: Exec format error; check its mode and '#!' line"
        )


def test_a_file_that_is_not_executable_is_named(tmp_path):
    provider(tmp_path, "plain", define("plain"), mode=0o644)
    assert Served(tmp_path).client.instructions == (
        "Not available: plain: Permission denied; check its mode and '#!' line"
    )


def test_a_hanging_provider_is_named_and_the_others_are_asked_meanwhile(tmp_path):
    for number in range(9):
        provider(tmp_path, f"hang{number}", start="echo $$ > .pid; sleep 600")
    provider(tmp_path, "good", define("good"))
    begun = time.monotonic()
    served = Served(tmp_path, listing=1)
    assert time.monotonic() - begun < 9  # side by side
    for number in range(9):
        assert f"hang{number}: list timed out after 1 s" in served.client.instructions
    assert served.names() == ["good"]
    assert not is_alive(pid_in(tmp_path / ".pid"))


def test_a_file_with_a_bad_definition_is_not_served_and_the_definition_is_named(tmp_path):
    provider(tmp_path, "mixed", define("one"), define("no way"), define("two"))
    provider(tmp_path, "other", define("three"))
    served = Served(tmp_path)
    assert served.names() == ["three"]
    assert "Not available: mixed: 'no way'" in served.client.instructions


def test_b087_two_tools_with_one_name_are_reported_with_both_files(tmp_path, capfd):
    """B087: the later one silently won."""
    provider(tmp_path, "add.sh", define("add"), define("more"), run="echo sh")
    provider(tmp_path, "add.py", define("add"), define("other"), run="echo py")
    served = Served(tmp_path)
    assert served.names() == ["add", "other", "more"]
    assert served.call("add").text == "py"
    warning = "Not available: add.sh: 'add' comes from add.py already"
    assert served.client.instructions == warning
    assert capfd.readouterr().err == warning + "\n"


def test_a_file_that_lists_a_name_twice_is_reported(tmp_path):
    provider(tmp_path, "twice", define("x", title="first"), define("x", title="second"))
    served = Served(tmp_path)
    assert [tool["title"] for tool in served.client.list_tools()] == ["first"]
    assert "twice: 'x' comes from twice already" in served.client.instructions


def test_backups_hidden_files_folders_and_pipes_are_no_providers(tmp_path):
    for name in (".hidden", "#lock#", "backup~"):
        provider(tmp_path, name, define("wrong"))
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "dangling").symlink_to("nowhere")
    served = Served(tmp_path)
    assert (served.names(), served.client.instructions) == ([], None)


def test_instructions_of_server_and_providers_are_joined(tmp_path):
    provider(tmp_path, "a", define("a"), instructions="printf '\\n  Ask a first.\\n'")
    provider(tmp_path, "b", define("b"), instructions="echo Usage: b >&2; exit 1")
    provider(tmp_path, "c", define("c"), instructions="echo Then c.")
    server = Server("mine", instructions="Be kind.")
    load("folder").Folder(server, tmp_path, ())
    assert Client(server).instructions == "Be kind.\n\nAsk a first.\n\nThen c."


def test_definitions_may_be_spread_over_lines(tmp_path):
    text = 'this "}' + "\n" + '{" is no end'
    one, two = define("one", description=text), define("two")
    listed = json.dumps(one, indent=2) + "\n\n" + json.dumps(two, indent=2) + "  "
    write(tmp_path / "p", f"#!/bin/sh\ncat <<'END'\n{listed}\nEND\n")
    assert Served(tmp_path).names() == ["one", "two"]


def test_a_definition_is_passed_on_as_far_as_every_client_can_read_it(tmp_path):
    known = define(
        "x",
        title="X",
        description="About x.",
        outputSchema=ANY,
        annotations={"title": "X", "readOnlyHint": True},
        _meta={"timeout": 5, "com.example/team": "red"},
    )
    provider(tmp_path, "p", {**known, "icons": "no", "wrong": 1}, define("plain"))
    plain = {**define("plain"), "description": "plain"}
    assert Served(tmp_path).client.list_tools() == [known, plain]


# Changes


def test_b090_an_edited_tool_is_read_again_and_never_half(tmp_path):
    """B090: it kept its old behaviour until a restart; or had new code and the old schema."""
    provider(tmp_path, "p", define("old"), define("kept"), run="echo first")
    served = Served(tmp_path)
    assert served.call("kept").text == "first"
    needs = {"type": "object", "required": ["n"]}
    provider(tmp_path, "p", define("new"), {"name": "kept", "inputSchema": needs}, run="echo 2nd")
    gone = "has just changed; look at the tools again, then call it"
    assert served.failure("kept") == f"kept {gone}"
    assert served.names() == ["new", "kept"]
    assert "arguments.n: " in served.failure("kept")
    assert served.call("kept", {"n": 1}).structured is None
    assert served.call("new").text == "2nd"


def test_a_call_for_an_old_schema_does_not_run_new_code(tmp_path):
    (tmp_path / "ran").mkdir()
    provider(tmp_path, "p", define("p"), run="touch ran/old")
    served = Served(tmp_path)
    provider(tmp_path, "p", define("p"), run="touch ran/new")
    assert "has just changed" in served.failure("p")
    assert list((tmp_path / "ran").iterdir()) == []
    served.call("p")
    assert [path.name for path in (tmp_path / "ran").iterdir()] == ["new"]


def test_new_code_that_took_the_place_between_a_look_and_the_start_gives_no_result(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    swap = '[ "$2" = p ] && mv ../new p; exec "$@"'
    front = write(tmp_path / "front", f"#!/bin/sh\n{swap}\n")
    provider(folder, "p", define("p"), run="echo old")
    provider(tmp_path, "new", define("p"), run="echo new")
    server = Server("folder", ttl_ms=0)
    load("folder").Folder(server, folder, [front])
    with Client(server) as client:
        assert "has just changed" in client.call_tool("p").text
        assert client.call_tool("p").text == "new"


def test_while_a_file_is_edited_again_and_again_no_call_gets_new_code_for_an_old_schema(tmp_path):
    def version(letter):
        schema = {"type": "object", "required": [letter], "additionalProperties": False}
        listed = {"name": "p", "inputSchema": {**schema, "properties": {letter: {}}}}
        provider(tmp_path, "p", listed, run=f"echo {letter}")

    version("a")
    served = Served(tmp_path)
    over = threading.Event()

    def edit():
        while not over.wait(0.05):
            version("b" if 'required": ["a"' in (tmp_path / "p").read_text() else "a")

    editor = threading.Thread(target=edit)
    editor.start()
    answers = []
    try:
        deadline = time.monotonic() + 5
        while len(answers) < 30 and time.monotonic() < deadline:
            for letter in "ab":
                found = served.call("p", {letter: 1})
                if not found.is_error:
                    answers.append((letter, found.text))
    finally:
        over.set()
        editor.join()
    assert answers
    assert {(letter, text) for letter, text in answers if letter != text} == set()


def test_the_list_is_replaced_in_one_step(tmp_path):
    def version(number):
        provider(tmp_path, "p", *(define(f"v{number}.{n}") for n in range(30)))

    version(0)
    served = Served(tmp_path)
    lists = []
    over = threading.Event()

    def look():
        while not over.is_set():
            lists.append({name.split(".")[0] for name in served.names()})

    looker = threading.Thread(target=look)
    looker.start()
    for number in range(1, 6):
        version(number)
        served.folder.refresh()
    over.set()
    looker.join()
    assert lists
    assert max(len(one) for one in lists) == min(len(one) for one in lists) == 1


def test_a_running_server_notices_what_comes_changes_and_goes(tmp_path):
    heard = []
    start = command("folder", tmp_path)
    with Client(start, era="legacy", on_notification=lambda *one: heard.append(one[0])) as client:
        assert client.list_tools() == []
        for names in (["one"], ["one", "two"], ["two"], []):
            for path in tmp_path.iterdir():
                path.unlink()
            for name in names:
                provider(tmp_path, name, define(name))
            until(lambda names=names: [t["name"] for t in client.list_tools()] == names)
    assert set(heard) == {"notifications/tools/list_changed"}
    assert len(heard) >= 4


def test_a_modern_client_that_listens_is_told(tmp_path):
    with Stdio(command("folder", tmp_path)) as server:
        wish = {"notifications": {"toolsListChanged": True}}
        server.send(modern("subscriptions/listen", wish, 5))
        assert server.read()["method"] == "notifications/subscriptions/acknowledged"
        provider(tmp_path, "new", define("new"))
        assert server.read()["method"] == "notifications/tools/list_changed"
        tools = server.ask(modern("tools/list", id=6))["result"]["tools"]
        assert [tool["name"] for tool in tools] == ["new"]


def test_only_what_changed_is_asked_again_and_only_a_change_is_announced(tmp_path):
    (tmp_path / "seen").mkdir()
    for name in ("a", "b"):
        provider(tmp_path, name, define(name), start=f"echo $1 >> seen/{name}")
    served = Served(tmp_path)
    told = []
    served.server.announce = told.append
    served.folder.refresh()
    assert told == []
    provider(tmp_path, "b", define("c"), start="echo $1 >> seen/b")
    served.folder.refresh()
    assert told == ["tools"]
    assert (tmp_path / "seen" / "a").read_text().split() == ["list", "instructions"]
    assert (tmp_path / "seen" / "b").read_text().split() == ["list", "instructions"] * 2


def test_a_folder_joins_a_server_that_has_tools_of_its_own(tmp_path):
    provider(tmp_path, "p", define("mine"), define("theirs"), run="echo theirs")
    server = Server("mine")
    server.tool(lambda: "mine", name="mine")
    load("folder").Folder(server, tmp_path, ())
    with Client(server) as client:
        assert [tool["name"] for tool in client.list_tools()] == ["mine", "theirs"]
        assert [client.call_tool(name).text for name in ("mine", "theirs")] == ["mine", "theirs"]
        assert "p: 'mine' comes from this server already" in client.instructions


def test_two_folders_join_one_server(tmp_path):
    server, module = Server("mine", ttl_ms=0), load("folder")
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        provider(tmp_path / name, name, define(name), run=f"echo {name}")
    one, _ = [module.Folder(server, tmp_path / name, ()) for name in ("one", "two")]
    provider(tmp_path / "one", "more", define("more"), run="echo more")
    one.refresh()
    with Client(server) as client:
        assert sorted(tool["name"] for tool in client.list_tools()) == ["more", "one", "two"]
        assert [client.call_tool(name).text for name in ("more", "two")] == ["more", "two"]


def test_a_provider_does_not_flood_the_instructions(tmp_path):
    provider(tmp_path, "p", define("p"), instructions="yes | head -c 900000")
    assert len(Served(tmp_path).client.instructions) < 10_000


def test_the_example_is_one_file_of_at_most_150_lines():
    source = (EXAMPLES / "folder.py").read_text(encoding="utf-8")
    imported = re.findall(r"^(?:from|import) (\w+)", source, re.M)
    assert set(imported) <= {*sys.stdlib_module_names, "minimcp"}
    assert len(code_lines(source)) <= 150


# Existing providers
#
# Two public shell servers have providers of this kind. These behave as theirs do, in our words:
# the first prints tool results, says what is wrong on stdout, and has job control on; in the
# second a tool is a function that gets its arguments as JSON, and prints text or JSON.

EXECUTABLE = r"""#!/usr/bin/env bash
set -Eeuom pipefail
reply() { jq -cn --arg text "$1" '{content: [{type: "text", text: $text}], isError: false}'; }
case "${1-}" in
list)
  jq -cn '{name: "greet", title: "Greet", description: "Greet somebody.", inputSchema: {
    type: "object", properties: {who: {type: "string"}}, required: ["who"]}}'
  jq -cn '{name: "sum", description: "Add.", inputSchema: {type: "object",
    properties: {a: {type: "number"}, b: {type: "number"}}, required: ["a", "b"]}}' ;;
instructions) printf 'Notes:\n- sum: whole numbers only.\n\n' ;;
greet)
  who="$(jq -r .who <<< "$2")"
  [[ -n "$who" ]] || { echo "'who' is empty"; exit 1; }
  reply "Hello, $who!" ;;
sum) reply "$(( $(jq -r .a <<< "$2") + $(jq -r .b <<< "$2") ))" ;;
*) echo "Unknown tool: ${1-}"; exit 1 ;;
esac
"""
FUNCTIONS = r"""#!/bin/bash
tool_list_films() { echo '[{"title": "Dune", "price": 12.5}]' | jq -c .; return 0; }
tool_order() {
  local args="$1"
  local count=$(echo "$args" | jq -r '.count')
  if ! [[ "$count" =~ ^[0-9]+$ ]]; then
    echo "count: must be a whole number"
    return 1
  fi
  jq -cn --argjson count "$count" '{count: $count, total: ($count * 12.5)}'
}
tool_old_enough() { [[ $(echo "$1" | jq -r .age) -ge 18 ]] && echo "yes" && return 0
  echo "must be 18"; return 1; }
case "$1" in
list) jq -c '.tools[]' "$(dirname "${BASH_SOURCE[0]}")/assets/tools.json" ;;
*) if type "tool_$1" &> /dev/null; then "tool_$1" "$2"; else exit 1; fi ;;
esac
"""


def test_a_provider_written_for_a_server_in_bash_runs_unchanged(tmp_path):
    need(shutil.which("bash") and shutil.which("jq"), "no bash or no jq")
    write(tmp_path / "test.sh", EXECUTABLE)
    served = Served(tmp_path)
    assert served.names() == ["greet", "sum"]
    assert served.client.instructions == "Notes:\n- sum: whole numbers only."
    hello = served.call("greet", {"who": 'you "and" $(me)\nthere'})
    assert (hello.text, hello.is_error) == ('Hello, you "and" $(me)\nthere!', False)
    assert served.call("sum", {"a": 2, "b": 40}).text == "42"
    assert served.failure("greet", {"who": ""}) == "greet failed with exit code 1\n'who' is empty"
    assert "arguments.b: missing" in served.failure("sum", {"a": 2})
    assert "exit code" in served.failure("sum", {"a": 2, "b": 0.5})


def test_functions_that_get_their_arguments_as_json_need_only_a_list(tmp_path):
    need(shutil.which("bash") and shutil.which("jq"), "no bash or no jq")
    tools = [define("list_films"), define("order"), define("old_enough")]
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "tools.json").write_text(json.dumps({"tools": tools}, indent=2))
    write(tmp_path / "films.sh", FUNCTIONS)
    served = Served(tmp_path)
    assert served.names() == ["list_films", "order", "old_enough"]
    assert served.call("list_films").structured == [{"title": "Dune", "price": 12.5}]
    assert served.call("order", {"count": 3}).structured == {"count": 3, "total": 37.5}
    assert served.failure("order", {"count": "x"}).endswith("count: must be a whole number")
    assert served.call("old_enough", {"age": 18}).text == "yes"
    assert served.failure("old_enough", {"age": 8}).endswith("must be 18")


# The providers that come with the example

SHIPPED = {
    "bash": ("jq", "words.count", {"text": 'a\nb "c"'}, {"lines": 1, "words": 3, "characters": 7}),
    "python3": (
        "python3",
        "calendar.between",
        {"start": "2026-07-24", "end": "2026-07-28"},
        {"days": 4, "working_days": 2},
    ),
    "cc": ("cc", "primes.factor", {"number": 600851475143}, [71, 839, 1471, 6857]),
    "node": ("node", "dice.roll", {"count": 1, "sides": 4}, None),
}


@pytest.fixture
def tools(tmp_path_factory):
    """A copy of examples/tools, so that nothing is built in the checkout."""
    folder = tmp_path_factory.mktemp("copy") / "tools"
    shutil.copytree(EXAMPLES / "tools", folder, ignore=shutil.ignore_patterns("build"))
    return folder


@pytest.mark.parametrize("program", SHIPPED)
def test_each_provider_that_comes_with_the_example_works(tools, program):
    helper, name, arguments, expected = SHIPPED[program]
    need(shutil.which(program) and shutil.which(helper), f"no {program} or no {helper}")
    with Client(command("folder", tools)) as client:
        client.list_tools()
        found = client.call_tool(name, arguments)
    assert not found.is_error
    assert found.structured in ([{"rolled": [n]} for n in (1, 2, 3, 4)] + [expected])


def test_a_provider_whose_interpreter_is_missing_is_skipped_by_name(tools, tmp_path):
    for name in ("sh", "bash", "env", "dirname", "mkdir", "cat", "mv"):
        (tmp_path / name).symlink_to(shutil.which(name))
    (tmp_path / "python3").symlink_to(Path(sys.executable).resolve())
    with Client(command("folder", tools), env={"PATH": str(tmp_path)}) as client:
        assert {tool["name"].split(".")[0] for tool in client.list_tools()} == {"calendar"}
        warnings = [line for line in client.instructions.splitlines() if line.startswith("Not")]
    assert [line.split(":")[1].strip() for line in warnings] == ["dice", "primes", "words"]


@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize("asked", ["modern", "legacy"])
def test_the_official_client_calls_providers(tmp_path, asked, transport):
    provider(tmp_path, "p", define("echo"), define("fail"), run='[ "$1" = echo ] && cat')
    calls = [["echo", {"text": "naïve ☃"}], ["fail", {}]]
    with reached(command("folder", tmp_path), transport) as target:
        report = official(asked, calls, target)
    assert report == {
        "protocol_version": ERAS[asked],
        "tools": ["echo", "fail"],
        "results": [
            result('{"text":"naïve ☃"}', {"text": "naïve ☃"}),
            result("fail failed with exit code 1", None, True),
        ],
    }


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_our_client_calls_providers_over_both_transports(tmp_path, transport):
    provider(tmp_path, "p", define("echo"), run="cat")
    with reached(command("folder", tmp_path), transport) as target, Client(target) as client:
        assert client.call_tool("echo", {"text": ODD}).structured == {"text": ODD}


@pytest.mark.parametrize("name", ["nowhere", "file", None])
def test_a_folder_that_is_none_is_refused_in_one_line(tmp_path, name):
    write(tmp_path / "file", "text")
    words = [] if name is None else [tmp_path / name]
    with Stdio(command("folder", *words)) as server:
        assert server.wait() == 1
    told = repr("".join(map(str, words)))
    wish = "is no folder; name one that is: folder.py DIR [--http [PORT]]"
    assert server.stderr == f"{told} {wish}\n"


def test_code_that_adds_a_folder_that_is_not_there_gets_an_exception(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        load("folder").add_folder(Server("mine"), tmp_path / "nowhere")
