"""The last project, done in one way: a server from a blank file, with nothing but Python.

It speaks revision 2026-07-28 over stdio, and has one tool. Run examples/check.py on it.
"""

import json
import os
import sys

VERSION = "2026-07-28"
KEY = "io.modelcontextprotocol/"
ABOUT = {f"{KEY}serverInfo": {"name": "mine", "version": "1"}}
KEEP = {"ttlMs": 60_000, "cacheScope": "public"}
KINDS = {"integer": int, "string": str}


def add(a, b):
    return a + b


ADD = {
    "name": "add",
    "description": "Add two integers.",
    "inputSchema": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
        "additionalProperties": False,
    },
}
TOOLS = {"add": (add, ADD)}


class Wrong(Exception):
    """The sender's mistake: a code, a message, and perhaps data."""

    def reply(self, ident):
        code, message, *data = self.args
        error = {"code": code, "message": message, **({"data": data[0]} if data else {})}
        return {"jsonrpc": "2.0", **ident, "error": error}


# ## Methods


def discover(params):
    capabilities = {"tools": {"listChanged": True}}
    return {"supportedVersions": [VERSION], "capabilities": capabilities, **KEEP}


def list_tools(params):
    if "cursor" in params:
        raise Wrong(-32602, "params.cursor: there is only one page")
    return {"tools": [definition for _, definition in TOOLS.values()], **KEEP}


def call_tool(params):
    name, arguments = params.get("name"), params.get("arguments", {})
    if not isinstance(name, str) or name not in TOOLS:
        raise Wrong(-32602, f"unknown tool {name}")
    if not isinstance(arguments, dict):
        raise Wrong(-32602, "params.arguments: expected an object")
    function, definition = TOOLS[name]
    if text := problems(arguments, definition["inputSchema"]):
        return {"content": [{"type": "text", "text": text}], "isError": True}
    value = function(**arguments)
    return {"content": [{"type": "text", "text": json.dumps(value)}], "structuredContent": value}


def problems(arguments, schema):
    """What does not fit; a bool is no integer."""
    known = schema["properties"]
    missing = [f"{name}: missing" for name in schema["required"] if name not in arguments]
    unknown = [f"{name}: unknown; known: {', '.join(known)}" for name in arguments.keys() - known]
    wrong = [
        f"{name}: expected {known[name]['type']}"
        for name, value in arguments.items()
        if name in known and type(value) is not KINDS[known[name]["type"]]
    ]
    return "\n".join(missing + unknown + wrong)


METHODS = {"server/discover": discover, "tools/list": list_tools, "tools/call": call_tool}


# ## Messages


def admit(params):
    meta = params.get("_meta")
    meta = meta if isinstance(meta, dict) else {}
    version, able = meta.get(f"{KEY}protocolVersion"), meta.get(f"{KEY}clientCapabilities")
    if not isinstance(version, str) or not isinstance(able, dict):
        raise Wrong(-32602, "params._meta: expected a protocolVersion and clientCapabilities")
    if version != VERSION:
        data = {"supported": [VERSION], "requested": version}
        raise Wrong(-32022, f"revision {version} is not supported", data)


def answer(message, ident):
    params = message.get("params", {})
    if not isinstance(params, dict):
        raise Wrong(-32602, "message.params: expected an object")
    admit(params)
    if message["method"] == "subscriptions/listen":  # nothing ever changes: only say that we heard
        meta = {f"{KEY}subscriptionId": ident["id"]}
        heard = {"method": "notifications/subscriptions/acknowledged"}
        return {"jsonrpc": "2.0", **heard, "params": {"notifications": {}, "_meta": meta}}
    if message["method"] not in METHODS:
        raise Wrong(-32601, f"unknown method {message['method']}")
    try:
        result = METHODS[message["method"]](params)
    except Wrong:
        raise
    except Exception as error:
        print(repr(error), file=sys.stderr)
        raise Wrong(-32603, "Internal error") from None
    dress = {"resultType": "complete", "_meta": ABOUT}
    return {"jsonrpc": "2.0", **ident, "result": {**dress, **result}}


def handle(message):
    ident = {}
    try:
        if not isinstance(message, dict):
            raise Wrong(-32600, "expected one object")
        if type(message.get("id")) in (int, str):
            ident = {"id": message["id"]}
        if "method" not in message and ("result" in message or "error" in message):
            return None
        known = message.get("jsonrpc") == "2.0" and isinstance(message.get("method"), str)
        if not known or ("id" in message and not ident):
            raise Wrong(-32600, "this is no JSON-RPC message")
        return answer(message, ident) if ident else None
    except Wrong as wrong:
        return wrong.reply(ident)


def refuse(constant):
    raise ValueError(f"{constant} is not JSON")


def handle_line(line):
    if not line.strip():
        return None
    try:
        message = json.loads(line, parse_constant=refuse)
        json.dumps(message, ensure_ascii=False).encode()  # half a character is no text
    except (ValueError, RecursionError):
        return json.dumps(Wrong(-32700, "this is not JSON").reply({}))
    reply = handle(message)
    return None if reply is None else json.dumps(reply)


def main():
    wire = os.fdopen(os.dup(1), "w", encoding="utf-8")  # ours alone
    os.dup2(2, 1)  # and whatever prints, prints to stderr
    for line in sys.stdin.buffer:
        if reply := handle_line(line.decode(errors="surrogateescape")):
            print(reply, file=wire, flush=True)


if __name__ == "__main__":
    main()
