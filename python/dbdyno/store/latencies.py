"""How often each latency of an event was met in a trial: ``latency.parquet``, beside the trial's series.

Trials of an older dbdyno and those of other programs lack it: their latencies are unknown.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbdyno.store.parts import damaged

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

LATENCIES = "latency"
LATENCY, COUNT = "latency_ns", "count"
COLUMNS = f"{LATENCY}|{COUNT}"
BUCKETS_MAX = 2**16  # of a histogram of three digits, whatever it counts
COUNT_MAX = 2**53  # events of a trial: a double holds fewer exactly
_REMEDY = "put it back from a copy, or delete it (the report is then made without this trial's percentiles)"


@dataclass(frozen=True)
class Latencies:
    """Latencies of a trial's events and how often each was met, shape (values,) each.

    A latency is the upper end of its bucket of the histogram, at most .1 % above what was measured.
    """

    latency_ns: "NDArray[np.float64]"  # ascending
    count: "NDArray[np.int64]"  # 1 or more


def latencies_in(path: Path, trial_id: str, columns: "Mapping[str, NDArray[Any]]") -> Latencies:
    """Return what the columns of a trial's file say. Raises ``DamageError`` where that is no histogram."""
    import numpy as np

    values, counts = (np.asarray(columns.get(name, []), np.float64) for name in (LATENCY, COUNT))
    whole = len(values) == len(counts) > 0 and np.all(np.isfinite(values)) and np.all(values >= 0)
    counted = np.all((counts >= 1) & (counts == np.floor(counts))) and counts.sum() < COUNT_MAX
    if not whole or not counted or np.any(np.diff(values) < 0):
        file = path / "trials" / trial_id / f"{LATENCIES}.parquet"
        raise damaged(file, "its latencies and counts are not a histogram", _REMEDY)
    return Latencies(values, counts.astype(np.int64))
