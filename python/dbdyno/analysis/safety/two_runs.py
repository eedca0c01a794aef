"""What two crash runs lost, before and after a change: not interleaved, so runs alone are compared."""

from collections.abc import Sequence
from dataclasses import dataclass

from dbdyno.analysis.safety.bounds import Seen
from dbdyno.analysis.safety.by_runs import p_by_runs
from dbdyno.analysis.statistics.multiplicity import holm
from dbdyno.model.treatment import Treatment
from dbdyno.store.records import Run


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
