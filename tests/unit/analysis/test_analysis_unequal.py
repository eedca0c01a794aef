"""Failures and disturbances that strike one treatment more often than the other withhold the word."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from benches.honesty import unequal as bench
from benches.honesty.noise import independent
from dbdyno.analysis.analyse import planned_verdicts
from dbdyno.analysis.blocks import usable_blocks
from dbdyno.analysis.verdict.unequal import disturbed_among, p_alike
from dbdyno.report.reasons import reason_text as why

FASTER = [1.10, 1.12, 1.09, 1.11, 1.13, 1.10, 1.08, 1.12, 1.11, 1.10]


def judged(run):
    (verdict,) = planned_verdicts(run, usable_blocks(run))
    return verdict


def failed(*counts):
    """Failures of t1 and t2 in attempts of blocks of their own, all but the last tried again."""
    each = [id_ for id_, count in zip(("t1", "t2"), counts, strict=True) for _ in range(count)]
    return [(id_, block, 0) for block, id_ in enumerate(each, 1)]


@pytest.mark.parametrize(("counts", "word"), [((0, 0), "faster"), ((2, 2), "faster"), ((0, 2), "faster")])
def test_failures_alike_on_both_sides_or_few_leave_the_word(a_run, counts, word):
    scores = {"t1": [1000.0] * 10, "t2": [1000 * ratio for ratio in FASTER]}
    assert judged(a_run(scores, failures=failed(*counts))).verdict == word


def test_failures_on_one_side_withhold_a_word_that_they_may_have_made(a_run):
    scores = {"t1": [1000.0] * 10, "t2": [1000 * ratio for ratio in np.array(FASTER) - 0.07]}
    assert judged(a_run(scores)).verdict == "faster"
    verdict = judged(a_run(scores, failures=failed(0, 6)))
    assert verdict.verdict == "undecided"
    assert why(verdict.reason) == (
        "as measured it is faster, but level t2 failed or met interference in 6 attempts, level t1 in"
        " 0, and unequal failures may explain the difference"
    )


def test_a_difference_far_beyond_the_spread_stands_all_the_same(a_run):
    """Three times as fast: however bad the missing trials, they would have been faster."""
    scores = {"t1": [1000.0] * 10, "t2": [2700 * ratio for ratio in FASTER]}
    assert judged(a_run(scores, failures=failed(0, 6))).verdict == "faster"


def test_disturbances_on_one_side_withhold_the_word(a_run):
    scores = {"t1": [1000.0] * 10, "t2": [*(1000 / ratio for ratio in FASTER[:7]), 1002.0, 999.0, 1001.0]}
    run = a_run(scores)
    assert judged(run).verdict == "slower"
    spoiled = [
        replace(trial, disturbance={"beyond": ["foreign_cpu"]})
        if trial.treatment == "t2" and trial.block < 8
        else trial
        for trial in run.trials
    ]
    assert judged(replace(run, trials=spoiled)).verdict == "undecided"
    both = [replace(trial, disturbance={"beyond": ["foreign_cpu"]}) for trial in run.trials]
    assert judged(replace(run, trials=both)).verdict == "slower", "alike on both sides it favours neither"


def test_a_trial_too_short_for_a_narrow_limit_counts_as_disturbed_by_that_of_the_other(a_run):
    (long, short) = a_run({"t1": [1.0], "t2": [50.0]}).trials
    long = replace(long, disturbance={"beyond": ["foreign_cpu"], "foreign_cpu": 0.9, "limits": {"foreign_cpu": 0.12}})
    busy, quiet = ({"beyond": [], "foreign_cpu": share, "limits": {"foreign_cpu": 4.9}} for share in (0.5, 0.1))
    assert disturbed_among([long, replace(short, disturbance=busy)]) == {"t1", "t2"}
    assert disturbed_among([long, replace(short, disturbance=quiet)]) == {"t1"}
    assert disturbed_among([replace(long, disturbance={}), replace(short, disturbance=busy)]) == frozenset()


@pytest.mark.parametrize("until", ["blocks", "open"])
@pytest.mark.parametrize(("times", "word"), [(50, "faster"), (1.15, "undecided")])
def test_where_all_of_one_side_were_disturbed_a_difference_far_beyond_the_spread_stands(a_run, until, times, word):
    rng = np.random.default_rng(1)
    run = a_run({"t1": [1000.0] * 20, "t2": list(1000 * times * np.exp(rng.normal(0, 0.1, 20)))})
    run = replace(run, design=replace(run.design, until=until))
    spoiled = [
        replace(trial, disturbance={"beyond": ["foreign_cpu"]}) if trial.treatment == "t1" else trial
        for trial in run.trials
    ]
    assert judged(run).verdict == "faster"
    assert judged(replace(run, trials=spoiled)).verdict == word


@pytest.mark.parametrize(("more", "fewer"), [(0, 0), (3, 0), (4, 0), (5, 1), (12, 3), (7, 7)])
def test_the_exact_test_is_the_binomial_one(more, fewer):
    expected = stats.binomtest(more, more + fewer).pvalue if more else 1.0
    assert p_alike(more, fewer) == pytest.approx(expected)


def test_unequal_disturbance_and_failure_make_wrong_words_as_measured_and_none_as_judged():
    rng = np.random.default_rng(3)
    for name in ("5 and 60 % disturbed", "the slowest 5 and 60 % left out"):
        measured, told = bench._shares(rng, independent, 40, 20, bench.HARMS[name], 0.0, {"faster", "slower"})
        assert measured > 50 or "left out" in name
        assert told <= 10
