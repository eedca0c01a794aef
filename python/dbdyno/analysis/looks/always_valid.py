"""The always-valid t sequence: an interval that may be looked at after every block, for as long as anyone likes.

Half-width over the standard error: ``sqrt((n - 1)(r - 1) / (1 - r / (1 + n g)))``, r being the n-th root of
``(1 + n g) / alpha^2`` and g = 1; infinite where ``r >= 1 + n g``. It contains the true mean at all n at once with
probability ``1 - alpha``, if the log ratios are normal. Source: Lai 1976, as the scale-invariant mixture of Wang and
Ramdas, "Anytime-valid t-tests and confidence sequences for Gaussian means with unknown variance", 2023.

All functions take ``d`` of shape (..., n) and work on all leading axes at once.
"""

import numpy as np

from dbdyno.analysis.statistics.arrays import Floats

G = 1.0  # the width of the mixture, in standard deviations


def multiplier(n: int, alpha: float) -> float:
    """Return the half-width in standard errors; infinite while n is too small for ``alpha``."""
    room = 1 + n * G
    r = (room / alpha**2) ** (1 / n)
    if n < 2 or r >= room:  # noqa: PLR2004
        return float(np.inf)
    return float(np.sqrt((n - 1) * (r - 1) / (1 - r / room)))


def interval(d: Floats, alpha: float) -> tuple[Floats, Floats]:
    """Return both ends of the interval of the mean, each of shape (...)."""
    mean, error = _mean_and_error(d)
    with np.errstate(invalid="ignore"):
        half = np.where(error > 0, multiplier(d.shape[-1], alpha) * error, np.inf)
    return mean - half, mean + half


def p_two_sided(d: Floats, value: float | Floats = 0.0) -> Floats:
    """Return the smallest alpha at which the interval excludes ``value``, shape (...); 1 where none below 1 does.

    With ``x = t^2 / (n - 1)`` the interval excludes the value where ``r < (1 + x)(1 + n g) / (1 + n g + x)``.
    """
    n = d.shape[-1]
    mean, error = _mean_and_error(d)
    if n < 2:  # noqa: PLR2004
        return np.ones(mean.shape)
    room = 1 + n * G
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        x = ((mean - value) / error) ** 2 / (n - 1)
        r = np.where(np.isfinite(x), (1 + x) * room / (room + x), room)
        alpha = np.sqrt(room * r ** -float(n))
    return np.where(error > 0, np.minimum(1.0, alpha), 1.0)


def _mean_and_error(d: Floats) -> tuple[Floats, Floats]:
    n = d.shape[-1]
    mean = np.asarray(np.mean(d, axis=-1))
    if n < 2:  # noqa: PLR2004
        return mean, np.full(mean.shape, np.nan)
    return mean, np.asarray(np.std(d, axis=-1, ddof=1)) / np.sqrt(n)
