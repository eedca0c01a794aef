"""Whether the buffer pool was still being filled while a treatment was measured: then its rate is that of a warm-up.

A pool that fills reads pages into room that was free, so that ever fewer are left to be read. One that is warm reads
next to nothing; one that is smaller than what is worked on reads as much at the end as at the start, and each page in
place of another one. Neither is still filling, and nor is a pool that takes up pages which the load itself made.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dbdyno.analysis.blocks import UsableBlocks
from dbdyno.analysis.over_time.series import Columns, floats
from dbdyno.analysis.statistics.arrays import Floats
from dbdyno.model.design import Design
from dbdyno.model.metrics import value_of

PAGES_READ, QUESTIONS = "Innodb_pages_read/s", "Questions/s"
FREE, TOTAL = "Innodb_buffer_pool_pages_free", "Innodb_buffer_pool_pages_total"
SAMPLES_MIN = 9  # three to a third of a trial
PAGES_MIN = 30  # read in the first third
PER_QUERY_MIN = 0.005  # pages: less is next to nothing even on a hard disk, where 0.005 take 40 us
FALLEN_TO, FALLEN_TO_UNSEEN = 0.9, 0.75  # of the first third's reads; where it was not read how much was free
STANDARD_ERRORS, STANDARD_ERRORS_UNSEEN = 3.0, 4.0  # by which reads must have fallen, as counts of a Poisson process
GROWN_MIN, GROWN_OF_READ = 0.02, 0.25  # of the pool, and of the pages read, that went into free room

Status = Mapping[str, Mapping[str, Columns]]  # trial id -> probe -> column -> samples


@dataclass(frozen=True)
class Filling:
    """What one trial, or several in the mean, read in the first and in the last third of the measured time."""

    first_per_query: float  # pages
    last_per_query: float
    free_at_the_end: float  # share of the pool; NaN where it was not read back


@dataclass(frozen=True)
class PoolFilling:
    """A treatment whose pool was still being filled: means over the trials in which it was."""

    id: str
    found: Filling
    trials: int
    of: int


def pools_filling(design: Design, blocks: UsableBlocks, watched: Status) -> list[PoolFilling]:
    """Return the treatments of which more than half of the trials that were watched were still filling their pool."""
    found = []
    for treatment in design.treatments:
        seen = [
            filling(status, value_of(trial.metrics, "seconds_real"))
            for trial in blocks.of(treatment.id)
            if (status := watched.get(trial.id, {}).get("server_status"))
        ]
        fills = [each for each in seen if each]
        if 2 * len(fills) > len(seen):
            found.append(PoolFilling(treatment.id, _mean(fills), len(fills), len(seen)))
    return found


def filling(status: Columns, seconds: float) -> Filling | None:
    """Return what a trial read while its pool filled; ``None`` where it did not, or where that can't be said.

    ``status`` has the server's counters per second and gauges over time, ``seconds`` is how long was measured.
    """
    if not {"t_s", PAGES_READ, QUESTIONS} <= status.keys() or not seconds > 0:
        return None
    ends = floats(status["t_s"])
    lengths = np.diff(ends, prepend=np.nan)
    inside = (ends > 0) & (ends <= seconds) & np.isfinite(lengths)
    if inside.sum() < SAMPLES_MIN:
        return None
    third = np.minimum(2, (3 * ends[inside] / seconds).astype(np.int64))
    pages, queries = ((floats(status[name]) * lengths)[inside] for name in (PAGES_READ, QUESTIONS))
    free, total = (floats(status[name])[inside] if name in status else np.array([]) for name in (FREE, TOTAL))
    of_first, of_last = _in_third(0, third, pages, queries), _in_third(2, third, pages, queries)
    gauged = bool(len(free) and len(total) and np.isfinite(free).all() and total[-1] > 0)
    if not _fell(of_first, of_last, gauged=gauged) or (gauged and not _grew(free, total, float(np.nansum(pages)))):
        return None
    left = float(free[-1] / total[-1]) if gauged else math.nan
    return Filling(of_first[0] / of_first[1], of_last[0] / of_last[1], left)


def _in_third(which: int, third: np.ndarray[tuple[int], np.dtype[np.int64]], *counts: Floats) -> list[float]:
    return [float(np.nansum(each[third == which])) for each in counts]


def _fell(first: Sequence[float], last: Sequence[float], *, gauged: bool) -> bool:
    """Return whether fewer pages a query were read at the end than at first, beyond chance; each (pages, queries)."""
    if first[0] < PAGES_MIN or min(first[1], last[1]) <= 0 or first[0] / first[1] < PER_QUERY_MIN:
        return False
    rates = first[0] / first[1], last[0] / last[1]
    error = math.sqrt(first[0] / first[1] ** 2 + last[0] / last[1] ** 2)
    limit, errors = (FALLEN_TO, STANDARD_ERRORS) if gauged else (FALLEN_TO_UNSEEN, STANDARD_ERRORS_UNSEEN)
    return rates[1] <= limit * rates[0] and rates[0] - rates[1] >= errors * error


def _grew(free: Floats, total: Floats, pages_read: float) -> bool:
    """Return whether what was read went into room that was free."""
    grown = float(free[0] - free[-1])
    return grown >= GROWN_MIN * total[-1] and grown >= GROWN_OF_READ * pages_read


def _mean(fills: Sequence[Filling]) -> Filling:
    def mean(values: Sequence[float]) -> float:
        return math.fsum(values) / len(values)

    return Filling(
        mean([one.first_per_query for one in fills]),
        mean([one.last_per_query for one in fills]),
        mean([one.free_at_the_end for one in fills]),
    )
