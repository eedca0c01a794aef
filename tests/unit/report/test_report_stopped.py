"""Why a run stopped, in every form of the report, and that what is said of intervals is true under its rule."""

import json
from dataclasses import replace

import pytest

from dbdyno.analysis.analyse import analyse
from dbdyno.model.printable import NO_BREAK
from dbdyno.report.sections.stopped import stopped_lines
from tests.unit.report.rendered import as_json, as_markdown, as_page, as_text


def under(run, *, stopped, extended_from=None, **design):
    return replace(run, stopped=stopped, extended_from=extended_from, design=replace(run.design, **design))


LOOKED = "Looked at after 6, 7, 8, 10 blocks: p and intervals allow for it, they hold at all looks together."
ALWAYS = (
    "Looked at after every block: p and intervals are of the mean, and hold at all looks together if the log ratios are"
    " normal."
)
EXTENDED = (
    "It was extended from 8 blocks after its results could be seen, so its verdicts are now drawn by the always-valid "
    "sequence alone."
)
TEN = "Stopped after 10 of at most 40 blocks"
DECIDED = {"stopped": "decided", "until": "decided", "blocks": 40}
PRECISE = {"stopped": "precise", "until": "precise", "half_width": 0.025, "blocks": 40}
OPEN = {"stopped": "decided", "until": "open", "blocks": 1000}
# What is changed of a run of 10 blocks; what is said of it.
RUNS = [
    ({"stopped": "blocks"}, ["Stopped after all 10 planned blocks."]),
    (DECIDED, [f"{TEN}: every comparison was decided.", LOOKED]),
    (PRECISE, [f"{TEN}: every interval reaches at most 2.5 % to either side.", LOOKED]),
    (
        {"stopped": "budget", "budget_seconds": 7200.0, "blocks": 30},
        ["Stopped after 10 of 30 planned blocks: the next would not have ended within 2 h."],
    ),
    (
        {**DECIDED, "stopped": "budget", "budget_seconds": 90.0},
        [f"{TEN}: the next would not have ended within 90 s.", LOOKED],
    ),
    (OPEN, ["Stopped after 10 blocks: every comparison was decided.", ALWAYS]),
    (OPEN | {"extended_from": 8}, ["Stopped after 10 blocks: every comparison was decided.", EXTENDED, ALWAYS]),
    ({"stopped": ""}, []),
    ({**DECIDED, "stopped": ""}, [LOOKED]),
]


@pytest.mark.parametrize(("changes", "lines"), RUNS)
def test_every_report_says_why_it_stopped(build, changes, lines):
    run = under(build(10), **changes)
    analysis = analyse(run)
    assert stopped_lines(run, analysis) == lines
    for line in lines:
        assert line in " ".join(as_text(run, analysis, 10_000).splitlines())
        assert line in as_markdown(run, analysis)
        assert line in as_page(run, analysis, {}).replace("\u00a0", " ")
    told = json.loads(as_json(run, analysis))
    assert (told["until"], told["stopped"] or "") == (run.design.until, run.stopped)
    assert told["stopped_because"] == (lines[0] if run.stopped else None)
    assert told["extended_from"] == run.extended_from


LOOKS = {"blocks": [], "decided": [6, 7, 8, 10], "precise": [6, 7, 8, 10], "open": [6, 7, 8, 9, 10]}


@pytest.mark.parametrize(("until", "looks"), LOOKS.items())
def test_the_looks_are_told(build, until, looks):
    run = under(build(10), stopped="budget", until=until, half_width=0.02, blocks=40)
    assert json.loads(as_json(run, analyse(run)))["looks"] == looks


def test_what_was_not_reached_is_counted(build):
    rates = {"t1": 100.0, "t2": 102.0, "t3": 102.0}
    run = build(10, rates=rates, noise=0.04, pairs=[("t1", "t2"), ("t1", "t3")])
    wide = "intervals are wider than 0.1 % to either side"
    for until, rest in (("decided", "comparisons are undecided"), ("precise", wide)):
        told = under(run, stopped="blocks", until=until, half_width=0.001, blocks=10)
        said = f"Stopped after 10 of at most 10 blocks: more were not allowed; 2 of 2 {rest}."
        assert stopped_lines(told, analyse(told))[0] == said


WORDS = {
    "blocks": "Hodges-Lehmann, with its exact 95 % interval. The",
    "decided": "with its 95 % interval, which allows for the looks: it holds at all of them together. The",
    "open": "mean of the log ratios, with its always-valid 95 % interval",
}


@pytest.mark.parametrize(("until", "words"), WORDS.items())
def test_the_page_calls_its_intervals_what_they_are(build, until, words):
    run = under(build(10), stopped="budget", until=until, blocks=40)
    page = as_page(run, analyse(run), {})
    assert words in page.replace(NO_BREAK, " ")
    assert ("always-valid t sequence" in page) == (until == "open")
    assert "sign-flip" not in page


def test_intervals_of_a_run_with_looks_are_wider(build):
    fixed, looked, always = (
        analyse(under(build(10), stopped="budget" if until == "blocks" else "decided", until=until, blocks=40))
        for until in ("blocks", "decided", "open")
    )
    widths = [[v.effect.high - v.effect.low for v in each.verdicts] for each in (fixed, looked, always)]
    assert all(a < min(b, c) for a, b, c in zip(*widths, strict=True))
