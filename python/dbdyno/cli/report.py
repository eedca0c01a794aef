"""``dbdyno report DIR``: verdicts from a run folder alone, on any machine."""

import sys
from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from pathlib import Path

import typer

from dbdyno.errors import UserError


class Format(StrEnum):
    """How a report is printed."""

    TEXT = "text"
    MARKDOWN = "markdown"
    JSON = "json"


def report(
    folders: list[Path] = typer.Argument(metavar="DIR...", help="The run folder; with several, all on one page."),
    format_: Format = typer.Option(Format.TEXT, "--format", help="How to print it; csv and parquet: a row per trial."),
    html: Path | None = typer.Option(None, metavar="FILE", help="Write a self-contained HTML page as well."),
    every_pair: bool = typer.Option(
        False, "--every-pair", help="Verdicts of all pairs as well, marked as not planned."
    ),
    prices: Path | None = typer.Option(None, metavar="STUDY", help="Take prices from [cost] of this study file."),
) -> None:
    """Print the verdicts of a run, or of several with a ranking over them, and write their HTML page."""
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
    from dbdyno.analysis.analyse import analyse
    from dbdyno.analysis.pairs import plans_every_pair
    from dbdyno.report import json, markdown, text
    from dbdyno.store.run_folder import read_load_series, read_run, read_series, read_watched

    run = read_run(folder)
    if prices is not None:
        from dbdyno.plan.prices import prices_for
        from dbdyno.study.load import load_study

        run = replace(run, prices=prices_for(load_study(prices), run))
    if every_pair and plans_every_pair(run.design):
        typer.echo("the study plans every pair: its verdicts are those of all of them", err=True)
    ids = [trial.id for trial in run.trials]
    load_series, watched = read_load_series(folder, ids), read_watched(folder, ids)
    analysis = analyse(run, each_pair=every_pair, load_series=load_series, watched=watched)
    if format_ is Format.TEXT and sys.stdout.isatty():
        from rich.console import Console

        Console().print(text.Report(run, analysis))
    else:
        renderers = {Format.TEXT: text.render, Format.MARKDOWN: markdown.render, Format.JSON: json.render}
        sys.stdout.write(renderers[format_](run, analysis).rstrip("\n") + "\n")
    if html is not None:
        from dbdyno.report import html as page

        write_page(html, lambda: page.render(run, analysis, read_series(folder, ids)), format_)


def write_page(path: Path, rendered: Callable[[], str], format_: Format) -> None:
    """Write the page and say where. Raises ``UserError`` where it can't be written."""
    _refuse_to_overwrite(path)
    try:
        path.write_text(rendered(), encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    typer.echo(f"HTML report: {path}", err=format_ is not Format.TEXT)


def _refuse_to_overwrite(path: Path) -> None:
    """Raises ``UserError`` where the page would replace something that is no page."""
    try:
        with path.open("rb") as file:
            if not file.read(64).lstrip().lower().startswith((b"<!doctype html", b"<html")):
                raise UserError(f"{path} exists and is no HTML page; name another file")
    except FileNotFoundError:
        return
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
