"""Failures and disturbances that struck one side of a contrast more often than the other, and what they may hide.

An attempt that is left out because a trial failed or was disturbed is missing, and a trial that was disturbed and kept
is not what it would have been. Where that strikes both sides alike it favours neither. Where it strikes one of them
more often it may have picked the results: a treatment that fails when it is slow shows only its fast trials. Why it
failed is not known. So where the numbers differ by more than chance may have it, by the exact test that each attempt
was spoiled by either with the probability that their numbers of attempts give, the worst is supposed: the attempts that
one treatment has too many of count as blocks that lie, on either side, as far beyond all that were seen as these lie
apart. A word that does not stand then is withheld (bounds as in Manski, "Nonparametric bounds on treatment effects",
American Economic Review 80, 1990).

A mean over comparisons, or a difference of two, is asked for each of its pairs, and for all of them together. In a
missing block a pair that was struck alone lies at its extreme and every other in its middle, and what is missing of the
contrast is their weighted sum. So what was picked in one pair is not taken for made up by another.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dbdyno.analysis.blocks import UsableBlocks
from dbdyno.analysis.statistics import Bools, Floats
from dbdyno.analysis.verdict.finding import OtherRatios
from dbdyno.analysis.verdict.reasons import UnequalFailures
from dbdyno.model.metrics import value_of
from dbdyno.store.records import Run, Trial

TRACE = 0.01  # of the scatter that was measured
SUSPECT = 0.2  # p of the exact test; at .05, 4 to 0 or 5 to 0 pass, which pick enough to matter


@dataclass(frozen=True)
class SpoiledAttempts:
    """Which treatments spoiled each attempt that was left out, and which were disturbed in each block that is used."""

    left_out: tuple[frozenset[str], ...]
    disturbed: Mapping[int, frozenset[str]]

    def alone(self, id_: str, other_id: str) -> "Struck":
        """Return what ``id_`` spoiled and ``other_id`` did not."""
        return self.favouring({id_: 1.0, other_id: -1.0})

    def favouring(self, weights: Mapping[str, float]) -> "Struck":
        """Return what was spoiled by treatments whose weights in a contrast add up to more than 0."""
        return Struck(
            sum(_net(weights, treatments) > 0 for treatments in self.left_out),
            tuple(block for block, ids in sorted(self.disturbed.items()) if _net(weights, ids) > 0),
        )


def _net(weights: Mapping[str, float], treatments: Iterable[str]) -> float:
    return round(math.fsum(weights.get(id_, 0.0) for id_ in treatments), 12)


@dataclass(frozen=True)
class Struck:
    """The attempts at blocks that one side alone spoiled: left out, or kept though disturbed."""

    left_out: int
    kept: tuple[int, ...]  # blocks

    @property
    def attempts(self) -> int:
        """All of them."""
        return self.left_out + len(self.kept)


def spoiled_attempts(run: Run, blocks: UsableBlocks) -> SpoiledAttempts:
    """Return which treatments spoiled which attempts at blocks of a run."""
    failed: dict[tuple[int, int], set[str]] = {}
    for failure in run.failures:
        failed.setdefault((failure.block, failure.attempt), set()).add(failure.treatment)
    attempts: dict[tuple[int, int], list[Trial]] = {}
    for trial in run.trials:
        attempts.setdefault((trial.block, trial.attempt), []).append(trial)
    left_out = tuple(
        part & failed.get((block, attempt), set())
        or disturbed_among([trial for trial in attempts.get((block, attempt), []) if trial.treatment in part])
        for block, attempt, part in blocks.void
    )
    parts = run.design.parts()
    disturbed = {
        block: frozenset().union(
            *(disturbed_among([trial for id_, trial in trials.items() if id_ in part]) for part in parts)
        )
        for block, trials in blocks.trials.items()
    }
    return SpoiledAttempts(left_out, disturbed)


def disturbed_among(trials: Sequence[Trial]) -> frozenset[str]:
    """Return which treatments' trials of a block were disturbed, all asked by the narrowest limit among them.

    A short trial's own limit is wide, as its figures are coarse; by that alone only long trials would be disturbed.
    """
    beyond = {name for trial in trials for name in trial.disturbance.get("beyond", ())}
    limits = {name: min(_limits(trials, name), default=math.inf) for name in beyond}
    return frozenset(
        trial.treatment
        for trial in trials
        if trial.disturbed or any(value_of(trial.disturbance, name) > limit for name, limit in limits.items())
    )


def _limits(trials: Sequence[Trial], name: str) -> Iterator[float]:
    limits = (trial.disturbance.get("limits", {}).get(name) for trial in trials)
    return (limit for limit in limits if limit is not None)


def p_alike(more: int, fewer: int, share: float = 0.5) -> float:
    """Return the two-sided p of the exact (binomial) test that two sides spoil attempts equally often.

    ``share`` is the first one's share of the attempts.
    """
    n = more + fewer
    probabilities = [math.comb(n, k) * share**k * (1 - share) ** (n - k) for k in range(n + 1)]
    return min(1.0, 2.0 * min(math.fsum(probabilities[more:]), math.fsum(probabilities[: more + 1])))


def is_suspect(level: int, baseline: int, share: float = 0.5) -> bool:
    """Return whether two sides spoiled attempts so unequally that it may have picked the results."""
    return p_alike(level, baseline, share) <= SUSPECT


@dataclass(frozen=True)
class StruckPair:
    """A pair that a contrast is made from, with what either of its treatments spoiled alone."""

    weight: float  # above 0
    labels: tuple[str, str]  # of level and baseline
    d: Floats  # log ratios of the contrast's blocks, shape (blocks,)
    level: Struck
    baseline: Struck

    @property
    def ordered(self) -> tuple[tuple[Struck, str], tuple[Struck, str]]:
        """What was struck more often and what less often, each with its label."""
        sides = (self.level, self.labels[0]), (self.baseline, self.labels[1])
        return sides if self.level.attempts > self.baseline.attempts else sides[::-1]

    @property
    def excess(self) -> int:
        """By how many attempts one was struck more often."""
        return abs(self.level.attempts - self.baseline.attempts)

    @property
    def suspect(self) -> bool:
        """Whether that is more than chance may have it."""
        return is_suspect(self.level.attempts, self.baseline.attempts)


def ratios_unspoiled(
    d: Floats, at: Sequence[int], pairs: Sequence[StruckPair], together: tuple[Struck, Struck]
) -> tuple[OtherRatios, ...]:
    """Return the contrast ``d`` of the blocks ``at`` as it might have been; nothing where all was struck alike.

    ``together`` is what the pairs' levels, and what their baselines, spoiled in all. Results have the blocks in order,
    then those that are supposed to be missing.
    """
    if len(d) < 2:  # noqa: PLR2004
        return ()
    suspect = [pair for pair in pairs if pair.suspect]
    if suspect:
        (more, label), (fewer, other) = max(suspect, key=lambda pair: pair.excess).ordered
        cause = UnequalFailures(label, more.attempts, other, fewer.attempts)
    elif is_suspect(*(struck.attempts for struck in together)):
        suspect = [pair for pair in pairs if pair.excess]
        names = (" + ".join(dict.fromkeys(pair.labels[place] for pair in pairs)) for place in range(2))
        sides = sorted(zip((struck.attempts for struck in together), names, strict=True), reverse=True)
        cause = UnequalFailures(sides[0][1], sides[0][0], sides[1][1], sides[1][0])
    if not suspect:
        return ()
    return tuple(OtherRatios(_bound(d, at, suspect, sign), cause) for sign in (-1.0, 1.0))


def _bound(d: Floats, at: Sequence[int], pairs: Sequence[StruckPair], sign: float) -> Floats:
    """Return ``d`` with blocks at the extreme of each pair in the direction ``sign``: some that were kept, and new.

    Blocks that were kept keep a trace of their scatter: if all were in one place, the always-valid sequence could judge
    nothing. Of those kept, the ones count that are farthest from the extreme.
    """
    bound, missing = d.copy(), np.full(max(pair.excess for pair in pairs), float(np.median(d)))
    for pair in pairs:
        extreme = extreme_of(pair.d, sign)
        kept: Bools = np.isin(at, pair.ordered[0][0].kept)
        places = [place for place in np.argsort(sign * pair.d, kind="stable") if kept[place]][: pair.excess]
        trace = TRACE * (pair.d - pair.d.mean())
        bound[places] += pair.weight * (extreme + trace[places] - pair.d[places])
        missing[: pair.excess - len(places)] += pair.weight * (extreme - float(np.median(pair.d)))
    return np.concatenate((bound, missing[: max(_new(pair, at) for pair in pairs)]))


def _new(pair: StruckPair, at: Sequence[int]) -> int:
    return pair.excess - min(pair.excess, int(np.isin(at, pair.ordered[0][0].kept).sum()))


def extreme_of(values: Floats, sign: float) -> float:
    """Return a value as far beyond all of shape (n,), in the direction ``sign``, as these lie apart."""
    return float((values.max() if sign > 0 else values.min()) + sign * np.ptp(values))


@dataclass(frozen=True)
class StruckBetweenRuns:
    """A contrast in two runs that share no blocks, and the attempts that either side of it spoiled alone in each.

    What a side spoils counts as of the run that it makes look better: the level after, or the control before.
    """

    labels: tuple[str, str]  # before and after
    before: tuple[int, int]  # attempts left out for the level, and for the control
    after: tuple[int, int]
    attempts: tuple[int, int]  # of each run
    has_control: bool  # in the same blocks

    @property
    def cause(self) -> UnequalFailures | None:
        """What may have picked the results; None where both runs were struck alike."""
        favours = self.before[0] + self.after[1], self.after[0] + self.before[1]
        share = 0.5 if self.has_control or not sum(self.attempts) else self.attempts[1] / sum(self.attempts)
        if not is_suspect(favours[1], favours[0], share):
            return None
        more, fewer = (1, 0) if favours[1] > favours[0] else (0, 1)
        return UnequalFailures(self.labels[more], favours[more], self.labels[fewer], favours[fewer])

    @property
    def missing(self) -> tuple[int, int]:
        """How many attempts are missing before and after, beyond the share that both runs miss alike."""
        shares = [
            (level - control) / max(1, attempts)
            for (level, control), attempts in zip((self.before, self.after), self.attempts, strict=True)
        ]
        common = min(map(abs, shares)) if shares[0] * shares[1] > 0 else 0.0
        before, after = (
            math.ceil(round((abs(share) - common) * attempts, 9))
            for share, attempts in zip(shares, self.attempts, strict=True)
        )
        return before, after

    def samples(self, x: Floats, y: Floats) -> Iterator[tuple[Floats, Floats]]:
        """Yield the values before and after as they might have been: what is missing at its lowest, then highest."""
        missing = self.missing
        for sign in (-1.0, 1.0):
            yield (
                np.concatenate((x, np.full(missing[0], extreme_of(x, -sign)))),
                np.concatenate((y, np.full(missing[1], extreme_of(y, sign)))),
            )
