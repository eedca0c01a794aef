"""What uses a disk: mounts, swap, other devices on it, and processes that may write to it."""

import ctypes
import errno
import os
import stat
import struct
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

from dbdyno.errors import HostError
from dbdyno.host.read import text_of
from dbdyno.host.storage import mounts_in, unescaped
from dbdyno.stack.loop import loop_files, loop_status

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
