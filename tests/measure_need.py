"""Take away one statement at a time: is everything that stdio needs there for a reason?

    python tests/measure_need.py            every fifth statement that stdio needs: an hour
    python tests/measure_need.py PAGE …     every one of these pages

Each statement in a function is replaced by `pass`, in a copy of the repository. Then the tests run
until one fails: first those that carry the id of a MUST, then those with another requirement, then
the field reports, then all others that are quick. A statement that none of them misses could go,
and is printed. The figures go to `site/results/need.json`; see ADR-0012.
"""

from __future__ import annotations

import ast
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from typing import NamedTuple

from record import ours, write
from test_budget import STDIO_NEEDS

ROOT = Path(__file__).parents[1]
FIRST = """tools_call tools_list results errors meta discover envelope logging progress versions
    cancellation extension_point mrtr listen json_schema stdio client"""  # the quick ones first
OTHERS = f"""tools_from_functions words demo http_headers {FIRST} trust_input schema_property
    http_client trust_faults_stdio"""
OWN = {"connection": "client", "child": "client", "eras": "versions", "context": "progress"}
SECONDS = 240  # for the tests of one stage; what takes longer hangs, and that is noticed


def modules(names: str) -> list[str]:
    return [f"tests/test_{name}.py" for name in names.split()]


STAGES = {
    "a MUST": ["-mmust", *modules(FIRST)],
    "another requirement": ["-mreq and not must", *modules(FIRST)],
    "a field report": modules("field_reports"),
    "another test": modules(OTHERS),
}


class Gap(NamedTuple):
    """A page without one statement."""

    page: str
    line: int
    statement: str
    source: str


def statements(node: ast.AST, inside: bool = False) -> Iterator[ast.stmt]:
    """The statements in functions, outer ones first; no docstrings, no imports, no `def`."""
    for child in ast.iter_child_nodes(node):
        text = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
        kept = text or isinstance(child, (ast.FunctionDef, ast.Import, ast.ImportFrom, ast.Pass))
        if inside and isinstance(child, ast.stmt) and not kept:
            yield child
        yield from statements(child, inside or isinstance(child, ast.FunctionDef))


def gaps(page: str) -> Iterator[Gap]:
    """The page without its first statement, without its second, and so on."""
    source = (ROOT / "minimcp" / f"{page}.py").read_text(encoding="utf-8")
    lines = source.splitlines(keepends=True)
    for node in statements(ast.parse(source)):
        indent = lines[node.lineno - 1][: node.col_offset]
        if indent.isspace():  # not the `if` of an `elif`
            rest = lines[: node.lineno - 1], [f"{indent}pass\n"], lines[node.end_lineno :]
            text = "".join(line for part in rest for line in part)
            yield Gap(page, node.lineno, lines[node.lineno - 1].strip(), text)


def noticed(gap: Gap, trees: SimpleQueue[Path]) -> str:
    """Which stage misses the statement; "nothing" if none does."""
    tree = trees.get()
    path = tree / "minimcp" / f"{gap.page}.py"
    whole = path.read_text(encoding="utf-8")
    path.write_text(gap.source, encoding="utf-8")
    own = f"tests/test_{OWN.get(gap.page, gap.page)}.py"
    try:
        for stage, tests in STAGES.items():
            if fails(tree, sorted(tests, key=lambda name: name != own)):
                return stage
        return "nothing"
    finally:
        path.write_text(whole, encoding="utf-8")
        trees.put(tree)


def fails(tree: Path, tests: list[str]) -> bool:
    """Whether one of the tests fails in a copy of the repository, or never ends."""
    command = [sys.executable, "-m", "pytest", "-qx", "-n0", "-p", "no:cacheprovider", *tests]
    env = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    quiet = subprocess.DEVNULL
    with subprocess.Popen(
        command, cwd=tree, env=env, stdout=quiet, stderr=quiet, start_new_session=True
    ) as run:
        try:
            return run.wait(SECONDS) != 0
        except subprocess.TimeoutExpired:
            return True
        finally:
            with suppress(ProcessLookupError):
                os.killpg(run.pid, signal.SIGKILL)  # and what it has started


def tried(every: list[Gap]) -> Iterator[str]:
    """What missed each statement, in order; one process at a time for each processor."""
    trees: SimpleQueue[Path] = SimpleQueue()
    without = shutil.ignore_patterns(".*", "_site", "node_modules", "mutants")
    with TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        for number in range(os.cpu_count() or 1):
            trees.put(Path(shutil.copytree(ROOT, Path(folder, str(number)), ignore=without)))
        yield from pool.map(lambda gap: noticed(gap, trees), every)


def main(pages: list[str]) -> int:
    """Try every gap; what nothing misses is a failure."""
    if any(fails(ROOT, tests) for tests in STAGES.values()):
        sys.exit("the tests fail as it is")
    every = [gap for page in pages or STDIO_NEEDS for gap in gaps(page)]
    total, every = len(every), every if pages else every[::5]
    rows, count = [], Counter[str]()
    for number, (gap, stage) in enumerate(zip(every, tried(every), strict=True), 1):
        count[stage] += 1
        if stage in ("another test", "nothing"):
            rows.append({"page": gap.page, "statement": f"`{gap.statement}`", "missed by": stage})
        print(f"{number} of {len(every)}: {gap.page}, line {gap.line}: {stage}", flush=True)
    if not pages:
        figures = {f"missed by {stage}": count[stage] for stage in (*STAGES, "nothing")}
        write(
            "need",
            {
                "title": "What misses a statement of the pages that stdio needs",
                "command": "make need",
                "versions": {**ours(), "python": sys.version.split()[0]},
                "figures": {
                    "statements": total,
                    "tried": len(every),
                    **figures,
                    "Without an id": rows,
                },
                "note": "Every fifth was replaced by `pass`, and the tests ran until one failed.",
            },
        )
    return count["nothing"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
