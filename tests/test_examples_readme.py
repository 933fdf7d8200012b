"""examples/README.md: every command on the page is run, and the page names every example."""

import ast
import re

import pytest
from support_docs import blocks, problems, run_console
from support_examples import EXAMPLES, GOOD, command, http, reached, stand_in
from support_skips import need
from test_budget import code_lines

from minimcp import Client

TEXT = (EXAMPLES / "README.md").read_text(encoding="utf-8")
FILES = {path.name: path for path in EXAMPLES.glob("*.py")}
HELPERS = {"bridge.py"}  # a part of everything.py


@pytest.fixture
def weather(monkeypatch):
    """What stands on the page as the weather service is a local one."""
    with stand_in() as service:
        service.answer = http(GOOD)
        monkeypatch.setenv("WEATHER_URL", service.url)
        monkeypatch.delenv("WEATHER_KEY", raising=False)
        yield service


def test_every_command_does_what_the_page_says(weather, monkeypatch):
    need((EXAMPLES.parent / ".git").exists(), "this is no clone: there is no .git")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert problems(TEXT, "examples/README.md") == []
    assert len(weather.requests) == 1


def test_the_commands_over_http_do_what_the_page_says():
    serving, talking = [block for block in blocks(TEXT) if block.why]
    assert serving.body == "$ python examples/movies.py --http 3000\n"
    with reached(command("movies"), "http") as url:
        port = re.search(r":(\d+)/", url)[1]
        told = talking._replace(body=talking.body.replace(":3000/", f":{port}/"), why=None)
        assert run_console(told, "examples/README.md", {}) == ""


def test_a_wrong_word_on_the_page_would_be_noticed(weather):
    wrong = TEXT.replace("6 g, 80 °C", "7 g, 80 °C")
    [problem] = problems(wrong[wrong.index("## Build your own") :], "examples/README.md")
    assert "7 g, 80 °C" in problem


def test_the_page_ends_with_building_your_own_in_four_steps():
    heading, last = re.split(r"^## ", TEXT, flags=re.M)[-1].split("\n", 1)
    assert heading == "Build your own, in four steps"
    assert re.findall(r"^\*\*(\d)\. ", last, re.M) == ["1", "2", "3", "4"]


def test_the_table_names_every_example():
    assert set(re.findall(r"^\| \[(\w+\.py)\]", TEXT, re.M)) == FILES.keys()


@pytest.mark.parametrize("name", sorted(FILES.keys() - HELPERS - {"everything.py"}))
def test_the_lesson_in_the_table_is_the_one_in_the_header(name):
    header = " ".join(ast.get_docstring(ast.parse(FILES[name].read_text(encoding="utf-8"))).split())
    [lesson] = re.findall(r"The lesson: \*([^*]+)\*", header)
    [row] = re.findall(rf"^\| \[{re.escape(name)}\].*\| (.+) \|$", TEXT, re.M)
    assert row == lesson


@pytest.mark.parametrize("name", sorted(FILES.keys() - HELPERS))
def test_the_header_says_how_to_start_it(name):
    header = ast.get_docstring(ast.parse(FILES[name].read_text(encoding="utf-8")))
    assert re.search(rf"^ {{4}}python examples/{re.escape(name)}", header, re.M)


@pytest.mark.parametrize(
    "words",
    [["movies"], ["git"], ["weather"], ["files", "--root", "."], ["folder", "examples/tools"]],
    ids=lambda words: words[0],
)
def test_it_runs_from_a_clone_without_being_installed(words, monkeypatch):
    """-S leaves out everything that was installed, and -I the variables that could help."""
    monkeypatch.chdir(EXAMPLES.parent)
    start = command(*words)
    with Client([start[0], "-I", "-S", *start[1:]]) as client:
        assert client.list_tools()


@pytest.mark.parametrize("words", [["movies"], ["git"], ["weather"], ["files", "--root", "."]])
def test_our_client_reaches_it_over_http_as_well(words, monkeypatch):
    monkeypatch.chdir(EXAMPLES.parent)
    with (
        Client(command(*words)) as here,
        reached(command(*words), "http") as url,
        Client(url) as there,
    ):
        assert there.list_tools() == here.list_tools()
        assert there.instructions == here.instructions


@pytest.mark.parametrize(
    ("name", "most"),
    [("movies", 85), ("git", 110), ("weather", 100), ("files", 115), ("agent", 130)],
)
def test_it_is_short_enough_to_be_copied(name, most):
    assert len(code_lines(FILES[f"{name}.py"].read_text(encoding="utf-8"))) <= most
