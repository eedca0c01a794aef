"""A disk beside that of the data: its device, queue and filesystem, in a folder of its own."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from dbdyno.model.disks import layer_name
from dbdyno.stack.layer import Layer, StackContext, raised
from dbdyno.stack.layers.scratch import let_server_pass
from dbdyno.system.state import make_private


@dataclass(frozen=True)
class NamedDisk:
    """The disk that a study calls ``disk``, of the very layers that the disk of the data has."""

    disk: str
    layers: tuple[Layer, ...]

    @property
    def name(self) -> str:
        """The phase of a trial in which it is raised."""
        return f"disk {self.disk}"

    @contextmanager
    def raised(self, below: StackContext) -> Iterator[StackContext]:
        """Its layers from the device up; what was read back of each stands beside that of the data's disk."""
        folder = below.scratch / f"disk-{self.disk}"  # which goes away with the scratch folder
        make_private(folder)
        let_server_pass(folder)
        with raised(self.layers, StackContext(below.journal, folder)) as own:
            observed = {layer_name(layer, self.disk): values for layer, values in own.observed.items()}
            disks = {**below.disks, self.disk: own}
            yield replace(below, observed={**below.observed, **observed}, disks=disks)
