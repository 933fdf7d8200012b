"""examples/tasks.py: the tasks extension on the extension point. The official scenarios are in
`test_conformance.py`; here stand the promises that they do not look at."""

import threading

import pytest
from support import legacy, modern, until
from support_examples import load
from wire import WireError, check_reply

from minimcp.context import Peer
from minimcp.protocol import NAMED, dumps, loads

TASKS = "io.modelcontextprotocol/tasks"
KNOWS = {"extensions": {TASKS: {}}, "elicitation": {}}
MISSING = {"requiredCapabilities": {"extensions": {TASKS: {}}}}


@pytest.fixture
def example():
    before = dict(NAMED)
    yield load("tasks")
    NAMED.clear()
    NAMED.update(before)


def ask(example, method, params, knows=KNOWS, peer=None):
    """What the server answers to a modern request."""
    message = dumps(modern(method, params, capabilities=knows))
    return loads(example.server.handle_line(message, peer))


def call(example, name, knows=KNOWS, peer=None, **arguments):
    return ask(example, "tools/call", {"name": name, "arguments": arguments}, knows, peer)


def status(example, ident):
    return ask(example, "tasks/get", {"taskId": ident})["result"]


def begin(example, name, **arguments):
    """Begin a task; its id."""
    result = call(example, name, **arguments)["result"]
    assert (result["resultType"], result["status"]) == ("task", "working")
    return result["taskId"]


def settle(example, ident, wanted):
    """The task once it has this status."""
    until(lambda: status(example, ident)["status"] == wanted)
    return status(example, ident)


def error(code, data=None):
    """A pattern for an error reply: compared by code and data, not by its words."""
    return {"code": code, "data": data}


def told(reply):
    return {"code": reply["error"]["code"], "data": reply["error"].get("data")}


def test_a_task_ends_with_just_what_the_call_would_have_returned(example):
    at_once = call(example, "slow_compute", knows={}, seconds=0, label="sum")["result"]
    later = settle(example, begin(example, "slow_compute", seconds=0, label="sum"), "completed")
    assert later["result"] == at_once
    assert at_once["content"] == [{"type": "text", "text": "sum took 0 s"}]


@pytest.mark.parametrize("knows", [{}, {"extensions": {}}, {"extensions": 5}, {"extensions": None}])
def test_who_does_not_know_tasks_never_gets_one(example, knows):
    assert call(example, "slow_compute", knows, seconds=0)["result"]["resultType"] == "complete"
    assert told(call(example, "failing_job", knows)) == error(-32021, MISSING)
    assert told(call(example, "protocol_error_job", knows)) == error(-32603)
    asking = call(example, "confirm_delete", knows, filename="x")["result"]
    assert asking["isError"] is True and "only in a task" in asking["content"][0]["text"]
    assert example.tasks == {}
    for method in ("tasks/get", "tasks/update", "tasks/cancel"):
        assert told(ask(example, method, {"taskId": "x"}, knows)) == error(-32021, MISSING)


def test_a_legacy_client_gets_results_and_knows_no_such_methods(example):
    peer = Peer()
    hello = {"protocolVersion": "2025-11-25", "capabilities": KNOWS}
    hello["clientInfo"] = {"name": "old", "version": "1"}
    answer = lambda message: loads(example.server.handle_line(dumps(message), peer))  # noqa: E731
    answer(legacy("initialize", hello))
    params = {"name": "slow_compute", "arguments": {"seconds": 0}}
    assert answer(legacy("tools/call", params))["result"]["content"][0]["text"] == "it took 0 s"
    assert answer(legacy("tasks/get", {"taskId": "x"}))["error"]["code"] == -32601


def test_a_cancelled_task_stops_working_and_stays_cancelled(example):
    ident = begin(example, "slow_compute", seconds=600)
    threads = threading.active_count()
    assert "error" not in ask(example, "tasks/cancel", {"taskId": ident})
    assert status(example, ident)["status"] == "cancelled"
    until(lambda: threading.active_count() < threads)
    example.tasks[ident].complete({"content": []})
    assert status(example, ident)["status"] == "cancelled"


def test_cancelling_what_has_ended_changes_nothing(example):
    ident = begin(example, "slow_compute", seconds=0)
    ended = settle(example, ident, "completed")
    ask(example, "tasks/cancel", {"taskId": ident})
    assert status(example, ident) == ended


@pytest.mark.parametrize("confirm, outcome", [(True, "deleted"), (False, "kept"), (1, "kept")])
def test_a_question_in_a_task_is_asked_and_answered_once(example, confirm, outcome):
    ident = begin(example, "confirm_delete", filename="a.txt")
    (key,) = settle(example, ident, "input_required")["inputRequests"]
    yes = {"action": "accept", "content": {"confirm": confirm}}
    strange = {"taskId": ident, "inputResponses": {"never-asked": yes}}
    assert ask(example, "tasks/update", strange)["result"]["resultType"] == "complete"
    assert status(example, ident)["status"] == "input_required"
    ask(example, "tasks/update", {"taskId": ident, "inputResponses": {key: yes}})
    ended = settle(example, ident, "completed")
    assert ended["result"]["content"][0]["text"] == f"a.txt {outcome}"
    ask(example, "tasks/update", {"taskId": ident, "inputResponses": {key: {}}})
    assert status(example, ident) == ended


def test_an_unexpected_error_completes_the_task_with_an_error_result(example, capfd):
    @example.server.tool
    def broken() -> object:
        return example.Background(lambda task: 1 / 0)

    ended = settle(example, begin(example, "broken"), "completed")
    assert ended["result"]["isError"] is True
    assert "ZeroDivisionError" in ended["result"]["content"][0]["text"]
    assert "Traceback" in capfd.readouterr().err


@pytest.mark.parametrize("params", [{}, {"taskId": 5}, {"taskId": None}, {"taskId": "unknown"}])
@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
def test_a_task_that_is_not_there_is_an_error_that_names_the_member(example, method, params):
    reply = ask(example, method, {"inputResponses": {}, **params})
    assert told(reply) == error(-32602)
    assert "params.taskId" in reply["error"]["message"]


@pytest.mark.parametrize("given", [None, [], {"key": "no object"}])
def test_answers_that_are_none_are_refused(example, given):
    ident = begin(example, "confirm_delete", filename="x")
    settle(example, ident, "input_required")
    reply = ask(example, "tasks/update", {"taskId": ident, "inputResponses": given})
    assert told(reply) == error(-32602)
    ask(example, "tasks/cancel", {"taskId": ident})


def test_nobody_can_guess_a_task_or_see_that_of_somebody_else(example):
    alice, bob = Peer(), Peer()
    alice.principal, bob.principal = "alice", "bob"
    ident = call(example, "slow_compute", peer=alice, seconds=0)["result"]["taskId"]
    assert len(ident) >= 40
    assert "result" in ask(example, "tasks/get", {"taskId": ident}, peer=alice)
    assert told(ask(example, "tasks/get", {"taskId": ident}, peer=bob)) == error(-32602)


def test_a_task_is_kept_for_its_time_and_then_forgotten(example):
    ident = begin(example, "slow_compute", seconds=600)
    example.tasks[ident].created -= example.TTL - 60
    begin(example, "slow_compute", seconds=0)
    assert status(example, ident)["status"] == "working"
    example.tasks[ident].created -= 120
    old = example.tasks[ident]
    begin(example, "slow_compute", seconds=0)
    assert told(ask(example, "tasks/get", {"taskId": ident})) == error(-32602)
    assert old.status == "cancelled"


def test_there_is_an_end_to_the_number_of_tasks(example):
    example.LIMIT = 3
    idents = [begin(example, "slow_compute", seconds=600) for _ in range(3)]
    assert told(call(example, "slow_compute", seconds=600)) == error(-32603)
    for ident in idents:
        ask(example, "tasks/cancel", {"taskId": ident})


def test_who_does_not_know_tasks_cannot_listen_to_them(example):
    wanted = {"notifications": {"taskIds": ["x"]}}
    assert told(ask(example, "subscriptions/listen", wanted, knows={})) == error(-32021, MISSING)


TASK = {"taskId": "t", "createdAt": "2026-01-01T00:00:00Z", "ttlMs": None, "status": "working"}
TASK |= {"lastUpdatedAt": "2026-01-01T00:00:00Z", "resultType": "complete"}
RESULT = {"content": [], "resultType": "complete"}


@pytest.mark.parametrize(
    "change",
    [
        {"status": "waiting"},
        {"status": "completed"},
        {"status": "completed", "result": {"content": "none"}},
        {"result": RESULT},
        {"status": "failed", "error": {"code": "x", "message": ""}},
        {"status": "input_required", "inputRequests": {"a": {"method": "ping"}}},
        {"requestState": "x"},
        {"ttlMs": 0.5},
        {"ttl": 5},
        {"resultType": "task"},
    ],
)
def test_the_oracle_knows_what_a_task_may_look_like(change):
    request = modern("tasks/get", {"taskId": "t"}, capabilities=KNOWS)
    reply = {"jsonrpc": "2.0", "id": 1, "result": TASK}
    check_reply(request, reply, "2026-07-28")
    with pytest.raises(WireError):
        check_reply(request, {**reply, "result": {**TASK, **change}}, "2026-07-28")
