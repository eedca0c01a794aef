"""Ranking over several tests: scores, intervals and letters as worked out by hand; what can not be ranked is said."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dbdyno.analysis.analyse import analyse
from dbdyno.analysis.blocks import RefusedError
from dbdyno.analysis.ranking import rank_runs
from dbdyno.analysis.verdict.finding import Paired, judge
from dbdyno.model.design import Design, Factor, Treatment
from dbdyno.model.metrics import METRICS
from dbdyno.report.several import message
from dbdyno.store.records import FailedTrial, Run, Trial

STACKS, CLIENTS = ("hdd", "ssd", "nvme"), ("1", "10")


def a_run(rate, *, blocks=8, stacks=STACKS, clients=CLIENTS, title="A study", **design):
    """Return a run in which ``rate(stack, clients, block)`` is the metric."""
    combinations = [(stack, load) for stack in stacks for load in clients]
    treatments = [
        Treatment(f"t{i}", {"device": stack, **({"clients": load} if len(clients) > 1 else {})})
        for i, (stack, load) in enumerate(combinations, 1)
    ]
    factors = [Factor("device", "stack", list(stacks)), Factor("clients", "workload", list(clients))]
    made = {"metric": "queries_per_second", "blocks": blocks, "margin": 0.03, "seed": 1, "comparisons": []} | design
    trials = [
        Trial(f"b{block}-{t.id}", block, 1, 1, t.id, "", {made["metric"]: rate(stack, load, block)})
        for block in range(1, blocks + 1)
        for t, (stack, load) in zip(treatments, combinations, strict=True)
    ]
    drawn = Design(treatments=treatments, baseline="t1", factors=factors[: 1 + (len(clients) > 1)], **made)
    return Run(title, "", drawn, trials, [], {}, {}, "done", [])


FACTOR = {("hdd", "1"): 1.0, ("ssd", "1"): 4.0, ("nvme", "1"): 9.0, ("hdd", "10"): 10.0, ("ssd", "10"): 90.0,
          ("nvme", "10"): 40.0}  # fmt: skip


def plain(stack, load, block):
    return 100 * FACTOR[stack, load] * (1 + 0.001 * ((block * (7 + len(stack) + len(load))) % 5))


def test_scores_are_geometric_means_of_ratios_to_the_baseline():
    ranking = analyse(a_run(lambda stack, load, _: 100 * FACTOR[stack, load])).ranking
    assert [(one.place, one.stack) for one in ranking.scores] == [(1, "ssd"), (2, "nvme"), (3, "hdd")]
    scores = {one.stack: one.score.value for one in ranking.scores}
    assert scores == pytest.approx({"hdd": 1.0, "ssd": (4 * 9) ** 0.5, "nvme": (9 * 4) ** 0.5})
    assert ranking.tests == ("clients 1", "clients 10")
    assert ranking.scores[0].by_test["clients 10"].value == pytest.approx(9.0)
    assert {one.letters for one in ranking.scores if one.stack != "hdd"} == {"a"}
    assert (ranking.baseline, ranking.blocks, ranking.left_out) == ("hdd", 8, ())


def test_less_is_better_where_it_is():
    ranking = analyse(a_run(plain, metric="latency_ms_p99")).ranking
    assert ranking.scores[0].stack == "hdd"
    assert ranking.scores[0].letters == "a"


def test_without_loads_or_stacks_to_choose_from_there_is_none():
    assert analyse(a_run(plain, clients=("1",))).ranking is None
    assert analyse(a_run(plain, stacks=("hdd",))).ranking is None


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_estimate_interval_and_letters_are_those_of_the_mean_log_ratio(seed):
    rng = np.random.default_rng(seed)
    noise = rng.normal(0, 0.02, (9, 3, 2)) + rng.choice([0.0, 0.02, 0.05], (1, 3, 1))
    run = a_run(lambda stack, load, block: np.exp(noise[block - 1, STACKS.index(stack), CLIENTS.index(load)]), blocks=9)
    ranking = analyse(run).ranking
    d = noise.mean(axis=2)
    pairs = [(0, 1), (0, 2), (1, 2)]
    paired = [Paired(STACKS[i], STACKS[j], "", "", dict(enumerate((d[:, j] - d[:, i]).tolist()))) for i, j in pairs]
    findings = judge(paired, METRICS["queries_per_second"], 0.03)
    by_stack = {one.stack: one for one in ranking.scores}
    for finding in findings[:2]:
        score = by_stack[finding.level].score
        assert [score.value, score.low, score.high] == pytest.approx(
            [1 + finding.effect.value, 1 + finding.effect.low, 1 + finding.effect.high]
        )
    for finding in findings:
        tied = set(by_stack[finding.level].letters) & set(by_stack[finding.baseline].letters)
        assert bool(tied) == (not finding.verdict.is_different)


def one_test(run, clients, title):
    """Return the part of a run with one load, as a run of its own."""
    kept = [t.id for t in run.design.treatments if t.levels["clients"] == clients]
    treatments = [
        replace(t, levels={"device": t.levels["device"]}) for t in run.design.treatments if t.id in kept
    ]  # fmt: skip
    design = replace(run.design, treatments=treatments, baseline=kept[0], factors=run.design.factors[:1])
    return replace(run, title=title, design=design, trials=[t for t in run.trials if t.treatment in kept])


def test_two_runs_of_one_load_each_rank_as_one_run_of_both():
    whole = a_run(plain)
    both = rank_runs([("few", one_test(whole, "1", "few")), ("many", one_test(whole, "10", "many"))])
    assert both.tests == ("few", "many")
    assert [(one.stack, one.score, one.letters) for one in both.scores] == [
        (one.stack, one.score, one.letters) for one in analyse(whole).ranking.scores
    ]


def test_the_shortest_run_decides_the_blocks_and_void_ones_close_up():
    long, short = one_test(a_run(plain, blocks=12), "1", "long"), one_test(a_run(plain, blocks=9), "10", "short")
    missing = [trial for trial in short.trials if trial.block != 2]
    ranking = rank_runs([("long", long), ("short", replace(short, trials=missing))])
    assert ranking.blocks == 8
    assert all(one.score.n == 8 for one in ranking.scores)


def test_a_stack_that_only_some_runs_have_is_left_out():
    fewer = a_run(plain, stacks=("ssd", "hdd"), clients=("1",))
    ranking = rank_runs([("all", one_test(a_run(plain), "1", "all")), ("fewer", fewer)])
    assert ranking.left_out == ("nvme",)
    assert (ranking.baseline, [one.stack for one in ranking.scores]) == ("hdd", ["ssd", "hdd"])
    assert rank_runs([("fewer", fewer)], baseline="hdd").scores[0].score.value > 1


def test_a_dropped_treatment_takes_its_stack_out_of_the_ranking():
    run = a_run(plain)
    failures = [FailedTrial(f"f{attempt}", 1, attempt, "t4", "died") for attempt in (1, 2)]
    left = [trial for trial in run.trials if trial.treatment != "t4"]
    run = replace(run, trials=left, failures=failures, dropped=frozenset({"t4"}))
    run = replace(run, trials=[replace(trial, attempt=2) if trial.block == 1 else trial for trial in run.trials])
    ranking = analyse(run).ranking
    assert ranking.left_out == ("ssd",)
    assert [one.stack for one in ranking.scores] == ["nvme", "hdd"]


def test_more_looks_or_an_open_end_make_it_stricter():
    fixed, looks = a_run(plain, blocks=10), a_run(plain, blocks=10, until="decided")
    free = a_run(plain, blocks=10, until="open")
    width = [
        max(one.score.high - one.score.low for one in rank_runs([("a", run), ("b", fixed)]).scores)
        for run in (fixed, looks, free)
    ]
    assert width[0] < min(width[1:])


@pytest.mark.parametrize(
    ("runs", "said"),
    [
        (
            [a_run(plain), a_run(plain, metric="seconds_real")],
            "different metrics .*: a about queries.*, b about seconds",
        ),
        (
            [a_run(plain), a_run(plain, stacks=("hdd",))],
            "at least 2 stacks .* only 'hdd' in common: a has 'hdd', 'ssd'",
        ),
        ([a_run(plain, stacks=("nvme",)), a_run(plain, stacks=("hdd", "ssd"))], "have none in common"),
        ([a_run(plain, blocks=1)], "at least 2 stacks with usable blocks"),
    ],
)
def test_what_can_not_be_ranked_is_said(runs, said):
    with pytest.raises(RefusedError) as refused:
        rank_runs(list(zip("abc", runs, strict=False)))
    assert re.search(said, message(refused.value))


def test_an_unknown_baseline_is_said():
    with pytest.raises(RefusedError) as refused:
        rank_runs([("a", a_run(plain))], baseline="tape")
    assert message(refused.value) == "'tape' is not a stack of every test; choose one of: 'hdd', 'ssd', 'nvme'"


def test_a_run_that_stopped_by_its_results_is_not_excused_by_another_s_clock():
    """Whatever their order: the shortest run decides how many blocks count, and it had looked at its results."""
    decided = a_run(plain, blocks=10, clients=("1",), until="decided")
    runs = [
        replace(decided, design=replace(decided.design, blocks=40), stopped="decided"),
        replace(a_run(plain, blocks=20, clients=("1",), until="decided"), stopped="budget"),
    ]
    runs[1] = replace(runs[1], design=replace(runs[1].design, blocks=40))
    alone = rank_runs([("a", runs[0]), ("b", runs[0])])
    for order in (runs, runs[::-1]):
        ranking = rank_runs([("a", order[0]), ("b", order[1])])
        assert ranking.blocks == alone.blocks == 10
        for one, other in zip(ranking.scores, alone.scores, strict=True):
            assert (one.score.low, one.score.high) == pytest.approx((other.score.low, other.score.high))
