"""MRTR: a tool asks back, forgets the call, and finds its answers in the next one."""

import gc
import json
import subprocess
import sys
import threading
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import pytest
from support import (
    MODERN,
    Stub,
    assert_error,
    assert_tool_error,
    complete,
    exchange,
    initialize,
    legacy,
    modern,
    server_file,
)
from support_http import serving

from minimcp import Client, Context, InputRequired, ProtocolError, Server, mrtr
from minimcp.context import Peer

FORM = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}
WHO = {"method": "elicitation/create", "params": FORM}
SAMPLE = {
    "method": "sampling/createMessage",
    "params": {
        "messages": [{"role": "user", "content": {"type": "text", "text": "?"}}],
        "maxTokens": 9,
    },
}
ROOTS = {"method": "roots/list", "params": {}}
ALL = {"elicitation": {}, "sampling": {}, "roots": {}}
ANSWER = {"action": "accept", "content": {"name": "Ada"}}
DONE = {"content": [{"type": "text", "text": "done"}]}
INFO = {"io.modelcontextprotocol/serverInfo": {"name": "demo", "version": "1.0.0"}}


def asking(requests=None, state=None):
    """A server whose tool `ask` asks until all keys are answered, and repeats what it knows."""
    server = Server("demo", version="1.0.0")
    server.seen = []

    @server.tool(input_schema={"type": "object"})
    def ask(context: Context, **arguments):
        server.seen.append((context.inputs, context.state))
        answered = (requests or {}).keys() <= context.inputs.keys()
        if answered and context.state == state:
            return "done"
        return InputRequired(requests, state=state)

    @server.tool
    def other(context: Context) -> str:
        return "done"

    return server


def call(server, id=1, capabilities=ALL, peer=None, name="ask", **params):
    """One `tools/call` with these further params, and the reply to it."""
    message = modern("tools/call", {"name": name, **params}, id, capabilities=capabilities)
    return exchange(server, message, peer)


def asked(requests=None, state=None, id=1):
    """The whole reply of a tool that asks back."""
    result = {"resultType": "input_required", "_meta": INFO}
    if requests is not None:
        result["inputRequests"] = requests
    if state is not None:
        result["requestState"] = state
    return {"jsonrpc": "2.0", "id": id, "result": result}


def state_of(reply):
    return reply["result"]["requestState"]


# -- the question


@pytest.mark.req("S-MRTR-01", "S-MRTR-03")
@pytest.mark.parametrize(
    "requests", [{"a": WHO}, {"a": SAMPLE}, {"a": ROOTS}, {"a": WHO, "b": WHO}]
)
def test_a_tool_asks_and_the_questions_travel_untouched(requests):
    assert call(asking(requests)) == asked(requests)


@pytest.mark.req("S-MRTR-01")
def test_a_state_may_come_with_the_questions_or_alone():
    reply = call(asking({"a": WHO}, "kept"))
    assert reply == asked({"a": WHO}, state_of(reply))
    reply = call(asking(None, "kept"))
    assert reply == asked(None, state_of(reply))


@pytest.mark.req("S-MRTR-01")
def test_asking_for_nothing_is_refused_where_it_is_written():
    with pytest.raises(ValueError, match="needs requests, a state, or both"):
        InputRequired()
    with pytest.raises(ValueError, match="needs requests, a state, or both"):
        InputRequired({})


@pytest.mark.req("S-MRTR-03")
@pytest.mark.parametrize(
    "request_",
    [{}, {"method": "tools/call"}, {"method": "ping"}, {**WHO, "id": 1}, {**WHO, "jsonrpc": "2.0"}],
)
def test_a_question_that_no_client_knows_is_refused_where_it_is_written(request_):
    with pytest.raises(ValueError, match=r"^a: .*elicitation/create.*roots/list"):
        InputRequired({"a": request_})


@pytest.mark.req("S-MRTR-02", "S-EXT-06")
@pytest.mark.parametrize("method, key", [("prompts/get", "name"), ("resources/read", "uri")])
def test_prompts_and_resources_may_ask_too(method, key):
    server = Server("demo", version="1.0.0")
    server.method(method)(lambda params, context: context.inputs or InputRequired({"a": WHO}))
    message = modern(method, {key: "x:x"}, capabilities=ALL)
    assert exchange(server, message) == asked({"a": WHO})


@pytest.mark.req("S-MRTR-02")
@pytest.mark.parametrize("method", ["prompts/list", "resources/list", "x/y"])
def test_no_other_method_can_ask(method):
    server = Server("demo", version="1.0.0")
    server.method(method)(lambda params, context: InputRequired({"a": WHO}))
    reply = exchange(server, modern(method, capabilities=ALL))
    assert_error(reply, -32600, "tools/call", "prompts/get", "resources/read")


@pytest.mark.req("S-MRTR-04", "S-MRTR-05", "S-META-06")
@pytest.mark.parametrize(
    "request_, capability", [(WHO, "elicitation"), (SAMPLE, "sampling"), (ROOTS, "roots")]
)
def test_nothing_is_asked_that_the_client_did_not_declare(request_, capability):
    server = asking({"a": request_})
    rest = {key: {} for key in ALL if key != capability}
    needed = {"requiredCapabilities": {capability: {}}}
    assert_error(call(server, capabilities=rest), -32021, capability, data=needed)
    assert call(server, capabilities={capability: {}}) == asked({"a": request_})


@pytest.mark.req("S-MRTR-05")
def test_over_http_it_is_a_bad_request():
    needed = {"requiredCapabilities": {"elicitation": {}}}
    with serving(asking({"a": WHO})) as site:
        refused = site.post(modern("tools/call", {"name": "ask"}, capabilities={"roots": {}}))
        assert refused.status == 400
        assert_error(refused.json, -32021, "elicitation", data=needed)
        fine = site.post(modern("tools/call", {"name": "ask"}, capabilities=ALL))
        assert (fine.status, fine.json) == (200, asked({"a": WHO}))


@pytest.mark.req("S-MRTR-04")
@pytest.mark.parametrize(
    "declared, mode, allowed",
    [
        ({}, None, True),
        ({}, "form", True),
        ({}, "url", False),
        ({"form": {}}, None, True),
        ({"form": {}}, "url", False),
        ({"url": {}}, "url", True),
        ({"url": {}}, None, False),
        ({"form": {}, "url": {}}, "url", True),
    ],
)
def test_a_mode_of_elicitation_must_be_declared_and_an_empty_one_means_forms(
    declared, mode, allowed
):
    url = {"message": "Go", "url": "https://example.com/", "elicitationId": "1"}
    params = url if mode == "url" else FORM
    question = {**WHO, "params": {**params, **({"mode": mode} if mode else {})}}
    reply = call(asking({"a": question}), capabilities={"elicitation": declared})
    if allowed:
        assert reply == asked({"a": question})
    else:
        needed = {"requiredCapabilities": {"elicitation": {mode or "form": {}}}}
        assert_error(reply, -32021, mode or "form", data=needed)


@pytest.mark.req("S-MRTR-18")
@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18"])
def test_an_older_client_gets_an_error_that_its_model_can_read(version):
    server, peer = asking({"a": WHO}), Peer()
    exchange(server, initialize(version, capabilities=ALL), peer)
    reply = exchange(server, legacy("tools/call", {"name": "ask", "arguments": {}}), peer)
    assert_tool_error(reply, "2026-07-28")


@pytest.mark.req("S-MRTR-18")
def test_an_older_client_that_wants_a_prompt_gets_an_error():
    server, peer = Server("demo", version="1.0.0"), Peer()
    server.method("prompts/get")(lambda params, context: InputRequired({"a": WHO}))
    exchange(server, initialize(capabilities=ALL), peer)
    assert_error(exchange(server, legacy("prompts/get", {"name": "x"}), peer), -32600, "2026-07-28")


# -- the answers


@pytest.mark.req("S-MRTR-17")
def test_a_tool_finds_the_answers_by_the_keys_of_its_questions():
    server = asking({"a": WHO})
    assert call(server, 2, inputResponses={"a": ANSWER}) == complete(DONE, 2)
    assert server.seen == [({"a": ANSWER}, None)]


@pytest.mark.req("S-MRTR-17")
def test_answers_without_the_state_that_a_tool_has_given_are_asked_for_again():
    server, peer = asking({"a": WHO}, "kept"), Peer()
    state = state_of(call(server, peer=peer))
    again = call(server, 2, peer=peer, inputResponses={"a": ANSWER})
    assert again == asked({"a": WHO}, state_of(again), id=2)
    assert server.seen[-1] == ({"a": ANSWER}, None)
    answers = {"inputResponses": {"a": ANSWER}, "requestState": state}
    assert call(server, 3, peer=peer, **answers) == complete(DONE, 3)


def test_without_a_retry_there_are_no_answers_and_no_state():
    server = asking({"a": WHO})
    call(server)
    assert server.seen == [({}, None)]


@pytest.mark.req("S-MRTR-11")
def test_missing_answers_are_asked_for_again():
    server = asking({"a": WHO, "b": SAMPLE})
    for partial in ({}, {"wrong": ANSWER}, {"a": ANSWER}):
        assert call(server, inputResponses=partial) == asked({"a": WHO, "b": SAMPLE})


@pytest.mark.req("S-MRTR-12")
def test_answers_that_nobody_asked_for_do_no_harm():
    server = asking({"a": WHO})
    answers = {"a": ANSWER, "zzz": {"anything": [1]}, "": {}}
    assert call(server, inputResponses=answers) == complete(DONE)


TOOLS = {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}


@pytest.mark.req("S-MRTR-04")
@pytest.mark.parametrize("more", [TOOLS, {"toolChoice": {"mode": "auto"}}, {**TOOLS, "tools": []}])
def test_a_model_is_offered_tools_only_if_the_client_declared_that(more):
    server = asking({"a": {**SAMPLE, "params": {**SAMPLE["params"], **more}}})
    needed = {"requiredCapabilities": {"sampling": {"tools": {}}}}
    refused = call(server, capabilities={"sampling": {}})
    assert_error(refused, -32021, "sampling.tools", data=needed)
    assert call(server, capabilities={"sampling": {"tools": {}}})["result"]["inputRequests"]


@pytest.mark.req("S-MRTR-04")
@pytest.mark.parametrize(
    "include, more, declared, lacking",
    [
        ("thisServer", {}, {}, "context"),
        ("allServers", {}, {"tools": {}}, "context"),
        ("allServers", TOOLS, {"context": {}}, "tools"),
        ("thisServer", {}, {"context": {}}, None),
        ("thisServer", TOOLS, {"tools": {}, "context": {}}, None),
        ("none", {}, {}, None),
    ],
)
def test_a_model_sees_what_servers_say_only_if_the_client_declared_that(
    include, more, declared, lacking
):
    params = {**SAMPLE["params"], **more, "includeContext": include}
    question = {**SAMPLE, "params": params}
    reply = call(asking({"a": question}), capabilities={"sampling": declared})
    if lacking is None:
        assert reply == asked({"a": question})
    else:
        needed = {"requiredCapabilities": {"sampling": {lacking: {}}}}
        assert_error(reply, -32021, f"sampling.{lacking}", data=needed)


SHAPED = [
    {"action": "decline"},
    {"role": "assistant", "content": {"type": "text", "text": "hm"}, "model": "m"},
    {"roots": [{"uri": "file:///x"}]},
    {"roots": []},
]
MISSHAPEN = [
    {"action": "no-such-action"},
    {"action": "accept", "content": "text"},
    {"roots": 5},
    {"roots": [5]},
    {"roots": [{}]},
]


@pytest.mark.req("S-MRTR-13")
@pytest.mark.parametrize("answer", SHAPED)
def test_what_has_the_shape_of_an_answer_is_taken(answer):
    server = asking({"a": WHO})
    assert call(server, inputResponses={"a": answer}) == complete(DONE)


@pytest.mark.req("S-MRTR-13")
@pytest.mark.parametrize(
    "broken",
    [None, [], "x", 5, True, {"a": 12345}, {"a": None}, {"a": []}]
    + [{"a": answer} for answer in MISSHAPEN],
)
def test_answers_of_a_wrong_form_are_refused(broken):
    server = asking({"a": WHO})
    assert_error(call(server, inputResponses=broken), -32602, "params.inputResponses")
    assert server.seen == []


def test_answers_stay_with_their_request():
    server, peer = asking({"a": WHO}), Peer()
    call(server, 1, peer=peer, inputResponses={"a": ANSWER})
    assert call(server, 2, peer=peer) == asked({"a": WHO}, id=2)


# -- the state


@pytest.mark.req("S-MRTR-15")
def test_any_number_of_rounds_each_with_a_state_of_its_own():
    server = Server("demo", version="1.0.0")

    @server.tool
    def count(context: Context) -> str:
        step = (context.state or 0) + 1
        return "done" if step > 3 else InputRequired({f"step{step}": WHO}, state=step)

    states, reply = [], call(server, name="count")
    while "requestState" in reply["result"]:
        states.append(state_of(reply))
        reply = call(server, name="count", requestState=states[-1])
    assert reply == complete(DONE)
    assert len(set(states)) == 3


@pytest.mark.parametrize("state", ["text", 0, False, [], {}, {"ä": [1, None, 2.5]}, "a.b\n\u2028"])
def test_every_json_value_comes_back_as_it_was(state):
    server = asking(None, state)
    reply = call(server, requestState=state_of(call(server)))
    assert server.seen[-1] == ({}, state)
    assert type(server.seen[-1][1]) is type(state)
    assert reply == complete(DONE)


@pytest.mark.req("S-MRTR-06")
def test_a_state_that_was_changed_is_refused_before_the_tool_runs():
    server = asking({"a": WHO}, {"amount": 100})
    state = state_of(call(server))
    server.seen.clear()
    text, code = state.rsplit(".", 1)
    forged = [
        state + "-TAMPERED",
        state[:-1],
        " " + state,
        state.upper(),
        state.replace("100", "999"),
        f"{text}.{code[:-1]}{'0' if code[-1] != '0' else '1'}",
        f"{text}.{code.upper()}",
        f"{text}.",
        text,
        f".{code}",
        "",
        ".",
        "é",
        "garbage",
    ]
    for one in forged:
        reply = call(server, requestState=one, inputResponses={"a": ANSWER})
        assert_error(reply, -32602, "params.requestState")
    assert server.seen == []
    assert call(server, requestState=state, inputResponses={"a": ANSWER}) == complete(DONE)


@pytest.mark.req("S-MRTR-06")
def test_a_changed_state_is_refused_even_if_the_tool_never_looks_at_it():
    reply = call(asking({"a": WHO}), name="other", requestState="garbage")
    assert_error(reply, -32602, "params.requestState")


@pytest.mark.req("S-MRTR-16")
@pytest.mark.parametrize("state", [5, None, True, [], {}])
def test_a_state_that_is_no_text_is_refused(state):
    assert_error(call(asking(None, "x"), requestState=state), -32602, "params.requestState")


@pytest.mark.req("S-MRTR-07")
def test_a_state_expires(monkeypatch):
    server = asking({"a": WHO}, "kept")
    state = state_of(call(server))
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + mrtr.TTL - 2)
    assert call(server, requestState=state, inputResponses={"a": ANSWER}) == complete(DONE)
    monkeypatch.setattr(time, "time", lambda: now + mrtr.TTL + 1)
    reply = call(server, requestState=state, inputResponses={"a": ANSWER})
    assert_error(reply, -32602, "params.requestState", "expired")


@pytest.mark.req("S-MRTR-08")
def test_a_state_fits_no_other_arguments_tool_or_method():
    server = asking({"a": WHO}, "kept")
    server.method("prompts/get")(lambda params, context: {"messages": []})
    state = state_of(call(server, arguments={"n": 1, "m": 2}))
    answers = {"inputResponses": {"a": ANSWER}, "requestState": state}
    assert_error(call(server, arguments={"n": 2, "m": 2}, **answers), -32602, "requestState")
    assert_error(call(server, **answers), -32602, "requestState")
    same = {"arguments": {"n": 1, "m": 2}, **answers}
    assert_error(call(server, name="other", **same), -32602, "requestState")
    other = modern("prompts/get", {"name": "ask", **same})
    assert_error(exchange(server, other), -32602, "requestState")
    assert call(server, arguments={"m": 2, "n": 1}, **answers) == complete(DONE)


@pytest.mark.req("S-MRTR-09")
def test_a_state_fits_nobody_else():
    server = asking({"a": WHO}, "kept")
    ada, bob = Peer(), Peer()
    ada.principal, bob.principal = "ada", "bob"
    answers = {"inputResponses": {"a": ANSWER}, "requestState": state_of(call(server, peer=ada))}
    for peer in (bob, Peer()):
        assert_error(call(server, peer=peer, **answers), -32602, "requestState")
    assert call(server, peer=ada, **answers) == complete(DONE)


ROUND = """
    import json, sys
    from minimcp import Context, InputRequired, Server
    server = Server("demo", version="1.0.0")

    @server.tool
    def ask(context: Context) -> str:
        if context.state is None:
            return InputRequired({"a": {"method": "roots/list", "params": {}}}, state="kept")
        return context.state

    print(server.handle_line(sys.stdin.read()))
"""


@pytest.mark.req("S-MRTR-14")
def test_another_process_with_the_same_key_finishes_the_call(tmp_path, monkeypatch):
    command = server_file(tmp_path, ROUND)

    def one_process(key, **params):
        monkeypatch.setenv("MINIMCP_KEY", key)
        message = json.dumps(modern("tools/call", {"name": "ask", **params}, capabilities=ALL))
        return json.loads(subprocess.check_output(command, input=message, text=True))

    state = state_of(one_process("secret"))
    reply = one_process("secret", requestState=state, inputResponses={"a": {"roots": []}})
    assert reply == complete({"content": [{"type": "text", "text": "kept"}]})
    assert_error(one_process("other", requestState=state), -32602, "params.requestState")
    assert_error(one_process("", requestState=state), -32602, "params.requestState")
    assert state_of(one_process("")) != state_of(one_process(""))


@pytest.mark.req("S-MRTR-19")
def test_a_round_that_nobody_continues_leaves_nothing_behind():
    server, peer = asking({"a": WHO}, "x" * 1000), Peer()

    def rounds(number):
        for _ in range(number):
            call(server, 1, peer=peer)
        server.seen.clear()
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    before, after = rounds(20), rounds(200)
    tracemalloc.stop()
    assert peer.in_flight == {}
    assert after - before < 50_000  # all states together are 200,000 bytes


def test_a_server_that_never_asks_does_not_pay_for_the_seal():
    line = json.dumps(modern("tools/call", {"name": "x"}))
    script = (
        "import sys\nfrom minimcp import Server\nserver = Server('demo')\n"
        f"server.tool(name='x')(lambda: 'x')\nprint(server.handle_line({line!r}))\n"
        "print([one for one in ('hmac', 'hashlib', 'minimcp.mrtr') if one in sys.modules])"
    )
    printed = subprocess.check_output([sys.executable, "-c", script], text=True)
    assert printed.splitlines()[-1] == "[]"
    assert "result" in json.loads(printed.splitlines()[0])


# -- the client


def answer(params):
    return ANSWER


@pytest.mark.req("C-MRTR-20", "C-MRTR-21")
def test_the_client_answers_all_questions_and_asks_again_with_a_new_id():
    server, seen = asking({"a": WHO, "b": WHO}, "kept"), []
    with Client(
        server, on_input={"elicitation/create": answer}, trace=lambda *m: seen.append(m)
    ) as c:
        assert c.call_tool("ask", {"n": 1}).text == "done"
    sent = [m for who, m in seen if who == "client" and m["method"] == "tools/call"]
    replies = [m for who, m in seen if who == "server" and "inputRequests" in m.get("result", {})]
    first, second = sent
    assert first["id"] != second["id"]
    own = {"inputResponses": {"a": ANSWER, "b": ANSWER}, "requestState": state_of(replies[0])}
    assert second["params"] == {**first["params"], **own}


@pytest.mark.req("C-MRTR-21")
def test_the_client_sends_no_state_that_it_did_not_get():
    server, seen = asking({"a": WHO}), []
    with Client(
        server, on_input={"elicitation/create": answer}, trace=lambda *m: seen.append(m)
    ) as c:
        assert c.call_tool("ask", {}).text == "done"
    sent = [m["params"] for who, m in seen if who == "client" and m["method"] == "tools/call"]
    assert [("inputResponses" in one, "requestState" in one) for one in sent] == [
        (False, False),
        (True, False),
    ]


def stub(tmp_path, *rounds):
    """A server that answers one call with these, `input_required` but for the last."""
    found = {"supportedVersions": [MODERN], "capabilities": {}, "ttlMs": 0, "cacheScope": "public"}
    asks = [{"result": {"resultType": "input_required", **one}} for one in rounds]
    table = {
        "server/discover": {"result": {"resultType": "complete", **found}},
        "tools/call": [*asks, {"result": {"resultType": "complete", "content": []}}],
    }
    return Stub(tmp_path, table)


def retries(server):
    """What the client added to its call in each retry."""
    with Client(server.command, on_input={"elicitation/create": answer}) as client:
        client.call_tool("t", {})
    first, *others = [m["params"] for m in server.received() if m["method"] == "tools/call"]
    return [{key: one[key] for key in one if key not in first} for one in others]


@pytest.mark.req("C-MRTR-21")
@pytest.mark.parametrize("state", ["", " ", " a\n\t", "größe\u0000", '{"a": 1}', "%20+/="])
def test_the_client_repeats_a_state_as_it_came(tmp_path, state):
    assert retries(stub(tmp_path, {"requestState": state})) == [{"requestState": state}]


@pytest.mark.req("C-MRTR-22")
def test_the_client_takes_nothing_from_one_round_into_the_next(tmp_path):
    rounds = [
        {"inputRequests": {"a": WHO}, "requestState": "one"},
        {"inputRequests": {"b": WHO}},
        {"requestState": "three"},
    ]
    assert retries(stub(tmp_path, *rounds)) == [
        {"inputResponses": {"a": ANSWER}, "requestState": "one"},
        {"inputResponses": {"b": ANSWER}},
        {"requestState": "three"},
    ]


@pytest.mark.req("C-MRTR-22")
def test_calls_at_the_same_time_do_not_share_answers_or_states():
    server, together = Server("demo", version="1.0.0"), threading.Barrier(2)

    @server.tool
    def ask(name: str, context: Context) -> list:
        together.wait(30)
        if not context.inputs:
            return InputRequired({name: {**WHO, "params": {**FORM, "message": name}}}, state=name)
        return [name, context.inputs, context.state]

    def echo(params):
        return {"action": "accept", "content": {"name": params["message"]}}

    with (
        Client(server, on_input={"elicitation/create": echo}) as client,
        ThreadPoolExecutor() as pool,
    ):
        found = pool.map(lambda name: client.call_tool("ask", {"name": name}), "ab")
        for name, result in zip("ab", found, strict=True):
            own = {"action": "accept", "content": {"name": name}}
            assert result.structured == [name, {name: own}, name]


@pytest.mark.req("C-MRTR-22")
def test_the_client_uses_answers_and_state_for_that_one_retry_only():
    server, seen = asking({"a": WHO}, "kept"), []
    with Client(
        server, on_input={"elicitation/create": answer}, trace=lambda *m: seen.append(m)
    ) as c:
        for _ in range(2):
            assert c.call_tool("ask", {}).text == "done"
    sent = [m["params"] for who, m in seen if who == "client" and m["method"] == "tools/call"]
    assert ["requestState" in one for one in sent] == [False, True, False, True]


@pytest.mark.req("C-MRTR-22")
def test_the_client_brings_to_each_round_only_what_the_last_one_gave():
    server, seen = Server("demo", version="1.0.0"), []
    rounds = [InputRequired({"a": WHO}, "one"), InputRequired({"b": WHO}), InputRequired(None, "x")]

    @server.tool
    def ask():
        return rounds.pop(0) if rounds else "done"

    with Client(
        server, on_input={"elicitation/create": answer}, trace=lambda *m: seen.append(m)
    ) as c:
        assert c.call_tool("ask", {}).text == "done"
    sent = [m["params"] for who, m in seen if who == "client" and m["method"] == "tools/call"]
    brought = [({*one.get("inputResponses", ())}, "requestState" in one) for one in sent]
    assert brought == [(set(), False), ({"a"}, True), ({"b"}, False), (set(), True)]


@pytest.mark.req("C-MRTR-23")
def test_the_client_repeats_a_call_that_has_only_a_state():
    server = asking(None, "kept")
    with Client(server) as client:
        assert client.call_tool("ask", {}).text == "done"


@pytest.mark.req("C-MRTR-23")
def test_a_server_that_asks_without_end_is_left_after_a_bounded_number_of_rounds():
    server = Server("demo", version="1.0.0")
    calls = []

    @server.tool
    def ask(context: Context) -> str:
        calls.append(context.state)
        return InputRequired(state=len(calls))

    with Client(server) as client, pytest.raises(ConnectionError, match="without end"):
        client.call_tool("ask", {})
    assert 1 < len(calls) <= 100


@pytest.mark.req("C-MRTR-24")
def test_a_client_without_an_answer_does_not_declare_it_and_tells_its_caller():
    client = Client(asking({"a": WHO}), on_input={"roots/list": answer})
    with client, pytest.raises(ProtocolError, match="elicitation") as caught:
        client.call_tool("ask", {})
    assert caught.value.code == -32021


@pytest.mark.req("C-MRTR-24")
def test_a_question_that_does_not_exist_cannot_be_declared():
    with pytest.raises(ValueError, match="'elicitation' is none of elicitation/create") as caught:
        Client(asking({"a": WHO}), on_input={"roots/list": answer, "elicitation": answer})
    assert "sampling/createMessage, roots/list" in str(caught.value)


@pytest.mark.req("C-MRTR-24")
def test_a_question_that_was_never_declared_is_an_error_to_the_caller():
    server = Server("demo", version="1.0.0")

    @server.method("prompts/get")
    def rude(params, context):
        return {"resultType": "input_required", "inputRequests": {"a": SAMPLE}}

    with Client(server) as client, pytest.raises(ProtocolError, match="sampling/createMessage"):
        client.request("prompts/get", {"name": "x"})


@pytest.mark.req("C-MRTR-25")
def test_the_result_of_a_retry_is_not_kept():
    server, reads = Server("demo", version="1.0.0"), []

    @server.method("resources/read")
    def read(params, context):
        if "a" not in context.inputs:
            return InputRequired({"a": WHO})
        reads.append(params["uri"])
        return {"contents": [{"uri": params["uri"], "text": str(len(reads))}]}

    with Client(server, on_input={"elicitation/create": answer}) as client:
        texts = [client.request("resources/read", {"uri": "x:x"})["contents"] for _ in range(2)]
    assert [one["text"] for (one,) in texts] == ["1", "2"]
