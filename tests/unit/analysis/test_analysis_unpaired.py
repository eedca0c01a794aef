"""Two groups that share no blocks: the rank-sum procedures agree with scipy's and with each other."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dbdyno.analysis import statistics as exact
from dbdyno.analysis.statistics import brunner_munzel_p, holm, welch_interval, welch_p_each
from dbdyno.analysis.unpaired import (
    _normal_cdf,
    _probabilities,
    differences,
    rank_sum_cdf,
    smallest_p,
    unpaired_evidence,
    unpaired_family,
)
from dbdyno.analysis.verdict.evidence import Relation, relations

VALUES = st.lists(st.integers(-1000, 1000), min_size=2, max_size=30, unique=True)
SIZES = st.integers(1, 14)


@given(VALUES, st.data())
def test_p_and_estimate_are_scipy_s(values, data):
    """Distinct values, so that scipy's exact method is exact."""
    m = data.draw(st.integers(1, len(values) - 1))
    x, y = np.array(values[:m]) / 7, np.array(values[m:]) / 7
    found = differences(x, y)
    for alternative, p in (
        ("two-sided", exact.exact_p(found, rank_sum_cdf(len(x), len(y)))),
        ("greater", exact.exact_p_above(found, 0.0, rank_sum_cdf(len(x), len(y)))),
        ("less", exact.exact_p_below(found, 0.0, rank_sum_cdf(len(x), len(y)))),
    ):
        expected = stats.mannwhitneyu(y, x, alternative=alternative, method="exact").pvalue
        assert float(p) == pytest.approx(expected, abs=1e-9)
    evidence = unpaired_evidence(x, y, 0.03)
    assert float(evidence.value) == pytest.approx(np.median(np.subtract.outer(y, x)), abs=1e-9)


@given(SIZES, SIZES)
def test_the_distribution_is_symmetric_and_whole(m, n):
    cdf = rank_sum_cdf(m, n)
    assert len(cdf) == m * n + 1
    assert cdf[-1] == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(cdf[:-1] + cdf[-2::-1], 1, atol=1e-12)
    np.testing.assert_allclose(cdf, rank_sum_cdf(n, m), atol=1e-12)
    assert cdf[0] == pytest.approx(1 / math.comb(m + n, m), rel=1e-9)


@pytest.mark.parametrize(("m", "n"), [(5, 5), (6, 9), (10, 10), (20, 8)])
def test_the_interval_is_the_inverted_test(m, n):
    """That of all three tests: it excludes a shift where the ranks, Brunner and Munzel, and Welch reject it."""
    rng = np.random.default_rng(m)
    for _ in range(10):
        x, y = rng.normal(0, 1, m), rng.normal(0.5, 2, n)
        there = unpaired_evidence(x, y, 0.03)
        apart = differences(x, y)
        shifts = np.array([apart[0] - 1, *((apart[:-1] + apart[1:]) / 2), apart[-1] + 1])
        kept = unpaired_evidence(np.tile(x, (len(shifts), 1)), y - shifts[:, None], 0.03).p > 0.05
        np.testing.assert_array_equal(kept, (there.low < shifts) & (shifts < there.high))


@given(st.integers(3, 12), st.integers(3, 12), st.integers(0, 100))
def test_brunner_and_munzel_as_scipy_has_it(m, n, seed):
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, 9, m).astype(float), rng.integers(0, 12, n).astype(float)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = stats.brunnermunzel(x, y).pvalue
    if math.isfinite(expected):
        found = brunner_munzel_p(y[None, :] - x[:, None])
        assert float(found) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("m", "n"), [(40, 10), (8, 12)])
def test_unequal_spread_is_no_difference(m, n):
    """The smaller group spreads three times as far; the exact distribution of ranks is fooled in 9 to 14 %."""
    rng = np.random.default_rng(4)
    wide, narrow = rng.normal(0, 3, (2000, min(m, n))), rng.normal(0, 1, (2000, max(m, n)))
    found = unpaired_evidence(wide, narrow, 0.03)
    by_ranks = exact.exact_p(differences(wide, narrow), rank_sum_cdf(wide.shape[1], narrow.shape[1]))
    assert np.mean(by_ranks <= 0.05) > 0.08
    assert np.mean(found.p <= 0.05) < 0.072


@pytest.mark.parametrize(("m", "n", "spread"), [(3, 20, 3), (3, 40, 5), (4, 20, 5), (4, 40, 3)])
def test_a_few_values_that_spread_more_are_no_difference(m, n, spread):
    """Whichever run they are of: by order alone 10 to 20 % are called different."""
    rng = np.random.default_rng(11)
    wide, narrow = rng.normal(0, spread, (3000, m)), rng.normal(0, 1, (3000, n))
    each = narrow[:, None, :] - wide[:, :, None]
    by_ranks = exact.exact_p(differences(wide, narrow), rank_sum_cdf(m, n))
    assert np.mean(np.maximum(by_ranks, brunner_munzel_p(each)) <= 0.05) > 0.09
    for x, y in ((wide, narrow), (narrow, wide)):
        found = unpaired_evidence(x, y, 0.03)
        assert np.mean(found.p <= 0.05) < 0.065
        assert np.mean((found.low <= 0) & (found.high >= 0)) > 0.935


@given(st.integers(2, 9), st.integers(2, 9), st.integers(0, 1000), st.floats(0.01, 0.2))
def test_welch_as_scipy_has_it(m, n, seed, alpha):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(0, 3, (2, m)), rng.normal(1, 1, (2, n))
    expected = stats.ttest_ind(y, x, axis=-1, equal_var=False)
    within = expected.confidence_interval(1 - alpha)
    assert welch_p_each(x, y) == pytest.approx(expected.pvalue, abs=1e-9)
    low, high = welch_interval(x, y, alpha)
    assert low == pytest.approx(within.low)
    assert high == pytest.approx(within.high)


def test_welch_of_too_few_or_without_spread():
    one, two = np.zeros(1), np.array([1.0, 2.0])
    assert (float(welch_p_each(one, two)), *map(float, welch_interval(one, two, 0.05))) == (1, -math.inf, math.inf)
    same, other = np.zeros(3), np.ones(4)
    assert (float(welch_p_each(same, same)), float(welch_p_each(same, other))) == (1, 0)
    assert tuple(map(float, welch_interval(same, other, 0.05))) == (1, 1)


@given(
    st.lists(
        st.tuples(st.integers(4, 9), st.integers(4, 12), st.integers(0, 2**30), st.sampled_from([0, 1, 2, 5])),
        min_size=1,
        max_size=5,
    )
)
def test_intervals_of_a_family_exclude_0_exactly_where_a_difference_is_called_one(drawn):
    groups = []
    for m, n, seed, apart in drawn:
        rng = np.random.default_rng(seed)
        groups.append((rng.normal(0, 1, m), rng.normal(apart, 1, n)))
    found = unpaired_family(groups, 0.03)
    np.testing.assert_array_equal((found.low > 0) | (found.high < 0), holm(found.p) <= 0.05)
    for (x, y), p, low, high in zip(groups, found.p, found.low, found.high, strict=True):
        alone = unpaired_evidence(x, y, 0.03)
        assert float(alone.p) == p
        assert low <= float(alone.low)
        assert high >= float(alone.high)


def test_equivalence_of_two_runs_asks_the_mean():
    rng = np.random.default_rng(5)
    x, y = rng.normal(0, 0.005, (2, 30))
    assert float(unpaired_evidence(x, y, 0.03).p_equivalence) < 0.05
    y[[4, 14, 24]] += math.log(0.5)
    assert float(unpaired_evidence(x, y, 0.03).p_equivalence) > 0.05


def test_two_runs_in_whole_milliseconds_are_a_step_apart():
    x, y = np.log(np.array([[7.0, 8, 7, 7, 8, 7, 7, 8]] * 2))
    exact, coarse = unpaired_evidence(x, y, 0.03), unpaired_evidence(x, y, 0.03, unit=0.14)
    assert float(coarse.low) == pytest.approx(float(exact.low) - 0.14)
    assert float(coarse.high) == pytest.approx(float(exact.high) + 0.14)
    assert float(coarse.p_equivalence) == 1


@given(VALUES.filter(lambda values: len(values) > 7), st.floats(-3, 3))
def test_it_moves_with_the_data_and_turns_with_the_groups(values, shift):
    x, y = np.array(values[:4]) / 100, np.array(values[4:]) / 100
    there, moved = unpaired_evidence(x, y, 0.03), unpaired_evidence(x, y + shift, 0.03)
    assert float(moved.value) == pytest.approx(float(there.value) + shift, abs=1e-9)
    back = unpaired_evidence(y, x, 0.03)
    assert (float(back.value), float(back.low)) == pytest.approx((-float(there.value), -float(there.high)))
    assert float(back.p) == pytest.approx(float(there.p), abs=1e-12)
    assert float(back.p_equivalence) == pytest.approx(float(there.p_equivalence), abs=1e-12)


def test_leading_axes_are_replicates():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(5, 3, 6)), rng.normal(size=(5, 3, 9))
    whole = unpaired_evidence(x, y, 0.03)
    one = unpaired_evidence(x[2, 1], y[2, 1], 0.03)
    for name in ("value", "low", "high", "p", "p_equivalence"):
        assert getattr(whole, name).shape == (5, 3)
        assert getattr(whole, name)[2, 1] == getattr(one, name)


def test_few_values_have_no_interval_and_can_show_nothing():
    found = unpaired_evidence(np.zeros(3), np.ones(3), 0.03)
    assert (float(found.low), float(found.high)) == (-math.inf, math.inf)
    assert float(found.p) == smallest_p(3, 3) == pytest.approx(0.1)


def test_many_values_are_judged_by_the_normal_distribution():
    exact = np.cumsum(_probabilities(60, 70))
    np.testing.assert_allclose(_normal_cdf(60, 70), exact, atol=1e-3)
    assert rank_sum_cdf(101, 101)[101 * 101 // 2] == pytest.approx(0.5, abs=0.01)


def test_ties_count_against_a_difference():
    assert float(unpaired_evidence(np.ones(8), np.ones(8), 0.03).p) == 1


def test_coverage_and_words_under_independent_noise():
    rng = np.random.default_rng(2)
    x, y = rng.normal(0, 0.02, (4000, 10)), rng.normal(0.01, 0.02, (4000, 10))
    found = unpaired_evidence(x, y, 0.03)
    covered = np.mean((found.low <= 0.01) & (found.high >= 0.01))
    assert covered == pytest.approx(0.957, abs=0.012)
    far = unpaired_evidence(x, y + 0.2, 0.03)
    near = unpaired_evidence(x / 10, y / 10, 0.03)
    assert set(np.concatenate([relations(far, 0.03)[:, None]]).ravel()) == {Relation.HIGHER}
    assert set(relations(near, 0.03)) == {Relation.EQUIVALENT}
