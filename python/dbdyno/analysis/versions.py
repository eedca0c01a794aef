"""Where along the versions of a run, servers or kernels in the order of the study, its loads changed."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from dbdyno.analysis.blocks import UsableBlocks
from dbdyno.analysis.change_points import LEVELS_MAX, ChangesAlong, changes_along
from dbdyno.analysis.statistics import Floats
from dbdyno.analysis.verdict.finding import Finding, mostly
from dbdyno.model.design import MIN_BLOCKS, Design, Factor
from dbdyno.model.metrics import Metric, value_of

ORDERED = ("server", "kernel")  # factors whose levels a study gives in the order of their age
LEVELS_MIN = 3  # of two, a verdict says all


@dataclass(frozen=True)
class AlongVersions:
    """What became of each load, or cell of other factors, along the levels of one factor."""

    factor: str
    levels: tuple[str, ...]
    names: tuple[str, ...]  # of the loads, in the order of ``changes.loads``; one empty name where there is but one
    changes: ChangesAlong
    left_out: tuple[str, ...] = ()  # loads with a verdict in doubt, as their steps would be


def along_versions(
    design: Design, blocks: UsableBlocks, metric: Metric, findings: Sequence[Finding]
) -> AlongVersions | None:
    """Return the steps; None where no single factor has three versions or more, or every load is in doubt.

    Words are withheld where those of verdicts are: of all loads where half of the blocks met interference, of one where
    a cause such as an emulated disk's lateness speaks against one of its verdicts.
    """
    ordered = [factor for factor in design.factors if factor.name in ORDERED and len(factor.levels) >= LEVELS_MIN]
    if len(ordered) != 1 or len(ordered[0].levels) > LEVELS_MAX or len(blocks.trials) < MIN_BLOCKS:
        return None
    disturbed = sum(any(trial.disturbed for trial in row.values()) for row in blocks.trials.values())
    if mostly(disturbed, len(blocks.trials)):
        return None
    doubted = {id_ for finding in findings if finding.doubted_for for id_ in (finding.level_id, finding.baseline_id)}
    factor = ordered[0]
    others = [other for other in design.factors if other is not factor]
    ids = {tuple(sorted(treatment.levels.items())): treatment.id for treatment in design.treatments}
    names, loads, left_out = [], [], []
    for cell in product(*(other.levels for other in others)):
        fixed = dict(zip((other.name for other in others), cell, strict=True))
        treatments = [ids.get(tuple(sorted({**fixed, factor.name: level}.items()))) for level in factor.levels]
        known = [id_ for id_ in treatments if id_ is not None]
        if doubted.intersection(known):
            left_out.append(_name(others, cell))
        elif len(known) == len(treatments):
            names.append(_name(others, cell))
            loads.append(_logs(blocks, known, metric.name))
    if not loads:
        return None
    changes = changes_along(loads, design.margin, more_is_better=metric.more_is_better)
    return AlongVersions(factor.name, tuple(factor.levels), tuple(names), changes, tuple(left_out))


def _name(others: Sequence[Factor], cell: Sequence[str]) -> str:
    return " / ".join(
        level if other.groups is not None or other.gives else f"{other.name} {level}"
        for other, level in zip(others, cell, strict=True)
    )


def _logs(blocks: UsableBlocks, treatments: Sequence[str], metric: str) -> Floats:
    """Return ln(metric), shape (blocks, levels); NaN where a trial has none, or 0."""
    rows = [
        [value_of(row[id_].metrics, metric) if id_ in row else np.nan for id_ in treatments]
        for row in blocks.trials.values()
    ]
    values = np.array(rows, dtype=np.float64)
    return np.asarray(np.log(np.where(values > 0, values, np.nan)))
