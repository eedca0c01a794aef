"""Hosts that are noisy in different ways: ln(metric) of trials in the order they ran, nothing truly different."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Noise = Callable[[np.random.Generator, int, int], Floats]  # generator, replicates, trials -> (replicates, trials)

SD, RHO = 0.03, 0.6
QUIET = 0.01
OUTLIERS, SLOW_REGIME = 0.05, 0.4  # share of trials


def reference(rng: np.random.Generator, replicates: int, trials: int) -> Floats:
    """AR(1) with rho .6 and sd 3 %, a drift of 5 % per 20 runs of random sign, 5 % of runs 10 % slow."""
    values = autoregressive(rng, replicates, trials)
    values += rng.choice([-1, 1], (replicates, 1)) * 0.05 * np.arange(trials) / 20
    return values - 0.1 * (rng.random((replicates, trials)) < OUTLIERS)


def autoregressive(rng: np.random.Generator, replicates: int, trials: int, rho: float = RHO) -> Floats:
    """AR(1), sd 3 %."""
    values = rng.normal(0, SD * np.sqrt(1 - rho**2), (replicates, trials))
    values[:, 0] = rng.normal(0, SD, replicates)
    for i in range(1, trials):
        values[:, i] += rho * values[:, i - 1]
    return values


def independent(rng: np.random.Generator, replicates: int, trials: int) -> Floats:
    """Normal, sd 3 %, each trial for itself."""
    return rng.normal(0, SD, (replicates, trials))


def heavy_tailed(rng: np.random.Generator, replicates: int, trials: int) -> Floats:
    """Student's t with 2 degrees of freedom, scaled: most trials within 1 %, some 30 % off."""
    return 0.01 * rng.standard_t(2, (replicates, trials))


def two_regimes(apart: float, share: float = SLOW_REGIME) -> Noise:
    """Return two regimes so far ``apart`` as a log ratio, a trial in the slow one by chance, sd 1 % around each."""

    def noise(rng: np.random.Generator, replicates: int, trials: int) -> Floats:
        return rng.normal(0, QUIET, (replicates, trials)) - apart * (rng.random((replicates, trials)) < share)

    return noise


def cron(slowed: float, period: float) -> Noise:
    """Return a job that begins every ``period`` trials and makes the trial it falls into take ``slowed`` more time.

    Its phase is drawn for each study; sd 1 % beside it. Where the period is the length of a block of two, one of each
    two trials is hit, always at the same place of its block: log ratios have two values, and only the order of the
    treatments, drawn by chance, makes the sign of each.
    """

    def noise(rng: np.random.Generator, replicates: int, trials: int) -> Floats:
        begins = rng.uniform(0, period, (replicates, 1)) + period * np.arange(int(trials / period) + 1)
        hit = np.any(np.floor(begins)[:, None, :] == np.arange(trials)[:, None], axis=-1)
        return rng.normal(0, QUIET, (replicates, trials)) - np.log1p(slowed) * hit

    return noise


NOISES: dict[str, Noise] = {
    "reference": reference,
    "iid": independent,
    "heavy tails": heavy_tailed,
    "bimodal": two_regimes(0.12),
    "bimodal, 30 %": two_regimes(0.3),
    "cron of 5 %, each block": cron(0.05, 2.0),
    "cron of 12 %, each block": cron(0.12, 2.0),
    "cron of 30 %, each block": cron(0.30, 2.0),
    "cron of 12 %, drifting": cron(0.12, 2.02),
    "cron of 30 %, drifting": cron(0.30, 2.02),
    "cron of 30 %, drifting faster": cron(0.30, 2.1),
}


def in_order(values: Floats, order: npt.NDArray[np.int64]) -> Floats:
    """Return what each arm saw: ``order`` (replicates, trials) names each trial's arm; (replicates, arms, runs)."""
    places = np.argsort(order, axis=1, kind="stable")
    arms = int(order.max()) + 1
    return np.take_along_axis(values, places, axis=1).reshape(len(values), arms, -1)


def blocked(rng: np.random.Generator, noise: Noise, replicates: int, levels: int, blocks: int) -> Floats:
    """Return log ratios of identical levels to the first, in randomised blocks: (replicates, levels - 1, blocks)."""
    values = noise(rng, replicates, levels * blocks).reshape(replicates, blocks, levels)
    order = np.argsort(rng.random(values.shape), axis=-1)
    placed = np.empty_like(values)
    np.put_along_axis(placed, order, values, axis=-1)
    return np.swapaxes(placed[..., 1:] - placed[..., :1], 1, 2)
