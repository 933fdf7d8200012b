"""Several workers behind nginx: one command starts them, watches them, and renews them.

    python examples/scale/start.py python examples/scale/server.py
    kill -HUP PID       every worker anew, one after the other (PID is on the first line)
    kill PID            the end, as with Ctrl+C

The command gets `--http PORT` behind it, for each port of a worker in nginx.conf (or in the file
that `--config` names). A worker that ended is started again. All get the same MINIMCP_KEY, so that
what one asked of a client, another one can go on with. It needs nginx.
"""

import os
import re
import secrets
import shutil
import signal
import socket
import sys
import tempfile
import time
from argparse import ArgumentParser
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL, Popen, TimeoutExpired

WORKER, DOOR = r"^ *server 127\.0\.0\.1:(\d+)", r"^ *listen 127\.0\.0\.1:(\d+)"
PATIENCE = 30.0  # seconds for a worker to begin, and to end
TICK = 0.05  # seconds between two looks at them


class Workers:
    """A process for each port; `env` is what they share."""

    def __init__(self, command: list[str], ports: list[int]) -> None:
        self.command, self.env = command, {"MINIMCP_KEY": secrets.token_hex(), **os.environ}
        self.processes = {port: self.start(port) for port in ports}

    def start(self, port: int) -> "Popen[bytes]":
        command = [*self.command, "--http", str(port)]
        return Popen(command, env=self.env, stderr=DEVNULL)  # noqa: S603

    def wait(self, port: int) -> None:
        """Wait until a worker takes connections."""
        end = time.monotonic() + PATIENCE
        while not reachable(port):
            if self.processes[port].poll() is not None or time.monotonic() > end:
                sys.exit(f"{self.command} does not serve at port {port}")
            time.sleep(TICK)

    def renew(self) -> None:
        """One after the other: a worker finishes its calls and ends, and a new one begins."""
        for port in self.processes:
            stop(self.processes[port])
            self.processes[port] = self.start(port)
            self.wait(port)

    def revive(self) -> None:
        """Start those again that have ended."""
        for port, process in self.processes.items():
            if process.poll() is not None:
                self.processes[port] = self.start(port)


def reachable(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def stop(process: "Popen[bytes]") -> None:
    """Let a process finish and end; end it if it does not."""
    process.terminate()
    with suppress(TimeoutExpired):
        process.wait(PATIENCE)
    process.kill()
    process.wait()


def nginx() -> str | None:
    """The program, if it is installed; not every PATH has the folder where it is."""
    return shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


def ports(pattern: str, text: str) -> list[int]:
    return [int(port) for port in re.findall(pattern, text, re.M)]


def main() -> None:
    """Serve until SIGINT or SIGTERM."""
    parser = ArgumentParser(description="several workers behind nginx")
    parser.add_argument("--config", type=Path, default=Path(__file__).with_name("nginx.conf"))
    options, command = parser.parse_known_args()
    if not (program := nginx()) or not command:
        sys.exit("which command starts a worker?" if program else "nginx is not installed")
    text = options.config.read_text(encoding="utf-8")
    wishes: list[int] = []
    for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, frame: wishes.append(number))
    workers = Workers(command, ports(WORKER, text))
    with tempfile.TemporaryDirectory() as folder:
        for port in workers.processes:
            workers.wait(port)
        front = Popen([program, "-p", folder, "-c", options.config.resolve()])  # noqa: S603
        [door] = ports(DOOR, text)
        print(f"{os.getpid()} serves at http://127.0.0.1:{door}/mcp", flush=True)
        while front.poll() is None and wishes[:1] in ([], [signal.SIGHUP]):
            if wishes:
                workers.renew()
                print("all workers are new", flush=True)
                wishes.remove(signal.SIGHUP)
            workers.revive()
            time.sleep(TICK)
        stop(front)
        for process in workers.processes.values():
            stop(process)


if __name__ == "__main__":
    main()
