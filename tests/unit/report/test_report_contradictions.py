"""No report contradicts itself: what is said of two treatments in one place is said of them in every other.

Runs of all kinds are made up from a seed, each with treatments, effects, noise and mishaps of its own, and their
reports are read by ``tests/contradictions.py``. A failure names the seeds; ``made_up(seed)`` is the run again.
"""

import json
from collections import defaultdict
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from dbdyno.analysis.analyse import analyse
from dbdyno.cli.main import app
from dbdyno.model.design import Comparison, Design, Factor, Treatment
from dbdyno.store.run_folder import read_run
from tests.contradictions import contradictions, contradictions_in, contradictions_of_two
from tests.made_up_runs import FLUSH, LEVELS, a_trial, empty, figures_of, made_up, two_made_up
from tests.run_folders import written
from tests.sampled import some
from tests.statements import Report

SEEDS, PAIRS_OF_RUNS = 4000, 600
PART = 600 / SEEDS  # of them in each run of the tests
KEPT = Path(__file__).parents[2] / "kept"


def summary(found):
    """Return each kind of contradiction, how often there is one, and the first with its seed, the most frequent first.

    ``found`` is seed -> its contradictions.
    """
    kinds = defaultdict(list)
    for seed, each in found.items():
        for one in each:
            kinds[one.kind].append((seed, one.text))
    ordered = sorted(kinds.items(), key=lambda each: -len(each[1]))
    return "\n".join(
        f"{len({seed for seed, _ in cases}):5} runs, {kind}; seed {cases[0][0]}: {cases[0][1]}"
        for kind, cases in ordered
    )


def of_seed(seed):
    """Return the analysis of a run; of some that were asked for every pair, too."""
    run = made_up(seed)
    return run, analyse(run, each_pair=seed % 4 == 0)


@cache
def case(seed):
    """Return what contradicts itself in the report of a run, and what of it is not read."""
    report = Report(*of_seed(seed))
    return contradictions_in(report), [*report.unread()]


def cases(quarter):
    return some(f"contradictions {quarter}", range(quarter, SEEDS, 4), PART)


@pytest.mark.parametrize("quarter", range(4))
def test_no_report_contradicts_itself(quarter):
    told = summary({seed: case(seed)[0] for seed in cases(quarter)})
    assert not told, told


@pytest.mark.parametrize("quarter", range(4))
def test_all_that_is_said_is_read(quarter):
    """What no template fits is not looked at: whoever words a sentence anew tells ``tests/statements.py``."""
    left = {seed: unread for seed in cases(quarter) if (unread := case(seed)[1])}
    assert not left


def test_no_report_of_a_kept_run_contradicts_itself():
    found = {}
    for path in KEPT.iterdir():
        if path.is_dir():
            run = read_run(path)
            trials = [
                replace(one, started_at="2026-01-01T00:00:00Z") for one in run.trials
            ]  # of one that was played: "now"
            run = replace(run, trials=trials)
            found[path.name] = contradictions(run, analyse(run, each_pair=True))
    assert len(found) >= 3
    told = summary(found)
    assert not told, told


def test_no_comparison_of_two_runs_contradicts_itself():
    seeds = some("contradictions of two runs", range(PAIRS_OF_RUNS), 30 / PAIRS_OF_RUNS)
    told = summary({seed: contradictions_of_two(*two_made_up(seed)) for seed in seeds})
    assert not told, told


def test_the_list_of_runs_shows_what_each_report_begins_with(tmp_path):
    seeds = some("headlines", range(SEEDS), 10 / SEEDS)[:60]
    for seed in seeds:
        written(tmp_path / str(seed), made_up(seed))
    listed = CliRunner().invoke(app, ["runs", str(tmp_path), "--json"])
    shown = {int(Path(one["folder"]).name): one["headline"] for one in json.loads(listed.stdout)}
    told = {}
    for seed in seeds:
        run = read_run(tmp_path / str(seed))
        told[seed] = Report(run, analyse(run)).headline if run.trials else shown[seed]
    assert shown == told


# The reader of contradictions finds those that are put there.


def known(settings=("1", "1", "1")):
    """Return the report of three devices: the second is as fast as the first, the third four times as fast."""
    levels = LEVELS["device"][:3]
    treatments = [Treatment(f"t{place}", {"device": level}) for place, level in enumerate(levels, 1)]
    pairs = [Comparison("t1", "t2"), Comparison("t1", "t3")]
    factors = [Factor("device", "stack", list(levels))]
    run = empty(Design(treatments, "t1", pairs, 10, 0.03, "queries_per_second", 1, factors=factors))
    rng = np.random.default_rng(2)
    for block in range(1, 11):
        for position, (one, rate) in enumerate(zip(treatments, (400, 400, 1600), strict=True), 1):
            server = {"version": "10.11", "default_storage_engine": "InnoDB", FLUSH: settings[position - 1]}
            figures = figures_of(rate * float(np.exp(rng.normal(0, 0.005))), 1.0, 0.0)
            run.trials.append(a_trial((block, 1, position), one.id, figures, server))
    return Report(replace(run, stopped="blocks"), analyse(replace(run, stopped="blocks")))


def kinds(report):
    return {one.kind for one in contradictions_in(report)}


def test_a_report_in_order_has_none():
    assert not contradictions_in(known())
    assert not [*known().unread()]
    assert {"verdicts (JSON)", "letters", "effect chart"} <= {one.where for one in known().statements}


@pytest.mark.parametrize(
    ("headline", "kind"),
    [
        ("ssd-sata is 20 % faster than hdd-7200.", "headline: says more than a finding"),
        (
            "Against hdd-7200, nvme is 4.0 times as fast and ssd-sata is 1 % slower.",
            "headline: says more than a finding",
        ),
        ("nvme makes no difference beyond 3 %.", "headline: says more than a finding"),
        ("The device makes no difference beyond 3 %.", "headline: says more than a finding"),
        ("Nothing is decided yet: too much noise.", "headline: nothing is decided, and a comparison is"),
        ("ssd-sata is ahead of both others (+300 %).", "headline: ahead of one that is not behind"),
    ],
)
def test_a_headline_that_says_more_is_found(headline, kind):
    report = known()
    report.values["headline"] = headline
    assert kinds(report) == {kind}


@pytest.mark.parametrize(
    ("advice", "settings", "kind"),
    [
        ("Take nvme; either device will do.", "111", "advice: either, where a level was left out"),
        ("Nothing to change: all are as good within 3 %.", "111", "advice: all, where a treatment was left out"),
        ("Take nvme.", "112", "advice: a less safe setting without its risk"),
        (
            "Not yet: too much noise; leave out hdd-7200, which is slower.",
            "122",
            "advice: against a safer setting for speed alone",
        ),
    ],
)
def test_an_advice_that_says_more_is_found(advice, settings, kind):
    report = known(settings)
    report.values["advice"]["text"] = advice
    report.values["advice"]["parts"][0]["slower"] = ["t1"]
    assert kind in kinds(report)


def test_a_word_that_is_another_one_elsewhere_is_found():
    report = known()
    report.values["verdicts"][1]["verdict"] = "undecided"
    found = kinds(report)
    assert "verdicts (JSON): undecided beside an interval that excludes 0" in found
    assert {"verdicts (JSON) / letters", "verdicts (JSON) / comparisons (table)"} <= found
    report = known()
    report.values["treatments"][1]["letters"] = report.values["treatments"][2]["letters"] = "b"
    assert kinds(report) == {"verdicts (JSON) / letters"} or not report.findings.get(("t3", "t2"))
