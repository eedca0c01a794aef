"""Stability of a series and drift over a run: how often a detector sees what is not there, or misses what is."""

import numpy as np

from benches.honesty.noise import autoregressive
from benches.honesty.row import Row
from dbdyno.analysis.trend import trend

COVERAGE = (93.0, 97.0)  # %


def rows(replicates: int, seed: int) -> list[Row]:
    """Return the rows; ``replicates`` is the number of series or runs behind each figure."""
    return [*_drift_rows(np.random.default_rng(seed), replicates)]


def _drift_rows(rng: np.random.Generator, replicates: int) -> list[Row]:
    """Coverage of the interval of the drift: two treatments in random order inside blocks, no true drift."""
    found = []
    for rho, high in ((0.0, COVERAGE[1]), (0.6, None)):
        for trials in (20, 40, 80):
            covered = np.mean([_covers(rng, trials, rho) for _ in range(replicates)])
            name = f"covers, {trials} trials, {f'AR(1) {rho:g}' if rho else 'iid'}"
            slack = 2 * float(np.sqrt(COVERAGE[0] * (100 - COVERAGE[0]) / replicates))  # two standard errors
            low, most = COVERAGE[0] - slack, None if high is None else high + slack
            found.append(Row("drift of a run", name, 100 * float(covered), "%", low, most))
    return found


def _covers(rng: np.random.Generator, trials: int, rho: float) -> bool:
    values = autoregressive(rng, 1, trials, rho)[0]
    treatments = rng.permuted(np.tile([0, 1], (trials // 2, 1)), axis=1).ravel()
    found = trend(np.arange(trials), treatments, values)
    return found.low <= 0 <= found.high
