"""Make `mkdocs serve` quick: what is made of the same things is not made again.

Only while serving, where mkdocs would build everything after each change. A page is kept as it was
rendered, and as it looked in the theme, for as long as its text is the same and everything that it
reads while it is built: the files behind its tables, and the code if it runs some. The experiments
are not measured again because the package changed, only if they did.

The log says which pages were rendered. It is the last of the hooks, so that it sees what the others
have done.
"""

from __future__ import annotations

import logging
import re
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemBytecodeCache, Template
from mkdocs.commands import serve
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.livereload import LiveReloadServer
from mkdocs.plugins import event_priority
from mkdocs.structure.files import Files
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page
from mkdocs.theme import Theme

sys.path.insert(0, str(Path(__file__).parent))
from facts import read_by, stamp

log = logging.getLogger("mkdocs.hooks.again")
RUNS = re.compile(r'^ *`{3,}.*exec="|^::: |^<!-- playground -->', re.M)
MARK = re.compile(r"^<!-- generated: (\S+) -->$", re.M)
CODE = ("minimcp/*.py", "notebooks/teach/*.py", "site/assets/playground/*.py")
SPIKES = ("site/spikes/*",)
RENDERED = ("content", "toc", "present_anchor_ids", "_title_from_render", "meta")


class Kept(NamedTuple):
    """A page as it was rendered: of what, what it became, and what the search knows of it."""

    made_of: Any
    seen: dict[str, Any]
    entries: list[Any]


serving = False
kept: dict[str, Kept] = {}
whole: dict[str, tuple[Any, Any, str]] = {}  # page -> its content, all titles, and its HTML
rendered: list[str] = []  # in this build
late: list[str] = []  # put off until the next build
environments: dict[tuple[str, ...], Environment] = {}
links: list[Any] = []  # the navigation of this build
titles: list[Any] = [None, None]  # as they were in the last build, and as they are in this one
templates = tempfile.TemporaryDirectory()  # those of the reference, compiled
compiled = FileSystemBytecodeCache(templates.name)
bell = tempfile.TemporaryDirectory()  # a change in it starts another build


def on_startup(command: str, dirty: bool) -> None:
    global serving
    serving = command == "serve"
    if serving:  # look more often than by default, whether a file has changed
        vars(serve)["LiveReloadServer"] = partial(LiveReloadServer, polling_interval=0.2)


# ## What is kept between builds


@event_priority(100)  # others use the theme when it is their turn
def on_config(config: MkDocsConfig) -> None:
    """Compile the theme's templates once, and look for its files once."""
    theme = config.theme
    if serving:
        theme.get_env = partial(environment, theme, theme.get_env)  # type: ignore[method-assign]


def environment(theme: Theme, make: Callable[[], Environment]) -> Environment:
    key = tuple(theme.dirs)
    if key not in environments:
        env = environments[key] = make()
        loader: Any = env.loader
        listed = [name for name in loader.list_templates() if not name.startswith(".")]
        loader.list_templates = lambda: listed  # without 14,000 icons, which are no pages
    return environments[key]


def on_serve(server: LiveReloadServer, config: MkDocsConfig, builder: Any) -> LiveReloadServer:
    server.watch(bell.name)
    return server


def on_pre_build(config: MkDocsConfig) -> None:
    reference: Any = config.plugins["mkdocstrings"]
    reference.get_handler("python").env.bytecode_cache = compiled
    rendered.clear()
    late.clear()


def made_of(page: Page, files: Files) -> Any:
    """All that decides how a page is rendered."""
    text = page.file.content_string
    read = [*map(read_by, MARK.findall(text))]
    if RUNS.search(text):
        read.append(SPIKES if page.file.src_uri.startswith("spikes/") else CODE)
    return text, [*files.src_uris], [stamp(*names) for names in read]


def same(page: Page) -> Kept | None:
    """What the page was, if it is made of the same."""
    found = kept.get(page.file.src_uri) if serving else None
    return found if found and found.made_of == page.made_of else None


# ## A page


def on_pre_page(page: Page, config: MkDocsConfig, files: Files) -> Page:
    """A page that is kept is neither read nor rendered."""
    page.made_of = made_of(page, files)
    if found := same(page):
        unread = {**found.seen["meta"], "search": {"exclude": True}}  # it knows the page
        page.read_source = lambda config: vars(page).update(markdown="", meta=unread)
        page.render = lambda config, files: vars(page).update(found.seen, meta=unread)
    else:
        rendered.append(page.file.src_uri)
    return page


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Keep what was rendered."""
    if serving and page.file.src_uri in rendered:
        seen = {name: getattr(page, name) for name in RENDERED}
        kept[page.file.src_uri] = Kept(page.made_of, seen, [])
    return html


def on_page_context(context: Any, page: Page, config: MkDocsConfig, nav: Navigation) -> Any:
    """Let the search have what it had, or remember what it has found."""
    if not serving:
        return context
    entries, known = config.plugins["material/search"].search_index.entries, kept[page.file.src_uri]
    page.meta = known.seen["meta"]
    if page.file.src_uri in rendered:
        here = takewhile(lambda one: one["location"].split("#")[0] == page.url, reversed(entries))
        known.entries[:] = [*here][::-1]
    else:
        entries += known.entries
    return context


# ## A page in the theme
#
# A page with the same content and the same navigation looks the same. If a title has changed, which
# stands in the navigation of all pages, its own page is shown first, and the others follow.


def on_nav(nav: Navigation, config: MkDocsConfig, files: Files) -> Navigation:
    links[:] = nav.pages
    return nav


def on_env(env: Environment, config: MkDocsConfig, files: Files) -> Any:
    titles[:] = titles[1], [(page.url, page.title) for page in links]
    return Remembering(env) if serving else env


class Remembering:
    """The environment, as far as a build uses it, whose templates remember pages."""

    def __init__(self, env: Environment) -> None:
        self.env = env

    def __getattr__(self, name: str) -> Any:
        return getattr(self.env, name)

    def get_template(self, name: str) -> Any:
        return Remembered(self.env.get_template(name))


class Remembered(NamedTuple):
    template: Template

    def render(self, context: Any) -> str:
        if (page := context["page"]) is None:
            return self.template.render(context)
        uri, key, (before, now) = page.file.src_uri, (page.made_of, page.content), titles
        known, seen, html = whole.get(uri, (None, None, ""))
        if known == key and seen == now:
            return html
        if known == key and before != now:
            late.append(uri)
            return html
        whole[uri] = key, now, self.template.render(context)
        return whole[uri][-1]


def on_post_build(config: MkDocsConfig) -> None:
    """Say what was done, and ring if there is more to do."""
    if serving:
        log.info("Rendered: %s", ", ".join(rendered) or "nothing")
    if serving and late:
        log.info("To follow: %s", ", ".join(late))
        Path(bell.name, "ring").write_text(str(time.monotonic()), encoding="utf-8")
