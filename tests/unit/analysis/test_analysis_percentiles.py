"""Percentile curves: what the pooled histograms say, as far as enough events stand above."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.analysis.analyse import analyse
from dbdyno.analysis.percentiles import ABOVE_MIN, percentiles
from tests.unit.report.conftest import build, histogram, latencies_of

RESOLUTION = 1 / 1024
LATENCIES = st.lists(st.integers(1, 10**11), min_size=20, max_size=400)
TRIALS = st.lists(LATENCIES, min_size=1, max_size=5)


def histograms(trials):
    return [histogram(np.array(one, float)) for one in trials]


def values(points):
    return {one.percentile: one.latency_ms.value for one in points}


def exact(samples, percentile):
    """The least latency that so large a share does not exceed, ms; without rounding of shares."""
    ordered = sorted(samples)
    return ordered[-(-round(percentile * 10_000) * len(ordered) // 1_000_000) - 1] / 1e6


@given(TRIALS)
def test_curves_ascend_and_stop_where_too_few_events_stand_above(trials):
    points = percentiles(histograms(trials))
    events = sum(map(len, trials))
    at = [one.percentile for one in points]
    assert at == sorted(at)
    assert [one.latency_ms.value for one in points] == sorted(one.latency_ms.value for one in points)
    assert all(events - math.ceil(one / 100 * events - 1e-6) >= ABOVE_MIN for one in at)
    assert (99.0 in at) == (events >= 1000)


@given(TRIALS)
def test_they_are_the_exact_percentiles_within_the_histograms_resolution(trials):
    together = [value for one in trials for value in one]
    for percentile, value in values(percentiles(histograms(trials))).items():
        truth = exact(together, percentile)
        assert truth <= value * (1 + 1e-12)
        assert value <= truth * (1 + RESOLUTION) + 1e-6


@given(TRIALS)
def test_the_trials_together_lie_between_their_extremes(trials):
    one_by_one = [values(percentiles([one])) for one in histograms(trials)]
    for percentile, value in values(percentiles(histograms(trials))).items():
        if all(percentile in one for one in one_by_one):
            assert min(one[percentile] for one in one_by_one) <= value <= max(one[percentile] for one in one_by_one)


@given(TRIALS)
def test_an_interval_holds_its_value_and_a_single_trial_has_none(trials):
    for one in percentiles(histograms(trials)):
        assert one.latency_ms.low <= one.latency_ms.value <= one.latency_ms.high
        assert one.latency_ms.bounded == (len(trials) > 1)


def test_trials_that_are_alike_leave_no_doubt():
    trials = histograms([range(1000, 3000)] * 4)
    assert {one.latency_ms.low / one.latency_ms.value for one in percentiles(trials)} == {1.0}


def test_intervals_hold_the_truth_as_often_as_they_say():
    """Trials differ by 10 %, which their events share: 8 of them, 400 times, a typical and a rare percentile."""
    rng, covered = np.random.default_rng(5), {50.0: 0, 99.0: 0}
    truth = np.exp(np.array([0.0, 2.3263]) * math.hypot(0.5, 0.1))  # of a lognormal
    for _ in range(400):
        trials = [histogram(1e6 * rng.lognormal(rng.normal(0, 0.1), 0.5, 2000)) for _ in range(8)]
        found = {one.percentile: one.latency_ms for one in percentiles(trials)}
        for percentile, true in zip(covered, truth, strict=True):
            covered[percentile] += found[percentile].low <= true <= found[percentile].high
    assert all(0.92 * 400 <= one <= 0.98 * 400 for one in covered.values()), covered


def test_only_trials_that_count_are_in_a_curve_and_those_without_a_histogram_are_counted():
    run = build(blocks=4)  # block 3 was repeated: its first attempt is void
    of_all = latencies_of(run)
    counted = {trial.id for trial in run.trials if not (trial.block == 3 and trial.attempt == 1)}
    some = {id_: one for id_, one in of_all.items() if not id_.startswith("b1a1")}
    for given_, without in ((of_all, 0), (some, 1)):
        curves = analyse(run, latencies=given_).percentiles
        assert [one.treatment for one in curves] == ["t1", "t2", "t3", "t4"]
        assert {(one.trials, one.without) for one in curves} == {(4 - without, without)}
        assert sum(one.events for one in curves) == 5000 * len(counted & set(given_))
    assert analyse(run).percentiles == []


def test_the_largest_is_that_of_all_trials():
    run = build(blocks=2, void_block=0)
    latencies = latencies_of(run)
    (curve, *_) = analyse(run, latencies=latencies).percentiles
    own = [latencies[trial.id].latency_ns.max() for trial in run.trials if trial.treatment == "t1"]
    assert curve.largest_ms == pytest.approx(max(own) / 1e6)


def test_a_latency_of_nothing_has_no_interval():
    """The logarithm of 0 is unknown, and so is how far trials spread."""
    still = histogram(np.full(100, 5000.0))
    still = replace(still, latency_ns=np.zeros(1))
    points = percentiles([still, still])
    assert {one.latency_ms.value for one in points} == {0.0}
    assert not any(one.latency_ms.bounded for one in points)
