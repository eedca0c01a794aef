"""The figures of both sides beside an effect: bars on one scale from 0, with intervals."""

import re
from dataclasses import replace

import pytest

from dbdyno.analysis.analyse import analyse
from dbdyno.model.wording import number
from dbdyno.report.charts import forest
from dbdyno.report.charts.forest import BEYOND, sides_of
from dbdyno.report.sentences import in_order
from tests.unit.report.conftest import build

SAID = re.compile(r"; ([\d,.]+) \([^)]*\) against ([\d,.]+) \([^)]*\) queries/s<")  # what a row says of its sides


def drawn(run, window):
    return str(forest.charts(analyse(run))[0].drawn(window))


@pytest.mark.parametrize("window", ["wide", "narrow"])
def test_each_comparison_has_the_figures_of_both_sides(run, window):
    svg = drawn(run, window)
    rows = {row.id: row for row in analyse(run).treatments}
    compared = [id_ for one in run.design.comparisons for id_ in (one.baseline, one.level)]
    for id_ in compared:
        assert svg.count(f">{number(rows[id_].metric.value)}</text>") == compared.count(id_)
    assert len(SAID.findall(svg)) == len(run.design.comparisons)
    assert ">queries/s</text>" in svg


@pytest.mark.parametrize("window", ["wide", "narrow"])
def test_bars_are_as_long_as_their_figures(run, window):
    svg = drawn(run, window)
    bars = [float(width) for width in re.findall(r'<rect x="[^"]*" y="[^"]*" width="([^"]*)" height="8"', svg)]
    figures = [float(text.replace(",", "")) for pair in SAID.findall(svg) for text in pair]
    assert len(bars) == len(figures)
    longest = max(bars) / max(figures)
    assert bars == pytest.approx([figure * longest for figure in figures], abs=0.2)


def test_a_wild_interval_ends_at_the_edge():
    run = build(2, noise=0.8, pairs=[("t1", "t3")], void_block=0)
    found = analyse(run)
    figures = sides_of(in_order(found), found)
    marks = "".join(map(str, figures.pair(found.verdicts[0], 100.0, 150.0, (10.0, 20.0))))
    whiskers = [float(x) for x in re.findall(r"M([\d.]+),", marks)]
    assert max(whiskers) == pytest.approx(100 + BEYOND * 150, abs=0.1)


def test_a_comparison_without_a_ratio_leaves_the_others_theirs(run):
    """A figure of 0 has no geometric mean, and what is compared with it no effect to draw."""
    zero = [replace(one, metrics={**one.metrics, "queries_per_second": 0.0}) if one.treatment == "t2" else one
            for one in run.trials]  # fmt: skip
    zero = replace(run, trials=zero)
    assert not analyse(zero).treatments[1].metric.known
    assert len(SAID.findall(drawn(zero, "wide"))) == len(SAID.findall(drawn(run, "wide"))) - 1


def test_of_a_latency_less_is_better_and_that_is_said(run):
    run = replace(run, design=replace(run.design, metric="latency_ms_p99"))
    assert "p99 ms (less is better)" in drawn(run, "wide")
