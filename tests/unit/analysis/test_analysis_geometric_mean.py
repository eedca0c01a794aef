"""The geometric mean of a treatment and its interval."""

import math

import pytest
from scipy import stats

from dbdyno.analysis.statistics import geometric_mean


def test_it_is_the_t_interval_of_the_logarithms():
    values = [3.0, 4.0, 5.5]
    logs = [math.log(value) for value in values]
    low, high = stats.t.interval(0.95, len(values) - 1, stats.tmean(logs), stats.sem(logs))
    found = geometric_mean(values, 0.05)
    assert found.value == pytest.approx(stats.gmean(values))
    assert (found.low, found.high) == (pytest.approx(math.exp(low)), pytest.approx(math.exp(high)))


@pytest.mark.parametrize("values", [[], [0.0], [0.0, 5.0], [-1.0, 5.0]])
def test_it_is_unknown_without_a_word_of_numpy_s_where_there_is_none(values):
    found = geometric_mean(values, 0.05)
    assert math.isnan(found.value)
    assert found.n == len(values)
