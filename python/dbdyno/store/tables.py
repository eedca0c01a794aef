"""Columns of one length as CSV or Parquet, for other programs."""

import csv
import errno
import os
import re
import tempfile
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbdyno.model.printable import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    Columns = Mapping[str, Sequence[Any] | NDArray[Any]]

_ERRNO = re.compile(r'"errno": *"(\d+)"')


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

    with tempfile.TemporaryFile() as file, duckdb.connect() as connection:
        connection.register("columns", {name: np.asarray(values) for name, values in columns.items()})
        try:
            connection.execute("COPY columns TO ? (FORMAT parquet, USE_TMP_FILE false)", [f"/dev/fd/{file.fileno()}"])
        except duckdb.Error as error:
            raise as_os_error(error, Path(tempfile.gettempdir())) from None
        file.seek(0)
        return file.read()


def as_os_error(error: Exception, path: Path) -> OSError:
    """What kept DuckDB from writing to ``path``; it says the system's number inside its own text."""
    found = _ERRNO.search(str(error))
    number = int(found[1]) if found else errno.EIO
    return OSError(number, os.strerror(number) if found else one_line(str(error)), str(path))
