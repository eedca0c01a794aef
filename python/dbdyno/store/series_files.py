"""The Parquet files of the series of trials, read without following a link and within bounds.

A small file can stand for as many bytes as its writer likes: constants, dictionaries, compression. So files are read
in a child whose memory and time the kernel bounds. One budget holds for what all of them hold together: what so many
trials of so long can have measured, and no more.
"""

import hashlib
import json
import re
import resource
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from dbdyno._native import read_parquet
from dbdyno.errors import UserError
from dbdyno.model.quantity import duration_seconds
from dbdyno.store.header import RUN, header_in
from dbdyno.store.latencies import BUCKETS_MAX, LATENCIES, LATENCY
from dbdyno.store.others import BYTES_OF_A_VALUE, Budget
from dbdyno.store.parts import MIB, damaged, read_part, see_that_it_is_as_written, unread
from dbdyno.system.child import bounded

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Columns = dict[str, "NDArray[Any]"]

Sums = Mapping[str, Mapping[str, str]]  # trial id -> file -> SHA-256

ROWS_MAX = 2 * 10**6  # of one file: two days of ten samples a second
VALUES_MAX = 10**7  # of all files that are read together, beside what their bytes are due; a page takes some 550 MB
_SAMPLES_A_SECOND = 20  # twice as many as are taken
_SECONDS_BESIDE = 600.0  # that a trial's load may take longer than it was to
_COLUMNS = 150  # of all series of a trial together, twice as many as there are
_LONGEST = {"duration", "warmup", "warmup_max"}  # fields of a study whose sum a trial's load takes
BYTES_MAX = 64 * MIB  # of one file
MEMORY_BYTES_MAX = 256 * MIB  # that reading takes beside what it returns: one file and what is made of it
TEXT_BYTES_MAX = 32 * MIB  # of all texts
COLUMNS_MAX = 2000  # of one file that are read
SECONDS_MAX, SECONDS_OF_A_FILE = 5.0, 0.004  # of CPU time: for all files, and for each
_SECONDS_OF_A_VALUE = 1e-7  # that a value takes at most, where it is worth its time
TEXT_COLUMNS = {"phase"}
AXES = {LATENCIES: LATENCY}  # what the rows of a file go by, where that is not the time
_REMEDY = (
    "put it back from a copy, delete it (the report is then made without this series of the trial), "
    "or go on with the run by --resume, which measures the trial's block again"
)


@dataclass(frozen=True)
class Bounds:
    """At most so many rows in one file, and so many values in all that are read.

    A long run holds more, but its files are as large: ``values`` come beside one for so many of their bytes, up to
    ``planned``, which is what such trials can have measured.
    """

    rows: int = ROWS_MAX
    values: int = VALUES_MAX
    planned: int = 100 * VALUES_MAX


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
    planned = trials * (_COLUMNS * round(_SAMPLES_A_SECOND * seconds) + 2 * BUCKETS_MAX)
    return Bounds(rows, min(VALUES_MAX, planned), planned)


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


@dataclass(frozen=True)
class SeriesRequest:
    """A series of a trial, and a regular expression for the columns that are wanted of it."""

    trial: str
    series: str
    columns: str

    @property
    def part(self) -> str:
        """Where its file lies below the run folder."""
        return f"trials/{self.trial}/{self.series}.parquet"


def read_files(
    path: Path, trial_ids: list[str], series: str, columns: str, sums: Sums
) -> "dict[str, dict[str, NDArray[Any]]]":
    """Trial id -> column -> values of one series that all these trials have; ``columns`` is a regular expression.

    A file without rows is left out. ``sums`` are what the event log says of the files. Raises ``DamageError``.
    """
    return {
        request.trial: series_columns
        for request, series_columns in read_each(path, [SeriesRequest(id_, series, columns) for id_ in trial_ids], sums)
    }


def read_each(
    path: Path,
    requests: Sequence[SeriesRequest],
    sums: Sums,
    bounds: Bounds | None = None,
    budget: Budget | None = None,
) -> "Iterator[tuple[SeriesRequest, Columns]]":
    """Yield the columns of each file that has rows. Raises ``UserError``, of damage ``DamageError``.

    ``bounds`` are the folder's, ``budget`` is that of all that the command reads.
    """
    if not requests:
        return
    limits, counted = bounds or Bounds(), budget or Budget()
    for_files = len(requests) * SECONDS_OF_A_FILE
    before, values = _children_seconds(), 0
    for request, columns in _read_in_child(path, requests, sums, limits, counted, for_files):
        values += sum(map(len, columns.values()))
        yield request, columns
    counted.take_seconds(path, _children_seconds() - before - for_files - values * _SECONDS_OF_A_VALUE)


def _children_seconds() -> float:
    """CPU time of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _read_in_child(  # noqa: PLR0913, PLR0917 - what is read, and what bounds it
    path: Path, requests: Sequence[SeriesRequest], sums: Sums, limits: Bounds, budget: Budget, for_files_seconds: float
) -> "Iterator[tuple[SeriesRequest, Columns]]":
    seconds = min(SECONDS_MAX, budget.reading_seconds) + for_files_seconds

    def work(stream: IO[bytes]) -> None:
        _read_all(path, requests, sums, limits, stream)

    with bounded(work, MEMORY_BYTES_MAX, seconds) as stream:
        for request in requests:
            head = _line(stream)
            if head is None or "error" in head:
                file = path / request.part
                if head is None:
                    raise damaged(file, "it takes more memory or time to read than a trial's series can", _REMEDY)
                why = OSError(head["errno"], head["error"]) if head["errno"] else ValueError(head["error"])
                raise unread(file, why, _REMEDY)
            budget.take_series(path, sum(size for _, size in head["columns"]) // 8, head["bytes"])
            arrays = {name: _array(stream, size, path / request.part) for name, size in head["columns"]}
            axis = AXES.get(request.series, "t_s")
            if axis not in arrays:
                raise damaged(path / request.part, f"it holds no column {axis}", _REMEDY)
            if len(arrays[axis]):
                yield request, arrays


def _line(stream: IO[bytes]) -> dict[str, Any] | None:
    """What the child says next; nothing where it was ended."""
    line = stream.readline()
    return json.loads(line) if line.endswith(b"\n") else None


def _array(stream: IO[bytes], size: int, file: Path) -> "NDArray[Any]":
    """The values of a column: doubles, or texts where ``size`` is -1."""
    import numpy as np

    if size < 0:
        texts = _line(stream)
        if texts is None:
            raise damaged(file, "it takes more memory or time to read than a trial's series can", _REMEDY)
        return np.array(texts["texts"], object)
    content = bytearray(size)
    if stream.readinto(content) != size:  # type: ignore[attr-defined]
        raise damaged(file, "it takes more memory or time to read than a trial's series can", _REMEDY)
    return np.frombuffer(content)


def _read_all(path: Path, requests: Sequence[SeriesRequest], sums: Sums, limits: Bounds, stream: IO[bytes]) -> None:
    """Write what each file holds, a line that says so first; at the first that can't be read, why, and no more."""
    left = {"values": limits.values, "planned": limits.planned, "text bytes": TEXT_BYTES_MAX}
    for request in requests:
        try:
            columns, size_bytes = _read(path, request, sums, limits, left)
        except (OSError, ValueError) as error:
            errno = error.errno if isinstance(error, OSError) else None
            text = getattr(error, "strerror", None) or str(error)
            stream.write(json.dumps({"error": text, "errno": errno}).encode() + b"\n")
            return
        sizes = [(name, len(values) if isinstance(values, bytearray) else -1) for name, values in columns.items()]
        stream.write(json.dumps({"columns": sizes, "bytes": size_bytes}).encode() + b"\n")
        for values in columns.values():
            stream.write(values if isinstance(values, bytearray) else json.dumps({"texts": values}).encode() + b"\n")


def _read(
    path: Path, request: SeriesRequest, sums: Sums, limits: Bounds, left: dict[str, int]
) -> "tuple[dict[str, bytearray | list[str | None]], int]":
    """The columns of one file, and its bytes.

    Raises ``OSError``, or ``ValueError`` where it is damaged or goes beyond a limit.
    """
    content = read_part(path, request.part, BYTES_MAX)
    if recorded := sums.get(request.trial, {}).get(f"{request.series}.parquet"):
        see_that_it_is_as_written(hashlib.sha256(content).hexdigest(), recorded)
    matches, names = cache(re.compile(request.columns).fullmatch), set[str]()

    def is_asked_for(name: str) -> bool:
        if not matches(name):
            return False
        if name in names or len(names) >= COLUMNS_MAX:
            raise ValueError(f"it has {'a column twice' if name in names else 'too many columns'}")
        names.add(name)
        return True

    columns = {name: _plain(name, values) for name, values in read_parquet(content, limits.rows, is_asked_for).items()}
    numbers = [values for values in columns.values() if isinstance(values, bytearray)]
    texts = [text for values in columns.values() if isinstance(values, list) for text in values]
    values = sum(map(len, numbers)) // 8 + len(texts)
    left["planned"] -= values
    left["values"] += len(content) // BYTES_OF_A_VALUE - values
    left["text bytes"] -= sum(len(text) for text in texts if text)
    if min(left.values()) < 0:
        raise ValueError("with it the series hold more than so many trials of so long can have measured")
    return columns, len(content)


def _plain(column: str, values: bytearray | list[str | None] | None) -> bytearray | list[str | None]:
    if isinstance(values, bytearray) or (values is not None and column in TEXT_COLUMNS):
        return values
    raise ValueError(f"its column {column} holds no numbers")
