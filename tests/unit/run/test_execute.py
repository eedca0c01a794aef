"""Which trials a run consists of, after failures, after drops and after a stop.

The host is scripted (see ``tests/scripted.py``); trials, undo log, run folder, plan and signals are the real ones.
"""

import os
import signal
from dataclasses import replace
from datetime import timedelta
from itertools import cycle
from pathlib import Path

import pytest

from dbdyno.analysis.blocks import usable_blocks
from dbdyno.errors import HostError
from dbdyno.run.execute import ATTEMPTS
from dbdyno.run.stop import Outlook
from dbdyno.stack.undo_log import Journal
from dbdyno.store.run_folder import read_run
from tests.scripted import BEGAN, Script, perform
from tests.unit.run.conftest import died, finished, kinds, planned


def test_every_block_in_the_order_of_the_plan(script, four, into):
    outcome = perform(script, four, into)
    assert (outcome.how, outcome.failures) == ("done", 0)
    assert script.ran == planned(four, (1, 1), (2, 1), (3, 1))
    assert kinds(into) == ["planned", *["started", "finished"] * 12, "ended"]
    run = read_run(into)
    assert (run.ended, run.notes, run.design) == ("done", [], four.design)
    assert [trial.id for trial in run.trials] == [slot.id for slot in script.ran]
    assert {key: seed for key, seed in script.seeds.items() if key[0] == 2} == {
        (2, treatment): four.trial_seed(2) for treatment in four.specs
    }
    progress = [said for said in script.said if isinstance(said, tuple)]
    assert [(done, outlook) for _, _, done, outlook in progress] == [(number, Outlook(3)) for number in range(12)]


def test_a_clock_that_is_set_back_and_forth_meanwhile_changes_nothing_but_the_dates(script, four, into, tmp_path):
    script.load_seconds, script.raise_seconds = 2.0, 1.0
    assert perform(script, four, into).how == "done"
    another = Script()
    another.load_seconds, another.raise_seconds = 2.0, 1.0
    jumps = cycle([0, -3650, 36500, -1, 1])  # days
    another.date = lambda: BEGAN + timedelta(days=next(jumps))
    assert perform(another, four, tmp_path / "jumping").how == "done"
    steady, jumping = read_run(into).trials, read_run(tmp_path / "jumping").trials
    assert len({trial.started_at for trial in jumping}) == 5
    assert [replace(one, started_at="") for one in jumping] == [replace(one, started_at="") for one in steady]


def test_a_fixed_number_of_blocks_shows_no_effect_before_its_end(script, plan, into):
    script.rate = lambda block, treatment: (100.0 + block) * (3.0 if treatment == "t2" else 1.0)
    assert perform(script, plan(blocks=12), into).how == "done"
    assert not [said for said in script.said if isinstance(said, str)]


def test_a_failure_ends_the_attempt_and_the_block_is_repeated_whole_in_another_order(script, four, into):
    [first, second, *_] = planned(four, (2, 1))
    script.fails[2, 1, second.treatment] = died()
    outcome = perform(script, four, into)
    assert (outcome.how, outcome.failures) == ("done", 1)
    assert script.ran == [*planned(four, (1, 1)), first, second, *planned(four, (2, 2), (3, 1))]
    run = read_run(into)
    assert [(one.id, one.cause) for one in run.failures] == [(second.id, "the server died")]
    assert {block: {trial.attempt for trial in row.values()} for block, row in usable_blocks(run).trials.items()} == {
        1: {1},
        2: {2},
        3: {1},
    }
    assert script.said.count("block 2 is repeated whole: a block counts only with all its trials") == 1


def test_a_treatment_that_fails_twice_in_a_block_is_left_out_from_there_on(script, four, into):
    script.fails = {(2, "t4"): died()}
    outcome = perform(script, four, into)
    assert (outcome.how, outcome.failures) == ("done", 2)
    run = read_run(into)
    label = next(one.label for one in four.design.treatments if one.id == "t4")
    assert run.notes == [f"{label} failed 2 times in block 2 and is left out: the server died"]
    ran = [(slot.block, slot.attempt, slot.treatment) for slot in script.ran]
    assert [place for place in ran if place[2] == "t4"] == [(1, 1, "t4"), (2, 1, "t4"), (2, 2, "t4")]
    assert sorted(place for place in ran if place[:2] == (2, 2)) == [(2, 2, f"t{number}") for number in (1, 2, 3, 4)]
    assert sorted(place for place in ran if place[0] == 3) == [(3, 1, f"t{number}") for number in (1, 2, 3)]
    usable = usable_blocks(run)
    assert usable.dropped == {"t4"}
    assert {block: set(row) - {"t4"} for block, row in usable.trials.items()} == {
        block: {"t1", "t2", "t3"} for block in (1, 2, 3)
    }


def test_failures_of_different_blocks_drop_nothing(script, two, into):
    script.fails = {(block, 1, "t2"): died() for block in (1, 2, 3)}
    assert perform(script, two, into).how == "done"
    assert "dropped" not in kinds(into)
    assert [place for place in finished(into) if place[2] == "t2"] == [(1, 2, "t2"), (2, 2, "t2"), (3, 2, "t2")]


def test_a_block_is_given_up_after_three_attempts_and_the_run_goes_on(script, four, into):
    script.fails = {(1, attempt, f"t{attempt}"): died() for attempt in (1, 2, 3)}
    outcome = perform(script, four, into)
    assert (outcome.how, outcome.failures) == ("done", 3)
    assert max(slot.attempt for slot in script.ran) == ATTEMPTS
    assert read_run(into).notes == ["block 1 was given up after 3 attempts"]
    assert [slot for slot in script.ran if slot.block > 1] == planned(four, (2, 1), (3, 1))
    assert set(usable_blocks(read_run(into)).trials) == {2, 3}


def test_without_its_baseline_the_run_stops(script, four, into):
    script.fails = {(1, "t1"): died()}
    with pytest.raises(
        HostError, match=r"nothing is left to compare.*hdd-7200 / mq-deadline failed 2 times in block 1"
    ):
        perform(script, four, into)
    assert kinds(into)[-2:] == ["dropped", "ended"]
    assert read_run(into).ended == "failed"
    assert {slot.block for slot in script.ran} == {1}


def test_with_the_baseline_alone_the_run_stops(script, two, into):
    script.fails = {(1, "t2"): died()}
    with pytest.raises(HostError, match="nothing is left to compare"):
        perform(script, two, into)


def test_what_no_trial_can_do_stops_the_run_at_once(script, two, into):
    script.fails = {(1, 1, two.slots(1, 1)[1].treatment): HostError("mkfs.ext4 is not installed")}
    with pytest.raises(HostError, match=r"^mkfs\.ext4 is not installed$"):
        perform(script, two, into)
    assert len(script.ran) == 2
    assert kinds(into) == ["planned", "started", "finished", "started", "failed", "ended"]
    run = read_run(into)
    assert (run.ended, [one.cause for one in run.failures]) == ("failed", ["mkfs.ext4 is not installed"])


def test_after_what_stopped_it_is_mended_the_run_goes_on(script, two, into):
    broken = two.slots(1, 1)[1].treatment
    script.fails = {(1, 1, broken): HostError("mkfs.ext4 is not installed")}
    with pytest.raises(HostError):
        perform(script, two, into)
    script.fails, script.ran = {}, []
    assert perform(script, two, into, resume=True).how == "done"
    assert script.ran == planned(two, (1, 2), (2, 1), (3, 1))
    assert set(usable_blocks(read_run(into)).trials) == {1, 2, 3}


def test_what_stops_the_run_again_and_again_leaves_no_treatment_out(script, two, into):
    broken = two.slots(1, 1)[1].treatment
    for attempt in (1, 2):
        script.fails = {(1, attempt, broken): HostError("mkfs.ext4 is not installed")}
        with pytest.raises(HostError):
            perform(script, two, into, resume=True)
    assert (len(read_run(into).failures), read_run(into).dropped) == (2, frozenset())
    script.fails = {}
    assert perform(script, two, into, resume=True).how == "done"
    blocks = usable_blocks(read_run(into)).trials
    assert {block: sorted(row) for block, row in blocks.items()} == {block: ["t1", "t2"] for block in (1, 2, 3)}
    assert {trial.attempt for trial in blocks[1].values()} == {3}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_keeps_what_is_finished_and_can_be_gone_on_with(script, two, into, number):
    held = [signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGINT)]
    slots = planned(two, (1, 1), (2, 1), (3, 1))
    script.fails = {(2, 1, slots[3].treatment): lambda: os.kill(os.getpid(), number)}
    script.at_exit = lambda: os.kill(os.getpid(), number)  # an impatient second one, while the host is put back
    assert perform(script, two, into).how == "interrupted"
    assert script.ran == slots[:4]
    assert "putting the host back; a moment" in script.said
    assert [signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGINT)] == held
    assert (read_run(into).ended, len(read_run(into).trials), read_run(into).failures) == ("interrupted", 3, [])
    script.fails, script.ran, script.at_exit = {}, [], None
    assert perform(script, two, into, resume=True).how == "done"
    assert script.ran == slots[3:]
    assert script.left == []  # what the stopped try had left in its folder


def test_a_header_says_what_was_run(script, plan, into):
    made = plan(blocks=1, seed=5)
    perform(script, made, into)
    run = read_run(into)
    assert (run.title, run.question, run.versions, run.host) == ("A study", "Which?", {"dbdyno": "0"}, {"cores": 2})
    assert run.design == made.design


def test_a_signal_while_the_run_is_being_closed_finds_it_ended(script, two, into, monkeypatch):
    close = Journal.close

    def closing(journal):
        os.kill(os.getpid(), signal.SIGTERM)
        close(journal)

    monkeypatch.setattr(Journal, "close", closing)
    assert perform(script, two, into).how == "done"
    assert read_run(into).ended == "done"
    assert not any(Path(os.environ["DBDYNO_STATE_DIR"]).rglob("*.jsonl"))
