"""``dbdyno.open_run(DIR)``: a run folder in a notebook as rows, data frames, charts and a summary."""

import importlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from markupsafe import Markup

from dbdyno.analysis.analyse import Analysis, analyse
from dbdyno.errors import UserError
from dbdyno.model.design import Design
from dbdyno.model.printable import NO_BREAK, html_text, one_line, printable
from dbdyno.report.charts import forest, interaction, percentiles, strip
from dbdyno.report.contents import document
from dbdyno.report.document import plain
from dbdyno.report.render import html, text
from dbdyno.report.sections.results import results, treatment_json
from dbdyno.report.sections.stopped import stopped_lines
from dbdyno.report.sections.verdicts import verdict_json
from dbdyno.report.sentences import NO_VERDICT, evidence, verdict_sentence
from dbdyno.report.source import marked
from dbdyno.store.others import Budget, last_resort
from dbdyno.store.records import Run, Trial
from dbdyno.store.run_folder import read_run
from dbdyno.store.series import read_analysed, read_series, read_series_named, series_names

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    from numpy.typing import NDArray


# What a run says as rows of plain values, before any data frame.


if TYPE_CHECKING:
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


# The charts of the HTML report, by name, as a notebook shows them.


@dataclass(frozen=True)
class NotebookChart:
    """One chart: a notebook draws it, ``svg`` is its text."""

    title: str
    svg: str

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        narrow = Markup(self.svg.replace("<svg ", '<svg style="max-width: 100%; height: auto" ', 1))  # noqa: S704 - ours
        return str(Markup("<figure><figcaption>{}</figcaption>{}</figure>").format(html_text(self.title), narrow))


def charts_of(run: Run, analysis: Analysis) -> dict[str, NotebookChart]:
    """Return the charts of this run by name, drawn as in a wide window.

    They are called ``effect``, ``close_up``, ``interaction``, ``interaction_2``, ..., ``latency`` and ``order``.
    """
    names = ("effect", "close_up")
    pictures = {
        name: NotebookChart(chart.caption or "Effects and their 95 % intervals", str(chart.drawn("wide")))
        for name, chart in zip(names, forest.charts(analysis), strict=False)
    }
    for place, chart in enumerate(interaction.charts(analysis), 1):
        pictures["interaction" if place == 1 else f"interaction_{place}"] = NotebookChart(
            chart.caption, str(chart.drawn("wide"))
        )
    if percentiles.shown(analysis):
        latency = percentiles.chart(percentiles.shown(analysis), run.design)
        pictures["latency"] = NotebookChart(latency.caption, str(latency.drawn("wide")))
    order = strip.chart(run, analysis)
    if order is not None:
        pictures["order"] = NotebookChart("Every trial in the order it ran", str(order.drawn("wide")))
    return pictures


# What a notebook shows of a run: its verdicts, the effect chart and the table. Every text of the run is escaped.


def summary_html(run: Run, analysis: Analysis, charts: Mapping[str, NotebookChart]) -> str:
    """Return a fragment of HTML without style or script."""
    parts = [Markup("<h3>{}</h3>").format(one_line(marked(run.title, run)))]
    if run.question:
        parts.append(Markup("<p><em>{}</em></p>").format(one_line(run.question)))
    items = [
        Markup("<li>{}<br><small>{}</small></li>").format(
            one_line(plain(verdict_sentence(verdict, analysis))), one_line(evidence(verdict))
        )
        for verdict in analysis.verdicts
    ]
    parts.append(Markup("<ul>{}</ul>").format(_join(items)) if items else html_text(NO_VERDICT))
    parts += [Markup("<p>{}</p>").format(one_line(line)) for line in stopped_lines(run, analysis)]
    if "effect" in charts:
        parts.append(Markup(charts["effect"]._repr_html_()))  # noqa: S704 - its texts are escaped
    table = results(analysis)
    parts.append(_table(table.headings, table.rows))
    return str(_join(parts))


def _table(headings: Iterable[object], rows: Iterable[Iterable[object]]) -> Markup:
    head = _join(Markup("<th>{}</th>").format(one_line(str(heading))) for heading in headings)
    body = _join(
        Markup("<tr>{}</tr>").format(_join(Markup("<td>{}</td>").format(one_line(str(cell))) for cell in row))
        for row in rows
    )
    return Markup("<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>").format(head, body)


def _join(parts: Iterable[Markup]) -> Markup:
    return Markup("\n").join(parts)


class OpenedRun:
    """A run folder, read when it is opened; nothing is written, and no host is looked at.

    Frames are pandas' unless ``frame="polars"`` is said. Differences are fractions, as in the JSON report: .03 for
    +3 %; what is unknown is NaN, and an interval that the data cannot give is -inf to inf.
    """

    def __init__(self, folder: str | PathLike[str]) -> None:
        self.folder = Path(folder)
        with last_resort(self.folder):
            self.record: Run = read_run(self.folder, budget=Budget())

    @property
    def title(self) -> str:
        """The study's title."""
        return one_line(self.record.title)

    @property
    def is_simulated(self) -> bool:
        """Whether its figures were computed by the simulator, none of them measured."""
        return self.record.is_simulated

    @property
    def study(self) -> dict[str, Any]:
        """The study as it was run: section -> field -> value, or the levels of a factor."""
        return self.record.study

    @property
    def design(self) -> Design:
        """Treatments, factors, baseline, planned comparisons, margin, metric, seed."""
        return self.record.design

    @cached_property
    def analysis(self) -> Analysis:
        """Everything that a report is written from."""
        with last_resort(self.folder):
            return analyse(self.record, **read_analysed(self.folder, self.record))

    @cached_property
    def charts(self) -> dict[str, NotebookChart]:
        """The report's charts by name: ``effect``, ``order``, and others where there is something to show."""
        with last_resort(self.folder):
            return charts_of(self.record, self.analysis)

    @cached_property
    def series_names(self) -> list[str]:
        """The series that any finished trial has, such as ``load`` and ``block_device``."""
        return series_names(self.folder, [trial.id for trial in self.record.trials])

    @overload
    def trials(self, frame: Literal["pandas"] = ...) -> "pd.DataFrame": ...
    @overload
    def trials(self, frame: Literal["polars"]) -> "pl.DataFrame": ...
    def trials(self, frame: Kind = "pandas") -> "pd.DataFrame | pl.DataFrame":
        """Return a row for each finished trial in run order: its place, factors, whether it ``counts``, all metrics."""
        with last_resort(self.folder):
            return frame_of(columns_of(trial_rows(self.record, self.analysis)), frame)

    @overload
    def verdicts(self, frame: Literal["pandas"] = ...) -> "pd.DataFrame": ...
    @overload
    def verdicts(self, frame: Literal["polars"]) -> "pl.DataFrame": ...
    def verdicts(self, frame: Kind = "pandas") -> "pd.DataFrame | pl.DataFrame":
        """Return a row for each planned comparison; columns as in the JSON report, and the whole ``sentence``."""
        with last_resort(self.folder):
            return frame_of(columns_of(verdict_rows(self.analysis)), frame)

    @overload
    def table(self, frame: Literal["pandas"] = ...) -> "pd.DataFrame": ...
    @overload
    def table(self, frame: Literal["polars"]) -> "pl.DataFrame": ...
    def table(self, frame: Kind = "pandas") -> "pd.DataFrame | pl.DataFrame":
        """Return the table below the verdicts: a row for each treatment, means over the trials that count."""
        with last_resort(self.folder):
            return frame_of(columns_of(treatment_rows(self.record, self.analysis)), frame)

    @overload
    def series(self, name: str, trial: str | None = ..., frame: Literal["pandas"] = ...) -> "pd.DataFrame": ...
    @overload
    def series(self, name: str, trial: str | None = ..., *, frame: Literal["polars"]) -> "pl.DataFrame": ...
    def series(self, name: str, trial: str | None = None, frame: Kind = "pandas") -> "pd.DataFrame | pl.DataFrame":
        """Return a series of one trial, or of all that count below each other; ``t_s`` is seconds since the start.

        The columns ``trial`` and ``treatment`` say whose a row is. Raises ``UserError`` for a trial or a series that
        this run does not have.
        """
        treatments = {trial_record.id: trial_record.treatment for trial_record in self.record.trials}
        if trial is not None and trial not in treatments:
            raise UserError(f"{self.folder} has no finished trial {trial!r}; trials() lists them")
        if name not in self.series_names:
            raise UserError(
                f"{self.folder} has no series {name!r}; there are: {', '.join(self.series_names) or 'none'}"
            )
        wanted = (
            [trial] if trial is not None else [trial_record.id for trial_record in counting(self.record, self.analysis)]
        )
        with last_resort(self.folder):
            columns = read_series_named(self.folder, name, wanted)
            whose = columns.pop("trial")
            return frame_of({"trial": whose, "treatment": [treatments[id_] for id_ in whose], **columns}, frame)

    def page(self) -> str:
        """Return the whole HTML report, time series included, as ``dbdyno report DIR --html FILE`` writes it."""
        with last_resort(self.folder):
            series = read_series(self.folder, [trial.id for trial in self.record.trials])
            return html.render(document(self.record, self.analysis, series))

    def __str__(self) -> str:
        """Return the report as ``dbdyno report DIR --details`` prints it."""
        with last_resort(self.folder):
            return text.render(document(self.record, self.analysis))

    def __repr__(self) -> str:
        """Name the folder and what is in it."""
        trials = f"{len(self.record.trials)}{' simulated' * self.is_simulated} trials"
        return printable(f"<dbdyno run {str(self.folder)!r}: {trials}, {self.record.ended}>")

    def _repr_html_(self) -> str:
        with last_resort(self.folder):
            return summary_html(self.record, self.analysis, self.charts)
