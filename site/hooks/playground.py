"""The playground: a page that runs the package in the reader's browser.

Python for the browser is Pyodide, from npm, pinned in tests/pyodide. If it is installed, its files
are copied into the site, and the package's files with them; if not, the page says how to get it.
A build never fetches anything.
"""

from __future__ import annotations

import importlib
import json
import sys
from html import escape
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "site" / "assets" / "playground"
PYODIDE = ROOT / "tests" / "pyodide" / "node_modules" / "pyodide"
NEEDED = "pyodide.mjs pyodide.asm.mjs pyodide.asm.wasm python_stdlib.zip pyodide-lock.json".split()
MARK = "<!-- playground -->"
OUT = "assets/playground"


def is_there() -> bool:
    return all((PYODIDE / name).exists() for name in NEEDED)


# ## What is copied


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add Pyodide, and the package as it is now."""
    if not is_there():
        return files
    included: Any = {"inclusion": InclusionLevel.INCLUDED}
    for name in NEEDED:
        source = str(PYODIDE / name)
        files.append(
            File.generated(config, f"{OUT}/pyodide/{name}", abs_src_path=source, **included)
        )
    text = json.dumps(sources())
    files.append(File.generated(config, f"{OUT}/sources.json", content=text, **included))
    return files


def sources() -> dict[str, str]:
    """The files that Python finds in the page, each with its text."""
    found = {f"minimcp/{path.name}": path for path in sorted(ROOT.glob("minimcp/*.py"))}
    found |= {path.name: path for path in (HERE / "conversation.py", diagram())}
    return {name: path.read_text(encoding="utf-8") for name, path in found.items()}


def diagram() -> Path:
    return ROOT / "notebooks" / "teach" / "diagram.py"


# ## What the page says


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Put the playground, or the way to it, in the place of the mark."""
    if page.file.src_uri != "playground.md":
        return markdown
    return markdown.replace(MARK, playground() if is_there() else WITHOUT)


WITHOUT = """\
!!! note "Python for the browser is not in this copy of the site"

    The page runs the package with [Pyodide](https://pyodide.org), which is 14 MB and so is not in
    the repository. `make site` gets it from npm, once, and serves the site with it. By hand, in the
    folder of the repository, it is this; afterwards build the site again:

        python tests/node_tools.py tests/pyodide

    Until then, the first notebook lets you talk to the server in the same way."""


def playground() -> str:
    """The page's controls, with the menu in them."""
    size = sum((PYODIDE / name).stat().st_size for name in NEEDED)
    return PAGE.format(menu=menu(), size=f"{size / 1e6:.0f} MB")


def menu() -> str:
    """The lines to try, each with the answer that it promises."""
    sys.path[:0] = [str(ROOT), str(HERE), str(diagram().parent)]
    sys.modules.pop("conversation", None)  # it may have been edited
    try:
        groups = importlib.import_module("conversation").MENU
    finally:
        del sys.path[:3]
    return "".join(
        f'<optgroup label="{escape(group)}">{"".join(map(option, entries))}</optgroup>'
        for group, entries in groups.items()
    )


def option(entry: Any) -> str:
    lines = escape(json.dumps(entry.lines))
    lesson = escape(entry.lesson)
    return f'<option data-lines="{lines}" data-lesson="{lesson}">{escape(entry.title)}</option>'


PAGE = """\
<link rel="stylesheet" href="assets/playground/playground.css">
<div id="playground">
<noscript>This page needs JavaScript.</noscript>
<label for="playground-menu">Lines to try, and what comes back</label>
<select id="playground-menu">{menu}</select>
<p id="playground-lesson"></p>
<label for="playground-lines">Your lines, one message each</label>
<textarea id="playground-lines" rows="6" spellcheck="false" autocomplete="off"
  autocapitalize="off" aria-describedby="playground-keys"></textarea>
<p id="playground-keys">Enter sends; Shift and Enter begin another line.</p>
<button id="playground-send" type="button" class="md-button md-button--primary"
  data-size="{size}">Send</button>
<button id="playground-renew" type="button" class="md-button">New connection</button>
<p id="playground-status" role="status"></p>
<div id="playground-result" hidden>
<h2>What came back</h2>
<div id="playground-answers"></div>
<h2>The conversation so far</h2>
<div id="playground-picture" class="picture"></div>
</div>
</div>
<script type="module" src="assets/playground/playground.js"></script>
"""
