"""What there is in the repository, and in which order; read from the files themselves."""

from __future__ import annotations

import re
import sys
from functools import cache
from importlib import util
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))  # lines are counted there, once

from test_budget import FIGURES, code_lines  # noqa: E402

RESULTS = ("site/results/*.json",)
PACKAGE, TESTS = ("minimcp/*.py",), ("tests/**/*.py", "tests/requirements.toml")
READ = {  # table -> the files that it is read from
    "lines": PACKAGE,
    "errors": PACKAGE,
    "methods": PACKAGE,
    "notifications": PACKAGE,
    "decisions": ("adr/*.md",),
    "spikes": ("site/spikes/*",),
    "notebooks": ("notebooks/*.ipynb",),
    "examples": ("examples/*.py",),
    "requirement-counts": TESTS,
    "requirements": TESTS,
    "conformance": RESULTS,
    "peers": RESULTS,
}


def read_by(table: str) -> tuple[str, ...]:
    """The files that a table is read from."""
    return RESULTS if table.startswith("figures") else READ.get(table, ())


def stamp(*patterns: str) -> object:
    """What changes when one of some files does, or when there is another."""
    found = sorted({path for pattern in patterns for path in ROOT.glob(pattern)})
    return [(path.name, path.stat().st_mtime_ns) for path in found if path.is_file()]


def ledger() -> Any:
    """The ledger of requirements as it is now, and who proves what."""
    spec = util.spec_from_file_location("ledger", ROOT / "tests" / "ledger.py")
    module = util.module_from_spec(spec)  # type: ignore[arg-type]
    spec.loader.exec_module(module)  # type: ignore[union-attr]
    return module


def size(path: Path) -> int:
    """Lines of code of a file."""
    return counted(path, path.stat().st_mtime_ns)


@cache
def counted(path: Path, changed: int) -> int:
    return len(code_lines(path.read_text(encoding="utf-8")))


def reading_order() -> list[Path]:
    """The modules of the package, from the first page to the last."""
    found = [ROOT / "minimcp" / f"{name}.py" for name in FIGURES]
    return [path for path in found if path.exists()]


def examples() -> list[Path]:
    return sorted(ROOT.glob("examples/*.py"))


def notebooks() -> list[Path]:
    return sorted(ROOT.glob("notebooks/[0-9]*.ipynb"))


def spikes() -> list[Path]:
    return sorted(ROOT.glob("site/spikes/[0-9]*.md"))


def adrs() -> list[Path]:
    return sorted(ROOT.glob("adr/[0-9]*.md"))


class Decision(NamedTuple):
    """What the index says of an ADR."""

    number: str
    title: str
    status: str
    decision: str
    path: Path


def decision(path: Path) -> Decision:
    """Read the head of an ADR, and its one bold line."""
    text = path.read_text(encoding="utf-8")
    title = re.search(r"^# (\d{4})\. (.+)$", text, re.M)
    status = re.search(r"^\| Status \| (.+?) \|$", text, re.M)
    bold = re.search(r"^\*\*(.+?)\*\*$", text, re.M | re.S)
    if not (title and status and bold):
        raise ValueError(f"{path.name}: needs '# NNNN. Title', a status row and one bold line")
    return Decision(title[1], title[2], status[1], " ".join(bold[1].split()), path)


def title_of(path: Path) -> str:
    """The first heading of a page, or of a notebook."""
    text = path.read_text(encoding="utf-8")
    found = re.search(r'^(?: *")?# (.+?)(?:\\n",?)?$', text, re.M)
    return found[1] if found else path.stem
