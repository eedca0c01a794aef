"""What one figure per host says of hosts like these: estimate, interval, p, equivalence. Here n counts hosts.

A treatment that helps on one machine may not on another: the effect is one of the host as well. So blocks of one host
are no repetitions of that, and each host has one vote, however many blocks it ran: the Hodges-Lehmann estimate of its
log ratios.

* Where there are so many hosts that signed rank can reach p = .05 after Holm (6 of one comparison, 7 of two):
  signed rank, Hodges-Lehmann, its exact interval, and for equivalence the mean as well, as of blocks.
* Else, from ``HOSTS_MIN`` on: Student's t. It takes hosts for independent and the effect in them for normal, but not
  for equally well known: with unequal variances, so with unequal numbers of blocks, and with any mixture of normal
  distributions (heavy tails) t at 5 % is wrong less often, not more (Ibragimov and Mueller 2010, after Bakirov and
  Szekely 2005).
* Below: nothing. Of two hosts the interval by t is 12.7 standard errors long at either end.

*Equivalent* is held against more than the hosts at hand: the mean, by t, must also be inside the margin if there were
one more host, ``ONE_MORE`` times as far from the middle as the farthest, to either side. Where few hosts gain much and
most lose a little, a sample has the few too seldom, and without it equivalence is wrong in 10 to 16 % at the margin.
What no host at hand shows can't be known: k hosts exclude, with 95 %, only kinds that are ``excluded_kinds(k)`` of all
or more.

All functions take ``values`` of shape (..., hosts) and work on all leading axes at once; results have shape (...).
"""

from dataclasses import replace

import numpy as np

from dbdyno.analysis.looks.alpha_spending import Looks
from dbdyno.analysis.looks.min_blocks import blocks_by_ranks
from dbdyno.analysis.statistics import mean
from dbdyno.analysis.statistics.arrays import Floats
from dbdyno.analysis.statistics.effect import log_margin
from dbdyno.analysis.statistics.scipy_special import special
from dbdyno.analysis.statistics.signed_rank import walsh_averages
from dbdyno.analysis.verdict.evidence import Evidence, evidence
from dbdyno.model.design import ALPHA, HOSTS_MIN

ONE_MORE = 2.0  # times


def excluded_kinds(hosts: int) -> float:
    """Return how large a share of all a kind of hosts has if, with 95 %, one of it is among so many; about 3/k."""
    return 1 - ALPHA ** (1 / hosts) if hosts else 1.0


def by_ranks(hosts: int, family: int = 1) -> bool:
    """Return whether signed rank can decide anything with so many hosts, ``family`` comparisons sharing the 5 %."""
    return hosts >= blocks_by_ranks(family)


def of_one_host(d: Floats) -> Floats:
    """Return a host's figure, shape (...), of its log ratios by block, shape (..., blocks): the usual block's."""
    return np.asarray(np.median(walsh_averages(d), axis=-1))


def evidence_over_hosts(values: Floats, margin: float, family: int = 1) -> Evidence:
    """Return what the hosts' figures say; of fewer than ``HOSTS_MIN`` an estimate alone, with p = 1.

    ``family`` comparisons are to share the 5 %: it decides by which procedure, beforehand.
    """
    n = values.shape[-1]
    bound = log_margin(margin)
    if by_ranks(n, family):
        found = evidence(values, Looks.single(n), margin)
        return replace(found, p_equivalence=np.maximum(found.p_equivalence, _p_with_one_more(values, bound)))
    value = np.asarray(np.mean(values, axis=-1))
    if n < HOSTS_MIN:
        nothing, ones = np.full(value.shape, np.inf), np.ones(value.shape)
        return Evidence(value, -nothing, nothing, ones, ones, ones)
    error = np.asarray(np.std(values, axis=-1, ddof=1)) / np.sqrt(n)
    reach = float(special.stdtrit(n - 1, 1 - ALPHA / 2)) * error
    with np.errstate(divide="ignore", invalid="ignore"):
        p = 2 * special.stdtr(n - 1, -np.abs(value) / error)
    p = np.where(error > 0, p, np.where(value == 0, 1.0, 0.0))
    p_equivalence = np.maximum(mean.p_beyond(values, bound), _p_with_one_more(values, bound))
    return Evidence(value, value - reach, value + reach, p, p, p_equivalence)


def _p_with_one_more(values: Floats, bound: float) -> Floats:
    """Return the p of "the mean is ``bound`` or more" with a further host, the larger of those to either side."""
    middle = np.median(values, axis=-1, keepdims=True)
    ends = values.min(axis=-1, keepdims=True), values.max(axis=-1, keepdims=True)
    each = [np.concatenate((values, middle + ONE_MORE * (end - middle)), axis=-1) for end in ends]
    return np.maximum(*(mean.p_beyond(one, bound) for one in each))
