"""The HTTP wire of a client: each message is a POST of its own, and the answer is its reply.

The thread that calls is the one that posts and reads, so nothing is handed from thread to
thread. Not here: OAuth.

https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http
"""

import os
from collections.abc import Callable, Container
from contextlib import suppress
from http.client import HTTPException, HTTPResponse
from threading import Event, Lock, Thread
from time import monotonic
from typing import Any

from . import protocol
from .cli import printable
from .context import tell
from .http_exchange import Endpoint, events, left
from .http_headers import SAFE, annotated, argument, as_text, encode
from .protocol import HEADER_MISMATCH, JSON, Message, ProtocolError, dumps, is_id, loads

NOTE, LONG = 2.0, 1e6  # seconds for a farewell, and to listen for what nobody asked
FIXED = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


class HTTPWire:
    """A server behind a URL; `receive` gets every message that comes back.

    `MINIMCP_TOKEN`, in the client's `env` or the environment, is sent as a bearer token.
    """

    def __init__(self, url: str, client: Any) -> None:
        self.url, self.client, self.endpoint = url, client, Endpoint(url)
        token = {**os.environ, **(client.env or {})}.get("MINIMCP_TOKEN")
        if token and not SAFE.fullmatch(token):
            raise ConnectionError("MINIMCP_TOKEN has characters that no header can hold")
        self.fixed = {**FIXED, "Authorization": f"Bearer {token}"} if token else FIXED
        self.session: str | None = None
        self.marks: dict[Any, Any] = {}  # what a tool wants to see in headers
        self.renewing, self.overhears = Lock(), Event()

    def open(self, receive: Callable[[str | None], None]) -> None:
        """Remember who receives; connections are made when there is something to say."""
        self.receive = receive

    # ## Sending
    #
    # A request waits here for its answer. What has no answer never fails: a line on stderr must
    # do. And in the modern era a cancellation is no message: who does not want to wait any
    # longer hangs up, and when the time was over we did. In the legacy era it is one, but nobody
    # waits long to say that he does not want to wait.

    def send(self, message: Message, timeout: float | None) -> None:
        """Post a message; if it is a request, wait for its answer, at most `timeout` seconds.

        Raises `TimeoutError`, `ConnectionError`, or `ProtocolError` if a server cannot be probed.
        """
        cancels = message.get("method") == "notifications/cancelled"
        if cancels and self.client.era == "modern":
            return
        seconds = NOTE if cancels else self.client.timeout if timeout is None else timeout
        try:
            reply = self._converse(message, monotonic() + seconds)
            if is_request(message):
                self.receive(dumps(reply))
        except (OSError, HTTPException) as error:
            late, kind = isinstance(error, TimeoutError), type(error).__name__
            why = f"no answer in {seconds:g} s" if late else f"{self.url}: {kind}: {error}"
            if not is_request(message):
                told = f"minimcp: {message.get('method', 'an answer')}: {why}"
                tell(printable(told))
            elif not self._is_answered(message):
                raise (TimeoutError if late else ConnectionError)(why) from None

    # ## Two reasons to ask again
    #
    # A legacy server may have forgotten the session, and says so with 404: then there is a new
    # handshake. A modern server may have changed what it wants to see in headers: then the tools
    # are listed again. In both cases nothing was done yet, so asking once more does nothing
    # twice. There is no third reason: a request that may have arrived is never repeated.

    def _converse(self, message: Message, deadline: float) -> Message:
        """The answer to a message, empty if it has none."""
        session, method = self.session, message.get("method")
        try:
            reply = self._ask(message, deadline)
        except SessionOver:
            with self.renewing:
                if self.session == session:  # subtle: another thread may have been here before
                    try:
                        self._ask(self.greeting, deadline)
                        self._ask(INITIALIZED, deadline)
                    except BaseException:
                        self.session = session  # half a handshake is none, so begin anew
                        raise
            reply = self._ask(message, deadline)
        if method == "tools/call" and reply.get("error", {}).get("code") == HEADER_MISMATCH:
            self.client.fresh_until = 0.0
            self.client.list_tools(left(deadline))
            reply = self._ask(message, deadline)
        if method == "tools/list" and self.client.era == "modern":
            self._admit(reply.get("result"))
        return reply

    # ## The answer
    #
    # It is the reply, or it comes at the end of an event stream. Whatever else a stream says goes
    # to the client. A legacy stream may break off in the middle, on purpose or not; if its events
    # were numbered, a GET that names the last one carries on. And a GET that names none hears what
    # such a server says unasked, if we have an ear for it and the server has a stream. Nothing
    # else is asked before that stream is open: what is said into no ear is lost.
    #
    # No server should answer on another stream than the one that was opened for the question. If
    # one does, who waits on the right one is told by hanging up.

    def _ask(self, message: Message, deadline: float, verb: str = "POST") -> Message:
        headers, seen = self._headers(message), dict[str, str]()
        body = dumps(message).encode() if message else None
        waiting = self.client.connection.waiting
        while True:
            with self.endpoint.exchange(verb, headers, body, deadline, message) as response:
                if verb == "POST":
                    self._follow_session(message, response, deadline)
                elif not message:
                    self.overhears.set()
                for event in events(response):
                    seen.update(event)
                    if message and (reply := answer(event["data"], message.get("id"), waiting)):
                        return reply
                    left(deadline)
                    if event["data"].startswith("{") and response.status == 200:
                        self.receive(event["data"])
                        self.endpoint.hang_up(self._is_answered)
            if message and not is_request(message) and response.status < 300:
                return {}
            over = self.client.era == "modern" or self._is_answered(message)
            if over or response.status != 200 or "id" not in seen:
                raise refusal(message, response, seen.get("data", ""))
            self.endpoint.closed.wait(min(float(seen.get("retry", 1000)) / 1000, left(deadline)))
            verb, headers, body = "GET", {**headers, "Last-Event-ID": seen["id"]}, None

    def _follow_session(self, message: Message, response: HTTPResponse, deadline: float) -> None:
        method, hears = message.get("method"), self.client.on_input or self.client.on_notification
        if method == "initialize":
            self.session, self.greeting = response.headers.get("Mcp-Session-Id"), message
        elif self.session and response.status == 404:
            raise SessionOver
        elif method == "notifications/initialized" and hears:
            self.overhears.clear()
            Thread(target=self._overhear, daemon=True).start()
            self.overhears.wait(min(self.client.probe_timeout, left(deadline)))

    def _overhear(self) -> None:
        """Hear what a legacy server says unasked, if it has a stream for that."""
        with suppress(OSError, HTTPException):
            self._ask({}, monotonic() + LONG, "GET")
        self.overhears.set()

    def _is_answered(self, message: Message) -> bool:
        """Whether the answer came on another stream; before the handshake there is no other."""
        told = message.get("method") != "initialize" and is_request(message)
        return told and message["id"] not in self.client.connection.waiting

    # ## Headers
    #
    # A modern POST says in its headers what its body says, for those who only read headers. A
    # tool whose marks break the rules cannot be called that way, so it is not listed.

    def _headers(self, message: Message) -> dict[str, str]:
        method, params = message.get("method", ""), message.get("params", {})
        headers = {**self.fixed}
        if method != "initialize":
            headers["MCP-Protocol-Version"] = self.client.protocol_version
            headers |= {"Mcp-Session-Id": self.session} if self.session else {}
        if self.client.era == "modern":
            headers["Mcp-Method"] = method
            paths = self.marks.get(params.get("name"), {}) if method == "tools/call" else {}
            for header, path in {"Mcp-Name": [protocol.NAMED.get(method)], **paths}.items():
                if (text := as_text(argument(params, path))) is not None:
                    headers[header] = encode(text)
        return headers

    def _admit(self, result: JSON) -> None:
        """Note what a list of tools wants to see in headers; drop tools that ask it wrongly."""
        with suppress(LookupError, TypeError, AttributeError):  # no tools; the client will say so
            for tool in list(result["tools"]):
                try:
                    marks = annotated(tool["inputSchema"])
                    self.marks[tool["name"]] = {key: ("arguments", *marks[key]) for key in marks}
                except (ValueError, RecursionError) as error:
                    result["tools"].remove(tool)
                    tell(f"minimcp: left out {tool['name']!r}: {error}")

    # ## The end

    def close(self) -> None:
        """End the session, and hang up on everything that is still going on."""
        with suppress(Exception):  # whatever it is, it is over
            if self.session:
                self._ask({}, monotonic() + NOTE, "DELETE")
        self.endpoint.close()

    def obituary(self) -> str:
        """What is known about a server that does not answer."""
        return f"is {self.url} the address of an MCP server?"


class SessionOver(ConnectionError):
    """A legacy server has forgotten us."""


# ## Reading replies


def is_request(message: Message) -> bool:
    """Whether it wants an answer."""
    return "id" in message and "method" in message


def answer(text: str, ident: JSON, waiting: Container[JSON]) -> Message | None:
    """The reply to our request, if it is one. So is an error that names no other that waits."""
    with suppress(ProtocolError, AttributeError):
        reply = loads(text)
        error, named = reply.get("error"), is_id(reply.get("id"))
        ours = named and reply["id"] == ident
        if isinstance(error, dict) and type(error.get("code")) is int:
            if ours or not (named and reply["id"] in waiting):
                return {**reply, "id": ident, "error": {"message": "", **error}}
        elif "method" not in reply and ours:
            return dict(reply)
    return None


def refusal(message: Message, response: HTTPResponse, text: str) -> Exception:
    """Why there is no answer. To the probe, the first question of all, even that is one."""
    where, status = response.headers.get("Location"), response.status
    told = f"to {where}, which is not followed" if where else f"and no answer: {text[:200]!r}"
    said = f"HTTP {status} {response.reason}, {told}"
    if status >= 400 and status not in (401, 403) and message.get("method") == "server/discover":
        return ProtocolError(protocol.METHOD_NOT_FOUND, said)  # it is not a modern server
    return ConnectionError(said)
