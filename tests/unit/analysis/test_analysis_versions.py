"""Steps along the versions of a run: which studies have them, in which loads, and where words are withheld."""

from dataclasses import replace

import numpy as np
import pytest

from dbdyno.analysis.analyse import analyse
from dbdyno.analysis.blocks import usable_blocks
from dbdyno.analysis.versions import along_versions
from dbdyno.model.design import Comparison, Factor, Treatment
from dbdyno.model.metrics import METRICS
from dbdyno.report.sections import versions as section
from dbdyno.report.source import Source

SERVERS, LOADS = ["10.5", "10.11", "11.4", "11.8"], ["scan", "insert"]


@pytest.fixture
def run(a_run, a_trial):
    """``insert`` is 10 % slower from 11.4 on; ``scan`` is as it was."""
    rng = np.random.default_rng(2)
    cells = {f"t{4 * i + j}": (load, server) for i, load in enumerate(LOADS) for j, server in enumerate(SERVERS)}
    rates = {id_: 900 if load == "insert" and server > "11" else 1000 for id_, (load, server) in cells.items()}
    trials = [
        a_trial(id_, block, rates[id_] * float(np.exp(rng.normal(0, 0.01)))) for block in range(1, 9) for id_ in cells
    ]
    made = a_run({id_: [1.0] * 8 for id_ in cells}, trials=trials)
    design = replace(
        made.design,
        treatments=[Treatment(id_, {"load": load, "server": server}) for id_, (load, server) in cells.items()],
        comparisons=[Comparison("t0", "t1"), Comparison("t4", "t7")],
        factors=[
            Factor("load", "workload", LOADS, groups=dict.fromkeys(LOADS, "")),
            Factor("server", "stack", SERVERS),
        ],
    )
    return replace(made, design=design)


def test_the_load_that_changed_and_the_versions_between_which_it_did(run):
    analysis = analyse(run)
    along = analysis.versions
    assert (along.names, along.levels) == (("scan", "insert"), tuple(SERVERS))
    scan, insert = along.changes.loads
    assert scan.steps == []
    (step,) = insert.steps
    assert (SERVERS[step.at], SERVERS[step.at + 1], step.word) == ("10.11", "11.4", "slower")
    made = section.section(Source(run, analysis))
    assert made.data["along_versions"]["loads"][1]["steps"][0]["to"] == "11.4"
    (line,) = section.lines(along)
    assert line.startswith("insert: slower, ")
    assert "from 10.11 to 11.4" in line


def test_two_versions_or_another_factor_have_none(run):
    def of(*factors):
        design = replace(run.design, factors=list(factors))
        return along_versions(design, usable_blocks(run), METRICS["queries_per_second"], [])

    load, server = run.design.factors
    assert of(load, server) is not None
    assert of(load, replace(server, name="scheduler")) is None
    assert of(load, replace(server, levels=SERVERS[:2])) is None
    assert of(server) is None, "treatments differ in more than the study says"


def test_nothing_is_said_where_interference_withholds_the_verdicts(run):
    beyond = {"beyond": ["foreign_cpu"], "foreign_cpu": 0.4, "limits": {"foreign_cpu": 0.05}}
    trials = [replace(trial, disturbance=beyond) if trial.block < 5 else trial for trial in run.trials]
    assert analyse(replace(run, trials=trials)).versions is None


def test_a_load_whose_verdict_is_in_doubt_is_left_out_and_the_others_are_not(run):
    """The disk of ``scan`` was late for a third of the time."""
    late = {"service_ns": {"write": {"count": 10_000, "mean": 5e5}}, "lateness_ns": {"count": 10_000, "mean": 3e5}}
    of_scan = {"t0", "t1", "t2", "t3"}
    trials = [
        replace(trial, device=late, metrics={**trial.metrics, "seconds_real": 9.0})
        if trial.treatment in of_scan
        else trial
        for trial in run.trials
    ]
    late_run = replace(run, trials=trials)
    along = analyse(late_run).versions
    assert (along.names, along.left_out) == (("insert",), ("scan",))
    assert [step.word for step in along.changes.loads[0].steps] == ["slower"]
    made = section.section(Source(late_run, analyse(late_run)))
    assert made.data["along_versions"]["left_out"] == ["scan"]
