"""How much of a series is warm-up: MSER-5, which leaves out as much as makes the mean of the rest most certain.

Source: White, Cobb and Spratt, "A comparison of five steady-state truncation heuristics for simulation", 2000. The
minimum alone is easily drawn to and fro by noise that neighbours share, so what it would leave out counts as warm-up
only if it stands apart from the rest.
"""

from dataclasses import dataclass

import numpy as np

from dbdyno.analysis.statistics.arrays import Floats
from dbdyno.analysis.statistics.noise import BATCH, MATTERS, stands_apart

WARM_UP_MAX = 0.2  # of the series; what changes later than that is no warm-up


@dataclass(frozen=True)
class WarmUp:
    """How many samples are warm-up; ``settled`` is false where it is later than warm-up may be that leaves out most."""

    samples: int
    settled: bool


def warm_up(values: Floats) -> WarmUp:
    """Return the warm-up of a series of shape (n,), n at least 50."""
    late = int(WARM_UP_MAX * len(values))
    cut = mser_5(values, len(values) // 2)
    settled = cut <= late or not _stands_apart(values, cut)
    if cut > late:
        cut = mser_5(values, late)
        cut = 0 if cut > late - BATCH else cut
    return WarmUp(cut if cut and _stands_apart(values, cut) else 0, settled)


def _stands_apart(values: Floats, cut: int) -> bool:
    before, rest = values[:cut], values[cut:]
    differs = abs(float(before.mean() - rest.mean())) >= MATTERS * float(rest.mean())
    return differs and stands_apart(before, rest, rest - rest.mean())


def mser_5(values: Floats, most: int) -> int:
    """Return how many samples to leave out: of batch means z_1 to z_n the d that minimises S(d) / (n - d)^2.

    S(d) is the sum of squares of the last n - d around their mean; d is at most ``most`` samples, of a series half of
    it: a minimum on that boundary means that there is no steady state.
    """
    whole = len(values) // BATCH
    batches = values[: whole * BATCH].reshape(whole, BATCH).mean(axis=1)
    latest_first = batches[::-1] - batches.mean()  # sums over the last m become running sums
    m = np.arange(1, whole + 1)
    squares = np.cumsum(latest_first**2) - np.cumsum(latest_first) ** 2 / m
    certain = (squares / m**2)[::-1][: most // BATCH + 1]
    return int(np.argmin(certain)) * BATCH
