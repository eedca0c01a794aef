"""Secondary metrics, exploratory: hints at where else two treatments differ, never verdicts.

Benjamini and Hochberg's correction goes over all of them at once, every metric in every planned comparison: of what is
said to stand out, at most 5 % is expected to be wrong.
"""

from collections.abc import Callable
from dataclasses import dataclass

from dbdyno.analysis.blocks import UsableBlocks
from dbdyno.analysis.statistics.estimate import Estimate
from dbdyno.analysis.statistics.multiplicity import benjamini_hochberg
from dbdyno.analysis.verdict.evidence import Rule, evidence_of_each, relative_estimate
from dbdyno.analysis.verdict.finding import MIN_USABLE_BLOCKS
from dbdyno.analysis.verdict.pairs import paired
from dbdyno.analysis.verdict.reasons import TwoTreatments
from dbdyno.model.design import ALPHA, Design


@dataclass(frozen=True)
class Secondary(TwoTreatments):
    """One metric in one comparison. Its interval is that of this figure alone, not adjusted for how many there are."""

    metric: str
    effect: Estimate
    p: float  # allowing for the looks, as if nothing else had been judged
    p_adjusted: float  # Benjamini and Hochberg over all of them

    @property
    def stands_out(self) -> bool:
        """Whether it is worth a look."""
        return self.p_adjusted <= ALPHA


def secondary_metrics(design: Design, blocks: UsableBlocks, rule: Callable[[int], Rule]) -> list[Secondary]:
    """Return each secondary metric in each planned comparison, by comparison; without those that lack figures.

    A block in which either treatment has none is left out of that metric; one that is 0 anywhere is left out there.
    """
    by_metric = {
        metric: paired(design, blocks, design.comparisons, metric)
        for metric in design.secondary_metrics
        if metric != design.metric
    }
    every = [
        (metric, pairs[place])
        for place in range(len(design.comparisons))
        for metric, pairs in by_metric.items()
        if not pairs[place].obstacle and len(pairs[place].log_ratios) >= MIN_USABLE_BLOCKS
    ]
    if not every:
        return []
    found = evidence_of_each(
        [pair.d for _, pair in every], rule, design.margin, [pair.resolution.log_width for _, pair in every]
    )
    adjusted = benjamini_hochberg(found.p)
    return [
        Secondary(
            metric=metric,
            baseline=pair.baseline,
            level=pair.level,
            baseline_id=pair.baseline_id,
            level_id=pair.level_id,
            effect=relative_estimate(float(found.value[i]), float(found.low[i]), float(found.high[i]), len(pair.d)),
            p=float(found.p[i]),
            p_adjusted=float(adjusted[i]),
        )
        for i, (metric, pair) in enumerate(every)
    ]
