"""What is run on a real kernel and simulated."""

import itertools
import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

JOBS = Path("target/release/examples/jobs")
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
    given = {
        "drive": point.drive, "size": size, "kernel": "6.x", "scheduler": point.scheduler, "depth": point.tags,
        "pattern": point.pattern, "read": point.read_percent, "bs": point.size_bytes, "processes": point.processes,
        "iodepth": point.depth, "seconds": int(seconds), **limits,
    }  # fmt: skip
    if point.scheduler != "none":
        given["nr_requests"] = point.nr_requests
    words = [f"{key}={value}" for key, value in given.items()]
    found = json.loads(subprocess.run([JOBS, *words], check=True, capture_output=True, text=True).stdout)
    return Seen(found["ios_per_s"], found["latency_ms"], found["merges_per_s"])
