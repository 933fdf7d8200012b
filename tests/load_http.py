"""Many calls over HTTP: is one lost, does one get the answer of another, does memory grow?

    python tests/load_http.py [CALLS]       100,000, if nothing is said, over 16 connections

Every call has a number of its own as its id and as an argument, and every answer must have both.
Who was answered asks again, so there are always 16 calls under way. `test_http_load.py` is a short
run of it.
"""

from __future__ import annotations

import signal
import statistics
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from test_http_running import Crowd, memory, running

CONNECTIONS, PARTS = 16, 10
LONGEST = 1800  # seconds


class Report(NamedTuple):
    """What was seen; memory in MiB, after a warm-up and then after each tenth of the calls."""

    calls: int
    seconds: float
    took: list[float]
    memory: list[float]

    def __str__(self) -> str:
        p50, p99 = (1000 * statistics.quantiles(self.took, n=100)[at] for at in (49, 98))
        return (
            f"{self.calls:,} calls over {CONNECTIONS} connections, none lost, none crossed\n"
            f"{self.calls / self.seconds:,.0f} a second; p50 {p50:.1f} ms, p99 {p99:.1f} ms\n"
            f"memory of the server, MiB: {', '.join(f'{each:.1f}' for each in self.memory)}"
        )


def load(calls: int) -> Report:
    """Make at least so many calls; `AssertionError` at the first answer that is wrong."""
    each = -(-calls // CONNECTIONS // PARTS)
    with TemporaryDirectory() as folder, running(Path(folder)) as server:
        pid, took = server.process.pid, []
        crowd = Crowd(server.site, CONNECTIONS)
        with crowd:
            crowd.round(each)
            used, started = [memory(pid)], time.monotonic()
            for _ in range(PARTS):
                took += crowd.round(each)
                used.append(memory(pid))
        return Report(len(took), time.monotonic() - started, took, used)


if __name__ == "__main__":
    signal.alarm(LONGEST)  # an answer that never comes ends it too
    print(load(int(sys.argv[1]) if sys.argv[1:] else 100_000))
