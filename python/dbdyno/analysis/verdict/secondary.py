"""Secondary metrics, exploratory: hints at where else two treatments differ, never verdicts.

Benjamini and Hochberg's correction goes over all of them at once, every metric in every planned comparison: of what is
said to stand out, at most 5 % is expected to be wrong.
"""

from collections.abc import Callable

from dbdyno.analysis.blocks import UsableBlocks
from dbdyno.analysis.statistics.multiplicity import benjamini_hochberg
from dbdyno.analysis.verdict.evidence import Rule, relative_estimate
from dbdyno.analysis.verdict.figures import Figures
from dbdyno.analysis.verdict.finding import MIN_USABLE_BLOCKS, evidence_of_pairs
from dbdyno.analysis.verdict.pairs import compared
from dbdyno.analysis.verdict.reasons import Secondary
from dbdyno.store.records import Run


def secondary_metrics(run: Run, blocks: UsableBlocks, rule: Callable[[int], Rule]) -> list[Secondary]:
    """Return each secondary metric in each planned comparison, by comparison; without those that lack figures.

    A block in which either treatment has none is left out of that metric; one that is 0 anywhere is left out there.
    """
    design = run.design
    by_metric = {
        metric: compared(Figures(run, blocks, metric), design.comparisons)
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
    found = evidence_of_pairs([pair for _, pair in every], design.margin, rule).combined
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
