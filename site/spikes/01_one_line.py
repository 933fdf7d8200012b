"""Is one line in, one line out fast enough?

The whole server is a function from a line to a line. The hypothesis: a round trip over stdio takes
at most twice that of the floor, of 100,000 calls none is lost or merged with another, and a line
of 16 MB comes back whole.
"""

import json
import threading
from contextlib import ExitStack
from functools import partial

import lab

QUESTION = "Is one line in, one line out fast enough?"
CONTROL = "a wire without a lock, which writes every reply in two halves"
ADRS = ["0001", "0007", "0015"]
PACKAGES = ["minimcp-reference", "mcp"]
ROUNDS, QUICK = 15, 1
TRIPS = "one round trip over stdio, µs"
PIPELINED = "calls answered a second, sent without waiting"
WHOLE = "what came back"
MANY, LARGE = 100_000, 16_000_000

# Two threads that answer at once write in turns, as long as a lock makes them. This wire has none.

SABOTAGE = """
import os, threading, time
def write(self, line):
    data = line.encode() + b"\\n"
    half = len(data) // 2
    os.write(self.outgoing, data[:half])
    time.sleep(0.02)
    os.write(self.outgoing, data[half:])
from minimcp.stdio import Wire
Wire.write = write
"""

# ## Experiments


def rate(child: lab.Child, many: int) -> float:
    return flooded(child, many)[0]


def whole(child: lab.Child, many: int) -> dict[str, int]:
    """What became of many calls that were sent at once."""
    came = flooded(child, many)[1]
    good = [one for one in came if one is not None]
    lost = many - len(set(good))
    known = {"calls at once": many, "lost": lost, "merged": len(came) - len(good)}
    return known | {"twice": len(good) - len(set(good))}


def flooded(child: lab.Child, many: int) -> tuple[float, list[object]]:
    """Calls a second when nobody waits, and the ids in the order in which they came back."""
    lines = [b"".join(map(lab.call, range(at, min(at + 500, many)))) for at in range(0, many, 500)]
    came: list[bytes] = []

    def work() -> None:
        writer = threading.Thread(target=lambda: [*map(child.send_all, lines)])
        writer.start()
        came.extend(child.lines.readline() for _ in range(many))
        writer.join()

    seconds = lab.timed(work)
    return many / seconds, [ident(line) for line in came]


def ident(line: bytes) -> object:
    """The id of a reply; `None` if the line is no reply."""
    try:
        return json.loads(line)["id"]
    except (ValueError, KeyError, TypeError):
        return None


def large(child: lab.Child, size: int) -> bool:
    """Whether a long line comes back as it was sent."""
    text = "0123456789abcdé€" * (size // 16)
    try:
        reply = json.loads(child.ask(lab.call(1, "echo", text=text)))
    except ValueError:
        return False
    return bool(reply["result"]["content"][0]["text"] == text)


def measure(rounds: int, control: bool = False) -> lab.Groups:
    """Round trips in turn and floods in turn; then a large flood, and a long line, to ours."""
    lab.pin()
    sources = {"the floor": lab.FLOOR, "minimcp": lab.SERVER, "official SDK": lab.SDK_SERVER}
    flood, many, size = 2_000, MANY, LARGE
    if rounds < ROUNDS or control:
        flood, many, size = 100, 1_000, 1_000_000
    if control:
        sources = {"the floor": lab.FLOOR, "minimcp": SABOTAGE + lab.SERVER}
    with ExitStack() as stack:
        peers = {name: stack.enter_context(lab.Child(code)) for name, code in sources.items()}
        trips = {
            name: partial(lab.trip, peer, 5 if control else 200) for name, peer in peers.items()
        }
        floods = {name: partial(rate, peer, flood) for name, peer in peers.items()}
        for first in trips.values():
            first()
        groups = {TRIPS: lab.interleave(trips, rounds)}
        groups[PIPELINED] = lab.interleave(floods, min(rounds, 5))
        lab.progress(f"{many} calls at once, and a line of {size} bytes")
        groups[WHOLE] = whole(peers["minimcp"], many)
        groups[WHOLE] |= {"MB in one line": size / 1e6, "intact": large(peers["minimcp"], size)}
    return groups


def verdict(groups: lab.Groups) -> tuple[bool, str]:
    """Twice the floor at most, nothing lost or merged, and the long line is intact."""
    ours, came = groups[TRIPS]["minimcp"]["ratio"], groups[WHOLE]
    said = (
        f"A round trip takes {lab.shown(ours)} times the floor. Of {came['calls at once']:,} calls "
    )
    said += f"{came['lost']} were lost and {came['merged']} merged, and a line of "
    said += f"{came['MB in one line']:.0f} MB came back {'whole' if came['intact'] else 'broken'}."
    clean = came["intact"] and not (came["lost"] or came["merged"] or came["twice"])
    return ours <= 2 and clean, said
