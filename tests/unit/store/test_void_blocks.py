"""What events say has happened, and which attempt at a block counts."""

from dataclasses import replace

import pytest

from dbdyno.model.design import Factor, Treatment
from dbdyno.store.events import Dropped, Ended, Failed, Finished, Joined, Lost, Note, Planned, Resumed, Started
from dbdyno.store.void_blocks import History, attempts_that_count
from tests.unit.store.conftest import DESIGN

LIVE = frozenset({"t1", "t2"})


def about(block, attempt, treatment):
    return f"b{block}a{attempt}-{treatment}", block, attempt, treatment


def finished(*place, **fields):
    return Finished(*about(*place), **fields)


def failed(*place):
    return Failed(*about(*place), "died")


def counting(*events, parts=(frozenset({"t1", "t2", "t3"}),)):
    history = History.of(events)
    return attempts_that_count(history.attempts, parts, history.dropped)


def study(interference, parts=1):
    """A design of treatments t1, t2, ...; with several parts a suite, of which each load has two treatments."""
    if parts == 1:
        return replace(DESIGN, treatments=[Treatment(id_, {}) for id_ in sorted(LIVE)], interference=interference)
    loads = [f"load{number}" for number in range(1, parts + 1)]
    pairs = [(load, server) for load in loads for server in ("old", "new")]
    treatments = [Treatment(f"t{n}", {"load": load, "server": server}) for n, (load, server) in enumerate(pairs, 1)]
    factor = Factor("load", "levels", loads, groups=dict.fromkeys(loads, ""))
    return replace(DESIGN, treatments=treatments, factors=[factor], interference=interference)


WHOLE = [finished(1, 1, "t1"), finished(1, 1, "t2")]
COUNTS = {
    "a whole attempt": (WHOLE, {1: (1,)}),
    "none that is half done": ([finished(1, 1, "t1"), Started(*about(1, 1, "t2"))], {}),
    "none in which one failed": ([*WHOLE, failed(1, 1, "t2")], {}),
    "the latest that is whole": ([*WHOLE, finished(1, 2, "t1"), finished(1, 2, "t2"), finished(1, 3, "t1")], {1: (2,)}),
    "none that lost a trial": ([*WHOLE, Lost(*about(1, 1, "t1"), "gone")], {}),
    "a failure of what was left out": ([*WHOLE, failed(1, 1, "t3"), Dropped("t3", "left out")], {1: (1,)}),
    "without what was left out": ([finished(1, 1, "t1"), failed(1, 1, "t2"), Dropped("t2", "left out")], {1: (1,)}),
    "nothing of what was all left out": ([*WHOLE, Dropped("t1", ""), Dropped("t2", "")], {}),
}


@pytest.mark.parametrize(("events", "attempts"), COUNTS.values(), ids=COUNTS.keys())
def test_what_counts(events, attempts):
    third = [] if any(event.treatment == "t3" for event in events) else [Dropped("t3", "")]
    assert counting(*events, *third) == attempts


PARTS = [frozenset({"t1", "t2"}), frozenset({"t3", "t4"})]
OTHER = [finished(1, 1, "t3"), finished(1, 1, "t4")]
OTHER_AGAIN = [finished(1, 2, "t3"), finished(1, 2, "t4")]
PARTS_COUNT = {
    "all in one attempt": ([*WHOLE, *OTHER], {1: (1, 1)}),
    "each the latest of its own": ([*WHOLE, failed(1, 1, "t3"), *OTHER_AGAIN], {1: (1, 2)}),
    "none of a block that lacks one": ([*WHOLE, failed(1, 1, "t3"), finished(1, 2, "t4")], {}),
    "without what was left out": ([*WHOLE, failed(1, 1, "t3"), Dropped("t3", ""), Dropped("t4", "")], {1: (1, 1)}),
}


@pytest.mark.parametrize(("events", "attempts"), PARTS_COUNT.values(), ids=PARTS_COUNT.keys())
def test_what_counts_of_each_part(events, attempts):
    assert counting(*events, parts=PARTS) == attempts


def test_a_part_is_repeated_alone():
    design = study("repeat", parts=2)
    assert design.parts() == PARTS
    history = History.of([*WHOLE, *OTHER[:1], finished(1, 1, "t4", disturbed=True)])
    assert history.void_reason(1, 1, PARTS[0], design) is None
    assert history.void_reason(1, 1, PARTS[1], design) == "interference"
    assert (history.parts_to_run(1, 1, design), history.parts_to_run(1, 2, design)) == ([], PARTS[1:])
    assert not history.is_done(1, 1, design)
    for event in OTHER_AGAIN:
        history.add(event)
    assert (history.parts_to_run(1, 2, design), history.is_done(1, 2, design)) == ([], True)


def test_a_failure_again_and_again_leaves_nothing_out_by_itself():
    history = History.of([failed(1, 1, "t2"), failed(1, 2, "t2"), failed(2, 1, "t2")])
    assert (history.dropped, history.failures_of("t2", 1), len(history.failures)) == (set(), 2, 3)


def test_a_lost_trial_is_finished_no_more_and_costs_no_attempt():
    history = History.of([*WHOLE, Lost(*about(1, 1, "t1"), "gone")])
    assert list(history.finished) == ["b1a1-t2"]
    assert (history.attempts_lost(1, study("note")), history.attempts_lost(2, study("note")), history.has_begun(1)) == (
        1,
        0,
        True,
    )
    assert (history.done(), history.notes) == (1, ["gone"])


def test_each_attempt_has_the_host_that_it_ran_on_and_each_host_what_it_was_last():
    joined = [Joined("db1", {"cores": 2}), Joined("db2", {"cores": 4}), Joined("db1", {"cores": 8})]
    history = History.of([*joined, finished(1, 1, "t1", host="db2"), finished(1, 2, "t1", host="db1")])
    assert {place: one.host for place, one in history.attempts.items()} == {(1, 1): "db2", (1, 2): "db1"}
    assert {name: one.facts["cores"] for name, one in history.hosts.items()} == {"db1": 8, "db2": 4}


def test_what_is_begun_is_told_from_what_has_ended():
    history = History.of([Planned(8), Started(*about(1, 1, "t1"))])
    assert (history.begun, history.has_begun(1), history.last_attempt(1)) == (True, False, 1)
    assert not History().begun
    assert history.last_attempt(5) == 1


def test_when_measuring_stops_is_what_was_last_asked_for():
    history = History.of([Planned(8), *WHOLE, Ended("done", "blocks")])
    assert (history.changed(DESIGN).blocks, history.ended, len(history.timed)) == (8, Ended("done", "blocks"), 2)
    history.add(Resumed(12))
    assert (history.changed(DESIGN).until, history.ended, len(history.timed)) == ("blocks", None, 2)
    history.add(Resumed(20, "open", 90.0, extended_from=1))
    found = history.changed(DESIGN)
    assert (found.blocks, found.until, found.budget_seconds, history.extended_from) == (20, "open", 90.0, 1)
    assert history.timed == set(), "its time counts anew"


def test_a_block_is_given_up_by_a_note():
    assert History.of([Note("x"), Note("block 3 was given up", given_up=3)]).given_up == {3}


DISTURBED = [finished(1, 1, "t1", disturbed=True), finished(1, 1, "t2")]
VOID = {
    "a whole attempt is not": (WHOLE, "repeat", None),
    "one that failed": ([*WHOLE, failed(1, 1, "t2")], "note", "failed"),
    "one whose files were lost": ([*WHOLE, Lost(*about(1, 1, "t1"), "gone")], "note", "lost"),
    "one that others disturbed": (DISTURBED, "repeat", "interference"),
    "not where the study keeps it": (DISTURBED, "note", None),
    "a failure comes first": ([*DISTURBED, failed(1, 1, "t2")], "repeat", "failed"),
}


@pytest.mark.parametrize("case", VOID)
def test_why_an_attempt_is_void(case):
    events, interference, reason = VOID[case]
    assert History.of(events).void_reason(1, 1, LIVE, study(interference)) == reason


def test_after_two_blocks_disturbed_to_the_end_none_is_repeated_for_it():
    history = History.of(finished(block, 3, "t1", disturbed=True) for block in (1, 2))
    history.add(finished(3, 1, "t1", disturbed=True))
    assert history.void_reason(2, 1, LIVE, study("repeat")) is None  # of which no first attempt was disturbed
    assert history.void_reason(3, 1, LIVE, study("repeat")) is None
    assert History.of([finished(3, 3, "t1", disturbed=True)]).void_reason(3, 3, LIVE, study("repeat")) is None


def test_of_a_suite_as_many_loads_as_two_blocks_have():
    design = study("repeat", parts=2)
    kept = [finished(block, 3, treatment, disturbed=True) for block in (1, 2) for treatment in ("t1", "t3")]
    assert History.of(kept[:3]).repeating_helps(3, design)
    assert not History.of(kept).repeating_helps(3, design)
