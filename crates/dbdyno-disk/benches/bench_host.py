"""Disks, fio and clocks for the benchmark of the emulated disk."""

from __future__ import annotations

import contextlib
import itertools
import json
import mmap
import os
import pathlib
import subprocess
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbdyno.stack.attached import attach_disk, detach_disk, find_disk
from dbdyno.stack.layers.emulated_disk import DiskSpec

if TYPE_CHECKING:
    from collections.abc import Iterator

GIB = 1 << 30


@dataclass(frozen=True)
class Result:
    """What fio and the disk say of one run; latencies in us, rates in MB/s and requests a second."""

    iops: float
    mb_s: float
    mean_us: float
    p50_us: float
    p99_us: float
    lateness_us: dict[str, float | None]
    block_us: float  # mean by the kernel's own sums, which leave out how long fio takes to notice
    left_us: float | None  # how much longer than the model's time requests took for the block layer, mean
    idle: float  # processors that did nothing meanwhile


@dataclass(frozen=True)
class Disk:
    """An attached disk."""

    name: str
    device: pathlib.Path
    size: int

    def stats(self, *, reset: bool = False):
        """What it has counted."""
        return find_disk(self.name).client().stats(reset=reset)


@contextlib.contextmanager
def disk(model: str, size: int, name: str = "bench", **more) -> Iterator[Disk]:
    """A disk, detached in the end; its scheduler is none."""
    device, _ = attach_disk(DiskSpec(model, size, seed=1, mode="model", **more), name=name)
    try:
        queue = pathlib.Path("/sys/block") / device.name / "queue"
        (queue / "scheduler").write_text("none", encoding="ascii")
        (queue / "wbt_lat_usec").write_text("0", encoding="ascii")
        yield Disk(name, device, size)
    finally:
        detach_disk(name)


def fio(target: Disk, rw: str, bs: str, depth: int, seconds: float, **more) -> Result:
    """One run of fio with direct I/O."""
    given = {
        "name": "bench", "filename": target.device, "rw": rw, "bs": bs, "iodepth": depth, "direct": 1,
        "ioengine": "libaio", "time_based": 1, "runtime": f"{seconds:g}", "norandommap": 1, "randrepeat": 0,
        "randseed": 7, "allow_mounted_write": 0, "size": target.size, **more,
    }  # fmt: skip
    target.stats(reset=True)
    before, idle, began = block_sums(target), idle_seconds(), time.monotonic()
    command = ["fio", "--output-format=json", *(f"--{key}={value}" for key, value in given.items())]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    idle = (idle_seconds() - idle) / (time.monotonic() - began)
    requests, milliseconds = (after - at for after, at in zip(block_sums(target), before, strict=True))
    job = json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]
    side = job["read" if "read" in rw else "write"]
    times, stats = side["clat_ns"], target.stats()
    late, left, early = (stats[name] for name in ("lateness_ns", "path_left_ns", "path_early_ns"))
    return Result(
        iops=side["iops"],
        mb_s=side["bw_bytes"] / 1e6,
        mean_us=times["mean"] / 1e3,
        p50_us=times["percentile"]["50.000000"] / 1e3,
        p99_us=times["percentile"]["99.000000"] / 1e3,
        lateness_us={key: late[key] and late[key] / 1e3 for key in ("p50", "p99", "max")},
        block_us=milliseconds * 1e3 / max(1, requests),
        left_us=(left["mean"] - early["mean"]) / 1e3 if left["count"] else None,
        idle=idle,
    )


def block_sums(target: Disk) -> tuple[int, int]:
    """Reads and writes that have completed, and the milliseconds that they took, both since the device was made."""
    fields = (pathlib.Path("/sys/block") / target.device.name / "stat").read_text(encoding="ascii").split()
    return int(fields[0]) + int(fields[4]), int(fields[3]) + int(fields[7])


def idle_seconds() -> float:
    """Seconds that processors have spent idle so far."""
    fields = pathlib.Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()
    return (int(fields[4]) + int(fields[5])) / os.sysconf("SC_CLK_TCK")


def flush_ms(target: Disk, writes: int, random) -> float:
    """How long a FLUSH takes after so many scattered writes of 4 KiB."""
    handle = os.open(target.device, os.O_RDWR | os.O_DIRECT)
    page = mmap.mmap(-1, 4096)  # which is aligned as direct I/O wants it
    try:
        for _ in range(writes):
            os.pwritev(handle, [page], random.randrange(target.size // 4096) * 4096)
        began = time.monotonic()
        os.fsync(handle)
        return (time.monotonic() - began) * 1e3
    finally:
        os.close(handle)


def write_rate(target: Disk, seconds: float, every: float, span: int) -> list[tuple[float, float, float]]:
    """Sequential writes for so long: time (s), rate (MB/s) and the bytes free in the drive's cache, at intervals."""
    samples, running = [], threading.Event()

    def sample():
        while not running.wait(every):
            stats = target.stats()
            free = stats["gauges"].get("slc_cache_free_bytes", 0.0)
            samples.append((time.monotonic(), stats["write_bytes"], free))

    target.stats(reset=True)
    sampler = threading.Thread(target=sample)
    sampler.start()
    try:
        fio(target, "write", "256k", 32, seconds, size=span)
    finally:
        running.set()
        sampler.join()
    start = samples[0][0]
    pairs = itertools.pairwise(samples)
    return [(b[0] - start, (b[1] - a[1]) / (b[0] - a[0]) / 1e6, b[2]) for a, b in pairs]
