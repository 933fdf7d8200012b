"""The readable validator and the library `jsonschema` agree on every schema of the subset."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from minimcp.schema import SUBSET, frozen, validate

TYPES = ["object", "array", "string", "boolean", "integer", "number", "null"]
NAMES = st.sampled_from(["a", "b", "c d"])

# A small world: few names and few values, so that schemas and values really meet.
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-1, 2),
    st.sampled_from([0.0, 1.0, -0.0, 2.5, 1e300, 2**53 + 1, 10**30]),
    st.sampled_from(["", "a", "1", "true", "é"]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)


def one_level_up(schemas):
    """Schemas that hold these schemas; any keywords may stand together."""
    return st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(TYPES),
            "enum": st.lists(VALUES, min_size=1, max_size=3),
            "anyOf": st.lists(schemas, min_size=1, max_size=3),
            "properties": st.dictionaries(NAMES, schemas, max_size=3),
            "required": st.lists(NAMES, unique=True),
            "additionalProperties": st.booleans() | schemas,
            "items": schemas,
            "title": st.just("a title"),
            "description": st.just("a description"),
            "default": VALUES,
        },
    )


LEAVES = st.one_of(
    st.just({}),
    st.builds(lambda name: {"type": name}, st.sampled_from(TYPES)),
    st.builds(lambda values: {"enum": values}, st.lists(VALUES, min_size=1, max_size=3)),
)
SCHEMAS = st.recursive(LEAVES, one_level_up, max_leaves=8)

SAMPLES = {
    "null": st.none(),
    "boolean": st.booleans(),
    "integer": st.integers(-1, 2) | st.sampled_from([1.0, 2.0]),
    "number": st.sampled_from([0, 1, 2.5]),
    "string": st.sampled_from(["", "a"]),
}


@st.composite
def values_near(draw, schema):
    """A value that tries to fit the schema, and now and then does not try."""
    if draw(st.integers(0, 7)) == 0:
        return draw(VALUES)
    if "enum" in schema:
        return draw(st.sampled_from(schema["enum"]))
    if "anyOf" in schema:
        return draw(values_near(draw(st.sampled_from(schema["anyOf"]))))
    kind = schema.get("type") or draw(st.sampled_from(TYPES))
    if kind == "array":
        return draw(st.lists(values_near(schema.get("items", {})), max_size=3))
    if kind == "object":
        names = {*schema.get("required", []), *draw(st.sets(NAMES))}
        members = schema.get("properties", {})
        return {name: draw(values_near(members.get(name, {}))) for name in sorted(names)}
    return draw(SAMPLES[kind])


PAIRS = SCHEMAS.flatmap(lambda schema: st.tuples(st.just(schema), values_near(schema)))


def leads_into(where, value):
    """Whether the path of a problem can be walked in the value."""
    for name, bracket in re.findall(r"\.(\w+)|\[(.+?)\]", where):
        try:
            value = value[name or json.loads(bracket)]
        except (KeyError, IndexError, TypeError):
            return False
    return True


@settings(max_examples=400, deadline=None)
@given(PAIRS)
def test_both_validators_agree_on_what_is_valid(pair):
    schema, value = pair
    assert (validate(value, schema) == []) is Draft202012Validator(schema).is_valid(value)


@settings(max_examples=200, deadline=None)
@given(SCHEMAS, VALUES)
def test_both_validators_agree_on_values_from_nowhere(schema, value):
    assert (validate(value, schema) == []) is Draft202012Validator(schema).is_valid(value)


@settings(max_examples=200, deadline=None)
@given(PAIRS)
def test_every_problem_has_a_place_in_the_value(pair):
    schema, value = pair
    for where, what in validate(value, schema):
        assert leads_into(where, value) is (what != "missing")


@settings(max_examples=200, deadline=None)
@given(SCHEMAS)
def test_every_generated_schema_belongs_to_the_subset(schema):
    assert validate(schema, SUBSET) == []


def is_a_schema(value):
    try:
        Draft202012Validator.check_schema(value)
    except SchemaError:
        return False
    return True


KEYWORDS = ["type", "enum", "anyOf", "properties", "required", "additionalProperties", "items"]


@settings(max_examples=400, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(KEYWORDS),
        VALUES | SCHEMAS | st.lists(SCHEMAS, max_size=2) | st.lists(st.sampled_from(TYPES)),
        max_size=2,
    )
)
def test_the_subset_holds_no_invalid_schema(schema):
    assert validate(schema, SUBSET) != [] or is_a_schema(schema)


# Both answers are known here, so that the agreement above is not one of two blind men.
KNOWN = [
    ({"type": "integer"}, 1, True),
    ({"type": "integer"}, 1.0, True),
    ({"type": "integer"}, 1.5, False),
    ({"type": "integer"}, True, False),
    ({"type": "number"}, True, False),
    ({"type": "boolean"}, 1, False),
    ({"enum": [1]}, True, False),
    ({"enum": [1]}, 1.0, True),
    ({"enum": [[1, {"a": False}]]}, [1, {"a": 0}], False),
    ({"anyOf": [{"type": "string"}, {"type": "null"}]}, 5, False),
    ({"items": {"type": "string"}}, ["a", 1], False),
    ({"items": {"type": "string"}}, "no array", True),
    ({"properties": {"a": {"type": "string"}}}, {"a": 1}, False),
    ({"required": ["a"]}, {}, False),
    ({"required": ["a"]}, [], True),
    ({"properties": {"a": {}}, "additionalProperties": False}, {"b": 1}, False),
    ({"additionalProperties": {"type": "integer"}}, {"b": "x"}, False),
]


@pytest.mark.parametrize(("schema", "value", "valid"), KNOWN)
def test_the_validators_give_the_known_answer(schema, value, valid):
    assert (validate(value, schema) == []) is valid
    assert Draft202012Validator(schema).is_valid(value) is valid


def test_nobody_can_choose_items_that_are_hard_to_tell_apart():
    chosen = [number * (2**61 - 1) for number in range(1000)]  # as numbers, all have one hash
    assert len({*map(hash, chosen)}) == 1
    assert len({hash(frozen(number)) for number in chosen}) > 990


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (1, 1.0, True),
        (1, "1", False),
        (1, True, False),
        ("True", True, False),
        (None, "None", False),
        (0, -0.0, True),
        (2**53, float(2**53), True),
        (2**53 + 1, float(2**53), False),
        (1e300, int(1e300), True),
        (0.1, 0.1, True),
        ([1, [2.0]], [1.0, [2]], True),
    ],
)
def test_what_is_equal_in_json_is_equal_when_frozen(one, other, equal):
    assert (frozen(one) == frozen(other)) is equal
