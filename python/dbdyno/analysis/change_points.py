"""Where along an ordered factor, such as versions, the figures of one or many loads changed.

Every block holds each level once, in random order. The question is asked of every stretch of neighbouring levels: is
the rate the same throughout? The statistic of a stretch is the largest over its splits into two neighbouring parts of

    t = sqrt(blocks) * mean / max(sd, pooled)

where mean and sd are of the difference between the parts' means inside blocks, and pooled is what the load's residuals
around blocks and levels give for that difference. The larger of the two errors counts: one level that is noisier than
the others would else be found to have moved.

Of few blocks a load's own error is uncertain, so that of all loads has a part in it, as ``PRIOR`` blocks more would
have: the median over loads of the variance inside blocks (moderated t: Smyth 2004, with the weight fixed).

How large t may be where nothing changed is taken from the figures themselves: inside blocks the levels are permuted,
for all loads alike, and the largest t over all loads, stretches and splits is noted (maxT, Westfall and Young 1993,
chapter 2; permutations are justified by the random order). A stretch whose t exceeds 95 % of these holds a change. So
the error is bounded over the whole suite: with at least 95 % *every* stretch that is named holds one, whatever changed
elsewhere (intervals that each must hold a change, at one global level: Fryzlewicz 2024, narrowest significance pursuit;
stretches are taken the narrowest first). As all loads are permuted alike, they may share the noise of a server's start.

Extreme figures are cut to ``CUT`` robust standard deviations from their block's median before they are tested, which
keeps them exchangeable. Sizes and intervals are of figures cut around their level's median, so that cutting takes
nothing from a large change. Deterministic: the permutations are drawn from a fixed seed.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import median

import numpy as np
import numpy.typing as npt

from dbdyno.analysis.statistics import Estimate, Floats, Ints, log_margin, relative, robust_sd
from dbdyno.model.design import MIN_BLOCKS
from dbdyno.model.word import Word

ALPHA = 0.05  # of any wrong step over the whole suite
PERMUTATIONS = 999
CUT = 4.0  # robust standard deviations
PRIOR, PRIOR_LOADS = 6.0, 8  # degrees of freedom of what all loads tell of a load's variance; loads, for that
_SEED = 20240229
_CHUNK = 4_000_000  # figures that are held at a time
_LENGTHS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)  # levels of a part, beside all of those on its side
LEVELS_MAX = 64


@dataclass(frozen=True)
class Step:
    """A change. With the suite's 95 % one lies between the levels ``first`` and ``last``; best it fits after ``at``."""

    first: int  # places of levels, from 0
    last: int
    at: int  # the last level before it
    effect: Estimate  # relative, from the levels since the step before to those until the next: .05 for +5 %
    word: Word  # equivalent: it is a change, and within the margin
    p: float  # over the whole suite


@dataclass(frozen=True)
class Along:
    """What became of one load along the levels. Intervals of all levels and steps of the suite hold together (95 %)."""

    levels: list[Estimate]  # relative to the first level, which is 0
    words: list[Word]  # of the same
    steps: list[Step]  # in the order of the levels; none: no change was found
    blocks: int


@dataclass(frozen=True)
class ChangesAlong:
    """The same of a whole suite; ``loads`` are in the order given. ``critical`` is the t that bounds its error."""

    loads: list[Along]
    critical: float
    tests: int  # differences that were looked at in each load


def changes_along(loads: Sequence[Floats], margin: float, *, more_is_better: bool = True) -> ChangesAlong:
    """Return where each load changed. ``loads`` are logarithms of the metric, each of shape (blocks, levels).

    All loads have the same blocks in the same order and the same levels in theirs; a block that a load lacks, or has in
    part, is NaN there. A load of fewer than ``MIN_BLOCKS`` whole blocks has no steps, and unknown intervals.

    Raises:
        ValueError: The shapes differ, or there are fewer than two levels or more than ``LEVELS_MAX``.

    """
    shapes = {np.shape(load) for load in loads}
    if not shapes:
        return ChangesAlong([], math.inf, 0)
    if len(shapes) > 1 or len(shape := next(iter(shapes))) != 2:  # noqa: PLR2004
        raise ValueError(f"loads have the shapes {sorted(shapes)}; they must all have (blocks, levels)")
    if not 2 <= shape[1] <= LEVELS_MAX:  # noqa: PLR2004
        raise ValueError(f"there are {shape[1]} levels; give 2 to {LEVELS_MAX}")
    contrasts = _contrasts_of(shape[1])
    whole = [np.all(np.isfinite(load), axis=1) for load in loads]
    usable = [place for place, blocks in enumerate(whole) if int(blocks.sum()) >= MIN_BLOCKS]
    cut = {place: _cut_in_blocks(np.asarray(loads[place])[whole[place]]) for place in usable}
    usual = _usual_variance(list(cut.values()))
    tested = {place: np.abs(_statistics(values[None], contrasts, usual)[0]) for place, values in cut.items()}
    largest = _largest_by_chance(cut, whole, contrasts, usual)
    bound = _Bound(largest, _critical(largest), usual)
    along = [
        _along(np.asarray(load)[whole[place]], tested[place], bound, contrasts, margin, more_is_better=more_is_better)
        if place in tested
        else _unknown(shape[1], int(whole[place].sum()))
        for place, load in enumerate(loads)
    ]
    return ChangesAlong(along, bound.critical, len(contrasts.weights))


def _unknown(levels: int, blocks: int) -> Along:
    return Along([Estimate.unknown(blocks)] * levels, [Word.NOT_COMPARABLE] * levels, [], blocks)


@dataclass(frozen=True)
class _Contrasts:
    """Differences between neighbouring parts, later minus earlier: levels ``first`` to ``at``, ``at + 1`` to ``last``.

    The last of them are of a level and the first one, which are no neighbours: there ``at`` is -1.
    """

    weights: Floats  # (tests, levels)
    first: Ints
    at: Ints
    last: Ints
    scale: Floats  # (tests,): the length of each row of weights


@cache
def _contrasts_of(levels: int) -> _Contrasts:
    """Return every split of every stretch, with parts of the lengths in ``_LENGTHS`` or to the ends."""
    found = []
    for at in range(levels - 1):
        before = sorted({length for length in (*_LENGTHS, at + 1) if length <= at + 1})
        after = sorted({length for length in (*_LENGTHS, levels - 1 - at) if length <= levels - 1 - at})
        found += [(at + 1 - left, at, at + right) for left in before for right in after]
    first, at_, last = (np.array(part, dtype=np.int64) for part in zip(*found, strict=True))
    places = np.arange(levels)
    left = (places >= first[:, None]) & (places <= at_[:, None])
    right = (places > at_[:, None]) & (places <= last[:, None])
    weights = right / right.sum(axis=1, keepdims=True) - left / left.sum(axis=1, keepdims=True)
    against_first = np.eye(levels)[2:] - np.eye(levels)[0]
    weights, far = np.concatenate((weights, against_first)), np.arange(2, levels)
    first, at_ = (np.concatenate((part, np.full(len(far), none))) for part, none in ((first, 0), (at_, -1)))
    return _Contrasts(weights, first, at_, np.concatenate((last, far)), np.sqrt((weights**2).sum(axis=1)))


def _cut_in_blocks(values: Floats) -> Floats:
    """Return figures less their block's median, extremes cut; whichever level a figure is of, it is cut alike."""
    centred = values - np.median(values, axis=1, keepdims=True)
    # Of two levels both have the same distance from their median, and all of them count; else one of each block is 0.
    scale = median(np.abs(centred).ravel().tolist()) / 0.6745 * (1.0 if values.shape[1] > 2 else math.sqrt(2))  # noqa: PLR2004
    return np.clip(centred, -CUT * scale, CUT * scale) if scale > 0 else centred


def _usual_variance(loads: Sequence[Floats]) -> float:
    """Return the median over loads of their variance inside blocks, however levels are permuted; 0 of few loads."""
    if len(loads) < PRIOR_LOADS:
        return 0.0
    inside = (values - values.mean(axis=1, keepdims=True) for values in loads)
    return float(median([float((part**2).sum()) / (len(part) * (part.shape[1] - 1)) for part in inside]))


def _statistics(values: Floats, contrasts: _Contrasts, usual: float) -> Floats:
    """Return t of every difference, shape (sets, tests), of values of shape (sets, blocks, levels)."""
    mean, error = _means_and_errors(values, contrasts, usual)
    floor = 1e-12 * np.maximum(1e-300, np.abs(values).max(axis=(1, 2)))[:, None]
    return np.asarray(math.sqrt(values.shape[1]) * mean / np.maximum(error, floor))


def _means_and_errors(values: Floats, contrasts: _Contrasts, usual: float) -> tuple[Floats, Floats]:
    """Return mean and standard deviation over blocks of every difference, each of shape (sets, tests).

    ``usual`` is the variance of a figure in the suite; 0: each load stands for itself.
    """
    blocks, levels = values.shape[1:]
    d = values @ contrasts.weights.T  # (sets, blocks, tests)
    mean = d.mean(axis=1)
    own = np.maximum(0.0, (d**2).mean(axis=1) - mean**2) * blocks / (blocks - 1)
    of_levels, of_blocks = values.mean(axis=1, keepdims=True), values.mean(axis=2, keepdims=True)
    residuals = values - of_levels - of_blocks + values.mean(axis=(1, 2), keepdims=True)
    freedom, prior = (blocks - 1) * (levels - 1), PRIOR if usual > 0 else 0.0
    pooled = ((residuals**2).sum(axis=(1, 2)) + prior * usual) / (freedom + prior)
    own = ((blocks - 1) * own + prior * usual * contrasts.scale**2) / (blocks - 1 + prior)
    error = np.sqrt(np.maximum(own, pooled[:, None] * contrasts.scale**2))
    return np.asarray(mean), np.asarray(error)


def _largest_by_chance(
    cut: dict[int, Floats], whole: Sequence[npt.NDArray[np.bool_]], contrasts: _Contrasts, usual: float
) -> Floats:
    """Return the largest t of the suite under each permutation, shape (permutations,)."""
    if not cut:
        return np.empty(0)
    blocks, (_, tests), levels = len(whole[0]), contrasts.weights.shape, contrasts.weights.shape[1]
    at_once = max(1, _CHUNK // (blocks * max(tests, levels)))
    rng = np.random.Generator(np.random.PCG64(_SEED))
    largest = []
    for begin in range(0, PERMUTATIONS, at_once):
        some = min(at_once, PERMUTATIONS - begin)
        orders = np.argsort(rng.random((some, blocks, levels)), axis=-1)
        of_loads = np.zeros(some)
        for place, values in cut.items():
            permuted = np.take_along_axis(values[None], orders[:, whole[place]], axis=-1)
            of_loads = np.maximum(of_loads, np.abs(_statistics(permuted, contrasts, usual)).max(axis=1))
        largest.append(of_loads)
    return np.concatenate(largest)


def _critical(largest: Floats) -> float:
    """Return the least t of which p is at most ``ALPHA``; infinite where permutations are too few for that."""
    rank = math.floor(ALPHA * (len(largest) + 1))  # so many, with the figures themselves, may be as large
    return float(np.sort(largest)[len(largest) - rank]) if rank >= 1 else math.inf


def _p(t: float, largest: Floats) -> float:
    return float((1 + np.sum(largest >= t * (1 - 1e-9))) / (len(largest) + 1))


@dataclass(frozen=True)
class _Bound:
    """What t is held against: the largest of the suite under each permutation, and the usual variance in its error."""

    largest: Floats
    critical: float
    usual: float


def _along(  # noqa: PLR0913  (what a load's steps are drawn from)
    values: Floats, t: Floats, bound: _Bound, contrasts: _Contrasts, margin: float, *, more_is_better: bool
) -> Along:
    blocks, levels = values.shape
    stretches = list(_narrowest(t, bound, contrasts))
    ends = [-1, *(at for _, at, _, _ in stretches), levels - 1]
    cut = _cut_in_levels(values)
    steps = []
    for place, (first, at, last, p) in enumerate(stretches, 1):
        weights = _mean_of(ends[place] + 1, ends[place + 1], levels) - _mean_of(ends[place - 1] + 1, at, levels)
        effect = _estimate(cut, weights, bound)
        steps.append(
            Step(first, last, at, effect, _word(effect, margin, more_is_better=more_is_better, changed=True), p)
        )
    against_first = [
        _estimate(cut, _mean_of(level, level, levels) - _mean_of(0, 0, levels), bound) for level in range(1, levels)
    ]
    whole = [Estimate(0.0, 0.0, 0.0, blocks), *against_first]
    words = [_word(level, margin, more_is_better=more_is_better, changed=False) for level in whole]
    return Along(whole, words, steps, blocks)


def _narrowest(t: Floats, bound: _Bound, contrasts: _Contrasts) -> Iterator[tuple[int, int, int, float]]:
    """Yield (first, at, last, p) of stretches that share no gap between two levels, by their places."""
    found = [
        (int(contrasts.last[i] - contrasts.first[i]), -float(t[i]), int(i))
        for i in range(len(t))
        if contrasts.at[i] >= 0 and _p(float(t[i]), bound.largest) <= ALPHA
    ]
    taken: list[tuple[int, int, int, float]] = []
    for _, minus_t, i in sorted(found):
        first, at, last = int(contrasts.first[i]), int(contrasts.at[i]), int(contrasts.last[i])
        if all(last <= other[0] or first >= other[2] for other in taken):
            taken.append((first, at, last, _p(-minus_t, bound.largest)))
    yield from sorted(taken)


def _mean_of(first: int, last: int, levels: int) -> Floats:
    places = np.arange(levels)
    inside = (places >= first) & (places <= last)
    return np.asarray(inside / inside.sum())


def _cut_in_levels(values: Floats) -> Floats:
    """Return the figures less their block's level, extremes cut around their level's median."""
    centred = values - np.median(values, axis=1, keepdims=True)
    usual = np.median(centred, axis=0)
    residuals = centred - usual
    scale = robust_sd(residuals.ravel())
    return usual + np.clip(residuals, -CUT * scale, CUT * scale) if scale > 0 else centred


def _estimate(cut: Floats, weights: Floats, bound: _Bound) -> Estimate:
    """Return a difference, relative, with the interval that holds together with all others of the suite."""
    places = (np.zeros(1, dtype=np.int64),) * 3
    alone = _Contrasts(weights[None], *places, scale=np.array([math.sqrt(float(weights @ weights))]))
    mean, error = _means_and_errors(cut[None], alone, bound.usual)
    value, half = float(mean[0, 0]), bound.critical * float(error[0, 0]) / math.sqrt(len(cut))
    low = relative(value - half) if math.isfinite(half) else -math.inf
    return Estimate(relative(value), low, relative(value + half), len(cut))


def _word(effect: Estimate, margin: float, *, more_is_better: bool, changed: bool) -> Word:
    half = log_margin(margin)
    if effect.bounded and relative(-half) < effect.low and effect.high < relative(half):
        return Word.EQUIVALENT
    if not changed and not (effect.low > 0 or effect.high < 0):
        return Word.UNDECIDED
    return Word.FASTER if (effect.value > 0) == more_is_better else Word.SLOWER
