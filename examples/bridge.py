"""A server that asks older clients directly, for tools that return `InputRequired`.

    from bridge import BridgeServer
    server = BridgeServer("demo")

A newer client gets the questions as a result and calls again. Older revisions know the opposite:
the server sends requests of its own while the call is running, and the client answers them. This
server does that when the caller is old, so the same tool serves both. A call that waits for an
answer keeps its thread, and an answer must reach the process that asked: it is for a server of
one process. Over HTTP there is no session to remember what a client can do, so it is just asked.
"""

import uuid
from collections.abc import Callable
from queue import Empty, Queue
from typing import Any

from minimcp import Context, InputRequired, Server, ToolError
from minimcp.mrtr import demand
from minimcp.protocol import Message, dumps
from minimcp.tools import error_result

PATIENCE = 120  # seconds; the client may have to ask a person
ROUNDS = 10  # as often may one call ask
Waiting = dict[str, "Queue[Message]"]  # the questions that are out, by id


class BridgeServer(Server):
    """A `Server` whose tools may return `InputRequired` to clients of every revision."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.waiting: Waiting = {}
        super().__init__(*arguments, **options)

    def handle(self, message: Any, peer: Any) -> Message | None:
        """Take what answers a question of ours; all else goes its ordinary way."""
        if isinstance(message, dict) and message.get("method") == "notifications/initialized":
            peer.ready = True
        elif isinstance(message, dict) and "method" not in message:
            box = self.waiting.pop(str(message.get("id")), None)
            if box:
                box.put(message)
        return super().handle(message, peer)

    def method(self, name: str, **options: Any) -> Callable[[Any], Any]:
        """Register a handler; the one that calls tools gets the bridge in front of it."""
        register = super().method(name, **options)
        if name != "tools/call":
            return register
        return lambda handler: register(bridged(handler, self.waiting))


def bridged(call: Callable[..., Any], waiting: Waiting) -> Callable[..., Any]:
    """The handler of `tools/call`, asking older clients for what the tool needs."""

    def call_tool(params: Any, context: Context) -> Any:
        result = call(params, context)
        for _ in range(ROUNDS):
            if context.modern or not isinstance(result, InputRequired):
                break
            try:
                questions = result.requests.items()
                context.inputs = {key: ask(context, one, waiting) for key, one in questions}
            except ToolError as error:
                return error_result(str(error))
            context.state = result.state
            result = call(params, context)
        return result

    return call_tool


def ask(context: Context, question: Message, waiting: Waiting) -> Any:
    """Send one request to the client and wait for what it answers."""
    if context.peer is context.server.peer:  # a connection that lasts, so it shook hands
        demand(context, question)
        if not hasattr(context.peer, "ready"):
            raise ToolError("a question has to wait for notifications/initialized; call again then")
    ident = uuid.uuid4().hex  # nobody else can guess it, so nobody else can answer
    box = waiting[ident] = Queue(1)
    context.peer.send(dumps({"jsonrpc": "2.0", "id": ident, **question}))
    try:
        return answer(box, context)
    finally:
        waiting.pop(ident, None)


def answer(box: "Queue[Message]", context: Context) -> Any:
    """The result that arrives; `ToolError` if it is an error, or does not come."""
    for _ in range(PATIENCE * 10):
        if context.cancelled:
            raise ToolError("nobody waits for this call any more")
        try:
            reply = box.get(timeout=0.1)
        except Empty:
            continue
        if "result" in reply:
            return reply["result"]
        raise ToolError(f"the client refused: {reply['error'].get('message')}")
    raise ToolError(f"the client did not answer in {PATIENCE} seconds")
