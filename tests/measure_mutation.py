"""Change the core in small ways, one at a time, and see which changes no test notices: mutmut.

    python tests/measure_mutation.py            all of it: about an hour
    python tests/measure_mutation.py --on       only what the last run did not finish
    python tests/measure_mutation.py --read     nothing: say again what the last run found

A mutant that lives is either a test that is missing, or a change that changes nothing. Which ones
are of the second kind, and why, stands in `mutants.toml`. The others are printed and are a failure.
The figures go to `site/results/mutation.json`.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections import Counter
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ledger import tomllib
from record import ours, write

HERE = Path(__file__).parent
ROOT = HERE.parent
KILLED = ("killed", "timeout", "segfault")
GOAL = 95.0  # percent


def mutmut(*words: str) -> str:
    """What a command of mutmut says."""
    command = [sys.executable, "-m", "mutmut", *words]
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False).stdout


def verdicts() -> dict[str, str]:
    """Mutant -> "killed", "survived", "timeout" or "no tests"."""
    return dict(re.findall(r"^\s+(\S+): (.+)$", mutmut("results", "--all", "true"), re.M))


def change(name: str) -> tuple[str, str]:
    """The lines that a mutant took away and put in their place."""
    diff = mutmut("show", name).splitlines()
    kinds = (("-", "---"), ("+", "+++"))
    old, new = (
        " ".join(line[1:].strip() for line in diff if line[:1] == sign and line[:3] != head)
        for sign, head in kinds
    )
    return old, new


def place(name: str) -> str:
    """`minimcp.tools.xǁToolǁlisted__mutmut_27` is a mutant of `tools.Tool.listed`."""
    path = name.removeprefix("minimcp.").partition("__mutmut")[0]
    return path.replace("xǁ", "").replace("ǁ", ".").replace(".x_", ".")


def lives() -> dict[tuple[str, str], str]:
    """What may live, and why: (function, the line as it became) -> why."""
    rows = tomllib.loads((HERE / "mutants.toml").read_text(encoding="utf-8"))["mutant"]
    return {(row["in"], new): row["why"] for row in rows for new in row["new"]}


def main(on: bool, read: bool) -> int:
    if not on and not read:
        shutil.rmtree(ROOT / "mutants", ignore_errors=True)
    if not read:
        subprocess.run([sys.executable, "-m", "mutmut", "run"], cwd=ROOT, check=False)
    found, known = verdicts(), lives()
    alive = [name for name, verdict in found.items() if verdict not in KILLED]
    rows: list[dict[str, Any]] = []
    for name in alive:
        old, new = change(name)
        why = known.get((place(name), new), "")
        rows.append({"in": place(name), "was": old, "became": new, "why nothing notices": why})
        if not why:
            print(f"{name} ({found[name]})\n  - {old}\n  + {new}")
    count = Counter(found.values())
    killed = sum(count[one] for one in KILLED)
    percent = round(100 * killed / len(found), 2)
    print(f"{killed} of {len(found)} mutants killed, {percent} %; {len(alive)} live: {dict(count)}")
    pages = ", ".join(sorted({place(name).partition(".")[0] for name in found}))
    figures = {"mutants": len(found), "killed": killed, "percent": percent, "alive": len(alive)}
    write(
        "mutation",
        {
            "title": "How many small mistakes the tests notice",
            "command": "make mutation",
            "versions": {**ours(), "mutmut": version("mutmut")},
            "figures": {**figures, "What lives": rows},
            "note": f"The pages that were changed: {pages}.",
        },
    )
    return int(percent < GOAL or not all(row["why nothing notices"] for row in rows))


if __name__ == "__main__":
    sys.exit(main("--on" in sys.argv[1:], "--read" in sys.argv[1:]))
