"""What a load came to."""

import pytest

from dbdyno.workload.load import Load


def load(queries, seconds=0.1):
    end = round(len(queries) * seconds * 1e9)
    times = [round((index + 1) * seconds * 1e9) for index in range(len(queries))]
    result = {"clock": {"measure_start_ns": 0, "measure_end_ns": end}}
    return Load(result, {"t_ns": times, "queries": queries})


@pytest.mark.parametrize(("queries", "ratio"), [([10] * 8, 1), ([10] * 4 + [20] * 4, 2), ([30] * 4 + [15] * 4, 0.5)])
def test_the_second_half_over_the_first(queries, ratio):
    assert load(queries).second_half_ratio() == pytest.approx(ratio)


def test_very_short_runs_have_no_halves():
    assert load([10] * 5).second_half_ratio() is None
    assert load([0, 0, 0, 0, 5, 5]).second_half_ratio() is None
