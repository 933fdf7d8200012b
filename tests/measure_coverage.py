"""How much of `minimcp/` the suite runs, branch by branch, child processes included.

    python tests/measure_coverage.py [TEST ...]

Without tests named it runs the whole suite, which takes about twice as long as without measuring,
and writes `site/results/coverage.json`. Lines that were never run are printed, and are a failure.
"""

import json
import os
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from record import Record, ours, write

ROOT = Path(__file__).parents[1]
DATA = ROOT / ".cache" / "coverage"
DISTURBED = (  # by what coverage itself imports, and by its locks in a forked child
    "leaves_the_slow_modules_alone",
    "does_not_pay",
    "a_pool_of_processes",
)


def main(tests: list[str]) -> int:
    shutil.rmtree(DATA, ignore_errors=True)
    DATA.mkdir(parents=True)
    quiet = ("-q", "--numprocesses=auto", "-k", f"not {' and not '.join(DISTURBED)}")
    failed = coverage("run", "-m", "pytest", *quiet, *tests)
    coverage("combine", "-q")
    coverage("json", "-q", "--include=minimcp/*", "-o", str(DATA / "all.json"))
    coverage("report", "--include=minimcp/*")
    totals = json.loads((DATA / "all.json").read_text(encoding="utf-8"))["totals"]
    if not tests and not failed:
        write("coverage", about(totals))
    return failed or int(totals["percent_covered"] < 100)


def coverage(*words: str) -> int:
    """Run a command of coverage; children find data and configuration wherever they are started."""
    told = {"COVERAGE_RCFILE": str(ROOT / "pyproject.toml"), "COVERAGE_FILE": str(DATA / "data")}
    command = [sys.executable, "-m", "coverage", *words]
    return subprocess.run(command, cwd=ROOT, env={**os.environ, **told}, check=False).returncode


def about(totals: dict[str, int]) -> Record:
    figures = {
        "statements": totals["num_statements"],
        "statements never run": totals["missing_lines"],
        "branches": totals["num_branches"],
        "branches never taken": totals["missing_branches"],
        "percent": round(totals["percent_covered"], 2),
    }
    return {
        "title": "What the tests run of the package",
        "command": "make coverage",
        "versions": {**ours(), "python": sys.version.split()[0], "coverage": version("coverage")},
        "figures": figures,
        "note": f"Left out, since measuring disturbs them: {', '.join(DISTURBED)}.",
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
