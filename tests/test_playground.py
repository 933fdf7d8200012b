"""The playground: what its Python says of an answer, and the page in a real browser.

The Python half (`conversation.py`) is tested here as what it is, and then once more in the page:
Chromium runs it with Pyodide, and each answer is compared with the one that the package gives here.
"""

import importlib.util
import json
import sys
import tempfile
from functools import cache
from pathlib import Path

import node_tools
import pytest
from support_browser import DESKTOP, PHONE, Browser, served
from support_docs import ROOT, build, site
from support_skips import need

from minimcp import Server, demo

pytestmark = pytest.mark.timeout(300)  # whoever needs the site first, builds it
HOME = ROOT / "site" / "assets" / "playground"


@cache
def half():
    """The page's half in Python, imported as the page does it."""
    sys.path[:0] = [str(HOME), str(ROOT / "notebooks" / "teach")]
    try:
        return importlib.import_module("conversation")
    finally:
        del sys.path[:2]


@cache
def hook():
    """The part of the build that is about the playground."""
    need(importlib.util.find_spec("mkdocs"), "no mkdocs here: pip install -e '.[docs]'")
    path = ROOT / "site" / "hooks" / "playground.py"
    spec = importlib.util.spec_from_file_location("playground_hook", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def entries():
    return [entry for group in half().MENU.values() for entry in group]


def titled(label):
    return next(entry for entry in entries() if entry.label == label)


def told(*lines, server=None):
    """What is said of the last of some lines, on a connection of their own."""
    talk = half().Conversation(*([server] if server else []))
    return [talk.send(line) for line in lines][-1]


@pytest.fixture(autouse=True)
def as_it_was(monkeypatch):
    """The demo's server is everybody's: other tests find it without our handshakes."""
    monkeypatch.setattr(demo.server, "peer", demo.server.peer)
    yield
    demo.server.listeners.clear()


# ## The menu


@pytest.mark.parametrize("entry", entries(), ids=lambda entry: entry.label)
def test_a_line_of_the_menu_gets_what_it_promises(entry):
    last = told(*entry.lines)
    assert last["outcome"] == entry.promise
    assert [text for holds, text in last["checks"] if not holds] == []
    assert last["checks"] and last["stderr"] == ""


def test_the_menu_has_every_kind_of_answer():
    kinds = {"result", "isError", "notification", "no answer"}
    codes = {f"error {code}" for code in (-32700, -32600, -32601, -32602, -32022)}
    assert {entry.promise for entry in entries()} == kinds | codes


def test_the_menu_names_no_line_twice():
    titles = [entry.title for entry in entries()]
    assert len({*titles}) == len(titles)
    assert max(map(len, titles)) <= 40, "a phone shows no more"


# ## Looking at an answer


def spoiled(change):
    """A server whose lines are changed on their way out."""

    class Spoiled(Server):
        def handle_line(self, line, peer=None):
            return change(super().handle_line(line, peer))

    server = Spoiled("spoiled")

    @server.tool
    def double(a: int) -> int:
        return 2 * a

    return server


def swap(old, new):
    def change(line):
        assert old in line
        return line.replace(old, new)

    return change


WRONG = [
    (lambda line: line, []),
    (lambda line: line + "\n", ["no JSON object on one line"]),
    (lambda line: line[:-1], ["no JSON object on one line"]),
    (lambda line: "[]", ["no JSON object on one line"]),
    (lambda line: None, ["one answer"]),
    (swap('"id":1', '"id":2'), ["the id of the request, 1"]),
    (swap('"id":1', '"id":"1"'), ["the id of the request, 1"]),
    (swap('"id":1,', ""), ["answer.id: missing", "the id of the request, 1"]),
    (swap('"2.0"', '"1.0"'), ['answer.jsonrpc: expected one of ["2.0"]']),
    (swap('"id":1', '"id":1,"more":0'), ["answer.more: unknown name"]),
    (swap('"complete"', '"done"'), ["answer.result.resultType: expected one of"]),
    (swap('"content":', '"contents":'), ["answer.result.content: missing"]),
    (swap('"type":"text"', '"kind":"text"'), ["answer.result.content[0].type: missing"]),
    (swap('"structuredContent":42', '"structuredContent":43'), ["are the same value"]),
    (
        swap('"structuredContent":42', '"structuredContent":"42"'),
        ["answer: expected integer, got string", "are the same value"],
    ),
]


@pytest.mark.parametrize(("change", "complaints"), WRONG)
def test_a_wrong_answer_to_a_call_is_seen(change, complaints):
    line = half().call("double", a=21)
    checks = told(line, server=spoiled(change))["checks"]
    found = [text for holds, text in checks if not holds]
    assert len(found) == len(complaints)
    for complaint, text in zip(complaints, found, strict=True):
        assert complaint in text


PARSE = '{"jsonrpc":"2.0","error":{"code":-32700,"message":"no"}}'
RESULT = '{"jsonrpc":"2.0","id":1,"result":{}}'


@pytest.mark.parametrize(
    ("line", "reply", "complaint"),
    [
        ('{"jsonrpc":"2.0","method":"x"}', RESULT, "A notification is not answered"),
        (RESULT, RESULT, "A response is not answered"),
        ("{", PARSE.replace('"error"', '"id":null,"error"'), "has no id"),
        ("{", PARSE.replace("-32700", '"-32700"'), "answer.error.code: expected integer"),
        ("{", PARSE.replace("message", "text"), "answer.error.message: missing"),
    ],
)
def test_a_wrong_answer_to_another_line_is_seen(line, reply, complaint):
    checks = told(line, server=spoiled(lambda _: reply))["checks"]
    assert any(complaint in text for holds, text in checks if not holds), checks


def test_what_a_tool_gives_away_on_stderr_is_shown():
    server = Server("failing")

    @server.tool
    def fail() -> int:
        raise OSError("the disk is full")

    said = told(half().call("fail"), server=server)
    assert (said["outcome"], said["model"]) == ("isError", "OSError: the disk is full")
    assert "Traceback" in said["stderr"]


# ## What the page claims


def test_a_whole_number_with_a_fraction_of_zero_is_an_integer():
    [line] = titled("Add two numbers").lines
    assert told(line.replace("40", "40.0"))["outcome"] == "result"
    assert told(line.replace("40", "40.5"))["outcome"] == "isError"


def test_an_id_in_flight_cannot_be_used_again():
    [line] = titled("Listen for changes").lines
    assert told(line, half().call("calc.add", a=2, b=40))["outcome"] == "error -32600"


def test_a_call_needs_the_handshake_of_its_own_connection():
    entry = titled("A handshake, then a call")
    assert told(*entry.lines, entry.lines[-1])["outcome"] == "result"
    assert told(entry.lines[-1])["outcome"] == "error -32602"


# ## The build


def test_python_for_the_browser_is_pinned_and_its_lock_names_no_registry():
    wanted = json.loads((node_tools.PYODIDE / "package.json").read_text())["dependencies"]
    packages = json.loads((node_tools.PYODIDE / "package-lock.json").read_text())["packages"]
    assert wanted == {"pyodide": packages["node_modules/pyodide"]["version"]}
    assert [name for name, package in packages.items() if "resolved" in package] == []


def test_without_pyodide_the_page_says_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setattr(hook(), "PYODIDE", tmp_path)
    text = (ROOT / "site" / "playground.md").read_text(encoding="utf-8")

    class page:
        class file:
            src_uri = "playground.md"

    shown = hook().on_page_markdown(text, page, None, None)
    assert "make site" in shown and "tests/node_tools.py tests/pyodide" in shown
    assert "<textarea" not in shown and "<script" not in shown
    assert hook().on_files("the same files", None) == "the same files"


def test_the_page_runs_the_package_byte_for_byte():
    found = json.loads(json.dumps(hook().sources()))
    files = [*(ROOT / "minimcp").glob("*.py")]
    assert {f"minimcp/{path.name}" for path in files} == {
        name for name in found if name.startswith("minimcp/")
    }
    for path in files:
        assert found[f"minimcp/{path.name}"].encode() == path.read_bytes()


# ## In a browser


@pytest.fixture(scope="module")
def address():
    """The built site with Pyodide in it; built again if it was not there the first time."""
    node_tools.ready(node_tools.PYODIDE)
    with tempfile.TemporaryDirectory() as folder:
        home = site().folder
        if not (home / "assets" / "playground" / "pyodide").exists():
            home = Path(folder)
            build(home)
        with served(home) as address:
            yield f"{address}/playground.html"


@pytest.fixture(scope="module")
def page(address):
    """One page for all tests, since Python takes a while to start on a busy machine."""
    with Browser() as browser:
        page = browser.page()
        page.workers = watch_workers(page)
        page.go(address)
        page.early = [*page.workers.values()]  # what had started before anybody asked
        release(page)
        page.value(f"{SEND}.click()")
        set_out(page)
        page.first = page.until(OUTCOME)
        yield page


OUTCOME = "document.getElementById('playground-status').dataset.outcome"
STATUS = "document.getElementById('playground-status').textContent"
LINES = "document.getElementById('playground-lines')"
SEND = "document.getElementById('playground-send')"
SENT = "[...document.querySelectorAll('#playground-answers .sent pre')].map(one => one.textContent)"
SAID = SENT.replace(".sent", ".said")
WRONG_CHECKS = "[...document.querySelectorAll('#playground .wrong')].map(one => one.textContent)"
ENTER = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"}
TAB = {"key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9}
SHIFT = {"modifiers": 8}


def press(page, **key):
    page.call("Input.dispatchKeyEvent", type="keyDown", **key)
    page.call("Input.dispatchKeyEvent", type="keyUp", **key)


def choose(page, label):
    """Take a line of the menu and send it; what came of it."""
    number = [entry.label for entry in entries()].index(label)
    page.value(f"""{{
        const menu = document.getElementById('playground-menu');
        menu.selectedIndex = {number};
        menu.dispatchEvent(new Event('change'));
    }}""")
    page.value(f"{SEND}.click()")
    return page.until(OUTCOME)


def retype(page, text):
    page.value(f"delete {OUTCOME}, {LINES}.focus(), {LINES}.select()")
    page.type(text)


def alike(line):
    """A reply to compare: what is wrong with JSON is worded anew in every Python."""
    message = json.loads(line)
    if message.get("error", {}).get("code") == -32700:
        message["error"]["message"] = message["error"]["message"].partition(":")[0]
    return message


def watch_workers(page):
    """Stop each worker before its first request, so that none of them is missed."""
    found, hear = {}, page.hear

    def also(method, params):
        if method == "Target.attachedToTarget":
            found[params["sessionId"]] = params["targetInfo"]["url"]
            page.browser.pages[params["sessionId"]] = page
        hear(method, params)

    page.hear = also
    stop = {"autoAttach": True, "waitForDebuggerOnStart": True, "flatten": True}
    page.call("Target.setAutoAttach", **stop, filter=[{"type": "worker"}])
    return found


def release(page):
    """Let the workers run, now that what they ask for is seen."""
    while page.workers:
        session, _ = page.workers.popitem()
        page.browser.call("Network.enable", session)
        page.browser.call("Runtime.runIfWaitingForDebugger", session)


def set_out(page):
    """Let the worker that was just asked for run; the theme's may come before it, or after."""
    started = set()
    while not any(url.endswith("/worker.js") for url in started):
        page.value("'the news comes with the answer'")
        started |= {*page.workers.values()}
        release(page)


def test_python_starts_with_the_first_line_and_asks_for_nothing_from_elsewhere(page, address):
    assert not any(url.endswith("/worker.js") for url in page.early)
    assert page.first == "result"
    inside = (address.removesuffix("playground.html"), "data:")
    assert [url for url in page.requests if not url.startswith(inside)] == []
    assert any(url.endswith("/pyodide.asm.wasm") for url in page.requests)
    assert page.complaints == []


def test_the_page_answers_as_the_package_does_here(page):
    options = page.value("[...document.querySelectorAll('option')].map(one => one.textContent)")
    assert options == [entry.title for entry in entries()]
    for entry in entries():
        assert choose(page, entry.label) == entry.promise, entry.label
        assert page.value(SENT) == entry.lines
        talk = half().Conversation()
        expected = [said for line in entry.lines for said in talk.send(line)["said"]]
        assert list(map(alike, page.value(SAID))) == list(map(alike, expected)), entry.label
        assert page.value(WRONG_CHECKS) == []
        assert "All checks hold." in page.value(STATUS)
        drawn = page.value("document.querySelector('#playground svg').ariaLabel")
        assert drawn.count("-->") + drawn.count("==>") == len(entry.lines) + len(expected)
    assert page.complaints == []


def test_a_typed_line_is_answered_and_the_next_is_of_the_same_connection(page):
    page.value("document.getElementById('playground-renew').click()")
    page.value("document.getElementById('playground-menu').focus()")
    press(page, **TAB)
    assert page.value("document.activeElement.id") == "playground-lines"
    first, _, second = titled("A handshake, then a call").lines
    retype(page, first)
    press(page, **ENTER)
    assert page.until(OUTCOME) == "result"
    assert page.value("document.activeElement.id") == "playground-lines"
    retype(page, second)
    press(page, **ENTER)
    assert page.until(OUTCOME) == "result"
    assert json.loads(page.value(SAID)[0])["result"]["content"][0]["text"] == "42"
    for place in ("send", "renew"):
        press(page, **TAB)
        assert page.value("document.activeElement.id") == f"playground-{place}"
    press(page, **ENTER)
    assert "new connection" in page.value(STATUS)
    page.value(f"{SEND}.click()")
    assert page.until(OUTCOME) == "error -32602"
    assert page.complaints == []


def test_shift_and_enter_begin_another_line(page):
    retype(page, "one")
    press(page, **ENTER, **SHIFT)
    page.type("two")
    assert page.value(f"{LINES}.value") == "one\ntwo"


def test_what_a_server_says_is_shown_and_not_obeyed(page):
    """A line is text in all of its places: the answer, the checks, the drawing."""
    [line] = titled("An unknown tool").lines
    marked = "<img src=x onerror=console.error(1)>"
    page.value(f"{LINES}.value = {json.dumps(line.replace('calc.subtract', marked))}")
    page.value(f"delete {OUTCOME}, {SEND}.click()")
    assert page.until(OUTCOME) == "error -32602"
    assert marked in page.value(SAID)[0]
    assert page.value("document.querySelectorAll('#playground img').length") == 0
    assert page.complaints == []


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [DESKTOP, PHONE])
def test_an_answer_fits_and_can_be_read(page, width, dark):
    """What `test_site.py` asks of every page, asked again when there is something on this one."""
    from test_site import ASKED, CONTRAST

    page.look(width, dark)
    scheme = "slate" if dark else "default"
    page.until(f"document.body.dataset.mdColorScheme === '{scheme}'")
    for label in ("A handshake, then a call", "Three mistakes at once", "Which tools are there?"):
        choose(page, label)
        page.value("document.querySelectorAll('details').forEach(one => one.open = true)")
        page.until("document.getAnimations().every(one => one.playState !== 'running')")
        assert page.value("document.documentElement.scrollWidth - innerWidth") <= 0
        assert [*page.value(ASKED), *page.value(CONTRAST)] == []
    assert page.complaints == []


def test_what_ends_python_is_told_and_the_next_line_starts_it_again(page):
    page.value(f"{LINES}.value = '['.repeat(100000)")
    page.value(f"{SEND}.click()")
    page.until(f"{STATUS}.startsWith('Python stopped: ')")
    page.value(f"{LINES}.value = {json.dumps(half().call('calc.add', a=2, b=40))}")
    page.value(f"{SEND}.click()")
    set_out(page)
    assert page.until(OUTCOME) == "result"
