"""What the tool itself took from the host: CPU of the probes, and how late the emulated disk answered."""

import math
from collections.abc import Mapping
from statistics import fmean
from typing import Any

from dbdyno.model.wording import count, number
from dbdyno.report.amounts import duration
from dbdyno.report.source import figure
from dbdyno.store.records import Run


def overhead_lines(run: Run) -> list[str]:
    """Return a sentence each about what the run folder has of it, over all finished trials."""
    return [*_probe_lines(run), *_disk_lines(run)]


def late_text(late_us: float) -> str:
    """Return ``"312 us late"``, or ``"12.0 us early"``."""
    return f"{duration(abs(late_us) / 1e3)} {'late' if late_us >= 0 else 'early'}"


def beside_the_request(late_us: float, request_us: float) -> str:
    """Return what a request took, of which lateness was a part: ``"of the 380 us that one took"``."""
    took = duration(request_us / 1e3)
    return f"of the {took} that one took" if late_us >= 0 else f"beside the {took} that one took"


def _probe_lines(run: Run) -> list[str]:
    lines = []
    own, outside = _shares(run, "cpu_percent"), _shares(run, "outside_cpu_percent")
    if own:
        line = f"The probes took {number(math.fsum(own.values()))} % of one core on average ({_each(own)})"
        outside_text = f", and answering them took {number(math.fsum(outside.values()))} % ({_each(outside)})"
        lines.append(f"{line}{outside_text if outside else ''}.")
    missed = math.fsum(figure(probe, "missed") or 0 for trial in run.trials for probe in trial.probes.values())
    if missed:
        lines.append(f"The probes missed {count(round(missed), 'sample')}.")
    return lines


def _shares(run: Run, figure_name: str) -> dict[str, float]:
    """Probe to its share of one core in percent, mean over the trials that have it."""
    shares: dict[str, list[float]] = {}
    for trial in run.trials:
        for name, probe in trial.probes.items():
            share = figure(probe, figure_name)
            if share is not None:
                shares.setdefault(name, []).append(share)
    return {name: fmean(values) for name, values in sorted(shares.items())}


def _each(shares: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {number(share)} %" for name, share in shares.items())


def _disk_lines(run: Run) -> list[str]:
    late = [trial.device.get("lateness_ns") for trial in run.trials]
    p99 = [value / 1e3 for each in late if (value := figure(each, "p99")) is not None]
    largest = [value / 1e3 for each in late if (value := figure(each, "max")) is not None]
    if not p99:
        return []
    path = _path_line(run)
    when = "they were due" if path else "the model's time"
    line = (
        f"The emulated disk answered 99 % of its requests at most {number(fmean(p99))} us after {when}"
        f" (mean over trials; {number(max(p99))} us in the worst trial"
    )
    return [f"{line}; {number(max(largest))} us the latest single answer)." if largest else f"{line}).", *path]


def _path_line(run: Run) -> list[str]:
    """What loop device, FUSE and wake-ups take of each request, and how much of it the answers made up for."""
    both = [path_us for trial in run.trials for disk in _disks(trial.device) if (path_us := _path_us(disk))]
    if not both:
        return []
    taken, left = (fmean(each) for each in zip(*both, strict=True))
    seems = "slower" if left >= 0 else "faster"
    line = (
        f"The path to the emulated disk and back takes {number(taken + left)} us a request; answers left"
        f" {number(taken)} us earlier to make up for it, so the drive seems {seems} by {number(abs(left))} us a"
        f" request (means over trials)."
    )
    return [line]


def _disks(device: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the figures of each disk: several devices have theirs side by side."""
    each = device.get("disks")
    return [disk for disk in each if isinstance(disk, Mapping)] if isinstance(each, list) else [device]


def _path_us(device: Mapping[str, Any]) -> tuple[float, float] | None:
    """How much earlier answers left on average, and what of the path remained, us; none if unknown."""
    mean = {name: figure(device.get(f"path_{name}_ns"), "mean") for name in ("taken", "left", "early")}
    taken, left, early = mean["taken"], mean["left"], mean["early"]
    if taken is None:
        return None
    if left is not None and early is not None:
        return taken / 1e3, (left - early) / 1e3
    path = figure(device, "path_ns")  # all of it, as it was measured when the disk was attached
    return None if path is None else (taken / 1e3, max(0.0, path - taken) / 1e3)
