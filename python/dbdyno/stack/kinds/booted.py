"""In a virtual machine, which boots a kernel of the study's afresh for each trial; its disks are emulated ones."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from dbdyno.errors import DbdynoError
from dbdyno.filesystems import KINDS as FILESYSTEMS
from dbdyno.filesystems import OPENZFS
from dbdyno.model.design import BOOTED_KERNELS
from dbdyno.stack import capabilities
from dbdyno.stack.capabilities import Capability
from dbdyno.stack.guest.kernels import find_kernel, known_kernels
from dbdyno.stack.guest.machine import PACKAGE, QEMU, accelerator, boots_under_kvm, kvm_is_open
from dbdyno.stack.guest.openzfs import openzfs_of
from dbdyno.stack.kinds.emulated import EmulatedStack
from dbdyno.stack.kinds.own import between_of
from dbdyno.stack.layers.device import DiskInGuest, Emulated
from dbdyno.stack.tools import tool_path
from dbdyno.study.schema import TrialSpec
from dbdyno.study.units import format_bytes


class BootedStack(EmulatedStack):
    """The host runs the disk and QEMU; the layers are raised, by the same code, in the guest.

    The prepared data don't depend on the kernel: all kernels of a study start from the same bytes.
    """

    IN_GUEST: ClassVar[bool] = True
    DISK: ClassVar[type[Emulated]] = DiskInGuest

    def needs_of_ground(self, spec: TrialSpec, erase: frozenset[str]) -> Iterator[Capability]:
        """QEMU, the kernel, and what serves a file as a disk; no root and no loop device."""
        booted = kernel(str(spec.stack.kernel))
        yield from (qemu(), booted, capabilities.fuse())
        if booted.ok:
            modules = find_kernel(str(spec.stack.kernel)).modules
            for part in between_of(spec):
                yield from part.needs(spec, modules, str(spec.stack.kernel))
        names = [on.stack.filesystem for on in (spec, *spec.by_disk.values()) if on.stack.filesystem]
        if OPENZFS.name in names and booted.ok:
            yield openzfs(str(spec.stack.kernel))
        for filesystem in map(FILESYSTEMS.__getitem__, dict.fromkeys(names)):
            if filesystem.name == OPENZFS.name:
                continue
            found = tool_path(filesystem.program)
            yield Capability(
                filesystem.program,
                ok=bool(found),
                detail=found or "is not installed",
                remedy="" if found else f"apt-get install {filesystem.package}",
            )
        if spec.workload.data_bytes:
            yield capabilities.room_for_content(spec.workload.data_bytes)
        yield capabilities.room_in_memory(spec.stack.guest_memory, "guest_memory")

    def touches(self, specs: Sequence[TrialSpec], proofs: Mapping[str, str]) -> Iterator[str]:
        """The disks, and the machines."""
        yield from self.touched_disks(specs)
        kernels = ", ".join(dict.fromkeys(str(spec.stack.kernel) for spec in specs))
        memory = format_bytes(max(spec.stack.guest_memory for spec in specs))
        yield (
            f"booted: a virtual machine for each trial and each image that is prepared (kernel {kernels}; {memory} of "
            "memory); it reads the files of this host that you may read, and writes to its disks alone"
        )


_PROGRAMS = {QEMU: PACKAGE, "busybox": "busybox-static", "depmod": "kmod"}  # -> the package


def qemu() -> Capability:
    """Whether there is what runs virtual machines."""
    missing = [program for program in _PROGRAMS if tool_path(program) is None]
    if missing:
        remedy = f"apt-get install {' '.join(_PROGRAMS[program] for program in missing)}"
        detail = f"{', '.join(missing)} not installed"
        return Capability("virtual machines", ok=False, detail=detail, remedy=remedy, needed=False)
    return Capability("virtual machines", ok=True, detail=str(tool_path(QEMU)), needed=False)


def machines(begin_try: Callable[[], None] | None = None) -> Capability:
    """What runs virtual machines, and whether their CPU is emulated.

    A kernel is booted for that where it is not known, after ``begin_try``; without that, nothing is tried.
    """
    found = qemu()
    names = [kernel["name"] for kernel in known_kernels() if kernel["installed"]] if found.ok else []
    if not names:
        get = f"; to test KVM, add a kernel: dbdyno kernels add {BOOTED_KERNELS[1]}"
        return replace(found, detail=found.detail + get) if found.ok else found
    first = find_kernel(names[0])
    works = boots_under_kvm(first)
    if works is None and begin_try:
        begin_try()
        try:
            works = accelerator(first) == "kvm"
        except DbdynoError as error:
            return replace(found, ok=False, detail=str(error))
    why = f"{names[0]} does not boot under KVM" if kvm_is_open() else "/dev/kvm can't be opened"
    emulated = f"{why}, so QEMU emulates the CPU: its work takes 10 to 20 times as long"
    text = {True: f"{names[0]} boots under KVM", False: emulated, None: "KVM was not tested"}[works]
    return replace(found, detail=f"{found.detail}; {text}")


_OF_GUEST = ("/dev", "/proc", "/run", "/sys")  # folders that hide those of the host from a guest


def kernel(name: str) -> Capability:
    """Whether a kernel is on this host."""
    place = ("stack", "kernel")
    try:
        found = find_kernel(name)
    except DbdynoError as error:
        detail, _, remedy = str(error).partition("; ")
        return Capability(f"kernel {name}", ok=False, detail=detail, remedy=remedy, field=place)
    modules = found.modules.resolve()
    if place_of_guest := next((folder for folder in _OF_GUEST if modules.is_relative_to(folder)), ""):
        detail = f"its modules lie in {modules}, and a virtual machine has a {place_of_guest} of its own"
        remedy = "put them elsewhere, or set DBDYNO_STATE_DIR to a folder on a disk"
        return Capability(f"kernel {name}", ok=False, detail=detail, remedy=remedy, field=place)
    return Capability(f"kernel {name}", ok=True, detail=f"{found.release}, {Path(found.image)}")


def openzfs(name: str) -> Capability:
    """Whether a kernel of this host has OpenZFS."""
    place, found = ("stack", "filesystem"), openzfs_of(find_kernel(name).modules)
    if found:
        return Capability(f"OpenZFS of {name}", ok=True, detail=f"{found.version}, {found.folder}")
    wanted = name if name in BOOTED_KERNELS else BOOTED_KERNELS[1]
    remedy = f"dbdyno kernels add {wanted} --zfs"
    return Capability(f"OpenZFS of {name}", ok=False, detail="is not built", remedy=remedy, field=place)


KIND = BootedStack()
