"""Drift over the run: did the host get slower or faster while we measured? A note, never a correction."""

import math
from collections.abc import Sequence

import numpy as np

from dbdyno.analysis.blocks import UsableBlocks
from dbdyno.analysis.statistics.estimate import Estimate
from dbdyno.analysis.statistics.trend import trend
from dbdyno.model.metrics import value_of
from dbdyno.store.records import Run

MIN_TRIALS = 12  # below this the interval of a slope is too wide to say anything
NOTABLE = 0.01


def drift_of(run: Run, blocks: UsableBlocks) -> Estimate:
    """Return the drift of a run's primary metric over its usable trials."""
    used = {trial.id for row in blocks.trials.values() for trial in row.values()}
    trials = [(place, trial) for place, trial in enumerate(run.trials) if trial.id in used]
    return drift_over_run(
        [place for place, _ in trials],
        [f"{trial.treatment} {trial.host}" for _, trial in trials],
        [value_of(trial.metrics, run.design.metric) for _, trial in trials],
    )


def is_clear(drift: Estimate) -> bool:
    """Return whether there is a drift beyond doubt."""
    return drift.known and not drift.low <= 0 <= drift.high


def drift_over_run(places: Sequence[int], treatments: Sequence[str], values: Sequence[float]) -> Estimate:
    """Return the relative change of a metric from the first trial to the last, treatments taken out.

    ``places`` are positions in the run order, ascending, ``values`` the metric. A straight line through ln(value), with
    a level of its own for each treatment, on each host; its 95 % interval allows for noise that neighbours share.
    """
    usable = [i for i, value in enumerate(values) if math.isfinite(value) and value > 0]
    if len(usable) < MIN_TRIALS:
        return Estimate.unknown(len(usable))
    order = np.asarray([places[i] for i in usable], dtype=np.int64)
    _, groups = np.unique([treatments[i] for i in usable], return_inverse=True)
    slope = trend(order, groups.astype(np.int64), np.log([values[i] for i in usable]))
    if not slope.known:
        return slope
    length = float(order[-1] - order[0])
    value, low, high = (math.expm1(length * end) for end in (slope.value, slope.low, slope.high))
    return Estimate(value, low, high, slope.n)
