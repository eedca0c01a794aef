"""The table, the notes, and numbers in words."""

import math
from dataclasses import replace

import pytest

from dbdyno.analysis.analyse import analyse
from dbdyno.analysis.over_time import drift_over_run
from dbdyno.model.metrics import METRICS
from dbdyno.model.wording import count, margin_text, number, p_value, percent, percent_range, times_as_much
from dbdyno.report.notes import run_notes


def test_one_row_per_treatment(a_run, a_trial):
    trials = [
        a_trial(t, block, qps, seconds_real=10.0 + block, latency_ms_p99=float(block), seconds_user=0.5)
        for block in (1, 2, 3)
        for t, qps in (("t1", 100.0), ("t2", 110.0))
    ]
    first, second = analyse(a_run({"t1": [1] * 3, "t2": [1] * 3}, trials=trials)).treatments
    assert (first.id, first.label, first.is_baseline, first.n) == ("t1", "level t1", True, 3)
    assert (first.seconds_real_min, first.seconds_real_mean, first.seconds_real_max) == (11, 12, 13)
    assert first.latency_ms["latency_ms_p99"] == 2
    assert first.queries_per_second == 100
    assert math.isnan(first.seconds_sys)
    assert not first.effect.known
    assert second.effect.value == pytest.approx(0.1)
    assert not second.effect.bounded


def test_an_empty_run_has_rows_of_unknowns(a_run):
    run = a_run({"t1": [1.0], "t2": [1.0]}, trials=[])
    analysis = analyse(run)
    assert [row.n for row in analysis.treatments] == [0, 0]
    assert all(math.isnan(row.seconds_real_mean) for row in analysis.treatments)
    assert run_notes(run, analysis) == ["0 of 1 planned block can be used."]


def test_same_run_same_analysis(a_run):
    run = a_run({"t1": [100.0 + i for i in range(8)], "t2": [110.0 + i * i for i in range(8)]})
    assert analyse(run) == analyse(run)


def test_drift_is_noted_but_changes_no_verdict(a_run):
    falling = [100 * 0.98**i for i in range(8)]
    drifting = a_run({"t1": falling, "t2": [1.2 * value for value in falling]})
    steady = a_run({"t1": [100.0] * 8, "t2": [120.0] * 8})
    assert any("drifted by -14 %" in note for note in run_notes(drifting, analyse(drifting)))
    assert run_notes(steady, analyse(steady)) == []
    (found,), (expected,) = analyse(drifting).verdicts, analyse(steady).verdicts
    assert found.effect.value == pytest.approx(expected.effect.value)


def test_drift_needs_enough_trials():
    assert not drift_over_run(range(5), ["a"] * 5, [1.0, 2, 3, 4, 5]).known


def test_every_known_metric_has_words():
    assert all(one.words and one.heading and one.unit for one in METRICS.values())


@pytest.mark.parametrize(
    ("fraction", "text"),
    [
        (3.12, "4.12x"),
        (0.0312, "+3.1 %"),
        (-0.0004, "0.0 %"),
        (0.0996, "+10 %"),
        (-0.5, "-50 %"),
        (-0.992, "-99.2 %"),
        (-0.99953, "-99.95 %"),
        (-1, "-100 %"),
        (12.345, "13.3x"),
        (374.42, "375x"),
        (9.996, "11.0x"),
        (math.nan, "unknown"),
        (math.inf, "unknown"),
    ],
)
def test_percent(fraction, text):
    assert percent(fraction) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (4.426, "4.426"),
        (12480.4, "12,480"),
        (0.08714, "0.0871"),
        (99.996, "100.00"),
        (0, "0"),
        (1e-9, "0.000000"),
        (math.nan, "unknown"),
    ],
)
def test_number(value, text):
    assert number(value) == text


def test_other_words():
    assert percent_range(0.029, 0.034) == "+2.9 to +3.4 %"
    assert percent_range(-math.inf, 1) == "unknown"
    assert margin_text(0.025) == "2.5 %"
    assert [p_value(p) for p in (0.0078125, 1e-5, 0.125, 1.0, math.nan)] == [
        "p = 0.008",
        "p < 0.001",
        "p = 0.125",
        "p = 1",
        "p unknown",
    ]
    assert (count(1, "block"), count(1200, "block")) == ("1 block", "1,200 blocks")


def test_a_p_above_the_limit_does_not_read_as_the_limit():
    assert p_value(0.05) == "p = 0.050"
    assert [p_value(p) for p in (0.05001, 0.0504, 0.0506)] == ["p = 0.0501", "p = 0.0504", "p = 0.051"]


@pytest.mark.parametrize(("ended", "until", "told"), [
    ("running", "blocks", True), ("interrupted", "decided", True),
    ("running", "open", False), ("done", "blocks", False),
])  # fmt: skip
def test_a_run_that_has_not_ended_is_not_to_be_left_for_what_it_says(a_run, ended, until, told):
    run = a_run({"t1": [100.0 + i for i in range(7)], "t2": [110.0] * 7})
    run = replace(run, ended=ended, design=replace(run.design, until=until, blocks=10))
    assert any("p does not allow for that look" in note for note in run_notes(run, analyse(run))) == told


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (4.6, 5.126, "5.60 to 6.13x"),
        (0.97, 1.03, "+97 to +103 %"),
        (0.97, 1.05, "1.97 to 2.05x"),
        (-0.5, 19, "0.500 to 20.0x"),
        (1233.8, 2000, "1,230 to 2,000x"),
    ],
)
def test_a_range_is_one_of_ratios_where_its_middle_is(low, high, text):
    assert percent_range(low, high) == text


def test_times_as_much():
    assert times_as_much(4.9, 4.94) == "5.9 times"
    assert times_as_much(4.2, 8.99) == "5.2 to 10 times"
