"""A function becomes a tool: how it is listed, how it is called, what its result looks like.

A result comes in three shapes: text for a person, content blocks that the tool made itself, or
JSON, which is sent twice: as `structuredContent` for programs and as text for the model.

https://modelcontextprotocol.io/specification/2026-07-28/server/tools
"""

import string
from typing import Any, Final

from .context import Context
from .hints import Content, Hint, closed_object, read_hint, signature
from .protocol import Params, ToolError, dumps, loads
from .schema import Schema, checker, explain, validate

LETTERS: Final = {*string.ascii_letters, *string.digits, *"_.-"}
OF_AN_OBJECT: Final = {
    "type": "object",
    "required": ["type"],
    "properties": {"type": {"enum": ["object"]}},
}


class Tool:
    """A function as clients see it (`definition`) and as it is called.

    `given` are members of the definition that were written by hand; the signature supplies the
    others. `TypeError` or `ValueError` says why something cannot be a tool.
    """

    def __init__(self, function: Any, given: Params) -> None:
        name = given["name"]
        if not 1 <= len(name) <= 128 or not LETTERS.issuperset(name):
            raise ValueError(f"{name!r}: a tool's name is 1 to 128 of A-Z a-z 0-9 _ . -")
        members, returned = signature(function, free := "inputSchema" in given)
        self.special = [key for key, (hint, _) in members.items() if hint is Context]
        own = {key: member for key, member in members.items() if key not in self.special}
        hint = closed_object(function, {} if free else own)
        self.definition = {"inputSchema": hint.schema, **output_schema(returned), **given}
        if problems := validate(self.definition["inputSchema"], OF_AN_OBJECT):
            raise ValueError(explain(problems, f"{name}: input_schema"))
        self.read, self.makes_blocks = hint.read, returned == Content
        self.check = checker(self.definition["inputSchema"])
        self.check_result = checker(self.definition.get("outputSchema", {}))

    def listed(self, era: str) -> Params:
        """The definition; older revisions know no output but objects, no schema but a dict."""
        shown = dict(self.definition)
        if era == "modern":
            return shown
        if shown.get("outputSchema", {}).get("type") != "object":
            shown.pop("outputSchema", None)
        schemas = shown.keys() & {"inputSchema", "outputSchema"}
        return shown | {key: spelled_out(shown[key]) for key in schemas}

    def call(self, arguments: Params, context: Context) -> Any:
        """The result of a call; `ToolError` if the arguments or the result do not fit."""
        if problems := self.check(arguments):
            text = f"{self.definition['name']} cannot take these arguments:\n"
            raise ToolError(text + explain(problems, "arguments"))
        value = self.read(arguments, **dict.fromkeys(self.special, context))
        if hasattr(value, "__await__"):
            value = finish(value)
        return value if hasattr(value, "as_result") else self.result(value, context.era)

    def result(self, value: Any, era: str) -> Params:
        """What a function returned, as the members of a result."""
        text = dumps(value)  # what has no JSON form fails here
        if isinstance(value, str) and "outputSchema" not in self.definition:
            return text_result(value)
        value = loads(text)  # plain JSON, whatever came: dataclasses, tuples, enums
        if self.makes_blocks:
            return {"content": value}
        if problems := self.check_result(value):
            raise ToolError(f"the result breaks its schema:\n{explain(problems, 'result')}")
        if era == "legacy" and not isinstance(value, dict):
            return text_result(text)
        return {**text_result(text), "structuredContent": value}


def spelled_out(schema: Schema) -> Schema:
    """A schema whose members have no `true` or `false` for a schema."""
    spelling: dict[Any, Schema] = {True: {}, False: {"not": {}}}
    members = schema.get("properties", {}).items()
    named = {key: spelling[one] if isinstance(one, bool) else one for key, one in members}
    return {**schema, "properties": named} if named else schema


def text_result(text: str) -> Params:
    """A result that is one text."""
    return {"content": [{"type": "text", "text": text}]}


def error_result(text: str) -> Params:
    """A failure that the model can read, and act on."""
    return {**text_result(text.encode(errors="replace").decode()), "isError": True}


def output_schema(hint: Any) -> Params:
    """What a definition says about the result, if a type hint promises more than text."""
    if hint in (str, Any) or hint == Content:
        return {}
    try:
        return {"outputSchema": read_hint(hint).schema}
    except (TypeError, RecursionError):
        return {}


def finish(coroutine: Any) -> Any:
    """Run an `async def` to its end; in a thread, since here (a notebook) a loop may be running."""
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()
