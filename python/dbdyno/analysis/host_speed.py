"""The host's own speed as a covariate: what trials differ by because the host was faster or slower at that moment.

Beside each trial fixed work is timed that no treatment touches. In block b the log ratio of two treatments becomes
``d_b - s (c_level - c_baseline)``, c being the logarithm of what the work took and s what one unit of that is worth in
ln(metric). Nothing of this looks at effects or words:

* s is fitted on all blocks but b (*cross-fitted*), from what is left of ln(metric) and of c once the means of blocks
  and of treatments are taken off, so no treatment's effect is in it; and a block does not choose its own correction.
* A covariate that explains nothing must cost nothing: s is shrunk by ``1 - q / F`` (q covariates, F of the fit; 0 below
  q), after James and Stein (1961).
* A covariate that a treatment moves is no longer the host's own: where treatments differ in it (F over blocks and
  treatments, p at most .01) it is left out.

As labels are random inside blocks, c is as likely to favour either treatment, so exact tests on the corrected ratios
stay exact (Rosenbaum, "Covariance Adjustment in Randomized Experiments", Statistical Science 17, 2002). All functions
work on leading axes: ``logs`` has shape (..., blocks, treatments), ``covariates`` (..., blocks, treatments, q).
"""

from dataclasses import dataclass

import numpy as np

from dbdyno.analysis.statistics.arrays import Bools, Floats
from dbdyno.analysis.statistics.scipy_special import special

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
    xx, xy, yy = (one.sum(axis=-axis, keepdims=True) - one for one, axis in ((xx, 3), (xy, 2), (yy, 1)))
    scale = np.trace(xx, axis1=-2, axis2=-1)[..., None, None]
    eye = np.eye(q)
    slopes = np.linalg.solve(xx + (_RIDGE * scale + 1e-300) * eye + np.where(used, 0.0, 1.0)[..., None, :, None] * eye,
                             xy[..., None])[..., 0]  # fmt: skip
    explained = np.einsum("...bq,...bq->...b", slopes, xy)
    count = np.maximum(used.sum(axis=-1), 1)[..., None]
    with np.errstate(divide="ignore", invalid="ignore"):
        f = (explained / count) / (np.maximum(yy - explained, 0.0) / freedom)
        kept = np.where(explained > 0, np.clip(1 - count / f, 0.0, 1.0), 0.0)
    slopes = slopes * np.nan_to_num(kept)[..., None]
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
    left = _residuals(covariates, axis=-2, blocks_axis=-3)
    means = covariates.mean(axis=-3)
    between = blocks * ((means - means.mean(axis=-2, keepdims=True)) ** 2).sum(axis=-2) / max(treatments - 1, 1)
    freedom = max((blocks - 1) * (treatments - 1), 1)
    within = (left**2).sum(axis=(-3, -2)) / freedom
    with np.errstate(divide="ignore", invalid="ignore"):
        f = np.where(within > 0, between / within, 0.0)
    return np.asarray(special.fdtrc(max(treatments - 1, 1), freedom, f))


def _correlation(predicted: Floats, left: Floats) -> Floats:
    """Return the correlation of what was predicted with what was left, over all trials; 0 where it is none."""
    both = (predicted * left).sum(axis=(-2, -1))
    norm = np.sqrt((predicted**2).sum(axis=(-2, -1)) * (left**2).sum(axis=(-2, -1)))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.clip(np.nan_to_num(np.where(norm > 0, both / norm, 0.0)), 0.0, 1.0))
