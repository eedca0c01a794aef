"""Warm-ups until steady: what they took is a note; that many reached their bound, a warning."""

from dataclasses import replace

import pytest

from dbdyno.analysis.analyse import analyse
from dbdyno.report.sections.warnings import note_lines, warning_lines
from tests.unit.report.rendered import as_text


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


def said(run, steady, word):
    found = warmed(run, steady)
    return [line for line in (*note_lines(*found), *warning_lines(*found)) if word in line]


def test_each_treatment_has_its_median_and_range(run):
    lines = said(run, lambda _: True, "warm-up until steady")
    assert len(lines) == len(run.design.treatments)
    assert lines[0].endswith(": the warm-up until steady took 10.50 s in the median, 7.000 to 14.00 s.")
    assert said(run, lambda _: True, "bound") == []


def test_a_few_that_reached_the_bound_are_no_warning(run):
    (note,) = said(run, lambda place: place != len(run.trials) - 1, "bound")
    assert note.endswith("; 1 of 8 trials reached the bound.")


def test_many_are_one(run):
    lines = said(run, lambda place: place % 4 != 0, "not shown to be steady")
    assert len(lines) == 1
    assert lines[0] in " ".join(as_text(*warmed(run, lambda place: place % 4 != 0)).split())


@pytest.mark.parametrize("load", [{}, {"warmup_steady": None}])
def test_a_run_without_says_nothing(run, load):
    trials = [replace(trial, load={**trial.load, **load}) for trial in run.trials]
    found = replace(run, trials=trials)
    assert note_lines(found, analyse(found)) == note_lines(run, analyse(run))
