"""``dbdyno report DIR``: verdicts from a run folder alone, on any machine."""

import sys
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
    folder: Path = typer.Argument(metavar="DIR", help="The run folder."),
    format_: Format = typer.Option(Format.TEXT, "--format", help="How to print it."),
    html: Path | None = typer.Option(None, metavar="FILE", help="Write a self-contained HTML page as well."),
    every_pair: bool = typer.Option(
        False, "--every-pair", help="Verdicts of all pairs as well, marked as not planned."
    ),
) -> None:
    """Print the verdicts of a run, and write its HTML page."""
    show(folder, format_, html, every_pair=every_pair)


def show(folder: Path, format_: Format = Format.TEXT, html: Path | None = None, *, every_pair: bool = False) -> None:
    """Print the verdicts of a run folder; with ``html`` write its page there too."""
    from dbdyno.analysis.analyse import analyse
    from dbdyno.analysis.pairs import plans_every_pair
    from dbdyno.report import json, markdown, text
    from dbdyno.store.run_folder import read_load_series, read_run, read_series, read_watched

    run = read_run(folder)
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

        _refuse_to_overwrite(html)
        series = read_series(folder, ids)
        try:
            html.write_text(page.render(run, analysis, series), encoding="utf-8")
        except OSError as error:
            raise UserError(f"{html}: {error.strerror}") from None
        typer.echo(f"HTML report: {html}", err=format_ is not Format.TEXT)


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
