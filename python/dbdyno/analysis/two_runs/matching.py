"""Which treatment of one run is which of another: by label, by names given, or because there is only one."""

from collections.abc import Mapping, Sequence

from dbdyno.analysis.refused import RefusedError
from dbdyno.model.treatment import Treatment
from dbdyno.store.records import Run


def matched_treatments(before: Run, after: Run, names: Sequence[str]) -> list[tuple[Treatment, Treatment]]:
    """Return (before, after) of each treatment in both runs, in the order of the first.

    Raises:
        RefusedError: A name is unknown or used twice, or no treatment is in both runs.

    """
    old = {one.label: one for one in before.design.treatments}
    new = {one.label: one for one in after.design.treatments}
    renamed = dict(_renamed(name, old, new) for name in names)
    if min(len(renamed), len(set(renamed.values()))) < len(names):
        raise RefusedError("named twice")
    if len(old) == len(new) == 1:
        return [(next(iter(old.values())), next(iter(new.values())))]
    free = new.keys() - set(renamed.values())
    found = [(one, new[renamed.get(label, label)]) for label, one in old.items() if label in renamed or label in free]
    if not found:
        raise RefusedError("nothing in common", before=list(old), after=list(new))
    return found


def _renamed(name: str, old: Mapping[str, Treatment], new: Mapping[str, Treatment]) -> tuple[str, str]:
    """Return the two labels; either may have "=" in it, as drives with numbers of their own do."""
    for place in (i for i, char in enumerate(name) if char == "="):
        left, right = name[:place].strip(), name[place + 1 :].strip()
        if left in old and right in new:
            return left, right
    raise RefusedError("no such pair", name=name, before=list(old), after=list(new))


def control_among(
    matched: Sequence[tuple[Treatment, Treatment]], label: str | None
) -> tuple[Treatment, Treatment] | None:
    """Return the treatment of that label in both runs; raises ``RefusedError`` where it is not, or nothing else is."""
    if label is None:
        return None
    found = next((pair for pair in matched if label in {one.label for one in pair}), None)
    if found is None:
        raise RefusedError("no such control", label=label, known=[old.label for old, _ in matched])
    if len(matched) == 1:
        raise RefusedError("control alone", label=label)
    return found
