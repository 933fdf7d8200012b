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

RIGHT = {
    "01 loads": [
        """
def loads(line):
    def refuse(constant):
        raise ValueError
    try:
        return json.loads(line, parse_constant=refuse)
    except (ValueError, RecursionError):
        raise ValueError("not JSON") from None
""",
        """
def loads(line):
    def refuse(constant):
        raise json.JSONDecodeError(constant, line, 0)
    try:
        return json.loads(line, parse_constant=refuse)
    except RecursionError as error:
        raise ValueError(str(error))
""",
    ],
    "03 booking": [
        f"""
booking = {{
    "type": "object",
    "properties": {{
        "name": {{"type": "string"}},
        "seats": {{"type": "integer", "minimum": 0}},
        "days": {{"type": "array", "items": {items}}},
    }},
    "required": ["name"],
    "additionalProperties": False,
}}
"""
        for items in (
            '{"oneOf": [{"const": "fri"}, {"const": "sat"}, {"const": "sun"}]}',
            '{"type": "string", "pattern": "^(fri|sat|sun)$"}',
        )
    ],
    "06 result_of": [
        """
def result_of(reply):
    try:
        if "error" in reply:
            error = reply["error"]
            raise ProtocolError(error["code"] + 0, error["message"])
        return {**reply["result"]}
    except (KeyError, TypeError):
        raise ConnectionResetError("nonsense")
"""
    ],
    "12 letter": [
        """
def letter(arguments):
    if {type(arguments.get("to")), type(arguments.get("tone", ""))} != {str}:
        raise ProtocolError(-32602, "no", {"to": "string", "tone": "string"})
    text = f"Write a {arguments.get('tone', 'friendly')} letter to {arguments['to']}."
    return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}
"""
    ],
}


@pytest.mark.parametrize("name", RIGHT)
def test_there_is_more_than_one_right_answer(name):
    check = CHECKS[name]
    assert [code for code in RIGHT[name] if not passes(check, code)] == []


# ## Wrong answers that look right

WRONG = {
    "03 is_type": [
        """
def is_type(value, name):
    if type(value) in (int, float):
        return name == "number" or value == int(value)
    return NAMES[type(value)] == name
""",
        """
def is_type(value, name):
    if type(value) is float and value == int(value):
        value = int(value)
        return name == "integer"
    if type(value) in (int, float):
        return name == "number" or (name == "integer" and type(value) is int)
    return NAMES[type(value)] == name
""",
    ],
    "03 same": [
        """
def same(one, other):
    if type(one) is bool or type(other) is bool:
        return one is other
    if type(one) is list and type(other) is list:
        return len(one) == len(other) and all(map(same, one, other))
    if type(one) is dict and type(other) is dict:
        return all(key in other and same(one[key], other[key]) for key in one)
    return one == other
"""
    ],
    "04 run": [
        """
def run(tool):
    try:
        return {"text": tool(), "isError": False}
    except ToolError as error:
        return {"text": str(error), "isError": True}
    except ProtocolError:
        raise ProtocolError(-32603, "oops")
    except (Exception, SystemExit) as error:
        return {"text": f"{type(error).__name__}: {error}", "isError": True}
"""
    ],
    "06 match": [
        """
def match(waiting, reply):
    if "error" in reply and len(waiting) == 1:
        return next(iter(waiting))
    ident = reply.get("id")
    return ident if type(ident) in (int, str) and ident in waiting else None
""",
        """
def match(waiting, reply):
    ident = reply.get("id")
    if ident is None and "error" in reply and len(waiting) == 1:
        return next(iter(waiting))
    return ident if type(ident) in (int, str, float) and ident in waiting else None
""",
    ],
    "06 result_of": [
        f"""
def result_of(reply):
    try:
        if "error" in reply:
            error = reply["error"]
            raise ProtocolError({raised})
        return {{**reply["result"]}}
    except (KeyError, TypeError):
        raise ConnectionError("nonsense")
"""
        for raised in ('error["message"], error["code"] + 0', "-32603, error['message']")
    ],
    "07 may_use": [
        """
def may_use(result, age_ms, same_user):
    ttl = result.get("ttlMs")
    fresh = type(ttl) is int and age_ms < ttl
    return fresh and (same_user or result.get("cacheScope", "private") != "private")
"""
    ],
    "08 next_step": [
        """
def next_step(reply):
    if reply is None:
        return "handshake"
    if "2026-07-28" in reply.get("result", {}).get("supportedVersions", []):
        return "modern"
    if reply.get("result", {}).get("supportedVersions"):
        return "give up"
    code = reply.get("error", {}).get("code")
    if code == -32022:
        return "handshake" if set(LEGACY) & set(reply["error"]["data"]["supported"]) else "give up"
    return "give up" if code in (-32020, -32021) else "handshake"
"""
    ],
    "09 mismatch": [
        """
def mismatch(headers, message):
    params, method = message["params"], message["method"]
    if method in NAMED and headers.get("mcp-name") != params.get(NAMED[method]):
        return "mcp-name"
    if headers.get("mcp-method") != method:
        return "mcp-method"
    return "mcp-protocol-version" if headers["mcp-protocol-version"] != params["_meta"][VERSION] \
        else None
"""
    ],
    "10 hear": [
        """
def hear(in_flight, message):
    params = message.get("params")
    if message["method"] == "notifications/cancelled" and isinstance(params, dict):
        if type(params.get("requestId")) is int:
            in_flight.pop(params["requestId"], None)
"""
    ],
    "12 name_of": [
        f"""
def name_of(uri, names):
    known = {{f"notes://{{name}}": name for name in names}}
    if not isinstance(uri, str) or unquote(uri) not in known:
        raise ProtocolError({raised})
    return known[unquote(uri)]
"""
        for raised in ('-32002, "no", {"uri": uri}', '-32602, "no"', '-32602, "no", {"uri": "?"}')
    ],
    "12 letter": [
        """
def letter(arguments):
    to, tone = arguments.get("to"), arguments.get("tone", "friendly")
    if not isinstance(to, str) or not isinstance(tone, str):
        raise ProtocolError(-32603, "no")
    text = f"Write a {tone} letter to {to}."
    return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}
"""
    ],
    "13 meaning": [
        f"""
def meaning(code, out, err):
    if code != 0:
        raise ToolError({says})
    try:
        return json.loads(out)
    except ValueError:
        return out.rstrip("\\n")
"""
        for says in ("out", "''", "'it failed'")
    ],
    "15 holds": [
        """
def holds(ident, answer):
    try:
        reply = json.loads(answer)
    except (ValueError, TypeError):
        return False
    if not isinstance(reply, dict) or "\\n" in answer:
        return False
    return type(reply.get("id")) is type(ident) and ("result" in reply) != ("error" in reply)
"""
    ],
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
