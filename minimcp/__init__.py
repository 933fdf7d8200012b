"""minimcp: the Model Context Protocol, small enough to read in one sitting.

The names below are imported when they are first used, so that a server starts without the
client and without HTTP.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .cli import run
    from .client import Client
    from .context import Context
    from .hints import Content
    from .mrtr import InputRequired
    from .protocol import ProtocolError, ToolError
    from .server import Server

HOMES = {
    "Server": "server",
    "Client": "client",
    "Context": "context",
    "Content": "hints",
    "ToolError": "protocol",
    "ProtocolError": "protocol",
    "InputRequired": "mrtr",
    "run": "cli",
}
__all__ = [
    "Client",
    "Content",
    "Context",
    "InputRequired",
    "ProtocolError",
    "Server",
    "ToolError",
    "run",
]


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"minimcp has no {name!r}; it has {', '.join(HOMES)}")
    return getattr(import_module(f".{HOMES[name]}", __name__), name)
