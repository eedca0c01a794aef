"""Every reason of a verdict has a sentence of its own."""

from dataclasses import replace

import pytest

from dbdyno.analysis.analyse import analyse
from dbdyno.analysis.verdict.evidence import Resolution
from dbdyno.analysis.verdict.reasons import Code, Dropped, Lack, NextStep, Reason, TooFew, ZeroFigures
from dbdyno.model.design import Comparison, Factor
from dbdyno.report.contents import document
from dbdyno.report.notes import families_line
from dbdyno.report.reasons import as_sentence, reason_text
from dbdyno.store.reported import ReportedClaim, ReportedTable

COARSE = Resolution(step=1.0, unit="ms", log_width=0.1)


def reason(code=Code.INTERVAL_TOO_WIDE, lack=None, sizes=(10,)):
    return Reason(
        code, "undecided", 0.03, sizes, family=2, p_adjusted=0.2, p_equivalence=0.3, p_best=0.1, agreeing=(7, 10),
        far_off=0, mean=0.01, excludes_zero=False, resolution=COARSE, disturbed=6, needed=40, lack=lack,
    )  # fmt: skip


@pytest.mark.parametrize("sizes", [(10,), (10, 8)], ids=["one run", "two runs"])
def test_no_two_codes_read_alike(sizes):
    texts = {reason_text(reason(code, sizes=sizes)) for code in Code}
    assert len(texts) == len(Code)
    assert all("steps of 1 ms" in text for text in texts)


def test_what_it_takes_to_decide_is_said():
    lacks = (Lack.QUIET_HOST, Lack.LESS_NOISE, Lack.MORE_BLOCKS, Lack.A_WIDER_MARGIN)
    texts = {reason_text(reason(lack=each and NextStep(each, 30))) for each in (None, *lacks)}
    assert len(texts) == 1 + len(lacks)


def test_what_stands_in_the_way_is_named():
    found = [Dropped("ssd"), ZeroFigures("ssd", "iops", 1), ZeroFigures("ssd", "iops", 2, "after"), TooFew(1, 2)]
    assert [as_sentence(one) for one in found] == [
        "Ssd failed again and again and was dropped.",
        "Iops of ssd is 0 in 1 block, and there is no ratio to 0.",
        "Iops of ssd is 0 in 2 blocks after; there is no ratio to 0.",
        "1 usable block, at least 2 are needed.",
    ]


# The error of a whole report: which family each p covers, and how likely any wrong word is.


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
