"""Percentiles of a histogram that a program printed."""

import math
from collections.abc import Mapping
from itertools import accumulate

from dbdyno.model.metrics import PERCENTILES


def percentiles(buckets: Mapping[int, int] | Mapping[float, int]) -> dict[str, float]:
    """Percentiles of value -> count: the smallest value that so large a share does not exceed; empty of nothing."""
    ordered = sorted(buckets.items())
    sums = list(accumulate(times for _, times in ordered))
    if not sums or not sums[-1]:
        return {}
    found = {}
    for name, share in PERCENTILES.items():
        rank = math.ceil(share * sums[-1])
        found[name] = float(next(value for (value, _), below in zip(ordered, sums, strict=True) if below >= rank))
    return found
