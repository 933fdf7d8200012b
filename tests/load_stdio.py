"""Many calls over stdio: is one lost, does one get the answer of another, does anything grow?

    python tests/load_stdio.py            a million, and 100,000 from our own client
    python tests/load_stdio.py CALLS      so many, and nothing is recorded

Every call has a number of its own as its id and as an argument, and every answer must have both.
Who was answered asks again, so there are always 64 calls under way. `test_load.py` is a short run.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from array import array
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import support_load
from support_load import AT_ONCE, FEW, MILLION, Report, rounds

from minimcp import Client

SERVER = [sys.executable, str(Path(__file__).parent / "stubs" / "tools_server.py")]
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Pipe:
    """A server behind two pipes, and the calls that are under way."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process, self.asked, self.rest = process, 0, b""
        self.open: dict[int, float] = {}
        params = {"name": "add", "arguments": {"a": "NUMBER", "b": 1}, "_meta": META}
        message = {"jsonrpc": "2.0", "id": "NUMBER", "method": "tools/call", "params": params}
        self.form = json.dumps(message).replace('"NUMBER"', "%(number)d") + "\n"

    def ask(self, calls: int) -> Iterator[float]:
        """Make so many calls; the seconds that each answer took."""
        last = self.asked + calls
        self.send(min(AT_ONCE, calls))
        while self.open:
            answered = 0
            for line in self.lines():
                yield self.answered(line)
                answered += 1
            self.send(min(answered, last - self.asked))

    def send(self, calls: int) -> None:
        now, first = time.monotonic(), self.asked + 1
        self.asked += calls
        lines = []
        for number in range(first, self.asked + 1):
            self.open[number] = now
            lines.append(self.form % {"number": number})
        if lines:
            self.process.stdin.write("".join(lines).encode())  # type: ignore[union-attr]
            self.process.stdin.flush()  # type: ignore[union-attr]

    def lines(self) -> list[bytes]:
        """The whole lines that have come; at least a part of one."""
        data = os.read(self.process.stdout.fileno(), 1 << 16)  # type: ignore[union-attr]
        assert data, "the server has ended"
        *lines, self.rest = (self.rest + data).split(b"\n")
        return lines

    def answered(self, line: bytes) -> float:
        reply = json.loads(line)
        since = self.open.pop(reply["id"])  # a `KeyError` is an answer to no call
        assert reply["result"]["structuredContent"] == reply["id"] + 1, reply
        return time.monotonic() - since


@contextmanager
def served() -> Iterator[Pipe]:
    """A server; at the end it must have nothing more to say."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(SERVER, **pipes) as process:  # type: ignore[call-overload]
        try:
            yield Pipe(process)
            process.stdin.close()
            assert process.stdout.read() == b""
            assert process.wait(20) == 0
        finally:
            process.kill()


def load(calls: int) -> Report:
    """Make at least so many calls; `AssertionError` at the first answer that is wrong."""
    with served() as pipe:
        return rounds("stdio", "server", pipe.process.pid, calls, pipe.ask)


def load_client(calls: int) -> Report:
    """The same from threads that share a client of ours, and this process is watched."""
    with Client(SERVER) as client:
        return rounds("stdio", "our client", os.getpid(), calls, Threads(client, "add").ask)


class Threads:
    """Threads that share a client."""

    def __init__(self, client: Client, tool: str) -> None:
        self.client, self.tool, self.asked = client, tool, 0

    def ask(self, calls: int) -> Iterable[float]:
        """Make so many calls; the seconds that each answer took."""
        first, self.asked = self.asked, self.asked + calls
        shares = [range(first + n, self.asked, AT_ONCE) for n in range(AT_ONCE)]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for took in pool.map(self.share, shares):
                yield from took

    def share(self, numbers: range) -> array[float]:
        """The calls of one thread, one after the other."""
        return array("f", map(self.one, numbers))

    def one(self, number: int) -> float:
        since = time.monotonic()
        result = self.client.call_tool(self.tool, {"a": number, "b": 1}, timeout=60)
        assert result.structured == number + 1, (number, result)
        return time.monotonic() - since


if __name__ == "__main__":
    support_load.main((load, load_client), (MILLION, FEW))
