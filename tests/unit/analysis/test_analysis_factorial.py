"""Effects of factors: contrasts inside blocks, judged over blocks, each family by itself."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.regression.linear_model import OLS

from dbdyno.analysis.analyse import analyse
from dbdyno.analysis.blocks import usable_blocks
from dbdyno.analysis.factors import difference, effect_of, weights
from dbdyno.analysis.verdict.figures import MetricFigures
from dbdyno.analysis.verdict.finding import Paired, judge
from dbdyno.model.design import Comparison, Design, Factor, Treatment
from dbdyno.report.reasons import reason_text as why
from dbdyno.store.records import FailedTrial, Run, Trial

DEVICES, SCHEDULERS = ["hdd", "ssd"], ["deadline", "none"]
TWO_BY_TWO = {"device": DEVICES, "scheduler": SCHEDULERS}


def treatments_of(levels):
    return [
        Treatment(f"t{number}", dict(zip(levels, combination, strict=True)))
        for number, combination in enumerate(product(*levels.values()), 1)
    ]


def a_run(levels, logs, *, sections=None, hard=(), metric="queries_per_second", baseline="t1", failures=()):  # noqa: PLR0913
    """Return a run in which treatment i of block b scored ``exp(logs[b][i])``; NaN: the trial has no metric."""
    treatments = treatments_of(levels)
    trials = [
        Trial(f"{t.id}-{block}", block, 1, 1, t.id, "2025-01-01T00:00:00Z", {metric: math.exp(value)})
        for block, row in enumerate(logs, 1)
        for t, value in zip(treatments, row, strict=True)
    ]
    sections = sections or {}
    design = Design(
        treatments=treatments,
        baseline=baseline,
        comparisons=[Comparison(baseline, t.id) for t in treatments if t.id != baseline],
        blocks=len(logs),
        margin=0.03,
        metric=metric,
        seed=1,
        factors=[Factor(name, sections.get(name, "stack"), values, name in hard) for name, values in levels.items()],
    )
    failed = [FailedTrial(f"f{i}", block, attempt, id_, "died") for i, (id_, block, attempt) in enumerate(failures)]
    return Run("A study", "", design, trials, failed, {}, {}, "done", [])


def noisy(effects, blocks=10, sd=0.005, seed=1):
    rng = np.random.default_rng(seed)
    return np.asarray(effects) + rng.normal(0, sd, (blocks, len(effects))) + rng.normal(0, 0.2, (blocks, 1))


def factors_of(run):
    return analyse(run).factors


some_levels = st.lists(st.integers(1, 4), min_size=1, max_size=3).map(
    lambda counts: {f"f{i}": [f"l{k}" for k in range(count)] for i, count in enumerate(counts)}
)


@given(some_levels, st.integers(0, 10_000))
def test_a_main_effect_is_the_mean_of_its_simple_effects(levels, seed):
    treatments, logs = (
        treatments_of(levels),
        np.random.default_rng(seed).normal(0, 1, math.prod(map(len, levels.values()))),
    )
    for factor, other in product(levels, levels):
        for level in levels[factor][1:]:
            contrast = effect_of(treatments, factor, level, levels[factor][0])
            assert sum(contrast.values()) == pytest.approx(0, abs=1e-12)
            if factor == other:
                continue
            simple = [effect_of(treatments, factor, level, levels[factor][0], {other: at}) for at in levels[other]]
            of_each = [logs @ weights(one, treatments) for one in simple]
            assert logs @ weights(contrast, treatments) == pytest.approx(np.mean(of_each))


@given(st.integers(0, 10_000), st.floats(-1, 1), st.floats(-1, 1), st.floats(-1, 1))
def test_contrasts_find_what_was_put_in_whatever_the_block(seed, device, scheduler, both):
    effects = np.array([0.0, scheduler, device, device + scheduler + both])
    logs = effects + np.random.default_rng(seed).normal(0, 3, (5, 1))
    treatments = treatments_of(TWO_BY_TWO)
    run = a_run(TWO_BY_TWO, logs)
    figures = MetricFigures(run, usable_blocks(run), "queries_per_second")
    at = [effect_of(treatments, "scheduler", "none", "deadline", {"device": where}) for where in DEVICES]
    expected = {
        scheduler: at[0],
        scheduler + both: at[1],
        both: difference(at[1], at[0]),
        device + both / 2: effect_of(treatments, "device", "ssd", "hdd"),
    }
    for truth, contrast in expected.items():
        assert list(figures.by_block(contrast)) == list(range(1, 6))
        assert list(figures.by_block(contrast).values()) == pytest.approx([truth] * 5, abs=1e-9)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 12))
def test_means_over_blocks_agree_with_statsmodels(seed, blocks):
    logs = noisy([0, 0.1, 1, 1.3], blocks, sd=0.1, seed=seed)
    treatments = treatments_of(TWO_BY_TWO)
    device, scheduler = np.tile([[0, 0, 1, 1], [0, 1, 0, 1]], blocks)
    of_block = np.repeat(np.eye(blocks), 4, axis=0)
    additive = OLS(logs.ravel(), np.column_stack((of_block, device, scheduler))).fit().params
    crossed = OLS(logs.ravel(), np.column_stack((of_block, device, scheduler, device * scheduler))).fit().params
    at = [effect_of(treatments, "scheduler", "none", "deadline", {"device": where}) for where in DEVICES]
    contrasts = [effect_of(treatments, "device", "ssd", "hdd"), effect_of(treatments, "scheduler", "none", "deadline")]
    ours = [logs.mean(axis=0) @ weights(one, treatments) for one in (*contrasts, difference(at[1], at[0]))]
    assert ours == pytest.approx([*additive[-2:], crossed[-1]], abs=1e-9)


def test_an_effect_on_one_device_only_is_an_interaction():
    found = factors_of(a_run(TWO_BY_TWO, noisy([0, 0.12, 2, 1.99])))
    assert [(one.factor, one.level, one.baseline) for one in found.main_effects] == [
        ("device", "ssd", "hdd"),
        ("scheduler", "none", "deadline"),
    ]
    assert [one.depends_on for one in found.main_effects] == [("scheduler",), ("device",)]
    [one] = found.interactions
    assert one.word.interaction_text == "differs"
    assert (one.here.at, one.there.at, one.here.factor) == ("hdd", "ssd", "scheduler")
    assert (one.here.verdict.verdict, one.there.verdict.verdict) == ("faster", "equivalent")
    assert math.log1p(one.verdict.effect.value) == pytest.approx(-0.13, abs=0.01)
    assert one.verdict.blocks == 10


def test_equal_effects_on_both_are_none():
    found = factors_of(a_run(TWO_BY_TWO, noisy([0, 0.1, 2, 2.1])))
    assert [one.word.interaction_text for one in found.interactions] == ["does not differ"]
    assert [one.depends_on for one in found.main_effects] == [(), ()]
    assert [one.verdict.verdict for one in found.main_effects] == ["faster", "faster"]


def test_noise_decides_nothing():
    found = factors_of(a_run(TWO_BY_TWO, noisy([0, 0.02, 0.02, 0], sd=0.1)))
    assert {one.word.interaction_text for one in found.interactions} == {"undecided"}


def test_less_can_be_better():
    logs = noisy([0, -0.3, 0, -0.3])
    found = factors_of(a_run(TWO_BY_TWO, logs, metric="latency_ms_p99"))
    assert found.main_effects[1].verdict.verdict == "faster"
    assert {one.verdict.verdict for one in found.simple_effects} == {"faster"}


def test_the_baseline_decides_which_levels_are_compared():
    found = factors_of(a_run(TWO_BY_TWO, noisy([0, 0.1, 2, 2.1]), baseline="t4"))
    assert [(one.level, one.baseline) for one in found.main_effects] == [("hdd", "ssd"), ("deadline", "none")]
    assert [one.verdict.verdict for one in found.main_effects] == ["slower", "slower"]


def test_each_family_is_corrected_by_itself():
    levels = {"x": ["1", "2", "3"], "y": ["1", "2"]}
    run = a_run(levels, noisy(np.zeros(6), sd=0.02, seed=3))
    found = factors_of(run)
    assert (len(found.main_effects), len(found.simple_effects), len(found.interactions)) == (3, 3, 2)
    treatments = run.design.treatments
    contrasts = [effect_of(treatments, *what) for what in (("x", "2", "1"), ("x", "3", "1"), ("y", "2", "1"))]
    figures = MetricFigures(run, usable_blocks(run), "queries_per_second")
    pairs = [Paired("", "", "", str(i), figures.by_block(one)) for i, one in enumerate(contrasts)]
    expected = judge(pairs, analyse(run).metric, 0.03)
    assert [one.verdict.p_adjusted for one in found.main_effects] == [one.p_adjusted for one in expected]


def test_a_dropped_treatment_leaves_what_needs_it_not_comparable():
    levels = {"device": ["hdd", "ssd", "nvme"], "scheduler": SCHEDULERS}
    logs = noisy([0, 0.1, 1, 1.1, 2, 2.1])
    run = a_run(levels, logs, failures=[("t6", 1, 1), ("t6", 1, 2)])
    run = replace(run, trials=[trial for trial in run.trials if trial.treatment != "t6"], dropped=frozenset({"t6"}))
    found = factors_of(run)
    words = {f"{one.factor} {one.level}": one.verdict.verdict for one in found.main_effects}
    assert words == {"device ssd": "faster", "device nvme": "not comparable", "scheduler none": "not comparable"}
    assert [one.word.interaction_text for one in found.interactions] == ["does not differ", "not comparable"]
    assert (
        why(found.interactions[1].verdict.reason)
        == "nvme / none, which it needs, failed again and again and was dropped"
    )


def test_a_block_without_a_value_is_left_out_of_what_needs_it():
    run = a_run(TWO_BY_TWO, noisy([0, 0.1, 1, 1.1]))
    trials = [replace(t, metrics={}) if (t.treatment, t.block) == ("t4", 3) else t for t in run.trials]
    found = factors_of(replace(run, trials=trials))
    assert {one.verdict.blocks for one in found.main_effects} == {9}
    assert {(one.at, one.verdict.blocks) for one in found.simple_effects} == {("hdd", 10), ("ssd", 9)}


@pytest.mark.parametrize(
    ("sections", "hard", "told"),
    [
        ({}, (), ("scheduler", "device")),
        ({}, ("scheduler",), ("device", "scheduler")),
        ({"device": "workload"}, ("scheduler",), ("scheduler", "device")),
        ({"scheduler": "workload"}, (), ("device", "scheduler")),
    ],
)
def test_the_effect_told_is_that_of_what_one_would_change(sections, hard, told):
    found = factors_of(a_run(TWO_BY_TWO, noisy([0, 0.1, 1, 1.1]), sections=sections, hard=hard))
    assert found.pairs() == [told]


def test_the_clearest_pair_comes_first():
    levels = {"a": ["1", "2"], "b": ["1", "2"], "c": ["1", "2"]}
    effects = [0.3 * (t.levels["b"] == t.levels["c"] == "2") for t in treatments_of(levels)]
    found = factors_of(a_run(levels, noisy(effects)))
    assert found.pairs()[0] == ("c", "b")
    assert [one.word.interaction_text for one in found.interactions] == [
        "does not differ",
        "does not differ",
        "differs",
    ]


@pytest.mark.parametrize("levels", [{"device": DEVICES}, {"device": DEVICES, "scheduler": ["none"]}])
def test_one_factor_has_no_effects_beside_its_verdicts(levels):
    found = factors_of(a_run(levels, noisy([0, 0.1])))
    assert (found.main_effects, found.simple_effects, found.interactions) == ([], [], [])


@pytest.mark.parametrize("blocks", [1, 2, 5])
def test_few_blocks_claim_nothing(blocks):
    found = factors_of(a_run(TWO_BY_TWO, noisy([0, 1, 2, 9], blocks)))
    expected = "not comparable" if blocks == 1 else "undecided"
    assert {one.word.interaction_text for one in found.interactions} == {expected}
    assert {one.verdict.verdict for one in (*found.main_effects, *found.simple_effects)} == {expected}
