"""A trial that others disturbed: its block is repeated, or it is kept."""

from dbdyno.analysis.blocks import usable_blocks
from dbdyno.store.run_folder import read_run
from tests.scripted import perform
from tests.unit.run.conftest import died, disturbed_first, planned


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
