"""The table by cell: circumstances downwards, the level compared across."""

from dataclasses import replace

import pytest

from dbdyno.analysis.analyse import analyse
from dbdyno.report.sections.results import cells
from tests.unit.report.rendered import as_markdown, as_page

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
