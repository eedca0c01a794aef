"""Runs through time: few histories name a change that is none; a change is placed, kept, and said whose it may be."""

from dataclasses import replace

import numpy as np
import pytest

from dbdyno.analysis.blocks import RefusedError
from dbdyno.analysis.history import MIN_RUNS, history, shifts
from dbdyno.analysis.lateness import EmulatedCpu
from dbdyno.analysis.two_runs import OtherHost
from dbdyno.analysis.verdict.reasons import UnequalFailures, ZeroFigures
from dbdyno.model.word import Word
from dbdyno.report.history import document
from dbdyno.store.records import FailedTrial
from tests.made_up_runs import BEYOND
from tests.unit.analysis.test_analysis_lateness import disk


def test_a_step_is_found_where_it_is_after_a_few_runs():
    values = np.random.default_rng(3).normal(0, 0.01, 40)
    values[20:] -= 0.08
    (found,) = shifts(values)
    assert found.place == 20
    assert 22 <= found.found <= 26


def test_what_was_named_stays_named_as_runs_are_added():
    values = np.random.default_rng(4).normal(0, 0.01, 60)
    values[15:] += 0.1
    values[40:] -= 0.1
    whole = shifts(values)
    assert [shift.place for shift in whole] == [15, 40]
    for n in range(len(values)):
        assert shifts(values[:n]) == [shift for shift in whole if shift.found < n]


def test_one_bad_night_or_two_are_no_change():
    values = np.random.default_rng(5).normal(0, 0.01, 40)
    values[[20, 21, 33]] -= 0.3
    assert shifts(values) == []


def test_few_runs_and_runs_that_are_all_the_same():
    assert shifts(np.array([0.0, 0, 0, 0, 1])) == []
    assert shifts(np.zeros(30)) == []
    assert [shift.place for shift in shifts(np.array([0.0] * 8 + [1.0] * 3))] == [8]


def test_the_noise_inside_runs_is_the_least_that_a_run_may_move():
    values = np.array([0.0, 0.001, -0.001, 0.0005, 0.0, -0.0005, 0.001, -0.0005, 0.02, 0.021, 0.0205])
    assert shifts(values)
    assert shifts(values, least=0.02) == []


@pytest.mark.parametrize("noise", ["normal", "t"])
def test_few_histories_name_a_change_that_is_none(noise):
    """120 histories of 40 runs, asked after each; 14 or more have p < .004 where the true share is 5 %."""
    rng = np.random.default_rng(6)
    values = rng.normal(0, 1, (120, 40)) if noise == "normal" else rng.standard_t(2, (120, 40))
    assert sum(bool(shifts(each)) for each in values) < 14


@pytest.fixture
def nights(a_run):
    """t1 never changes; t2 is 10 % slower from the tenth run on, when the server is another version."""

    def build_nights(number, *, host_from=99, lower=0.9):
        rng, runs = np.random.default_rng(7), []
        for night in range(number):
            host = 0.8 if night >= host_from else 1.0
            level = lower if night >= 9 else 1.0
            draw = {
                id_: [1000 * host * of * float(np.exp(rng.normal(0, 0.01))) for _ in range(6)]
                for id_, of in (("t1", 1.0), ("t2", level))
            }
            run = a_run(draw)
            trials = [replace(trial, started_at=f"2026-03-{night + 1:02}T00:00:00Z") for trial in run.trials]
            versions = {"server mariadb": "11.4.3" if night >= 9 else "11.4.2"}
            runs.append((f"night{night + 1}", replace(run, trials=trials, versions=versions)))
        return runs

    return build_nights


def test_a_change_says_between_which_runs_and_what_differs_there(nights):
    found = history(nights(14)[::-1])
    assert found.names[0] == "night1", "in the order of time, however they are given"
    still, moved = found.courses
    assert still.changes == []
    (change,) = moved.changes
    assert (change.before, change.after) == (8, 9)
    assert change.word is Word.SLOWER
    assert change.effect.low < -0.1 < change.effect.high
    assert change.distinctions == ("version server mariadb",)
    assert [level.value for level in moved.levels] == pytest.approx([1000, 900], rel=0.02)
    assert moved.pairs == 12
    assert 0.001 < moved.run_sd < 0.02
    assert moved.inside_sd == pytest.approx(0.004, rel=0.5)


def test_a_change_of_the_host_is_out_of_a_ratio_and_has_no_known_cause(nights):
    (first, _) = history(nights(18, host_from=11)).courses
    (change,) = first.changes
    assert (change.after, change.distinctions) == (11, ())
    (against,) = history(nights(18, host_from=11), control="level t1").courses
    assert [one.after for one in against.changes] == [9]


def with_late_disk(named_runs, late_us):
    """The runs on an emulated disk that answers 1,000 requests a second, so much later than its drive would."""
    found = []
    for name, run in named_runs:
        trials = [
            replace(
                one,
                metrics={**one.metrics, "seconds_real": 10.0},
                device=disk(late_us=late_us, model_us=400.0, requests=10_000),
            )
            for one in run.trials
        ]
        found.append((name, replace(run, trials=trials)))
    return found


@pytest.mark.parametrize(("late_us", "word"), [(10, Word.SLOWER), (120, Word.UNDECIDED)])
def test_a_change_that_a_late_disk_may_account_for_has_no_word(nights, late_us, word):
    """A change of 10 %, beside a disk that is late for 1 or for 12 % of all time."""
    found = history(with_late_disk(nights(14), late_us))
    (change,) = found.courses[1].changes
    assert (change.word, change.measured) == (word, Word.SLOWER)
    assert change.effect.bounded == (word is Word.SLOWER)
    values = document(found).values()
    (shown,) = values["verdicts"]
    assert shown["verdict"] == word
    assert ("late per request" in shown["reason"]) == (word is Word.UNDECIDED)
    assert ("which is undecided" in values["headline"]) == (word is Word.UNDECIDED)
    assert ("10 % slower" in values["headline"]) == (word is Word.SLOWER)


def test_a_change_that_an_emulated_cpu_may_account_for_has_no_word(nights):
    guest = {"guest": {"accelerator": "tcg", "cpus": 2}}
    emulated = [
        (name, replace(run, trials=[replace(one, observed=guest) for one in run.trials])) for name, run in nights(14)
    ]
    (change,) = history(emulated).courses[1].changes
    assert (change.word, type(change.withheld_for)) == (Word.UNDECIDED, EmulatedCpu)


def test_a_control_does_not_add_what_its_disk_was_late_all_along(nights):
    """Late for 8 % of all time before and after: the change is 10 %, and twice 8 would account for it."""
    (change,) = history(with_late_disk(nights(18), 80), control="level t1").courses[0].changes
    assert change.word is Word.SLOWER


def test_too_few_runs_have_no_changes_and_one_is_refused(nights):
    assert history(nights(MIN_RUNS - 1)).alone == ["level t1", "level t2"]
    with pytest.raises(RefusedError):
        history(nights(1))
    with pytest.raises(RefusedError):
        history(nights(6), control="level t9")


def mended(named_runs, mend):
    """The runs, of which ``mend`` returns each anew by its night."""
    return [(name, mend(night, run)) for night, (name, run) in enumerate(named_runs, 1)]


def change_and_document(found, label="level t2"):
    """The change of a treatment, and all that is said of it in JSON."""
    values = document(found).values()
    (change,) = next(course.changes for course in found.courses if course.label == label)
    (shown,) = (one for one in values["verdicts"] if one["treatment"] == label)
    return change, shown, values


def with_failures(run, id_, number):
    """The run in which a treatment failed in the first attempts at as many blocks."""
    failures = [FailedTrial(f"b{block}a1", block, 1, id_, "the server died") for block in range(1, number + 1)]
    return replace(run, trials=[replace(one, attempt=2) for one in run.trials], failures=failures)


@pytest.mark.parametrize(
    ("from_night", "number", "is_said"), [(99, 0, True), (10, 1, True), (10, 5, False), (1, 5, True)]
)
def test_failures_since_a_change_may_have_made_it(nights, from_night, number, is_said):
    """A change of 3.5 % beside blocks that lie 2 % apart; where t2 always failed as often, that is the same on both."""
    runs = mended(
        nights(14, lower=0.965), lambda night, run: with_failures(run, "t2", number if night >= from_night else 0)
    )
    change, shown, values = change_and_document(history(runs))
    assert change.word is (Word.SLOWER if is_said else Word.UNDECIDED)
    assert isinstance(change.withheld_for, UnequalFailures) is not is_said
    assert change.effect.bounded is is_said
    assert ("unequal failures" in shown["reason"]) is not is_said
    assert ("% slower since night10" in values["headline"]) is is_said


@pytest.mark.parametrize(("share", "is_said"), [(0, True), (2, True), (3, False)])
def test_a_change_whose_runs_met_interference_has_no_word(nights, share, is_said):
    def busy(night, run):
        blocks = share if night >= 10 else 0
        return replace(
            run, trials=[replace(one, disturbance=BEYOND) if one.block <= blocks else one for one in run.trials]
        )

    change, shown, _ = change_and_document(history(mended(nights(14), busy)))
    assert change.word is (Word.SLOWER if is_said else Word.UNDECIDED)
    assert ("interference met 15 of 30 trials of the runs after it" in shown["reason"]) is not is_said


def test_a_change_beside_one_that_nothing_explains_is_of_the_host_as_well(nights):
    """The host is 20 % slower since the night in which the server became another version."""
    found = history(nights(16, host_from=9))
    change, shown, _ = change_and_document(found)
    assert (change.word, change.measured) == (Word.UNDECIDED, Word.SLOWER)
    assert "nothing is known to differ, changed then too" in shown["reason"]
    change, _, _ = change_and_document(history(nights(16, host_from=9), control="level t1"))
    assert change.word is Word.SLOWER


def test_a_run_that_dropped_a_treatment_is_left_out_of_its_course_and_named(nights):
    """Of 12 runs 10 have figures of t2, which are too few to say that none was named."""
    dropped = frozenset({"t2"})
    runs = mended(nights(12), lambda night, run: replace(run, dropped=dropped) if night in {4, 12} else run)
    found = history(runs)
    assert [len(course.points) for course in found.courses] == [12, 10]
    assert found.alone == ["level t2"]
    shown = str(document(found))
    assert "night4 is left out: level t2 failed again and again and was dropped." in shown
    assert "Too few runs to name a change of level t2." in shown


def test_a_zero_leaves_out_its_run_not_its_block_alone(nights):
    def zero(night, run):
        figures = {"queries_per_second": 0.0}
        return replace(
            run,
            trials=[
                replace(one, metrics=figures) if (night, one.treatment, one.block) == (3, "t1", 2) else one
                for one in run.trials
            ],
        )

    (course, _) = history(mended(nights(14), zero)).courses
    assert [type(obstacle) for _, obstacle in course.without_figures] == [ZeroFigures]


@pytest.mark.parametrize(("bucket", "word"), [(0.0, Word.SLOWER), (0.05, Word.SLOWER), (0.15, Word.UNDECIDED)])
def test_a_change_within_a_bucket_of_the_figures_has_no_word(nights, bucket, word):
    """A change of 10 %; half a bucket is allowed for at either end of either value."""
    steps = {"kind": "fio", "steps": {"queries_per_second": {"absolute": 0.0, "relative": bucket}}}
    runs = mended(nights(14), lambda _, run: replace(run, trials=[replace(one, load=steps) for one in run.trials]))
    change, shown, _ = change_and_document(history(runs))
    assert change.word is word
    assert change.effect.high - change.effect.low > 2 * 0.85 * bucket
    assert ("buckets that are 15 % wide" in shown["reason"]) is (word is Word.UNDECIDED)


def test_the_headline_says_where_nothing_known_explains_a_change(nights):
    values = document(history(nights(18, host_from=14))).values()
    assert "level t1 20 % slower since night15, where nothing known differs" in values["headline"]
    assert values["headline"].endswith("% slower since night10."), "the server's version explains t2's"
    assert [bool(one["distinctions"]) for one in values["verdicts"]] == [False, True]


def test_a_change_with_the_host_s_processors_has_no_word(nights):
    """The server became another version in the night in which the study moved to another host."""
    hosts = {"cores": 4, "cpu": "One CPU"}, {"cores": 64, "cpu": "Another CPU"}
    runs = mended(nights(14), lambda night, run: replace(run, host=hosts[night >= 10]))
    change, shown, values = change_and_document(history(runs))
    assert (change.word, change.measured, change.withheld_for) == (Word.UNDECIDED, Word.SLOWER, OtherHost())
    assert "the host has other processors than before" in shown["reason"]
    assert "% slower" not in values["headline"]
    change, _, _ = change_and_document(history(runs, control="level t1"))
    assert change.word is Word.SLOWER
