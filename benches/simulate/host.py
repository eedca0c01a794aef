"""An emulated disk, its queue as it was read back, and fio's jobs on it."""

import contextlib
import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benches.simulate.points import OF_LOOP, Point, Seen
from dbdyno.stack.attached import attach_disk, detach_disk, find_disk
from dbdyno.stack.layers.emulated_disk import DiskSpec

GIB = 1 << 30
SIZE = 2 * GIB


@dataclass(frozen=True)
class Attached:
    """A disk with the queue of a point."""

    name: str
    device: Path

    def read(self, knob: str) -> str:
        """Return what a file of the device's queue says."""
        return (Path("/sys/block") / self.device.name / "queue" / knob).read_text(encoding="ascii").strip()

    def write(self, knob: str, value: object) -> None:
        """Write a file of the device's queue."""
        (Path("/sys/block") / self.device.name / "queue" / knob).write_text(str(value), encoding="ascii")

    def merges(self) -> int:
        """Return the merges of reads and writes so far."""
        fields = (Path("/sys/block") / self.device.name / "stat").read_text(encoding="ascii").split()
        return int(fields[1]) + int(fields[5])

    def limits(self) -> dict[str, int]:
        """Return how far requests grow, as the kernel has it."""
        segments, kib = (int(self.read(knob)) for knob in ("max_segments", "max_sectors_kb"))
        return {"max_segments": segments, "max_sectors": kib * 2}


def schedulers() -> list[str]:
    """Return the schedulers that this kernel has for a loop device."""
    with attached("ideal", "probe") as disk:
        return disk.read("scheduler").replace("[", "").replace("]", "").split()


@contextlib.contextmanager
def attached(drive: str, name: str) -> Iterator[Attached]:
    """A disk of one's own, detached in the end."""
    device, _ = attach_disk(DiskSpec(drive, SIZE, seed=1, mode="model"), name=name)
    try:
        yield Attached(name, device)
    finally:
        detach_disk(name)


def set_queue(disk: Attached, scheduler: str, tags: int, nr_requests: int) -> None:
    """Make the queue that is asked for. What the drive gets at once is the number of tags, which only ``none`` sets."""
    disk.write("scheduler", "none")
    disk.write("wbt_lat_usec", 0)
    if tags != OF_LOOP:
        disk.write("nr_requests", tags)
    if scheduler != "none":
        disk.write("scheduler", scheduler)
        disk.write("nr_requests", nr_requests)
    got = disk.read("scheduler"), int(disk.read("nr_requests"))
    if f"[{scheduler}]" not in got[0] or got[1] != (tags if scheduler == "none" else nr_requests):
        raise SystemExit(f"{disk.device} did not take {scheduler} with {tags} tags, {nr_requests} requests: {got}")


def run_fio(point: Point, seconds: float, name: str) -> tuple[Seen, dict[str, int]]:
    """Run a point's job on a fresh disk; with the limits that the simulation is to have, too."""
    with attached(point.drive, name) as disk:
        set_queue(disk, point.scheduler, point.tags, point.nr_requests)
        part = SIZE // point.processes
        given = {
            "name": "job", "filename": disk.device, "direct": 1, "ioengine": "libaio", "norandommap": 1,
            "randrepeat": 0, "randseed": 7, "allow_mounted_write": 0, "group_reporting": 1,
            "numjobs": point.processes, "bs": point.size_bytes, "iodepth": point.depth,
            "rw": {"random": "randrw", "sequential": "rw"}[point.pattern], "rwmixread": point.read_percent,
            "time_based": 1, "runtime": f"{seconds:g}", "size": SIZE,
        }  # fmt: skip
        if point.pattern == "sequential":
            given |= {"size": part, "offset_increment": part}
        # What else runs on this host is not to keep fio from noticing that a request has ended.
        command = [
            "chrt",
            "-r",
            "1",
            "fio",
            "--output-format=json",
            *(f"--{key}={value}" for key, value in given.items()),
        ]
        merges = disk.merges()
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        merges = disk.merges() - merges
        most = find_disk(name).client().stats()["queue_depth_max"]
        if most > point.tags + 1:
            raise SystemExit(f"{point.name}: the drive got {most} commands at once, not {point.tags}")
        job = json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]
        sides = [job[side] for side in ("read", "write")]
        ios = sum(side["total_ios"] for side in sides)
        total_ns = sum(side["lat_ns"]["mean"] * side["total_ios"] for side in sides)
        runtime = max(side["runtime"] for side in sides) / 1e3
        seen = Seen(ios / runtime, total_ns / ios / 1e6, merges / runtime)
        return seen, disk.limits()
