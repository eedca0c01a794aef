"""What each query costs: one figure has one answer, words keep the margin, and *why* names the costs that moved."""

import pytest

from dbdyno.analysis.analyse import analyse
from dbdyno.analysis.query_costs import cost_word
from dbdyno.model.metrics import COSTS, METRICS
from dbdyno.report.sections import query_costs as section
from dbdyno.report.source import Source
from dbdyno.report.why import costs_sentence

SWITCHES = "voluntary_switches_per_query"


@pytest.fixture
def run(a_run, a_trial):
    """t2 is 19 % slower, takes 23 % more CPU and half the flushes; writes are as many; nobody counted instructions."""
    trials = [
        a_trial(
            id_,
            block,
            rate + (37 * block * place) % 11,
            server_cpu_us_per_query=cpu + ((block * place) % 5) / 10,
            flushes_per_query=flushes + ((block * place) % 3) / 100,
            writes_per_query=2.0 + ((block * 7 + place) % 4) / 200,
            reads_per_query=0.0,
            **{SWITCHES: 3 + ((block * 5 + place * 3) % 7) / 2},
        )
        for block in range(1, 11)
        for place, (id_, rate, cpu, flushes) in enumerate((("t1", 1000.0, 100.0, 1.0), ("t2", 810.0, 123.0, 0.5)), 1)
    ]
    return a_run({"t1": [1.0] * 10, "t2": [1.0] * 10}, trials=trials)


def test_words_are_of_the_whole_interval_and_unknown_costs_are_left_out(run):
    analysis = analyse(run)
    words = {change.metric: cost_word(change, 0.03) for change in analysis.query_costs.changes}
    assert words == {
        "server_cpu_us_per_query": "more",
        SWITCHES: "unclear",
        "writes_per_query": "alike",
        "flushes_per_query": "less",
    }
    assert analysis.query_costs.metrics == [name for name in COSTS if name in {*words, "reads_per_query"}], (
        "no reads are a figure, though there is no ratio of them"
    )


def test_a_cost_that_the_study_names_is_judged_once(run, replaced_design):
    named = replaced_design(run, secondary_metrics=["server_cpu_us_per_query", "latency_ms_p99"])
    analysis = analyse(named)
    (judged,) = analysis.secondary
    assert judged in analysis.query_costs.changes
    assert [change.metric for change in analysis.query_costs.changes].count("server_cpu_us_per_query") == 1
    primary = replaced_design(run, metric="server_cpu_us_per_query")
    assert "server_cpu_us_per_query" not in {change.metric for change in analyse(primary).query_costs.changes}


def test_why_names_what_moved_beside_the_difference(run):
    analysis = analyse(run)
    (verdict,) = analysis.verdicts
    assert verdict.verdict == "slower"
    assert (
        costs_sentence(verdict, analysis)
        == "Per query it takes 23 % more server CPU and 49 % fewer flushes of the device."
    )


def test_the_section_has_values_for_programs_and_a_line_of_what_moved(run):
    analysis = analyse(run)
    made = section.section(Source(run, analysis))
    values = made.data["query_costs"]
    assert {row["label"]: row["figures"]["reads_per_query"] for row in values["treatments"]} == {
        "level t1": 0.0,
        "level t2": 0.0,
    }
    assert {row["metric"]: row["word"] for row in values["comparisons"]}["flushes_per_query"] == "less"
    (line,) = section.lines(analysis.query_costs, 0.03)
    assert line.startswith("level t2 against level t1: server CPU per query +23")
    assert made.blocks
    assert section.section(Source(run, analyse(replaced(run)))).blocks == ()


def replaced(run):
    from dataclasses import replace

    only = [replace(trial, metrics={"queries_per_second": 1.0, "server_cpu_us_per_query": 5.0}) for trial in run.trials]
    return replace(run, trials=only)


@pytest.fixture
def replaced_design():
    from dataclasses import replace

    return lambda run, **changes: replace(run, design=replace(run.design, **changes))


def test_every_cost_is_a_metric_of_which_less_is_better():
    assert not any(METRICS[name].more_is_better for name in COSTS)
