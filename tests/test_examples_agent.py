"""examples/agent.py: a model is a function, and everything between it and servers is the host's."""

import io
import json
import os
import re
import socket
import subprocess
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from support import server_file
from support_examples import command, load, reached

from minimcp import Client, Content, ProtocolError, Server, ToolError


def shop(name):
    """A server with a tool that others have too, and one that only it has."""
    server = Server(name, instructions=f"I am {name}.")

    @server.tool
    def buy(count: int) -> str:
        """Buy something."""
        if count > 3:
            raise ToolError("only 3 are left")
        return f"{name} sold {count}"

    server.tool(lambda: name, name=f"{name}.only", description="Say who you are.")
    return server


class Working:
    """A host with two shops, a model that does a step at a time, and what that model saw."""

    def __init__(self, *steps, confirm=lambda *call: True, servers=None):
        self.agent = load("agent")
        self.confirm = confirm
        servers = servers or {"north": shop("north"), "south": shop("south")}
        self.host = self.agent.Host({k: Client(one) for k, one in servers.items()}, confirm)
        self.steps = iter(steps)
        self.messages, self.tools = [], []

    def model(self, messages, tools):
        self.messages, self.tools = messages, tools
        return next(self.steps)(messages[-1]["content"])

    def ask(self, task="task"):
        return self.host.ask(task, self.model)


def calling(name, arguments, ident="1"):
    function = {"name": name, "arguments": arguments}
    call = {"id": ident, "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def saying(text):
    return {"role": "assistant", "content": text}


def told(*calls, **options):
    """What the model is told after each of these calls."""
    steps = [lambda last, call=call: calling(*call) for call in calls]
    working = Working(*steps, lambda last: saying("done"), **options)
    assert working.ask() == "done"
    return [one["content"] for one in working.messages if one["role"] == "tool"]


# The loop


def test_the_model_reads_an_error_and_corrects_itself():
    """The whole conversation, message by message."""

    def correct(error):
        return calling("north__buy", json.dumps({"count": int(re.search(r"\d", error)[0])}), "2")

    working = Working(
        lambda task: calling("north__buy", '{"count": 5}', "1"),
        correct,
        lambda sold: saying(f"Well: {sold}."),
    )
    assert working.ask("Buy five.") == "Well: north sold 3."
    briefing = (
        "When a tool fails, read why, and try another way or say so.\n"
        "north says: I am north.\nsouth says: I am south."
    )
    assert working.messages == [
        {"role": "system", "content": briefing},
        {"role": "user", "content": "Buy five."},
        calling("north__buy", '{"count": 5}', "1"),
        {"role": "tool", "tool_call_id": "1", "content": "Error: only 3 are left"},
        calling("north__buy", '{"count": 3}', "2"),
        {"role": "tool", "tool_call_id": "2", "content": "north sold 3"},
        saying("Well: north sold 3."),
    ]


def test_a_model_that_never_stops_is_stopped():
    working = Working(*[lambda last: calling("north_only", "{}")] * 100)
    assert working.ask() == f"stopped: no answer after {working.agent.ROUNDS} rounds"
    made = [one for one in working.messages if one["role"] == "tool"]
    assert len(made) == working.agent.ROUNDS


def test_several_calls_in_one_answer_are_all_made_and_answered_by_their_ids():
    both = calling("north_only", "{}", "a")
    both["tool_calls"] += calling("south_only", "", "b")["tool_calls"]
    working = Working(lambda task: both, lambda last: saying("done"))
    assert working.ask() == "done"
    assert working.messages[3:5] == [
        {"role": "tool", "tool_call_id": "a", "content": "north"},
        {"role": "tool", "tool_call_id": "b", "content": "south"},
    ]


# Names


def test_only_names_that_collide_get_the_name_of_their_server_in_front():
    working = Working(lambda task: saying("done"))
    working.ask()
    shown = {tool["name"]: tool["description"] for tool in working.tools}
    assert shown == {
        "north__buy": "Buy something. (server: north)",
        "north_only": "Say who you are. (server: north)",
        "south__buy": "Buy something. (server: south)",
        "south_only": "Say who you are. (server: south)",
    }
    assert working.tools[0]["parameters"]["required"] == ["count"]


def test_a_name_leads_to_the_server_that_it_names():
    found = told(("north__buy", '{"count": 1}'), ("south__buy", '{"count": 2}'))
    assert found == ["north sold 1", "south sold 2"]


def named(**servers):
    made = {}
    for home, names in servers.items():
        made[home] = Server(home)
        for name in names:
            made[home].tool(lambda home=home, name=name: f"{home} {name}", name=name)
    return made


@pytest.mark.parametrize(
    "servers",
    [
        {"a": ["x.y", "x_y"]},
        {"a": ["x"], "b": ["x"], "c": ["a__x", "b__x"]},
        {"a": ["n" * 128, "n" * 127 + "m"], "b": ["n" * 128]},
        {"a": ["x", "a__x"], "a__": ["x"]},
        {"long" * 30: ["x"], "long" * 29: ["x"]},
        {"Müller & Söhne": ["x"], "M_ller _ S_hne": ["x"]},
    ],
)
def test_every_tool_has_one_name_that_models_take_and_that_leads_to_it(servers):
    working = Working(servers=named(**servers))
    offers = working.host.offers()
    assert len(offers) == sum(len(names) for names in servers.values())
    for shown, (home, tool) in offers.items():
        assert re.fullmatch("[A-Za-z0-9_-]{1,64}", shown)
        assert working.host.run(offers, shown, "{}") == f"{home} {tool['name']}"


def test_tools_that_come_later_are_offered_in_the_next_round():
    server = Server("late", ttl_ms=0)

    @server.tool
    def grow() -> str:
        server.tool(lambda: "grown", name="fruit")
        return "ok"

    found = told(("grow", "{}"), ("fruit", "{}"), servers={"late": server})
    assert found == ["ok", "grown"]


# Consent


def test_nothing_is_called_without_consent_and_the_model_is_told():
    asked = []

    def confirm(*call):
        asked.append(call)
        return len(asked) > 1

    found = told(("north__buy", '{"count": 1}'), ("north__buy", '{"count": 2}'), confirm=confirm)
    refusal = "Error: the user does not allow this call; ask, or find another way"
    assert found == [refusal, "north sold 2"]
    assert asked == [("north", "buy", {"count": 1}), ("north", "buy", {"count": 2})]


def test_a_refused_call_never_reaches_its_server():
    sold = []
    server = Server("shop")
    server.tool(lambda: sold.append(1), name="sell")
    told(("sell", "{}"), confirm=lambda *call: False, servers={"shop": server})
    assert sold == []


@pytest.mark.parametrize(
    ("typed", "allowed"), [("y\n", True), ("n\n", False), ("\n", False), ("", False)]
)
def test_the_person_at_the_terminal_decides_and_nobody_there_means_no(
    typed, allowed, monkeypatch, capsys
):
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    assert load("agent").confirmed("shop", "sell\x1b[2J", {"to": "\u202e"}) is allowed
    assert capsys.readouterr().out == 'shop: sell\\x1b[2J {"to":"\\x202e"} [y/N] '


# What goes wrong


def broken():
    server = Server("broken")

    @server.tool
    def crash() -> str:
        raise ValueError("no such thing")

    @server.tool
    def refuse() -> str:
        raise ProtocolError(-32602, "a bad request")

    @server.tool
    def flood() -> str:
        return "x" * 100_000

    @server.tool
    def picture() -> Content:
        image = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
        return [{"type": "text", "text": "Look:"}, image]

    return {"broken": server}


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (("crash", "{}"), "Error: ValueError: no such thing"),
        (("refuse", "{}"), "Error: a bad request (-32602)"),
        (("none", "{}"), "Error: there is no tool 'none'; there are crash, refuse, flood, picture"),
        (("crash", '{"a": 1}'), "Error: crash cannot take these arguments:\narguments.a: unknown"),
        (("crash", '{"a"'), "Error: Parse error"),
        (("crash", "NaN"), "Error: Parse error"),
        (("crash", "[1]"), "Error: "),
        (("crash", {"a": 1}), "Error: Parse error"),
        (("picture", "{}"), "Look:\n[image]"),
        (("flood", "{}"), "x" * 20_000 + "… and more"),
    ],
)
def test_what_goes_wrong_is_told_to_the_model(call, text):
    (found,) = told(call, servers=broken())
    assert found.startswith(text)
    assert len(found) < 21_000


def test_a_slow_tool_is_given_up_and_the_work_goes_on():
    release = threading.Event()
    server = Server("slow")
    server.tool(lambda: release.wait(20) and "late", name="wait")
    server.tool(lambda: "here", name="quick")
    working = Working(
        lambda task: calling("wait", "{}"),
        lambda last: calling("quick", "{}"),
        lambda last: saying(last),
        servers={"slow": server},
    )
    working.agent.PATIENCE = 0.1
    assert working.ask() == "here"
    assert working.messages[3]["content"].startswith("Error: tools/call wait: no answer in 0.1 s")
    release.set()


def test_a_server_that_dies_takes_nobody_with_it(tmp_path):
    source = """
        import os
        from minimcp import Server, run
        server = Server("weak", ttl_ms=0)
        server.tool(lambda: os._exit(3), name="die")
        run(server)
    """
    weak = server_file(tmp_path, source)
    found = told(("die", "{}"), ("north_only", "{}"), servers={"weak": weak, "n": shop("north")})
    assert found[0].startswith("Error: ")
    assert "exit code 3" in found[0]
    assert found[1] == "north"


def test_a_server_that_cannot_list_its_tools_is_left_out_and_the_person_is_told(capsys):
    lame = Server("lame")

    @lame.method("tools/list")
    def list_tools(params, context):
        raise ProtocolError(-32603, "out of order")

    assert told(("north_only", "{}"), servers={"lame": lame, "n": shop("north")}) == ["north"]
    assert "lame is left out: out of order (-32603)\n" in capsys.readouterr().err


# A model behind an endpoint, and a stand-in for it


class Endpoint(BaseHTTPRequestHandler):
    """Answers with what the table says, one after the other, and records what it was sent."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.seen.append((self.path, dict(self.headers), json.loads(body)))
        status, answer, more = self.server.answers.pop(0)
        data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(data)), **more}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *arguments):
        """Stay quiet."""


@contextmanager
def endpoint(*answers):
    """A stand-in; an answer is a message of the model, or status, body and headers."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    server.daemon_threads = True
    server.seen, server.answers = [], []
    for answer in answers:
        whole = (
            (200, {"choices": [{"message": answer}]}, {}) if isinstance(answer, dict) else answer
        )
        server.answers.append(whole)
    server.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def remote(url):
    """The model behind this endpoint, as if the environment said so."""
    agent = load("agent")
    agent.URL, agent.KEY, agent.NAME = url, "sesame", "parrot"
    return agent.remote


def test_a_model_behind_an_endpoint_gets_messages_and_tools_and_its_calls_are_made():
    first = {**calling("north__buy", '{"count": 2}', "x7"), "refusal": None, "annotations": []}
    with endpoint(first, saying("Two of them.")) as server:
        assert Working().host.ask("Buy two.", remote(server.url)) == "Two of them."
    (path, headers, one), (_, _, two) = server.seen
    assert path == "/v1/chat/completions"
    assert headers["Authorization"] == "Bearer sesame"
    assert headers["Content-Type"] == "application/json"
    assert one["model"] == "parrot"
    assert [message["role"] for message in one["messages"]] == ["system", "user"]
    assert [tool["type"] for tool in one["tools"]] == ["function"] * 4
    assert one["tools"][0]["function"]["name"] == "north__buy"
    assert two["messages"][2:] == [
        calling("north__buy", '{"count": 2}', "x7"),
        {"role": "tool", "tool_call_id": "x7", "content": "north sold 2"},
    ]


def test_of_too_many_calls_at_once_only_the_first_are_made():
    many = calling("north_only", "{}")
    many["tool_calls"] *= 50
    with endpoint(many) as server:
        answer = remote(server.url)([], [])
    assert len(answer["tool_calls"]) == load("agent").AT_ONCE


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ((401, b"wrong key", {}), "401: wrong key"),
        ((429, b"slow down", {}), "429: slow down"),
        ((200, b"<html>", {}), "no help"),
        ((200, b"\xff", {}), "no help"),
        ((200, {}, {}), "no help"),
        ((200, {"choices": []}, {}), "no help"),
        ((200, {"choices": [{"message": None}]}, {}), "no help"),
        ((200, {"choices": [{"message": {"tool_calls": [{}]}}]}, {}), "no help"),
        ((200, {"choices": [{"message": {"tool_calls": "many"}}]}, {}), "no help"),
        ((200, b"{", {"Content-Length": "5000"}), "no help"),
    ],
)
def test_an_endpoint_that_is_no_help_is_one_kind_of_error(answer, text):
    with endpoint(answer) as server, pytest.raises(ConnectionError, match=text) as raised:
        remote(server.url)([saying("hi")], [])
    assert "sesame" not in str(raised.value)


def test_an_endpoint_that_is_not_there_is_the_same_kind_of_error():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}/v1"
        with pytest.raises(ConnectionError, match="no help"):
            remote(url)([], [])


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_the_key_does_not_follow_a_redirect(status):
    with endpoint(saying("stolen")) as other:
        answer = (status, b"", {"Location": other.url})
        with endpoint(answer) as server, pytest.raises(ConnectionError, match=str(status)):
            remote(server.url)([], [])
    assert other.seen == []


# The command line


def run(*arguments, text="", **env):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("OPENAI_")}
    start = command("agent", *arguments)
    return subprocess.run(
        start, input=text, capture_output=True, text=True, timeout=60, env={**clean, **env}
    )


PROMPT = re.compile(r"(\w+: \w+ \{.*?\}) \[y/N\] ")


def test_without_a_key_a_scripted_model_corrects_itself_after_a_refusal():
    done = run(text="y\n" * 3)
    calls = [
        "east list_shows {}",
        'east book {"show":"jaws-17:30","ages":[41,9]}',
        'east book {"show":"general-15:00","ages":[41,9]}',
    ]
    assert [line for line in done.stderr.splitlines() if not line.startswith(" ")] == calls
    assert PROMPT.findall(done.stdout) == [call.replace(" ", ": ", 1) for call in calls]
    refusal = "  Error: Jaws is rated 12, and 9 is too young; everybody may see general-15:00"
    assert refusal in done.stderr.splitlines()
    answer = PROMPT.sub("", done.stdout)
    assert answer.startswith("Jaws is not for children of 9, so I booked this: {")
    assert answer.endswith('"total_cents":975}\n')
    assert done.returncode == 0


@pytest.mark.parametrize(("text", "shown"), [("y\nn\n", ["east list_shows {}"]), ("", [])])
def test_without_consent_nothing_is_booked(text, shown):
    done = run(text=text)
    assert PROMPT.sub("", done.stdout) == (
        "I could not book anything. "
        "Error: the user does not allow this call; ask, or find another way\n"
    )
    assert [line for line in done.stderr.splitlines() if line.startswith("east")] == shown


def test_with_a_key_a_real_model_works_with_the_servers_in_a_file(tmp_path):
    with reached(command("movies"), "http") as url:
        start = command("movies")
        servers = {"one": {"command": start[0], "args": start[1:], "env": {"X": "1"}}}
        servers["two"] = {"type": "http", "url": url}
        file = tmp_path / "servers.json"
        file.write_text(json.dumps({"mcpServers": servers}))
        steps = (calling("two__check_age", '{"show": "jaws-17:30", "age": 12}'), saying("Yes."))
        with endpoint(*steps) as server:
            env = {"OPENAI_BASE_URL": f"{server.url}/", "OPENAI_MODEL": "parrot"}
            key = {"OPENAI_API_KEY": "sesame\n"}
            done = run("--servers", file, "May I see Jaws?", text="y\n", **env, **key)
    asked = 'two: check_age {"show":"jaws-17:30","age":12} [y/N] '
    assert (done.stdout, done.returncode) == (f"{asked}Yes.\n", 0)
    (path, headers, first), (_, _, second) = server.seen
    assert (path, headers["Authorization"]) == ("/v1/chat/completions", "Bearer sesame")
    assert first["model"] == "parrot"
    assert first["messages"][1]["content"] == "May I see Jaws?"
    assert {tool["function"]["name"].split("__")[0] for tool in first["tools"]} == {"one", "two"}
    assert second["messages"][-1]["content"] == "Jaws is rated 12: at 12, welcome."


LEVELS = "ValueError: no 'command' and no 'url' but ['a']; one level too many?"


@pytest.mark.parametrize(
    ("servers", "complaint"),
    [
        (None, "FileNotFoundError: "),
        ("{", "ProtocolError: Parse error"),
        ("{}", "KeyError: 'mcpServers'"),
        ('{"mcpServers": []}', "AttributeError: "),
        ('{"mcpServers": {"a": {"command": "no\\u001bthing"}}}', "ConnectionError: cannot start"),
        ('{"mcpServers": {"a": {"url": "nowhere"}}}', "ConnectionError: 'nowhere' is no address"),
        ('{"mcpServers": {"mcpServers": {"a": {"command": "x"}}}}', LEVELS),
    ],
)
def test_a_list_of_servers_that_is_none_is_refused_in_one_line(tmp_path, servers, complaint):
    """B100: with one level too many, the error did not say so."""
    file = tmp_path / "servers.json"
    if servers is not None:
        file.write_text(servers)
    done = run("--servers", file)
    assert (done.stdout, done.returncode) == ("", 1)
    [line] = done.stderr.splitlines()
    assert line.startswith(complaint)
    assert line.isprintable()


def test_an_endpoint_that_refuses_the_key_ends_the_work_in_one_line():
    with endpoint((401, b"wrong \x1b[31mkey", {})) as server:
        done = run(OPENAI_API_KEY="sesame", OPENAI_BASE_URL=server.url)
    assert (done.stdout, done.returncode) == ("", 1)
    [line] = done.stderr.splitlines()
    assert "401: wrong" in line
    assert "sesame" not in line
    assert line.isprintable()
