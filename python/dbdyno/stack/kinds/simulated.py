"""A simulated stack: the block layer of a named kernel over a drive model, in virtual time.

Its layers are values alone, which the simulator is given.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Self

from dbdyno.stack.capabilities import Capability
from dbdyno.stack.kinds.kind import Raising, Stack, StackKind
from dbdyno.stack.layer import Image, StackContext
from dbdyno.stack.layers.device import AlwaysItself
from dbdyno.stack.undo_log import Journal
from dbdyno.study.schema import TrialSpec
from dbdyno.study.simulated_loads import QUEUE_DEPTH, kernels_by_name

NOTE = (
    "Simulated: the block layer of a named kernel over a drive model, in virtual time. No figure includes what"
    " the simulator leaves out: processors, memory traffic, and the work of a server besides its I/O."
)


@dataclass(frozen=True)
class SimulatedDrive(AlwaysItself):
    """The drive."""

    model: str
    size_bytes: int
    name: str = "device"

    @contextmanager
    def raised(self, below: StackContext) -> Iterator[StackContext]:
        """The context, with what the drive is."""
        observed = {"kind": "simulated", "model": self.model, "size_bytes": self.size_bytes, "note": NOTE}
        yield below.raised(self.name, observed)


@dataclass(frozen=True)
class SimulatedQueue:
    """The kernel with its queue: what a study does not say is that kernel's default."""

    kernel: str
    scheduler: str
    nr_requests: int
    queue_depth: int
    tunables: dict[str, int] = field(default_factory=dict)
    wbt_lat_usec: int | None = None  # the kernel's default, if it throttles
    name: str = "queue"

    @classmethod
    def of(cls, spec: TrialSpec) -> Self:
        """The queue of a treatment that keeps the rules of simulated stacks."""
        kernel, queue = kernels_by_name()[str(spec.stack.kernel)], spec.queue
        scheduler = spec.stack.scheduler or next(iter(kernel.schedulers))
        depth = queue.queue_depth or QUEUE_DEPTH
        default, _, _ = kernel.nr_requests(scheduler, depth)
        tunables = {name: tunable.default for name, tunable in kernel.schedulers[scheduler].items()}
        values = tunables | queue.iosched
        return cls(str(spec.stack.kernel), scheduler, queue.nr_requests or default, depth, values, queue.wbt_lat_usec)

    @contextmanager
    def raised(self, below: StackContext) -> Iterator[StackContext]:
        """The context, with all that the queue is set to."""
        observed = {
            "kernel": self.kernel,
            "scheduler": self.scheduler,
            "nr_requests": str(self.nr_requests),
            "queue_depth": str(self.queue_depth),
            "iosched": {name: str(value) for name, value in self.tunables.items()},
            "wbt_lat_usec": "default" if self.wbt_lat_usec is None else str(self.wbt_lat_usec),
        }
        yield below.raised(self.name, observed)


class SimulatedStack(StackKind[Image]):
    """It needs nothing of a host and touches nothing there."""

    IS_RAISED = False
    ON_HOST = False

    def needs_of_server(self, spec: TrialSpec) -> Iterator[Capability]:
        """Nothing: there is none."""
        return iter(())

    def needs_of_ground(self, spec: TrialSpec, erase: frozenset[str]) -> Iterator[Capability]:
        """Nothing."""
        return iter(())

    def touches(self, specs: Sequence[TrialSpec], proofs: Mapping[str, str]) -> Iterator[str]:
        """Nothing."""
        yield "nothing of this host: kernel and drive are simulated"

    def server_version(self, spec: TrialSpec) -> str:
        """Of none."""
        return ""

    def image_key(self, spec: TrialSpec) -> str:
        """One for all: nothing is prepared."""
        return "simulated"

    @contextmanager
    def new_image(self, spec: TrialSpec, journal: Journal) -> Iterator[Image]:
        """Nothing."""
        yield Image()

    def stack(self, spec: TrialSpec, image: Image, raising: Raising) -> Stack:
        """The drive and the queue above it, as far as they can be said before the load."""
        return Stack(SimulatedDrive(spec.stack.device, spec.stack.size or 0), (SimulatedQueue.of(spec),))


KIND = SimulatedStack()
