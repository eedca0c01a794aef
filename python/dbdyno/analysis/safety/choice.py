"""What to take where both count, safety and speed: of what lost nothing the fastest; and what is on the Pareto line."""

from collections.abc import Sequence
from dataclasses import dataclass

from dbdyno.analysis.ranking.letters import Ties
from dbdyno.analysis.safety.judge import CrashSafety, TreatmentSafety
from dbdyno.analysis.statistics.estimate import Estimate
from dbdyno.analysis.summary import TreatmentSummary


@dataclass(frozen=True)
class Faster:
    """A treatment that is faster than the fastest that lost nothing, and why it isn't it."""

    id: str
    ratio: float  # of the metric to that of the one taken


@dataclass(frozen=True)
class Choice:
    """Ids of treatments, by speed: the fastest first."""

    take: tuple[str, ...]  # the fastest that lost nothing, and what lost nothing and isn't shown to be slower
    slower: tuple[str, ...]  # what lost nothing, too, and is slower
    faster: tuple[Faster, ...]  # what did lose, or is undecided
    pareto: tuple[str, ...]  # what nothing else is both as fast and as safe as


@dataclass(frozen=True)
class Placed:
    """A treatment by its speed and its bound."""

    safety: TreatmentSafety
    speed: Estimate


def placed(safety: CrashSafety, treatments: Sequence[TreatmentSummary]) -> list[Placed]:
    """Return the treatments whose speed is known and that have cuts."""
    speeds = {row.id: row.metric for row in treatments}
    each = [Placed(one, speeds[one.id]) for one in safety.treatments if one.id in speeds and one.tally.cuts]
    return [one for one in each if one.speed.known]


def choice(safety: CrashSafety, treatments: Sequence[TreatmentSummary], ties: Ties, *, more_is_better: bool) -> Choice:
    """Return what to take. ``ties`` say which treatments are not shown to differ in speed.

    Where there are no letters, as so few blocks can't tell so many pairs apart, those whose intervals meet are alike.
    """
    known = placed(safety, treatments)
    ordered = sorted(known, key=lambda one: -one.speed.value if more_is_better else one.speed.value)
    safe = [one for one in ordered if one.safety.word == "no loss seen"]
    line = pareto(ordered)
    if not safe:
        return Choice((), (), (), line)
    first = safe[0]
    alike = [one for one in safe if one is first or _tied(ties, one, first)]
    ahead = [one for one in ordered[: ordered.index(first)] if not _tied(ties, one, first)]
    return Choice(
        take=tuple(one.safety.id for one in alike),
        slower=tuple(one.safety.id for one in safe if one not in alike),
        faster=tuple(Faster(one.safety.id, one.speed.value / first.speed.value) for one in ahead),
        pareto=line,
    )


def _tied(ties: Ties, one: Placed, other: Placed) -> bool:
    letters = [set(ties.letters.get(each.safety.id, "")) for each in (one, other)]
    if all(letters):
        return bool(letters[0] & letters[1])
    return one.speed.low <= other.speed.high and other.speed.low <= one.speed.high


def pareto(ordered: Sequence[Placed]) -> tuple[str, ...]:
    """Return those, from the fastest down, whose bound lies below that of all that are faster."""
    line, least = [], float("inf")
    for one in ordered:
        if one.safety.tally.lost.at_most < least:
            line.append(one.safety.id)
            least = one.safety.tally.lost.at_most
    return tuple(line)
