"""The device layer where it is a real block device, all of which is erased."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dbdyno.filesystems import Kind
from dbdyno.host.storage import disk_facts
from dbdyno.stack.erase import Erasing, HeldDisk
from dbdyno.stack.layer import BlockDevice, StackContext
from dbdyno.stack.layers.device import AlwaysItself
from dbdyno.stack.tools import run_tool
from dbdyno.stack.undo.real_disk import MarkHalfMade, WipeOurs
from dbdyno.stack.undo_log import Journal


@dataclass(frozen=True)
class Real(AlwaysItself):
    """A real block device; every trial makes its filesystem anew, so all it holds is erased."""

    path: Path
    serial: str | None
    erasing: Erasing
    name: str = "device"

    @contextmanager
    def raised(self, below: StackContext) -> Iterator[StackContext]:
        """The device, once it has proved to be the one named and not to be in use."""
        with self.erasing.holding(self.path, self.serial) as disk:
            identity = disk.identity
            path = identity.path
            facts = disk_facts(path.name)
            rotational = facts["rotational"] == "yes"
            observed = {
                "kind": "real",
                "model": identity.model,
                "serial": identity.serial,
                "size_bytes": identity.size_bytes,
                "sector_bytes": facts["logical_block_bytes"],
            }
            ours = str(uuid.uuid4())
            with below.journal.undoing(WipeOurs(str(path), ours)):
                device = BlockDevice(path, rotational=rotational, disposable=False, uuid=ours, real_disk=disk)
                yield below.raised(self.name, observed, device=device)


def make_on_real_disk(disk: HeldDisk, kind: Kind, options: str, ours: str, journal: Journal) -> None:
    """Make a filesystem that is known by the UUID ``ours``, on a disk that is proved to be free once more.

    wipefs and mkfs inherit the very descriptor that was proved. Raises ``HostError`` where the disk is not free.
    """
    proof = disk.prove()
    half_made = MarkHalfMade(str(disk.identity.path), ours, disk.identity.attachment, proof.seed, proof.each)
    with journal.undoing(half_made):
        disk.begin()
        # What lies there is nothing, dbdyno's own, or given up: no old signature must be taken for the new one's.
        run_tool(["wipefs", "--all", "--quiet", disk.path], pass_fds=(disk.handle,))
        run_tool([*kind.making(options, ours), disk.path], pass_fds=(disk.handle,))
