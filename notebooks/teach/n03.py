"""Notebook 3, strict arguments: its exercises, its tools and its table."""

from __future__ import annotations

import random
from typing import Any, Literal

from .exercise import Exercise, Mistake
from .lines import call, failed, text

NAMES = {dict: "object", list: "array", str: "string", bool: "boolean", type(None): "null"}

check_is_type = Exercise(
    "is_type",
    cases=[
        ((1, "integer"), "an int is an integer"),
        ((2.0, "integer"), "the fraction is zero: in JSON this is the number two"),
        ((2.5, "integer"), "half of something is no integer"),
        ((True, "integer"), "JSON's true is no number"),
        ((True, "boolean"), "it is a boolean"),
        ((2, "number"), "every integer is a number"),
        ((2.5, "number"), "so is 2.5"),
        ((False, "number"), "false is no number either"),
        (("2", "integer"), "a text that looks like a number is a text"),
        ((None, "null"), "None is JSON's null"),
        (([], "object"), "a list is no object"),
        ((2.0, "number"), "2.0 is a number, whatever else it is"),
        ((1, "string"), "and no number is a string"),
        ((1, "boolean"), "nor a boolean, though True == 1"),
    ],
    solution="""
def is_type(value, name):
    if type(value) in (int, float):
        return name == "number" or (name == "integer" and value == int(value))
    return NAMES[type(value)] == name
""",
    hints=[
        "type(True) is bool, but isinstance(True, int) is true: ask for the type, not for kinship",
        "numbers first: an int or a float is a number; it is an integer if int(value) == value",
        "for all other types the table NAMES has the answer",
    ],
    mistakes=[
        Mistake(
            """
def is_type(value, name):
    if isinstance(value, (int, float)) and name in ("integer", "number"):
        return name == "number" or value == int(value)
    return NAMES.get(type(value)) == name
""",
            "you use isinstance, so True is the number 1",
        ),
        Mistake(
            """
def is_type(value, name):
    if type(value) in (int, float):
        return name == "number" or (name == "integer" and type(value) is int)
    return NAMES[type(value)] == name
""",
            "you refuse 2.0 as an integer; some languages cannot write 2 in another way",
        ),
        Mistake(
            """
def is_type(value, name):
    table = {int: "integer", float: "number", **NAMES}
    return table[type(value)] == name
""",
            "you give each type one name; an int is an integer and a number as well",
        ),
    ],
    given={"NAMES": NAMES},
)


def integers(item: Any) -> list[tuple[str, str]]:
    """For the exercise: the problems of what should be an integer."""
    return [] if type(item) is int else [("", "no integer")]


def prices(item: Any) -> list[tuple[str, str]]:
    """For the exercise: the problems of what should have a price."""
    return [] if "price" in item else [(".price", "missing")]


check_in_a_list = Exercise(
    "in_a_list",
    cases=[
        (([1, 2, 3], integers), "all of them fit: no problem"),
        (([1, "two", 3, None], integers), "two do not, and both are told, with their places"),
        (([{"price": 1}, {}], prices), "the step goes in front of the place inside the item"),
        (([], integers), "an empty list has no wrong items"),
        (("no", integers), "a text is no list: the rule about type says so, this one is silent"),
        (({"a": 1}, integers), "an object is no list either"),
    ],
    solution="""
def in_a_list(value, problems_of):
    problems = []
    if isinstance(value, list):
        for index, item in enumerate(value):
            for where, what in problems_of(item):
                problems.append((f"[{index}]{where}", what))
    return problems
""",
    hints=[
        "problems_of(item) gives the problems of one item, as pairs (where, what)",
        "put the step that you took in front of each where: [0], [1] and so on",
        "a rule for lists has nothing to say of a value that is no list",
    ],
    mistakes=[
        Mistake(
            """
def in_a_list(value, problems_of):
    problems = []
    for index, item in enumerate(value):
        for where, what in problems_of(item):
            problems.append((f"[{index}]{where}", what))
    return problems
""",
            "you do not ask whether it is a list; a text is gone through letter by letter",
        ),
        Mistake(
            """
def in_a_list(value, problems_of):
    problems = []
    if isinstance(value, list):
        for item in value:
            problems += problems_of(item)
    return problems
""",
            "you lose the place: which item was it?",
        ),
        Mistake(
            """
def in_a_list(value, problems_of):
    if isinstance(value, list):
        for index, item in enumerate(value):
            for where, what in problems_of(item):
                return [(f"[{index}]{where}", what)]
    return []
""",
            "you stop at the first problem; who hears of all needs one more try, not three",
        ),
    ],
    label=lambda value, problems_of: f"in_a_list({value!r}, {problems_of.__name__})",
)

check_same = Exercise(
    "same",
    cases=[
        (("a", "a"), "equal texts"),
        ((1, 1.0), "one number, written in two ways"),
        ((True, 1), "true is not 1"),
        ((0, False), "nor is false 0"),
        (([1, [0]], [1.0, [0]]), "inside lists it is the same question"),
        (([1], [True]), "true is not 1, however deep"),
        (({"a": 0}, {"a": False}), "nor in an object"),
        (({"a": 1, "b": 2}, {"b": 2, "a": 1}), "the order of the names does not count"),
        (([1, 2], [2, 1]), "the order in a list does"),
        (([1, 2], [1]), "a list that is shorter is another list"),
        (({}, {"a": 1}), "an object with a member more is another object"),
        (({"a": 1, "b": 2}, {"a": 1}), "whichever of the two it is"),
        (([], {}), "an empty list is no empty object"),
        (({}, []), "nor the other way round"),
        (("a", ["a"]), "a text is no list, though both can be gone through"),
    ],
    solution="""
def same(one, other):
    if type(one) is bool or type(other) is bool:
        return one is other
    if type(one) is list and type(other) is list:
        return len(one) == len(other) and all(map(same, one, other))
    if type(one) is dict and type(other) is dict:
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return one == other
""",
    hints=[
        "deal with bool first: True is only the same as True",
        "two lists: equally long, and same() item by item",
        "two dicts: the same keys, and same() key by key; everything else is ==",
    ],
    mistakes=[
        Mistake(
            """
def same(one, other):
    return one == other
""",
            "you use ==, for which True is 1",
        ),
        Mistake(
            """
def same(one, other):
    return type(one) is type(other) and one == other
""",
            "you compare types only at the top: [1] and [True] are both lists, and 1 is not 1.0",
        ),
        Mistake(
            """
def same(one, other):
    if type(one) is bool or type(other) is bool:
        return one is other
    return one == other
""",
            "the top is right; inside a list or a dict, Python still takes True for 1",
        ),
    ],
)


def judged(schema: Any, value: Any) -> str:
    """By all of JSON Schema: there is more than one right way to say it."""
    from jsonschema import Draft202012Validator

    return "fits" if Draft202012Validator(schema).is_valid(value) else "refused"


check_booking = Exercise(
    "booking",
    cases=[
        (({"name": "Ada"},), "the name is enough"),
        (({"name": "Ada", "seats": 2, "days": ["fri", "sat"]},), "all there is"),
        (({"seats": 2},), "there must be a name"),
        (({"name": "Ada", "seats": 2.5},), "no half seats"),
        (({"name": "Ada", "days": ["fri", "mon"]},), "only fri, sat and sun"),
        (({"name": "Ada", "days": ["sun"]},), "sun is one of them, too"),
        (({"name": "Ada", "days": "fri"},), "days is a list, even of one"),
        (({"name": "Ada", "seat": 2},), "seat is a slip; it must not be overlooked"),
        (({"name": None},), "null is no name"),
        (("Ada",), "the arguments are an object"),
    ],
    solution="""
booking = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "seats": {"type": "integer"},
        "days": {"type": "array", "items": {"enum": ["fri", "sat", "sun"]}},
    },
    "required": ["name"],
    "additionalProperties": False,
}
""",
    hints=[
        'the shape is that of ENTRY in notebook 2: "properties", "required", …',
        'a list of some texts is {"type": "array", "items": {"enum": [...]}}',
        '"additionalProperties": False refuses every name that is not listed',
    ],
    mistakes=[
        Mistake(
            """
booking = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "seats": {"type": "integer"},
        "days": {"type": "array", "items": {"enum": ["fri", "sat", "sun"]}},
    },
    "required": ["name"],
}
""",
            "everything is right but the slip: without additionalProperties, any name is welcome",
        ),
        Mistake(
            """
booking = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "seats": {"type": "number"},
        "days": {"type": "array", "items": {"enum": ["fri", "sat", "sun"]}},
    },
    "required": ["name"],
    "additionalProperties": False,
}
""",
            "seats is a number with you, so 2.5 is welcome; an integer has no fraction",
        ),
        Mistake(
            """
booking = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "seats": {"type": "integer"},
        "days": {"type": "array", "items": {"enum": ["fri", "sat", "sun"]}},
    },
    "required": ["name", "seats", "days"],
    "additionalProperties": False,
}
""",
            "you require all three; only the name must be there",
        ),
    ],
    use=judged,
    label=lambda value: f"{value!r}, with the schema booking",
)


# ## Values and schemas by chance, the same on every machine

SCALARS = ["integer", "number", "string", "boolean", "null"]


def some_schema(chance: random.Random, depth: int = 2) -> dict[str, Any]:
    """A schema of the kind that type hints give."""
    kind = chance.choice(["type", "type", "enum", "list", "object", "any"] if depth else ["type"])
    if kind == "type":
        return {"type": chance.choice(SCALARS)}
    if kind == "enum":
        return {"enum": [some_value(chance, 0) for _ in range(3)]}
    if kind == "list":
        return {"type": "array", "items": some_schema(chance, depth - 1)}
    if kind == "any":
        return {"anyOf": [some_schema(chance, depth - 1) for _ in range(2)]}
    names = chance.sample("abc", chance.randint(1, 3))
    return {
        "type": "object",
        "properties": {name: some_schema(chance, depth - 1) for name in names},
        "required": names[:1],
        "additionalProperties": False,
    }


def some_value(chance: random.Random, depth: int = 2) -> Any:
    """A JSON value; often one of those that are easily mixed up."""
    kind = chance.randint(0, 9 if depth else 7)
    if kind < 8:
        return [0, 1, 1.0, 2.5, True, False, None, "1"][kind]
    if kind == 8:
        return [some_value(chance, depth - 1) for _ in range(chance.randint(0, 2))]
    return {name: some_value(chance, depth - 1) for name in chance.sample("abc", 2)}


def likely(chance: random.Random, schema: dict[str, Any]) -> Any:
    """A value that mostly fits the schema, since by mere chance hardly any does."""
    if chance.random() < 0.15:
        return some_value(chance)
    if "enum" in schema:
        return chance.choice(schema["enum"])
    if "anyOf" in schema:
        return likely(chance, chance.choice(schema["anyOf"]))
    if schema["type"] == "array":
        return [likely(chance, schema["items"]) for _ in range(chance.randint(0, 3))]
    if schema["type"] == "object":
        return {name: likely(chance, one) for name, one in schema["properties"].items()}
    samples = {"integer": [1, 1.0], "number": [0, 2.5], "boolean": [True, False], "null": [None]}
    return chance.choice(samples.get(schema["type"], ["1", ""]))


def pairs(count: int, seed: int = 3) -> list[tuple[Any, dict[str, Any]]]:
    """So many values, each with a schema that it may or may not fit."""
    chance = random.Random(seed)  # noqa: S311 (it should be the same each time)
    schemas = [some_schema(chance) for _ in range(count)]
    return [(likely(chance, schema), schema) for schema in schemas]


# ## The tools that both servers get, and what they are asked


def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


def shout(text: str, times: int = 1) -> str:
    """Say it loudly."""
    return text.upper() * times


def pick(ids: list[int], size: Literal[1, 2] = 1, note: str | None = None) -> str:
    """Pick some things."""
    return f"{ids} {size!r} {note!r}"


TOOLS = [add, shout, pick]
LINES = [
    (call(1, "add", a=2, b=40), text(1, "42")),
    (call(2, "add", a=2.0, b=40), text(2, "42")),
    (call(3, "add", a="2", b="40"), failed(3)),
    (call(4, "add", a=True, b=1), failed(4)),
    (call(5, "add", a=2.5, b=1), failed(5)),
    (call(6, "add", a=2), failed(6)),
    (call(7, "add", a=2, b=40, c=0), failed(7)),
    (call(8, "shout", text="ho", times=2), text(8, "HOHO")),
    (call(9, "shout", text="ho", tiems=2), failed(9)),
    (call(10, "shout", text=None), failed(10)),
    (call(11, "pick", ids=[1, 2.0]), text(11, "[1, 2] 1 None")),
    (call(12, "pick", ids=[1, "2"]), failed(12)),
    (call(13, "pick", ids=[], size=2.0, note=None), text(13, "[] 2 None")),
    (call(14, "pick", ids=[], size=True), failed(14)),
    (call(15, "pick", ids=[], note=5), failed(15)),
]
