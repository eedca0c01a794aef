"""Runs of crash studies: the control is tried in every block, and what happens where it fails."""

import pytest

from dbdyno.analysis.analyse import analyse
from dbdyno.analysis.blocks import usable_blocks
from dbdyno.errors import HostError, TrialError, UserError
from dbdyno.model.cut import Cut
from dbdyno.notebook import trial_rows
from dbdyno.report.charts import strip
from dbdyno.store.run_folder import read_run
from tests.scripted import perform
from tests.unit.run.conftest import died, finished, kinds, planned

DESIGN = 'baseline = { device = "hdd-7200" }\nblocks = 6\n'
TIMED = ('kind = "slap"\nclients = 10\nqueries = 1000', 'kind = "ledger"\nclients = 10\nduration = "3s"')
CUTS = (DESIGN, 'metric = "queries_per_second"\n[crash]\ncuts = 30\n')


@pytest.fixture
def crash(plan):
    return plan(TIMED, CUTS)


def test_every_block_tries_the_control_too(script, crash, into):
    assert perform(script, crash, into).how == "done"
    assert script.ran == planned(crash, (1, 1), (2, 1), (3, 1))
    assert {slot.treatment for slot in script.ran} == {"t1", "t2", "control"}


def test_figures_and_verdicts_are_of_the_treatments_alone(script, crash, into):
    perform(script, crash, into)
    run = read_run(into)
    blocks = usable_blocks(run)
    assert [sorted(row) for row in blocks.trials.values()] == [["t1", "t2"]] * 3
    assert {block: one.treatment for block, one in blocks.control.items()} == dict.fromkeys((1, 2, 3), "control")
    found = analyse(run)
    assert [one.id for one in found.treatments] == ["t1", "t2"]
    assert [(one.baseline_id, one.level_id) for one in found.verdicts] == [("t1", "t2")]
    assert len([*trial_rows(run, found)]) == len(run.trials) == 9
    assert strip.chart(run, found) is not None


def test_a_treatment_that_is_the_control_is_in_both(script, plan, into):
    pool = 'innodb_buffer_pool_size = "256M"\n'
    made = plan(
        TIMED, CUTS, ('["hdd-7200", "ssd-sata"]', '"ssd-sata"'), (pool, "innodb_flush_log_at_trx_commit = [1, 0]\n")
    )
    perform(script, made, into)
    blocks = usable_blocks(read_run(into))
    assert [sorted(row) for row in blocks.trials.values()] == [["t1", "t2"]] * 3
    assert {one.treatment for one in blocks.control.values()} == {"t2"}


def test_a_block_whose_control_failed_is_repeated_whole(script, crash, into):
    script.fails = {(2, 1, "control"): died()}
    assert perform(script, crash, into).how == "done"
    blocks = usable_blocks(read_run(into))
    assert {block: one.attempt for block, one in blocks.control.items()} == {1: 1, 2: 2, 3: 1}
    assert {block: row["t1"].attempt for block, row in blocks.trials.items()} == {1: 1, 2: 2, 3: 1}
    assert [place for *place, _ in blocks.void] == [[2, 1]]


def test_a_control_that_fails_twice_is_left_out_and_that_shows_nothing_safe(script, crash, into):
    script.fails = {(2, "control"): died()}
    assert perform(script, crash, into).how == "done"
    run = read_run(into)
    assert run.dropped == {"control"}
    (told,) = run.notes
    assert told.startswith("control (innodb_flush_log_at_trx_commit = 0) failed 2 times in block 2 and is left out: ")
    assert told.endswith("; without its control the run can show losses but cannot rule them out")
    blocks = usable_blocks(run)
    assert set(blocks.trials) == {1, 2, 3}
    assert set(blocks.control) == {1}


def test_without_its_baseline_a_crash_run_judges_the_others(script, crash, into):
    script.fails = {(1, "t1"): died()}
    assert perform(script, crash, into).how == "done"
    assert read_run(into).dropped == {"t1"}
    assert ("control" in {place[2] for place in finished(into)}) is True


def test_with_the_control_alone_the_run_stops(script, crash, into):
    script.fails = {(1, "t1"): died(), (1, "t2"): died()}
    with pytest.raises(HostError, match="the run stops, nothing is left to judge"):
        perform(script, crash, into)
    assert kinds(into)[-2:] == ["dropped", "ended"]


def test_a_run_keeps_its_control(script, crash, plan, into):
    script.fails = {(1, 1, "control"): HostError("no room")}
    with pytest.raises(HostError):
        perform(script, crash, into)
    script.fails, script.ran = {}, []
    with pytest.raises(UserError, match="another study"):
        perform(script, plan((DESIGN, "blocks = 3\n")), into, resume=True)
    assert perform(script, crash, into, resume=True).how == "done"
    assert set(usable_blocks(read_run(into)).control) == {1, 2, 3}


def a_cut(outcome):
    return Cut("c1", "power", "uniform", "random-4096", 7, 1.5, outcome, 40, recovery_s={"mount": 0.5})


def test_what_was_found_after_cuts_is_stored_with_its_trial(script, crash, into):
    script.cuts = lambda block, treatment: [a_cut("tail" if treatment == "control" else "nothing")] * block
    perform(script, crash, into)
    for trial in read_run(into).trials:
        outcome = "tail" if trial.treatment == "control" else "nothing"
        assert trial.cuts == [a_cut(outcome)] * trial.block
        assert "cut recovery" in trial.seconds


def test_cuts_are_examined_once_the_stack_is_lowered(script, crash, into):
    perform(script, crash, into)
    order = [step for step in script.steps if step in {"raise", "cuts", "load", "lower", "cut recovery"}]
    assert order == ["raise", "cuts", "load", "lower", "cut recovery"] * 9


def test_a_cut_that_can_not_be_examined_fails_its_trial_and_is_no_outcome(script, crash, into):
    script.faults["cut recovery"] = TrialError("the loop device was detached by another")
    with pytest.raises(HostError, match="nothing is left to judge"):
        perform(script, crash, into)
    assert read_run(into).trials == []
