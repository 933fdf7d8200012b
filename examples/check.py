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
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from queue import Empty, Full, SimpleQueue
from shutil import which
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))  # so that it runs from a clone, not installed
from minimcp.child import Child
from minimcp.cli import printable
from minimcp.protocol import KINDS, ProtocolError, loads
from minimcp.schema import explain, validate

SITE = "https://modelcontextprotocol.io/specification/2026-07-28/"
PATIENCE, ROUNDS = 30.0, 3  # seconds to answer, or to end; for the rounds see `ask`
SAY = '{"jsonrpc": "2.0", "id": "%s", "method": "%s", "params": {"_meta": META}}'
LIST, LAST = SAY % ("list", "tools/list"), SAY % ("last", "ASK")
GREETING = {"modern": ["DISCOVER", LIST], "legacy": ["INITIALIZE", "INITIALIZED", LIST], "new": []}
WORDS = {"FF": "\udcff", "CR": "\r", "DEEP": "[" * 100_000, "MEGA": "x" * 1_000_000}
OTHER = {"string": 5, "integer": "x", "number": "x", "boolean": "x"}  # what is of another type

# ## What is sent, and what must come back

Check = namedtuple("Check", "id level era page title sent wanted")
BLOCK = r"(?m)^([SB]-\S+) (\S+) (\S+) (\S+) +(.+)((?:\n[>=<].*)+)"


def read() -> list[Check]:
    """The checks of check.txt, first those that send something; its words go into `WORDS`."""
    text, checks = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8"), []
    for word, value in re.findall("(?m)^([A-Z]+) = (.+)", text):
        WORDS[word] = fill(value)
    for *head, body in re.findall(BLOCK, text):
        parts = [re.findall(f"(?m)^{mark} ?(.*)", body) for mark in (">", "[=<]")]
        checks.append(Check(*head, *parts))
    return sorted(checks, key=lambda check: not check.sent)


def fill(line: str) -> str:
    """A line, its words in capitals replaced; `KeyError` if one means nothing here."""
    return re.sub(r"\b[A-Z]{2,}\b", lambda word: WORDS[word[0]], line)


def schema(shape: Any) -> dict[str, Any]:
    """A shape, as check.txt explains it, is a JSON Schema with less to read."""
    if isinstance(shape, list):
        shapes = [schema(one) for one in shape if isinstance(one, dict)]
        return {"anyOf": shapes} if shapes else {"enum": shape}
    if not shape or not isinstance(shape, dict):
        return {"type": shape} if shape in KINDS.values() else {"enum": [shape]}
    if "each" in shape:
        return {"type": "array", "items": schema(shape["each"])}
    members = {name.rstrip("?"): schema(one) for name, one in shape.items()}
    needed = [name for name in shape if name[-1] != "?"]
    return {"type": "object", "properties": members, "required": needed}


def problems(came: list[Any], wanted: list[str]) -> str:
    """Why what came is not what was wanted, in any order; empty if it is."""
    left = [schema(json.loads(line)) for line in wanted]
    for message in came:
        wrong = [validate(message, one) for one in left]
        if [] not in wrong:
            return explain(wrong[0] if wrong else [("", "expected nothing more")], "message")
        del left[wrong.index([])]
    return f"{len(left)} of {len(wanted)} did not come" if left else ""


# ## A conversation


class Session:
    """What is said in one era: `heard` is all of it, and `gone` why nobody is there any more.

    The era "new" is legacy before the handshake. LC_ALL=C: text is UTF-8 whatever the locale says.
    """

    def __init__(self, command: list[str], era: str, heard: list[Any]) -> None:
        WORDS["META"] = WORDS["MODERN"] if era == "modern" else "{}"
        WORDS["ASK"] = "server/discover" if era == "modern" else "ping"
        self.heard, self.inbox, self.gone = heard, SimpleQueue[Any](), ""
        self.child = Child(command, {"LC_ALL": "C"})
        self.child.open(self.inbox.put)
        self.about = [self.result(fill(line)) for line in GREETING[era]]

    def result(self, line: str) -> dict[str, Any]:
        """The result of a request, if it has one; its members become words too."""
        result = next((one["result"] for one in self.ask([line], 1) if "result" in one), {})
        WORDS.update({name.upper(): json.dumps(value) for name, value in result.items()})
        return result

    def ask(self, lines: list[str], wanted: int) -> list[Any]:
        """What comes back; whoever has answered three more requests has nothing to add."""
        came, last = list[Any](), fill(LAST)
        for turn in range(ROUNDS):
            for line in [last] if turn else [*lines, last]:
                data = line.encode(errors="surrogateescape") + b"\n"
                with suppress(Full):  # nobody reads; that nobody answers will be told
                    self.child.outbox.put(data, timeout=PATIENCE)
            while (message := self.hear()).get("id") != "last":
                came.append(message)
            if self.gone or 0 < wanted <= len(came):
                break
        return came

    def hear(self) -> dict[str, Any]:
        """The next message; a line that is none becomes a member of one."""
        with suppress(Empty):
            if not self.gone and (line := self.inbox.get(timeout=PATIENCE)) is not None:
                with suppress(ProtocolError):
                    line = loads(line)
                self.heard.append(line if isinstance(line, dict) else {"no message": line})
                return self.heard[-1]
        self.end()
        self.gone = self.child.obituary()
        return {"id": "last"}

    def end(self) -> None:
        """Close its stdin; how it ends is noted as if that were the last that it says."""
        with suppress(Full):
            self.child.outbox.put(None, timeout=0)
        self.child.threads[0].join(PATIENCE)
        self.child.close()
        code = self.child.process.returncode
        self.heard.append({"jsonrpc": "2.0", "method": "end", "exit code": code})


# ## All checks

Outcome = tuple[str, str, Check, list[Any]]  # "pass", "FAIL" or "skip", and why; what came


def outcomes(command: list[str]) -> Iterator[Outcome]:
    """The checks of each era that the server speaks."""
    checks, spoken = read(), list[str]()
    for era in GREETING:
        session = Session(command, era, [])
        if any(session.about[:1]) or (era == "new" and "legacy" in spoken):
            spoken.append(era)
            choose(session)
            for check in checks:
                if session.gone:
                    session = Session(command, era, session.heard)
                if era in check.era:
                    yield attempt(check._replace(era=era), session)
        else:
            print(f"{era} is not spoken {session.gone}", file=sys.stderr)
            WORDS.pop(era.upper(), None)  # no modern request in a legacy conversation
        session.end()
    if not spoken:
        sys.exit("the server answers neither server/discover nor initialize")


def choose(session: Session) -> None:
    """Let TOOL be the first tool that requires something, and WRONG what it must refuse."""
    for tool in reversed([tool for one in session.about for tool in one.get("tools", [])]):
        kinds = tool["inputSchema"].get("properties", {})
        needed = tool["inputSchema"].get("required", [])
        wrong = {name: OTHER.get(str(kinds[name].get("type"))) for name in needed}
        if wrong and None not in wrong.values():
            WORDS.update(TOOL=json.dumps(tool["name"]), WRONG=json.dumps(wrong))


def attempt(check: Check, session: Session) -> Outcome:
    """Send what a check sends and look at what comes; or look at all that came, and the end."""
    try:
        sent, wanted = ([fill(line) for line in lines] for lines in (check.sent, check.wanted))
    except KeyError as word:
        return "skip", f"no {word} here", check, []
    if sent:
        came = session.ask(sent, len(wanted))
        why = session.gone or (problems(came, wanted) if wanted != ["anything"] else "")
    else:
        session.end()
        came = [one for one in session.heard if problems([one], wanted)][:1]
        why = problems(came, wanted) if came else ""
    return "FAIL" if why else "pass", why, check._replace(sent=sent), came


def show(outcome: Outcome, brief: bool) -> str:
    """Print one check, foreign text without what a terminal would obey; the verdict."""
    verdict, why, check, came = outcome
    print(f"{verdict} {check.id:10} {check.level:10} {check.era:6} {check.title}")
    said = {"sent": check.sent, "came": map(json.dumps, came), "expected": check.wanted}
    for name, lines in {**said, "why": [why], "read": [SITE + check.page]}.items():
        for line in lines if verdict == "FAIL" or not brief else ():
            print(f"     {name:9}", printable(line)[:300].replace("\n", "; "))
    return verdict


def main() -> int:
    """Check the server that a command starts."""
    brief = "--brief" in sys.argv[1:2]
    command = sys.argv[1 + brief :] or sys.exit(__doc__)
    if not which(command[0]):
        sys.exit(f"{command[0]}: there is no such command")
    count = Counter(show(outcome, brief) for outcome in outcomes(command))
    print(f"{count['pass']} passed, {count['FAIL']} failed, {count['skip']} skipped")
    return int(count["FAIL"] > 0)


if __name__ == "__main__":
    sys.exit(main())
