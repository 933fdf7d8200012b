"""Full JSON Schema, by the `jsonschema` library, for schemas that were written by hand.

Imported only when a schema uses more than our own validator knows. Two dialects: 2020-12, which
is meant when `$schema` is absent, and draft-07. A `$ref` to the network is never fetched.

https://modelcontextprotocol.io/specification/2026-07-28/basic#json-schema-usage
"""

from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from typing import Any, Final

from .protocol import JSON
from .schema import Check, Problem, Schema, step

try:
    from jsonschema import Draft7Validator, Draft202012Validator
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import extend
    from jsonschema_specifications import REGISTRY
    from referencing.exceptions import Unresolvable
except ImportError:
    raise ImportError("this schema needs the full validator: pip install jsonschema") from None
try:
    from re import _parser as regex  # type: ignore[attr-defined]
except ImportError:  # Python 3.10
    import sre_parse as regex

DIALECTS: Final[dict[str, Any]] = {
    "https://json-schema.org/draft/2020-12/schema": Draft202012Validator,
    "http://json-schema.org/draft-07/schema": Draft7Validator,
}
MAX_REFERENCES: Final = 20_000  # that one check may follow
MAX_WAYS: Final = 100_000
references: ContextVar[Iterator[int]] = ContextVar("references")


def full_checker(schema: Schema, trusted: bool) -> Check:
    """A function that lists the problems of a value; `ValueError` for a bad or unknown schema."""
    dialect = str(schema.get("$schema", next(iter(DIALECTS)))).rstrip("#")
    if dialect not in DIALECTS:
        raise ValueError(f"dialect not supported: {dialect}; known: {', '.join(DIALECTS)}")
    base = DIALECTS[dialect]
    try:
        base.check_schema(schema)
        rules = {"$ref": _bounded(base.VALIDATORS["$ref"])}
        if trusted:
            _refuse_explosive_patterns(schema)
        else:
            rules |= {"pattern": _no_rule, "patternProperties": _no_rule}
    except SchemaError as error:
        raise ValueError(f"no JSON Schema: {error.json_path}: {error.message:.200}") from None
    except RecursionError:
        raise ValueError("no usable JSON Schema: nested too deeply") from None
    validator = extend(base, rules)(schema, registry=REGISTRY)

    def check(value: JSON) -> list[Problem]:
        references.set(iter(range(MAX_REFERENCES)))
        try:
            errors = list(validator.iter_errors(value))
        except (Unresolvable, RecursionError, StopIteration, RuntimeError) as error:
            return [("", f"cannot be checked, the schema leads nowhere: {error!r:.200}")]
        return [("".join(map(step, error.absolute_path)), error.message[:200]) for error in errors]

    return check


def _bounded(rule: Any) -> Any:
    """Follow a `$ref`, but not without end: references can double the work at each level."""

    def follow(*arguments: Any) -> Any:
        if next(references.get(), None) is None:
            raise RecursionError("too many references")
        return rule(*arguments)

    return follow


def _no_rule(*arguments: Any) -> tuple[()]:
    return ()


# ## Patterns that explode
#
# `(a+)+$` takes twice the time for each further character, and nothing in the process can stop
# it. So a pattern that can match in very many ways is refused when the tool is registered.


def _refuse_explosive_patterns(schema: JSON) -> None:
    parts = schema.values() if isinstance(schema, dict) else schema
    patterns: list[JSON] = []
    if isinstance(schema, dict):
        patterns = [schema.get("pattern"), *(schema.get("patternProperties") or ())]
    for pattern in patterns:
        if isinstance(pattern, str) and _ways(regex.parse(pattern)) > MAX_WAYS:
            raise ValueError(
                f"the pattern {pattern!r} repeats a repetition; it could take for ever"
            )
    for part in parts:
        if isinstance(part, (dict, list)):
            _refuse_explosive_patterns(part)


def _ways(nodes: Iterable[Any]) -> int:
    """About how many ways there are to match the worst text."""
    most = 1
    for operator, operand in nodes:
        name = str(operator)
        if name in ("MAX_REPEAT", "MIN_REPEAT"):
            low, high, body = operand
            most = max(most, min(high - low + 1, 40), _ways(body) ** min(high, 40))
        elif name == "BRANCH":
            clear = all(way and str(way[0][0]) == "LITERAL" for way in operand[1])
            most = max(most, 1 if clear else len(operand[1]), *map(_ways, operand[1]))
        elif name in ("SUBPATTERN", "ASSERT", "ASSERT_NOT"):
            most = max(most, _ways(operand[-1]))
    return most
