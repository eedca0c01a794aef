"""How steady a treatment's rate is, and which of two is steadier: a verdict beside the one on speed.

The measure is the coefficient of variation of the rate over whole seconds: its standard deviation as a part of its
mean. A drift, a change of level, a sawtooth and a stall all make it larger; how fast the treatment is does not. Of a
load in phases the phase counts in which most was done.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dbdyno.analysis.blocks import UsableBlocks
from dbdyno.analysis.over_time import LoadSeries, raw_rates
from dbdyno.analysis.statistics import Estimate, Floats, log_ratios
from dbdyno.analysis.verdict.evidence import Rule
from dbdyno.analysis.verdict.finding import Finding, Paired, judge
from dbdyno.model.metrics import Metric
from dbdyno.store.records import Run

SECONDS_MIN = 10  # fewer say too little of a spread
SLOW_SHARE = 0.05  # of the seconds
# Two treatments whose variations differ by less than a quarter are called as steady as each other: a spread over some
# dozens of seconds is itself uncertain by about that.
MARGIN = 0.25
VARIATION = Metric("rate_variation", "variation of the rate", "variation", "1", more_is_better=False)


@dataclass(frozen=True)
class TreatmentSteadiness:
    """How much a treatment's rate varies from second to second."""

    treatment: str  # id
    label: str
    unit: str  # "rows/s"
    variation: Estimate  # mean over trials; the least and the greatest of them, not an interval
    median: float  # rate, median over trials of the median second
    slow: float  # rate of the slowest twentieth of the seconds or less, median over trials


@dataclass(frozen=True)
class Steadiness:
    """Each treatment's variation, and a verdict for each planned comparison: faster stands for steadier."""

    treatments: list[TreatmentSteadiness]
    verdicts: list[Finding]


def per_second(lengths: Floats, rates: Floats) -> Floats:
    """Return the rate in each whole second; intervals of shape (n,) follow each other without gaps.

    What was counted inside an interval is spread evenly over it.
    """
    ends = np.cumsum(lengths)
    if not len(ends):
        return np.empty(0)
    counted = np.concatenate([[0.0], np.cumsum(rates * lengths)])
    seconds = np.arange(math.floor(float(ends[-1]) + 1e-6) + 1)
    return np.diff(np.interp(seconds, np.concatenate([[0.0], ends]), counted))


def variation(rate: Floats) -> float:
    """Return the coefficient of variation; NaN of too few seconds or of nothing done."""
    if len(rate) < SECONDS_MIN or not rate.mean() > 0:
        return math.nan
    return float(np.std(rate, ddof=1) / rate.mean())


def steadiness(run: Run, blocks: UsableBlocks, series: LoadSeries, rule: Callable[[int], Rule]) -> Steadiness | None:
    """Return how steady each treatment is and which is steadier; None where the study doesn't ask or has no series."""
    if not run.design.steadiness:
        return None
    by_block: dict[str, dict[int, float]] = {}
    treatments = []
    for treatment in run.design.treatments:
        seconds: dict[int, Floats] = {}
        unit = ""
        for block, row in blocks.trials.items():
            if treatment.id in row:
                unit, seconds[block] = _seconds(series, row[treatment.id].id, run.design.metric)
        values = {block: variation(rate) for block, rate in seconds.items()}
        by_block[treatment.id] = {block: value for block, value in values.items() if math.isfinite(value)}
        if by_block[treatment.id]:
            treatments.append(
                _of_treatment(treatment.id, treatment.label, unit, list(by_block[treatment.id].values()), seconds)
            )
    pairs = [
        Paired.of(run.design, comparison, log_ratios(by_block[comparison.level], by_block[comparison.baseline]))
        for comparison in run.design.comparisons
    ]
    return Steadiness(treatments, judge(pairs, VARIATION, MARGIN, rule)) if treatments else None


def _seconds(series: LoadSeries, trial: str, metric: str) -> tuple[str, Floats]:
    phases = raw_rates(series.get(trial, {}), metric)
    if not phases:
        return "", np.empty(0)
    most = max(phases, key=lambda phase: float(phase.rate @ phase.lengths_s))
    return most.unit, per_second(most.lengths_s, most.rate)


def _of_treatment(
    treatment: str, label: str, unit: str, values: list[float], seconds: dict[int, Floats]
) -> TreatmentSteadiness:
    rates = [rate for rate in seconds.values() if len(rate) >= SECONDS_MIN]
    return TreatmentSteadiness(
        treatment=treatment,
        label=label,
        unit=unit,
        variation=Estimate(float(np.mean(values)), min(values), max(values), len(values)),
        median=float(np.median([np.median(rate) for rate in rates])),
        slow=float(np.median([np.quantile(rate, SLOW_SHARE) for rate in rates])),
    )
