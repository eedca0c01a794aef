"""What a run says as rows of plain values, before any data frame."""

import importlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from dbdyno.analysis.analyse import Analysis
from dbdyno.errors import UserError
from dbdyno.model.printable import NO_BREAK, printable
from dbdyno.report.document import plain
from dbdyno.report.sections.results import treatment_json
from dbdyno.report.sections.verdicts import verdict_json
from dbdyno.report.sentences import verdict_sentence
from dbdyno.store.records import Run, Trial

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    from numpy.typing import NDArray

    Column = Sequence[Any] | NDArray[Any]


_NESTED = {"levels", "overload"}  # of a treatment in JSON: no plain values


def counting(run: Run, analysis: Analysis) -> list[Trial]:
    """Return the trials that verdicts rest on, in run order."""
    ids = {trial.id for row in analysis.blocks.trials.values() for trial in row.values()}
    return [trial for trial in run.trials if trial.id in ids]


def trial_rows(run: Run, analysis: Analysis) -> Iterator[dict[str, Any]]:
    """Yield each finished trial: where it stood, its factors and what is fixed to its host, and its metrics."""
    counts = {trial.id for trial in counting(run, analysis)}
    treatments, fleet = {treatment.id: treatment for treatment in run.design.tried}, run.design.fleet
    for trial in run.trials:
        treatment = treatments[trial.treatment]
        row = {
            "trial": trial.id,
            "block": trial.block,
            "attempt": trial.attempt,
            "position": trial.position,
            **({"host": trial.host} if fleet else {}),
            "treatment": trial.treatment,
            "label": treatment.label,
            "started_at": trial.started_at,
            "counts": trial.id in counts,
            "disturbed": trial.disturbed,
            **trial.metrics,
        }
        fixed = {name: of.get(trial.host, "") for name, of in fleet.levels.items()} if fleet else {}
        yield _with_factors(row, {**treatment.levels, **fixed}, after="label")


def verdict_rows(analysis: Analysis) -> Iterator[dict[str, Any]]:
    """Yield each planned comparison, as the JSON report has it, with its sentence; its remarks are one text."""
    for verdict in analysis.verdicts:
        row = verdict_json(verdict, analysis)
        yield {**row, "remarks": " ".join(row["remarks"]), "sentence": plain(verdict_sentence(verdict, analysis))}


def treatment_rows(run: Run, analysis: Analysis) -> Iterator[dict[str, Any]]:
    """Yield each treatment, as the JSON report has it, a column for each factor."""
    levels = {treatment.id: treatment.levels for treatment in run.design.treatments}
    for treatment in analysis.treatments:
        row = {key: value for key, value in treatment_json(treatment, analysis).items() if key not in _NESTED}
        yield _with_factors(row, levels[treatment.id], after="label")


def _with_factors(row: Mapping[str, Any], levels: Mapping[str, str], after: str) -> dict[str, Any]:
    """Put factors into a row by their names; one that is called as a column of ours gets ``factor.`` before it."""
    placed = {}
    for name, value in row.items():
        placed[name] = value
        if name == after:
            placed |= {f"factor.{factor}" if factor in row else factor: level for factor, level in levels.items()}
    return placed


# Columns as a data frame of pandas or of polars, whichever the caller asks for; dbdyno depends on neither.


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
        {printable(name): _printable_column(column) for name, column in columns.items()}
    )
    return frame


def _printable_column(column: "Column") -> "Column":
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
    all_rows = list(rows)
    names = dict.fromkeys(name for row in all_rows for name in row)
    return {name: _column([row.get(name) for row in all_rows]) for name in names}


def _column(values: list[Any]) -> "Column":
    """Return numbers as an array, what is unknown as NaN; anything else as it is."""
    known = [value for value in values if value is not None]
    if known and all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in known):
        if len(known) == len(values) and all(isinstance(value, int) for value in known):
            return np.array(values, np.int64)
        return np.array([np.nan if value is None else value for value in values], float)
    return values
