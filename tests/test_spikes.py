"""The experiments of the site: their verdicts are computed, and their controls turn them."""

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
from support import free_port
from support_skips import need

SPIKES = Path(__file__).parent.parent / "site" / "spikes"
NAMES = sorted(path.stem for path in SPIKES.glob("[0-9]*.py"))
MEMBERS = {"question", "date", "versions", "n", "spread", "holds", "verdict", "groups", "control"}


def the_lab() -> ModuleType:
    """The module that the experiments share, as they import it."""
    if "lab" not in sys.modules:
        spec = importlib.util.spec_from_file_location("lab", SPIKES / "lab.py")
        sys.modules["lab"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules["lab"])
    return sys.modules["lab"]


lab = the_lab()


def load(name: str) -> ModuleType:
    """An experiment, if what it measures is installed."""
    try:
        spike = lab.load(name)
        lab.versions(spike.PACKAGES)
    except ImportError as error:  # a missing distribution is one, too
        need(False, f"an experiment needs pip install -e '.[dev]': {error}")
    return spike


@pytest.fixture(autouse=True)
def beside_others(monkeypatch):
    """A test shares its processor with others, so nothing is pinned here; and so the ports."""
    monkeypatch.setattr(lab, "pin", lambda: None)
    monkeypatch.setattr(lab, "free_port", free_port)


@pytest.mark.parametrize("name", NAMES)
def test_a_record_says_what_was_measured_when_and_with_what(name):
    record = lab.recorded(name)
    assert record.keys() == MEMBERS
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", record["date"])
    assert record["versions"].keys() >= {"Python", "machine", *load(name).PACKAGES}
    stats = [one for group in record["groups"].values() for one in group.values()]
    for one in stats:
        if isinstance(one, dict) and "median" in one:
            assert one.keys() == {"median", "low", "high", "n", "ratio"}
            assert one["low"] <= one["median"] <= one["high"]
            assert one["n"] >= 1


@pytest.mark.parametrize("name", NAMES)
def test_the_verdict_follows_from_the_record_and_the_control_turns_it(name):
    record, spike = lab.recorded(name), load(name)
    assert spike.verdict(record["groups"]) == (record["holds"], record["verdict"])
    control = record["control"]
    assert spike.verdict(control["groups"]) == (control["holds"], control["verdict"])
    assert control["holds"] != record["holds"]


@pytest.mark.parametrize("name", NAMES)
def test_a_short_run_measures_the_same_things_and_its_control_fails(name):
    spike = load(name)
    need(not hasattr(spike, "nginx") or spike.nginx(), "no nginx here: apt-get install nginx")
    groups, recorded = spike.measure(spike.QUICK), lab.recorded(name)["groups"]
    assert {title: group.keys() for title, group in groups.items()} == {
        title: group.keys() for title, group in recorded.items()
    }
    holds, said = spike.verdict(groups)
    assert said
    if not any(map(lab.drawable, groups.values())):
        assert holds  # no time is in it, so no other program on the machine can turn it
        assert not spike.verdict(spike.measure(spike.QUICK, control=True))[0]


@pytest.mark.parametrize("name", NAMES)
def test_a_page_asks_its_question_and_names_the_decisions_that_it_feeds(name):
    text = (SPIKES / f"{name}.md").read_text(encoding="utf-8")
    assert text.startswith(f"# {load(name).QUESTION}\n")
    assert "**Hypothesis.**" in text and "**Experiments.**" in text
    shown = lab.page(name)
    assert lab.recorded(name)["verdict"] in shown and f"[`{name}.py`]({name}.py)" in text
    for number in load(name).ADRS:
        assert f"ADR-{number}" in text
        assert list((SPIKES.parents[1] / "adr").glob(f"{number}-*.md"))


def test_a_chart_has_a_bar_for_each_median_and_follows_the_theme():
    group = {name: lab.stat([1.0, 2.0, 3.0]) | {"ratio": 1.0} for name in ("one", "<two>")}
    drawn = lab.chart("a title", group)
    assert drawn.count("<rect") == 2 and "&lt;two&gt;" in drawn
    assert 'role="img"' in drawn and "<title>a title" in drawn
    assert set(re.findall(r'(?:fill|stroke)="([^"]+)"', drawn)) == {
        "var(--seq-ink,#24292f)",
        "var(--seq-result,#00695c)",
    }


def test_a_group_of_plain_facts_is_a_table_without_a_chart():
    assert lab.chart("facts", {"lost": 0}) == ""
    assert lab.table("facts", {"lost": 0, "intact": True}) == (
        "| facts |  |\n| --- | ---: |\n| lost | 0 |\n| intact | yes |"
    )


def test_a_group_of_counts_is_a_table_with_a_column_for_each():
    counts = {"by hand": {"right": 2, "wrong": 0}, "by others": {"right": 1, "wrong": 1000}}
    assert lab.chart("cases", counts) == ""
    assert lab.table("cases", counts) == (
        "| cases | right | wrong |\n| --- | ---: | ---: |\n"
        "| by hand | 2 | 0 |\n| by others | 1 | 1,000 |"
    )
