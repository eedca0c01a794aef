"""Whether an emulated drive's fast cache ran out under the load, which changes the rate in the midst of a trial."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from dbdyno.model.metrics import value_of
from dbdyno.store.records import Trial


@dataclass(frozen=True)
class CacheRanOut:
    """The fast cache of a treatment's drive, and when it ran out."""

    bytes: float
    drive_bytes: float  # what the drive has, of which a small disk may have a part; NaN if not known
    after_s: float  # since measuring began, the median over the trials in which it ran out; negative: in the warm-up
    trials: int  # in which it ran out
    of: int


def cache_ran_out(trials: Sequence[Trial]) -> CacheRanOut | None:
    """Return when the fast cache of a treatment's drive ran out; ``None`` if it has none, or in no trial did."""
    caches = [found for trial in trials if (found := _cache(trial))]
    ran_out = [after_s for cache in caches if math.isfinite(after_s := value_of(cache, "ran_out_s"))]
    if not ran_out:
        return None
    return CacheRanOut(
        bytes=value_of(caches[0], "bytes"),
        drive_bytes=value_of(caches[0], "drive_bytes"),
        after_s=median(ran_out),
        trials=len(ran_out),
        of=len(trials),
    )


def _cache(trial: Trial) -> Mapping[str, Any] | None:
    """Return what the disk reported of its cache; of several that of the one whose cache ran out first."""
    disks = trial.device.get("disks")
    reported = [each.get("fast_cache") for each in (disks if isinstance(disks, list) else [trial.device])]
    caches = [cache for cache in reported if isinstance(cache, Mapping)]
    return min(caches, key=lambda cache: _or_never(value_of(cache, "ran_out_s")), default=None)


def _or_never(after_s: float) -> float:
    return after_s if math.isfinite(after_s) else math.inf
