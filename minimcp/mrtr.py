"""Asking back: a tool that needs something from the client returns `InputRequired`.

A modern server never sends a request. When it needs an answer of a person, of a model or about
the client's folders, it answers *"not yet, I need this first"*, and forgets the call. The client
finds the answers and sends the same request again, with the answers in it. That is a *multi
round-trip request*. Not here: keeping a state to a single use; only a tool knows whether that
matters to it, and where to note what has been used.

https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr
"""

import hmac
import json
import os
import time

from . import protocol
from .context import Context
from .protocol import INVALID_PARAMS, JSON, Params, ProtocolError, dumps, expect, loads
from .schema import Schema, checker, explain
from .tools import error_result

TTL = 600  # seconds for which a client may take its time
KEY = os.environ.get("MINIMCP_KEY", "").encode() or os.urandom(32)
NOT_HERE = f"can ask for input only in {', '.join(protocol.NAMED)} of {protocol.MODERN[0]}"

# ## The question
#
# `requests` are questions by keys of the tool's choice; the answers come back under the same
# keys. `state` is what the tool wants to remember until then.


class InputRequired:
    """What a tool returns to ask the client for input: `requests` (by key), `state`, or both.

    Each request is `{"method": …, "params": …}`, one of `elicitation/create`,
    `sampling/createMessage` and `roots/list`. On the retry the tool finds the answers in
    `context.inputs` and the state, any JSON value but null, in `context.state`. A tool must be
    ready for missing answers: it asks again. `ValueError` if there is nothing to ask.
    """

    def __init__(self, requests: dict[str, Params] | None = None, state: JSON = None) -> None:
        self.requests, self.state = requests or {}, state
        if not self.requests and state is None:
            raise ValueError("InputRequired needs requests, a state, or both")
        for key, one in self.requests.items():
            if one.get("method") not in protocol.INPUTS or one.keys() - {"method", "params"}:
                raise ValueError(f"{key}: expected params, and one of {', '.join(protocol.INPUTS)}")

    def as_result(self, context: Context) -> Params:
        """The result for the client that is waiting; refused if it cannot answer."""
        if not context.modern and context.method == "tools/call":
            return error_result(f"this tool {NOT_HERE}")
        if not context.modern or context.method not in protocol.NAMED:
            raise ProtocolError(protocol.INVALID_REQUEST, f"a server {NOT_HERE}")
        for request in self.requests.values():
            demand(context, request)
        asked = {"inputRequests": self.requests} if self.requests else {}
        kept = {} if self.state is None else {"requestState": seal(self.state, context)}
        return {"resultType": "input_required", **asked, **kept}


def demand(context: Context, request: Params) -> None:
    """Ask nothing that the client did not declare."""
    method, params = request["method"], request.get("params", {})
    parts: list[str | None] = ["tools"] if params.keys() & {"tools", "toolChoice"} else [None]
    parts += ["context"] if params.get("includeContext", "none") != "none" else []
    for part in [params.get("mode", "form")] if method == "elicitation/create" else parts:
        context.require(protocol.INPUTS[method], part)


# ## The retry
#
# It may reach another process than the question came from. Nothing waits for it here, and often
# it never comes. Nobody here knows which question an answer belongs to. But what a person decided
# (`action`), what was said (`content`) and a list of folders (`roots`) look alike everywhere.

FOLDER = {"type": "object", "properties": {"uri": {"type": "string"}}, "required": ["uri"]}
ANSWER: dict[str, Schema] = {
    "action": {"enum": ["accept", "decline", "cancel"]},
    "content": {"anyOf": [{"type": "object"}, {"type": "array"}]},
    "roots": {"type": "array", "items": FOLDER},
}
check = checker(
    {"type": "object", "additionalProperties": {"type": "object", "properties": ANSWER}}
)


def resume(context: Context) -> None:
    """Read what a retry brought into `context.inputs` and `context.state`, or refuse it."""
    inputs = context.params.get("inputResponses", {})
    if problems := check(inputs):
        raise ProtocolError(INVALID_PARAMS, explain(problems, "params.inputResponses"))
    if "requestState" in context.params:
        context.state = unseal(expect(context.params, "requestState", str, "params"), context)
    context.inputs = inputs


# ## The seal
#
# The state travels through the client, so it comes back from a stranger. `text.mac` can be read
# by everybody and written by nobody: the code behind the dot is computed with a key from all of
# the text, and from the request and the person that it belongs to. So a state that was changed,
# that comes with other arguments or from somebody else does not fit, and we need no store to
# know it. Set `MINIMCP_KEY` when several processes serve one client; without it every process
# makes a key of its own.


def seal(state: JSON, context: Context) -> str:  # ADR-0016
    """The state as a text that only we can write, good for `TTL` seconds and this request."""
    text = dumps([int(time.time()) + TTL, state])
    return f"{text}.{_code(text, context)}"


def unseal(sealed: str, context: Context) -> JSON:
    """The state in a sealed text; `ProtocolError` (-32602) if it is not ours, or too old."""
    text, _, code = sealed.rpartition(".")
    if hmac.compare_digest(code.encode(), _code(text, context).encode()):
        expires, state = loads(text)
        if time.time() < expires:
            return state
    wrong = "was changed, has expired or belongs to another request; start again without it"
    raise ProtocolError(INVALID_PARAMS, f"params.requestState: {wrong}")


def _code(text: str, context: Context) -> str:
    own = ("_meta", "inputResponses", "requestState")
    request = {key: value for key, value in context.params.items() if key not in own}
    bound = [text, context.method, request, context.peer.principal]
    message = json.dumps(bound, sort_keys=True).encode()
    return hmac.digest(KEY, message, "sha256").hex()
