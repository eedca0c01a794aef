"""Drift over a run: whether its interval holds the true one where neighbouring trials are alike, or all of them are."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from benches.honesty.hosts import long_memory, random_walk
from benches.honesty.noise import Noise, autoregressive, independent
from benches.honesty.row import Row
from dbdyno.analysis.statistics import trend

TRIALS = (20, 40, 80)
RUNS_MOST = 300  # of each kind: every trend takes some milliseconds
LEAST, LEAST_OF_WALKS = 92.0, 76.0  # percent
NOISES: dict[str, tuple[Noise, float]] = {
    "iid": (independent, LEAST),
    "AR(1) 0.6": (autoregressive, LEAST),
    "AR(1) 0.9": (partial(autoregressive, rho=0.9), 90.0),
    "long memory, d 0.3": (partial(long_memory, d=0.3), LEAST),
    "long memory, d 0.45": (long_memory, LEAST),
    "random walk": (random_walk, LEAST_OF_WALKS),
}


def rows(replicates: int, seed: int) -> list[Row]:
    """Return how often the 95 % interval of two treatments' common drift holds what is true: none."""
    return list(_rows(np.random.default_rng(seed), min(replicates, RUNS_MOST)))


def _rows(rng: np.random.Generator, replicates: int) -> Iterator[Row]:
    for name, (noise, least) in NOISES.items():
        for trials in TRIALS:
            places = np.arange(trials)
            found = [trend(places, places % 2, values) for values in noise(rng, replicates, trials)]
            covers = 100 * float(np.mean([one.low <= 0 <= one.high for one in found]))
            yield Row("drift: coverage", f"{trials} trials, {name}", covers, "%", least, None)
            width = 100 * trials * float(np.median([one.high - one.low for one in found])) / 2
            yield Row("drift: half the interval", f"{trials} trials, {name}", width, "%", None, None)
