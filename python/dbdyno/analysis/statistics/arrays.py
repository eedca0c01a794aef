"""Arrays by what they hold."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


def median(values: npt.ArrayLike) -> float:
    """Return the median of one or more numbers, none of them NaN: as numpy's, which for few takes longer."""
    found = np.asarray(values, dtype=np.float64)
    low, high = (len(found) - 1) // 2, len(found) // 2
    ordered = np.partition(found, (low, high))
    return float((ordered[low] + ordered[high]) / 2)
