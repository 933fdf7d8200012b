"""Small things that a notebook shows: a table, what broke, and how far long work is."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


class Table:
    """Rows under a head, as Markdown where that is rendered, and as plain text elsewhere."""

    def __init__(self, head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        self.head = list(head)
        self.rows = [[str(cell) for cell in row] for row in rows]

    def __repr__(self) -> str:
        lines = [self.head, *self.rows]
        widths = [max(len(line[number]) for line in lines) for number in range(len(self.head))]
        return "\n".join(
            "  ".join(map(str.ljust, line, widths)).rstrip()
            for line in [self.head, ["-" * width for width in widths], *self.rows]
        )

    def _repr_markdown_(self) -> str:
        lines = [self.head, ["---"] * len(self.head), *self.rows]
        return "\n".join("| " + " | ".join(map(escaped, line)) + " |" for line in lines)


def escaped(cell: str) -> str:
    """A cell that stays one cell."""
    return cell.replace("|", "\\|").replace("<", "&lt;").replace("\n", "<br>")


@contextlib.contextmanager
def breaks() -> Iterator[None]:
    """Run what is expected to fail, and show the error in one line; the notebook goes on."""
    try:
        yield
    except Exception as error:
        print(f"{type(error).__name__}: {error}")
    else:
        print("nothing broke")


class Progress:
    """How much is done: a line that changes in place, and at the end says how much it was."""

    def __init__(self, what: str, total: int) -> None:
        self.what, self.total, self.done = what, total, 0

    def __repr__(self) -> str:
        filled = 20 * self.done // max(self.total, 1)
        bar = "█" * filled + "░" * (20 - filled)
        return f"{bar} {self.done} of {self.total} {self.what}"


def progress(items: Sequence[T], what: str, every: int = 1) -> Iterator[T]:
    """Go through the items of a list, and show how far that is: `progress(lines, "lines sent")`.

    The display is renewed after `every` items. The last thing shown is the whole number.
    """
    bar = Progress(what, len(items))
    handle = shown(bar)
    for item in items:
        yield item
        bar.done += 1
        if handle and (bar.done % every == 0 or bar.done == bar.total):
            handle.update(bar)


def shown(bar: Progress) -> Any:
    """Display something that will change; without a notebook around, nothing."""
    try:
        from IPython.core.getipython import get_ipython
        from IPython.display import display
    except ImportError:
        return None
    return display(bar, display_id=True) if get_ipython() else None
