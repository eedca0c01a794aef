"""The figures of both sides beside an effect: bars on one scale from 0, with intervals."""

import re
from dataclasses import replace

import pytest

from dbdyno.analysis.analyse import analyse
from dbdyno.model.wording import number
from dbdyno.report.charts import forest
from dbdyno.report.charts.forest import BEYOND, sides_of
from dbdyno.report.sections.results import cells
from dbdyno.report.sentences import in_order
from tests.unit.report.conftest import build
from tests.unit.report.rendered import as_markdown, as_page

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


# The table by cell: circumstances downwards, the level compared across.


BY_DEVICE = [("t1", "t3"), ("t2", "t4")]


def test_seconds_seconds_per_1000_and_ratios(build):
    run = build(pairs=BY_DEVICE)
    found = cells(analyse(run))
    assert found.headings == (
        *("", "hdd-7200 s", "ssd-sata s", "hdd-7200 s/1,000", "ssd-sata s/1,000"),
        "ssd-sata: times as fast",
    )
    assert [row[0] for row in found.rows] == ["mq-deadline", "none"]
    for row, verdict in zip(found.rows, analyse(run).verdicts, strict=True):
        seconds, per_1000 = float(row[1]), float(row[3])
        assert seconds == pytest.approx(5 * per_1000, rel=0.01)  # 5,000 queries
        times, low, high = (
            float(part) for part in row[5].replace("(", "").replace(")", "").replace(" to ", " ").split()
        )
        assert low < times < high
        assert times == pytest.approx(1 + verdict.effect.value, rel=0.001)


def test_less_is_faster(build):
    run = build(pairs=BY_DEVICE)
    seconds = replace(run, design=replace(run.design, metric="seconds_real"))
    assert float(cells(analyse(seconds)).rows[0][-1].split()[0]) > 3


def test_none_where_several_factors_are_compared_or_there_is_one_cell(build, run):
    assert cells(analyse(run)) is None
    assert cells(analyse(build(pairs=[("t1", "t2")], rates={"t1": 400.0, "t2": 410.0}))) is None
    assert "By cell" not in as_page(run, analyse(run), {})


def test_the_page_and_markdown_have_it(build):
    run = build(pairs=BY_DEVICE)
    assert ">By cell</h2>" in as_page(run, analyse(run), {})
    assert "## By cell" in as_markdown(run, analyse(run))


def test_before_there_is_a_block_there_is_a_table_without_figures(build):
    run = replace(build(pairs=BY_DEVICE), trials=[], failures=[])
    assert cells(analyse(run)).rows[0] == ("mq-deadline", "unknown", "unknown", "-")
