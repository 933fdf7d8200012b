"""A short run of `load_http.py`: many calls over a few connections."""

from load_http import load


def test_of_thousands_of_calls_none_is_lost_or_crossed_and_memory_stays_flat():
    report = load(3000)
    assert report.calls == len(report.took) == 3040
    assert report.memory[-1] - report.memory[0] < 2
