"""A headless Chromium, driven over two pipes, and the built site on a loopback port.

`--remote-debugging-pipe` speaks the DevTools protocol as JSON with a zero byte after each message,
so no WebSocket and no driver is needed. The browser resolves no name but the loopback address:
whatever a page wants from elsewhere fails, and shows.

    with Browser() as browser:
        page = browser.page(width=390, dark=True)
        page.go("http://127.0.0.1:8000/index.html")
        assert page.value("document.title") == "minimcp"
        assert page.complaints == []
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any

from support_skips import need

PATIENCE = 60.0  # seconds; generous, since the machine may be busy
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
OPTIONS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--mute-audio"),
    *("--no-first-run", "--disable-background-networking", "--disable-component-update"),
    *("--disable-sync", "--disable-extensions", "--remote-debugging-pipe"),
    "--force-prefers-reduced-motion",  # a colour on its way to another is none to be measured
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]
PHONE, DESKTOP = 390, 1280


def executable() -> str:
    """Where the browser is; without one the test is skipped, or fails in CI."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    need(found, "no Chromium here: apt-get install chromium")
    return str(found)


class Browser:
    """One process for all pages; leaving the `with` block ends it."""

    def __init__(self) -> None:
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        theirs_in, self.outgoing = os.pipe()
        self.incoming, theirs_out = os.pipe()
        theirs = [fcntl.fcntl(pipe, fcntl.F_DUPFD, 100) for pipe in (theirs_in, theirs_out)]
        script = 'exec "$@" 3<&{} 4>&{}'.format(*theirs)  # it reads from 3 and writes to 4
        home = f"--user-data-dir={self.profile.name}"
        self.process = subprocess.Popen(
            ["bash", "-c", script, "bash", executable(), *OPTIONS, home, "about:blank"],
            pass_fds=theirs,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        for pipe in (theirs_in, theirs_out, *theirs):
            os.close(pipe)
        self.ids, self.rest, self.pages = count(1), b"", dict[str, Page]()

    def call(self, method: str, session: str | None = None, **params: Any) -> Any:
        """Send a command and wait for its result; events on the way go to their pages."""
        ident = next(self.ids)
        message = {"id": ident, "method": method, "params": params}
        message |= {"sessionId": session} if session else {}
        os.write(self.outgoing, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE
        while (reply := self.read(deadline)).get("id") != ident:
            if "method" in reply and (page := self.pages.get(reply.get("sessionId", ""))):
                page.hear(reply["method"], reply["params"])
        assert "error" not in reply, (method, reply["error"])
        return reply["result"]

    def read(self, deadline: float) -> dict[str, Any]:
        """The next message."""
        while b"\0" not in self.rest:
            ready, _, _ = select.select(
                [self.incoming], [], [], max(0, deadline - time.monotonic())
            )
            data = os.read(self.incoming, 1 << 20) if ready else b""
            assert data, f"nothing from the browser; exit code {self.process.poll()}"
            self.rest += data
        line, _, self.rest = self.rest.partition(b"\0")
        return dict(json.loads(line))

    def page(self, width: int = DESKTOP, dark: bool = False) -> Page:
        """A new page that shares nothing with others; what it asks for and says is recorded."""
        context = self.call("Target.createBrowserContext")
        target = self.call("Target.createTarget", url="about:blank", **context)["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        return Page(self, attached["sessionId"], width, dark)

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *exception: object) -> None:
        os.close(self.outgoing)  # that ends it
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(PATIENCE)
        os.close(self.incoming)
        self.profile.cleanup()


class Page:
    """A page of a certain width and colour scheme."""

    def __init__(self, browser: Browser, session: str, width: int, dark: bool) -> None:
        self.browser, self.session = browser, session
        self.requests: list[str] = []
        self.complaints: list[str] = []
        browser.pages[session] = self
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.look(width, dark)

    def look(self, width: int, dark: bool) -> None:
        """Change the width and the colours that the person prefers."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def call(self, method: str, **params: Any) -> Any:
        return self.browser.call(method, self.session, **params)

    def hear(self, method: str, params: dict[str, Any]) -> None:
        """Note requests, errors and warnings."""
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(params["exceptionDetails"])[:500])
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.complaints.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
            self.complaints.append(json.dumps(params["args"])[:500])

    def go(self, url: str) -> None:
        """Open an address and wait until it is loaded and drawn."""
        self.requests.clear()
        self.complaints.clear()
        self.call("Page.navigate", url=url)
        self.until(f"document.readyState === 'complete' && location.href === {json.dumps(url)}")
        self.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def value(self, expression: str) -> Any:
        """What a JavaScript expression gives; a promise is awaited."""
        options = {"returnByValue": True, "awaitPromise": True}
        found = self.call("Runtime.evaluate", expression=expression, **options)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def until(self, condition: str) -> Any:
        """Poll until an expression is true; returns its value."""
        deadline = time.monotonic() + PATIENCE
        while not (value := self.value(condition)):
            assert time.monotonic() < deadline, f"waited in vain: {condition}"
            time.sleep(0.02)
        return value

    def type(self, text: str) -> None:
        """Press the keys of a text, so that scripts hear of each."""
        for char in text:
            for kind in ("keyDown", "keyUp"):
                more = {"text": char} if kind == "keyDown" else {}
                self.call("Input.dispatchKeyEvent", type=kind, key=char, **more)

    def screenshot(self, path: Path) -> None:
        """The whole page as a PNG."""
        found = self.call("Page.captureScreenshot", captureBeyondViewport=True, format="png")
        path.write_bytes(base64.b64decode(found["data"]))


class Quiet(SimpleHTTPRequestHandler):
    """Serves files and says nothing about it."""

    instead: Path | None = None

    def translate_path(self, path: str) -> str:
        """The file of a path; for the search's index another one, if there is one."""
        wants_index = path.endswith("/search_index.json")
        return str(self.instead) if self.instead and wants_index else super().translate_path(path)

    def log_message(self, *arguments: object) -> None:
        pass


@contextmanager
def served(folder: Path, index: Path | None = None) -> Iterator[str]:
    """The address of a folder on a free loopback port.

    Every page of the site reads the whole index of the search, which takes the most time of all:
    a test that does not search may give another `index`.
    """
    kind = type("Serving", (Quiet,), {"instead": index})
    handler = partial(kind, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()
