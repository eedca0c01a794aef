"""Two treatments and a metric: their log ratios inside the blocks that count."""

from collections.abc import Iterable
from itertools import combinations

from dbdyno.analysis.blocks import UsableBlocks
from dbdyno.analysis.effect import log_ratios
from dbdyno.analysis.verdict import Paired
from dbdyno.analysis.wording import count
from dbdyno.store.records import Comparison, Design


def paired(design: Design, blocks: UsableBlocks, comparisons: Iterable[Comparison], metric: str) -> list[Paired]:
    """Return the log ratios of each comparison, in the order given; a dropped treatment is an obstacle, as is a 0."""
    labels = {treatment.id: treatment.label for treatment in design.treatments}
    values = {treatment.id: blocks.values(treatment.id, metric) for treatment in design.treatments}
    pairs = []
    for comparison in comparisons:
        obstacles = (obstacle(id_, labels[id_], blocks, metric) for id_ in (comparison.level, comparison.baseline))
        pairs.append(
            Paired(
                baseline=labels[comparison.baseline],
                level=labels[comparison.level],
                baseline_id=comparison.baseline,
                level_id=comparison.level,
                log_ratios=log_ratios(values[comparison.level], values[comparison.baseline]),
                obstacle=next(filter(None, obstacles), ""),
            )
        )
    return pairs


def obstacle(treatment: str, label: str, blocks: UsableBlocks, metric: str) -> str:
    """Return why nothing that takes ratios of a treatment's metric can be judged; empty where it can."""
    if treatment in blocks.dropped:
        return f"{label} failed again and again and was dropped"
    if zeros := blocks.without_ratio(treatment, metric):
        return f"{metric} of {label} is 0 in {count(zeros, 'block')}, and there is no ratio to 0"
    return ""


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
