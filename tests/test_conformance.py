"""The official conformance suite, run against the package: one test for each scenario.

The suite runs once for each side and revision. A scenario passes if none of its checks failed and
one succeeded; a warning must stand in `WARNINGS`, with the reason. What is expected to fail stands
in `conformance/expected-failures.yml`, and that is OAuth alone.
"""

import functools
import json
import re
import shlex
import socket
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import NamedTuple

import node_tools
import pytest
from support import free_port, until
from support_tables import tables

pytestmark = pytest.mark.timeout(300)  # the first test of a run waits for all of it

HERE = Path(__file__).parent
PACKAGE = "@modelcontextprotocol/conformance"
EVERYTHING = HERE.parent / "examples" / "everything.py"
TASKS_SERVER = HERE.parent / "examples" / "tasks.py"
EXPECTED_FAILURES = HERE / "conformance" / "expected-failures.yml"
CLIENT = shlex.join([sys.executable, str(HERE / "conformance" / "client.py")])
NEW, OLD = "2026-07-28", "2025-11-25"

BOTH = """
    completion-complete tools-list tools-call-simple-text tools-call-image tools-call-audio
    tools-call-embedded-resource tools-call-mixed-content tools-call-error
    tools-call-with-progress server-sse-multiple-streams resources-list resources-read-text
    resources-read-binary resources-templates-read prompts-list prompts-get-simple
    prompts-get-with-args prompts-get-embedded-resource prompts-get-with-image
    dns-rebinding-protection
""".split()
ASKING_BACK = """
    basic-elicitation basic-sampling basic-list-roots request-state multiple-input-requests
    multi-round missing-input-response non-tool-request result-type unsupported-methods
    tampered-state capability-check ignore-extra-params validate-input
""".split()
SERVER = {
    NEW: [
        *BOTH,
        *(f"input-required-result-{name}" for name in ASKING_BACK),
        "server-stateless",
        "sep-2164-resource-not-found",
        "caching",
    ],
    OLD: [
        *BOTH,
        "server-initialize",
        "logging-set-level",
        "ping",
        "tools-call-with-logging",
        "tools-call-sampling",
        "tools-call-elicitation",
        "elicitation-sep1034-defaults",
        "elicitation-sep1330-enums",
        "resources-subscribe",
        "resources-unsubscribe",
    ],
}
NOT_SCORED = {
    NEW: ["json-schema-2020-12", "http-header-validation", "http-custom-header-server-validation"],
    OLD: ["json-schema-2020-12"],
}
CLIENTS = {
    NEW: [
        "tools_call",
        "request-metadata",
        "sep-2322-client-request-state",
        "http-standard-headers",
        "http-custom-headers",
        "http-invalid-tool-headers",
        "json-schema-ref-no-deref",
    ],
    OLD: ["initialize", "tools_call", "elicitation-sep1034-client-defaults", "sse-retry"],
}
TASKS = {  # scenario -> its checks; the suite itself skips the one with none
    "tasks-capability-negotiation": 5,
    "tasks-lifecycle": 9,
    "tasks-dispatch-and-envelope": 9,
    "tasks-wire-fields": 4,
    "tasks-request-headers": 5,
    "tasks-mrtr-input": 4,
    "tasks-mrtr-composition": 2,
    "tasks-request-state-removal": 3,
    "tasks-required-task-error": 3,
    "tasks-status-notifications": 0,
}
WARNINGS = {  # scenario -> the check that warns
    ("server", OLD, "server-sse-multiple-streams"): "server-sse-multiple-streams-session"
}  # the server keeps no sessions; the scenario stops there


class Run(NamedTuple):
    """One run of the suite: its exit code, what it printed, and the checks of each scenario."""

    code: int
    printed: str
    checks: dict[str, list[dict]]


def suite(leg, revision, *options):
    """Run all scenarios that a revision requires of one side."""
    return suite_run(leg, *options, "--requirements", revision)


def scenario(leg, name, *options):
    """Run one scenario."""
    return suite_run(leg, *options, "--scenario", name)


def suite_run(leg, *options):
    with TemporaryDirectory() as folder:
        arguments = [leg, *options, "--timeout", "100000", "-o", folder]
        done = subprocess.run(
            node_tools.command(PACKAGE, *arguments),
            env=node_tools.environment(),
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        checks = {}
        for file in Path(folder).rglob("checks.json"):
            relative = file.parent.relative_to(folder).as_posix()
            name = re.sub(r"-\d{4}-\d\d-\d\dT[\d-]+Z$", "", relative).removeprefix(f"{leg}-")
            checks[name] = json.loads(file.read_text(encoding="utf-8"))
    return Run(done.returncode, done.stdout + done.stderr, checks)


RUNS: dict[tuple[str, str], Run] = {}


def run_of(leg, revision):
    """The one run of this side and revision; the first test that needs it starts it."""
    node_tools.ready()
    if (leg, revision) not in RUNS:
        RUNS[leg, revision] = (
            against_client(revision) if leg == "client" else against_server(revision)
        )
    return RUNS[leg, revision]


def against_client(revision):
    expected = ["--expected-failures", EXPECTED_FAILURES]
    return suite("client", revision, "--command", CLIENT, *expected)


def against_server(revision):
    with serving(EVERYTHING) as url:
        return suite("server", revision, "--url", url)


@contextmanager
def serving(example):
    """An example over HTTP; gives its URL."""
    port = free_port()
    command = [sys.executable, str(example), "--http", str(port)]
    with TemporaryFile("w+") as log, subprocess.Popen(command, stderr=log) as server:
        try:
            until(lambda: server.poll() is not None or answers(port))
            assert server.poll() is None, log.seek(0) or log.read()
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            server.terminate()


@functools.cache
def tasks_run():
    """The scenarios of the tasks extension. The suite knows no name for all of them together, so
    each is a run of its own, a few at a time."""
    node_tools.ready()
    with serving(TASKS_SERVER) as url, ThreadPoolExecutor(5) as pool:
        run = lambda name: scenario("server", name, "--url", url)  # noqa: E731
        return dict(zip(TASKS, pool.map(run, TASKS), strict=True))


def answers(port):
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


def passed(checks):
    """How many checks passed of all that count."""
    counted = Counter(check["status"] for check in checks)
    right, wrong = counted["SUCCESS"], counted["FAILURE"] + counted["WARNING"]
    return f"{right:3} of {right + wrong}"


@pytest.fixture(scope="module", autouse=True)
def table():
    yield
    for (leg, revision), run in RUNS.items():
        lines = [f"{name:50} {passed(checks)}" for name, checks in sorted(run.checks.items())]
        tables[f"conformance: {leg}, {revision}"] = lines
    if tasks_run.cache_info().currsize:
        runs = [checks for run in tasks_run().values() for checks in run.checks.items()]
        tables["conformance: the tasks extension"] = [
            f"{name:50} {passed(checks)}" for name, checks in sorted(runs)
        ]


def verdict(leg, revision, scenario):
    """Assert that a scenario passed."""
    run = run_of(leg, revision)
    assert scenario in run.checks, run.printed
    checks = run.checks[scenario]
    counted = Counter(check["status"] for check in checks)
    wrong = [one for one in checks if one["status"] in ("FAILURE", "WARNING")]
    known = WARNINGS.get((leg, revision, scenario))
    unknown = [one for one in wrong if one["status"] == "FAILURE" or one["id"] != known]
    assert [(one["id"], one.get("errorMessage"), one.get("details")) for one in unknown] == []
    assert counted["SUCCESS"] or known, counted


def cases(table):
    return [(revision, scenario) for revision in table for scenario in table[revision]]


@pytest.mark.parametrize("revision, scenario", cases(SERVER))
def test_the_server_passes(revision, scenario):
    verdict("server", revision, scenario)


@pytest.mark.parametrize("revision, scenario", cases(NOT_SCORED))
def test_the_server_passes_what_does_not_count_yet(revision, scenario):
    verdict("server", revision, scenario)


@pytest.mark.parametrize("revision, scenario", cases(CLIENTS))
def test_the_client_passes(revision, scenario):
    verdict("client", revision, scenario)


@pytest.mark.parametrize("revision", [NEW, OLD])
@pytest.mark.parametrize("leg", ["server", "client"])
def test_the_suite_itself_is_satisfied(leg, revision):
    """And a failure that is expected but does not come is one, too."""
    run = run_of(leg, revision)
    assert run.code == 0, run.printed[-5000:]


@pytest.mark.parametrize("name", TASKS)
def test_the_tasks_extension_passes(name):
    run = tasks_run()[name]
    counted = Counter(check["status"] for checks in run.checks.values() for check in checks)
    wrong = counted["FAILURE"] + counted["WARNING"]
    assert (counted["SUCCESS"], wrong) == (TASKS[name], 0), run.printed[-5000:]
    assert run.code == 0, run.printed[-5000:]


def required(leg, revision):
    """What the suite itself says that a revision requires."""
    file = node_tools.ready() / PACKAGE / "requirements" / f"{revision}.yaml"
    block = re.search(rf"^{leg}:\n((?:  - .*\n)+)", file.read_text(encoding="utf-8"), re.M)
    return {line.removeprefix("  - ") for line in block[1].splitlines()}


@pytest.mark.parametrize("revision", [NEW, OLD])
def test_the_tables_here_hold_all_that_the_suite_requires(revision):
    assert set(SERVER[revision]) == required("server", revision)
    without_oauth = {name for name in required("client", revision) if name[:5] != "auth/"}
    assert set(CLIENTS[revision]) == without_oauth


def test_only_what_needs_oauth_is_expected_to_fail():
    lines = EXPECTED_FAILURES.read_text(encoding="utf-8").splitlines()
    names = [line.strip(" -") for line in lines if line.startswith(" ")]
    assert len(set(names)) == len(names) > 0
    assert [name for name in names if not name.startswith("auth/")] == []
