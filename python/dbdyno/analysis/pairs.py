"""Two treatments and a metric: their log ratios inside the blocks that count."""

from collections.abc import Iterable
from itertools import combinations

from dbdyno.analysis.blocks import UsableBlocks
from dbdyno.analysis.effect import log_ratios
from dbdyno.analysis.verdict import Paired
from dbdyno.store.records import Comparison, Design


def paired(design: Design, blocks: UsableBlocks, comparisons: Iterable[Comparison], metric: str) -> list[Paired]:
    """Return the log ratios of each comparison, in the order given; a dropped treatment is an obstacle."""
    labels = {treatment.id: treatment.label for treatment in design.treatments}
    values = {treatment.id: blocks.values(treatment.id, metric) for treatment in design.treatments}
    pairs = []
    for comparison in comparisons:
        failed = [id_ for id_ in (comparison.level, comparison.baseline) if id_ in blocks.dropped]
        pairs.append(
            Paired(
                baseline=labels[comparison.baseline],
                level=labels[comparison.level],
                baseline_id=comparison.baseline,
                level_id=comparison.level,
                log_ratios=log_ratios(values[comparison.level], values[comparison.baseline]),
                obstacle=f"{labels[failed[0]]} failed again and again and was dropped" if failed else "",
            )
        )
    return pairs


def every_pair(design: Design) -> list[Comparison]:
    """Return every two treatments; against the study's baseline where it is one of them, else as it was planned."""
    planned = {(one.baseline, one.level) for one in design.comparisons}
    found = []
    for pair in combinations([treatment.id for treatment in design.treatments], 2):
        turned = pair[::-1]
        backwards = turned[0] == design.baseline or (pair[0] != design.baseline and turned in planned)
        found.append(Comparison(*(turned if backwards else pair)))
    return found


def plans_every_pair(design: Design) -> bool:
    """Whether the verdicts of every pair are the study's own."""
    planned = {frozenset((one.baseline, one.level)) for one in design.comparisons}
    return planned == {frozenset((one.baseline, one.level)) for one in every_pair(design)}
