"""Runs the scripts of `tests/peers`, each in a process of its own that has the SDKs already.

To import them takes a second or two, and there are dozens of runs: one process imports them and
does nothing else, and each run is a fork of it (where there is no fork, each imports them anew).
"""

from __future__ import annotations

import json
import multiprocessing
import os
import runpy
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

PEERS = Path(__file__).parent / "peers"
SECONDS = 60  # for one run
FORKS = "forkserver" in multiprocessing.get_all_start_methods()
START: Any = multiprocessing.get_context("forkserver" if FORKS else "spawn")
START.set_forkserver_preload(["mcp", "fastmcp.client"])


def run(script: str, *arguments: str, env: Mapping[str, str] = os.environ) -> Any:
    """What a script printed, as an object."""
    with TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        how = (str(PEERS / script), arguments, dict(env), os.getcwd(), str(out), str(err))
        process = START.Process(target=play, args=how)
        process.start()
        process.join(SECONDS)
        process.kill()
        process.join()
        assert process.exitcode == 0, f"{process.exitcode} {err.read_text(encoding='utf-8')}"
        return json.loads(out.read_text(encoding="utf-8"))


def play(
    script: str, arguments: tuple[str, ...], env: dict[str, str], cwd: str, out: str, err: str
) -> None:
    """In the new process: what `python script arguments` does."""
    for number, name in ((1, out), (2, err)):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT), number)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    sys.argv = [script, *arguments]
    runpy.run_path(script, run_name="__main__")
