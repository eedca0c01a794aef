"""What a recommendation costs in safety, by the settings that trials read back."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from dbdyno.analysis.advice.choice import Choice, Relations
from dbdyno.analysis.checks.durability import Durability, Lacking, worse_in
from dbdyno.store.records import Trial

Durable = Mapping[str, Durability | None]  # treatment id -> as ``durability``; None: no server was in its trials


@dataclass(frozen=True)
class Safety:
    """Of the treatments that may be taken, beside all others."""

    durable: bool | None  # whether the commits of all are; None: not known of one of them
    served: bool  # whether a server was in their trials
    lacking: tuple[Lacking, ...]  # by which settings any of them may lose a commit
    worse: tuple[Lacking, ...]  # those of them that another treatment does better
    safer: tuple[str, ...]  # ids of the treatments that do
    less_known: bool  # whether commits are known to be durable of another treatment, and not of these
    synced: tuple[str, ...]  # innodb_flush_log_at_trx_commit of these, as read back
    disks: tuple[str, ...]  # kinds of the disks below all that was compared: "emulated", "real"


def safest(choice: Choice, known: Relations, durable: Durable) -> Choice:
    """Return the choice without what another one in it does more safely that is as good by the same right.

    That is one which is shown to be faster as well, or which is equivalent; to the latter the baseline gives way, too.
    What is as good and may be had less safely than that is not offered.
    """
    pool, ahead = choice.pool, choice.take if choice.kind == "take" else ()
    better = {one: [of for of in pool if of in ahead or known.are_alike(one, of)] for one in pool}
    kept = [one for one in pool if not any(is_safer(of, one, durable) for of in better[one])]
    take = tuple(one for one in choice.take if one in kept)
    as_good = tuple(one for one in kept if one not in take)
    if not take:
        return Choice("safer" if choice.kind in {"keep", "any"} else choice.kind, as_good)
    if any(is_safer(of, one, durable) for one in kept for of in kept):
        as_good = ()
    kind = "keep" if choice.kind == "any" and len(take) + len(as_good) < len(pool) else choice.kind
    return replace(choice, kind=kind, take=take, as_good=as_good)


def is_safer(one: str, other: str, durable: Durable) -> bool:
    """Return whether the first keeps commits that the second may lose, and loses none that the second keeps."""
    first, second = durable.get(one), durable.get(other)
    return bool(first and second and worse_in(second, first) and not worse_in(first, second))


def safety(pool: Sequence[str], durable: Durable, trials: Mapping[str, Sequence[Trial]]) -> Safety:
    """Return what taking any of some treatments means beside all others that were measured."""
    own = [found for one in pool if (found := durable.get(one))]
    others = {id_: found for id_, found in durable.items() if found}
    worse = {id_: [gap for one in own for gap in worse_in(one, found)] for id_, found in others.items()}
    unknown = any(one.durable is None for one in own)
    return Safety(
        durable=None if unknown or not own else all(one.durable for one in own),
        served=bool(own),
        lacking=_unique(gap for one in own for gap in one.lacking),
        worse=_unique(gap for gaps in worse.values() for gap in gaps),
        safer=tuple(id_ for id_, gaps in worse.items() if gaps),
        less_known=unknown and any(found.durable for found in others.values()),
        synced=tuple(dict.fromkeys(_synced(trial) for one in pool for trial in trials[one])),
        disks=tuple(dict.fromkeys(_disk(trial) for each in trials.values() for trial in each)),
    )


def _unique(gaps: Iterable[Lacking]) -> tuple[Lacking, ...]:
    return tuple(dict.fromkeys(gaps))


def _synced(trial: Trial) -> str:
    return str(trial.observed.get("server", {}).get("innodb_flush_log_at_trx_commit", ""))


def _disk(trial: Trial) -> str:
    return str(trial.observed.get("device", {}).get("kind", ""))
