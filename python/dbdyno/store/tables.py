"""Columns of one length as CSV or Parquet, for other programs."""

import csv
import tempfile
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    Columns = Mapping[str, Sequence[Any] | NDArray[Any]]


def as_csv(columns: "Columns") -> str:
    """Return a heading and a line per row; what is unknown is an empty cell, yes and no are true and false."""
    written = StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*([_cell(value) for value in values] for values in columns.values()), strict=True))
    return written.getvalue()


def _cell(value: object) -> object:
    if value is None or value != value:  # noqa: PLR0124 - not a number
        return ""
    return str(value).lower() if isinstance(value, bool) else value


def as_parquet(columns: "Columns") -> bytes:
    """Return the columns as one Parquet file; what is unknown is NaN."""
    import duckdb
    import numpy as np

    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as connection:
        file = Path(folder) / "table.parquet"
        connection.register("columns", {name: np.asarray(values) for name, values in columns.items()})
        connection.execute("COPY columns TO ? (FORMAT parquet)", [str(file)])
        return file.read_bytes()
