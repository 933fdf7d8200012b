"""What people reported about other servers and clients, and what happens here."""

import asyncio
import enum
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from datetime import datetime
from pathlib import Path
from typing import Literal

import pytest
from stubs.fake import fake_server
from stubs.terminal import END_OF_INPUT, on_a_terminal
from stubs.tools_server import server as fixture
from support import (
    LEGACY,
    Stdio,
    cancelled,
    exchange,
    initialize,
    legacy,
    modern,
    notification,
    server_file,
    until,
)

from minimcp import Client, Content, Server, run
from minimcp.context import Peer

STUBS = Path(__file__).parent / "stubs"
TOOLS = [sys.executable, str(STUBS / "tools_server.py")]


def call(name, id=1, **arguments):
    return modern("tools/call", {"name": name, "arguments": arguments}, id)


def line(message):
    return json.dumps(message, ensure_ascii=False).encode() + b"\n"


def send_bytes(server, data, *messages):
    """Write bytes as they are; `messages` are the requests in them, for the oracle."""
    for message in messages:
        server._note(message)
    server.send_raw(data)


def text_of(reply):
    return reply["result"]["content"][0]["text"]


def serving(*functions):
    """A server in this process with these tools."""
    server = Server("report")
    for function in functions:
        server.tool(function)
    return server


def result_of(server, name, **arguments):
    return exchange(server, call(name, **arguments))["result"]


def complaint(server, name, **arguments):
    """The text of a call that must fail as a tool error."""
    result = result_of(server, name, **arguments)
    assert result["isError"] is True
    return result["content"][0]["text"]


def schema_of(function):
    tools = exchange(serving(function), modern("tools/list"))["result"]["tools"]
    return tools[0]["inputSchema"]


def served(tmp_path, tools, before=""):
    """The command of a server file with these tools."""
    parts = ["from minimcp import Server, run\nserver = Server('report')\n", before, tools]
    return server_file(tmp_path, "\n".join([*parts, "\nif __name__ == '__main__': run(server)\n"]))


# Standard output pollution


def test_a_banner_printed_before_the_start_lands_on_stderr(tmp_path):
    """B001"""
    buffered = {"PYTHONUNBUFFERED": ""}  # unbuffered, it has left before anybody could catch it
    with Stdio(served(tmp_path, "print('ready')"), env=buffered) as server:
        assert server.ask(modern("server/discover"))["id"] == 1
        until(lambda: server.stderr == "ready\n")  # at once, and not at the end
        server.close_stdin()
        assert server.read_all() == []
        server.wait()
        assert server.stderr == "ready\n"


def test_a_print_inside_a_tool_lands_on_stderr(tmp_path):
    """B002"""
    tool = "@server.tool\ndef q(text: str) -> str:\n    print('debug', text)\n    return text\n"
    with Stdio(served(tmp_path, tool)) as server:
        assert text_of(server.ask(call("q", text="a"))) == "a"
        server.close_stdin()
        assert server.read_all() == []
        server.wait()
        assert server.stderr == "debug a\n"


def test_a_logging_handler_that_holds_the_early_stdout_writes_to_stderr(tmp_path):
    """B003"""
    before = "import logging, sys\nlogging.basicConfig(stream=sys.stdout, level='INFO')\n"
    tool = "@server.tool\ndef q() -> str:\n    logging.info('one line')\n    return 'a'\n"
    with Stdio(served(tmp_path, tool, before)) as server:
        assert text_of(server.ask(call("q"))) == "a"
        server.close_stdin()
        assert server.read_all() == []
        server.wait()
        assert server.stderr == "INFO:root:one line\n"


# Framing


def test_an_unparseable_line_is_answered_and_the_next_request_too():
    """B004"""
    with Stdio(TOOLS) as server:
        server.send('{"jsonrpc":"2.0","id":1,')
        bad = server.read()
        assert (bad["error"]["code"], "id" in bad) == (-32700, False)
        assert text_of(server.ask(call("echo", text="a"))) == "a"


def test_headers_in_the_style_of_lsp_are_refused_and_the_json_after_them_is_served():
    """B005"""
    request = call("echo", text="a")
    body = line(request)
    with Stdio(TOOLS) as server:
        send_bytes(server, b"Content-Length: %d\r\n\r\n" % len(body) + body, request)
        assert server.read()["error"]["code"] == -32700
        assert text_of(server.read()) == "a"


def test_a_client_sends_no_headers(tmp_path):
    """B005"""
    log = tmp_path / "log"
    source = "for request in requests(): reply(request, resultType='complete', tools=[])"
    with Client(fake_server(source), env={"FAKE_LOG": str(log)}) as client:
        client.list_tools()
    sent = log.read_bytes().splitlines()
    assert [json.loads(entry)["jsonrpc"] for entry in sent] == ["2.0"] * len(sent)


def test_two_hundred_large_replies_at_once_are_two_hundred_whole_lines():
    """B006"""
    texts = {number: f"{number}." * 5000 for number in range(200)}
    with Stdio(TOOLS) as server:
        server.send(*(call("echo", number, text=text) for number, text in texts.items()))
        replies = [server.read() for _ in texts]
        assert {reply["id"]: text_of(reply) for reply in replies} == texts


def test_what_many_calls_say_at_once_is_whole_lines_too(tmp_path):
    """B006: a reply and a notification were mixed."""
    tool = """
import time
from minimcp import Context

@server.tool
def talk(text: str, context: Context) -> str:
    for step in range(20):
        time.sleep(0.01)
        context.progress(step, message=text)
    return text
"""
    texts = {number: f"{number}." * 10_000 for number in range(30)}
    with Stdio(served(tmp_path, tool)) as server:
        for number, text in texts.items():
            params = {"name": "talk", "arguments": {"text": text}}
            server.send(modern("tools/call", params, number, meta={"progressToken": number}))
        messages = [server.read() for _ in range(21 * len(texts))]
    said = [message["params"] for message in messages if "params" in message]
    assert len(said) == 20 * len(texts)
    assert all(one["message"] == texts[one["progressToken"]] for one in said)
    assert {one["id"]: text_of(one) for one in messages if "id" in one} == texts


def test_blank_lines_are_ignored_and_shell_fragments_refused():
    """B007"""
    with Stdio(TOOLS) as server:
        server.send("", "   ", '& "$env:X"', call("echo", text="a"))
        server.close_stdin()
        bad, good = server.read_all()
        assert (bad["error"]["code"], text_of(good)) == (-32700, "a")
        assert server.wait() == 0


# Child processes


def test_a_child_process_of_a_tool_cannot_eat_the_protocol(tmp_path):
    """B008"""
    tool = """
@server.tool
def cat() -> str:
    import subprocess
    return subprocess.run(['cat'], capture_output=True, text=True).stdout
"""
    with Stdio(served(tmp_path, tool)) as server:
        server.send(call("cat", 1), call("cat", 2))
        assert [text_of(server.read()), text_of(server.read())] == ["", ""]


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_a_tool_may_use_a_pool_of_processes(tmp_path, method):
    """B009"""
    tool = f"""
import multiprocessing, os

def double(number):
    return 2 * number + len(os.read(0, 1))  # there is nothing to read

@server.tool
def pool() -> list[int]:
    with multiprocessing.get_context({method!r}).Pool(2) as pool:
        return pool.map(double, range(4))
"""
    with Stdio(served(tmp_path, tool)) as server:
        assert json.loads(text_of(server.ask(call("pool")))) == [0, 2, 4, 6]
        assert json.loads(text_of(server.ask(call("pool", 2)))) == [0, 2, 4, 6]


# Encoding

CODE_PAGE = {"PYTHONUTF8": "0", "PYTHONIOENCODING": "cp1252", "LC_ALL": "C"}


def test_a_server_speaks_utf_8_under_another_code_page():
    """B010"""
    with Stdio(TOOLS, env=CODE_PAGE) as server:
        request = call("echo", text="Gerät ✓ 世界")
        send_bytes(server, line(request), request)
        assert text_of(server.read()) == "Gerät ✓ 世界"


def test_a_client_speaks_utf_8_under_another_code_page():
    """B010"""
    script = (
        "import sys\nfrom minimcp import Client\nwith Client(sys.argv[1:]) as client:\n"
        "    print(ascii(client.call_tool('echo', {'text': 'Ger\\xe4t \\u2713 \\u4e16'}).text))\n"
    )
    command = [sys.executable, "-c", script, *TOOLS]
    output = subprocess.check_output(command, env={**os.environ, **CODE_PAGE}, timeout=20)
    assert output.decode().strip() == ascii("Ger\xe4t \u2713 \u4e16")


def test_half_a_character_never_reaches_a_tool():
    """B011"""
    with Stdio(TOOLS) as server:
        server.send_raw(line(call("echo", text="@")).replace(b"@", b"\xaf"))
        assert server.read()["error"]["code"] == -32700
        assert text_of(server.ask(call("echo", text="a"))) == "a"


def test_an_escaped_half_character_never_reaches_a_tool():
    """B011"""
    with Stdio(TOOLS) as server:
        server.send(json.dumps(call("echo", text="\ud800")))
        reply = server.read()
        assert reply.get("error", {}).get("code") == -32700 or reply["result"]["isError"]
        assert text_of(server.ask(call("echo", 2, text="a"))) == "a"


def test_a_byte_order_mark_before_the_first_line_is_skipped():
    """B012"""
    with Stdio(TOOLS) as server:
        send_bytes(server, b"\xef\xbb\xbf" + line(initialize()), initialize())
        assert server.read()["result"]["protocolVersion"] == LEGACY


def test_invalid_utf_8_from_a_server_costs_only_its_own_line():
    """B013"""
    source = """
        for request in requests():
            write(b"\\xff\\xfe junk\\n")
            say(request, "after the junk")
    """
    with Client(fake_server(source)) as client:
        assert client.call_tool("any", {}).text == "after the junk"


def test_windows_line_ends_and_blank_lines_change_nothing():
    """B014"""
    with Stdio(TOOLS) as server:
        for number in (1, 2):
            request = call("echo", number, text="a")
            send_bytes(server, line(request).replace(b"\n", b"\r\n") + b"\r\n", request)
        server.close_stdin()
        assert sorted(reply["id"] for reply in server.read_all()) == [1, 2]


# Large and deep


def test_a_server_takes_and_gives_three_megabytes():
    """B015"""
    text = "x" * 3_000_000
    with Stdio(TOOLS) as server:
        assert text_of(server.ask(call("echo", text=text))) == text


def test_a_client_takes_and_gives_three_megabytes():
    """B015"""
    text = "x" * 3_000_000
    with Client(TOOLS) as client:
        assert client.call_tool("echo", {"text": text}).text == text


def test_deep_nesting_is_an_error_and_not_the_end():
    """B017"""
    nested = b'{"text":' * 5000 + b"1" + b"}" * 5000
    with Stdio(TOOLS) as server:
        server.send_raw(b"[" * 100_000 + b"\n")
        assert server.read()["error"]["code"] in (-32700, -32600)
        request = line(call("echo", 2)).replace(b'"arguments": {}', b'"arguments": ' + nested)
        send_bytes(server, request, call("echo", 2))
        reply = server.read()
        refused = reply["error"]["code"] if "error" in reply else reply["result"]["isError"]
        assert refused in (-32700, -32600, -32602, True)
        assert text_of(server.ask(call("echo", text="a"))) == "a"


# Numbers


def test_a_result_that_is_not_a_number_is_a_tool_error():
    """B018"""

    def nan() -> float:
        return float("nan")

    assert "float values are not JSON" in complaint(serving(nan), "nan")


def test_large_integers_keep_every_digit():
    """B019"""

    def same(n: int) -> int:
        return n

    result = result_of(serving(same), "same", n=9007199254740993)
    assert result["content"][0]["text"] == "9007199254740993"
    assert json.dumps(result["structuredContent"]).count("9007199254740993") == 1


def test_true_is_not_the_number_one():
    """B020"""

    def half(value: float) -> float:
        return value / 2

    assert "a: expected integer, got boolean" in complaint(fixture, "add", a=True, b=2)
    assert "value: expected number, got boolean" in complaint(serving(half), "half", value=True)


def test_two_point_zero_is_the_integer_two():
    """B021"""
    assert result_of(fixture, "rep", text="ab", times=2.0)["content"][0]["text"] == "abab"
    assert "times: expected integer" in complaint(fixture, "rep", text="ab", times=2.5)


# Ids


def test_a_null_id_is_refused_and_the_tool_does_not_run():
    """B022"""
    ran = []

    def note() -> str:
        ran.append(1)
        return "ran"

    reply = exchange(serving(note), call("note", None))
    assert (reply["error"]["code"], "id" in reply, ran) == (-32600, False, [])


def test_the_id_zero_is_an_id():
    """B023"""
    assert exchange(fixture, call("echo", 0, text="a"))["id"] == 0
    assert exchange(fixture, call("nope", 0))["id"] == 0


def test_a_client_answers_a_request_with_the_id_zero():
    """B023"""
    source = """
        for request in legacy_requests():
            send({"jsonrpc": "2.0", "id": 0, "method": "ping"})
            answer = next(message for message in messages() if "method" not in message)
            say(request, json.dumps(answer))
    """
    with Client(fake_server(source)) as client:
        answer = json.loads(client.call_tool("any", {}).text)
    assert answer == {"jsonrpc": "2.0", "id": 0, "result": {}}


def test_text_and_number_are_different_ids():
    """B024"""
    with Stdio(TOOLS) as server:
        server.send(call("sleep", "1", seconds=0.3), call("echo", 1, text="number"))
        replies = [server.read(), server.read()]
        by_id = sorted((str(type(reply["id"])), text_of(reply)) for reply in replies)
        assert by_id == [("<class 'int'>", "number"), ("<class 'str'>", "slept")]


@pytest.mark.parametrize("wrong", ["True", "1.0", "'1'", "[1]", "{}"])
def test_a_client_takes_no_answer_whose_id_only_looks_like_its_own(wrong):
    """B024"""
    source = f"""
        for request in requests(discover=False):
            if request["method"] == "server/discover":
                reply({{"id": {wrong}}}, **discovery(["1999-01-01"]))
                reply(request, **discovery())
            else:
                say(request, str(request["id"]))
    """
    with Client(fake_server(source)) as client:
        assert client.call_tool("any", {}).text == "2"  # so the probe was number 1


def test_an_error_carries_the_id_of_its_request():
    """B025"""
    reply = exchange(fixture, call("nope", 77))
    assert (reply["id"], reply["error"]["code"]) == (77, -32602)


# Notifications


def test_the_initialized_notification_gets_no_answer():
    """B026"""
    with Stdio(TOOLS) as server:
        server.send(initialize(), notification("notifications/initialized"))
        server.close_stdin()
        assert [reply["id"] for reply in server.read_all()] == [0]


def test_cancelling_what_is_not_running_does_nothing():
    """B027"""
    with Stdio(TOOLS) as server:
        server.send(cancelled(1), call("echo", 2, text="a"))
        server.close_stdin()
        assert [reply["id"] for reply in server.read_all()] == [2]


# Batches


def test_a_batch_is_refused_once_with_the_reason_and_nothing_of_it_runs():
    """B028"""
    batch = [legacy("ping", id=1), legacy("ping", id=2)]
    reply = exchange(fixture, json.dumps(batch))
    assert (reply["error"]["code"], "id" in reply) == (-32600, False)
    assert "batch" in reply["error"]["message"]
    assert "2025-06-18" in reply["error"]["message"]


# Arguments


def search(q: str, limit: int = 5) -> str:
    return q * limit


def test_a_misspelled_argument_is_named_with_the_known_ones():
    """B030"""
    said = complaint(serving(search), "search", q="x", Limit=1)
    assert [name for name in ("Limit", "q", "limit") if name not in said] == []
    assert schema_of(search)["additionalProperties"] is False


def test_an_extra_key_is_refused_by_name_and_belongs_into_meta():
    """B031"""
    assert "_trace" in complaint(serving(search), "search", q="x", _trace="abc")
    params = {"name": "search", "arguments": {"q": "x"}}
    request = modern("tools/call", params, meta={"com.example/trace": "abc"})
    assert text_of(exchange(serving(search), request)) == "xxxxx"


def test_parameters_with_a_default_are_optional():
    """B032"""

    def f(q: str, n: int = 10, tag: str | None = None) -> str:
        return f"{q} {n} {tag}"

    assert result_of(serving(f), "f", q="x")["content"][0]["text"] == "x 10 None"
    assert schema_of(f)["required"] == ["q"]


@pytest.mark.parametrize("text", ["12345", "1.5", "true", "null", "[1]", '{"a": 1}', '"a"'])
def test_a_text_that_looks_like_json_stays_a_text(text):
    """B033"""

    def kind(text: str) -> str:
        return f"{type(text).__name__} {text}"

    assert result_of(serving(kind), "kind", text=text)["content"][0]["text"] == f"str {text}"


def test_a_list_in_a_text_is_refused_and_not_decoded():
    """B034"""

    def tags(items: list[str]) -> int:
        return len(items)

    said = complaint(serving(tags), "tags", items='["a"]')
    assert "items: expected array, got string" in said


def test_variable_arguments_are_refused_at_registration():
    """B035"""

    def rest(a: int, *rest) -> str:
        return ""

    def kw(a: int, **kw) -> str:
        return ""

    with pytest.raises(TypeError, match=r"\brest\b"):
        serving(rest)
    with pytest.raises(TypeError, match=r"\bkw\b"):
        serving(kw)


def test_postponed_annotations_give_the_same_schema():
    """B036"""
    source = (
        "from typing import Literal\n"
        "def f(n: int, c: Literal['a', 'b'] = 'a') -> str:\n    return c * n\n"
    )
    now, later = {}, {}
    exec(compile(source, "now", "exec", dont_inherit=True), now)
    postponed = "from __future__ import annotations\n" + source
    exec(compile(postponed, "later", "exec", dont_inherit=True), later)
    assert later["f"].__annotations__["n"] == "int"
    assert schema_of(now["f"]) == schema_of(later["f"])
    assert "n: expected integer, got string" in complaint(serving(later["f"]), "f", n="1")


def test_a_type_that_json_does_not_have_is_refused_at_registration():
    """B037"""

    def f(x, when: datetime) -> str:
        return ""

    with pytest.raises(TypeError, match="when"):
        serving(f)


@pytest.mark.parametrize("value", [None, True, 1, 1.5, "a", [1], {"a": 1}])
def test_a_parameter_without_a_type_takes_any_json_value(value):
    """B037"""

    def same(x) -> str:
        return json.dumps(x)

    assert json.loads(result_of(serving(same), "same", x=value)["content"][0]["text"]) == value


def test_params_of_the_wrong_kind_are_an_error_with_the_id():
    """B038"""
    request = {"jsonrpc": "2.0", "id": 5, "method": "tools/list", "params": 7}
    reply = exchange(fixture, request)
    assert (reply["id"], reply["error"]["code"]) == (5, -32602)


def test_arguments_may_be_left_out_where_none_are_needed():
    """B039"""

    def now() -> str:
        return "now"

    assert text_of(exchange(serving(now), modern("tools/call", {"name": "now"}))) == "now"


def test_left_out_arguments_are_listed_where_they_are_needed():
    """B039"""
    result = exchange(fixture, modern("tools/call", {"name": "add"}))["result"]
    assert result["isError"] is True
    said = result["content"][0]["text"]
    assert [part for part in ("a: missing", "b: missing") if part not in said] == []


# Schemas


def test_a_client_hands_back_an_input_schema_untouched():
    """B040"""
    schema = {
        "type": "object",
        "properties": {"p": {"$ref": "#/$defs/P"}},
        "$defs": {"P": {"type": "string", "x-own": [1, None]}},
    }
    source = """
        tool = {"name": "t", "inputSchema": json.loads(sys.argv[1])}
        for request in requests():
            reply(request, resultType="complete", tools=[tool])
    """
    with Client(fake_server(source, json.dumps(schema))) as client:
        assert json.dumps(client.list_tools()[0]["inputSchema"]) == json.dumps(schema)


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


def test_an_enum_and_a_literal_are_an_inline_list_of_values():
    """B041"""

    def paint(colour: Colour) -> str:
        return colour.name

    def paint_too(colour: Literal["red", "blue"]) -> str:
        return colour

    inline = {"type": "string", "enum": ["red", "blue"]}
    assert schema_of(paint)["properties"] == {"colour": inline}
    assert schema_of(paint_too)["properties"] == {"colour": inline}


def test_an_optional_text_has_one_form_and_keeps_null():
    """B042"""

    def f(x: str | None = None) -> str:
        return repr(x)

    form = {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}
    assert schema_of(f)["properties"] == {"x": form}
    assert result_of(serving(f), "f", x=None)["content"][0]["text"] == "None"


def test_a_tool_that_declares_draft_07_is_listed_and_called():
    """B043"""
    source = """
        schema = {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}
        for request in requests():
            if request["method"] == "tools/list":
                tools = [{"name": "t", "inputSchema": schema}]
                reply(request, resultType="complete", tools=tools)
            else:
                say(request, "called")
    """
    with Client(fake_server(source)) as client:
        assert [tool["name"] for tool in client.list_tools()] == ["t"]
        assert client.call_tool("t", {}).text == "called"


def test_schemas_from_hints_declare_no_dialect():
    """B043"""
    assert "$schema" not in json.dumps(exchange(fixture, modern("tools/list")))


def test_a_declared_output_schema_is_kept():
    """B044"""

    def f() -> dict:
        return {"a": 1}

    server = serving(f)
    tool = exchange(server, modern("tools/list"))["result"]["tools"][0]
    assert tool.get("outputSchema", {"type": "object"})["type"] == "object"
    assert result_of(server, "f")["structuredContent"] == {"a": 1}


def test_content_blocks_cannot_keep_an_output_schema():
    """B044"""

    def f() -> Content:
        return [{"type": "text", "text": "a"}]

    def g() -> Content | dict[str, int]:
        return [{"type": "text", "text": "a"}]

    for function in (f, g):
        with pytest.raises(ValueError, match=r"blocks.*output_schema"):
            Server("report").tool(function, output_schema={"type": "object"})


# Results


def test_an_object_is_structured_content_and_the_same_json_as_text():
    """B045"""

    def f() -> dict:
        return {"a": 1}

    (block,) = result_of(serving(f), "f")["content"]
    assert (block["type"], json.loads(block["text"])) == ("text", {"a": 1})


def test_an_empty_result_still_has_one_block_of_text():
    """B046"""

    def none() -> list:
        return []

    def nothing() -> None:
        return None

    server = serving(none, nothing)
    assert result_of(server, "none")["content"] == [{"type": "text", "text": "[]"}]
    assert result_of(server, "nothing")["content"] == [{"type": "text", "text": "null"}]


# Errors of tools


def test_bad_arguments_are_a_result_that_the_model_can_read():
    """B047"""
    assert "a: expected integer, got string" in complaint(fixture, "add", a="x", b=1)
    assert exchange(fixture, call("nope"))["error"]["code"] == -32602


def test_an_exception_is_told_in_a_sentence_and_traced_on_stderr():
    """B048"""
    with Stdio(TOOLS) as server:
        result = server.ask(call("boom"))["result"]
        assert result["isError"] is True
        assert result["content"] == [{"type": "text", "text": "ValueError: no such city: Atlantis"}]
        assert text_of(server.ask(call("echo", text="a"))) == "a"
        server.close_stdin()
        server.wait()
        assert "Traceback" in server.stderr


def test_a_tool_that_exits_does_not_end_the_server(tmp_path):
    """B049"""
    tool = "@server.tool\ndef bye() -> str:\n    import sys\n    sys.exit(3)\n"
    with Stdio(served(tmp_path, tool)) as server:
        for number in (1, 2):
            result = server.ask(call("bye", number))["result"]
            assert result["isError"] is True
            assert "SystemExit" in result["content"][0]["text"]


def test_a_slow_tool_does_not_hold_up_the_next_call():
    """B050"""
    with Stdio(TOOLS) as server:
        server.send(call("sleep", 1, seconds=2), call("echo", 2, text="a"))
        assert [server.read()["id"], server.read()["id"]] == [2, 1]


def test_an_async_tool_is_run_to_its_end():
    """B051"""

    async def hi() -> str:
        await asyncio.sleep(0)
        return "hi"

    assert result_of(serving(hi), "hi")["content"][0]["text"] == "hi"


# Cancellation


def test_a_cancelled_request_is_not_answered():
    """B052"""
    with Stdio(TOOLS) as server:
        server.send(call("sleep", 9, seconds=1), cancelled(9), call("sleep", 10, seconds=1.5))
        assert server.read()["id"] == 10
        server.close_stdin()
        assert server.read_all() == []


def test_a_cancellation_that_crosses_the_reply_is_harmless():
    """B053"""
    with Stdio(TOOLS) as server:
        for number in range(500):
            server.send(call("echo", number, text="a"), cancelled(number))
        server.send(call("echo", "last", text="a"))
        server.close_stdin()
        ids = [reply["id"] for reply in server.read_all()]
        assert len(ids) == len(set(ids))
        assert "last" in ids
        assert server.wait() == 0


class Crossed(dict):
    """What is in flight, if a cancellation comes right after each look at it."""

    def get(self, ident, default=None):
        found = super().get(ident, default)
        self.pop(ident, None)
        return found


def test_a_cancellation_between_the_end_of_a_tool_and_the_reply_is_harmless():
    """B053"""
    peer = Peer()
    peer.in_flight = Crossed()
    assert exchange(fixture, call("echo", 1, text="a"), peer) is None
    assert exchange(fixture, call("nope", 1), peer) is None


# Shutdown


def test_a_server_without_input_ends_at_once():
    """B054"""
    done = subprocess.run(TOOLS, stdin=subprocess.DEVNULL, capture_output=True, timeout=10)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_one_interrupt_ends_a_server_on_a_terminal():
    """B055"""
    with on_a_terminal(TOOLS) as (server, _):
        server.stderr.readline()  # it has started
        server.send_signal(signal.SIGINT)
        assert server.wait(10) in (130, -signal.SIGINT)
        assert b"Traceback" not in server.stderr.read()


def test_a_reader_that_leaves_ends_the_server_quietly():
    """B056"""
    requests = b"".join(line(call("echo", number, text="a")) for number in range(1000))
    pipe = subprocess.PIPE
    with subprocess.Popen(TOOLS, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        head = subprocess.Popen([shutil.which("head"), "-1"], stdin=process.stdout, stdout=pipe)
        process.stdout.close()
        _, errors = process.communicate(requests, timeout=20)
        first, _ = head.communicate(timeout=20)
    assert text_of(json.loads(first)) == "a"
    assert (process.returncode, errors) == (0, b"")


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_closing_a_client_ends_a_server_that_will_not_go(tmp_path):
    """B057"""
    source = """
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        for request in requests():
            say(request, str(os.getpid()))
        time.sleep(600)
    """
    with Client(fake_server(source)) as client:
        pid = int(client.call_tool("pid", {}).text)
        started = time.monotonic()
    assert time.monotonic() - started < 15
    assert not is_running(pid)  # not even a zombie


def test_a_call_that_is_never_answered_times_out_and_is_cancelled(tmp_path):
    """B058"""
    log = tmp_path / "log"
    source = """
        for request in requests():
            if request["params"]["name"] != "silent":
                say(request, "fine")
    """
    with Client(fake_server(source), env={"FAKE_LOG": str(log)}) as client:
        with pytest.raises(TimeoutError, match=r"tools/call.*silent"):
            client.call_tool("silent", {}, timeout=0.2)
        assert client.call_tool("loud", {}).text == "fine"
    sent = [json.loads(entry) for entry in log.read_bytes().splitlines()]
    (silent,) = [m["id"] for m in sent if m.get("params", {}).get("name") == "silent"]
    (cancel,) = [m["params"] for m in sent if m["method"] == "notifications/cancelled"]
    assert cancel["requestId"] == silent


# Versions


def negotiated(version):
    return exchange(Server("report"), initialize(version))["result"]["protocolVersion"]


def test_an_unknown_version_is_answered_with_the_newest_legacy_one():
    """B059"""
    assert negotiated("2031-01-01") == "2025-11-25"


def test_a_supported_version_is_answered_with_itself():
    """B060"""
    assert negotiated("2025-06-18") == "2025-06-18"


def test_a_server_that_ignores_the_probe_is_reached_by_initialize():
    """B061"""
    source = """
        for request in requests(discover=False):
            if request["method"] == "tools/call":
                say(request, "old but fine")
    """
    with Client(fake_server(source)) as client:
        assert (client.era, client.protocol_version) == ("legacy", "2025-11-25")
        assert client.call_tool("any", {}).text == "old but fine"


def test_probing_and_falling_back_needs_one_process(tmp_path):
    """B062"""
    source = f"""
        os.close(os.open({str(tmp_path / "lock")!r}, os.O_CREAT | os.O_EXCL))
        for request in legacy_requests():
            say(request, "started once")
    """
    with Client(fake_server(source)) as client:
        assert client.call_tool("any", {}).text == "started once"


# 2026-07-28


def test_missing_metadata_is_named_and_not_called_a_version():
    """B063"""
    error = exchange(Server("report"), legacy("tools/list"))["error"]
    assert error["code"] == -32602
    assert "_meta" in error["message"]
    meta = {"io.modelcontextprotocol/protocolVersion": "1999-01-01"}
    error = exchange(Server("report"), modern("tools/list", meta=meta))["error"]
    assert error["code"] == -32022
    assert error["data"] == {"supported": ["2026-07-28"], "requested": "1999-01-01"}


def test_modern_results_have_their_members_and_legacy_results_do_not():
    """B064"""
    server = serving(search)
    discovered = exchange(server, modern("server/discover"))["result"]
    listed = exchange(server, modern("tools/list"))["result"]
    assert discovered["supportedVersions"] == ["2026-07-28"]
    assert discovered["capabilities"]["tools"] is not None
    hints = {"resultType", "ttlMs", "cacheScope"}
    assert (hints - set(discovered), hints - set(listed)) == (set(), set())
    exchange(server, initialize())
    assert hints.intersection(exchange(server, legacy("tools/list"))["result"]) == set()


# Clients


def test_a_chatty_stderr_does_not_block_the_server():
    """B080"""
    source = """
        for request in requests():
            sys.stderr.write("a line of log\\n" * 22000)
            sys.stderr.flush()
            say(request, "through")
    """
    with Client(fake_server(source)) as client:
        assert client.call_tool("any", {}).text == "through"


def test_the_last_words_of_a_dead_server_are_in_the_error():
    """B080"""
    source = """
        for request in requests():
            sys.stderr.write("a line of log\\n" * 22000 + "the %s is gone\\n" % "database")
            sys.exit(7)
    """
    with Client(fake_server(source)) as client:
        with pytest.raises(ConnectionError, match="the database is gone") as caught:
            client.call_tool("any", {})
        assert "exit code 7" in str(caught.value)


def test_a_line_that_is_no_json_is_skipped_and_reported_once(capfd):
    """B081"""
    source = """
        print("npm warn deprecated", flush=True)
        for request in requests():
            print("npm warn deprecated", flush=True)
            say(request, "fine")
    """
    with Client(fake_server(source)) as client:
        assert client.call_tool("any", {}).text == "fine"
        assert client.call_tool("any", {}).text == "fine"
    assert capfd.readouterr().err.count("npm warn deprecated") == 1


def test_answers_in_another_order_reach_their_own_callers():
    """B082"""
    source = """
        first, second = [request for _, request in zip(range(2), requests())]
        say(second, second["params"]["name"])
        say(first, first["params"]["name"])
        sys.stdin.read()
    """
    texts = {}
    with Client(fake_server(source)) as client:

        def ask(name):
            texts[name] = client.call_tool(name, {}).text

        threads = [threading.Thread(target=ask, args=(name,)) for name in ("one", "two")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert texts == {"one": "one", "two": "two"}


def test_a_missing_command_is_an_immediate_error_with_a_hint():
    """B083"""
    before = set(os.listdir("/proc/self/fd"))
    with pytest.raises(ConnectionError, match="no-such-cmd") as caught:
        Client(["no-such-cmd"])
    assert "PATH" in str(caught.value)
    assert set(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("command", [[], [""], ["a\0b"], ["/"]])
def test_what_is_no_command_is_the_same_error(command):
    """B083"""
    with pytest.raises(ConnectionError, match="cannot start"):
        Client(command)


def test_a_path_and_an_argument_with_spaces_arrive_whole(tmp_path):
    """B084"""
    folder = tmp_path / "my tools"
    folder.mkdir()
    tool = "@server.tool\ndef argument() -> str:\n    import sys\n    return sys.argv[1]\n"
    source = f"from minimcp import Server\nimport minimcp.stdio\nserver = Server('s')\n{tool}"
    command = server_file(folder, source + "minimcp.stdio.serve(server)\n")
    with Client([*command, "a b"]) as client:
        assert client.call_tool("argument", {}).text == "a b"


def test_one_variable_more_keeps_the_rest_of_the_environment(monkeypatch):
    """B085"""
    monkeypatch.setenv("FROM_PARENT", "kept")
    source = """
        for request in requests():
            say(request, " ".join(os.environ[name] for name in ("KEY", "FROM_PARENT", "PATH")))
    """
    with Client(fake_server(source), env={"KEY": "1"}) as client:
        assert client.call_tool("any", {}).text == f"1 kept {os.environ['PATH']}"


def test_a_server_that_dies_during_a_call_fails_that_call_by_name():
    """B086"""
    with Client(fake_server("next(requests()); sys.exit(1)")) as client:
        started = time.monotonic()
        with pytest.raises(ConnectionError, match="fatal_tool"):
            client.call_tool("fatal_tool", {}, timeout=60)
        assert time.monotonic() - started < 10


# Notebooks


def test_a_client_works_where_stderr_is_no_file(monkeypatch):
    """B092"""
    cell = io.StringIO()
    monkeypatch.setattr(sys, "stderr", cell)
    source = """
        sys.stderr.write("a word from the server\\n")
        for request in requests():
            say(request, "fine")
    """
    with Client(fake_server(source)) as client:
        assert client.call_tool("any", {}).text == "fine"
    assert "a word from the server" in cell.getvalue()


def test_a_client_works_inside_a_running_loop():
    """B093"""

    async def cell():
        with Client(TOOLS) as client:
            return client.call_tool("add", {"a": 2, "b": 40}).text

    assert asyncio.run(cell()) == "42"


def test_an_async_tool_works_inside_a_running_loop():
    """B093"""

    async def hi() -> str:
        await asyncio.sleep(0)
        return "hi"

    async def cell():
        server = serving(hi)
        with Client(server) as client:
            return client.call_tool("hi", {}).text, text_of(exchange(server, call("hi")))

    assert asyncio.run(cell()) == ("hi", "hi")


def test_a_server_over_http_inside_a_running_loop_says_what_to_do():
    """B093"""

    async def cell():
        run(Server("report"), ["--http", "0"])

    with pytest.raises(SystemExit, match=r"loop is running.*thread"):
        asyncio.run(cell())


# Learners


def test_a_server_on_a_terminal_explains_itself_in_one_line():
    """B096"""
    with on_a_terminal(TOOLS) as (server, type_in):
        explanation = server.stderr.readline().decode()
        assert [word for word in ("stdin", "client", "Ctrl+C") if word not in explanation] == []
        type_in(END_OF_INPUT)
        assert server.wait(10) == 0
        assert server.stderr.read() == b""


def test_a_generator_is_refused_or_read_to_its_end_and_never_returned():
    """B097"""

    def t():
        yield 1

    with pytest.raises(TypeError, match=r"yield|generator"):
        serving(t)


def test_a_method_named_like_a_tool_gets_a_hint():
    """B101"""
    reply = exchange(fixture, modern("add", {"a": 1}))
    assert reply["error"]["code"] == -32601
    assert "tools/call" in reply["error"]["message"]
    assert "add" in reply["error"]["message"]


def test_a_method_named_like_a_tool_gets_a_hint_without_metadata_too():
    """B101"""
    reply = exchange(fixture, legacy("add", {"a": 1}))
    assert "tools/call" in reply["error"]["message"] or "_meta" in reply["error"]["message"]
