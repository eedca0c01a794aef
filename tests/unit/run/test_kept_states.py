"""Kept states: what their treatment stands on is read from the run folder alone."""

import os

import pytest

from dbdyno.errors import UserError
from dbdyno.run.kept_states import examine_again, plan_of, spec_of
from dbdyno.run.reexamine import on_hosts
from tests.scripted import perform
from tests.unit.run.test_execute_crash import CUTS, TIMED


def test_what_a_treatment_stands_on_is_that_of_its_run(script, plan, into):
    made = plan(TIMED, CUTS, seed=5)
    perform(script, made, into)
    made.study.path.unlink()
    assert {id_: spec_of(into, id_) for id_ in made.specs} == made.specs
    assert set(made.specs) == {"t1", "t2", "control"}


def test_a_study_that_is_planned_otherwise_is_refused(script, plan, into, monkeypatch):
    perform(script, plan(TIMED, CUTS), into)
    monkeypatch.setattr("dbdyno.plan.plan.ID", "other")
    with pytest.raises(UserError, match=r"this dbdyno plans other treatments for study\.toml than those that were run"):
        spec_of(into, "t1")


def test_a_treatment_that_the_run_does_not_have_is_said(script, plan, into):
    perform(script, plan(TIMED, CUTS), into)
    with pytest.raises(UserError, match=r"the run has no treatment '\.\./x' whose power was cut"):
        spec_of(into, "../x")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("name", [".", "study.toml", "trials", "run.toml"])
def test_nothing_of_another_user_s_run_folder_is_raised(script, plan, into, name):
    perform(script, plan(TIMED, CUTS), into)
    os.chown(into / name, 12345, 12345)
    for ask in (plan_of, lambda folder: spec_of(folder, "t1"), lambda folder: examine_again(folder, folder / "c1")):
        with pytest.raises(UserError, match="belongs to another user"):
            ask(into)
    with pytest.raises(UserError, match="belongs to another user"), on_hosts(into, [], None):
        pass
