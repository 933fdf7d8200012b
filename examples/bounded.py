"""Run a foreign program within bounds: so long, so much, and nothing left behind.

    from bounded import execute
    text = execute("list", ["./provider", "list"], timeout=5.0)

The command is a list, and there is no shell. stdin is a file, so a program that never reads it
holds nobody up. The program leads a session of its own, so whatever it starts can be found and
ended with it, when it is done, when it is too much, and when we end ourselves. A shell with job
control (`set -m`) gives its children process groups of their own; they stay in the session.

It is what folder.py runs its providers with. It needs a POSIX system.
"""

import atexit
import os
import selectors
import signal
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from subprocess import PIPE, Popen, TimeoutExpired
from typing import Any

from minimcp import Context, ToolError

GRACE = 0.5  # seconds to end after SIGTERM, and to flush after the end
TICK = 0.05  # seconds between two looks at the clock and at who waits
RUNNING: set["Popen[bytes]"] = set()


def execute(
    name: str,
    command: Sequence[str | bytes | Path],
    text: bytes = b"",
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float = 30.0,
    most: int = 1_000_000,
    context: Context | None = None,
) -> bytes:
    """What a program prints when it gets `text` on stdin; what it says on stderr goes to ours.

    `ToolError` if it fails, takes longer than `timeout` seconds or prints over `most` bytes. Who
    waits for it can be told by a `context`: it gets both kinds of output as progress, and ends
    the program when the call is cancelled.
    """
    with tempfile.TemporaryFile() as stdin:
        stdin.write(text)
        stdin.seek(0)
        wiring = {"stdin": stdin, "stdout": PIPE, "stderr": PIPE, "start_new_session": True}
        try:
            process: Any = Popen(command, cwd=cwd, env=env, **wiring)  # noqa: S603
        except OSError as error:
            advice = "is it executable, and is its '#!' line right, or missing?"
            raise ToolError(f"{name} cannot be started: {error.strerror}; {advice}") from None
    RUNNING.add(process)
    out, err = bytearray(), bytearray()
    try:
        with process.stdout, process.stderr, selectors.DefaultSelector() as pipes:
            pipes.register(process.stdout, selectors.EVENT_READ, out)
            pipes.register(process.stderr, selectors.EVENT_READ, err)
            trouble = follow(process, pipes, timeout, most, context)
    finally:
        end(process)
    said = err.decode(errors="replace").strip()
    if trouble or process.returncode:
        reason = f"{name} {trouble or f'failed with exit code {process.returncode}'}"
        more = out.decode(errors="replace").strip()
        raise ToolError("\n".join(filter(None, (reason, said[-4000:], more[-4000:]))))
    print(said, end="\n" if said else "", file=sys.stderr)
    return bytes(out)


def follow(process: Any, pipes: Any, timeout: float, most: int, context: Any) -> str:
    """Read until the program has ended; why it must be ended, or nothing."""
    deadline, steps = time.monotonic() + timeout, count(1)
    while time.monotonic() < deadline:
        if not pipes.get_map():
            with suppress(TimeoutExpired):
                process.wait(TICK)
                return ""
        news = take(pipes)
        most -= len(news)
        if most < 0:
            return "printed too much, and was ended"
        if context and news:
            context.progress(next(steps), message=news.decode(errors="replace").strip()[:2000])
        if context and context.cancelled:
            return "was cancelled"
        if process.poll() is not None:  # but something that it started may hold a pipe
            deadline = min(deadline, time.monotonic() + GRACE)
    return "" if process.poll() is not None else f"timed out after {timeout:g} s, and was ended"


def take(pipes: Any) -> bytes:
    """What came through the pipes within a tick, if anything did."""
    news = b""
    for key, _ in pipes.select(TICK if pipes.get_map() else 0):
        data = os.read(key.fd, 65_536)
        key.data.extend(data)
        news += data
        if not data:
            pipes.unregister(key.fileobj)
    return news


def end(process: Any) -> None:
    """End a program with all that it started, politely at first."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        for group in groups(process.pid):
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(group, number)
        with suppress(TimeoutExpired):
            process.wait(GRACE)
    RUNNING.discard(process)


def groups(session: int) -> set[int]:
    """The process groups of a session; the leader's alone where there is no /proc."""
    found = set() if os.path.exists("/proc/self/stat") else {session}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it is gone by now
            state, _, group, own, *_ = path.read_bytes().rpartition(b")")[2].split()
            if int(own) == session and state != b"Z":
                found.add(int(group))
    return found


@atexit.register
def end_all() -> None:
    """When we end, nothing that we started stays."""
    for process in list(RUNNING):
        end(process)
