"""Failures and disturbances that struck one of two treatments more often than the other.

An attempt that is left out because a trial failed or was disturbed is missing, and a trial that was disturbed and
kept is not what it would have been. Where that strikes both treatments alike it favours neither. Where it strikes one
of them more often it may have picked the results: a treatment that fails when it is slow shows only its fast trials.
Why it failed is not known. So where the numbers differ by more than chance may have it, by the exact test that each
attempt was spoiled by either with probability 1/2, the worst is supposed: the attempts that one treatment has too
many of count as blocks that lie, on either side, as far beyond all that were seen as these lie apart. A word that
does not stand then is withheld (bounds as in Manski, "Nonparametric bounds on treatment effects", American Economic
Review 80, 1990).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dbdyno.analysis.blocks import UsableBlocks
from dbdyno.analysis.statistics.arrays import Bools, Floats
from dbdyno.analysis.verdict.finding import OtherRatios
from dbdyno.analysis.verdict.reasons import UnequalFailures
from dbdyno.store.records import Run, Trial

TRACE = 0.01  # of the scatter that was measured
SUSPECT = 0.2  # p of the exact test; at .05, 4 to 0 or 5 to 0 pass, which pick enough to matter


@dataclass(frozen=True)
class Struck:
    """Of two treatments, the attempts at blocks that one of them alone spoiled: left out, or kept though disturbed."""

    left_out: int
    kept: tuple[int, ...]  # blocks

    @property
    def attempts(self) -> int:
        """All of them."""
        return self.left_out + len(self.kept)


def struck(run: Run, blocks: UsableBlocks) -> tuple[list[frozenset[str]], dict[int, frozenset[str]]]:
    """Return which treatments spoiled each attempt that was left out, and which were disturbed in each block used."""
    spoiled: dict[tuple[int, int], set[str]] = {}
    for failure in run.failures:
        spoiled.setdefault((failure.block, failure.attempt), set()).add(failure.treatment)
    failed = set(spoiled)
    attempts: dict[tuple[int, int], list[Trial]] = {}
    for trial in run.trials:
        attempts.setdefault((trial.block, trial.attempt), []).append(trial)
    for attempt, trials in attempts.items():
        if attempt not in failed:
            spoiled.setdefault(attempt, set()).update(disturbed_among(trials))
    left_out = [frozenset(spoiled.get(attempt, ())) for attempt in blocks.void]
    kept = {block: disturbed_among(list(trials.values())) for block, trials in blocks.trials.items()}
    return left_out, kept


def disturbed_among(trials: Sequence[Trial]) -> frozenset[str]:
    """Return which treatments' trials of a block were disturbed, all asked by the narrowest limit among them.

    A short trial's own limit is wide, as its figures are coarse; by that alone only long trials would be disturbed.
    """
    beyond = {name for trial in trials for name in trial.disturbance.get("beyond", ())}
    limits = {name: min(_limits(trials, name), default=math.inf) for name in beyond}
    return frozenset(
        trial.treatment
        for trial in trials
        if trial.disturbed or any((trial.disturbance.get(name) or 0.0) > limit for name, limit in limits.items())
    )


def _limits(trials: Sequence[Trial], name: str) -> Iterator[float]:
    found = (trial.disturbance.get("limits", {}).get(name) for trial in trials)
    return (limit for limit in found if limit is not None)


def by_one(one: str, other: str, left_out: list[frozenset[str]], kept: Mapping[int, frozenset[str]]) -> Struck:
    """Return what ``one`` spoiled and ``other`` did not."""
    return Struck(
        sum(one in which and other not in which for which in left_out),
        tuple(block for block, which in sorted(kept.items()) if one in which and other not in which),
    )


def p_alike(more: int, fewer: int) -> float:
    """Return the two-sided p of the exact (sign) test that two treatments spoil attempts equally often."""
    n = more + fewer
    tail = sum(math.comb(n, k) for k in range(max(more, fewer), n + 1))
    return min(1.0, 2.0 * tail / 2.0**n)


def spoiled_ratios(
    d: Floats, at: tuple[int, ...], labels: tuple[str, str], level: Struck, baseline: Struck
) -> tuple[OtherRatios, ...]:
    """Return the log ratios, of the blocks ``at``, as they might have been; nothing where both were struck alike.

    ``labels`` are those of level and baseline.
    """
    more, fewer = (level, baseline) if level.attempts > baseline.attempts else (baseline, level)
    excess = more.attempts - fewer.attempts
    if p_alike(more.attempts, fewer.attempts) > SUSPECT or len(d) < 2:  # noqa: PLR2004
        return ()
    which = labels if more is level else labels[::-1]
    cause = UnequalFailures(which[0], more.attempts, which[1], fewer.attempts)
    return tuple(OtherRatios(bound, cause) for bound in _bounds(d, np.isin(at, more.kept), excess))


def _bounds(d: Floats, kept: Bools, excess: int) -> tuple[Floats, Floats]:
    """Return ``d`` with so many values at the low extreme, and at the high one: blocks that were kept, or new ones.

    Blocks that were kept keep a trace of their scatter: if all were in one place, the always-valid sequence could judge
    nothing.
    """
    spread, trace = float(np.ptp(d)), TRACE * (d - d.mean())
    found = []
    for extreme, order in ((d.min() - spread, -d), (d.max() + spread, d)):
        bound = d.copy()
        # Of those kept, the ones that are farthest from the extreme.
        places = [place for place in np.argsort(order, kind="stable") if kept[place]][:excess]
        bound[places] = extreme + trace[places]
        found.append(np.concatenate((bound, np.full(excess - len(places), extreme))))
    return found[0], found[1]
