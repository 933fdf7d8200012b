"""The table of faults is what the tests say, and every row is a test."""

import pytest
from support_faults import OUTCOMES, OWN, page, read, rows, said_by


def test_every_row_is_a_test_that_exists():
    named = [row.test.partition("::") for row in rows()]
    assert [test for module, _, test in named if test not in said_by(module)] == []


def test_there_are_thirty_faults_with_said_by_their_own_and_none_stands_there_twice():
    found = rows()
    assert sum(row.test.partition("::")[0] in OWN.values() for row in found) >= 30
    assert len({row.test for row in found}) == len(found)
    assert len({(row.wire, row.fault) for row in found}) == len(found)


def test_the_page_has_every_row_and_every_outcome_is_used():
    shown = page()
    assert [row for row in rows() if f"`{row.test.partition('::')[2]}` |" not in shown] == []
    assert {row.outcome for row in rows()} == {*OUTCOMES}


@pytest.mark.parametrize("said", ["", "no promise", "a fault: who knows", ": lost"])
def test_a_test_that_promises_nothing_is_no_row(said):
    with pytest.raises(ValueError, match="a_test"):
        read("stdio", "module::a_test", said)
