"""The decisions are complete, numbered and linked both ways; the code names only living ones."""

import re
import sys
from pathlib import Path

import pytest
from support_docs import site

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "site" / "hooks"))
import facts  # noqa: E402
from weave import pieces  # noqa: E402

pytestmark = pytest.mark.timeout(300)  # whoever needs the site first, builds it
ADRS = sorted((ROOT / "adr").glob("*"))
NAMES = [path.name for path in ADRS]
SECTIONS = ["Context", "Decision", "Consequences", "Alternatives", "Outcome"]
HEAD = ["Status", "Date", "Revision", "Evidence"]
SOURCES = ("minimcp", "examples", "notebooks", "tests", "site")
SUFFIXES = {".py", ".md", ".toml", ".yml", ".ipynb", ".txt", ""}


def text_of(path):
    return path.read_text(encoding="utf-8")


def prose_of(path):
    return "".join(piece for is_code, piece in pieces(text_of(path)) if not is_code)


def status_of(path):
    return facts.decision(path).status


def test_numbers_have_no_gap_and_no_double():
    assert [name[:5] for name in NAMES] == [f"{number:04}-" for number in range(1, len(NAMES) + 1)]
    assert len(NAMES) >= 14


@pytest.mark.parametrize("path", ADRS, ids=NAMES)
def test_a_decision_has_the_shape_of_all_others(path):
    text = prose_of(path)
    assert re.fullmatch(r"\d{4}(-[a-z0-9]+)+\.md", path.name)
    assert facts.decision(path).number == path.name[:4]
    assert re.findall(r"^## (.+)$", text, re.M) == SECTIONS
    assert re.findall(r"^\| ([A-Z][a-z]+) \|", text, re.M)[: len(HEAD)] == HEAD
    assert re.search(r"^\| Date \| \d{4}-\d\d-\d\d \|$", text, re.M)
    assert 40 <= len(text_of(path).splitlines()) <= 80
    decision = text.partition("## Decision")[2].partition("## ")[0]
    assert re.match(r"\n\n\*\*[^*]+\*\*\n", decision), "it begins with one bold line"
    assert "Good: " in text and "Bad, and accepted" in text
    assert len(re.findall(r"^- \*.+?\*", text, re.M)) >= 3, "three alternatives, with reasons"


@pytest.mark.parametrize("path", ADRS, ids=NAMES)
def test_a_decision_runs_something(path):
    assert re.search(r"^`{3,}(pycon|python|console|bash)", text_of(path), re.M)


@pytest.mark.parametrize("path", ADRS, ids=NAMES)
def test_every_link_of_a_decision_leads_somewhere(path):
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", prose_of(path)):
        assert (path.parent / target).exists(), target


def superseded(status):
    """The number of the decision that took its place, if there is one."""
    found = re.fullmatch(r"Superseded by \[(\d{4})\]\((\d{4})-[a-z0-9-]+\.md\)", status)
    return found[1] if found and found[1] == found[2] else None


@pytest.mark.parametrize("path", ADRS, ids=NAMES)
def test_a_status_is_accepted_or_names_its_successor_which_names_it_back(path):
    status = status_of(path)
    if status == "Accepted":
        return
    number = superseded(status)
    assert number, status
    [other] = (ROOT / "adr").glob(f"{number}-*.md")
    assert f"({path.name})" in text_of(other)


def test_a_status_that_names_two_numbers_or_none_is_refused():
    assert superseded("Superseded by [0007](0007-another-way.md)") == "0007"
    assert superseded("Superseded by [0007](0008-another-way.md)") is None
    assert superseded("Superseded by 0007") is None
    assert superseded("Rejected") is None


def mentions():
    """Every decision that is named anywhere: its number, and the places."""
    found = {}
    files = [path for root in SOURCES for path in (ROOT / root).rglob("*") if path.is_file()]
    for path in [*files, *ADRS, ROOT / "README.md"]:
        if path.suffix in SUFFIXES and not {"node_modules", "__pycache__"} & {*path.parts}:
            for number in re.findall(r"\bADR-(\d{4})\b", path.read_text("utf-8", "ignore")):
                found.setdefault(number, set()).add(path.relative_to(ROOT).as_posix())
    return found


def test_a_decision_that_is_named_anywhere_exists_and_is_not_superseded():
    living = {path.name[:4] for path in ADRS if superseded(status_of(path)) is None}
    dead = {number: places for number, places in mentions().items() if number not in living}
    assert dead == {}


def test_every_decision_is_in_the_generated_index():
    index = (site().folder / "decisions.html").read_text(encoding="utf-8")
    missing = [path.name for path in ADRS if f'<td><a href="adr/{path.stem}.html">' not in index]
    assert missing == []


def test_a_decision_without_a_bold_line_or_a_status_is_refused(tmp_path):
    good = "# 0001. A title\n\n| Status | Accepted |\n|---|---|\n\n**It is so.**\n"
    path = tmp_path / "0001-a-title.md"
    path.write_text(good, encoding="utf-8")
    assert facts.decision(path) == ("0001", "A title", "Accepted", "It is so.", path)
    for part in ("# 0001. A title", "| Status | Accepted |", "**It is so.**"):
        path.write_text(good.replace(part, "something else"), encoding="utf-8")
        with pytest.raises(ValueError, match=r"0001-a-title\.md"):
            facts.decision(path)
