"""The built site is good to use: nothing from elsewhere, readable at every width, searchable.

Every page is opened in a headless Chromium, as a phone and as a desktop see it, light and dark.
"""

import json
import os
import re
import subprocess
import sys
from contextlib import contextmanager
from functools import cache
from importlib import util
from urllib.request import urlopen

import pytest
from support import free_port, until
from support_browser import DESKTOP, PHONE, Browser, served
from support_docs import built, site, small_tree
from support_skips import need

pytestmark = pytest.mark.timeout(300)  # whoever needs the site first, builds it
RESOURCE = re.compile(
    r"""<(?:script|img|iframe|source|video|audio|embed|object)\b[^>]*\b(?:src|data)="?(?:https?:|//)"""
    r"""|<link\b[^>]*\brel="?(?:stylesheet|preconnect|preload|icon|dns-prefetch)[^>]*\bhref="?(?:https?:|//)"""
    r"""|<\w[^<>]*\bdata-md-component="source\""""
)
LOOKS = [(width, dark) for width in (DESKTOP, PHONE) for dark in (False, True)]


@cache
def names():
    """The pages, as their addresses end."""
    folder = site().folder
    return sorted(path.relative_to(folder).as_posix() for path in built())


def test_no_page_loads_anything_from_elsewhere():
    """A link may lead away; a script, a picture or a style may not come from there."""
    found = {
        path.name: match[0] for path in built() for match in RESOURCE.finditer(path.read_text())
    }
    assert found == {}
    styles = [
        path
        for path in site().folder.rglob("*.css")
        if re.search(r"url\([\"']?https?:", path.read_text())
    ]
    assert styles == []


def test_the_pages_of_every_folder_are_there():
    for folder in ("minimcp", "adr", "notebooks", "examples"):
        assert [name for name in names() if name.startswith(f"{folder}/")], folder


@pytest.fixture(scope="module")
def browser():
    with Browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def page(browser):
    """One page for all tests, since a new one is a new window."""
    return browser.page()


@pytest.fixture(scope="module")
def address():
    assert built()
    with served(site().folder) as address:
        yield address


@pytest.fixture(scope="module")
def unsearched(tmp_path_factory):
    """The site where the search has hardly anything to find."""
    assert built()
    whole = json.loads((site().folder / "search" / "search_index.json").read_text("utf-8"))
    index = tmp_path_factory.mktemp("index") / "index.json"
    index.write_text(json.dumps({**whole, "docs": whole["docs"][:1]}), encoding="utf-8")
    with served(site().folder, index) as address:
        yield address


# What a person would trip over, asked of each page in its own words.

ASKED = """(() => {
  const said = [], add = (what, node) => said.push(what + ': ' + node.outerHTML.slice(0, 160));
  const seen = node => node.getClientRects().length > 0;
  const all = selector => [...document.querySelectorAll(selector)];
  if (!document.documentElement.lang) said.push('no language');
  if (!document.title) said.push('no title');
  if (all('h1').length !== 1) said.push(all('h1').length + ' first headings');
  for (const landmark of ['header', 'nav', 'main', 'footer'])
    if (!document.querySelector(landmark)) said.push('no ' + landmark);
  if (!document.querySelector('a.md-skip') && !location.pathname.endsWith('/404.html'))
    said.push('no link that skips to the content');
  for (const image of all('img')) if (!image.alt) add('no alternative text', image);
  for (const svg of all('main svg')) {
    const named = svg.getAttribute('aria-label') || svg.querySelector(':scope > title');
    const told = '[aria-hidden=true], a, button, label, [title]';  // by what is around it
    if (!named && !svg.closest(told)) add('no name', svg);
  }
  for (const control of all('a[href], button, input, select, textarea')) {
    const named = control.textContent.trim() || control.title || control.ariaLabel ||
      control.labels?.length || control.placeholder || control.querySelector('[aria-label], title');
    if (seen(control) && !named) add('no name', control);
  }
  for (const image of all('main pre, main table, main svg'))
    if (image.getBoundingClientRect().width > innerWidth && !image.closest(
        '.md-typeset__scrollwrap, .highlight, .picture, code')) add('too wide', image);
  const words = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
  for (let text; text = words.nextNode();)
    if (/```|^:::|<!--/.test(text.data) && !text.parentElement.closest('pre, code, script, style'))
      add('Markdown that was not understood', text.parentElement);
  let last = 0;
  for (const heading of all('main h1, main h2, main h3, main h4, main h5')) {
    const level = Number(heading.tagName[1]);
    if (level > last + 1) add('a level left out', heading);
    last = level;
  }
  return said;
})()"""

# The contrast of text with what is behind it, as WCAG 2 has it: 4.5, or 3 for large text.

CONTRAST = """(() => {
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const memo = (known, make) => key => known.get(key) ?? known.set(key, make(key)).get(key);
  const rgba = memo(new Map(), text => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = text; canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data; return [r, g, b, a / 255];
  });
  const over = (top, below) =>
    [0, 1, 2].map(i => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
  const linear = part => (part /= 255) <= .03928 ? part / 12.92 : ((part + .055) / 1.055) ** 2.4;
  const light = color => {
    const [r, g, b] = color.map(linear);
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const behind = memo(new Map(), node => {
    if (!node) return [255, 255, 255, 1];
    return over(rgba(getComputedStyle(node).backgroundColor), behind(node.parentElement));
  });
  const solid = memo(new Map(), node =>
    node ? getComputedStyle(node).opacity * solid(node.parentElement) : 1);
  const weak = new Map(), done = new Set();
  const walk = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
  for (let text; text = walk.nextNode();) {
    const node = text.parentElement, parent = node.parentElement;
    const look = one => [one.tagName, one.className, one.getAttribute('style') ?? ''].join(' ');
    const kind = look(node) + ' in ' + look(parent);
    if (!text.data.trim() || done.has(kind)) continue;
    if (!node.checkVisibility({opacityProperty: true, visibilityProperty: true})) continue;
    const style = getComputedStyle(node);
    if (node.closest('[hidden], .md-clipboard, .headerlink, svg')) continue;
    done.add(kind);
    const ground = behind(node), [r, g, b, a] = rgba(style.color);
    const ink = over([r, g, b, a * solid(node)], ground);
    const [high, low] = [light(ink), light(ground)].sort((x, y) => y - x);
    const ratio = (high + .05) / (low + .05), size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    if (ratio < (large ? 3 : 4.5))
      weak.set(kind + ' ' + style.color,
               ratio.toFixed(2) + ' ' + text.data.trim().slice(0, 40));
  }
  return [...weak].map(([where, what]) => where + ': ' + what);
})()"""


SHARES = 4  # the pages are dealt out, so that no test takes very long


@pytest.mark.parametrize("share", range(SHARES))
def test_every_page_is_whole_quiet_and_fits(page, unsearched, share):
    """No request to elsewhere, no complaint, no sideways scroll, landmarks, names and contrast."""
    address = unsearched
    wrong: dict[str, list[str]] = {}  # what is wrong -> where
    for name in names()[share::SHARES]:
        page.look(DESKTOP, dark=False)
        page.go(f"{address}/{name}")
        for width, dark in LOOKS:
            page.look(width, dark)
            scheme = "slate" if dark else "default"
            page.until(f"document.body.dataset.mdColorScheme === '{scheme}'")
            found = []
            if (width == PHONE) == dark:  # both widths, both schemes; neither depends on the other
                found = [*page.value(ASKED), *page.value(CONTRAST)]
            if page.value("document.documentElement.scrollWidth > innerWidth"):
                found.append("it scrolls sideways")
            for what in found:
                wrong.setdefault(what, []).append(f"{name} {width} {scheme}")
        outside = [url for url in page.requests if not url.startswith((address, "data:", "blob:"))]
        for what in (*outside, *page.complaints):
            wrong.setdefault(what, []).append(name)
    assert {what: (len(where), where[0]) for what, where in wrong.items()} == {}


@pytest.mark.parametrize("words", ["tools/call", "-32602", "isError"])
@pytest.mark.parametrize("width", [DESKTOP, PHONE])
def test_the_search_finds_what_a_reader_types(page, address, words, width):
    page.look(width, dark=False)
    page.go(f"{address}/index.html")
    if width == PHONE:
        page.value("document.querySelector('label[for=__search]').click()")
    page.value("document.querySelector('input.md-search__input').focus()")
    page.type(words)
    found = "[...document.querySelectorAll('.md-search-result__item')]"
    page.until(f"{found}.some(one => one.textContent.includes({json.dumps(words)}))")
    assert page.complaints == []


def test_the_first_stop_of_the_keyboard_skips_to_the_content(page, address):
    page.look(DESKTOP, dark=False)
    page.go(f"{address}/index.html")
    key = {"key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9}
    page.call("Input.dispatchKeyEvent", type="keyDown", **key)
    assert page.value("document.activeElement.matches('a.md-skip')")


# `mkdocs serve`, for whoever writes: a change is seen without doing anything, and soon. How soon
# depends on the machine, and is measured by record_site.py; what has to be rendered does not.

WRITTEN = ("index", "roads", "source", "reference")
TREE = [*(f"site/{name}.md" for name in WRITTEN), "minimcp", "adr", "notebooks"]
DECISION, NOTEBOOK = "adr/0001-one-line-in-one-line-out", "notebooks/01_a_line_in_a_line_out"
EDITS = {  # what is edited -> before which words, where it is seen, what else is made, what follows
    "site/roads.md": ("Most of these", ["roads"], [], []),
    f"{DECISION}.md": ("A server has to run", [DECISION], [], []),
    f"{NOTEBOOK}.ipynb": ("Understand what travels", [NOTEBOOK], [], []),
    "site/index.md": ("Where is the model", ["index"], [], []),
    "site/source.md": ("Read the source in one sitting", ["source"], [], ["nothing"]),
    "minimcp/server.py": (
        "Tools, and the two",  # the page about the source shows its first line
        ["minimcp/server.py", "reference"],
        ["source", "index", "adr/0012-the-pages-are-counted"],
        [],
    ),
}


@contextmanager
def serving(config):
    """`mkdocs serve`: its address, a function that says what it has logged, and the process."""
    port = free_port()
    env = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(config.parent)}
    command = [sys.executable, "-m", "mkdocs", "serve", "--dev-addr", f"127.0.0.1:{port}"]
    log = config.with_name("log")
    with log.open("w") as said:
        process = subprocess.Popen(
            command, cwd=config.parent, env=env, stdout=said, stderr=said, text=True
        )
    try:
        yield f"http://127.0.0.1:{port}", lambda: log.read_text(encoding="utf-8"), process
    finally:
        process.terminate()
        process.wait(30)


def fetched(url):
    try:
        with urlopen(url, timeout=30) as response:
            return response.read().decode()
    except OSError:
        return ""


def rendered(log):
    """The pages that each build had to render, in their order."""
    lines = re.findall(r"^INFO    -  Rendered: (.*)$", log, re.M)
    return [{page.removesuffix(".md") for page in line.split(", ")} for line in lines]


def test_what_is_written_is_shown_anew_and_nothing_else_is_made_again(tmp_path):
    need(util.find_spec("mkdocs"), "no mkdocs here: pip install -e '.[docs]'")
    with serving(small_tree(tmp_path, *TREE)) as (address, log, _):
        until(lambda: fetched(f"{address}/index.html"), timeout=120)
        for name, (words, seen, also, then) in EDITS.items():
            before = len(rendered(log()))
            edit(tmp_path / name, words)
            builds = [set(pages) for pages in (seen + also, then) if pages]
            many = before + len(builds)
            until(lambda many=many: len(rendered(log())) >= many, timeout=120, what=name)
            assert rendered(log())[before:] == builds
            for page in seen:
                shown = fetched(f"{address}/{page}.html")
                assert f"EDITED {words}" in shown
        assert "EDITED Read the source" in fetched(f"{address}/roads.html")


def edit(file, words):
    """Put a word before some others, where that leaves the file what it is."""
    text = file.read_text(encoding="utf-8")
    assert words in text
    file.write_text(text.replace(words, f"EDITED {words}"), encoding="utf-8")


FETCHED = [
    '<script src="https://elsewhere.example/x.js">',
    "<script defer src=//elsewhere.example/x.js>",
    '<img alt="" src="http://elsewhere.example/x.png">',
    '<link rel="preconnect" href="https://fonts.gstatic.com" crossorigin>',
    '<link rel=stylesheet href="https://fonts.example/css?family=Roboto">',
    '<div class="md-source" data-md-component="source">',
]
NOT_FETCHED = [
    '<a href="https://elsewhere.example">',
    '<script src="assets/x.js">',
    '<link rel="canonical" href="https://elsewhere.example">',
]


def test_what_a_page_fetches_is_told_from_where_it_links():
    assert [text for text in FETCHED if not RESOURCE.search(text)] == []
    assert [text for text in NOT_FETCHED if RESOURCE.search(text)] == []


# Does the browser test notice? A page with every mistake has to be told.

BAD = """<!DOCTYPE html><html><head><title>x</title></head><body style="margin:0"><main>
<h1>One</h1><h1>Two</h1><h3>Three</h3><p>```console oops</p><img src="picture.png"><button></button>
<p style="color:#999">too pale to read</p><div style="width:3000px">wide</div>
<svg width="9" height="9"></svg><script src="http://elsewhere.example/x.js"></script>
<script>console.error("complaint")</script></main></body></html>"""


def test_a_page_with_mistakes_is_seen_through(browser, tmp_path):
    (tmp_path / "bad.html").write_text(BAD, encoding="utf-8")
    with served(tmp_path) as address:
        page = browser.page(PHONE)
        page.go(f"{address}/bad.html")
        said = "\n".join(page.value(ASKED))
        for mistake in ("no language", "2 first headings", "no header", "no footer", "no nav"):
            assert mistake in said
        for mistake in (
            "no alternative text",
            "no name: <button",
            "no name: <svg",
            "level left out",
        ):
            assert mistake in said
        assert "Markdown that was not understood" in said
        assert "too pale to read" in "\n".join(page.value(CONTRAST))
        assert page.value("document.documentElement.scrollWidth") > PHONE
        assert any("elsewhere.example" in url for url in page.requests)
        assert any("complaint" in one for one in page.complaints)
        assert RESOURCE.search(BAD)
