"""What is run on a real kernel and simulated."""

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass

from dbdyno._native import simulate

MIXED = 70  # percent of reads
OF_LOOP = 128  # commands that a loop device takes at once, unless it is made to take fewer


@dataclass(frozen=True)
class Seen:
    """What came of a job."""

    ios_per_s: float
    latency_ms: float
    merges_per_s: float


@dataclass(frozen=True)
class Point:
    """A job on a drive behind a queue."""

    drive: str
    scheduler: str
    tags: int  # commands that the drive gets at once
    nr_requests: int  # requests that the scheduler may have
    pattern: str
    read_percent: int
    size_bytes: int
    processes: int
    depth: int

    @property
    def name(self) -> str:
        """What it is called in tables."""
        what = f"{self.pattern} {'70/30' if self.read_percent == MIXED else 'reads'}"
        return f"{self.drive}, {self.scheduler}: {what}, {self.processes} x {self.depth}"


def points(drive: str, tags: int, schedulers: list[str], depths: tuple[int, ...]) -> Iterator[Point]:
    """Return jobs on a drive that gets ``tags`` commands at once under a scheduler."""
    jobs = [("random", 100, 4096), ("sequential", 100, 65536), ("random", MIXED, 4096)]
    for scheduler, job, processes, depth in itertools.product(schedulers, jobs, (1, 4), depths):
        yield Point(drive, scheduler, OF_LOOP if scheduler == "none" else tags, 64, *job, processes, depth)


def simulated(point: Point, seconds: float, size: int, limits: dict[str, int]) -> Seen:
    """Return what comes of it with the rules of kernel 6.x."""
    job = {
        "pattern": point.pattern, "read_percent": point.read_percent, "block_bytes": point.size_bytes,
        "processes": point.processes, "depth": point.depth,
    }  # fmt: skip
    asked = {
        "device": point.drive, "size_bytes": size, "kernel": "6.x", "scheduler": point.scheduler,
        "queue_depth": point.tags, "duration_s": seconds, "load": {"kind": "jobs", "jobs": [job]}, **limits,
    }  # fmt: skip
    if point.scheduler != "none":
        asked["nr_requests"] = point.nr_requests
    found = json.loads(simulate(json.dumps(asked)))
    each = [found["reads"], found["writes"]]
    merges = sum(one["merges"] for one in each)
    ios = sum(one["requests"] for one in each) + merges
    latency_ns = sum(one["latency"]["mean_ns"] * one["latency"]["count"] for one in each)
    return Seen(ios / seconds, latency_ns / sum(one["latency"]["count"] for one in each) / 1e6, merges / seconds)
