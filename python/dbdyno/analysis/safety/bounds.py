"""How often something may happen that was seen in some cuts of some runs: exact bounds, and ones that respect runs.

The cuts of one run share a load, a server and a moment, so ten of them may say no more than one. Three bounds allow for
that to a different degree. *If cuts are independent*: Clopper and Pearson 1934, over cuts. *By runs*: the same over
runs, counting those in which it was ever seen; as the share of cuts can't exceed the share of such runs, it holds
whatever the correlation. *Effective*: Korn and Graubard 1998: Clopper and Pearson with as many cuts as carry what the
variance between runs leaves of them, and with Student's quantile for few runs.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dbdyno.analysis.safety.correlation import Correlation
from dbdyno.analysis.statistics.scipy_special import special
from dbdyno.model.design import ALPHA

Seen = Sequence[tuple[int, int]]  # of each run: in how many cuts it was seen, of how many


@dataclass(frozen=True)
class Share:
    """In how many cuts something was seen, and the 95 % bounds of its share, each a fraction of cuts.

    ``at_most`` is what is said; it is that by runs where nothing was seen and cuts are, or may be, correlated. ``low``
    and ``high`` are the two-sided interval.
    """

    seen: int
    cuts: int
    runs_with: int  # in which it was seen
    runs: int
    at_most: float
    if_independent: float
    by_runs: float
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


def share(found: Seen, correlation: Correlation) -> Share:
    """Return how often something happens, of what was seen of it in each run."""
    seen, cuts = sum(one for one, _ in found), sum(of for _, of in found)
    runs, runs_with = len(found), sum(one > 0 for one, _ in found)
    by_runs, independent = upper(runs_with, runs), upper(seen, cuts)
    if seen == 0:
        at_most = by_runs if correlation.may_be else independent
        return Share(0, cuts, 0, runs, at_most, independent, by_runs, float(cuts), 0.0, at_most)
    left = effective_cuts(found, correlation)
    carried = seen / cuts * left
    return Share(
        seen=seen,
        cuts=cuts,
        runs_with=runs_with,
        runs=runs,
        at_most=min(upper(carried, left), by_runs),
        if_independent=independent,
        by_runs=by_runs,
        effective_cuts=left,
        low=lower(carried, left, ALPHA / 2),
        high=upper(carried, left, ALPHA / 2),
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
