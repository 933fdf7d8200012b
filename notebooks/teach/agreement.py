"""The last cell but one of a notebook: what you wrote and the package, over one table.

The table is a list of (line, reply). A reply is a line of JSON, or a dict, or `None` for silence.
Everything must be equal but the wording of a failure, which each may choose.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from .diagram import describe, parsed
from .exercise import alike, cut

HandleLine = Callable[[str], "str | None"]
ASIDES = {"status", "said"}  # what a reply may have beside it: of HTTP, and what came before it


class Agreement:
    """Who gives which reply, as a table; `holds` if all of them give all of it."""

    def __init__(self, rows: list[tuple[str, Any, dict[str, Any]]], names: list[str]) -> None:
        self.rows, self.names = rows, names
        self.holds = all(alike(reply, one) for _, reply, got in rows for one in got.values())

    def __repr__(self) -> str:
        head = f"{'line':48}  {'reply':34}  {'  '.join(self.names)}"
        body = [self._row(*row) for row in self.rows]
        return "\n".join([head, *body, "", self._verdict()])

    def _row(self, line: str, reply: Any, got: dict[str, Any]) -> str:
        marks = (f"{'✓' if alike(reply, got[name]) else '✗':{len(name)}}" for name in self.names)
        lines = [f"{brief(line, 48):48}  {brief(reply, 34):34}  {'  '.join(marks)}".rstrip()]
        wrong = [name for name in self.names if not alike(reply, got[name])]
        return "\n".join([*lines, *(f"    {name}: {cut(repr(got[name]))}" for name in wrong)])

    def _verdict(self) -> str:
        who = " and ".join(self.names)
        if self.holds:
            return f"{len(self.rows)} lines: {who} agree on every reply."
        return f"{who} do not agree yet; see the rows with ✗."


def agree(
    table: Iterable[tuple[str, Any]], before: Iterable[str] = (), /, **contestants: HandleLine
) -> Agreement:
    """Feed every line to everybody: `agree(LINES, yours=handle_line, package=server.handle_line)`.

    The lines in `before` come first and their replies do not count (a handshake, for example).
    """
    rows = []
    for line in before:
        for handle_line in contestants.values():
            handle_line(line)
    for line, reply in table:
        got = {name: judged(handle_line(line)) for name, handle_line in contestants.items()}
        rows.append((line, judged(reply), got))
    return Agreement(rows, list(contestants))


def judged(reply: Any) -> Any:
    """A reply without the wording of its error, or of a failed tool."""
    reply = json.loads(reply) if isinstance(reply, str) else reply
    result = reply.get("result") if isinstance(reply, dict) else None
    if isinstance(result, dict) and result.get("isError") is True:
        blocks = [{**block, "text": "…"} for block in result["content"]]
        return {**reply, "result": {**result, "content": blocks}}
    if isinstance(reply, dict) and isinstance(reply.get("error"), dict):
        error = {key: value for key, value in reply["error"].items() if key != "message"}
        return {**reply, "error": error}
    return reply


def brief(message: Any, width: int) -> str:
    """A line or a reply as it is, if that fits; else in words, as in a diagram."""
    if isinstance(message, dict) and ASIDES & message.keys():
        rest = {key: one for key, one in message.items() if key not in ASIDES}
        said = f"{len(message['said'])} +" if message.get("said") else ""
        aside = f"{message.get('status', '')} {said}".strip()
        if aside and not rest:
            return aside
        return f"{aside}  {brief(rest, width - len(aside) - 2)}".strip()
    text = message if isinstance(message, str) else compact(message)
    text = text if text.isprintable() else ascii(text)[1:-1]
    whole = parsed(message)
    if len(text) > width and isinstance(whole, dict) and "jsonrpc" in whole:
        _, title, detail = describe(whole)
        text = f"{title}  {detail}"
    return text if len(text) <= width else text[: width - 1] + "…"


def compact(reply: dict[str, Any] | None) -> str:
    """A reply without the member that all replies have."""
    rest = {key: value for key, value in (reply or {}).items() if key != "jsonrpc"}
    return json.dumps(rest, ensure_ascii=False, separators=(",", ":")) if rest else "(nothing)"
