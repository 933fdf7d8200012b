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
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parents[1]
DATA = ROOT / ".cache" / "coverage"
RESULT = ROOT / "site" / "results" / "coverage.json"
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
        RESULT.write_text(json.dumps(record(totals), indent=1) + "\n", encoding="utf-8")
    return failed or int(totals["percent_covered"] < 100)


def coverage(*words: str) -> int:
    """Run a command of coverage; children find data and configuration wherever they are started."""
    told = {"COVERAGE_RCFILE": str(ROOT / "pyproject.toml"), "COVERAGE_FILE": str(DATA / "data")}
    command = [sys.executable, "-m", "coverage", *words]
    return subprocess.run(command, cwd=ROOT, env={**os.environ, **told}, check=False).returncode


def record(totals: dict[str, int]) -> dict[str, object]:
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
        "date": datetime.now(timezone.utc).date().isoformat(),
        "versions": {"python": sys.version.split()[0], "coverage": version("coverage")},
        "figures": figures,
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
