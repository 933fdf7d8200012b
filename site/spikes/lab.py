"""What the experiments share: peers to measure, medians, records, and how a page shows them.

An experiment is a module `NN_question.py` with a `QUESTION`, the `ADRS` that it feeds, a function
`measure(rounds, control)` that returns groups of numbers, and a pure function `verdict` from these
groups to `(holds, sentence)`. With `control=True` something is sabotaged, and the verdict must
turn. `python site/spikes/lab.py [NN …]` measures and writes the record beside the page.
"""

# ruff: noqa: S603 (children are what is measured)

from __future__ import annotations

import json
import os
import platform
import re
import selectors
import socket
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import date
from html import escape
from importlib import metadata, util
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
Stat = dict[str, Any]  # median, low, high, n
Groups = dict[str, dict[str, Any]]  # title -> label -> Stat, or a plain number or word
VERSION = "io.modelcontextprotocol/protocolVersion"
META = {VERSION: "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
META["io.modelcontextprotocol/clientInfo"] = {"name": "spike", "version": "1"}

# ## Peers
#
# The floor reads a line, adds and writes a line: it has no protocol at all, and nothing written in
# Python can be faster. The official SDK serves the same tool.

FLOOR = """import sys, json
for line in sys.stdin.buffer:
    message = json.loads(line)
    given = message["params"]["arguments"]
    text = str(given["a"] + given["b"]) if "a" in given else given["text"]
    result = {"content": [{"type": "text", "text": text}]}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""
TOOLS = """
@server.tool{0}
def add(a: int, b: int) -> int:
    return a + b
@server.tool{0}
def echo(text: str) -> str:
    return text
"""
OURS = f'from minimcp import Server, run\nserver = Server("spike"){TOOLS.format("")}'
SERVER = f"{OURS}run(server)"
SDK = "from mcp.server import MCPServer\nserver = MCPServer('spike')" + TOOLS.format("()")
SDK_SERVER = f"{SDK}server.run()"


def call(ident: int | str, name: str = "add", **arguments: Any) -> bytes:
    """One `tools/call` as a line; without arguments it adds 2 and 40."""
    params = {"name": name, "arguments": arguments or {"a": 2, "b": 40}, "_meta": META}
    message = {"jsonrpc": "2.0", "id": ident, "method": "tools/call", "params": params}
    return json.dumps(message).encode() + b"\n"


class Child:
    """A server behind two pipes, as raw as it can be."""

    def __init__(self, source: str, python: str = sys.executable, **env: str) -> None:
        clean = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        self.process = subprocess.Popen(
            [python, "-c", source],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**clean, "PYTHONPATH": str(ROOT), **env},
            bufsize=0,
        )
        self.send: Any = self.process.stdin.write  # type: ignore[union-attr]
        self.lines = os.fdopen(os.dup(self.process.stdout.fileno()), "rb", 1 << 20)  # type: ignore[union-attr]

    def send_all(self, line: bytes) -> None:
        view = memoryview(line)
        while view:
            view = view[self.send(view) :]

    def ask(self, line: bytes) -> bytes:
        """Send a line, all of it, and wait for the one that comes back."""
        self.send_all(line)
        return self.lines.readline()

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *exception: object) -> None:
        for pipe in (self.process.stdin, self.process.stdout, self.lines):
            pipe.close()  # type: ignore[union-attr]
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def trip(child: Child, times: int = 200) -> float:
    """Microseconds from a call to its reply, when they take turns."""
    return timed(lambda: child.ask(call(1)), times) * 1e6


def inside(code: str, before: str = "pass") -> float:
    """Milliseconds that a piece of code takes in a Python of its own."""
    clock = "from time import perf_counter as now; start = now()"
    source = f"{before}; {clock}; {code}; print(now() - start)"
    command = [sys.executable, "-c", source]
    done = subprocess.run(command, capture_output=True, check=True, cwd=ROOT, text=True)
    return float(done.stdout) * 1000


def schema_cases(drafts: Iterable[str]) -> dict[str, list[tuple[Any, Any, bool]]]:
    """The official JSON-Schema-Test-Suite: (schema, value, valid) for each draft.

    The library's source distribution has it; it is downloaded, since it is not ours to copy.
    """
    wanted = f"jsonschema=={metadata.version('jsonschema')}"
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary=:all:"]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([*pip, "-d", folder, wanted], check=True)
        with tarfile.open(next(Path(folder).glob("*.tar.gz"))) as archive:
            return {draft: list(unpacked(archive, f"/json/tests/{draft}/")) for draft in drafts}


def unpacked(archive: tarfile.TarFile, inside: str) -> Iterator[tuple[Any, Any, bool]]:
    for member in archive.getmembers():
        _, found, name = member.name.partition(inside)
        if found and name.endswith(".json") and "/" not in name:
            for group in json.load(archive.extractfile(member)):  # type: ignore[arg-type]
                for test in group["tests"]:
                    yield group["schema"], test["data"], test["valid"]


def pin() -> None:
    """Put both ends on one processor: otherwise a round trip has two speeds."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


# ## Peers over HTTP
#
# One thread keeps all connections busy: it sends the next request as soon as a response is whole.


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as door:
        return int(door.getsockname()[1])


@contextmanager
def serving(source: str, port: int) -> Iterator[Child]:
    """A server as a child process, from when it takes connections until the block ends."""
    with Child(source) as child:
        try:
            reached(child, port)
            yield child
        finally:
            child.process.kill()


def reached(child: Child, port: int) -> None:
    end = time.monotonic() + 60
    while child.process.poll() is None and time.monotonic() < end:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise RuntimeError(f"nobody serves at {port}")


def post(line: bytes, host: str, method: str = "tools/call", name: str = "add") -> bytes:
    """A request line and all headers that the revision wants, and the message."""
    told = {"Host": host, "Content-Type": "application/json", "Mcp-Method": method}
    told |= {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2026-07-28"}
    told |= {"Mcp-Name": name} if name else {}
    told |= {"Content-Length": str(len(line))}
    head = "".join(f"{key}: {value}\r\n" for key, value in told.items())
    return f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode() + line


def is_whole(response: bytes) -> bool:
    head, end, body = response.partition(b"\r\n\r\n")
    size = re.search(rb"content-length: (\d+)", head.lower())
    return bool(end) and (len(body) >= int(size[1]) if size else body.endswith(b"0\r\n\r\n"))


def flood(port: int, data: bytes, many: int, seen: Any = None, wide: int = 16) -> list[float]:
    """Send `data` over and over on `wide` connections; the seconds that each response took.

    `seen` gets each response. A connection that breaks is opened again, and `seen` gets what came.
    """
    watch, took, left = selectors.DefaultSelector(), list[float](), many

    def begin(link: socket.socket) -> None:
        link.sendall(data)
        watch.register(link, selectors.EVENT_READ, [bytearray(), time.perf_counter()])

    for _ in range(min(wide, many)):
        left -= 1
        begin(socket.create_connection(("127.0.0.1", port), 20))
    while len(took) < many:
        ready = watch.select(20)
        if not ready:
            raise TimeoutError(f"{many - len(took)} responses are missing")
        for key, _ in ready:
            link, (buffer, start) = key.fileobj, key.data
            chunk = link.recv(65536)  # type: ignore[union-attr]
            buffer += chunk
            if chunk and not is_whole(buffer):
                continue
            took.append(time.perf_counter() - start)
            watch.unregister(link)
            if seen:
                seen(bytes(buffer))
            if not chunk or b"connection: close" in buffer[:500].lower():
                link.close()  # type: ignore[union-attr]
                link = socket.create_connection(("127.0.0.1", port), 20)
            if left:
                left -= 1
                begin(link)  # type: ignore[arg-type]
            else:
                link.close()  # type: ignore[union-attr]
    return took


# ## Numbers
#
# The machine is never quiet. So trials take turns, round after round, and the median of each is
# compared with the medians of its neighbours: what counts is the ratio.


def stat(values: Iterable[float]) -> Stat:
    """The median, the middle half, and how many."""
    found = sorted(values)
    low, median, high = statistics.quantiles(found, n=4) if len(found) > 1 else found * 3
    numbers = {"median": median, "low": low, "high": high}
    return {name: float(f"{value:.3g}") for name, value in numbers.items()} | {"n": len(found)}


def rounds_of(trials: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, list[Any]]:
    """Every trial once a round, in turn; returns what each gave."""
    given: dict[str, list[Any]] = {name: [] for name in trials}
    for number in range(rounds):
        for name, trial in trials.items():
            progress(f"round {number + 1} of {rounds}: {name}")
            given[name].append(trial())
    return given


def interleave(trials: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, Stat]:
    """The median of each trial, and the median of its ratios to the first trial of the round."""
    found = rounds_of(trials, rounds)
    base = next(iter(found.values()))
    return {name: stat(values) | {"ratio": times(values, base)} for name, values in found.items()}


def times(values: list[float], base: list[float]) -> float:
    pairs = zip(values, base, strict=True)
    return float(f"{statistics.median(one / other for one, other in pairs):.3g}")


def timed(work: Callable[[], Any], repeat: int = 1) -> float:
    """Seconds that one call takes."""
    start = time.perf_counter()
    for _ in range(repeat):
        work()
    return (time.perf_counter() - start) / repeat


def micro(work: Callable[[], Any], repeat: int = 200) -> float:
    """Microseconds that one call takes."""
    return timed(work, repeat) * 1e6


def progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K  {text}", end="", file=sys.stderr, flush=True)


# ## Records


def load(name: str) -> Any:
    """The module of an experiment, by its name or its number."""
    path = next(HERE.glob(f"{name}*.py"))
    spec = util.spec_from_file_location(f"spike_{path.stem}", path)
    module = util.module_from_spec(spec)  # type: ignore[arg-type]
    spec.loader.exec_module(module)  # type: ignore[union-attr]
    return module


def run(spike: Any, rounds: int) -> dict[str, Any]:
    """Measure, then measure the control; the record of both."""
    before = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
    try:
        groups, sabotaged = spike.measure(rounds), spike.measure(rounds, control=True)
    finally:
        if before:
            os.sched_setaffinity(0, before)
    (holds, said), (fooled, answer) = spike.verdict(groups), spike.verdict(sabotaged)
    control = {"what": spike.CONTROL, "holds": fooled, "verdict": answer, "groups": sabotaged}
    record = {"question": spike.QUESTION, "date": date.today().isoformat()}
    record |= {"versions": versions(spike.PACKAGES), "n": rounds, "spread": "the middle half"}
    return record | {"holds": holds, "verdict": said, "groups": groups, "control": control}


def versions(packages: Iterable[str]) -> dict[str, str]:
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors"
    if hasattr(os, "nice") and os.nice(0):  # not alone, and let through first
        machine += f", priority {os.nice(0)}"
    found = {"Python": platform.python_version(), "machine": machine}
    return found | {name: metadata.version(name) for name in packages}


def recorded(name: str) -> dict[str, Any]:
    return dict(json.loads((HERE / f"{name}.json").read_text(encoding="utf-8")))


def names() -> list[str]:
    return sorted(path.stem for path in HERE.glob("[0-9]*.py"))


def main(wanted: list[str]) -> int:
    """Measure the experiments whose numbers were given, or all; 1 if a control did not turn."""
    turned = True
    for name in names():
        if wanted and name[:2] not in wanted:
            continue
        print(f"{name} …", flush=True)
        spike = load(name)
        record = run(spike, spike.ROUNDS)
        text = json.dumps(record, indent=1, ensure_ascii=False) + "\n"
        (HERE / f"{name}.json").write_text(text, encoding="utf-8")
        progress("")
        print(f"  {record['verdict']}\n  control: {record['control']['verdict']}", flush=True)
        turned = turned and record["holds"] != record["control"]["holds"]
    return 0 if turned else 1


# ## The page
#
# Each group is a table: of plain values, of counts (a row with the same columns for each), or of
# medians, and then there is a chart as well. The colours are those of the site, so that they follow
# its light and its dark.


def page(name: str, live: bool = False) -> str:
    """What a page shows of its record; `live` measures now, in a short run."""
    spike = load(name)
    record = run(spike, spike.QUICK) if live else recorded(name)
    kind, sign = ("success", "holds") if record["holds"] else ("failure", "does not hold")
    parts = [f'!!! {kind} "The hypothesis {sign}"\n    {record["verdict"]}']
    for title, group in record["groups"].items():
        parts += [chart(title, group), table(title, group)]
    parts += [with_what(record, live), *aside(record["control"])]
    return "\n\n".join(filter(None, parts))


def aside(control: dict[str, Any]) -> list[str]:
    """The control, folded away."""
    head = f'??? note "The control: {control["what"]}"'
    tables = [indented(table(title, group)) for title, group in control["groups"].items()]
    return [f"{head}\n    {control['verdict']} So the same verdict can say no.", *tables]


def indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())


def with_what(record: dict[str, Any], live: bool) -> str:
    """When, with what, and how far to trust it."""
    when = "Measured when this page was built" if live else f"Recorded on {record['date']}"
    told = ", ".join(f"{key} {value}" for key, value in record["versions"].items())
    said = f"{when}, with {told.replace('machine ', '')}."
    if not any(map(drawable, record["groups"].values())):
        return said
    said += f" In each of {record['n']} rounds the trials took turns. The ratio is to the first row"
    said += ", in the same round; trust it more than the numbers, since the machine was not alone"
    return f"{said} and yours is another one."


def table(title: str, group: Mapping[str, Any]) -> str:
    """The numbers of a group in Markdown."""
    rows = {label: cells(one) for label, one in group.items()}
    head = next(iter(rows.values()))
    lines = [[title, *head], ["---", *("---:" for _ in head)]]
    lines += [[label, *one.values()] for label, one in rows.items()]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def cells(one: Any) -> dict[str, str]:
    """The columns of a row, each with what stands in it."""
    if not isinstance(one, dict):
        return {"": shown(one)}
    if "median" not in one:
        return {name: shown(value) for name, value in one.items()}
    spread = f"{shown(one['low'])} to {shown(one['high'])}"
    told = {"median": shown(one["median"]), "middle half": spread, "n": str(one["n"])}
    return told | {"ratio": f"{one['ratio']:.3g}"}


def shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"


def drawable(group: Mapping[str, Any]) -> bool:
    return all(isinstance(one, dict) and "median" in one for one in group.values())


def chart(title: str, group: Mapping[str, Any]) -> str:
    """One bar for each median, a thin line over its middle half; nothing if there are none."""
    if not drawable(group):
        return ""
    most = max(one["high"] for one in group.values()) or 1
    parts, y = [f'<text x="0" y="14" font-weight="bold">{escape(title)}</text>'], 38
    for label, one in group.items():
        ours = "minimcp" in label
        colour = "var(--seq-request,#3949ab)" if ours else "var(--seq-result,#00695c)"
        wide, low, high = (one[key] / most * 400 for key in ("median", "low", "high"))
        parts.append(f'<text x="0" y="{y}">{escape(label)}: {shown(one["median"])}</text>')
        parts.append(f'<rect y="{y + 5}" width="{wide:.1f}" height="10" rx="2" fill="{colour}"/>')
        parts.append(
            f'<path d="M{low:.1f} {y + 10}H{high:.1f}" stroke="var(--seq-ink,#24292f)" '
            'stroke-width="2"/>'
        )
        y += 36
    head = f'<svg class="picture" role="img" viewBox="0 0 420 {y - 16}" width="420" '
    style = 'font-size="13" font-family="inherit" fill="var(--seq-ink,#24292f)"'
    name = f"<title>{escape(title)}; the numbers are in the table</title>"
    return f"<div>{head}{style}>{name}{''.join(parts)}</svg></div>"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
