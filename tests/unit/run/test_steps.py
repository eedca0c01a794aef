"""Loads of a suite that go on from one another: one trial for all, stored at its end, begun again from the first."""

from dataclasses import replace

import pytest

from dbdyno.analysis.blocks import usable_blocks
from dbdyno.errors import HostError
from dbdyno.plan.plan import (
    GUESSED_EVENTS_PER_SECOND,
    GUESSED_LOAD_SECONDS,
    OVERHEAD_SECONDS,
    STEP_OVERHEAD_SECONDS,
    make_plan,
)
from dbdyno.store.events import Dropped, Failed, Finished, Started, read_events
from dbdyno.store.run_folder import read_run
from dbdyno.study.load import load_study
from tests.scripted import Script, perform
from tests.unit.run.conftest import died

FILES = {
    "setup.sql": "-- setup:\nCREATE TABLE t (n INT);",
    "fill.sql": '-- load: events = 100, warmup = "0s"\nINSERT INTO t VALUES (1);',
    "more.sql": '-- load: after = "fill", duration = "1s"\nINSERT INTO t VALUES (2);',
    "last.sql": '-- load: after = "more", duration = "1s"\n-- beside: file = "two.sql", rate = 5\nSELECT 1 FROM t;',
    "two.sql": "DELETE FROM t LIMIT 1;",
    "alone.sql": '-- load: duration = "1s"\nSELECT 2;',
}
STUDY = """\
version = 1
[study]
title = "steps"
[suite]
loads = "loads"
[stack]
device = "ideal"
size = "1GiB"
filesystem = "ext4"
[server.settings]
innodb_flush_log_at_trx_commit = [1, 2]
[design]
blocks = 2
seed = 5
interference = "note"
"""
ORDER = ["fill", "more", "last"]


@pytest.fixture
def steps(tmp_path):
    (tmp_path / "loads").mkdir()
    for name, text in FILES.items():
        (tmp_path / "loads" / name).write_text(text, encoding="utf-8")
    (tmp_path / "s.toml").write_text(STUDY, encoding="utf-8")
    return make_plan(load_study(tmp_path / "s.toml"))


@pytest.fixture
def id_of(steps):
    """Treatment ids by load and setting."""
    return {(t.levels["load"], t.levels["innodb_flush_log_at_trx_commit"]): t.id for t in steps.design.treatments}


def test_steps_stand_together_in_their_order_between_others_in_random_order(steps, id_of):
    rows = [[id_of[load, setting] for load in ORDER] for setting in "12"]
    assert [row for row in steps.design.steps() if len(row) > 1] == rows
    for block in range(1, 9):
        order = [slot.treatment for slot in steps.slots(block, 1)]
        assert len(order) == 8
        for row in rows:
            place = order.index(row[0])
            assert order[place : place + 3] == row
    assert len({tuple(slot.treatment for slot in steps.slots(block, 1)) for block in range(1, 9)}) > 3


def test_the_plan_reckons_one_stack_for_all_steps(steps):
    around = 4 * OVERHEAD_SECONDS + 4 * STEP_OVERHEAD_SECONDS
    loads = 2 * (GUESSED_LOAD_SECONDS + 3 * (1 + 0.5))  # an amount that takes no longer, and three with a warm-up
    assert steps.seconds(1) == pytest.approx(around + loads)


def test_a_large_amount_is_reckoned_to_take_longer(steps):
    study = steps.study.path
    study.write_text(STUDY.replace('loads = "loads"', 'loads = "loads"\ntimes = 1000'), encoding="utf-8")
    more = 2 * (100_000 / GUESSED_EVENTS_PER_SECOND - GUESSED_LOAD_SECONDS)
    assert make_plan(load_study(study)).seconds(1) == pytest.approx(steps.seconds(1) + more)


def test_a_stack_is_raised_once_for_all_steps(script, steps, into):
    script.raise_seconds, script.load_seconds = 5.0, 2.0
    assert perform(script, steps, into).how == "done"
    assert script.steps.count("raise") == script.steps.count("lower") == 2 * 4, "two rows and two alone, in each block"
    run = read_run(into)
    assert len(usable_blocks(run).trials) == 2
    for trial in run.trials:
        load = next(t.levels["load"] for t in steps.design.treatments if t.id == trial.treatment)
        assert trial.seconds.get("raise device", 0.0) == (5.0 if load in {"fill", "alone"} else 0.0)
        assert "lower scratch" in trial.seconds or load in {"fill", "more"}
        assert trial.seconds["measure"] == 2.0


def test_what_follows_a_failed_step_is_not_measured_and_says_so(script, steps, id_of, into):
    failing = id_of["more", "2"]
    script.fails = {(1, 1, failing): died(), (2, failing): died("no more")}
    assert perform(script, steps, into).how == "done"
    events = list(read_events(into))
    failed = [(event.attempt, event.treatment, event.cause) for event in events if isinstance(event, Failed)]
    not_measured = "not measured: it goes on with the tables of more / innodb_flush_log_at_trx_commit 2, which failed"
    both = [(failing, "the server died"), (id_of["last", "2"], not_measured)]
    again = [(failing, "no more"), (id_of["last", "2"], not_measured)]
    assert failed == [(1, *one) for one in both] + [(n, *one) for n in (1, 2) for one in again]
    assert {event.treatment for event in events if isinstance(event, Dropped)} == {failing, id_of["last", "2"]}
    run = read_run(into)
    assert usable_blocks(run).of(id_of["fill", "2"]), "what came before it counts"
    assert any("is left out, too: it goes on with the tables of more" in note for note in run.notes)
    ran = [slot.treatment for slot in script.ran]
    assert ran.count(id_of["last", "2"]) == 1, "in the one attempt in which the step before it was whole"


@pytest.mark.parametrize("load", ["fill", "more", "last"])
def test_a_run_that_is_cut_off_in_a_step_begins_again_with_the_first(load, script, steps, id_of, into):
    script.fails = {(1, 1, id_of[load, "1"]): HostError("the disk is gone")}
    with pytest.raises(HostError, match="the disk is gone"):
        perform(script, steps, into)
    events = list(read_events(into))
    own = [id_of[name, "1"] for name in ORDER]
    assert [event for event in events if isinstance(event, Finished) and event.treatment in own] == []
    (failure,) = (event for event in events if isinstance(event, Failed))
    assert failure.treatment == id_of[load, "1"]
    another = Script()
    assert perform(another, steps, into, resume=True).how == "done"
    begun = [event.treatment for event in read_events(into) if isinstance(event, Started) and event.attempt == 2]
    assert sorted(begun) == sorted(id_of[name, setting] for name in ORDER for setting in "12"), "all that shares tables"
    assert len(usable_blocks(read_run(into)).trials) == 2


def test_steps_that_were_stored_in_part_are_all_run_again(script, steps, id_of, into):
    """Killed between the events of two steps: the tables of the second's beginning are gone."""
    perform(script, steps, into)
    log = into / "journal.jsonl"
    lines = log.read_text().splitlines(keepends=True)
    row = [id_of[load, "1"] for load in ORDER]
    cut = next(n for n, line in enumerate(lines) if '"finished"' in line and f'"{row[1]}"' in line)
    log.write_text("".join(lines[:cut]))
    another = Script()
    assert perform(another, steps, into, resume=True).how == "done"
    again = [slot.treatment for slot in another.ran if slot.block == 1]
    assert again[:3] == row
    run = read_run(into)
    assert [len(usable_blocks(run).of(id_)) for id_ in row] == [2, 2, 2]


def test_only_the_load_that_met_interference_is_repeated(script, steps, id_of, into):
    repeating = replace(steps, design=replace(steps.design, interference="repeat"))
    script.disturbed = {(1, 1, id_of["alone", "1"]), (2, 1, id_of["last", "2"]), (2, 2, id_of["last", "2"])}
    assert perform(script, repeating, into).how == "done"
    alone, chain = ({id_of[load, setting] for load in loads for setting in "12"} for loads in (["alone"], ORDER))
    again = {(place, t.treatment) for t in read_run(into).trials if (place := (t.block, t.attempt))[1] > 1}
    whole = {((1, 2), id_) for id_ in alone} | {((2, 3), id_) for id_ in chain}
    assert whole <= again <= whole | {((2, 2), id_) for id_ in chain}, "an attempt ends with what met interference"
    used = usable_blocks(read_run(into))
    assert {id_: [t.attempt for t in used.of(id_)] for id_ in (id_of["alone", "2"], id_of["fill", "1"])} == {
        id_of["alone", "2"]: [2, 1],
        id_of["fill", "1"]: [1, 3],
    }
    assert list(used.void) == [(1, 1, alone), (2, 1, chain), (2, 2, chain)]
    assert "block 1 is repeated for alone" in script.said
    assert "block 2 is repeated for fill, more, last" in script.said


def test_after_as_many_loads_as_two_blocks_have_none_is_repeated_for_interference(script, steps, into):
    plan = replace(steps, design=replace(steps.design, interference="repeat", blocks=3))
    last = {t.id for t in plan.design.treatments if t.levels["load"] in {"last", "alone"}}
    script.disturbed = {(block, attempt, id_) for block in (1, 2, 3) for attempt in (1, 2, 3) for id_ in last}
    assert perform(script, plan, into).how == "done"
    assert "block 1 is kept for alone despite the interference" in script.said
    (told,) = (said for said in script.said if "no longer repeated" in said)
    assert told.startswith("4 loads met interference at every attempt, so loads are no longer repeated for that; ")
    assert {trial.attempt for trial in read_run(into).trials if trial.block == 3} == {1}
