"""What the load met: a server that fell behind its rate, errors, lost connections."""

from dataclasses import replace

import pytest

from dbdyno.analysis.analyse import analyse
from dbdyno.analysis.load_checks import errors_met, overload, reconnects_met
from dbdyno.report.notes import errors_text, run_notes

OPEN = {"loop": {"kind": "open", "rate": 1000.0}, "offered": 10_000, "achieved_per_second": 640.0, "backlog_max": 3600}
DEADLOCK = {"code": 1213, "message": "Deadlock found when trying to get lock", "operation": "update", "count": 4}


@pytest.fixture
def trials(a_trial):
    """Make trials of one treatment: each with the load's result, changed, and the ratio it achieved."""

    def make(*results):
        found = []
        for block, (ratio, load) in enumerate(results, 1):
            metrics = {} if ratio is None else {"achieved_ratio": ratio}
            found.append(replace(a_trial("t1", block, 1.0, **metrics), load=load))
        return found

    return make


def test_a_server_that_fell_behind(trials):
    found = overload(trials((0.64, OPEN), (0.66, {**OPEN, "achieved_per_second": 660.0, "backlog_max": 3400})))
    assert (found.offered_per_second, found.achieved_per_second) == (1000, 650)
    assert (found.backlog_max, found.trials, found.of) == (3600, 2, 2)


def test_one_trial_of_two(trials):
    found = overload(trials((0.64, OPEN), (1.0, {**OPEN, "backlog_max": 12})))
    assert (found.achieved_per_second, found.trials, found.of) == (640, 1, 2)


KEPT_UP = {
    "closed loop": (None, {"loop": {"kind": "closed"}, "backlog_max": None}),
    "older dbdyno": (None, {}),
    "all achieved": (1.0, {**OPEN, "backlog_max": 1000}),
    "a short Poisson run that was offered less by chance": (0.96, {**OPEN, "backlog_max": 99}),
    "one late event of a few": (0.83, {**OPEN, "offered": 5, "backlog_max": 1}),
}


@pytest.mark.parametrize("result", KEPT_UP.values(), ids=KEPT_UP.keys())
def test_a_server_that_kept_up(trials, result):
    assert overload(trials(result)) is None


def test_errors_are_told_by_code_over_all_statements_and_trials(trials):
    waited = {"code": 1205, "message": "Lock wait timeout exceeded", "operation": "update", "count": 1}
    other = {**DEADLOCK, "operation": "insert", "count": 6}
    met = errors_met(trials((None, {"kind": "oltp", "errors": [DEADLOCK, waited]}), (None, {"errors": [other]})))
    assert errors_text(met) == "10 deadlocks and 1 lock wait timeout, retried, in 2 trials"
    twice = {"code": 1062, "message": "Duplicate entry", "operation": "insert", "count": 2}
    (both,) = [errors_met(trials((None, {"kind": "oltp", "errors": [DEADLOCK, twice]})))]
    assert errors_text(both) == "4 deadlocks, retried; 2 errors 1062 (Duplicate entry), ignored, in 1 trial"
    smack = errors_met(trials((None, {"kind": "smack", "errors": [DEADLOCK]})))
    assert errors_text(smack) == "4 deadlocks, ignored, in 1 trial"
    assert errors_met(trials((None, {"errors": []}), (None, {}))) is None


def test_the_connections_of_a_replayed_log_end_with_its_sessions(trials):
    for kind, lost in (("slap", 3), ("replay-log", 0)):
        assert reconnects_met(trials((None, {"kind": kind, "reconnects": 3}))) == lost


def test_notes_name_the_treatment(a_run):
    run = a_run({"t1": [100.0] * 6, "t2": [110.0] * 6})
    met = {"t1": {"kind": "oltp", "errors": [DEADLOCK]}, "t2": {"reconnects": 2}}
    run = replace(run, trials=[replace(trial, load=met[trial.treatment]) for trial in run.trials])
    assert run_notes(run, analyse(run)) == [
        "level t1: 24 deadlocks, retried, in 6 trials.",
        "level t2 lost and replaced 12 connections.",
    ]


@pytest.mark.parametrize(("late_ms", "said"), [(5.0, True), (0.5, False), (None, False)])
def test_a_load_generator_that_was_late_itself_is_noted(a_run, late_ms, said):
    run = a_run({"t1": [100.0] * 6, "t2": [110.0] * 6})
    load = {"start_lateness_ns": None if late_ms is None else {"p99": late_ms * 1e6}}
    metrics = {"latency_ms_p99": 10.0}
    run = replace(run, trials=[replace(one, load=load, metrics={**one.metrics, **metrics}) for one in run.trials])
    note = "level t1: the load generator itself was late, 1 % of the events by more than 5.000 ms, as it lacked CPU; "
    assert (f"{note}that is in their latency." in run_notes(run, analyse(run))) == said
