"""What an A/A run over several hosts says of them: which part of the variance comes with what, and which host is odd.

The unit on a host is the block: its trials share a moment of the host. Beside it stand the start of the server, by
which two trials of a block differ, and what fluctuates inside a trial, by the difference of its halves. Blocks of a
host may resemble their neighbours (a drift, an hour of heat), and their mean is then less sure than they look: so what
lies between hosts is held against the earlier and the later half of each.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dbdyno.analysis.fleet.by_host import OfHost, OnHosts
from dbdyno.analysis.fleet.components import Groups, MeanSquare, component, in_halves, share_of
from dbdyno.analysis.statistics.arrays import Floats
from dbdyno.analysis.statistics.effect import relative
from dbdyno.analysis.statistics.estimate import Estimate
from dbdyno.analysis.statistics.multiplicity import holm
from dbdyno.analysis.statistics.scipy_special import special
from dbdyno.model.design import ALPHA

ODD_MIN = 4  # hosts; of three, who is odd?
TRIALS = 2  # of a block of an A/A run


@dataclass(frozen=True)
class Left:
    """A host against the mean of all others."""

    host: OfHost  # its figure: the geometric mean of the metric
    difference: float  # relative
    p: float  # that it is one of them: Holm over the hosts; 1 of fewer than ``ODD_MIN``

    @property
    def odd(self) -> bool:
        """Whether it is named."""
        return self.p <= ALPHA


@dataclass(frozen=True)
class FleetNoise:
    """Standard deviations of ln(metric), .01 for 1 %, each without those below it; unknown ones can't be told apart."""

    between_hosts: Estimate
    between_blocks: Estimate  # moments of a host
    between_starts: Estimate  # of the server; where ``inside`` is unknown, with that in it
    inside: Estimate  # a trial: what fluctuates in it, as it is left in its figure
    share_of_hosts: Estimate  # intraclass correlation: of the variance between two blocks, 0 to 1
    each: tuple[Left, ...]

    @property
    def odd(self) -> tuple[Left, ...]:
        """The hosts that stand apart."""
        return tuple(one for one in self.each if one.odd)


def fleet_noise(
    on: OnHosts,
    levels: Mapping[int, float],
    log_ratios: Mapping[int, float],
    halves: Sequence[float],
) -> FleetNoise:
    """Return it for an A/A run: ``levels`` is block -> mean ln(metric), ``log_ratios`` of its two trials.

    ``halves`` are the ratios of the second half of each trial to its first.
    """
    found = on.by_host(levels)
    groups = Groups.of(list(found.values())) if found else Groups.of([np.zeros(1)])
    between = Groups.of([in_halves(one) for one in found.values()]).deviation() if found else Estimate.unknown()
    trial = _of_a_trial([d for _, d in sorted(log_ratios.items())])
    of_blocks = MeanSquare(TRIALS * groups.inside.value, groups.inside.freedom)
    inside = MeanSquare.around_mean(np.log(halves) / 2)  # a trial is the mean of two halves
    return FleetNoise(
        between_hosts=between,
        between_blocks=component(of_blocks, trial, TRIALS),
        between_starts=component(trial, inside, 1) if inside.freedom else trial.deviation(),
        inside=inside.deviation(),
        share_of_hosts=share_of(between, groups.inside),
        each=left_one_out(found, groups.inside.value),
    )


def _of_a_trial(d: Sequence[float]) -> MeanSquare:
    """Return the variance of a trial around its block, from the log ratios of the two trials of each."""
    of_ratio = MeanSquare.around_mean(np.asarray(d, dtype=np.float64))
    return MeanSquare(of_ratio.value / TRIALS, of_ratio.freedom)


def left_one_out(found: Mapping[str, Floats], variance: float) -> tuple[Left, ...]:
    """Return each host against the others; ``found`` is host -> ln(metric) by block, ``variance`` that of a block."""
    means = np.array([one.mean() for one in found.values()])
    errors = variance / np.array([len(one) for one in found.values()], dtype=np.float64)
    hosts = [OfHost(host, len(one), float(np.exp(one.mean()))) for host, one in found.items()]
    if len(hosts) < 2:  # noqa: PLR2004 - there are no others
        return tuple(Left(host, np.nan, 1.0) for host in hosts)
    apart, p = odd_p(means, errors)
    return tuple(Left(host, relative(float(apart[at])), float(p[at])) for at, host in enumerate(hosts))


def odd_p(means: Floats, errors: Floats) -> tuple[Floats, Floats]:
    """Return how far each host's mean is from that of the others, and p, Holm over the hosts; shapes (..., hosts).

    The t test of a new value against a sample: by how far apart the others are (the externally studentised residual;
    Cook and Weisberg 1982, section 2.2.2). ``errors`` are the squared standard errors of the means, shape (hosts,): a
    host of which fewer blocks are known than of the others may be farther off. p is 1 of fewer than ``ODD_MIN`` hosts.
    """
    k = means.shape[-1]
    rest = (means.sum(axis=-1, keepdims=True) - means) / (k - 1)
    apart = means - rest
    if k < ODD_MIN:
        return apart, np.ones(means.shape)
    others = means[..., None, :] - rest[..., :, None]
    squares = np.sum(np.where(np.eye(k, dtype=bool), 0.0, others**2), axis=-1)
    less_known = np.maximum(0.0, errors - (errors.sum() - errors) / (k - 1))
    error = np.sqrt(squares / (k - 2) * k / (k - 1) + less_known)
    with np.errstate(divide="ignore", invalid="ignore"):
        p = 2 * special.stdtr(k - 2, -np.abs(apart) / error)
    return apart, holm(np.where(error > 0, p, np.where(apart == 0, 1.0, 0.0)))
