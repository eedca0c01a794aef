"""How fast the differences grow from block to block: then a later look has less in common with those before it.

Whether the looks together err in 5 % depends on how alike they are. Given the sizes of the differences only their signs
are left to chance, each by itself, so the correlation of the signed-rank statistics of two looks is known: that of the
ranks that the sizes of the first have at either look. Of n blocks of which all are alike it is as that of a Brownian
motion at the times n; where sizes grow, as at the times ``n ** growth``. Between 1 (alike) and 3 (each larger than all
before it); shrinking sizes, which make looks more alike, are taken as 1.
"""

from itertools import pairwise

import numpy as np

from dbdyno.analysis.statistics.arrays import Bools, Floats
from dbdyno.analysis.statistics.exact import TIE

STEADY, STEEPEST, STEP = 1.0, 3.0, 0.5
ALIKE = 0.6  # The ratio is 1 for equal sizes, 5/9 for sizes spread evenly from 0 up, and 1/3 for normal noise.


def growth(d: Floats, looks: tuple[int, ...]) -> Floats:
    """Return the growth of log ratios of shape (..., n), shape (...), over looks after ``looks`` of them, rounded."""
    if len(looks) < 2:  # noqa: PLR2004
        return np.full(d.shape[:-1], STEADY)
    sizes, apart = np.abs(d), np.zeros(d.shape[:-1])
    ranks = [_ranks(sizes[..., :look]) for look in looks]
    for before, now in pairwise(ranks):
        common = np.sum(before * now[..., : before.shape[-1]], axis=-1)
        apart -= np.log(common**2 / (np.sum(before**2, axis=-1) * np.sum(now**2, axis=-1)))
    found = apart / np.log(looks[-1] / looks[0])
    return np.asarray(np.clip(np.round(found / STEP) * STEP, STEADY, STEEPEST))


def are_alike(d: Floats) -> Bools:
    """Return whether the sizes of log ratios of shape (..., n) are about one size, shape (...).

    That is where ``(sum of d^2)^2 / (n sum of d^4)`` is near 1: of an effect that is large against the spread, and of
    noise that has two values, as from a job that hits one trial of every block. Signs are not looked at.
    """
    squares = (d / np.maximum(np.max(np.abs(d), axis=-1, keepdims=True), TIE)) ** 2
    fourth = np.maximum(np.sum(squares**2, axis=-1), TIE)
    return np.asarray(np.sum(squares, axis=-1) ** 2 > ALIKE * d.shape[-1] * fourth)


def _ranks(sizes: Floats) -> Floats:
    order = np.argsort(sizes, axis=-1, kind="stable")
    return np.asarray(np.argsort(order, axis=-1) + 1, dtype=np.float64)
