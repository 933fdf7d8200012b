"""What the load tests share: rounds of calls with looks at a process between them, and a record.

`make load` makes a million calls over each wire and writes `site/results/load.json`; the tests
make some thousands. This module needs nothing but Python.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
import time
from array import array
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

import record

AT_ONCE, PARTS = 64, 10
MILLION, FEW = 1_000_000, 100_000  # calls: of a load generator, and of our own client
HOST = 10  # calls a second that an ordinary host makes, if it never rests
NAMES = ("descriptors", "threads", "mebibytes")


class Look(NamedTuple):
    """What a process has at one moment."""

    calls: int  # that were made so far
    descriptors: int
    threads: int
    mebibytes: float  # resident


class Report(NamedTuple):
    """A whole run; every call was answered once, and with its own answer."""

    wire: str
    watched: str  # whose process was looked at
    calls: int
    seconds: float
    took: array[float]
    looks: list[Look]  # after the warm-up, and after each tenth

    def row(self) -> dict[str, Any]:
        cuts = statistics.quantiles(self.took, n=100)
        return {
            "wire": self.wire,
            "watched": self.watched,
            "date": datetime.now(timezone.utc).date().isoformat(),
            "calls": self.calls,
            "at_once": AT_ONCE,
            "lost": 0,
            "crossed": 0,
            "seconds": round(self.seconds, 1),
            "per_second": round(self.calls / self.seconds),
            "p50_ms": round(1000 * cuts[49], 2),
            "p99_ms": round(1000 * cuts[98], 2),
            **{name: [getattr(look, name) for look in self.looks] for name in NAMES},
            "processors": os.cpu_count(),
            "busy": round(os.getloadavg()[0], 1),  # what wanted to run, we included
        }


def look(pid: int, calls: int) -> Look:
    of = Path(f"/proc/{pid}")
    pages = int((of / "statm").read_text().split()[1])
    mebibytes = round(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, 1)
    threads = []
    for _ in range(8):  # one that has ended is there for a moment more
        threads.append(len(os.listdir(of / "task")))
        time.sleep(0.05)
    return Look(calls, len(os.listdir(of / "fd")), min(threads), mebibytes)


def rounds(
    wire: str, watched: str, pid: int, calls: int, ask: Callable[[int], Iterable[float]]
) -> Report:
    """Warm up, and make the calls in ten rounds; `ask` makes so many and says how long each took.

    It ends with `AssertionError` at the first answer that is wrong.
    """
    each = -(-calls // PARTS)
    for _ in ask(max(10 * AT_ONCE, calls // 100)):
        pass
    looks, took, started = [look(pid, 0)], array("f"), time.monotonic()
    for _ in range(PARTS):
        took.extend(ask(each))
        looks.append(look(pid, len(took)))
        progress(wire, looks[-1], time.monotonic() - started)
    return Report(wire, watched, len(took), time.monotonic() - started, took, looks)


def progress(wire: str, seen: Look, seconds: float) -> None:
    shown = ", ".join(f"{getattr(seen, name)} {name}" for name in NAMES)
    print(f"{wire}: {seen.calls:,} calls in {seconds:,.0f} s; {shown}", file=sys.stderr, flush=True)


# -- the record


def main(runs: Iterable[Callable[[int], Report]], counts: Iterable[int]) -> None:
    """Make all runs, of so many calls each or of as many as the command line says; record them.

    With a number on the command line nothing is recorded.
    """
    given = [int(one) for one in sys.argv[1:]]
    for run, count in zip(runs, given * 9 or counts, strict=False):
        row = run(count).row()
        print(json.dumps(row))
        if not given:
            keep(row)


def keep(row: dict[str, Any]) -> None:
    """Write one row into the record; it replaces the one of the same wire and process."""
    known = recorded().get("rows", [])
    same = (row["wire"], row["watched"])
    rows = [one for one in known if (one["wire"], one["watched"]) != same]
    hosts = {"calls_a_second": HOST, "calls_in_two_hours": HOST * 7200}
    members = {"command": "make load", "versions": versions(), "an_ordinary_host": hosts}
    record.write("load", {**members, "rows": sorted([*rows, row], key=lambda one: one["wire"])})


def recorded() -> dict[str, Any]:
    with suppress(FileNotFoundError):
        text = (record.RESULTS / "load.json").read_text(encoding="utf-8")
        return dict(json.loads(text))
    return {}


def versions() -> dict[str, str]:
    import uvicorn

    return {"Python": platform.python_version(), **record.ours(), "uvicorn": uvicorn.__version__}


def page() -> str:
    """What was recorded, as Markdown."""
    known = recorded()
    if not known:
        return "Nothing has been recorded yet; `make load` does it."
    host, named = known["an_ordinary_host"], known["versions"].items()
    head = "| wire | watched | >calls | >seconds | >a second | >p50 ms | >p99 ms | >"
    busy = ", ".join(str(row["busy"]) for row in known["rows"])
    titles = (head + " | >".join(NAMES) + " |").split("|")
    rule = ["---:" if ">" in title else "---" for title in titles[1:-1]]
    lines = ["|".join(titles).replace(">", ""), f"| {' | '.join(rule)} |"]
    lines += [f"| {' | '.join(cells(row))} |" for row in known["rows"]]
    return (
        f"Recorded on {known['date']} with {', '.join(' '.join(one) for one in named)}, by "
        f"`{known['command']}`. A host that makes {host['calls_a_second']} calls a second, and "
        f"never rests, makes {host['calls_in_two_hours']:,} in two hours. The "
        f"{known['rows'][0]['processors']} processors were not ours alone: {busy} processes wanted "
        "to run at the end of each run, and times are as long as that makes them.\n\n"
        + "\n".join(lines)
    )


def cells(row: dict[str, Any]) -> list[str]:
    """A row of the table; what was sampled is shown as its first and its last value."""
    numbers = [f"{row[name]:,}" for name in ("calls", "seconds", "per_second", "p50_ms", "p99_ms")]
    return [row["wire"], row["watched"], *numbers, *(f"{row[n][0]} → {row[n][-1]}" for n in NAMES)]
