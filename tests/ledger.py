"""The requirements ledger, and which tests carry its ids, read from the source of all tests.

From the source, so that the answer does not depend on which tests were selected for a run.
`python tests/ledger.py` prints how many rows of each group are proven, later or left out.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TESTS = Path(__file__).parent
LEDGER = tomllib.loads((TESTS / "requirements.toml").read_text(encoding="utf-8"))


def marks(tree: ast.AST) -> list[ast.Call]:
    """The `….req(…)` calls in a piece of source; those inside `parametrize` count too."""
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "req"
    ]


def proofs(module: ast.Module) -> Iterator[tuple[str, ast.Call]]:
    """The marks that decorate the test functions of a module."""
    for function in module.body:
        if isinstance(function, ast.FunctionDef) and function.name.startswith("test_"):
            for decorator in function.decorator_list:
                for mark in marks(decorator):
                    yield function.name, mark


def carried() -> dict[str, list[str]]:
    """Requirement id -> the tests that carry it, as `module::function`."""
    found: dict[str, list[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        for name, mark in proofs(ast.parse(path.read_text(encoding="utf-8"))):
            for argument in mark.args:
                found.setdefault(ast.literal_eval(argument), []).append(f"{path.name}::{name}")
    return found


def counts() -> dict[str, Counter[str]]:
    """Group -> status -> number of rows, in the ledger's order."""
    found: dict[str, Counter[str]] = {}
    for id, row in LEDGER.items():
        group = "MATRIX" if id.startswith("MATRIX") else id.split("-")[1]
        found.setdefault(group, Counter())[row["status"]] += 1
    return found


if __name__ == "__main__":
    for group, statuses in counts().items():
        print(f"{group:7}", ", ".join(f"{number} {status}" for status, number in statuses.items()))
    print("total  ", dict(sum(counts().values(), Counter())))
