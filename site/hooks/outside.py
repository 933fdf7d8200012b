"""Pages that live elsewhere in the repository: decisions, notebooks and source files.

One set of relative links is right in the repository and in the site. A link to a page leads to
that page; a link to any other file leads to that file as a page (`weave`); a link to a folder
leads to the page about it. A dead link is left alone, and mkdocs reports it. Every ADR that is
named in prose becomes a link too.
"""

from __future__ import annotations

import json
import posixpath
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).parent))
from facts import ROOT, adrs, examples, notebooks, reading_order, spikes, stamp
from weave import fence, pieces, weave

LINK = re.compile(r"(\]\()(?![a-z]+:|#|/)([^)\s#]+)")
ADR = re.compile(r"(?<![\w`\[/-])ADR-(\d{4})(?![\w\]])")
FOLDERS = {"adr": "decisions.md", "notebooks": "learn.md", "examples": "examples.md"}
FOLDERS |= {"minimcp": "source.md", "tests": "conformance.md", "site/spikes": "evidence.md"}

homes: dict[str, str] = {}  # page -> the file of the repository that it shows
pages: dict[str, str] = {}  # and the other way round
decisions: dict[str, str] = {}  # number -> page


# ## Which pages there are


imported: list[object] = []  # the code as it was when blocks were run last


def on_pre_build(config: MkDocsConfig) -> None:
    """Forget code that has changed, so that `mkdocs serve` runs the blocks against the new one."""
    now = stamp("minimcp/*.py", "notebooks/teach/*.py", "site/spikes/*.py")
    if imported == [now]:
        return
    imported[:] = [now]
    for name in [*sys.modules]:
        if name.partition(".")[0] in ("minimcp", "teach", "lab"):
            del sys.modules[name]


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put what was found in the place of the stars in the navigation; it may be nothing."""
    found = {
        "minimcp/*": [{path.name: page_of(path)} for path in reading_order()],
        "examples/*": [{path.name: page_of(path)} for path in examples()],
        "notebooks/*": [page_of(path) for path in notebooks()],
        "adr/*": [page_of(path) for path in adrs()],
        "spikes/*": [page_of(path) for path in spikes()],
    }
    for star in ("threat-model*", "faults*"):
        found[star] = [page_of(path) for path in (ROOT / "site").glob(f"{star}.md")]
    config.nav = expand(config.nav, found)
    return config


def expand(nav: Any, found: dict[str, list[Any]]) -> Any:
    """The navigation with every star replaced."""
    if isinstance(nav, dict):
        return {title: expand(below, found) for title, below in nav.items()}
    if isinstance(nav, list):
        parts = [found.get(one, [one]) if isinstance(one, str) else [one] for one in nav]
        return [expand(one, found) for part in parts for one in part]
    return nav


def page_of(path: Path) -> str:
    """The page that shows a file of the repository."""
    name = path.relative_to(ROOT).as_posix()
    if name.startswith("site/") and path.suffix == ".md":
        return name.removeprefix("site/")
    if path.suffix == ".ipynb":
        return name.removesuffix(".ipynb") + ".md"
    return name if name.startswith("adr/") else f"{name}.md"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from outside, and those that some page links to."""
    homes.clear()
    pages.clear()
    decisions.clear()
    decisions.update({path.name[:4]: page_of(path) for path in adrs()})
    texts = []
    for file in files.documentation_pages():
        remember(file.src_uri, f"site/{file.src_uri}")
        texts.append((f"site/{file.src_uri}", file.content_string))
    todo = [path for find in (reading_order, examples, notebooks, adrs) for path in find()]
    while todo or texts:
        for path in todo:
            texts.append(add(files, config, path))
        todo = sorted({path for home, text in texts for path in linked(home, text)})
        texts = []
    return files


def remember(uri: str, home: str) -> None:
    homes[uri], pages[home] = home, uri


def add(files: Files, config: MkDocsConfig, path: Path) -> tuple[str, str]:
    """Add the page of a file; returns the file's name and the page's Markdown."""
    uri, home = page_of(path), path.relative_to(ROOT).as_posix()
    remember(uri, home)
    if uri == home:
        files.append(File(uri, str(ROOT), config.site_dir, config.use_directory_urls))
        return home, path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":  # it can be downloaded, too
        files.append(File(home, str(ROOT), config.site_dir, config.use_directory_urls))
    text = shown_as(path, home, path.stat().st_mtime_ns)
    inclusion = InclusionLevel.INCLUDED
    if path not in {*reading_order(), *examples(), *notebooks()}:
        inclusion, text = InclusionLevel.NOT_IN_NAV, unsearched(text)
    files.append(File.generated(config, uri, content=text, inclusion=inclusion))
    return home, text


@cache
def shown_as(path: Path, home: str, changed: int) -> str:
    return notebook_page(path) if path.suffix == ".ipynb" else weave(path, home)


def unsearched(text: str) -> str:
    """A page that a search does not find: it stands behind others."""
    told = "search: {exclude: true}\n"
    return f"---\n{told}{text[4:]}" if text.startswith("---\n") else f"---\n{told}---\n\n{text}"


def linked(home: str, text: str) -> Iterator[Path]:
    """Files of the repository that a text links to and that have no page yet."""
    for is_code, piece in pieces(text):
        for match in () if is_code else LINK.finditer(piece):
            target = posixpath.normpath(posixpath.join(posixpath.dirname(home), match[2]))
            inside = not target.startswith(("..", "README")) and not target.endswith(".md")
            if inside and target not in pages and (ROOT / target).is_file():
                yield ROOT / target


# ## Links


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links that are right in the repository into links that are right in the site."""
    if not markdown:  # it was rendered before
        return markdown
    home = homes.get(page.file.src_uri, f"site/{page.file.src_uri}")
    here = posixpath.dirname(page.file.src_uri) or "."

    def link(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(home), match[2]))
        uri = pages.get(target) or FOLDERS.get(target)
        if uri is None and files.get_file_from_path(target.removeprefix("site/")):
            uri = target.removeprefix("site/")
        return match[1] + posixpath.relpath(uri, here) if uri else match[0]

    def decision(match: re.Match[str]) -> str:
        uri = decisions.get(match[1])
        return f"[{match[0]}]({posixpath.relpath(uri, here)})" if uri else match[0]

    turned = (piece if is_code else LINK.sub(link, piece) for is_code, piece in pieces(markdown))
    whole = "".join(turned)
    if home.startswith("adr/"):
        return whole  # they link where they mean it
    return "".join(p if is_code else ADR.sub(decision, p) for is_code, p in pieces(whole))


# ## Notebooks


def notebook_page(path: Path) -> str:
    """A notebook with its stored outputs, as Markdown."""
    parts = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
        elif cell["cell_type"] == "code":
            parts.append(fence(source, "python"))
            parts += [shown(output) for output in cell["outputs"]]
    parts.append(f"[Download this notebook]({path.name}){{ .md-button download }}")
    return "\n\n".join(parts) + "\n"


def shown(output: dict[str, Any]) -> str:
    """One output: a picture, Markdown, or text as it was printed."""
    data = output.get("data", {})
    if "image/svg+xml" in data:
        return f'<div class="picture">{"".join(data["image/svg+xml"])}</div>'
    if "text/markdown" in data:
        return "".join(data["text/markdown"])
    text = output.get("text") or data.get("text/plain") or output.get("traceback", [])
    plain = re.sub(r"\x1b\[[0-9;]*m", "", "".join(text))
    return '<div class="result" markdown="1">\n\n' + fence(plain, "text") + "\n\n</div>"
