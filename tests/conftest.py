"""What holds for the whole suite: requirement ids are real, and every reply is validated.

`@pytest.mark.req("S-ENV-01")` says that a test proves a row of `requirements.toml`; an id that is
not in the ledger stops the run at once. Every server of this process is watched (`wire.watch`): a
test in which one of them says what the protocol does not allow fails, whatever it asserts.

`make test` runs the tests in several processes at once (pytest-xdist). Each test may run beside any
other, and in any order. What is dear is shared: a module of `TOGETHER` runs in one process, and
what all processes want is in `FOLDER_OF_THIS_RUN`.
"""

from __future__ import annotations

import os
import signal
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import wire
from ledger import LEDGER
from support_tables import tables

from minimcp.context import Peer
from minimcp.server import Server

wire.watch(Server, Peer)
os.environ.pop("PYTHONUNBUFFERED", None)  # our servers are started as they are anywhere
TOGETHER = {f"tests/test_{name}.py" for name in ("conformance", "peers", "playground")}


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        folder = TemporaryDirectory()
        os.environ["FOLDER_OF_THIS_RUN"] = folder.name
        config.add_cleanup(folder.cleanup)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Twice as many as there are processors, since a test waits most of the time."""
    return 2 * (os.cpu_count() or 1)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """The modules of `TOGETHER` first, since they take longest; then one test after the other.

    The mark `xdist_group` would do, but xdist 3.8 does not see it with pytest 9.2.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            module = nodeid.partition("::")[0]
            return module if module in TOGETHER else nodeid

    return Scheduling(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for mark in item.iter_markers("req"):
            unknown = [id for id in mark.args if id not in LEDGER]
            if unknown or not mark.args:
                raise pytest.UsageError(f"{item.nodeid}: no such requirement: {unknown}")
            if any(LEDGER[id]["level"] in ("MUST", "MUST NOT") for id in mark.args):
                item.add_marker(pytest.mark.must)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function):
    """Fail the test itself, and not only its teardown."""
    wire.violations.clear()
    result = yield
    if wire.violations:
        pytest.fail("not allowed on the wire:\n" + "\n".join(wire.violations), pytrace=False)
    return result


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker hands its tables over."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["tables"] = tables


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    tables.update(getattr(node, "workeroutput", {}).get("tables", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for heading, lines in sorted(tables.items()):
        terminalreporter.section(heading)
        for line in lines:
            terminalreporter.write_line(line)


# A shell that starts us in the background makes us deaf to SIGINT, and our servers with us.
signal.signal(signal.SIGINT, signal.default_int_handler)
