"""The example of many workers, started on free ports, with a load on it; its record for the site.

python tests/support_scale.py [CALLS]       writes site/results/scale.json
"""

import importlib.util
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from importlib import metadata
from pathlib import Path

import record
from support import free_port, until
from support_examples import EXAMPLES

from minimcp import Client

SCALE = EXAMPLES / "scale"


def module(name):
    spec = importlib.util.spec_from_file_location(f"scale_{name}", SCALE / f"{name}.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


load, start = module("load"), module("start")


class Site:
    """The example as a person starts it, on free ports; `events` are its lines."""

    def __init__(self, folder):
        self.orders, config = folder / "orders.txt", folder / "nginx.conf"
        self.orders.touch()
        text = (SCALE / "nginx.conf").read_text(encoding="utf-8")
        self.ports = {port: free_port() for port in ("8001", "8002", "8003", "3000")}
        for port, free in self.ports.items():
            text = text.replace(f"127.0.0.1:{port}", f"127.0.0.1:{free}")
        config.write_text(text, encoding="utf-8")
        command = [sys.executable, str(SCALE / "start.py"), "--config", str(config)]
        command += [sys.executable, str(SCALE / "server.py")]
        env = {**os.environ, "ORDERS": str(self.orders)}
        self.process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        self.url = re.search("http:.*", self.process.stdout.readline())[0]
        until(lambda: start.reachable(self.ports["3000"]), what="for nginx")
        return self

    def __exit__(self, *exception):
        self.process.terminate()
        assert self.process.wait(60) == 0
        self.process.stdout.close()
        assert not any(start.reachable(port) for port in self.ports.values())

    def ran(self):
        """How often each order ran."""
        return Counter(map(int, self.orders.read_text(encoding="utf-8").split()))

    def takers(self):
        """The processes that take orders."""
        with Client(self.url, era="modern") as client:
            told = [client.call_tool("order", {"number": -1}).text for _ in range(30)]
        return {int(text.rpartition(" ")[2]) for text in told}


def renewed(site, many):
    """A load; after a quarter of it, every worker is renewed."""
    asked = []

    def progress(number):
        asked.append(number)
        if len(asked) == many // 4:
            site.process.send_signal(signal.SIGHUP)

    found = load.load(site.url, many, progress)
    assert site.process.stdout.readline() == "all workers are new\n"
    return found


def killed(site, many, workers):
    """A load; after a quarter and after a half of it, a worker is killed."""
    asked = []

    def progress(number):
        asked.append(number)
        if len(asked) in (many // 4, many // 2):
            os.kill(workers[len(asked) * 4 // many - 1], signal.SIGKILL)

    return load.load(site.url, many, progress)


def row(what, site, found, many):
    """What came of a load, in numbers."""
    ran = site.ran()
    told, lost = found["orders"], found["orders that may have run"]
    return {
        "what": what,
        "calls": many,
        "prices answered": found["prices"],
        "orders answered": len(told),
        "asked again": found.get("asked again", 0),
        "orders told to be unknown": len(lost),
        "of them had run": sum(ran[number] for number in lost),
        "ran twice": sum(ran[number] > 1 for number in (*told, *lost)),
        "lost": many - found["prices"] - len(told) - len(lost),
    }


def main(many):
    """Both loads, and the record of them."""
    from tempfile import TemporaryDirectory

    rows = []
    for what in ("all workers are renewed", "two of three workers are killed"):
        with TemporaryDirectory() as folder, Site(Path(folder)) as site:
            workers = sorted(site.takers())
            found = renewed(site, many) if "renewed" in what else killed(site, many, workers)
            rows.append(row(what, site, found, many))
    done = subprocess.run([start.nginx(), "-v"], capture_output=True, text=True, check=True)
    versions = {"Python": sys.version.split()[0], "uvicorn": metadata.version("uvicorn")}
    versions["nginx"] = done.stderr.strip().rpartition("/")[2]
    told = {"title": "Several workers behind nginx", "page": "conformance"}
    told |= {"command": "make scale", "versions": versions, "rows": rows}
    record.write("scale", told)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000)
