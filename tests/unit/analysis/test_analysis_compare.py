"""Two runs against each other: which treatments are matched, the words, the control, and what can't be compared."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dbdyno.analysis.blocks import RefusedError
from dbdyno.analysis.two_runs import HostShift, NothingChanged, OtherHost, compare, distinctions
from dbdyno.analysis.verdict.reasons import Reason, UnequalFailures
from dbdyno.model.design import Factor, Treatment
from dbdyno.model.word import Word
from dbdyno.report.comparison import document
from dbdyno.report.reasons import reason_text as why
from dbdyno.report.several import message
from dbdyno.store.records import FailedTrial


@pytest.fixture
def two(a_run):
    """Return two runs of 10 blocks: ``factors`` maps treatment -> what its rate is after, before being 1.

    A server was upgraded between them, so that all treatments differ, but those that are ``alike``.
    """

    def make(factors, *, noise=0.01, n=10, seed=1, metric="queries_per_second", host=1.0, alike=()):  # noqa: PLR0913
        rng = np.random.default_rng(seed)
        runs = []
        for after in (False, True):
            scale = {id_: host * factor if after else 1.0 for id_, factor in factors.items()}
            wobble = {id_: np.exp(rng.normal(0, noise, n)) for id_ in factors}
            runs.append(a_run({id_: (100 * scale[id_] * wobble[id_]).tolist() for id_ in factors}, metric=metric))
        return [upgraded(run, number, alike) for number, run in enumerate(runs)]

    return make


def upgraded(run, number, alike=()):
    """Return a run with the version that its server had, 0 before and 1 after, of treatments that have it."""
    if set(alike) >= {one.id for one in run.design.treatments}:
        return run
    if not alike:
        return replace(run, versions={"mariadb": f"11.{number}"})
    trials = [
        replace(one, observed={"server": {"version": f"11.{number if one.treatment not in alike else 0}"}})
        for one in run.trials
    ]
    return replace(run, trials=trials)


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
    assert words(found) == ["undecided", "undecided"]  # what they did is as much the host's
    assert {change.withheld_for for change in found.changes} == {HostShift()}
    assert [change.verdict for change in found.against_control] == ["equivalent", "slower"]
    assert found.against_control[1].effect.low < -0.1 < found.against_control[1].effect.high
    assert all(math.isnan(mean) for mean in found.against_control[0].means)


def test_where_nothing_distinguishes_the_runs_what_moved_is_the_host(two):
    """The case that was met: +19 % after, though no setting and no version had changed."""
    before, after = two({"t1": 1.19, "t2": 1.19}, alike=("t1", "t2"))
    found = compare(before, after)
    assert found.nothing_changed
    assert words(found) == ["undecided", "undecided"]
    assert {change.withheld_for for change in found.changes} == {NothingChanged()}
    assert found.control.verdict == "faster"
    assert found.control.effect.low < 0.19 < found.control.effect.high
    assert (found.controls, found.against_control) == (("level t1", "level t2"), [])
    values = document(before, after, found).values()
    assert values["headline"].startswith("No known change between the runs; the host is")
    assert values["headline"].endswith("no verdict on a change.")
    assert [change["reason_code"] for change in values["changes"]] == ["NOTHING_CHANGED"] * 2


def test_what_nothing_distinguishes_is_the_control_of_the_others(two):
    """The host is 10 % faster after; of four treatments two have another server, of which one lost 10 % by it."""
    before, after = two({"t1": 1.0, "t2": 1.0, "t3": 0.9, "t4": 1.0}, host=1.1, alike=("t1", "t2"))
    found = compare(before, after)
    assert (found.controls, found.control_is_named) == (("level t1", "level t2"), False)
    assert found.control.effect.value == pytest.approx(0.1, abs=0.02)
    assert [change.after for change in found.changes] == ["level t3", "level t4"]
    assert words(found) == ["undecided", "undecided"]
    assert [change.verdict for change in found.against_control] == ["slower", "equivalent"]
    said = document(before, after, found).values()["headline"]
    assert said.startswith("The host is faster than before, +")
    assert "Against level t1 and level t2, without a known change between the runs, level t3 is" in said
    named = compare(before, after, control="level t2")
    assert (named.controls, named.control_is_named) == (("level t2",), True)
    assert [change.after for change in named.against_control] == ["level t1", "level t3", "level t4"]


def test_several_controls_are_steadier_than_one(two):
    runs = two({"t1": 1.0, "t2": 1.0, "t3": 1.0, "t4": 1.0}, noise=0.03, alike=("t1", "t2", "t3"))
    against = [compare(*runs).against_control[0], compare(*runs, control="level t1").against_control[-1]]
    widths = [change.effect.high - change.effect.low for change in against]
    assert widths[0] < widths[1]


def test_a_control_that_failed_is_none(two):
    before, after = two({"t1": 1.0, "t2": 1.0, "t3": 1.2}, alike=("t1", "t2"))
    found = compare(before, replace(after, dropped=frozenset({"t1"})))
    assert found.controls == ("level t2",)
    assert words(found) == ["not comparable", "faster"]


def disturbed(run, share):
    """Return a run whose first trials, so many of all, met interference."""
    met = round(share * len(run.trials))
    beyond = {"beyond": {"foreign_cpu": 0.3}}
    trials = [replace(one, disturbance=beyond) if place < met else one for place, one in enumerate(run.trials)]
    return replace(run, trials=trials)


@pytest.mark.parametrize(
    ("shares", "told"), [((0.0, 0.45), []), ((0.0, 0.5), ["after"]), ((1.0, 0.6), ["before", "after"])]
)
def test_interference_in_half_of_a_run_withholds_its_words(two, shares, told):
    runs = [disturbed(run, share) for run, share in zip(two({"t1": 1.3, "t2": 1.0}), shares, strict=True)]
    found = compare(*runs)
    assert [one.run for one in found.interference] == told
    assert words(found) == (["undecided", "undecided"] if told else ["faster", "equivalent"])
    said = document(*runs, found).values()
    for run, share in zip(("before", "after"), shares, strict=True):
        met = f"nterference met {round(20 * share)} of 20 trials of the run {run}"
        assert (met in said["headline"]) == (run in told)
    assert [change["reason_code"] == "INTERFERENCE" for change in said["changes"]] == [bool(told)] * 2


def failed_before_blocks(run, treatment, number):
    """Return a run in which a treatment failed in the first attempt at so many blocks."""
    failures = [FailedTrial(f"f{block}", block, 1, treatment, "died") for block in range(1, number + 1)]
    trials = [replace(one, attempt=2) if one.block <= number else one for one in run.trials]
    return replace(run, trials=trials, failures=failures)


@pytest.mark.parametrize(("failed", "word"), [((0, 7), "undecided"), ((7, 7), "faster"), ((0, 0), "faster")])
def test_failures_in_one_run_withhold_what_they_may_have_made(two, failed, word):
    before, after = two({"t1": 1.03, "t2": 1.0}, n=10)
    runs = [failed_before_blocks(run, "t1", number) for run, number in zip((before, after), failed, strict=True)]
    found = compare(*runs, margin=0.005)
    change = found.changes[0]
    assert change.verdict == word
    values = document(*runs, found).values()["changes"][0]
    if word == "undecided":
        assert change.withheld_for == UnequalFailures("level t1 (after)", 7, "level t1 (before)", 0)
        assert values["reason_code"] == "UNEQUAL_FAILURES"
        assert not change.effect.bounded
    else:
        assert change.withheld_for is None
    assert found.changes[1].withheld_for is None


def test_failures_of_a_control_in_the_same_run_withhold_what_is_said_against_it(two):
    before, after = two({"t1": 1.03, "t2": 1.0}, n=10, alike=("t2",))
    found = compare(before, failed_before_blocks(after, "t2", 7), margin=0.005)
    (against,) = found.against_control
    assert against.withheld_for == UnequalFailures("level t1 (before)", 7, "level t1 (after)", 0)
    assert compare(before, after, margin=0.005).against_control[0].verdict == "faster"


RULE = st.fixed_dictionaries(
    {
        "after": st.lists(st.sampled_from([0.8, 1.0, 1.3]), min_size=1, max_size=4),
        "host": st.sampled_from([1.0, 1.2]),
        "noise": st.sampled_from([0.002, 0.03]),
        "alike": st.sets(st.integers(0, 3)),
        "shares": st.tuples(*[st.sampled_from([0.0, 0.3, 0.8])] * 2),
        "control": st.none() | st.integers(0, 3),
        "seed": st.integers(0, 1000),
        "n": st.sampled_from([1, 3, 8]),
    }
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(RULE)
def test_the_rule_by_which_a_word_is_given(two, case):
    ids = [f"t{i + 1}" for i in range(len(case["after"]))]
    alike = tuple(f"t{i + 1}" for i in case["alike"] if i < len(ids))
    named = case["control"] is not None and case["control"] < len(ids) > 1
    options = {name: case[name] for name in ("host", "noise", "seed", "n")}
    runs = two(dict(zip(ids, case["after"], strict=True)), alike=alike, **options)
    runs = [disturbed(run, share) for run, share in zip(runs, case["shares"], strict=True)]
    found = compare(*runs, control=f"level {ids[case['control']]}" if named else None)
    text = document(*runs, found).values()["headline"]
    claims = [one for one in [*found.changes, *found.against_control] if not one.verdict.is_open]
    comparable = [one for one in found.changes if one.verdict != Word.NOT_COMPARABLE]
    assert found.nothing_changed == (not named and len(alike) == len(ids))
    if found.nothing_changed:
        assert all(one.withheld_for == NothingChanged() for one in comparable)
        assert len(found.changes) == len(ids)
        assert "no verdict on a change" in text
    elif not named:
        assert set(found.controls) <= {f"level {id_}" for id_ in alike}
        assert case["n"] == 1 or len(found.controls) == len(alike)
    if found.nothing_changed or max(case["shares"]) >= 0.5:
        assert not claims
    if max(case["shares"]) >= 0.5:
        assert "nterference met" in text
        assert found.control is None or found.control.verdict.is_open
    moved = found.control is not None and found.control.verdict not in {Word.EQUIVALENT, Word.NOT_COMPARABLE}
    assert not (moved and any(not one.verdict.is_open for one in found.changes))
    for one in [*found.changes, *found.against_control]:
        assert one.withheld_for is None or one.verdict is Word.UNDECIDED
        if one.withheld_for is None and isinstance(one.reason, Reason):
            assert one.verdict == one.reason.word  # nothing but the rule stands between the figures and the word


def varied(run, treatments, factors, **study):
    design = replace(run.design, treatments=treatments, factors=factors)
    return replace(run, design=design, study={"stack": {"device": ["ssd", "hdd"], "size": "1GiB"}, **study})


def test_what_distinguishes_a_treatment(a_run):
    """Its own level, what its named level gives, fields that do not vary, its server's version, what was read back."""
    plain = Factor("device", "stack", ["ssd", "hdd"])
    ssd, hdd = Treatment("t1", {"device": "ssd"}), Treatment("t2", {"device": "hdd"})
    run = varied(a_run({"t1": [1.0] * 3, "t2": [1.0] * 3}), [ssd, hdd], [plain])
    assert distinctions(run, run, (ssd, ssd)) == ()
    assert distinctions(run, run, (ssd, hdd)) == ("stack.device",)
    more = replace(run, study={"stack": {"device": ["ssd", "hdd", "nvme"], "size": "2GiB"}})
    assert distinctions(run, more, (ssd, ssd)) == ("stack.size",)

    gives = {"safe": {"server.settings.sync_binlog": "1"}, "fast": {"server.settings.sync_binlog": "0"}}
    levels = [Treatment("t1", {"configuration": "safe"}), Treatment("t2", {"configuration": "fast"})]
    other = {**gives, "fast": {"server.settings.sync_binlog": "100"}}
    of_named, other = (
        varied(run, levels, [Factor("configuration", "levels", ["safe", "fast"], gives=each)], levels={"safe": each})
        for each in (gives, other)
    )
    assert distinctions(of_named, other, (levels[0], levels[0])) == ()
    assert distinctions(of_named, other, (levels[1], levels[1])) == ("server.settings.sync_binlog",)

    servers = [Treatment("t1", {"server": "mariadb"}), Treatment("t2", {"server": "mysql-9"})]
    sides = [
        replace(
            varied(run, servers, [Factor("server", "stack", ["mariadb", "mysql-9"])]),
            versions={"server mariadb": f"11.{i}", "server mysql-9": "9.0"},
        )
        for i in (4, 8)
    ]
    assert distinctions(*sides, (servers[0], servers[0])) == ("version server mariadb",)
    assert distinctions(*sides, (servers[1], servers[1])) == ()
    kernels = [replace(run, versions={"kernel": name}) for name in ("6.1", "6.12")]
    assert distinctions(*kernels, (ssd, ssd)) == ("version kernel",)


def test_what_was_read_back_otherwise_or_set_in_the_server_distinguishes_too(a_run, a_trial):
    def read(*schedulers, variables=None):
        trials = [
            replace(
                a_trial("t1", block, 1.0),
                observed={"queue": {"scheduler": one}, "data": {"from": f"image {block}"}, "server": {"version": "11"}},
                server_variables=variables or {},
            )
            for block, one in enumerate(schedulers, 1)
        ]
        return a_run({"t1": [1.0] * len(schedulers)}, trials=trials)

    (only,) = read("none").design.treatments
    pair = only, only
    assert distinctions(read("none", "none"), read("bfq", "bfq"), pair) == ("queue.scheduler",)
    assert distinctions(read("none", "none"), read("none", "bfq"), pair) == ()  # it changes inside a run
    assert distinctions(read("none"), read("none"), pair) == ()
    sides = [read("none", variables={"sync_binlog": value, "hostname": f"h{value}"}) for value in ("0", "1")]
    assert distinctions(*sides, pair) == ("server.sync_binlog",)


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
        ({"control": "nobody"}, 'is not in both runs; choose one of: "level t1", "level t2"'),
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


ONE_CPU = {"cores": 4, "cpu": {"model": "AMD EPYC 7302"}}
OTHER_CPU = {"cores": 64, "cpu": {"model": "Intel Xeon Gold 6338"}}


@pytest.mark.parametrize(
    ("hosts", "is_said"),
    [
        ((ONE_CPU, OTHER_CPU), False),
        ((ONE_CPU, ONE_CPU), True),
        ((ONE_CPU, {}), True),
        ((ONE_CPU, {"cores": 2}), False),
    ],
)
def test_a_change_that_is_another_host_s_as_well_has_no_word(two, hosts, is_said):
    runs = [replace(run, host=host) for run, host in zip(two({"t1": 1.2, "t2": 1.2}), hosts, strict=True)]
    found = compare(*runs)
    assert words(found) == (["faster", "faster"] if is_said else ["undecided", "undecided"])
    assert {change.withheld_for for change in found.changes} == {None if is_said else OtherHost()}
    values = document(*runs, found).values()
    assert ("other processors" in values["changes"][0]["reason"]) is not is_said
    assert ("20 % faster" in values["headline"]) is is_said


def test_of_another_host_the_ratio_to_a_control_is_judged(two):
    runs = [
        replace(run, host=host)
        for run, host in zip(two({"t1": 1.0, "t2": 1.2}, host=1.3), (ONE_CPU, OTHER_CPU), strict=True)
    ]
    found = compare(*runs, control="level t1")
    assert [change.verdict for change in found.against_control] == ["faster"]
