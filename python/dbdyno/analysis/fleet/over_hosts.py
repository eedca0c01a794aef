"""What one figure per host says of hosts like these: estimate, interval, p, equivalence. Here n counts hosts.

A treatment that helps on one machine may not on another: the effect is one of the host as well. So blocks of one host
are no repetitions of that, and each host has one vote, however many blocks it ran: the Hodges-Lehmann estimate of its
log ratios.

* Where there are so many hosts that signed rank can reach p = .05 after Holm (6 of one comparison, 7 of two or three):
  signed rank, Hodges-Lehmann, its exact interval, and for equivalence the mean as well, as of blocks.
* Else, from ``HOSTS_MIN`` on: Student's t. It takes hosts for independent and the effect in them for normal, but not
  for equally well known: with unequal variances, so with unequal numbers of blocks, and with any mixture of normal
  distributions (heavy tails) t at 5 % is wrong less often, not more (Ibragimov and Mueller 2010, after Bakirov and
  Szekely 2005).
* Below: nothing. Of two hosts the interval by t is 12.7 standard errors long at either end.

All functions take ``values`` of shape (..., hosts) and work on all leading axes at once; results have shape (...).
"""

import numpy as np

from dbdyno.analysis.looks.alpha_spending import Looks
from dbdyno.analysis.looks.min_blocks import blocks_needed
from dbdyno.analysis.statistics import mean
from dbdyno.analysis.statistics.arrays import Floats
from dbdyno.analysis.statistics.effect import log_margin
from dbdyno.analysis.statistics.scipy_special import special
from dbdyno.analysis.statistics.signed_rank import walsh_averages
from dbdyno.analysis.verdict.evidence import Evidence, evidence
from dbdyno.model.design import ALPHA, HOSTS_MIN


def by_ranks(hosts: int, family: int = 1) -> bool:
    """Return whether signed rank can decide anything with so many hosts, ``family`` comparisons sharing the 5 %."""
    return hosts >= blocks_needed(family)


def of_one_host(d: Floats) -> Floats:
    """Return a host's figure, shape (...), of its log ratios by block, shape (..., blocks): the usual block's."""
    return np.asarray(np.median(walsh_averages(d), axis=-1))


def evidence_over_hosts(values: Floats, margin: float, family: int = 1) -> Evidence:
    """Return what the hosts' figures say; of fewer than ``HOSTS_MIN`` an estimate alone, with p = 1.

    ``family`` comparisons are to share the 5 %: it decides by which procedure, beforehand.
    """
    n = values.shape[-1]
    if by_ranks(n, family):
        return evidence(values, Looks.single(n), margin)
    value = np.asarray(np.mean(values, axis=-1))
    if n < HOSTS_MIN:
        nothing, ones = np.full(value.shape, np.inf), np.ones(value.shape)
        return Evidence(value, -nothing, nothing, ones, ones, ones)
    error = np.asarray(np.std(values, axis=-1, ddof=1)) / np.sqrt(n)
    reach = float(special.stdtrit(n - 1, 1 - ALPHA / 2)) * error
    with np.errstate(divide="ignore", invalid="ignore"):
        p = 2 * special.stdtr(n - 1, -np.abs(value) / error)
    p = np.where(error > 0, p, np.where(value == 0, 1.0, 0.0))
    return Evidence(value, value - reach, value + reach, p, p, mean.p_beyond(values, log_margin(margin)))
