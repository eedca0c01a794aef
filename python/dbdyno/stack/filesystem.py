"""The filesystem: made, mounted, and its options read back."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dbdyno.errors import TrialError
from dbdyno.stack.layer import Stand
from dbdyno.stack.tools import run_tool
from dbdyno.stack.undo import Unmount
from dbdyno.study.schema import FilesystemSection

MKFS: dict[str, list[str]] = {
    # Lazy initialisation would write in the background while the trial measures.
    "ext4": ["mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"],
    "xfs": ["mkfs.xfs", "-q", "-f"],
    "btrfs": ["mkfs.btrfs", "-q", "-f"],
}
# Options that the kernel accepts but does not list, because they are its defaults.
UNLISTED = {"defaults", "rw", "async", "suid", "dev", "exec", "auto", "nouser", "barrier", "barrier=1", "delalloc",
            "data=ordered", "attr2", "inode64", "noquota", "datacow", "datasum", "ssd", "discard=async"}  # fmt: skip


@dataclass(frozen=True)
class Filesystem:
    """A filesystem on the device below."""

    kind: str
    options: FilesystemSection
    format: bool  # make it anew, rather than mount what the device holds
    name: str = "filesystem"

    @contextmanager
    def raised(self, below: Stand) -> Iterator[Stand]:
        """The filesystem mounted in the scratch folder."""
        assert below.device is not None  # noqa: S101  (the plan puts no filesystem on ``here``)
        device, directory = str(below.device.path), below.scratch / "mnt"
        if self.format:
            run_tool([*MKFS[self.kind], *self.options.mkfs.split(), device])
        directory.mkdir(exist_ok=True)
        with below.journal.undoing(Unmount(str(directory))):
            asked = ["-o", self.options.mount] if self.options.mount else []
            run_tool(["mount", "-t", self.kind, *asked, device, str(directory)])
            observed = observed_mount(directory)
            self._check(observed)
            yield below.raised(self.name, observed, directory=directory)

    def _check(self, observed: dict[str, object]) -> None:
        if observed["kind"] != self.kind:
            raise TrialError(f"asked for {self.kind}, mounted is {observed['kind']}")
        listed = str(observed["mount_options"]).split(",")
        for option in filter(None, self.options.mount.split(",")):
            bare = re.sub(r":\d+$", "", option)  # btrfs lists a compression level that was not asked for
            if option not in listed and option not in UNLISTED and not any(o.startswith(bare) for o in listed):
                raise TrialError(f"mount option {option!r} did not take; the kernel lists {','.join(listed)}")


def observed_mount(directory: Path) -> dict[str, object]:
    """Type, options and barriers of the filesystem mounted at a folder, from /proc/self/mountinfo."""
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        fields, _, rest = line.partition(" - ")
        if fields.split()[4] == str(directory):
            kind, _, super_options = rest.split(" ", 2)
            options = ",".join(dict.fromkeys([*fields.split()[5].split(","), *super_options.split(",")]))
            barriers = not {"nobarrier", "barrier=0"} & set(options.split(","))
            return {"kind": kind, "mount_options": options, "barriers": barriers}
    raise TrialError(f"{directory} is not mounted although mount said nothing")
