"""Measure the site: how long it takes to build, and until `mkdocs serve` shows what was written.

    python tests/record_site.py [ROUNDS]

writes `site/results/site.json`, which the page about evidence shows. It edits a copy. The seconds
are those of a clock, so they depend on who else is using the machine; the seconds of processor
time, which a system with /proc can tell, do so much less.
"""

from __future__ import annotations

import os
import resource
import statistics
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path
from typing import Any

from record import write
from support import until
from support_docs import ROOT, build, small_tree
from test_site import DECISION, NOTEBOOK, edit, fetched, serving

EVERYTHING = ("site", "adr", "minimcp", "notebooks", "examples", "tests", "README.md")
KINDS = {  # what is edited -> the file, before which words, and the page that shows it
    "a page": ("site/roads.md", "Most of these", "roads"),
    "a page's title, which stands on all pages": ("site/roads.md", "Roads not taken", "roads"),
    "an ADR": (f"{DECISION}.md", "A server has to run", DECISION),
    "a notebook": (f"{NOTEBOOK}.ipynb", "Understand what travels", NOTEBOOK),
    "a module: its own page": ("minimcp/cli.py", "Two command lines", "minimcp/cli.py"),
    "a module: the reference": ("minimcp/server.py", "Tools, and the two", "reference"),
    "a module: what the home page runs": ("minimcp/cli.py", "connected: ", "index"),
}


def building(config: Path) -> dict[str, Any]:
    """The strict build: of a clock, and of the processor."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = build(config.with_name("built"), config)
    took, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    pages = len([*config.with_name("built").rglob("*.html")])
    return {"pages": pages, "seconds": round(took, 1), "processor seconds": round(used, 1)}


def reloading(config: Path, rounds: int) -> list[dict[str, Any]]:
    """Seconds from the moment a file was saved until its page has it, for each kind of file."""
    found: dict[str, list[tuple[float, float]]] = {kind: [] for kind in KINDS}
    with serving(config) as (address, log, process):
        until(lambda: fetched(f"{address}/index.html"), timeout=300)
        for _ in range(rounds):
            for kind, (name, words, page) in KINDS.items():
                print(".", end="", flush=True)
                found[kind].append(once(config.parent / name, words, f"{address}/{page}.html",
                                        log, process.pid))  # fmt: skip
    return [row(kind, *zip(*numbers, strict=True)) for kind, numbers in found.items()]


def once(file: Path, words: str, url: str, log: Any, pid: int) -> tuple[float, float]:
    quiet(log)
    text, before, start = file.read_text(encoding="utf-8"), processor(pid), time.monotonic()
    edit(file, words)
    while f"EDITED {words}" not in fetched(url):
        time.sleep(0.05)  # whoever asks all the time slows down what is measured
    took, used = time.monotonic() - start, processor(pid) - before
    file.write_text(text, encoding="utf-8")
    until(lambda: f"EDITED {words}" not in fetched(url), timeout=300)
    return took, used


def quiet(log: Any) -> None:
    """Wait until nothing has been built for a second."""
    while (said := log()) and (time.sleep(1.5) or log() != said):
        pass


def processor(pid: int) -> float:
    """Seconds of processor time of a process, and of its children that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def row(kind: str, took: tuple[float, ...], used: tuple[float, ...]) -> dict[str, Any]:
    median, spread = statistics.median(took), f"{min(took):.1f} to {max(took):.1f}"
    told = {"saved is": kind, "seconds": round(median, 1), "spread": spread, "n": len(took)}
    return told | {"processor seconds": round(statistics.median(used), 1)}


def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        config = small_tree(Path(folder), *EVERYTHING)
        config.write_text((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), encoding="utf-8")
        loads = [os.getloadavg()[0]]
        figures = {"the strict build": building(config)}
        figures["from saving to seeing, with mkdocs serve"] = reloading(config, rounds)
        loads.append(os.getloadavg()[0])
    names = ("mkdocs", "mkdocs-material", "markdown-exec", "mkdocstrings")
    between = " to ".join(f"{load:.1f}" for load in loads)
    record = {
        "title": "How long does the site take?",
        "command": "python tests/record_site.py",
        "versions": {name: metadata.version(name) for name in names},
        "figures": figures,
        "note": f"The machine had {os.cpu_count()} processors, and a load of {between}.",
    }
    write("site", record)


if __name__ == "__main__":
    main(int((sys.argv[1:] or ["5"])[0]))
