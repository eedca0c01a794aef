"""The Parquet file of one series of a trial, read without following a link."""

import hashlib
import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbdyno._native import read_parquet
from dbdyno.store.latencies import LATENCIES, LATENCY
from dbdyno.store.parts import damaged, read_part, see_that_it_is_as_written, unread

if TYPE_CHECKING:
    from numpy.typing import NDArray

Sums = Mapping[str, Mapping[str, str]]  # trial id -> file -> SHA-256

ROWS_MAX = 10**7  # of one file: eleven days of ten samples a second
BYTES_MAX = 2**31  # of one file
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

    A file without rows is left out. ``sums`` are what the event log says of the files. Raises ``DamageError``.
    """
    wanted = cache(re.compile(columns).fullmatch)
    read = {id_: _read(path, id_, series, wanted, sums) for id_ in trial_ids}
    return {id_: found for id_, found in read.items() if len(found[AXES.get(series, "t_s")])}


def _read(path: Path, id_: str, series: str, wanted: Callable[[str], object], sums: Sums) -> "dict[str, NDArray[Any]]":
    name, axis = f"{series}.parquet", AXES.get(series, "t_s")
    part = f"trials/{id_}/{name}"
    try:
        content = read_part(path, part, BYTES_MAX)
        if recorded := sums.get(id_, {}).get(name):
            see_that_it_is_as_written(hashlib.sha256(content).hexdigest(), recorded)
        columns = read_parquet(content, ROWS_MAX, wanted)
        found = {column: _values(column, values) for column, values in columns.items()}
    except (OSError, ValueError) as error:
        raise unread(path / part, error, _REMEDY) from None
    if axis not in found:
        raise damaged(path / part, f"it holds no column {axis}", _REMEDY)
    return found


def _values(column: str, values: bytearray | list[str | None] | None) -> "NDArray[Any]":
    import numpy as np

    if isinstance(values, bytearray):
        return np.frombuffer(values)
    if values is None or column not in TEXT_COLUMNS:
        raise ValueError(f"its column {column} holds no numbers")
    return np.array(values, object)
