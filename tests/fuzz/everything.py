"""A server that has one of everything: what the fuzzer and the property tests talk to.

No tool or handler here fails by itself. So whatever goes wrong on it, an internal error or a
traceback on stderr, is the fault of the code that is tested.

    python tests/fuzz/everything.py         serves it over stdio
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal, TypedDict

from minimcp import Context, InputRequired, Server, ToolError, run
from minimcp.hints import Content
from minimcp.protocol import expect


class Size(Enum):
    SMALL = "small"
    LARGE = 2


@dataclass
class Point:
    x: float
    y: float = 0.0


class Order(TypedDict):
    item: str
    count: int


Unit = Literal["m", "km", 7]
QUESTION = {
    "method": "elicitation/create",
    "params": {
        "message": "Sure?",
        "requestedSchema": {"type": "object", "properties": {"sure": {"type": "boolean"}}},
    },
}
BY_HAND = {
    "type": "object",
    "properties": {
        "code": {"type": "string", "pattern": "^[a-z]{1,8}$"},
        "tree": {"$ref": "#/$defs/node"},
        "count": {"type": "integer", "minimum": 0, "maximum": 10},
    },
    "required": ["code"],
    "$defs": {
        "node": {
            "type": "object",
            "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
        }
    },
}
MARKED = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "zone": {"type": "integer", "x-mcp-header": "Zone"},
    },
    "additionalProperties": False,
}


def everything(page_size: int | None = 3) -> Server:
    """A new one."""
    server = Server("everything", version="1.0.0", instructions="Try it.", page_size=page_size)
    add_tools(server)
    add_odd_tools(server)
    add_methods(server)
    return server


def add_tools(server: Server) -> None:
    @server.tool
    def add(a: int, b: int = 40) -> int:
        """Add two integers."""
        return a + b

    @server.tool
    def echo(value: Any) -> Any:
        return value

    @server.tool(name="text.echo")
    def text_echo(text: str) -> str:
        return text

    @server.tool
    def shapes(
        size: Size,
        point: Point | None = None,
        unit: Unit = "m",
        orders: list[Order] | None = None,
        more: dict[str, float] | None = None,
    ) -> Point:
        return point or Point(1.0)

    @server.tool
    def refuse(reason: str) -> str:
        raise ToolError(reason)


def add_odd_tools(server: Server) -> None:
    @server.tool
    def chatty(context: Context, steps: int = 2) -> str:
        for step in range(min(steps, 5)):
            context.progress(step + 1, steps, "on the way")
            context.log("warning", {"step": step})
        return "done"

    @server.tool
    def blocks(text: str) -> Content:
        return [{"type": "text", "text": text}]

    @server.tool
    def ask(context: Context, question: str = "") -> str:
        if "sure" in context.inputs:
            return "asked"
        return InputRequired({"sure": QUESTION}, state={"question": question})

    @server.tool(input_schema=BY_HAND)
    def by_hand(**more: Any) -> str:
        return "fits"

    @server.tool(input_schema=MARKED)
    def marked(region: str = "", zone: int = 0) -> str:
        return f"{region} {zone}"


def add_methods(server: Server) -> None:
    @server.method("resources/list", capability="resources")
    def resources(params, context):
        return {"resources": [{"uri": "x:a", "name": "a"}]}

    server.capabilities["resources"]["subscribe"] = True

    @server.method("resources/read", capability="resources")
    def read(params, context):
        uri = expect(params, "uri", str, "params")
        return {"contents": [{"uri": uri, "text": "y"}]}

    @server.method("prompts/get", capability="prompts")
    def prompt(params, context):
        return {"messages": []}

    @server.method("logging/setLevel", capability="logging", era="legacy")
    def set_level(params, context):
        level = expect(params, "level", str, "params")
        context.peer.log_level = level if level in ("debug", "info", "error") else "info"
        return {}


if __name__ == "__main__":
    run(everything())
