"""Record who talked to whom, and what the official suite said, for the page of the site.

    python tests/record.py            both
    python tests/record.py peers      or one: peers, conformance

It runs the tests and writes `site/results/peers.json` and `site/results/conformance.json`, one row
a line, and nothing at all if a test fails or a peer is missing. Apart from the date, a second run
on the same versions writes the same bytes.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from datetime import datetime, timezone
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

LEFT_OUT = {  # scenarios that no revision requires, or that need OAuth
    "auth/*": "run, and expected to fail: there is no OAuth here",
    "tasks-*": "an extension, which no revision requires; examples/tasks.py runs it, in other rows",
    "server-session-lifecycle": "the server keeps no sessions",
    "server-sse-polling": "a stream of the server ends with its answer, and is not resumed",
}
RESULTS = Path(__file__).parents[1] / "site" / "results"
Record = dict[str, Any]


def peers() -> Record:
    """The matrix of a whole run of `test_peers.py`."""
    tests = passed("test_peers")
    versions = dict(sorted(tests.VERSIONS.items()))
    return {"versions": versions, "rows": tests.MATRIX, "left_out": tests.LEFT_OUT}


def conformance() -> Record:
    """What each scenario said in a whole run of `test_conformance.py`."""
    tests = passed("test_conformance")
    rows = [
        {"leg": leg, "revision": revision, "scenario": scenario, **counted(checks)}
        for (leg, revision), run in sorted(tests.RUNS.items())
        for scenario, checks in sorted(run.checks.items())
        if not any(fnmatchcase(scenario, pattern) for pattern in LEFT_OUT)
    ]
    rows += [
        {"leg": "server", "revision": "tasks extension", "scenario": scenario, **counted(checks)}
        for run in tests.tasks_run().values()
        for scenario, checks in run.checks.items()
    ]
    package = tests.node_tools.MODULES / tests.PACKAGE / "package.json"
    suite = json.loads(package.read_text(encoding="utf-8"))["version"]
    left_out = [{"scenarios": name, "why": why} for name, why in LEFT_OUT.items()]
    return {"versions": {tests.PACKAGE: suite, **ours()}, "rows": rows, "left_out": left_out}


def passed(module: str) -> Any:
    """Run a module of tests; end with its exit code if they do not all pass."""
    import pytest

    os.environ["CI"] = "true"  # what is missing is a failure
    if code := pytest.main(["-q", str(Path(__file__).with_name(f"{module}.py"))]):
        sys.exit(code)
    return sys.modules[module]


def counted(checks: list[Record]) -> dict[str, int]:
    said = Counter(check["status"] for check in checks)
    kinds = {"passed": "SUCCESS", "warned": "WARNING", "failed": "FAILURE"}
    return {name: said[status] for name, status in kinds.items()}


def ours() -> dict[str, str]:
    from minimcp.eras import INFO

    return {INFO["name"]: INFO["version"]}


def write(name: str, record: Record) -> None:
    """One member a line, and one row a line: a change of one row is a diff of one line."""
    members = {"date": datetime.now(timezone.utc).date().isoformat(), **record}
    lines = ",\n".join(f" {json.dumps(key)}: {spread(value)}" for key, value in members.items())
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


def spread(value: Any) -> str:
    if not isinstance(value, list):
        return json.dumps(value)
    return "[\n" + ",\n".join(f"  {json.dumps(row)}" for row in value) + "\n ]"


KINDS = {"peers": peers, "conformance": conformance}

if __name__ == "__main__":
    for name in sys.argv[1:] or KINDS:
        write(name, KINDS[name]())
