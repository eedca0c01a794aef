"""One metric of a run's trials that count: its logarithms and contrasts of them, with and without carry-over.

Everything that compares treatments of a run takes its figures here: pairs, factors, letters, curves, rankings. So what
is known of the figures is known to all of them.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise, product

import numpy as np

from dbdyno.analysis.blocks import UsableBlocks
from dbdyno.analysis.scipy_special import special
from dbdyno.analysis.statistics import (
    NORMAL_MAD,
    Bools,
    Estimate,
    Floats,
    Ints,
    holm,
    logarithms,
    relative,
    walsh_averages,
)
from dbdyno.analysis.verdict.evidence import FINE_ENOUGH, Resolution, combined, resolutions
from dbdyno.analysis.verdict.reasons import CarryOver
from dbdyno.analysis.verdict.unequal import SpoiledAttempts, spoiled_attempts
from dbdyno.model.design import ALPHA, Treatment
from dbdyno.model.metrics import METRICS, value_of
from dbdyno.store.records import Run, Trial

# Carry-over: what a trial leaves behind for the next one, such as heat, a full cache, a drive's debt of collection.
#
# ln(metric) is modelled as level of the block + effect of the treatment + effect of the *predecessor*, the treatment of
# the trial that ran just before, and fitted by least squares. In a random order the predecessor of a treatment is
# another one, or the last of the block before, by chance; so both effects can be separated, also of two treatments: of
# those half of the blocks begin with what the block before ended with, and in these both trials have the same
# predecessor.
#
# The model looks one trial back. What a trial leaves for the one *after* the next can pass for carry-over of the other
# sign, and a correction made for it would invent a difference: of two treatments in blocks of two both are the same
# columns. So nothing is ever judged by the corrected ratios alone. A word must hold for the ratios as measured *and*
# for those with the carry-over taken out, and the interval shown spans both:
#
# * *clear* (p at most .01): the estimate is the corrected one, its spread widened by as much as the correction is
#   uncertain;
# * *likely* (p at most .1): the estimate is the one measured, the spread of the corrected one is widened so, too;
# * else: the estimate is the one measured. Four treatments or more are asked only where p is below .3: what a trial
#   leaves is then spread over many, and asking always costs 4 points of power for no error that was ever measured;
# * it can't be estimated (whole plots, a fixed order, too few blocks): the ratios as measured alone.
#
# Source: Jones and Kenward, "Design and Analysis of Cross-Over Trials", 3rd edition, chapters 1 and 5. That a
# preliminary test alone is not enough: Freeman, "The performance of the two-stage analysis of two-treatment, two-period
# crossover trials", Statistics in Medicine 8 (1989).


CLEAR = 0.01  # p of a carry-over that the estimate is freed of; at .05 doing so would itself make wrong words
LIKELY = 0.1  # p of one whose correction counts with its uncertainty; always doing so would cost a quarter of the power
MANY_TREATMENTS, ASKED = 4, 0.3  # of so many treatments carry-over is asked about only where its p is below this
UNKNOWN = -1  # no trial before, or one that failed
FREEDOM_MIN = 3
_ESTIMABLE = 1e-8
_CLIP, _ROUNDS = 2.0, 5  # standard deviations; more rounds change nothing that matters
_NO_SPREAD = 1e-12  # of ln(metric): rounding, no noise


@dataclass(frozen=True)
class TrialOrder:
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


def fit(ran: TrialOrder) -> Fit:
    """Return the least-squares fit of block, treatment and predecessor."""
    usable = np.isfinite(ran.logs) & (ran.before != UNKNOWN)
    weight = usable.astype(np.float64)[..., None]
    logs = np.where(usable, ran.logs, 0.0)[..., None]
    names = np.arange(1, ran.treatments)
    x = np.concatenate([(column[..., None] == names) for column in (ran.treatment, ran.before)], axis=-1).astype(
        np.float64
    )
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
    coefficients, variance = _robust(x, y, inverse @ turned, usable.reshape(*rows, 1), np.maximum(freedom, 1.0))
    left = np.concatenate(
        (np.zeros((*coefficients.shape[:-2], 1)), coefficients[..., ran.treatments - 1 :, 0]), axis=-1
    )
    return Fit(left, inverse, known, variance, freedom)


def _robust(x: Floats, y: Floats, solve: Floats, usable: Bools, freedom: Floats) -> tuple[Floats, Floats]:
    """Return the coefficients, and the variance of a trial: Huber's M-estimate, by least squares of clipped residuals.

    A trial that stalled must not pass for carry-over. Huber and Ronchetti, "Robust Statistics", chapter 7.
    """
    coefficients, count = solve @ y, np.maximum(usable.sum(axis=(-2, -1)), 1)
    fitted_away = np.sqrt(np.maximum(1.0, count / freedom / 2))[..., None, None]
    for _ in range(_ROUNDS):
        residuals = y - x @ coefficients
        bound = _CLIP / NORMAL_MAD * fitted_away * _median(np.abs(residuals), usable)
        clipped = np.clip(residuals, -bound, bound)
        coefficients = coefficients + solve @ clipped
    inside = np.sum(usable & (np.abs(residuals) <= bound), axis=(-2, -1)) / count
    return coefficients, np.sum(clipped**2, axis=(-2, -1)) / freedom / np.maximum(inside, 0.5) ** 2


def _median(values: Floats, usable: Bools) -> Floats:
    """Return the upper median of those that are usable, on the last axis but one."""
    ordered = np.sort(np.where(usable, values, np.inf), axis=-2)
    middle = np.minimum(usable.sum(axis=-2, keepdims=True) // 2, values.shape[-2] - 1)
    return np.take_along_axis(ordered, middle, axis=-2)


@dataclass(frozen=True)
class CarryOverEstimate:
    """The carry-over of many contrasts, such as a level less its baseline, and their values without it; shape (...)."""

    difference: Floats  # of what is left for the next trial, weighted as the contrast is, as a log ratio
    low: Floats
    high: Floats
    p: Floats  # 1 where it can't be estimated
    known: Bools
    corrected: Floats  # (..., blocks): log ratios, the carry-over taken out as estimated
    widened: Floats  # (..., blocks): the same, spread by as much as the correction is uncertain


def taken_out(ran: TrialOrder, fitted: Fit, weights: Floats) -> CarryOverEstimate:
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
    return CarryOverEstimate(
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


def _sums(ran: TrialOrder, fitted: Fit, weights: Floats) -> tuple[Floats, Floats]:
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


# The host's own speed as a covariate: what trials differ by because the host was faster or slower at that moment.
#
# Beside each trial fixed work is timed that no treatment touches. In block b the log ratio of two treatments becomes
# ``d_b - s (c_level - c_baseline)``, c being the logarithm of what the work took and s what one unit of that is worth
# in ln(metric). Nothing of this looks at effects or words:
#
# * s is fitted on all blocks but b (*cross-fitted*), from what is left of ln(metric) and of c once the means of blocks
#   and of treatments are taken off, so no treatment's effect is in it; and a block does not choose its own correction.
# * A covariate that explains nothing must cost nothing: s is shrunk by ``1 - q / F`` (q covariates, F of the fit; 0
#   below q), after James and Stein (1961).
# * A covariate that a treatment moves is no longer the host's own: where treatments differ in it (F over blocks and
#   treatments, p at most .01) it is left out.
#
# As labels are random inside blocks, c is as likely to favour either treatment, so exact tests on the corrected ratios
# stay exact (Rosenbaum, "Covariance Adjustment in Randomized Experiments", Statistical Science 17, 2002). All functions
# work on leading axes: ``logs`` has shape (..., blocks, treatments), ``covariates`` (..., blocks, treatments, q).


BLOCKS_MIN = 5  # with fewer a slope says nothing
MOVED = 0.01  # p of "treatments do not differ in it", at which a covariate is left out
_RIDGE = 1e-12


@dataclass(frozen=True)
class Corrected:
    """ln(metric) as if the host had always been equally fast; shape (..., blocks, treatments)."""

    logs: Floats
    r: Floats  # (...): correlation of what it predicts, of blocks it was not fitted on, with what is left; 0 where not
    used: Bools  # (..., q): covariates that count


def correct(logs: Floats, covariates: Floats) -> Corrected:
    """Return the logarithms without what the host's speed explains of them."""
    *lead, blocks, treatments, q = covariates.shape
    used = _moved_p(covariates) > MOVED
    unchanged = Corrected(logs, np.zeros(lead), np.zeros((*lead, q), dtype=np.bool_))
    freedom = (blocks - 2) * (treatments - 1) - q  # of a fit without one block
    if blocks < BLOCKS_MIN or freedom < 1 or treatments < 2:  # noqa: PLR2004
        return unchanged
    x = np.where(used[..., None, None, :], _residuals(covariates, axis=-2, blocks_axis=-3), 0.0)
    y = _residuals(logs, axis=-1, blocks_axis=-2)
    # Sums of squares and products of each block, then of all others.
    xx = np.einsum("...btq,...btr->...bqr", x, x)
    xy = np.einsum("...btq,...bt->...bq", x, y)
    yy = np.einsum("...bt,...bt->...b", y, y)
    xx, xy, yy = (sums.sum(axis=-axis, keepdims=True) - sums for sums, axis in ((xx, 3), (xy, 2), (yy, 1)))
    scale = np.trace(xx, axis1=-2, axis2=-1)[..., None, None]
    eye = np.eye(q)
    slopes = np.linalg.solve(xx + (_RIDGE * scale + 1e-300) * eye + np.where(used, 0.0, 1.0)[..., None, :, None] * eye,
                             xy[..., None])[..., 0]  # fmt: skip
    explained = np.einsum("...bq,...bq->...b", slopes, xy)
    count = np.maximum(used.sum(axis=-1), 1)[..., None]
    with np.errstate(divide="ignore", invalid="ignore"):
        f = (explained / count) / (np.maximum(yy - explained, 0.0) / freedom)
        shrinkage = np.where(explained > 0, np.clip(1 - count / f, 0.0, 1.0), 0.0)
    slopes = slopes * np.nan_to_num(shrinkage)[..., None]
    moved = np.where(used[..., None, None, :], covariates, 0.0)
    centred = moved - moved.mean(axis=(-3, -2), keepdims=True)
    shift = np.einsum("...btq,...bq->...bt", centred, slopes)
    predicted = np.einsum("...btq,...bq->...bt", x, slopes)
    return Corrected(logs - shift, _correlation(predicted, y), used)


def _residuals(values: Floats, axis: int, blocks_axis: int) -> Floats:
    """Return what is left once the means of blocks and of treatments are taken off."""
    of_block = values.mean(axis=axis, keepdims=True)
    of_treatment = values.mean(axis=blocks_axis, keepdims=True)
    return np.asarray(values - of_block - of_treatment + of_treatment.mean(axis=axis, keepdims=True))


def _moved_p(covariates: Floats) -> Floats:
    """Return the p of "treatments do not differ in it", (..., q): F of two-way analysis of variance."""
    *_, blocks, treatments, _ = covariates.shape
    residuals = _residuals(covariates, axis=-2, blocks_axis=-3)
    means = covariates.mean(axis=-3)
    between = blocks * ((means - means.mean(axis=-2, keepdims=True)) ** 2).sum(axis=-2) / max(treatments - 1, 1)
    freedom = max((blocks - 1) * (treatments - 1), 1)
    within = (residuals**2).sum(axis=(-3, -2)) / freedom
    with np.errstate(divide="ignore", invalid="ignore"):
        f = np.where(within > 0, between / within, 0.0)
    return np.asarray(special.fdtrc(max(treatments - 1, 1), freedom, f))


def _correlation(predicted: Floats, residuals: Floats) -> Floats:
    """Return the correlation of what was predicted with what was left, over all trials; 0 where it is none."""
    product = (predicted * residuals).sum(axis=(-2, -1))
    norm = np.sqrt((predicted**2).sum(axis=(-2, -1)) * (residuals**2).sum(axis=(-2, -1)))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.clip(np.nan_to_num(np.where(norm > 0, product / norm, 0.0)), 0.0, 1.0))


Contrast = Mapping[str, float]  # treatment id -> weight; the weights add up to 0
_NO_WEIGHT = 1e-9


@dataclass(frozen=True)
class Contrasted:
    """A contrast of ln(metric) by block, in ascending order of the blocks that have all it needs."""

    by_block: Mapping[int, float]  # as compared: the host's speed taken off, what trials leave not
    carry_over: CarryOver | None = None  # None: it can't be estimated
    without_carry_over: Floats | None = None  # the same blocks; None: it can't be estimated, or need not be asked


class MetricFigures:
    """One metric of a run's trials that count; nothing of a treatment that was dropped, or has a 0 in any block."""

    def __init__(self, run: Run, blocks: UsableBlocks, metric: str) -> None:
        self.run, self.blocks, self.metric = run, blocks, metric
        self.treatments = [treatment.id for treatment in run.design.treatments]
        self.measured_logs = {
            id_: {} if id_ in blocks.dropped else logarithms(blocks.values(id_, metric)) for id_ in self.treatments
        }
        self.host_speed, self.logs = _at_one_speed(self.measured_logs, blocks)

    def by_block(self, contrast: Contrast) -> dict[int, float]:
        """Return block -> the contrast, of the blocks in which all treatments it needs have a figure."""
        logs = [self.logs[id_] for id_ in contrast]
        common = set[int].intersection(*(set(values) for values in logs)) if logs else set()
        return {
            block: math.fsum(weight * self.logs[id_][block] for id_, weight in contrast.items())
            for block in sorted(common)
        }

    def resolution(self, contrast: Contrast) -> Resolution:
        """Return how coarse a contrast is."""
        return combined((weight, self._resolutions.get(id_, FINE_ENOUGH)) for id_, weight in contrast.items())

    def contrasted(self, contrasts: Sequence[Contrast]) -> list[Contrasted]:
        """Return contrasts that are one family, each with its carry-over, by Holm over all of them."""
        measured = [self.by_block(contrast) for contrast in contrasts]
        if self._fit is None:
            return [Contrasted(values) for values in measured]
        carry_overs = [
            self._carry_over_of(contrast, list(values)) for contrast, values in zip(contrasts, measured, strict=True)
        ]
        adjusted = (
            holm([1.0 if carry_over is None else float(carry_over.p) for carry_over in carry_overs]).tolist()
            if carry_overs
            else []
        )
        return [
            self._contrast_figures(values, carry_over, p)
            for values, carry_over, p in zip(measured, carry_overs, adjusted, strict=True)
        ]

    @cached_property
    def spoiled(self) -> SpoiledAttempts:
        """Which treatments spoiled which attempts at blocks."""
        return spoiled_attempts(self.run, self.blocks)

    @cached_property
    def logs_without_carry_over(self) -> Mapping[str, Mapping[int, float]] | None:
        """``logs`` less what the trial before left, of all treatments alike; None where that can't be estimated."""
        fitted = self._fit
        if fitted is None or not self._is_estimable(fitted):
            return None
        ran = self._ran
        left = np.where(ran.before == UNKNOWN, fitted.left.mean(), fitted.left[np.maximum(ran.before, 0)])
        corrected = ran.logs - left
        logs: dict[str, dict[int, float]] = {id_: {} for id_ in self.treatments}
        for block, row in self._rows.items():
            for place in np.flatnonzero(ran.treatment[row] != UNKNOWN):
                id_ = self.treatments[ran.treatment[row, place]]
                if block in self.logs[id_]:
                    logs[id_][block] = float(corrected[row, place])
        return logs

    @cached_property
    def _resolutions(self) -> dict[str, Resolution]:
        return resolutions(self.blocks, self.metric, METRICS[self.metric].unit if self.metric in METRICS else "")

    @cached_property
    def _rows(self) -> dict[int, int]:
        return {block: row for row, block in enumerate(sorted(self.blocks.trials))}

    @cached_property
    def _ran(self) -> TrialOrder:
        """The usable trials in the order they ran."""
        before = predecessors(self.run)
        number = {id_: place for place, id_ in enumerate(self.treatments)}
        most = max(map(len, self.blocks.trials.values()))
        logs = np.full((len(self.blocks.trials), most), np.nan)
        treatment, came = (np.full(logs.shape, UNKNOWN) for _ in range(2))
        for block, row in self._rows.items():
            for place, trial in enumerate(sorted(self.blocks.trials[block].values(), key=_place)):
                logs[row, place] = self._log_of(trial)
                treatment[row, place] = number[trial.treatment]
                came[row, place] = number.get(before.get(trial.id, ""), UNKNOWN)  # after a control it is unknown, too
        return TrialOrder(logs, treatment, came, len(self.treatments))

    def _log_of(self, trial: Trial) -> float:
        """Return ln(metric) as it is compared; as measured of a trial of a treatment that was dropped; NaN of none."""
        if (log := self.logs[trial.treatment].get(trial.block)) is not None:
            return log
        value = value_of(trial.metrics, self.metric)
        return math.log(value) if math.isfinite(value) and value > 0 else math.nan

    @cached_property
    def _fit(self) -> Fit | None:
        """The carry-over of the whole run; None where none can be, or none is in any comparison.

        Where every trial comes after one of the baseline, what that leaves is in all of them alike. A simulated trial
        begins with a drive and a kernel of its own: nothing is left for it.
        """
        nothing_left = self.run.design.settle == "trial" or self.run.is_simulated
        if len(self.treatments) < 2 or not self.blocks.trials or nothing_left:  # noqa: PLR2004
            return None
        return fit(self._ran)

    def _is_estimable(self, fitted: Fit) -> bool:
        """Return whether what each treatment leaves against the first can be estimated."""
        weights = np.eye(len(self.treatments)) - np.eye(len(self.treatments))[0]
        rows = [row for id_, row in zip(self.treatments, weights, strict=True) if id_ not in self.blocks.dropped]
        return all(bool(taken_out(self._ran, fitted, row).known) for row in rows if row.any())

    def _carry_over_of(self, contrast: Contrast, at: Sequence[int]) -> CarryOverEstimate | None:
        if not at or self._fit is None:
            return None
        rows = [self._rows[block] for block in at]
        ran = self._ran
        part = TrialOrder(ran.logs[rows], ran.treatment[rows], ran.before[rows], ran.treatments)
        return taken_out(part, self._fit, np.array([contrast.get(id_, 0.0) for id_ in self.treatments]))

    def _contrast_figures(
        self, values: Mapping[int, float], estimate: CarryOverEstimate | None, p: float
    ) -> Contrasted:
        if estimate is None or not estimate.known:
            return Contrasted(values)
        low, value, high = (relative(float(end)) for end in (estimate.low, estimate.difference, estimate.high))
        shift = relative(-float(estimate.difference) / len(self.treatments))
        carry_over = CarryOver(Estimate(value, low, high, len(values)), p, shift)
        if p <= CLEAR:
            return Contrasted(values, replace(carry_over, taken_out=True), estimate.widened)
        if p <= LIKELY:
            return Contrasted(values, carry_over, estimate.widened)
        is_asked = len(self.treatments) < MANY_TREATMENTS or p < ASKED
        return Contrasted(values, carry_over, estimate.corrected if is_asked else None)


@dataclass(frozen=True)
class HostSpeed:
    """What the host's own speed explains of what trials differ by."""

    covariates: tuple[str, ...]  # that were looked at, by the names they have in a trial
    used: tuple[str, ...]  # those of them that treatments do not differ in
    r: float  # correlation of what they predict, of blocks they were not fitted on, with what trials differ by

    @property
    def saved(self) -> float:
        """The share of the blocks that it makes unnecessary."""
        return self.r**2


COVARIATES = ("work_wall_ns", "flush_ns")  # planned beforehand; whichever all trials of the blocks that count have


def _at_one_speed(
    logs: Mapping[str, Mapping[int, float]], blocks: UsableBlocks
) -> tuple[HostSpeed | None, dict[str, dict[int, float]]]:
    """Return ln(metric) as if the host had always been equally fast, and what that took; as measured where unknown."""
    measured = {id_: dict(by_block) for id_, by_block in logs.items()}
    ids = [id_ for id_, by_block in logs.items() if by_block]
    common = common_blocks(logs[id_] for id_ in ids)
    trials = [[blocks.trials[block][id_] for id_ in ids] for block in common]
    every = [trial for row in trials for trial in row]
    names = tuple(name for name in COVARIATES if every and all(trial.host_speed.get(name, 0.0) > 0 for trial in every))
    if not names or len(ids) < 2:  # noqa: PLR2004
        return None, measured
    covariates = np.log([[[trial.host_speed[name] for name in names] for trial in row] for row in trials])
    corrected = correct(np.array([[logs[id_][block] for id_ in ids] for block in common]), covariates)
    for row, block in enumerate(common):
        for column, id_ in enumerate(ids):
            measured[id_][block] = float(corrected.logs[row, column])
    used = tuple(name for name, is_used in zip(names, corrected.used.tolist(), strict=True) if is_used)
    return HostSpeed(names, used, float(corrected.r)), measured


def difference_of_pair(baseline: str, level: str) -> Contrast:
    """Return the contrast of a level less its baseline."""
    return {level: 1.0, baseline: -1.0}


@dataclass(frozen=True)
class PairOfContrast:
    """A level and its baseline, by id, and the weight of their difference in a contrast."""

    weight: float  # above 0
    level: str
    baseline: str


def pairs_of(contrast: Contrast, treatments: Sequence[Treatment]) -> list[PairOfContrast]:
    """Return pairs whose weighted differences add up to a contrast: those that differ in the fewest factors.

    Of a main effect they are its cells, of an interaction those of its two simple effects, of stacks their loads.
    """
    levels = {treatment.id: treatment.levels for treatment in treatments}
    left = {id_: abs(weight) for id_, weight in contrast.items()}
    above, below = ([id_ for id_, weight in contrast.items() if sign * weight > 0] for sign in (1, -1))

    def apart(pair: tuple[str, str]) -> int:
        one, other = (levels.get(id_, {}) for id_ in pair)
        return sum(level != other.get(name) for name, level in one.items())

    pairs = []
    for level, baseline in sorted(product(above, below), key=apart):
        weight = min(left[level], left[baseline])
        if weight > _NO_WEIGHT:
            pairs.append(PairOfContrast(weight, level, baseline))
            left[level], left[baseline] = left[level] - weight, left[baseline] - weight
    return pairs


def predecessors(run: Run) -> dict[str, str]:
    """Return trial id -> treatment of the trial that ran just before it.

    Each host has an order of its own. Attempts that don't count ran, too. One in which a trial failed left the host in
    an unknown state, so nothing is known of the trials in it and of the first after it; nor of the very first.
    """
    treatment_before = {}
    for host in {trial.host for trial in run.trials}:
        ordered = sorted((trial for trial in run.trials if trial.host == host), key=_place)
        failed = sorted({(failure.block, failure.attempt) for failure in run.failures if failure.host == host})
        for before, trial in pairwise(ordered):
            since, until = _place(before)[:2], _place(trial)[:2]
            if not any(since <= attempt <= until for attempt in failed):
                treatment_before[trial.id] = before.treatment
    return treatment_before


def _place(trial: Trial) -> tuple[int, int, int]:
    return trial.block, trial.attempt, trial.position


def common_blocks(logs: Iterable[Mapping[int, float]]) -> list[int]:
    """Return the blocks that all have, ascending."""
    block_sets = [set(by_block) for by_block in logs]
    return sorted(set[int].intersection(*block_sets)) if block_sets else []
