"""How the notebooks are run: used by `test_notebooks.py`, and by `refresh.py`, which stores it.

A run is deterministic: no time stamps, no Python version, cell ids made from the number of the
notebook, and streams that arrive in pieces put together.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
from nbclient import NotebookClient
from traitlets.config import Config

Notebook = Any
ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("[0-9][0-9]_*.ipynb"))

# The first code cell of every notebook. It works from the folder, from the root of the repository,
# and from anywhere else once it is told where to get the repository.
FIRST_CELL = """
import subprocess
import sys
from pathlib import Path

REPOSITORY = ""  # opened alone, as on Colab? Put here the address to `git clone`.

here = Path.cwd()
copy = here / "minimcp-repository"
if REPOSITORY and not copy.exists():
    subprocess.run(["git", "clone", "--quiet", "--depth=1", REPOSITORY, copy], check=True)
    pip = [sys.executable, "-m", "pip", "install", "-qq", "jsonschema", "regex", "uvicorn"]
    subprocess.run(pip, check=True)
for place in (here, *here.parents, copy):
    if (place / "notebooks" / "teach").is_dir():
        sys.path.insert(0, str(place / "notebooks"))
        break
else:
    raise SystemExit("This notebook needs the repository around it; set REPOSITORY above.")

import teach

teach.ready()
""".strip()


def run(path: Path, change: Callable[[Notebook], None] = lambda notebook: None) -> Notebook:
    """Run a notebook in a kernel of its own; `change` may alter the cells before."""
    notebook = nbformat.read(path, as_version=4)
    change(notebook)
    for cell in code_cells(notebook):
        cell.outputs, cell.execution_count = [], None
    started = time.monotonic()
    resources = {"metadata": {"path": str(path.parent)}}
    with TemporaryDirectory() as folder:
        options = {"timeout": 60, "record_timing": False, "config": wire(folder)}
        client = NotebookClient(notebook, resources=resources, **options)
        asyncio.run(client.async_execute())  # execute() would leave its event loop open
    notebook.seconds = time.monotonic() - started
    return notebook


def wire(folder: str) -> Config:
    """A kernel on sockets in a folder: free ports that it is told may be taken when it starts."""
    sockets = {"transport": "ipc", "ip": f"{folder}/kernel"}
    return Config({"KernelManager": sockets} if hasattr(socket, "AF_UNIX") else {})


def code_cells(notebook: Notebook) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def tidy(notebook: Notebook, path: Path) -> None:
    """Leave nothing in a notebook that depends on when and where it was run."""
    notebook.pop("seconds", None)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook.metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    for number, cell in enumerate(notebook.cells):
        cell.id = f"{path.stem[:2]}-{number:02}"
        cell.metadata = {"tags": tags} if (tags := cell.metadata.get("tags")) else {}
    for count, cell in enumerate(code_cells(notebook), 1):
        cell.execution_count = count if cell.outputs or cell.execution_count else None
        cell.outputs = joined(cell.outputs)
        for output in cell.outputs:
            if "execution_count" in output:
                output["execution_count"] = count


def joined(outputs: list[Any]) -> list[Any]:
    """Outputs in which what one stream said in pieces is one piece."""
    result: list[Any] = []
    for output in outputs:
        same = result and output.output_type == "stream" == result[-1].output_type
        if same and output.name == result[-1].name:
            result[-1] = type(output)({**result[-1], "text": result[-1].text + output.text})
        else:
            result.append(output)
    return result


def shown(cell: Any) -> list[Any]:
    """What a code cell shows, without what may differ from run to run."""
    drop = ("execution_count", "metadata", "transient")
    kept = []
    for output in joined(cell.outputs):
        kept.append({key: one for key, one in output.items() if key not in drop})
    return kept
