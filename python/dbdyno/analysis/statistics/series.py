"""The noise of a series whose neighbours are alike, and whether two parts of it differ by more than that noise."""

import numpy as np

from dbdyno.analysis.statistics.estimate import Estimate, Floats, Ints, median
from dbdyno.analysis.statistics.scipy_special import special

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
    innovations = residuals[1:] - rho * residuals[:-1]
    return float(innovations @ innovations) / (n - unknowns) / (1 - rho) ** 2


def stands_apart(first: Floats, second: Floats, residuals: Floats, unknowns: int = 1) -> bool:
    """Return whether two neighbouring parts differ by more than noise, that of ``residuals``, would make them."""
    length = len(first) * len(second) / (len(first) + len(second))
    apart = float(first.mean() - second.mean())
    return apart**2 * length > STANDARD_ERRORS**2 * long_run_variance(residuals, unknowns)


def curve(values: Floats) -> Floats:
    """Return the parabola with the least squares through the values, shape (n,)."""
    places = np.linspace(-1, 1, len(values))
    slope = float(places @ values) / float(places @ places)
    bend = places**2 - float(np.mean(places**2))
    return float(values.mean()) + slope * places + bend * (float(bend @ values) / float(bend @ bend))


# Noise that remembers: covariances of series whose far neighbours are alike, for a trend among such noise.
#
# AR(1) noise forgets: what two values have in common halves every so many places. Hosts don't: a neighbour, a disk that
# fills and heat last for minutes as for hours. Here are fractional noise (Hosking 1981; d below 1/2, stationary),
# fractional walks (Mandelbrot and Van Ness 1968; H = d - 1/2), and walks beside noise that is each value's own.


FRACTIONAL = (0.1, 0.2, 0.3, 0.4, 0.47)  # d
WALKS = (0.1, 0.25, 0.4, 0.5, 0.65)  # H
OWN_NOISE = (1.0, 3.0, 10.0)  # variance beside a walk's, in that of its steps


def covariances(places: Ints) -> tuple[Floats, Floats]:
    """Return those of stationary noise and of walks, shape (kinds, n, n), for values at ascending ``places``."""
    since = (places - places[0] + 1).astype(np.float64)
    apart = np.abs(places[:, None] - places[None, :])
    fractional = [_autocovariance(d, int(apart.max(initial=0)))[apart] for d in FRACTIONAL]
    walks = [_walk(since, apart, exponent) for exponent in WALKS]
    noisy_walks = [_walk(since, apart, 0.5) + variance * np.eye(len(places)) for variance in OWN_NOISE]
    return np.stack(fractional), np.stack([*walks, *noisy_walks])


def _autocovariance(d: float, longest: int) -> Floats:
    """Return that of fractional noise at lags 0 .. longest: 1, and each (k-1+d) / (k-d) of the last."""
    lags = np.arange(1, longest + 1)
    return np.concatenate(([1.0], np.cumprod((lags - 1 + d) / (lags - d))))


def _walk(since: Floats, apart: Ints, exponent: float) -> Floats:
    power = 2 * exponent
    return np.asarray((since[:, None] ** power + since[None, :] ** power - apart.astype(np.float64) ** power) / 2)


# A straight trend in values whose neighbours are alike: its interval must not take them for independent.
#
# Model: ``y_i = level of its group + slope * place_i + noise``. The noise may forget, AR(1), what two values have in
# common being ``rho`` to the power of how many places lie between them; it may have a long memory, or be a walk
# (``long_memory``). Which is unknown, and of few values it is estimated badly, so it is not estimated: the slope's
# distribution (Student's t around generalised least squares, for each kind of noise) is averaged over all kinds, each
# weighed by how well it explains the values. The three families have the same weight beforehand. Source: Zellner and
# Tiao 1964, with a flat prior.


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
        places, groups, values = _pool_neighbours(places, groups, values)
        unknowns = 2
    x = np.zeros((len(values), unknowns))
    x[np.arange(len(values)), groups] = 1
    x[:, -1] = places - places.mean()
    y = values - values.mean()
    remembering = (_fit_covariance(covariance, x, y) for covariance in (covariances(places) if long_memory else ()))
    weights, slopes, errors = _join_families((_fit_ar1(places, x, y), *remembering))
    freedom = len(values) - unknowns
    value, low, high = (_quantile(weights, slopes, errors, freedom, p) for p in (0.5, (1 - level) / 2, (1 + level) / 2))
    return Estimate(value, low, high, n)


def _pool_neighbours(places: Ints, groups: Ints, values: Floats) -> tuple[Ints, Ints, Floats]:
    """Return at most ``MOST`` values: the groups' levels are taken out, and neighbours' means stand for them."""
    levels = np.bincount(groups, values) / np.bincount(groups)
    parts = np.array_split(np.arange(len(values)), MOST)
    residuals = values - levels[groups]
    means = np.array([residuals[part].mean() for part in parts])
    # In parts as long as each other; places between trials that are missing are too few to matter here.
    middle = np.array([round(float(places[part].mean())) for part in parts], dtype=np.int64)
    return middle, np.zeros(MOST, dtype=np.int64), means


_Family = tuple[Floats, Floats, Floats]  # log weight, slope and the slope's standard error, of each kind of noise


def _join_families(families: tuple[_Family, ...]) -> _Family:
    """Return weights that add up to 1, slopes and standard errors of all kinds; each family begins with the same."""
    logs = np.concatenate([log_weight - np.log(len(log_weight)) for log_weight, _, _ in families])
    weights = np.exp(logs - logs.max())
    slopes, errors = (np.concatenate([family[part] for family in families]) for part in (1, 2))
    return weights / weights.sum(), slopes, errors


def _fit_ar1(places: Ints, x: Floats, y: Floats) -> _Family:
    """Return what each rho of AR(1) noise makes of the values.

    Subtracting ``rho^gap`` times the value before makes the noise of all values independent, and dividing by what is
    left of it makes it equal.
    """
    unknowns = x.shape[1]
    correlation = _RHO[:, None] ** np.diff(places)
    deviation = np.sqrt(1 - correlation**2)
    white_y = np.concatenate((np.full((len(_RHO), 1), y[0]), (y[1:] - correlation * y[:-1]) / deviation), axis=1)
    first = np.broadcast_to(x[0], (len(_RHO), 1, unknowns))
    white_x = np.concatenate((first, (x[1:] - correlation[..., None] * x[:-1]) / deviation[..., None]), axis=1)
    return _fit_independent(white_x, white_y, np.log(deviation).sum(axis=1))


def _fit_covariance(covariance: Floats, x: Floats, y: Floats) -> _Family:
    """Return what noise of each covariance, shape (kinds, n, n), makes of the values."""
    roots = np.linalg.cholesky(covariance)
    columns = np.concatenate((x, y[:, None]), axis=1)
    white = np.linalg.solve(roots, np.broadcast_to(columns, (len(roots), *columns.shape)))
    size = np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
    return _fit_independent(white[..., :-1], white[..., -1], size)


def _fit_independent(white_x: Floats, white_y: Floats, log_size: Floats) -> _Family:
    """Return the fit to values whose noise has been made independent, for each kind of noise.

    ``log_size`` is half the logarithm of the covariance's determinant. The weight is the likelihood with levels, slope
    and variance integrated out.
    """
    n, unknowns = white_x.shape[1:]
    inner = white_x.transpose(0, 2, 1) @ white_x
    coefficients = np.linalg.solve(inner, white_x.transpose(0, 2, 1) @ white_y[..., None])
    squares = np.sum((white_y - (white_x @ coefficients)[..., 0]) ** 2, axis=1)
    # Of an exact line: rounding, no noise.
    squares = np.maximum(squares, np.maximum(1e-24 * np.sum(white_y**2, axis=1), 1e-300))
    log_weight: Floats = -log_size - np.linalg.slogdet(inner)[1] / 2 - (n - unknowns) / 2 * np.log(squares)
    errors: Floats = np.sqrt(squares / (n - unknowns) * np.linalg.inv(inner)[:, -1, -1])
    slopes = np.asarray(coefficients[:, -1, 0], dtype=np.float64)
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
