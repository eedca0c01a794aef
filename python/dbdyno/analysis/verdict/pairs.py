"""Two treatments and a metric: their log ratios inside the blocks that count."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product

import numpy as np

from dbdyno.analysis.blocks import UsableBlocks
from dbdyno.analysis.client_hosts import limiting_hosts
from dbdyno.analysis.lateness import LateDisk, Side, not_of_the_drive, ratios_without_cpu, ratios_without_lateness
from dbdyno.analysis.percentiles import MergedHistograms, histograms_in
from dbdyno.analysis.statistics import benjamini_hochberg, log_ratios
from dbdyno.analysis.verdict.evidence import Rule, relative_estimate
from dbdyno.analysis.verdict.figures import Contrast, Contrasted, MetricFigures, difference_of_pair, pairs_of
from dbdyno.analysis.verdict.finding import (
    MIN_USABLE_BLOCKS,
    Alternative,
    OtherRatios,
    Paired,
    evidence_of_pairs,
)
from dbdyno.analysis.verdict.reasons import (
    Dropped,
    InNameOnly,
    LimitedClients,
    Obstacle,
    PairSafety,
    Secondary,
    ZeroFigures,
    first,
)
from dbdyno.analysis.verdict.unequal import StruckPair, ratios_unspoiled
from dbdyno.model.design import Comparison, Design
from dbdyno.model.metrics import METRICS, part_of, percentile_of
from dbdyno.model.printable import short
from dbdyno.model.quantity import is_off
from dbdyno.mysql.durability import durability
from dbdyno.store.latencies import Latencies
from dbdyno.store.records import NO_EFFECT, NOT_GRANTED, TABLE_OPTIONS, Run, Trial

NO_LATENCIES: Mapping[str, Latencies] = {}

# Settings that a treatment had in name only: a server showed them though the host did not grant them, by the server's
# own error log, or the host's kernel took them though they change nothing there; and options of tables that these
# have in name only, as the server shows them.

_LAYERS = ("server", "host_settings", "tables")  # where a trial reads such settings back


@dataclass(frozen=True)
class NotGranted:
    """A setting that a treatment had in name only."""

    name: str
    value: str  # as the server showed it
    said: str  # by the server, or why it changes nothing; of tables, what they have instead
    trials: int  # in which it was not granted
    of: int
    by_server: bool = True  # whether it is the server that said so; else dbdyno knows it of the host

    @property
    def is_of_tables(self) -> bool:
        """Whether it is what tables were made with, and no setting of the server."""
        return self.name == TABLE_OPTIONS


def not_granted(trials: Sequence[Trial]) -> tuple[NotGranted, ...]:
    """Return what trials of a treatment were not granted, by name; nothing of runs that did not look."""
    lacking: dict[str, list[Trial]] = {}
    sentences: dict[str, tuple[str, bool]] = {}
    for trial, layer, by in product(trials, _LAYERS, (NOT_GRANTED, NO_EFFECT)):
        refusals = part_of(trial.observed, layer).get(by)
        for name, sentence in refusals.items() if isinstance(refusals, Mapping) else ():
            lacking.setdefault(str(name), []).append(trial)
            sentences.setdefault(str(name), (short(str(sentence)), by == NOT_GRANTED))
    return tuple(
        NotGranted(
            short(name),
            shown_value(lacking_trials, name),
            sentences[name][0],
            len(lacking_trials),
            len(trials),
            by_server=sentences[name][1],
        )
        for name, lacking_trials in sorted(lacking.items())
    )


def in_name_only(design: Design, blocks: UsableBlocks, pair: Comparison) -> tuple[str, NotGranted] | None:
    """Return the id of the treatment that has the only difference of a pair in name only, and the setting.

    So both of them were measured without it; ``None`` where the two differ in fact, or in more than that.
    """
    levels = {treatment.id: treatment.levels for treatment in design.treatments}
    level, baseline = levels[pair.level], levels[pair.baseline]
    differing = [name for name in level if level[name] != baseline.get(name)]
    if len(differing) != 1:
        return None
    setting = _plain(differing[0].rpartition(".")[2])
    sides = (pair.level, pair.baseline)
    lacking = [
        {_plain(refusal.name): refusal for refusal in not_granted(blocks.of(id_)) if refusal.trials == refusal.of}.get(
            setting
        )
        for id_ in sides
    ]
    for id_, refusal, other_id, at_other in zip(sides, lacking, reversed(sides), reversed(lacking), strict=True):
        without = refusal is not None and refusal.by_server and is_without(blocks.of(other_id), refusal.name)
        if refusal is not None and (at_other is not None or without):
            return id_, refusal
    return None


def is_without(trials: Sequence[Trial], name: str) -> bool:
    """Return whether a treatment is without what a setting gives, as the server showed it."""
    return is_off(shown_value(trials, name))


def _plain(name: str) -> str:
    return name.replace("-", "_").casefold()


def shown_value(trials: Sequence[Trial], name: str) -> str:
    """Return what a setting was in a treatment, as the server showed it; empty where no trial read it back."""
    shown = (part_of(trial.observed, layer) for trial in trials for layer in _LAYERS)
    return next((short(str(settings[name])) for settings in shown if name in settings), "")


def compared(
    figures: MetricFigures, comparisons: Sequence[Comparison], latencies: Mapping[str, Latencies] | None = None
) -> list[Paired]:
    """Return comparisons that are one family, in the order given, with what may mislead of each.

    A dropped treatment is an obstacle, as is a 0, or a difference that the host did not grant. ``latencies`` are the
    histograms of trials, by id: a word on a percentile must hold for the events of all trials together as well.
    """
    blocks, design = figures.blocks, figures.run.design
    labels = design.labels
    values = {treatment.id: blocks.values(treatment.id, figures.metric) for treatment in design.treatments}
    obstacles = [
        obstacle_of(figures, difference_of_pair(comparison.baseline, comparison.level)) for comparison in comparisons
    ]
    judged = [comparison for comparison, in_the_way in zip(comparisons, obstacles, strict=True) if not in_the_way]
    contrasts = [difference_of_pair(comparison.baseline, comparison.level) for comparison in judged]
    contrasted = dict(zip(map(id, judged), figures.contrasted(contrasts), strict=True))
    pairs = []
    for comparison, in_the_way in zip(comparisons, obstacles, strict=True):
        contrast_figures = contrasted.get(id(comparison)) or Contrasted(
            log_ratios(values[comparison.level], values[comparison.baseline])
        )
        ratios = dict(contrast_figures.by_block)
        pair = Paired(
            baseline=labels[comparison.baseline],
            level=labels[comparison.level],
            baseline_id=comparison.baseline,
            level_id=comparison.level,
            log_ratios=ratios,
            obstacle=in_the_way,
            figures={block: (values[comparison.level][block], values[comparison.baseline][block]) for block in ratios},
            resolution=figures.resolution(difference_of_pair(comparison.baseline, comparison.level)),
            carry_over=contrast_figures.carry_over,
            without_carry_over=contrast_figures.without_carry_over,
            disturbed=disturbed_in(blocks, (comparison.baseline, comparison.level), ratios),
            safety=_safety(blocks, comparison),
        )
        if not in_the_way:
            contrast = difference_of_pair(comparison.baseline, comparison.level)
            pair = replace(pair, alternatives=alternatives_of(figures, contrast, pair, latencies or {}))
        pairs.append(pair)
    return pairs


def disturbed_in(blocks: UsableBlocks, treatments: Iterable[str], block_numbers: Iterable[int]) -> int:
    """Return in how many of the blocks others disturbed a trial of these treatments."""
    return sum(any(blocks.trials[block][id_].disturbed for id_ in treatments) for block in block_numbers)


def alternatives_of(
    figures: MetricFigures, contrast: Contrast, pair: Paired, latencies: Mapping[str, Latencies] = NO_LATENCIES
) -> tuple[Alternative, ...]:
    """Return every other reading of a contrast that a word on it must hold for: of a pair, a mean, or a difference.

    Whatever is judged by blocks asks here; ``two_runs`` and ``history``, which have none in common, ask ``lateness``
    and ``unequal`` by the same functions. ``pair`` has the log ratios of the contrast. Only for a pair it is known what
    the events of all its trials together say.
    """
    weighted = {id_: weight for id_, weight in contrast.items() if weight}
    together = _events_together(pair, figures, latencies) if len(weighted) == 2 else ()  # noqa: PLR2004
    return (*_unspoiled(figures, weighted, pair), *_not_of_the_drive(figures, weighted, pair), *together)


def _unspoiled(figures: MetricFigures, contrast: Contrast, pair: Paired) -> tuple[OtherRatios, ...]:
    """Return the ratios had failures and interference struck both sides alike."""
    design, spoiled, at = figures.run.design, figures.spoiled, tuple(pair.log_ratios)
    parts = pairs_of(contrast, design.treatments)
    pairs = [
        StruckPair(
            part.weight,
            (design.labels[part.level], design.labels[part.baseline]),
            pair.d
            if len(parts) == 1
            else np.array([figures.logs[part.level][block] - figures.logs[part.baseline][block] for block in at]),
            spoiled.alone(part.level, part.baseline),
            spoiled.alone(part.baseline, part.level),
        )
        for part in parts
    ]
    sides = (spoiled.favouring({id_: sign * weight for id_, weight in contrast.items()}) for sign in (1.0, -1.0))
    return ratios_unspoiled(pair.d, at, pairs, (next(sides), next(sides)))


def _not_of_the_drive(figures: MetricFigures, contrast: Contrast, pair: Paired) -> Iterator[OtherRatios]:
    """Yield the ratios without what may exceed the margin: an emulated disk's lateness, an emulated CPU's work."""
    metric, design, trials = METRICS[figures.metric], figures.run.design, figures.blocks.trials
    sides = [
        Side(design.labels[id_], weight, [trials[block][id_] for block in pair.log_ratios])
        for id_, weight in contrast.items()
    ]
    for cause in not_of_the_drive(sides, metric, design.margin):
        without = ratios_without_lateness if isinstance(cause, LateDisk) else ratios_without_cpu
        yield from (OtherRatios(d, cause) for d in without(pair.d, sides, metric))


def _events_together(
    pair: Paired, figures: MetricFigures, latencies: Mapping[str, Latencies]
) -> tuple[MergedHistograms, ...]:
    percentile = percentile_of(figures.metric)
    if percentile is None or not latencies:
        return ()
    histograms = histograms_in(figures.blocks, (pair.level_id, pair.baseline_id), pair.log_ratios, latencies)
    return (MergedHistograms(histograms[0], histograms[1], percentile),) if histograms else ()


def obstacle_of(figures: MetricFigures, contrast: Contrast) -> Obstacle | None:
    """Return why a contrast, of two treatments or of means over more, can't be judged; ``None`` where it can.

    A mean over comparisons can't be where one of them is of treatments that are the same in fact.
    """
    design, blocks = figures.run.design, figures.blocks
    above, below = ([id_ for id_, weight in contrast.items() if sign * weight > 0] for sign in (1, -1))
    of_contrast = len(contrast) > 2  # noqa: PLR2004
    return first(
        (
            *(
                obstacle(id_, design.labels[id_], blocks, figures.metric, of_contrast=of_contrast)
                for id_ in (*above, *below)
            ),
            _in_name_only(design, blocks, above, below),
        )
    )


def _in_name_only(
    design: Design, blocks: UsableBlocks, above: Sequence[str], below: Sequence[str]
) -> InNameOnly | None:
    lacking = {id_ for id_ in (*above, *below) if not_granted(blocks.of(id_))}
    pairs = (Comparison(other, one) for one, other in product(above, below) if lacking & {one, other})
    difference = next((found for pair in pairs if (found := in_name_only(design, blocks, pair))), None)
    if difference is None:
        return None
    treatment, setting = difference
    why = "" if setting.by_server else setting.said
    return InNameOnly(design.labels[treatment], setting.name, setting.value, why=why)


def _safety(blocks: UsableBlocks, pair: Comparison) -> PairSafety | None:
    level, baseline = (durability([trial.observed for trial in blocks.of(id_)]) for id_ in (pair.level, pair.baseline))
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
    planned = {(comparison.baseline, comparison.level) for comparison in design.comparisons}
    comparisons = []
    for pair in combinations([treatment.id for treatment in design.treatments], 2):
        turned = pair[::-1]
        backwards = turned[0] == design.baseline or (pair[0] != design.baseline and turned in planned)
        comparisons.append(Comparison(*(turned if backwards else pair)))
    return comparisons


def pairs_not_planned(design: Design) -> list[Comparison]:
    """Return every two treatments that the study does not compare by itself; of a suite, every two of one load."""
    planned = {frozenset((comparison.baseline, comparison.level)) for comparison in design.comparisons}
    loads = design.factor_of_loads
    load_of = {t.id: t.levels.get(loads.name) if loads else None for t in design.treatments}
    return [
        comparison
        for comparison in every_pair(design)
        if frozenset((comparison.baseline, comparison.level)) not in planned
        and load_of.get(comparison.baseline) == load_of.get(comparison.level)
    ]


# Secondary metrics, exploratory: hints at where else two treatments differ, never verdicts.
#
# Benjamini and Hochberg's correction goes over all of them at once, every metric in every planned comparison: of what
# is said to stand out, at most 5 % is expected to be wrong.


def secondary_metrics(
    run: Run, blocks: UsableBlocks, rule: Callable[[int], Rule], names: Sequence[str] | None = None
) -> list[Secondary]:
    """Return each secondary metric in each planned comparison, by comparison; without those that lack figures.

    They are the study's unless ``names`` says which.

    A block in which either treatment has none is left out of that metric; one that is 0 anywhere is left out there.
    """
    design = run.design
    by_metric = {
        metric: compared(MetricFigures(run, blocks, metric), design.comparisons)
        for metric in (design.secondary_metrics if names is None else names)
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
    figures = evidence_of_pairs([pair for _, pair in every], design.margin, rule).combined
    adjusted = benjamini_hochberg(figures.p)
    return [
        Secondary(
            metric=metric,
            baseline=pair.baseline,
            level=pair.level,
            baseline_id=pair.baseline_id,
            level_id=pair.level_id,
            effect=relative_estimate(
                float(figures.value[i]), float(figures.low[i]), float(figures.high[i]), len(pair.d)
            ),
            p=float(figures.p[i]),
            p_adjusted=float(adjusted[i]),
        )
        for i, (metric, pair) in enumerate(every)
    ]
