"""Which trials a run consists of: after failures, after drops, after a stop, and after a kill at any moment.

The real trial is replaced at one seam, ``run_trial``; journal, run folder, plan and signals are the real ones.
"""

import os
import shutil
import signal
from pathlib import Path

import pytest

from dbdyno.analysis.blocks import usable_blocks
from dbdyno.errors import HostError, TrialError, UserError
from dbdyno.runner import ATTEMPTS
from dbdyno.stack.journal import Journal
from dbdyno.stop import Outlook
from dbdyno.store.run_folder import events, read_run
from tests.scripted import perform

TWO_BY_TWO = ('scheduler = "mq-deadline"', 'scheduler = ["mq-deadline", "none"]')


def planned(plan, *places):
    """Return the slots of ``(block, attempt)`` places in the plan's order."""
    return [slot for place in places for slot in plan.slots(*place)]


def finished(into):
    return [
        (event["block"], event["attempt"], event["treatment"]) for event in events(into) if event["event"] == "finished"
    ]


def kinds(into):
    return [event["event"] for event in events(into)]


def died(text="the server died"):
    return TrialError(text)


@pytest.fixture
def two(plan):
    return plan(blocks=3)


@pytest.fixture
def four(plan):
    return plan(TWO_BY_TWO, blocks=3)


@pytest.fixture
def into(tmp_path):
    return tmp_path / "run"


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


def cut_at_every_line(into, tmp_path):
    """Yield (lines kept, a copy of the run folder as a kill after that line leaves it)."""
    lines = (into / "journal.jsonl").read_bytes().splitlines(keepends=True)
    for kept in range(len(lines) + 1):
        copy = tmp_path / f"cut{kept}"
        shutil.copytree(into, copy)
        (copy / "journal.jsonl").write_bytes(b"".join(lines[:kept]) + b'{"event": "fin')
        yield kept, copy


SCENARIOS = {
    "no failure": {},
    "one failure": {(2, 1, "t3"): died()},
    "failures in two blocks": {(1, 1, "t2"): died(), (1, 2, "t3"): died(), (3, 1, "t2"): died()},
}


@pytest.mark.parametrize("fails", SCENARIOS.values(), ids=SCENARIOS.keys())
def test_killed_anywhere_a_run_goes_on_as_if_it_had_not_been(script, four, into, tmp_path, fails):
    script.fails = fails
    whole = perform(script, four, into)
    expected = finished(into)
    for kept, copy in cut_at_every_line(into, tmp_path):
        script.ran = []
        before = finished(copy)
        outcome = perform(script, four, copy, resume=True)
        assert outcome == whole, kept
        assert finished(copy) == expected, kept
        assert len(before) + len(script.ran) - len(expected) <= whole.failures, kept
        assert script.left == [], kept
        usable = usable_blocks(read_run(copy)).trials
        assert {block: sorted(row) for block, row in usable.items()} == dict.fromkeys((1, 2, 3), sorted(four.specs)), (
            kept
        )


DROPS = {
    "fails again and again": {(2, "t4"): died()},
    "fails once, later again and again": {(1, 1, "t4"): died(), (2, "t4"): died()},
}


@pytest.mark.parametrize("fails", DROPS.values(), ids=DROPS.keys())
def test_killed_anywhere_a_run_with_a_drop_still_has_each_trial_once(script, four, into, tmp_path, fails):
    script.fails = fails
    perform(script, four, into)
    for kept, copy in cut_at_every_line(into, tmp_path):
        before = finished(copy)
        script.ran = []
        assert perform(script, four, copy, resume=True).how == "done", kept
        ran = [(slot.block, slot.attempt, slot.treatment) for slot in script.ran]
        assert not set(before) & set(ran), kept
        assert len(finished(copy)) == len(set(finished(copy))), kept
        usable = usable_blocks(read_run(copy))
        assert usable.dropped == {"t4"}, kept
        assert {block: set(row) - {"t4"} for block, row in usable.trials.items()} == {
            block: {"t1", "t2", "t3"} for block in (1, 2, 3)
        }, kept


@pytest.mark.parametrize("fails", DROPS.values(), ids=DROPS.keys())
def test_killed_anywhere_a_run_with_a_drop_runs_no_trial_more(script, four, into, tmp_path, fails):
    script.fails = fails
    perform(script, four, into)
    expected = finished(into)
    # Between a treatment's second failure and the line that drops it, a kill gives it one chance more.
    second_failure = kinds(into).index("dropped")
    for kept, copy in cut_at_every_line(into, tmp_path):
        if kept == second_failure:
            continue
        perform(script, four, copy, resume=True)
        assert finished(copy) == expected, kept


def test_resumed_when_done_nothing_is_run_again(script, four, into):
    perform(script, four, into)
    script.ran = []
    assert perform(script, four, into, resume=True).how == "done"
    assert script.ran == []


def test_resumed_when_done_nothing_is_said_twice(script, four, into):
    script.fails = {(1, attempt, f"t{attempt}"): died() for attempt in (1, 2, 3)}
    perform(script, four, into)
    script.ran = []
    perform(script, four, into, resume=True)
    assert script.ran == []
    assert read_run(into).notes == ["block 1 was given up after 3 attempts"]


def test_a_plan_of_when_to_stop_is_not_changed_under_way(script, plan, into):
    perform(script, plan(blocks=2), into)
    script.ran = []
    with pytest.raises(UserError, match=r"was begun with another plan of when to stop; that is not changed under way$"):
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


def test_a_header_says_what_was_run(script, plan, into):
    made = plan(blocks=1, seed=5)
    perform(script, made, into)
    run = read_run(into)
    assert (run.title, run.question, run.versions, run.host) == ("A study", "Which?", {"dbdyno": "0"}, {"cores": 2})
    assert run.design == made.design


def disturbed_first(plan, *places):
    """Return the first trial of each ``(block, attempt)``, to be disturbed."""
    return {(block, attempt, plan.slots(block, attempt)[0].treatment) for block, attempt in places}


def attempts_used(into):
    return {block: {one.attempt for one in row.values()} for block, row in usable_blocks(read_run(into)).trials.items()}


def test_a_disturbed_trial_has_its_block_repeated_whole(script, four, into):
    script.disturbed = disturbed_first(four, (2, 1))
    outcome = perform(script, four, into)
    assert (outcome.how, outcome.failures) == ("done", 0)
    assert script.ran == [*planned(four, (1, 1)), four.slots(2, 1)[0], *planned(four, (2, 2), (3, 1))]
    assert attempts_used(into) == {1: {1}, 2: {2}, 3: {1}}
    assert [trial.disturbed for trial in read_run(into).trials].count(True) == 1
    told = [said for said in script.said if "disturbed" in said]
    assert told == [
        f"{four.slots(2, 1)[0].id} was disturbed: other processes took 50 % of the CPU (limit 6.0 %; cc 1.000 cores)"
    ]
    assert "block 2 is repeated whole" in script.said


def test_at_the_last_attempt_a_disturbed_block_is_kept(script, four, into):
    script.disturbed = {(1, attempt, treatment) for attempt in (1, 2, 3) for treatment in four.specs}
    assert perform(script, four, into).how == "done"
    expected = [four.slots(1, 1)[0], four.slots(1, 2)[0], *planned(four, (1, 3), (2, 1), (3, 1))]
    assert script.ran == expected
    assert attempts_used(into) == {1: {3}, 2: {1}, 3: {1}}
    assert read_run(into).notes == []
    assert "block 1 is kept all the same" in script.said


def test_where_repeating_is_no_remedy_it_ends(script, four, into):
    script.disturbed = {(block, attempt, t) for block in (1, 2, 3) for attempt in (1, 2, 3) for t in four.specs}
    assert perform(script, four, into).how == "done"
    assert attempts_used(into) == {1: {3}, 2: {3}, 3: {1}}
    assert [said.split(":")[0] for said in script.said if "stayed disturbed" in said] == [
        "2 blocks stayed disturbed at every attempt"
    ]


def test_a_whole_disturbed_attempt_is_kept_where_the_later_ones_fail(script, two, into):
    last = two.slots(1, 1)[-1].treatment
    script.disturbed = {(1, 1, last)}
    script.fails = {(1, 2, "t1"): died(), (1, 3, "t2"): died()}
    assert perform(script, two, into).how == "done"
    assert attempts_used(into) == {1: {1}, 2: {1}, 3: {1}}
    assert not [note for note in read_run(into).notes if "given up" in note]


def test_a_study_may_only_note_them(script, plan, into):
    noting = plan(("blocks = 6", 'disturbed = "note"'), blocks=3)
    script.disturbed = {(block, 1, treatment) for block in (1, 2, 3) for treatment in noting.specs}
    assert perform(script, noting, into).how == "done"
    assert script.ran == planned(noting, (1, 1), (2, 1), (3, 1))
    assert [trial.disturbed for trial in read_run(into).trials] == [True] * 6
    assert not any("kept all the same" in line for line in script.said)


def test_the_results_of_a_trial_have_no_say_in_its_repetition(script, four, into, tmp_path):
    script.disturbed = disturbed_first(four, (1, 1), (3, 1), (3, 2))
    perform(script, four, into)
    ran, script.ran = script.ran, []
    script.rate = lambda block, treatment: 1.0 / block if treatment == "t1" else 1e6 * block
    perform(script, four, tmp_path / "other")
    assert script.ran == ran


DISTURBED = {
    "one attempt": {(2, 1)},
    "two attempts, two blocks": {(1, 1), (1, 2), (3, 1)},
    "every attempt": {(2, 1), (2, 2), (2, 3)},
}


@pytest.mark.parametrize("places", DISTURBED.values(), ids=DISTURBED.keys())
def test_killed_anywhere_a_disturbed_run_goes_on_as_if_it_had_not_been(script, four, into, tmp_path, places):
    script.disturbed = disturbed_first(four, *places)
    perform(script, four, into)
    expected = finished(into)
    for kept, copy in cut_at_every_line(into, tmp_path):
        perform(script, four, copy, resume=True)
        assert finished(copy) == expected, kept


def test_the_answer_to_disturbed_trials_is_not_changed_under_way(script, plan, into):
    perform(script, plan(blocks=2), into)
    with pytest.raises(UserError, match="was begun with disturbed = 'repeat'"):
        perform(script, plan(("blocks = 6", 'disturbed = "note"'), blocks=2), into, resume=True)


def test_a_signal_while_the_run_is_being_closed_finds_it_ended(script, two, into, monkeypatch):
    close = Journal.close

    def closing(journal):
        os.kill(os.getpid(), signal.SIGTERM)
        close(journal)

    monkeypatch.setattr(Journal, "close", closing)
    assert perform(script, two, into).how == "done"
    assert read_run(into).ended == "done"
    assert not any(Path(os.environ["DBDYNO_STATE_DIR"]).rglob("*.jsonl"))
