"""A client and a server in random conversations, against a model that says what each may see.

Calls that are held, finished, cancelled, raced and timed out; lists that change, with and without a
listener; deaths in the middle. Nothing sleeps: a held call says when it has begun, ends when it is
told to, and everything else is waited for.
"""

from __future__ import annotations

import json
import sys
import threading
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import pytest
import wire
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from support import PATIENCE, until

from minimcp import Client, ProtocolError
from minimcp.connection import Connection

SERVER = """
import threading

from minimcp import Context, Server, ToolError, run

server = Server("held", version="1.0.0", ttl_ms=3_600_000, page_size=3)
gates, contexts, ended = {}, {}, []


@server.tool
def hold(key: str, how: str, context: Context) -> str:
    gates[key], contexts[key] = threading.Event(), context
    context.progress(1, message=key)
    gates[key].wait(60)
    context.progress(2, message=key)
    ended.append(key)
    if how == "badly":
        raise ToolError(key)
    return key


@server.tool
def release(key: str) -> str:
    gates[key].set()
    return key


@server.tool
def state(key: str) -> str:
    if key not in contexts:
        return "unknown"
    return "ended" if key in ended else "cancelled" if contexts[key].cancelled else "held"


@server.tool
def in_flight(context: Context) -> list[int]:
    return list(context.peer.in_flight)


@server.tool
def double(number: int) -> int:
    return 2 * number


@server.tool
def offer(name: str) -> str:
    server.tool(lambda: name, name=name)
    return name


@server.tool
def withdraw(name: str) -> str:
    server.remove_tool(name)
    return name


if __name__ == "__main__":
    run(server)
"""
ALWAYS = ["hold", "release", "state", "in_flight", "double", "offer", "withdraw"]
NAMES = st.sampled_from(["a", "b", "c"])
CHANGED = "notifications/tools/list_changed"
LISTEN = {"notifications": {"toolsListChanged": True}}


class Call(NamedTuple):
    """One that is under way: a name of ours, the id of its request, and what will come of it."""

    key: str
    id: int
    outcome: Future[Any]
    how: str = "well"


class Model(RuleBasedStateMachine):
    """What is under way, what is offered, and what the client can know of that."""

    target: Any = None  # a command, or a server is made here
    era: Any = "modern"
    held = Bundle("held")
    over = Bundle("over")  # cancelled

    def __init__(self) -> None:
        super().__init__()
        self.space: dict[str, Any] = {"__name__": "held"}
        if self.target is None:
            exec(SERVER, self.space)
        self.talk, self.faults = wire.Conversation(), []
        self.replies: Counter[int] = Counter()
        self.began: dict[str, int] = {}
        self.late: list[str] = []  # what said something after it was over
        self.changes = self.calls = 0
        self.lock = threading.Lock()
        self.pool = ThreadPoolExecutor(40)
        self.client = Client(
            self.target or self.space["server"],
            era=self.era,
            on_notification=self.hear,
            trace=self.trace,
            timeout=60,
        )
        self.waiting: dict[str, Call] = {}  # held, or cancelled: nothing has come of it yet
        self.gone: set[str] = set()  # of those, the cancelled ones
        self.unsure: list[Call] = []  # cancelled and finished at the same time
        self.listening: Call | None = None
        self.tools, self.kept = list(ALWAYS), None

    # -- what comes, on other threads

    def trace(self, who: str, message: Any) -> None:
        with self.lock:
            try:
                if who == "client":
                    self.talk.asked(message)
                else:
                    self.talk.answered(json.dumps(message))
                    self.replies[message.get("id")] += "method" not in message
            except Exception as problem:
                self.faults.append(problem)

    def hear(self, method: str, params: Any) -> None:
        if method == "notifications/progress" and params["progress"] == 1:
            self.began[params["message"]] = params["progressToken"]
        elif method == "notifications/progress" and params["message"] in self.gone:
            self.late.append(params["message"])
        elif method == "notifications/subscriptions/acknowledged":
            self.began["listen"] = params["_meta"]["io.modelcontextprotocol/subscriptionId"]
        elif method == CHANGED:
            self.changes += 1

    # -- asking

    def use(self, tool: str, **arguments: Any) -> str:
        result = self.client.call_tool(tool, arguments)
        assert not result.is_error, result
        return result.text

    def is_now(self, key: str, *states: str) -> None:
        until(lambda: self.use("state", key=key) in states, what=f"for {key} to be {states}")

    def a_key(self) -> str:
        self.calls += 1
        return f"call {self.calls}"

    @property
    def is_a_child(self) -> bool:
        return self.target is not None

    # -- calls

    @rule(target=held, how=st.sampled_from(["well", "badly"]))
    def begin(self, how: str) -> Call:
        key = self.a_key()
        outcome = self.pool.submit(self.client.call_tool, "hold", {"key": key, "how": how})
        until(lambda: key in self.began or outcome.done(), what="for the call to begin")
        call = Call(key, self.began[key], outcome, how)
        self.waiting[key] = call
        return call

    @rule(call=consumes(held))
    def finish(self, call: Call) -> None:
        if call.key in self.waiting:  # it may have died with its server
            self.use("release", key=call.key)
            self.came_right(call)
            del self.waiting[call.key]

    def came_right(self, call: Call) -> None:
        result = call.outcome.result(PATIENCE)
        assert (result.text, result.is_error) == (call.key, call.how == "badly")

    @rule(target=over, call=consumes(held))
    def cancel(self, call: Call) -> Call:
        if call.key in self.waiting:
            self.gone.add(call.key)
            self.client.notify("notifications/cancelled", {"requestId": call.id})
            self.is_now(call.key, "cancelled")
        return call

    @rule(call=consumes(over))
    def finish_what_was_cancelled(self, call: Call) -> None:
        """It comes to its end, and nobody hears of that."""
        if call.key in self.waiting:
            self.use("release", key=call.key)
            self.is_now(call.key, "ended")
            assert not call.outcome.done()

    @rule(call=consumes(held))
    def cancel_and_finish_at_once(self, call: Call) -> None:
        """Either is right, but not half of each."""
        if call.key in self.waiting:
            asked = {"requestId": call.id}
            cancelling = self.pool.submit(self.client.notify, "notifications/cancelled", asked)
            self.use("release", key=call.key)
            cancelling.result(PATIENCE)
            self.is_now(call.key, "ended")
            self.unsure.append(self.waiting.pop(call.key))

    @rule()
    def time_out(self) -> None:
        """Nobody waits; the call is cancelled, or has not even begun; its end goes unheard."""
        key = self.a_key()
        with pytest.raises(TimeoutError):
            self.client.call_tool("hold", {"key": key, "how": "well"}, timeout=0)
        # in the same process, each request is a thread, and may be overtaken
        self.is_now(key, "cancelled", *([] if self.is_a_child else ["held"]))
        self.use("release", key=key)
        self.is_now(key, "ended")

    @rule(numbers=st.lists(st.integers(-99, 99), min_size=1, max_size=6))
    def ask_at_once(self, numbers: list[int]) -> None:
        """Everybody gets the answer to his own question."""
        texts = self.pool.map(lambda number: self.use("double", number=number), numbers)
        assert list(texts) == [str(2 * number) for number in numbers]

    @rule()
    def ask_wrongly(self) -> None:
        with pytest.raises(ProtocolError) as raised:
            self.client.call_tool("nothing", {})
        assert raised.value.code == -32602
        assert self.client.call_tool("double", {"number": "x"}).is_error

    # -- lists

    @rule(name=NAMES)
    def change_the_list(self, name: str) -> None:
        before, offered = self.changes, name not in self.tools
        self.use("offer" if offered else "withdraw", name=name)
        (self.tools.append if offered else self.tools.remove)(name)
        if self.listening or (self.era == "legacy" and self.is_a_child):
            until(lambda: self.changes > before, what="to hear of the change")
            self.kept = None
        else:
            assert self.changes == before

    @rule()
    def list_tools(self) -> None:
        """All of them; or, if a modern server said that the list keeps and nobody listens, then."""
        if self.kept is None or self.era == "legacy":
            self.kept = list(self.tools)
        assert [tool["name"] for tool in self.client.list_tools()] == self.kept

    @precondition(lambda self: self.era == "modern" and not self.listening)
    @rule()
    def listen(self) -> None:
        self.began.pop("listen", None)
        outcome = self.pool.submit(self.client.request, "subscriptions/listen", LISTEN, 60)
        until(lambda: "listen" in self.began or outcome.done(), what="for the acknowledgement")
        self.listening = Call("listen", self.began["listen"], outcome)

    @precondition(lambda self: self.listening)
    @rule()
    def listen_no_more(self) -> None:
        found = self.listening
        self.client.notify("notifications/cancelled", {"requestId": found.id})
        until(lambda: str(found.id) not in self.use("in_flight"), what="for the end of listening")
        assert not found.outcome.done()
        self.unsure.append(found)
        self.listening = None

    # -- deaths

    @rule()
    def die(self) -> None:
        """Everybody who waits is told; the next request finds a new connection."""
        if self.is_a_child:
            self.client.connection.wire.process.kill()
            self.tools = list(ALWAYS)
        else:
            self.client.connection.receive(None)
        lost = [*self.waiting.values(), *([self.listening] if self.listening else [])]
        for call in lost:
            assert isinstance(call.outcome.exception(PATIENCE), ConnectionError)
        until(lambda: self.client.connection.lost, what="to notice the death")
        self.waiting, self.listening, self.kept = {}, None, None
        self.use("double", number=1)

    # -- always

    @invariant()
    def what_was_said_is_allowed(self) -> None:
        assert self.faults == []
        assert [id for id, number in self.replies.items() if number > 1] == []
        assert self.late == []

    @invariant()
    def nobody_waits_in_vain(self) -> None:
        waits = {call.id for call in self.waiting.values()}
        waits |= {self.listening.id} if self.listening else set()
        perhaps = {call.id for call in self.unsure}
        assert waits <= set(self.client.connection.waiting) <= waits | perhaps
        assert not any(self.replies[call.id] for call in self.waiting.values())

    def teardown(self) -> None:
        waiting, gates = list(self.waiting.values()), self.space.get("gates", {})
        try:
            for call in waiting:
                self.use("release", key=call.key)
                self.is_now(call.key, "ended")
                if call.key not in self.gone:
                    self.came_right(call)
            self.client.close()
            lost = [call for call in waiting if call.key in self.gone]
            for call in [*lost, *([self.listening] if self.listening else [])]:
                assert isinstance(call.outcome.exception(PATIENCE), ConnectionError)
            for call in self.unsure:
                if call.outcome.exception(PATIENCE) is None:
                    self.came_right(call)
            self.what_was_said_is_allowed()
            assert self.client.connection.waiting == {}
        finally:
            self.client.close()
            for gate in list(gates.values()):
                gate.set()
            self.pool.shutdown()


SETTINGS = {"deadline": None, "database": None, "phases": [Phase.generate]}
QUIET = list(HealthCheck)


def explore(era: str, command: list[str] | None, examples: int, steps: int) -> None:
    class Machine(Model):
        pass

    Machine.era, Machine.target = era, command
    how = settings(
        **SETTINGS, max_examples=examples, stateful_step_count=steps, suppress_health_check=QUIET
    )
    run_state_machine_as_test(Machine, settings=how)


@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_client_and_server_in_one_process_do_what_the_model_says(era):
    explore(era, None, examples=20, steps=30)


@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_client_and_child_process_do_what_the_model_says(tmp_path, era):
    (tmp_path / "held.py").write_text(SERVER, encoding="utf-8")
    explore(era, [sys.executable, str(tmp_path / "held.py")], examples=10, steps=30)


class Deaf:
    """The wire to a server that never says anything."""

    def open(self, receive: Any) -> None: ...
    def send(self, message: Any, timeout: Any) -> None: ...


def test_a_time_out_however_short_comes_to_an_end():
    """Found by the model: a `SimpleQueue` whose time is over as it begins to wait may not end."""
    connection, ended = Connection(Deaf(), print, print, None), threading.Event()
    timed_out = []

    def ask() -> None:
        for number in range(3000):
            try:
                connection.ask({"id": number, "method": "x"}, (0, 1e-6, -1)[number % 3])
            except TimeoutError:
                timed_out.append(number)

    def be_busy() -> None:
        while not ended.is_set():
            sum(range(100))

    threads = [threading.Thread(target=one, daemon=True) for one in (ask, be_busy, be_busy)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        threads[0].join(PATIENCE)
    finally:
        sys.setswitchinterval(interval)
        ended.set()
    assert timed_out == list(range(3000))
