"""Corrections for many tests: Holm for verdicts, Benjamini and Hochberg for screening."""

import numpy as np
import numpy.typing as npt

from dbdyno.analysis.statistics.estimate import Floats, Ints


def holm(p: npt.ArrayLike) -> Floats:
    """Return the Holm-adjusted p, those of one family on the last axis: at most ``alpha`` for any wrong rejection.

    Holm 1979: the i-th smallest of m is multiplied by m - i + 1, made monotone, cut at 1.
    """
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values, axis=-1, kind="stable")
    factors = np.arange(values.shape[-1], 0, -1) if values.ndim else np.ones(())
    raised = np.maximum.accumulate(np.take_along_axis(values, order, axis=-1) * factors, axis=-1)
    return _back(np.minimum(raised, 1.0), order)


def holm_levels(p: npt.ArrayLike, alpha: float) -> Floats:
    """Return the level at which to show each interval of a family, so that it excludes 0 exactly where Holm rejects.

    Those of one family are on the last axis, as of ``holm``; results have the same shape. Of m, the i-th smallest p
    that is rejected was held against ``alpha / (m - i + 1)``. All that are not rejected were held, in effect, against
    the level at which the procedure stopped: that of the first rank not rejected. Equal p have the level of the first
    of their ranks, which is the strictest, so that their order says nothing. Each interval covers at least
    ``1 - alpha``; that all of a family cover at once is not promised, of those that were rejected.
    """
    values = np.asarray(p, dtype=np.float64)
    m, smaller = values.shape[-1], np.sum(values[..., None, :] < values[..., :, None], axis=-1)
    rejected = holm(values) <= alpha
    stopped = np.sum(rejected, axis=-1, keepdims=True)  # how many came before the first that is not rejected
    return np.asarray(alpha / (m - np.where(rejected, smaller, stopped)), dtype=np.float64)


def benjamini_hochberg(p: npt.ArrayLike) -> Floats:
    """Return the p adjusted to bound the share of wrong ones among those called different.

    Benjamini and Hochberg 1995: the i-th smallest of m is multiplied by m / i, made monotone from above, cut at 1.
    """
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values, axis=-1, kind="stable")
    m = values.shape[-1]
    scaled = np.take_along_axis(values, order, axis=-1) * m / np.arange(1, m + 1)
    lowered = np.flip(np.minimum.accumulate(np.flip(scaled, axis=-1), axis=-1), axis=-1)
    return _back(np.minimum(lowered, 1.0), order)


def _back(adjusted: Floats, order: Ints) -> Floats:
    placed = np.empty_like(adjusted)
    np.put_along_axis(placed, order, adjusted, axis=-1)
    return placed
