"""The table of faults: what may go wrong outside of the protocol, and what is promised then.

A row is a test, and its docstring says it: `fault: promise`. The promise begins with one word,
which says what becomes of the call or of the process (`OUTCOMES`). Tests of faults in modules of
their own are `test_trust_faults_stdio.py` and `test_trust_faults_http.py`; what other tests show
already stands in `ELSEWHERE`, by name. `page()` is the table of the site, `python
tests/support_faults.py` prints it. This module needs nothing but Python.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from typing import NamedTuple

TESTS = Path(__file__).parent
OUTCOMES = {
    "answered": "every call is answered, and nobody notices",
    "retried": "it is asked again by itself, and answered",
    "reported": "who asked gets an error that says why, at the latest when the time is over",
    "refused": "the program says in one line why it cannot begin, and ends",
    "ended": "the process ends by itself, and leaves nothing behind",
    "lost": "nobody hears of it",
}
OWN = {"stdio": "test_trust_faults_stdio", "HTTP": "test_trust_faults_http"}

# What other modules show: wire, module::test, and the row.
ELSEWHERE = """
stdio test_stdio::test_a_server_without_a_wire_says_so_in_one_line
    the server is started without stdin or stdout: refused, with exit code 1
stdio test_stdio::test_a_server_that_cannot_start_says_why_without_a_traceback
    the log file cannot be opened: refused, with exit code 1
stdio test_stdio::test_a_signal_ends_the_server_quietly
    SIGINT or SIGTERM, idle or in the middle of a call: ended, without a word
stdio test_stdio::test_a_client_that_closes_the_servers_output_ends_it_quietly
    the client closes the output of the server and goes on asking: ended, with exit code 0
stdio test_stdio::test_every_request_read_before_the_end_of_input_is_answered
    stdin ends while calls run: answered, if they end within half a second
stdio test_stdio::test_the_end_of_input_ends_a_server_with_a_call_that_never_returns
    stdin ends while a call runs that never returns: lost, and named on stderr; the server ends
stdio test_stdio::test_a_bad_line_is_answered_and_the_next_request_is_served
    a line that is no message: reported, and the next line is served
stdio test_stdio::test_slow_tools_hold_up_no_other_call
    fifty calls that do not return: answered, whatever else is asked
stdio test_stdio::test_a_leader_that_cannot_be_replaced_leads_on
    no thread can be had: answered, one call after the other
stdio test_stdio::test_a_child_that_outlives_the_server_does_not_hold_the_wire
    a tool starts a program that outlives the server: ended, and the client sees the end
stdio test_stdio::test_a_forked_child_of_a_tool_dies_of_sigterm_as_it_would_elsewhere
    a tool forks with multiprocessing: answered, and the child dies as it would elsewhere
stdio test_field_reports::test_a_tool_that_exits_does_not_end_the_server
    a tool calls sys.exit: reported to the model, and the server goes on
stdio test_field_reports::test_a_chatty_stderr_does_not_block_the_server
    the server fills its stderr: answered, since the client reads that too
stdio test_client::test_a_command_that_cannot_be_started_is_an_error_that_names_it
    the command does not exist: reported at once, with the name of the command
stdio test_client::test_a_server_that_dies_at_once_is_an_error_with_its_exit_code
    the server dies before the handshake: reported at once, with exit code and last words
stdio test_client::test_a_server_that_never_answers_is_an_error_that_names_it
    the server never says anything: reported when the time is over, and the process is ended
stdio test_client::test_a_server_that_dies_fails_all_pending_calls_at_once_and_says_why
    the server dies while several calls run: reported to each of them at once
stdio test_client::test_the_call_after_a_death_reaches_a_new_process
    the server died between two calls: answered by a new process
stdio test_client::test_a_server_that_closes_its_output_but_lives_is_an_error_at_once
    the server closes its output but lives on: reported at once
stdio test_client::test_a_server_that_stops_reading_cannot_hang_a_call
    the server reads no more, and the call is larger than a pipe: reported when the time is over
stdio test_client::test_a_server_that_ignores_the_end_of_input_is_ended
    the server ignores the end of input and SIGTERM: ended by SIGKILL
stdio test_client::test_closing_while_a_call_waits_ends_it
    the client is closed while another thread waits: reported to that thread at once
stdio test_client::test_a_child_of_the_server_that_keeps_the_pipes_open_does_not_hold_up_closing
    a daemon of the server keeps the pipes open: ended, the daemon does not hold up closing
HTTP test_http_running::test_a_port_that_is_taken_is_named
    the port is taken: refused, with the number of the port
HTTP test_http_running::test_a_connection_that_asks_nothing_blocks_nobody_and_is_closed
    clients that are idle, or stop in the middle of a request: ended after a while
HTTP test_http_running::test_a_call_that_never_ends_is_given_up_after_a_while
    SIGTERM while a call runs that never returns: lost; the server ends after ten seconds
HTTP test_http_running::test_a_second_signal_waits_for_nothing
    a second signal: ended at once
HTTP test_http_running::test_a_signal_lets_calls_finish_ends_subscriptions_and_exits
    SIGTERM while calls run: answered, and subscriptions are ended properly
HTTP test_http_running::test_five_hundred_connections_and_a_slow_tool_on_twenty_of_them
    five hundred clients, and a slow tool: answered, as fast as without the slow tool
HTTP test_http_running::test_a_thousand_listeners_cost_no_thread_each_and_hear_the_end
    a thousand clients that listen: answered, without a thread for each
HTTP test_http_running::test_more_slow_calls_than_threads_wait_for_their_turn
    more slow calls than threads: answered, in their turn
HTTP test_http::test_a_body_that_breaks_off_is_not_served
    the client hangs up in the middle of a request: lost, and no tool runs
HTTP test_http::test_a_closed_connection_cancels_the_call
    the client hangs up in the middle of a call: lost; the tool is told to stop
HTTP test_http::test_a_listener_that_does_not_read_is_given_up_and_then_its_stream_ends
    a listener that does not read: ended, after ten thousand events
HTTP test_http_client::test_a_kept_connection_that_was_dropped_is_replaced
    the server closed a kept connection between two calls: answered, over a new one
HTTP test_http_client::test_a_server_that_was_restarted_is_found_again
    the server was restarted between two calls: answered, over a new connection
HTTP test_http_client::test_a_refused_connection_is_an_error_that_names_the_address
    nobody listens: reported at once, with the address
HTTP test_http_client::test_a_stream_that_cannot_go_on_is_an_error_and_nothing_is_called_twice
    a legacy stream breaks off and cannot go on: reported, and nothing is called twice
HTTP test_http_client::test_a_stream_goes_on_after_the_last_event_that_was_whole
    a legacy stream breaks off in the middle of an event: answered, from the last whole event on
HTTP test_http_client::test_a_server_that_sends_a_byte_now_and_then_gains_no_time
    a reply that drips: reported when the time is over
HTTP test_http_client::test_a_server_that_reads_nothing_gains_no_time
    the server reads nothing: reported when the time is over
HTTP test_http_client::test_a_forgotten_session_leads_to_a_new_one_and_the_caller_sees_nothing
    a legacy server has forgotten the session: retried, after a new handshake
"""


class Row(NamedTuple):
    """One fault."""

    wire: str
    test: str  # module::function
    fault: str
    outcome: str
    promise: str  # its first word is the outcome


def rows() -> list[Row]:
    """All faults: our own first, each wire by itself."""
    found = [read(wire, f"{module}::{name}", said) for wire, module in OWN.items()
             for name, said in said_by(module).items()]  # fmt: skip
    found += [read(*one) for one in re.findall(r"^(\S+) (\S+)\n {4}(.+)$", ELSEWHERE, re.M)]
    return sorted(found, key=lambda row: list(OWN).index(row.wire))


def read(wire: str, test: str, said: str) -> Row:
    """A row from what it says; `ValueError` if it promises nothing that we know."""
    fault, _, promise = " ".join(said.split()).partition(": ")
    outcome = re.match(r"\w*", promise)[0]  # type: ignore[index]
    if not fault or outcome not in OUTCOMES:
        raise ValueError(f"{test}: 'fault: outcome ...', with one of {[*OUTCOMES]}; not {said!r}")
    return Row(wire, test, fault, outcome, promise)


@cache
def said_by(module: str) -> dict[str, str]:
    """The tests of a module and the first paragraphs of their docstrings."""
    tree = ast.parse((TESTS / f"{module}.py").read_text(encoding="utf-8"))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    tests = [one for one in functions if one.name.startswith("test_")]
    return {one.name: (ast.get_docstring(one) or "").split("\n\n")[0] for one in tests}


def page() -> str:
    """The table of each wire, as Markdown."""
    found, parts = rows(), []
    counted = Counter(row.outcome for row in found)
    legend = [f"| **{name}** | {what} | {counted[name]} |" for name, what in OUTCOMES.items()]
    parts.append("\n".join(["| | what becomes of it | rows |", "|---|---|---:|", *legend]))
    for wire in OWN:
        lines = [f"## Over {wire}", "", "| fault | promise | test |", "|---|---|---|"]
        lines += [line(row) for row in found if row.wire == wire]
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def line(row: Row) -> str:
    promise = f"**{row.outcome}**{row.promise.removeprefix(row.outcome)}"
    module, _, test = row.test.partition("::")
    return f"| {row.fault} | {promise} | `{module}`<br>`{test}` |"


if __name__ == "__main__":
    sys.stdout.write(page() + "\n")
