"""The stdio wire of a client: a child process and its three pipes.

Nothing the child does can hold the client up: one thread writes to it, one reads what it says,
one drains its stderr (and keeps the last lines), and one waits for its end.

https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/stdio
"""

import os
import signal
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from queue import Full, Queue
from subprocess import PIPE, Popen, TimeoutExpired
from threading import Thread, current_thread
from typing import Any

from .context import Peer, tell
from .protocol import Message, dumps
from .server import Server

BACKLOG = 16  # messages that wait to be read by the server
POLITE, FIRM = 2.0, 1.0  # seconds to end after stdin was closed, and after SIGTERM


class Child:
    """A server as a child process; `receive` gets each line it prints, and `None` at the end."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str] | None = None) -> None:
        self.command, self.env = list(command), {**os.environ, **(env or {})}
        self.last_words: deque[str] = deque(maxlen=20)
        self.outbox: Queue[bytes | None] = Queue(BACKLOG)
        self.threads: list[Thread] = []
        self.given_up = ""

    def open(self, receive: Callable[[str | None], None]) -> None:
        """Start the process; `ConnectionError` if there is no such command."""
        self.receive, command, env = receive, self.command, self.env
        try:
            self.process: Any = Popen(
                command, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=env, start_new_session=True
            )
        except (OSError, ValueError, IndexError) as error:
            text = f"cannot start {command}: {error}; is it on the PATH?"
            raise ConnectionError(text) from None
        jobs = (self._drain, self._read, self._write, self._wait)  # each joins earlier ones only
        self.lines = 0
        self.threads = [Thread(target=job, daemon=True) for job in jobs]
        for thread in self.threads:
            thread.start()

    def send(self, message: Message, timeout: float | None) -> None:
        """Hand a message to the writing thread; `TimeoutError` if the server does not read.

        What has no timeout, since nothing is waited for, is given up after a moment.
        """
        if timeout is not None and current_thread() in self.threads:
            raise RuntimeError("a callback must not wait for the server; ask from another thread")
        try:
            seconds = FIRM if timeout is None else max(timeout, 0)
            self.outbox.put(dumps(message).encode() + b"\n", timeout=seconds)
        except Full:
            if timeout is not None:
                raise TimeoutError(
                    f"no answer in {timeout:g} s; the server reads nothing"
                ) from None

    def close(self) -> None:
        """Close its stdin, wait, then SIGTERM, then SIGKILL; nothing is left behind."""
        with suppress(Full):
            self.outbox.put(None, timeout=0)
        waiting = self.threads[-1]
        self.given_up = ", after we had given up" if waiting.is_alive() else ""
        for seconds, name in ((POLITE, "SIGTERM"), (FIRM, "SIGKILL")):
            waiting.join(seconds)
            if waiting.is_alive():
                self._signal(name)
        for thread in self.threads:
            thread.join(FIRM)

    def obituary(self) -> str:
        """What is known about its end: exit code, and its last lines on stderr."""
        self.threads[0].join(FIRM)
        with suppress(TimeoutExpired):
            self.process.wait(FIRM)
        code = self.process.poll()
        end = "closed its output" if code is None else f"ended with exit code {code}{self.given_up}"
        return "\n  ".join([f"the server {self.command} {end}", *self.last_words])

    def _signal(self, name: str) -> None:
        """End the child and all that it started; Windows knows no groups and one way only."""
        with suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(self.process.pid, getattr(signal, name))
            else:
                self.process.kill()

    def _wait(self) -> None:
        self.process.wait()
        self._signal("SIGKILL")  # what it started and left behind holds our pipes
        lines = -1
        while lines != self.lines:  # as long as there is something to read
            lines = self.lines
            self.threads[1].join(FIRM)
        # what left even its group may hold our pipes for ever, so the end is told here too
        self.receive(None)

    def _drain(self) -> None:
        with self.process.stderr as pipe:
            for line in pipe:
                self.last_words.append(line.decode(errors="replace").rstrip())
                tell(self.last_words[-1])

    def _read(self) -> None:
        with self.process.stdout as pipe:
            for line in pipe:
                self.lines += 1
                self.receive(line.decode(errors="surrogateescape"))
        self.receive(None)

    def _write(self) -> None:
        with suppress(OSError), self.process.stdin as pipe:
            while (data := self.outbox.get()) is not None:
                pipe.write(data)
                pipe.flush()


class InProcess:
    """The wire to a server in the same process: every request is a thread."""

    def __init__(self, server: Server) -> None:
        self.server = server

    def open(self, receive: Callable[[str | None], None]) -> None:
        """Be the other end of the server."""
        self.receive, self.peer = receive, Peer(receive)

    def send(self, message: Message, timeout: float | None) -> None:
        """Let the server answer; a notification is served at once."""
        serve = Thread(target=self._serve, args=(dumps(message),), daemon=True)
        serve.start() if "id" in message else serve.run()

    def _serve(self, line: str) -> None:
        reply = self.server.handle_line(line, self.peer)
        if reply is not None:
            self.receive(reply)

    def close(self) -> None:
        """Nobody waits any more."""
        self.peer.in_flight.clear()

    def obituary(self) -> str:
        """There is not much to say."""
        return "the server in this process did not answer"
