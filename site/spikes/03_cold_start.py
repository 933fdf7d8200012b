"""What does a cold start cost, and which import is to blame?

A host starts its servers when the person is already waiting. The hypothesis: from nothing to the
first reply we need at most twice the time of the floor, and no import of ours is the largest part.
"""

import json
from functools import partial

import lab

QUESTION = "What does a cold start cost, and which import is to blame?"
CONTROL = "the same server, with `import asyncio, jsonschema` on top"
ADRS = ["0001", "0005", "0007", "0012"]
PACKAGES = ["minimcp-reference", "mcp", "jsonschema"]
ROUNDS, QUICK = 11, 2
LEFT_OUT = ["inspect", "hmac", "queue", "asyncio", "jsonschema", "pydantic"]
FIRST = "from nothing to the first reply, ms"
BLAME = "one import more, on top of minimcp, ms"

# ## Experiments


def first_reply(source: str) -> float:
    """Milliseconds from nothing to the reply to a first call."""

    def start() -> None:
        with lab.Child(source) as child:
            reply = json.loads(child.ask(lab.call(1)))
            lab.progress(reply["result"]["content"][0]["text"])

    return lab.timed(start) * 1000


def measure(rounds: int, control: bool = False) -> lab.Groups:
    """Starts of each kind in turn, then imports of each kind in turn."""
    lab.pin()
    heavy = "import asyncio, jsonschema\n" if control else ""
    peers = {"the floor": lab.FLOOR, "minimcp": heavy + lab.SERVER}
    if not control:
        peers["official SDK"] = lab.SDK_SERVER
    first = {name: partial(first_reply, source) for name, source in peers.items()}
    imports = [f"import {name}" for name in LEFT_OUT]
    extra = {one: partial(lab.inside, one, "import minimcp.stdio") for one in imports}
    return {FIRST: lab.interleave(first, rounds), BLAME: lab.interleave(extra, rounds)}


def verdict(groups: lab.Groups) -> tuple[bool, str]:
    """At most twice the floor; and who is to blame for what the others pay."""
    ours, theirs = groups[FIRST]["minimcp"]["ratio"], list(groups[FIRST].values())[-1]["ratio"]
    dearest = max(groups[BLAME], key=lambda name: groups[BLAME][name]["median"])
    floor = groups[FIRST]["the floor"]["median"]
    share = groups[BLAME][dearest]["median"] / floor
    said = f"minimcp starts in {lab.shown(ours)} times the floor"
    said += f", the official SDK in {theirs:.0f} times. " if theirs > ours else ". "
    said += (
        f"The dearest import that we leave out is `{dearest.split()[1]}`: alone {share:.1f} floors."
    )
    return ours <= 2, said
