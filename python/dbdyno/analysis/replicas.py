"""How replicas, and the other nodes of clusters, kept up, by treatment: means over usable trials."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dbdyno.analysis.blocks import UsableBlocks
from dbdyno.model.design import Design, Treatment
from dbdyno.model.disks import layer_of
from dbdyno.model.metrics import known_values, mean_or_nan
from dbdyno.store.records import Trial


@dataclass(frozen=True)
class ReplicaSummary:
    """The replica of one treatment; a figure that is not known is NaN."""

    treatment: str  # id
    label: str
    mode: str
    disk: str
    trials: int
    wait_ms_mean: float  # that a commit waited for the replica's word, of a semi-synchronous one
    lag_ms_mean: float
    lag_ms_max: float  # of all trials
    catch_up_ms_mean: float


def replicas(design: Design, blocks: UsableBlocks) -> list[ReplicaSummary]:
    """Return the replica of each treatment that has one, in the order of the study."""
    return [
        ReplicaSummary(
            treatment=treatment.id,
            label=treatment.label,
            mode=str(shown.get("mode", "")),
            disk=str(shown.get("disk", "")),
            trials=len(trials),
            wait_ms_mean=_mean(trials, "replica_wait_ms_mean"),
            lag_ms_mean=_mean(trials, "replica_lag_ms_mean"),
            lag_ms_max=max(_known(trials, "replica_lag_ms_max"), default=math.nan),
            catch_up_ms_mean=_mean(trials, "replica_catch_up_ms"),
        )
        for treatment, trials, shown in _with_layer(design, blocks, "replica")
    ]


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
        ClusterSummary(
            treatment=treatment.id,
            label=treatment.label,
            nodes=str(shown.get("size", "")),
            trials=len(trials),
            commits_per_second=_mean(trials, "cluster_commits_per_second"),
            ordering_ms_mean=_mean(trials, "ordering_ms_mean"),
            flow_control_paused_ratio=_mean(trials, "flow_control_paused_ratio"),
            receive_queue_mean=_mean(trials, "receive_queue_mean"),
            certification_failures=_mean(trials, "certification_failures"),
            catch_up_ms_mean=_mean(trials, "cluster_catch_up_ms"),
        )
        for treatment, trials, shown in _with_layer(design, blocks, "cluster")
    ]


def _with_layer(
    design: Design, blocks: UsableBlocks, layer: str
) -> Iterator[tuple[Treatment, list[Trial], dict[str, Any]]]:
    """Each treatment with a layer, the trials that have it, and what the first of them showed of it."""
    for treatment in design.treatments:
        trials = [trial for trial in blocks.of(treatment.id) if layer_of(trial.observed, layer, "")]
        if trials:
            yield treatment, trials, dict(layer_of(trials[0].observed, layer, ""))


def _mean(trials: Sequence[Trial], metric: str) -> float:
    return mean_or_nan(_known(trials, metric))


def _known(trials: Sequence[Trial], metric: str) -> list[float]:
    return list(known_values([trial.metrics for trial in trials], metric))
