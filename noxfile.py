"""Everywhere: the tests on every Python that is here, and in surroundings that are not kind.

    pip install -e '.[trust]'
    nox                          the core tests, on each Python and in each of the surroundings
    nox -s 'tests(3.12)'         one of them; `nox --list` names them all
    nox -s 'tests(3.12)' -- all  and not only the core: everything that can run there
    nox -s audit                 does anybody know a hole in what the tests install?

What ran, where, and what came of it is written into site/results/everywhere.json. Each session
clones the last commit into a folder of its own, so it sees no file that was forgotten and no edit
that goes on meanwhile. A Python that is not here is recorded as such.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import nox

ROOT = Path(__file__).parent
RECORD = ROOT / "site" / "results" / "everywhere.json"
PYTHONS = ["3.10", "3.11", "3.12", "3.13", "3.14", "3.15"]
Row = dict[str, Any]
NOBODY = 65534  # the user whom every Linux has, and who may do nothing
BEYOND = """audit connect conformance docs examples_* load notebooks* peers playground site spikes
    trust_*""".split()  # about the site, or programs of others, or they take long on purpose

MEMBERS = "where Python tests passed failed skipped seconds commit".split()
COUNTED = ("passed", "failed", "skipped", "seconds")
NOTE = (
    "The core is every module of tests but those about the site, the examples, programs of other "
    "makers, faults and load. Each run had a clone of one commit, and a machine that was not idle."
)

nox.options.sessions = ["tests", "surroundings"]

# ## Where


@nox.session(python=False)
@nox.parametrize("version", PYTHONS, ids=PYTHONS)
def tests(session: nox.Session, version: str) -> None:
    """The tests on one Python."""
    python = found(version)
    if python is None:
        record({"where": f"Python {version}", "Python": "not here", **dict.fromkeys(COUNTED, 0)})
        session.skip(f"there is no python{version} on the PATH, nor in pyenv")
    with cloned("minimcp") as folder:
        run(session, f"Python {version}", folder, python)


def found(version: str) -> str | None:
    """A Python of this version, on the PATH or where pyenv puts it."""
    kept = Path.home().glob(f".pyenv/versions/{version}.*/bin/python{version}")
    for path in (shutil.which(f"python{version}"), *sorted(map(str, kept))):
        if path and subprocess.run([path, "-c", ""], capture_output=True).returncode == 0:  # noqa: S603
            return path
    return None


SURROUNDINGS = {
    "warnings": "every warning is an error, in children too (-W error)",
    "dev": "Python's development mode (-X dev)",
    "C": "the C locale (LC_ALL=C), not coerced to another",
    "ASCII": "the C locale, and Python's UTF-8 mode off",
    "home": "a home that cannot be written, and a user who is nobody",
    "path": "a path with blanks and letters of other alphabets",
    "nobody": "an unprivileged user",
}
VARIABLES = {
    "warnings": {"PYTHONWARNINGS": "error"},
    "dev": {"PYTHONDEVMODE": "1"},
    "C": {"LC_ALL": "C", "LANG": "C", "PYTHONCOERCECLOCALE": "0"},
    "ASCII": {"LC_ALL": "C", "LANG": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
}


@nox.session(python=False)
@nox.parametrize("kind", list(SURROUNDINGS), ids=list(SURROUNDINGS))
def surroundings(session: nox.Session, kind: str) -> None:
    """The tests where something is not as it should be."""
    name = "größer, 文件 & other things/minimcp" if kind == "path" else "minimcp"
    with cloned(name) as folder:
        env, front, python = dict(VARIABLES.get(kind, {})), list[str](), sys.executable
        if kind in ("home", "nobody"):
            front, python = as_nobody(session, folder), "/usr/bin/python3"
            env["HOME"] = str(a_home(folder, writable=kind == "nobody"))
        run(session, SURROUNDINGS[kind], folder, python, env, front)


def as_nobody(session: nox.Session, folder: Path) -> list[str]:
    """What stands before a command to run it as nobody, who gets the folder.

    Nobody cannot use a Python that lives in somebody's home, and so takes that of the system.
    """
    if os.geteuid() != 0:  # then we are no privileged user ourselves
        return []
    if not shutil.which("setpriv"):
        session.skip("no setpriv (util-linux)")
    for path in (folder, *folder.rglob("*")):
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]


def a_home(folder: Path, writable: bool) -> Path:
    """A home for that user: ours, if it may not be written."""
    home = folder.parent / "home"
    home.mkdir()
    if writable and os.geteuid() == 0:
        os.chown(home, NOBODY, NOBODY)
    home.chmod(0o755 if writable else 0o555)
    return home


@contextmanager
def cloned(name: str) -> Iterator[Path]:
    """A clone of the last commit, in a folder that everybody may read."""
    place = Path(tempfile.mkdtemp(prefix="everywhere-"))
    place.chmod(0o755)
    folder = place / name
    try:
        subprocess.run(["git", "clone", "--quiet", ROOT, folder], check=True)  # noqa: S603, S607
        yield folder
    finally:
        shutil.rmtree(place, ignore_errors=True)


# ## What


def run(
    session: nox.Session,
    where: str,
    folder: Path,
    python: str,
    env: dict[str, str] | None = None,
    front: list[str] | None = None,
) -> None:
    """Make an environment, run the tests in a folder, and record what came of it."""
    made = environment(folder, python)
    everything = "all" in session.posargs
    ignored = [] if everything else [f"--ignore-glob=tests/test_{name}.py" for name in BEYOND]
    report = folder / "report.xml"
    options = ["-q", "--numprocesses=auto", f"--junitxml={report}", *ignored]
    command = [*(front or []), str(made), "-m", "pytest", *options]
    calm = {"PYTHONDONTWRITEBYTECODE": "1", "CI": None, **(env or {})}
    with session.chdir(folder):
        session.run(*command, env=calm, external=True, success_codes=[0, 1])
    row: Row = {"where": where, "Python": version_of(made), **counts(report)}
    record({**row, "tests": "all" if everything else "core", "commit": commit(folder)})
    if row["failed"]:
        session.error(f"{row['failed']} failed")


def environment(folder: Path, python: str) -> Path:
    """The Python of a new environment beside the folder, with what the tests need."""
    place = folder.parent / "venv"
    subprocess.run([python, "-m", "venv", place], check=True)  # noqa: S603
    made = place / "bin" / "python"
    install = [made, "-m", "pip", "install", "--quiet", f"{folder}[test]"]
    subprocess.run(install, check=True)  # noqa: S603
    return made


def version_of(python: Path) -> str:
    command = [python, "-c", "import platform; print(platform.python_version())"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()  # noqa: S603


def commit(folder: Path) -> str:
    command = ["git", "-c", "safe.directory=*", "rev-parse", "--short", "HEAD"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=folder)  # noqa: S603
    return done.stdout.strip()


# ## What came of it


def counts(report: Path) -> dict[str, int]:
    """How many passed, failed, were skipped; and how many seconds it took."""
    [suite] = ElementTree.parse(report).iter("testsuite")  # noqa: S314 (we wrote it)
    told = {key: int(suite.get(key, 0)) for key in ("tests", "failures", "errors", "skipped")}
    failed = told["failures"] + told["errors"]
    passed = told["tests"] - failed - told["skipped"]
    seconds = round(float(suite.get("time", 0)))
    return dict(zip(COUNTED, (passed, failed, told["skipped"], seconds), strict=True))


def record(row: Row) -> None:
    """Put a row into the record, in the place of an older one of the same kind."""
    today = datetime.now(timezone.utc).date().isoformat()
    rows = json.loads(RECORD.read_text(encoding="utf-8"))["rows"] if RECORD.exists() else []
    row = {key: row.get(key, "") for key in MEMBERS} | {"date": today}
    known = {(one["where"], one["tests"]): one for one in rows}
    known[row["where"], row["tests"]] = row
    order = [f"Python {one}" for one in PYTHONS] + list(SURROUNDINGS.values())
    rows = sorted(known.values(), key=lambda one: (order.index(one["where"]), one["tests"]))
    text = ",\n".join(f"  {json.dumps(one, ensure_ascii=False)}" for one in rows)
    RECORD.parent.mkdir(exist_ok=True)
    told = {"title": "Everywhere", "page": "conformance", "command": "nox", "note": NOTE}
    head = json.dumps(told, indent=1).removesuffix("\n}")
    RECORD.write_text(f'{head},\n "rows": [\n{text}\n ]\n}}\n', encoding="utf-8")


# ## The audit


@nox.session(python=False)
def audit(session: nox.Session) -> None:
    """Ask the advisory database about everything that is installed, or a copy of it."""
    session.run(sys.executable, "tests/audit.py", *session.posargs)
