"""What an A/A run says of its host: how far apart two trials come that differ in nothing.

Both labels of an A/A run are the same treatment. What their trials differ by is the noise floor: no study of that
treatment on this host can show a smaller difference from it, but by more blocks.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dbdyno.analysis.blocks import UsableBlocks
from dbdyno.analysis.over_time import drift_over_run
from dbdyno.analysis.planned_looks import RANKS_OF_ONE_LOOK
from dbdyno.analysis.scipy_special import special
from dbdyno.analysis.statistics import (
    POWER,
    Estimate,
    Floats,
    exactly_dropped,
    log_ratios,
    relative,
    signed_rank_cdf,
    welch_p,
)
from dbdyno.model.design import ALPHA, MIN_BLOCKS
from dbdyno.model.metrics import value_of
from dbdyno.store.records import Run, Trial

BLOCKS_ASKED = (6, 10, 15, 20, 40)
NAIVE_DIFFERENCE = 0.02  # between means: what blog posts take for a result
# What the two halves of a trial are compared in.
RATES = ("queries_per_second", "events_per_second", "rows_per_second", "iops", "megabytes_per_second")
_QUANTILES = 64  # of a standard deviation, in each direction of the integral
_WALSH_EFFICIENCY = 3 / math.pi  # of the signed-rank procedures against those of t, under normal noise (Pitman)


@dataclass(frozen=True)
class Reach:
    """What so many blocks can show, each in 80 of 100 studies; relative, None where so few can show nothing."""

    blocks: int
    difference: float | None  # the smallest that is called one
    margin: float | None  # the smallest within which no difference is called equivalent


@dataclass(frozen=True)
class Ordered:
    """The trials labelled A and B otherwise, and judged as blog posts judge: two means and Welch's test."""

    order: str  # "halves": all A, then all B; "turns": A B A B; "random": as they were labelled
    difference: float  # of the means, B against A, relative
    p_welch: float

    @property
    def means_differ(self) -> bool:
        """Whether someone who calls 2 % between means a difference would have been fooled."""
        return abs(self.difference) > NAIVE_DIFFERENCE

    @property
    def welch_differs(self) -> bool:
        """Whether Welch's test would have said that there is a difference."""
        return self.p_welch <= ALPHA


@dataclass(frozen=True)
class NoiseFloor:
    """The noise of a host under one treatment."""

    treatment: str  # its label in its study
    comparisons: int  # of that study; what it can show allows for them by Holm
    spread: Estimate  # standard deviation of the log ratio of two trials of a block: .01 is 1 %
    reach: tuple[Reach, ...]
    drift: Estimate  # relative change from the first trial to the last
    orders: tuple[Ordered, ...]
    between_starts: Estimate  # share of the variance between trials that does not average out inside one


def noise_floor(run: Run, blocks: UsableBlocks) -> NoiseFloor | None:
    """Return the noise floor that an A/A run found; None of any other run."""
    if run.design.aa is None:
        return None
    used = {trial.id for row in blocks.trials.values() for trial in row.values()}
    trials = [(place, trial) for place, trial in enumerate(run.trials) if trial.id in used]
    values = [(place, trial, value_of(trial.metrics, run.design.metric)) for place, trial in trials]
    figures = _without_hosts([(place, trial, value) for place, trial, value in values if value > 0])
    a, b = (blocks.values(treatment.id, run.design.metric) for treatment in run.design.treatments)
    d = np.asarray(list(log_ratios(b, a).values()))
    halves = [trial.load.get("second_half_ratio") for _, trial, _ in figures] if run.design.metric in RATES else []
    return NoiseFloor(
        treatment=run.design.aa.treatment,
        comparisons=run.design.aa.comparisons,
        spread=_spread(d),
        reach=reach(d, run.design.aa.comparisons),
        drift=drift_over_run(
            [place for place, _, _ in figures], ["A"] * len(figures), [value for _, _, value in figures]
        ),
        orders=orders([value for _, _, value in figures], [trial.treatment == "t2" for _, trial, _ in figures]),
        between_starts=between_starts(d, [ratio for ratio in halves if ratio]),
    )


def _without_hosts(figures: list[tuple[int, Trial, float]]) -> list[tuple[int, Trial, float]]:
    """Return the trials' figures as if all hosts were equally fast; on one host as they are."""
    hosts = {trial.host for _, trial, _ in figures}
    if len(hosts) < 2:  # noqa: PLR2004
        return figures
    logs = {host: np.mean([math.log(value) for _, trial, value in figures if trial.host == host]) for host in hosts}
    whole = np.mean([math.log(value) for _, _, value in figures])
    return [(at, trial, value * float(np.exp(whole - logs[trial.host]))) for at, trial, value in figures]


def _spread(d: Floats) -> Estimate:
    freedom = len(d) - 1
    if freedom < 1:
        return Estimate.unknown(len(d))
    sigma = float(np.std(d, ddof=1))
    low, high = (sigma * math.sqrt(freedom / float(special.chdtri(freedom, tail))) for tail in (0.025, 0.975))
    return Estimate(sigma, low, high, len(d))


def reach(d: Floats, comparisons: int) -> tuple[Reach, ...]:
    """Return what studies with more or fewer blocks can show, from the log ratios of an A/A run; nothing of too few."""
    if len(d) < MIN_BLOCKS:
        return ()
    sigma, freedom = float(np.std(d, ddof=1)), len(d) - 1
    reaches = []
    for blocks in BLOCKS_ASKED:
        share = ALPHA / comparisons
        # The signed rank has its part of the error alone: what the mean of a large effect shows as well is not counted.
        multiples = multiple(blocks, RANKS_OF_ONE_LOOK * share, freedom, 1), multiple(blocks, 2 * share, freedom, 2)
        reaches.append(Reach(blocks, *(None if c is None else relative(c * sigma) for c in multiples)))
    return tuple(reaches)


@functools.cache
def multiple(blocks: int, level: float, freedom: int, sides: int) -> float | None:
    """Return how many standard deviations, estimated with so much ``freedom``, lie within reach with 80 % power.

    Within reach is a difference whose interval at ``level`` excludes 0 (``sides`` 1), or a margin that holds the whole
    interval where there is no difference (2). The signed-rank interval is taken for the t interval of 3/pi as many
    blocks at the level it really has; the power is that over all that both standard deviations, the one estimated
    here and the one of the study to come, may turn out to be. Where the interval is from the least to the largest
    value, it excludes 0 if they all lie on one side: that is exact. None: there is no interval at that level.
    """
    k = exactly_dropped(signed_rank_cdf(blocks), level)
    if k < 0:
        return None
    t = float(special.stdtrit(blocks - 1, 1 - float(signed_rank_cdf(blocks)[k])))
    root = math.sqrt(blocks * _WALSH_EFFICIENCY)
    here, there = _deviations(freedom)[:, None], _deviations(blocks - 1)[None, :]

    def lacking(c: float) -> float:
        if k == 0:
            inside = special.ndtr(c * here)
            power = inside**blocks if sides == 1 else (2 * inside - 1) ** blocks
        else:
            side = special.ndtr(root * c * here - t * there)
            power = side if sides == 1 else np.maximum(0.0, 2 * side - 1)
        return float(np.mean(power)) - POWER

    from scipy import optimize

    return float(optimize.brentq(lacking, 0.0, 1000.0))


def _deviations(freedom: int) -> Floats:
    """Return equally likely estimates of a standard deviation of 1, by the chi distribution."""
    tails = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    return np.sqrt(np.asarray(special.chdtri(freedom, tails)) / freedom)


def orders(values: Sequence[float], is_b: Sequence[bool]) -> tuple[Ordered, ...]:
    """Return what two fixed orders and the true one would have shown; ``values`` in the order they were measured."""
    y, count = np.asarray(values, dtype=np.float64), len(values)
    if count < 4:  # noqa: PLR2004 - two of each
        return ()
    places = np.arange(count)
    labelled = {"halves": places >= count / 2, "turns": places % 2 == 1, "random": np.asarray(is_b, dtype=bool)}
    return tuple(
        Ordered(order, float(y[b].mean() / y[~b].mean()) - 1, welch_p(y[~b], y[b])) for order, b in labelled.items()
    )


def between_starts(d: Floats, halves: Sequence[float]) -> Estimate:
    """Return the share of the variance between two neighbours' rates that both halves of a trial have in common.

    A trial's rate is the mean of its two halves. If what differs inside a trial were all, the variance of that mean
    would be a quarter of the variance of the log ratio of the halves (``halves``: second over first); what there is
    more comes with the start of the server, or with a moment of the host that lasts longer than a trial. Interval by
    F; the share is never taken for less than 0.
    """
    freedom, freedom_inside = len(d) - 1, len(halves) - 1
    if len(d) < MIN_BLOCKS or len(halves) < MIN_BLOCKS or not np.var(d) > 0:
        return Estimate.unknown(len(halves))
    inside = float(np.var(np.log(halves), ddof=1)) / 4
    ratio = inside / (float(np.var(d, ddof=1)) / 2)
    low, high = (ratio / float(special.fdtri(freedom_inside, freedom, tail)) for tail in (0.975, 0.025))
    value, least, most = (max(0.0, 1 - share) for share in (ratio, high, low))
    return Estimate(value, least, most, len(halves))
