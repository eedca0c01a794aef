"""A simulated stack: the block layer of a named kernel over a drive model, in virtual time."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from dbdyno.stack.capabilities import Capability
from dbdyno.stack.kinds.kind import Raising, Stack, StackKind
from dbdyno.stack.layer import Image
from dbdyno.stack.layers.simulated import SimulatedDrive, SimulatedQueue
from dbdyno.stack.undo_log import Journal
from dbdyno.study.schema import TrialSpec


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
