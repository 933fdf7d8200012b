"""Sequence diagrams, drawn from messages that were really sent.

A `Recording` is a list of what went from whom to whom. Give it to a client as its `trace`, or put
it in front of a `handle_line`; shown in a notebook, it draws itself. It invents nothing: what is
not recorded is not drawn.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from html import escape
from typing import Any, NamedTuple

Message = dict[str, Any]


class Words(str):
    """What no wire carries: what a model or a person says."""


class Event(NamedTuple):
    """One arrow, or with `sender` empty one note across the picture."""

    sender: str
    receiver: str
    what: Message | str


class Recording:
    """What was said between some `lanes`, first to last; a diagram of itself.

    log = Recording()                          # between "client" and "server"
    Client(target, trace=log)                  # everything the client sends and gets
    handle = log.through(server.handle_line)   # the same function, but it is remembered
    log[2:]                                    # a part of it, as a diagram of its own
    """

    def __init__(self, *lanes: str, events: list[Event] | None = None) -> None:
        self.lanes = list(lanes or ("client", "server"))
        self.events = events or []

    def __call__(self, sender: str, what: Message | str) -> None:
        """Record what one of the first two lanes sends to the other (the `trace` of a client)."""
        first, second = self.lanes[:2]
        self.send(sender, second if sender == first else first, what)

    def send(self, sender: str, receiver: str, what: Message | str) -> None:
        """Record one message: a dict, a line of JSON, or any other line."""
        self.events.append(Event(sender, receiver, parsed(what)))

    def say(self, sender: str, receiver: str, words: str) -> None:
        """Record what is said off the wire: between a model and its host, for example."""
        self.events.append(Event(sender, receiver, Words(words)))

    def note(self, text: str) -> None:
        """Write across the picture what no message says: `the server is gone`."""
        self.events.append(Event("", "", text))

    def through(self, handle_line: Callable[..., str | None]) -> Callable[..., str | None]:
        """`handle_line`, but each line and each reply is recorded."""

        def recorded(line: str, *more: Any) -> str | None:
            self(self.lanes[0], line)
            reply = handle_line(line, *more)
            if reply is not None:
                self(self.lanes[1], reply)
            return reply

        return recorded

    def between(self, client: str, server: str) -> Callable[[str, Message], None]:
        """A `trace` for one of several clients: who they are in the picture."""
        for lane in (client, server):
            if lane not in self.lanes:
                self.lanes.append(lane)
        ends = {"client": (client, server), "server": (server, client)}
        return lambda sender, message: self.send(*ends[sender], message)

    def __getitem__(self, part: slice) -> Recording:
        return Recording(*self.lanes, events=self.events[part])

    def clear(self) -> None:
        """Forget all, to record something new."""
        self.events = []

    def __repr__(self) -> str:
        return "\n".join(map(in_words, self.events)) or "nothing was sent"

    def _repr_svg_(self) -> str:
        return draw(self.lanes, self.events)


# ## A message in two lines
#
# What it is, and the little of it that matters at a glance. The rest is in the tooltip.


def parsed(what: Message | str) -> Message | str:
    """A line as the message it is, if it is one."""
    try:
        message = json.loads(what) if isinstance(what, str) else what
    except (ValueError, RecursionError):
        return what
    return message if isinstance(message, dict) else what


def describe(message: Message | str) -> tuple[str, str, str]:
    """The kind, the title and the detail of one message."""
    if isinstance(message, Words):
        return "words", "", message
    if isinstance(message, str):
        return "garbage", "no message", message if message.isprintable() else shown(message)
    number = f" #{message['id']}" if "id" in message else ""
    if "method" in message:
        kind = "request" if number else "notification"
        return kind, f"{message['method']}{number}", asked(message.get("params", {}))
    if isinstance(message.get("error"), dict):
        error = message["error"]
        return "error", f"error {error.get('code')}{number}", str(error.get("message", ""))
    if "result" in message:
        failed = isinstance(message["result"], dict) and message["result"].get("isError")
        title = "result, isError" if failed else "result"
        return ("error" if failed else "result"), title + number, answered(message["result"])
    return "garbage", "no message", shown(message)


def asked(params: Any) -> str:
    """The params of a request: a name and its arguments, if it has those."""
    if not isinstance(params, dict) or not params:
        return shown(params) if params else ""
    rest = {key: value for key, value in params.items() if key != "_meta"}
    if retried := again(rest):
        return f"{retried}; {asked(rest)}"
    mark = " + _meta" if "_meta" in params else ""
    if isinstance(rest.get("name"), str) and isinstance(rest.get("arguments"), dict):
        name, arguments = rest.pop("name"), rest.pop("arguments")
        return f"{name} {shown(arguments)}{' ' + shown(rest) if rest else ''}{mark}"
    return (shown(rest) + mark) if rest or not mark else "_meta only"


def again(rest: Message) -> str:
    """What a retry brings: the answers, and the state; both are taken out."""
    answers, state = rest.pop("inputResponses", None), rest.pop("requestState", None)
    told = ["answers " + ", ".join(answers)] if isinstance(answers, dict) else []
    return "; ".join([*told, *([f"state {cut(str(state), 20)}"] if state is not None else [])])


def answered(result: Any) -> str:
    """A result: the text for the model, or the names in a list, or what there is."""
    if not isinstance(result, dict):
        return shown(result)
    if not result:
        return "{}"
    if result.get("resultType") == "input_required":
        kept = f"; state {cut(str(result['requestState']), 20)}" if "requestState" in result else ""
        return f"first: {', '.join(result.get('inputRequests', {}))}{kept}"
    for block in result.get("content") or ():
        if isinstance(block, dict) and isinstance(block.get("text"), str):
            first, _, rest = block["text"].rpartition("\n")
            return f"… {rest}" if first else shown(rest)  # the last line says what was wrong
    for key, items in result.items():
        if isinstance(items, list) and items and all(isinstance(one, dict) for one in items):
            return f"{key}: {', '.join(map(brief, items))}"
    return shown({key: value for key, value in result.items() if key != "_meta"})


def brief(item: Message) -> str:
    """One of a list, in a word: its name, or the text in it."""
    content = item.get("content")
    inner = content if isinstance(content, dict) else {}
    found = item.get("name") or item.get("text") or inner.get("text") or item.get("uri") or "…"
    return shown(found)[1:-1] if isinstance(found, str) else shown(found)


def shown(value: Any) -> str:
    """A value as JSON on one line, whatever it holds."""
    return json.dumps(value, ensure_ascii=not_plain(value))


def not_plain(value: Any) -> bool:
    """Whether a value has characters that a picture cannot show."""
    text = json.dumps(value, ensure_ascii=False)
    return not text.isprintable()


def cut(text: str, width: int) -> str:
    """A text, not longer than this."""
    text = " ".join(text.split())
    return text if len(text) <= width else text[: width - 1] + "…"


def split(text: str, width: int) -> tuple[str, str]:
    """A text as two lines, the first of them as long as it may be."""
    words = " ".join(text.split())
    first = words if len(words) <= width else words[: width + 1].rpartition(" ")[0]
    return (first, words[len(first) :].strip()) if first else ("", words)


def in_words(event: Event) -> str:
    """One line of the diagram as plain text."""
    if not event.sender:
        return f"  ({event.what})"
    kind, title, detail = describe(event.what)
    arrow = "==>" if kind in ("result", "error") else "-->"
    said = "  ".join(filter(None, (title, cut(detail, 60))))
    return f"{event.sender} {arrow} {event.receiver}  {said}"


# ## The picture
#
# On a page that sets these variables it takes the page's colours, and as a picture of its own it
# is a light card. It is narrow enough for a telephone.

INK, PAPER = "var(--seq-ink,#24292f)", "var(--seq-paper,#ffffff)"
COLOURS = {
    "request": "var(--seq-request,#3949ab)",
    "notification": "var(--seq-notification,#8e5a00)",
    "result": "var(--seq-result,#00796b)",
    "error": "var(--seq-error,#c62828)",
    "garbage": "var(--seq-error,#c62828)",
    "words": INK,
}
FONT = "ui-monospace,Menlo,Consolas,DejaVu Sans Mono,monospace"
GAP, MARGIN, TOP, ROW, NOTE_ROW = 316, 52, 16, 52, 36


def draw(lanes: list[str], events: list[Event]) -> str:
    """An SVG picture of all events, downwards in time."""
    gap = {2: GAP, 3: 260, 4: 230}.get(len(lanes), 188)
    places = {lane: MARGIN + gap * number for number, lane in enumerate(lanes)}
    width = 2 * MARGIN + gap * (len(lanes) - 1)
    parts, y = [], TOP if events and events[0].sender else TOP + 16
    for event in events:
        y += ROW if event.sender else NOTE_ROW
        parts.append(arrow(event, places, y) if event.sender else note(str(event.what), width, y))
    height = y + 30
    words = plain("; ".join(map(in_words, events)), quote=True)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" style="display:block;max-width:100%;height:auto" role="img" '
        f'aria-label="{words}" font-family="{FONT}" font-size="13">'
        f'<rect width="{width}" height="{height}" rx="8" style="fill:{PAPER}"/>'
    )
    columns = [column(lane, x, height) for lane, x in places.items()]
    return "".join([head, *columns, *parts, "</svg>"])


def plain(text: str, quote: bool = False) -> str:
    """A text as XML can hold it."""
    return escape("".join(c if c.isprintable() else "�" for c in text), quote)


def column(lane: str, x: int, height: int) -> str:
    """A box with a name, and the line of its life below."""
    half = max(42, len(lane) * 4 + 8)
    left = max(4, x - half)
    return (
        f'<rect x="{left}" y="8" width="{2 * (x - left)}" height="26" rx="6" '
        f'style="fill:none;stroke:{INK}"/>'
        f'<text x="{x}" y="26" text-anchor="middle" style="fill:{INK}">{plain(lane)}</text>'
        f'<line x1="{x}" y1="34" x2="{x}" y2="{height - 8}" stroke-dasharray="3 4" '
        f'style="stroke:{INK};opacity:.4"/>'
    )


def arrow(event: Event, places: dict[str, int], y: int) -> str:
    """One message: solid for what asks or tells, dashed for what answers."""
    start, end = places[event.sender], places[event.receiver]
    kind, title, detail = describe(event.what)
    colour, middle = COLOURS[kind], (start + end) / 2
    back = -9 if end > start else 9
    room = abs(end - start)
    small, look = (room - 16) // 6, 'font-weight="bold"'
    if kind == "words":  # as many of them above the arrow as fit, and the rest below
        (title, detail), look = split(detail, small), 'font-size="10"'
    dashes = ' stroke-dasharray="6 4"' if kind in ("result", "error") else ""
    return (
        f"<g><title>{plain(shown(event.what))}</title>"
        f'<text x="{middle:g}" y="{y - 6}" text-anchor="middle" {look} '
        f'style="fill:{colour}">{plain(cut(title, small))}</text>'
        f'<line x1="{start}" y1="{y}" x2="{end + back}" y2="{y}" stroke-width="2"{dashes} '
        f'style="stroke:{colour}"/>'
        f'<path d="M{end},{y} l{back},-5 v10 z" style="fill:{colour}"/>'
        f'<text x="{middle:g}" y="{y + 14}" text-anchor="middle" font-size="10" '
        f'style="fill:{INK}">{plain(cut(detail, small))}</text></g>'
    )


def note(text: str, width: int, y: int) -> str:
    """A remark across the whole picture."""
    return (
        f'<rect x="14" y="{y - 15}" width="{width - 28}" height="22" rx="4" '
        f'style="fill:{PAPER};stroke:{INK};stroke-opacity:.35"/>'
        f'<text x="{width / 2:g}" y="{y}" text-anchor="middle" font-size="11" '
        f'style="fill:{INK}">{plain(cut(text, (width - 40) // 6))}</text>'
    )
