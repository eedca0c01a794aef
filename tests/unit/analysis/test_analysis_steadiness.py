"""Variation of a rate from second to second, and which of two treatments varies less."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.analysis.analyse import analyse
from dbdyno.analysis.steadiness import SECONDS_MIN, per_second, variation
from dbdyno.model.design import Comparison
from dbdyno.store.reported import ReportedClaim, ReportedTable


@given(st.lists(st.tuples(st.floats(0.05, 0.4), st.floats(0, 1e6)), min_size=1, max_size=80))
def test_seconds_hold_all_that_was_counted_in_them(intervals):
    lengths, rates = (np.array(each) for each in zip(*intervals, strict=True))
    found = per_second(lengths, rates)
    assert len(found) == int(lengths.sum() + 1e-6)
    assert found.sum() <= (lengths * rates).sum() * (1 + 1e-9) + 1e-6
    assert (found >= -1e-6).all()
    if len(found):
        assert found.max() <= rates.max() * (1 + 1e-9) + 1e-6


@given(st.floats(0.1, 1e6), st.floats(0.01, 1e3), st.integers(SECONDS_MIN, 60))
def test_variation_does_not_depend_on_speed(rate, faster, seconds):
    shape = 1 + 0.3 * np.sin(np.arange(seconds))
    assert variation(faster * rate * shape) == pytest.approx(variation(rate * shape))
    assert variation(np.full(seconds, rate)) == pytest.approx(0, abs=1e-9)


def test_too_little_to_tell_is_unknown():
    assert np.isnan(variation(np.ones(SECONDS_MIN - 1)))
    assert np.isnan(variation(np.zeros(60)))
    assert len(per_second(np.empty(0), np.empty(0))) == 0


@given(st.integers(0, 2**32 - 1))
def test_variation_finds_what_was_put_in(seed):
    rng = np.random.default_rng(seed)
    assert variation(100 * (1 + 0.2 * rng.normal(size=4000))) == pytest.approx(0.2, rel=0.1)


def noisy(run, spread, seconds=30):
    """Return the load's series of every trial at 10 Hz, each treatment's seconds varying by its spread."""
    rng = np.random.default_rng(5)
    made = {}
    for trial in run.trials:
        rate = np.repeat(1000 * (1 + spread[trial.treatment] * rng.normal(size=seconds)), 10)
        made[trial.id] = {"t_s": (np.arange(10 * seconds) + 1) / 10, "events_per_second": np.maximum(rate, 0)}
    return made


SPREAD = {"t1": 0.4, "t2": 0.4, "t3": 0.05, "t4": 0.05}


@pytest.fixture
def steady_run(a_run):
    scores = {id_: [100.0 + block for block in range(8)] for id_ in SPREAD}
    return a_run(scores, pairs=[("t1", "t2"), ("t1", "t3"), ("t1", "t4"), ("t3", "t4")])


@pytest.fixture
def asked(steady_run):
    return replace(steady_run, design=replace(steady_run.design, steadiness=True))


def test_the_steadier_treatment_is_found_whichever_is_faster(asked):
    found = analyse(asked, load_series=noisy(asked, SPREAD)).steadiness
    for each in found.treatments:
        assert each.variation.value == pytest.approx(SPREAD[each.treatment], rel=0.2)
    words = {(one.baseline_id, one.level_id): one.verdict for one in found.verdicts}
    assert words["t1", "t3"] == words["t1", "t4"] == "faster"
    spread = {"t1": 0.05, "t2": 0.05, "t3": 0.4, "t4": 0.4}
    turned = analyse(asked, load_series=noisy(asked, spread)).steadiness.verdicts
    assert {one.verdict for one in turned if one.baseline_id == "t1" and one.level_id != "t2"} == {"slower"}


def test_a_published_claim_of_steadiness_is_held_against_it(asked):
    claims = [
        ReportedClaim("so", [Comparison("t1", "t3")], True, direction) for direction in ("steadier", "less steady")
    ]
    table = ReportedTable("x", "", "queries_per_second", "", [], claims, "")
    reported = replace(asked, reported=[table])
    (held,) = analyse(reported, load_series=noisy(asked, SPREAD)).beside
    assert [[agreement for _, agreement in claim.outcomes] for claim in held.claims] == [["agrees"], ["contradicts"]]
    (bare,) = analyse(reported).beside
    assert [claim.outcomes for claim in bare.claims] == [(), ()]


def test_nothing_is_said_where_nobody_asks_or_trials_are_short(asked, steady_run):
    assert analyse(steady_run, load_series=noisy(steady_run, SPREAD)).steadiness is None
    assert analyse(asked, load_series=noisy(asked, SPREAD, seconds=SECONDS_MIN - 1)).steadiness is None
    assert analyse(asked).steadiness is None


def test_of_a_load_in_phases_the_one_counts_in_which_most_was_done(asked):
    series = noisy(asked, dict.fromkeys(SPREAD, 0.05))
    for columns in series.values():
        idle = len(columns["t_s"])
        columns["t_s"] = np.arange(1, 2 * idle + 1) / 10
        columns["phase"] = np.array(["load"] * idle + ["index"] * idle)
        columns["events_per_second"] = np.concatenate([columns["events_per_second"], np.zeros(idle)])
    found = analyse(asked, load_series=series).steadiness
    assert all(each.variation.value < 0.08 for each in found.treatments)
