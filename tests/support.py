"""What the tests share: messages, a server as a subprocess, a server that follows a script.

- `modern(method, params, id)` and `legacy(method, params, id)` build requests, and
  `initialize(version)` builds the handshake's; `META` is the `_meta` a modern request needs.
- `Stdio(command)` starts a server, writes lines and reads messages, each within a deadline. It
  keeps everything in `sent` and `received`, and every line the server writes is checked against
  the official wire types on the way (`wire.py`). Leaving the `with` block ends the process.

      with Stdio([sys.executable, "server.py"]) as server:
          assert server.ask(modern("tools/list"))["result"]["tools"] == []
          server.send_raw(b"garbage\\n")
          assert server.read()["error"]["code"] == -32700
          server.close_stdin()
          assert server.wait() == 0

- `server_file(tmp_path, source)` writes a server and returns the command that runs it.
- `Stub(tmp_path, replies)` is a server for client tests: it answers each method with what the table
  says and records what it was sent.
- `until(condition)` polls; it is the only way in which these tests wait.
- `free_port()` is for a server that is told its port; nothing else on this machine gets it.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import secrets
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import wire

Message = dict[str, Any]

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
OLD = "2025-06-18"

META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}

PATIENCE = 60.0  # seconds until a test gives up; generous, since the machine may be busy


def modern(
    method: str,
    params: Mapping[str, Any] | None = None,
    id: Any = 1,
    *,
    capabilities: Mapping[str, Any] | None = None,
    meta: Mapping[str, Any] | None = None,
) -> Message:
    """A request of revision 2026-07-28, with the `_meta` it needs and what `meta` adds."""
    full = {**META, **(meta or {})}
    if capabilities is not None:
        full["io.modelcontextprotocol/clientCapabilities"] = dict(capabilities)
    return legacy(method, {**(params or {}), "_meta": full}, id)


def legacy(method: str, params: Mapping[str, Any] | None = None, id: Any = 1) -> Message:
    """A request without modern `_meta`."""
    message: Message = {"jsonrpc": "2.0", "id": id, "method": method}
    if params is not None:
        message["params"] = dict(params)
    return message


def notification(method: str, params: Mapping[str, Any] | None = None) -> Message:
    message: Message = {"jsonrpc": "2.0", "method": method}
    if params is not None:
        message["params"] = dict(params)
    return message


def initialize(
    version: str = LEGACY, id: Any = 0, capabilities: Mapping[str, Any] | None = None
) -> Message:
    params = {
        "protocolVersion": version,
        "capabilities": dict(capabilities or {}),
        "clientInfo": {"name": "tests", "version": "1.0.0"},
    }
    return legacy("initialize", params, id)


def cancelled(request_id: Any, reason: str | None = None) -> Message:
    params = {"requestId": request_id}
    if reason is not None:
        params["reason"] = reason
    return notification("notifications/cancelled", params)


def complete(
    result: Mapping[str, Any], id: Any = 1, name: str = "demo", version: str = "1.0.0"
) -> Message:
    """The whole reply of a modern server: a result and what every one of them carries."""
    info = {"io.modelcontextprotocol/serverInfo": {"name": name, "version": version}}
    return {
        "jsonrpc": "2.0",
        "id": id,
        "result": {"resultType": "complete", "_meta": info, **result},
    }


def plain(result: Mapping[str, Any], id: Any = 1) -> Message:
    """The whole reply of a legacy server."""
    return {"jsonrpc": "2.0", "id": id, "result": dict(result)}


NO_ID = object()


def assert_error(
    reply: Message | None, code: int, *named: str, id: Any = 1, data: Any = None
) -> None:
    """The reply is this error and nothing else, and its message names these things."""
    assert reply is not None
    assert "error" in reply, reply
    message = reply["error"].get("message", "")
    error = {"code": code, "message": message} | ({} if data is None else {"data": data})
    whole = {"jsonrpc": "2.0", "error": error} | ({} if id is NO_ID else {"id": id})
    assert reply == whole
    assert message
    for name in named:
        assert name in message


def assert_tool_error(reply: Message | None, *named: str) -> str:
    """The reply is a result with `isError` and one text, which names these things; the text."""
    assert reply is not None
    assert "result" in reply, reply
    result = reply["result"]
    assert result["isError"] is True
    assert "structuredContent" not in result
    (block,) = result["content"]
    assert block == {"type": "text", "text": block["text"]}
    for name in named:
        assert name in block["text"]
    return block["text"]


def exchange(server: Any, message: Message | str, peer: Any = None) -> Message | None:
    """One message through the seam, as objects: dumps, `handle_line`, loads."""
    line = message if isinstance(message, str) else json.dumps(message)
    reply = server.handle_line(line) if peer is None else server.handle_line(line, peer)
    return None if reply is None else json.loads(reply)


def until(condition: Callable[[], Any], timeout: float = PATIENCE, what: str = "") -> Any:
    """Poll until `condition()` is true and return its value; fail after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout} s in vain {what}".rstrip())
        time.sleep(0.005)


def free_port() -> int:
    """A port on which nobody listens.

    It is none of those that a system gives out by itself (from 32768 upwards): such a one could be
    somebody else's by the time that the server has started.
    """
    while True:
        port = 20000 + secrets.randbelow(12000)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


def server_file(tmp_path: Path, source: str, name: str = "server.py") -> list[str]:
    """Write a server's source (dedented) and return the command that runs it."""
    path = tmp_path / name
    path.write_text(textwrap.dedent(source), encoding="utf-8")
    return [sys.executable, str(path)]


class Stdio:
    """A server in a subprocess, spoken to line by line, every reply checked."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        check: bool = True,
    ) -> None:
        self.sent: list[Message] = []
        self.received: list[Message] = []
        self.raw: list[bytes] = []  # what came out of stdout, line by line, the newline included
        self._stderr: list[bytes] = []
        self._lines: queue.Queue[bytes | None] = queue.Queue()
        self._conversation = wire.Conversation() if check else None
        self.process = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **(env or {})},
            cwd=cwd,
        )
        self._threads = [
            threading.Thread(target=self._pump, daemon=True),
            threading.Thread(target=self._drain, daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def _pump(self) -> None:
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def _drain(self) -> None:
        for line in self.process.stderr:
            self._stderr.append(line)

    # -- writing

    def send(self, *messages: Message | str) -> None:
        """Write each message (an object or a line without its newline) in one go."""
        for message in messages:
            self._note(message)
        lines = [m if isinstance(m, str) else json.dumps(m) for m in messages]
        self.send_raw("".join(line + "\n" for line in lines).encode())

    def send_raw(self, data: bytes) -> None:
        """Write bytes as they are."""
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def _note(self, message: Message | str) -> None:
        if isinstance(message, str):
            message = wire.readable(message)
        if isinstance(message, dict):
            self.sent.append(message)
            if self._conversation:
                self._conversation.asked(message)

    def close_stdin(self) -> None:
        self.process.stdin.close()

    # -- reading

    def read(self, timeout: float = PATIENCE) -> Message | None:
        """The next message from the server, or None at its end of output."""
        line = self.read_raw(timeout)
        if line is None:
            return None
        message = json.loads(line)
        self.received.append(message)
        if self._conversation:
            self._conversation.answered(line.decode())
        return message

    def read_raw(self, timeout: float = PATIENCE) -> bytes | None:
        try:
            line = self._lines.get(timeout=timeout)
        except queue.Empty:
            raise AssertionError(f"no line from the server in {timeout} s; {self.stderr}") from None
        if line is not None:
            self.raw.append(line)
        return line

    def read_all(self, timeout: float = PATIENCE) -> list[Message]:
        """Every message until the server closes its output."""
        messages = []
        while (message := self.read(timeout)) is not None:
            messages.append(message)
        return messages

    def read_until(self, id: Any, timeout: float = PATIENCE) -> list[Message]:
        """Every message up to and including the reply to `id`."""
        messages = []
        while not messages or not wire.answers(messages[-1], id):
            message = self.read(timeout)
            if message is None:
                raise AssertionError(f"the server ended without an answer to {id!r}; {self.stderr}")
            messages.append(message)
        return messages

    def ask(self, message: Message, timeout: float = PATIENCE) -> Message:
        """Send a request and return its reply; what comes before stays in `received`."""
        self.send(message)
        return self.read_until(message["id"], timeout)[-1]

    # -- ending

    @property
    def stderr(self) -> str:
        return b"".join(self._stderr).decode(errors="replace")

    def wait(self, timeout: float = PATIENCE) -> int:
        """The exit code; afterwards `stderr` is complete."""
        code = self.process.wait(timeout)
        for thread in self._threads:
            thread.join(timeout)
        return code

    def __enter__(self) -> Stdio:
        return self

    def __exit__(self, *exc: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE)
        for thread in self._threads:
            thread.join(PATIENCE)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            with contextlib.suppress(OSError):  # the server went away with unread input
                pipe.close()


STUB = """
import json, sys, time
table, record = json.loads(open(sys.argv[1], encoding="utf-8").read()), sys.argv[2]
seen = {}
with open(record, "a", encoding="utf-8") as log:
    for line in sys.stdin:
        log.write(line)
        log.flush()
        message = json.loads(line)
        method = message.get("method")
        replies = table.get(method, table.get("*"))
        if isinstance(replies, list):
            seen[method] = seen.get(method, -1) + 1
            replies = replies[min(seen[method], len(replies) - 1)]
        if replies is None or "id" not in message:
            continue
        if "exit" in replies:
            sys.exit(replies["exit"])
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **replies}), flush=True)
"""


class Stub:
    """A scripted stdio server. `replies` maps a method to `{"result": …}`, `{"error": …}`, None
    (silence), `{"exit": code}` or a list of these, used one after the other, the last one for
    ever; the method `"*"` stands for all others. `received()` is what it was sent so far."""

    def __init__(self, tmp_path: Path, replies: Mapping[str, Any]) -> None:
        folder = tmp_path / f"stub-{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        (folder / "table.json").write_text(json.dumps(replies), encoding="utf-8")
        self._record = folder / "record.jsonl"
        self._record.touch()
        command = server_file(folder, STUB, "stub.py")
        self.command = [*command, str(folder / "table.json"), str(self._record)]

    def received(self) -> list[Message]:
        lines = self._record.read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]

    def methods(self) -> list[str]:
        """The methods it was sent, in order."""
        return [message["method"] for message in self.received() if "method" in message]
