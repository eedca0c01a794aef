"""How steady each treatment's load was over time: the class of every usable trial's series, and of most of them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from dbdyno.analysis.blocks import UsableBlocks
from dbdyno.analysis.over_time.series import Rates, at_middles, floats, gathered
from dbdyno.analysis.over_time.stability import NEVER_SETTLES, Kind, Stability, classify
from dbdyno.analysis.statistics.arrays import Floats
from dbdyno.model.design import Design

LoadSeries = Mapping[str, Mapping[str, npt.NDArray[np.generic]]]  # trial id -> column -> samples
# Where as many trials are of one class as of another, the treatment is said to be of the one that comes first.
WORST_FIRST: tuple[Kind, ...] = (
    "regime change",
    "unsettled",
    "drift",
    "bimodal",
    "jagged",
    "sawtooth",
    "steady",
    "too short",
)
# What there is of them; the last is of a program that works on files.
_COLUMNS = (("events_per_second", "events/s"), ("queries_per_second", "queries/s"), ("iops", "IOPS"))


@dataclass(frozen=True)
class TreatmentStability:
    """What a treatment's trials did over time; of a load in phases, what they did in one of them."""

    treatment: str  # id
    label: str
    phase: str  # empty where a load has none
    unit: str  # of the rates: "events/s", "rows/s"
    typical: Stability  # the class of most trials that are long enough; its figures are medians over those
    of_class: int  # trials
    trials: int
    too_short: int
    never_settled: int
    by_trial: tuple[tuple[str, Stability], ...]  # trial id, class


def settling(design: Design, blocks: UsableBlocks, series: LoadSeries) -> list[TreatmentStability]:
    """Return the stability of each treatment and phase of which there are series, in the order of the study."""
    found = []
    for treatment in design.treatments:
        by_phase: dict[tuple[str, str], list[tuple[str, Stability]]] = {}
        for trial in blocks.of(treatment.id):
            for phase, unit, rates in _rates(series.get(trial.id, {}), design.metric):
                by_phase.setdefault((phase, unit), []).append((trial.id, classify(rates.end_s, rates.rate)))
        found += [
            _typical(treatment.id, treatment.label, phase, unit, each) for (phase, unit), each in by_phase.items()
        ]
    return found


@dataclass(frozen=True)
class PhaseRates:
    """A phase of a trial's load as it was sampled: ends, lengths and rates of its intervals, shape (n,) each."""

    phase: str  # empty where a load has none
    unit: str
    ends_s: Floats
    lengths_s: Floats
    rate: Floats


def _rates(columns: Mapping[str, npt.NDArray[np.generic]], metric: str) -> list[tuple[str, str, Rates]]:
    """Return phase, unit and rates of a trial's load, intervals gathered until each counts enough."""
    return [
        (each.phase, each.unit, gathered(each.ends_s, each.lengths_s, each.rate)) for each in raw_rates(columns, metric)
    ]


def raw_rates(columns: Mapping[str, npt.NDArray[np.generic]], metric: str) -> list[PhaseRates]:
    """Return the rates of each phase of a trial's load; phases are not alike by nature, so each is judged by itself."""
    wanted = (("rows_per_second", "rows/s"), *_COLUMNS) if metric == "rows_per_second" else _COLUMNS
    column, unit = next(((name, unit) for name, unit in wanted if name in columns), ("", ""))
    if not column or "t_s" not in columns:
        return []
    ends, rate = floats(columns["t_s"]), floats(columns[column])
    known = np.isfinite(ends) & np.isfinite(rate) & (ends > 0)
    ends, rate = ends[known], rate[known]
    order = np.argsort(ends, kind="stable")
    ends, rate = ends[order], rate[order]
    kept = len(at_middles(ends, rate)[0])
    lengths = np.diff(ends, prepend=0.0)[:kept]
    ends, rate = ends[:kept], rate[:kept]
    if "phase" not in columns:
        return [PhaseRates("", unit, ends, lengths, rate)] if kept else []
    phases = np.asarray(columns["phase"]).astype(str)[known][order][:kept]
    return [
        PhaseRates(phase, unit, ends[phases == phase], lengths[phases == phase], rate[phases == phase])
        for phase in dict.fromkeys(phases.tolist())
    ]


def _typical(
    treatment: str, label: str, phase: str, unit: str, trials: Sequence[tuple[str, Stability]]
) -> TreatmentStability:
    kinds = Counter(each.kind for _, each in trials)
    judged = Counter({kind: number for kind, number in kinds.items() if kind != "too short"}) or kinds
    most = min(judged, key=lambda kind: (-judged[kind], WORST_FIRST.index(kind)))
    alike = [each for _, each in trials if each.kind == most]
    figures = {
        field.name: float(np.median([getattr(each, field.name) for each in alike]))
        for field in fields(Stability)
        if field.type in {"float", float}
    }
    changes = int(np.median([each.changes for each in alike]))
    return TreatmentStability(
        treatment=treatment,
        label=label,
        phase=phase,
        unit=unit,
        typical=Stability(most, changes=changes, **figures),
        of_class=len(alike),
        trials=len(trials),
        too_short=kinds["too short"],
        never_settled=sum(number for kind, number in judged.items() if kind in NEVER_SETTLES - {"too short"}),
        by_trial=tuple(trials),
    )
