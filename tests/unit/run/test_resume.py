"""What may not be gone on with."""

import pytest

from dbdyno.errors import UserError
from tests.scripted import perform


def test_a_plan_of_when_to_stop_is_not_changed_under_way(script, plan, into):
    perform(script, plan(blocks=2), into)
    script.ran = []
    with pytest.raises(UserError, match=r"was begun with another plan of when to stop; a run keeps that$"):
        perform(script, plan(blocks=4), into, resume=True)
    assert script.ran == []


def test_another_study_or_seed_is_not_gone_on_with(script, plan, into):
    perform(script, plan(blocks=1), into)
    with pytest.raises(UserError) as refused:
        perform(script, plan(("clients = 10", "clients = 11")), into, resume=True)
    assert str(refused.value) == (
        f"{into} holds a run of another study (or this one has been changed since); use a new folder, "
        "or delete that one if it is not needed"
    )
    with pytest.raises(UserError) as refused:
        perform(script, plan(seed=2), into, resume=True)
    assert str(refused.value) == f"{into} was begun with seed 1; go on without --seed, or use a new folder"
    plots = ('"mq-deadline"', '["mq-deadline", "none"]'), ("blocks = 6", 'hard_to_change = ["device"]')
    perform(script, plan(plots[0], blocks=1), into.with_name("other"))
    with pytest.raises(UserError, match="holds a run of another study"):
        perform(script, plan(*plots, blocks=1), into.with_name("other"), resume=True)
    with pytest.raises(UserError, match="is not empty; name a new folder, or go on with this run by --resume"):
        perform(script, plan(), into)


def test_the_answer_to_disturbed_trials_is_not_changed_under_way(script, plan, into):
    perform(script, plan(blocks=2), into)
    with pytest.raises(UserError, match="was begun with interference = 'repeat'"):
        perform(script, plan(("blocks = 6", 'interference = "note"'), blocks=2), into, resume=True)
