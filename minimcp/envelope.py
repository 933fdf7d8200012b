"""Is it a message at all, and what goes back when something is wrong with it?

JSON-RPC knows requests, notifications and responses. What is none of them gets an error (-32600);
what fails on our side gets an error that says no more than that.

https://modelcontextprotocol.io/specification/2026-07-28/basic#messages
"""

import sys
from threading import current_thread, main_thread
from typing import Final

from .protocol import INTERNAL_ERROR, INVALID_REQUEST, JSON, Message, ProtocolError, dumps, is_id
from .schema import Schema, explain, validate

IDS: Final = {"anyOf": [{"type": "string"}, {"type": "integer"}]}
MEMBERS: Final = {"jsonrpc": {"enum": ["2.0"]}, "id": IDS, "method": {"type": "string"}}
ENVELOPE: Final[Schema] = {
    "type": "object",
    "properties": MEMBERS,
    "required": ["jsonrpc", "method"],
}


def is_request(message: JSON) -> bool:
    """Whether a message wants an answer; `ProtocolError` (-32600) if it is none."""
    if isinstance(message, dict):
        if "method" not in message and ("result" in message or "error" in message):
            return False  # a response, and we asked nothing
        named = message.get("jsonrpc") == "2.0" and isinstance(message.get("method"), str)
        if named and is_id(message.get("id", "")):
            return "id" in message
    text = explain(validate(message, ENVELOPE), "message") or "message.id: expected no fraction"
    if isinstance(message, list):
        text = "batches are not supported since revision 2025-06-18; send one message at a time"
    raise ProtocolError(INVALID_REQUEST, text)


def write(reply: Message) -> str:
    """A reply as a line; what has no JSON form becomes an error."""
    try:
        return dumps(reply)
    except Exception as error:
        return dumps(failure(error, reply.get("id")))


def failure(error: BaseException, ident: object, modern: bool = False) -> Message:
    """The reply to a request that failed: the peer's error is told, ours is not."""
    return (error if isinstance(error, ProtocolError) else unexpected(error)).reply(ident, modern)


def unexpected(error: BaseException) -> ProtocolError:
    """Tell the operator everything (on stderr), and the peer only that it failed.

    Only Ctrl+C is not a failure: it reaches the main thread, and goes on from here.
    """
    if isinstance(error, KeyboardInterrupt) and current_thread() is main_thread():
        raise error
    sys.excepthook(type(error), error, error.__traceback__)
    return ProtocolError(INTERNAL_ERROR, "Internal error")
