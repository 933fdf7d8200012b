"""Make `mkdocs serve` quick: a page whose text is what it was is not rendered again.

Only while serving, and never for long: what a page runs may depend on the code, so a page with
blocks that run, or with a reference, is kept only as long as no file of the code changes. It is
the last of the hooks, so the text that it sees is what will be rendered.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).parent))
from facts import ROOT

RUNS = re.compile(r'^ *`{3,}.*exec="|^::: ', re.M)
CODE = ("minimcp/*.py", "examples/*", "notebooks/teach/*.py", "site/spikes/*.py")
serving = False
kept: dict[str, tuple[Any, Any]] = {}  # page -> what it was made of, and what it became


def on_startup(command: str, dirty: bool) -> None:
    global serving
    serving = command == "serve"


def made_of(markdown: str) -> Any:
    """All that decides how a page looks."""
    files = sorted(path for pattern in CODE for path in ROOT.glob(pattern))
    times = [path.stat().st_mtime_ns for path in files] if RUNS.search(markdown) else []
    return markdown, times


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Nothing to render, if it was rendered before."""
    page.made_of = made_of(markdown)
    found = kept.get(page.file.src_uri)
    return "" if serving and found and found[0] == page.made_of else markdown


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """What it was rendered to, now or before."""
    found = kept.get(page.file.src_uri)
    if serving and found and found[0] == page.made_of:
        html, page.toc, page.present_anchor_ids, page._title_from_render = found[1]
    seen = html, page.toc, page.present_anchor_ids, page._title_from_render
    kept[page.file.src_uri] = page.made_of, seen
    return html
