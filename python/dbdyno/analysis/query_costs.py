"""What each query costs the server and its disks in every treatment, and how that differs between two.

The metrics are ``COSTS`` of ``model/metrics.py``: counted by the kernel, the server and the processor over the measured
window, and divided by the queries of the load. What the server does besides, in its background, is in them. Differences
are of the ratios inside blocks, as those of secondary metrics, and like these they are hints, not verdicts.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Literal

from dbdyno.analysis.blocks import UsableBlocks
from dbdyno.analysis.statistics import log_margin, relative
from dbdyno.analysis.verdict.evidence import Rule
from dbdyno.analysis.verdict.pairs import secondary_metrics
from dbdyno.analysis.verdict.reasons import Secondary
from dbdyno.model.metrics import COSTS, value_of
from dbdyno.store.records import Run

CostWord = Literal["more", "less", "alike", "unclear"]


@dataclass(frozen=True)
class TreatmentQueryCosts:
    """Means over ``n`` usable trials, each in the unit of its metric; what not all of them have is left out."""

    id: str
    label: str
    n: int
    figures: dict[str, float]


@dataclass(frozen=True)
class QueryCosts:
    """The costs of a run; empty where nothing was counted."""

    treatments: list[TreatmentQueryCosts] = field(default_factory=list)
    changes: list[Secondary] = field(default_factory=list)  # by comparison, in the order of ``COSTS``

    @property
    def metrics(self) -> list[str]:
        """The names of all that is known of some treatment."""
        return [name for name in COSTS if any(name in treatment.figures for treatment in self.treatments)]

    def of_comparison(self, ids: tuple[str, str]) -> list[Secondary]:
        """Return what is known of one comparison, by the ids of its baseline and its level."""
        return [change for change in self.changes if (change.baseline_id, change.level_id) == ids]


def query_costs(run: Run, blocks: UsableBlocks, rule: Callable[[int], Rule], known: Sequence[Secondary]) -> QueryCosts:
    """Return means and differences; ``known`` are the study's own secondary metrics, which are not judged again.

    Benjamini and Hochberg's correction goes over all others together.
    """
    treatments = []
    for treatment in run.design.treatments:
        trials = [] if treatment.id in blocks.dropped else blocks.of(treatment.id)
        by_name = {name: [value_of(trial.metrics, name) for trial in trials] for name in COSTS}
        means = {name: fmean(values) for name, values in by_name.items() if values}
        figures = {name: mean for name, mean in means.items() if mean >= 0}  # NaN where a trial lacks it
        if figures:
            treatments.append(TreatmentQueryCosts(treatment.id, treatment.label, len(trials), figures))
    named = {*run.design.secondary_metrics, run.design.metric}
    others = secondary_metrics(run, blocks, rule, [name for name in COSTS if name not in named])
    changes = [*(secondary for secondary in known if secondary.metric in COSTS), *others]
    places = {(each.baseline, each.level): place for place, each in enumerate(run.design.comparisons)}
    changes.sort(key=lambda change: (places[change.baseline_id, change.level_id], COSTS.index(change.metric)))
    return QueryCosts(treatments, changes)


def cost_word(change: Secondary, margin: float) -> CostWord:
    """Return what becomes of a cost: ``alike`` where the whole interval is within the margin, however sure it is."""
    half = log_margin(margin)
    if change.effect.bounded and relative(-half) < change.effect.low and change.effect.high < relative(half):
        return "alike"
    if not change.stands_out:
        return "unclear"
    return "more" if change.effect.value > 0 else "less"
