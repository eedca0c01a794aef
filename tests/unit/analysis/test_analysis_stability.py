"""What a series does over time: each shape is called by its own name, and told with the figures it was made with."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benches.honesty.stability import SHAPES
from dbdyno.analysis.analyse import analyse
from dbdyno.analysis.over_time import SAMPLES_MIN, classify, gathered, mser_5, shifts, warm_up
from dbdyno.analysis.statistics import curve, long_run_variance
from dbdyno.store.records import FailedTrial

SECONDS = np.arange(1.0, 601.0)


def noisy(rng, rho=0.6, n=600, sd=0.03):
    noise = rng.normal(0, sd, n)
    for i in range(1, n):
        noise[i] = rho * noise[i - 1] + math.sqrt(1 - rho**2) * noise[i]
    return 60 * (1 + noise)


@pytest.mark.parametrize("rho", [0.6, 0.9])
@pytest.mark.parametrize(("kind", "shape"), [(kind, shape) for _, kind, shape, _ in SHAPES], ids=[s[0] for s in SHAPES])
def test_each_shape_is_called_by_its_own_name(kind, shape, rho):
    rng = np.random.default_rng(8)
    said = [classify(SECONDS, shape(rng, rho)).kind for _ in range(20)]
    assert said.count(kind) >= 17, said


def test_a_change_of_regime_is_told_with_its_moment_and_levels():
    rate = noisy(np.random.default_rng(1))
    rate[214:] *= 36 / 60
    found = classify(SECONDS, rate)
    assert (found.kind, found.changes) == ("regime change", 1)
    assert found.at_s == pytest.approx(214, abs=2)
    assert (found.one, found.other) == pytest.approx((60, 36), rel=0.03)
    assert math.isnan(found.settled_s)


def test_an_outage_is_two_changes_and_no_sawtooth():
    rate = noisy(np.random.default_rng(2))
    rate[300:360] *= 0.5
    assert shifts(rate) == pytest.approx([300, 360], abs=2)
    assert classify(SECONDS, rate).changes == 2


def test_the_period_of_a_sawtooth():
    rate = noisy(np.random.default_rng(3)) * (1 + 0.3 * (SECONDS / 8 % 1))
    found = classify(SECONDS, rate)
    assert (found.kind, found.period_s) == ("sawtooth", pytest.approx(8, rel=0.01))
    tenths = classify(SECONDS / 10, rate)
    assert tenths.period_s == pytest.approx(0.8, rel=0.01)


def test_the_levels_of_a_bimodal_series_and_the_depth_of_a_jagged_one():
    rng = np.random.default_rng(4)
    low = np.cumsum(rng.random(600) < 0.3) % 2
    found = classify(SECONDS, noisy(rng) * np.where(low, 0.7, 1))
    assert (found.kind, found.one, found.other) == ("bimodal", pytest.approx(60, rel=0.03), pytest.approx(42, rel=0.03))
    stalled = noisy(rng)
    stalled[::20] = 6
    found = classify(SECONDS, stalled)
    assert (found.kind, found.one, found.other) == ("jagged", pytest.approx(6, abs=4), pytest.approx(60, rel=0.03))


def test_a_warm_up_is_left_out_and_told():
    rate = noisy(np.random.default_rng(5)) * (1 - 0.5 * np.exp(-SECONDS / 10))
    found = classify(SECONDS, rate)
    assert found.kind == "steady"
    assert 15 <= found.settled_s <= 60
    # A level that is left at once is warm-up as well.
    rate = noisy(np.random.default_rng(6))
    rate[:12] *= 0.5
    assert 12 <= classify(SECONDS, rate).settled_s <= 25


def test_a_steady_series_is_steady_from_its_beginning():
    rng = np.random.default_rng(7)
    found = [classify(SECONDS, noisy(rng)) for _ in range(20)]
    assert sum(each.kind == "steady" and each.settled_s == 0 for each in found) >= 19


def test_what_keeps_settling_never_settles():
    rate = noisy(np.random.default_rng(9)) * (1 - 0.5 * np.exp(-SECONDS / 200))
    found = classify(SECONDS, rate)
    assert found.kind == "drift"
    assert found.one < found.other


def test_a_short_series_is_too_short_to_tell():
    assert classify(SECONDS[: SAMPLES_MIN - 1], np.ones(SAMPLES_MIN - 1)).kind == "too short"
    assert classify(np.empty(0), np.empty(0)).kind == "too short"


@settings(max_examples=60, deadline=None)
@given(
    rate=st.lists(st.sampled_from([0.0, 0.0, 1.0, 50.0, 60.0, 61.0, 1e6]), min_size=60, max_size=200),
    times=st.integers(-10, 20),  # powers of 2: no rounding
)
def test_any_series_has_a_class_and_units_do_not_matter(rate, times):
    rate = np.asarray(rate)
    end_s = np.arange(1, len(rate) + 1) / 10
    found = classify(end_s, rate)
    assert found.kind == classify(end_s, rate * 2.0**times).kind
    assert (
        found.kind == "too short"
        or math.isfinite(found.settled_s)
        or found.kind
        in {
            "drift",
            "regime change",
            "unsettled",
        }
    )


@pytest.mark.parametrize("rate", [np.zeros(100), np.full(100, 7.0), np.r_[np.zeros(99), 5.0], np.r_[9.0, np.zeros(99)]])
def test_what_never_varies_or_does_so_once_raises_nothing(rate):
    assert classify(np.arange(1.0, 101.0), rate).kind in {"steady", "jagged", "unsettled"}


def test_mser_5_is_the_minimum_of_its_definition():
    rng = np.random.default_rng(10)
    for _ in range(20):
        rate = noisy(rng, n=203) * (1 - rng.uniform(0, 0.5) * np.exp(-np.arange(203) / rng.uniform(1, 50)))
        means = rate[:200].reshape(40, 5).mean(axis=1)
        scores = [np.sum((means[d:] - means[d:].mean()) ** 2) / (40 - d) ** 2 for d in range(21)]
        assert mser_5(rate, 101) == 5 * int(np.argmin(scores))


def test_a_warm_up_takes_no_more_than_a_fifth():
    rate = noisy(np.random.default_rng(11), rho=0.0, sd=0.01)
    rate[:200] *= np.linspace(0.5, 1, 200)
    assert not warm_up(rate).settled
    assert warm_up(noisy(np.random.default_rng(12))) == type(warm_up(rate))(0, settled=True)


def test_the_long_run_variance_is_that_of_the_mean():
    rng = np.random.default_rng(13)
    for rho in (0.0, 0.6, 0.9):
        found = [long_run_variance(each - each.mean()) for each in (noisy(rng, rho, sd=1 / 60) for _ in range(40))]
        assert 0.9 <= np.median(found) / ((1 + rho) / (1 - rho)) <= 1.5, rho  # in doubt more


def test_a_parabola_is_fitted_as_numpy_does():
    rng = np.random.default_rng(14)
    values = rng.normal(5, 2, 77)
    places = np.arange(77)
    assert curve(values) == pytest.approx(np.polyval(np.polyfit(places, values, 2), places), rel=1e-9)


def test_intervals_are_gathered_until_they_count_enough():
    ends, lengths = np.arange(1, 101) / 10, np.full(100, 0.1)
    few = gathered(ends, lengths, np.full(100, 290.0))  # 29 in a tenth of a second
    assert len(few.rate) == 25
    assert few.end_s[:2] == pytest.approx([0.4, 0.8])
    assert few.rate == pytest.approx(290)
    assert len(gathered(ends, lengths, np.full(100, 5000.0)).rate) == 100
    assert len(gathered(np.arange(1, 6001) / 10, np.full(6000, 0.1), np.full(6000, 5000.0)).rate) == 600
    assert len(gathered(ends, lengths, np.zeros(100)).rate) == 0
    assert len(gathered(ends, lengths, np.full(100, 1.0)).rate) == 1
    assert len(gathered(ends[:3], lengths[:3], np.full(3, 1e6)).rate) == 3


@pytest.mark.parametrize("samples", [3, 5, 10, 20])
def test_what_lasts_less_than_a_twentieth_is_no_regime(samples):
    """A second in which nothing is done, of 60, is a stall."""
    rng = np.random.default_rng(samples)
    series = [rng.poisson(300, 600) / 0.1 for _ in range(20)]
    for rate in series:
        rate[200 : 200 + samples] = 0.0
    said = [classify(SECONDS / 10, rate) for rate in series]
    assert not [one for one in said if one.kind == "regime change" and min(one.one, one.other) < 1500]
    if samples >= 10:  # more than 1 % of the time
        assert {one.kind for one in said} == {"jagged"}


# What is said of a treatment's load over time, from the series of its usable trials.


def load(rate, **columns):
    """Return a trial's load series at 10 Hz, as it comes from a run folder."""
    ends = np.arange(1, len(rate) + 1) / 10
    return {"t_s": ends, "events_per_second": np.asarray(rate, float), **columns}


def steady(seed, n=200):
    return 2000 * (1 + 0.02 * np.random.default_rng(seed).normal(size=n))


def stepped(seed):
    return steady(seed) * np.where(np.arange(200) < 120, 1, 0.6)


def series(run, rates):
    """Return load series; ``rates`` makes one of (treatment, block), or nothing."""
    made = {trial.id: rates(trial.treatment, trial.block) for trial in run.trials}
    return {id_: load(rate) for id_, rate in made.items() if rate is not None}


def test_without_series_nothing_is_said(a_run):
    assert analyse(a_run({"t1": [1.0] * 6, "t2": [1.0] * 6})).stability == []


def test_a_treatment_is_of_the_class_that_most_of_its_trials_are(a_run):
    run = a_run({"t1": [100.0] * 6, "t2": [110.0] * 6})
    changing = {("t1", 3), ("t2", 1), ("t2", 2), ("t2", 4), ("t2", 5)}
    told = series(run, lambda treatment, block: (stepped if (treatment, block) in changing else steady)(block))
    first, second = analyse(run, load_series=told).stability
    assert (first.treatment, first.typical.kind, first.of_class, first.trials) == ("t1", "steady", 5, 6)
    assert (first.never_settled, first.typical.settled_s) == (1, 0)
    assert (second.treatment, second.typical.kind, second.of_class, second.never_settled) == (
        "t2",
        "regime change",
        4,
        4,
    )
    assert second.typical.at_s == pytest.approx(12, abs=0.3)
    assert (second.typical.one, second.typical.other) == pytest.approx((2000, 1200), rel=0.02)
    assert [kind.kind for _, kind in second.by_trial].count("regime change") == 4


def test_of_two_classes_as_frequent_the_worse_is_told(a_run):
    run = a_run({"t1": [100.0] * 4, "t2": [110.0] * 4})
    told = series(run, lambda _, block: (stepped if block > 2 else steady)(block))
    assert {each.typical.kind for each in analyse(run, load_series=told).stability} == {"regime change"}


def test_short_trials_are_counted_but_do_not_outvote(a_run):
    run = a_run({"t1": [100.0] * 4, "t2": [110.0] * 4})
    told = series(run, lambda treatment, block: steady(block, 200 if (treatment, block) == ("t1", 4) else 20))
    first, second = analyse(run, load_series=told).stability
    assert (first.typical.kind, first.of_class, first.too_short, first.never_settled) == ("steady", 1, 3, 0)
    assert (second.typical.kind, second.of_class, second.too_short, second.never_settled) == ("too short", 4, 4, 0)
    assert math.isnan(second.typical.settled_s)


def test_trials_of_void_attempts_do_not_count(a_run, a_trial):
    run = a_run({"t1": [100.0] * 2, "t2": [110.0] * 2})
    void = a_trial("t1", 1, 100.0, attempt=2)
    run = replace(run, trials=[*run.trials, void], failures=[FailedTrial("f", 1, 2, "t2", "died")])
    told = {**series(run, lambda *_: steady(1)), void.id: load(stepped(1))}
    first, _ = analyse(run, load_series=told).stability
    assert (first.typical.kind, first.trials) == ("steady", 2)


def test_each_phase_is_judged_by_itself_and_by_rows_where_verdicts_are(a_run):
    run = a_run({"t1": [100.0] * 2, "t2": [110.0] * 2}, metric="rows_per_second")
    phase = np.array(["load"] * 150 + ["index"] * 50)
    rows = np.where(phase == "load", 1e5, 0) * steady(3) / 2000
    told = {trial.id: load(np.zeros(200), rows_per_second=rows, phase=phase) for trial in run.trials}
    found = analyse(run, load_series=told).stability
    assert [(each.treatment, each.phase, each.unit, each.typical.kind) for each in found] == [
        ("t1", "load", "rows/s", "steady"),
        ("t1", "index", "rows/s", "too short"),
        ("t2", "load", "rows/s", "steady"),
        ("t2", "index", "rows/s", "too short"),
    ]


def test_series_that_lack_what_is_needed_are_passed_over(a_run):
    run = a_run({"t1": [100.0] * 2, "t2": [110.0] * 2})
    one, other, *_ = (trial.id for trial in run.trials)
    queries = {"t_s": load(steady(1))["t_s"], "queries_per_second": np.asarray(steady(1))}
    (found,) = analyse(run, load_series={one: queries, other: {"t_s": np.arange(5.0)}}).stability
    assert (found.treatment, found.unit, found.trials) == ("t1", "queries/s", 1)
