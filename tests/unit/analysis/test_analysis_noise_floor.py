"""The noise floor: what it claims is so, and it is told of A/A runs only."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from dbdyno.analysis.analyse import analyse
from dbdyno.analysis.noise_floor import between_starts, multiple, orders, reach
from dbdyno.analysis.statistics import signed_rank_interval, walsh_averages, welch_p
from dbdyno.model.design import SameTreatment

GROUP = st.lists(st.floats(1, 1000), min_size=2, max_size=12).map(np.array)


@given(GROUP, GROUP)
def test_welch_is_scipy_s(first, second):
    assume(min(np.std(first), np.std(second)) > 1e-3)  # scipy warns of less
    assert welch_p(first, second) == pytest.approx(stats.ttest_ind(first, second, equal_var=False).pvalue, abs=1e-9)


def test_welch_without_spread_or_values():
    assert welch_p(np.ones(3), np.ones(3)) == 1
    assert welch_p(np.ones(3), np.full(3, 2.0)) == 0
    assert math.isnan(welch_p(np.ones(1), np.ones(3)))


@pytest.mark.parametrize(("blocks", "comparisons"), [(6, 1), (8, 4), (10, 1), (10, 3), (20, 4), (40, 1)])
def test_what_is_within_reach_is_found_in_eighty_of_a_hundred(blocks, comparisons):
    """Both the pilot of 10 blocks and the study of ``blocks`` are drawn anew each time."""
    rng = np.random.default_rng(blocks)
    sigma = rng.normal(0, 1, (4000, 10)).std(axis=1, ddof=1)
    averages = walsh_averages(rng.normal(0, 1, (4000, blocks)))
    level = 0.05 / comparisons
    low, _ = signed_rank_interval(averages, blocks, level)
    assert np.mean(low + multiple(blocks, level, 9, 1) * sigma > 0) == pytest.approx(0.8, abs=0.03)
    low, high = signed_rank_interval(averages, blocks, 2 * level)
    bound = multiple(blocks, 2 * level, 9, 2) * sigma
    assert np.mean((low > -bound) & (high < bound)) == pytest.approx(0.8, abs=0.03)


def test_more_blocks_reach_further_and_more_comparisons_less_far():
    d = np.random.default_rng(1).normal(0, 0.02, 10)
    alone, among = reach(d, 1), reach(d, 4)
    for field in ("difference", "margin"):
        values = [getattr(one, field) for one in alone]
        assert values == sorted(values, reverse=True)
    assert all(b.difference is None or b.difference > a.difference for a, b in zip(alone, among, strict=True))
    assert among[0].difference is among[0].margin is None, "6 blocks can't show anything among 4 comparisons"
    assert reach(d[:5], 1) == ()


def test_no_spread_is_no_limit():
    assert {one.difference for one in reach(np.zeros(10), 1)} == {0}


def test_a_drift_fools_a_fixed_order_but_not_turns():
    rng = np.random.default_rng(2)
    values = 100 * np.exp(np.linspace(0, 0.1, 20) + rng.normal(0, 0.005, 20))
    halves, turns, _ = orders(values.tolist(), [True, False] * 10)
    assert halves.means_differ
    assert halves.welch_differs
    assert halves.difference == pytest.approx(values[10:].mean() / values[:10].mean() - 1)
    assert not turns.means_differ
    assert not turns.welch_differs
    assert orders([1.0, 2.0, 3.0], [True, False, True]) == ()


@pytest.mark.parametrize(("starts", "inside"), [(0.02, 0.005), (0.0, 0.02), (0.01, 0.01)])
def test_the_share_between_starts_is_found(starts, inside):
    """A trial is a start and two halves; its rate is the mean of the halves."""
    rng = np.random.default_rng(3)
    halves = rng.normal(0, starts, (400, 2, 1)) + rng.normal(0, inside, (400, 2, 2))
    trials = halves.mean(axis=2)
    share = between_starts(trials[:, 1] - trials[:, 0], np.exp(halves[..., 1] - halves[..., 0]).ravel().tolist())
    truth = starts**2 / (starts**2 + inside**2 / 2)
    assert share.value == pytest.approx(truth, abs=0.1)
    assert share.low <= truth <= share.high


def test_the_interval_of_the_share_covers():
    rng = np.random.default_rng(4)
    truth, covered = 0.01**2 / (0.01**2 + 0.01**2 / 2), 0
    for _ in range(400):
        halves = rng.normal(0, 0.01, (10, 2, 1)) + rng.normal(0, 0.01, (10, 2, 2))
        trials = halves.mean(axis=2)
        share = between_starts(trials[:, 1] - trials[:, 0], np.exp(halves[..., 1] - halves[..., 0]).ravel().tolist())
        covered += share.low <= truth <= share.high
    assert covered / 400 == pytest.approx(0.95, abs=0.03)


def same(run, comparisons=1):
    return replace(run, design=replace(run.design, aa=SameTreatment("nvme", comparisons)))


def test_of_a_whole_run(a_run):
    rng = np.random.default_rng(5)
    scores = {id_: (100 * np.exp(rng.normal(0, 0.01, 10))).tolist() for id_ in ("t1", "t2")}
    run = same(a_run(scores), comparisons=3)
    trials = [replace(trial, load={"second_half_ratio": float(np.exp(rng.normal(0, 0.01)))}) for trial in run.trials]
    floor = analyse(replace(run, trials=trials)).noise_floor
    d = np.log(scores["t2"]) - np.log(scores["t1"])
    assert floor.spread.value == pytest.approx(d.std(ddof=1))
    assert floor.spread.low < floor.spread.value < floor.spread.high
    assert (floor.treatment, floor.comparisons, floor.spread.n) == ("nvme", 3, 10)
    assert floor.reach[4].margin == pytest.approx(reach(d, 3)[4].margin)
    assert floor.drift.low <= 0 <= floor.drift.high
    assert floor.orders[2].difference == pytest.approx(np.mean(scores["t2"]) / np.mean(scores["t1"]) - 1)
    assert floor.between_starts.known


def test_a_run_of_another_metric_does_not_tell_of_starts(a_run):
    run = same(a_run({"t1": [1.0] * 8, "t2": [1.0] * 8}, metric="latency_ms_p99"))
    assert not analyse(run).noise_floor.between_starts.known


@pytest.mark.parametrize("blocks", [0, 1, 2, 5])
def test_few_blocks_say_little_and_break_nothing(a_run, blocks):
    run = same(a_run({"t1": [1.0, 1.1, 1.2, 1.0, 1.1], "t2": [1.1, 1.0, 1.0, 1.3, 1.2]}))
    floor = analyse(replace(run, trials=[trial for trial in run.trials if trial.block <= blocks])).noise_floor
    assert floor.reach == ()
    assert floor.spread.known is (blocks > 1)


def test_any_other_run_has_none(a_run):
    assert analyse(a_run({"t1": [1.0] * 8, "t2": [1.0] * 8})).noise_floor is None
