"""minimcp: the Model Context Protocol, small enough to read in one sitting.

The names in `LATER` are imported when they are first used, so that a server starts without the
client, and a client without the server's binding.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .context import Context
from .hints import Content
from .protocol import ProtocolError, ToolError
from .server import Server

if TYPE_CHECKING:
    from .cli import run
    from .client import Client
    from .mrtr import InputRequired

LATER = {"Client": "client", "InputRequired": "mrtr", "run": "cli"}
__all__ = ["Content", "Context", "ProtocolError", "Server", "ToolError"]
__all__ += ["Client", "InputRequired", "run"]


def __getattr__(name: str) -> Any:
    if name not in LATER:
        raise AttributeError(f"minimcp has no {name!r}; it has {', '.join(__all__)}")
    return getattr(import_module(f".{LATER[name]}", __name__), name)
