"""On a loop device over a file in a folder of a disk in use, for those who have no disk to spare."""

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from dbdyno.errors import HostError, TrialError
from dbdyno.host.storage import disk_facts, mounted_at
from dbdyno.stack import capabilities
from dbdyno.stack.capabilities import Capability
from dbdyno.stack.kinds.kind import Device, Raising
from dbdyno.stack.kinds.own import FILESYSTEM_MOUNTED, CopiedData, block_layers, block_needs, touched_between
from dbdyno.stack.layer import BlockDevice, Layer, StackContext
from dbdyno.stack.layers.data import Tree
from dbdyno.stack.layers.device import AlwaysItself, mount_of
from dbdyno.stack.loop import attach_loop, loop_files
from dbdyno.stack.undo.actions import DetachLoops, RemoveDiskFile
from dbdyno.stack.undo_log import Journal
from dbdyno.study.drives import device_place
from dbdyno.study.schema import TrialSpec
from dbdyno.study.units import format_bytes
from dbdyno.system.interrupt import shielded
from dbdyno.system.state import new_token

LEFT_BYTES = 256 * 1024**2  # room that is left to what else uses the folder's filesystem
_NO_DISKS = {"tmpfs", "ramfs", "devtmpfs", "nfs", "nfs4", "cifs", "smb3", "9p", "overlay"}
_ZEROS = bytes(1024**2)


@dataclass(frozen=True)
class DiskFile(Tree):
    """Prepared data, and the file that is the disk of every trial that starts from them."""

    path: Path = Path()


@dataclass(frozen=True)
class OnFile(AlwaysItself):
    """The file, attached as a pristine loop device with direct I/O."""

    path: Path
    name: str = "device"

    @contextmanager
    def raised(self, below: StackContext) -> Iterator[StackContext]:
        """The loop device; a filesystem that is made on it takes no block away from the file."""
        beneath = mount_of(self.path.parent)
        with below.journal.undoing(DetachLoops(str(self.path))):
            path = attach_loop(self.path)
            # Whoever may write to the folder may put a link to another file there: nothing was written to that yet.
            if (backing_file := dict(loop_files()).get(path.name)) != str(self.path):
                raise TrialError(f"{path} is over {backing_file}, not over {self.path}")
            Path(f"/sys/block/{path.name}/queue/discard_max_bytes").write_text("0", encoding="ascii")
            facts = disk_facts(path.name)
            observed = {
                "kind": "file",
                "size_bytes": facts["bytes"],
                "sector_bytes": facts["logical_block_bytes"],
                "beneath": beneath,
                "note": f"{self.path.parent}: the device was a file there, so all figures include the"
                f" filesystem beneath it ({beneath['filesystem']}) and other use of its disk.",
            }
            device = BlockDevice(path, rotational=facts["rotational"] == "yes", disposable=True)
            yield below.raised(self.name, observed, device=device)


class FileStack(CopiedData):
    """The filesystem is made anew for each trial; the file is written once and removed when the run ends."""

    def needs_of_ground(self, spec: TrialSpec, erase: frozenset[str]) -> Iterator[Capability]:
        """Also the folder, on a disk, with room for the file."""
        yield from (*block_needs(spec), capabilities.loop(), _room(_folder(spec), spec.stack.size or 0))

    def touches(self, specs: Sequence[TrialSpec], proofs: Mapping[str, str]) -> Iterator[str]:
        """The files, one for each image."""
        files = {self.planned_key(spec): (_folder(spec), spec.stack.size or 0) for spec in specs}
        for folder in dict.fromkeys(folder for folder, _ in files.values()):
            sizes = ", ".join(format_bytes(size) for size_folder, size in files.values() if size_folder == folder)
            yield f"created: in {folder}, a file as a disk for each set of data ({sizes}); gone afterwards"
        yield "attached: a loop device over that file, anew for each trial; detached afterwards"
        yield from touched_between(specs)
        yield FILESYSTEM_MOUNTED

    def places(self, spec: TrialSpec) -> list[Path]:
        """The folder."""
        return [_folder(spec)]

    def image_key(self, spec: TrialSpec) -> str:
        """Also by the folder and the size."""
        return f"{super().image_key(spec)} {spec.stack.size} {_folder(spec)}"

    def planned_key(self, spec: TrialSpec) -> str:
        """The same."""
        return f"{super().planned_key(spec)} {spec.stack.size} {_folder(spec)}"

    @contextmanager
    def new_image(self, spec: TrialSpec, journal: Journal) -> Iterator[DiskFile]:
        """A folder for the data, and the file, whole on the disk, so that no trial pays for its growing."""
        path = _folder(spec) / f"dbdyno-{new_token()}.img"
        with super().new_image(spec, journal) as tree, journal.undoing(RemoveDiskFile(str(path))):
            _write(path, spec.stack.size or 0)
            yield DiskFile(tree.folder, path=path)

    def ground(self, spec: TrialSpec, image: Tree, raising: Raising) -> tuple[Device, list[Layer]]:
        """The file's loop device, its queue, and a new filesystem."""
        assert isinstance(image, DiskFile)  # noqa: S101  (of this kind)
        return OnFile(image.path), block_layers(spec, raising, fresh=True)


KIND = FileStack()


def _folder(spec: TrialSpec) -> Path:
    return Path(device_place(spec.stack.device)).resolve()


def _room(folder: Path, size: int) -> Capability:
    """Whether a folder is there, lies on a disk, and leaves room beside a file of ``size`` bytes."""
    name = f"folder {folder}"
    if not folder.is_dir():
        return Capability(name, ok=False, detail="is not a folder", remedy=f"make one: install -d {folder}")
    mount = mounted_at(folder.resolve())
    if mount.kind in _NO_DISKS or mount.kind.startswith("fuse"):
        return Capability(name, ok=False, detail=f"is on {mount.kind}, no disk of this host", remedy="name another")
    free = shutil.disk_usage(folder).free
    detail = f"on {mount.kind} of {mount.source}, {format_bytes(free)} free"
    return Capability(
        name, ok=free >= size + LEFT_BYTES, detail=detail, remedy="give a smaller stack.size, or make room"
    )


def _write(path: Path, size: int) -> None:
    """Make the file, which must not be there, of zeros down to the disk. Raises ``HostError``."""
    try:
        if shutil.disk_usage(path.parent).free < size + LEFT_BYTES:
            raise HostError(f"{path.parent} has no room for a file of {format_bytes(size)} as a disk")
        with ExitStack() as closing:
            with shielded():
                handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
                closing.callback(os.close, handle)
            for offset in range(0, size, len(_ZEROS)):
                os.pwrite(handle, _ZEROS[: size - offset], offset)
            os.fsync(handle)
    except OSError as error:
        raise HostError(f"{path}: {error.strerror}") from None
