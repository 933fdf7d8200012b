"""Identical threads, a queue with workers, or an event loop?

A slow tool must hold nobody up, and an ordinary call should not pay for that. The hypothesis: one
leader that is replaced when it is slow costs at most half more than a single thread, and a quick
call gets past twenty slow ones before the first of them is done.
"""

import json
from contextlib import ExitStack
from functools import partial

import lab

QUESTION = "Identical threads, a queue with workers, or an event loop?"
CONTROL = "a leader that is never replaced"
ADRS = ["0007", "0015"]
PACKAGES = ["minimcp-reference"]
ROUNDS, QUICK = 15, 1
TRIPS = "one round trip, µs"
BEHIND = "a quick call behind twenty slow ones of 300 ms, ms"
SLOW, NAP = 20, 0.3
ONE, LEADER = "one thread", "minimcp: a leader"

# ## Four ways to serve the same `handle_line`

TOOLS = (
    lab.OURS
    + """
import asyncio, queue, sys, threading, time
@server.tool
def nap(seconds: float) -> str:
    time.sleep(seconds)
    return "slept"
lock = threading.Lock()
def answer(line):
    reply = server.handle_line(line)
    with lock:
        print(reply, flush=True)
"""
)
ALONE = """
for line in sys.stdin:
    answer(line)
"""
QUEUE = """
calls = queue.SimpleQueue()
def work():
    while True:
        answer(calls.get())
for _ in range(8):
    threading.Thread(target=work, daemon=True).start()
for line in sys.stdin:
    calls.put(line)
"""
EACH = """
for line in sys.stdin:
    threading.Thread(target=answer, args=[line], daemon=True).start()
"""
EVENTS = """
async def main():
    reader = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
    calls = set()
    while line := await reader.readline():
        calls.add(call := asyncio.create_task(asyncio.to_thread(answer, line.decode())))
        call.add_done_callback(calls.discard)
asyncio.run(main())
"""
STUCK = "import minimcp.stdio\nminimcp.stdio.PATIENCE = 10\nrun(server)"
WAYS = {
    ONE: ALONE,
    LEADER: "run(server)",
    "a thread for each call": EACH,
    "a queue and 8 workers": QUEUE,
    "an event loop and its threads": EVENTS,
}

# ## Experiments


def behind(child: lab.Child) -> float:
    """Milliseconds until a quick call is answered that came after many slow ones."""
    found: list[object] = []

    def until_quick() -> None:
        child.send_all(b"".join(lab.call(n, "nap", seconds=NAP) for n in range(SLOW)))
        child.send_all(lab.call("quick"))
        while "quick" not in found:
            found.append(json.loads(child.lines.readline())["id"])

    seconds = lab.timed(until_quick)
    for _ in range(SLOW + 1 - len(found)):
        child.lines.readline()
    return seconds * 1000


def measure(rounds: int, control: bool = False) -> lab.Groups:
    """Round trips in turn, and then the quick call behind slow ones."""
    lab.pin()
    ways = {ONE: ALONE, LEADER: STUCK} if control else WAYS
    with ExitStack() as stack:
        peers = {name: stack.enter_context(lab.Child(TOOLS + way)) for name, way in ways.items()}
        for peer in peers.values():
            lab.trip(peer)
        trips = {name: partial(lab.trip, peer) for name, peer in peers.items()}
        asked = [LEADER] if control else list(peers)
        waits = {name: partial(behind, peers[name]) for name in asked}
        return {
            TRIPS: lab.interleave(trips, rounds),
            BEHIND: lab.interleave(waits, min(rounds, 1 if control else 3)),
        }


def verdict(groups: lab.Groups) -> tuple[bool, str]:
    """Half more than one thread at most, and past the slow calls before one of them is done."""
    cost, waited = groups[TRIPS][LEADER]["ratio"], groups[BEHIND][LEADER]["median"]
    said = f"A leader costs {cost:.2f} times one thread, and a quick call behind {SLOW} slow "
    said += f"ones waits {waited:.0f} ms (one of them takes {NAP * 1000:.0f})."
    for name in list(groups[TRIPS])[2:]:
        ratio, late = groups[TRIPS][name]["ratio"], groups[BEHIND][name]["median"]
        said += f" {name.capitalize()}: {ratio:.2f} times, {late:.0f} ms."
    return cost <= 1.5 and waited < NAP * 1000, said
