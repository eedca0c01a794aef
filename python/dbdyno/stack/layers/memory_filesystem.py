"""A tmpfs in place of a filesystem on a device: what there is to gain by any device at most."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from dbdyno.errors import TrialError
from dbdyno.filesystems.tmpfs import TMPFS
from dbdyno.stack.layer import StackContext
from dbdyno.stack.layers.filesystem import check_mount, mount, observed_mount
from dbdyno.stack.undo.undos import Unmount


@dataclass(frozen=True)
class MemoryFilesystem:
    """A tmpfs of a size."""

    size: int  # bytes; what is written beyond finds the disk full
    options: str  # of mount
    name: str = "filesystem"

    @contextmanager
    def raised(self, below: StackContext) -> Iterator[StackContext]:
        """The tmpfs mounted in the scratch folder; nothing is flushed anywhere."""
        directory = below.scratch / "mnt"
        directory.mkdir(exist_ok=True)
        with below.journal.undoing(Unmount(str(directory))):
            mount(TMPFS, ",".join(filter(None, [self.options, f"size={self.size}"])), directory, "dbdyno")
            observed = {**observed_mount(directory), "barriers": False, "flushes_on_fsync": False}
            check_mount(TMPFS, self.options, observed)
            took = shutil.disk_usage(directory).total
            if took != self.size:
                raise TrialError(f"tmpfs: asked for {self.size} bytes, the kernel took {took}")
            yield below.raised(self.name, observed, directory=directory)
