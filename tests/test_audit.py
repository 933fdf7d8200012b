"""The audit: an advisory about what is installed is found, in a copy of the database.

`tests/audit.py` asks pip-audit, which the tests do not install; here is what it answers it with.
"""

import json
from urllib.request import Request, urlopen

import audit
import pytest
from support_skips import need

ADVISORY = """
id: PYSEC-0000-1
details: 'A hole: {{}}'
affected:
- package: {{name: thing, ecosystem: PyPI}}
  ranges:
  - type: GIT
    events: [{{introduced: '0'}}]
  - type: ECOSYSTEM
    events: {events}
  versions: [{versions}]
published: 2020-01-02T03:04:05Z
"""
MENDED = "[{introduced: '1.2'}, {fixed: '1.10'}]"


def database(folder, events=MENDED, versions=""):
    (place := folder / "vulns" / "thing").mkdir(parents=True)
    text = ADVISORY.format(events=events, versions=versions)
    (place / "PYSEC-0000-1.yaml").write_text(text, encoding="utf-8")
    return folder


HIT = ["1.2", "1.2.1", "1.9"]  # numbers, not text: 1.9 comes before 1.10
TWICE = "[{introduced: '0'}, {fixed: '2'}, {introduced: '3'}, {last_affected: '3.5'}]"


@pytest.mark.parametrize(
    ("events", "versions", "hit", "missed"),
    [
        (MENDED, "", HIT, ["1.1", "1.10", "2"]),
        (TWICE, "", ["0.1", "1.9", "3", "3.5"], ["2", "2.9", "3.6"]),
        ("[]", "'5.0'", ["5.0"], ["5.1", "0"]),
    ],
)
def test_an_advisory_is_about_the_versions_that_it_names(tmp_path, events, versions, hit, missed):
    need(audit.yaml, "no yaml here: pip install -e '.[docs]'")
    folder = database(tmp_path, events, versions)
    found = {one: len(audit.advisories(folder, "thing", one)) for one in hit + missed}
    assert found == {**dict.fromkeys(hit, 1), **dict.fromkeys(missed, 0)}
    assert audit.advisories(folder, "other", hit[0]) == []


def test_a_copy_answers_as_the_service_does(tmp_path):
    need(audit.yaml, "no yaml here: pip install -e '.[docs]'")
    with audit.service(database(tmp_path)) as address:
        for version, ids in {"1.5": ["PYSEC-0000-1"], "1.1": []}.items():
            asked = {"package": {"name": "thing", "ecosystem": "PyPI"}, "version": version}
            with urlopen(Request(address, json.dumps(asked).encode()), timeout=10) as reply:
                answer = json.load(reply)
            assert [one["id"] for one in answer.get("vulns", [])] == ids
            assert all(
                one["published"] == "2020-01-02T03:04:05Z" for one in answer.get("vulns", [])
            )


def test_it_is_known_how_old_a_copy_is_and_what_is_none(tmp_path):
    assert audit.known(database(tmp_path)) == (1, "2020-01-02")
    with pytest.raises(SystemExit, match="no copy of the advisory database"):
        audit.known(tmp_path / "vulns")


def test_a_hole_is_told_and_ends_with_a_failure(capsys):
    assert audit.tell({"old 1": ["X"]}, {"thing 1.5": ["PYSEC-0000-1"], "fine 1": []}) == 1
    assert capsys.readouterr().out == "thing 1.5 PYSEC-0000-1\n2 packages, 1 with a known hole\n"
    assert audit.tell({"old 1": ["X"]}, {"fine 1": []}) == 0


def test_silence_is_no_answer(capsys):
    with pytest.raises(SystemExit, match="the rest means nothing"):
        audit.tell({"old 1": ["X"], "old 2": []}, {"fine 1": []})


def test_all_that_is_installed_is_asked_about_but_not_this_project():
    listed = [line.partition("==")[0] for line in audit.installed().splitlines()]
    assert {"pip", "pytest", "jsonschema"} <= {*listed}
    assert not any("minimcp" in name for name in listed)
