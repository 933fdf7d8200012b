"""Make `mkdocs serve` quick: a page whose text is what it was is not rendered again.

Only while serving, and never for long: what a page runs may depend on the code, so a page with
blocks that run, or with a reference, is kept only as long as no file of the code changes. It is
the last of the hooks, so the text that it sees is what will be rendered.
"""

from __future__ import annotations

import re
import sys
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).parent))
from facts import ROOT

RUNS = re.compile(r'^ *`{3,}.*exec="|^::: ', re.M)
CODE = ("minimcp/*.py", "examples/*.py", "notebooks/teach/*.py", "site/spikes/*.[pj]*")


class Kept(NamedTuple):
    """A page as it was rendered: from what, what it became, and what the search knows of it."""

    made_of: Any
    seen: Any
    entries: list[Any]


serving = False
kept: dict[str, Kept] = {}


def on_startup(command: str, dirty: bool) -> None:
    global serving
    serving = command == "serve"


def made_of(markdown: str) -> Any:
    """All that decides how a page looks."""
    files = sorted(path for pattern in CODE for path in ROOT.glob(pattern))
    times = [path.stat().st_mtime_ns for path in files] if RUNS.search(markdown) else []
    return markdown, times


def before(page: Page) -> Kept | None:
    """What the page was, if it is still the same."""
    found = kept.get(page.file.src_uri) if serving else None
    return found if found and found.made_of == page.made_of else None


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Nothing to render, if it was rendered before."""
    page.made_of = made_of(markdown)
    return "" if before(page) else markdown


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """What it was rendered to, now or before."""
    if found := before(page):
        html, page.toc, page.present_anchor_ids, page._title_from_render = found.seen
        page.meta["search"] = {"exclude": True}  # no need to look at it once more
    else:
        seen = html, page.toc, page.present_anchor_ids, page._title_from_render
        kept[page.file.src_uri] = Kept(page.made_of, seen, [])
    return html


def on_page_context(context: Any, page: Page, config: MkDocsConfig, nav: Any) -> Any:
    """Let the search have what it had, or remember what it has found."""
    entries, known = config.plugins["material/search"].search_index.entries, kept[page.file.src_uri]
    if serving and known.entries:
        entries += known.entries
    else:
        here = takewhile(lambda one: one["location"].split("#")[0] == page.url, reversed(entries))
        known.entries[:] = [*here][::-1]
    return context
