"""Columns as a data frame of pandas or of polars, whichever the caller asks for; dbdyno depends on neither."""

import importlib
from collections.abc import Iterable, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from dbdyno.errors import UserError
from dbdyno.model.printable import NO_BREAK, printable

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    from numpy.typing import NDArray

    Column = Sequence[Any] | NDArray[Any]

Kind = Literal["pandas", "polars"]
_KEPT = f"\n\t{NO_BREAK}"  # of what is not printable
_KINDS: tuple[Kind, ...] = ("pandas", "polars")


@overload
def frame_of(columns: "Mapping[str, Column]", kind: Literal["pandas"]) -> "pd.DataFrame": ...
@overload
def frame_of(columns: "Mapping[str, Column]", kind: Literal["polars"]) -> "pl.DataFrame": ...
@overload
def frame_of(columns: "Mapping[str, Column]", kind: Kind) -> "pd.DataFrame | pl.DataFrame": ...
def frame_of(columns: "Mapping[str, Column]", kind: Kind) -> "pd.DataFrame | pl.DataFrame":
    """Return columns of one length as a data frame, whose texts are fit to print.

    Raises ``UserError`` where there is no such package.
    """
    if kind not in _KINDS:
        raise UserError(f'frame is {kind!r}; allowed are "pandas" and "polars"')
    package = _package(kind)
    frame: pd.DataFrame | pl.DataFrame = package.DataFrame(
        {printable(name): _shown(column) for name, column in columns.items()}
    )
    return frame


def _shown(column: "Column") -> "Column":
    if isinstance(column, np.ndarray) and column.dtype.kind != "O":
        return column
    return [printable(value, keep=_KEPT) if isinstance(value, str) else value for value in column]


def _package(kind: Kind) -> ModuleType:
    try:
        return importlib.import_module(kind)
    except ImportError:
        other = next(name for name in _KINDS if name != kind)
        raise UserError(
            f'the Python package {kind} is not installed: install it by "pip install {kind}", or ask for'
            f' frame="{other}"'
        ) from None


def columns_of(rows: Iterable[Mapping[str, Any]]) -> "dict[str, Column]":
    """Return rows as columns, in the order in which names first appear; a number that a row lacks is NaN."""
    found = list(rows)
    names = dict.fromkeys(name for row in found for name in row)
    return {name: _column([row.get(name) for row in found]) for name in names}


def _column(values: list[Any]) -> "Column":
    """Return numbers as an array, what is unknown as NaN; anything else as it is."""
    given = [value for value in values if value is not None]
    if given and all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in given):
        if len(given) == len(values) and all(isinstance(value, int) for value in given):
            return np.array(values, np.int64)
        return np.array([np.nan if value is None else value for value in values], float)
    return values
