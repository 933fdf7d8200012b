"""Lines to send, without typing all the quotes; and replies to compare with."""

from __future__ import annotations

import json
from typing import Any

# What a client of revision 2025-11-25 says first. Until notebook 7 nothing else is needed.
HANDSHAKE = [
    '{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":'
    '"2025-11-25","capabilities":{},"clientInfo":{"name":"notebook","version":"1"}}}',
    '{"jsonrpc":"2.0","method":"notifications/initialized"}',
]


def line(method: str, ident: int | str | None = None, /, **params: Any) -> str:
    """A request as a line: `line("tools/list", 1)`; without an id, a notification."""
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": ident, "method": method, "params": params}
    kept = {key: value for key, value in message.items() if value not in (None, {})}
    return json.dumps(kept, ensure_ascii=False, separators=(",", ":"))


def call(ident: int | str, name: Any, /, **arguments: Any) -> str:
    """A call of a tool as a line: `call(1, "add", a=2, b=40)`."""
    return line("tools/call", ident, name=name, arguments=arguments)


def result(ident: int | str, members: dict[str, Any]) -> dict[str, Any]:
    """The reply with these members."""
    return {"jsonrpc": "2.0", "id": ident, "result": members}


def text(ident: int | str, words: str, **more: Any) -> dict[str, Any]:
    """The reply of a tool that says this."""
    return result(ident, {"content": [{"type": "text", "text": words}], **more})


def failed(ident: int | str) -> dict[str, Any]:
    """The reply of a tool that failed; the wording is not compared."""
    return text(ident, "…", isError=True)


def error(code: int, ident: int | str | None = None, **more: Any) -> dict[str, Any]:
    """An error reply; the wording is not compared, its `data` is."""
    identity = {} if ident is None else {"id": ident}
    return {"jsonrpc": "2.0", **identity, "error": {"code": code, **more}}
