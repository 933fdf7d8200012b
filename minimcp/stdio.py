"""The stdio binding for servers: lines in, lines out, and a wire that nothing else can touch.

It holds no rules of the protocol: it reads lines, gives them to `handle_line`, and writes what
comes back. Not LSP: there are no headers, a message is one line.

https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/stdio
"""

import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from .context import Peer, stderr, tell
from .server import Server

PATIENCE = 0.005  # seconds that one line may keep the leader before another one reads on
CROWD = 32  # threads that may wait for a client that does not read
GRACE = 0.5  # seconds that calls get to finish once stdin has ended
HELLO = "MCP stdio server: waiting for JSON on stdin; normally a client starts me. Ctrl+C to stop."
Log = Callable[[str, str], object]  # gets "received" or "sent", and the line

# ## A private wire
#
# A `print` in a tool, a child process, C code: all of them know descriptors 0 and 1. So the pipes
# are moved to other numbers, 0 becomes the null device, and 1 becomes stderr.


class Wire:  # ADR-0007
    """The two pipes to the client, out of everybody's reach."""

    def __init__(self, log: Log | None) -> None:
        null = os.open(os.devnull, os.O_RDWR)  # first: it takes the place of a closed stderr
        self.incoming, self.outgoing = os.fdopen(os.dup(0), "rb", closefd=False), os.dup(1)
        os.dup2(null, 0)
        os.dup2(2, 1)
        sys.stdout.flush()  # what was printed before goes to stderr too
        sys.stdout = sys.stderr = stderr()
        self.writing, self.log = threading.Lock(), log
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.let_go)

    def let_go(self) -> None:
        """In a child that a tool has forked there is no wire."""
        for descriptor in (self.incoming.fileno(), self.outgoing):
            os.dup2(0, descriptor)

    def read(self) -> str:
        """The next line; empty at the end. Bytes that are no UTF-8 are left to the parser."""
        line = self.incoming.readline().decode(errors="surrogateescape")
        if self.log and line:
            self.log("received", line)
        return line

    def write(self, line: str) -> None:
        """Send one line, whole, whatever other threads do."""
        if self.log:
            self.log("sent", line)
        data = line.encode() + b"\n"
        with self.writing:
            while data:
                data = data[os.write(self.outgoing, data) :]


# ## One leader
#
# One thread reads, answers and writes, so an ordinary call is never handed from thread to
# thread. The main thread watches: when for `PATIENCE` nobody was there to read, because a line
# takes that long, it appoints another thread. Whoever comes back from a call and finds that
# another one reads is not needed any more. So a slow tool holds nobody up, and a cancellation is
# always read.


class Loop:  # ADR-0007
    """The thread that reads, those that are still busy, and the watch over them."""

    def __init__(self, server: Server, wire: Wire) -> None:
        self.server, self.wire = server, wire
        self.peer = server.peer = Peer(self.say)
        self.reading, self.replying = threading.Lock(), threading.Lock()
        self.awake, self.ended = threading.Event(), False
        self.failure: BaseException | None = None
        self.threads: list[threading.Thread] = []
        self.appoint()

    def appoint(self) -> None:
        """Let one more thread read; if none can be had, who is busy reads on when it can."""
        self.threads = [*filter(threading.Thread.is_alive, self.threads)]
        if len(self.threads) > CROWD and self.wire.writing.locked():
            return
        thread = threading.Thread(target=self.lead, daemon=True)
        with suppress(RuntimeError):
            thread.start()
            self.threads.append(thread)

    def lead(self) -> None:
        """Read and answer line after line, until another thread reads or the input ends."""
        try:
            while not self.ended and self.reading.acquire(False):
                line = self.wire.read()
                self.ended = self.ended or not line
                self.reading.release()
                if not self.awake.is_set():
                    self.awake.set()
                if (reply := self.server.handle_line(line, self.peer)) is not None:
                    with self.replying:
                        self.say(reply)
        except BaseException as error:  # such as no memory for a line: nobody would read on
            self.failure, self.ended = error, True
            self.awake.set()

    def say(self, line: str) -> None:
        """Write one line; if the client is gone, nobody waits for anything any more."""
        try:
            self.wire.write(line)
        except OSError:
            self.peer.in_flight.clear()
            self.ended = True
            self.awake.set()

    def watch(self) -> None:
        """Sleep while somebody reads; look every few milliseconds while nobody does."""
        while not self.ended:
            if self.reading.locked():
                self.awake.wait()  # until a line was read
            self.awake.clear()
            time.sleep(PATIENCE)
            read = self.awake.is_set() or self.reading.locked()
            stuck = self.replying.locked()  # in a client that does not read what it asked for
            if not (read or stuck or self.ended):
                self.appoint()

    def drain(self, grace: float) -> None:
        """Give what was read before the end its time to be answered."""
        deadline = time.monotonic() + grace
        for thread in self.threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        with suppress(RuntimeError):  # no thread can be had
            last = threading.Thread(target=self.leave, daemon=True)
            last.start()
            last.join(GRACE)  # a client that does not read would hold us up for ever

    def leave(self) -> None:
        """End all subscriptions, and name what was not answered."""
        if self.server.listeners:
            from .listen import close

            close(self.server)
        for context in list(self.peer.in_flight.values()):
            if context.close():
                tell(f"no answer in time: {context.method}, id {context.id!r}")


def serve(server: Server, log: Log | None = None, grace: float = GRACE) -> None:
    """Serve one client on stdin and stdout until it closes them, SIGINT or SIGTERM.

    Returns at the end of input, after at most `grace` seconds, and half a second more if the client
    does not read; SIGINT ends the process quietly
    with 130, SIGTERM at once. `log(direction, line)` sees every message.
    """
    try:
        if not sys.stdin or not sys.stdout:
            sys.exit("cannot serve: stdin and stdout have to be open")
        if sys.stdin.isatty():
            print(HELLO, file=sys.stderr)
        loop = Loop(server, Wire(log))
        loop.watch()
        loop.drain(grace)
        if loop.failure:
            raise loop.failure
    except KeyboardInterrupt:
        sys.exit(130)
