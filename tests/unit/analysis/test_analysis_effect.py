import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from dbdyno.analysis.looks import Looks
from dbdyno.analysis.statistics import (
    benjamini_hochberg,
    exact_p,
    exact_p_above,
    exact_p_below,
    exactly_dropped,
    geometric_mean,
    holm,
    log_ratios,
    signed_rank_cdf,
    signed_rank_interval,
    walsh_averages,
)
from dbdyno.analysis.verdict.evidence import relative_effect

RATIOS = st.lists(st.floats(-3, 3), min_size=6, max_size=25).map(np.array)


def hodges_lehmann(d):
    return float(np.median(walsh_averages(d)))


def interval(d, alpha=0.05):
    return tuple(map(float, signed_rank_interval(walsh_averages(d), len(d), alpha)))


@given(RATIOS, st.floats(-2, 2))
def test_estimate_and_interval_move_with_the_data(d, shift):
    low, high = interval(d)
    assert hodges_lehmann(d + shift) == pytest.approx(hodges_lehmann(d) + shift, abs=1e-9)
    assert interval(d + shift) == pytest.approx((low + shift, high + shift), abs=1e-9)


@given(RATIOS)
def test_interval_contains_the_estimate(d):
    low, high = interval(d)
    assert low <= hodges_lehmann(d) <= high


@given(st.lists(st.tuples(st.floats(0.1, 1e6), st.floats(0.1, 1e6)), min_size=6, max_size=15))
def test_swapping_the_levels_inverts_the_effect(pairs):
    level = {block: pair[0] for block, pair in enumerate(pairs)}
    baseline = {block: pair[1] for block, pair in enumerate(pairs)}
    rule = Looks.single(len(pairs))
    there = relative_effect(np.array(list(log_ratios(level, baseline).values())), rule)
    back = relative_effect(np.array(list(log_ratios(baseline, level).values())), rule)
    assert 1 + back.value == pytest.approx(1 / (1 + there.value))
    assert (1 + back.low, 1 + back.high) == pytest.approx((1 / (1 + there.high), 1 / (1 + there.low)))


@pytest.mark.parametrize("n", range(1, 13))
def test_signed_rank_distribution_equals_enumeration(n):
    ranks = np.arange(1, n + 1)
    patterns = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    statistic = patterns @ ranks
    expected = [(statistic <= w).mean() for w in range(n * (n + 1) // 2 + 1)]
    np.testing.assert_allclose(signed_rank_cdf(n), expected, atol=1e-15)


@given(st.lists(st.integers(-40, 40), min_size=6, max_size=11, unique_by=abs))
def test_interval_equals_the_inverted_test(values):
    """The interval holds exactly the shifts that the two-sided test does not reject."""
    d = np.array(values, dtype=float)
    low, high = interval(d)
    averages = walsh_averages(d)
    gaps = (np.unique(averages)[:-1] + np.unique(averages)[1:]) / 2
    for shift in [averages[0] - 1, *gaps, averages[-1] + 1]:
        kept = exact_p(averages - shift, signed_rank_cdf(len(d))) > 0.05
        assert kept == (low < shift < high)


@pytest.mark.parametrize(("n", "alpha"), [(1, 0.05), (5, 0.05), (4, 0.10)])
def test_too_few_blocks_give_no_interval(n, alpha):
    assert interval(np.arange(n, dtype=float), alpha) == (-math.inf, math.inf)


def test_known_coverages():
    assert [exactly_dropped(signed_rank_cdf(n), 0.05) for n in (6, 10)] == [0, 8]
    assert 2 * signed_rank_cdf(6)[0] == 2 / 64
    assert 2 * signed_rank_cdf(10)[8] == 2 * 25 / 1024  # W+ <= 8


def test_worked_example():
    d = np.array([1.0, 2.0, 4.0])
    assert walsh_averages(d).tolist() == [1, 1.5, 2, 2.5, 3, 4]
    assert hodges_lehmann(d) == 2.25


def test_no_blocks_no_estimate():
    effect = relative_effect(np.array([]), Looks.single(1))
    assert math.isnan(effect.value)
    assert not effect.known
    assert effect.n == 0


def test_blocks_without_a_usable_value_are_left_out():
    level = {1: 2.0, 2: math.nan, 3: 0.0, 4: -1.0, 5: math.inf, 6: 4.0}
    baseline = dict.fromkeys((1, 2, 3, 4, 5, 7), 1.0)
    assert log_ratios(level, baseline) == {1: pytest.approx(math.log(2))}


# The geometric mean of a treatment and its interval.


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


# Where a library has the same estimator, ours gives the same figure.


P = st.lists(st.floats(0, 1), min_size=1, max_size=20)
# scipy's exact test wants neither zeros nor ties.
DISTINCT = st.lists(st.integers(-500, 500).filter(bool), min_size=2, max_size=40, unique_by=abs).map(np.array)


@settings(max_examples=25)  # the library collects garbage at each call, which takes long after many tests
@given(P)
def test_holm(p):
    assert holm(p) == pytest.approx(multipletests(p, method="holm")[1], abs=1e-9)


@given(P)
def test_benjamini_hochberg(p):
    assert benjamini_hochberg(p) == pytest.approx(multipletests(p, method="fdr_bh")[1], abs=1e-9)


@given(DISTINCT)
def test_signed_rank(values):
    d = values / 1000
    averages = walsh_averages(d)
    for alternative, ours in (
        ("two-sided", exact_p(averages, signed_rank_cdf(len(d)))),
        ("greater", exact_p_above(averages, 0, signed_rank_cdf(len(d)))),
        ("less", exact_p_below(averages, 0, signed_rank_cdf(len(d)))),
    ):
        expected = stats.wilcoxon(d, alternative=alternative, method="exact").pvalue
        assert float(ours) == pytest.approx(expected, abs=1e-9)


@given(st.integers(1, 4), DISTINCT)
def test_many_at_once_are_each_by_itself(copies, values):
    d = np.stack([values * (i + 1) / 1000 for i in range(copies)])
    together = exact_p(walsh_averages(d), signed_rank_cdf(d.shape[-1]))
    each = [(walsh_averages(row), signed_rank_cdf(len(row))) for row in d]
    alone = [float(exact_p(*one)) for one in each]
    assert together.tolist() == alone
