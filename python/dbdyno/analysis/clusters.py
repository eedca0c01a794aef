"""How clusters kept up, by treatment: means over usable trials."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from dbdyno.analysis.blocks import UsableBlocks
from dbdyno.model.design import Design
from dbdyno.model.disks import layer_of
from dbdyno.model.metrics import known_values
from dbdyno.store.records import Trial


@dataclass(frozen=True)
class ClusterSummary:
    """The cluster of one treatment; a figure that is not known is NaN."""

    treatment: str  # id
    label: str
    nodes: str
    trials: int
    commits_per_second: float
    ordering_ms_mean: float  # until all nodes had a write set
    flow_control_paused_ratio: float
    receive_queue_mean: float  # of the node on which it was longest
    certification_failures: float
    catch_up_ms_mean: float


def clusters(design: Design, blocks: UsableBlocks) -> list[ClusterSummary]:
    """Return the cluster of each treatment that has one, in the order of the study."""
    return [
        _summary(treatment.id, treatment.label, trials)
        for treatment in design.treatments
        if (trials := [trial for trial in blocks.of(treatment.id) if layer_of(trial.observed, "cluster", "")])
    ]


def _summary(treatment: str, label: str, trials: Sequence[Trial]) -> ClusterSummary:
    metrics = [trial.metrics for trial in trials]

    def mean(name: str) -> float:
        values = known_values(metrics, name)
        return fmean(values) if values else math.nan

    return ClusterSummary(
        treatment=treatment,
        label=label,
        nodes=str(layer_of(trials[0].observed, "cluster", "").get("size", "")),
        trials=len(trials),
        commits_per_second=mean("cluster_commits_per_second"),
        ordering_ms_mean=mean("ordering_ms_mean"),
        flow_control_paused_ratio=mean("flow_control_paused_ratio"),
        receive_queue_mean=mean("receive_queue_mean"),
        certification_failures=mean("certification_failures"),
        catch_up_ms_mean=mean("cluster_catch_up_ms"),
    )
