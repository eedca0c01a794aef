"""The filesystem: made, mounted, and its options read back."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dbdyno.errors import TrialError
from dbdyno.stack.layer import Stand
from dbdyno.stack.tools import run_tool
from dbdyno.stack.undo import Unmount, unescaped
from dbdyno.study.schema import FilesystemSection
from dbdyno.study.units import size_bytes

MKFS: dict[str, list[str]] = {
    "ext4": ["mkfs.ext4", "-q", "-F"],
    "xfs": ["mkfs.xfs", "-q", "-f"],
    "btrfs": ["mkfs.btrfs", "-q", "-f"],
}
# Lazy initialisation would write in the background while the trial measures.
NOT_LAZY = "lazy_itable_init=0,lazy_journal_init=0"
# Options that the kernel accepts but does not list, because they are its defaults.
UNLISTED = {"defaults", "rw", "async", "suid", "dev", "exec", "auto", "nouser", "barrier", "barrier=1", "delalloc",
            "data=ordered", "commit=5", "commit=30", "attr2", "inode64", "noquota", "datacow", "datasum", "ssd",
            "discard=async"}  # fmt: skip


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
            run_tool([*MKFS[self.kind], *self._options(below.device.uuid), device])
        directory.mkdir(exist_ok=True)
        with below.journal.undoing(Unmount(str(directory))):
            asked = ["-o", self.options.mount] if self.options.mount else []
            run_tool(["mount", "-t", self.kind, *asked, device, str(directory)])
            observed = observed_mount(directory)
            self._check(observed)
            yield below.raised(self.name, observed, directory=directory)

    def _options(self, uuid: str | None) -> list[str]:
        given = self.options.mkfs.split()
        if self.kind == "ext4":  # of several -E only the last counts
            extended = [given.pop(at + 1) for at in reversed([n for n, word in enumerate(given) if word == "-E"])]
            given = [word for word in given if word != "-E"]
            given += ["-E", ",".join([NOT_LAZY, *reversed(extended)])]
        if uuid:
            given += ["-m", f"uuid={uuid}"] if self.kind == "xfs" else ["-U", uuid]
        return given

    def _check(self, observed: dict[str, object]) -> None:
        if observed["kind"] != self.kind:
            raise TrialError(f"asked for {self.kind}, mounted is {observed['kind']}")
        listed = str(observed["mount_options"]).split(",")
        for option in filter(None, self.options.mount.split(",")):
            key = option.partition("=")[0]
            default = option in UNLISTED and not any(other.startswith(f"{key}=") for other in listed)
            if not default and not any(_same_option(option, other) for other in listed):
                raise TrialError(f"mount option {option!r} did not take; the kernel lists {','.join(listed)}")


def _same_option(asked: str, listed: str) -> bool:
    """Whether the kernel lists what was asked, in its own spelling: ``zstd`` as ``zstd:3``, ``64m`` as ``65536k``."""
    if asked == listed or listed.startswith(f"{asked}:"):
        return True
    key, _, value = asked.partition("=")
    listed_key, _, listed_value = listed.partition("=")
    try:
        return key == listed_key and size_bytes(value) == size_bytes(listed_value)
    except ValueError:
        return False


def observed_mount(directory: Path) -> dict[str, object]:
    """Type, options and barriers of the filesystem mounted at a folder, from /proc/self/mountinfo."""
    lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    for line in reversed(lines):  # of mounts upon each other the last is the one that is seen
        fields, _, rest = line.partition(" - ")
        if unescaped(fields.split()[4]) == str(directory):
            kind, _, super_options = rest.split(" ", 2)
            options = ",".join(dict.fromkeys([*fields.split()[5].split(","), *super_options.split(",")]))
            barriers = not {"nobarrier", "barrier=0"} & set(options.split(","))
            return {"kind": kind, "mount_options": options, "barriers": barriers}
    raise TrialError(f"{directory} is not mounted although mount said nothing")
