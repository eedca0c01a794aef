"""What ran beside the judged load: its figures, the judged load meanwhile, and the marks in the charts."""

from dataclasses import replace
from json import loads

from dbdyno.analysis.analyse import analyse
from dbdyno.report.charts.timeseries import phase_starts
from dbdyno.report.sections.beside import section
from dbdyno.report.source import Source
from tests.unit.report.conftest import build
from tests.unit.report.rendered import as_json, as_markdown, as_page, as_text


def with_backup(stopped):
    """Return a run whose treatment t2 has a backup beside it, in ``stopped`` of its trials to the end."""
    run, trials, left = build(blocks=8), [], stopped
    for trial in run.trials:
        if trial.treatment == "t2":
            backup = {
                "kind": "dump",
                "began_s": 2.0,
                "seconds": 3.0,
                "stopped": left > 0,
                "figures": {"megabytes": 60.0, "seconds_user": 0.5, "seconds_sys": 0.25},
                "during": {"events_per_second": 90.0, "latency_ms_mean": 4.0, "latency_ms_max": 10.0 + trial.block},
                "outside": {"events_per_second": 100.0, "latency_ms_mean": 2.0, "latency_ms_max": "nonsense"},
            }
            left -= 1
            trials.append(replace(trial, load={**trial.load, "beside": {"backup": backup, "torn": 3}}))
        else:
            trials.append(trial)
    return replace(run, trials=trials)


def test_its_figures_and_those_of_the_load_meanwhile_are_in_every_format():
    run = with_backup(stopped=0)
    analysis = analyse(run)
    own, meanwhile = (block for block in section(Source(run, analysis)).blocks if hasattr(block, "rows"))
    assert own.headings[-2:] == ("MB", "its CPU s")
    assert [row[1:] for row in own.rows] == [
        ("backup (dump)", "2.000", "3.000 (3.000 to 3.000)", "8 of 8", "60.00", "0.750")
    ]
    label = run.design.labels["t2"]
    assert meanwhile.rows == (
        (label, "while backup ran", "90.00", "4.000", "-", "18.00"),
        (label, "while backup did not run", "100.0", "2.000", "-", "-"),
    )
    formats = (as_text(run, analysis), as_markdown(run, analysis), as_page(run, analysis, {}))
    assert all("backup (dump)" in report and "was stopped there" not in report for report in formats)
    (value,) = loads(as_json(run, analysis))["beside"]
    assert (value["treatment"], value["name"], value["stopped"], value["seconds_mean"]) == ("t2", "backup", 0, 3.0)
    marks = [(mark["treatment"], mark["name"], mark["at_s"]) for mark in phase_starts(analysis)]
    assert marks == [("t2", "backup begins", 2.0), ("t2", "backup ends", 5.0)]


def test_one_that_was_stopped_is_called_so_and_has_no_end():
    run = with_backup(stopped=5)
    analysis = analyse(run)
    text = " ".join(as_text(run, analysis).split())
    assert f"{run.design.labels['t2']}: backup still ran when measuring ended in" in text
    assert [mark["name"] for mark in phase_starts(analysis)] == ["backup begins"]


def test_a_run_without_has_no_such_section():
    run = build(blocks=8)
    assert section(Source(run, analyse(run))) is None
