"""A straight trend in values whose neighbours are alike: its interval must not take them for independent.

Model: ``y_i = level of its group + slope * place_i + noise``. The noise may forget, AR(1), what two values have in
common being ``rho`` to the power of how many places lie between them; it may have a long memory, or be a walk
(``long_memory``). Which is unknown, and of few values it is estimated badly, so it is not estimated: the slope's
distribution (Student's t around generalised least squares, for each kind of noise) is averaged over all kinds, each
weighed by how well it explains the values. The three families have the same weight beforehand. Source: Zellner and Tiao
1964, with a flat prior.
"""

import numpy as np

from dbdyno.analysis.statistics.arrays import Floats, Ints
from dbdyno.analysis.statistics.estimate import Estimate
from dbdyno.analysis.statistics.long_memory import covariances
from dbdyno.analysis.statistics.scipy_special import special

SPARE_MIN = 8  # values beyond one per unknown; of fewer the interval says nothing
_RHO = np.linspace(-0.9, 0.95, 38)
MOST = 120  # values; neighbours of more are put together
_BISECTIONS = 60
_REACH = 1000  # standard errors; where the search for an end of the interval begins


def trend(places: Ints, groups: Ints, values: Floats, level: float = 0.95, *, long_memory: bool = True) -> Estimate:
    """Return the slope per place with its interval; all arguments have shape (n,), places ascend.

    ``groups`` are numbers from 0: values of a group share a level. Unknown where the values are too few.
    Without ``long_memory`` the noise is AR(1): a straight line is then never taken for a walk.
    """
    n, unknowns = len(values), int(groups.max(initial=-1)) + 2
    if n < unknowns + SPARE_MIN:
        return Estimate.unknown(n)
    if n > MOST:
        places, groups, values = _pooled(places, groups, values)
        unknowns = 2
    x = np.zeros((len(values), unknowns))
    x[np.arange(len(values)), groups] = 1
    x[:, -1] = places - places.mean()
    y = values - values.mean()
    remembering = (_remembering(each, x, y) for each in (covariances(places) if long_memory else ()))
    weights, slopes, errors = _together((_forgetting(places, x, y), *remembering))
    freedom = len(values) - unknowns
    value, low, high = (_quantile(weights, slopes, errors, freedom, p) for p in (0.5, (1 - level) / 2, (1 + level) / 2))
    return Estimate(value, low, high, n)


def _pooled(places: Ints, groups: Ints, values: Floats) -> tuple[Ints, Ints, Floats]:
    """Return at most ``MOST`` values: the groups' levels are taken out, and neighbours' means stand for them."""
    levels = np.bincount(groups, values) / np.bincount(groups)
    parts = np.array_split(np.arange(len(values)), MOST)
    left = values - levels[groups]
    means = np.array([left[part].mean() for part in parts])
    # In parts as long as each other; places between trials that are missing are too few to matter here.
    middle = np.array([round(float(places[part].mean())) for part in parts], dtype=np.int64)
    return middle, np.zeros(MOST, dtype=np.int64), means


_Family = tuple[Floats, Floats, Floats]  # log weight, slope and the slope's standard error, of each kind of noise


def _together(families: tuple[_Family, ...]) -> _Family:
    """Return weights that add up to 1, slopes and standard errors of all kinds; each family begins with the same."""
    logs = np.concatenate([log_weight - np.log(len(log_weight)) for log_weight, _, _ in families])
    weights = np.exp(logs - logs.max())
    slopes, errors = (np.concatenate([family[part] for family in families]) for part in (1, 2))
    return weights / weights.sum(), slopes, errors


def _forgetting(places: Ints, x: Floats, y: Floats) -> _Family:
    """Return what each rho of AR(1) noise makes of the values.

    Subtracting ``rho^gap`` times the value before makes the noise of all values independent, and dividing by what is
    left of it makes it equal.
    """
    unknowns = x.shape[1]
    kept = _RHO[:, None] ** np.diff(places)
    left = np.sqrt(1 - kept**2)
    white_y = np.concatenate((np.full((len(_RHO), 1), y[0]), (y[1:] - kept * y[:-1]) / left), axis=1)
    first = np.broadcast_to(x[0], (len(_RHO), 1, unknowns))
    white_x = np.concatenate((first, (x[1:] - kept[..., None] * x[:-1]) / left[..., None]), axis=1)
    return _fitted(white_x, white_y, np.log(left).sum(axis=1))


def _remembering(covariance: Floats, x: Floats, y: Floats) -> _Family:
    """Return what noise of each covariance, shape (kinds, n, n), makes of the values."""
    roots = np.linalg.cholesky(covariance)
    both = np.concatenate((x, y[:, None]), axis=1)
    white = np.linalg.solve(roots, np.broadcast_to(both, (len(roots), *both.shape)))
    size = np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
    return _fitted(white[..., :-1], white[..., -1], size)


def _fitted(white_x: Floats, white_y: Floats, log_size: Floats) -> _Family:
    """Return the fit to values whose noise has been made independent, for each kind of noise.

    ``log_size`` is half the logarithm of the covariance's determinant. The weight is the likelihood with levels, slope
    and variance integrated out.
    """
    n, unknowns = white_x.shape[1:]
    inner = white_x.transpose(0, 2, 1) @ white_x
    found = np.linalg.solve(inner, white_x.transpose(0, 2, 1) @ white_y[..., None])
    squares = np.sum((white_y - (white_x @ found)[..., 0]) ** 2, axis=1)
    # Of an exact line: rounding, no noise.
    squares = np.maximum(squares, np.maximum(1e-24 * np.sum(white_y**2, axis=1), 1e-300))
    log_weight: Floats = -log_size - np.linalg.slogdet(inner)[1] / 2 - (n - unknowns) / 2 * np.log(squares)
    errors: Floats = np.sqrt(squares / (n - unknowns) * np.linalg.inv(inner)[:, -1, -1])
    slopes = np.asarray(found[:, -1, 0], dtype=np.float64)
    return log_weight, slopes, errors


def _quantile(weights: Floats, slopes: Floats, errors: Floats, freedom: int, p: float) -> float:
    low, high = float(np.min(slopes - _REACH * errors)), float(np.max(slopes + _REACH * errors))
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if float(weights @ special.stdtr(freedom, (middle - slopes) / errors)) < p:
            low = middle
        else:
            high = middle
    return (low + high) / 2
