"""What loads beside the judged one came to, and what the judged load did while they ran: means over usable trials."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

from dbdyno.analysis.blocks import UsableBlocks
from dbdyno.model.design import Design
from dbdyno.model.metrics import known_values, part_of, value_of
from dbdyno.store.records import Trial

PARTS = ("events_per_second", "latency_ms_mean", "latency_ms_p99", "latency_ms_max")


@dataclass(frozen=True)
class BesideSummary:
    """One load beside, in one treatment; a figure that is not known is NaN or left out."""

    treatment: str  # id
    label: str
    name: str
    kind: str
    trials: int
    stopped: int  # trials at whose end it still ran
    began_s: float  # since measuring began, median
    ended_s: float  # likewise, of trials in which it was not stopped; NaN where that is half of them or fewer
    seconds_mean: float  # that it ran
    seconds_min: float
    seconds_max: float
    figures: dict[str, float]  # what it reported, means
    during: dict[str, float]  # of ``PARTS``, the judged load while it ran: means, and the largest of all
    outside: dict[str, float]  # the same before and after


def loads_beside(design: Design, blocks: UsableBlocks) -> list[BesideSummary]:
    """Return each load beside of each treatment, in the order of the study; nothing where there is none."""
    return [
        _summary(treatment.id, treatment.label, name, [records[name] for records in trials if name in records])
        for treatment in design.treatments
        if (trials := [dict(_records(trial)) for trial in blocks.of(treatment.id)])
        for name in dict.fromkeys(name for records in trials for name in records)
    ]


def _records(trial: Trial) -> Iterator[tuple[str, Mapping[str, Any]]]:
    beside = trial.load.get("beside")
    for name, record in beside.items() if isinstance(beside, Mapping) else ():
        if isinstance(record, Mapping):
            yield name, record


def _summary(treatment: str, label: str, name: str, records: Sequence[Mapping[str, Any]]) -> BesideSummary:
    seconds = [value_of(record, "seconds") for record in records]
    reported = [part_of(record, "figures") for record in records]
    done = [record for record in records if record.get("stopped") is not True]
    ends = [value_of(record, "began_s") + value_of(record, "seconds") for record in done]
    return BesideSummary(
        treatment=treatment,
        label=label,
        name=name,
        kind=str(records[0].get("kind", "")),
        trials=len(records),
        stopped=len(records) - len(ends),
        began_s=median(value_of(record, "began_s") for record in records),
        ended_s=median(ends) if 2 * len(ends) > len(records) else math.nan,
        seconds_mean=fmean(seconds),
        seconds_min=min(seconds),
        seconds_max=max(seconds),
        figures=_means(reported, dict.fromkeys(name for figures in reported for name in figures)),
        during=_part([part_of(record, "during") for record in records]),
        outside=_part([part_of(record, "outside") for record in records]),
    )


def _part(parts: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    largest = known_values(parts, PARTS[-1])
    return _means(parts, PARTS[:-1]) | ({PARTS[-1]: max(largest)} if largest else {})


def _means(tables: Sequence[Mapping[str, Any]], names: Sequence[str] | Mapping[str, Any]) -> dict[str, float]:
    means = {}
    for name in names:
        if known := known_values(tables, name):
            means[name] = fmean(known)
    return means
