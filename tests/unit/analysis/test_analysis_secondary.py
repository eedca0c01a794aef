"""Screened metrics: hints under Benjamini and Hochberg; and every pair on demand, a family of its own."""

from dataclasses import replace

import pytest

from dbdyno.analysis.analyse import analyse
from dbdyno.analysis.statistics import benjamini_hochberg, holm
from dbdyno.analysis.verdict.pairs import every_pair
from dbdyno.model.design import Comparison

SCREENED = ["latency_ms_p99", "server_cpu_us_per_query", "written_bytes_per_query"]


@pytest.fixture
def run(a_run, a_trial):
    """Three treatments alike in rate; t2 burns 20 % more server CPU, and nobody writes a byte."""
    cpu = {"t1": 100.0, "t2": 120.0, "t3": 100.0}
    trials = [
        a_trial(
            id_,
            block,
            1000.0 + (37 * block * place) % 11,
            latency_ms_p99=5 + ((13 * block * place) % 7) / 100,
            server_cpu_us_per_query=cpu[id_] + ((block * place) % 5) / 10,
            written_bytes_per_query=0.0,
        )
        for block in range(1, 11)
        for place, id_ in enumerate(cpu, 1)
    ]
    made = a_run({id_: [1.0] * 10 for id_ in cpu}, trials=trials)
    return replace(made, design=replace(made.design, secondary_metrics=SCREENED))


def test_what_stands_out_is_found_and_corrected_over_all_of_it(run):
    found = analyse(run).secondary
    assert [(one.level_id, one.metric) for one in found] == [
        (level, metric) for level in ("t2", "t3") for metric in SCREENED[:2]  # nobody wrote: no figure
    ]  # fmt: skip
    (one,) = [one for one in found if one.stands_out]
    assert (one.level_id, one.metric, one.effect.n) == ("t2", "server_cpu_us_per_query", 10)
    assert one.effect.value == pytest.approx(0.2, abs=0.01)
    assert [one.p_adjusted for one in found] == pytest.approx(benjamini_hochberg([one.p for one in found]).tolist())


def test_screening_changes_no_verdict(run):
    bare = replace(run, design=replace(run.design, secondary_metrics=[]))
    assert analyse(bare).secondary == []
    screened = [replace(one, secondary=()) for one in analyse(run).verdicts]
    assert analyse(bare).verdicts == screened


def test_the_primary_metric_and_a_dropped_treatment_are_not_screened(a_run):
    run = a_run({"t1": [100.0] * 6, "t2": [110.0] * 6, "t3": []}, failures=[("t3", 1, 1), ("t3", 1, 2)])
    run = replace(run, design=replace(run.design, secondary_metrics=["queries_per_second", "latency_ms_p99"]))
    assert analyse(run).secondary == []


def test_pairs_that_were_not_planned_are_a_family_of_their_own(a_run):
    run = a_run({f"t{i}": [100.0 + i * i + (3 * i * block) % 5 for block in range(12)] for i in range(1, 5)})
    analysis = analyse(run, each_pair=True)
    assert analyse(run).every_pair == []
    assert analysis.verdicts == analyse(run).verdicts
    assert [(one.baseline_id, one.level_id) for one in analysis.every_pair] == [
        ("t2", "t3"), ("t2", "t4"), ("t3", "t4")
    ]  # fmt: skip
    adjusted = holm([one.p for one in analysis.every_pair]).tolist()
    assert [one.p_adjusted for one in analysis.every_pair] == pytest.approx(adjusted)


def test_a_pair_stands_as_it_was_planned(a_run):
    run = a_run({"t1": [1.0] * 6, "t2": [1.0] * 6, "t3": [1.0] * 6}, pairs=[("t3", "t2")])
    run = replace(run, design=replace(run.design, baseline="t3"))
    assert every_pair(run.design) == [Comparison("t1", "t2"), Comparison("t3", "t1"), Comparison("t3", "t2")]


def test_a_study_of_every_pair_has_no_further_ones(a_run):
    scores = {f"t{i}": [100.0 + i * block for block in range(8)] for i in range(1, 4)}
    run = a_run(scores, pairs=[("t1", "t2"), ("t1", "t3"), ("t2", "t3")])
    assert analyse(run, each_pair=True).every_pair == []


def test_a_metric_that_is_zero_somewhere_is_not_screened_by_the_other_blocks(a_run, a_trial):
    """Bytes read in the blocks in which there were any say nothing of the treatment that mostly read none."""
    trials = [
        a_trial(t, block, 100.0 + block, read_bytes_per_query=read)
        for block in range(1, 13)
        for t, read in (("t1", 100.0 + block), ("t2", 0.0 if block < 4 else 500.0 + block))
    ]
    run = a_run({"t1": [1.0] * 12, "t2": [1.0] * 12}, trials=trials)
    screened = replace(run.design, secondary_metrics=["read_bytes_per_query"])
    assert analyse(replace(run, design=screened)).secondary == []
