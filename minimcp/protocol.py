"""The vocabulary: revisions, error codes, `_meta` keys, tables of methods, strict JSON.

First page of the reading order. It knows no server and no client, opens nothing and decides
nothing: it holds the words of the specification that all the other pages use.
"""

import json
from math import isinf
from typing import Any, Final, NoReturn

JSON = Any  # None, bool, int, float, str, list[JSON] or dict[str, JSON]
Message = dict[str, Any]  # a JSON-RPC object: request, notification, result or error
Params = dict[str, Any]

# ## Revisions
#
# A *modern* request says in its `_meta` which revision it speaks, and needs nothing that came
# before. A *legacy* connection opens with an `initialize` handshake. Newest first.

MODERN: Final = ("2026-07-28",)
LEGACY: Final = ("2025-11-25", "2025-06-18")

# ## Error codes
#
# JSON-RPC's five, and the three that MCP adds. Every other code from -32000 to -32099 is reserved,
# for the future or from the past, so we never send one; but older clients know -32002.

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND = -32700, -32600, -32601
INVALID_PARAMS, INTERNAL_ERROR = -32602, -32603
HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION = MCP_ERRORS = (-32020, -32021, -32022)
RESERVED: Final = range(-32099, -31999)

# ## Keys of `_meta`

VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY: Final = "io.modelcontextprotocol/clientCapabilities"
CLIENT_KEY: Final = "io.modelcontextprotocol/clientInfo"
SERVER_KEY: Final = "io.modelcontextprotocol/serverInfo"
LOG_LEVEL_KEY: Final = "io.modelcontextprotocol/logLevel"
SUBSCRIPTION_KEY: Final = "io.modelcontextprotocol/subscriptionId"

# ## Tables of methods
#
# `NAMED`: what the method is about, and where its name stands. These have an `Mcp-Name` header
# over HTTP, and these alone may answer "I need some input first".
# `CACHEABLE`: their results say for how long, and for whom, they may be kept.
# `INPUTS`: what a server may ask of a client, and the capability that allows it.

NAMED: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
CACHEABLE: Final = {"server/discover", "resources/read", "resources/templates/list"}
LISTS: Final = ("tools", "prompts", "resources")  # what a client may be told has changed
CACHEABLE.update(f"{kind}/list" for kind in LISTS)
INPUTS: Final = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling"}
INPUTS["roots/list"] = "roots"
LOG_LEVELS: Final = "debug info notice warning error critical alert emergency".split()

# ## Looking at values

MISSING: Final = object()  # what stands where nothing stands
KINDS: Final = {dict: "object", list: "array", str: "string", bool: "boolean"}
KINDS.update({int: "integer", float: "number", type(None): "null"})


def is_id(value: object) -> bool:
    """Whether a value may identify a request: a string or an integer, and `True` is neither."""
    return type(value) is str or type(value) is int


def describe(value: object) -> str:
    """What came, for a person: `string "x"`, `null`, `object`, `nothing`."""
    if value is MISSING:
        return "nothing"
    kind = KINDS.get(type(value)) or type(value).__name__
    return f"{kind} {json.dumps(value)[:60]}" if isinstance(value, (str, int, float)) else kind


def expect(holder: Params, key: str, kind: type, where: str, default: object = MISSING) -> Any:
    """The member `key`, which must be of one kind; else an error that says what and where."""
    value = holder.get(key, default)
    if not isinstance(value, kind):
        text = f"{where}.{key}: expected {KINDS[kind]}, got {describe(value)}"
        raise ProtocolError(INVALID_PARAMS, text)
    return value


# ## Two kinds of failure, by who can act on them


class ProtocolError(Exception):
    """The peer's message is wrong: a JSON-RPC error with `code`, `message` and `data`.

    Raise it in a handler to answer with that error. The client raises it when the server
    answered with one. https://modelcontextprotocol.io/specification/2026-07-28/basic#error-codes
    """

    def __init__(self, code: int, message: str, data: JSON = None) -> None:
        self.code, self.message, self.data = code, message, data

    def __str__(self) -> str:
        return f"{self.message} ({self.code})" + (f" {self.data}" if self.data else "")

    def reply(self, ident: object, modern: bool = False) -> Message:  # ADR-0009
        """The error reply; without an `id` member when there is none that could be read."""
        known = (*MCP_ERRORS, None if modern else -32002)
        wrong = type(self.code) is not int or (self.code in RESERVED and self.code not in known)
        error = {"code": INTERNAL_ERROR if wrong else self.code, "message": str(self.message)}
        error |= {} if self.data is None else {"data": self.data}
        return {"jsonrpc": "2.0", **({"id": ident} if is_id(ident) else {}), "error": error}


class ToolError(Exception):
    """A tool cannot do what it was asked, and the model can act on the text.

    The caller gets a result with `isError: true` and this text, not a JSON-RPC error.
    https://modelcontextprotocol.io/specification/2026-07-28/server/tools#error-handling
    """


# ## Strict JSON, in and out
#
# Python's `json` reads and writes `NaN`, which is no JSON, and half characters (`"\ud800"`),
# which are no text. It takes `1e999` for an infinity. It gives up on deep nesting with a
# `RecursionError`, on endless digits with a `ValueError`. Here all of these are one thing: a line
# that could not be read.


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _finite(digits: str) -> float:
    if isinf(number := float(digits)):
        raise ValueError(f"{digits[:20]} is larger than any number here")
    return number


def _plain(value: Any) -> JSON:
    """What a dataclass or a member of an `Enum` looks like as JSON."""
    if hasattr(value, "__dataclass_fields__"):
        from dataclasses import fields  # it is loaded already

        return {one.name: getattr(value, one.name) for one in fields(value)}
    if hasattr(type(value), "__members__"):
        return value.value
    raise TypeError(f"a value of type {type(value).__name__} has no JSON form")


_decode = json.JSONDecoder(parse_float=_finite, parse_constant=_refuse).raw_decode
_encode = json.encoder.c_make_encoder(  # type: ignore[attr-defined]  # made once
    None, _plain, json.encoder.encode_basestring, None, ":", ",", False, False, False
)


def loads(line: str) -> JSON:
    """Read one line of strict JSON; raise `ProtocolError` (-32700) if it is not."""
    line = line.removeprefix("\ufeff").strip(" \t\r\n")
    try:
        value, end = _decode(line)
        if end < len(line):
            raise ValueError(f"one value ends at character {end}, and there is more")
        if not line.isascii() or "\\ud" in line or "\\uD" in line:
            dumps(value)
    except (ValueError, RecursionError, MemoryError) as error:
        raise ProtocolError(PARSE_ERROR, f"Parse error, this is not JSON: {error}") from None
    return value


def dumps(value: JSON) -> str:
    """Write strict JSON on one line; raise `ValueError`, `TypeError` or `RecursionError`."""
    text = "".join(_encode(value, 0))
    if not text.isascii():
        text.encode()  # subtle: half a character passes the encoder, but is no UTF-8
    return text
