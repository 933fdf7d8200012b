"""A web server in a thread of the notebook: a handler of `http.server`, or an ASGI app."""

from __future__ import annotations

import socket
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from .setup import Missing, until

Address = tuple[str, int]


def serving(target: Any) -> Address:
    """Serve on a free port of this machine until the notebook ends; the address."""
    if isinstance(target, type) and issubclass(target, BaseHTTPRequestHandler):
        server = ThreadingHTTPServer(("127.0.0.1", 0), target)
        Thread(target=server.serve_forever, daemon=True).start()
        return "127.0.0.1", server.server_port
    return asgi(target)


def asgi(app: Any) -> Address:
    """Serve an ASGI app with uvicorn."""
    try:
        import uvicorn
    except ImportError:
        raise Missing("This part needs uvicorn: pip install uvicorn, and run it again.") from None
    listener = socket.create_server(("127.0.0.1", 0))
    runner = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off", ws="none"))
    Thread(target=runner.run, args=([listener],), daemon=True).start()
    until(lambda: runner.started)
    return "127.0.0.1", listener.getsockname()[1]
