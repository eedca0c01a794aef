"""What the block layer did in each treatment, from the block traces of its usable trials."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dbdyno.analysis.blocks import UsableBlocks
from dbdyno.store.records import Design, Trial

# Figure -> where it stands in a trial's ``block_trace``; times of reads and writes together, but for flushes.
FIGURES: dict[str, tuple[str, ...]] = {
    "queue_ms_mean": ("queue_ms", "all", "mean"),
    "queue_ms_p99": ("queue_ms", "all", "p99"),
    "device_ms_mean": ("device_ms", "all", "mean"),
    "device_ms_p99": ("device_ms", "all", "p99"),
    "flush_ms_mean": ("device_ms", "flush", "mean"),
    "flush_ms_p99": ("device_ms", "flush", "p99"),
    "reads": ("requests", "read"),
    "writes": ("requests", "write"),
    "flushes": ("requests", "flush"),
    "bios": ("bios",),
    "seek_bytes_mean": ("seek_bytes_mean",),
    "sequential_ratio": ("sequential_ratio",),
    "sorted_run_requests_mean": ("sorted_run_requests_mean",),
    "device_depth_mean": ("device_depth", "mean"),
    "device_depth_max": ("device_depth", "max"),
    "waiting_bios_mean": ("waiting_bios", "mean"),
}


@dataclass(frozen=True)
class BlockLayer:
    """A treatment's figures: means over ``trials`` trials, those that have it; one that none has is left out."""

    id: str
    label: str
    trials: int
    figures: dict[str, float]
    scheduler: str  # as it was read back; "" where that is not known
    lost: int = 0  # events, over all its trials
    none: dict[str, int] = field(default_factory=dict)  # why there is no trace -> in how many trials
    own: str = ""  # why the emulated disk's own trace had to stand in for the kernel's, if it did


def block_layer(design: Design, blocks: UsableBlocks) -> list[BlockLayer]:
    """Return an element for each treatment of which a block trace was asked for; empty where none was."""
    found = []
    for treatment in design.treatments:
        trials = [trial for trial in blocks.of(treatment.id) if trial.block_trace]
        if trials:
            found.append(_summed(treatment.id, treatment.label, trials))
    return found


def _summed(id_: str, label: str, trials: Sequence[Trial]) -> BlockLayer:
    why = [str(trial.block_trace["none"]) for trial in trials if "none" in trial.block_trace]
    traced = [trial for trial in trials if "none" not in trial.block_trace]
    values = {
        name: [value for trial in traced if (value := _figure(trial.block_trace, path)) is not None]
        for name, path in FIGURES.items()
    }
    return BlockLayer(
        id=id_,
        label=label,
        trials=len(traced),
        figures={name: math.fsum(each) / len(each) for name, each in values.items() if each},
        scheduler=_scheduler(trials[0].observed),
        lost=round(math.fsum(_figure(trial.block_trace, ("lost",)) or 0.0 for trial in traced)),
        own=next((str(own) for trial in traced if (own := trial.block_trace.get("why_not_kernel"))), ""),
        none={reason: why.count(reason) for reason in dict.fromkeys(why)},
    )


def _figure(trace: Mapping[str, Any], path: tuple[str, ...]) -> float | None:
    """Return a number that may be missing or malformed in a run folder."""
    value: Any = trace
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    known = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0
    return float(value) if known else None


def _scheduler(observed: Mapping[str, Any]) -> str:
    queue = observed.get("queue")
    return str(queue.get("scheduler", "")) if isinstance(queue, Mapping) else ""
