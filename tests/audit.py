"""Ask a copy of the advisory database whether anybody knows a hole in what is installed here.

    git clone --depth=1 https://github.com/pypa/advisory-database
    python tests/audit.py advisory-database        what came of it is recorded
    python tests/audit.py                          ask the service of today, over the network

With a copy, this answers pip-audit as https://osv.dev does, from the files, on a free port of this
machine. That answer is as old as the copy is, and the record says how old that was. A second
question, about packages that are known to have holes, is the control: it must find them. Whatever
could not be asked about is a failure: silence is no answer.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import metadata
from pathlib import Path
from threading import Thread
from typing import Any

from packaging.version import Version
from record import write

try:
    import yaml
except ImportError:  # comes with mkdocs
    yaml = None

CONTROL = "jinja2==2.10\nuvicorn==0.11.6\n"  # each with an advisory, since 2019 and 2020
OPTIONS = ["--strict", "--no-deps", "--disable-pip", "--progress-spinner=off", "--format=json"]


def advisories(folder: Path, name: str, version: str) -> list[dict[str, Any]]:
    """What the database says about one version of one package."""
    files = sorted(folder.glob(f"vulns/{name}/*.yaml"))
    texts = [path.read_text(encoding="utf-8") for path in files]
    found = [yaml.load(text, Loader=yaml.BaseLoader) for text in texts]
    return [one for one in found if any(concerns(part, version) for part in one["affected"])]


def concerns(affected: dict[str, Any], version: str) -> bool:
    """Whether a version is listed, or lies between where a hole came in and where it was mended."""
    parts = [part for part in affected.get("ranges", ()) if part["type"] == "ECOSYSTEM"]
    within = any(inside(part["events"], Version(version)) for part in parts)
    return within or version in affected.get("versions", ())


def inside(events: list[dict[str, str]], at: Version) -> bool:
    """Whether the last thing that had happened by this version let the hole in."""
    is_open = False
    for kind, text in [pair for event in events for pair in event.items()]:
        if at >= Version(text) and not (kind == "last_affected" and at == Version(text)):
            is_open = kind == "introduced"
    return is_open


@contextmanager
def service(folder: Path) -> Iterator[str]:
    """The address of what answers as the service does, from the files."""

    class Answer(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            found = advisories(folder, asked["package"]["name"], asked["version"])
            body = json.dumps({"vulns": found} if found else {}).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1/query"
        server.shutdown()


def audit(packages: str, *options: str) -> dict[str, list[str]]:
    """What pip-audit says of packages, one `name==version` a line: each with its advisories."""
    with tempfile.TemporaryDirectory() as place:
        (listed := Path(place, "packages.txt")).write_text(packages, encoding="utf-8")
        command = [sys.executable, "-m", "pip_audit", *OPTIONS, "--cache-dir", place, *options]
        command += ["--requirement", str(listed)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if not done.stdout.startswith("{"):
        sys.exit("pip-audit gave no answer; a copy of the database needs no network (see --help)")
    asked = json.loads(done.stdout)["dependencies"]
    return {f"{one['name']} {one['version']}": [v["id"] for v in one["vulns"]] for one in asked}


def installed() -> str:
    """All that is installed, but for this project."""
    freeze = [sys.executable, "-m", "pip", "freeze", "--all", "--exclude-editable"]
    return subprocess.run(freeze, capture_output=True, text=True, check=True).stdout


def known(folder: Path) -> tuple[int, str]:
    """How many advisories there are, and the day of the newest."""
    texts = [path.read_text(encoding="utf-8") for path in folder.glob("vulns/*/*.yaml")]
    if not texts:
        sys.exit(f"{folder} is no copy of the advisory database: it has no vulns/*/*.yaml")
    days = (re.search(r"^published: ['\"]?(\d{4}-\d\d-\d\d)", text, re.M) for text in texts)
    return len(texts), max(day[1] for day in days if day)


def main() -> int:
    """Say which packages have holes, and record it if the answer came from a copy."""
    if "--help" in sys.argv:
        sys.exit(__doc__)
    if len(sys.argv) < 2:
        return tell(audit(CONTROL), audit(installed()))
    folder = Path(sys.argv[1])
    count, newest = known(folder)
    print(f"{count} advisories, the newest of {newest}")
    with service(folder) as address:
        options = "--vulnerability-service=osv", f"--osv-url={address}"
        control, found = audit(CONTROL, *options), audit(installed(), *options)
    record(count, newest, control, found)
    return tell(control, found)


def tell(control: dict[str, list[str]], found: dict[str, list[str]]) -> int:
    """Print the holes; 1 if there are any, or if the control has none."""
    holes = {name: known for name, known in found.items() if known}
    for name, ids in holes.items():
        print(name, *ids)
    print(f"{len(found)} packages, {len(holes)} with a known hole")
    if not all(control.values()):
        sys.exit(f"the control found too little, so the rest means nothing: {control}")
    return int(bool(holes))


def record(
    count: int, newest: str, control: dict[str, list[str]], found: dict[str, list[str]]
) -> None:
    figures = {
        "advisories in the copy": count,
        "the newest of them": newest,
        "packages installed, and asked about": len(found),
        "packages with a known hole": sum(map(bool, found.values())),
        "the control, two packages with old holes": f"{sum(map(bool, control.values()))} found",
    }
    note = """Whatever became known after that day is not in it. `make audit` asks the service of
    today, and so should you. The npm packages of the tests are not in this database."""
    write(
        "audit",
        {
            "title": "Does anybody know a hole in what the tests install?",
            "page": "conformance",
            "command": "python tests/audit.py advisory-database",
            "versions": {"pip-audit": metadata.version("pip-audit")},
            "figures": figures,
            "note": " ".join(note.split()),
        },
    )


if __name__ == "__main__":
    sys.exit(main())
