"""When a run stops: decided, precise, out of blocks, out of time; and what is still to be done of it afterwards.

The trials are played (see ``tests/scripted.py``): the result of each is known, and so is how long it takes.
"""

import json
import re
import shutil
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.analysis.analyse import analyse
from dbdyno.analysis.looks import Looks
from dbdyno.analysis.planned_looks import planned_looks, smallest_p
from dbdyno.analysis.verdict.evidence import evidence
from dbdyno.errors import TrialError, UserError
from dbdyno.model.design import MIN_BLOCKS
from dbdyno.plan.stop_rule import StopOptions, StopRule
from dbdyno.report.notes import run_notes
from dbdyno.report.sections.stopped import stopped_lines
from dbdyno.run.stop import BlockPace, Outlook, Stop
from dbdyno.store.events import Ended, read_events
from dbdyno.store.run_folder import read_run
from tests.run_folders import written
from tests.sampled import some
from tests.scripted import perform
from tests.support import called
from tests.unit.report.test_report_one_answer import one_factor, with_late_answers
from tests.unit.run.conftest import TWO_BY_TWO

DECIDED = StopRule("decided", 40)


def noisy(effect, spread, seed=1):
    """Return rates: those of t2 and on are ``effect`` times t1's, with a log-normal ``spread`` from trial to trial."""

    def rate(block, treatment):
        rng = np.random.default_rng([seed, block, int(treatment[1:])])
        return 100 * (1 if treatment == "t1" else effect) * float(np.exp(rng.normal(0, spread)))

    return rate


def ended(into):
    return [event for event in read_events(into) if isinstance(event, Ended)][-1]


def told(into):
    run = read_run(into)
    return stopped_lines(run, analyse(run))


def blocks_run(into):
    return max(trial.block for trial in read_run(into).trials)


@pytest.fixture
def clock(script):
    """A clock that stands still but for the trials, 10 s each."""
    script.raise_seconds, script.load_seconds = 3.0, 7.0


def test_a_clear_difference_ends_at_the_first_look_that_can_decide(script, plan, into):
    script.rate = noisy(1.5, 0.01)
    assert perform(script, plan(stop_rule=DECIDED), into).how == "done"
    assert (blocks_run(into), ended(into).why) == (6, "decided")
    run = read_run(into)
    assert (run.stopped, run.ended, run.design.blocks) == ("decided", "done", 40)
    [verdict] = analyse(run).verdicts
    assert (verdict.verdict, verdict.blocks) == ("faster", 6)
    assert told(into) == [
        "Stopped after 6 of at most 40 blocks: every comparison was decided.",
        "Looked at after 6 blocks: p and intervals allow for all planned looks, they hold at all together.",
    ]


def test_what_stays_undecided_takes_all_blocks(script, plan, into):
    script.rate = noisy(1.03, 0.1)
    perform(script, plan(stop_rule=StopRule("decided", 15)), into)
    assert (blocks_run(into), ended(into).why) == (15, "blocks")
    assert (
        told(into)[0] == "Stopped after 15 of at most 15 blocks: more were not allowed; 1 of 1 comparison is undecided."
    )


def test_decided_at_the_last_look_is_decided(script, plan, into):
    script.rate = noisy(1.5, 0.01)
    perform(script, plan(stop_rule=StopRule("decided", 6)), into)
    assert (blocks_run(into), ended(into).why) == (6, "decided")


def test_an_interval_as_narrow_as_wanted_ends_a_run(script, plan, into):
    script.rate = noisy(1.0, 0.02)
    perform(script, plan(stop_rule=StopRule("precise", 40, half_width=0.02)), into)
    run = read_run(into)
    assert run.stopped == "precise"
    assert blocks_run(into) in planned_looks(40)[1:-1]
    effect = analyse(run).verdicts[0].effect
    assert (np.log1p(effect.high) - np.log1p(effect.low)) / 2 <= np.log1p(0.02)
    assert told(into)[0].endswith(": every interval reaches at most 2 % to either side.")


def test_a_fixed_number_of_blocks_is_never_looked_at(script, plan, into, monkeypatch):
    monkeypatch.setattr("dbdyno.analysis.analyse.planned_verdicts", lambda *_: pytest.fail("looked at"))
    script.rate = noisy(1.5, 0.01)
    perform(script, plan(blocks=20), into)
    assert (blocks_run(into), ended(into).why) == (20, "blocks")
    assert told(into) == ["Stopped after all 20 planned blocks."]


def test_nothing_to_compare_ends_after_the_first_look(script, plan, into):
    one = ('["hdd-7200", "ssd-sata"]', '"ideal"'), ('baseline = { device = "hdd-7200" }\n', "")
    perform(script, plan(*one, stop_rule=DECIDED), into)
    assert told(into)[0] == "Stopped after 6 of at most 40 blocks: there is nothing to compare."


def test_void_blocks_do_not_count_towards_a_look(script, plan, into):
    script.rate = noisy(1.5, 0.01)
    script.fails = {(3, attempt, f"t{attempt}"): TrialError("died") for attempt in (1, 2)}
    script.fails[3, 3, "t3"] = TrialError("died")
    perform(script, plan(TWO_BY_TWO, stop_rule=DECIDED), into)
    assert blocks_run(into) == 7  # block 3 was given up
    assert read_run(into).stopped == "decided"
    assert "6 of 7 blocks can be used." in run_notes(read_run(into), analyse(read_run(into)))


KILLED = {"decided early": noisy(1.5, 0.01), "decided later": noisy(1.04, 0.05)}


@pytest.mark.parametrize("rate", KILLED.values(), ids=KILLED.keys())
def test_killed_anywhere_a_run_comes_to_the_same_decisions(script, plan, tmp_path, rate):
    into = tmp_path / "run"
    script.rate = rate
    script.fails = {(4, 1, "t2"): TrialError("died"), (7, 1, "t1"): TrialError("died")}
    made = plan(stop_rule=DECIDED)
    perform(script, made, into)
    report = [(v.verdict, v.effect, v.p_adjusted) for v in analyse(read_run(into)).verdicts]
    lines = (into / "journal.jsonl").read_bytes().splitlines(keepends=True)
    for kept in some(f"{rate(1, 't1')}", range(1, len(lines)), 1 / 9):
        copy = tmp_path / f"cut{kept}"
        shutil.copytree(into, copy)
        (copy / "journal.jsonl").write_bytes(b"".join(lines[:kept]))
        perform(script, made, copy, resume=True)
        assert (blocks_run(copy), ended(copy)) == (blocks_run(into), ended(into)), kept
        assert [(v.verdict, v.effect, v.p_adjusted) for v in analyse(read_run(copy)).verdicts] == report, kept
        shutil.rmtree(copy)


def looks_told(script):
    """Return the lines of each look."""
    lines = [said for said in script.said if isinstance(said, str)]
    looks = [place for place, said in enumerate(lines) if said.startswith("after ")]
    return [lines[place : place + 3] for place in looks]


@pytest.mark.usefixtures("clock")
def test_what_is_still_to_come_is_said_once_a_look(script, plan, into):
    script.rate = noisy(1.035, 0.025, seed=2)
    perform(script, plan(stop_rule=DECIDED), into)
    assert blocks_run(into) == 18
    firsts = [first for first, _, _ in looks_told(script)]
    assert firsts == [f"after {n} blocks 0 of 1 comparison decided" for n in planned_looks(40) if n < 18]
    assert all(re.fullmatch(r"about \d+ more blocks?, \d+ .*", last) for *_, last in looks_told(script))
    number = r"[+-]?\d+(\.\d)?"
    effect = rf"  ssd-sata vs hdd-7200: {number} % \((interval unknown|{number} to {number} %)\)"
    assert all(re.fullmatch(effect, line) for _, line, _ in looks_told(script)), looks_told(script)
    outlooks = {said[0][:5]: said[3] for said in script.said if isinstance(said, tuple)}
    assert outlooks["b0006"] == Outlook(40, "at most ")
    assert outlooks["b0007"] == Outlook(30, "about ")
    assert outlooks["b0018"] == Outlook(20, "about ")


@pytest.mark.usefixtures("clock")
def test_what_may_take_longer_than_allowed_takes_at_most_what_is_allowed(script, plan, into):
    script.rate = noisy(1.03, 0.03, seed=3)
    perform(script, plan(stop_rule=DECIDED), into)
    assert looks_told(script)[0][2] == "at most 34 more blocks, 11 min"


def test_while_others_disturb_the_blocks_the_advice_is_about_them(script, plan, into):
    script.rate = noisy(1.03, 0.03, seed=3)
    script.disturbed = {(block, 1, "t1") for block in range(1, 41)}
    perform(script, plan(("blocks = 6", 'interference = "note"'), stop_rule=DECIDED), into)
    told = (
        "the number of blocks still needed is unknown: most blocks met interference; stop other programs on this host"
    )
    assert looks_told(script)[0][2] == told


@pytest.mark.parametrize("late_us", [1, 300])
def test_while_the_disk_is_late_no_number_of_blocks_is_named(tmp_path, late_us):
    """An estimate of the look before does not stay either."""
    run = one_factor("device", {"nvme-1": 10_000, "nvme-2": 10_200}, blocks=8, noise=0.03)
    run = with_late_answers(replace(run, design=replace(run.design, until="decided", blocks=40)), late_us)
    written(tmp_path / "run", run)
    said = []
    stop = Stop(tmp_path / "run", run.design, BlockPace(lengths=[20.0]), said.append)
    stop.outlook = Outlook(9, "about ")
    assert stop.look(8) == ""
    is_late = said[-1] == "the number of blocks still needed is unknown: the emulated disk was late"
    assert is_late == (late_us > 1)
    assert (stop.outlook == Outlook(40, "at most ")) == is_late
    assert (re.match(r"(about|at most) \d+ more block", said[-1]) is None) == is_late


@pytest.mark.usefixtures("clock")
def test_no_block_is_begun_that_would_end_after_the_budget(script, plan, into):
    script.rate = noisy(1.5, 0.01)
    perform(script, plan(stop_rule=StopRule("blocks", 30, None, 170.0)), into)
    assert (blocks_run(into), ended(into).why) == (8, "budget")  # 20 s each
    assert script.now_seconds == 160
    assert told(into) == ["Stopped after 8 of 30 planned blocks: the next would not have ended within 170 s."]


@pytest.mark.usefixtures("clock")
def test_the_first_block_always_runs(script, plan, into):
    perform(script, plan(stop_rule=StopRule("blocks", 30, None, 1.0)), into)
    assert (blocks_run(into), ended(into).why) == (1, "budget")


@pytest.mark.usefixtures("clock")
def test_the_budget_of_a_resumed_run_goes_on_from_what_was_spent(script, plan, into):
    made = plan(stop_rule=StopRule("blocks", 30, None, 170.0))
    perform(script, made, into)
    journal = into / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[: 1 + 5 * 4]))  # "planned", five blocks
    script.now_seconds += 10_000  # nobody was measuring
    script.ran = []
    perform(script, made, into, resume=True)
    assert [slot.block for slot in script.ran] == [6, 6, 7, 7, 8, 8]


@pytest.mark.usefixtures("clock")
def test_a_budget_ends_a_run_before_any_look(script, plan, into):
    script.rate = noisy(1.5, 0.01)
    perform(script, plan(stop_rule=StopRule("decided", 40, None, 110.0)), into)
    run = read_run(into)
    assert (blocks_run(into), run.stopped) == (5, "budget")
    [verdict] = analyse(run).verdicts
    assert verdict.verdict == "undecided"


EXTENDED = {
    "a fixed number": StopRule("blocks", 6),
    "decided": DECIDED,
    "precise": StopRule("precise", 40, 0.05),
    "out of time": StopRule("blocks", 30, None, 130.0),
}


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("stop_rule", EXTENDED.values(), ids=EXTENDED.keys())
def test_a_finished_run_is_extended_under_the_sequence_alone(script, plan, into, stop_rule):
    script.rate = noisy(1.03, 0.005)
    perform(script, plan(stop_rule=stop_rule), into)
    before = read_run(into)
    assert before.stopped
    script.rate = noisy(1.03, 0.05, seed=2)  # what was decided is in doubt again
    perform(script, plan(stop_rule=StopRule("open", 30)), into, resume=True)
    run = read_run(into)
    assert (run.design.until, run.design.blocks, run.extended_from) == ("open", 30, blocks_run_of(before))
    assert [trial.id for trial in run.trials][: len(before.trials)] == [trial.id for trial in before.trials]
    assert told(into)[1] == (
        f"It was extended from {blocks_run_of(before)} blocks after its results could be seen, so its verdicts are now "
        "drawn by the always-valid sequence alone."
    )
    assert told(into)[2].startswith("Looked at after every block")
    assert run.design.budget_seconds is None


def blocks_run_of(run):
    return max(trial.block for trial in run.trials)


def test_open_from_the_start_is_no_extension_and_stops_after_any_block(script, plan, into):
    script.rate = noisy(1.1, 0.02)
    perform(script, plan(stop_rule=StopRule("open", 1000)), into)
    run = read_run(into)
    assert (run.stopped, run.extended_from) == ("decided", None)
    assert 6 <= blocks_run(into) < 15
    shorter = {**run.__dict__, "trials": [trial for trial in run.trials if trial.block < blocks_run(into)]}
    assert analyse(type(run)(**shorter)).verdicts[0].verdict == "undecided"


def test_an_extended_run_that_was_killed_goes_on_as_extended(script, plan, into):
    script.rate = noisy(1.03, 0.05)
    perform(script, plan(blocks=6), into)
    perform(script, plan(stop_rule=StopRule("open", 9)), into, resume=True)
    journal = into / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    place = next(n for n, line in enumerate(lines) if json.loads(line)["event"] == "resumed")
    journal.write_bytes(b"".join(lines[: place + 4]))
    held = read_run(into).design
    perform(script, plan(stop_rule=StopRule.of_run(held)), into, resume=True)
    run = read_run(into)
    assert (run.extended_from, run.design.until, blocks_run(into)) == (6, "open", 9)


@pytest.fixture
def command(monkeypatch, capsys):
    """Run the command line in this process; returns its exit code, standard output and standard error."""

    return partial(called, monkeypatch, capsys)


def test_a_finished_run_is_not_gone_on_with_and_says_why(script, plan, write_study, into, command):
    script.rate = noisy(1.5, 0.01)
    study = write_study(("blocks = 6", ""))
    perform(script, plan(("blocks = 6", "")), into)
    journal = (into / "journal.jsonl").read_bytes()
    code, out, err = command("run", study, "--into", into, "--resume")
    assert (code, (into / "journal.jsonl").read_bytes()) == (0, journal)
    assert out == command("report", into)[1]
    assert err.partition("More: ")[0] == (
        f"nothing to do: {into} is finished. Stopped after 6 of at most 40 blocks: every comparison was decided.\n"
        "to go on beyond its plan: --resume --until-decided\n"
    )
    code, out, err = command("run", study, "--into", into, "--resume", "--max-blocks", "60")
    assert (code, out) == (2, "")
    assert "was begun with another plan of when to stop" in err
    other = write_study(("blocks = 6", ""), ("clients = 10", "clients = 11"))
    code, out, err = command("run", other, "--into", into, "--resume")
    assert (code, out) == (2, "")
    assert "holds a run of another study" in err
    assert (into / "journal.jsonl").read_bytes() == journal


def test_the_command_line_overrules_the_study_in_a_plan(write_study, command):
    study = write_study()
    flags = {
        (): "blocks (6), order",
        ("--blocks", "8"): "blocks (8), order",
        (
            "--max-blocks",
            "20",
            "--budget",
            "2min",
        ): "6 to 20 blocks: looked at after 6, 7, 8, 10, 12, ..., 20; stops when every "
        "comparison is decided; none is begun that would end after 2 min 00 s\n",
        (
            "--until-decided",
        ): "blocks: looked at after block 6 and each later one; stops when every comparison is decided; ",
    }
    for given_, text in flags.items():
        assert text in command("plan", study, *given_)[1], given_
    code, _, err = command("plan", study, "--budget", "2")
    assert (code, "--budget '2' is not a time" in err) == (2, True)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (StopOptions(), DECIDED),
        (StopOptions(blocks=8), StopRule("blocks", 8)),
        (StopOptions(max_blocks=20), StopRule("decided", 20)),
        (StopOptions(until_decided=True), StopRule("open", 1000)),
        (StopOptions(until_decided=True, max_blocks=50), StopRule("open", 50)),
        (StopOptions(budget_seconds=60.0), StopRule("decided", 40, None, 60.0)),
    ],
)
def test_what_the_command_line_overrules(asked, expected):
    assert asked.override(DECIDED) == expected


def test_most_blocks_let_the_data_decide_a_study_that_fixed_them():
    assert StopOptions(max_blocks=20).override(StopRule("blocks", 8, None, 5.0)) == StopRule("decided", 20, None, 5.0)
    precise = StopRule("precise", 40, 0.02)
    assert StopOptions(max_blocks=20).override(precise) == StopRule("precise", 20, 0.02)


@pytest.mark.parametrize("asked", [StopOptions(blocks=8, max_blocks=9), StopOptions(blocks=8, until_decided=True)])
def test_what_contradicts_itself_is_refused(asked):
    with pytest.raises(UserError, match="--blocks fixes the number of blocks"):
        asked.check()


@pytest.mark.parametrize("asked", [StopOptions(blocks=12), StopOptions(max_blocks=60), StopOptions(budget_seconds=9.0)])
def test_under_way_only_the_sequence_goes_beyond_the_plan(asked, tmp_path):
    with pytest.raises(UserError, match="go on without --blocks, --max-blocks and --budget, or with --until-decided"):
        asked.for_resume(DECIDED, tmp_path)
    assert StopOptions(blocks=8).for_resume(StopRule("blocks", 8), tmp_path) == StopRule("blocks", 8)
    assert StopOptions(until_decided=True, budget_seconds=9.0).for_resume(DECIDED, tmp_path) == StopRule(
        "open", 1000, None, 9.0
    )


def test_the_block_that_prepares_the_data_counts_only_while_it_is_alone():
    now = [0.0]
    pace = BlockPace(clock=lambda: now[0])
    assert pace.block_seconds is None
    for length, mean in ((100, 100), (10, 10), (20, 15)):
        pace.begin()
        now[0] += length
        pace.end()
        assert pace.block_seconds == mean
    assert pace.seconds == 130


@pytest.mark.parametrize("until", ["blocks", "decided"])
@given(blocks=st.integers(2, 24), comparisons=st.integers(1, 400))
def test_a_very_large_effect_is_decided_by_six_blocks_and_by_no_fewer(until, blocks, comparisons):
    """Of several looks, those before the last have found nothing."""
    looks = Looks.single(blocks) if until == "blocks" else Looks(planned_looks(blocks), blocks)
    d = 5 + 1e-9 * np.random.default_rng(blocks).normal(0, 1, blocks)
    is_decided = float(evidence(d, looks, 0.03).p) * comparisons <= 0.05
    assert is_decided == (blocks >= MIN_BLOCKS) == (smallest_p(blocks) * comparisons <= 0.05)
