"""How often something may happen that was seen in some cuts of some runs: bounds by runs, and by cuts.

The cuts of one run share a load, a server and a moment, so ten of them may say no more than one; how much alike they
are can't be known of a treatment that lost nothing, and that of another, such as the control, need not be its own. So
the bound that is said is *by runs*: a run's share of cuts is one value between 0 and 1, runs are independent, and
nothing else is assumed. It is Gaffke's (2005; Learned-Miller and Thomas 2019): with one more run that lost in every
cut, and weights drawn from the flat Dirichlet distribution, the 95 % quantile of the weighted mean. Where each run lost
in all of its cuts or in none, so also where nothing was lost, it is that of Clopper and Pearson 1934 over runs, and
proved; in between it is not, and was never seen to fail.

*If cuts are independent*: Clopper and Pearson over cuts. *Effective cuts*: with how many independent cuts the spread
between runs leaves (Korn and Graubard 1998).
"""

import functools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dbdyno.analysis.statistics.estimate import Floats
from dbdyno.analysis.statistics.scipy_special import special
from dbdyno.model.cut import OUTCOMES, Cut
from dbdyno.model.design import ALPHA

# Whether cuts of one run resemble each other more than those of two, seen in what the control lost.
#
# Of a treatment that lost nothing its own cuts can't say. The control lost in nearly all of its, by the same load at
# the same moments; how much it lost varies from cut to cut. That is analysed as ranks, by one-way analysis of variance
# over runs.


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


Seen = Sequence[tuple[int, int]]  # of each run: in how many cuts it was seen, of how many
_NODES = 200  # of the quadrature; more change nothing in the tenth digit
_CLOSE, _STEPS = 1e-9, 100  # of the search for a quantile


@dataclass(frozen=True)
class Share:
    """In how many cuts something was seen, and the 95 % bounds of its share, each a fraction of cuts.

    ``at_most`` is what is said, by runs; ``low`` and ``high`` are the two-sided interval, by runs as well.
    """

    seen: int
    cuts: int
    runs_with: int  # in which it was seen
    runs: int
    at_most: float
    if_independent: float
    effective_cuts: float
    low: float
    high: float

    @property
    def value(self) -> float:
        """The share seen; NaN without a cut."""
        return self.seen / self.cuts if self.cuts else math.nan


def upper(seen: float, of: float, alpha: float = ALPHA) -> float:
    """Return the one-sided exact upper bound of a share; 1 where nothing was tried."""
    return 1.0 if seen >= of else float(special.betaincinv(seen + 1, of - seen, 1 - alpha))


def lower(seen: float, of: float, alpha: float = ALPHA) -> float:
    """Return the one-sided exact lower bound of a share; 0 where nothing was tried."""
    return 0.0 if seen <= 0 or of <= 0 else float(special.betaincinv(seen, of - seen + 1, alpha))


def upper_by_runs(shares: Sequence[float], alpha: float = ALPHA) -> float:
    """Return the one-sided upper bound of the mean of runs' shares, each 0 to 1; 1 where there is no run."""
    if not shares:
        return 1.0
    if all(one in {0.0, 1.0} for one in shares):
        return upper(sum(shares), len(shares), alpha)
    return _gaffke(tuple(sorted(Counter(shares).items())), alpha)


def lower_by_runs(shares: Sequence[float], alpha: float = ALPHA) -> float:
    """Return the one-sided lower bound of the same; 0 where there is no run."""
    return 1.0 - upper_by_runs([1.0 - one for one in shares], alpha)


@functools.lru_cache(maxsize=4096)
def _gaffke(counted: tuple[tuple[float, int], ...], alpha: float) -> float:
    """Return the quantile of the mean of shares, and a further one of 1, with flat Dirichlet weights.

    ``counted`` are the shares and how many runs have each. By bisection and false position in turn (Illinois).
    """
    counts = Counter(dict(counted))
    counts[1.0] += 1
    values, weights = (np.array(each, dtype=np.float64) for each in zip(*sorted(counts.items()), strict=True))
    low, high = float(values[0]), 1.0
    f_low, f_high = 1 - alpha, -alpha
    for step in range(_STEPS):
        place = (low + high) / 2 if step % 3 == 0 else (low * f_high - high * f_low) / (f_high - f_low)
        found = _chance_above(place, values, weights) - alpha
        if found > 0:
            low, f_low = place, found
        else:
            high, f_high = place, found
        if high - low < _CLOSE:
            break
    return high


def _chance_above(place: float, values: Floats, weights: Floats) -> float:
    """Return the chance that the mean of ``values`` lies above ``place``, with Dirichlet weights of such parameters.

    They are gamma variables over their sum, so it is the chance that the sum of (value - place) gamma is above 0, by
    inverting its characteristic function (Gil-Pelaez 1951).
    """
    from_place = values - place
    tangent, weight = _quadrature()
    scale = 1 / math.sqrt(float(np.sum(weights * from_place**2)))
    steps = scale * tangent
    logs = np.log1p(-1j * from_place[:, None] * steps)
    found = np.exp(-np.sum(weights[:, None] * logs, axis=0)).imag / steps
    return 0.5 + scale * float(np.sum(found * weight)) / math.pi


@functools.cache
def _quadrature() -> tuple[Floats, Floats]:
    """Return nodes from 0 to infinity and their weights: Gauss-Legendre over the arc tangent."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    angles = (nodes + 1) * math.pi / 4
    return np.asarray(np.tan(angles)), np.asarray(weights * math.pi / 4 / np.cos(angles) ** 2)


def share(found: Seen, correlation: Correlation) -> Share:
    """Return how often something happens, of what was seen of it in each run."""
    each = [seen / of for seen, of in found if of]
    seen, cuts = sum(one for one, _ in found), sum(of for _, of in found)
    at_most = upper_by_runs(each)
    return Share(
        seen=seen,
        cuts=cuts,
        runs_with=sum(one > 0 for one, _ in found),
        runs=len(found),
        at_most=at_most,
        if_independent=upper(seen, cuts),
        effective_cuts=effective_cuts(found, correlation) if seen else float(cuts),
        low=lower_by_runs(each, ALPHA / 2) if seen else 0.0,
        high=upper_by_runs(each, ALPHA / 2) if seen else at_most,
    )


def effective_cuts(found: Seen, correlation: Correlation) -> float:
    """Return how many independent cuts say as much; 1 of a single run of several cuts.

    n / deff, times the squared ratio of Student's quantiles (Korn and Graubard 1998); deff is the variance between
    runs, by linearisation, over that of independent cuts; or, if larger, what the control's correlation comes to.
    """
    runs, cuts = len(found), sum(of for _, of in found)
    if all(of <= 1 for _, of in found):
        return float(cuts)
    if runs < 2:  # noqa: PLR2004 - no variance between runs
        return 1.0
    p = sum(one for one, _ in found) / cuts
    between = runs / (runs - 1) * sum((one - p * of) ** 2 for one, of in found) / cuts**2
    independent = p * (1 - p) / cuts
    deff = max(1.0, between / independent if independent > 0 else 1.0)
    if correlation.may_be and math.isfinite(correlation.within):
        deff = max(deff, 1 + (cuts / runs - 1) * correlation.within)
    few = (_student(cuts - 1) / _student(runs - 1)) ** 2
    return min(float(cuts), max(1.0, cuts / deff * few))


def _student(freedom: int) -> float:
    return float(special.stdtrit(freedom, 1 - ALPHA))


# Whether something is seen more often with one treatment than with another: tests that respect runs.
#
# Cuts of one run are correlated, runs are not. So labels are permuted over runs: the statistic is how often it was seen
# in all runs of one treatment, its distribution that over all ways to share out the runs (Pitman 1937), exactly. Where
# each run has one cut that is Fisher's exact test.


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
