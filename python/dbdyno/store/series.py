"""The series of trials: one Parquet file for each, in the trial's folder."""

import csv
import math
import os
import re
from array import array
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from dbdyno._native import write_parquet
from dbdyno.model.printable import csv_text
from dbdyno.mysql.status import ANALYSED
from dbdyno.store.events import read_events
from dbdyno.store.latencies import COLUMNS as LATENCY_COLUMNS
from dbdyno.store.latencies import LATENCIES, Latencies, latencies_in
from dbdyno.store.others import Budget
from dbdyno.store.replay import History
from dbdyno.store.series_files import SeriesRequest, Sums, bounds_of, read_each
from dbdyno.store.synced import write_synced

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from dbdyno.store.records import Run

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
    analysed_columns = {"load": LOAD_COLUMNS, LATENCIES: LATENCY_COLUMNS, **WATCHED_COLUMNS}
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
    analysed = AnalysedSeries(load_series=loads, watched=_matching(series_of, WATCHED_COLUMNS), latencies=latencies)
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
