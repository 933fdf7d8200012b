"""Exercises: a checker that tries several inputs, and answers so that you can go on.

An exercise knows its cases (what goes in, and why that matters), a reference solution, hints in
stages, and the mistakes that people make, each with what to say to somebody who made it. What is
expected is not written down: it is what the solution gives.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

WIDTH = 100


class Mistake(NamedTuple):
    """A wrong answer, and what to tell somebody whose answer does the same."""

    code: str
    says: str


class Raised(NamedTuple):
    """An answer that is an exception: its kind and text, and what a `ProtocolError` carries."""

    kind: str
    text: str
    code: Any = None
    data: Any = None

    def __repr__(self) -> str:
        return f"raises {self.kind}: {self.text}"


class Exercise:
    """A checker: `check_kind = Exercise("kind", …)`, and in the notebook `check_kind(kind)`.

    `cases` are pairs of a tuple of arguments and the reason why they are there. `given` are the
    names that the solution and the mistakes need. `use(answer, *arguments)` says what to do with
    an answer that is not a function to be called with the arguments, and `label(*arguments)` how
    that is shown. An exception of a subclass of `raises` is as good as one of `raises`.
    """

    def __init__(
        self,
        name: str,
        *,
        cases: Iterable[tuple[tuple[Any, ...], str]],
        solution: str,
        hints: Iterable[str],
        mistakes: Iterable[Mistake],
        given: dict[str, Any] | None = None,
        use: Callable[..., Any] = lambda answer, *arguments: answer(*arguments),
        label: Callable[..., str] | None = None,
        raises: type[Exception] | None = None,
    ) -> None:
        self.name, self.cases, self.solution = name, list(cases), solution.strip()
        self.hints, self.mistakes = list(hints), list(mistakes)
        self.given, self.use, self.raises = given or {}, use, raises
        self.label = label or self._as_a_call
        self.failed = 0  # how many times; each time shows one hint more

    def __call__(self, yours: Any) -> Report:
        """Try an answer."""
        got, expected = self.outcomes(yours), self.outcomes(self.reference)
        wrong = [number for number, one in enumerate(got) if not alike(one, expected[number])]
        if not wrong:
            return Report(self._praise(), True)
        self.failed += 1
        return Report(self._help(wrong, got, expected), False)

    @property
    def reference(self) -> Any:
        """The reference solution, to go on with; its text is shown when an answer passes."""
        return self.answer(self.solution)

    def answer(self, code: str) -> Any:
        """What a piece of code defines under the name of the exercise."""
        names = dict(self.given)
        exec(code, names)  # noqa: S102 (our own solutions)
        return names[self.name]

    def outcomes(self, answer: Any) -> list[Any]:
        """What an answer gives for each case."""
        return [self._outcome(answer, arguments) for arguments, _ in self.cases]

    def _outcome(self, answer: Any, arguments: tuple[Any, ...]) -> Any:
        try:
            return self.use(answer, *copy.deepcopy(arguments))
        except Exception as error:
            kind = self.raises if isinstance(error, self.raises or ()) else type(error)
            more = getattr(error, "code", None), getattr(error, "data", None)
            return Raised(kind.__name__, str(error), *more)

    def _as_a_call(self, *arguments: Any) -> str:
        return f"{self.name}({', '.join(map(repr, arguments))})"

    def _praise(self) -> str:
        return (
            f"✓ {self.name}: all {len(self.cases)} are right. One way to write it:\n\n"
            f"{self.solution}"
        )

    def _help(self, wrong: list[int], got: list[Any], expected: list[Any]) -> str:
        first, right = wrong[0], len(got) - len(wrong)
        arguments, why = self.cases[first]
        others = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        yours, wanted = side_by_side(repr(got[first]), repr(expected[first]))
        lines = [
            f"✗ {self.name}: {right} of {len(got)} are right. The first that is not{others}:",
            "",
            f"  {cut(self.label(*arguments))}",
            f"    yours     {yours}",
            f"    expected  {wanted}",
            f"    why       {why}",
            "",
        ]
        return "\n".join([*lines, *self._diagnosis(got), *self._staged_hints()])

    def _diagnosis(self, got: list[Any]) -> list[str]:
        """What to say to somebody whose answers are those of a mistake that we know."""
        for code, says in self.mistakes:
            known = self.outcomes(self.answer(code))
            if all(map(alike, got, known)):
                return [f"  it looks as if  {says}"]
        return []

    def _staged_hints(self) -> list[str]:
        total = len(self.hints)
        shown = self.hints[: self.failed]
        lines = [f"  hint {number} of {total}  {one}" for number, one in enumerate(shown, 1)]
        more = "check again for the next hint"
        if self.failed >= total:
            more = f"print(check_{self.name}.solution) shows one way to write it"
        return [*lines, f"  ({more})"]


class Report:
    """What a checker says."""

    def __init__(self, text: str, passed: bool) -> None:
        self.text, self.passed = text, passed

    def __repr__(self) -> str:
        return self.text


def cut(text: str, start: int = 0) -> str:
    """A text on one line, not too long."""
    text = " ".join(text.split())
    text = f"…{text[start:]}" if start else text
    return text if len(text) <= WIDTH else text[: WIDTH - 1] + "…"


def side_by_side(yours: str, expected: str) -> tuple[str, str]:
    """Two texts that differ, cut so that one sees where."""
    flat = [" ".join(one.split()) for one in (yours, expected)]
    same = next((at for at, (a, b) in enumerate(zip(*flat, strict=False)) if a != b), 0)
    start = same - WIDTH // 2 if same > WIDTH - 10 else 0
    return cut(yours, start), cut(expected, start)


def alike(one: Any, other: Any) -> bool:
    """Whether a value is the one that is expected, and of the same type at every depth.

    Of an exception the text does not count, and `data` only if there has to be some.
    """
    if isinstance(one, Raised) and isinstance(other, Raised):
        told = other.data is None or alike(one.data, other.data)
        return told and (one.kind, one.code) == (other.kind, other.code)
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(alike, one, other))
    return bool(one == other) or (one != one and other != other)  # NaN is not equal to itself
