"""What disturbed a trial, in words: figures beside their limits."""

import math
from collections.abc import Mapping
from typing import Any

from dbdyno.analysis.metrics import number
from dbdyno.analysis.wording import percent
from dbdyno.store.records import Trial

WHAT = {"foreign_cpu": "other processes took", "stolen": "the hypervisor took", "foreign_io": "others moved"}


def beyond(trial: Trial) -> list[str]:
    """Return what was beyond its limit, ``"other processes took 46 % of the CPU (limit 5.5 %; sh 0.93 cores)"``."""
    limits = trial.disturbance.get("limits")
    found = []
    for name in WHAT:
        value, limit = figure(trial.disturbance, name), figure(limits, name)
        if name in trial.disturbance.get("beyond", ()) and value is not None and limit is not None:
            found.append(f"{amount(name, value)} (limit {_size(name, limit)}{_who(name, trial)})")
    return found


def amount(name: str, value: float) -> str:
    """Return ``"other processes took 46 % of the CPU"``."""
    return f"{WHAT[name]} {_size(name, value)}{'' if name == 'foreign_io' else ' of the CPU'}"


def figure(mapping: object, key: str) -> float | None:
    """Return a number that may be unknown, missing or malformed in a run folder."""
    value: Any = mapping.get(key) if isinstance(mapping, Mapping) else None
    return float(value) if isinstance(value, int | float) and math.isfinite(value) and value >= 0 else None


def _size(name: str, value: float) -> str:
    if name == "foreign_io":
        return f"{number(value / 1e6)} MB/s"
    return percent(min(value, 1.0), sign=False)  # the counters are coarse: of a short trial they can say 102 %


def _who(name: str, trial: Trial) -> str:
    others = trial.disturbance.get("others")
    if name != "foreign_cpu" or not isinstance(others, Mapping):
        return ""
    cores = {str(who): value for who in others if (value := figure(others, who)) is not None}
    return f"; {', '.join(f'{who} {number(value)} cores' for who, value in cores.items())}" if cores else ""
