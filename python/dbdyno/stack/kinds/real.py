"""On a real disk, all of which each trial erases."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from dbdyno.errors import HostError
from dbdyno.stack.capabilities import Capability, device_need
from dbdyno.stack.emptiness import sees_all_processes
from dbdyno.stack.erase import Erasing, check_erasable
from dbdyno.stack.kinds.kind import Device, Raising
from dbdyno.stack.kinds.own import FILESYSTEM_MOUNTED, CopiedData, block_layers, block_needs
from dbdyno.stack.layer import Layer
from dbdyno.stack.layers.data import Tree
from dbdyno.stack.layers.device import Real
from dbdyno.study.schema import TrialSpec


class RealStack(CopiedData):
    """The filesystem is made anew for each trial."""

    def needs_of_ground(self, spec: TrialSpec, erase: frozenset[str]) -> Iterator[Capability]:
        """Also that each disk is the one named, no other's, and may be erased."""
        disks: dict[Path, str] = {}
        for on in _each_disk(spec):
            yield from block_needs(on)
            device = on.stack.device
            whole = Path(device).resolve()
            if whole in disks:
                detail = f"is the same disk as {disks[whole]}"
                yield Capability(device_need(device), ok=False, detail=detail, remedy="name another disk")
            else:
                yield _erasable(device, on.stack.serial, erase)
            disks.setdefault(whole, device)

    def touches(self, specs: Sequence[TrialSpec], proofs: Mapping[str, str]) -> Iterator[str]:
        """The disks that are erased, and their queues."""
        devices = dict.fromkeys(on.stack.device for spec in specs for on in _each_disk(spec))
        for device in devices:
            proof = proofs.get(device_need(device))
            yield f"ERASED: {device}, all that is on it{f' ({proof})' if proof is not None else ''}"
        for device in devices:
            yield f"changed: queue settings of {device}, put back after each trial"
        yield FILESYSTEM_MOUNTED

    def places(self, spec: TrialSpec) -> list[Path]:
        """The disks."""
        return [Path(on.stack.device) for on in _each_disk(spec)]

    def ground(self, spec: TrialSpec, image: Tree, raising: Raising) -> tuple[Device, list[Layer]]:
        """The disk, its queue, and a new filesystem."""
        device = Real(Path(spec.stack.device), spec.stack.serial, raising.erase)
        return device, block_layers(spec, raising, fresh=True)


KIND = RealStack()


def _each_disk(spec: TrialSpec) -> list[TrialSpec]:
    """The disk of the data, and those beside it."""
    return [spec, *spec.by_disk.values()]


def _erasable(device: str, serial: str | None, erase: frozenset[str]) -> Capability:
    try:
        identity, proof = check_erasable(Path(device), serial, Erasing(erase))
    except HostError as error:
        return Capability(device_need(device), ok=False, detail=str(error), remedy="or name another disk")
    disk = f"{identity.model} {identity.serial}".strip()
    unseen = "" if sees_all_processes() else "; processes outside this container, which may use it, can't be seen"
    return Capability(device_need(device), ok=True, detail=f"{disk}; {proof.why}{unseen}")
