"""What each treatment did, as the table people post."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dbdyno.analysis.blocks import UsableBlocks
from dbdyno.analysis.load_checks import CacheRanOut, Overload, cache_ran_out, overload
from dbdyno.analysis.statistics import Estimate, geometric_mean
from dbdyno.analysis.verdict.finding import Finding, either_way
from dbdyno.model.design import ALPHA, Design
from dbdyno.model.metrics import LATENCY_PERCENTILES, known_values, mean_or_nan

_MEANS = (
    *("seconds_user", "seconds_sys", "queries_per_second", "events_per_second", "rows_per_second"),
    *("client_cpu_us_per_query", "server_cpu_us_per_query", "errors", "reconnects"),
)


@dataclass(frozen=True)
class TreatmentSummary:
    """One treatment over its usable trials. A figure that no trial carries is NaN.

    Latencies are means over trials of each trial's own percentile. ``effect`` is the difference from the design's
    baseline in the design's metric, with its 95 % interval, not adjusted for the number of comparisons; unknown for the
    baseline itself.
    """

    id: str
    label: str
    levels: dict[str, str]
    is_baseline: bool
    dropped: bool
    n: int  # usable trials
    failures: int
    seconds_real_min: float
    seconds_real_mean: float
    seconds_real_max: float
    seconds_user: float
    seconds_sys: float
    metric_mean: float  # of what the verdicts are about
    metric: Estimate  # its geometric mean over blocks, with the t interval of the logarithms; unknown where one is 0
    queries_per_second: float
    events_per_second: float
    rows_per_second: float
    latency_ms: dict[str, float]  # percentiles by the names of their metrics
    client_cpu_us_per_query: float
    server_cpu_us_per_query: float
    errors: float  # of a trial
    reconnects: float  # of a trial
    overload: Overload | None
    cache_ran_out: CacheRanOut | None
    effect: Estimate


def summarise(
    design: Design, blocks: UsableBlocks, failures: dict[str, int], findings: Sequence[Finding]
) -> list[TreatmentSummary]:
    """Return one row per treatment, in the order of the study; ``failures`` counts them by treatment id.

    ``findings`` are those of every two treatments; of the baseline against itself nothing is found.
    """
    by_ids = either_way(findings)
    rows = []
    for treatment in design.treatments:
        trials, against_baseline = blocks.of(treatment.id), by_ids.get((treatment.id, design.baseline))
        is_baseline = treatment.id == design.baseline
        metrics = [trial.metrics for trial in trials]
        seconds = known_values(metrics, "seconds_real")
        rows.append(
            TreatmentSummary(
                id=treatment.id,
                label=treatment.label,
                levels=dict(treatment.levels),
                is_baseline=is_baseline,
                dropped=treatment.id in blocks.dropped,
                n=len(trials),
                failures=failures.get(treatment.id, 0),
                seconds_real_min=min(seconds, default=math.nan),
                seconds_real_mean=mean_or_nan(seconds),
                seconds_real_max=max(seconds, default=math.nan),
                metric_mean=mean_or_nan(known_values(metrics, design.metric)),
                metric=_typical(blocks.values(treatment.id, design.metric).values()),
                latency_ms={name: mean_or_nan(known_values(metrics, name)) for name in LATENCY_PERCENTILES},
                **{name: mean_or_nan(known_values(metrics, name)) for name in _MEANS},
                overload=overload(trials),
                cache_ran_out=cache_ran_out(trials),
                effect=against_baseline.effect if against_baseline else Estimate.unknown(),
            )
        )
    return rows


def _typical(values: Iterable[float]) -> Estimate:
    return geometric_mean([value for value in values if math.isfinite(value)], ALPHA)
