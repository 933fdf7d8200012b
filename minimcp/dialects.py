"""Full JSON Schema, by the `jsonschema` library, for schemas that were written by hand.

Imported only when a schema uses more than our own validator knows. Two dialects: 2020-12, which
is meant when `$schema` is absent, and draft-07. A `$ref` to the network is never fetched.

https://modelcontextprotocol.io/specification/2026-07-28/basic#json-schema-usage
"""

import json
import re
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from fractions import Fraction
from itertools import islice
from time import monotonic
from typing import Any, Final

from .protocol import JSON, dumps
from .schema import MOST, Check, Problem, Schema, is_type, step, validate

try:
    import regex
    from jsonschema import Draft7Validator, Draft202012Validator, FormatChecker
    from jsonschema.exceptions import SchemaError, ValidationError
    from jsonschema.validators import extend
    from jsonschema_specifications import REGISTRY
    from referencing.exceptions import Unresolvable
except ImportError:
    raise ImportError(
        "this schema needs the full validator: pip install 'jsonschema>=4.23' regex"
    ) from None

parser: Any = vars(re).get("_parser") or vars(re)["sre_parse"]  # as Python 3.10 calls it
DIALECTS: Final[dict[str, Any]] = {
    "https://json-schema.org/draft/2020-12/schema": Draft202012Validator,
    "http://json-schema.org/draft-07/schema": Draft7Validator,
}
MAX_WORK: Final = 500_000  # rules that one check may apply; those that lead elsewhere count more
DEAR: Final = {"$ref": 25, "$dynamicRef": 25, "unevaluatedProperties": 25, "unevaluatedItems": 25}
BY_NAME: Final = ("patternProperties", "additionalProperties", "unevaluatedProperties")
MAX_SIZE: Final = 100_000  # characters of a schema that a peer sent
SECONDS: Final = 1.0  # for the patterns of one check
left: ContextVar[list[float]] = ContextVar("left")  # of both
FORMATS: Any = FormatChecker()
FORMATS.checks("regex", (regex.error, TypeError))(regex.compile)
Errors = Iterator[ValidationError]


def full_checker(schema: Schema, trusted: bool) -> Check:
    """A function that lists the problems of a value; `ValueError` for a bad or unknown schema."""
    dialect = str(schema.get("$schema", next(iter(DIALECTS)))).rstrip("#")
    if dialect not in DIALECTS:
        raise ValueError(f"dialect not supported: {dialect}; known: {', '.join(DIALECTS)}")
    base = DIALECTS[dialect]
    try:
        text = dumps(schema)
        if not trusted and len(text) > MAX_SIZE:
            raise ValueError(f"a schema of more than {MAX_SIZE} characters")
        base.check_schema(schema, FORMATS if trusted else None)
        if trusted:
            json.loads(text, object_hook=_refuse_explosive_names)
    except SchemaError as error:
        raise ValueError(f"no JSON Schema: {error.json_path}: {error.message:.200}") from None
    except (RecursionError, OverflowError, re.error) as error:
        raise ValueError(f"no usable JSON Schema: {error}") from None
    validator = extend(base, _rules(base, text, trusted))(schema, registry=REGISTRY)

    def check(value: JSON) -> list[Problem]:
        left.set([MAX_WORK, SECONDS])
        try:
            errors = list(islice(validator.iter_errors(value), MOST))
        except TimeoutError:
            return [("", "takes too long to compare with the patterns in the schema")]
        except (Unresolvable, RecursionError, StopIteration, RuntimeError) as error:
            return [("", f"the schema leads nowhere: {getattr(error, 'ref', error)!r:.200}")]
        return [("".join(map(step, error.absolute_path)), error.message[:200]) for error in errors]

    return check


def _rules(base: Any, text: str, trusted: bool) -> dict[str, Any]:
    """The library's rules, but for those that a schema or a value could make endless."""
    counted = DEAR if trusted else base.VALIDATORS
    kept = {name: rule for name, rule in base.VALIDATORS.items() if name in counted}
    rules = {name: _bounded(rule, DEAR.get(name, 1)) for name, rule in kept.items()}
    rules |= {"uniqueItems": _unique, "multipleOf": _multiple, "pattern": _pattern}
    if not trusted:
        blind = BY_NAME if BY_NAME[0] in text else ()
        rules |= dict.fromkeys(("pattern", *blind), lambda *_: ())
    return rules


def _bounded(rule: Any, cost: int) -> Any:
    """A rule that gives up after too many: a schema can double the work at each level."""

    def apply(*arguments: Any) -> Any:
        rest = left.get()
        rest[0] -= cost
        if rest[0] < 0:
            raise RecursionError("too much work")
        return rule(*arguments)

    return apply


def _unique(_: Any, wanted: bool, value: JSON, schema: Any) -> Errors:
    """Our rule: the library's compares every item with every other."""
    for _, what in validate(value, {"uniqueItems": wanted}):
        yield ValidationError(what)


def _multiple(_: Any, factor: float, value: JSON, schema: Any) -> Errors:
    """The library's rule, but for decimals as they are written: 19.99 is 1999 times 0.01."""
    if is_type(value, "number") and Fraction(repr(value)) % Fraction(repr(factor)):
        yield ValidationError(f"{value!r} is not a multiple of {factor!r}")


def _pattern(_: Any, pattern: str, value: JSON, schema: Any) -> Errors:
    """The library's rule, by an engine that can be stopped, and that holds up no other thread."""
    if isinstance(value, str):
        rest, start = left.get(), monotonic()
        found = regex.search(pattern, value, timeout=max(rest[1], 0))
        rest[1] -= monotonic() - start
        if not found:
            yield ValidationError(f"{value!r} does not match {pattern!r}")


# ## Names that explode
#
# `(a+)+$` takes twice the time for each further character. The library looks for a pattern of
# names (`patternProperties`) in several places, with an engine that nothing can stop. So there a
# pattern that repeats a repetition, or a choice, is refused when the tool is registered.

REPEATS: Final = {"MAX_REPEAT", "MIN_REPEAT"}


def _refuse_explosive_names(schema: Schema) -> Schema:
    """Look at one schema; the reader of JSON comes by with every object that it finds."""
    names = schema.get("patternProperties")
    for pattern in names if isinstance(names, dict) else ():
        if _explodes(parser.parse(pattern)):
            text = f"the pattern {pattern!r} repeats a repetition; it could take for ever"
            raise ValueError(text)
    return schema


def _explodes(nodes: Iterable[Any], repeated: bool = False) -> bool:
    """Whether there is a repetition inside of a repetition, or a choice."""
    for operator, operand in nodes:
        low, high = operand[:2] if (name := str(operator)) in REPEATS else (1, 1)
        if repeated and (low < high or name == "BRANCH"):
            return True
        if any(_explodes(body, repeated or high > 1) for body in _bodies(operand)):
            return True
    return False


def _bodies(operand: Any) -> Iterator[Any]:
    """The patterns inside of a part of a pattern."""
    if isinstance(operand, parser.SubPattern):
        yield operand
    elif isinstance(operand, (tuple, list)):
        for one in operand:
            yield from _bodies(one)
