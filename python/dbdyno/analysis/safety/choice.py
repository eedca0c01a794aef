"""What to take where both count, safety and speed: of what lost nothing the fastest; and what is on the Pareto line."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dbdyno.analysis.ranking import Ties
from dbdyno.analysis.refused import RefusedError
from dbdyno.analysis.safety.bounds import Seen, p_by_runs
from dbdyno.analysis.safety.judge import ByHost, CrashSafety, TreatmentSafety, crash_safety
from dbdyno.analysis.statistics.estimate import Estimate
from dbdyno.analysis.statistics.multiplicity import holm
from dbdyno.analysis.summary import TreatmentSummary
from dbdyno.model.treatment import Treatment
from dbdyno.store.records import Run


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


# A crash run beside a speed run of the same treatments.


def joined(speed: Run, crash: Run) -> CrashSafety:
    """Return the crash run's safety by the ids of the speed run's treatments, in that one's order.

    Treatments are the same where their labels are, the order of factors aside. Raises ``RefusedError`` where one of the
    speed run is not in the crash run, or where that one has no cuts.
    """
    found = crash_safety(crash)
    if found is None:
        raise RefusedError("no cuts", title=crash.title)
    ids = {_levels(one): one.id for one in crash.design.treatments}
    lacking = [one.label for one in speed.design.treatments if _levels(one) not in ids]
    if lacking:
        theirs = [one.label for one in crash.design.treatments]
        raise RefusedError("other treatments", lacking=lacking, theirs=theirs, title=crash.title)
    by_id = {one.id: one for one in found.treatments}
    ours = {ids[_levels(one)]: one.id for one in speed.design.treatments}
    control = found.control
    # A control that is none of the treatments keeps its id.
    ids_now = ours | ({control.id: control.id} if control and not control.compared else {})
    return replace(
        found,
        treatments=[replace(by_id[ids[_levels(one)]], id=one.id, label=one.label) for one in speed.design.treatments],
        differences=[
            replace(one, level_id=ours[one.level_id], baseline_id=ours[one.baseline_id])
            for one in found.differences
            if one.level_id in ours and one.baseline_id in ours
        ],
        by_host=tuple(_renamed(one, ids_now[one.treatment]) for one in found.by_host if one.treatment in ids_now),
    )


def _renamed(one: ByHost, id_: str) -> ByHost:
    return ByHost(id_, tuple(replace(on, treatment=id_) for on in one.hosts))


def _levels(treatment: Treatment) -> frozenset[tuple[str, str]]:
    return frozenset(treatment.levels.items())


# What two crash runs lost, before and after a change: not interleaved, so runs alone are compared.


@dataclass(frozen=True)
class LostInBoth:
    """In how many cuts anything was lost with a treatment, before and after, each of how many; Holm's p by runs."""

    label: str
    before: tuple[int, int]
    after: tuple[int, int]
    p: float


def lost_in_both(before: Run, after: Run, matched: Sequence[tuple[Treatment, Treatment]]) -> list[LostInBoth]:
    """Return it of each treatment that has cuts in both runs."""
    each = [(new.label, _seen(before, old.id), _seen(after, new.id)) for old, new in matched]
    known = [one for one in each if one[1] and one[2]]
    adjusted = holm([p_by_runs(one, other) for _, one, other in known]) if known else ()
    return [
        LostInBoth(label, _sum(one), _sum(other), float(p))
        for (label, one, other), p in zip(known, adjusted, strict=True)
    ]


def _seen(run: Run, treatment: str) -> Seen:
    of_it = [trial.cuts for trial in run.trials if trial.treatment == treatment and trial.cuts]
    return [(sum(cut.is_loss for cut in cuts), len(cuts)) for cuts in of_it]


def _sum(seen: Seen) -> tuple[int, int]:
    return sum(one for one, _ in seen), sum(of for _, of in seen)
