"""Curves of factors that are amounts: which levels are, and how often the interval of a knee holds the true one."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.analysis.analyse import analyse
from dbdyno.analysis.curves import SHARE, plateau
from dbdyno.analysis.looks import Looks
from dbdyno.analysis.verdict.evidence import AlwaysValid
from dbdyno.model.design import Factor, Treatment
from dbdyno.model.quantity import quantity_of

BOUND = np.log1p(SHARE)
STUDIES = 400
SHAPES = {
    "saturates": np.log([100, 190, 340, 500, 560, 570, 572]),
    "has a maximum": np.log([100, 300, 500, 520, 450, 380]),
    "is flat": np.zeros(6),
    "falls": np.log([100, 99, 97, 80, 50]),
    "rises to the end": np.log([1, 2, 4, 8, 16]),
    "is just short of the share everywhere": np.append(np.full(7, -BOUND - 1e-9), 0.0),
}


def true_ends(means):
    within = np.flatnonzero(means >= means.max() - BOUND)
    return within[0], within[-1]


def exactly(means):
    """Return the plateau of a curve that is known without noise."""
    return plateau(np.stack([np.asarray(means)] * 3), Looks.single, more_is_better=True)


@pytest.mark.parametrize(
    ("levels", "values", "unit"),
    [
        (["1", "8", "32"], (1, 8, 32), ""),
        (["0.5", "1.5", "2"], (0.5, 1.5, 2), ""),
        (["64M", "256M", "1G"], (2**26, 2**28, 2**30), "B"),
        (["4GiB", "10GB", "2TiB"], (2**32, 10**10, 2**41), "B"),
        (["1ms", "1s", "2min"], (0.001, 1, 120), "s"),
        (["20%", "50%"], (0.2, 0.5), "%"),
    ],
)
def test_amounts_are_read_with_their_unit(levels, values, unit):
    found = quantity_of(levels)
    assert found is not None
    assert (found.values, found.unit) == (values, unit)


@pytest.mark.parametrize(
    "levels", [["0", "1", "2"], ["none", "bfq"], ["1", "many"], ["1", "1.0"], ["nan", "1"], ["64M", "1s"]]
)
def test_what_is_no_amount_has_no_curve(levels):
    """0 is none, off or unlimited to a setting, and has no place on a logarithmic axis."""
    assert quantity_of(levels) is None


@given(st.lists(st.floats(-3, 3), min_size=2, max_size=9))
def test_the_knee_is_the_first_level_that_no_larger_one_improves_by_the_share(means):
    found = exactly(means)
    larger = [max(means[place:]) - mean <= BOUND for place, mean in enumerate(means)]
    assert found.first.at == larger.index(True)
    assert found.first.low <= found.first.at <= found.first.high


@given(st.integers(0, 10_000), st.integers(2, 12), st.integers(2, 8), st.floats(0, 0.2), st.booleans())
def test_an_estimate_lies_in_its_interval_and_a_latency_is_the_mirror_of_a_rate(seed, blocks, levels, noise, looked):
    logs = np.random.default_rng(seed).normal(np.linspace(0, 0.3, levels), noise, (blocks, levels))
    rule = (lambda _: AlwaysValid()) if looked else Looks.single
    rate, latency = plateau(logs, rule, more_is_better=True), plateau(-logs, rule, more_is_better=False)
    assert rate == latency
    assert 0 <= rate.first.low <= rate.first.at <= rate.first.high < levels
    assert 0 <= rate.last.low <= rate.last.at <= rate.last.high < levels
    assert rate.first.at <= rate.last.at


def test_levels_that_are_worse_between_two_that_are_as_good_as_the_best_are_named():
    found = exactly(np.log([100, 50, 99, 40, 100, 60]))
    assert (found.first.at, found.last.at, found.dips, found.flat) == (0, 4, (1, 3), False)
    assert exactly(np.log([100, 99, 100])).flat


def test_one_block_or_one_level_has_no_knee():
    assert plateau(np.zeros((1, 4)), Looks.single, more_is_better=True) is None
    assert plateau(np.zeros((0, 4)), Looks.single, more_is_better=True) is None


def test_a_look_that_is_not_to_decide_leaves_everything_open():
    logs = np.random.default_rng(1).normal([0, 1, 2, 2], 0.01, (3, 4))
    found = plateau(logs, lambda n: Looks((n,), 40), more_is_better=True)
    assert (found.first.low, found.first.high) == (0, 3)
    assert found.knee is None


NOISE = {
    "normal": lambda rng, shape: rng.normal(0, 0.02, shape),
    "heavy tails": lambda rng, shape: rng.standard_t(3, shape) * 0.02 / np.sqrt(3),
    "slow trials": lambda rng, shape: rng.normal(0, 0.02, shape) + np.log(0.9) * (rng.random(shape) < 0.05),
    "more where there is more": lambda rng, shape: rng.normal(0, 0.02, shape) * np.linspace(0.2, 2, shape[1]),
}


def missed(means, noise, blocks, interval):
    """Return the share of simulated studies in which ``interval`` lacks the first or the last level that is true."""
    rng = np.random.default_rng(7)
    first, last = true_ends(means)
    wrong = 0
    for _ in range(STUDIES):
        host = rng.normal(0, 0.1, (blocks, 1))  # what all trials of a block have in common
        ends = interval(means + noise(rng, (blocks, len(means))) + host)
        wrong += not (ends[0] <= first <= ends[1] and ends[2] <= last <= ends[3])
    return wrong / STUDIES


def ours(logs):
    found = plateau(logs, Looks.single, more_is_better=True)
    return found.first.low, found.first.high, found.last.low, found.last.high


def bootstrap(logs):
    """The percentiles of a bootstrap over blocks."""
    rng = np.random.default_rng(len(logs))
    means = logs[rng.integers(0, len(logs), (300, len(logs)))].mean(axis=1)
    within = means >= means.max(axis=1, keepdims=True) - BOUND
    first, last = within.argmax(axis=1), logs.shape[1] - 1 - within[:, ::-1].argmax(axis=1)
    ends = [np.quantile(one, (0.025, 0.975), method="inverted_cdf") for one in (first, last)]
    return (*ends[0], *ends[1])


@pytest.mark.simulation
@pytest.mark.parametrize("blocks", [6, 12])
@pytest.mark.parametrize("noise", NOISE)
@pytest.mark.parametrize("shape", SHAPES)
def test_the_interval_holds_the_true_knee_in_95_percent_of_studies(shape, noise, blocks):
    assert missed(SHAPES[shape], NOISE[noise], blocks, ours) <= 0.05


@pytest.mark.simulation
def test_a_bootstrap_would_not():
    shape = SHAPES["is just short of the share everywhere"]
    assert missed(shape, NOISE["normal"], 8, bootstrap) > 0.2


@pytest.mark.simulation
def test_enough_blocks_name_the_knee():
    rng = np.random.default_rng(3)
    logs = SHAPES["saturates"] + rng.normal(0, 0.01, (20, 7))
    found = plateau(logs, Looks.single, more_is_better=True)
    assert (found.knee.low, found.knee.at, found.knee.high) == (4, 4, 4)
    assert found.leaves is None


def by_clients(a_run, scores, levels, others=("hdd",), **named):
    """Return a run whose treatments are the product of devices and numbers of clients, in that order."""
    run = a_run(scores, **named)
    pairs = [{"device": other, "clients": level} for other in others for level in levels]
    treatments = [Treatment(id_, each) for id_, each in zip(scores, pairs, strict=True)]
    factors = [Factor("device", "stack", list(others)), Factor("clients", "workload", list(levels))]
    return replace(run, design=replace(run.design, treatments=treatments, factors=factors))


def noisy(value, seed):
    return (value * np.exp(np.random.default_rng(seed).normal(0, 0.005, 8))).tolist()


def test_each_combination_of_the_other_factors_has_a_curve_by_ascending_level(a_run):
    scores = {f"t{n}": noisy(value, n) for n, value in enumerate((400, 100, 390, 3200, 800, 1600), 1)}
    found = analyse(by_clients(a_run, scores, ("16", "1", "8"), ("hdd", "ssd"))).curves
    assert [one.metric.name for one in found] == ["queries_per_second"]
    hdd, ssd = found[0].lines
    assert [point.level for point in hdd.points] == ["1", "8", "16"]
    assert [point.treatment for point in ssd.points] == ["t5", "t6", "t4"]
    assert hdd.points[0].value.value == pytest.approx(100, rel=0.01)
    assert hdd.points[hdd.plateau.knee.at].level == "8"
    assert ssd.plateau.knee is None
    assert ssd.plateau.rising


def test_a_treatment_that_was_dropped_is_no_point(a_run):
    scores = {f"t{n}": noisy(value, n) for n, value in enumerate((100, 200, 300, 310), 1)}
    run = by_clients(a_run, scores, ("1", "2", "4", "8"))
    found = analyse(replace(run, dropped=frozenset({"t2"}))).curves[0].lines[0]
    assert [point.level for point in found.points] == ["1", "4", "8"]
    assert analyse(replace(run, dropped=frozenset({"t2", "t3"}))).curves == []


def test_two_levels_are_a_comparison_and_no_curve(a_run):
    scores = {"t1": noisy(100, 1), "t2": noisy(200, 2)}
    assert analyse(by_clients(a_run, scores, ("1", "2"))).curves == []
