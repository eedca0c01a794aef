"""What one trial leaves for the next: found, told beside the verdict, taken out where it is clear."""

import math
from dataclasses import replace

import numpy as np
import pytest

from benches.honesty import carry_over as bench
from benches.honesty.designs import MARGIN, rules_of
from benches.honesty.noise import reference
from dbdyno.analysis.analyse import analyse, planned_verdicts
from dbdyno.analysis.blocks import usable_blocks
from dbdyno.analysis.verdict.evidence import Relation
from dbdyno.analysis.verdict.figures import UNKNOWN, TrialOrder, fit, predecessors, taken_out
from dbdyno.model.design import Comparison, Design, Treatment
from dbdyno.report.notes import remarks
from dbdyno.report.reasons import reason_text as why
from dbdyno.report.sections.stopped import interval_words
from dbdyno.report.sections.verdicts import carry_over_json
from dbdyno.report.why import short_reason
from dbdyno.store.records import FailedTrial, Run, Trial

METRIC = "queries_per_second"
WORDS = {"undecided": 0, "faster": 1, "slower": 2, "equivalent": 3}


def run_of(ran, study=0):
    """The records of one of the benchmark's studies."""
    blocks, levels = ran.logs.shape[1:]
    ids = [f"t{n}" for n in range(1, levels + 1)]
    trials = [
        Trial(
            f"{b}-{p}", b + 1, 1, p + 1, ids[ran.treatment[study, b, p]], "", {METRIC: math.exp(ran.logs[study, b, p])}
        )
        for b in range(blocks)
        for p in range(levels)
    ]
    treatments = [Treatment(id_, {"level": f"level {id_}"}) for id_ in ids]
    design = Design(treatments, "t1", [Comparison("t1", id_) for id_ in ids[1:]], blocks, MARGIN, METRIC, 1)
    return Run("A study", "", design, trials, [], {}, {}, "done", [])


def a_study(left, *, blocks=40, levels=2, effect=0.0, seed=1, replicates=1):  # noqa: PLR0913
    ran = bench.trials(np.random.default_rng(seed), reference, replicates, levels, left, effect)
    return TrialOrder(ran.logs[:, :blocks], ran.treatment[:, :blocks], ran.before[:, :blocks], levels)


@pytest.mark.parametrize("levels", [2, 3, 5])
def test_without_noise_what_is_left_and_the_effect_are_found_exactly(levels):
    ran = a_study(0.0, levels=levels, blocks=12)
    left, effect = np.linspace(0, 0.08, levels), np.linspace(0, -0.3, levels)
    logs = np.where(ran.before == UNKNOWN, 0.0, left[ran.before]) + effect[ran.treatment]
    logs = logs + np.random.default_rng(2).normal(0, 1, (1, 12, 1)) + 1e-9 * ran.logs
    found = taken_out(replace(ran, logs=logs), fit(replace(ran, logs=logs)), bench.difference_of(levels, 0, levels - 1))
    assert found.difference == pytest.approx(left[-1], abs=1e-6)
    assert found.corrected[:, 1:] == pytest.approx(effect[-1], abs=1e-6)


def test_the_benchmark_judges_as_the_product_does():
    for levels in (2, 3):
        for left, effect in ((0.0, 0.0), (0.05, 0.0), (0.0, 0.03)):
            ran = a_study(left, levels=levels, blocks=20, effect=effect, replicates=6)
            told = bench.judged(ran, rules_of("blocks", 20))
            for study in range(6):
                run = run_of(ran, study)
                said = [WORDS[one.verdict] for one in planned_verdicts(run, usable_blocks(run))]
                assert said == told.found[study].tolist()


def test_clear_carry_over_is_taken_out_and_told_with_its_size():
    run = run_of(a_study(0.08))
    analysis = analyse(run)
    (verdict,) = analysis.verdicts
    assert verdict.as_measured.high < 0.07
    assert verdict.as_measured.low > 0, "as measured the second is faster, by half of what it leaves"
    assert verdict.verdict != "faster"
    assert verdict.effect.low < 0 < verdict.effect.high
    remark = remarks(verdict, analysis)[0]
    assert remark.startswith("Carry-over: trials after level t2 differ from trials after level t1 by -")
    assert "Effect, interval and verdict are corrected for it; as measured the effect is +" in remark
    assert 'settle = "30s"' in remark
    assert interval_words(analysis).name == "95 % interval", "what was estimated is no longer exact"
    document = carry_over_json(verdict)
    assert document["taken_out"]
    assert document["low"] < math.expm1(-0.08) < document["high"]
    assert dict(verdict.by_block).keys() == set(range(1, 41)), "the blocks are shown as measured"


def test_simulated_trials_leave_nothing_for_each_other():
    run = run_of(a_study(0.08))
    assert analyse(run).verdicts[0].carry_over is not None
    assert analyse(replace(run, study={"stack": {"kernel": "2.6.18"}})).verdicts[0].carry_over is None


def test_a_word_that_carry_over_may_account_for_is_withheld():
    ran = a_study(0.05, blocks=10, replicates=300)
    alone = bench.judged(ran, rules_of("blocks", 10), as_measured=True).found[:, 0]
    judged = bench.judged(ran, rules_of("blocks", 10)).found[:, 0]
    study = int(np.flatnonzero((alone == Relation.HIGHER) & (judged == Relation.UNDECIDED))[0])
    run = run_of(ran, study)
    (verdict,) = planned_verdicts(run, usable_blocks(run))
    assert verdict.verdict == "undecided"
    if not verdict.carry_over.taken_out:
        assert why(verdict.reason).startswith("as measured it is faster, but carry-over from one trial to the next")
        assert verdict.withheld_for == verdict.carry_over


def test_without_carry_over_nothing_is_said():
    analysis = analyse(run_of(a_study(0.0, effect=0.05)))
    (verdict,) = analysis.verdicts
    assert verdict.verdict == "faster"
    assert verdict.carry_over.p > 0.05
    assert interval_words(analysis).name == "exact 95 % interval"
    assert remarks(verdict, analysis) == []
    assert carry_over_json(verdict)["seen"] is False


def test_in_a_fixed_order_it_cannot_be_told():
    ran = a_study(0.05)
    order = np.broadcast_to(np.arange(2), ran.treatment.shape)
    before = np.concatenate((np.full((1, 1), UNKNOWN), order.reshape(1, -1)[:, :-1]), axis=1).reshape(order.shape)
    fixed = TrialOrder(ran.logs, order, before, 2)
    assert not taken_out(fixed, fit(fixed), bench.difference_of(2, 0, 1)).known
    (verdict,) = planned_verdicts(run_of(fixed), usable_blocks(run_of(fixed)))
    assert verdict.carry_over is None


def test_the_trial_before_is_that_which_ran_before_whether_it_counts_or_not():
    def trial(block, attempt, position, treatment):
        return Trial(f"b{block}a{attempt}p{position}", block, attempt, position, treatment, "", {METRIC: 1.0})

    run = run_of(a_study(0.0, blocks=3))
    trials = [trial(1, 1, 1, "t1"), trial(1, 1, 2, "t2"), trial(2, 1, 1, "t2"), trial(2, 2, 1, "t1"),
              trial(2, 2, 2, "t2"), trial(3, 1, 1, "t1"), trial(3, 2, 1, "t2"), trial(3, 2, 2, "t1")]  # fmt: skip
    found = predecessors(replace(run, trials=trials, failures=[FailedTrial("f", 3, 1, "t2", "died")]))
    assert found == {
        "b1a1p2": "t1",
        "b2a1p1": "t2",
        "b2a2p1": "t2",
        "b2a2p2": "t1",
        "b3a2p2": "t2",
    }, "of the first trial, of the attempt with the failure and of the first trial after it nothing is known"


def test_a_metric_that_no_trial_carries_is_no_obstacle():
    run = run_of(a_study(0.0, blocks=8))
    (verdict,) = planned_verdicts(replace(run, design=replace(run.design, metric="iops")), usable_blocks(run))
    assert verdict.verdict == "not comparable"


@pytest.mark.simulation
def test_every_row_of_the_benchmark_is_met():
    assert [row for row in bench.rows(600, 11) if row.met is False] == []


def test_a_table_counts_the_blocks_that_agree_as_the_verdict_does():
    """Carry-over that hides half of an effect: without it more blocks agree than as measured."""
    ran, corrected = a_study(0.08, effect=0.07, replicates=12), 0
    for study in range(12):
        analysis = analyse(run_of(ran, study))
        (verdict,) = analysis.verdicts
        if verdict.verdict.is_different:
            corrected += verdict.carry_over.taken_out
            assert f"{verdict.verdict} {short_reason(verdict, analysis)}" in why(verdict.reason)
    assert corrected
