"""Where nothing differs, how often do we say that something does? Seeded, seconds."""

import numpy as np
import pytest

from dbdyno.analysis import signed_rank
from dbdyno.analysis.metrics import metric
from dbdyno.analysis.verdict import Paired, judge

REPLICATES = 1000


def drifting_noise(rng, trials):
    """AR(1) with rho .6 and sd 3 %, a drift of 5 % per 20 runs either way, 5 % of runs 10 % slow."""
    noise = np.zeros(trials)
    innovations = rng.normal(0, 0.03 * np.sqrt(1 - 0.6**2), trials)
    noise[0] = rng.normal(0, 0.03)
    for i in range(1, trials):
        noise[i] = 0.6 * noise[i - 1] + innovations[i]
    noise += rng.choice([-1, 1]) * 0.05 * np.arange(trials) / 20
    return noise - 0.1 * (rng.random(trials) < 0.05)


def blocked_study(rng, levels, blocks):
    """Return ln(metric) of identical levels in randomised blocks, shape (blocks, levels)."""
    order = np.argsort(rng.random((blocks, levels)), axis=1)
    values = np.empty((blocks, levels))
    np.put_along_axis(values, order, drifting_noise(rng, blocks * levels).reshape(blocks, levels), axis=1)
    return values


def judged(values):
    pairs = [
        Paired("a", f"l{level}", "t0", f"t{level}", dict(enumerate((values[:, level] - values[:, 0]).tolist())))
        for level in range(1, values.shape[1])
    ]
    return judge(pairs, metric("queries_per_second"), 0.03)


@pytest.mark.parametrize(("levels", "blocks"), [(2, 10), (4, 10)])
def test_identical_levels_are_rarely_called_different(levels, blocks):
    rng = np.random.default_rng(20250101 + levels)
    words = [{found.verdict for found in judged(blocked_study(rng, levels, blocks))} for _ in range(REPLICATES)]
    wrong = np.mean([bool(said & {"faster", "slower"}) for said in words])
    assert wrong <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / REPLICATES)


def test_a_difference_at_the_margin_is_rarely_called_equivalent():
    rng = np.random.default_rng(3)
    values = rng.normal(0, 0.01, (REPLICATES, 10)) + np.log(1.03)
    pairs = [[Paired("a", "b", "t1", "t2", dict(enumerate(row.tolist())))] for row in values]
    wrong = np.mean([judge(pair, metric("queries_per_second"), 0.03)[0].verdict == "equivalent" for pair in pairs])
    assert wrong <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / REPLICATES)


def test_intervals_cover_as_often_as_they_say():
    d = np.random.default_rng(4).standard_t(3, (4000, 8))
    low, high = signed_rank.interval(signed_rank.walsh_averages(d), 8, 0.05)
    assert np.mean((low <= 0) & (high >= 0)) == pytest.approx(signed_rank.coverage(8, 0.05), abs=0.012)
