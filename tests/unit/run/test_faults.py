"""What goes wrong in a trial, at each of its steps: the host is put back, and the run goes on or says why not."""

import errno
import os
import signal

import pytest

from dbdyno.analysis.blocks import usable_blocks
from dbdyno.errors import HostError, TrialError
from dbdyno.store.run_folder import read_run
from tests.scripted import perform

STEPS = ["raise", "check", "probes start", "load", "probes stop", "lower"]


@pytest.fixture
def into(tmp_path):
    return tmp_path / "run"


def once(happening):
    """Return what happens the first time only."""
    waiting = [happening]

    def happen():
        if waiting:
            one = waiting.pop()
            if callable(one):
                one()
            else:
                raise one

    return happen


@pytest.mark.parametrize("step", STEPS)
def test_a_step_that_fails_is_a_failed_trial_and_its_block_is_repeated(script, plan, into, step):
    script.faults[step] = once(TrialError("it broke"))
    outcome = perform(script, plan(blocks=2), into)
    assert (outcome.how, outcome.failures) == ("done", 1)
    assert script.steps.count("raise") - (step == "raise") == script.steps.count("lower")
    run = read_run(into)
    assert [failure.cause for failure in run.failures] == ["it broke"]
    assert set(usable_blocks(run).trials) == {1, 2}


@pytest.mark.parametrize("step", STEPS)
def test_what_fails_of_the_host_ends_the_run_which_goes_on_later(script, plan, into, step):
    script.faults[step] = once(HostError("no such device"))
    with pytest.raises(HostError, match="no such device"):
        perform(script, plan(blocks=2), into)
    assert read_run(into).ended == "failed"
    assert perform(script, plan(blocks=2), into, resume=True).how == "done"
    assert set(usable_blocks(read_run(into)).trials) == {1, 2}


@pytest.mark.parametrize("step", ["prepare", *STEPS])
def test_a_signal_at_any_step_stops_the_run_which_goes_on_later(script, plan, into, step):
    script.faults[step] = once(lambda: os.kill(os.getpid(), signal.SIGINT))
    assert perform(script, plan(blocks=2), into).how == "interrupted"
    assert read_run(into).failures == []
    assert perform(script, plan(blocks=2), into, resume=True).how == "done"
    assert set(usable_blocks(read_run(into)).trials) == {1, 2}


def test_a_full_disk_is_named_and_no_treatment_s_fault(script, plan, into):
    script.faults["load"] = OSError(errno.ENOSPC, "No space left on device", str(into / "load.json"))
    with pytest.raises(HostError, match="No space left"):
        perform(script, plan(blocks=2), into)
    assert read_run(into).failures == []


def test_an_image_whose_disk_has_ended_is_made_anew(script, plan, into):
    script.faults["image gone"] = True
    assert perform(script, plan(blocks=2), into).how == "done"
    assert script.steps.count("prepare") == 3
    assert "an emulated disk has ended by itself; its data is loaded or prepared anew" in script.said


def test_a_disk_s_health_is_asked_before_and_after_the_load(script, plan, into):
    script.disks = ["sdz"]
    perform(script, plan(blocks=1), into)
    order = [step for step in script.steps if step in {"smart", "load"}]
    assert order == ["smart", "load", "smart"] * 2
    assert all(
        trial.smart == {"sdz": {"before": script.smart, "after": script.smart}} for trial in read_run(into).trials
    )


def test_what_a_trial_took_adds_up_on_the_scripted_clock(script, plan, into):
    script.raise_seconds, script.load_seconds = 3.0, 7.0
    perform(script, plan(blocks=1), into)
    assert [sum(trial.seconds.values()) for trial in read_run(into).trials] == [10.0, 10.0]
