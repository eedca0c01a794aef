"""Carry-over: what a trial leaves behind for the next one, such as heat, a full cache, a drive's debt of collection.

ln(metric) is modelled as level of the block + effect of the treatment + effect of the *predecessor*, the treatment of
the trial that ran just before, and fitted by least squares. In a random order the predecessor of a treatment is another
one, or the last of the block before, by chance; so both effects can be separated, also of two treatments: of those
half of the blocks begin with what the block before ended with, and in these both trials have the same predecessor.

The model looks one trial back. What a trial leaves for the one *after* the next can pass for carry-over of the other
sign, and a correction made for it would invent a difference: of two treatments in blocks of two both are the same
columns. So nothing is ever judged by the corrected ratios alone. A word must hold for the ratios as measured *and* for
those with the carry-over taken out, and the interval shown spans both:

* *clear* (p at most .01): the estimate is the corrected one, its spread widened by as much as the correction is
  uncertain;
* *likely* (p at most .1): the estimate is the one measured, the spread of the corrected one is widened so, too;
* else: the estimate is the one measured. Four treatments or more are asked only where p is below .3: what a trial
  leaves is then spread over many, and asking always costs 4 points of power for no error that was ever measured;
* it can't be estimated (whole plots, a fixed order, too few blocks): the ratios as measured alone.

Source: Jones and Kenward, "Design and Analysis of Cross-Over Trials", 3rd edition, chapters 1 and 5. That a preliminary
test alone is not enough: Freeman, "The performance of the two-stage analysis of two-treatment, two-period crossover
trials", Statistics in Medicine 8 (1989).
"""

from dataclasses import dataclass

import numpy as np

from dbdyno.analysis.statistics.arrays import Bools, Floats, Ints
from dbdyno.analysis.statistics.noise import NORMAL_MAD
from dbdyno.analysis.statistics.scipy_special import special
from dbdyno.analysis.statistics.signed_rank import walsh_averages
from dbdyno.model.design import ALPHA

CLEAR = 0.01  # p of a carry-over that the estimate is freed of; at .05 doing so would itself make wrong words
LIKELY = 0.1  # p of one whose correction counts with its uncertainty; always doing so would cost a quarter of the power
MANY_TREATMENTS, ASKED = 4, 0.3  # of so many treatments carry-over is asked about only where its p is below this
UNKNOWN = -1  # no trial before, or one that failed
FREEDOM_MIN = 3
_ESTIMABLE = 1e-8
_CLIP, _ROUNDS = 2.0, 5  # standard deviations; more rounds change nothing that matters
_NO_SPREAD = 1e-12  # of ln(metric): rounding, no noise


@dataclass(frozen=True)
class Ran:
    """Trials in the order they ran, shape (..., blocks, positions); NaN and ``UNKNOWN`` fill up shorter blocks."""

    logs: Floats  # ln(metric)
    treatment: Ints  # 0, 1, ...
    before: Ints  # the treatment of the trial before
    treatments: int


@dataclass(frozen=True)
class Fit:
    """The fitted model; leading axes are those of what was fitted."""

    left: Floats  # (..., treatments): what each leaves for the next trial, up to a constant
    unit_variance: Floats  # (..., 2 (k - 1), 2 (k - 1)) of effects and of what is left, in units of ``variance``
    known: Floats  # the projector on what can be estimated, of the same shape
    variance: Floats  # of one trial, (...)
    freedom: Floats  # (...)


def fit(ran: Ran) -> Fit:
    """Return the least-squares fit of block, treatment and predecessor."""
    usable = np.isfinite(ran.logs) & (ran.before != UNKNOWN)
    weight = usable.astype(np.float64)[..., None]
    logs = np.where(usable, ran.logs, 0.0)[..., None]
    names = np.arange(1, ran.treatments)
    x = np.concatenate([(one[..., None] == names) for one in (ran.treatment, ran.before)], axis=-1).astype(np.float64)
    in_block = np.maximum(weight.sum(axis=-2, keepdims=True), 1.0)
    x = weight * (x - (weight * x).sum(axis=-2, keepdims=True) / in_block)
    y = weight * (logs - (weight * logs).sum(axis=-2, keepdims=True) / in_block)
    rows = (*ran.logs.shape[:-2], -1)
    x, y = x.reshape(*rows, x.shape[-1]), y.reshape(*rows, 1)
    turned = np.swapaxes(x, -1, -2)
    gram = turned @ x
    inverse = np.linalg.pinv(gram, rcond=1e-10, hermitian=True)
    known = inverse @ gram
    rank = np.rint(np.trace(known, axis1=-2, axis2=-1))
    freedom = np.maximum(usable.sum(axis=-1) - 1, 0).sum(axis=-1) - rank
    found, variance = _robust(x, y, inverse @ turned, usable.reshape(*rows, 1), np.maximum(freedom, 1.0))
    left = np.concatenate((np.zeros((*found.shape[:-2], 1)), found[..., ran.treatments - 1 :, 0]), axis=-1)
    return Fit(left, inverse, known, variance, freedom)


def _robust(x: Floats, y: Floats, solve: Floats, usable: Bools, freedom: Floats) -> tuple[Floats, Floats]:
    """Return the coefficients, and the variance of a trial: Huber's M-estimate, by least squares of clipped residuals.

    A trial that stalled must not pass for carry-over. Huber and Ronchetti, "Robust Statistics", chapter 7.
    """
    found, count = solve @ y, np.maximum(usable.sum(axis=(-2, -1)), 1)
    fitted_away = np.sqrt(np.maximum(1.0, count / freedom / 2))[..., None, None]
    for _ in range(_ROUNDS):
        residuals = y - x @ found
        bound = _CLIP / NORMAL_MAD * fitted_away * _median(np.abs(residuals), usable)
        clipped = np.clip(residuals, -bound, bound)
        found = found + solve @ clipped
    inside = np.sum(usable & (np.abs(residuals) <= bound), axis=(-2, -1)) / count
    return found, np.sum(clipped**2, axis=(-2, -1)) / freedom / np.maximum(inside, 0.5) ** 2


def _median(values: Floats, usable: Bools) -> Floats:
    """Return the upper median of those that are usable, on the last axis but one."""
    ordered = np.sort(np.where(usable, values, np.inf), axis=-2)
    middle = np.minimum(usable.sum(axis=-2, keepdims=True) // 2, values.shape[-2] - 1)
    return np.take_along_axis(ordered, middle, axis=-2)


@dataclass(frozen=True)
class Taken:
    """The carry-over of many contrasts, such as a level less its baseline, and their values without it; shape (...)."""

    difference: Floats  # of what is left for the next trial, weighted as the contrast is, as a log ratio
    low: Floats
    high: Floats
    p: Floats  # 1 where it can't be estimated
    known: Bools
    corrected: Floats  # (..., blocks): log ratios, the carry-over taken out as estimated
    widened: Floats  # (..., blocks): the same, spread by as much as the correction is uncertain


def taken_out(ran: Ran, fitted: Fit, weights: Floats) -> Taken:
    """Return the carry-over of a weighted sum of treatments, and its values by block with that taken out.

    ``weights`` have shape (treatments,) and add up to 0: a level less its baseline, or any other contrast.
    """
    k = ran.treatments
    contrasts = (np.concatenate((weights[1:], np.zeros(k - 1))), np.concatenate((np.zeros(k - 1), weights[1:])))
    known = (fitted.freedom >= FREEDOM_MIN) & (fitted.variance > _NO_SPREAD**2)
    for contrast in contrasts:
        known = known & (np.abs(contrast @ fitted.known - contrast).max(axis=-1) < _ESTIMABLE)
    unit = [np.maximum(_quadratic(fitted.unit_variance, contrast), 1e-300) for contrast in contrasts]
    difference = np.asarray(fitted.left @ weights)
    error = np.sqrt(fitted.variance * unit[1])
    freedom = np.maximum(fitted.freedom, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        p = 2 * special.stdtr(freedom, -np.abs(difference / error))
    half = special.stdtrit(freedom, 1 - ALPHA / 2) * error
    plain, shift = _sums(ran, fitted, weights)
    corrected = plain - np.where(known[..., None], shift, 0.0)
    centre = np.median(walsh_averages(corrected), axis=-1)[..., None]
    # The correction's own uncertainty, and what fitting it has taken from the spread of what is left.
    fitted_away = 1 + (k - 1) / freedom
    of_plain = float(weights @ weights) / plain.shape[-1]
    inflation = np.sqrt(np.maximum(1.0, unit[0] / of_plain) * fitted_away)[..., None]
    return Taken(
        difference=difference,
        low=np.where(known, difference - half, -np.inf),
        high=np.where(known, difference + half, np.inf),
        p=np.where(known, p, 1.0),
        known=known,
        corrected=corrected,
        widened=centre + np.where(known[..., None], inflation, 1.0) * (corrected - centre),
    )


def _quadratic(matrix: Floats, vector: Floats) -> Floats:
    return np.asarray((matrix @ vector) @ vector)


def _sums(ran: Ran, fitted: Fit, weights: Floats) -> tuple[Floats, Floats]:
    """Return the weighted sums by block, and what carry-over adds to each; an unknown predecessor adds the mean.

    Every block must have all trials whose weight is not 0.
    """
    mean = fitted.left.mean(axis=-1)[..., None, None]
    left = np.take_along_axis(
        np.broadcast_to(fitted.left[..., None, :], (*ran.before.shape[:-1], ran.treatments)),
        np.maximum(ran.before, 0),
        axis=-1,
    )
    left = np.where(ran.before == UNKNOWN, mean, left)
    weight = np.where(ran.treatment == UNKNOWN, 0.0, weights[np.maximum(ran.treatment, 0)])
    plain, shift = (np.where(weight == 0, 0.0, weight * values).sum(axis=-1) for values in (ran.logs, left))
    return np.asarray(plain), np.asarray(shift)
