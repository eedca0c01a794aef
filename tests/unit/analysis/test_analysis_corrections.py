"""Equivalence, Holm, and how many blocks it takes."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dbdyno.analysis.looks import Looks
from dbdyno.analysis.planned_looks import blocks_by_ranks, smallest_p_by_ranks
from dbdyno.analysis.statistics import (
    blocks_to_resolve,
    holm,
    holm_levels,
    log_margin,
    mean_p_beyond,
    sigma_upper_bound,
    signed_rank_interval,
    walsh_averages,
)
from dbdyno.analysis.verdict.evidence import evidence
from dbdyno.model.design import MIN_BLOCKS

P = st.lists(st.floats(0, 1), min_size=1, max_size=12)


def tost_p(d, margin):
    return float(evidence(d, Looks.single(len(d)), margin).p_equivalence)


@given(st.lists(st.floats(-0.1, 0.1), min_size=2, max_size=20).map(np.array), st.floats(0.005, 0.2))
def test_tost_p_and_the_90_percent_interval_say_the_same(d, margin):
    bound = log_margin(margin)
    low, high = signed_rank_interval(walsh_averages(d), len(d), 0.10)
    inside = -bound < low and high < bound and mean_p_beyond(d, np.array(bound)) <= 0.05
    assert (tost_p(d, margin) <= 0.05) == inside


def test_a_few_large_differences_that_the_ranks_allow_are_not_equivalent():
    d = np.array([0, 0, 0, 0, 0, 0.0625, 0.0859375])
    assert signed_rank_interval(walsh_averages(d), len(d), 0.10)[1] < log_margin(0.046875)
    assert tost_p(d, 0.046875) > 0.05


def test_tost_p_equals_scipy():
    d = np.random.default_rng(5).normal(0.003, 0.01, 12)
    bound = log_margin(0.03)
    expected = max(
        stats.wilcoxon(d + bound, alternative="greater", method="exact").pvalue,
        stats.wilcoxon(d - bound, alternative="less", method="exact").pvalue,
    )
    assert tost_p(d, 0.03) == pytest.approx(expected)


def test_tost_edges():
    assert tost_p(np.full(8, log_margin(0.03)), 0.03) == 1
    assert tost_p(np.zeros(8), 0.03) == pytest.approx(1 / 2**8)


@given(P)
def test_holm_is_monotone_and_never_below_p(p):
    adjusted = np.array(holm(p))
    assert (adjusted >= np.array(p)).all()
    assert (adjusted <= 1).all()
    assert (np.diff(adjusted[np.argsort(p, kind="stable")]) >= 0).all()


@given(P, st.randoms(use_true_random=False))
def test_holm_follows_its_p_wherever_it_stands(p, random):
    order = list(range(len(p)))
    random.shuffle(order)
    moved = holm([p[i] for i in order])
    assert [moved[order.index(i)] for i in range(len(p))] == holm(p).tolist()


def test_holm_worked_example():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([]).tolist() == []


def test_holm_levels_worked_example():
    shown = holm_levels([0.01, 0.04, 0.03], 0.05)
    assert shown == pytest.approx([0.05 / 3, 0.05 / 2, 0.05 / 2])  # .03 is more than .05 / 2, where it stops
    assert holm_levels([0.001, 0.02, 0.04], 0.05) == pytest.approx([0.05 / 3, 0.05 / 2, 0.05])
    assert holm_levels([0.2, 0.3], 0.05) == pytest.approx([0.025, 0.025])
    assert holm_levels([0.001, 0.001], 0.05) == pytest.approx([0.025, 0.025])
    assert holm_levels([], 0.05).tolist() == []
    assert holm_levels([[0.001, 0.03], [0.2, 0.3]], 0.05) == pytest.approx(np.array([[0.025, 0.05], [0.025, 0.025]]))


@given(P, st.floats(0.01, 0.2), st.randoms(use_true_random=False))
def test_a_p_is_at_most_its_level_exactly_where_holm_rejects_it_and_wherever_it_stands(p, alpha, random):
    levels, rejected = holm_levels(p, alpha), holm(p) <= alpha
    assert ((np.array(p) <= levels * (1 + 1e-12)) == rejected).all()
    assert (levels <= alpha).all()
    assert (levels >= alpha / len(p)).all()
    order = random.sample(range(len(p)), len(p))
    assert holm_levels([p[i] for i in order], alpha).tolist() == [levels[i] for i in order]


FAMILIES = st.integers(6, 14).flatmap(
    lambda n: st.lists(
        st.tuples(st.integers(0, 2**30), st.sampled_from([0.0, 0.01, 0.02, 0.05, 0.3])).map(
            lambda of: np.random.default_rng(of[0]).normal(of[1], 0.02, n)
        ),
        min_size=1,
        max_size=6,
    ).map(np.array)
)


@given(FAMILIES, st.sampled_from(["once", "after ten of forty"]))
def test_an_interval_at_its_level_excludes_0_exactly_where_holm_finds_a_difference(d, looked):
    looks = Looks.single(d.shape[-1]) if looked == "once" else Looks((6, d.shape[-1]), 40)
    p = evidence(d, looks, 0.03).p
    for one, level, adjusted in zip(d, holm_levels(p, 0.05), holm(p), strict=True):
        shown = evidence(one, looks, 0.03, alpha=float(level))
        assert ((shown.low > 0) | (shown.high < 0)) == (adjusted <= 0.05)


@pytest.mark.parametrize(("comparisons", "blocks"), [(0, 6), (1, 6), (2, 7), (3, 8), (5, 8), (6, 9), (100, 13)])
def test_blocks_by_ranks_are_the_fewest_with_which_the_signed_rank_decides(comparisons, blocks):
    assert blocks_by_ranks(comparisons) == blocks
    assert max(comparisons, 1) * smallest_p_by_ranks(blocks) <= 0.05
    assert blocks == MIN_BLOCKS or comparisons * smallest_p_by_ranks(blocks - 1) > 0.05


def test_sigma_bound_covers_four_times_out_of_five():
    samples = np.random.default_rng(6).normal(0, 2, (4000, 6))
    covered = np.mean([sigma_upper_bound(sample) >= 2 for sample in samples])
    assert covered == pytest.approx(0.8, abs=0.02)


def test_blocks_to_resolve():
    d = np.random.default_rng(7).normal(0, 0.03, 6)
    sigma = float(np.std(d, ddof=1)) * math.sqrt(5 / stats.chi2.ppf(0.2, 5))
    expected = ((stats.norm.ppf(0.975) + stats.norm.ppf(0.8)) * sigma / math.log(1.03)) ** 2
    assert blocks_to_resolve(d, 0.03) == math.ceil(expected)
    assert blocks_to_resolve(d, 0.03, comparisons=5) > blocks_to_resolve(d, 0.03)
    assert blocks_to_resolve(d[:1], 0.03) is None
    assert blocks_to_resolve(d, 0) is None
