"""How replicas kept up, by treatment: means over usable trials."""

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
        _summary(treatment.id, treatment.label, trials)
        for treatment in design.treatments
        if (trials := [trial for trial in blocks.of(treatment.id) if layer_of(trial.observed, "replica", "")])
    ]


def _summary(treatment: str, label: str, trials: Sequence[Trial]) -> ReplicaSummary:
    shown = layer_of(trials[0].observed, "replica", "")

    metrics = [trial.metrics for trial in trials]

    def mean(name: str) -> float:
        values = known_values(metrics, name)
        return fmean(values) if values else math.nan

    return ReplicaSummary(
        treatment=treatment,
        label=label,
        mode=str(shown.get("mode", "")),
        disk=str(shown.get("disk", "")),
        trials=len(trials),
        wait_ms_mean=mean("replica_wait_ms_mean"),
        lag_ms_mean=mean("replica_lag_ms_mean"),
        lag_ms_max=max(known_values(metrics, "replica_lag_ms_max"), default=math.nan),
        catch_up_ms_mean=mean("replica_catch_up_ms"),
    )
