"""Whether the mean lies inside the margin: what the usual block can't show of blocks that are far off.

The signed-rank procedures are about the usual block. A treatment that stalls in one block of ten is like another one in
nine, and its user waits all the same. So *equivalent* asks the mean of the log ratios, too: two one-sided t tests
(Schuirmann 1987). Both tests must hold, so that whatever either of them guards against stays guarded against.
"""

import numpy as np

from dbdyno.analysis.statistics.arrays import Floats
from dbdyno.analysis.statistics.scipy_special import special
from dbdyno.analysis.statistics.welch import freedom


def p_beyond(d: Floats, bound: float | Floats) -> Floats:
    """Return the p of "the mean is as far from 0 as ``bound`` or farther", shape (...) of ``d``, shape (..., n).

    That of fewer than 2 values, or of a bound that is not above 0, is 1.
    """
    n = d.shape[-1]
    if n < 2:  # noqa: PLR2004
        return np.ones(d.shape[:-1])
    room = np.asarray(bound - np.abs(np.mean(d, axis=-1)))
    return _p_of_room(room, np.asarray(np.std(d, axis=-1, ddof=1)) / np.sqrt(n), n - 1)


def p_beyond_of_two(first: Floats, second: Floats, bound: float | Floats) -> Floats:
    """Return the p of "the means of two groups differ by ``bound`` or more", variances unequal (Welch 1947).

    The groups have shapes (..., n) and (..., m), the result (...); that of fewer than 2 values in a group is 1.
    """
    n, m = first.shape[-1], second.shape[-1]
    room = np.asarray(bound - np.abs(np.mean(second, axis=-1) - np.mean(first, axis=-1)))
    if min(n, m) < 2:  # noqa: PLR2004
        return np.ones(room.shape)
    a, b = np.var(first, axis=-1, ddof=1) / n, np.var(second, axis=-1, ddof=1) / m
    with np.errstate(divide="ignore", invalid="ignore"):
        of_both = freedom(a, b, n, m)
    return _p_of_room(room, np.asarray(np.sqrt(a + b)), of_both)


def _p_of_room(room: Floats, error: Floats, degrees: float | Floats) -> Floats:
    """Return the p of "the truth is beyond the bound", of how far the mean is from it and its standard error."""
    with np.errstate(divide="ignore", invalid="ignore"):
        p = special.stdtr(degrees, -room / error)
    return np.where(error > 0, p, np.where(room > 0, 0.0, 1.0))
