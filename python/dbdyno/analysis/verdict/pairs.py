"""Two treatments and a metric: their log ratios inside the blocks that count."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import combinations

from dbdyno.analysis.blocks import UsableBlocks
from dbdyno.analysis.client_hosts import limiting_hosts
from dbdyno.analysis.statistics.effect import log_ratios
from dbdyno.analysis.verdict.carry_over_of_run import carried
from dbdyno.analysis.verdict.finding import Paired
from dbdyno.analysis.verdict.reasons import Dropped, LimitedClients, Obstacle, ZeroFigures, first
from dbdyno.analysis.verdict.resolution import of_pair, resolutions
from dbdyno.analysis.verdict.unequal_failures import by_one, doubts_about, struck
from dbdyno.model.design import Comparison, Design
from dbdyno.model.metrics import METRICS
from dbdyno.store.records import Run


def paired(design: Design, blocks: UsableBlocks, comparisons: Iterable[Comparison], metric: str) -> list[Paired]:
    """Return the log ratios of each comparison, in the order given; a dropped treatment is an obstacle, as is a 0."""
    labels = design.labels
    values = {treatment.id: blocks.values(treatment.id, metric) for treatment in design.treatments}
    steps = resolutions(blocks, metric, METRICS[metric].unit)
    pairs = []
    for comparison in comparisons:
        level, baseline = values[comparison.level], values[comparison.baseline]
        ratios = log_ratios(level, baseline)
        obstacles = (obstacle(id_, labels[id_], blocks, metric) for id_ in (comparison.level, comparison.baseline))
        pairs.append(
            Paired(
                baseline=labels[comparison.baseline],
                level=labels[comparison.level],
                baseline_id=comparison.baseline,
                level_id=comparison.level,
                log_ratios=ratios,
                obstacle=first(obstacles),
                figures={block: (level[block], baseline[block]) for block in ratios},
                resolution=of_pair(steps, comparison.baseline, comparison.level),
                disturbed=_disturbed(blocks, (comparison.baseline, comparison.level), ratios),
            )
        )
    return pairs


def _disturbed(blocks: UsableBlocks, treatments: Sequence[str], which: Iterable[int]) -> int:
    """Return in how many of the blocks others disturbed a trial of these treatments."""
    return sum(any(blocks.trials[block][id_].disturbed for id_ in treatments) for block in which)


def considered(run: Run, blocks: UsableBlocks, pairs: Sequence[Paired], metric: str) -> list[Paired]:
    """Return the comparisons with what may mislead of them: carry-over, and trials that one side alone lacks."""
    judged = [pair for pair in pairs if not pair.obstacle]
    compared = [(pair.baseline_id, pair.level_id, list(pair.log_ratios)) for pair in judged]
    corrected = dict(zip(map(id, judged), carried(run, blocks, metric, compared), strict=True))
    left_out, kept = struck(run, blocks)
    found = []
    for pair in pairs:
        if (one := corrected.get(id(pair))) is None:
            found.append(pair)
            continue
        by = [by_one(*ids, left_out, kept) for ids in ((pair.level_id, pair.baseline_id), _turned(pair))]
        with_carry_over = replace(pair, instead=one.instead, doubts=one.doubts, carry_over=one.carry_over)
        labels, at = (pair.level, pair.baseline), tuple(pair.log_ratios)
        doubts = doubts_about(with_carry_over.d, at, labels, *by)
        found.append(replace(with_carry_over, doubts=(*doubts, *one.doubts)))
    return found


def _turned(pair: Paired) -> tuple[str, str]:
    return pair.baseline_id, pair.level_id


def obstacle(
    treatment: str, label: str, blocks: UsableBlocks, metric: str, *, of_contrast: bool = False
) -> Obstacle | None:
    """Return why nothing that takes ratios of a treatment's metric can be judged; ``None`` where it can."""
    if treatment in blocks.dropped:
        return Dropped(label, of_contrast=of_contrast)
    if zeros := blocks.without_ratio(treatment, metric):
        return ZeroFigures(label, metric, zeros, of_contrast=of_contrast)
    if limiting := limiting_hosts(blocks.of(treatment)):
        return LimitedClients(label, limiting, of_contrast=of_contrast)
    return None


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
