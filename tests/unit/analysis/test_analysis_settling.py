"""What is said of a treatment's load over time, from the series of its usable trials."""

import math
from dataclasses import replace

import numpy as np
import pytest

from dbdyno.analysis.analyse import analyse
from dbdyno.store.records import FailedTrial


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
