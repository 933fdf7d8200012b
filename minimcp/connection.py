"""One end of a connection that asks: requests go out, replies come back in any order.

This is JSON-RPC and nothing of MCP. It speaks over a *wire*: any object with `open(receive)`,
`send(message, timeout)`, `close()` and `obituary()` that calls `receive(line)` for each line that
comes, and `receive(None)` if it ends by itself. A child process, a server in the same process
and HTTP are three of them.

https://modelcontextprotocol.io/specification/2026-07-28/basic#messages
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from queue import Empty, Queue  # a SimpleQueue may wait for ever if its time is up at once
from threading import BoundedSemaphore, Thread
from typing import Any

from .context import tell
from .envelope import failure, unexpected
from .protocol import JSON, Message, ProtocolError, is_id, loads

# ## Whose reply is this?
#
# Replies come in any order, from a thread of the wire, and some never come. So each request
# leaves a mailbox under its id, and who sent it waits there. Whatever else the other end says is
# a notification, a request of its own, or no message at all, and none of these stops us.


AT_ONCE, SLOW = 32, 1.0  # questions of the other end; seconds until one more is not answered


class Connection:
    """Matches replies to requests.

    `hear` gets each notification; `answer` each request of the other end, if it is one that
    `answers`, and returns the result; `trace` the sender ("client", "server") and every message.
    """

    def __init__(
        self,
        wire: Any,
        hear: Callable[[Message], object],
        answer: Callable[[Message], JSON],
        trace: Callable[[str, Message], object] | None,
    ) -> None:
        self.wire, self.hear, self.answer, self.trace = wire, hear, answer, trace
        self.waiting: dict[Any, Queue[Message | str]] = {}  # a text: why there is no reply
        self.lost = ""  # why nobody is there any more
        self.answers = self.complained = False
        self.slots = BoundedSemaphore(AT_ONCE)
        wire.open(self.receive)

    # Asking

    def send(self, message: Message, timeout: float | None = None) -> None:
        """Send a message; nothing is waited for."""
        if self.trace is not None:
            self.trace("client", message)
        self.wire.send(message, timeout)

    def ask(self, request: Message, timeout: float) -> Message:
        """Send a request and wait for its reply, whatever that says.

        `TimeoutError` if none comes in `timeout` seconds, `ConnectionError` if none can come.
        """
        ident, replies = request["id"], Queue[Message | str]()
        self.waiting[ident] = replies
        try:
            if self.lost:
                self.lose(self.lost)
            else:
                self.send(request, timeout)
            reply = replies.get(timeout=max(timeout, 0))
        except Empty:
            raise TimeoutError(f"no answer in {timeout:g} s") from None
        finally:
            self.waiting.pop(ident, None)
        if isinstance(reply, str):
            raise ConnectionError(reply)
        return reply

    # Listening (on a thread of the wire)

    def receive(self, line: str | None) -> None:
        """Take one line from the wire, or `None` when no more will come."""
        if line is None:
            return self.lose(self.wire.obituary())
        try:
            message = loads(line)
            take = self._take if "method" in message else self._match
            message.keys()
        except (ProtocolError, TypeError, AttributeError) as error:
            return self._complain(line, error)
        if self.trace is not None:
            _call(self.trace, "server", message)
        return _call(take, message)

    def lose(self, reason: str) -> None:
        """Nobody is there any more: who waits need not."""
        self.lost = self.lost or reason
        while self.waiting:
            self.waiting.popitem()[1].put(self.lost)

    def _complain(self, line: str, error: Exception) -> None:
        with suppress(ValueError, RecursionError, AttributeError, TypeError):
            reply = json.loads(line)  # Python reads more than JSON, so somebody learns why
            if "method" not in reply:
                self._match({"id": reply.get("id")}, f"malformed reply: {error}")
        if line.strip() and not self.complained:
            self.complained = True
            tell(f"minimcp: skipped, not a message: {line[:200]!r}")

    def _match(self, reply: Message, instead: str = "") -> None:
        ident = reply.get("id")
        if ident is None and "error" in reply and len(self.waiting) == 1:
            ident = next(iter(self.waiting))  # it can only mean this one
        if is_id(ident) and (box := self.waiting.pop(ident, None)):
            box.put(instead or reply)

    def _take(self, message: Message) -> None:
        if "id" not in message:
            self.hear(message)
        elif self.answers and self.slots.acquire(timeout=SLOW):
            Thread(target=self._reply, args=(message,), daemon=True).start()

    def _reply(self, request: Message) -> None:
        try:
            result = self.answer(request)
            self.send({"jsonrpc": "2.0", "id": request["id"], "result": result})
        except Exception as error:
            self.send(failure(error, request["id"]))
        finally:
            self.slots.release()

    def close(self, reason: str) -> None:
        """End the connection. Always returns."""
        self.lose(reason)
        self.wire.close()


def _call(callback: Callable[..., object], *what: object) -> None:
    """A callback may fail; we go on listening."""
    try:
        callback(*what)
    except Exception as error:
        unexpected(error)


NONSENSE = (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError)


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Nonsense in a reply shows where it is used; here it gets a name."""
    try:
        yield
    except NONSENSE as error:
        raise ConnectionError(f"malformed reply to {what}: {error!r}") from None
