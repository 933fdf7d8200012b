"""Short runs of `load_stdio.py` and `load_http.py`; `make load` makes a million calls over each."""

import json
import multiprocessing
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import load_http
import load_stdio
import pytest
import support_load
from support import PATIENCE
from support_http import serving

from minimcp import demo

STUBS = Path(__file__).parent / "stubs"
RUNS = [
    (load_stdio.load, 20_000),
    (load_stdio.load_client, 2_000),
    (load_http.load, 3_000),
    (load_http.load_client, 500),
]


@pytest.mark.parametrize(("load", "calls"), RUNS)
def test_of_thousands_of_calls_none_is_lost_or_crossed_and_nothing_grows(load, calls):
    alone = multiprocessing.get_context("spawn")  # the tests of this process have threads, too
    with ProcessPoolExecutor(1, alone) as pool:
        report = pool.submit(load, calls).result()
    assert calls <= report.calls == len(report.took) < calls + 1000
    first, last = report.looks[0], report.looks[-1]
    assert last.descriptors <= first.descriptors
    assert last.threads <= first.threads + 8
    assert last.mebibytes - first.mebibytes < 3


def test_no_call_leaves_anything_behind_that_only_the_collector_finds():
    """A hundred objects a second in cycles, and every so often all other calls wait for it."""
    with serving(demo.server) as site:
        command = [sys.executable, STUBS / "garbage.py", site.url]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    left = json.loads(done.stdout)
    assert len(left) == 19
    assert {what: objects for what, objects in left.items() if objects >= 1} == {}


def test_an_answer_to_another_call_is_seen():
    with load_stdio.served() as pipe:
        pipe.send(1)
        [line] = pipe.lines()
        for wrong in (
            line.replace(b'"id":1', b'"id":2'),
            line.replace(b'Content":2', b'Content":3'),
        ):
            with pytest.raises((KeyError, AssertionError)):
                pipe.answered(wrong)


def test_a_lost_answer_is_waited_for_and_the_end_of_the_server_is_seen():
    with pytest.raises(AssertionError, match="has ended"), load_stdio.served() as pipe:
        pipe.open[0] = 0.0  # nobody will answer this one
        pipe.process.kill()
        list(pipe.ask(0))


def test_a_record_has_one_row_for_each_wire_and_process(tmp_path, monkeypatch):
    monkeypatch.setattr(support_load.record, "RESULTS", tmp_path)
    assert "Nothing has been recorded" in support_load.page()
    looks = [support_load.Look(0, 5, 2, 20.0), support_load.Look(10, 5, 2, 20.1)]
    took = support_load.array("f", [0.001] * 10)
    for seconds in (1.0, 2.0):
        for wire in ("stdio", "HTTP"):
            support_load.keep(support_load.Report(wire, "server", 10, seconds, took, looks).row())
    rows = support_load.recorded()["rows"]
    assert [(row["wire"], row["per_second"]) for row in rows] == [("HTTP", 5), ("stdio", 5)]
    shown = support_load.page()
    assert "| stdio | server | 10 | 2.0 | 5 | 1.0 | 1.0 | 5 → 5 | 2 → 2 | 20.0 → 20.1 |" in shown
    assert "72,000 in two hours" in shown
