"""Parquet files of many trials in one query, through files that were opened without following a link."""

import os
from collections.abc import Mapping
from contextlib import ExitStack
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbdyno.store.latencies import LATENCIES, LATENCY
from dbdyno.store.parts import DamageError, damaged, opened, see_that_it_is_as_written, sum_of, unread

if TYPE_CHECKING:
    import duckdb
    from numpy.typing import NDArray

Sums = Mapping[str, Mapping[str, str]]  # trial id -> file -> SHA-256

FILES_MAX = 256  # open at once; a process may have 1024
ROWS_MAX = 10**7  # of one file: eleven days of ten samples a second
TEXT_COLUMNS = {"phase"}
AXES = {LATENCIES: LATENCY}  # what the rows of a file go by, where that is not the time
_REMEDY = (
    "put it back from a copy, delete it (the report is then made without this series of the trial), "
    "or go on with the run by --resume, which measures the trial's block again"
)


def read_files(
    path: Path, trial_ids: list[str], series: str, columns: str, sums: Sums
) -> "dict[str, dict[str, NDArray[Any]]]":
    """Trial id -> column -> values of one series that all these trials have; ``columns`` is a regular expression.

    ``sums`` are what the event log says of the files. A query over many files is far quicker than one
    for each. Where it can't be answered each file is asked alone, to find which is at fault. Raises ``DamageError``.
    """
    try:
        return _read(path, trial_ids, series, columns, sums)
    except DamageError:
        if len(trial_ids) > 1:
            each = (read_files(path, [trial], series, columns, sums) for trial in trial_ids)
            return {id_: one for found in each for id_, one in found.items()}
        raise


def _read(path: Path, ids: list[str], series: str, columns: str, sums: Sums) -> "dict[str, dict[str, NDArray[Any]]]":
    import duckdb

    first, axis = path / "trials" / ids[0] / f"{series}.parquet", AXES.get(series, "t_s")
    # Rows come in the order of the files: DuckDB's preserve_insertion_order, on unless it is set off.
    query = f"SELECT COLUMNS('^({columns})$') FROM read_parquet($files, union_by_name = true)"  # noqa: S608 - our own
    with ExitStack() as closing, duckdb.connect() as connection:
        files = _handles(path, ids, series, sums, closing)
        try:
            lengths = _lengths(connection, files)
            rows = connection.execute(query, {"files": files}).fetchnumpy()
        except duckdb.BinderException:
            raise damaged(first, f"it holds no column {axis}", _REMEDY) from None
        except (duckdb.Error, ValueError, MemoryError) as error:
            why = str(error) if isinstance(error, ValueError) else "it is no Parquet file, or not all of one"
            raise damaged(first, why, _REMEDY) from None
    found = {name: _unmasked(values) for name, values in rows.items()}
    for name, values in found.items():
        text = all(value is None or isinstance(value, str) for value in values) if name in TEXT_COLUMNS else False
        if values.dtype.kind not in "fiu" and not text:
            raise damaged(first, f"its column {name} holds no numbers", _REMEDY)
    if axis not in found:
        raise damaged(first, f"it holds no column {axis}", _REMEDY)
    ends = list(accumulate(lengths))
    return {
        id_: {name: values[end - length : end] for name, values in found.items()}
        for id_, length, end in zip(ids, lengths, ends, strict=True)
        if length
    }


def _handles(path: Path, ids: list[str], series: str, sums: Sums, closing: ExitStack) -> list[str]:
    """Names of the files by which this process has them open; each is as it was when its trial was finished."""
    file, names = f"{series}.parquet", []
    for id_ in ids:
        try:
            handle = opened(path, f"trials/{id_}/{file}")
            closing.callback(os.close, handle)
            if recorded := sums.get(id_, {}).get(file):
                see_that_it_is_as_written(sum_of(handle), recorded)
        except (OSError, ValueError) as error:
            raise unread(path / "trials" / id_ / file, error, _REMEDY) from None
        names.append(f"/dev/fd/{handle}")
    return names


def _lengths(connection: "duckdb.DuckDBPyConnection", files: list[str]) -> list[int]:
    """Return how many rows each file says that it has; ``ValueError`` where that is more than a trial can have."""
    query = "SELECT file_name, num_rows FROM parquet_file_metadata($files)"
    rows = dict(connection.execute(query, {"files": files}).fetchall())
    if max(rows.values()) > ROWS_MAX:
        raise ValueError(f"it claims to have {max(rows.values())} rows")
    return [rows[file] for file in files]


def _unmasked(values: "NDArray[Any]") -> "NDArray[Any]":
    import numpy as np

    if not isinstance(values, np.ma.MaskedArray):
        return values
    found: NDArray[Any] = values.data.copy()
    found[np.ma.getmaskarray(values)] = np.nan if found.dtype.kind == "f" else None
    return found
