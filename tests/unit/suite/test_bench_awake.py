"""The spread of two series of trials, compared as the benchmark of awake processors does."""

import math

import numpy as np
import pytest

from benches.awake import figure, ratio_of_rates, ratio_of_spreads

RATES = [100.0, 110.0, 95.0, 103.0, 99.0, 108.0]


def test_what_is_the_same_has_a_ratio_of_one():
    other = [100.0, 95.0, 108.0, 99.0, 110.0, 103.0]
    ratio, low, high = ratio_of_spreads(RATES, other)
    assert ratio == pytest.approx(1)
    assert low < 1 < high
    middle, slow, fast = ratio_of_rates(RATES, other)
    assert middle == pytest.approx(1)
    assert slow < 1 < fast


def test_logarithms_that_vary_half_as_much_have_half_the_spread():
    ratio, low, high = ratio_of_spreads(RATES, [math.sqrt(rate) for rate in reversed(RATES)])
    assert ratio == pytest.approx(0.5)
    assert low < 0.5 < high


def test_the_interval_holds_the_truth_as_often_as_it_says():
    """Blocks share half of their noise; the awake vary .7 times as much. 1,000 runs: 95 % within 3 standard errors."""
    random = np.random.default_rng(1)
    common, one, other = (random.normal(0, 0.02, (1000, 12)) for _ in range(3))
    halting, awake = np.exp(5 + common + one), np.exp(5 + 0.7 * (common + other))
    held = sum(
        low <= 0.7 <= high
        for _, low, high in (ratio_of_spreads(list(h), list(a)) for h, a in zip(halting, awake, strict=True))
    )
    assert 929 <= held <= 971


@pytest.mark.parametrize(
    ("interval", "met"),
    [((0.9, 0.6, 1.3), None), ((1.45, 0.85, 2.47), None), ((0.5, 0.3, 0.8), True), ((2.0, 1.2, 3.0), False)],
)
def test_the_interval_decides_and_not_its_middle(interval, met):
    found = figure({"load": "x", "spread_ratio": interval})
    assert (found.met, found.value, found.limit) == (met, interval[0], 1.0)
