"""examples/scale: several workers behind nginx, while they are renewed and killed.

What is promised stands on its page: a request that may be repeated is answered, whatever happens
to a worker; any other runs once at most, and who called it is told if there is no answer.
"""

import contextlib
import importlib.util
import json
import os
import re
import signal
from collections import Counter
from pathlib import Path

import pytest
from support import until
from support_scale import SCALE, Site, killed, load, renewed, start
from support_skips import need

from minimcp import Client

TESTS = Path(__file__).parent
MANY = 600  # calls of one run, half of them orders


@pytest.fixture
def site(tmp_path):
    need(importlib.util.find_spec("uvicorn"), "no uvicorn")
    need(start.nginx(), "no nginx here: apt-get install nginx")
    with Site(tmp_path) as site:
        yield site


def check(site, found):
    """Nothing that may be repeated is lost; nothing else ran twice, and who waits was told."""
    ran, answered, unknown = site.ran(), found["orders"], found["orders that may have run"]
    assert found["prices"] == MANY // 2
    assert sorted(answered + unknown) == [*range(0, MANY, 2)]
    assert [number for number in answered if ran[number] != 1] == []
    assert [number for number in unknown if ran[number] > 1] == []


@pytest.mark.timeout(240)
def test_a_rolling_restart_loses_no_request_that_may_be_repeated_and_repeats_no_other(site):
    before = site.takers()
    found = renewed(site, MANY)
    after = site.takers()
    assert len(after) == 3 and before.isdisjoint(after)
    check(site, found)


@pytest.mark.timeout(240)
def test_a_killed_worker_loses_no_request_that_may_be_repeated_and_repeats_no_other(site):
    before = site.takers()
    found = killed(site, MANY, sorted(before))
    check(site, found)
    assert len(found["orders that may have run"]) <= 2 * load.WIDE
    after = until(lambda: len(site.takers()) == 3 and site.takers())
    assert len(after - before) == 2  # those that were killed were started again


@pytest.mark.timeout(240)
def test_a_request_is_not_lost_while_only_one_of_the_workers_is_there(site):
    """What could not be sent to one worker goes to the next: nginx does that, also for orders."""
    killed = sorted(site.takers())[:2]
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    until(lambda: not any(map(is_there, killed)))  # until then it may still take a connection
    with Client(site.url, era="modern") as client:
        for number in range(50):
            assert f"order {number}," in client.call_tool("order", {"number": number}).text
    ran = site.ran()
    assert [ran[number] for number in range(50)] == [1] * 50


def is_there(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False


def test_only_what_may_be_repeated_is_asked_again():
    """A connection that was refused took nothing along; one that broke off may have."""

    class Broken:
        def __init__(self, trouble):
            self.tools = {"price": {"annotations": {"idempotentHint": True}}, "order": {}}
            self.trouble, self.calls = trouble, 0

        def call_tool(self, name, arguments):
            self.calls += 1
            if self.calls < 3:
                raise ConnectionError(self.trouble)
            return "done"

    refused = "http://127.0.0.1:1/mcp: ConnectionRefusedError: [Errno 111] Connection refused"
    off = "HTTP 502 Bad Gateway, and no answer: ''"
    for name, trouble, calls in (
        ("price", refused, 3),
        ("price", off, 3),
        ("order", refused, 3),
        ("order", off, 1),
    ):
        client = Broken(trouble)
        with contextlib.suppress(ConnectionError):
            assert load.call(client, name, {}, Counter()) == "done"
        assert client.calls == calls, (name, trouble)
    hints = [{"readOnlyHint": True}, {"idempotentHint": True}, {}, {"idempotentHint": "yes"}]
    assert [load.repeatable({"annotations": one}) for one in hints] == [True, True, False, False]


def test_the_page_says_what_the_files_say():
    page = (SCALE / "README.md").read_text(encoding="utf-8")
    for path in SCALE.glob("*.*"):
        assert path.name == "README.md" or f"({path.name})" in page
    config = (SCALE / "nginx.conf").read_text(encoding="utf-8")
    assert "non_idempotent" not in re.sub("#.*", "", config)
    assert "proxy_next_upstream error timeout;" in config
    record = TESTS.parent / "site" / "results" / "scale.json"
    for row in json.loads(record.read_text(encoding="utf-8"))["rows"]:
        assert (row["ran twice"], row["lost"], row["prices answered"]) == (0, 0, row["calls"] // 2)
