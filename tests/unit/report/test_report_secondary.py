"""What stands beside the verdicts: screened metrics and pairs that were not planned, never to be taken for verdicts."""

import json
import re
from dataclasses import replace

import pytest

from dbdyno.analysis.analyse import analyse
from dbdyno.model.metrics import SECONDARY
from dbdyno.report.notes import run_notes
from dbdyno.report.sections.interference import LINES_MAX, interference_lines_in_short, interference_summary
from tests.unit.report.rendered import as_json, as_markdown, as_page, as_text


@pytest.fixture
def screened(run):
    return replace(run, design=replace(run.design, secondary_metrics=list(SECONDARY)))


def test_text(snapshot, screened):
    told = as_text(screened, analyse(screened, each_pair=True))
    assert told[told.index("Secondary metrics") : told.index("Failed trials")] == snapshot


def test_markdown(snapshot, screened):
    told = as_markdown(screened, analyse(screened, each_pair=True))
    assert told[told.index("## Secondary metrics") : told.index("## Failed trials")] == snapshot


def test_json(screened):
    document = json.loads(as_json(screened, analyse(screened, each_pair=True)))
    assert len(document["every_pair"]) == 2  # of the six, four were planned
    assert not any(one["planned"] for one in document["every_pair"])
    assert {one["metric"] for one in document["screened"]} <= set(SECONDARY)
    assert all(one["stands_out"] == (one["p"] <= 0.05) for one in document["screened"])
    assert not any("verdict" in one for one in document["screened"])


def test_every_figure_that_stands_out_is_marked(screened):
    told = as_text(screened, analyse(screened), 10_000)
    line = next(line for line in told.splitlines() if "ssd-sata / none against hdd-7200 / mq-deadline, also:" in line)
    stands_out = [one for one in analyse(screened).secondary if one.level_id == "t4" and one.baseline_id == "t1"]
    assert line.count("(exploratory;") == sum(one.stands_out for one in stands_out) > 0
    assert not any(word in line for word in ("faster", "slower", "equivalent"))


def test_the_page_has_both(screened, series_of):
    analysis = analyse(screened, each_pair=True)
    page = as_page(screened, analysis, series_of(screened))
    assert "Secondary metrics (exploratory): hints, not verdicts" in page
    assert "Every pair, not planned" in page
    assert page.count('<li class="') == len(analysis.verdicts) + len(analysis.every_pair)
    bare = replace(screened, design=replace(screened.design, secondary_metrics=[]))
    page = as_page(bare, analyse(bare), {})
    assert "Secondary metrics" not in page
    assert "not planned" not in page


@pytest.fixture
def disturbed(run):
    """Return a run with a disturbed trial that counts and one that was repeated."""
    beyond = {
        "beyond": ["foreign_cpu", "foreign_io"],
        "foreign_cpu": 0.46,
        "stolen": 0.001,
        "foreign_io": 12.5e6,
        "limits": {"foreign_cpu": 0.055, "stolen": 0.025, "foreign_io": 1.4e6},
        "others": {"cc1<b>": 0.9, "make": 0.02},
    }
    quiet = {**beyond, "beyond": [], "foreign_cpu": 0.012, "foreign_io": None}
    marked = {"b3a1p1": beyond, "b5a1p2": {**beyond, "beyond": ["stolen"], "stolen": 0.08}, "b6a1p2": quiet}
    health = {"sda": {"before": {"passed": True, "hours": 7, "spare": 9}, "after": {"passed": True, "hours": 8}}}
    trials = [replace(one, disturbance=marked.get(one.id, {}), smart=health) for one in run.trials]
    return replace(run, trials=trials)


def test_disturbed_trials_are_told_with_their_figures(snapshot, disturbed):
    analysis = analyse(disturbed)
    told = as_text(disturbed, analysis)
    assert told[told.index("Trials with interference") :] == snapshot
    assert "## Trials with interference" in as_markdown(disturbed, analysis)
    page = as_page(disturbed, analysis, {})
    assert "cc1&lt;b&gt;" in page
    assert "cc1<b>" not in page
    document = json.loads(as_json(disturbed, analysis))
    assert [(one["trial"], one["counts"]) for one in document["disturbed"]] == [("b3a1p1", False), ("b5a1p2", True)]


def test_of_many_disturbed_trials_a_terminal_sees_how_many_and_those_that_count_first(disturbed):
    mark = next(one.disturbance for one in disturbed.trials if one.disturbed)
    run = replace(disturbed, trials=[replace(one, disturbance=mark) for one in disturbed.trials])
    analysis, all_of_them = analyse(run), len(run.trials)
    lines = interference_lines_in_short(run, analysis)
    kept = sum(len(row) for row in analysis.blocks.trials.values())
    assert kept < all_of_them
    assert lines[0] == (
        f"Interference in {kept} of {kept} trials that the verdicts rest on (and in {all_of_them - kept} more, "
        "not used): stop the other programs on this host and run the study again."
    )
    assert all(", kept: " in line for line in lines[1:-1])
    assert len(lines) == LINES_MAX + 2
    assert lines[-1] == f"{all_of_them - LINES_MAX} more are in the JSON and the HTML report."
    assert as_page(run, analysis, {}).count(", kept: ") == kept


def test_trials_that_met_interference_are_counted_once_and_of_one_whole(disturbed):
    """Badge, warning and section speak of the trials that verdicts rest on: 1 of 32, and not 2 of the 35 there are."""
    analysis = analyse(disturbed)
    shown = " ".join(as_text(disturbed, analysis).split())
    counts = set(re.findall(r"(\d+) of (\d+) trials", shown.partition("Trials with interference")[0]))
    counts |= set(re.findall(r"(\d+) of (\d+) trials", interference_summary(disturbed, analysis)))
    assert counts == {("1", "32")}


def test_no_verdict_rests_on_disturbed_trials_that_were_repeated(disturbed):
    quiet = [one if one.id == "b3a1p1" else replace(one, disturbance={}) for one in disturbed.trials]
    run = replace(disturbed, trials=quiet)
    told = "Interference in 1 trial, which is not used: no verdict rests on it."
    assert interference_summary(run, analyse(run)) == told
    none = replace(run, trials=[replace(one, disturbance={}) for one in quiet])
    assert interference_lines_in_short(none, analyse(none)) == []


def test_what_is_not_known_of_a_disk_is_said_to_be_unknown(run):
    health = {"vda": {"before": "unknown: smartctl is not installed", "after": "unknown: smartctl is not installed"}}
    asked = replace(run, trials=[replace(one, smart=health) for one in run.trials])
    assert "SMART of vda: unknown: smartctl is not installed." in " ".join(as_text(asked, analyse(asked)).split())
    assert "SMART" not in as_text(run, analyse(run))


def test_many_attempts_that_were_left_out_are_only_counted(build):
    run = build(9)
    again = [replace(one, attempt=2, id=f"{one.id}again") for one in run.trials if one.block != 3]
    failed = [replace(run.failures[0], block=block, attempt=1) for block in range(1, 10) if block != 3]
    many = replace(run, trials=[*run.trials, *again], failures=[*run.failures, *failed])
    note = next(note for note in run_notes(many, analyse(many)) if note.startswith("Left out"))
    assert note == "Left out, because a trial in it failed, met interference or is missing: 9 attempts at 9 blocks."
