"""Columns of one length as CSV or Parquet, for other programs."""

import csv
from io import StringIO
from typing import TYPE_CHECKING, Any

from dbdyno._native import write_parquet
from dbdyno.model.printable import csv_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    Columns = Mapping[str, Sequence[Any] | NDArray[Any]]


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
