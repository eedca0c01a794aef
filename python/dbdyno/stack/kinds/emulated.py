"""On emulated disks: processes that answer as a drive model says."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import ClassVar

from dbdyno.filesystems import BY_FUSE, KINDS
from dbdyno.stack import capabilities
from dbdyno.stack.between import NONE
from dbdyno.stack.capabilities import Capability
from dbdyno.stack.kinds.kind import Device, Raising
from dbdyno.stack.kinds.own import FILESYSTEM_MOUNTED, OwnStack, between_of, block_layers, block_needs, touched_between
from dbdyno.stack.layer import Layer
from dbdyno.stack.layers.data import Disks
from dbdyno.stack.layers.device import Emulated, EmulatedSet, seed_of
from dbdyno.stack.layers.emulated_disk import EmulatedDisk, is_rotational, running_disk
from dbdyno.stack.layers.encryption import KEY_BYTES
from dbdyno.stack.tools import tool_path
from dbdyno.stack.undo_log import Journal
from dbdyno.study.schema import StackSection, TrialSpec
from dbdyno.study.units import format_bytes


def touched_by_disks(sizes: Sequence[int]) -> Iterator[str]:
    """What serves disks of these sizes, and where their files are."""
    listing = ", ".join(format_bytes(size) for size in sorted(sizes))
    yield f"created: {len(sizes)} emulated disk{'s' * (len(sizes) > 1)} in memory ({listing}); gone afterwards"
    yield "mounted: the file of each disk by FUSE, in the state folder; unmounted afterwards"


class EmulatedStack(OwnStack[Disks]):
    """The prepared data are the disks' own blocks, with the filesystem."""

    DISK: ClassVar[type[Emulated]] = Emulated  # as the layers have one

    def needs_of_ground(self, spec: TrialSpec, erase: frozenset[str]) -> Iterator[Capability]:
        """Also what serves a file as a disk."""
        for each in (spec, *spec.by_disk.values()):
            yield from block_needs(each)
        yield from (capabilities.fuse(), capabilities.loop())
        if data_bytes := sum(load.data_bytes for load in spec.loads):
            yield capabilities.room_for_content(data_bytes)

    def touches(self, specs: Sequence[TrialSpec], proofs: Mapping[str, str]) -> Iterator[str]:
        """The disks, one for each image, and what the kernel reaches them by."""
        yield from self.touched_disks(specs)
        yield "attached: a loop device over the file of each disk, anew for each trial; detached afterwards"
        yield from touched_between(specs)
        yield FILESYSTEM_MOUNTED
        if any(spec.stack.filesystem == BY_FUSE for spec in specs):
            yield "started: zfs-fuse in a mount namespace of its own, which knows no other pool; ended afterwards"

    def touched_disks(self, specs: Sequence[TrialSpec]) -> Iterator[str]:
        """The disks of each image."""
        sizes = {
            self.planned_key(spec): [
                *[spec.stack.size or 0] * spec.stack.devices,
                *(disk.stack.size or 0 for disk in spec.by_disk.values()),
            ]
            for spec in specs
        }
        yield from touched_by_disks([size for disk_sizes in sizes.values() for size in disk_sizes])

    @contextmanager
    def new_image(self, spec: TrialSpec, journal: Journal) -> Iterator[Disks]:
        """Empty disks."""
        sharing = spec.stack.devices + len(spec.by_disk)
        with ExitStack() as ending:

            def started(stack: StackSection) -> EmulatedDisk:
                assert stack.size is not None  # noqa: S101  (a rule of the study format)
                return ending.enter_context(running_disk(journal, model=stack.device, size=stack.size, sharing=sharing))

            disks = tuple(started(spec.stack) for _ in range(spec.stack.devices))
            key = os.urandom(KEY_BYTES) if spec.stack.encryption != NONE else b""
            yield Disks(disks, {name: started(on.stack) for name, on in spec.by_disk.items()}, key)

    def image_programs(self, spec: TrialSpec) -> list[str]:
        """What makes the filesystems."""
        kinds = (KINDS.get(each.stack.filesystem or "") for each in (spec, *spec.by_disk.values()))
        return list(dict.fromkeys(path for kind in kinds if kind and (path := tool_path(kind.program))))

    def image_place(self, spec: TrialSpec) -> str:
        """The filesystem, how many disks it is on, and what stands beside."""
        stack = spec.stack
        over = [str(getattr(stack, part.FIELD)) for part in reversed(between_of(spec))]
        ends = [f"{stack.devices} disks"] if stack.devices > 1 else []
        place = " on ".join([str(stack.filesystem), *over, *ends])
        named = [f"{on.stack.filesystem} on {name}" for name, on in spec.by_disk.items() if on.stack.filesystem]
        return " and ".join([place, *named])

    def ground(self, spec: TrialSpec, image: Disks, raising: Raising) -> tuple[Device, list[Layer]]:
        """The disks, their queues, and the filesystem that is on them."""
        device = emulated_device(spec, image, raising, self.DISK)
        return device, block_layers(spec, raising, fresh=raising.install, key=image.key)


KIND = EmulatedStack()


def emulated_device(
    spec: TrialSpec, image: Disks, raising: Raising, disk_type: type[Emulated] = Emulated
) -> Emulated | EmulatedSet:
    """The disks of an image as one layer; without content where the data are to be prepared."""
    name = spec.stack.device
    rotational = is_rotational(name)
    disks = [
        disk_type(disk, name, rotational=rotational, seed=seed_of(raising.seed, number), restore=not raising.install)
        for number, disk in enumerate(image.disks)
    ]
    return disks[0] if len(disks) == 1 else EmulatedSet(tuple(disks))
