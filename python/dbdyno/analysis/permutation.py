"""The exact sign-flip test: what could we have seen, had the two levels changed places inside some blocks.

Inside a block the order of trials was drawn at random, so under the null hypothesis every d_b might as well have
had the other sign. p is the share of the 2^n sign patterns whose mean is at least as far from 0 as the observed one.
"""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

EXACT_TO = 40  # blocks; 2^20 sums in each half
_TIE = 1e-10  # of sum |d|: sums closer than this are one sum, whatever the order of additions did to the last bits
_GRID = 1 << 15


def sign_flip_p(d: Floats) -> float:
    """Return the two-sided p of the mean of ``d``, shape (n,): exact to n = 40, beyond on a fine grid.

    Ties count as "at least as far", so p >= 2 / 2^n and p = 1 where nothing differs.

    Raises:
        ValueError: ``d`` is empty or holds a value that is not finite.

    """
    if not len(d) or not np.isfinite(d).all():
        message = "the sign-flip test needs at least one difference, all finite"
        raise ValueError(message)
    scale = float(np.abs(d).sum())
    threshold = abs(float(d.sum())) - _TIE * scale
    if threshold <= 0:
        return 1.0
    magnitude = np.abs(d)
    one_sided = _tail_exact(magnitude, threshold) if len(d) <= EXACT_TO else _tail_on_grid(magnitude, threshold)
    return min(1.0, 2 * one_sided)


def _tail_exact(magnitude: Floats, threshold: float) -> float:
    """Return the share of sign patterns with a sum >= threshold, by meeting in the middle.

    Horowitz and Sahni 1974: the sums of either half are listed, then every sum of one half looks up how many of the
    other reach the threshold with it: O(n 2^(n/2)) instead of O(2^n).
    """
    half = len(magnitude) // 2
    left, right = _signed_sums(magnitude[:half]), np.sort(_signed_sums(magnitude[half:]))
    short_of = np.searchsorted(right, np.sort(threshold - left), side="left")
    return float(len(left) * len(right) - short_of.sum()) / 2.0 ** len(magnitude)


def _signed_sums(magnitude: Floats) -> Floats:
    sums = np.zeros(1)
    for value in magnitude:
        sums = np.concatenate((sums - value, sums + value))
    return sums


def _tail_on_grid(magnitude: Floats, threshold: float) -> float:
    """Return the same share with magnitudes rounded to a grid; ties within the rounding count, so p is never too small.

    With P the sum of the positive ones, a pattern's sum is ``2 P - total``; P's distribution is one convolution per d.
    """
    unit = float(magnitude.sum()) / _GRID
    steps = np.rint(magnitude / unit).astype(np.int64)
    probability = np.zeros(int(steps.sum()) + 1)
    probability[0] = 1.0
    for step in steps[steps > 0]:
        shifted = np.concatenate((np.zeros(step), probability[:-step]))
        probability = (probability + shifted) / 2
    rounding = len(magnitude) / 2
    sums = 2 * np.arange(len(probability)) - steps.sum()
    return float(probability[sums >= threshold / unit - rounding].sum())
