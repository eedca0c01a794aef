"""The noise of a series whose neighbours are alike, and whether two parts of it differ by more than that noise."""

import numpy as np

from dbdyno.analysis.statistics.arrays import Floats, median

MATTERS = 0.03  # of the level; a smaller shift does not matter
STANDARD_ERRORS = 4.0  # of the steepest step in noise, so that few steady series show one; by simulation
BATCH = 5  # samples
_RHO_MAX = 0.97
NORMAL_MAD = 0.6745  # the median absolute deviation of a standard normal


def robust_sd(values: Floats) -> float:
    """Return the standard deviation of values, shape (n,), by their middle half."""
    return median(np.abs(values - median(values))) / NORMAL_MAD


def long_run_variance(residuals: Floats, unknowns: int = 1) -> float:
    """Return n times the variance of the mean of n values; ``residuals``, shape (n,), are around ``unknowns`` levels.

    That of AR(1) noise, or of AR(1) noise in means of 5 where that is more: of noise of two kinds, one of which is
    shared by neighbours and one not, single samples show only the latter.
    """
    whole = len(residuals) // BATCH
    means = residuals[: whole * BATCH].reshape(whole, BATCH).mean(axis=1)
    return max(_of_ar1(residuals, unknowns), BATCH * _of_ar1(means, unknowns))


def _of_ar1(residuals: Floats, unknowns: int) -> float:
    """Return ``s^2 / (1 - rho)^2``: rho is the first autocorrelation, s^2 what neighbours leave unexplained.

    rho is corrected for what fitting takes away from it, about ``(unknowns + (2 + unknowns) rho) / n`` (Kendall 1954).
    """
    n = len(residuals)
    squares = float(residuals @ residuals)
    if n < unknowns + 5 or squares == 0:
        return squares / max(1, n - unknowns)
    rho = float(residuals[1:] @ residuals[:-1]) / squares
    rho = min(_RHO_MAX, max(0.0, (n * rho + unknowns) / (n - 2 - unknowns)))
    left = residuals[1:] - rho * residuals[:-1]
    return float(left @ left) / (n - unknowns) / (1 - rho) ** 2


def stands_apart(one: Floats, other: Floats, residuals: Floats, unknowns: int = 1) -> bool:
    """Return whether two neighbouring parts differ by more than noise, that of ``residuals``, would make them."""
    length = len(one) * len(other) / (len(one) + len(other))
    apart = float(one.mean() - other.mean())
    return apart**2 * length > STANDARD_ERRORS**2 * long_run_variance(residuals, unknowns)


def curve(values: Floats) -> Floats:
    """Return the parabola with the least squares through the values, shape (n,)."""
    places = np.linspace(-1, 1, len(values))
    slope = float(places @ values) / float(places @ places)
    bend = places**2 - float(np.mean(places**2))
    return float(values.mean()) + slope * places + bend * (float(bend @ values) / float(bend @ bend))
