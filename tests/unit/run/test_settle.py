"""What comes between two trials: a rest, or an unmeasured trial of the baseline. Only the trials are played."""

import json

import pytest

from dbdyno.analysis.analyse import analyse
from dbdyno.cli.plan import plan_as_dict, plan_as_text
from dbdyno.errors import TrialError, UserError
from dbdyno.store.events import Started, read_events
from dbdyno.store.run_folder import read_run
from tests.scripted import perform
from tests.unit.report.rendered import as_json, as_text

BLOCKS = 6


def settling(value):
    return ("blocks = 6", f"blocks = {BLOCKS}\nsettle = {value}")


def test_a_rest_is_given_to_every_trial_recorded_and_told(script, plan, into):
    made = plan(settling('"30s"'))
    assert perform(script, made, into).how == "done"
    assert script.rests == [30.0] * 2 * BLOCKS
    run = read_run(into)
    assert run.design == made.design
    assert "Each trial rested 30 s between the raising of its stack and its load." in as_text(run, analyse(run))
    assert json.loads(as_json(run, analyse(run)))["settle"] == 30.0
    told = [said[1] for said in script.said if isinstance(said, tuple)]
    assert told == ["rests 30 s"] * 2 * BLOCKS


def test_before_each_trial_one_of_the_baseline_runs_and_counts_for_nothing(script, plan, into):
    made = plan(settling('"trial"'))
    script.load_seconds = 2.0
    assert perform(script, made, into).how == "done"
    assert script.rests == []
    assert [slot.treatment for slot in script.ran[::2]] == [made.design.baseline] * 2 * BLOCKS
    assert script.ran[1::2] == [slot for block in range(1, BLOCKS + 1) for slot in made.slots(block, 1)]
    run = read_run(into)
    assert [trial.id for trial in run.trials] == [slot.id for slot in script.ran[1::2]]
    spent = {tuple((name, taken) for name, taken in trial.seconds.items() if taken) for trial in run.trials}
    assert spent == {(("settle", 2.0), ("measure", 2.0))}
    assert not list(into.glob("trials/*/settle"))
    told = "Before each trial hdd-7200 ran once, unmeasured: so every trial follows the same load."
    assert told in " ".join(as_text(run, analyse(run)).split())


def relative(into):
    return {trial.metrics["queries_per_second"] / (100.0 + trial.block) for trial in read_run(into).trials}


def test_what_a_trial_leaves_is_then_in_no_ratio(script, plan, into, tmp_path):
    """A trial of the second treatment makes the next 20 % slower; both are alike otherwise."""

    def rate(block, _treatment):
        before = script.ran[-2].treatment if len(script.ran) > 1 else "t1"
        return (100.0 + block) * (0.8 if before == "t2" else 1.0)

    script.rate = rate
    perform(script, plan(), tmp_path / "without")
    assert {round(rate, 9) for rate in relative(tmp_path / "without")} == {0.8, 1.0}
    script.ran = []
    perform(script, plan(settling('"trial"')), into)
    assert relative(into) == {1.0}
    (verdict,) = analyse(read_run(into)).verdicts
    assert (verdict.effect.value, verdict.carry_over) == (0.0, None)


def test_one_that_fails_is_the_baseline_s_failure_and_the_block_is_repeated(script, plan, into):
    made = plan(settling('"trial"'))
    last, baseline = made.slots(2, 1)[-1], made.design.baseline
    failed = []

    def dies():
        if not failed and script.ran[-1].position == last.position != script.ran[-2].position:
            failed.append(script.ran[-1])
            raise TrialError("the server died")

    script.fails[2, 1, baseline] = dies
    outcome = perform(script, made, into)
    assert (outcome.how, outcome.failures, len(failed)) == ("done", 1, 1)
    (failure,) = read_run(into).failures
    assert failure.treatment == baseline
    assert failure.cause == "in the unmeasured trial before a trial: the server died"
    usable = [trial for trial in read_run(into).trials if (trial.block, trial.attempt) == (2, 2)]
    assert len(usable) == 2


def test_killed_between_the_two_the_trial_has_both_again(script, plan, into):
    made = plan(settling('"trial"'))
    perform(script, made, into)
    lines = (into / "journal.jsonl").read_bytes().splitlines(keepends=True)
    started = [number for number, event in enumerate(read_events(into)) if isinstance(event, Started)][3]
    (into / "journal.jsonl").write_bytes(b"".join(lines[: started + 1]))
    script.ran = []
    assert perform(script, made, into, resume=True).how == "done"
    assert len(script.ran) == 2 * (2 * BLOCKS - 3)
    assert len(read_run(into).trials) == 2 * BLOCKS


def test_a_run_does_not_go_on_with_another_rest(script, plan, into):
    perform(script, plan(settling('"30s"')), into)
    with pytest.raises(UserError, match="another study"):
        perform(script, plan(settling('"60s"')), into, resume=True)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ('"0s"', 'is "0s", which is not a rest; leave it out, or give a time such as "30s", or "trial"'),
        ('"30"', 'is "30", which is not a time; write a number with its unit in quotes, such as "10s"; or "trial"'),
        ("30", 'is 30, which is not a time; write a number with its unit in quotes, such as "10s"; or "trial"'),
        ('"5m"', "which has the unknown unit 'm'; known are us, ms, s, min, h; minutes are min; or \"trial\""),
    ],
)
def test_what_is_no_rest_is_refused_with_its_line(load, value, words):
    with pytest.raises(UserError, match=r"study.toml:\d+: design.settle: ") as error:
        load(settling(value))
    assert words in str(error.value)


def test_the_plan_says_what_it_takes(plan):
    bounded = ("queries = 1000", 'duration = "10s"\nwarmup = "0s"')
    alone, rest, trial = plan(bounded), plan(bounded, settling('"30s"')), plan(bounded, settling('"trial"'))
    assert rest.seconds(6) == pytest.approx(alone.seconds(6) + 12 * 30)
    assert trial.seconds(6) == pytest.approx(2 * alone.seconds(6))
    assert "; 30 s of each trial are rest" in plan_as_text(rest, [])
    assert "; an unmeasured trial of the baseline comes before each trial" in plan_as_text(trial, [])
    assert [plan_as_dict(one, [])["settle"] for one in (alone, rest, trial)] == [None, 30.0, "trial"]
