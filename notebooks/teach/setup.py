"""What a notebook needs around it: the package, a folder for servers, helpers like bash."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
INSTALL = {
    "bash": "it comes with Linux and macOS; on Windows use WSL or Git Bash",
    "jq": "apt install jq, brew install jq, or https://jqlang.org",
    "node": "https://nodejs.org, version 22 or newer",
}


class Missing(Exception):
    """Something that is not there; shown as one sentence, without a traceback."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def ready() -> str:
    """Make `minimcp` importable, here and in servers that are started from here."""
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))
    paths = [str(ROOT), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(paths))
    programs = [str(Path(sys.executable).parent), *os.environ.get("PATH", "").split(os.pathsep)]
    os.environ["PATH"] = os.pathsep.join(dict.fromkeys(programs))  # python3 is the one in use
    os.environ.pop("PYTHONUNBUFFERED", None)  # notebook 5 shows what a buffer does
    magic()
    return "ready"


def need(*helpers: str) -> str:
    """Check that programs are there; `Missing` says which is not, and where to get it."""
    for helper in helpers:
        if shutil.which(helper) is None:
            where = INSTALL.get(helper, "install it, and start Jupyter again")
            raise Missing(
                f"This part needs {helper}, which is not on the PATH: {where}.\n"
                "Everything above works without it; everything below needs it."
            )
    return f"{', '.join(helpers)}: there"


# ## Servers as files


def folder() -> Path:
    """A folder for the files of this notebook; it is removed at the end."""
    global _folder
    if _folder is None:
        _folder = tempfile.TemporaryDirectory(prefix="teach-", ignore_cleanup_errors=True)
    return Path(_folder.name)


_folder: tempfile.TemporaryDirectory[str] | None = None


def save(name: str, source: str) -> str:
    """Write a file into `folder()`; a shell script can be executed."""
    path = folder() / name
    path.write_text(source, encoding="utf-8")
    if source.startswith("#!"):
        path.chmod(0o755)
    return f"saved {name} ({len(source.splitlines())} lines)"


def python(name: str, *arguments: str) -> list[str]:
    """The command that runs a saved file."""
    return [sys.executable, str(folder() / name), *arguments]


def magic() -> None:
    """In a notebook, a cell that starts with `%%save server.py` becomes that file."""
    try:
        from IPython.core.getipython import get_ipython
    except ImportError:
        return
    if shell := get_ipython():
        shell.register_magic_function(lambda line, cell: print(save(line, cell)), "cell", "save")


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Leave out what goes to stderr in here: tracebacks that are for the operator."""
    hook, sys.excepthook = sys.excepthook, lambda *error: None
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        sys.excepthook = hook


def until(condition: Callable[[], object], seconds: float = 10.0) -> None:
    """Wait for what another thread or process will do; `TimeoutError` if it does not."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("waited in vain")
        time.sleep(0.005)
