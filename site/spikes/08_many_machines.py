"""Can it outgrow one machine?

A modern request needs nothing that came before, so any worker can take it, and a proxy can tell
from two headers what it is. The hypothesis: a plain nginx spreads the calls over several uvicorn
workers and sends each to the right ones; and when a worker is killed, only what it was just
working on is lost.
"""

import os
import re
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from contextlib import ExitStack, suppress
from pathlib import Path
from string import Template

import lab

QUESTION = "Can it outgrow one machine?"
CONTROL = "nginx told never to try another worker, nor to give one up"
ADRS = ["0001", "0008"]
PACKAGES = ["minimcp-reference", "uvicorn"]
ROUNDS, QUICK = 4_000, 600  # calls under load
WIDE = 16
ROUTES, KILLED = "where requests went", "a worker is killed under load"
WORKERS = {"first": "any", "second": "any", "lister": "lists", "strong": "heavy"}

# ## The configuration
#
# It is [08_nginx.conf](08_nginx.conf), with ports and pools filled in. `map` makes the name of a
# pool from the two headers. The body is passed on as it arrives, so nginx cannot have read it. The
# workers do read it, and refuse a request whose headers lie.

NGINX = Template((lab.HERE / "08_nginx.conf").read_text(encoding="utf-8"))


def configuration(folder: str, port: int, ports: dict[str, int], again: str) -> str:
    """The whole file; each pool has the workers that `WORKERS` says."""
    pools = ""
    for pool in dict.fromkeys(WORKERS.values()):
        fails = " max_fails=0" if again == "off" else ""
        names = [name for name in WORKERS if WORKERS[name] == pool]
        here = [f"server 127.0.0.1:{ports[name]}{fails};" for name in names]
        pools += f"    upstream {pool} {{ {' '.join(here)} keepalive 32; }}\n"
    return NGINX.substitute(folder=folder, port=port, pools=pools, again=again)


WORKER = """
from minimcp import Server
from minimcp.http import app
import uvicorn
server = Server("{0}")
@server.tool
def add(a: int, b: int) -> int:
    return a + b
@server.tool
def heavy(a: int, b: int) -> int:
    return a ** b
uvicorn.run(app(server), port={1}, log_level="critical")
"""


def nginx() -> str | None:
    """The program, if it is installed."""
    return shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


class Front:
    """Workers, and nginx in front of them; all end with the block."""

    def __init__(self, again: str) -> None:
        self.port, self.ports = lab.free_port(), {name: lab.free_port() for name in WORKERS}
        self.stack, self.again = ExitStack(), again

    def __enter__(self) -> "Front":
        folder = self.stack.enter_context(tempfile.TemporaryDirectory())
        self.workers = {name: self.worker(name) for name in WORKERS}
        file = Path(folder, "nginx.conf")
        file.write_text(configuration(folder, self.port, self.ports, self.again))
        command = [nginx() or "nginx", "-p", folder, "-c", str(file)]
        self.nginx = subprocess.Popen(command, stderr=subprocess.DEVNULL)  # noqa: S603
        self.stack.callback(self.nginx.wait)
        self.stack.callback(self.nginx.terminate)
        end = time.monotonic() + 20
        while time.monotonic() < end:
            with suppress(OSError):
                self.ask("tools/list")
                return self
            time.sleep(0.05)
        raise RuntimeError(Path(folder, "error.log").read_text())

    def worker(self, name: str) -> lab.Child:
        source = WORKER.format(name, self.ports[name])
        return self.stack.enter_context(lab.serving(source, self.ports[name]))

    def __exit__(self, *exception: object) -> None:
        self.stack.close()

    def request(self, method: str, name: str = "", told: str = "") -> bytes:
        """A request about `name`, whose header says `told`."""
        line = lab.call(1, name)
        if method == "tools/list":
            line = line.replace(b"tools/call", b"tools/list")
        return lab.post(line, "localhost", method, told or name)

    def ask(self, method: str, name: str = "", told: str = "", times: int = 1) -> Counter[str]:
        """How often which worker answered."""
        found: Counter[str] = Counter()
        data = self.request(method, name, told)
        lab.flood(self.port, data, times, lambda one: found.update([who(one)]), WIDE)
        return found


def who(response: bytes) -> str:
    """The worker that answered, or what went wrong: a status, or an error code."""
    status = response[9:12].decode()
    named = re.search(rb'serverInfo":\{"name":"(\w+)"', response)
    code = re.search(rb'"code":(-\d+)', response)
    return named[1].decode() if named else (code[1].decode() if code else status or "broken off")


# ## Experiments


def routes(front: Front) -> dict[str, str]:
    """Who answers what."""
    asked = {
        "tools/list": ("tools/list", "", ""),
        "tools/call of add": ("tools/call", "add", ""),
        "tools/call of heavy": ("tools/call", "heavy", ""),
        "add, but the header says heavy": ("tools/call", "add", "heavy"),
    }
    return {what: ", ".join(sorted(front.ask(*one, times=40))) for what, one in asked.items()}


def killed(front: Front, many: int) -> dict[str, object]:
    """What clients see when one of two workers is killed with calls on their way."""
    came: list[str] = []

    def seen(response: bytes) -> None:
        came.append(who(response))
        if len(came) == many // 4:
            front.workers["second"].process.kill()

    lab.flood(front.port, front.request("tools/call", "add"), many, seen, WIDE)
    good = [one for one in came if one in WORKERS]
    after = came[many // 4 + 5 * WIDE :]
    return {
        "calls": many,
        "answered by the first worker": came.count("first"),
        "answered by the second, before": came.count("second"),
        "lost": many - len(good),
        "lost later than the kill": sum(one not in WORKERS for one in after),
    }


def measure(rounds: int, control: bool = False) -> lab.Groups:
    """The routes, then the kill."""
    with Front("off" if control else "error timeout") as front:
        return {ROUTES: routes(front), KILLED: killed(front, rounds)}


def verdict(groups: lab.Groups) -> tuple[bool, str]:
    """The right workers, a lie refused; only what was on its way to the dead worker is lost."""
    went, counted = groups[ROUTES], groups[KILLED]
    right = list(went.values()) == ["lister", "first, second", "strong", "-32020"]
    said = f"nginx sent requests to the {'right' if right else 'wrong'} workers by two headers. "
    said += (
        f"Of {counted['calls']:,} calls {counted['lost']} were lost when one of two workers was "
    )
    said += f"killed with {WIDE} on their way, and {counted['lost later than the kill']} later."
    few = counted["lost"] <= WIDE and counted["lost later than the kill"] == 0
    return right and few and counted["answered by the second, before"] > 0, said


def shown() -> str:
    """The configuration as a page shows it, with ports that are easy to read."""
    ports = {name: 8001 + number for number, name in enumerate(WORKERS)}
    return configuration("/tmp/mcp", 3000, ports, "error timeout")  # noqa: S108
