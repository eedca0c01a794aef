"""The series of trials, a Parquet file each in the trial's folder: written, read within bounds, and exported."""

import csv
import hashlib
import json
import math
import os
import re
import resource
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from io import StringIO
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypedDict

from dbdyno._native import read_parquet, write_parquet
from dbdyno.errors import UserError
from dbdyno.model.disks import series_name
from dbdyno.model.printable import csv_text
from dbdyno.model.quantity import duration_seconds
from dbdyno.mysql.settings import ANALYSED
from dbdyno.store.events import read_events
from dbdyno.store.header import RUN, header_in
from dbdyno.store.latencies import BUCKETS_MAX, LATENCIES, LATENCY, Latencies, latencies_in
from dbdyno.store.latencies import COLUMNS as LATENCY_COLUMNS
from dbdyno.store.others import BYTES_OF_A_VALUE, Budget
from dbdyno.store.parts import MIB, damaged, read_part, see_that_it_is_as_written, unread, write_synced
from dbdyno.store.void_blocks import History
from dbdyno.system.child import bounded

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dbdyno.store.records import Run


# The Parquet files of the series of trials, read without following a link and within bounds.
#
# A small file can stand for as many bytes as its writer likes: constants, dictionaries, compression. So files are
# read in a child whose memory and time the kernel bounds. One budget holds for what all of them hold together: what
# so many trials of so long can have measured, and no more.


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
) -> "Iterator[tuple[SeriesRequest, dict[str, NDArray[Any]]]]":
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
) -> "Iterator[tuple[SeriesRequest, dict[str, NDArray[Any]]]]":
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
            columns, size_bytes = _read_file(path, request, sums, limits, left)
        except (OSError, ValueError) as error:
            errno = error.errno if isinstance(error, OSError) else None
            text = getattr(error, "strerror", None) or str(error)
            stream.write(json.dumps({"error": text, "errno": errno}).encode() + b"\n")
            return
        sizes = [(name, len(values) if isinstance(values, bytearray) else -1) for name, values in columns.items()]
        stream.write(json.dumps({"columns": sizes, "bytes": size_bytes}).encode() + b"\n")
        for values in columns.values():
            stream.write(values if isinstance(values, bytearray) else json.dumps({"texts": values}).encode() + b"\n")


def _read_file(
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


if TYPE_CHECKING:
    Columns = Mapping[str, Sequence[Any] | NDArray[Any]]
    Column = list[float] | list[str] | NDArray[np.float64]


# Columns of one length as CSV or Parquet, for other programs.


def as_csv(columns: "Columns") -> str:
    """Return a heading and a line per row; what is unknown is an empty cell, yes and no are true and false."""
    written = StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(map(csv_text, columns))
    writer.writerows(zip(*([_cell(value) for value in values] for values in columns.values()), strict=True))
    return written.getvalue()


def _cell(value: object) -> object:
    if value is None or value != value:  # noqa: PLR0124 - not a number
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, int | float) else csv_text(str(value))


def as_parquet(columns: "Columns") -> bytes:
    """Return the columns as one Parquet file: numbers, booleans or texts; a number that is unknown is NaN."""
    import numpy as np

    arrays = {name: np.asarray(values) for name, values in columns.items()}
    return write_parquet({name: _as_native(values) for name, values in arrays.items()})


def _as_native(values: "NDArray[Any]") -> "bytes | list[Any]":
    """Return doubles as bytes, and anything else as a list."""
    return values.astype(float).tobytes() if values.dtype.kind == "f" else values.tolist()


def read_series(path: Path, trial_ids: list[str]) -> "dict[str, dict[str, dict[str, NDArray[Any]]]]":
    """Trial id -> series -> column -> values, for the trials named; floats, or objects where a column is text."""
    requests = [SeriesRequest(id_, name, ".*") for id_ in trial_ids for name in series_names(path, [id_])]
    return _read(path, trial_ids, requests)


LOAD_COLUMNS = "t_s|events_per_second|queries_per_second|rows_per_second|iops|phase"
WATCHED_COLUMNS = {
    "block_device": "t_s|[rwf]/s|[rwf]_await|%util",
    "host_cpu": "t_s|%idle|%iowait|%steal",
    "server_status": ANALYSED,
}  # probe -> what an analysis needs of it


def _watched_columns(run: "Run") -> dict[str, str]:
    of_disks = {series_name("block_device", disk): WATCHED_COLUMNS["block_device"] for disk in run.disk_names}
    return WATCHED_COLUMNS | of_disks


class AnalysedSeries(TypedDict):
    """The series that an analysis asks for, by the names of its arguments."""

    load_series: "dict[str, dict[str, NDArray[Any]]]"  # trial id -> column -> values
    watched: "dict[str, dict[str, dict[str, NDArray[Any]]]]"  # trial id -> probe -> column -> values
    latencies: "dict[str, Latencies]"  # trial id -> how often each latency of an event was met; unknown of some


def read_latencies(path: Path, run: "Run") -> "dict[str, Latencies]":
    """Return of each trial how often each latency was met, and no other series; of trials that keep it."""
    series_of = read_matching(path, [trial.id for trial in run.trials], {LATENCIES: LATENCY_COLUMNS})
    return {id_: latencies_in(path, id_, series[LATENCIES]) for id_, series in series_of.items() if LATENCIES in series}


def read_analysed(path: Path, run: "Run", budget: Budget | None = None) -> AnalysedSeries:
    """Return the series of a run that was read from ``path``, for ``analyse(run, **series)``.

    ``budget`` is that of the command, where it reads several run folders.
    """
    return read_analysed_and(path, run, {}, budget)[0]


def read_analysed_and(
    path: Path, run: "Run", drawn: "Mapping[str, str]", budget: Budget | None = None
) -> "tuple[AnalysedSeries, dict[str, dict[str, dict[str, NDArray[Any]]]]]":
    """Return what an analysis asks for, and beside it what ``drawn`` does: each file is read once."""
    watched_columns = _watched_columns(run)
    analysed_columns = {"load": LOAD_COLUMNS, LATENCIES: LATENCY_COLUMNS, **watched_columns}
    patterns = {
        name: "|".join(columns[name] for columns in (analysed_columns, drawn) if name in columns)
        for name in {**analysed_columns, **drawn}
    }
    series_of = read_matching(path, [trial.id for trial in run.trials], patterns, budget)
    loads = {
        id_: series["load"] for id_, series in _matching(series_of, {"load": LOAD_COLUMNS}).items() if "load" in series
    }
    latencies = {
        id_: latencies_in(path, id_, series[LATENCIES]) for id_, series in series_of.items() if LATENCIES in series
    }
    analysed = AnalysedSeries(load_series=loads, watched=_matching(series_of, watched_columns), latencies=latencies)
    return analysed, _matching(series_of, drawn)


def _matching(
    series_of: "Mapping[str, Mapping[str, Mapping[str, NDArray[Any]]]]", patterns: "Mapping[str, str]"
) -> "dict[str, dict[str, dict[str, NDArray[Any]]]]":
    """Return of what was read the series that are wanted, with the columns that are."""
    names = {name: re.compile(columns).fullmatch for name, columns in patterns.items()}
    return {
        id_: {
            name: {column: values for column, values in columns.items() if names[name](column)}
            for name, columns in series.items()
            if name in names
        }
        for id_, series in series_of.items()
    }


def read_matching(
    path: Path, trial_ids: list[str], patterns: "Mapping[str, str]", budget: Budget | None = None
) -> "dict[str, dict[str, dict[str, NDArray[Any]]]]":
    """Trial id -> series -> column -> values, of the columns that the regular expression of a series matches."""
    requests = [SeriesRequest(id_, name, columns) for name, columns in patterns.items() for id_ in trial_ids]
    return _read(path, trial_ids, [request for request in requests if os.path.lexists(path / request.part)], budget)


def _read(
    path: Path, trial_ids: list[str], requests: list[SeriesRequest], budget: Budget | None = None
) -> "dict[str, dict[str, dict[str, NDArray[Any]]]]":
    """Trial id -> series -> column -> values of all that is asked, within one budget. Raises ``DamageError``."""
    series_of: dict[str, dict[str, dict[str, NDArray[Any]]]] = {id_: {} for id_ in trial_ids}
    for request, columns in read_each(path, requests, _sums(path), bounds_of(path, len(trial_ids)), budget):
        series_of[request.trial][request.series] = columns
    return series_of


def _sums(path: Path) -> Sums:
    """What the files were when their trials had finished."""
    return {id_: event.sha256 for id_, event in History.of(read_events(path)).finished.items()}


def series_names(path: Path, trial_ids: list[str]) -> list[str]:
    """The series that any of the trials has, by name."""
    names = {file.stem for id_ in trial_ids for file in (path / "trials" / id_).glob("*.parquet")}
    return sorted(names - {LATENCIES})


def read_series_named(path: Path, name: str, trial_ids: list[str]) -> "dict[str, NDArray[Any]]":
    """Column -> values of one series, trials below each other in the order given; ``trial`` says whose a row is.

    A column that a trial lacks is NaN there; trials without the series have no row.
    """
    import numpy as np

    of_trials = {
        id_: series[name] for id_, series in read_matching(path, trial_ids, {name: ".*"}).items() if name in series
    }
    kinds = {column: values.dtype for columns in of_trials.values() for column, values in columns.items()}
    whose = [np.full(len(columns["t_s"]), id_, object) for id_, columns in of_trials.items()]
    lacking: dict[str, Any] = {
        column: np.array([None if kind.kind == "O" else np.nan], kind) for column, kind in kinds.items()
    }
    return {
        "trial": np.concatenate(whose) if whose else np.array([], object),
        **{
            column: np.concatenate(
                [columns.get(column, lacking[column].repeat(len(columns["t_s"]))) for columns in of_trials.values()]
            )
            for column in kinds
        },
    }


def write_series(path: Path, columns: "Mapping[str, Column]") -> None:
    """Write one series; without columns, or with columns of unlike lengths, nothing. Raises ``OSError``.

    A guest writes them, too, which has no time to import numpy.
    """
    if columns and len({len(values) for values in columns.values()}) == 1:
        write_synced(path, write_parquet({name: _doubles_or_text(values) for name, values in columns.items()}))


def _doubles_or_text(values: "Column") -> "bytes | list[Any]":
    """Texts as they are, numbers as the bytes of doubles; one that is not known is NaN."""
    if len(values) > 0 and isinstance(values[0], str):
        return [*values]
    return array("d", [math.nan if value is None else float(value) for value in values]).tobytes()
