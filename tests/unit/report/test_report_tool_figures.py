"""Reports of runs of other programs: their own figures, no queries, the unit of a command."""

from dataclasses import replace
from json import loads

import pytest

from dbdyno.analysis.analyse import analyse
from dbdyno.report.sections.results import tool_figures_section
from dbdyno.report.source import Source
from tests.unit.report.conftest import build
from tests.unit.report.rendered import as_json, as_markdown, as_page, as_text


def told(metric, unit="", **factors):
    """A run whose trials carry no queries but these metrics, as multiples of what was their rate."""
    run = build(blocks=8)
    trials = [
        replace(
            trial,
            metrics={
                **{name: trial.metrics["queries_per_second"] * factor for name, factor in factors.items()},
                "seconds_real": 5.0,
            },
        )
        for trial in run.trials
    ]
    return replace(run, trials=trials, design=replace(run.design, metric=metric, unit=unit, secondary_metrics=[]))


def table(run, analysis):
    return tool_figures_section(Source(run, analysis)).blocks[-1]


def test_a_run_of_fio_has_its_figures_and_no_queries():
    run = told("megabytes_per_second", megabytes_per_second=0.1, iops=25.0, latency_ms_p99=0.01)
    analysis = analyse(run)
    assert table(run, analysis).headings == ("treatment", "MB/s", "IOPS", "p99 ms")
    plain = as_text(run, analysis)
    assert "queries" not in plain
    assert all("IOPS" in report for report in (plain, as_markdown(run, analysis), as_page(run, analysis, {})))
    rows = [line for line in plain.splitlines() if line.startswith("ssd-sata / none   ")]
    mean = sum(t.metrics["megabytes_per_second"] for t in analysis.blocks.of("t4")) / 8
    assert [f"{mean:.1f}" in row for row in rows] == [True, True], "the table, and its own figures"
    assert "MB/s" in plain
    found = loads(as_json(run, analysis))
    assert [one["treatment"] for one in found["figures"]] == ["t1", "t2", "t3", "t4"]
    assert found["figures"][3]["metrics"]["iops"] == pytest.approx(250 * mean, rel=1e-4)
    assert found["treatments"][3]["metric_mean"] == pytest.approx(mean, rel=1e-4)


def test_what_a_program_does_not_tell_of_a_treatment_is_unknown():
    run = told("seeks_per_second", seeks_per_second=1.0, file_creates_per_second=2.0)
    trials = [
        replace(one, metrics={k: v for k, v in one.metrics.items() if k != "file_creates_per_second"})
        if one.treatment == "t1"
        else one
        for one in run.trials
    ]
    rows = table(run, analyse(replace(run, trials=trials))).rows
    assert rows[0][2] == "unknown"
    assert "unknown" not in rows[1]


@pytest.mark.parametrize(("metric", "word"), [("figure_more", "faster"), ("figure_less", "slower")])
def test_a_figure_goes_by_the_unit_of_the_study(metric, word):
    run = told(metric, unit="frames/s", **{metric: 1.0})
    analysis = analyse(run)
    plain = " ".join(as_text(run, analysis).split())
    assert f"ssd-sata / none is {word} than hdd-7200 / mq-deadline: 4.19x frames/s (95 %" in plain
    assert table(run, analysis).headings == ("treatment", "frames/s")
    assert "frames/s" in as_page(run, analysis, {})


def test_a_run_of_dbdynos_own_load_has_no_such_table():
    run = build(blocks=6)
    found = tool_figures_section(Source(run, analyse(run)))
    assert (found.blocks, found.data) == ((), {"figures": None})


def test_a_program_with_no_more_than_its_seconds_has_no_column_of_rates():
    run = told("seconds_real")
    analysis = analyse(run)
    table = next(line for line in as_text(run, analysis).splitlines() if line.startswith("treatment "))
    assert "queries" not in table
    assert "avg s" in table
