"""Many calls over HTTP: is one lost, does one get the answer of another, does anything grow?

    python tests/load_http.py             a million, and 100,000 from our own client
    python tests/load_http.py CALLS       so many, and nothing is recorded

Every call has a number of its own as its id and as an argument, and every answer must have both.
Who was answered asks again, so there are always 64 calls under way, over 64 connections.
`test_load.py` is a short run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import support_load
from load_stdio import Threads
from support_load import AT_ONCE, FEW, MILLION, Report, rounds
from test_http_running import Crowd, Process, running

from minimcp import Client


@contextmanager
def served() -> Iterator[Process]:
    with TemporaryDirectory() as folder, running(Path(folder)) as server:
        yield server


def load(calls: int) -> Report:
    """Make at least so many calls; `AssertionError` at the first answer that is wrong."""
    with served() as server, Crowd(server.site, AT_ONCE) as crowd:
        return rounds("HTTP", "server", server.process.pid, calls, in_turn(crowd))


def in_turn(crowd: Crowd) -> Callable[[int], Iterable[float]]:
    """Every connection makes its share of the calls."""
    return lambda calls: crowd.round(-(-calls // AT_ONCE))


def load_client(calls: int) -> Report:
    """The same from threads that share a client of ours, and this process is watched."""
    with served() as server, Client(server.site.url) as client:
        return rounds("HTTP", "our client", os.getpid(), calls, Threads(client, "add").ask)


if __name__ == "__main__":
    support_load.main((load, load_client), (MILLION, FEW))
