import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dbdyno.analysis.permutation import _tail_exact, _tail_on_grid, sign_flip_p

WHOLE = st.lists(st.integers(-50, 50), min_size=2, max_size=10).map(lambda values: np.array(values, dtype=float))


@given(WHOLE)
def test_equals_scipy(d):
    expected = stats.permutation_test(
        (d,), lambda x, axis: x.mean(axis=axis), permutation_type="samples", vectorized=True, n_resamples=np.inf
    )
    assert sign_flip_p(d) == pytest.approx(expected.pvalue, abs=1e-12)


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=22).map(np.array))
def test_is_a_probability_and_blind_to_order_and_sign(d):
    p = sign_flip_p(d)
    assert 2 / 2 ** len(d) <= p <= 1 or p == 1
    assert sign_flip_p(-d) == pytest.approx(p)
    assert sign_flip_p(d[::-1]) == pytest.approx(p)


@pytest.mark.parametrize("n", [1, 2, 6, 20, 40])
def test_one_direction_throughout_is_the_smallest_p(n):
    assert sign_flip_p(np.linspace(0.1, 0.2, n)) == pytest.approx(min(1, 2 / 2**n))


def test_nothing_differs():
    assert sign_flip_p(np.zeros(8)) == 1


def test_ties_from_rounding_are_ties():
    assert sign_flip_p(np.array([0.1, 0.2, 0.3, -0.3])) == sign_flip_p(np.array([1.0, 2.0, 3.0, -3.0]))


def test_forty_blocks_are_exact_and_fast():
    d = np.random.default_rng(1).normal(0.2, 1, 40)
    started = time.perf_counter()
    p = sign_flip_p(d)
    assert time.perf_counter() - started < 5
    flips = np.random.default_rng(2).choice([-1.0, 1.0], (200_000, 40))
    sampled = (np.abs(flips @ d) >= abs(d.sum())).mean()
    assert p == pytest.approx(sampled, abs=0.005)


def test_grid_agrees_with_the_exact_tail_and_is_not_below_it():
    rng = np.random.default_rng(3)
    for _ in range(20):
        d = rng.normal(0.3, 1, 30)
        threshold = abs(d.sum())
        exact, grid = _tail_exact(np.abs(d), threshold), _tail_on_grid(np.abs(d), threshold)
        assert exact <= grid + 1e-12
        assert grid == pytest.approx(exact, abs=2e-3)


def test_beyond_forty_blocks():
    d = np.random.default_rng(4).normal(0, 1, 64)
    normal = 2 * stats.norm.sf(abs(d.sum()) / np.sqrt((d**2).sum()))
    assert sign_flip_p(d) == pytest.approx(normal, abs=0.01)


@pytest.mark.parametrize("d", [[], [np.nan, 1.0], [np.inf]])
def test_refuses_what_cannot_be_tested(d):
    with pytest.raises(ValueError, match="finite"):
        sign_flip_p(np.array(d))
