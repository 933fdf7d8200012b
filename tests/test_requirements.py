"""The ledger and the tests agree: every row has a verdict, and a proven one has a test."""

import ast
import re

from ledger import LEDGER, TESTS, carried, marks, proofs

ROWS = 369
MATRIX = 16
MEMBERS = {"level", "era", "actor", "transport", "status", "text"}
GROUPS = {  # group -> its number of rows
    "ENV": 18,
    "ERR": 18,
    "VER": 26,
    "DISC": 11,
    "META": 16,
    "RES": 11,
    "LIST": 20,
    "CALL": 26,
    "JSCH": 13,
    "CANC": 17,
    "PROG": 10,
    "LOG": 10,
    "SUB": 21,
    "MRTR": 25,
    "STDIO": 24,
    "HTTP": 53,
    "LHTTP": 26,
    "CLI": 17,
    "EXT": 7,
}


def test_every_row_is_there_once_with_a_verdict_and_a_reason():
    assert len(LEDGER) == ROWS + MATRIX
    for id, row in LEDGER.items():
        proven = row["status"] == "proven"
        assert row["status"] in {"proven", "later", "not"}, id
        assert set(row) == (MEMBERS if proven else MEMBERS | {"why"}), id
        assert all(row.values()), id


def test_every_group_is_complete_and_numbered_without_gaps():
    found = {}
    for id in LEDGER:
        if match := re.fullmatch(r"[SCB]-([A-Z]+)-(\d\d)", id):
            found.setdefault(match[1], []).append(int(match[2]))
    assert found == {group: list(range(1, size + 1)) for group, size in GROUPS.items()}


def test_no_test_carries_an_unknown_id():
    assert {id: tests for id, tests in carried().items() if id not in LEDGER} == {}


def test_no_row_is_called_proven_without_a_test():
    proven = {id for id, row in LEDGER.items() if row["status"] == "proven"}
    assert sorted(proven - set(carried())) == []


def test_no_test_proves_a_row_that_the_ledger_says_is_unproven():
    unproven = {id for id, row in LEDGER.items() if row["status"] != "proven"}
    assert {id: tests for id, tests in carried().items() if id in unproven} == {}


def test_ids_are_found_in_the_source_whatever_is_selected(request):
    """The static reading finds at least what this run collected."""
    here = {id for item in request.session.items for m in item.iter_markers("req") for id in m.args}
    assert here <= set(carried())


def test_every_mark_is_a_literal_on_a_test_function():
    """A mark on a class, a module or a helper would be invisible to the reading."""
    for path in TESTS.rglob("test_*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert len(marks(tree)) == len(list(proofs(tree))), path.name
