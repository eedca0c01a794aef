"""Further metrics, screened: hints at where else two treatments differ, never verdicts.

Benjamini and Hochberg's correction goes over all of them at once, every metric in every planned comparison: of what is
said to stand out, at most 5 % is wrong on the average.
"""

from collections.abc import Callable
from dataclasses import dataclass

from dbdyno.analysis.blocks import UsableBlocks
from dbdyno.analysis.estimate import Estimate
from dbdyno.analysis.evidence import Rule, evidence_of_each, relative_estimate
from dbdyno.analysis.min_blocks import ALPHA
from dbdyno.analysis.multiplicity import benjamini_hochberg
from dbdyno.analysis.pairs import paired
from dbdyno.analysis.verdict import MIN_USABLE_BLOCKS
from dbdyno.store.records import Design


@dataclass(frozen=True)
class Screened:
    """One metric in one comparison. Its interval is that of this figure alone, not adjusted for how many there are."""

    metric: str
    baseline: str  # label
    level: str  # label
    baseline_id: str
    level_id: str
    effect: Estimate
    p: float  # allowing for the looks, as if nothing else had been screened
    p_adjusted: float  # Benjamini and Hochberg over all that was screened

    @property
    def stands_out(self) -> bool:
        """Whether it is worth a look."""
        return self.p_adjusted <= ALPHA


def screen(design: Design, blocks: UsableBlocks, rule: Callable[[int], Rule]) -> list[Screened]:
    """Return each screened metric in each planned comparison, by comparison; without those of which there is no figure.

    A block in which either treatment has none is left out of that metric; one that is 0 anywhere is not screened there.
    """
    by_metric = {
        metric: paired(design, blocks, design.comparisons, metric)
        for metric in design.screened
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
    found = evidence_of_each([pair.d for _, pair in every], rule, design.margin)
    adjusted = benjamini_hochberg(found.p)
    return [
        Screened(
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
