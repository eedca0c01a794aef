"""Several treatments in as few words as there are."""

from collections.abc import Collection, Sequence

from dbdyno.analysis.summary import TreatmentSummary
from dbdyno.model.treatment import Treatment, level_label

FEW = 2  # treatments of a run that are named one by one, if all are meant


Named = Treatment | TreatmentSummary


def named(ids: Collection[str], treatments: Sequence[Named], between: str = "; ") -> str:
    """Return ``"all treatments"``, the levels that these and no others have, as ``"raid0-s510"``, or else their labels.

    ``ids`` are some of the ``treatments``, which are all of a run.
    """
    chosen = [one for one in treatments if one.id in ids]
    if len(chosen) == len(treatments) > FEW:
        return "all treatments"
    for factor in chosen[0].levels if 1 < len(chosen) < len(treatments) else ():
        levels = list(dict.fromkeys(one.levels[factor] for one in chosen))
        if len(levels) < len(chosen) == sum(one.levels[factor] in levels for one in treatments):
            return between.join(level_label(factor, level) for level in levels)
    return between.join(one.label for one in chosen)
