"""Two treatments and a metric: their log ratios inside the blocks that count."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from dbdyno.analysis.blocks import UsableBlocks
from dbdyno.analysis.checks.durability import durability
from dbdyno.analysis.checks.lateness import late_disk, ratios_without_lateness
from dbdyno.analysis.client_hosts import limiting_hosts
from dbdyno.analysis.statistics.effect import log_ratios
from dbdyno.analysis.verdict.figures import Contrasted, Figures, difference_of_pair
from dbdyno.analysis.verdict.finding import OtherRatios, Paired
from dbdyno.analysis.verdict.merged_percentile import MergedHistograms, histograms_in
from dbdyno.analysis.verdict.reasons import Dropped, LimitedClients, Obstacle, PairSafety, ZeroFigures, first
from dbdyno.analysis.verdict.unequal_failures import by_one, spoiled_ratios, struck
from dbdyno.model.design import Comparison, Design
from dbdyno.model.metrics import METRICS, percentile_of
from dbdyno.store.latencies import Latencies


def compared(
    figures: Figures, comparisons: Sequence[Comparison], latencies: Mapping[str, Latencies] | None = None
) -> list[Paired]:
    """Return comparisons that are one family, in the order given, with what may mislead of each.

    A dropped treatment is an obstacle, as is a 0. ``latencies`` are the histograms of trials, by id: a word on a
    percentile must hold for the events of all trials together as well.
    """
    run, blocks, metric = figures.run, figures.blocks, figures.metric
    labels = run.design.labels
    values = {one.id: blocks.values(one.id, metric) for one in run.design.treatments}
    obstacles = [
        first(obstacle(id_, labels[id_], blocks, metric) for id_ in (one.level, one.baseline)) for one in comparisons
    ]
    judged = [one for one, in_the_way in zip(comparisons, obstacles, strict=True) if not in_the_way]
    contrasts = [difference_of_pair(one.baseline, one.level) for one in judged]
    contrasted = dict(zip(map(id, judged), figures.contrasted(contrasts), strict=True))
    left_out, kept = struck(run, blocks)
    pairs = []
    for one, in_the_way in zip(comparisons, obstacles, strict=True):
        found = contrasted.get(id(one)) or Contrasted(log_ratios(values[one.level], values[one.baseline]))
        ratios = dict(found.by_block)
        pair = Paired(
            baseline=labels[one.baseline],
            level=labels[one.level],
            baseline_id=one.baseline,
            level_id=one.level,
            log_ratios=ratios,
            obstacle=in_the_way,
            figures={block: (values[one.level][block], values[one.baseline][block]) for block in ratios},
            resolution=figures.resolution(difference_of_pair(one.baseline, one.level)),
            carry_over=found.carry_over,
            without_carry_over=found.without_carry_over,
            disturbed=_disturbed(blocks, (one.baseline, one.level), ratios),
            safety=_safety(blocks, one),
        )
        if not in_the_way:
            by = [by_one(*ids, left_out, kept) for ids in ((one.level, one.baseline), (one.baseline, one.level))]
            spoiled = spoiled_ratios(pair.d, tuple(ratios), (pair.level, pair.baseline), *by)
            pair = replace(
                pair,
                alternatives=(
                    *spoiled,
                    *_without_lateness(pair, blocks, metric, run.design.margin),
                    *_events_together(pair, blocks, metric, latencies or {}),
                ),
            )
        pairs.append(pair)
    return pairs


def _disturbed(blocks: UsableBlocks, treatments: Sequence[str], which: Iterable[int]) -> int:
    """Return in how many of the blocks others disturbed a trial of these treatments."""
    return sum(any(blocks.trials[block][id_].disturbed for id_ in treatments) for block in which)


def _without_lateness(pair: Paired, blocks: UsableBlocks, metric: str, margin: float) -> tuple[OtherRatios, ...]:
    """Return the ratios there may have been had an emulated disk been in time, where that exceeds the margin."""
    trials = [[blocks.trials[block][id_] for block in pair.log_ratios] for id_ in (pair.level_id, pair.baseline_id)]
    cause = late_disk((pair.level, pair.baseline), trials[0], trials[1], METRICS[metric], margin)
    if cause is None:
        return ()
    return tuple(OtherRatios(d, cause) for d in ratios_without_lateness(pair.d, trials[0], trials[1], METRICS[metric]))


def _events_together(
    pair: Paired, blocks: UsableBlocks, metric: str, latencies: Mapping[str, Latencies]
) -> tuple[MergedHistograms, ...]:
    percentile = percentile_of(metric)
    if percentile is None or not latencies:
        return ()
    histograms = histograms_in(blocks, (pair.level_id, pair.baseline_id), pair.log_ratios, latencies)
    return (MergedHistograms(histograms[0], histograms[1], percentile),) if histograms else ()


def _safety(blocks: UsableBlocks, pair: Comparison) -> PairSafety | None:
    level, baseline = (durability(blocks.of(id_)) for id_ in (pair.level, pair.baseline))
    return PairSafety(level, baseline) if level and baseline else None


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


def pairs_not_planned(design: Design) -> list[Comparison]:
    """Return every two treatments that the study does not compare by itself."""
    planned = {frozenset((one.baseline, one.level)) for one in design.comparisons}
    return [one for one in every_pair(design) if frozenset((one.baseline, one.level)) not in planned]
