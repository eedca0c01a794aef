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
from typing import Literal

import numpy as np

from dbdyno.analysis.looks.growth import STEADY, are_alike, growth
from dbdyno.analysis.looks.min_blocks import RANKS_OF_ONE_LOOK
from dbdyno.analysis.looks.planned import FIRST_BY_RANKS
from dbdyno.analysis.statistics.arrays import Bools, Floats
from dbdyno.analysis.statistics.scipy_special import special

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
        each = [
            (replace(self, growth=float(size), alike=same), (grown == size) & (alike == same)) for size, same in kinds
        ]
        return tuple((seen, np.asarray(those)) for seen, those in each if np.any(those))


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
    found = np.exp(np.interp(logs, np.log(levels), np.log(alphas)))
    return np.where(p > levels[-1], 1.0, np.maximum(found, p))


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


def _spent(look: _Look) -> Floats:
    return _alphas() * math.expm1(-SPENDING * look.spending) / math.expm1(-SPENDING)


@functools.cache
def _bound(looks: tuple[_Look, ...], sides: Sides) -> Floats:
    """Return the bound of the last look for each alpha, in standard deviations."""
    if len(looks) == 1:
        return np.asarray(-special.ndtri(_spent(looks[0]) / sides))
    before, now = looks[-2:]
    scale, nodes, density = math.sqrt(now.time - before.time), *_going_on(looks[:-1], sides)
    start = _bound(looks[:-1], sides) * math.sqrt(now.time)
    return _crossed_by(start, nodes, density, scale, _spent(now) - _spent(before), sides) / math.sqrt(now.time)


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
