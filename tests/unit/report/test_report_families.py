"""The error of a whole report: which family each p covers, and how likely any wrong word is."""

from dataclasses import replace

from dbdyno.analysis.analyse import analyse
from dbdyno.model.design import Comparison, Factor
from dbdyno.report.contents import document
from dbdyno.report.notes import families_line
from dbdyno.store.reported import ReportedClaim, ReportedTable


def test_one_comparison_has_two_ways_to_be_wrong(build):
    run = build(rates={"t1": 400.0, "t2": 410.0}, pairs=[("t1", "t2")])
    analysis = analyse(run)
    alone = families_line(analysis)
    assert (
        "Here these are 1 planned comparison. So the chance of any wrong word in this report is at most 10 %." in alone
    ), "letters say what the finding says"
    assert alone in document(run, analysis).values()["notes"]
    further = build()
    with_letters = families_line(analyse(further))
    assert "letters say only who differs, with 5 % for all other pairs. " in with_letters
    assert "at most 15 %" in with_letters


def test_every_family_adds_its_own(build):
    run = build()
    factors = [
        Factor("device", "stack", ["hdd-7200", "ssd-sata"]),
        Factor("scheduler", "queue", ["mq-deadline", "none"]),
    ]
    run = replace(run, design=replace(run.design, factors=factors, secondary_metrics=["latency_ms_p99"]))
    line = families_line(analyse(run, each_pair=True))
    kinds = "4 planned comparisons, 2 further pairs, 2 main effects, 2 simple effects and 1 interaction."
    assert kinds in line
    assert "at most 50 %" in line  # five kinds of verdicts, twice
    assert "Secondary metrics are hints" in line


def test_what_was_published_counts_where_it_was_compared(build):
    claims = [
        ReportedClaim("one was faster", [Comparison("t1", "t2")], checked=True, direction="faster"),
        ReportedClaim("so it was said"),
    ]
    table = ReportedTable("a journal", "", "queries_per_second", "queries/s", [], claims, "")
    run = build(rates={"t1": 400.0, "t2": 410.0}, pairs=[("t1", "t2")])
    counted = families_line(analyse(replace(run, reported=[table])))
    assert "1 planned comparison and those of claims beside what was published in queries per second" in counted
    unchecked = families_line(analyse(replace(run, reported=[replace(table, claims=claims[1:])])))
    assert unchecked == families_line(analyse(run))


def test_nothing_judged_has_no_error(build):
    run = build()
    assert families_line(analyse(replace(run, trials=[]))) == ""
