"""The headline and the table of comparisons: the answer first, the most interesting comparison first."""

import itertools
from dataclasses import replace

import pytest

from dbdyno.analysis.analyse import analyse
from dbdyno.analysis.statistics import Estimate
from dbdyno.analysis.two_runs import Change, Compared
from dbdyno.model.design import Factor, SameTreatment, Treatment
from dbdyno.model.metrics import METRICS
from dbdyno.model.word import Word
from dbdyno.report.comparison import changes_sentence
from dbdyno.report.contents import document
from dbdyno.report.document import Cell, Document, Paragraph
from dbdyno.report.render import text
from dbdyno.report.render.text import Printed, plain
from dbdyno.report.sections import headline as headline_section
from dbdyno.report.sections import warnings
from dbdyno.report.sections.headline import headline
from dbdyno.report.sections.verdicts import comparisons as table
from dbdyno.report.sections.verdicts import comparisons_section
from dbdyno.report.sections.warnings import LINES_MAX, warning_lines
from dbdyno.report.source import Source
from tests.unit.report.shared_pages import observing

ONE_FACTOR = [("t1", "t2"), ("t1", "t3"), ("t2", "t4"), ("t3", "t4")]
DEMO = {"t1": 298.7, "t2": 298.0, "t3": 1737.0, "t4": 1745.0}
SCHEDULERS = ["none", "mq-deadline", "bfq", "kyber", "cfq"]


def told(run):
    return " ".join(headline(run, analyse(run)))


def one_factor(name, levels):
    return [Treatment(f"t{place}", {name: level}) for place, level in enumerate(levels, 1)]


def test_what_holds_everywhere_is_said_once(build):
    assert told(build(pairs=ONE_FACTOR, rates=DEMO, noise=0.01)) == (
        "ssd-sata is 5.9 times as fast as hdd-7200. The scheduler makes no difference beyond 3 %."
    )


def test_what_holds_in_one_place_says_where(build):
    rates = {"t1": 400, "t2": 410, "t3": 350, "t4": 280}
    assert told(build(pairs=ONE_FACTOR, rates=rates, noise=0.004)) == (
        "ssd-sata is 12 to 32 % slower than hdd-7200. scheduler none is 20 % slower than mq-deadline on ssd-sata;"
        " scheduler none is 2.6 % faster than mq-deadline on hdd-7200."
    )


def test_what_is_open_says_what_it_lacks(build):
    assert told(build(pairs=ONE_FACTOR, rates=DEMO, noise=0.04)) == (
        "ssd-sata is 6.0 times as fast as hdd-7200. Whether the scheduler matters is still open: about 78 more blocks."
    )
    assert told(build(3, pairs=ONE_FACTOR, void_block=0)) == "Nothing is decided yet: about 3 more blocks."
    assert told(build(1, pairs=ONE_FACTOR, void_block=0)) == "Nothing can be compared: only 1 usable block."
    assert told(build(1, pairs=ONE_FACTOR, void_block=1)) == "Nothing can be compared: only 1 usable block."


def test_levels_of_one_factor_share_a_sentence(build):
    rates = dict(zip(["t1", "t2", "t3", "t4"], [400, 402, 300, 800], strict=True))
    pairs = [("t1", id_) for id_ in ("t2", "t3", "t4")]
    assert told(build(10, treatments=one_factor("scheduler", SCHEDULERS), rates=rates, pairs=pairs)) == (
        "Against scheduler none, kyber is 2.0 times as fast; bfq is 24 % slower; mq-deadline makes no difference"
        " beyond 3 %."
    )


def test_every_pair_tells_who_is_ahead(build):
    rates = dict(zip(["t1", "t2", "t3", "t4", "t5"], [400, 402, 300, 800, 406], strict=True))
    pairs = list(itertools.combinations(rates, 2))
    run = build(12, treatments=one_factor("scheduler", SCHEDULERS), rates=rates, pairs=pairs)
    assert told(run).startswith("kyber is ahead of all 4 others (1.98 to 2.67x queries per second); of the 6")
    rates = {"t1": 400, "t2": 500, "t3": 300}
    run = build(
        12, treatments=one_factor("scheduler", SCHEDULERS[:3]), rates=rates, pairs=itertools.combinations(rates, 2)
    )
    assert told(run) == (
        "mq-deadline is ahead of both others (+25 to +66 % queries per second); the other two differ, too."
    )


def test_levels_that_are_no_words_go_by_their_factor(build):
    treatments = one_factor("clients", ["1", "10"])
    run = build(treatments=treatments, rates={"t1": 10, "t2": 102}, pairs=[("t1", "t2")])
    assert told(run) == "clients 10 is 10 times as fast as clients 1."
    assert table(analyse(run)).rows[0][0] == "clients 10 vs clients 1"


def test_a_metric_that_is_no_rate_is_named(build):
    run = build(pairs=ONE_FACTOR[1:2])
    run = replace(run, design=replace(run.design, metric="latency_ms_p99"))
    assert told(run) == "ssd-sata is faster than hdd-7200 with mq-deadline (-76 % 99th percentile latency)."


def test_without_a_comparison(build):
    assert told(build(pairs=[], rates={"t1": 298.0})) == (
        "296.3 queries per second, mean of 8 trials; nothing was compared."
    )
    assert "406.3 with hdd-7200 / mq-deadline, 396.3 with hdd-7200 / none and 2 more" in told(build(pairs=[]))


def test_a_run_without_blocks(run):
    assert told(replace(run, trials=[], ended="failed")) == "There is no answer yet: no block is complete."


def test_a_run_that_was_cut_off_says_so_first(run):
    cut = replace(run, ended="interrupted")
    assert told(cut).startswith("So far: ssd-sata")
    assert "The run was interrupted; go on with --resume." in warning_lines(cut, analyse(cut))


@pytest.mark.parametrize(
    ("rates", "starts"),
    [
        ({"t1": 400, "t2": 400}, "This host shows no difference beyond 3 % where there is none; 10 blocks can detect"),
        ({"t1": 400, "t2": 440}, "This host shows a difference where there is none (B is faster than A"),
    ],
)
def test_an_a_a_run_tells_of_its_host(build, rates, starts):
    run = build(10, treatments=one_factor("label", ["A", "B"]), rates=rates, pairs=[("t1", "t2")], noise=0.005)
    assert told(replace(run, design=replace(run.design, aa=SameTreatment("hdd-7200", 1)))).startswith(starts)


def test_a_ranking_comes_first(build):
    run = build(pairs=ONE_FACTOR)
    factors = [
        Factor("device", "stack", ["hdd-7200", "ssd-sata"]),
        Factor("scheduler", "workload", ["mq-deadline", "none"]),
    ]
    assert told(replace(run, design=replace(run.design, factors=factors))).startswith(
        "Over 2 tests ssd-sata is ahead of the other one (4.22x queries per second against hdd-7200)."
    )


def test_the_clear_and_large_comes_first_and_the_undecided_last(build):
    rows = table(analyse(build(pairs=ONE_FACTOR, rates=DEMO, noise=0.04))).rows
    assert [row[1].text for row in rows] == ["faster", "faster", "undecided", "undecided"]
    assert rows[0] == (
        "ssd-sata vs hdd-7200 with scheduler none",
        Cell("faster", tone="faster"),
        "5.97x (5.63 to 6.72x)",
        "< 0.001",
        "in all 8 blocks",
    )


def test_headings_name_the_metric(run):
    assert table(analyse(run)).headings[2] == "queries/s (95 % interval)"


def test_warnings(run, build):
    assert warning_lines(run, analyse(run)) == ["1 trial failed; its attempt does not count."]
    quiet = build(void_block=0)
    assert warning_lines(quiet, analyse(quiet)) == []
    scaled = replace(quiet, scale="quick")
    assert warning_lines(scaled, analyse(scaled)) == ["Run at scale quick: smaller than the study."]


def brief(run, width):
    source = Source(run, analyse(run))
    sections = tuple(build(source) for build in (headline_section.section, comparisons_section, warnings.section))
    return plain(Printed(Document(run.title, (Paragraph("Which?", "question"),), sections), brief=True), width)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_brief_report(snapshot, build, width):
    assert brief(build(pairs=ONE_FACTOR, rates=DEMO, noise=0.03), width) == snapshot


def test_the_brief_report_of_the_demo_is_read_in_ten_seconds(build):
    shown = brief(build(pairs=ONE_FACTOR, rates=DEMO, noise=0.03), 80).splitlines()
    assert len(shown) <= 23  # and two lines that say where the rest is
    assert max(map(len, shown)) <= 80
    assert shown[2].startswith("ssd-sata is 5.9 to 6.0 times as fast as hdd-7200.")


def test_the_whole_brief_report_of_the_demo_leaves_room_for_warnings(build):
    run = observing(build(pairs=ONE_FACTOR, rates=DEMO, noise=0.03))
    shown = text.render(document(run, analyse(run)), 80, brief=True).splitlines()
    assert len(shown) + LINES_MAX <= 23  # and two lines that say where the rest is
    assert "Take ssd-sata; which scheduler is still open: about 24 more blocks. Safety:" in shown


def test_of_many_comparisons_and_warnings_the_first_are_shown(build):
    rates = {f"t{place}": 100.0 + place for place in range(1, 13)}
    treatments = one_factor("clients", [str(place) for place in range(1, 13)])
    run = build(4, treatments=treatments, rates=rates, pairs=[("t1", f"t{place}") for place in range(2, 13)])
    shown = brief(replace(run, scale="quick", ended="failed"), 120)
    assert "3 more comparisons with --details." in shown
    assert shown.count("! ") == 3


def change(name, verdict, value):
    estimate = Estimate(value, value - 0.01, value + 0.01, 9)
    return Change(name, name, estimate, (9, 9), (1.0, 1.0), Word(verdict), "a reason", 0.01, 0.01, 0.01)


def compared(changes, control=None, against=()):
    unknown = Estimate.unknown()
    metric = METRICS["queries_per_second"]
    named = {"controls": (control.after,), "control_is_named": True} if control else {}
    return Compared(metric, 0.03, changes, control, list(against), [], [], [], (unknown, unknown), **named)


def test_two_runs_tell_what_changed():
    changes = [change("ext4", "equivalent", 0.0), change("xfs", "slower", -0.12), change("zfs", "faster", 1.4)]
    assert changes_sentence(compared(changes)) == (
        "zfs is 2.4 times as fast as before and xfs is 12 % slower than before; ext4 is as before within 3 %."
    )
    assert changes_sentence(compared([change("xfs", "undecided", 0.1)])) == "Whether xfs changed is still open."
    assert changes_sentence(compared([change("xfs", "not comparable", 0.1)])) == "xfs can't be compared."
    assert changes_sentence(compared([])) == "The two runs have no treatment in common."


def test_two_runs_with_a_control_tell_what_changed_against_it():
    told = compared([change("xfs", "slower", -0.12)], change("ext4", "slower", -0.1), [change("xfs", "equivalent", 0)])
    assert changes_sentence(told) == (
        "The host is slower than before, -10 % queries per second (95 % interval -11 to -9.0 %). Against the control"
        " ext4, xfs is as before within 3 %."
    )
