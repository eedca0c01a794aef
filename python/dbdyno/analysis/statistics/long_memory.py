"""Noise that remembers: covariances of series whose far neighbours are alike, for a trend among such noise.

AR(1) noise forgets: what two values have in common halves every so many places. Hosts don't: a neighbour, a disk that
fills and heat last for minutes as for hours. Here are fractional noise (Hosking 1981; d below 1/2, stationary),
fractional walks (Mandelbrot and Van Ness 1968; H = d - 1/2), and walks beside noise that is each value's own.
"""

import numpy as np

from dbdyno.analysis.statistics.arrays import Floats, Ints

FRACTIONAL = (0.1, 0.2, 0.3, 0.4, 0.47)  # d
WALKS = (0.1, 0.25, 0.4, 0.5, 0.65)  # H
OWN_NOISE = (1.0, 3.0, 10.0)  # variance beside a walk's, in that of its steps


def covariances(places: Ints) -> tuple[Floats, Floats]:
    """Return those of stationary noise and of walks, shape (kinds, n, n), for values at ascending ``places``."""
    since = (places - places[0] + 1).astype(np.float64)
    apart = np.abs(places[:, None] - places[None, :])
    fractional = [_autocovariance(d, int(apart.max(initial=0)))[apart] for d in FRACTIONAL]
    walks = [_walk(since, apart, exponent) for exponent in WALKS]
    both = [_walk(since, apart, 0.5) + own * np.eye(len(places)) for own in OWN_NOISE]
    return np.stack(fractional), np.stack([*walks, *both])


def _autocovariance(d: float, longest: int) -> Floats:
    """Return that of fractional noise at lags 0 .. longest: 1, and each (k-1+d) / (k-d) of the last."""
    lags = np.arange(1, longest + 1)
    return np.concatenate(([1.0], np.cumprod((lags - 1 + d) / (lags - d))))


def _walk(since: Floats, apart: Ints, exponent: float) -> Floats:
    power = 2 * exponent
    return np.asarray((since[:, None] ** power + since[None, :] ** power - apart.astype(np.float64) ** power) / 2)
