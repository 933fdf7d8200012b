"""Full JSON Schema, by the `jsonschema` library, for schemas that were written by hand.

Imported only when a schema uses more than our own validator knows. Two dialects: 2020-12, which
is meant when `$schema` is absent, and draft-07. A `$ref` to the network is never fetched.

https://modelcontextprotocol.io/specification/2026-07-28/basic#json-schema-usage
"""

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from contextvars import ContextVar
from itertools import islice
from typing import Any, Final

from .protocol import JSON, dumps
from .schema import MOST, Check, Problem, Schema, step, validate

try:
    from jsonschema import Draft7Validator, Draft202012Validator
    from jsonschema.exceptions import SchemaError, ValidationError
    from jsonschema.validators import extend
    from jsonschema_specifications import REGISTRY
    from referencing.exceptions import Unresolvable
except ImportError:
    raise ImportError(
        "this schema needs the full validator: pip install 'jsonschema>=4.23'"
    ) from None

regex: Any = vars(re).get("_parser") or vars(re)["sre_parse"]  # as Python 3.10 calls it
compiler: Any = vars(re).get("_compiler") or vars(re)["sre_compile"]
DIALECTS: Final[dict[str, Any]] = {
    "https://json-schema.org/draft/2020-12/schema": Draft202012Validator,
    "http://json-schema.org/draft-07/schema": Draft7Validator,
}
MAX_WORK: Final = 500_000  # rules that one check may apply; those that lead elsewhere count more
DEAR: Final = {"$ref": 25, "$dynamicRef": 25, "unevaluatedProperties": 25, "unevaluatedItems": 25}
MAX_SIZE: Final = 100_000  # characters of a schema that a peer sent
MAX_WAYS: Final = 100_000
work: ContextVar[list[int]] = ContextVar("work")  # that is left


def full_checker(schema: Schema, trusted: bool) -> Check:
    """A function that lists the problems of a value; `ValueError` for a bad or unknown schema."""
    dialect = str(schema.get("$schema", next(iter(DIALECTS)))).rstrip("#")
    if dialect not in DIALECTS:
        raise ValueError(f"dialect not supported: {dialect}; known: {', '.join(DIALECTS)}")
    base = DIALECTS[dialect]
    try:
        if not trusted and len(str(schema)) > MAX_SIZE:
            raise ValueError(f"a schema of more than {MAX_SIZE} characters")
        base.check_schema(schema)
        counted = DEAR if trusted else base.VALIDATORS
        kept = {name: rule for name, rule in base.VALIDATORS.items() if name in counted}
        rules = {name: _bounded(rule, DEAR.get(name, 1)) for name, rule in kept.items()}
        rules["uniqueItems"] = _unique
        if trusted:
            json.loads(dumps(schema), object_hook=_refuse_explosive_patterns)
        else:
            rules |= {"pattern": _no_rule, "patternProperties": _no_rule}
    except SchemaError as error:
        raise ValueError(f"no JSON Schema: {error.json_path}: {error.message:.200}") from None
    except (RecursionError, OverflowError) as error:
        raise ValueError(f"no usable JSON Schema: {error}") from None
    validator = extend(base, rules)(schema, registry=REGISTRY)

    def check(value: JSON) -> list[Problem]:
        work.set([MAX_WORK])
        try:
            errors = list(islice(validator.iter_errors(value), MOST))
        except (Unresolvable, RecursionError, StopIteration, RuntimeError) as error:
            return [("", f"the schema leads nowhere: {getattr(error, 'ref', error)!r:.200}")]
        return [("".join(map(step, error.absolute_path)), error.message[:200]) for error in errors]

    return check


def _bounded(rule: Any, cost: int) -> Any:
    """A rule that gives up after too many: a schema can double the work at each level."""

    def apply(*arguments: Any) -> Any:
        left = work.get()
        left[0] -= cost
        if left[0] < 0:
            raise RecursionError("too much work")
        return rule(*arguments)

    return apply


def _unique(validator: Any, wanted: bool, value: JSON, schema: Any) -> Iterator[ValidationError]:
    """Our rule: the library's compares every item with every other."""
    for _, what in validate(value, {"uniqueItems": wanted}):
        yield ValidationError(what)


def _no_rule(*arguments: Any) -> tuple[()]:
    return ()


# ## Patterns that explode
#
# `(a+)+$` takes twice the time for each further character, and nothing in the process can stop
# it. So a pattern that can match in very many ways is refused when the tool is registered. Not
# `(-[a-z]+)*`: there is one dash a round, and nothing else in a round can be a dash.

REPEATS: Final = {"MAX_REPEAT", "MIN_REPEAT"}
ONE_CHARACTER: Final = {"LITERAL", "NOT_LITERAL", "IN", "ANY"}
ALL: Final = "".join(map(chr, range(0x10000)))


def _refuse_explosive_patterns(schema: Schema) -> Schema:
    """Look at one schema; the reader of JSON comes by with every object that it finds."""
    names = schema.get("patternProperties")
    for pattern in [schema.get("pattern"), *(names if isinstance(names, dict) else ())]:
        with suppress(TypeError, re.error):  # an object that only looks like a schema
            if _ways(regex.parse(pattern)) > MAX_WAYS:
                text = f"the pattern {pattern!r} repeats a repetition; it could take for ever"
                raise ValueError(text)
    return schema


def _ways(nodes: Iterable[Any]) -> int:
    """About how many ways there are to match the worst text."""
    most = 1
    for operator, operand in nodes:
        name = str(operator)
        if name in REPEATS:
            low, high, body = operand
            inside = _ways(body)
            rounds = 1 if inside > 1 and _shows_its_rounds(body) else min(high, 40)
            most = max(most, min(high - low + 1, 40), inside**rounds)
        elif name == "BRANCH":
            plain = [way[0][1] for way in operand[1] if way and str(way[0][0]) == "LITERAL"]
            firsts = {chr(letter).lower() for letter in plain}
            clear = len(firsts) == len(operand[1])  # the first letter says which way it is
            most = max(most, 1 if clear else len(operand[1]), *map(_ways, operand[1]))
        elif name in ("SUBPATTERN", "ASSERT", "ASSERT_NOT"):
            most = max(most, _ways(operand[-1]))
    return most


def _shows_its_rounds(body: Any) -> bool:
    """Whether one character is sure to be in each round, and no two parts take the same one."""
    parts = list(_parts(body))
    if not all(str(operator) in ONE_CHARACTER for (operator, _), _ in parts):
        return False
    codes = [compiler.compile(regex.SubPattern(body.state, [part])) for part, _ in parts]
    taken = [{*ALL}.difference(code.sub("", ALL)) for code in codes]
    return any(sure for _, sure in parts) and len(set().union(*taken)) == sum(map(len, taken))


def _parts(nodes: Iterable[Any], sure: bool = True) -> Iterator[tuple[Any, bool]]:
    """What groups and simple repetitions hold: each part, and whether it has to be there."""
    for operator, operand in nodes:
        name = str(operator)
        if (name in REPEATS and sure) or (name == "SUBPATTERN" and not operand[1]):  # no flags
            yield from _parts(operand[-1], sure and name == "SUBPATTERN")
        else:
            yield (operator, operand), sure
