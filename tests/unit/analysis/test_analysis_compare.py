"""Two runs against each other: which treatments are matched, the words, the control, and what can't be compared."""

import math
from dataclasses import replace

import numpy as np
import pytest

from dbdyno.analysis.refused import RefusedError
from dbdyno.analysis.two_runs.compare import compare
from dbdyno.report.reasons import reason_text as why
from dbdyno.report.refusals import message


@pytest.fixture
def two(a_run):
    """Return two runs of 10 blocks: ``factors`` maps treatment -> what its rate is after, before being 1."""

    def make(factors, *, noise=0.01, n=10, seed=1, metric="queries_per_second", host=1.0):  # noqa: PLR0913
        rng = np.random.default_rng(seed)
        runs = []
        for after in (False, True):
            scale = {id_: host * factor if after else 1.0 for id_, factor in factors.items()}
            wobble = {id_: np.exp(rng.normal(0, noise, n)) for id_ in factors}
            runs.append(a_run({id_: (100 * scale[id_] * wobble[id_]).tolist() for id_ in factors}, metric=metric))
        return runs

    return make


def words(found):
    return [change.verdict for change in found.changes]


def test_each_word(two):
    found = compare(*two({"t1": 1.0, "t2": 1.2, "t3": 0.8}))
    assert words(found) == ["equivalent", "faster", "slower"]
    faster = found.changes[1]
    assert faster.effect.value == pytest.approx(0.2, abs=0.02)
    assert faster.effect.low < 0.2 < faster.effect.high
    assert (faster.trials, faster.effect.n) == ((10, 10), 20)
    assert faster.means == pytest.approx((100, 120), rel=0.02)
    assert why(faster.reason) == (
        "faster in 100 of the 100 pairs of a trial before and one after (p < 0.001 over 3 treatments), "
        "and the interval excludes 0"
    )
    assert [change.before for change in found.changes] == [f"level t{i}" for i in (1, 2, 3)]
    assert words(compare(*two({"t1": 1.0}, noise=0.05))) == ["undecided"]


def test_less_is_faster_for_latency(two):
    assert words(compare(*two({"t1": 1.2, "t2": 0.8}, metric="latency_ms_p99"))) == ["slower", "faster"]


def test_holm_makes_the_same_data_stricter(two):
    before, after = two({"t1": 1.012, **{f"t{i}": 1.0 for i in range(2, 9)}}, seed=5)
    only = [replace(run, design=replace(run.design, treatments=run.design.treatments[:1])) for run in (before, after)]
    alone, among = compare(*only).changes[0], compare(before, after).changes[0]
    assert alone.p == among.p
    assert alone.p_adjusted == alone.p < among.p_adjusted


def test_too_few_trials_say_so(two):
    (change, *_) = compare(*two({"t1": 2.0, "t2": 2.0}, n=3)).changes
    assert change.verdict == "undecided"
    assert why(change.reason) == "3 and 3 trials can at best reach p = 0.200 over 2 treatments"
    assert not change.effect.bounded


def test_one_trial_is_not_comparable(two):
    (change, _) = compare(*two({"t1": 2.0, "t2": 2.0}, n=1)).changes
    assert (change.verdict, why(change.reason)) == (
        "not comparable",
        "1 usable trial before, at least 2 are needed",
    )
    assert math.isnan(change.p)


def test_a_change_of_the_host_is_out_of_what_is_left_against_a_control(two):
    """The host is 10 % faster after; the second treatment did not change, the third lost 10 % of its own."""
    found = compare(*two({"t1": 1.0, "t2": 1.0, "t3": 0.9}, host=1.1), control="level t1")
    assert found.control.verdict == "faster"
    assert words(found) == ["faster", "equivalent"]
    assert [change.verdict for change in found.against_control] == ["equivalent", "slower"]
    assert found.against_control[1].effect.low < -0.1 < found.against_control[1].effect.high
    assert all(math.isnan(mean) for mean in found.against_control[0].means)


def renamed(run, **labels):
    treatments = [replace(one, levels={"level": labels.get(one.id, one.label)}) for one in run.design.treatments]
    return replace(run, design=replace(run.design, treatments=treatments))


def test_treatments_go_by_label_or_by_the_names_given(two):
    before, after = two({"t1": 1.0, "t2": 1.5})
    turned = renamed(after, t1="level t2", t2="ideal(latency_us=5)")
    found = compare(before, turned)
    assert [(change.before, change.after) for change in found.changes] == [("level t2", "level t2")]
    assert found.changes[0].effect.value == pytest.approx(0, abs=0.02)
    assert (found.only_before, found.only_after) == (["level t1"], ["ideal(latency_us=5)"])
    named = compare(before, turned, names=["level t1=level t2", "level t2=ideal(latency_us=5)"])
    assert [change.effect.value for change in named.changes] == pytest.approx([0, 0.5], abs=0.03)


def test_the_only_treatment_of_each_needs_no_name(two):
    before, after = two({"t1": 1.5})
    assert words(compare(before, renamed(after, t1="mariadb 11"))) == ["faster"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"names": ["level t1=nobody"]}, 'is not "LABEL BEFORE=LABEL AFTER"; before there are "level t1", "level t2"'),
        ({"names": ["level t1"]}, 'is not "LABEL BEFORE=LABEL AFTER"'),
        ({"names": ["level t1=level t1", "level t2=level t1"]}, "--map names a treatment twice"),
        ({"names": ["level t1=level t1", "level t1=level t2"]}, "--map names a treatment twice"),
        ({"control": "nobody"}, 'is not in both runs; what is: "level t1", "level t2"'),
    ],
)
def test_unknown_names_are_refused(two, options, said):
    with pytest.raises(RefusedError) as refused:
        compare(*two({"t1": 1.0, "t2": 1.0}), **options)
    assert said in message(refused.value)


def test_a_control_alone_leaves_nothing_to_compare(two):
    with pytest.raises(RefusedError) as refused:
        compare(*two({"t1": 1.0}), control="level t1")
    assert "nothing left to compare" in message(refused.value)


def test_runs_that_can_not_be_compared_are_refused(two):
    before, after = two({"t1": 1.0, "t2": 1.0})
    with pytest.raises(RefusedError) as refused:
        compare(before, replace(after, design=replace(after.design, metric="latency_ms_p99")))
    assert "different metrics, queries_per_second and latency_ms_p99" in message(refused.value)
    oltp, slap = ({"workload": {"kind": kind}} for kind in ("oltp", "slap"))
    with pytest.raises(RefusedError) as refused:
        compare(replace(before, study=oltp), replace(after, study=slap))
    assert "different loads, kind oltp and kind slap" in message(refused.value)
    with pytest.raises(RefusedError) as refused:
        compare(before, renamed(after, t1="x", t2="y"))
    assert "no treatment in common" in message(refused.value)
    wide = replace(after, design=replace(after.design, margin=0.1))
    with pytest.raises(RefusedError) as refused:
        compare(before, wide)
    assert "different margins, 3 % and 10 %" in message(refused.value)
    assert compare(before, wide, margin=0.05).margin == 0.05


def test_a_treatment_that_was_dropped_is_not_comparable(two, a_run, a_trial):
    before, _ = two({"t1": 1.0, "t2": 1.0})
    crashed = a_run(
        {"t1": [1.0] * 10, "t2": [1.0] * 10},
        trials=[a_trial("t1", block, 100 + block / 100) for block in range(1, 11)],
        failures=[("t2", 1, 1), ("t2", 1, 2)],
    )
    found = compare(before, crashed)
    assert words(found) == ["equivalent", "not comparable"]
    assert why(found.changes[1].reason) == "level t2 failed again and again after and was dropped"
    against = compare(before, crashed, control="level t2")
    assert (against.control.verdict, against.against_control[0].verdict) == ("not comparable", "not comparable")


def test_a_zero_is_not_left_out(a_run):
    before, after = a_run({"t1": [100.0 + i for i in range(8)]}), a_run({"t1": [0.0] + [150.0 + i for i in range(7)]})
    (change,) = compare(before, after).changes
    assert change.verdict == "not comparable"
    assert why(change.reason) == "queries_per_second of level t1 is 0 in 1 block after; there is no ratio to 0"
