"""What may not be gone on with."""

from dataclasses import replace

import pytest

from dbdyno.errors import UserError
from dbdyno.host.processor import Means
from dbdyno.run.preflight import with_host_decided
from dbdyno.study.schema import HostSection
from tests.scripted import perform


def test_a_plan_of_when_to_stop_is_not_changed_under_way(script, plan, into):
    perform(script, plan(blocks=2), into)
    script.ran = []
    with pytest.raises(UserError, match=r"was begun with another stopping rule; a run keeps its own$"):
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


def decided(plan, *, awake):
    specs = {id_: spec.model_copy(update={"host": HostSection(awake=awake)}) for id_, spec in plan.specs.items()}
    return replace(plan, specs=specs)


def test_processors_are_not_kept_awake_for_some_trials_of_a_run_only(script, plan, into):
    auto = plan(("[design]", '[host]\nawake = "auto"\n[design]'), blocks=1)
    perform(script, decided(auto, awake=False), into)
    with pytest.raises(UserError) as refused:
        perform(script, decided(auto, awake=True), into, resume=True)
    assert str(refused.value) == (
        f"{into} was begun with processors not kept awake for all treatments, and "
        'host.awake = "auto" decides otherwise now; use a new folder'
    )
    assert perform(script, decided(auto, awake=False), into, resume=True).how == "done"
    with pytest.raises(UserError, match="holds a run of another study"):
        perform(script, plan(("[design]", "[host]\nawake = true\n[design]"), blocks=1), into, resume=True)


def test_auto_is_decided_by_the_host_and_a_decision_stays(plan, monkeypatch):
    auto = plan(("[design]", '[host]\nawake = ["auto", false]\n[design]'), blocks=1)
    for guest, by, expected in ((True, "pollers", True), (True, "", False), (False, "kernel", False)):
        monkeypatch.setattr("dbdyno.run.preflight.is_guest", lambda guest=guest: guest)
        monkeypatch.setattr("dbdyno.run.preflight.means_here", lambda _, by=by: Means(by))
        found = [spec.host.awake for spec in with_host_decided(auto).specs.values()]
        assert found == [expected, False] * (len(found) // 2)
    assert with_host_decided(plan(blocks=1)).awake() == []
