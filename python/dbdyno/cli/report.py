"""``dbdyno report DIR``: verdicts from a run folder alone, on any machine."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dbdyno.cli.outcome import ANNOTATIONS, FAIL_IF, JUNIT, check_conditions, conclude
from dbdyno.cli.output import DETAILS, Format, ReportFormat, refuse_to_overwrite, with_json, write_whole
from dbdyno.cli.show import SAFETY, members, show, show_several
from dbdyno.cli.suggestions import run_folders, studies
from dbdyno.cli.values import path_of
from dbdyno.errors import UserError

if TYPE_CHECKING:
    from dbdyno.analysis.analyse import Analysis
    from dbdyno.store.records import Run


# Writing a run's figures for Prometheus, whole or not at all: a textfile collector may read at any moment.


BEGINNING = (b"# help dbdyno_",)
PROMETHEUS = typer.Option(
    None, "--prometheus", parser=path_of, metavar="FILE", help="Write the figures in Prometheus's text format as well."
)


def write_prometheus(path: Path, folders: list[Path], runs: "list[tuple[Run, Analysis]]") -> None:
    """Write the figures of runs, of one folder each. Raises ``UserError``, or ``HostError`` where the disk is full."""
    from dbdyno.report.prometheus import Exported, render
    from dbdyno.store.others import last_resort

    names = [Path(os.path.realpath(folder)).name for folder in folders]
    labels = names if len(set(names)) == len(names) else list(map(str, folders))
    exported = [Exported(label, *one) for label, one in zip(labels, runs, strict=True)]
    with last_resort(*folders):
        content = render(exported).encode("utf-8", "replace")
    write_whole(path, content)


def check_prometheus(path: Path | None) -> None:
    """Raises ``UserError`` where a textfile collector would pass the file over, or it would replace another."""
    if path is None:
        return
    if path.suffix != ".prom":
        raise UserError(f"--prometheus {path}: a textfile collector reads *.prom alone; name it {path.name}.prom")
    refuse_to_overwrite(path, BEGINNING, "holds no figures of dbdyno's")


def report(
    folders: list[Path] = typer.Argument(
        parser=path_of,
        metavar="DIR...",
        help="The run folder; with several, all on one page.",
        autocompletion=run_folders,
    ),
    printed: ReportFormat = typer.Option(
        ReportFormat.TEXT, "--format", help="How to print it; csv, parquet: a row per trial."
    ),
    html: Path | None = typer.Option(
        None, parser=path_of, metavar="FILE", help="Write a self-contained HTML page as well."
    ),
    json_: bool = typer.Option(False, "--json", help="The same as --format json."),
    details: bool = DETAILS,
    every_pair: bool = typer.Option(
        False, "--every-pair", help="Verdicts of all pairs as well, marked as not planned."
    ),
    prices: Path | None = typer.Option(
        None,
        parser=path_of,
        metavar="STUDY",
        help="Take prices from [cost] of this study file.",
        autocompletion=studies,
    ),
    safety: Path | None = SAFETY,
    fail_if: list[str] = FAIL_IF,
    junit: Path | None = JUNIT,
    annotations: bool = ANNOTATIONS,
    prometheus: Path | None = PROMETHEUS,
) -> None:
    """Print the result of a run, or of several with a ranking over them, and write their HTML page."""
    printed = with_json(printed, json_=json_)
    if printed in {ReportFormat.CSV, ReportFormat.PARQUET}:
        if html is not None or prometheus is not None:
            option = "--html" if html is not None else "--prometheus"
            raise UserError(f"--format {printed} is a table without a report; leave out {option}")
        show_trials(folders, parquet=printed is ReportFormat.PARQUET)
        return
    check_conditions(fail_if, junit)
    if html is not None:
        refuse_to_overwrite(html)
    check_prometheus(prometheus)
    format_ = Format(printed)
    if len(folders) > 1 and (every_pair or prices or safety):
        option = "--every-pair" if every_pair else "--prices" if prices else "--safety"
        raise UserError(f"{option} is for one run; give one folder")
    if len(folders) == 1:
        more = {"every_pair": every_pair, "details": details}
        shown = show(folders[0], format_, html, prices=prices, safety=safety, **more)
    else:
        shown = show_several(folders, format_, html, details=details)
    if prometheus is not None:
        write_prometheus(prometheus, folders, shown.runs)
    conclude(shown.document, fail_if, junit, annotations=annotations, aside=format_ is Format.JSON)


# ``dbdyno report DIR... --format csv | parquet``: a row for each finished trial.


def show_trials(folders: list[Path], *, parquet: bool) -> None:
    """Write the table to standard output; of several runs, their names are its first column.

    Raises:
        UserError: Parquet would go to a terminal, or a folder can't be read.

    """
    from dbdyno.notebook.rows import columns_of, trial_rows
    from dbdyno.store.others import last_resort
    from dbdyno.store.tables import as_csv, as_parquet

    if parquet and sys.stdout.isatty():
        raise UserError("parquet is no text: send it into a file, as by > trials.parquet")
    runs = members(folders)
    several = len(runs) > 1
    with last_resort(*folders):
        columns = columns_of(
            {**({"run": one.name} if several else {}), **row}
            for one in runs
            for row in trial_rows(one.run, one.analysis)
        )
        if parquet:
            sys.stdout.buffer.write(as_parquet(columns))
        else:
            sys.stdout.write(as_csv(columns))
