"""The series of trials: one Parquet file for each, in the trial's folder."""

import errno
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbdyno.store.synced import sync

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    Column = list[float] | list[str] | NDArray[np.float64]


def read_series(path: Path, trial_ids: list[str]) -> "dict[str, dict[str, dict[str, NDArray[Any]]]]":
    """Trial id -> series -> column -> values, for the trials named; floats, or objects where a column is text."""
    import duckdb

    found: dict[str, dict[str, dict[str, NDArray[Any]]]] = {}
    with duckdb.connect() as connection:
        for trial_id in trial_ids:
            files = sorted((path / "trials" / trial_id).glob("*.parquet"))
            found[trial_id] = {
                file.stem: dict(connection.execute("SELECT * FROM read_parquet(?)", [str(file)]).fetchnumpy())
                for file in files
            }
    return found


LOAD_COLUMNS = "t_s|events_per_second|queries_per_second|rows_per_second|iops|phase"
WATCHED_COLUMNS = {
    "block_device": "t_s|[rwf]/s|[rwf]_await|%util",
    "host_cpu": "t_s|%idle|%iowait|%steal",
    "server_status": "t_s|Innodb_(data_fsyncs|log_waits|row_lock_time|buffer_pool_wait_free)/s",
}  # probe -> what an explanation needs of it


def read_load_series(path: Path, trial_ids: list[str]) -> "dict[str, dict[str, NDArray[Any]]]":
    """Trial id -> column -> values of the load's rates, for those trials that have them."""
    return _read_columns(path, trial_ids, "load", LOAD_COLUMNS)


def read_watched(path: Path, trial_ids: list[str]) -> "dict[str, dict[str, dict[str, NDArray[Any]]]]":
    """Trial id -> probe -> column -> values, of what the probes saw of the time in which an event waits."""
    return read_matching(path, trial_ids, WATCHED_COLUMNS)


def read_matching(
    path: Path, trial_ids: list[str], wanted: "Mapping[str, str]"
) -> "dict[str, dict[str, dict[str, NDArray[Any]]]]":
    """Trial id -> series -> column -> values, of the columns that a regular expression for each series matches whole.

    One query for each series, which of many trials is far quicker than one for each file.
    """
    found = {name: _read_columns(path, trial_ids, name, columns) for name, columns in wanted.items()}
    return {id_: {name: one[id_] for name, one in found.items() if id_ in one} for id_ in trial_ids}


def _read_columns(path: Path, trial_ids: list[str], series: str, columns: str) -> "dict[str, dict[str, NDArray[Any]]]":
    """Trial id -> column -> values of one series; ``columns`` is a regular expression. All in one query."""
    import duckdb
    import numpy as np

    ids = [id_ for id_ in trial_ids if (path / "trials" / id_ / f"{series}.parquet").is_file()]
    if not ids:
        return {}
    # Numbers for the files: a path beside every row would be larger than the rows.
    query = f"""
        SELECT number, COLUMNS('^({columns})$')
        FROM read_parquet($files, union_by_name = true, filename = true)
        JOIN (SELECT unnest($files) AS filename, unnest(range(len($files))) AS number) USING (filename)
    """  # noqa: S608 - our own expression
    files = [str(path / "trials" / id_ / f"{series}.parquet") for id_ in ids]
    with duckdb.connect() as connection:
        found = {
            name: _unmasked(values) for name, values in connection.execute(query, {"files": files}).fetchnumpy().items()
        }
    numbers = found.pop("number")
    order = np.argsort(numbers, kind="stable")
    parts = np.split(order, np.searchsorted(numbers[order], np.arange(1, len(ids))))
    return {
        id_: {name: values[part] for name, values in found.items()}
        for id_, part in zip(ids, parts, strict=True)
        if len(part)
    }


def series_names(path: Path, trial_ids: list[str]) -> list[str]:
    """The series that any of the trials has, by name."""
    return sorted({file.stem for id_ in trial_ids for file in (path / "trials" / id_).glob("*.parquet")})


def read_series_named(path: Path, name: str, trial_ids: list[str]) -> "dict[str, NDArray[Any]]":
    """Column -> values of one series, trials below each other in the order given; ``trial`` says whose a row is.

    A column that a trial lacks is NaN there; trials without the series have no row.
    """
    import duckdb
    import numpy as np

    ids = [id_ for id_ in trial_ids if (path / "trials" / id_ / f"{name}.parquet").is_file()]
    if not ids:
        return {"trial": np.array([], object)}
    query = """
        SELECT number, columns.* EXCLUDE (filename, file_row_number)
        FROM read_parquet($files, union_by_name = true, filename = true, file_row_number = true) AS columns
        JOIN (SELECT unnest($files) AS filename, unnest(range(len($files))) AS number) USING (filename)
        ORDER BY number, file_row_number
    """
    files = [str(path / "trials" / id_ / f"{name}.parquet") for id_ in ids]
    with duckdb.connect() as connection:
        columns = dict(connection.execute(query, {"files": files}).fetchnumpy())
    whose = np.array(ids, object)[columns.pop("number")]
    return {"trial": whose, **{column: _unmasked(values) for column, values in columns.items()}}


def _unmasked(values: "NDArray[Any]") -> "NDArray[Any]":
    import numpy as np

    if not isinstance(values, np.ma.MaskedArray):
        return values
    found: NDArray[Any] = values.data.copy()
    found[np.ma.getmaskarray(values)] = np.nan if found.dtype.kind == "f" else None
    return found


def write_series(path: Path, columns: "Mapping[str, Column]") -> None:
    """Write one series; without columns, or with columns of unlike lengths, nothing. Raises ``OSError``."""
    import duckdb
    import numpy as np

    table = {
        name: np.asarray(values) if _is_text(values) else np.asarray(values, float) for name, values in columns.items()
    }
    if not table or not all(len(values) == len(next(iter(table.values()))) for values in table.values()):
        return
    partial = path.with_suffix(".part")
    try:
        with duckdb.connect() as connection:
            connection.register("series", table)
            connection.execute("COPY series TO ? (FORMAT parquet)", [str(partial)])
    except duckdb.Error as error:
        raise OSError(errno.EIO, str(error), str(partial)) from None
    sync(partial)
    partial.rename(path)
    sync(path.parent)


def _is_text(values: "Column") -> bool:
    return len(values) > 0 and isinstance(values[0], str)
