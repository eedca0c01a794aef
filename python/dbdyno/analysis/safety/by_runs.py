"""Whether something is seen more often with one treatment than with another: tests that respect runs.

Cuts of one run are correlated, runs are not. So labels are permuted over runs: the statistic is how often it was seen
in all runs of one treatment, its distribution that over all ways to share out the runs (Pitman 1937), exactly. Where
each run has one cut that is Fisher's exact test.
"""

import math
from collections.abc import Sequence

import numpy as np

from dbdyno.analysis.safety.bounds import Seen
from dbdyno.analysis.statistics.arrays import Floats

STEPS = 60  # that a run's share is rounded to, where runs have unequal numbers of cuts
_TIE = 1 + 1e-9


def p_by_runs(first: Seen, second: Seen) -> float:
    """Return the two-sided p, twice the smaller tail; 1 where a side has no run."""
    first, second = ([one for one in side if one[1]] for side in (first, second))
    if not first or not second:
        return 1.0
    equal = len({of for _, of in (*first, *second)}) == 1
    ours, theirs = ([seen if equal else round(STEPS * seen / of) for seen, of in side] for side in (first, second))
    chances = _sums((*ours, *theirs), len(ours))
    at = sum(ours)
    return min(1.0, 2 * min(float(chances[: at + 1].sum()), float(chances[at:].sum())) * _TIE)


def _sums(scores: Sequence[int], chosen: int) -> Floats:
    """Return the distribution of the sum of ``chosen`` of the scores, all choices being as likely."""
    q = chosen / len(scores)
    table = np.zeros((chosen + 1, sum(scores) + 1))  # number chosen x their sum, each being chosen with chance q
    table[0, 0] = 1.0
    for score in scores:
        taken = np.zeros_like(table)
        taken[1:, score:] = table[:-1, : table.shape[1] - score]
        table = (1 - q) * table + q * taken
    return np.asarray(table[chosen] / table[chosen].sum())


def fisher(seen: int, of: int, seen_other: int, of_other: int) -> float:
    """Return the p of Fisher's exact test, two-sided as twice the smaller tail: what it is if cuts are independent."""
    both, of_both = seen + seen_other, of + of_other
    if not of or not of_other:
        return 1.0
    low, high = max(0, both - of_other), min(both, of)
    ways = _choose(of_both, both)
    chances = {k: math.exp(_choose(of, k) + _choose(of_other, both - k) - ways) for k in range(low, high + 1)}
    below = sum(chance for k, chance in chances.items() if k <= seen)
    above = sum(chance for k, chance in chances.items() if k >= seen)
    return min(1.0, 2 * min(below, above) * _TIE)


def _choose(n: int, k: int) -> float:
    """Return the logarithm of how many ways there are to choose k of n."""
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
