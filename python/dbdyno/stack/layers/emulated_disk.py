"""An emulated disk: a process that serves a drive model through FUSE, and the loop device over its file."""

import json
import mmap
import os
import select
import statistics
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from dbdyno._native import device_models
from dbdyno.errors import HostError, TrialError
from dbdyno.stack.disk_client import DiskClient, Fault, Mode
from dbdyno.stack.loop import SECTOR_BYTES, attach_loop
from dbdyno.stack.tools import own_binary
from dbdyno.stack.undo.actions import TOKEN_VARIABLE, DetachLoops, EndProcesses, RemoveTree, Unmount
from dbdyno.stack.undo.kind import Undo
from dbdyno.stack.undo_log import Journal
from dbdyno.system.interrupt import shielded
from dbdyno.system.state import make_private, new_token, scratch_path

# What a request takes to reach an emulated disk's model, and its answer to get back: loop device, FUSE, wake-ups.
#
# The disk answers so much before its model's time, as far as the model knows that time so early. Where the host lets
# the disk read the trace point block_rq_issue, it sees when each request was handed to the loop device, and counts from
# there. Elsewhere all requests count as late as the median read: measured with answers that are due after a
# millisecond, for a processor that has gone to rest takes longer to wake than one that never did. Once for all disks of
# a process: two estimates would make two drives differ by their error.


ASKED_NS = 1_000_000
READS = 200
READ_BYTES = 4096
PATH_NS_MAX = 1_000_000  # of a host that is too busy to say; the disk itself refuses more than twice of it

_measured_ns: list[int] = []


def compensate(device: Path, client: DiskClient) -> None:
    """Have a disk make up for its path; ``device`` is a loop device over it, read alone, and it takes no requests.

    Raises ``TrialError`` if the disk refuses, ``OSError`` if it can't be read.
    """
    if client.follow(device):
        return
    if not _measured_ns:
        _measured_ns.append(path_ns(device, client))
    client.set_path(_measured_ns[0])


def compensate_file(disk: "EmulatedDisk") -> None:
    """Have a disk make up for the path to its file, by which a virtual machine reaches it without a loop device."""
    disk.client.set_path(0)
    disk.client.set_path(path_ns(disk.file, disk.client))


def path_ns(device: Path, client: DiskClient) -> int:
    """Median time that a read of 4 KiB takes beyond what is asked for, ns."""
    mode: Mode = "model" if client.stats()["mode"] == "model" else "instant"
    client.set_path(0)
    client.set_mode("instant")
    client.add_fault(Fault("latency", target="read", extra_ns=ASKED_NS))
    try:
        taken_ns = statistics.median(read_ns(device, READS))
    finally:
        client.clear_faults()
        client.set_mode(mode)
        client.stats(reset=True)  # these reads are none of its users'
    return min(PATH_NS_MAX, max(0, round(taken_ns) - ASKED_NS))


def read_ns(device: Path, reads: int) -> list[int]:
    """Time of each of so many reads, one after the other, past the page cache."""
    handle = os.open(device, os.O_RDONLY | os.O_DIRECT)
    times_ns = []
    try:
        with mmap.mmap(-1, READ_BYTES) as page:  # which is aligned as direct I/O wants it
            blocks = os.lseek(handle, 0, os.SEEK_END) // READ_BYTES
            for number in range(reads):
                offset = number * 7919 % blocks * READ_BYTES
                began_ns = time.perf_counter_ns()
                os.preadv(handle, [page], offset)
                times_ns.append(time.perf_counter_ns() - began_ns)
    finally:
        os.close(handle)
    return times_ns


START_SECONDS = 20.0


def content_room_bytes(sharing: int = 1) -> int:
    """Return how much memory the content of each of so many emulated disks may take: together, half of what is free."""
    available: int = psutil.virtual_memory().available
    return available // (2 * sharing)


@dataclass(frozen=True)
class EmulatedDisk:
    """A running disk process. Its content lives as long as the process does."""

    control: Path
    file: Path
    process: "subprocess.Popen[bytes]"
    observed: dict[str, Any]  # what the process said of itself: locked_memory, io_flusher, notes

    @property
    def pid(self) -> int:
        """The process that serves it."""
        return self.process.pid

    @property
    def client(self) -> DiskClient:
        """What it is asked by."""
        return DiskClient(self.control, f"emulated disk (pid {self.pid})")


@dataclass(frozen=True)
class DiskSpec:
    """What a disk process is started with."""

    model: str
    size: int  # bytes
    seed: int = 0
    mode: str = "instant"
    state: str = "fresh"
    content: Path | None = None  # a sparse file; memory where not given
    limit: int | None = None  # bytes the content may take; by what is free where not given
    sharing: int = 1  # how many disks share what is free

    def arguments(self) -> list[str]:
        """The options of ``dbdyno-disk serve``."""
        argv = ["--model", self.model, "--size", str(self.size), "--seed", str(self.seed), "--mode", self.mode]
        argv += ["--state", self.state, "--content", str(self.content or "memory")]
        return [*argv, "--max-content", str(self.limit or self._limit())]

    def _limit(self) -> int:
        """Its size twice, for the snapshot's sake, but in memory at most its part of the room that there is."""
        return 2 * self.size if self.content else min(2 * self.size, content_room_bytes(self.sharing))


def is_rotational(model: str) -> bool:
    """What the kernel should believe of an emulated drive. Raises ``ValueError`` where there is no such drive."""
    return any(drive["rotational"] for drive in device_models(model))


def disk_undos(token: str, scratch: Path) -> list[Undo]:
    """What undoes a disk, in the order in which to announce it."""
    return [
        RemoveTree(str(scratch)),
        Unmount(str(scratch / "disk")),
        EndProcesses(token, "the emulated disk"),
        DetachLoops(str(scratch / "disk" / "disk.img")),
    ]


def start_disk(token: str, scratch: Path, spec: DiskSpec, *, inherits: tuple[int, ...] = ()) -> EmulatedDisk:
    """Start a disk process, which keeps open what it ``inherits``; its undos must have been announced.

    Raises ``HostError``.
    """
    make_private(scratch)
    mount, control, log = scratch / "disk", scratch / "disk.sock", scratch / "disk.log"
    mount.mkdir()
    argv = [own_binary("dbdyno-disk"), "serve", *spec.arguments(), "--mount", str(mount), "--control", str(control)]
    with log.open("wb") as errors:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
            pass_fds=inherits,
            env={**os.environ, TOKEN_VARIABLE: token},
        )
    assert process.stdout is not None  # noqa: S101  (it is a pipe)
    with process.stdout as out:
        ready, _, _ = select.select([out], [], [], START_SECONDS)
        line = out.readline() if ready else b""
    if not line:
        process.kill()
        process.wait()
        complaint = log.read_text(encoding="utf-8", errors="replace").strip() or "it said nothing"
        raise HostError(f"the emulated disk {spec.model} did not start: {complaint}")
    facts = json.loads(line)
    # Its memory is locked: should the host run short, it is the disk that must go, not a server of others.
    Path(f"/proc/{process.pid}/oom_score_adj").write_text("1000", encoding="ascii")
    return EmulatedDisk(control, Path(facts["file"]), process, facts)


@contextmanager
def running_disk(journal: Journal, *, model: str, size: int, sharing: int = 1) -> Iterator[EmulatedDisk]:
    """An empty disk in instant mode, for as long as the context lasts. ``size`` in bytes; see ``DiskSpec.sharing``."""
    token = new_token()
    scratch = scratch_path(token)
    numbers = [journal.announce(undo) for undo in disk_undos(token, scratch)]
    disk = None
    try:
        disk = start_disk(token, scratch, DiskSpec(model, size, sharing=sharing))
        yield disk
    finally:
        with shielded():
            for number in reversed(numbers):
                journal.settle(number)
            if disk:
                disk.process.wait()


def attached_device(disk: EmulatedDisk, *, rotational: bool, sector: int = SECTOR_BYTES) -> Path:
    """Attach a disk as a fresh loop device, with what the kernel should believe of it; its undo must be announced."""
    path = attach_loop(disk.file, sector)
    queue = Path("/sys/block") / path.name / "queue"
    (queue / "rotational").write_text("1" if rotational else "0", encoding="ascii")
    # To a drive whose cache no power cut takes, the kernel need not send any FLUSH.
    cache = "write back" if disk.client.stats()["write_cache"] == "volatile" else "write through"
    (queue / "write_cache").write_text(cache, encoding="ascii")
    taken = (queue / "write_cache").read_text(encoding="ascii").strip()
    if taken != cache:
        raise TrialError(f"{path}: queue/write_cache is {taken!r} although {cache!r} was set")
    compensate(path, disk.client)
    return path


def wait_idle(disk: EmulatedDisk, seconds: float = 60.0) -> None:
    """Wait until the disk has nothing in flight. Raises ``TrialError`` after ``seconds``."""
    deadline = time.monotonic() + seconds
    while disk.client.stats()["in_flight"]:
        if time.monotonic() > deadline:
            raise TrialError(f"the emulated disk (pid {disk.pid}) still has requests in flight after {seconds:g} s")
        time.sleep(0.01)
