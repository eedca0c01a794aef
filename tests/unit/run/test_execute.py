"""Which trials a run consists of, after failures, after drops and after a stop.

The host is scripted (see ``tests/scripted.py``); trials, undo log, run folder, plan and signals are the real ones.
"""

import json
import os
import signal
from dataclasses import replace
from datetime import timedelta
from itertools import cycle
from pathlib import Path

import pytest

from dbdyno.analysis.analyse import analyse
from dbdyno.analysis.blocks import usable_blocks
from dbdyno.errors import HostError, UserError
from dbdyno.host.processor import Means
from dbdyno.run.execute import ATTEMPTS
from dbdyno.run.preflight import with_host_decided
from dbdyno.run.stop import Outlook
from dbdyno.stack.undo_log import Journal
from dbdyno.store.run_folder import read_run
from dbdyno.study.schema import HostSection
from tests.scripted import BEGAN, Script, perform
from tests.unit.report.rendered import as_json, as_page, as_text
from tests.unit.run.conftest import died, disturbed_first, finished, kinds, planned


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


# A trial that others disturbed: its block is repeated, or it is kept.


def attempts_used(into):
    return {block: {one.attempt for one in row.values()} for block, row in usable_blocks(read_run(into)).trials.items()}


def test_a_disturbed_trial_has_its_block_repeated_whole(script, four, into):
    script.disturbed = disturbed_first(four, (2, 1))
    outcome = perform(script, four, into)
    assert (outcome.how, outcome.failures) == ("done", 0)
    assert script.ran == [*planned(four, (1, 1)), four.slots(2, 1)[0], *planned(four, (2, 2), (3, 1))]
    assert attempts_used(into) == {1: {1}, 2: {2}, 3: {1}}
    assert [trial.disturbed for trial in read_run(into).trials].count(True) == 1
    told = [said for said in script.said if "met interference" in said]
    assert told == [
        f"{four.slots(2, 1)[0].id} met interference: other processes took 50 % of the CPU (limit 6.0 %; cc 1.000 cores)"
    ]
    assert "block 2 is repeated whole" in script.said


def test_at_the_last_attempt_a_disturbed_block_is_kept(script, four, into):
    script.disturbed = {(1, attempt, treatment) for attempt in (1, 2, 3) for treatment in four.specs}
    assert perform(script, four, into).how == "done"
    expected = [four.slots(1, 1)[0], four.slots(1, 2)[0], *planned(four, (1, 3), (2, 1), (3, 1))]
    assert script.ran == expected
    assert attempts_used(into) == {1: {3}, 2: {1}, 3: {1}}
    assert read_run(into).notes == []
    assert "block 1 is kept despite the interference" in script.said


def test_where_repeating_is_no_remedy_it_ends(script, four, into):
    script.disturbed = {(block, attempt, t) for block in (1, 2, 3) for attempt in (1, 2, 3) for t in four.specs}
    assert perform(script, four, into).how == "done"
    assert attempts_used(into) == {1: {3}, 2: {3}, 3: {1}}
    assert [said.split(",")[0] for said in script.said if "met interference at every" in said] == [
        "2 blocks met interference at every attempt"
    ]


def test_a_whole_disturbed_attempt_is_kept_where_the_later_ones_fail(script, two, into):
    last = two.slots(1, 1)[-1].treatment
    script.disturbed = {(1, 1, last)}
    script.fails = {(1, 2, "t1"): died(), (1, 3, "t2"): died()}
    assert perform(script, two, into).how == "done"
    assert attempts_used(into) == {1: {1}, 2: {1}, 3: {1}}
    assert not [note for note in read_run(into).notes if "given up" in note]


def test_a_study_may_only_note_them(script, plan, into):
    noting = plan(("blocks = 6", 'interference = "note"'), blocks=3)
    script.disturbed = {(block, 1, treatment) for block in (1, 2, 3) for treatment in noting.specs}
    assert perform(script, noting, into).how == "done"
    assert script.ran == planned(noting, (1, 1), (2, 1), (3, 1))
    assert [trial.disturbed for trial in read_run(into).trials] == [True] * 6
    assert not any("despite the interference" in line for line in script.said)


def test_the_results_of_a_trial_have_no_say_in_its_repetition(script, four, into, tmp_path):
    script.disturbed = disturbed_first(four, (1, 1), (3, 1), (3, 2))
    perform(script, four, into)
    ran, script.ran = script.ran, []
    script.rate = lambda block, treatment: 1.0 / block if treatment == "t1" else 1e6 * block
    perform(script, four, tmp_path / "other")
    assert script.ran == ran


# What may not be gone on with.


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


# A whole run of a study with named levels, on a scripted host: its verdict, and what its report says of the levels.


LEVELS = """\
[levels]
factor = "advice"
[levels.ours]
innodb_io_capacity = 200
[levels."the vendor's"]
innodb_io_capacity = 2000
scheduler = "none"
"""


def test_named_levels_are_one_factor_with_one_verdict(script, plan, into):
    made = plan(
        ('["hdd-7200", "ssd-sata"]', '"ideal"'),
        ('baseline = { device = "hdd-7200" }\n', 'baseline = { advice = "ours" }\n'),
        ("blocks = 6\n", f"blocks = 6\n{LEVELS}"),
    )
    script.rate = lambda block, treatment: (200.0 if treatment == "t2" else 100.0) + 0.1 * block
    assert perform(script, made, into).how == "done"
    run = read_run(into)
    assert run.design == made.design, "what the levels give is kept in the run folder"
    (verdict,) = analyse(run).verdicts
    assert (verdict.baseline_id, verdict.level_id, verdict.verdict) == ("t1", "t2", "faster")

    text = as_text(run, analyse(run))
    assert "the vendor's" in text
    assert "the vendor's: innodb_io_capacity 2000, scheduler none" in text
    assert "ours: innodb_io_capacity 200" in text
    told = json.loads(as_json(run, analyse(run)))
    assert told["levels"]["advice"]["the vendor's"] == {
        "server.settings.innodb_io_capacity": "2000",
        "stack.scheduler": "none",
    }
    assert [row["label"] for row in told["treatments"]] == ["ours", "the vendor's"]
    assert "innodb_io_capacity 2000, scheduler none" in as_page(run, analyse(run))
    assert "scheduler mq-deadline" not in run.setup, "not all treatments have what a level gives"
