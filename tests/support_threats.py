"""The table of threats: `threats.toml`, what is wrong with it, and how the site shows it.

`wrong_with(row)` says what a row names that is not there, `page()` is the table in Markdown.
This module needs nothing but Python.
"""

from __future__ import annotations

import ast
import sys
from functools import cache
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TESTS = Path(__file__).parent
ROOT = TESTS.parent
MEMBERS = {"group", "attack", "stopped", "where", "left", "tests"}
Row = dict[str, Any]


def threats() -> list[Row]:
    return tomllib.loads((TESTS / "threats.toml").read_text(encoding="utf-8"))["threat"]


@cache
def names_in(path: Path) -> set[str]:
    """What a module defines: `function`, `Class`, `Class.method`."""
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            inner = [one.name for one in node.body if hasattr(one, "name")]
            found |= {node.name, *(f"{node.name}.{name}" for name in inner)}
    return found


def wrong_with(row: Row) -> list[str]:
    """What a row names that is not there: a place `file.py: name`, or a test `module::name`."""
    problems = [] if row.keys() == MEMBERS and row["tests"] and row["where"] else [str(row)]
    for place in row.get("where", []):
        file, _, name = place.partition(": ")
        path = ROOT / file
        if not path.is_file() or (name and name not in names_in(path)):
            problems.append(f"no such place: {place}")
    for test in row.get("tests", []):
        module, _, name = test.partition("::")
        path = TESTS / f"{module}.py"
        if not path.is_file() or not name.startswith("test_") or name not in names_in(path):
            problems.append(f"no such test: {test}")
    return problems


def page() -> str:
    """A section for each group, with a part for each row."""
    parts, group = [], ""
    for row in threats():
        if row["group"] != group:
            group = row["group"]
            parts.append(f"## {group}")
        parts.append(shown(row))
    return "\n\n".join(parts)


def shown(row: Row) -> str:
    """One row: it says too much for the columns of a table."""
    tests = ["`" + test.replace("::", "`: `") + "`" for test in row["tests"]]
    cells = {
        "stopped by": row["stopped"],
        "where": "<br>".join(f"`{place}`" for place in row["where"]),
        "left to you": row["left"],
        "shown by": "<br>".join(tests),
    }
    lines = [f"| **{name}** | {cell} |" for name, cell in cells.items()]
    return "\n".join([f"### {row['attack']}", "", "| | |", "|---|---|", *lines])


if __name__ == "__main__":
    sys.stdout.write(page() + "\n")
