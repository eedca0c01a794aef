"""What is measured: one function for each group of rows."""

from __future__ import annotations

import itertools
import pathlib
import random
import statistics
import tomllib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bench_host import GIB, Disk, Result, disk, fio, flush_ms, write_rate
from cuts import cuts
from rows import PEER, Row, lateness, left

if TYPE_CHECKING:
    from collections.abc import Iterator

DRIVES = pathlib.Path(__file__).parents[2] / "dbdyno-device" / "drives"
HDD_IOPS = {1: 57.6, 2: 64.5, 4: 71.2, 8: 78.6, 16: 86.3, 32: 93.6}  # measured on a ST2000DM006
HDD_FLUSH_MS = {8: 127.0, 64: 630.0}  # same
HDD_BYTES = 2_000_398_934_016
SSDS = ("ssd-x25e", "ssd-s510", "ssd-860pro", "nvme-760p", "nvme-980pro")
DEPTH_MAX = 128  # of a loop device
CACHED_BYTES, CACHED_SECONDS = 96 * GIB, 1.5  # a disk whose scaled SLC cache takes published write rates for so long
ASKED_US = (1000, 5000)
ASKED_DEPTHS = (1, 8, 32, 128)  # at 1000 us the last asks for 128,000 requests a second


@dataclass(frozen=True)
class Extent:
    """How long things are run, seconds, and how often."""

    service: float
    hdd: float
    flushes: int
    sequential: float
    ssd: float
    cache: float
    credits: int


FULL = Extent(service=10, hdd=60, flushes=15, sequential=10, ssd=8, cache=60, credits=81_000)
QUICK = Extent(service=3, hdd=12, flushes=3, sequential=3, ssd=2, cache=20, credits=40_500)


def service(extent: Extent) -> Iterator[Row]:
    """The disk's own cost, with a model that takes no time."""
    with disk("ideal", GIB) as target:
        one = fio(target, "randread", "4k", 1, extent.service)
        yield Row("service", "floor, 4K random read, depth 1, p50", one.p50_us, "us", high=30, peer=PEER["floor"])
        many = fio(target, "randread", "4k", 32, extent.service)
        yield Row("service", "4K random read, depth 32", many.iops, "IOPS", low=150_000, peer=PEER["iops"])


def asked(extent: Extent) -> Iterator[Row]:
    """A latency that is asked for, and how late its answers are, beside what the host takes for one of zero."""
    with disk("ideal", GIB) as target:
        floors_us = {depth: fio(target, "randread", "4k", depth, extent.service).block_us for depth in ASKED_DEPTHS}
    for asked_us in ASKED_US:
        with disk(f"ideal(latency_us={asked_us})", GIB) as target:
            for depth, floor_us in floors_us.items():
                run = fio(target, "randread", "4k", depth, extent.service)
                for row in delivered(f"{asked_us} us asked, depth {depth}", asked_us, run):
                    yield row.beside_floor(floor_us, asked_us)


def delivered(what: str, asked_us: float, run: Result) -> Iterator[Row]:
    """What came of a latency that was asked for."""
    # fio's percentiles come in steps of 1.3 %, its mean does not.
    for whose, mean_us in (("fio", run.mean_us), ("the block layer", run.block_us)):
        row = Row("asked", f"{what}: mean, as {whose} has it", mean_us, "us", reference=str(asked_us))
        off_us = asked_us * 0.01 + 20
        yield replace(row, low=asked_us - off_us, high=asked_us + off_us)
    yield left("asked", f"{what}: later than asked, mean", run.left_us)
    yield lateness("asked", f"{what}: lateness p99", run.lateness_us["p99"] or 0.0, run.idle)


def hdd(extent: Extent) -> Iterator[Row]:
    """The hard disk that was measured, whole."""
    spec = tomllib.loads((DRIVES / "hdd-7200.toml").read_text(encoding="utf-8"))["hdd"]
    turn_ms = 60_000 / spec["rpm"]
    # What the drive file calls a rate is that within a track; between tracks lie the skews.
    skew_ms = spec["track_skew_ms"] + (spec["cylinder_skew_ms"] - spec["track_skew_ms"]) / spec["heads"]
    with disk("hdd-7200", HDD_BYTES) as target:
        for place, offset in (("outer", 0), ("inner", HDD_BYTES - 8 * GIB)):
            sustained = spec[f"{place}_mb_s"] * turn_ms / (turn_ms + skew_ms)
            run = fio(target, "read", "1M", 1, extent.sequential, offset=offset, size=8 * GIB)
            yield Row("hdd-7200", f"sequential read, {place} edge", run.mb_s, "MB/s").within(sustained, 0.05)
        for depth, iops in HDD_IOPS.items():
            run = fio(target, "randread", "4k", depth, extent.hdd)
            yield Row("hdd-7200", f"4K random read, depth {depth}", run.iops, "IOPS").within(iops, 0.1)
            if depth == max(HDD_IOPS):
                yield lateness("hdd-7200", f"lateness p99, depth {depth}", run.lateness_us["p99"] or 0.0, run.idle)
        chances = random.Random(7)
        for writes, expected in HDD_FLUSH_MS.items():
            taken = statistics.median(flush_ms(target, writes, chances) for _ in range(extent.flushes))
            yield Row("hdd-7200", f"flush after {writes} scattered writes", taken, "ms").within(expected, 0.2)


PATTERNS = {
    "sequential_read_mb_s": ("sequential read 128K", "read", "128k", "mb_s", "MB/s"),
    "sequential_write_mb_s": ("sequential write 128K", "write", "128k", "mb_s", "MB/s"),
    "random_read_iops": ("4K random read", "randread", "4k", "iops", "IOPS"),
    "random_write_iops": ("4K random write", "randwrite", "4k", "iops", "IOPS"),
    "read_iops_depth_1": ("4K random read, depth 1", "randread", "4k", "iops", "IOPS"),
    "write_iops_depth_1": ("4K random write, depth 1", "randwrite", "4k", "iops", "IOPS"),
}


def pattern(target: Disk, key: str, queue_depth: int, seconds: float, **more) -> tuple[float, float]:
    """The figure that a published one stands beside, and how many processors were idle meanwhile."""
    _, rw, bs, figure, _ = PATTERNS[key]
    depth = 1 if key.endswith("depth_1") else min(queue_depth, DEPTH_MAX)
    # Part of the addresses, over and over: content takes memory here.
    run = fio(target, rw, bs, depth, seconds, size=min(target.size, 2 * GIB), **more)
    return float(getattr(run, figure)), run.idle


def ceilings(extent: Extent) -> dict[str, float]:
    """What this host passes on without a model; at depth 1, what its path adds to a request, us.

    Each on a disk of its own and for as long as the models get: content that is new costs the host more than old.
    """
    found = {}
    for key in (key for key in PATTERNS if not key.endswith("_1")):
        with disk("ideal", 2 * GIB) as target:
            found[key] = pattern(target, key, DEPTH_MAX, seconds_of(key, extent))[0]
    with disk("ideal(latency_us=100)", 2 * GIB) as target:
        for key in ("read_iops_depth_1", "write_iops_depth_1"):
            found[key] = 1e6 / pattern(target, key, 1, extent.ssd)[0] - 100
    return found


def seconds_of(key: str, extent: Extent) -> float:
    """How long a pattern runs: writing no longer than a drive's cache lasts."""
    return min(extent.ssd, CACHED_SECONDS) if "write" in key else extent.ssd


def ssd(extent: Extent) -> Iterator[Row]:
    """Published figures, as far as this host can pass them on."""
    most = ceilings(extent)
    for name in SSDS:
        file = tomllib.loads((DRIVES / f"{name}.toml").read_text(encoding="utf-8"))
        published, size = file["published"], min(CACHED_BYTES, file["ssd"]["capacity_bytes"] // GIB * GIB)
        for key, (what, *_, unit) in PATTERNS.items():
            if key not in published:
                continue
            steady = key == "random_write_iops" and published.get("random_write_state") == "steady"
            more = {"state": "steady", "size": GIB} if steady else {"size": size}
            settling = {"ramp_time": 6} if steady else {}  # the first writes find the buffer and free blocks
            # Anew for each, since what was written slows what follows; written for no longer than the cache lasts.
            with disk(name, limit=6 * GIB, **more) as target:
                seconds = extent.ssd if steady else seconds_of(key, extent)
                value, idle = pattern(target, key, published.get("queue_depth", 32), seconds, **settling)
            ceiling = 1e6 / (1e6 / published[key] + most[key]) if key.endswith("_1") else most[key]
            yield Row(name, what, value, unit).within(published[key], 0.1).unless_limited(ceiling, idle)


def cache(extent: Extent) -> Iterator[Row]:
    """What a long write shows of the caches, on a part of the drive: fewer channels are slower in proportion."""
    with disk("nvme-980pro(flash.channels=1,slc.scaled=true)", 64 * GIB, limit=6 * GIB) as target:
        samples = write_rate(target, extent.cache, 0.25, 4 * GIB)
    rates = [rate for _, rate, _ in samples]
    head = statistics.median(rates[: max(3, len(rates) // 20)])
    tail = statistics.median(rates[-len(rates) // 4 :])
    knee = next((at for at, rate, _ in samples if rate < (head + tail) / 2), None)
    written = sum(rate for at, rate, _ in samples if knee is not None and at < knee) * 0.25 / 1e3
    share = 64 * GIB / 1_000_204_886_016
    group = "nvme-980pro, an eighth of its channels, 64 GiB"
    yield Row(group, "rate before the knee", head, "MB/s").within(5000 / 8, 0.1)
    yield Row(group, "rate after the knee", tail, "MB/s").within(1500 / 8, 0.1)
    # While the cache fills, nothing is emptied.
    yield Row(group, "written until the knee", written, "GB").within(113 * share, 0.15)
    slow = "nvme-760p(flash.channels=1,slc.scaled=true,write_while_folding_mb_s=15)"
    with disk(slow, 32 * GIB, limit=6 * GIB) as target:
        samples = write_rate(target, extent.cache, 0.25, 4 * GIB)
    rates = [rate for _, rate, _ in samples]
    fast, drained = statistics.quantiles(rates, n=20)[-1], statistics.quantiles(rates, n=20)[0]
    middle = (fast * drained) ** 0.5
    turns = sum(a >= middle > b for a, b in itertools.pairwise(rates))
    group = "nvme-760p, an eighth of its channels, 32 GiB"
    yield Row(group, "rate while the cache fills", fast, "MB/s").within(1600 / 8, 0.15)
    yield Row(group, "fast to slow, ratio", fast / max(drained, 0.1), "", low=5, reference="14")
    yield Row(group, "times that the cache was full", turns, "", low=1)


def gp2(extent: Extent) -> Iterator[Row]:
    """How long a burst lasts, at fewer credits: burst = credits / (burst rate - base rate)."""
    base, burst, volume = 300, 3000, f"ebs-gp2(volume_gib=100,burst_credits={extent.credits},shortfall_probability=0)"
    length = extent.credits / (burst - base)
    seconds = length + 5
    with disk(volume, GIB) as target:
        run = fio(target, "randread", "4k", 32, seconds)
    # All requests are those of the burst and those at the base rate.
    served = run.iops * seconds
    lasted = (served - base * seconds) / (burst - base)
    yield Row("ebs-gp2", f"burst of {extent.credits} credits", lasted, "s").within(length, 0.01)


GROUPS = {
    "service": service,
    "asked": asked,
    "hdd": hdd,
    "ssd": ssd,
    "cache": cache,
    "gp2": gp2,
    "cuts": lambda extent: cuts(extent.service),
}
