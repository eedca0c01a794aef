"""Holm's correction: the more comparisons, the stricter each."""

from collections.abc import Sequence

import numpy as np


def holm(p: Sequence[float]) -> list[float]:
    """Return the Holm-adjusted p in the order given: at most ``alpha`` for any wrong rejection in the family.

    Holm 1979: the i-th smallest of m is multiplied by m - i + 1, made monotone, cut at 1.
    """
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    factors = np.arange(len(values), 0, -1)
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(np.maximum.accumulate(values[order] * factors), 1.0)
    return [float(value) for value in adjusted]
