"""Hosts whose noise has a shape of its own: periods near the length of a trial or a block, long memory, steps.

Nothing truly differs but where a row says so. Trials run one after the other in randomised blocks of two.
"""

from collections.abc import Iterator

import numpy as np

from benches.honesty import designs
from benches.honesty.designs import Studies, always_valid, fixed, sequential
from benches.honesty.noise import SD, Floats, Noise, blocked
from benches.honesty.row import Row
from benches.honesty.verdicts import limit
from dbdyno.analysis.verdict.evidence import Relation
from dbdyno.model.design import ALPHA

FIXED, MOST = 10, 40
STUDIES_MOST = 2000  # of each kind: there are many kinds
SWING, STEP, TWO_SPEEDS = 0.06, 0.15, 0.3  # on the log scale
MEMORY = 0.45  # d of fractional noise; from .5 on it has no mean
STAY = 0.85  # probability that a host of two speeds keeps its speed for the next trial
EXPLOSION = 1.05  # times the spread from trial to trial
GROWTH = 5.0  # times the spread at the end of that at the beginning


def periodic(trials_long: float) -> Noise:
    """Return a wave of so many trials, its phase by chance, on independent noise of 1 %."""

    def noise(rng: np.random.Generator, replicates: int, trials: int) -> Floats:
        phase = rng.uniform(0, 2 * np.pi, (replicates, 1))
        wave = SWING * np.sin(2 * np.pi * np.arange(trials) / trials_long + phase)
        return np.asarray(wave + rng.normal(0, SD / 3, (replicates, trials)))

    return noise


def long_memory(rng: np.random.Generator, replicates: int, trials: int, d: float = MEMORY) -> Floats:
    """Fractional noise, sd about 3 %: each trial remembers all before it (Hosking 1981)."""
    before = 4 * trials
    k = np.arange(1, before + trials)
    weights = np.concatenate(([1.0], np.cumprod((k - 1 + d) / k)))
    shocks = rng.normal(0, SD / np.sqrt(np.sum(weights**2)), (replicates, before + trials))
    size = 2 * (before + trials)
    both = np.fft.irfft(np.fft.rfft(shocks, size) * np.fft.rfft(weights, size), size)
    return np.asarray(both[:, before : before + trials])


def random_walk(rng: np.random.Generator, replicates: int, trials: int) -> Floats:
    """A walk with steps of 1 %, on independent noise of 1 %."""
    steps = rng.normal(0, SD / 3, (2, replicates, trials))
    return np.asarray(np.cumsum(steps[0], axis=1) + steps[1])


def step(rng: np.random.Generator, replicates: int, trials: int) -> Floats:
    """From some trial on 14 % slower, on independent noise of 1 %."""
    at = rng.integers(1, trials, (replicates, 1))
    return np.asarray(rng.normal(0, SD / 3, (replicates, trials)) - STEP * (np.arange(trials) >= at))


def two_speeds(rng: np.random.Generator, replicates: int, trials: int) -> Floats:
    """Fast or a quarter slower for some trials in turn, by chance, on independent noise of 1 %."""
    changes = rng.random((replicates, trials)) > STAY
    slow = (np.cumsum(changes, axis=1) + rng.integers(0, 2, (replicates, 1))) % 2
    return np.asarray(rng.normal(0, SD / 3, (replicates, trials)) - TWO_SPEEDS * slow)


def growing(rng: np.random.Generator, replicates: int, trials: int) -> Floats:
    """A spread that grows from 1 % to 5 %."""
    return np.asarray(rng.normal(0, SD / 3, (replicates, trials)) * np.linspace(1, GROWTH, trials))


def exploding(rng: np.random.Generator, replicates: int, trials: int) -> Floats:
    """A spread that grows by 5 % from trial to trial, .1 % at first."""
    return np.asarray(rng.normal(0, SD / 30, (replicates, trials)) * EXPLOSION ** np.arange(trials))


HOSTS: dict[str, Noise] = {
    "period of 1.1 trials": periodic(1.1),
    "period of 2 trials, a block": periodic(2.0),
    "period of 2.2 trials": periodic(2.2),
    "period of 4 trials": periodic(4.0),
    "long memory": long_memory,
    "random walk": random_walk,
    "step": step,
    "two speeds": two_speeds,
    "growing spread": growing,
    "exploding spread": exploding,
}


def rows(replicates: int, seed: int) -> list[Row]:
    """Return for each host how often equal is called different, a margin equivalent, and what intervals hold."""
    rng = np.random.default_rng(seed)
    count = min(replicates, STUDIES_MOST)
    return [row for name, noise in HOSTS.items() for row in _rows(rng, name, noise, count)]


def _rows(rng: np.random.Generator, name: str, noise: Noise, replicates: int) -> Iterator[Row]:
    margin = float(np.log1p(designs.MARGIN))
    d = blocked(rng, noise, replicates, 2, MOST)
    for design, judged in (("fixed 10", _ten), ("sequential", sequential), ("always valid", always_valid)):
        studies = judged(d)
        what = f"{design}, {name}"
        most = limit(ALPHA, replicates)
        yield Row("hosts: A/A different", what, 100 * studies.differs(), "%", None, most)
        yield Row("hosts: coverage", what, 100 * studies.covers(0), "%", 100 - most, None)
        edge = 100 * judged(d + margin).says(Relation.EQUIVALENT)
        yield Row("hosts: equivalent at the margin", what, edge, "%", None, most)


def _ten(d: Floats) -> Studies:
    return fixed(d, FIXED)
