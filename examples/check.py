"""A checker for any stdio server, in any language: is what it says on the wire right?

    python examples/check.py COMMAND…            such as: python examples/movies.py
    python examples/check.py --brief COMMAND…    what passes takes one line

What is sent, and what must come back, stands in check.txt, for none of it is Python. This file
holds the conversations: it starts the server, finds out which eras it speaks, and prints each check
with the id of its requirement, what was sent, what came, what was expected and where to read. The
exit code is 1 if one failed. Tools are called only with arguments that they must refuse.

The lesson: *a server is what it says on the wire*. No import, no SDK: lines in, lines out.
"""

import json
import re
import sys
from collections import Counter, namedtuple
from contextlib import suppress
from itertools import permutations
from pathlib import Path
from queue import Empty, SimpleQueue
from shutil import which
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))  # so that it runs from a clone, not installed
from minimcp.child import Child
from minimcp.cli import printable
from minimcp.protocol import KINDS, ProtocolError, loads

SITE = "https://modelcontextprotocol.io/specification/2026-07-28/"
SAY = '{"jsonrpc": "2.0", "id": "%s", "method": "%s", "params": {"_meta": META}}'
LIST, LAST = SAY % ("list", "tools/list"), SAY % ("last", "ASK")
GREETING = {"modern": ["DISCOVER", LIST], "legacy": ["INITIALIZE", "INITIALIZED", LIST], "new": []}
PROOF = {"modern": "SUPPORTEDVERSIONS", "legacy": "PROTOCOLVERSION", "new": "PROTOCOLVERSION"}
WORDS = {"FF": "\udcff", "CR": "\r", "DEEP": "[" * 100_000, "MEGA": "x" * 1_000_000, "EOF": "EOF"}
SCHEMA = {"properties?": "object", "required?": {"each": "string"}}
TOOLS = {"tools": {"each": {"name": "string", "inputSchema": SCHEMA}}}
PLAIN = {"type": ["string", "integer", "number", "boolean", "array", "object"]}
PATIENCE = 30.0  # seconds to answer, or to end

# ## What is sent, and what must come back

Check = namedtuple("Check", "id level eras page title sent wanted")


def read() -> list[Check]:
    """The checks of check.txt, in its order; its words go into `WORDS`."""
    text = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8")
    _, words, *blocks = text.split("\n\n")
    for word, value in re.findall("(.+?) = (.+)", words):
        WORDS[word] = fill(value)
    return [parse(*block.splitlines()) for block in blocks]


def parse(head: str, *lines: str) -> Check:
    """One check, as it stands in check.txt."""
    sides = [[line[2:] for line in lines if line[0] in marks] for marks in (">", "<=")]
    return Check(*head.split(maxsplit=4), *sides)


def fill(line: str) -> str:
    """A line, its words in capitals replaced; `KeyError` if one means nothing here."""
    return re.sub(r"\b[A-Z]{2,}\b", lambda word: WORDS[word[0]], line)


def fits(value: Any, shape: Any) -> bool:
    """Whether a value has a shape, as check.txt explains them."""
    if isinstance(shape, list):
        return value in shape or any(fits(value, one) for one in shape if isinstance(one, dict))
    if not isinstance(shape, dict) or not shape:
        return shape == KINDS[type(value)] or json.dumps(shape) == json.dumps(value)
    if "each" in shape:
        return isinstance(value, list) and all(fits(one, shape["each"]) for one in value)
    members = [(name.rstrip("?"), name[-1] == "?", one) for name, one in shape.items()]
    return isinstance(value, dict) and all(
        fits(value[name], one) if name in value else optional for name, optional, one in members
    )


def answered(came: list[Any], wanted: list[str]) -> bool:
    """Whether what came is what was wanted, in any order, and nothing else."""
    orders = permutations(map(json.loads, wanted), len(came))
    return len(came) == len(wanted) and any(all(map(fits, came, order)) for order in orders)


def learn(result: dict[str, Any]) -> None:
    """Every member is a word; TOOL is a tool that requires something, WRONG what it must refuse."""
    WORDS.update({name.upper(): json.dumps(value) for name, value in result.items()})
    for tool in reversed(result["tools"]) if fits(result, TOOLS) else ():
        kinds, needed = (tool["inputSchema"].get(key, {}) for key in ("properties", "required"))
        if needed and all(fits(kinds.get(name), PLAIN) for name in needed):
            wrong = {name: 5 if kinds[name]["type"] == "string" else "x" for name in needed}
            WORDS.update(TOOL=json.dumps(tool["name"]), WRONG=json.dumps(wrong))


# ## A conversation


class Session:
    """What is said in one era: `heard` is all of it, and after the end `gone` is true.

    The era "new" is legacy before the handshake. LC_ALL=C: text is UTF-8 whatever the locale says.
    """

    def __init__(self, command: list[str], era: str, heard: list[Any]) -> None:
        WORDS["META"] = WORDS["MODERN"] if era == "modern" else "{}"
        WORDS["ASK"] = "server/discover" if era == "modern" else "ping"
        self.heard, self.inbox, self.gone = heard, SimpleQueue[Any](), False
        self.child = Child(command, {"LC_ALL": "C"})
        self.child.outbox.maxsize = 0  # it need not read what we send
        self.child.open(self.inbox.put)
        for message in [message for line in GREETING[era] for message in self.ask([fill(line)])]:
            learn(message["result"] if fits(message, {"result": "object"}) else {})

    def ask(self, lines: list[str]) -> list[Any]:
        """What comes back; whoever has answered three more requests has nothing to add."""
        came, last = list[Any](), fill(LAST)
        for batch in ([*lines, last], [last], [last]):
            for line in batch:
                data = line.encode(errors="surrogateescape") + b"\n"
                self.child.outbox.put(None if line == "EOF" else data)
            message: dict[str, Any] = {}
            while not self.gone and message.get("id") != "last":
                came.append(message := self.hear())
        self.heard += came
        return [message for message in came if message.get("id") != "last"]

    def hear(self) -> dict[str, Any]:
        """The next message, or how it ended; a line that is no message becomes a member of one."""
        with suppress(Empty):
            if (line := self.inbox.get(timeout=PATIENCE)) is not None:
                with suppress(ProtocolError):
                    line = loads(line)
                return line if isinstance(line, dict) else {"no message": line}
        self.child.close()
        self.gone = True
        return {"jsonrpc": "2.0", "method": "end", "exit": self.child.process.returncode}


# ## All checks


def outcomes(command: list[str]) -> Any:
    """For each era that the server speaks, each check: how it went, and what came."""
    checks = read()
    for era in GREETING:
        session, spoken = Session(command, era, []), PROOF[era] in WORDS
        print(era, "is spoken" if spoken else "is not spoken", file=sys.stderr)
        for check in [check for check in checks if spoken and era in check.eras]:
            if session.gone and check.sent:
                session = Session(command, era, session.heard)
            yield attempt(check._replace(eras=era), session)
        session.child.close()


def attempt(check: Check, session: Session) -> tuple[Check, str, list[Any]]:
    """Send what a check sends and look at what comes; or look at all that came."""
    try:
        sent, wanted = ([fill(line) for line in lines] for lines in (check.sent, check.wanted))
    except KeyError as word:
        return check, "skip", [f"no {word} here"]
    if not sent:
        came = [one for one in session.heard if not fits(one, json.loads(wanted[0]))]
        return check, "FAIL" if came else "pass", came[:1]
    came = session.ask(sent)
    good = not session.gone if wanted == ["anything"] else answered(came, wanted)
    return check._replace(sent=sent), "pass" if good else "FAIL", came


def show(check: Check, verdict: str, came: list[Any], brief: bool) -> str:
    """Print one check, foreign text without what a terminal would obey; the verdict."""
    print(f"{verdict} {check.id:10} {check.level:10} {check.eras:6} {check.title}")
    said = {"sent": check.sent, "came": map(json.dumps, came), "expected": check.wanted}
    for name, lines in {**said, "read": [SITE + check.page]}.items():
        for line in lines if verdict == "FAIL" or not brief else ():
            print(f"     {name:9}", printable(line)[:300])
    return verdict


def main() -> int | str:
    """Check the server that a command starts."""
    brief = "--brief" in sys.argv[1:2]
    command = sys.argv[1 + brief :] or sys.exit(__doc__)
    which(command[0]) or sys.exit(f"{command[0]}: there is no such command")
    count = Counter(show(*outcome, brief) for outcome in outcomes(command))
    told = f"{count['pass']} passed, {count['FAIL']} failed, {count['skip']} skipped"
    print(f"{told}; check.txt says how to read this")
    return int(count["FAIL"] > 0) if count else "it answers neither server/discover nor initialize"


if __name__ == "__main__":
    sys.exit(main())
