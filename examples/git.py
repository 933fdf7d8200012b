"""Git: status, log, show and diff of one repository.

    python examples/git.py                                 the current folder, over stdio
    python examples/git.py --repo ~/project --http 3000    another one, over Streamable HTTP

The lesson: *an argument stays an argument*. There is no shell, so nothing is parsed twice. A
revision is looked up first, behind `--end-of-options`, and only the hash that comes back goes
any further: a branch called `--help` works, and `--output=x` is a branch that does not exist. A
path stands behind `--` and is taken literally. Nobody waits for ever and nothing grows without
end: there is a deadline, and output is cut at a limit, which the result says.

What it does not do: protect you from a repository whose own `.git/config` means harm. Git runs
the filters that stand there; so serve a repository in which you would type `git status` yourself.
"""

import os
import sys
from argparse import ArgumentParser
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from tempfile import TemporaryFile
from threading import Timer
from typing import Annotated

sys.path.append(str(Path(__file__).parents[1]))  # so that it runs from a clone, not installed
from minimcp import Server, ToolError, run

LIMIT = 100_000  # bytes of output
TIMEOUT = 10.0  # seconds
# No pager, no network (a partial clone would fetch), no program of the repository's own.
CALM = "--no-pager --no-optional-locks --literal-pathspecs -c protocol.allow=never".split()
CALM += "-c core.fsmonitor=false -c log.showSignature=false -c core.quotePath=false".split()
PATCH = ["--no-color", "--no-ext-diff", "--no-textconv"]
# Variables such as GIT_DIR would lead to another repository.
ENV = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
ENV |= {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"}

Revision = Annotated[str, "a branch, a tag, a hash, HEAD~2, ..."]
Below = Annotated[str, "a file or folder, seen from the folder that is served"] | None


@dataclass
class Change:
    """A changed file; `state` is git's two letters: in the index, in the working tree."""

    state: str
    path: str


@dataclass
class Status:
    """`truncated` here and below: there was more than fits."""

    branch: str
    changes: list[Change]
    truncated: bool


@dataclass
class Commit:
    hash: str
    date: str
    author: str
    subject: str


@dataclass
class Log:
    commits: list[Commit]
    truncated: bool


@dataclass
class Text:
    """What git prints for people; models read it as well."""

    text: str
    truncated: bool


class Repository:
    """The tools: each method is one."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def status(self) -> Status:
        """Show the branch and what has changed since the last commit."""
        output, truncated = self.git("status", "--porcelain", "--branch", "--no-renames", "-z")
        branch, *entries = output.split("\0")[:-1]  # what follows the last NUL was cut off
        changes = [Change(entry[:2], entry[3:]) for entry in entries]
        return Status(branch.removeprefix("## "), changes, truncated)

    def log(self, revision: Revision = "HEAD", path: Below = None, limit: int = 20) -> Log:
        """List commits, newest first: hash, date, author, subject."""
        if not 1 <= limit <= 1000:
            raise ToolError("limit: from 1 to 1000; to see older ones, start at a revision")
        shape = ["--format=%H%x00%aI%x00%an%x00%s", f"--max-count={limit}"]
        output, truncated = self.git("log", *shape, self.find(revision), *only(path))
        lines = output.split("\n")[:-1]  # no field can have a line break in it, or a NUL
        return Log([Commit(*line.split("\0")) for line in lines], truncated)

    def show(self, revision: Revision = "HEAD") -> Text:
        """Show one commit: who, when, the whole message, and the patch."""
        return Text(*self.git("show", "--format=medium", *PATCH, self.find(revision)))

    def diff(self, old: Revision = "HEAD", new: Revision | None = None, path: Below = None) -> Text:
        """Compare two revisions, or a revision with the files as they are now."""
        both = [self.find(one) for one in (old, new) if one is not None]
        return Text(*self.git("diff", *PATCH, *both, *only(path)))

    # ## How git is called

    def find(self, revision: str) -> str:
        """The hash of a commit. Everything else that git might read into it ends here."""
        words = ["--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"]
        with suppress(ToolError, ValueError, OSError):  # git's no, a NUL in it, endless letters
            found = self.git("rev-parse", *words)[0].strip()
            if found.isalnum():  # `^main` gives `^` and a hash
                return found
        raise ToolError(f"there is no commit {revision[:200]!r}; log shows what there is")

    def git(self, *words: str) -> tuple[str, bool]:
        """What git prints, at most `LIMIT` bytes of it, and whether there was more."""
        wiring = {"cwd": self.folder, "env": ENV, "stdin": DEVNULL, "stdout": PIPE}
        command = ["git", *CALM, *words]
        with TemporaryFile() as errors, Popen(command, stderr=errors, **wiring) as process:  # noqa: S603
            alarm = Timer(TIMEOUT, process.kill)
            alarm.start()
            output = process.stdout.read(LIMIT + 1)
            if truncated := len(output) > LIMIT:
                process.kill()
            failed = process.wait() and not truncated
            in_time = alarm.is_alive()
            alarm.cancel()
            errors.seek(0)
            text = errors.read(1000).decode(errors="replace").strip()
        if not in_time:
            raise ToolError(f"git {words[0]} took longer than {TIMEOUT:g} s; ask for less")
        if failed:
            raise ToolError(f"git {words[0]} failed: {text or process.returncode}")
        return output[:LIMIT].decode(errors="replace"), truncated


def only(path: str | None) -> list[str]:
    """The end of a command: what stands behind `--` is a path, whatever it looks like."""
    return ["--"] if path is None else ["--", path]


def make_server(folder: str) -> Server:
    """A server for one repository; `SystemExit` if it is none."""
    repository = Repository(folder)
    try:
        top, _ = repository.git("rev-parse", "--show-toplevel")
    except (ToolError, OSError) as error:
        raise SystemExit(f"{folder}: {error}; name a repository with --repo") from None
    server = Server("git", version="1.0.0", instructions=f"The git repository {top.strip()}")
    for tool in (repository.status, repository.log, repository.show, repository.diff):
        server.tool(annotations={"readOnlyHint": True})(tool)
    return server


if __name__ == "__main__":
    parser = ArgumentParser(epilog="and --http [PORT], --log FILE, --verbose", allow_abbrev=False)
    parser.add_argument("--repo", default=".", metavar="DIR", help="default: the current folder")
    options, rest = parser.parse_known_args()
    run(make_server(options.repo), rest)
