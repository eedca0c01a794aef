"""What the tool itself took from the host: CPU of the probes, and how late the emulated disk answered."""

import math
from collections.abc import Mapping
from typing import Any

from dbdyno.analysis.metrics import number
from dbdyno.analysis.wording import count
from dbdyno.store.records import Run


def cost_lines(run: Run) -> list[str]:
    """Return a sentence each about what the run folder tells of it, over all finished trials."""
    return [*_probe_lines(run), *_disk_lines(run)]


def _probe_lines(run: Run) -> list[str]:
    found: dict[str, list[float]] = {}
    missed = 0.0
    for trial in run.trials:
        for name, probe in trial.probes.items():
            missed += _figure(probe, "missed") or 0
            share = _figure(probe, "cpu_percent")
            if share is not None:
                found.setdefault(name, []).append(share)
    lines = []
    if found:
        shares = {name: math.fsum(values) / len(values) for name, values in sorted(found.items())}
        each = ", ".join(f"{name} {number(share)} %" for name, share in shares.items())
        lines.append(f"The probes took {number(math.fsum(shares.values()))} % of one core on the average ({each}).")
    if missed:
        lines.append(f"The probes could not take {count(round(missed), 'sample')}.")
    return lines


def _disk_lines(run: Run) -> list[str]:
    late = [trial.device.get("lateness_ns") for trial in run.trials]
    p99 = [value / 1e3 for each in late if (value := _figure(each, "p99")) is not None]
    largest = [value / 1e3 for each in late if (value := _figure(each, "max")) is not None]
    if not p99:
        return []
    line = (
        f"The emulated disk answered 99 % of its requests at most {number(math.fsum(p99) / len(p99))} us after the"
        f" model's time (mean over trials; {number(max(p99))} us in the worst trial"
    )
    return [f"{line}; {number(max(largest))} us the latest single answer)." if largest else f"{line})."]


def _figure(mapping: object, key: str) -> float | None:
    """Return a number that may be missing or malformed in an old run folder."""
    value: Any = mapping.get(key) if isinstance(mapping, Mapping) else None
    return float(value) if isinstance(value, int | float) and math.isfinite(value) and value >= 0 else None
