"""Changes of a JSON value, one at a time: what a careless or a hostile sender could have done.

`mutate(value, random)` takes any source of chance, so the fuzzer and the property tests share it.
"""

from __future__ import annotations

import copy
import json
from typing import Any

KEYS = """jsonrpc id method params _meta name arguments cursor uri level requestId reason
protocolVersion capabilities clientInfo notifications toolsListChanged resourceSubscriptions
requestState inputResponses sure action content progressToken value text size point orders a b x y
code tree children count region zone type enum anyOf properties required additionalProperties items
minItems uniqueItems title default $ref $defs pattern if not $schema x-mcp-header const minimum
io.modelcontextprotocol/protocolVersion io.modelcontextprotocol/clientCapabilities
io.modelcontextprotocol/logLevel io.modelcontextprotocol/clientInfo elicitation""".split()
WORDS = """2.0 2026-07-28 2025-11-25 2025-06-18 2024-11-05 tools/list tools/call server/discover
initialize ping subscriptions/listen resources/list resources/read prompts/get logging/setLevel
notifications/cancelled notifications/initialized add echo text.echo shapes refuse chatty blocks ask
by_hand marked small km m debug info object array string boolean integer number null
http://json-schema.org/draft-07/schema# https://json-schema.org/draft/2020-12/schema # #/$defs/node
^[a-z]{1,8}$ (a+)+$ =?base64?YQ==?= accept""".split()
ODD: list[Any] = [
    *(None, True, False, 0, 1, -1, 2, 1.0, 0.5, -0.0, 1e308, 2**53 + 1, 10**40),
    *("", " ", "a", "é", "\n", "\0", "\u2028", "𝔘", "x" * 300, "=?base64??="),
    *([], {}, [[]], [{}], {"": None}, {"a": 1}, [1, True, 1.0], ["a", "a"], [0, False]),
]


def pick(random: Any) -> Any:
    """A value from nowhere: a word that means something here, or an odd one."""
    return random.choice(WORDS) if random.random() < 0.5 else copy.deepcopy(random.choice(ODD))


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths to all values inside a value."""
    pairs: Any = enumerate(value) if isinstance(value, list) else ()
    if isinstance(value, dict):
        pairs = value.items()
    found = [path]
    for key, below in list(pairs):
        found += places(below, (*path, key))
    return found


def mutate(value: Any, random: Any) -> Any:
    """A copy with one change: something replaced, removed, added, doubled, wrapped or renamed."""
    return mutate_in_place(copy.deepcopy(value), random)


def mutate_in_place(value: Any, random: Any) -> Any:
    path = random.choice(places(value)[:400])
    if not path:
        return change(value, random)
    holder = value
    for key in path[:-1]:
        holder = holder[key]
    how = random.randrange(5)
    if how == 0:
        del holder[path[-1]]
    elif how == 1 and isinstance(holder, dict):
        holder[random.choice(KEYS)] = holder.pop(path[-1])
    else:
        holder[path[-1]] = change(holder[path[-1]], random)
    return value


def change(value: Any, random: Any) -> Any:
    """Another value instead of this one, perhaps with this one inside."""
    how = random.randrange(6)
    if how == 0 and isinstance(value, dict):
        return {**value, random.choice(KEYS): pick(random)}
    if how == 1 and isinstance(value, list):
        return [*value, *value[-1:], pick(random)]
    if how == 2:
        return random.choice([[value], {random.choice(KEYS): value}, [value, value]])
    if how == 3 and isinstance(value, (int, float)):
        return value + random.choice([1, -1, 0.5, True])
    if how == 4 and isinstance(value, str):
        return value[: len(value) // 2] + random.choice(["", "é", " ", value])
    return pick(random)


def mutate_line(line: str, random: Any) -> str:
    """One change of a line of JSON, as a line again; a line that is none is left as it is."""
    try:
        value = json.loads(line)
        return json.dumps(mutate_in_place(value, random), ensure_ascii=random.random() < 0.5)
    except (ValueError, RecursionError):
        return line
