"""Looking several times: what a p is worth at the k-th planned look.

Whoever looks at the data several times and stops when they please has several chances to be fooled. So each look gets a
part of the 5 %, spent by the function of Hwang, Shih and DeCani (1990), ``spent(t) = alpha (1 - exp(-g t)) /
(1 - exp(-g))`` at the fraction t of the planned blocks, with g = 2.5: a little earlier than Pocock's bounds (about
g = 1), because most studies can end early. From what is spent up to each look follow the *nominal levels*: what the p
of that look must not exceed. They are computed for a Brownian motion, by the recursion over its density at each look
(Armitage, McPherson, Rowe 1969; Jennison and Turnbull, "Group Sequential Methods", chapter 19), whose clock runs as the
sizes of the differences seen say (``growth``), and are applied to the p of each look (the same, section 3.3). That is
close, not exact: a signed-rank statistic is no Brownian motion. With a single look the nominal level is alpha.

The *sequential p* is the smallest alpha at which this look would have rejected. It is at most alpha with probability at
most alpha however many of the looks were taken, so Holm's correction may be applied to it as to any other p.
"""

import functools
import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

import numpy as np

from dbdyno.analysis.planned_looks import FIRST_BY_RANKS, RANKS_OF_ONE_LOOK
from dbdyno.analysis.scipy_special import special
from dbdyno.analysis.statistics import TIE, Bools, Floats

# How fast the differences grow from block to block: then a later look has less in common with those before it.
#
# Whether the looks together err in 5 % depends on how alike they are. Given the sizes of the differences only their
# signs are left to chance, each by itself, so the correlation of the signed-rank statistics of two looks is known: that
# of the ranks that the sizes of the first have at either look. Of n blocks of which all are alike it is as that of a
# Brownian motion at the times n; where sizes grow, as at the times ``n ** growth``. Between 1 (alike) and 3 (each
# larger than all before it); shrinking sizes, which make looks more alike, are taken as 1.


STEADY, STEEPEST, STEP = 1.0, 3.0, 0.5
ALIKE = 0.6  # The ratio is 1 for equal sizes, 5/9 for sizes spread evenly from 0 up, and 1/3 for normal noise.


def growth(d: Floats, looks: tuple[int, ...]) -> Floats:
    """Return the growth of log ratios of shape (..., n), shape (...), over looks after ``looks`` of them, rounded."""
    if len(looks) < 2:  # noqa: PLR2004
        return np.full(d.shape[:-1], STEADY)
    sizes, apart = np.abs(d), np.zeros(d.shape[:-1])
    ranks = [_ranks(sizes[..., :look]) for look in looks]
    for before, now in pairwise(ranks):
        common = np.sum(before * now[..., : before.shape[-1]], axis=-1)
        apart -= np.log(common**2 / (np.sum(before**2, axis=-1) * np.sum(now**2, axis=-1)))
    slope = apart / np.log(looks[-1] / looks[0])
    return np.asarray(np.clip(np.round(slope / STEP) * STEP, STEADY, STEEPEST))


def are_alike(d: Floats) -> Bools:
    """Return whether the sizes of log ratios of shape (..., n) are about one size, shape (...).

    That is where ``(sum of d^2)^2 / (n sum of d^4)`` is near 1: of an effect that is large against the spread, and of
    noise that has two values, as from a job that hits one trial of every block. Signs are not looked at.
    """
    squares = (d / np.maximum(np.max(np.abs(d), axis=-1, keepdims=True), TIE)) ** 2
    fourth = np.maximum(np.sum(squares**2, axis=-1), TIE)
    return np.asarray(np.sum(squares, axis=-1) ** 2 > ALIKE * d.shape[-1] * fourth)


def _ranks(sizes: Floats) -> Floats:
    order = np.argsort(sizes, axis=-1, kind="stable")
    return np.asarray(np.argsort(order, axis=-1) + 1, dtype=np.float64)


Sides = Literal[1, 2]

# Of the error allowed at several looks. The two rules mostly err together, so together they may have more than all of
# it; but where sizes are alike they err apart, since both then see little but signs: there the signed rank has less.
# Chosen so that no symmetric noise that was tried makes both err in more than 5 % (docs/statistics/error-rates.md).
RANKS, RANKS_OF_LIKE_SIZES, MEAN = 0.9, 0.5, 0.3
SPENDING = 2.5  # g of the spending function

_NODES = 48  # of the quadrature at each look; more change nothing in the tenth digit
_FAR = 9.0  # standard deviations: nothing lies beyond
_NEWTON_STEPS, _NEWTON_CLOSE = 60, 1e-13
_KNOTS = 65  # of the table from alpha to nominal level
_SMALLEST_ALPHA = 1e-12


@dataclass(frozen=True)
class Looks:
    """The looks so far: numbers of blocks in ascending order, the last being now.

    ``planned`` is the number of blocks at the end of the plan, which decides what share of alpha has been spent. The
    last look may spend all that is left where measuring ends with it for a reason that has not seen the data, such as
    the time allowed (``final``).
    """

    taken: tuple[int, ...]
    planned: int
    final: bool = False
    growth: float = STEADY  # of the differences seen
    alike: bool = False  # whether these are all of about one size
    first: int = FIRST_BY_RANKS  # blocks: looks at fewer decide nothing, unless one is the last

    @classmethod
    def single(cls, blocks: int) -> "Looks":
        """Return the one look at the end of a design whose number of blocks was fixed beforehand."""
        return cls((blocks,), blocks)

    @property
    def alone(self) -> bool:
        """Whether the last look is the only one that can decide and has all of alpha."""
        return self.deciding[-1].spending == 1 and len(self.deciding) == 1

    @property
    def once(self) -> bool:
        """Whether the data are looked at once, at the end of the plan."""
        return self.taken[0] >= self.planned

    @property
    def shares(self) -> tuple[float, float]:
        """What the signed rank and the mean of a large effect have of the error allowed."""
        if self.once:
            return RANKS_OF_ONE_LOOK, 1 - RANKS_OF_ONE_LOOK
        return RANKS_OF_LIKE_SIZES if self.alike else RANKS, MEAN

    @property
    def pilot(self) -> bool:
        """Whether the last look only gives the spread: later ones have all of alpha, so this one has none."""
        return self.taken[-1] < self.first and self.taken[-1] < self.planned and not self.final

    @property
    def deciding(self) -> "tuple[_Look, ...]":
        """The looks that can decide."""
        now = self.taken[-1]
        looks = [look for look in self.taken[:-1] if self.first <= look < now]
        earlier = [_Look(self._time(look), look / self.planned) for look in looks]
        spending = 1.0 if self.final else min(1.0, now / self.planned)
        return (*earlier, _Look(self._time(now), spending))

    def _time(self, blocks: int) -> float:
        return float((blocks / self.planned) ** self.growth)

    def of(self, d: Floats) -> "tuple[tuple[Looks, Bools], ...]":
        """Return the looks as the sizes seen of each comparison make them, and which of (...) of ``d`` have these."""
        if self.once:
            return ((self, np.ones(d.shape[:-1], dtype=np.bool_)),)
        now = d.shape[-1]
        looks = (*(look for look in self.taken[:-1] if self.first <= look < now), now)
        grown, alike = growth(d, looks), are_alike(d)
        kinds = [(size, same) for size in np.unique(grown) for same in (False, True)]
        cases = [
            (replace(self, growth=float(size), alike=same), (grown == size) & (alike == same)) for size, same in kinds
        ]
        return tuple((of_kind, np.asarray(rows)) for of_kind, rows in cases if np.any(rows))


@dataclass(frozen=True)
class _Look:
    time: float  # on the clock of the Brownian motion: blocks, in any unit
    spending: float  # fraction at which the spending function is taken


def nominal_level(looks: Looks, alpha: float, sides: Sides = 2) -> float:
    """Return what the p of the last look must not exceed for an error of ``alpha`` over all looks."""
    if looks.pilot:
        return 0.0
    if looks.alone:
        return alpha
    # From the same table as ``sequential_p``, so that one is the other's inverse.
    alphas, levels = _table(looks.deciding, sides)
    return float(np.exp(np.interp(math.log(max(alpha, alphas[0])), np.log(alphas), np.log(levels))))


def sequential_p(p: Floats, looks: Looks, sides: Sides = 2) -> Floats:
    """Return the smallest alpha at which a p of the last look rejects, for each p: p itself if that look is alone."""
    if looks.pilot:
        return np.ones(p.shape)
    if looks.alone:
        return p
    alphas, levels = _table(looks.deciding, sides)
    logs = np.log(np.maximum(p, levels[0]))
    alpha_of_p = np.exp(np.interp(logs, np.log(levels), np.log(alphas)))
    return np.where(p > levels[-1], 1.0, np.maximum(alpha_of_p, p))


@functools.cache
def _table(looks: tuple[_Look, ...], sides: Sides) -> tuple[Floats, Floats]:
    """Return alphas and their nominal levels at the last look, both ascending; .05 and its shares by Holm are knots."""
    levels = sides * special.ndtr(-_bound(looks, sides))
    return _alphas(), np.maximum.accumulate(np.maximum(levels, 1e-300))


@functools.cache
def _alphas() -> Floats:
    shares = 0.05 / np.arange(1, 17)
    # Where alpha is large the level bends most; no one decides there, but the p shown should be right.
    large = np.linspace(0.05, 1 - 1e-9, 40)
    return np.unique(np.concatenate((np.geomspace(_SMALLEST_ALPHA, 1 - 1e-9, _KNOTS), shares, 2 * shares, large)))


def _alpha_spent(look: _Look) -> Floats:
    return _alphas() * math.expm1(-SPENDING * look.spending) / math.expm1(-SPENDING)


@functools.cache
def _bound(looks: tuple[_Look, ...], sides: Sides) -> Floats:
    """Return the bound of the last look for each alpha, in standard deviations."""
    if len(looks) == 1:
        return np.asarray(-special.ndtri(_alpha_spent(looks[0]) / sides))
    before, now = looks[-2:]
    scale, nodes, density = math.sqrt(now.time - before.time), *_going_on(looks[:-1], sides)
    start = _bound(looks[:-1], sides) * math.sqrt(now.time)
    return _crossed_by(start, nodes, density, scale, _alpha_spent(now) - _alpha_spent(before), sides) / math.sqrt(
        now.time
    )


@functools.cache
def _going_on(looks: tuple[_Look, ...], sides: Sides) -> tuple[Floats, Floats]:
    """Return nodes of a Gauss-Legendre quadrature and the density there of the paths that have crossed no bound so far.

    Both have shape (alphas, nodes); the density is multiplied by the nodes' weights.
    """
    nodes, weights = _quadrature(_bound(looks, sides), looks[-1].time, sides)
    if len(looks) == 1:
        return nodes, weights * _normal(nodes, looks[0].time)
    earlier, density = _going_on(looks[:-1], sides)
    kernel = _normal(nodes[:, :, None] - earlier[:, None, :], looks[-1].time - looks[-2].time)
    return nodes, weights * (kernel @ density[:, :, None])[..., 0]


def _crossed_by(start: Floats, nodes: Floats, density: Floats, scale: float, target: Floats, sides: Sides) -> Floats:  # noqa: PLR0913, PLR0917
    """Return the bound that ``target`` of the paths cross at this look, by Newton's method on the logarithm.

    What crosses falls with the bound, and its logarithm is nearly a parabola.
    """
    bound = start
    for _ in range(_NEWTON_STEPS):
        above = (nodes - bound[:, None]) / scale
        crossing = np.einsum("ij,ij->i", special.ndtr(above), density)
        slope = np.einsum("ij,ij->i", _normal(above, 1.0), density) / scale
        if sides == 2:  # noqa: PLR2004
            below = (-nodes - bound[:, None]) / scale
            crossing = crossing + np.einsum("ij,ij->i", special.ndtr(below), density)
            slope = slope + np.einsum("ij,ij->i", _normal(below, 1.0), density) / scale
        move = np.log(crossing / target) * crossing / slope
        bound = bound + np.clip(move, -scale, scale)
        if np.all(np.abs(move) < _NEWTON_CLOSE):
            break
    return bound


def _quadrature(z: Floats, time: float, sides: Sides) -> tuple[Floats, Floats]:
    """Return nodes and weights over the paths that go on: those within ``z`` standard deviations."""
    scale, high = math.sqrt(time), np.minimum(z, _FAR)[:, None]
    low = -high if sides == 2 else np.full_like(high, -_FAR)  # noqa: PLR2004
    nodes, weights = _legendre()
    half = (high - low) / 2
    return scale * (low + half * (nodes + 1)), scale * half * weights


@functools.cache
def _legendre() -> tuple[Floats, Floats]:
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return np.asarray(nodes), np.asarray(weights)


def _normal(value: Floats, variance: float) -> Floats:
    return np.asarray(np.exp(-(value**2) / (2 * variance)) / math.sqrt(2 * math.pi * variance))


# The always-valid t sequence: an interval that may be looked at after every block, for as long as anyone likes.
#
# Half-width over the standard error: ``sqrt((n - 1)(r - 1) / (1 - r / (1 + n g)))``, r being the n-th root of
# ``(1 + n g) / alpha^2`` and g = 1; infinite where ``r >= 1 + n g``. It contains the true mean at all n at once with
# probability ``1 - alpha``, if the log ratios are normal. Source: Lai 1976, as the scale-invariant mixture of Wang and
# Ramdas, "Anytime-valid t-tests and confidence sequences for Gaussian means with unknown variance", 2023.
#
# All functions take ``d`` of shape (..., n) and work on all leading axes at once.


G = 1.0  # the width of the mixture, in standard deviations


def always_valid_multiplier(n: int, alpha: float) -> float:
    """Return the half-width in standard errors; infinite while n is too small for ``alpha``."""
    room = 1 + n * G
    r = (room / alpha**2) ** (1 / n)
    if n < 2 or r >= room:  # noqa: PLR2004
        return float(np.inf)
    return float(np.sqrt((n - 1) * (r - 1) / (1 - r / room)))


def always_valid_interval(d: Floats, alpha: float) -> tuple[Floats, Floats]:
    """Return both ends of the interval of the mean, each of shape (...)."""
    mean, error = _mean_and_error(d)
    with np.errstate(invalid="ignore"):
        half = np.where(error > 0, always_valid_multiplier(d.shape[-1], alpha) * error, np.inf)
    return mean - half, mean + half


def always_valid_p(d: Floats, value: float | Floats = 0.0) -> Floats:
    """Return the smallest alpha at which the interval excludes ``value``, shape (...); 1 where none below 1 does.

    With ``x = t^2 / (n - 1)`` the interval excludes the value where ``r < (1 + x)(1 + n g) / (1 + n g + x)``.
    """
    n = d.shape[-1]
    mean, error = _mean_and_error(d)
    if n < 2:  # noqa: PLR2004
        return np.ones(mean.shape)
    room = 1 + n * G
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        x = ((mean - value) / error) ** 2 / (n - 1)
        r = np.where(np.isfinite(x), (1 + x) * room / (room + x), room)
        alpha = np.sqrt(room * r ** -float(n))
    return np.where(error > 0, np.minimum(1.0, alpha), 1.0)


def _mean_and_error(d: Floats) -> tuple[Floats, Floats]:
    n = d.shape[-1]
    mean = np.asarray(np.mean(d, axis=-1))
    if n < 2:  # noqa: PLR2004
        return mean, np.full(mean.shape, np.nan)
    return mean, np.asarray(np.std(d, axis=-1, ddof=1)) / np.sqrt(n)


# Large effects: Student's t on the mean of the log ratios, with a bound that chance signs alone rarely reach.
#
# The signed rank sees order and not size: with six blocks its p is 2/64 at best, whether the effect is 20 % or
# fivefold. This rule sees size. It is planned beside the signed rank, with a share of the 5 % of its own.
#
# t takes the log ratios for normal. Two equal treatments of which a job slows one trial in every block give log ratios
# of nearly one size, each as likely up as down, and t then calls chance signs a difference however strict its level is.
# So a value counts as excluded only where ``(sum of d)^2 > m (sum of d^2)`` with m = n - 2, but at least 5, the value
# taken off each d: that is ``|t| > sqrt(m (n - 1) / (n - m))``. m blocks that agree while all others show nothing do
# not suffice; so six blocks at least must agree, as chance signs do in 2 of 64 studies. Of fewer nothing is said. The
# more blocks there are, the larger against the spread an effect must be: lesser ones are the signed rank's to find.
#
# The interval reaches to the estimate that is shown, if that lies outside, and a value between the two is not excluded:
# so this interval and that of the signed rank always have a value in common. All functions take ``d`` of shape (..., n)
# and ``shown`` of shape (...), the estimate shown, and work on all leading axes at once.


AGREEING, SHOWING_NOTHING = 5, 2  # blocks: so many with one sign are no evidence, 2 of 32


def least_multiple(n: int) -> float:
    """Return how many standard errors the mean must lie from a value at least; infinite where n is too small."""
    agreeing = max(AGREEING, n - SHOWING_NOTHING)
    return math.sqrt(agreeing * (n - 1) / (n - agreeing)) if n > AGREEING else math.inf


def large_effect_interval(d: Floats, shown: Floats, level: float) -> tuple[Floats, Floats]:
    """Return both ends of the interval at ``level``, each of shape (...)."""
    n = d.shape[-1]
    if n <= AGREEING or level <= 0:
        return np.full(shown.shape, -np.inf), np.full(shown.shape, np.inf)
    mean, error = _mean_and_error(d)
    half = max(float(special.stdtrit(n - 1, 1 - level / 2)), least_multiple(n)) * error
    return np.minimum(mean - half, shown), np.maximum(mean + half, shown)


def large_effect_p(d: Floats, shown: Floats) -> Floats:
    """Return the smallest level at which the interval excludes 0, shape (...); 1 where none does."""
    n = d.shape[-1]
    if n <= AGREEING:
        return np.ones(shown.shape)
    mean, error = _mean_and_error(d)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.abs(mean) / error
        far = (t > least_multiple(n)) & (np.abs(mean) > TIE) & (np.sign(mean) == np.sign(shown))
        return np.where(far, 2 * special.stdtr(n - 1, -t), 1.0)
