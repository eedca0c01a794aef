"""A drive's fast cache that ran out stands beside the verdicts on it, with its size and the time."""

from dataclasses import replace

import pytest

from dbdyno.analysis.analyse import analyse
from dbdyno.report.notes import remarks
from dbdyno.report.sections.warnings import note_lines
from dbdyno.run.trial import since_measuring
from tests.unit.report.conftest import build

GB = 10**9


def _told(ran_out_s, size=47 * 10**6, **more):
    return {"fast_cache": {"bytes": size, "drive_bytes": 22 * GB, "ran_out_s": ran_out_s}, **more}


def _analysed(told):
    """Analyse a run in which the disk of t3 told ``told(block)``."""
    run = build()
    trials = [replace(one, device=told(one.block)) if one.treatment == "t3" else one for one in run.trials]
    run = replace(run, trials=trials)
    return run, analyse(run)


def _beside(analysis, level):
    return [one for verdict in analysis.verdicts if verdict.level_id == level for one in remarks(verdict, analysis)]


SMALL, WHOLE = "47 MB where the drive has 22 GB", "22 GB"
MEAN = "its figure is a mean of the rate before and after, and depends on how long the run was"
WITHOUT = "its figure is the rate of a drive without one"


@pytest.mark.parametrize(
    ("told", "size", "when", "figure"),
    [
        (lambda block: _told(2.0 + block / 10), SMALL, "2.5 s after measuring began (8 trials)", MEAN),
        (
            lambda block: _told(30 if block < 3 else None, 22 * GB),
            WHOLE,
            "30 s after measuring began (2 of 8 trials)",
            MEAN,
        ),
        (lambda _: _told(-1.0), SMALL, "before measuring began (8 trials)", WITHOUT),
        (
            lambda _: {"disks": [_told(None), _told(3.0), _told(1.0)]},
            SMALL,
            "1 s after measuring began (8 trials)",
            MEAN,
        ),
    ],
)
def test_a_cache_that_ran_out_is_told_beside_its_verdicts_only(told, size, when, figure):
    run, analysis = _analysed(told)
    said = f"The fast cache of ssd-sata / mq-deadline, {size}, ran out {when}: {figure}."
    assert _beside(analysis, "t3") == [said]
    assert _beside(analysis, "t2") == []
    assert said not in note_lines(run, analysis)


@pytest.mark.parametrize("told", [_told(None), {"fast_cache": None}, {}, {"disks": []}])
def test_nothing_is_told_of_a_cache_that_lasted_or_of_none(told):
    _, analysis = _analysed(lambda _: told)
    assert _beside(analysis, "t3") == []


def test_the_moment_is_counted_from_where_measuring_began():
    told = {"bytes": 1, "drive_bytes": 2}
    figures = {"fast_cache": {**told, "ran_out_ns": 5_500_000_000}, "reads": 1}
    found = since_measuring(figures, 3_000_000_000)
    assert found == {"fast_cache": {**told, "ran_out_s": 2.5}, "reads": 1}
    assert since_measuring({"fast_cache": None}, 1) == {"fast_cache": None}
    never = {"fast_cache": {**told, "ran_out_ns": None}}
    assert since_measuring({"disks": [never]}, 1)["disks"][0]["fast_cache"]["ran_out_s"] is None
