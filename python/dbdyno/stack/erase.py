"""What stands between a study and the data of others on a real block device."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from dbdyno.errors import HostError
from dbdyno.host.read import text_of
from dbdyno.stack.emptiness import (
    CLASS,
    PAGE,
    SAMPLES,
    WHOLE_BYTES_MAX,
    Content,
    Identity,
    Stretch,
    Sums,
    identified,
    known_places,
    mark_of,
    opened,
    places,
    sharing,
    sums_of,
    sysfs_name,
    uses,
)
from dbdyno.stack.undo.real_disk import signatures_on

_SEED_BYTES = 16


@dataclass(frozen=True)
class Proof:
    """Why a disk may be erased, and what it held at the places that were looked at."""

    why: str
    seed: str  # of the places, as hexadecimal digits
    each: str  # their sums; empty where all of them are blank


@dataclass(frozen=True)
class Erasing:
    """Which disks a run may erase although they hold something, and which it has begun to use."""

    allowed: frozenset[str] = frozenset()  # serials, as the command line gives them
    begun: dict[str, Identity] = field(default_factory=dict)  # by serial
    command: str = "dbdyno run"  # that takes --erase

    @contextmanager
    def holding(self, device: Path, serial: str | None) -> Iterator["HeldDisk"]:
        """The disk that a study names, held open: meanwhile its number can't pass to another.

        Raises ``HostError`` where it is another disk, or in use.
        """
        identity = identified(device, serial)
        handle = opened(identity)
        try:
            disk = HeldDisk(device, serial, identity, handle, self)
            disk.check_identity_and_use()
            yield disk
        finally:
            os.close(handle)

    def allows(self, serial: str) -> bool:
        """Whether a disk may hold anything; once the run has erased it, that was all it was allowed to."""
        return serial in self.allowed and serial not in self.begun


@dataclass(frozen=True)
class HeldDisk:
    """A real disk, open from the first look at it until the trial has ended."""

    device: Path  # as the study names it
    serial: str | None  # as the study names it
    identity: Identity
    handle: int
    erasing: Erasing

    @property
    def path(self) -> str:
        """The open disk, for a program that inherits ``handle``."""
        return f"/dev/fd/{self.handle}"

    def prove(self) -> Proof:
        """Why it may be erased this moment. Raises ``HostError`` where it may not.

        To be asked right before a filesystem is made on it.
        """
        self.check_identity_and_use()
        serial, seed = self.identity.serial, os.urandom(_SEED_BYTES)
        try:
            signatures = list(_signatures(self.identity.path))
            with Content(self.handle) as content:
                proof, signatures = _judge(content, serial, seed, signatures)
                if proof:
                    return proof
                if self.erasing.allows(serial):
                    why = f"it holds data, which --erase allows dbdyno to erase: {'; '.join(signatures)}"
                    return Proof(why, seed.hex(), Sums(content, seed).each)
        except HostError as error:
            raise HostError(f"{self.device}: {error}. It is not touched") from None
        raise HostError(
            f"{self.device} holds data: {'; '.join(signatures)}. It is not touched; "
            f"to erase all of it: {self.erasing.command} ... --erase {serial!r}"
        )

    def begin(self) -> None:
        """The run starts to erase it; from here on it must stay this very disk."""
        self.erasing.begun[self.identity.serial] = self.identity

    def check_identity_and_use(self) -> None:
        """Raises ``HostError`` unless its name still leads to it, and nothing uses it."""
        identity = identified(self.device, self.serial)
        first = self.erasing.begun.get(identity.serial, self.identity)
        if not identity == self.identity == first:
            raise HostError(
                f"{self.device} was detached or exchanged since this run first looked at it (attachment "
                f"{first.attachment or 'unknown'} then, {identity.attachment or 'unknown'} now); it is not touched"
            )
        if text_of(CLASS / sysfs_name(identity.path) / "ro", "0").strip() == "1":
            raise HostError(
                f"{self.device} is write-protected: the kernel allows no writes to it. Remove the protection "
                f"(its switch, or blockdev --setrw {identity.path})"
            )
        in_use = list(uses(identity.path))
        if in_use:
            raise HostError(f"{self.device} is in use: {'; '.join(in_use)}. It is not touched")


def _judge(content: Content, serial: str, seed: bytes, signatures: list[str]) -> tuple[Proof | None, list[str]]:
    """The proof that a disk holds nothing but dbdyno's own, or else what it holds: its ``signatures``, if any."""
    mark = mark_of(content, serial)
    if mark:
        sums = sums_of(content, mark)
        if sums.all == mark["all"]:
            proof = Proof(f"it holds what a trial left, unchanged{_sure(content.size)}", mark["seed"], mark["each"])
            return (None if signatures else proof), signatures
        changed = sums.differing(mark["each"])
        place = f" at offset {changed[0][0]}" if changed else ""
        return None, signatures or [f"it has been written to{place} since a trial of dbdyno's left it"]
    start = content.first_data(_all_places(content.size, seed))
    if start is None:
        return (None if signatures else Proof(f"it is empty{_sure(content.size)}", seed.hex(), "")), signatures
    return None, signatures or [f"content without a known signature at offset {start}"]


def _all_places(size: int, seed: bytes) -> list[Stretch]:
    return [(0, PAGE), (size - PAGE, PAGE), *known_places(size), *places(size, seed)]


def _sure(size: int) -> str:
    """How sure that is."""
    if size <= WHOLE_BYTES_MAX:
        return " (all of it was read)"
    return (
        f" (its ends, the places of superblocks and {SAMPLES} other places were read: if 1 % of it held anything, "
        "that would be found with a probability of 99.99 %)"
    )


def _signatures(path: Path) -> Iterator[str]:
    """Signatures and partitions, as they are seen through every device that shares a disk's storage."""
    for name in sharing(sysfs_name(path)):
        if (CLASS / name / "partition").exists():
            yield f"the partition {name}"
        place = Path("/dev") / name.replace("!", "/")
        try:
            handle = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise HostError(f"{place} can't be opened: {error.strerror}") from None
        try:
            os.fsync(handle)  # what was written through it, and is on its way yet
            yield from (
                signature if place == path else f"{signature} of {place}" for signature in signatures_on(handle)
            )
        finally:
            os.close(handle)


def check_erasable(device: Path, serial: str | None, erasing: Erasing) -> tuple[Identity, Proof]:
    """Which disk it is and why it may be erased. Raises ``HostError`` where it may not. Changes nothing."""
    with erasing.holding(device, serial) as disk:
        return disk.identity, disk.prove()
