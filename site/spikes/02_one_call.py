"""Where does the time of one call go?

A call over stdio is a line through a pipe, JSON in and out, and the rules of the protocol between
them. The hypothesis: the rules take less than half of the round trip.
"""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import lab

from minimcp import protocol
from minimcp.context import Context
from minimcp.envelope import write
from minimcp.eras import admit, dress

QUESTION = "Where does the time of one call go?"
CONTROL = "every message is checked against a schema of messages, by `jsonschema`"
ADRS = ["0001", "0005"]
PACKAGES = ["minimcp-reference", "jsonschema"]
ROUNDS, QUICK = 15, 3
SHARES = "one call, µs (the ratio is the share of the round trip)"
TRIP, SEAM = "the round trip over stdio", "of it in minimcp: handle_line"
READ, WRITE = "reading JSON (loads)", "writing JSON (write)"

# The control does what some servers do: it validates what the code will look at anyway.

GENERIC = """
import jsonschema
text = {"type": "string"}
params = {"type": "object", "properties": {"name": text, "_meta": {"type": "object"}}}
message = {"type": "object", "required": ["jsonrpc"], "properties": {
    "jsonrpc": {"const": "2.0"}, "id": {"type": ["string", "integer"]}, "method": text,
    "params": {"oneOf": [params, {"type": "array"}]}}}
handle = server.handle
server.handle = lambda one, peer: jsonschema.validate(one, message) or handle(one, peer)
"""

# ## Experiments


def steps(server: Any) -> dict[str, Callable[[], object]]:
    """What `handle_line` does with one call, each part by itself."""
    line = lab.call(1).decode()
    message, tool = protocol.loads(line), server.tools["add"]
    context, arguments = Context(server, server.peer, message), {"a": 2, "b": 40}
    admit(context)
    shaped = tool.result(42, True)
    reply = json.loads(server.handle_line(line))
    return {
        READ: lambda: protocol.loads(line),
        "in flight, and out (Context)": lambda: (
            Context(server, server.peer, message).open().close()
        ),
        "the era (admit)": lambda: admit(context),
        "the arguments (check)": lambda: tool.check(arguments),
        "the function itself (read)": lambda: tool.read(arguments),
        "the shape of the result": lambda: tool.result(42, True),
        "the dress of the era": lambda: dress(dict(shaped), context),
        WRITE: lambda: write(reply),
    }


def measure(rounds: int, control: bool = False) -> lab.Groups:
    """The round trip, what of it happens in `handle_line`, and the parts of that, in turn."""
    lab.pin()
    names: dict[str, Any] = {}
    source = lab.OURS + (GENERIC if control else "")
    exec(source, names)  # noqa: S102 (the same server, here and in the child)
    server, line, few = names["server"], lab.call(1).decode(), 2 if control else 20
    with lab.Child(source + "\nrun(server)") as child:
        works: dict[str, Callable[[], object]] = {TRIP: lambda: child.ask(lab.call(1))}
        works[SEAM] = lambda: server.handle_line(line)
        works |= steps(server)
        for work in works.values():
            lab.timed(work, few)
        trials = {name: partial(lab.micro, work, 5 * few) for name, work in works.items()}
        return {SHARES: lab.interleave(trials, rounds)}


def verdict(groups: lab.Groups) -> tuple[bool, str]:
    """What is left of `handle_line` without its JSON are the rules."""
    share = {name: one["ratio"] for name, one in groups[SHARES].items()}
    coding = share[READ] + share[WRITE]
    rules, wire = share[SEAM] - coding, 1 - share[SEAM]
    said = f"Of a round trip {wire:.0%} is the pipe and the other process, {coding:.0%} is JSON, "
    return rules < 0.5, said + f"and {rules:.0%} are the rules of the protocol and the call."
