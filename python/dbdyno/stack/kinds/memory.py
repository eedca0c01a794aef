"""In memory, without a device."""

from collections.abc import Iterator, Mapping, Sequence

from dbdyno.stack import capabilities
from dbdyno.stack.capabilities import Capability
from dbdyno.stack.kinds.kind import Device, Raising
from dbdyno.stack.kinds.own import CopiedData
from dbdyno.stack.layer import Layer
from dbdyno.stack.layers.data import Tree
from dbdyno.stack.layers.device import NoDevice
from dbdyno.stack.layers.memory import MemoryFilesystem
from dbdyno.study.schema import TrialSpec
from dbdyno.study.units import format_bytes


class MemoryStack(CopiedData):
    """A tmpfs in place of a filesystem on a device."""

    HAS_DISK = False

    def needs_of_ground(self, spec: TrialSpec, erase: frozenset[str]) -> Iterator[Capability]:
        """Also room for the tmpfs."""
        yield from (capabilities.root(), capabilities.filesystem(str(spec.stack.filesystem)))
        yield capabilities.room_in_memory(spec.stack.size or 0, "size")

    def touches(self, specs: Sequence[TrialSpec], proofs: Mapping[str, str]) -> Iterator[str]:
        """The tmpfs."""
        size = max(spec.stack.size or 0 for spec in specs)
        yield f"created: a tmpfs of at most {format_bytes(size)} in memory; gone afterwards"

    def ground(self, spec: TrialSpec, image: Tree, raising: Raising) -> tuple[Device, list[Layer]]:
        """The tmpfs."""
        assert spec.stack.size is not None  # noqa: S101  (a rule of the study format)
        return NoDevice(), [MemoryFilesystem(spec.stack.size, spec.filesystem.mount)]


KIND = MemoryStack()
