"""Where a series changes its level for good: change points that are more than the noise neighbours share.

The usual penalties for change points (BIC and the like) suppose independent samples and see shifts everywhere in data
taken per second. Here a number of shifts is believed only if each stands apart from its neighbours by the long-run
variance of what is left, matters, and if levels explain the series better than a smooth curve.
"""

from functools import lru_cache
from itertools import pairwise

import numpy as np

from dbdyno.analysis.statistics.arrays import Bools, Floats, median
from dbdyno.analysis.statistics.noise import MATTERS, STANDARD_ERRORS, curve, long_run_variance, robust_sd, stands_apart

SHIFTS_MAX = 4
SPIKE = 5.0  # standard deviations
PIECES = 120  # the search is among so many places; then each is moved to the very sample
SHORTEST = 6  # pieces, a twentieth of a long series; what lasts shorter is no regime


def shifts(values: Floats) -> list[int]:
    """Return the first sample of every new level, ascending; nothing where the level is one. Shape (n,), n >= 50."""
    size = max(1, len(values) // PIECES)
    values = _without_spikes(values)
    smooth = float(np.sum((values - curve(values)) ** 2))
    matters = MATTERS * median(values)
    sums = np.concatenate(([0.0], np.cumsum(values - values.mean())))
    found: list[int] = []
    for pieces in _partitions(values[: len(values) // size * size].reshape(-1, size).mean(axis=1)):
        edges = _refined(sums, [piece * size for piece in pieces], size)
        parts = [values[start:end] for start, end in pairwise([0, *edges, len(values)])]
        # Parts may be too short only because the search is by pieces.
        if min(map(len, parts)) >= SHORTEST * size and _believed(parts, smooth, matters):
            found = edges
    return found


def _without_spikes(values: Floats) -> Floats:
    """Clip what is more than 5 standard deviations (by the median absolute deviation) off: a stall is no new level."""
    middle, spread = median(values), SPIKE * robust_sd(values)
    return np.clip(values, middle - spread, middle + spread) if spread > 0 else values


def _partitions(means: Floats) -> list[list[int]]:
    """Return the partitions into 2, 3, ... levels with the least squares: the first place of each level but the first.

    Exact, by dynamic programming over all places (Bellman 1961); levels are at least ``SHORTEST`` long.
    """
    n = len(means)
    centred = means - means.mean()
    sums, squares = (np.concatenate(([0.0], np.cumsum(each))) for each in (centred, centred**2))
    length, allowed = _lengths(n)
    cost = squares[None, :] - squares[:, None] - (sums[None, :] - sums[:, None]) ** 2 / length
    cost[~allowed] = np.inf
    best, begun, every = cost[0], [], np.arange(n + 1)
    found = []
    for _ in range(SHIFTS_MAX):
        totals = best[:, None] + cost  # (start of the last level, end)
        begun.append(np.argmin(totals, axis=0))
        best = totals[begun[-1], every]
        if not np.isfinite(best[n]):
            break
        places = [n]
        for level in reversed(begun):
            places.append(int(level[places[-1]]))
        found.append(sorted(places[1:]))
    return found


@lru_cache(maxsize=8)
def _lengths(n: int) -> tuple[Floats, Bools]:
    """Return the length of a level from each place to each other, at least 1, and whether it is long enough."""
    places = np.arange(n + 1)
    length = places[None, :] - places[:, None]
    return np.maximum(length, 1).astype(np.float64), length >= SHORTEST


def _refined(sums: Floats, edges: list[int], reach: int) -> list[int]:
    """Move each edge, within ``reach`` samples, to where the levels on both sides fit best."""
    moved = [0, *edges, len(sums) - 1]
    for i in range(1, len(moved) - 1):
        start, end = moved[i - 1], moved[i + 1]
        first = max(start + 1, moved[i] - reach)
        left = np.arange(first, min(end - 1, moved[i] + reach) + 1) - start
        # Less the mean of both sides the sum of one is the opposite of the other's.
        before = sums[left + start] - sums[start] - left * ((sums[end] - sums[start]) / (end - start))
        moved[i] = first + int(np.argmax(before**2 / left + before**2 / (end - start - left)))
    return moved[1:-1]


def _believed(parts: list[Floats], smooth: float, matters: float) -> bool:
    if any(abs(one - other) < matters for one, other in pairwise(map(median, parts))):
        return False
    residuals = np.concatenate([part - part.mean() for part in parts])
    # A free place of one more level soaks up noise, as the steepest step in it would.
    free = (len(parts) - 2) * STANDARD_ERRORS**2 * long_run_variance(residuals, len(parts))
    if float(residuals @ residuals) + free >= smooth:
        return False
    return all(stands_apart(one, other, residuals, unknowns=len(parts)) for one, other in pairwise(parts))
