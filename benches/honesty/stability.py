"""Stability of a series and drift over a run: how often a detector sees what is not there, or misses what is.

Series last 600 s at 1 Hz, with noise of 3 % that neighbours share (AR(1) .6 and .9). What is added is told by the rows.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from benches.honesty.noise import autoregressive
from benches.honesty.row import Row
from dbdyno.analysis.over_time import Kind, classify
from dbdyno.analysis.statistics import trend

Floats = npt.NDArray[np.float64]

SAMPLES = 600
COVERAGE = 93.0  # %
FOUND = 95.0  # %
STEADY = {0.6: 95.0, 0.9: 85.0}  # %
STALLS = 0.05  # of all seconds
SERIES_MAX = 1000  # of each kind; more would take minutes and say little more
RUNS_MAX = 2000


def rows(replicates: int, seed: int) -> list[Row]:
    """Return the rows; ``replicates`` is the number of series or runs behind each figure, up to a maximum."""
    rng = np.random.default_rng(seed)
    return [*_class_rows(rng, min(replicates, SERIES_MAX)), *_drift_rows(rng, min(replicates, RUNS_MAX))]


def _class_rows(rng: np.random.Generator, series: int) -> list[Row]:
    """Every shape is to be called by its own name; how often is judged, but for small bimodal series and drifts."""
    found = []
    for rho, steady in STEADY.items():
        for name, kind, shape, limit in SHAPES:
            said = [classify(np.arange(1.0, SAMPLES + 1), shape(rng, rho)).kind for _ in range(series)]
            share = 100 * float(np.mean([each == kind for each in said]))
            low = steady if kind == "steady" else limit
            slack = 200 * float(np.sqrt(low / 100 * (1 - low / 100) / series)) if low else 0.0
            found.append(Row(f"stability, AR(1) {rho:g}", name, share, "%", low and low - slack, None))
    return found


def _base(rng: np.random.Generator, rho: float) -> Floats:
    return 60 * np.exp(autoregressive(rng, 1, SAMPLES, rho)[0])


def _stepped(rng: np.random.Generator, rho: float) -> Floats:
    later = np.arange(SAMPLES) >= rng.uniform(0.25, 0.8) * SAMPLES
    return _base(rng, rho) * (1 + 0.1 * rng.choice([-1, 1]) * later)


def _sawtooth(rng: np.random.Generator, rho: float) -> Floats:
    """A ramp and a drop, or the other way round, 20 % from top to bottom, periods of 5 to 60 s."""
    period = np.exp(rng.uniform(np.log(5), np.log(60)))
    ramp = (np.arange(SAMPLES) / period + rng.uniform()) % 1
    return _base(rng, rho) * (1 + 0.2 * rng.choice([-1, 1]) * (ramp - 0.5))


def _jagged(rng: np.random.Generator, rho: float) -> Floats:
    """One second in 20 does 20 to 60 % of the rest."""
    return _base(rng, rho) * np.where(rng.random(SAMPLES) < STALLS, rng.uniform(0.2, 0.6, SAMPLES), 1)


def _bimodal(apart: float) -> Callable[[np.random.Generator, float], Floats]:
    """Return series on two levels, each held for 1 to 5 s on the average."""

    def made(rng: np.random.Generator, rho: float) -> Floats:
        low = np.cumsum(rng.random(SAMPLES) < 1 / rng.uniform(1, 5)) % 2
        return _base(rng, rho) * (1 - apart * low)

    return made


def _drifting(rng: np.random.Generator, rho: float) -> Floats:
    return _base(rng, rho) * (1 + 0.2 * np.arange(SAMPLES) / SAMPLES)


SHAPES: tuple[tuple[str, Kind, Callable[[np.random.Generator, float], Floats], float | None], ...] = (
    ("steady", "steady", _base, None),
    ("one change of regime by 10 %", "regime change", _stepped, FOUND),
    ("sawtooth of 20 %, period 5 to 60 s", "sawtooth", _sawtooth, FOUND),
    ("jagged, 5 % of the time at 20 to 60 %", "jagged", _jagged, FOUND),
    ("bimodal, 20 % apart", "bimodal", _bimodal(0.2), FOUND),
    ("bimodal, 10 % apart", "bimodal", _bimodal(0.1), None),
    ("drift of 20 %", "drift", _drifting, None),
)


def _drift_rows(rng: np.random.Generator, replicates: int) -> list[Row]:
    """Coverage of the interval of the drift: two treatments in random order inside blocks, no true drift."""
    found = []
    for rho in (0.0, 0.6):
        for trials in (20, 40, 80):
            covered = np.mean([_covers(rng, trials, rho) for _ in range(replicates)])
            name = f"covers, {trials} trials, {f'AR(1) {rho:g}' if rho else 'iid'}"
            low = COVERAGE - 2 * float(np.sqrt(COVERAGE * (100 - COVERAGE) / replicates))  # two standard errors
            # It allows for noise with a memory, which this need not have: it may hold more than it says.
            found.append(Row("drift of a run", name, 100 * float(covered), "%", low, None))
    return found


def _covers(rng: np.random.Generator, trials: int, rho: float) -> bool:
    values = autoregressive(rng, 1, trials, rho)[0]
    treatments = rng.permuted(np.tile([0, 1], (trials // 2, 1)), axis=1).ravel()
    found = trend(np.arange(trials), treatments, values)
    return found.low <= 0 <= found.high
