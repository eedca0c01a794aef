"""A scripted burst: in which order a real kernel gives it to the drive, and in which order a simulated one does."""

import ctypes
import mmap
import os
import random
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benches.simulate.host import attached, set_queue
from dbdyno.stack.attached import find_disk

BURST = Path("target/release/examples/burst")
TAGS, NR_REQUESTS = 4, 256
LATENCY_MS = 40  # the drive's, the same for all, so that answers keep the distance of the first commands
APART_MS = LATENCY_MS // TAGS
PAGE = 4096
TRIES = 10
LENGTH = 70  # reads and writes of a script, at least
IO_SUBMIT, IO_SETUP, IO_GETEVENTS = 209, 206, 208  # system calls of x86-64
CODES = {"read": 0, "write": 1}

Command = tuple[str, int, int]  # read or write, first sector, sectors


@dataclass(frozen=True)
class Bio:
    """One read or write of a script."""

    at_ms: float
    call: int
    kind: str
    page: int
    pages: int


def script(seed: int) -> list[Bio]:
    """Return a burst behind as many commands as there are tags, and one more that is committed already."""
    chances = random.Random(seed)
    found = [Bio(at * APART_MS, at, "read", 500_000 - at * 1000, 1) for at in range(TAGS)]
    at_ms = (TAGS - 1) * APART_MS + 1.0
    found.append(Bio(at_ms, TAGS, "read", 400_000, 1))
    taken: set[int] = set()
    call = TAGS
    while len(found) < LENGTH:
        call += 1
        kind = chances.choice(("read", "read", "write"))
        page = chances.randrange(2000) * 10
        # libaio plugs calls of three and more.
        for _ in range(chances.choice((1, 1, 1, 3, 5))):
            pages = chances.choice((1, 1, 2))
            while not taken.isdisjoint(range(page, page + pages)):
                page = chances.randrange(2000) * 10
            taken.update(range(page, page + pages))
            found.append(Bio(at_ms + 2, call, kind, page, pages))
            # What follows lies behind it, before it, or elsewhere.
            page = chances.choice((page + pages, max(0, page - 1), chances.randrange(2000) * 10))
    return found


class _Iocb(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_uint64), ("key", ctypes.c_uint32), ("flags", ctypes.c_uint32),
        ("opcode", ctypes.c_uint16), ("priority", ctypes.c_int16), ("file", ctypes.c_uint32),
        ("buffer", ctypes.c_uint64), ("bytes", ctypes.c_uint64), ("offset", ctypes.c_int64),
        ("reserved", ctypes.c_uint64), ("more_flags", ctypes.c_uint32), ("event", ctypes.c_uint32),
    )  # fmt: skip


def _syscall(number: int, *arguments: object) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    returned = int(libc.syscall(number, *arguments))
    if returned < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return returned


def submit(device: Path, bios: list[Bio]) -> float:
    """Submit a script with libaio's system calls and wait for the end; return the milliseconds to the last call."""
    context = ctypes.c_uint64(0)
    _syscall(IO_SETUP, 256, ctypes.byref(context))
    memory = mmap.mmap(-1, 2 * PAGE)
    place = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    handle = os.open(device, os.O_RDWR | os.O_DIRECT)
    blocks = [
        _Iocb(opcode=CODES[bio.kind], file=handle, buffer=place, bytes=bio.pages * PAGE, offset=bio.page * PAGE)
        for bio in bios
    ]
    calls: dict[int, list[int]] = {}
    for at, bio in enumerate(bios):
        calls.setdefault(bio.call, []).append(at)
    everywhere = os.sched_getaffinity(0)
    os.sched_setaffinity(
        0, {min(everywhere)}
    )  # each processor has queues of its own, a simulated kernel has one processor
    began = time.monotonic()
    for places in calls.values():
        time.sleep(max(0.0, bios[places[0]].at_ms / 1e3 - (time.monotonic() - began)))
        pointers = (ctypes.POINTER(_Iocb) * len(places))(*(ctypes.pointer(blocks[at]) for at in places))
        _syscall(IO_SUBMIT, context, len(places), pointers)
    took_ms = (time.monotonic() - began) * 1e3
    events = ctypes.create_string_buffer(32 * len(bios))
    _syscall(IO_GETEVENTS, context, len(bios), len(bios), events, None)
    os.sched_setaffinity(0, everywhere)
    os.close(handle)
    return took_ms


def real(scheduler: str, bios: list[Bio]) -> tuple[list[Command], dict[str, int]]:
    """Return what the drive got, in order, from its own trace; and how far requests may grow.

    Under a scheduler the burst must be queued before the first answer: on a busy host it is tried again.
    """
    nr_requests = TAGS if scheduler == "none" else NR_REQUESTS
    for _ in range(TRIES):
        found, took_ms, limits = _once(scheduler, bios, nr_requests)
        if scheduler == "none" or took_ms < LATENCY_MS:
            break
    return found, limits


def _once(scheduler: str, bios: list[Bio], nr_requests: int) -> tuple[list[Command], float, dict[str, int]]:
    with attached(f"ideal(latency_us={LATENCY_MS * 1000})", "burst") as disk, tempfile.TemporaryDirectory() as folder:
        set_queue(disk, scheduler, TAGS, nr_requests)
        trace, client = Path(folder) / "trace", find_disk(disk.name).client()
        client.start_trace(trace, "csv")
        took_ms = submit(disk.device, bios)
        client.stop_trace()
        rows = [line.split(",") for line in trace.read_text(encoding="ascii").splitlines()[1:]]
        rows.sort(key=lambda row: int(row[0]))
        return [(row[7], int(row[4]), int(row[5]) // 512) for row in rows], took_ms, disk.limits()


def simulated(scheduler: str, bios: list[Bio], limits: dict[str, int]) -> list[Command]:
    """Return what a simulated drive gets of the same script."""
    nr_requests = TAGS if scheduler == "none" else NR_REQUESTS
    words = [scheduler, TAGS, nr_requests, LATENCY_MS * 1000, limits["max_sectors"], limits["max_segments"]]
    lines = [f"{int(bio.at_ms * 1e6)} {bio.call} {bio.kind} {bio.page * 8} {bio.pages * 8}" for bio in bios]
    done = subprocess.run([BURST, *map(str, words)], input="\n".join(lines), check=True, capture_output=True, text=True)
    rows = [line.split(" ") for line in done.stdout.splitlines()]
    return [(row[0], int(row[1]), int(row[2])) for row in rows]
