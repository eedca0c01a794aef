"""Crash safety: bounds against published figures, tests against Fisher's, words, control, and error rates."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benches.honesty import crash
from dbdyno.analysis.analyse import analyse
from dbdyno.analysis.safety import (
    ALONE,
    ControlFailed,
    ControlKept,
    Correlation,
    NoControl,
    RunsFailed,
    Stratum,
    TooFewCuts,
    correlation,
    crash_safety,
    fisher,
    lower,
    lower_by_runs,
    p_by_runs,
    share,
    upper,
    upper_by_runs,
)
from dbdyno.model.cut import BOUND_MOST, RUNS_LEAST
from dbdyno.store.records import FailedTrial
from tests.crash_runs import FLUSH_0, SAFE, Loses, crash_run, cut, speed_run

NONE_SEEN = Correlation(30, 0.0, 0.5, may_be=False)
SEEN = Correlation(30, 0.4, 0.001, may_be=True)


@pytest.mark.parametrize(
    ("seen", "of", "percent"),
    [
        (0, 30, 9.50),
        (0, 60, 4.87),
        (0, 100, 2.95),
        (0, 300, 0.994),
        (0, 1000, 0.299),
        (0, 3000, 0.0998),
        (1, 300, 1.57),
    ],
)
def test_exact_one_sided_bounds(seen, of, percent):
    assert 100 * upper(seen, of) == pytest.approx(percent, rel=0.005)


def test_the_interval_of_a_share_is_clopper_and_pearsons():
    found = (100 * lower(12, 300, 0.025), 100 * upper(12, 300, 0.025))
    assert found == pytest.approx((2.08, 6.88), abs=0.01)


@pytest.mark.parametrize("related", [NONE_SEEN, SEEN])
def test_of_nothing_seen_the_bound_is_by_runs_whatever_the_control_shows(related):
    found = share([(0, 10)] * 30, related)
    assert found.at_most == found.high == pytest.approx(upper(0, 30))
    assert found.if_independent == pytest.approx(upper(0, 300))


@pytest.mark.parametrize(
    "shares",
    [[0.1] * 3 + [0.0] * 27, [0.9] * 5 + [1.0] * 5, [0.3] * 30, [0.0, 0.0, 0.5], [0.2, 0.4, 0.6, 1.0] * 5, [0.5]],
)
@pytest.mark.parametrize("alpha", [0.05, 0.025])
def test_the_bound_by_runs_is_the_quantile_that_it_is_defined_as(shares, alpha):
    """By drawing Dirichlet weights; ours is computed."""
    weights = np.random.default_rng(5).dirichlet(np.ones(len(shares) + 1), 200_000)
    drawn = np.quantile(weights @ np.array([*shares, 1.0]), 1 - alpha)
    assert upper_by_runs(shares, alpha) == pytest.approx(drawn, abs=0.003)
    assert lower_by_runs([1 - one for one in shares], alpha) == pytest.approx(1 - drawn, abs=0.003)


@given(st.integers(0, 30), st.integers(0, 30))
def test_of_runs_that_lose_all_or_nothing_it_is_clopper_and_pearsons_over_runs(seen, spared):
    assert upper_by_runs([1.0] * seen + [0.0] * spared) == upper(seen, seen + spared)
    mixed = [0.5, *[1.0] * seen, *[0.0] * spared]  # and between what it is with that run at either end
    assert upper(seen, seen + spared + 1) <= upper_by_runs(mixed) <= upper(seen + 1, seen + spared + 1)


def test_no_loss_seen_takes_as_many_runs_as_is_said():
    assert upper(0, RUNS_LEAST) <= BOUND_MOST < upper(0, RUNS_LEAST - 1)
    for blocks, word in ((RUNS_LEAST, "no loss seen"), (RUNS_LEAST - 1, "undecided")):
        assert crash_safety(crash_run({"1": SAFE}, blocks=blocks)).treatments[0].word == word


def test_cuts_that_go_by_runs_count_as_runs():
    by_runs, spread = share([(10, 10)] * 3 + [(0, 10)] * 27, NONE_SEEN), share([(1, 10)] * 30, NONE_SEEN)
    assert by_runs.seen == spread.seen == 30
    assert by_runs.effective_cuts == pytest.approx(30, rel=0.1)
    assert spread.effective_cuts == pytest.approx(300, rel=0.1)
    assert by_runs.at_most > spread.at_most > 0.1


@given(st.lists(st.integers(0, 6), min_size=1, max_size=12))
def test_bounds_are_in_order(seen):
    found = share([(one, 6) for one in seen], NONE_SEEN)
    assert 0 <= found.low <= found.value <= found.at_most <= 1
    assert found.at_most <= upper(found.runs_with, found.runs) + 1e-9
    assert found.effective_cuts <= found.cuts


def test_correlation_of_what_the_control_lost():
    rng = np.random.default_rng(1)

    def runs(common):
        places = [(float(rng.random()), [float(rng.random()) for _ in range(10)]) for _ in range(30)]
        return [[cut(1, FLUSH_0, rng, within=run if common else own) for own in each] for run, each in places]

    assert correlation(runs(common=True)).may_be
    assert correlation(runs(common=True)).within > 0.9
    assert not correlation(runs(common=False)).may_be
    assert correlation([one[:1] for one in runs(common=True)]) == ALONE
    assert correlation(runs(common=True)[:1]).may_be  # of one run nothing can be known
    assert correlation([]).may_be


@pytest.mark.parametrize(
    ("first", "second"), [((3, 7), (0, 9)), ((12, 300), (0, 300)), ((5, 8), (4, 8)), ((0, 5), (0, 5))]
)
def test_one_cut_a_run_is_fishers_test(first, second):
    def each(seen, of):
        return [(1, 1)] * seen + [(0, 1)] * (of - seen)

    assert p_by_runs(each(*first), each(*second)) == pytest.approx(fisher(*first, *second), rel=1e-6)


def test_runs_of_unequal_length_go_by_share():
    long, short = [(10, 20)] * 8, [(5, 10)] * 8
    assert p_by_runs(long, short) > 0.9
    assert p_by_runs(long, [(0, 10)] * 8) < 0.001
    assert p_by_runs([], short) == 1


def test_words_of_a_usual_run():
    found = analyse(crash_run()).safety
    assert [one.word for one in found.treatments] == ["no loss seen", *["loses the newest commits"] * 2]
    assert found.control.compared
    assert found.control.tally.lost.seen >= 285
    safe, lazy, _ = found.treatments
    assert 100 * safe.tally.lost.at_most == pytest.approx(9.50, abs=0.01)
    assert 100 * safe.tally.lost.if_independent == pytest.approx(0.994, abs=0.001)
    assert (safe.tally.cuts, safe.tally.runs) == (300, 30)
    assert lazy.tally.worst == "tail"
    assert 900 < lazy.tally.tail.ms_most <= 1000
    assert 400 < lazy.tally.tail.ms_median < 600
    assert 0.8 < lazy.tally.recovery_s_median < 1.1  # mount and server; the check and the verifier are ours
    assert [(one.asked, one.found) for one in found.differences] == [("loss", "more")] * 2


def test_a_run_without_cuts_has_none():
    assert crash_safety(speed_run(crash_run())) is None


def test_no_loss_is_not_said_without_a_control_that_loses():
    assert crash_safety(crash_run({"1": SAFE}, control=None)).treatments[0].doubts == (NoControl(),)
    kept = crash_safety(crash_run({"1": SAFE}, control=Loses(2000.0, tail=0.9))).treatments[0]
    assert kept.word == "undecided"
    assert isinstance(kept.doubts[0], ControlKept)
    assert kept.doubts[0].stratum is None
    lost = crash_safety(crash_run({"2": FLUSH_0}, control=None)).treatments[0]
    assert lost.word == "loses the newest commits"  # a loss is one, whatever the control did


def _kept(one):
    return replace(one, outcome="nothing", lost=0, lost_ms=None)


def test_a_stratum_floor_counts_where_the_whole_is_enough():
    strata = (("uniform", "random-4096"),) * 19 + (("ddl", "random-4096"),)
    run = crash_run({"1": SAFE}, strata=strata, cuts=20, control=Loses(2000.0, tail=1.0))
    spared = [
        replace(one, cuts=[_kept(each) if each.when == "ddl" and one.block % 6 else each for each in one.cuts])
        if one.treatment == "control"
        else one
        for one in run.trials
    ]
    found = crash_safety(replace(run, trials=spared)).treatments[0]
    assert found.word == "undecided"
    assert found.doubts[0] == ControlKept(5, 30, Stratum("ddl", "random-4096"))


def test_of_cuts_in_a_flush_the_control_need_not_lose_as_often():
    run = crash_run({"1": SAFE}, strata=(("uniform", "random-4096"), ("flush", "random-4096")))
    spared = [
        replace(one, cuts=[_kept(each) if each.when == "flush" and one.block % 2 else each for each in one.cuts])
        if one.treatment == "control"
        else one
        for one in run.trials
    ]
    found = crash_safety(replace(run, trials=spared))
    assert found.control.tally.lost.value < 0.8
    assert found.treatments[0].word == "no loss seen"


def test_a_control_that_was_left_out_shows_nothing():
    run = replace(crash_run({"1": SAFE}), dropped=frozenset({"control"}))
    found = crash_safety(run).treatments[0]
    assert (found.word, found.doubts) == ("undecided", (ControlFailed(),))


def test_too_few_cuts_say_nothing():
    found = crash_safety(crash_run({"1": SAFE}, blocks=2)).treatments[0]
    assert found.word == "undecided"
    assert isinstance(found.doubts[-1], TooFewCuts)


def test_failed_runs_may_hide_losses():
    run = crash_run({"1": SAFE})
    failures = [FailedTrial(f"b{one}a1p1", one, 1, "t1", "recovery did not end") for one in range(31, 36)]
    found = crash_safety(replace(run, failures=failures)).treatments[0]
    assert (found.word, found.doubts) == ("undecided", (RunsFailed(5, 30),))
    dropped = crash_safety(replace(run, failures=failures[:1], dropped=frozenset({"t1"}))).treatments[0]
    assert dropped.doubts == (RunsFailed(1, 30),)


def test_a_loss_in_an_attempt_that_was_repeated_is_one():
    run = crash_run({"1": SAFE})
    again = [replace(one, id=f"again-{one.id}", attempt=2) for one in run.trials if one.block == 3]
    first = next(one for one in run.trials if one.block == 3 and one.treatment == "t1")
    lost = replace(first, cuts=[replace(first.cuts[0], outcome="tail", lost=3, lost_ms=12.0), *first.cuts[1:]])
    trials = [lost if one is first else one for one in run.trials] + again
    found = crash_safety(replace(run, trials=trials)).treatments[0]
    assert (found.word, found.tally.lost.seen, found.tally.runs) == ("loses the newest commits", 1, 31)


def test_damage_is_not_crash_safe_and_is_told_apart():
    torn = Loses(1000.0, tail=0.5, damage=0.04, worst="table")
    found = crash_safety(crash_run({"1": SAFE, "torn": torn}))
    assert found.treatments[1].word == "not crash-safe"
    assert found.treatments[1].tally.worst == "table"
    assert {one.asked: one.found for one in found.differences} == {"loss": "more", "damage": "more"}
    (cause,) = found.treatments[1].causes
    assert (cause.outcome, cause.text) == ("table", "InnoDB: page 7 is corrupt")
    assert cause.cuts == found.treatments[1].tally.damage.seen
    assert re.fullmatch(r"b[0-9]+a1p2/c[0-9]+", cause.cut)
    assert found.treatments[1].tally.each["table"].seen == found.treatments[1].tally.damage.seen


def test_amounts_are_compared_where_both_lose():
    found = crash_safety(crash_run({"2": Loses(900.0, tail=0.97, ms=1000.0), "5": Loses(900.0, tail=0.97, ms=5000.0)}))
    amount = next(one for one in found.differences if one.asked == "amount")
    assert amount.found == "more"
    assert 3 < amount.ratio.low < 4 < amount.ratio.high < 5  # five times as much


def test_only_in_names_the_strata_that_lose():
    strata = (("uniform", "random-4096"), ("uniform", "lying"))
    run = crash_run({"1": FLUSH_0}, strata=strata)
    spared = [replace(one, cuts=[_kept(each) if each.survivors != "lying" else each for each in one.cuts])
              if one.treatment == "t1" else one for one in run.trials]  # fmt: skip
    found = crash_safety(replace(run, trials=spared))
    assert found.treatments[0].only_in == (Stratum("uniform", "lying"),)
    assert found.survivors == ("random-4096", "lying")


@pytest.mark.simulation
def test_bounds_and_differences_are_right_as_often_as_they_say(monkeypatch):
    """The benchmark at small scale; and its rows can fail: cuts taken for independent break what they promise."""
    monkeypatch.setattr(crash, "SIZES", ((30, 10), (6, 10)))
    monkeypatch.setattr(crash, "RHOS", (0.0, 0.2, 1.0))
    found = crash.rows(400, 7)
    assert [row for row in found if row.met is False] == []
    naive = {row.name: row.measured for row in found if row.group == "crash: if independent"}
    assert naive["30 runs of 10 cuts, rho 0.2"] < 90
    fisher_alone = [row.measured for row in found if row.group == "crash: Fisher over cuts" and "rho 0.2" in row.name]
    assert max(fisher_alone) > 20


def test_causes_that_differ_in_numbers_alone_are_one():
    run = crash_run({"torn": Loses(900.0, damage=0.2, worst="server")})
    trials = [
        replace(one, cuts=[_because(each, one.block * place) for place, each in enumerate(one.cuts)])
        for one in run.trials
    ]
    (cause,) = crash_safety(replace(run, trials=trials)).treatments[0].causes
    assert cause.cuts > 30
    assert not cause.kept
    trials[-2] = replace(
        trials[-2], cuts=[replace(trials[-2].cuts[0], outcome="server", cause=_cause(3), kept="kept/c1")]
    )
    (cause,) = crash_safety(replace(run, trials=trials)).treatments[0].causes
    assert (cause.kept, cause.cut) == (True, f"{trials[-2].id}/c1")


def _because(one, number):
    return replace(one, cause=_cause(number)) if one.outcome == "server" else one


def _cause(number):
    return f"/scratch/{number:02x}e{number}f/mnt: page {number} is corrupt"


def on_hosts(run, host_of):
    """Return the same run, each block on the host that ``host_of`` names."""
    return replace(run, trials=[replace(one, host=host_of(one.block)) for one in run.trials])


def without_loss(trial):
    return replace(trial, cuts=[replace(one, outcome="nothing", lost=0, lost_ms=None) for one in trial.cuts])


def test_a_run_on_one_host_says_nothing_by_host():
    assert crash_safety(crash_run()).by_host == ()
    assert crash_safety(on_hosts(crash_run(), lambda _: "db1")).by_host == ()


def test_hosts_that_differ_by_more_than_chance_are_odd_and_others_are_not():
    run = on_hosts(crash_run({"1": Loses(900.0, tail=0.9)}, blocks=24), lambda block: f"db{1 + block % 3}")
    assert [(one.treatment, one.differs) for one in crash_safety(run).by_host] == [("t1", False), ("control", False)]
    spared = [without_loss(one) if (one.host, one.treatment) == ("db2", "t1") else one for one in run.trials]
    of_t1, of_control = crash_safety(replace(run, trials=spared)).by_host
    assert [one.host for one in of_t1.hosts] == ["db2", "db3", "db1"]  # as they came
    assert [one.host for one in of_t1.hosts if one.is_odd] == ["db2", *(o.host for o in of_t1.hosts[1:] if o.is_odd)]
    assert of_t1.differs
    assert not of_control.differs
    assert {one.tally.runs for one in of_t1.hosts} == {8}


def test_hosts_that_are_alike_are_seldom_called_odd():
    """At most 5 % of runs whose hosts are alike have an odd one, also where cuts of a run resemble each other."""
    odd = 0
    for seed in range(200):
        run = crash_run({"1": Loses(900.0, tail=0.3)}, blocks=18, cuts=4, control=None, seed=seed, related=0.5)
        found = crash_safety(on_hosts(run, lambda block: f"db{1 + block % 3}"))
        odd += any(on.is_odd for each in found.by_host for on in each.hosts)
    assert odd <= 0.05 * 200 + 2 * (200 * 0.05 * 0.95) ** 0.5


def test_a_stratum_in_which_the_control_has_no_cut_shows_nothing():
    """Its trials at page writes failed: whether the load shows a loss there is not known."""
    run = crash_run({"1": SAFE}, strata=(("uniform", "random-4096"), ("page-write", "random-4096")))
    trials = [
        replace(one, cuts=[each for each in one.cuts if each.when == "uniform"]) if one.treatment == "control" else one
        for one in run.trials
    ]
    assert crash_safety(run).treatments[0].word == "no loss seen"
    found = crash_safety(replace(run, trials=trials)).treatments[0]
    assert found.word == "undecided"
    assert found.doubts[0] == ControlKept(0, 0, Stratum("page-write", "random-4096"))


def test_a_direction_is_not_said_where_cuts_and_runs_disagree():
    """t2 loses in all of the single cuts of most runs, and in few of the many cuts of the others."""
    run = crash_run({"1": SAFE, "2": Loses(900.0, tail=1.0)}, blocks=30)

    def cuts_of(one):
        if one.treatment == "t1":  # loses in half of each run's cuts
            return [each if each.seed % 2 else replace(each, outcome="tail", lost_ms=5.0) for each in one.cuts]
        kept = one.cuts[:1] if one.block <= 24 else [_kept(each) for each in one.cuts * 10]
        return kept if one.treatment == "t2" else one.cuts

    (loss, *_) = crash_safety(replace(run, trials=[replace(one, cuts=cuts_of(one)) for one in run.trials])).differences
    assert loss.asked == "loss"
    assert loss.p < 0.05
    assert loss.level[0] / loss.level[1] < loss.baseline[0] / loss.baseline[1]
    assert loss.found == "no difference shown"
