"""Whether cuts of one run resemble each other more than those of two, seen in what the control lost.

Of a treatment that lost nothing its own cuts can't say. The control lost in nearly all of its, by the same load at the
same moments; how much it lost varies from cut to cut. That is analysed as ranks, by one-way analysis of variance over
runs.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dbdyno.analysis.statistics.arrays import Floats
from dbdyno.analysis.statistics.scipy_special import special
from dbdyno.model.cut import OUTCOMES, Cut

FEW_RUNS = 20  # so few show a correlation rarely: less is enough to suspect one
LEVEL, LEVEL_OF_FEW = 0.05, 0.2
_LONGEST_MS = 1e9  # that a cut can lose: beyond it is the next outcome


@dataclass(frozen=True)
class Correlation:
    """Within-run correlation: of ``p`` that there is none, ``within`` (0 to 1) how strong; NaN where it isn't known."""

    runs: int
    within: float
    p: float
    may_be: bool  # whether bounds allow for it: it was seen, or nothing can be known of it


ALONE = Correlation(0, 0.0, 1.0, may_be=False)  # each run has one cut


def correlation(runs: Sequence[Sequence[Cut]]) -> Correlation:
    """Return it of the control's runs; of runs with one cut each there is none, of fewer than 2 runs it isn't known."""
    kept = [cuts for cuts in runs if cuts]
    if kept and all(len(cuts) == 1 for cuts in kept):
        return ALONE
    return analysed(_ranked(kept))


def analysed(groups: Sequence[Floats]) -> Correlation:
    """Return the correlation within groups of ranks, one group a run."""
    n, k = sum(map(len, groups)), len(groups)
    if k < 2 or n <= k:  # noqa: PLR2004
        return Correlation(k, math.nan, math.nan, may_be=True)
    whole = np.concatenate(groups)
    between = sum(len(one) * (one.mean() - whole.mean()) ** 2 for one in groups) / (k - 1)
    inside = sum(float(np.sum((one - one.mean()) ** 2)) for one in groups) / (n - k)
    if between == 0 and inside == 0:  # all lost the same: that says nothing
        return Correlation(k, math.nan, math.nan, may_be=True)
    per_run = (n - sum(len(one) ** 2 for one in groups) / n) / (k - 1)  # Donner 1986, unequal groups
    within = (between - inside) / (between + (per_run - 1) * inside)
    p = float(special.fdtrc(k - 1, n - k, between / inside)) if inside > 0 else 0.0
    level = LEVEL_OF_FEW if k < FEW_RUNS else LEVEL
    return Correlation(k, max(0.0, float(within)), p, may_be=p < level)


def _amount(cut: Cut) -> float:
    """Return how bad it was, to be ranked: the worse outcome is more, of the same one more milliseconds are."""
    return (len(OUTCOMES) - OUTCOMES.index(cut.outcome)) * _LONGEST_MS + (cut.lost_ms or 0.0)


def _ranked(runs: Sequence[Sequence[Cut]]) -> list[Floats]:
    """Return each run's cuts as ranks (0 to 1) of what was lost among all cuts of their stratum, ties in the middle."""
    strata: dict[object, list[float]] = {}
    for cuts in runs:
        for cut in cuts:
            strata.setdefault((cut.when, cut.survivors), []).append(_amount(cut))
    ordered = {stratum: np.sort(values) for stratum, values in strata.items()}

    def rank(cut: Cut) -> float:
        values, own = ordered[cut.when, cut.survivors], _amount(cut)
        return float(np.searchsorted(values, own, "left") + np.searchsorted(values, own, "right")) / 2 / len(values)

    return [np.array([rank(cut) for cut in cuts]) for cuts in runs]
