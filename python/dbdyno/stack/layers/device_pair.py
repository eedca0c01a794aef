"""Emulated disks side by side, for a filesystem that stands on several."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from dbdyno.stack.layer import StackContext
from dbdyno.stack.layers.device import Emulated
from dbdyno.stack.undo.log import Journal

SEED_BITS = 48  # that a trial's seed takes (Plan.trial_seed); above them the disk's number keeps the seeds apart


def seed_of(seed: int, number: int) -> int:
    """The seed of one disk of several; that of the first, number 0, is the trial's."""
    return seed + (number << SEED_BITS)


@dataclass(frozen=True)
class EmulatedPair:
    """Emulated disks of one model and size, each with chances of its own."""

    disks: tuple[Emulated, ...]
    name: str = "device"
    disk: ClassVar[None] = None  # whose own trace could stand in for the kernel's: two are not traced

    @contextmanager
    def raised(self, below: StackContext) -> Iterator[StackContext]:
        """A loop device over each; what was observed of the others stands beside that of the first."""
        with ExitStack() as lowering:
            contexts = [lowering.enter_context(one.raised(below)) for one in self.disks]
            first, *others = [dict(context.observed[self.name]) for context in contexts]
            devices = [device for context in contexts for device in context.devices]
            observed = {**first, "devices": len(devices), "beside": others}
            yield below.raised(self.name, observed, device=devices[0], beside=tuple(devices[1:]))

    @contextmanager
    def measuring(self, journal: Journal) -> Iterator[dict[str, Any]]:
        """All behave like the drive for as long as the context lasts; fills the yielded dict with their figures."""
        figures: dict[str, Any] = {}
        with ExitStack() as ending:
            each = [ending.enter_context(one.measuring(journal)) for one in self.disks]
            yield figures
        figures |= {"lateness_ns": latest([one["lateness_ns"] for one in each]), "disks": each}


def latest(lateness: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The figures of the later disk, as a request may wait for it; only ``count`` is of all."""
    return {name: (sum if name == "count" else max)(one[name] for one in lateness) for name in lateness[0]}
