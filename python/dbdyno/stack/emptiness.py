"""What is known of a disk before it may be erased: blank or marked, in use or not, and which one it is.

Whether that is enough to erase it is judged in ``erase`` (``HeldDisk.prove``).
"""

import ctypes
import errno
import hashlib
import json
import mmap
import os
import re
import stat
import struct
import threading
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import count, pairwise, takewhile
from pathlib import Path
from typing import Any, Self

from dbdyno.errors import HostError
from dbdyno.host.read import text_of
from dbdyno.host.storage import SECTOR_BYTES, mounts_in, unescaped
from dbdyno.stack.loop import loop_files, loop_status
from dbdyno.study.drives import A_VOLUME_THERE_IS
from dbdyno.system.files import is_sealed, sealed

# Where a disk is looked at before it may be erased.


PAGE = 4096  # bytes
MIB = 1024**2
# ceil(ln(1e-4) / ln(0.99)): so many places drawn at random all miss 1 % of a disk with a chance of at most 1 in 10,000.
SAMPLES = 917
WHOLE_BYTES_MAX = 1024 * MIB  # read whole: on a hard disk that takes no longer than the samples
# Of each end: partition tables, RAID and LVM metadata, the headers of LUKS with all their room, pool labels.
END_BYTES = 16 * MIB
_STARTS = (0, MIB)  # where a filesystem begins: with the disk, or in the first partition of a lost table
_EXT_BLOCK_BYTES = (1024, 2048, 4096)
_BTRFS_MIRRORS = (64 * MIB, 256 * 1024 * MIB)  # btrfs_sb_offset: 16 KiB << (12 * n), n = 1, 2
_XFS_GROUPS = 4  # of a disk below 4 TiB; each begins with a copy of the superblock

Stretch = tuple[int, int]  # offset and length, in bytes


def places(size: int, seed: bytes) -> list[Stretch]:
    """``SAMPLES`` stretches between the first and the last page: all of a small disk, else a page of each part.

    The same for the same size and seed, on any machine.
    """
    end = size - PAGE
    edges = [PAGE + (end - PAGE) * number // SAMPLES // PAGE * PAGE for number in range(SAMPLES)] + [end]
    parts = [(start, stop - start) for start, stop in pairwise(edges) if stop > start]
    if size <= WHOLE_BYTES_MAX:
        return parts
    return [(start + _drawn(seed, start, length // PAGE) * PAGE, PAGE) for start, length in parts]


def known_places(size: int) -> list[Stretch]:
    """Where superblocks, tables and their copies lie, between the first and the last page; none twice."""
    if size <= WHOLE_BYTES_MAX:
        return []  # all of it is among ``places``
    inside = {place for place in _copies(size) if END_BYTES <= place < size - END_BYTES - PAGE}
    return [
        (PAGE, END_BYTES - PAGE),
        *((place, PAGE) for place in sorted(inside)),
        (size - END_BYTES, END_BYTES - PAGE),
    ]


def _copies(size: int) -> Iterator[int]:
    """The pages of superblocks' copies."""
    for start in _STARTS:
        for block in _EXT_BLOCK_BYTES:
            group = 8 * block * block  # its block bitmap is one block (fs/ext4: blocks per group)
            yield from (start + number * group for number in _sparse_groups(size // group))
        yield from (start + mirror for mirror in _BTRFS_MIRRORS)
    blocks = size // PAGE
    yield from (number * -(-blocks // _XFS_GROUPS) * PAGE for number in range(1, _XFS_GROUPS))


def _sparse_groups(groups: int) -> Iterator[int]:
    """The groups with a copy of ext's superblock: powers of 3, 5 and 7, and 1 (``sparse_super``)."""
    for base in (3, 5, 7):
        yield from takewhile(lambda number: number <= groups, (base**power for power in count()))


def _drawn(seed: bytes, start: int, choices: int) -> int:
    number = hashlib.blake2b(seed + start.to_bytes(8, "little"), digest_size=8).digest()
    return int.from_bytes(number, "little") % choices


_ZEROS, _ONES = bytes(MIB), b"\xff" * MIB  # what discarded space reads as, by the kind of flash
READS_AT_ONCE = 16  # a disk answers many at once sooner than one after another
SUM_HEX_DIGITS = 4  # of a place, as it is kept; the sum over all of them is long


class Content:
    """The content of an open disk; a context that ends its readers, and leaves the disk open."""

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self.size = os.lseek(handle, 0, os.SEEK_END)
        self._of_thread = threading.local()
        self._readers = ThreadPoolExecutor(READS_AT_ONCE, "disk reader", self._begin)
        self._begin()

    def _begin(self) -> None:
        self._of_thread.buffer = mmap.mmap(-1, MIB)  # direct I/O needs memory that begins with a page

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._readers.shutdown(cancel_futures=True)

    def read(self, offset: int, length: int) -> bytes:
        """At most 1 MiB of it. Raises ``HostError`` where it can't be read."""
        buffer = self._of_thread.buffer
        try:
            with memoryview(buffer)[:length] as target:
                done = os.preadv(self._handle, [target], offset)
        except OSError as error:
            raise HostError(f"it can't be read at offset {offset}: {error.strerror}") from None
        if done != length:
            raise HostError(f"it can't be read at offset {offset}: it ends there")
        content: bytes = buffer[:length]
        return content

    def chunks(self, stretch: Stretch) -> Iterator[tuple[int, bytes]]:
        """A stretch in pieces of at most 1 MiB, each with its offset."""
        offset, length = stretch
        for start in range(offset, offset + length, MIB):
            yield start, self.read(start, min(MIB, offset + length - start))

    def first_data(self, stretches: Iterable[Stretch]) -> int | None:
        """The offset of the first page that is not blank; ``None`` where all are."""
        offsets = self._readers.map(self._first_data_in, stretches)
        return next((offset for offset in offsets if offset is not None), None)

    def _first_data_in(self, stretch: Stretch) -> int | None:
        for start, piece in self.chunks(stretch):
            if not is_blank(piece):
                pages = range(0, len(piece), PAGE)
                return start + next(at for at in pages if not is_blank(piece[at : at + PAGE]))
        return None

    def sums_of(self, stretches: Iterable[Stretch]) -> list[int]:
        """A CRC-32 of each stretch."""
        return list(self._readers.map(self._sum_of, stretches))

    def _sum_of(self, stretch: Stretch) -> int:
        value = 0
        for _, piece in self.chunks(stretch):
            value = zlib.crc32(piece, value)
        return value


def is_blank(piece: bytes) -> bool:
    """Whether each page of a piece is all zeros, or all ones."""
    if piece == _ZEROS[: len(piece)] or piece == _ONES[: len(piece)]:
        return True
    pages = [piece[at : at + PAGE] for at in range(0, len(piece), PAGE)]
    return len(pages) > 1 and all(is_blank(page) for page in pages)


class Sums:
    """The sums of what lies between the first and the last page of a disk, at the places that a seed gives."""

    def __init__(self, content: Content, seed: bytes) -> None:
        self.seed = seed
        self._places = places(content.size, seed)
        sums = content.sums_of(self._places)
        known = content.sums_of(known_places(content.size))
        self.each = "".join(f"{checksum & 0xFFFF:0{SUM_HEX_DIGITS}x}" for checksum in sums)
        packed = b"".join(checksum.to_bytes(4, "little") for checksum in [*known, *sums])
        self.all = hashlib.blake2b(packed, digest_size=16).hexdigest()

    def differing(self, sums: str) -> list[Stretch]:
        """The places whose sum is not the one that was kept."""
        width = SUM_HEX_DIGITS
        return [
            place
            for number, place in enumerate(self._places)
            if sums[number * width : (number + 1) * width] != self.each[number * width : (number + 1) * width]
        ]


# The mark that a trial leaves on a real disk: what lies here was written by dbdyno and may be erased.
#
# It fills the first and the last page, where every filesystem, partition table or raw content begins or ends, and holds
# sums of what lies between; so it counts only on this disk, and only as long as nothing else has been written to it.


Fields = Mapping[str, Any]
_WHAT = "a trial's disk, may be erased"
_SEED_BYTES = 16


def page_of(fields: Fields) -> bytes:
    """A page with these fields and their checksum: lower case and digits, which no signature of a filesystem is of."""
    page = sealed({"dbdyno": _WHAT, **fields})
    assert len(page) <= PAGE  # noqa: S101  (what is in it has a fixed length)
    return page.ljust(PAGE)


def fields_of(page: bytes) -> Fields | None:
    """The fields of a page that is such a one and whole; else ``None``."""
    line, _, rest = page.partition(b"\n")
    if not is_sealed(line) or rest.strip(b" "):
        return None
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):  # any program can make a checksum
        return None
    if not isinstance(fields, dict) or fields.pop("dbdyno", None) != _WHAT:
        return None
    del fields["sum"]
    return fields


def at_the_end(content: Content) -> Fields | None:
    """The fields of the last page, if it is one of these."""
    return fields_of(content.read(content.size - PAGE, PAGE))


def mark_of(content: Content, serial: str) -> Fields | None:
    """The fields of the mark on a disk, if it bears one that was left on this very disk; else ``None``."""
    fields = fields_of(content.read(0, PAGE))
    bound = _bound(content, serial)
    if fields is None or "all" not in fields or fields != at_the_end(content) or fields["disk"] != bound:
        return None
    return fields


def sums_of(content: Content, mark: Fields) -> Sums:
    """The sums at the places of a mark, as they are now."""
    return Sums(content, bytes.fromhex(mark["seed"]))


def begin_mark(handle: int, content: Content, ours: str) -> None:
    """Say on the last page that what the filesystem with this UUID held is being given up."""
    _write(handle, content.size - PAGE, page_of({"uuid": ours}))


def leave_mark(handle: int, content: Content, serial: str, ours: str) -> None:
    """Mark a disk for what it holds now; ``handle`` may be written to, ``content`` is read around the page cache.

    The last page first, so that a mark that is whole at both ends is finished.
    """
    os.fsync(handle)
    sums = Sums(content, os.urandom(_SEED_BYTES))
    fields = {
        "disk": _bound(content, serial),
        "uuid": ours,
        "seed": sums.seed.hex(),
        "all": sums.all,
        "each": sums.each,
    }
    _write(handle, content.size - PAGE, page_of(fields))
    _write(handle, 0, page_of(fields))


def _bound(content: Content, serial: str) -> str:
    return hashlib.blake2b(f"{content.size} {serial}".encode(), digest_size=16).hexdigest()


def _write(handle: int, offset: int, page: bytes) -> None:
    os.pwrite(handle, page, offset)
    os.fsync(handle)


# What uses a disk: mounts, swap, other devices on it, and processes that may write to it.


# Which block devices there are, by number rather than by name, and which of them share their storage.


CLASS = Path("/sys/class/block")
_LOOP_INFO64 = struct.Struct("=QQQ")  # lo_device, lo_inode, lo_rdevice: the first three of struct loop_info64


def kernel_path(device: Path) -> Path:
    """The kernel's own path of a block device, whatever leads to it. Raises ``HostError`` where it is none.

    Goes by its number: a node may carry any name, also that of another disk.
    """
    try:
        status = device.stat()
    except OSError as error:
        raise HostError(f"{device}: {error.strerror}") from None
    if not stat.S_ISBLK(status.st_mode):
        raise HostError(f"{device} is not a block device")
    path = Path("/dev") / _name(status.st_rdev).replace("!", "/")
    try:
        same = path.stat().st_rdev == status.st_rdev and stat.S_ISBLK(path.stat().st_mode)
    except OSError:
        same = False
    if not same:
        raise HostError(f"{device}: the kernel calls it {path}, but that device is missing, or another one")
    return path


def _name(number: int) -> str:
    """The kernel's name of the device with a number. Raises ``HostError`` where there is none."""
    place = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    try:
        return place.resolve(strict=True).name
    except OSError:
        raise HostError(f"there is no block device {os.major(number)}:{os.minor(number)}") from None


def sysfs_name(path: Path) -> str:
    """The name in /sys of a device by the kernel's own path."""
    return str(path.relative_to("/dev")).replace("/", "!")


def number_of(name: str) -> tuple[int, int]:
    """Major and minor of a device by its name in /sys."""
    major, _, minor = (CLASS / name / "dev").read_text(encoding="ascii").strip().partition(":")
    return int(major), int(minor)


def sharing(name: str) -> list[str]:
    """Every device whose content is some of this one's, by name in /sys; itself first. Raises ``HostError``.

    Its partitions; the device below a loop device; loop devices over it, over a partition, or over the same file.
    """
    loops = dict(_loops())
    names: list[str] = []
    waiting = [name]
    while waiting:
        device = waiting.pop(0)
        if device in names:
            continue
        names.append(device)
        waiting += partitions(device)
        number = os.makedev(*number_of(device))
        waiting += [loop for loop, backing in loops.items() if backing == number]
        if device in loops:
            waiting += [loop for loop, backing in loops.items() if backing == loops[device]]
            if isinstance(below := loops[device], int):
                waiting.append(_name(below))
    return names


def partitions(name: str) -> list[str]:
    """The partitions that the kernel has of a disk."""
    return sorted(entry.parent.name for entry in (CLASS / name).glob("*/partition"))


def _loops() -> Iterator[tuple[str, int | tuple[int, int]]]:
    """Each attached loop device, and what it lies over: the number of a device, or file system and inode of a file."""
    for name, _ in loop_files():
        if status := loop_status(name):
            place, inode, below = _LOOP_INFO64.unpack(status[: _LOOP_INFO64.size])
            yield name, below or (place, inode)


CLAIM_SECONDS = 2.0  # as long as udev may take
PROC = Path("/proc")
FIRST_PID_NAMESPACE = 0xEFFFFFFC  # PROC_PID_INIT_INO: of the one that all others are below
_OWNER_WRITES = 0o200  # of a link in /proc/PID/fd or map_files: the file was opened for writing
_AT_FDCWD, _AT_STATX_DONT_SYNC, _STATX_BASIC_STATS = -100, 0x4000, 0x7FF  # linux/fcntl.h, linux/stat.h
_STATX_BYTES = 256
_MODE, _INODE = struct.Struct("=H"), struct.Struct("=Q")  # at 28 and 32 of struct statx
_NUMBERS = struct.Struct("=IIII")  # at 128: the device's own number, and that of the filesystem it is on

File = tuple[int, int]  # the number of its filesystem, and its inode


def uses(path: Path) -> Iterator[str]:
    """What uses a disk, a partition of it, or another device that shares its storage."""
    names = sharing(sysfs_name(path))
    mounts = dict(_mount_tables())
    for name in names:
        yield from (f"/dev/{name} is mounted at {place}" for place in _mounted_at(name, mounts))
        yield from (f"/dev/{name} is held by {holder.name}" for holder in sorted((CLASS / name / "holders").glob("*")))
        if name != sysfs_name(path) and (CLASS / name / "loop").is_dir():
            yield f"the loop device /dev/{name} has the same storage"
    yield from _swaps(names)
    yield from _writers(names)
    try:
        _claim(path)
    except PermissionError:
        yield "only root can see whether it is in use"
    except OSError as error:
        yield f"opening it exclusively: {error.strerror}"


def _claim(path: Path) -> None:
    """Claim a whole device for a moment: one in exclusive use refuses that.

    Again for a while: the kernel claims a disk itself when udev has it read the partitions, after each writer.
    """
    deadline = time.monotonic() + CLAIM_SECONDS
    while True:
        try:
            os.close(os.open(path, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC))
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return


def sees_all_processes() -> bool:
    """Whether the processes outside this container, if it is one, can be seen."""
    return (PROC / "self/ns/pid").stat().st_ino == FIRST_PID_NAMESPACE


def _mount_tables() -> Iterator[tuple[int, tuple[str, str]]]:
    """Of each mount namespace, by its inode: whose it is, in words, and its mountinfo."""
    seen: set[int] = set()
    for process in ("self", *_processes()):
        with suppress(OSError):  # it has ended, or is another user's
            namespace = (PROC / process / "ns/mnt").stat().st_ino
            if namespace not in seen:
                text = (PROC / process / "mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
                seen.add(namespace)
                yield namespace, ("" if process == "self" else f" in the mount namespace of process {process}", text)


def _mounted_at(name: str, mounts: dict[int, tuple[str, str]]) -> Iterator[str]:
    """Where a device is mounted: by its number, and by its path, as a filesystem of several devices shows one."""
    major, minor = number_of(name)
    for namespace_text, text in mounts.values():
        for mount in mounts_in(text):
            by_path = mount.source.startswith("/dev/") and _touches(mount.source, {os.makedev(major, minor)}, set())
            if mount.device == f"{major}:{minor}" or by_path:
                yield mount.place + namespace_text


def _swaps(names: list[str]) -> Iterator[str]:
    """Swap on a device that shares the disk's storage, or in the file below it."""
    numbers, files = _numbers(names), _files(names)
    for line in (PROC / "swaps").read_text(encoding="utf-8").splitlines()[1:]:
        swap = unescaped(line.split()[0])
        if _touches(swap, numbers, files):
            yield f"{swap} is swap"


def _writers(names: list[str]) -> Iterator[str]:
    """Processes that have a device, or the file below it, open or mapped to write: a server, a virtual machine.

    Not seen are a file on its way between two processes, one that is registered with an io_uring and closed, one of a
    thread with descriptors of its own, and what the kernel itself opened without claiming it, as an NVMe target does.
    """
    numbers, files = _numbers(names), _files(names)
    for process in _processes():
        access = _writer_text(process, numbers, files)
        if access:
            with suppress(OSError):
                name = (PROC / process / "comm").read_text(encoding="utf-8", errors="replace").strip()
                yield f"process {process} ({name}) has {access} open for writing"


def _writer_text(process: str, numbers: set[int], files: set[File]) -> str:
    """The device or file that a process may write to, by the path it has it by; empty where there is none."""
    for place in (*_descriptors(process), *_shared_mappings(process)):
        with suppress(OSError):
            if os.lstat(place).st_mode & _OWNER_WRITES and _touches(place, numbers, files):
                return str(Path(place).readlink())
    return ""


def _descriptors(process: str) -> Iterator[str]:
    with suppress(OSError):
        yield from map(str, (PROC / process / "fd").iterdir())


def _shared_mappings(process: str) -> Iterator[str]:
    """Links to the files that are mapped so that writing to memory writes to them."""
    with suppress(OSError), (PROC / process / "maps").open(encoding="utf-8", errors="surrogateescape") as lines:
        for line in lines:
            range_, permissions, _, _, inode, *_ = line.split()
            if permissions.endswith("s") and inode != "0":
                yield f"{PROC}/{process}/map_files/{'-'.join(word.lstrip('0') or '0' for word in range_.split('-'))}"


def _processes() -> list[str]:
    """All but this one, by number."""
    return [place.name for place in PROC.glob("[0-9]*") if place.name != str(os.getpid())]


def _numbers(names: list[str]) -> set[int]:
    return {os.makedev(*number_of(name)) for name in names}


def _files(names: list[str]) -> set[File]:
    """The files below loop devices."""
    files = set()
    for name in names:
        place = CLASS / name / "loop/backing_file"
        if place.exists():
            with suppress(OSError):
                _, _, file = _local_stat(text_of(place, ""))
                files.add(file)
    return files


def _touches(path: str, numbers: set[int], files: set[File]) -> bool:
    try:
        mode, number, file = _local_stat(path)
    except OSError:
        return False
    return number in numbers if stat.S_ISBLK(mode) else stat.S_ISREG(mode) and file in files


def _local_stat(path: str) -> tuple[int, int, File]:
    """Mode, device number and file that a path leads to, by what is known of it here.

    ``stat`` would ask the server of a network filesystem, which need not answer.
    """
    buffer = ctypes.create_string_buffer(_STATX_BYTES)
    if _c_library().statx(_AT_FDCWD, os.fsencode(path), _AT_STATX_DONT_SYNC, _STATX_BASIC_STATS, buffer):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), path)
    (mode,), (inode,) = _MODE.unpack_from(buffer, 28), _INODE.unpack_from(buffer, 32)
    major, minor, *on = _NUMBERS.unpack_from(buffer, 128)
    return mode, os.makedev(major, minor), (os.makedev(*on), inode)


@cache
def _c_library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


# Which disk a path leads to: model, serial, size, and which attachment of it.


SERIAL_CHARS_MIN = 4  # a shorter one could be part of any name
_VOLUME_UUID = re.compile(r"LVM-[0-9A-Za-z]{64}")  # of a volume to be used; parts of volumes have a suffix


@dataclass(frozen=True)
class Identity:
    """Which device this is."""

    path: Path  # resolved: /dev/sdb
    model: str
    serial: str
    wwn: str = ""  # its world wide name, as ``wwn-`` and ``scsi-`` links hold it
    size_bytes: int = 0
    attachment: str = ""  # the kernel's number of it, new whenever any disk is attached; empty before Linux 5.15

    def is_named_by(self, link: Path) -> bool:
        """Whether a /dev/disk/by-id link holds the serial or the WWN; udev writes blanks as underscores."""
        names = (self.serial.replace(" ", "_"), self.wwn)
        return "/disk/by-id/" in str(link) and any(
            len(name) >= SERIAL_CHARS_MIN and name in link.name for name in names
        )


def identify(device: Path) -> Identity:
    """Model, serial and size of a block device. Raises ``HostError`` where it is none, or has no serial."""
    path = kernel_path(device)
    sysfs = CLASS / sysfs_name(path)
    if (sysfs / "partition").exists():
        raise HostError(f"{device} is a partition; name a whole disk, or its queue could not be set")
    volume = _volume_uuid(device, sysfs)
    serial = volume or next((text for place in _serials(sysfs, path) if (text := text_of(place, ""))), "")
    wwn = text_of(sysfs / "device/wwid", "").removeprefix("naa.").removeprefix("eui.")
    if not serial:
        raise HostError(no_serial_text(device, sysfs))
    size_bytes = int(text_of(sysfs / "size", "") or 0) * SECTOR_BYTES
    model = f"LVM {text_of(sysfs / 'dm/name', '')}" if volume else text_of(sysfs / "device/model", "")
    return Identity(path, model, serial, wwn, size_bytes, text_of(sysfs / "diskseq", ""))


def _volume_uuid(device: Path, sysfs: Path) -> str:
    """What identifies a logical volume: the UUID of its group, and its own; empty of anything else.

    Raises ``HostError`` of a volume on other volumes: a pool that it shares may run full, and a snapshot of it copies
    what is overwritten. What is read of one that is suspended doesn't come.
    """
    uuid = text_of(sysfs / "dm/uuid", "")
    if not _VOLUME_UUID.fullmatch(uuid):
        return ""
    if any(text_of(below / "dm/uuid", "").startswith("LVM-") for below in (sysfs / "slaves").glob("*")):
        raise HostError(
            f"{device} is a logical volume that stands on others, as a thin one or one with a snapshot does; only a "
            "linear or striped one, whose storage is its own, may be erased; it is not touched"
        )
    if text_of(sysfs / "dm/suspended", "") == "1":
        raise HostError(f"{device} is suspended; resume it: dmsetup resume {text_of(sysfs / 'dm/name')}")
    return uuid


def no_serial_text(device: Path, sysfs: Path) -> str:
    """What is said of a device that shows no serial; what can be done with a volume instead."""
    text = f"{device} shows no serial, so it can't be distinguished from another disk; it is not touched"
    return f"{text}. {A_VOLUME_THERE_IS}" if (sysfs / "dm").is_dir() else text


def identified(device: Path, serial: str | None) -> Identity:
    """The identity of a device. Raises ``HostError`` unless it is the very one that a study names."""
    identity = identify(device)
    if serial is None and not identity.is_named_by(device):
        raise HostError(f"{device} now leads to the disk with serial {identity.serial!r}, which its name does not hold")
    if serial is not None and serial != identity.serial:
        raise HostError(
            f"{device} has the serial {identity.serial!r}, not {serial!r} as the study says; it is not touched"
        )
    return identity


def opened(identity: Identity) -> int:
    """The disk, open to be read around the page cache, which need not hold what others have written to a partition.

    While it is open its number can't pass to another device. Raises ``HostError`` where it can't be opened, or its path
    has come to lead elsewhere.
    """
    try:
        number = identity.path.stat().st_rdev
        handle = os.open(identity.path, os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC)
    except OSError as error:
        raise HostError(f"{identity.path}: {error.strerror}; it is not touched") from None
    if os.fstat(handle).st_rdev == number and identify(identity.path) == identity:
        return handle
    os.close(handle)
    raise HostError(f"{identity.path} became another disk just now; it is not touched")


def _serials(sysfs: Path, path: Path) -> Iterator[Path]:
    yield sysfs / "device/serial"  # NVMe
    yield sysfs / "serial"  # virtio
    yield sysfs / "device/vpd_pg80"  # SCSI, SAS, SATA: the unit serial number page
    yield sysfs / "device/wwid"
    if path.name.startswith("loop"):
        yield sysfs / "loop/backing_file"
