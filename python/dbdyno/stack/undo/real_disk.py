"""What leaves a real disk as it may be used again: wiped of what a trial made, and marked as dbdyno's own.

A disk is left as it is where anything says that others have used it since.
"""

import json
import os
import subprocess
import time
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from dbdyno.errors import HostError
from dbdyno.stack.emptiness import SAMPLES, Content, Sums, at_the_end, begin_mark, identify, leave_mark, mark_of, opened
from dbdyno.stack.undo.kind import Undo, boot_id

# What a killed mkfs may have written, of all places: some blocks of each group.
_MADE_SHARE_MAX = 0.05


@dataclass(frozen=True)
class _OfDisk(Undo):
    """What is done to a disk that still is as a trial left it, once nothing else uses it."""

    device: str
    uuid: str  # chosen for the trial's filesystem beforehand
    patience_seconds: float = field(default=10.0, kw_only=True)

    def apply(self) -> bool:
        """Look first, and again when the disk is held alone."""
        with _looking_at(self.device) as disk:
            if disk is None or not self._is_only_ours(disk):
                return False
        with _alone_with(self.device, self.patience_seconds) as disk:
            if not self._is_only_ours(disk):
                return False
            self._wipe(disk)
            leave_mark(disk.handle, disk.content, disk.serial, self.uuid)
        return True

    @abstractmethod
    def _is_only_ours(self, disk: "_Disk") -> bool:
        """Whether all that lies there is what a trial left."""

    def _wipe(self, disk: "_Disk") -> None:
        """What is to be done before the disk is marked as dbdyno's."""


@dataclass(frozen=True)
class WipeOurs(_OfDisk):
    """Leave a real device marked as dbdyno's: wipe the filesystem that a trial made, and no other."""

    WHAT = "wipe the filesystem that a trial made on {self.device}"

    def _is_only_ours(self, disk: "_Disk") -> bool:
        """Whether the trial's filesystem is still there, or what is left of it where wiping it was cut short."""
        if _uuid_on(disk.handle) == self.uuid:
            return True
        end = at_the_end(disk.content)
        begun = end is not None and end["uuid"] == self.uuid and not mark_of(disk.content, disk.serial)
        return begun and not signatures_on(disk.handle)

    def _wipe(self, disk: "_Disk") -> None:
        begin_mark(disk.handle, disk.content, self.uuid)
        _wipefs(disk.handle, self.device)


@dataclass(frozen=True)
class MarkHalfMade(_OfDisk):
    """Mark a real device as dbdyno's where mkfs failed or was killed before its filesystem could be known by a UUID.

    Open only while mkfs runs. Nothing on the disk proves then who wrote what lies there, so it counts as ours only in
    the same boot and attachment, if nothing holds it, it has no signature, and all but a few of the places that were
    looked at before hold what they held, or nothing.
    """

    WHAT = "mark {self.device} as holding nothing but what an unfinished mkfs wrote"

    attachment: str  # the kernel's number of it
    seed: str  # of the places that were looked at before
    each: str  # their sums
    boot: str = field(default_factory=boot_id)

    def _is_only_ours(self, disk: "_Disk") -> bool:
        """Whether there is no filesystem, not the earlier mark, nor anything else than mkfs can have left."""
        if self.boot != boot_id() or disk.attachment != self.attachment:
            return False
        if mark_of(disk.content, disk.serial) or signatures_on(disk.handle):
            return False
        sums = Sums(disk.content, bytes.fromhex(self.seed))
        written = [place for place in sums.differing(self.each) if disk.content.first_data([place]) is not None]
        return len(written) <= _MADE_SHARE_MAX * SAMPLES


def signatures_on(handle: int) -> list[str]:
    """Each signature that wipefs finds on an open device, in words. Raises ``HostError`` where it can't look."""
    done = _run(["wipefs", "--json", "--no-act"], handle)
    if done.returncode:
        raise HostError(f"it can't be examined (wipefs: {done.stderr.strip()})")
    texts = []
    for signature in json.loads(done.stdout or "{}").get("signatures", []):
        label = f" labelled {signature['label']!r}" if signature.get("label") else ""
        texts.append(f"a {signature['type']} signature{label} at offset {signature['offset']}")
    return texts


def _uuid_on(handle: int) -> str:
    return _run(["blkid", "--probe", "--match-tag", "UUID", "--output", "value"], handle).stdout.strip()


def _wipefs(handle: int, device: str) -> None:
    done = _run(["wipefs", "--all", "--force"], handle)  # --force: the claim that it would run into is ours
    if done.returncode:
        raise HostError(f"wipefs --all {device}: {done.stderr.strip()}")


def _run(argv: list[str], handle: int) -> "subprocess.CompletedProcess[str]":
    command, environment = [*argv, f"/dev/fd/{handle}"], {**os.environ, "LC_ALL": "C"}
    try:
        return subprocess.run(
            command, capture_output=True, encoding="utf-8", errors="replace", check=False, pass_fds=[handle],
            env=environment,
        )  # fmt: skip
    except FileNotFoundError:
        raise HostError(f"{argv[0]} is not installed; install it: apt-get install util-linux") from None


@dataclass(frozen=True)
class _Disk:
    """A disk that is looked at, or written to."""

    handle: int
    content: Content
    serial: str
    attachment: str


@contextmanager
def _looking_at(device: str) -> Iterator[_Disk | None]:
    """A device as it is; ``None`` where there is no disk of that path any more."""
    try:
        identity = identify(Path(device))
        handle = opened(identity)
    except HostError:
        yield None
        return
    try:
        with Content(handle) as content:
            yield _Disk(handle, content, identity.serial, identity.attachment)
    finally:
        os.close(handle)


@contextmanager
def _alone_with(device: str, patience_seconds: float) -> Iterator[_Disk]:
    """A device that nobody else uses, to be written to. Raises ``HostError``."""
    claimed = _claim(device, patience_seconds)
    try:
        os.fsync(claimed)
        with _looking_at(device) as disk:
            if disk is None or os.fstat(disk.handle).st_rdev != os.fstat(claimed).st_rdev:
                raise HostError(f"{device} became another disk just now; it is left alone")
            yield replace(disk, handle=claimed)
    finally:
        os.close(claimed)


def _claim(device: str, patience_seconds: float) -> int:
    """A filesystem that is out of the tree is held until the last process that used it is wholly gone."""
    deadline = time.monotonic() + patience_seconds
    while True:
        try:
            return os.open(device, os.O_RDWR | os.O_EXCL | os.O_CLOEXEC)
        except OSError as error:
            if time.monotonic() > deadline:
                raise HostError(f"{device}: {error.strerror}; end what uses it, then: dbdyno restore") from None
        time.sleep(0.05)
