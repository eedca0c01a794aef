"""A straight trend in values whose neighbours are alike: its interval must not take them for independent.

Model: ``y_i = level of its group + slope * place_i + noise``, the noise being AR(1): what two values have in common is
``rho`` to the power of how many places lie between them. Nobody knows rho, and of few values it is estimated badly, so
it is not estimated: the slope's distribution (Student's t around generalised least squares, for each rho) is averaged
over all rho, each weighed by how well it explains the values. Source: Zellner and Tiao 1964, with a flat prior.
"""

import numpy as np
import numpy.typing as npt
from scipy.special import stdtr

from dbdyno.analysis.estimate import Estimate

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

SPARE_MIN = 8  # values beyond one per unknown; of fewer the interval says nothing
_RHO = np.linspace(-0.9, 0.95, 38)
_BISECTIONS = 60
_REACH = 1000  # standard errors; where the search for an end of the interval begins


def trend(places: Ints, groups: Ints, values: Floats, level: float = 0.95) -> Estimate:
    """Return the slope per place with its interval; all arguments have shape (n,), places ascend.

    ``groups`` are numbers from 0: values of a group share a level. Unknown where the values are too few.
    """
    n, unknowns = len(values), int(groups.max(initial=-1)) + 2
    if n < unknowns + SPARE_MIN:
        return Estimate.unknown(n)
    x = np.zeros((n, unknowns))
    x[np.arange(n), groups] = 1
    x[:, -1] = places - places.mean()
    weights, slopes, errors = _slopes(places, x, values - values.mean())
    value, low, high = (
        _quantile(weights, slopes, errors, n - unknowns, p) for p in (0.5, (1 - level) / 2, (1 + level) / 2)
    )
    return Estimate(value, low, high, n)


def _slopes(places: Ints, x: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
    """Return for each rho its weight, the slope and the slope's standard error, shape (rho,) each.

    Subtracting ``rho^gap`` times the value before makes the noise of all values independent, and dividing by what is
    left of it makes it equal. The weight is the likelihood with levels, slope and variance integrated out.
    """
    n, unknowns = x.shape
    kept = _RHO[:, None] ** np.diff(places)
    left = np.sqrt(1 - kept**2)
    white_y = np.concatenate((np.full((len(_RHO), 1), y[0]), (y[1:] - kept * y[:-1]) / left), axis=1)
    first = np.broadcast_to(x[0], (len(_RHO), 1, unknowns))
    white_x = np.concatenate((first, (x[1:] - kept[..., None] * x[:-1]) / left[..., None]), axis=1)
    inner = white_x.transpose(0, 2, 1) @ white_x
    found = np.linalg.solve(inner, white_x.transpose(0, 2, 1) @ white_y[..., None])
    squares = np.sum((white_y - (white_x @ found)[..., 0]) ** 2, axis=1)
    squares = np.maximum(squares, max(1e-24 * float(y @ y), 1e-300))  # of an exact line: rounding, no noise
    log_weight = -np.log(left).sum(axis=1) - np.linalg.slogdet(inner)[1] / 2 - (n - unknowns) / 2 * np.log(squares)
    weights = np.exp(log_weight - log_weight.max())
    errors = np.sqrt(squares / (n - unknowns) * np.linalg.inv(inner)[:, -1, -1])
    return weights / weights.sum(), found[:, -1, 0], errors


def _quantile(weights: Floats, slopes: Floats, errors: Floats, freedom: int, p: float) -> float:
    low, high = float(np.min(slopes - _REACH * errors)), float(np.max(slopes + _REACH * errors))
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if float(weights @ stdtr(freedom, (middle - slopes) / errors)) < p:
            low = middle
        else:
            high = middle
    return (low + high) / 2
