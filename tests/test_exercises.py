"""The checkers of the exercises: right answers pass and wrong ones do not, however written."""

import contextlib
import io
import sys
from importlib import import_module
from pathlib import Path

import pytest
from support_exercises import changes

sys.path.insert(0, str(Path(__file__).parents[1] / "notebooks"))

import teach
from teach import Exercise
from teach.exercise import side_by_side

CHECKS = {
    f"{path.stem[1:]} {check.name}": check
    for path in sorted(Path(teach.__file__).parent.glob("n[0-9][0-9].py"))
    for check in vars(import_module(f"teach.{path.stem}")).values()
    if isinstance(check, Exercise)
}


def passes(check, code):
    """Whether a checker takes an answer; what the answer prints is not for us."""
    quiet = io.StringIO()
    with contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet):
        try:
            return check(check.answer(code)).passed
        except SystemExit:
            return False


# ## Other right answers


def altered(name, *changes):
    """The solution with each of these changes made in it, one after the other: old, new."""
    code = CHECKS[name].solution
    for old, new in changes:
        assert code.count(old) == 1, f"{name} has no {old!r}, or several"
        code = code.replace(old, new)
    return code


DAYS = '{"enum": ["fri", "sat", "sun"]}'
RIGHT = {
    "01 loads": [
        altered("01 loads", ("except RecursionError", "except (ValueError, RecursionError)")),
        altered(
            "01 loads",
            ('ValueError(f"{constant} is not JSON")', "json.JSONDecodeError(constant, line, 0)"),
        ),
    ],
    "03 booking": [
        altered("03 booking", (DAYS, days))
        for days in (
            '{"oneOf": [{"const": "fri"}, {"const": "sat"}, {"const": "sun"}]}',
            '{"type": "string", "pattern": "^(fri|sat|sun)$"}',
        )
    ],
    "06 result_of": [
        altered("06 result_of", ("raise ConnectionError", "raise ConnectionResetError")),
        """
def result_of(reply):
    try:
        if "error" in reply:
            error = reply["error"]
            raise ProtocolError(error["code"] + 0, error["message"])
        return {**reply["result"]}
    except (KeyError, TypeError):
        raise ConnectionError("nonsense")
""",
    ],
    "12 letter": [
        altered("12 letter", ("maybe a 'tone'\")", 'maybe a \'tone\'", {"to": "string"})'))
    ],
}


@pytest.mark.parametrize("name", RIGHT)
def test_there_is_more_than_one_right_answer(name):
    check = CHECKS[name]
    assert [code for code in RIGHT[name] if not passes(check, code)] == []


# ## Wrong answers that look right

WRONG = {
    "03 is_type": [
        altered(
            "03 is_type", ('(name == "integer" and value == int(value))', "value == int(value)")
        ),
        altered(
            "03 is_type",
            (
                "    if type(value) in",
                "    if value == 2.0: return name == 'integer'\n    if type(value) in",
            ),
        ),
    ],
    "03 same": [
        altered("03 same", ("one.keys() == other.keys() and all(", "all(key in other and "))
    ],
    "04 run": [
        altered("04 run", ("        raise\n", "        raise ProtocolError(-32603, 'oops')\n"))
    ],
    "06 match": [
        altered("06 match", ("if ident is None and", "if")),
        altered("06 match", ("in (int, str)", "in (int, str, float)")),
    ],
    "06 result_of": [
        altered("06 result_of", ('error["code"], error["message"]', raised))
        for raised in ('error["message"], error["code"]', '-32603, error["message"]')
    ],
    "07 may_use": [
        altered("07 may_use", ('== "public"', '!= "private" and "cacheScope" in result'))
    ],
    "08 next_step": [
        altered(
            "08 next_step",
            (
                "    if set(listed)",
                "    if code is None and listed and '2026-07-28' not in listed:\n"
                "        return 'give up'\n    if set(listed)",
            ),
        ),
        altered(
            "08 next_step",
            (
                "    if set(listed) & set(MODERN)",
                "    if code is None and set(listed) & set(MODERN)",
            ),
        ),
    ],
    "09 mismatch": [
        altered("09 mismatch", ("in body.items()", "in reversed(body.items())")),
        altered(
            "09 mismatch", ("if method in NAMED", "if method in NAMED and method != 'prompts/get'")
        ),
    ],
    "10 hear": [altered("10 hear", ("type(ident) in (int, str)", "type(ident) is int"))],
    "12 name_of": [
        altered("12 name_of", ("-32602", "-32002")),
        altered("12 name_of", (', {"uri": uri}', "")),
        altered("12 name_of", ('{"uri": uri}', '{"uri": "?"}')),
    ],
    "12 letter": [altered("12 letter", ("-32602", "-32603"))],
    "13 meaning": [
        altered("13 meaning", ('err.strip() or f"failed with exit code {code}"', says))
        for says in ("out", "''", "'it failed'")
    ],
    "15 holds": [altered("15 holds", (' and reply["id"] == ident', ""))],
}


@pytest.mark.parametrize("name", WRONG)
def test_an_answer_that_only_looks_right_does_not_pass(name):
    check = CHECKS[name]
    assert [code for code in WRONG[name] if passes(check, code)] == []


# ## A solution with one thing changed is wrong, but for these

AS_GOOD = {
    "06 match": {"pass"},  # at the end, instead of `return None`
    "06 outcome": {"if seconds >= timeout:"},  # just in time: either will do
    "07 choose": {"pass"},
    "09 mismatch": {"pass"},
    "13 meaning": {r"return out.rstrip('\nx')"},
}


@pytest.mark.parametrize("name", CHECKS)
def test_a_small_slip_in_a_solution_is_noticed(name):
    check, good = CHECKS[name], AS_GOOD.get(name, set())
    slips = [*changes(check.solution)]
    assert len(slips) >= 3
    passed = [code for code in slips if passes(check, code)]
    assert [code for code in passed if not good & {*map(str.strip, code.splitlines())}] == []


def test_where_two_long_values_differ_is_shown():
    yours, expected = side_by_side("x" * 200 + "a" + "x" * 90, "x" * 200 + "b")
    assert (yours == expected, "a" in yours, "b" in expected) == (False, True, True)
    assert side_by_side("short", "shorter") == ("short", "shorter")
