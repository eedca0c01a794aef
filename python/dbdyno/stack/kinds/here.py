"""In a folder on what the host has; needs no root."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from dbdyno.stack import capabilities
from dbdyno.stack.capabilities import Capability
from dbdyno.stack.kinds.kind import Device, Raising
from dbdyno.stack.kinds.own import CopiedData
from dbdyno.stack.layer import Layer
from dbdyno.stack.layers.data import Tree
from dbdyno.stack.layers.device import Here
from dbdyno.stack.layers.here import bytes_here
from dbdyno.study.schema import TrialSpec
from dbdyno.system.state import existing, state_folder


class HereStack(CopiedData):
    """Neither device nor filesystem is dbdyno's."""

    def needs_of_ground(self, spec: TrialSpec, erase: frozenset[str]) -> Iterator[Capability]:
        """A folder on a disk, with room."""
        yield capabilities.here(bytes_here(spec))

    def touches(self, specs: Sequence[TrialSpec], proofs: Mapping[str, str]) -> Iterator[str]:
        """Nothing beside the state folder."""
        return iter(())

    def places(self, spec: TrialSpec) -> list[Path]:
        """Where the state folder lies."""
        return [existing(state_folder())]

    def ground(self, spec: TrialSpec, image: Tree, raising: Raising) -> tuple[Device, list[Layer]]:
        """The folder."""
        return Here(), []


KIND = HereStack()
