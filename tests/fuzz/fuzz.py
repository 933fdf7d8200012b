"""Coverage-guided fuzzing, by atheris: `make fuzz`.

    python tests/fuzz/fuzz.py                          every target, a minute in all
    python tests/fuzz/fuzz.py --seconds 600            longer
    python tests/fuzz/fuzz.py --runs 100000 seam asgi  so many inputs to each of some targets
    python tests/fuzz/fuzz.py --replay FILE            one input, such as a crash, to its target

What is found lands in `.cache/fuzz/TARGET/`: the inputs that reached something new, from which the
next run goes on, and `crash-…`. Runs of the same code add up to one campaign; one of ten million
inputs or more is written to `site/results/fuzz.json`, which the site shows. The end says what
happened, and the exit code is 1 after a crash.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import re
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PLACE = ROOT / ".cache" / "fuzz"
ENOUGH = 10_000_000
TARGETS = ("seam", "schema", "dialects", "headers", "asgi")
ABOUT = {  # the pages that a target is there for
    "seam": "protocol context envelope eras tools server mrtr listen",
    "schema": "schema",
    "dialects": "dialects",
    "headers": "http_headers",
    "asgi": "http",
}
LIMITS = ["-timeout=20", "-rss_limit_mb=1500", "-max_len=1500", "-print_final_stats=1"]
sys.path[:0] = [str(HERE), str(HERE.parent), str(ROOT)]

Record = dict[str, Any]

# -- one target, in a process of its own


def fuzz(name: str, options: list[str]) -> None:
    """Be the fuzzer; does not return."""
    import atheris

    with atheris.instrument_imports(include=["minimcp"]):
        import targets
    from mutations import mutate_line

    def mutator(data: bytes, most: int, seed: int) -> bytes:
        """Now and then change the meaning instead of the bytes."""
        chance = random.Random(seed)
        if chance.random() < 0.5:
            return atheris.Mutate(data, most)
        lines = data.decode(errors="surrogateescape").split("\n")
        at = chance.randrange(len(lines))
        lines[at] = mutate_line(lines[at], chance)
        return "\n".join(lines).encode(errors="surrogatepass")[:most]

    targets.check_each_kind_once()
    run = targets.TARGETS[name]
    atheris.Setup([name, *LIMITS, *options], run, custom_mutator=mutator)
    atheris.Fuzz()


def measure(name: str) -> None:
    """Print, for each page of a target, how many of its lines the found inputs reach."""
    pages = {str(ROOT / "minimcp" / f"{page}.py"): page for page in ABOUT[name].split()}
    reached: set[tuple[str, int]] = set()

    def trace(frame: Any, event: str, _: Any) -> Any:
        where = frame.f_code.co_filename
        if where not in pages:
            return None
        reached.add((where, frame.f_lineno))
        return trace

    sys.settrace(trace)
    import targets

    for path in sorted((PLACE / name / "corpus").iterdir()):
        targets.TARGETS[name](path.read_bytes())
    sys.settrace(None)
    found = {page: [0, 0] for page in pages.values()}
    for where, page in pages.items():
        lines = lines_of(compile(Path(where).read_text(encoding="utf-8"), where, "exec"))
        found[page] = [len({(where, line) for line in lines} & reached), len(lines)]
    print(json.dumps(found))


def lines_of(code: Any) -> set[int]:
    """The numbers of all lines that can run."""
    found = {line for _, _, line in code.co_lines() if line}
    for inner in code.co_consts:
        if hasattr(inner, "co_lines"):
            found |= lines_of(inner)
    return found


# -- all targets


def prepare(name: str) -> Path:
    """The folder of a target, with its seeds and its dictionary."""
    import mutations
    import targets

    folder = PLACE / name
    (folder / "corpus").mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(targets.seeds(name)):
        (folder / "corpus" / f"seed-{number:03}").write_bytes(seed)
    words = dict.fromkeys([*mutations.KEYS, *mutations.WORDS])
    quoted = [word.replace("\\", "\\\\").replace('"', '\\"') for word in words]
    (folder / "words").write_text("".join(f'"{word}"\n' for word in quoted), encoding="utf-8")
    return folder


def run(name: str, limit: str) -> Record:
    """Fuzz one target, show how it goes, and say what came of it."""
    folder, began = prepare(name), time.monotonic()
    options = [limit, f"-dict={folder / 'words'}", f"-artifact_prefix={folder}/", "corpus"]
    command = [sys.executable, str(HERE / "fuzz.py"), "--target", name, "--", *options]
    stats = {"executions": 0, "points": 0, "crashes": 0}
    words = {"executions": r"number_of_executed_units: (\d+)|^#(\d+)\t", "points": r" cov: (\d+)"}
    pipe, both = subprocess.PIPE, subprocess.STDOUT
    with subprocess.Popen(command, stdout=pipe, stderr=both, text=True, cwd=folder) as process:
        assert process.stdout
        with (folder / "log").open("w", encoding="utf-8") as log:
            for line in process.stdout:
                log.write(line)
                for key, pattern in words.items():
                    if match := re.search(pattern, line):
                        stats[key] = max(stats[key], int(match[1] or match[2]))
                if re.match(r"#\d+\t(pulse|INITED|DONE)", line):
                    print(f"{name:9}{line.rstrip()}", flush=True)
                if "Test unit written to" in line:
                    stats["crashes"] += 1
                    print(f"{name:9}{line.rstrip()}; the log is {folder / 'log'}", flush=True)
    if process.returncode and not stats["crashes"]:
        sys.exit(f"{name}: the fuzzer itself failed, see {folder / 'log'}")
    return {**stats, "seconds": round(time.monotonic() - began)}


# -- the campaign


def digest() -> str:
    """Which code this was: a hash of the pages that are fuzzed, and of the targets."""
    found = hashlib.sha256((HERE / "targets.py").read_bytes())
    for page in sorted({"hints", *" ".join(ABOUT.values()).split()}):
        found.update((ROOT / "minimcp" / f"{page}.py").read_bytes())
    return found.hexdigest()[:16]


def add(campaign: Record, name: str, found: Record) -> None:
    row = campaign["rows"].setdefault(name, dict.fromkeys(found, 0))
    for key, value in found.items():
        row[key] = max(row[key], value) if key == "points" else row[key] + value


def read_campaign(path: Path) -> Record:
    """What runs of the same code have added up to."""
    fresh = {"code": digest(), "rows": {}}
    kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else fresh
    return kept if kept["code"] == fresh["code"] else fresh


def reached(name: str) -> str:
    command = [sys.executable, str(HERE / "fuzz.py"), "--measure", name]
    pages = json.loads(subprocess.check_output(command, text=True, stderr=subprocess.DEVNULL))
    return ", ".join(f"{page} {some}/{all_}" for page, (some, all_) in pages.items())


def publish(campaign: Record) -> None:
    from record import ours, write

    packages = ("atheris", "jsonschema", "mcp-types")
    python = ".".join(map(str, sys.version_info[:3]))
    versions = {**ours(), "python": python, **{name: version(name) for name in packages}}
    rows = []
    for name in TARGETS:
        row = {"target": name, **campaign["rows"][name], "lines": reached(name)}
        row["corpus"] = len(list((PLACE / name / "corpus").iterdir()))
        rows.append(row)
    sums = {key: sum(row[key] for row in rows) for key in ("executions", "crashes")}
    about = {"title": "Fuzzing, guided by coverage", "command": "make fuzz FUZZ_RUNS=…"}
    figures = {**sums, "code (a hash)": campaign["code"], "Each target": rows}
    write("fuzz", {**about, "versions": versions, "figures": figures})


def main() -> int:
    parser = argparse.ArgumentParser(description="Fuzz the seam, the validator and HTTP.")
    parser.add_argument("targets", nargs="*", default=TARGETS, help=f"some of {', '.join(TARGETS)}")
    parser.add_argument("--seconds", type=int, default=60, help="for all targets together")
    parser.add_argument("--runs", type=int, default=0, help="inputs to each target instead")
    options = parser.parse_args()
    path = PLACE / "campaign.json"
    crashes = 0
    for name in options.targets:
        seconds = max(1, options.seconds // len(options.targets))
        found = run(name, f"-runs={options.runs}" if options.runs else f"-max_total_time={seconds}")
        campaign = read_campaign(path)
        add(campaign, name, found)
        path.write_text(json.dumps(campaign), encoding="utf-8")
        crashes += found["crashes"]
    show(campaign)
    return 1 if crashes else 0


def show(campaign: Record) -> None:
    rows = campaign["rows"]
    for name, row in rows.items():
        print(f"{name:9}" + ", ".join(f"{value:,} {key}" for key, value in row.items()))
    total = sum(row["executions"] for row in rows.values())
    if total >= ENOUGH and set(rows) == set(TARGETS):
        publish(campaign)
    print(f"{total:,} executions of this code so far; {ENOUGH:,} make a record for the site")


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if arguments[:1] == ["--target"]:
        fuzz(arguments[1], arguments[3:])
    elif arguments[:1] == ["--measure"]:
        measure(arguments[1])
    elif arguments[:1] == ["--replay"]:
        import targets

        file = Path(arguments[1]).resolve()
        targets.TARGETS[file.parent.name](file.read_bytes())
    else:
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        sys.exit(main())
