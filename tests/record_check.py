"""Record what `examples/check.py` says of servers of other makers, for the page of the site.

    python tests/record_check.py

It writes `site/results/check.json`: how many checks each server passes, and every check that one
of them fails.
"""

from __future__ import annotations

import sys

from record import ours, write
from test_examples_check import CHECKS, peer, verdicts

PEERS = ("mcp", "fastmcp", "server-everything")
NOTE = """The checker sends lines as anybody might, so most of what fails is one decision: these
servers drop a line that is no valid message, where JSON-RPC asks for an error. A client that sends
nothing but valid messages notices little of it. A check that does not apply (there is no modern
revision, or no tool that requires an argument) is not counted."""


def word(said: list[str]) -> str:
    """One word for what a check said in each era."""
    return "FAIL" if "FAIL" in said else "pass" if "pass" in said else "–"


def main() -> None:
    (name, version), *_ = ours().items()
    versions, said = {name: version}, {name: verdicts([sys.executable, "-m", "minimcp.demo"])}
    for name in PEERS:
        command, versions[name] = peer(name)
        said[name] = verdicts(command)
    table = [
        {"check": one.id, "what": one.title, **{n: word(said[n].get(one.id, [])) for n in said}}
        for one in CHECKS
    ]
    columns = {name: [row[name] for row in table] for name in said}
    counts = ", ".join(
        f"{name} {column.count('pass')} of {len(column) - column.count('–')}"
        for name, column in columns.items()
    )
    failed = [row for row in table if "FAIL" in row.values()]
    record = {
        "title": "The checker of the examples, on four servers",
        "page": "conformance",
        "command": "python tests/record_check.py",
        "versions": versions,
        "rows": failed,
        "note": f"Passed, of the checks that apply: {counts}. {' '.join(NOTE.split())}",
    }
    write("check", record)


if __name__ == "__main__":
    main()
