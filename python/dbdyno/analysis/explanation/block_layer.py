"""What the block layer did in each treatment, from the block traces of its usable trials."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dbdyno.analysis.blocks import UsableBlocks
from dbdyno.model.design import Design
from dbdyno.store.block_trace import FIGURES, figure_at
from dbdyno.store.records import Trial


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
    kept: int = 0  # trials whose requests themselves are in the run folder
    cut: int = 0  # of these, those of which the file is not whole
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
        name: [value for trial in traced if (value := figure_at(trial.block_trace, *path)) is not None]
        for name, path in FIGURES.items()
    }
    files = [
        trial.block_trace["recorded"] for trial in traced if isinstance(trial.block_trace.get("recorded"), Mapping)
    ]
    return BlockLayer(
        id=id_,
        label=label,
        trials=len(traced),
        figures={name: math.fsum(each) / len(each) for name, each in values.items() if each},
        scheduler=_scheduler(trials[0].observed),
        lost=round(math.fsum(figure_at(trial.block_trace, "lost") or 0.0 for trial in traced)),
        kept=len(files),
        cut=sum(bool(file.get("full") or file.get("failed")) for file in files),
        own=next((str(own) for trial in traced if (own := trial.block_trace.get("why_not_kernel"))), ""),
        none={reason: why.count(reason) for reason in dict.fromkeys(why)},
    )


def _scheduler(observed: Mapping[str, Any]) -> str:
    queue = observed.get("queue")
    return str(queue.get("scheduler", "")) if isinstance(queue, Mapping) else ""
