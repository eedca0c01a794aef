"""What is said of a load over time, in every report."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from dbdyno.analysis.analyse import analyse
from dbdyno.analysis.over_time import Stability
from dbdyno.model.design import Treatment
from dbdyno.report.notes import remarks
from dbdyno.report.sections import stability
from dbdyno.report.sections.warnings import note_lines, warning_lines
from tests.unit.report.rendered import as_json, as_markdown, as_page, as_text


def load_series(run):
    """One treatment of each kind, at 10 Hz: steady, changing its regime, with a trial that does, too short."""
    rng = np.random.default_rng(run.design.seed)
    made = {}
    for trial in run.trials:
        n = 20 if trial.treatment == "t4" else 300
        rate = 60_000 * (1 + 0.02 * rng.normal(size=n))
        if trial.treatment == "t2" or (trial.treatment == "t3" and trial.block == 2):
            rate[214:] *= 36 / 60
        made[trial.id] = {"t_s": np.arange(1, n + 1) / 10, "events_per_second": rate}
    return made


@pytest.fixture
def analysis(run):
    return analyse(run, load_series=load_series(run))


def test_lines(snapshot, analysis):
    assert stability.stability_lines(analysis) == snapshot


def test_text_and_markdown_have_them(run, analysis):
    told = as_text(run, analysis)
    first = "- hdd-7200 / mq-deadline: steady throughout (8 trials)."
    assert told.index(f"Stability\n{first}") < told.index("Failed trials")
    assert f"## Stability\n\n{first}" in as_markdown(run, analysis)
    bare = analyse(run)
    assert "Stability" not in as_text(run, bare) + as_markdown(run, bare) + as_page(run, bare, {})


def test_json(snapshot, run, analysis):
    found = json.loads(as_json(run, analysis))["stability"]
    assert [each["class"] for each in found] == ["steady", "regime change", "steady", "too short"]
    assert len(found[0].pop("by_trial")) == 8
    assert found[:2] == [found[0], {**found[1], "never_settled": 8, "settled_s": None, "changes": 1}]
    assert found[2]["by_trial"][1]["class"] == "regime change"
    assert found[0] == snapshot


def test_a_verdict_about_a_treatment_that_changes_its_regime_says_so(analysis):
    changing = analysis.stability[1].treatment
    for verdict in analysis.verdicts:
        said = any("its figure is a mean of both" in remark for remark in remarks(verdict, analysis))
        assert said == (changing in {verdict.level_id, verdict.baseline_id})


def test_the_page_has_a_table_and_hostile_labels_stay_text(run):
    treatments = [Treatment(one.id, {"device": f"<b>{one.id}</b>"}) for one in run.design.treatments]
    hostile = replace(run, design=replace(run.design, treatments=treatments))
    page = as_page(hostile, analyse(hostile, load_series=load_series(hostile)), {})
    section = page[page.index(">Stability</h2>") :]
    section = section[: section.index("</section>")]
    assert section.count("<tr role") == 5
    assert "&lt;b&gt;t1&lt;/b&gt;" in section
    assert "<b>" not in section


def test_phases_that_pass_in_a_moment_are_not_told_of(run):
    told = load_series(run)
    for trial in run.trials:
        n = len(told[trial.id]["t_s"])
        told[trial.id]["phase"] = np.array(["load"] * (n - 5) + ["load+index"] + ["index"] * 4)
    analysis = analyse(run, load_series=told)
    assert [each.phase for each in analysis.stability[:3]] == ["load", "load+index", "index"]
    lines = stability.stability_lines(analysis)
    assert [line[: line.index(":")] for line in lines[:2]] == [
        "hdd-7200 / mq-deadline, phase load",
        "hdd-7200 / none, phase load",
    ]
    assert lines[3:] == ["Too short to tell, with fewer than 60 samples of 100 events: ssd-sata / none."]
    assert len(stability.stability_rows(analysis)) == 4


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (Stability("steady", 12.4), "steady after 12 s"),
        (Stability("steady", 0.0), "steady throughout"),
        (Stability("regime change", at_s=214, changes=1, one=61, other=36.2), "at 214 s from 61 to 36.2 events/s"),
        (Stability("regime change", at_s=214, changes=3, one=61, other=36), "regime (3 changes, the largest) at 214 s"),
        (Stability("sawtooth", 0.0, period_s=8.03), "sawtooth, period 8 s"),
        (Stability("jagged", 0.0, one=6, other=60, interval_s=0.1), "in the worst 1 % of intervals of 0.1 s, 60 at"),
        (Stability("bimodal", 0.0, one=60, other=48, interval_s=1), "now 60, now 48 events/s in intervals of 1 s"),
        (Stability("drift", one=60, other=48), "drifted from 60 to 48 events/s"),
        (Stability("unsettled"), "never settled"),
        (Stability("too short"), "too short to tell"),
    ],
)
def test_every_class_has_its_sentence(found, sentence):
    assert sentence in stability.stability_sentence(found, "events/s")
    assert "nan" not in stability.stability_sentence(found, "events/s")


def test_unknown_figures_are_null_in_json(run):
    document = as_json(run, analyse(run, load_series=load_series(run)))
    assert math.isnan(analyse(run, load_series=load_series(run)).stability[1].typical.settled_s)
    assert json.loads(document)["stability"][1]["settled_s"] is None


# Warm-ups until steady: what they took is a note; that many reached their bound, a warning.


def warmed(run, steady):
    """Return the run, its trials warmed up for 6, 7, ... s; ``steady`` says of each whether the rate was."""
    trials = [
        replace(
            trial,
            load={**trial.load, "warmup_steady": steady(place)},
            seconds={**trial.seconds, "warm-up": 6.0 + trial.block},
        )
        for place, trial in enumerate(run.trials)
    ]
    found = replace(run, trials=trials)
    return found, analyse(found)


def lines_with(run, steady, word):
    found = warmed(run, steady)
    return [line for line in (*note_lines(*found), *warning_lines(*found)) if word in line]


def test_each_treatment_has_its_median_and_range(run):
    lines = lines_with(run, lambda _: True, "warm-up until steady")
    assert len(lines) == len(run.design.treatments)
    assert lines[0].endswith(": the warm-up until steady took 10.50 s in the median, 7.000 to 14.00 s.")
    assert lines_with(run, lambda _: True, "bound") == []


def test_a_few_that_reached_the_bound_are_no_warning(run):
    (note,) = lines_with(run, lambda place: place != len(run.trials) - 1, "bound")
    assert note.endswith("; 1 of 8 trials reached the bound.")


def test_many_are_one(run):
    lines = lines_with(run, lambda place: place % 4 != 0, "not shown to be steady")
    assert len(lines) == 1
    assert lines[0] in " ".join(as_text(*warmed(run, lambda place: place % 4 != 0)).split())


@pytest.mark.parametrize("load", [{}, {"warmup_steady": None}])
def test_a_run_without_says_nothing(run, load):
    trials = [replace(trial, load={**trial.load, **load}) for trial in run.trials]
    found = replace(run, trials=trials)
    assert note_lines(found, analyse(found)) == note_lines(run, analyse(run))
