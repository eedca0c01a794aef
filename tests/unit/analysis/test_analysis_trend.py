"""The trend in values whose neighbours are alike, and the drift over a run that rests on it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benches.honesty.hosts import long_memory
from dbdyno.analysis.over_time import drift_over_run
from dbdyno.analysis.statistics import _RHO, FRACTIONAL, _fit_ar1, _fit_covariance, covariances, trend


def alike(rng, n, rho):
    values = rng.normal(0, 1, n)
    for i in range(1, n):
        values[i] = rho * values[i - 1] + np.sqrt(1 - rho**2) * values[i]
    return values


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(14, 40), groups=st.integers(1, 4), at=st.integers(0, 37))
def test_each_slope_is_that_of_generalised_least_squares_with_the_whole_covariance(seed, n, groups, at):
    rng = np.random.default_rng(seed)
    places = np.cumsum(rng.integers(1, 4, n))  # with gaps, where trials were left out
    group = np.concatenate((np.arange(groups), rng.integers(0, groups, n - groups)))
    x = np.column_stack([*(group == one for one in range(groups)), places]).astype(float)
    y = rng.normal(5, 1, n)
    _, slopes, errors = _fit_ar1(places, x, y)
    rho = _RHO[at]
    precision = np.linalg.inv(rho ** np.abs(places[:, None] - places[None, :]))
    found = np.linalg.solve(x.T @ precision @ x, x.T @ precision @ y)
    rest = y - x @ found
    variance = rest @ precision @ rest / (n - groups - 1) * np.linalg.inv(x.T @ precision @ x)[-1, -1]
    assert slopes[at] == pytest.approx(found[-1], rel=1e-9, abs=1e-9)
    assert errors[at] == pytest.approx(np.sqrt(variance), rel=1e-9)


@pytest.mark.simulation
def test_the_interval_holds_also_where_neighbours_are_alike():
    rng = np.random.default_rng(5)
    for n, rho in [(20, 0.0), (20, 0.6), (60, 0.6)]:
        found = [trend(np.arange(n), np.arange(n) % 2, 0.1 * np.arange(n) + alike(rng, n, rho)) for _ in range(300)]
        assert np.mean([each.low <= 0.1 <= each.high for each in found]) >= 0.91, (n, rho)


@pytest.mark.simulation
def test_the_interval_holds_also_where_all_trials_are_alike():
    """Under noise that neighbours share and forget it would hold the truth in 73 %."""
    series = long_memory(np.random.default_rng(5), 100, 80)
    found = [trend(np.arange(80), np.arange(80) % 2, values) for values in series]
    assert np.mean([each.low <= 0 <= each.high for each in found]) >= 0.88


@pytest.mark.parametrize("kind", [*range(len(FRACTIONAL)), -1])
def test_each_kind_of_memory_is_fitted_by_generalised_least_squares(kind):
    rng = np.random.default_rng(kind + 2)
    places = np.cumsum(rng.integers(1, 4, 25))
    x = np.column_stack([np.ones(25), places]).astype(float)
    y = rng.normal(5, 1, 25)
    covariance = covariances(places)[0 if kind >= 0 else 1]
    _, slopes, errors = _fit_covariance(covariance, x, y)
    precision = np.linalg.inv(covariance[kind])
    found = np.linalg.solve(x.T @ precision @ x, x.T @ precision @ y)
    rest = y - x @ found
    assert slopes[kind] == pytest.approx(found[-1], rel=1e-6)
    variance = rest @ precision @ rest / 23 * np.linalg.inv(x.T @ precision @ x)[-1, -1]
    assert errors[kind] == pytest.approx(np.sqrt(variance), rel=1e-6)


def test_fractional_noise_is_as_alike_as_its_covariance_says():
    values = long_memory(np.random.default_rng(1), 4000, 12, d=0.3)
    known = covariances(np.arange(12))[0][FRACTIONAL.index(0.3)][0]
    seen = (values[:, :1] * values).mean(axis=0)
    np.testing.assert_allclose(seen / seen[0], known, atol=0.06)


def test_neighbours_of_very_many_trials_are_put_together():
    rng = np.random.default_rng(3)
    n = 2000
    groups = rng.integers(0, 5, n)
    found = trend(np.arange(n), groups, 0.001 * np.arange(n) + groups + rng.normal(0, 0.1, n))
    assert found.low < 0.001 < found.high
    assert found.high - found.low < 0.0001
    assert found.n == n


def test_likeness_of_neighbours_makes_the_interval_wider():
    rng = np.random.default_rng(6)
    places, groups = np.arange(60), np.zeros(60, dtype=np.int64)
    alone, together = (trend(places, groups, alike(rng, 60, rho)) for rho in (0.0, 0.8))
    assert together.high - together.low > 1.5 * (alone.high - alone.low)


def test_an_exact_line_has_its_slope_and_too_few_values_have_none():
    places = np.arange(30)
    line = trend(places, places % 2, 3.0 * places + 7 * (places % 2))
    assert (line.value, line.low, line.high) == pytest.approx((3, 3, 3))
    flat = trend(places, places % 2, np.ones(30))
    assert (flat.value, flat.low, flat.high) == pytest.approx((0, 0, 0), abs=1e-12)
    assert not trend(np.arange(9), np.zeros(9, dtype=np.int64), np.arange(9.0)).known


def test_a_drift_is_found_whatever_the_order_of_the_treatments():
    rng = np.random.default_rng(7)
    # All of one treatment first: a drift that is taken for a difference would be missed.
    names = ["a"] * 20 + ["b"] * 20
    values = np.exp(0.05 * np.arange(40) / 39 + rng.normal(0, 0.002, 40)) * np.where(np.arange(40) < 20, 100, 130)
    drift = drift_over_run(range(40), names, values.tolist())
    assert drift.low < np.expm1(0.05) < drift.high
    assert drift.low > 0.03
