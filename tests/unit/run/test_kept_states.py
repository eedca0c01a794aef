"""Kept states: what their treatment stands on is read from the run folder alone."""

import pytest

from dbdyno.errors import UserError
from dbdyno.run.kept_states import spec_of
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
    monkeypatch.setattr("dbdyno.plan.control.ID", "other")
    with pytest.raises(UserError, match=r"this dbdyno plans other treatments for study\.toml than those that were run"):
        spec_of(into, "t1")
