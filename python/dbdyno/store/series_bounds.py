"""How much may be read of the series of a run: what so many trials of so long can have measured, and no more.

Run folders come from others. One budget holds for all files together, so that many small ones cost no more than one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbdyno.errors import UserError
from dbdyno.model.quantity import duration_seconds
from dbdyno.store.hdr_histogram import BUCKETS_MAX
from dbdyno.store.header import RUN, header_in
from dbdyno.store.parts import read_part

ROWS_MAX = 2 * 10**6  # of one file: two days of ten samples a second
VALUES_MAX = 10**7  # of all files that are read together; a page of so many takes some 550 MB
_SAMPLES_A_SECOND = 20  # twice as many as are taken
_SECONDS_BESIDE = 600.0  # that a trial's load may take longer than it was to
_COLUMNS = 150  # of all series of a trial together, twice as many as there are
_LONGEST = {"duration", "warmup", "warmup_max"}  # fields of a study whose sum a trial's load takes


@dataclass(frozen=True)
class Bounds:
    """At most so many rows in one file, and so many values in all that are read."""

    rows: int = ROWS_MAX
    values: int = VALUES_MAX


def bounds_of(path: Path, trials: int) -> Bounds:
    """Return the bounds of a run folder of which the series of so many trials are read."""
    try:
        study = header_in(path, read_part(path, RUN)).study
    except (OSError, UserError):  # what is wrong with it is said by who reads it for itself
        return Bounds()
    longest = dict.fromkeys(_LONGEST, 0.0)
    for name, seconds in _times(study):
        longest[name] = max(longest[name], seconds)
    if not longest["duration"]:  # bounded by an amount: it takes as long as it takes
        return Bounds()
    seconds = min(sum(longest.values()) + _SECONDS_BESIDE, ROWS_MAX)
    rows = min(ROWS_MAX, max(BUCKETS_MAX, round(_SAMPLES_A_SECOND * seconds)))
    return Bounds(rows, min(VALUES_MAX, trials * (_COLUMNS * round(_SAMPLES_A_SECOND * seconds) + 2 * BUCKETS_MAX)))


def _times(study: Any) -> Iterator[tuple[str, float]]:  # noqa: ANN401 - whatever TOML can hold
    """Yield each time that a study gives to a field which makes trials longer, that of each level."""
    for name, value in study.items() if isinstance(study, dict) else ():
        if isinstance(value, dict):
            yield from _times(value)
        elif (field := name.rpartition(".")[2]) in _LONGEST:
            for text in value if isinstance(value, list) else [value]:
                try:
                    yield field, duration_seconds(text)
                except ValueError:  # as warmup = "steady"
                    continue
