"""`make demo`: two commands on a bare Python, in both eras."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
OPENING = [
    "connected: minimcp-demo, protocol {version}",
    "tools discovered: calc.add, text.word_count, text.summarize_naive",
    "calc.add(2, 40) -> 42",
]
ERAS = [([], "2026-07-28"), (["--era", "legacy"], "2025-11-25")]


def run(command, **options):
    return subprocess.run(command, capture_output=True, encoding="utf-8", **options)


def bare(tmp_path, *arguments):
    """Run `python ARGUMENTS` where nothing is installed, not even the declared dependency."""
    poison = tmp_path / "poison"
    poison.mkdir()
    for name in ("jsonschema", "regex", "uvicorn"):
        (poison / f"{name}.py").write_text("raise ImportError('this Python is bare')\n")
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join([str(ROOT), str(poison)])}
    command = [os.path.realpath(sys.executable), "-S", *arguments]
    return run(command, cwd=tmp_path, env=env, timeout=5)


@pytest.mark.parametrize(("arguments", "version"), ERAS)
def test_the_demo_discovers_and_calls_tools_on_a_bare_python(tmp_path, arguments, version):
    done = bare(tmp_path, "-m", "minimcp.client", *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[:3] == [line.format(version=version) for line in OPENING]
    assert any("text.word_count(" in line and " -> " in line for line in lines)
    assert any("text.summarize_naive(" in line and " -> " in line for line in lines)


@pytest.mark.parametrize(("arguments", "version"), ERAS)
def test_the_demo_ends_with_a_bad_argument_and_what_the_model_would_read(
    tmp_path, arguments, version
):
    done = bare(tmp_path, "-m", "minimcp.client", *arguments)
    closing = "\n".join(done.stdout.splitlines()[5:])
    assert "calc.add" in closing
    assert "expected integer, got string" in closing


def test_make_demo_is_that_command():
    done = run(["make", "--no-print-directory", "demo"], cwd=ROOT, timeout=20)
    assert done.returncode == 0, done.stderr
    opening = "\n".join(OPENING).format(version="2026-07-28")
    assert opening in done.stdout


@pytest.mark.parametrize("arguments", [[], ["--call", "calc.add", '{"a": 2, "b": 40}']])
def test_who_reads_no_more_hears_no_complaint(arguments):
    command = [sys.executable, "-m", "minimcp.client", *arguments]
    env = {**os.environ, "PYTHONUNBUFFERED": "", "PYTHONPATH": str(ROOT)}
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, env=env, timeout=30)
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, b"")
