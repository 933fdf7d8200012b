"""A checker for any stdio server, in any language: is what it says on the wire right?

    python examples/check.py COMMAND…            such as: python examples/movies.py
    python examples/check.py --brief COMMAND…    what passes takes one line

It starts the server, finds out which eras it speaks, and sends it what stands in check.txt. Each
check is printed with the id of its requirement, what was sent, what came, what was expected and
where to read. The exit code is 1 if one failed. Tools are called only with arguments that they
must refuse, and the server is started with LC_ALL=C: text is UTF-8 whatever the locale says.

The lesson: *a server is what it says on the wire*. No import, no SDK: lines in, lines out.
"""

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from subprocess import TimeoutExpired
from typing import Any, NamedTuple

sys.path.append(str(Path(__file__).parents[1]))  # so that it runs from a clone, not installed
from minimcp.child import Child
from minimcp.cli import printable
from minimcp.protocol import CAPABILITIES_KEY, VERSION_KEY, ProtocolError, loads
from minimcp.schema import Schema, explain, validate

SITE = "https://modelcontextprotocol.io/specification/2026-07-28/"
FIRST, PATIENCE, QUIET = 20.0, 10.0, 0.5  # seconds: to start, to answer, to be sure of silence
META = {VERSION_KEY: "2026-07-28", CAPABILITIES_KEY: {}}
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}}
HELLO["clientInfo"] = {"name": "check", "version": "1.0.0"}
BYTES = {"FF": b"\xff", "CR": b"\r", "DEEP": b"[" * 100_000, "MEGA": b"x" * 1_000_000}

# ## A conversation


def request(method: str, params: Any, ident: Any = 1) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": ident, "method": method, "params": params}).encode()


class Session:
    """One process of the server, in one era; `heard` is all that it ever wrote.

    The era "new" is legacy before the handshake. `about` is what the server said of itself.
    """

    def __init__(self, command: list[str], era: str) -> None:
        self.era, self.heard, self.rounds, self.about = era, list[Any](), 0, dict[str, Any]()
        self.meta = {"_meta": META if era == "modern" else {}}
        self.child, self.inbox = Child(command, {"LC_ALL": "C"}), SimpleQueue[str | None]()
        self.child.open(self.inbox.put)
        if era == "modern":
            self.about = self.result("server/discover", self.meta, FIRST)
        elif era == "legacy":
            self.about = self.result("initialize", HELLO, FIRST)
            self.child.outbox.put(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')

    def result(self, method: str, params: Any, patience: float = PATIENCE) -> Any:
        """The result of one request; an empty one if there is none."""
        came = self.exchange([request(method, params)], 1, patience)
        return next((one["result"] for one in came if "result" in one), {})

    def exchange(self, lines: list[bytes], replies: int, patience: float = PATIENCE) -> list[Any]:
        """What comes back. A request of ours goes last: once that is answered, all is read."""
        self.rounds += 1
        last = f"last {self.rounds}"
        asked = request("server/discover" if self.era == "modern" else "ping", self.meta, last)
        for line in [*lines, asked]:
            self.child.outbox.put(line + b"\n")
        came, over = list[Any](), False
        while not over or not replies or len(came) < replies:
            try:
                line = self.inbox.get(timeout=QUIET if over else patience)
            except Empty:
                if over:
                    break
                raise ConnectionError(f"no answer in {patience:g} s, after {came}") from None
            if line is None:
                raise ConnectionError(f"{self.child.obituary()}, after {came}")
            self.heard.append(parsed(line))
            if isinstance(self.heard[-1], dict) and self.heard[-1].get("id") == last:
                over = True
            else:
                came.append(self.heard[-1])
        return came


def parsed(line: str) -> Any:
    """The JSON in a line, or the line itself."""
    try:
        return loads(line)
    except ProtocolError:
        return line


# ## What is sent, and what is expected


class Check(NamedTuple):
    """One block of check.txt. A rule about every message has nothing to send."""

    id: str
    level: str
    era: str
    page: str
    title: str
    sent: list[str]
    wanted: list[str]


def read(text: str) -> Iterator[Check]:
    """The blocks of check.txt."""
    for block in re.sub("(?m)^#.*", "", text).strip().split("\n\n"):
        head, *lines = block.split("\n")
        sent = [line[2:] for line in lines if line[0] == ">"]
        yield Check(*head.split(maxsplit=4), sent, [line[2:] for line in lines if line[0] != ">"])


def schema(wanted: str) -> Schema:
    """What one message must be like."""
    kind, _, rest = wanted.removeprefix("maybe ").partition(" ")
    if kind not in ("error", "result"):
        return json.loads(wanted)
    code = {"type": "object", "required": ["code"], "properties": {"code": {"enum": []}}}
    code["properties"]["code"]["enum"] = [int(one) for one in re.findall("-[0-9]+", rest)]
    content = code if kind == "error" else {"type": "object", **json.loads(rest)}
    ids = [] if rest.endswith("without id") else [1]
    members = {"id": {"enum": ids}, kind: content}
    return {"type": "object", "properties": members, "required": [kind, "id"][: 1 + len(ids)]}


def problems(came: list[Any], wanted: list[str]) -> str:
    """Why what came is not what was wanted, in any order; empty if it is."""
    left = list(wanted)
    for message in came:
        fits = [one for one in left if not validate(message, schema(one))]
        if not fits:
            wrong = validate(message, schema(left[0])) if left else [("", "nothing more")]
            return explain(wrong, "message")
        left.remove(fits[0])
    missing = [one for one in left if not one.startswith("maybe ")]
    return f"{len(missing)} of {len(wanted)} did not come" if missing else ""


def spelled(line: str) -> bytes:
    """A line as it is sent, with its words for odd bytes replaced."""
    return re.sub(rb"\b(FF|CR|DEEP|MEGA)\b", lambda word: BYTES[word[0].decode()], line.encode())


def facts(session: Session) -> dict[str, Any]:
    """What the words in check.txt stand for that depend on the server."""
    tools = session.result("tools/list", session.meta).get("tools", [])
    found = {"LISTED": tools, "SUPPORTED": session.about.get("supportedVersions")}
    for tool in reversed(tools):
        members = tool["inputSchema"].get("properties", {})
        kinds = {one: members[one].get("type") for one in tool["inputSchema"].get("required", ())}
        if kinds and all(isinstance(kind, str) for kind in kinds.values()):
            wrong = {name: 5 if kind == "string" else "x" for name, kind in kinds.items()}
            found |= {"TOOL": tool["name"], "WRONG": wrong}
    return found


# ## All checks

Outcome = tuple[Check, str, str, list[Any]]  # "pass", "FAIL" or "skip", why, and what came


class Checker:
    """One server, and all the sessions that are held with it."""

    def __init__(self, command: list[str]) -> None:
        self.command, self.sessions = command, list[Session]()
        self.open = {era: self.greet(era) for era in ("modern", "legacy")}
        self.facts = facts(self.sessions[0]) if self.sessions else {}

    def greet(self, era: str) -> Session | None:
        """A session in an era, if the server speaks it."""
        try:
            session = Session(self.command, era)
        except ConnectionError as error:
            print(f"{era}: {error}", file=sys.stderr)
            return None
        said = session.about.get("supportedVersions", [session.about.get("protocolVersion")])
        if era == "new" or any(str(one).startswith("202") for one in said):
            self.sessions.append(session)
            return session
        session.child.close()
        return None

    def run(self) -> Iterator[Outcome]:
        """The checks of check.txt: those that send something first."""
        checks = [*read(Path(__file__).with_suffix(".txt").read_text(encoding="utf-8"))]
        for check in sorted(checks, key=lambda check: not check.sent):
            yield self.attempt(check) if check.sent else self.rule(check)

    def choose(self, era: str) -> Session | None:
        """The session in which a check is made."""
        modern, legacy = self.open["modern"], self.open["legacy"]
        if era == "new" and legacy:
            return self.greet(era)
        return {"any": modern or legacy, "both": modern and legacy}.get(era, self.open.get(era))

    def attempt(self, check: Check) -> Outcome:
        """Send what a check sends, and look at what comes."""
        session = self.choose(check.era)
        if not session:
            return check, "skip", "the server does not speak this era", []
        try:
            sent = [self.fill(line, session) for line in check.sent]
            wanted = [self.fill(line, session) for line in check.wanted if line != "nothing"]
        except KeyError as word:
            return check, "skip", f"no {word} here", []
        try:
            came = session.exchange([spelled(line) for line in sent], len(wanted))
            why = problems(came, wanted)
        except ConnectionError as error:
            came, why = [], str(error)
            self.open[session.era] = self.greet(session.era)
        return check._replace(sent=sent), "FAIL" if why else "pass", why, came

    def fill(self, line: str, session: Session) -> str:
        """A line with the words of check.txt replaced; `KeyError` if one has no meaning here."""
        known = {**self.facts, "META": session.meta["_meta"]}
        say = lambda word: json.dumps(known[word[0]], ensure_ascii=False)  # noqa: E731
        return re.sub(r"\b(META|LISTED|SUPPORTED|TOOL|WRONG)\b", say, line)

    def rule(self, check: Check) -> Outcome:
        """Look at every message that came in an era, or at how the server ends."""
        fits = [one for one in self.sessions if check.era in ("any", one.era)]
        if check.wanted == ["exit code 0"]:
            for session in fits:
                session.child.outbox.put(None)  # its stdin ends
            for session in fits:
                with suppress(TimeoutExpired):
                    session.child.process.wait(PATIENCE)
                session.child.close()
            codes = [session.child.process.returncode for session in fits]
            return check, "FAIL" if any(codes) else "pass", "", [f"exit codes {codes}"]
        heard = [message for session in fits for message in session.heard]
        for message in heard:
            if why := problems([message], check.wanted):
                return check, "FAIL", why, [message]
        return check, "pass" if heard else "skip", "", [f"{len(heard)} messages"]


def show(outcome: Outcome, brief: bool) -> None:
    """Print one check; text of a server is shown without what a terminal would obey."""
    check, verdict, why, came = outcome
    print(f"{verdict} {check.id:10} {check.level:8} {check.title}")
    read = [json.dumps(one, ensure_ascii=False) for one in came]
    shown = {"sent": check.sent, "came": read, "expected": check.wanted, "why": [why]}
    for name, lines in {**shown, "read": [SITE + check.page]}.items():
        for line in lines if verdict == "FAIL" or not brief else ():
            print(f"     {name:9}", printable(line)[:300].replace("\n", "; "))


def main() -> int:
    """Check the server that a command starts."""
    brief = "--brief" in sys.argv[1:2]
    command = sys.argv[1 + brief :] or sys.exit(__doc__)
    checker = Checker(command)
    if not checker.sessions:
        sys.exit("the server answers neither server/discover nor initialize")
    count = Counter(show(outcome, brief) or outcome[1] for outcome in checker.run())
    eras = ", ".join(era for era, session in checker.open.items() if session)
    print(f"{count['pass']} passed, {count['FAIL']} failed, {count['skip']} skipped ({eras})")
    return int(count["FAIL"] > 0)


if __name__ == "__main__":
    sys.exit(main())
