"""A setting that the host did not grant stands beside every verdict that it bears on, and above all of them."""

from dataclasses import replace

import pytest

from dbdyno.analysis.analyse import analyse
from dbdyno.analysis.verdict.pairs import not_granted
from dbdyno.model.word import Word
from dbdyno.report.notes import remarks
from dbdyno.report.reasons import reason_text
from dbdyno.report.sections.badges import badges
from dbdyno.report.sections.warnings import warning_lines
from tests.unit.report.conftest import build

SAID = "Couldn't allocate 130023424 bytes"


def analysed(*in_vain, off="OFF"):
    """Analyse a run in which these treatments have large pages in name only, and the others have not."""
    run = build()
    trials = []
    for one in run.trials:
        lacking = one.treatment in in_vain
        server = {**one.observed.get("server", {}), "large_pages": "ON" if lacking else off}
        server |= {"not_granted": {"large_pages": SAID}} if lacking else {}
        trials.append(replace(one, observed={**one.observed, "server": server}))
    run = replace(run, trials=trials)
    return run, analyse(run)


def beside(analysis, level):
    return [one for found in analysis.verdicts if found.level_id == level for one in remarks(found, analysis)]


def test_a_comparison_of_what_was_not_granted_with_nothing_says_so():
    run, analysis = analysed("t3")
    labels = run.design.labels
    (said, *_) = beside(analysis, "t3")
    both = f", so {labels['t3']} and {labels['t1']} were both measured without it"
    assert said == f"The host did not grant large_pages = ON to {labels['t3']}{both}. The server's log: {SAID}."
    assert not any("did not grant" in one for one in beside(analysis, "t2"))
    assert any("did not grant large_pages = ON" in one for one in warning_lines(run, analysis))


def test_where_the_other_was_granted_it_the_comparison_stands_for_itself():
    _, analysis = analysed("t3", off="ON")
    (said, *_) = beside(analysis, "t3")
    assert "both" not in said


def test_what_no_treatment_was_granted_is_said_once_and_beside_no_verdict():
    run, analysis = analysed("t1", "t2", "t3", "t4")
    assert not any("did not grant" in one.casefold() for level in ("t2", "t3", "t4") for one in beside(analysis, level))
    assert [line for line in warning_lines(run, analysis) if "did not grant" in line] == [
        f"The host did not grant large_pages = ON to any treatment: the server's log says {SAID}."
    ]


@pytest.mark.parametrize(("in_vain", "off"), [(["t2"], "OFF"), (["t1", "t2"], "OFF")])
def test_two_that_differ_in_a_setting_not_granted_alone_are_not_compared(in_vain, off):
    run, _ = analysed(*in_vain, off=off)
    levels = {"t1": {"server.large_pages": "false"}, "t2": {"server.large_pages": "true"}}
    treatments = [replace(one, levels=levels[one.id]) for one in run.design.treatments if one.id in levels]
    comparisons = [one for one in run.design.comparisons if {one.level, one.baseline} == set(levels)]
    design = replace(run.design, treatments=treatments, comparisons=comparisons)
    run = replace(run, design=design, trials=[one for one in run.trials if one.treatment in levels])
    (finding,) = analyse(run).verdicts
    assert finding.verdict is Word.NOT_COMPARABLE
    label = run.design.labels[in_vain[-1] if len(in_vain) == 1 else finding.level_id]
    assert reason_text(finding.reason).startswith(f"the host did not grant large_pages = ON to {label}")


def test_two_levels_of_a_setting_that_changes_nothing_on_the_host_are_not_compared():
    why, run = "this host has no swap", build()
    pair = {"t1": "60", "t2": "1"}
    treatments = [replace(one, levels={"swappiness": pair[one.id]}) for one in run.design.treatments if one.id in pair]
    comparisons = [one for one in run.design.comparisons if {one.level, one.baseline} == set(pair)]
    trials = [
        replace(
            one, observed={**one.observed, "host_settings": {"swappiness": value, "no_effect": {"swappiness": why}}}
        )
        for one in run.trials
        if (value := pair.get(one.treatment))
    ]
    run = replace(run, design=replace(run.design, treatments=treatments, comparisons=comparisons), trials=trials)
    analysis = analyse(run)
    (finding,) = analysis.verdicts
    assert finding.verdict is Word.NOT_COMPARABLE
    assert f"changes nothing on this host for {finding.level} ({why})" in reason_text(finding.reason)
    assert f"swappiness = 1 changes nothing on this host: {why}." in list(warning_lines(run, analysis))
    (badge,) = [one for one in badges([(run, analysis.blocks)]).data["badges"] if "without effect" in one["text"]]
    assert badge["beware"]


def test_it_is_a_badge():
    run, analysis = analysed("t3")
    found = badges([(run, analysis.blocks)]).data["badges"]
    (badge,) = [one for one in found if one["text"] == "a setting was not granted"]
    assert badge["beware"]
    assert "large_pages = ON" in badge["title"]


@pytest.mark.parametrize("odd", [None, 3, "text", ["a"], {}, {"large_pages": {"a": 1}}])
def test_an_odd_run_folder_is_none(odd):
    run = build()
    trials = [replace(one, observed={"server": {"not_granted": odd}}) for one in run.trials]
    assert {one.name for one in not_granted(trials)} <= {"large_pages"}
    assert not_granted([replace(trials[0], observed={"server": 3})]) == ()
