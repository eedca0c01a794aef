"""``dbdyno report DIR``: verdicts from a run folder alone, on any machine."""

import sys
from dataclasses import replace
from enum import StrEnum
from pathlib import Path

import typer

from dbdyno.cli.formats import ReportFormat
from dbdyno.cli.page_file import write_page
from dbdyno.errors import UserError


class Format(StrEnum):
    """How a report is printed."""

    TEXT = "text"
    MARKDOWN = "markdown"
    JSON = "json"


def report(
    folders: list[Path] = typer.Argument(metavar="DIR...", help="The run folder; with several, all on one page."),
    printed: ReportFormat = typer.Option(
        ReportFormat.TEXT, "--format", help="How to print it; csv, parquet: a row per trial."
    ),
    html: Path | None = typer.Option(None, metavar="FILE", help="Write a self-contained HTML page as well."),
    every_pair: bool = typer.Option(
        False, "--every-pair", help="Verdicts of all pairs as well, marked as not planned."
    ),
    prices: Path | None = typer.Option(None, metavar="STUDY", help="Take prices from [cost] of this study file."),
) -> None:
    """Print the verdicts of a run, or of several with a ranking over them, and write their HTML page."""
    if printed in {ReportFormat.CSV, ReportFormat.PARQUET}:
        from dbdyno.cli.report_trials import show_trials

        if html is not None:
            raise UserError(f"--format {printed} is a table without a report; leave out --html")
        show_trials(folders, parquet=printed is ReportFormat.PARQUET)
        return
    format_ = Format(printed)
    if len(folders) == 1:
        show(folders[0], format_, html, every_pair=every_pair, prices=prices)
        return
    from dbdyno.cli.report_several import show_several

    if every_pair or prices:
        raise UserError(f"{'--every-pair' if every_pair else '--prices'} is for one run; give one folder")
    show_several(folders, format_, html)


def show(
    folder: Path,
    format_: Format = Format.TEXT,
    html: Path | None = None,
    *,
    every_pair: bool = False,
    prices: Path | None = None,
) -> None:
    """Print the verdicts of a run folder; with ``html`` write its page there too."""
    from dbdyno.analysis.folder import analyse_folder
    from dbdyno.analysis.pairs import plans_every_pair
    from dbdyno.report import json, markdown, text
    from dbdyno.store.run_folder import read_run
    from dbdyno.store.series import read_matching

    run = read_run(folder)
    if prices is not None:
        from dbdyno.plan.prices import prices_for
        from dbdyno.study.load import load_study

        run = replace(run, prices=prices_for(load_study(prices), run))
    if every_pair and plans_every_pair(run.design):
        typer.echo("the study plans every pair: its verdicts are those of all of them", err=True)
    analysis = analyse_folder(folder, run, each_pair=every_pair)
    if format_ is Format.TEXT and sys.stdout.isatty():
        from rich.console import Console

        Console().print(text.Report(run, analysis))
    else:
        renderers = {Format.TEXT: text.render, Format.MARKDOWN: markdown.render, Format.JSON: json.render}
        sys.stdout.write(renderers[format_](run, analysis).rstrip("\n") + "\n")
    if html is not None:
        from dbdyno.report import html as page
        from dbdyno.report.panels import columns_drawn

        ids = [trial.id for trial in run.trials]
        write_page(
            html,
            lambda: page.render(run, analysis, read_matching(folder, ids, columns_drawn())),
            aside=format_ is not Format.TEXT,
        )
