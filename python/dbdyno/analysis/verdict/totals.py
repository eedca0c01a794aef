"""How long the same work takes in all: the ratio of totals, beside the usual block's.

A treatment that stalls in one block of twenty for ten times as long is in the usual block as fast as any other. Who
waits for the work waits for all of it. Of a rate the total is the time for equal work in every block, so that the ratio
is that of harmonic means; of a latency, a time or a cost it is the sum.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dbdyno.analysis.statistics.arrays import Bools, Floats
from dbdyno.analysis.statistics.effect import log_margin, relative
from dbdyno.analysis.statistics.estimate import Estimate
from dbdyno.analysis.statistics.noise import robust_sd
from dbdyno.analysis.statistics.scipy_special import special
from dbdyno.model.design import ALPHA, MIN_BLOCKS
from dbdyno.model.word import Word

FAR = 4.0  # standard deviations, as the middle half of the blocks gives them: farther off is no noise


@dataclass(frozen=True)
class Totals:
    """The level's total against the baseline's: .45 for 45 % more time, or more of a metric of which less is better."""

    effect: Estimate  # with a t interval, which knows only of stalls that were seen
    apart: bool  # from the usual block, by more than half the margin and more than noise
    far_off: int  # blocks
    of_time: bool  # whether it is time for the same work; else the sum of the metric

    def contradict(self, word: Word, margin: float) -> bool:
        """Return whether the totals say otherwise than a word on the usual block, as a few stalls make it."""
        if not self.apart or word.is_open:
            return False
        cost = self.effect.value  # of the level: more is worse
        if word is Word.EQUIVALENT:
            return not relative(-log_margin(margin)) <= cost <= margin
        return cost >= 0 if word is Word.FASTER else cost <= 0


UNKNOWN = Totals(Estimate.unknown(), apart=False, far_off=0, of_time=False)


def totals(figures: Mapping[int, tuple[float, float]], usual: float, margin: float, *, more_is_better: bool) -> Totals:
    """Return the totals of blocks whose figures are (level, baseline), all positive; ``usual`` is the log ratio shown.

    The standard error is that of the ratio of two means (linearised), blocks being independent.
    """
    n = len(figures)
    if n < 2:  # noqa: PLR2004
        return UNKNOWN
    logs = np.log(np.asarray(list(figures.values())).T) * (-1 if more_is_better else 1)
    d = logs[0] - logs[1]
    largest = logs.max(axis=1)
    level, baseline = np.exp(logs - largest[:, None])  # each divided by its largest, so that nothing overflows
    value = float(largest[0] - largest[1] + np.log(level.mean() / baseline.mean()))
    error = float(np.std(level / level.mean() - baseline / baseline.mean(), ddof=1)) / math.sqrt(n)
    half = float(special.stdtrit(n - 1, 1 - ALPHA / 2)) * error if n >= MIN_BLOCKS else math.inf
    usual_cost = -usual if more_is_better else usual
    low = relative(value - half) if math.isfinite(half) else -math.inf
    return Totals(
        effect=Estimate(relative(value), low, relative(value + half), n),
        apart=abs(value - usual_cost) > max(log_margin(margin) / 2, robust_sd(d) / math.sqrt(n)),
        far_off=int(np.sum(far_off(d))),
        of_time=more_is_better,
    )


def far_off(d: Floats) -> Bools:
    """Return which log ratios, shape (n,), are so far from the middle one as no noise like that of the others is."""
    return np.asarray(np.abs(d - np.median(d)) > np.maximum(FAR * robust_sd(d), 1e-9))


def excluded_share(n: int) -> float:
    """Return how frequent stalls ``n`` blocks without one exclude, with 95 %: the rule of three, 3 of n."""
    return 3 / n
