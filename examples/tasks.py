"""Work that goes on after the answer: the tasks extension, `io.modelcontextprotocol/tasks`.

    python examples/tasks.py                 over stdio
    python examples/tasks.py --http 3000     over Streamable HTTP

A call that takes minutes should not hold a connection open. So the server may answer with a
*task*: a name under which the client asks later how the work is getting on (`tasks/get`), answers
questions that came up (`tasks/update`), or calls it off (`tasks/cancel`). It does so only if the
client declared that it knows tasks; for all others the call takes its time, or is refused.

The lesson: *an extension needs nothing that the package does not have*. Three methods, one
capability, and a result that knows who asked. The names of the tools are those that the official
conformance suite asks for. Left out: `notifications/tasks`, which a server may send besides.

https://github.com/modelcontextprotocol/ext-tasks
"""

import sys
import threading
import time
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from secrets import token_urlsafe
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))  # so that it runs from a clone, not installed

from minimcp import Context, InputRequired, ProtocolError, Server, ToolError, run
from minimcp.envelope import unexpected
from minimcp.eras import dress
from minimcp.protocol import INTERNAL_ERROR, INVALID_PARAMS, MISSING_CAPABILITY, NAMED, expect
from minimcp.tools import error_result

TASKS = "io.modelcontextprotocol/tasks"
TTL, POLL = 600, 0.5  # seconds: for how long a task is kept, and how often to ask for it
LIMIT = 1000  # tasks at once
OVER = ("completed", "failed", "cancelled")

server = Server("tasks", version="1.0.0", instructions="Some of these tools take their time.")
tasks: dict[str, "Task"] = {}

# ## A task
#
# It has one state, and two threads look at it: the one that does the work, and the one that
# serves whatever the client says meanwhile. A state that is over never changes again, so it does
# not matter which of them comes first: cancelling a task that has just ended does nothing.


class Cancelled(Exception):
    """Nobody wants the result any more."""


class Task:
    """Some work and how far it got; `work(task)` returns what a tool returns."""

    def __init__(self, work: Callable[["Task"], Any], context: Context) -> None:
        self.work, self.context = work, context
        self.id = token_urlsafe()  # who can name it may see it, so nobody can guess it
        self.created = self.updated = time.time()
        self.status, self.outcome = "working", dict[str, Any]()
        self.questions, self.answers = dict[str, Any](), dict[str, Any]()
        self.changed = threading.Condition()

    def become(self, status: str, **outcome: Any) -> None:
        """Take the next state, unless it is over."""
        with self.changed:
            if self.status not in OVER:
                self.status, self.outcome, self.updated = status, outcome, time.time()
            self.changed.notify_all()

    def state(self) -> dict[str, Any]:
        """What a client sees of it."""
        with self.changed:
            asks = self.status == "input_required"
            return {
                "taskId": self.id,
                "status": self.status,
                "createdAt": iso(self.created),
                "lastUpdatedAt": iso(self.updated),
                "ttlMs": TTL * 1000,
                "pollIntervalMs": int(POLL * 1000),
                **({"inputRequests": dict(self.questions)} if asks else {}),
                **self.outcome,
            }

    # What the work may do

    def wait(self, ready: Callable[[], bool], seconds: float | None = None) -> None:
        """Wait until something is so, or some seconds; `Cancelled` ends the work."""
        with self.changed:
            self.changed.wait_for(lambda: self.status in OVER or ready(), seconds)
            if self.status in OVER:
                raise Cancelled

    def ask(self, **requests: Any) -> dict[str, Any]:
        """Put questions to the client, by names of your choice; returns the answers."""
        if self.id not in tasks:
            raise ToolError("this has a question, and can ask it only in a task")
        keys = {name: f"{name}-{len(self.answers)}" for name in requests}  # none is used twice
        self.questions = {keys[name]: request for name, request in requests.items()}
        self.become("input_required")
        self.wait(lambda: not self.questions)
        return {name: self.answers[key] for name, key in keys.items()}

    # What happens to it

    def answer(self, given: dict[str, Any]) -> None:
        """Take answers to what was asked, and ignore others; the last one lets the work go on."""
        with self.changed:
            for key in given.keys() & self.questions.keys():
                self.answers[key] = given[key]
                del self.questions[key]
            if self.status == "input_required" and not self.questions:
                self.become("working")

    def run(self) -> None:
        """Do the work. A tool that failed has completed; only a protocol error is a failure."""
        tool = self.context.server.tools[self.context.params["name"]]
        try:
            self.complete(tool.result(self.work(self), modern=True))
        except Cancelled:
            self.become("cancelled")
        except ProtocolError as error:
            failure = error.reply(None, modern=True)["error"]
            self.become("failed", error=failure, statusMessage=error.message)
        except ToolError as error:
            self.complete(error_result(str(error)))
        except Exception as error:
            unexpected(error)
            self.complete(error_result(f"{type(error).__name__}: {error}"))

    def complete(self, result: dict[str, Any]) -> None:
        """Keep just what the call would have returned."""
        self.become("completed", result=dress(result, self.context))


def iso(seconds: float) -> str:
    """A moment as the wire has it."""
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="milliseconds")


# ## A result that knows who asked
#
# The package calls `as_result` of whatever a tool returned. Here is where it is decided: a task,
# the work done at once, or, if it cannot be done at once, an error that names what is missing.


class Background:
    """What a tool returns to go on in a task; `required`: not without one."""

    def __init__(self, work: Callable[[Task], Any], required: bool = False) -> None:
        self.work, self.required = work, required

    def as_result(self, context: Context) -> Any:
        """Begin the task, and answer with it; or do the work, and answer with its result."""
        task = Task(self.work, context)
        if knows_tasks(context):
            begun = keep(task)
            threading.Thread(target=task.run, daemon=True).start()
            return begun
        if self.required:
            raise missing()
        task.run()
        if task.status == "failed":
            raise ProtocolError(**{"data": None, **task.outcome["error"]})
        return task.outcome["result"]


def keep(task: Task) -> dict[str, Any]:
    """Enter a task in the list, so that it is found at once, and forget those that are too old."""
    for old in list(tasks.values()):
        if time.time() > old.created + TTL:
            old.become("cancelled")
            tasks.pop(old.id, None)
    if len(tasks) >= LIMIT:
        raise ProtocolError(INTERNAL_ERROR, "too many tasks; try again later")
    tasks[task.id] = task
    return {"resultType": "task", **task.state()}


def knows_tasks(context: Context) -> bool:
    """Whether this very request says that its sender knows tasks."""
    extensions = context.capabilities.get("extensions")
    return context.modern and isinstance(extensions, dict) and TASKS in extensions


def missing() -> ProtocolError:
    """The error that says which extension to declare."""
    data = {"requiredCapabilities": {"extensions": {TASKS: {}}}}
    return ProtocolError(MISSING_CAPABILITY, f"this needs the extension {TASKS}", data)


# ## The three methods
#
# Over HTTP their `Mcp-Name` header is the id, so that a proxy can lead all requests about a task to
# the process that has it.

NAMED.update(dict.fromkeys(("tasks/get", "tasks/update", "tasks/cancel"), "taskId"))
server.capabilities["extensions"] = {TASKS: {}}


def find(params: dict[str, Any], context: Context) -> Task:
    """The task that a request is about, if it exists and belongs to who asks."""
    if not knows_tasks(context):
        raise missing()
    task = tasks.get(expect(params, "taskId", str, "params"))
    if task is None or task.context.peer.principal != context.peer.principal:
        raise ProtocolError(INVALID_PARAMS, "params.taskId: no such task, or not any more")
    return task


@server.method("tasks/get", era="modern")
def get(params: dict[str, Any], context: Context) -> dict[str, Any]:
    """How is it getting on?"""
    return find(params, context).state()


@server.method("tasks/update", era="modern")
def update(params: dict[str, Any], context: Context) -> None:
    """Here are answers to what it asked."""
    find(params, context).answer(expect(params, "inputResponses", dict, "params"))


@server.method("tasks/cancel", era="modern")
def cancel(params: dict[str, Any], context: Context) -> None:
    """It is not needed any more."""
    find(params, context).become("cancelled")


listen_as_before = server.methods["modern"]["subscriptions/listen"]


@server.method("subscriptions/listen", era="modern")
def listen(params: dict[str, Any], context: Context) -> Any:
    """Nobody is told of tasks; and who does not know them must not ask to be."""
    wanted = params.get("notifications")
    if isinstance(wanted, dict) and "taskIds" in wanted and not knows_tasks(context):
        raise missing()
    return listen_as_before(params, context)


# ## Tools


def question(message: str, **properties: str) -> dict[str, Any]:
    """A request to fill in a form."""
    fields = {name: {"type": kind} for name, kind in properties.items()}
    schema = {"type": "object", "properties": fields, "required": [*fields]}
    params = {"mode": "form", "message": message, "requestedSchema": schema}
    return {"method": "elicitation/create", "params": params}


@server.tool
def greet(name: str) -> str:
    """Greet somebody, at once."""
    return f"Hello, {name}!"


@server.tool
def slow_compute(seconds: float, label: str = "") -> Any:
    """Compute for some seconds."""

    def work(task: Task) -> str:
        task.wait(lambda: False, seconds)
        return f"{label or 'it'} took {seconds:g} s"

    return Background(work)


@server.tool
def failing_job() -> Any:
    """Fail, after a second, in a way that the model can read."""

    def work(task: Task) -> str:
        task.wait(lambda: False, 1)
        raise ToolError("the job could not be done")

    return Background(work, required=True)


@server.tool
def protocol_error_job() -> Any:
    """Fail with a protocol error."""

    def work(task: Task) -> str:
        raise ProtocolError(INTERNAL_ERROR, "the job broke down")

    return Background(work)


@server.tool
def confirm_delete(filename: str) -> Any:
    """Delete a file (not really), if somebody confirms it."""

    def work(task: Task) -> str:
        answers = task.ask(sure=question(f"Delete {filename}?", confirm="boolean"))
        content = answers["sure"].get("content") or {}
        return f"{filename} {'deleted' if content.get('confirm') is True else 'kept'}"

    return Background(work)


@server.tool
def multi_input() -> Any:
    """Ask two questions at once."""

    def work(task: Task) -> str:
        answers = task.ask(one=question("First?", name="string"), two=question("Second?"))
        return f"{len(answers)} answers"

    return Background(work)


@server.tool
def test_tool_with_task(context: Context) -> Any:
    """Ask for a name first, and then go on in a task."""
    answer = context.inputs.get("user_name")
    if not answer:
        return InputRequired({"user_name": question("What is your name?", name="string")})
    name = (answer.get("content") or {}).get("name", "stranger")
    return Background(lambda task: f"Hello, {name}!", required=True)


if __name__ == "__main__":
    run(server)
