"""Looking several times: the bounds of planned looks, the sequence that is valid at any time, and when to stop."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from benches.honesty import designs, noise
from dbdyno.analysis import looks as alpha_spending
from dbdyno.analysis.looks import (
    Looks,
    always_valid_interval,
    always_valid_multiplier,
    always_valid_p,
    growth,
    large_effect_p,
    nominal_level,
    sequential_p,
)
from dbdyno.analysis.planned_looks import LOOKS, planned_looks
from dbdyno.analysis.verdict.evidence import AlwaysValid, Relation, evidence, relations

EQUAL = [Looks(tuple(range(20, n + 1, 20)), 100) for n in (20, 40, 60, 80, 100)]


@pytest.fixture
def nothing_kept():
    """Bounds of another spending function are neither taken from those kept nor left among them."""
    kept = (alpha_spending._table, alpha_spending._bound, alpha_spending._going_on)
    for one in kept:
        one.cache_clear()
    yield
    for one in kept:
        one.cache_clear()


@pytest.mark.usefixtures("nothing_kept")
def test_bounds_equal_published_ones(monkeypatch):
    """Lan-DeMets, Pocock's type, five equal looks, two-sided 5 %: Jennison and Turnbull's and gsDesign's z."""
    alphas = alpha_spending._alphas()
    monkeypatch.setattr(alpha_spending, "_alpha_spent", lambda look: alphas * math.log1p((math.e - 1) * look.spending))
    levels = [alpha_spending.nominal_level(looks, 0.05) for looks in EQUAL]
    z = [stats.norm.isf(level / 2) for level in levels]
    assert z == pytest.approx([2.438, 2.427, 2.410, 2.397, 2.386], abs=0.001)


@pytest.mark.parametrize("sides", [1, 2])
@pytest.mark.simulation
def test_paths_of_a_random_walk_cross_as_often_as_allowed(sides):
    rng = np.random.default_rng(3)
    steps = rng.normal(0, 1, (200_000, 40)).cumsum(axis=1)
    crossed = np.zeros(len(steps), dtype=bool)
    for i, n in enumerate(LOOKS[1:], 2):
        z = steps[:, n - 1] / math.sqrt(n)
        level = nominal_level(Looks(LOOKS[:i], 40), 0.05, sides)
        crossed |= (np.abs(z) if sides == 2 else z) > stats.norm.isf(level / sides)
    assert crossed.mean() == pytest.approx(0.05, abs=0.0015)


@pytest.mark.parametrize("factor", [1.0, 1.1, 1.5, 3.0])
@pytest.mark.simulation
def test_given_the_sizes_seen_all_looks_together_err_in_5_percent(factor):
    """Only the signs are left to chance; where sizes grow, looks have less in common and so more chances.

    With bounds that do not ask how they grow, 5.5 to 6 % would err at the three greater factors.
    """
    rng = np.random.default_rng(5)
    d = rng.normal(0, 1, (10_000, 40)) * factor ** np.arange(40)
    wrong = np.zeros(len(d), dtype=bool)
    for i, n in enumerate(LOOKS[1:], 2):
        wrong |= evidence(d[:, :n], Looks(LOOKS[:i], 40), 0.03).p <= 0.05
    assert wrong.mean() <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / len(d))


def test_growth_is_1_of_like_sizes_3_of_ever_larger_ones_and_never_less():
    rng = np.random.default_rng(6)
    looks = (10, 15, 20, 30, 40)
    assert np.mean(growth(rng.normal(0, 1, (200, 40)), looks) == 1) > 0.8
    assert growth(3.0 ** np.arange(40), looks) == 3
    assert growth(0.7 ** np.arange(40), looks) == 1
    assert growth(np.ones((4, 10)), (10,)).tolist() == [1] * 4


def test_p_and_interval_agree_at_any_growth():
    rng = np.random.default_rng(7)
    d = rng.normal(0.5, 1, (2000, 20)) * 1.2 ** np.arange(20)
    found = evidence(d, Looks((6, 10, 15, 20), 40), 0.03)
    excluded = (found.low > 0) | (found.high < 0)
    close = np.abs(found.p - 0.05) < 1e-9
    assert (excluded == (found.p <= 0.05))[~close].all()


LATER = st.sampled_from([(), (6,), (6, 7), (6, 7, 8), (6, 7, 8, 10), planned_looks(16)[:-1]])


@given(
    st.integers(0, 10_000),
    st.floats(-0.3, 0.3),
    st.floats(0.001, 0.2),
    LATER,
    st.sampled_from([0.05, 0.05 / 2, 0.05 / 5, 0.05 / 15, 0.003]),
    st.booleans(),
)
def test_p_is_at_most_alpha_exactly_where_the_interval_at_alpha_excludes_0(seed, effect, spread, before, alpha, two):  # noqa: PLR0913, PLR0917
    """At every alpha that Holm may use, at every look, for both rules together."""
    rng = np.random.default_rng(seed)
    n = (before or (5,))[-1] + 1
    d = effect + spread * (rng.choice([-1.0, 1.0], n) + rng.normal(0, 0.1, n) if two else rng.normal(0, 1, n))
    looks = Looks((*before, n), 40) if before else Looks.single(n)
    found = evidence(d, looks, 0.03, alpha)
    if abs(found.p / alpha - 1) > 5e-3:  # the table of levels is interpolated
        assert (found.p <= alpha) == (found.low > 0 or found.high < 0)
    assert found.low <= found.value <= found.high


@pytest.mark.parametrize("size", [0.05, 0.12, 0.3])
@pytest.mark.parametrize("most", [6, 12, 40])
def test_a_job_that_hits_one_trial_of_each_block_makes_no_more_wrong_words(size, most):
    """Its log ratios have two values, and six of one sign come in 1 of 32 studies, whatever rule sees their size."""
    d = noise.blocked(np.random.default_rng(most), noise.cron(size, 2.0), 3000, 2, most)
    for studies in (designs.fixed(d, most), designs.sequential(d, most)):
        assert 0.005 < studies.differs() <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / len(d))
    # The sequence takes log ratios for normal: 5.5 % of many studies, as docs/statistics/stopping.md says.
    assert designs.always_valid(d, most).differs() <= 0.055 + 2 * math.sqrt(0.05 * 0.95 / len(d))


def test_a_mean_within_reach_of_five_chance_signs_is_no_large_effect():
    one_says_nothing = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 0.0])
    assert large_effect_p(one_says_nothing, np.array(1.0)) == 1
    assert large_effect_p(np.maximum(one_says_nothing, 0.5), np.array(1.0)) < 0.01
    assert large_effect_p(np.ones(5), np.array(1.0)) == 1


def test_what_may_end_early_is_not_called_equivalent_before_ten_blocks():
    d = np.random.default_rng(3).normal(0, 0.001, (200, 1, 10))
    for n in (6, 8, 9, 10):
        for rule in (Looks((6, n) if n > 6 else (6,), 40), AlwaysValid()):
            said = relations(evidence(d[..., :n], rule, 0.03), 0.03)
            assert np.any(said == Relation.EQUIVALENT) == (n >= 10)
    assert np.all(relations(evidence(d[..., :8], Looks.single(8), 0.03), 0.03) == Relation.EQUIVALENT)


def test_a_single_look_at_the_end_has_all():
    assert nominal_level(Looks.single(10), 0.05) == 0.05
    assert sequential_p(np.array([0.01, 0.5]), Looks.single(10)).tolist() == [0.01, 0.5]


def test_a_clock_that_ends_the_run_leaves_nothing_unspent():
    stopped, going_on = Looks((6, 10, 15, 17), 40, final=True), Looks((6, 10, 15, 17), 40)
    assert nominal_level(stopped, 0.05) > 2 * nominal_level(going_on, 0.05)


@given(
    st.floats(1e-6, 0.9),
    st.sampled_from([(6, 10), (6, 10, 15), LOOKS, (6, 10, 13)]),
    st.sampled_from([1, 2]),
)
def test_sequential_p_is_the_alpha_that_just_rejects(p, taken, sides):
    looks = Looks(taken, 40)
    alpha = float(sequential_p(np.array(p), looks, sides))
    assert alpha >= p
    if alpha < 1:
        assert nominal_level(looks, alpha, sides) == pytest.approx(p, rel=5e-3)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=8))
def test_sequential_p_keeps_the_order(p):
    adjusted = sequential_p(np.sort(p), Looks(LOOKS, 40))
    assert (np.diff(adjusted) >= 0).all()
    assert ((adjusted >= 0) & (adjusted <= 1)).all()


def test_planned_looks():
    assert planned_looks(40) == (6, 7, 8, *range(10, 41, 2))
    assert planned_looks(12) == (6, 7, 8, 10, 12)
    assert planned_looks(90) == (*planned_looks(40), 60, 80, 90)


@given(st.integers(2, 30), st.integers(0, 10_000), st.floats(0.001, 0.5))
def test_the_sequence_excludes_a_value_exactly_where_its_p_says_so(n, seed, alpha):
    d = np.random.default_rng(seed).normal(0.5, 1, n)
    low, high = always_valid_interval(d, alpha)
    assert (always_valid_p(d) < alpha) == (low > 0 or high < 0)


def test_the_sequence_holds_at_all_times_at_once():
    d = np.random.default_rng(11).normal(0.02, 0.03, (4000, 60))
    missed = np.zeros(len(d), dtype=bool)
    for n in range(2, 61):
        low, high = always_valid_interval(d[:, :n], 0.05)
        missed |= (low > 0.02) | (high < 0.02)
    assert 0 < missed.mean() <= 0.05


def test_the_sequence_says_nothing_of_one_block_nor_of_no_spread():
    assert math.isinf(always_valid_multiplier(1, 0.05))
    assert always_valid_p(np.array([0.5])) == 1
    assert always_valid_p(np.full(9, 0.5)) == 1
    assert always_valid_interval(np.full(9, 0.5), 0.05)[0] == -math.inf
