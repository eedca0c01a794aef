"""What is left out of an analysis, and what is not."""

from dataclasses import replace

from dbdyno.analysis.blocks import usable_blocks


def used(run):
    return {
        block: {treatment: trial.attempt for treatment, trial in row.items()}
        for block, row in usable_blocks(run).trials.items()
    }


def test_a_clean_run_is_used_whole(a_run):
    run = a_run({"t1": [1, 2], "t2": [1, 2]})
    assert used(run) == {1: {"t1": 1, "t2": 1}, 2: {"t1": 1, "t2": 1}}
    assert usable_blocks(run).void == ()


def test_a_failed_attempt_is_void_for_every_treatment_in_it(a_run, a_trial):
    trials = [a_trial("t1", 1, 9), a_trial("t1", 1, 1, attempt=2), a_trial("t2", 1, 2, attempt=2)]
    run = a_run({"t1": [1], "t2": [1]}, trials=trials, failures=[("t2", 1, 1)])
    assert used(run) == {1: {"t1": 2, "t2": 2}}
    assert usable_blocks(run).void == ((1, 1, frozenset({"t1", "t2"})),)


def test_the_latest_valid_attempt_counts_even_before_an_unfinished_one(a_run, a_trial):
    trials = [a_trial(t, 1, 5, attempt=attempt) for attempt in (1, 2) for t in ("t1", "t2")]
    trials.append(a_trial("t1", 1, 5, attempt=3))
    run = a_run({"t1": [1], "t2": [1]}, trials=trials)
    assert used(run) == {1: {"t1": 2, "t2": 2}}


def test_an_interrupted_block_is_not_used(a_run, a_trial):
    trials = [a_trial("t1", 1, 5), a_trial("t2", 1, 5), a_trial("t1", 2, 5)]
    run = a_run({"t1": [1, 1], "t2": [1, 1]}, trials=trials)
    assert used(run) == {1: {"t1": 1, "t2": 1}}


def test_a_finished_trial_beside_a_failure_of_the_same_attempt_does_not_count(a_run, a_trial):
    run = a_run({"t1": [1], "t2": [1]}, trials=[a_trial("t1", 1, 5), a_trial("t2", 1, 5)], failures=[("t2", 1, 1)])
    assert used(run) == {}


def test_a_dropped_treatment_voids_nothing(a_run, a_trial):
    trials = [a_trial(t, 1, 5) for t in ("t1", "t2", "t3")]
    trials += [a_trial(t, 2, 5, attempt=attempt) for attempt in (1, 2) for t in ("t1", "t2")]
    trials += [a_trial(t, 3, 5) for t in ("t1", "t2")]
    run = a_run({"t1": [1] * 3, "t2": [1] * 3, "t3": [1] * 3}, trials=trials, failures=[("t3", 2, 1), ("t3", 2, 2)])
    blocks = usable_blocks(run)
    assert blocks.dropped == {"t3"}
    assert used(run) == {1: {"t1": 1, "t2": 1, "t3": 1}, 2: {"t1": 2, "t2": 2}, 3: {"t1": 1, "t2": 1}}
    assert blocks.void == ((2, 1, frozenset({"t1", "t2", "t3"})),)


def test_everything_dropped(a_run):
    failures = [(t, 1, attempt) for t in ("t1", "t2") for attempt in (1, 2)]
    run = a_run({"t1": [1], "t2": [1]}, trials=[], failures=failures)
    assert used(run) == {}


def test_a_treatment_that_ran_again_after_two_failures_was_not_dropped(a_run, a_trial):
    trials = [a_trial(t, block, 5, attempt=3 if block == 1 else 1) for block in (1, 2) for t in ("t1", "t2")]
    run = a_run({"t1": [1, 1], "t2": [1, 1]}, trials=trials, failures=[("t2", 1, 1), ("t2", 1, 2)])
    run = replace(run, dropped=frozenset())
    assert used(run) == {1: {"t1": 3, "t2": 3}, 2: {"t1": 1, "t2": 1}}
