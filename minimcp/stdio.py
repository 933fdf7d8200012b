"""The stdio binding for servers: lines in, lines out, and a wire that nothing else can touch.

It holds no rules of the protocol: it reads lines, gives them to `handle_line`, and writes what
comes back. Not LSP: there are no headers, a message is one line.

https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/stdio
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from .context import Peer
from .server import Server

PATIENCE = 0.005  # seconds that one line may keep the leader before another one reads on
GRACE = 0.5  # seconds that calls get to finish once stdin has ended
HELLO = "MCP stdio server: waiting for JSON on stdin; normally a client starts me. Ctrl+C to stop."


# ## A private wire
#
# A `print` in a tool, a child process, C code: all of them know descriptors 0 and 1. So the pipes
# are moved to other numbers, 0 becomes the null device, and 1 becomes stderr.


class Wire:
    """The two pipes to the client, out of everybody's reach; `log` sees every line."""

    def __init__(self, log: Callable[[str, str], None] | None = None) -> None:
        self.incoming, self.outgoing = open(os.dup(0), "rb"), os.dup(1)
        os.dup2(os.open(os.devnull, os.O_RDWR), 0)
        os.dup2(2, 1)
        sys.stdout.flush()  # what was printed before goes to stderr too
        sys.stdout = sys.stderr
        self.lock = threading.Lock()
        self.log = log

    def read(self) -> str:
        """The next line; empty at the end. Bytes that are no UTF-8 are left for the parser."""
        line = self.incoming.readline().decode(errors="surrogateescape")
        if self.log:
            self.log("received", line)
        return line

    def write(self, line: str) -> None:
        """Send one line, whole, whatever other threads do."""
        data = memoryview(line.encode() + b"\n")
        if self.log:
            self.log("sent", line)
        with self.lock:
            while data:
                data = data[os.write(self.outgoing, data) :]


# ## One leader
#
# One thread reads, answers and writes, so an ordinary call is never handed from thread to
# thread. The main thread watches: when a line keeps the leader for longer than `PATIENCE`, it
# appoints another one. The old leader finishes its call and ends. So a slow tool holds nobody
# up, and a cancellation is always read.


class Leader(threading.Thread):
    """Serves line after line for as long as it leads."""

    def __init__(self, loop: "Loop") -> None:
        super().__init__(daemon=True)
        self.loop = loop
        self.line: str | None = None  # what it is busy with

    def run(self) -> None:
        while self.loop.leader is self:
            self.line = line = self.loop.wire.read()
            self.loop.wake()
            if not line or not self.loop.answer(line):
                return self.loop.end()
            self.line = None
        return None


class Loop:
    """The leader, the old ones that are still busy, and the watch over them."""

    def __init__(self, server: Server, wire: Wire) -> None:
        self.server, self.wire = server, wire
        self.peer = server.peer = Peer(wire.write)
        self.awake = threading.Event()
        self.ended = False
        self.threads: list[Leader] = []
        self.appoint()

    def appoint(self) -> None:
        """Let a new thread read on."""
        self.leader = Leader(self)
        self.threads = [*filter(Leader.is_alive, self.threads), self.leader]
        self.leader.start()

    def watch(self) -> None:
        """Sleep while nothing happens; look every few milliseconds while something does."""
        while not self.ended:
            leader, line = self.leader, self.leader.line
            if line is None:
                self.awake.clear()
                if leader.line is None:  # subtle: look again, or a wake-up could be lost
                    self.awake.wait()
            else:
                time.sleep(PATIENCE)
                if leader.line is line and not self.ended:
                    self.appoint()

    def wake(self) -> None:
        """Tell the main thread that there is something to watch."""
        if not self.awake.is_set():
            self.awake.set()

    def end(self) -> None:
        """Stop reading: the client closed its end, or is gone."""
        self.ended = True
        self.awake.set()
        if self.server.listeners:
            from .listen import close

            close(self.server)

    def answer(self, line: str) -> bool:
        """Serve one line; false when the client is gone."""
        reply = self.server.handle_line(line, self.peer)
        try:
            if reply is not None:
                self.wire.write(reply)
        except OSError:
            return False
        return True

    def drain(self, grace: float) -> None:
        """Give what was read before the end its time to be answered, and name what was not."""
        deadline = time.monotonic() + grace
        for thread in self.threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        for context in list(self.peer.in_flight.values()):
            print(f"no answer in time: {context.method}, id {context.id!r}", file=sys.stderr)
        self.peer.in_flight.clear()


# ## Running


def serve(
    server: Server, log: Callable[[str, str], None] | None = None, grace: float = GRACE
) -> None:
    """Serve one client on stdin and stdout until it closes them, SIGINT or SIGTERM.

    Returns at the end of input, after at most `grace` seconds; a signal ends the process with
    130 or 143. `log(direction, line)` sees every message.
    """
    try:
        signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
        if sys.stdin and sys.stdin.isatty():
            print(HELLO, file=sys.stderr)
        loop = Loop(server, Wire(log))
        loop.watch()
        loop.drain(grace)
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)


def run(server: Server, argv: list[str] | None = None) -> None:
    """Serve over stdio, or over HTTP with `--http [PORT]`; `--log FILE` or `--verbose` show all."""
    argv = sys.argv[1:] if argv is None else argv
    if not argv:
        return serve(server)
    options = _options(argv)
    if options.http is None:
        return serve(server, _logger(options))
    from .http import serve as serve_http

    return serve_http(server, port=options.http)


def _options(argv: list[str]) -> Any:
    from argparse import ArgumentParser

    parser = ArgumentParser()
    parser.add_argument(
        "--http", nargs="?", type=int, const=3000, metavar="PORT", help="serve HTTP"
    )
    parser.add_argument("--log", metavar="FILE", help="append every message to a file")
    parser.add_argument("--verbose", action="store_true", help="show every message on stderr")
    return parser.parse_args(argv)


def _logger(options: Any) -> Callable[[str, str], None] | None:
    if not options.log and not options.verbose:
        return None
    file = open(options.log, "a", encoding="utf-8") if options.log else sys.stderr

    def log(direction: str, line: str) -> None:
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S")
        print(stamp, direction, line.rstrip("\n"), file=file, flush=True)

    return log
