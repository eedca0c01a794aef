"""After a kill at any moment a run goes on as if it had not been killed."""

import shutil

import pytest

from dbdyno.analysis.blocks import usable_blocks
from dbdyno.store.run_folder import read_run
from tests.sampled import some
from tests.scripted import perform
from tests.unit.run.conftest import died, disturbed_first, finished, kinds


def cut_at_lines(into, tmp_path):
    """Yield (lines kept, a copy of the run folder as a kill after that line leaves it) for a third of the lines."""
    lines = (into / "journal.jsonl").read_bytes().splitlines(keepends=True)
    for kept in some(f"cut {len(lines)}", range(len(lines) + 1), 1 / 3):
        copy = tmp_path / f"cut{kept}"
        shutil.copytree(into, copy)
        if not kept:  # the first trial begins after the first line
            shutil.rmtree(copy / "trials")
            (copy / "trials").mkdir()
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
    for kept, copy in cut_at_lines(into, tmp_path):
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
    for kept, copy in cut_at_lines(into, tmp_path):
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
    for kept, copy in cut_at_lines(into, tmp_path):
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
    for kept, copy in cut_at_lines(into, tmp_path):
        perform(script, four, copy, resume=True)
        assert finished(copy) == expected, kept
