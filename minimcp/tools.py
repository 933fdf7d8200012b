"""A function becomes a tool: how it is listed, how it is called, what its result looks like.

A result comes in three shapes: text for a person, content blocks that the tool made itself, or
JSON, which is sent twice: as `structuredContent` for programs and as text for the model.

https://modelcontextprotocol.io/specification/2026-07-28/server/tools
"""

import string
import types
from typing import Any, Final, Union, get_args, get_origin

from .context import Context
from .envelope import unexpected
from .hints import Content, closed_object, read_hint, signature
from .protocol import INVALID_PARAMS, Params, ProtocolError, ToolError, dumps, expect, loads
from .schema import Problem, Schema, checker, explain, inside, validate

LETTERS: Final = {*string.ascii_letters, *string.digits, *"_.-"}
SCALARS: Final = {type(None), bool, int, float, str}


def having(**members: Schema) -> Schema:
    """The schema of an object that has at least these members."""
    return {"type": "object", "required": [*members], "properties": members}


OF_OBJECT: Final = having(type={"enum": ["object"]})
TEXT: Final = {"type": "string"}
MEDIA: Final = having(data=TEXT, mimeType=TEXT)
BLOCKS: Final = {"text": having(text=TEXT), "image": MEDIA, "audio": MEDIA}
BLOCKS["resource_link"] = having(uri=TEXT, name=TEXT)
CONTENTS: Final = having(uri=TEXT) | {"anyOf": [having(text=TEXT), having(blob=TEXT)]}
BLOCKS["resource"] = having(resource=CONTENTS)
BLOCK: Final = having(type={"enum": [*BLOCKS]})

# ## The two methods


def list_tools(params: Params, context: Context) -> Params:
    """Serve `tools/list`."""
    tools = dict(context.server.tools)
    names, more = context.server.page(list(tools), params)
    return {"tools": [tools[name].listed(context.modern) for name in names], **more}


def call_tool(params: Params, context: Context) -> Any:  # ADR-0003
    """Serve `tools/call`. What the model can mend is a result; the rest is a JSON-RPC error."""
    name = expect(params, "name", str, "params")
    arguments = expect(params, "arguments", dict, "params", {})
    tool = context.server.tools.get(name)
    if tool is None:
        raise ProtocolError(INVALID_PARAMS, f"Unknown tool: {name}")
    try:
        return tool.call(arguments, context)
    except ToolError as error:
        return error_result(str(error))
    except ProtocolError:
        raise
    except BaseException as error:
        unexpected(error)
        return error_result(f"{type(error).__name__}: {error}")


# ## One tool
#
# All that can be known before the first call is settled when the tool is registered: what the
# function takes and gives, whether the schemas are schemas, how to check against them. A call
# only checks the arguments, calls the function, and gives its value the shape of a result.


class Tool:
    """A function as clients see it (`definition`) and as it is called.

    `given` are members of the definition that were written by hand; the signature supplies the
    others. `TypeError` or `ValueError` says why something cannot be a tool.
    """

    def __init__(self, function: Any, given: Params) -> None:
        if not callable(function):
            raise TypeError(f"{function!r} is no function; a tool's name goes in name=...")
        own_name = getattr(function, "__name__", type(function).__name__)
        self.name: str = given.get("name", own_name)
        if not 1 <= len(self.name) <= 128 or not LETTERS.issuperset(self.name):
            raise ValueError(f"{self.name!r}: a tool's name is 1 to 128 of A-Z a-z 0-9 _ . -")
        members, returned = signature(function, free := "inputSchema" in given)
        self.special = [key for key, (hint, _) in members.items() if Context in choices(hint)]
        own = {key: one for key, one in members.items() if not free and key not in self.special}
        schema, self.read = closed_object(function, own)
        text = "\n".join(map(str.strip, (function.__doc__ or self.name).strip().splitlines()))
        derived = {"name": self.name, "description": text, "inputSchema": schema}
        self.definition = {**derived, **output_schema(returned, given), **given}
        if problems := validate(self.definition["inputSchema"], OF_OBJECT):
            raise ValueError(explain(problems, f"{self.name}: input_schema"))
        self.check = checker(self.definition["inputSchema"])
        self.marks: dict[str, Any] = {}  # what HTTP repeats in headers
        if "x-mcp-header" in dumps(self.definition["inputSchema"]):
            from .http_headers import annotated

            self.marks = annotated(self.definition["inputSchema"])  # `ValueError` for a bad mark
        self.makes_blocks, self.may_make_blocks = returned == Content, Content in choices(returned)
        self.check_result = checker(self.definition.get("outputSchema", {}))

    def listed(self, modern: bool) -> Params:
        """The definition; older revisions know no output but objects, no schema but a dict."""
        shown = dict(self.definition)
        if modern:
            return shown
        if shown.get("outputSchema", {}).get("type") != "object":
            shown.pop("outputSchema", None)
        schemas = shown.keys() & {"inputSchema", "outputSchema"}
        return shown | {key: spelled_out(shown[key]) for key in schemas}

    def call(self, arguments: Params, context: Context) -> Any:
        """The result of a call; `ToolError` if the arguments or the result do not fit."""
        if problems := self.check(arguments):
            text = f"{self.name} cannot take these arguments:\n"
            raise ToolError(text + explain(problems, "arguments"))
        value = finish(self.read(arguments, **dict.fromkeys(self.special, context)))
        return value if hasattr(value, "as_result") else self.result(value, context.modern)

    def result(self, value: Any, modern: bool) -> Params:
        """What a function returned, as the members of a result."""
        text = dumps(value)  # what has no JSON form fails here
        if isinstance(value, str) and "outputSchema" not in self.definition:
            return text_result(value)
        if type(value) not in SCALARS:
            value = loads(text)  # plain JSON, whatever came: dataclasses, tuples, enums
        blocks = self.makes_blocks or (self.may_make_blocks and isinstance(value, list))
        if problems := check_blocks(value) if blocks else self.check_result(value):
            raise ToolError(f"the result breaks its schema:\n{explain(problems, 'result')}")
        if blocks:
            return {"content": value}
        structured = {"structuredContent": value} if modern or isinstance(value, dict) else {}
        return text_result(text) | structured


def check_blocks(value: Any) -> list[Problem]:
    """The problems of content blocks: each kind has members that must be there."""
    problems = validate(value, {"type": "array", "items": BLOCK})
    return problems or inside([(n, one, BLOCKS[one["type"]]) for n, one in enumerate(value)])


def choices(hint: Any) -> tuple[Any, ...]:
    """The members of a union, or what stands alone."""
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def output_schema(hint: Any, given: Params) -> Params:
    """What a definition says about the result, if a type hint promises more than text."""
    if "outputSchema" in given and Content in choices(hint):
        raise ValueError("content blocks carry no value; leave out output_schema")
    try:
        silent = hint in (str, Any) or Content in choices(hint)
        return {} if silent else {"outputSchema": read_hint(hint).schema}
    except (TypeError, RecursionError):
        return {}


def spelled_out(schema: Schema) -> Schema:
    """A schema whose members have no `true` or `false` for a schema."""
    spelling: dict[Any, Schema] = {True: {}, False: {"not": {}}}
    members = schema.get("properties", {}).items()
    named = {key: spelling[one] if isinstance(one, bool) else one for key, one in members}
    return {**schema, "properties": named} if named else schema


def finish(value: Any) -> Any:
    """What was returned; an `async def` is run to its end first.

    In a thread, since here (a notebook) a loop may be running.
    """
    if not hasattr(value, "__await__"):
        return value
    import asyncio
    from concurrent.futures import Future
    from threading import Thread

    outcome: Any = Future()

    def work() -> None:
        try:
            outcome.set_result(asyncio.run(value))
        except BaseException as error:
            outcome.set_exception(error)

    Thread(target=work, daemon=True).start()  # no pool: Python would wait for its end
    return outcome.result()


def text_result(text: str) -> Params:
    """A result that is one text."""
    return {"content": [{"type": "text", "text": text}]}


def error_result(text: str) -> Params:
    """A failure that the model can read, and act on."""
    return {**text_result(text.encode(errors="replace").decode()), "isError": True}
