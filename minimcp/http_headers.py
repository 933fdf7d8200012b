"""The header contract of Streamable HTTP: what the body says, the headers say too.

Proxies route and count by headers, servers act on bodies. So that nobody can tell them two
stories, a modern POST repeats in its headers which revision and method it is, what it is about,
and the arguments that a tool marks with `x-mcp-header`. Both ends use this page: the client to
write headers (`annotated`, `argument`, `as_text`, `encode`), the server to compare (`check`).

https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#request-metadata
"""

import re
from binascii import b2a_base64
from collections.abc import Iterator, Mapping
from typing import Any

from .context import Context
from .protocol import HEADER_MISMATCH, JSON, NAMED, VERSION_KEY, Params, ProtocolError, dumps

# ## Text in a header
#
# A header holds visible ASCII with blanks inside, nothing else. Any other text travels as Base64
# between two markers, and so does text that only looks as if it had been marked.

OPEN, SHUT = "=?base64?", "?="
MARKED = re.compile(r"=\?base64\?.*\?=")
SAFE = re.compile(r"([!-~]([ -~]*[!-~])?)?")


def encode(text: str) -> str:
    """Text as the value of a header."""
    looks_marked = text.startswith(OPEN) and text.endswith(SHUT)
    return text if SAFE.fullmatch(text) and not looks_marked else marked(text)


def marked(text: str) -> str:
    """Text in Base64, between the markers that say so."""
    return OPEN + b2a_base64(text.encode(), newline=False).decode() + SHUT


def stands_for(value: str | None, text: str | None) -> bool:
    """Whether a header's value means this text; no header (`None`) means no text.

    There is one right Base64 for every text, so nothing is decoded: decoders are kind to bad
    padding and strange characters, and a comparison is not.
    """
    if value is None or text is None:
        return value is text
    shown = value.replace("\t", " ").isprintable()
    return shown and value == (marked(text) if MARKED.fullmatch(value) else text)


# ## Arguments in headers
#
# A tool's input schema may mark a parameter: with `{"type": "string", "x-mcp-header": "Region"}`
# its value travels as `Mcp-Param-Region` too. A mark stands on a plain type, where a chain of
# `properties` leads and nothing else, so that anybody finds the value without a validator.

MARK = "x-mcp-header"
TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
PLAIN = ("string", "integer", "boolean")
MAPS = ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions")
VALUES = ("const", "default", "enum", "examples")
LARGEST = 2**53 - 1
Path = tuple[Any, ...]


def annotated(schema: JSON) -> dict[str, Path]:
    """Header -> path of its argument, as in `{"Mcp-Param-Region": ("where", "region")}`.

    `ValueError` says which mark breaks a rule, and which rule.
    """
    found, taken = dict[str, Path](), set[str]()
    for holder, path in _marks(schema, ()):
        name = holder[MARK]
        rules = {
            "is not the name of a header": isinstance(name, str) and TOKEN.fullmatch(name),
            "stands where 'properties' alone do not lead": {*path[::2]} == {"properties"},
            f"needs one type of {', '.join(PLAIN)}": holder.get("type") in PLAIN,
            "is there twice (case does not count)": str(name).lower() not in taken,
        }
        if broken := [rule for rule, kept in rules.items() if not kept]:
            raise ValueError(f"{MARK} {name!r} {broken[0]}")
        found[f"Mcp-Param-{name}"] = path[1::2]
        taken.add(name.lower())
    return found


def _marks(schema: JSON, path: Path, names: bool = False) -> Iterator[tuple[Params, Path]]:
    """Every marked schema and the path to it, keywords included; `names`: a map, not a schema."""
    members = dict(enumerate(schema)) if isinstance(schema, list) else schema
    if isinstance(members, dict):
        if MARK in members and not names:
            yield members, path
        for key, below in members.items():
            if names or key not in VALUES:
                yield from _marks(below, (*path, key), not names and key in MAPS)


def argument(arguments: JSON, path: Path) -> JSON:
    """The value that a path of names leads to, or `None`."""
    for name in path:
        arguments = arguments.get(name) if isinstance(arguments, dict) else None
    return arguments


def as_text(value: JSON) -> str | None:
    """A plain value as a header has it (`us-west1`, `42`, `true`); others have no header.

    `ProtocolError` (-32020) for a number that not everybody on the way can read exactly.
    """
    if value is None or isinstance(value, (str, dict, list)):
        return value if isinstance(value, str) else None
    if abs(value) > LARGEST:
        raise ProtocolError(HEADER_MISMATCH, f"no header can hold {value}: at most {LARGEST}")
    return dumps(value).removesuffix(".0")


# ## What a server compares
#
# The revision and the method stand in their headers as they are, for everybody to read; the rest
# may be marked. Whole numbers may end with `.0`.

EXACT = ("MCP-Protocol-Version", "Mcp-Method")


def check(headers: Mapping[str, str], context: Context) -> None:
    """Raise `ProtocolError` (-32020) unless the headers say what the body says.

    Names of `headers` are lower-case; one that came twice has a line break in its value.
    """
    for header, value in _said(context):
        told, text = headers.get(header.lower()), as_text(value)
        if told and not isinstance(value, (str, bool)):
            told = told.removesuffix(".0")
        if not (told == text if header in EXACT else stands_for(told, text)):
            problem = f"{header} is {told!r}, the body says {value!r}"
            raise ProtocolError(HEADER_MISMATCH, f"Header mismatch: {problem}")


def _said(context: Context) -> Iterator[tuple[str, JSON]]:
    """What the body says for every header that it needs; `None` for a header that must not be."""
    params, method = context.params, context.method
    yield from zip(EXACT, (context.meta[VERSION_KEY], method), strict=True)
    if method in NAMED:
        yield "Mcp-Name", params.get(NAMED[method])
    if method == "tools/call" and (tool := context.server.tools.get(str(params.get("name")))):
        for header, path in tool.marks.items():
            yield header, argument(params.get("arguments"), path)
