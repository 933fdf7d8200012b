"""Runs the blocks of a page, and builds the site. Used by the tests of documentation.

What may stand between fences, and what happens to it:

- `pycon`: a session; every answer is compared, `...` stands for anything.
- `python`: it runs; if a `text` block follows, that is what it prints, and otherwise it prints
  nothing. With `exec="1"` the site runs it too and shows what it printed, whatever that is.
- `console`: lines that begin with `$ ` are commands, run with the interpreter of the tests as
  `python`; below each stands what it prints, stderr too. One that prints nothing must succeed.
- `bash`: a script; a `text` block that follows is what it prints.
- `json`: one JSON value, or one a line.
- `text`, `http`, `toml`, `yaml`, `nginx`: shown and no more.

All blocks of one page share their names and a folder, which has everything that the root of the
repository has. A `python` block with `title="shop.py"` is saved there, too. Where the site runs a
block, `returncode="1"` says how it must end. A block that is shown and not run has a reason on the
line before: `<!-- not run: … -->`.
"""

from __future__ import annotations

import contextlib
import doctest
import functools
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import traceback
from collections.abc import Iterator
from importlib import util
from pathlib import Path
from typing import Any, NamedTuple

import node_tools
import pytest
from support_skips import need

ROOT = Path(__file__).parent.parent
FENCE = re.compile(
    r"(?:^ *<!-- not run: (?P<why>[^\n]*?) -->\n+)?"
    r"^(?P<indent> *)(?P<ticks>`{3,})(?P<info>[^`\n]*)\n(?P<body>.*?)^(?P=indent)(?P=ticks) *$",
    re.M | re.S,
)
KNOWN = {"title", "linenums", "hl_lines"}  # what the site understands behind a language
SHOWN = {"text", "http", "toml", "yaml", "nginx"}
SECONDS = 60  # for one command
SAME = doctest.ELLIPSIS
SKIPPED = shutil.ignore_patterns("__pycache__")


def pages() -> list[Path]:
    """Every page that is written by hand."""
    roots = [ROOT / "README.md", ROOT / "CHANGELOG.md"]
    found = [path for path in roots if path.exists()]
    return [*found, *sorted(ROOT.glob("adr/*.md")), *sorted(ROOT.glob("site/**/*.md"))]


class Block(NamedTuple):
    """What stands between two fences, and where."""

    language: str
    options: str
    body: str
    line: int  # of the first line between the fences
    why: str | None  # it is not run
    output: str | None  # the `text` block that follows

    @property
    def executed(self) -> bool:
        """Whether the site runs it when it is built."""
        return bool(self.option("exec"))

    def option(self, name: str) -> str:
        """What the fence says behind the language, as in `title="shop.py"`."""
        found = re.search(rf'\b{name}="([^"]*)"', self.options)
        return found[1] if found else ""


def blocks(text: str) -> list[Block]:
    """The blocks of a page; a `text` block behind a `python` or `bash` block is its output."""
    found: list[Block] = []
    end = 0
    for match in FENCE.finditer(text):
        language, _, options = match["info"].partition(" ")
        body = textwrap.dedent(match["body"])
        last = found[-1] if found else None
        follows = last and last.why is None and not text[end : match.start()].strip()
        end = match.end()
        if follows and language == "text" and last.language in ("python", "bash"):
            found[-1] = last._replace(output=body)
            continue
        line = text.count("\n", 0, match.start("body")) + 1
        found.append(Block(language.strip(), options, body, line, match["why"], None))
    return found


# ## Running


def problems(text: str, name: str) -> list[str]:
    """What is wrong with the blocks of a page, each with its place."""
    names: dict[str, Any] = {"__name__": "page"}
    found = []
    with scratch():
        for block in blocks(text):
            complaint = run(block, name, names)
            if complaint:
                found.append(f"{name}:{block.line}: {complaint}")
    return found


@contextlib.contextmanager
def scratch() -> Iterator[None]:
    """Work in a folder that looks like the root of the repository and may be written to."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        for path in ROOT.iterdir():
            (Path(folder) / path.name).symlink_to(path)
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def run(block: Block, name: str, names: dict[str, Any]) -> str:
    """Run one block; what is wrong with it, or nothing."""
    if block.why is not None:
        return "" if len(block.why) > 10 else "why is it not run?"
    unknown = set() if block.executed else {*re.findall(r"(\w+)=", block.options)} - KNOWN
    if unknown:
        return f"the site would not take this for a block, because of {', '.join(unknown)}"
    if block.language in SHOWN and not block.executed:
        return ""
    if block.language not in RUNNERS:
        return f"a block of {block.language or 'no language'} is shown and not run: {block.body!r}"
    return RUNNERS[block.language](block, name, names)


def run_session(block: Block, name: str, names: dict[str, Any]) -> str:
    parser, report = doctest.DocTestParser(), []
    test = parser.get_doctest(block.body, names, name, name, block.line - 1)
    if not test.examples:
        return "a session without a prompt"
    doctest.DocTestRunner(optionflags=SAME).run(test, out=report.append, clear_globs=False)
    names.update(test.globs)
    return "".join(report)


def run_python(block: Block, name: str, names: dict[str, Any]) -> str:
    code = compile("\n" * (block.line - 1) + block.body, name, "exec")
    printed = io.StringIO()
    if title := block.option("title"):
        Path(title).write_text(block.body, encoding="utf-8")
    try:
        with contextlib.redirect_stdout(printed):
            exec(code, names)
    except BaseException:
        return traceback.format_exc()
    return "" if block.executed else compared(printed.getvalue(), block.output or "")


def run_script(block: Block, name: str, names: dict[str, Any]) -> str:
    printed, code = shell(block.body)
    if code != int(block.option("returncode") or 0):
        return f"exit code {code}: {printed}"
    return "" if block.executed else compared(printed, block.output or "")


def run_console(block: Block, name: str, names: dict[str, Any]) -> str:
    parts = re.split(r"^\$ (.*(?:\\\n.*)*)\n?", block.body, flags=re.M)
    if parts[0].strip() or len(parts) < 3:
        return "a console block begins with a `$ ` and a command"
    for command, expected in zip(parts[1::2], parts[2::2], strict=True):
        printed, code = shell(command)
        if code and (block.executed or not expected) and not block.option("returncode"):
            return f"{command}: exit code {code}: {printed}"
        if not block.executed and (wrong := compared(printed, expected)):
            return f"{command}\n{wrong}"
    if str(code) != (block.option("returncode") or str(code)):
        return f"exit code {code}: {printed}"
    return ""


def run_json(block: Block, name: str, names: dict[str, Any]) -> str:
    for text in (block.body, *block.body.splitlines()):
        try:
            json.loads(text)
        except ValueError as error:
            if "Extra data" not in str(error):
                return f"no JSON: {error}"
        else:
            if text is block.body:
                return ""
    return ""


RUNNERS = {
    "pycon": run_session,
    "python": run_python,
    "console": run_console,
    "bash": run_script,
    "json": run_json,
}


def compared(got: str, expected: str) -> str:
    """Nothing, or how what was printed differs from what the page says."""
    if doctest.OutputChecker().check_output(expected, got, SAME):
        return ""
    page, truth = (textwrap.indent(one, "    ") for one in (expected, got))
    return f"the page says\n{page}\nand it is\n{truth}"


def shell(script: str) -> tuple[str, int]:
    """What a script prints, stderr too, and its exit code."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    # `make` within `make test` would say so, and nobody sees that who types the command
    outside_make = {
        key: one for key, one in os.environ.items() if not key.startswith(("MAKE", "MFLAGS"))
    }
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail\n{script}"],
        env={**outside_make, "PATH": path, "PYTHONPATH": str(ROOT), "COLUMNS": "80"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    return done.stdout, done.returncode


# ## Building


def build(folder: Path, config: Path = ROOT / "mkdocs.yml") -> subprocess.CompletedProcess[str]:
    """`mkdocs build --strict`, never with --quiet: that would make --strict a dead letter."""
    if sys.version_info < (3, 11):
        pytest.skip("the theme of the site needs Python 3.11")
    need(util.find_spec("mkdocs"), "no mkdocs here: pip install -e '.[docs]'")
    command = ["mkdocs", "build", "--strict", "--config-file", config, "--site-dir", folder]
    return subprocess.run(
        [sys.executable, "-m", *map(str, command)],
        cwd=config.parent,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},  # the notice of the theme's end: ADR-0014
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )


class Site(NamedTuple):
    """The built site, and how the build went."""

    folder: Path
    done: subprocess.CompletedProcess[str]


@functools.cache
def site() -> Site:
    """The site, built once a run, by the worker that wants it first.

    It has Python for the browser in it, if that can be had.
    """
    home = Path(os.environ["FOLDER_OF_THIS_RUN"])
    folder, log = home / "site", home / "site.json"
    with node_tools.only_one_at_a_time(home):
        if not log.exists():
            node_tools.problem(node_tools.PYODIDE)
            done = build(folder)
            log.write_text(json.dumps([done.args, done.returncode, done.stdout, done.stderr]))
    return Site(folder, subprocess.CompletedProcess(*json.loads(log.read_text())))


def small_tree(folder: Path, *wanted: str) -> Path:
    """A copy of what a build needs, and of the wanted files and folders; says where its config is.

    The real configuration and the real hooks, but for the navigation: that has what is there.
    """
    needed = ("site/hooks", "site/assets", "tests/test_budget.py", "tests/requirements.toml")
    for name in (*needed, *wanted):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, target, ignore=SKIPPED, dirs_exist_ok=True)
        else:
            shutil.copy(ROOT / name, target)
    for name in ("adr", "notebooks", "minimcp", "examples"):
        (folder / name).mkdir(exist_ok=True)  # they are watched
    config = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = sorted(path.name for path in (folder / "site").glob("*.md"))
    navigation = "".join(f"  - {one}\n" for one in (*pages, "minimcp/*", "adr/*", "notebooks/*"))
    (folder / "mkdocs.yml").write_text(
        re.sub(r"^nav:\n(?:  .*\n)+", f"nav:\n{navigation}", config, flags=re.M), encoding="utf-8"
    )
    return folder / "mkdocs.yml"


def built() -> Iterator[Path]:
    """The HTML pages of the site; mkdocs writes them even if it then fails over a warning."""
    folder, done = site()
    assert (folder / "search" / "search_index.json").exists(), done.stderr
    return folder.rglob("*.html")
