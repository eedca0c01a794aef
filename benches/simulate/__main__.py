"""The simulated block layer beside the real one: fio's jobs on an emulated disk, on this kernel and simulated.

    sudo .venv/bin/python -m benches.simulate [--quick] [--only GROUP,...] [--strict] [--json FILE]

Groups:
  order   a scripted burst, in the order in which the drive got it: identical
  hdd     jobs on a hard disk that gets 4 commands at once under a scheduler: throughput within 5 %, mean latency and
          merges within 10 %
  ssd     the same on a SATA SSD; what this host is too slow for misses
  speed   requests a CPU-second of the simulation, beside MQSim (37,000 to 72,000) and DiskSim (17,000 to 53,000)

The emulated disk is real time and the same drive model, so what differs is the block layer. A host that is busy answers
late: the figures of record come from one that does nothing else. Needs root and fio. Exit code 1 comes with --strict
only, when a row was not met.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benches.figures import Figure, at_least, within, write
from benches.simulate import burst
from benches.simulate.host import SIZE, run_fio, schedulers
from benches.simulate.points import Point, Seen, points, simulated

SPEED = Path("target/release/examples/simulate_speed")
SEEDS = 4  # bursts
LIMITS = {"throughput": 5, "latency": 10, "merges": 10}  # percent
FEW = 0.01  # merges for each I/O below which they say nothing
KNOWN = ("none", "mq-deadline", "kyber", "bfq")  # that are simulated


def order(_: bool) -> Iterator[Figure]:  # noqa: FBT001
    """Return how many of some bursts a drive got in another order."""
    for scheduler in ("none", "mq-deadline", "kyber"):
        if scheduler not in schedulers():
            continue
        others = 0
        for bios in (burst.script(seed) for seed in range(SEEDS)):
            got, limits = burst.real(scheduler, bios)
            others += got != burst.simulated(scheduler, bios, limits)
        print(f"  {scheduler}: {SEEDS - others} of {SEEDS} bursts in the same order", flush=True)
        yield within(f"order: {scheduler}, bursts in another order", others, 0, 0, others == 0)


def percent(real: float, simulated: float) -> float:
    """Return by how much the second is more than the first."""
    return (simulated / real - 1) * 100 if real else 0.0


def compared(point: Point, real: Seen, model: Seen) -> list[Figure]:
    """Return a point's rows."""
    few = max(real.merges_per_s / real.ios_per_s, model.merges_per_s / model.ios_per_s) < FEW
    off = {
        "throughput": percent(real.ios_per_s, model.ios_per_s),
        "latency": percent(real.latency_ms, model.latency_ms),
        "merges": 0.0 if few else percent(real.merges_per_s, model.merges_per_s),
    }
    print(
        f"  {point.name:<56} {real.ios_per_s:>9.1f} {model.ios_per_s:>9.1f} {off['throughput']:>+6.1f}"
        f" {real.latency_ms:>9.2f} {model.latency_ms:>9.2f} {off['latency']:>+6.1f}"
        f" {real.merges_per_s:>9.1f} {model.merges_per_s:>9.1f} {off['merges']:>+6.1f}",
        flush=True,
    )
    return [
        within(f"{point.name}: {what}, % from real", value, -LIMITS[what], LIMITS[what], abs(value) <= LIMITS[what])
        for what, value in off.items()
    ]


def jobs(drive: str, tags: int, seconds: float, at_once: int, depths: tuple[int, ...]) -> Iterator[Figure]:
    """Return the rows of all jobs on a drive; jobs of several disks run beside each other."""
    here = [scheduler for scheduler in KNOWN if scheduler in schedulers()]
    print(f"  {'':<56} {'real /s':>9} {'simulated':>9} {'%':>6} {'real ms':>9} {'simulated':>9} {'%':>6}"
          f" {'merges/s':>9} {'simulated':>9} {'%':>6}")  # fmt: skip

    def both(numbered: tuple[int, Point]) -> tuple[Point, Seen, Seen]:
        number, point = numbered
        real, limits = run_fio(point, seconds, f"bench{number}")
        return point, real, simulated(point, seconds, SIZE, limits)

    with ThreadPoolExecutor(at_once) as pool:
        for point, real, model in pool.map(both, enumerate(points(drive, tags, here, depths))):
            yield from compared(point, real, model)


def hdd(quick: bool) -> Iterator[Figure]:  # noqa: FBT001
    """Return the rows of the hard disk."""
    return jobs("hdd-7200", 4, 6 if quick else 20, 4, (1, 32) if quick else (1, 8, 32))


def ssd(quick: bool) -> Iterator[Figure]:  # noqa: FBT001
    """Return the rows of the SSD."""
    return jobs("ssd-x25e", 32, 2 if quick else 5, 1, (1, 32) if quick else (1, 8, 32))


def speed(_: bool) -> Iterator[Figure]:  # noqa: FBT001
    """Return requests simulated a CPU-second."""
    done = subprocess.run([SPEED], check=True, capture_output=True, text=True)
    for row in json.loads(done.stdout):
        print(f"  {row['name']:<56} {row['value']:>9} {row['limit']:>9.0f}", flush=True)
        yield at_least(row["name"], row["value"], row["limit"])


GROUPS: dict[str, Callable[[bool], Iterator[Figure]]] = {"order": order, "hdd": hdd, "ssd": ssd, "speed": speed}


def arguments() -> argparse.Namespace:
    """Return the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="shorter runs, fewer depths")
    parser.add_argument("--only", default=",".join(GROUPS), help="groups, separated by commas")
    parser.add_argument("--strict", action="store_true", help="exit code 1 when a row was not met")
    parser.add_argument("--json", type=Path, help="write the result there")
    options = parser.parse_args()
    options.only = options.only.split(",")
    unknown = sorted(set(options.only) - set(GROUPS))
    if unknown:
        parser.error(f"--only: no group {', '.join(unknown)}; there are {', '.join(GROUPS)}")
    return options


def main() -> int:
    """Run all and print; return the exit code."""
    options = arguments()
    if os.geteuid() != 0 or shutil.which("fio") is None:
        print("bench-simulate needs root and fio", file=sys.stderr)
        return 2
    figures = []
    with tempfile.TemporaryDirectory(prefix="dds", dir="/tmp") as folder:
        Path(folder).chmod(0o755)  # state folders must be passable
        os.environ["DBDYNO_STATE_DIR"] = f"{folder}/s"
        for group in options.only:
            print(group, flush=True)
            figures += list(GROUPS[group](options.quick))
    missed = sum(figure.met is False for figure in figures)
    print(f"{len(figures) - missed} of {len(figures)} figures within their limits")
    write(options.json, figures)
    return 1 if options.strict and missed else 0


if __name__ == "__main__":
    sys.exit(main())
