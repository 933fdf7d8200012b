"""EXT: what `@server.method` gives a handler for free, shown on `examples/everything.py`."""

import asyncio
import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from support import (
    LEGACY,
    Stdio,
    assert_error,
    assert_tool_error,
    complete,
    exchange,
    free_port,
    initialize,
    legacy,
    modern,
    notification,
    plain,
    until,
)
from support_http import Site

from minimcp import ProtocolError, Server
from minimcp.context import Peer

EVERYTHING = [sys.executable, str(Path(__file__).parent.parent / "examples" / "everything.py")]
HINTS = {"ttlMs": 60_000, "cacheScope": "public"}
NAME_X = {"Mcp-Name": "x"}
ID = "io.modelcontextprotocol/subscriptionId"


def with_prompts():
    server = Server("demo", version="1.0.0")

    @server.method("prompts/list", capability="prompts")
    def list_prompts(params, context):
        return {"prompts": [{"name": "one"}]}

    @server.method("prompts/get", capability="prompts")
    def get_prompt(params, context):
        if params.get("name") != "one":
            raise ProtocolError(-32602, "no such prompt", {"name": params.get("name")})
        return {"messages": []}

    return server


def shaken(server, version=LEGACY):
    peer = Peer()
    exchange(server, initialize(version), peer)
    return peer


# -- the rules of the protocol, for free


def test_a_handler_may_be_async_and_may_refuse():
    server = Server("demo", version="1.0.0")

    @server.method("demo/wait")
    async def wait(params, context):
        await asyncio.sleep(0)
        if "n" not in params:
            raise ProtocolError(-32602, "params.n: missing")
        return {"n": params["n"]}

    assert exchange(server, modern("demo/wait", {"n": 1}))["result"]["n"] == 1
    assert_error(exchange(server, modern("demo/wait")), -32602)


@pytest.mark.req("S-EXT-01")
def test_a_handler_is_routed_in_both_eras_and_its_result_dressed_for_each():
    server = with_prompts()
    listed = {"prompts": [{"name": "one"}]}
    assert exchange(server, modern("prompts/list")) == complete({**HINTS, **listed})
    assert exchange(server, legacy("prompts/list"), shaken(server)) == plain(listed)
    assert exchange(server, modern("prompts/get", {"name": "one"})) == complete({"messages": []})


@pytest.mark.req("S-EXT-01")
def test_an_error_of_a_handler_reaches_the_client_as_it_is():
    server = with_prompts()
    for reply in (
        exchange(server, modern("prompts/get", {"name": "x"})),
        exchange(server, legacy("prompts/get", {"name": "x"}), shaken(server)),
    ):
        assert_error(reply, -32602, "no such prompt", data={"name": "x"})


@pytest.mark.req("S-EXT-01")
def test_any_other_failure_of_a_handler_is_an_internal_error_without_details(capsys):
    server = Server("demo", version="1.0.0")
    server.method("prompts/list")(lambda params, context: 1 / 0)
    reply = exchange(server, modern("prompts/list"))
    assert_error(reply, -32603)
    assert "zero" not in reply["error"]["message"]
    assert "ZeroDivisionError" in capsys.readouterr().err


@pytest.mark.req("S-EXT-01")
@pytest.mark.parametrize(
    "message, code",
    [
        ({"jsonrpc": "1.0", "id": 1, "method": "prompts/list"}, -32600),
        (legacy("prompts/list"), -32602),
        (modern("prompts/list", meta={"io.modelcontextprotocol/protocolVersion": "v9"}), -32022),
        ({**modern("prompts/list"), "params": []}, -32602),
    ],
)
def test_the_rules_of_the_envelope_hold_before_a_handler_runs(message, code):
    server = with_prompts()
    server.method("prompts/list")(lambda params, context: pytest.fail("the handler ran"))
    assert exchange(server, message)["error"]["code"] == code


@pytest.mark.req("S-EXT-01", "S-EXT-03")
def test_a_handler_of_a_method_that_nobody_knows_is_as_good_as_any():
    server = Server("demo", version="1.0.0")
    server.method("x-weather/now", capability="x-weather")(lambda params, context: {"sun": True})
    assert exchange(server, modern("x-weather/now")) == complete({"sun": True})
    capabilities = exchange(server, modern("server/discover"))["result"]["capabilities"]
    assert capabilities == {"x-weather": {}}


@pytest.mark.req("S-EXT-03")
def test_a_handler_declares_its_capability_in_both_openings():
    server = with_prompts()
    discovered = exchange(server, modern("server/discover"))["result"]["capabilities"]
    assert discovered == {"prompts": {"listChanged": True}}
    assert exchange(server, initialize(), Peer())["result"]["capabilities"] == {"prompts": {}}


@pytest.mark.req("S-EXT-07")
def test_a_handler_may_be_for_one_era_alone():
    server = Server("demo", version="1.0.0")
    server.method("resources/subscribe", era="legacy")(lambda params, context: None)
    server.method("x/new", era="modern")(lambda params, context: None)
    peer = shaken(server)
    assert exchange(server, legacy("resources/subscribe"), peer) == plain({})
    assert_error(exchange(server, modern("resources/subscribe")), -32601, "resources/subscribe")
    assert exchange(server, modern("x/new")) == complete({})
    assert_error(exchange(server, legacy("x/new"), peer), -32601, "x/new")


@pytest.mark.req("S-EXT-07")
def test_a_method_may_have_a_handler_for_each_era():
    server = Server("demo", version="1.0.0")
    server.method("x/y", era="legacy")(lambda params, context: {"era": "legacy"})
    server.method("x/y", era="modern")(lambda params, context: {"era": "modern"})
    assert exchange(server, legacy("x/y"), shaken(server)) == plain({"era": "legacy"})
    assert exchange(server, modern("x/y")) == complete({"era": "modern"})


def test_a_method_without_a_name_is_refused_where_it_is_registered():
    server = Server("demo", version="1.0.0")
    with pytest.raises(TypeError, match="needs its name"):

        @server.method
        def prompts(params, context):
            return {}


# -- the example that extends the server


@pytest.fixture(scope="module")
def everything():
    """The example over stdio, in which modern and legacy requests share one connection."""
    with Stdio(EVERYTHING) as server:
        yield server
        server.close_stdin()
        assert server.wait() == 0
        assert server.stderr == ""


@pytest.mark.req("S-EXT-03", "S-LOG-05")
def test_the_example_declares_what_it_extends(everything):
    declared = everything.ask(modern("server/discover"))["result"]["capabilities"]
    assert declared == {
        "tools": {"listChanged": True},
        "prompts": {"listChanged": True},
        "resources": {"listChanged": True, "subscribe": True},
        "completions": {},
        "logging": {},
    }
    assert everything.ask(initialize())["result"]["capabilities"] == declared


@pytest.mark.req("S-EXT-01")
@pytest.mark.parametrize(
    "method, params, key",
    [
        ("resources/list", {}, "resources"),
        ("resources/templates/list", {}, "resourceTemplates"),
        ("resources/read", {"uri": "test://static-text"}, "contents"),
        ("resources/read", {"uri": "test://static-binary"}, "contents"),
        ("resources/read", {"uri": "test://template/a b/data"}, "contents"),
        ("prompts/list", {}, "prompts"),
        ("prompts/get", {"name": "test_simple_prompt"}, "messages"),
        (
            "completion/complete",
            {
                "ref": {"type": "ref/prompt", "name": "test_prompt_with_arguments"},
                "argument": {"name": "arg1", "value": "par"},
            },
            "completion",
        ),
    ],
)
def test_the_example_answers_each_method_in_both_eras_alike(everything, method, params, key):
    everything.ask(initialize())
    new = everything.ask(modern(method, params))["result"]
    old = everything.ask(legacy(method, params))["result"]
    assert new[key] == old[key]
    assert new[key]


@pytest.mark.req("S-EXT-04")
def test_an_unknown_resource_is_an_error_that_names_it(everything):
    uri = "test://nowhere"
    reply = everything.ask(modern("resources/read", {"uri": uri}))
    assert_error(reply, -32602, uri, data={"uri": uri})


@pytest.mark.req("S-EXT-05")
def test_an_unknown_resource_has_another_code_in_older_revisions(everything):
    uri = "test://nowhere"
    everything.ask(initialize())
    reply = everything.ask(legacy("resources/read", {"uri": uri}))
    assert_error(reply, -32002, uri, data={"uri": uri})


@pytest.mark.req("S-EXT-06")
def test_a_prompt_may_ask_the_user_first(everything):
    params = {"name": "test_input_required_result_prompt"}
    able = {"elicitation": {}}
    asked = everything.ask(modern("prompts/get", params, capabilities=able))["result"]
    (key,) = asked["inputRequests"]
    answers = {key: {"action": "accept", "content": {"context": "bees"}}}
    retry = {**params, "inputResponses": answers}
    done = everything.ask(modern("prompts/get", retry, 2, capabilities=able))["result"]
    assert "bees" in json.dumps(done["messages"])


@pytest.mark.req("S-LOG-07")
def test_an_older_client_sets_the_log_level(everything):
    everything.ask(initialize())
    level = {"level": "warning"}
    assert everything.ask(legacy("logging/setLevel", level)) == plain({})
    for wrong in ({}, {"level": "loud"}, {"level": None}, {"level": 5}):
        assert_error(everything.ask(legacy("logging/setLevel", wrong)), -32602, "level")
    assert_error(everything.ask(modern("logging/setLevel", level)), -32601)
    before = len(everything.received)
    everything.ask(legacy("tools/call", {"name": "test_tool_with_logging"}))
    assert len(everything.received) == before + 1
    everything.ask(legacy("logging/setLevel", {"level": "debug"}))
    before = len(everything.received)
    everything.ask(legacy("tools/call", {"name": "test_tool_with_logging"}))
    assert len(everything.received) == before + 4


@pytest.mark.req("S-LOG-08")
def test_an_older_client_that_sets_no_log_level_hears_from_info_on():
    with Stdio(EVERYTHING) as server:
        server.ask(initialize())
        server.ask(legacy("tools/call", {"name": "test_tool_with_logging"}))
        levels = [message["params"]["level"] for message in server.received[1:-1]]
        assert levels == ["info"] * 3


@pytest.mark.req("S-EXT-07", "S-SUB-17")
def test_both_kinds_of_client_can_watch_a_resource():
    uri = "test://watched-resource"
    change = modern("tools/call", {"name": "update_watched_resource"}, "change")
    with Stdio(EVERYTHING) as server:
        wish = {"notifications": {"resourceSubscriptions": [uri]}}
        server.send(modern("subscriptions/listen", wish, "new"))
        assert server.read()["params"]["notifications"] == wish["notifications"]
        server.ask(initialize())
        for _ in range(2):  # twice is no more than once
            assert server.ask(legacy("resources/subscribe", {"uri": uri})) == plain({})
        server.ask(change)
        told = [m["params"] for m in server.received if m.get("method", "").endswith("/updated")]
        assert told == [{"uri": uri, "_meta": {ID: "new"}}, {"uri": uri}]
        assert server.ask(legacy("resources/unsubscribe", {"uri": uri})) == plain({})
        server.ask(change)
        told = [m["params"] for m in server.received if m.get("method", "").endswith("/updated")]
        assert told[2:] == [{"uri": uri, "_meta": {ID: "new"}}]
        server.ask(legacy("resources/subscribe", {"uri": uri}))
        server.close_stdin()
        ends = server.read_all()
        assert [message.get("id") for message in ends] == [None, "new"]
        assert ends[0]["params"]["requestId"] == "new"


# -- asking older clients directly


@pytest.fixture
def bridge():
    with Stdio(EVERYTHING, check=False) as server:  # it sends requests, which is legacy alone
        yield server


def ask_user(bridge, id=5, **capabilities):
    """A call that needs the user, up to the question of the server."""
    bridge.ask(initialize(capabilities=capabilities))
    bridge.send(notification("notifications/initialized"))
    arguments = {"message": "Who are you?"}
    bridge.send(legacy("tools/call", {"name": "test_elicitation", "arguments": arguments}, id))
    return bridge.read()


@pytest.mark.req("S-MRTR-18")
def test_an_older_client_is_asked_while_its_call_runs(bridge):
    question = ask_user(bridge, elicitation={})
    assert question["method"] == "elicitation/create"
    assert question["params"]["message"] == "Who are you?"
    answer = {"action": "accept", "content": {"username": "ada", "email": "a@b"}}
    bridge.send({"jsonrpc": "2.0", "id": question["id"], "result": answer})
    text = f"User response: {json.dumps(answer)}"
    assert bridge.read() == plain({"content": [{"type": "text", "text": text}]}, 5)


@pytest.mark.req("S-MRTR-18")
def test_other_calls_go_on_while_an_older_client_is_asked(bridge):
    ask_user(bridge, elicitation={})
    reply = bridge.ask(legacy("tools/call", {"name": "test_simple_text"}, 6))
    assert reply["result"]["content"][0]["text"].startswith("This is")


@pytest.mark.req("S-MRTR-18")
def test_an_older_client_is_not_asked_for_what_it_did_not_declare(bridge):
    reply = ask_user(bridge, sampling={})
    assert reply["result"]["isError"] is True
    assert "elicitation" in reply["result"]["content"][0]["text"]


@pytest.mark.req("S-VER-15")
def test_an_older_client_is_not_asked_before_it_has_said_that_it_is_ready(bridge):
    bridge.ask(initialize(capabilities={"elicitation": {}}))
    early = legacy("tools/call", {"name": "test_elicitation", "arguments": {"message": "?"}})
    assert "notifications/initialized" in assert_tool_error(bridge.ask(early))


@pytest.mark.req("S-MRTR-18")
def test_an_older_client_that_refuses_gets_an_error_its_model_can_read(bridge):
    question = ask_user(bridge, elicitation={})
    error = {"code": -1, "message": "nobody is at home"}
    bridge.send({"jsonrpc": "2.0", "id": question["id"], "error": error})
    reply = bridge.read()
    assert reply["result"]["isError"] is True
    assert "nobody is at home" in reply["result"]["content"][0]["text"]


@pytest.mark.req("S-MRTR-18")
def test_an_answer_must_name_a_question_and_nobody_can_guess_its_id(bridge):
    question = ask_user(bridge, elicitation={})
    assert len(question["id"]) == 32
    for id in (1, 5, "1", None, "0" * 32, question["id"].upper() + "x"):
        bridge.send({"jsonrpc": "2.0", "id": id, "result": {"action": "accept"}})
    assert bridge.ask(legacy("ping", id="still there")) == plain({}, "still there")
    assert [message.get("id") for message in bridge.received[-1:]] == ["still there"]
    bridge.send({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}})
    assert "decline" in bridge.read()["result"]["content"][0]["text"]


@pytest.mark.req("S-MRTR-18")
def test_a_call_that_is_taken_back_stops_waiting_for_the_answer(bridge):
    ask_user(bridge, elicitation={})
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}}
    bridge.send(cancel)
    until(lambda: "cancelled" in bridge.stderr)
    bridge.close_stdin()
    assert bridge.read() is None
    assert bridge.wait() == 0
    assert "no answer in time" not in bridge.stderr


# -- over HTTP


@pytest.fixture(scope="module")
def site():
    """The example over HTTP, in a process of its own."""
    port = free_port()
    with subprocess.Popen([*EVERYTHING, "--http", str(port)], stderr=subprocess.DEVNULL) as server:
        try:
            until(lambda: accepts(port) or server.poll() is not None)
            yield Site(port, None)
        finally:
            server.kill()  # calls that nobody answers are still waiting in there


def accepts(port):
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


@pytest.mark.req("S-EXT-02")
@pytest.mark.parametrize(
    "method, params, key",
    [
        ("prompts/get", {"name": "test_simple_prompt"}, "messages"),
        ("resources/read", {"uri": "test://static-text"}, "contents"),
    ],
)
def test_what_a_handler_is_about_stands_in_a_header(site, method, params, key):
    message = modern(method, params)
    fine = site.post(message)
    assert (fine.status, key in fine.json["result"]) == (200, True)
    assert ("ttlMs" in fine.json["result"]) is (method == "resources/read")
    for wrong in (site.post(message, drop=["Mcp-Name"]), site.post(message, headers=NAME_X)):
        assert wrong.status == 400
        assert_error(wrong.json, -32020, "Mcp-Name")


@pytest.mark.req("S-EXT-02")
def test_a_list_has_no_name_and_needs_no_header_for_it(site):
    reply = site.post(modern("prompts/list"))
    assert (reply.status, reply.json["result"]["ttlMs"]) == (200, HINTS["ttlMs"])


@pytest.mark.req("S-LHTTP-14", "S-LHTTP-15", "S-LHTTP-12")
def test_an_older_client_is_asked_on_the_stream_of_its_call_and_answers_by_another_post(site):
    params = {"name": "test_elicitation", "arguments": {"message": "Who are you?"}}
    with site.stream(legacy("tools/call", params, 5), LEGACY) as stream:
        question = stream.begin().next()
        assert question["method"] == "elicitation/create"
        assert question["params"]["message"] == "Who are you?"
        for guess in (5, 1, "1", "0" * len(question["id"])):
            forged = {"jsonrpc": "2.0", "id": guess, "result": {"action": "accept"}}
            assert site.post(forged, LEGACY)[0::2] == (202, b"")
        answer = {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}}
        assert site.post(answer, LEGACY)[0::2] == (202, b"")
        text = 'User response: {"action": "decline"}'
        assert stream.next() == plain({"content": [{"type": "text", "text": text}]}, 5)
        assert stream.next() is None


@pytest.mark.req("S-LHTTP-15")
def test_no_two_questions_have_the_same_id(site):
    params = {"name": "test_elicitation", "arguments": {"message": "Who are you?"}}
    ids = set()
    for _ in range(5):
        with site.stream(legacy("tools/call", params), LEGACY) as stream:
            ids.add(stream.begin().next()["id"])
    assert len(ids) == 5
    assert {len(id) for id in ids} == {32}
