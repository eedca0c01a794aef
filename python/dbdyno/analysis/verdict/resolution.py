"""How coarse a metric's figures are: whole milliseconds, counts, ticks of a clock, buckets of a histogram.

A figure in whole units lies up to half a unit from what was measured, in all trials alike: repeating does
not help. So an interval becomes one unit wider at either end, and where the unit is a large part of the margin
nothing can be called equivalent. A percentile from buckets that are each a part w of their value wide is as coarse as
w in the logarithm, whatever the value: no common step is seen in such figures, so their source states it
(``model.metrics.steps_of``). Of what is stated and what is found in the figures the coarser holds.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dbdyno.analysis.blocks import UsableBlocks
from dbdyno.analysis.statistics.estimate import log_margin
from dbdyno.model.metrics import Step, step_stated, value_of

FINE = 0.001  # of the figures: a smaller step changes nothing that is printed
SAME_MIN, DISTINCT_MIN = 6, 5  # figures that are all the same; different ones, of which a common factor is no chance
MARGIN_SHARE = 0.5  # of the margin, that the unit may be where two are called equivalent
NOTABLE = 0.1  # of the margin
_ROUNDING = 1e-9
_DECIMALS = 9
RATES = ("iops", "_per_second")  # how names of rates end
EXACT = frozenset({"achieved_ratio"})  # 1 where the rate was kept; no program's rounding


@dataclass(frozen=True)
class Resolution:
    """The step between one figure and the next, in the metric's unit or that of the time it was made from.

    Where the figures are buckets as wide as a part of their value, the step is that part, and ``relative``.
    """

    step: float = 0.0
    unit: str = ""
    log_width: float = 0.0  # of the step, as a part of the figures compared
    relative: bool = False

    @property
    def coarse(self) -> bool:
        """Whether the figures have a step that is worth allowing for."""
        return self.log_width > 0

    def too_coarse(self, margin: float) -> bool:
        """Whether the step is too large a part of the margin to call anything equivalent."""
        return self.log_width > MARGIN_SHARE * log_margin(margin)

    def notable(self, margin: float) -> bool:
        """Whether the step is large enough beside the margin to be said."""
        return self.log_width >= NOTABLE * log_margin(margin)


FINE_ENOUGH = Resolution()


def step_of(values: Iterable[float]) -> float:
    """Return the largest step of which all values are multiples; 0 where there is none worth speaking of.

    Whole numbers have a step of 1, or what they have in common where there are enough of them; values with decimals
    that of the last.
    """
    known = [value for value in values if math.isfinite(value) and value > 0]
    distinct = set(known)
    if not known or (len(distinct) == 1 and len(known) < SAME_MIN):
        return 0.0
    finest = FINE * float(np.median(known))
    for decimals in range(_DECIMALS):
        if 10.0**-decimals < finest:
            break
        scaled = [value * 10**decimals for value in distinct]
        whole = [round(value) for value in scaled]
        if all(abs(a - b) <= _ROUNDING * max(1.0, a) for a, b in zip(scaled, whole, strict=True)):
            common = math.gcd(*whole) if len(distinct) >= DISTINCT_MIN else 1
            return common * 10.0**-decimals
    return 0.0


def resolutions(blocks: UsableBlocks, metric: str, unit: str = "") -> dict[str, Resolution]:
    """Return by treatment how coarse its figures are: by their own step, or by that of the seconds they are made from.

    ``log_width`` is half a step's: two treatments that are compared have one whole step between them.
    """
    own = _by_treatment(blocks, metric)
    step = 0.0 if metric in EXACT else step_of(value for values in own.values() for value in values)
    seconds = _by_treatment(blocks, "seconds_real") if metric.endswith(RATES) else {}
    of_time = _step_of_time(seconds)
    found = {}
    for treatment, values in own.items():
        stated, stated_of_time = (_coarsest_stated(blocks, treatment, name) for name in (metric, "seconds_real"))
        by_value = resolution_of(values, Step(max(step, stated.absolute), stated.relative), unit)
        time = Step(max(of_time, stated_of_time.absolute), stated_of_time.relative)
        by_time = resolution_of(seconds.get(treatment, []), time, "s")
        found[treatment] = max(by_value, by_time, key=lambda resolution: resolution.log_width)
    return found


def resolution_of(values: Sequence[float], step: Step, unit: str = "") -> Resolution:
    """Return how coarse one treatment's figures are: a bucket's value that was rounded as well is off by both."""
    if not len(values):
        return FINE_ENOUGH
    rounding, bucket = half_width(step.absolute, values), step.relative / 2
    if bucket > rounding:
        return Resolution(step.relative, unit, bucket + rounding, relative=True)
    return Resolution(step.absolute, unit, rounding + bucket)


def _coarsest_stated(blocks: UsableBlocks, treatment: str, metric: str) -> Step:
    """Return the coarsest of what the sources of a treatment's figures state; nothing where none does."""
    stated = [step_stated(trial.load, metric) for trial in blocks.of(treatment)]
    return Step(max((step.absolute for step in stated), default=0.0), max((s.relative for s in stated), default=0.0))


def combined(each: Iterable[tuple[float, Resolution]]) -> Resolution:
    """Return the resolution of a weighted sum of logarithms, of each term's weight and resolution."""
    terms = [(abs(weight), one) for weight, one in each if one.coarse]
    if not terms:
        return FINE_ENOUGH
    coarsest = max((one for _, one in terms), key=lambda one: one.log_width)
    width = math.fsum(weight * one.log_width for weight, one in terms)
    return replace(coarsest, log_width=width) if width >= FINE else FINE_ENOUGH


def of_pair(found: Mapping[str, Resolution], baseline: str, level: str) -> Resolution:
    """Return the resolution of a log ratio of two treatments."""
    return combined((1.0, found.get(id_, FINE_ENOUGH)) for id_ in (baseline, level))


def _by_treatment(blocks: UsableBlocks, metric: str) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for row in blocks.trials.values():
        for treatment, trial in row.items():
            value = value_of(trial.metrics, metric)
            if value > 0:
                found.setdefault(treatment, []).append(value)
    return found


def _step_of_time(seconds: Mapping[str, list[float]]) -> float:
    """Return the step of the time that rates are made from; time that never varies was set, not measured."""
    every = [value for values in seconds.values() for value in values]
    return step_of(every) if len(set(every)) > 1 else 0.0


def half_width(step: float, values: Sequence[float]) -> float:
    """Return half a step as a part of the usual value, as a log ratio."""
    return step / 2 / float(np.median(values)) if step and len(values) else 0.0
