"""``dbdyno compare DIR DIR``: two runs, before and after a change."""

import os
from pathlib import Path

import typer

from dbdyno.cli.output import Format, print_document, refuse_to_overwrite, with_json, write_page
from dbdyno.cli.report import ANNOTATIONS, FAIL_IF, JUNIT, check_conditions, conclude
from dbdyno.cli.show import runs_in
from dbdyno.cli.suggestions import run_folders
from dbdyno.cli.values import fraction_of, path_of
from dbdyno.errors import UserError


def compare(
    before: Path = typer.Argument(
        metavar="BEFORE", help="The run folder from before the change.", autocompletion=run_folders
    ),
    after: Path = typer.Argument(metavar="AFTER", help="The run folder from after it.", autocompletion=run_folders),
    format_: Format = typer.Option(Format.TEXT, "--format", help="How to print it."),
    json_: bool = typer.Option(False, "--json", help="The same as --format json."),
    html: Path | None = typer.Option(
        None, parser=path_of, metavar="FILE", help="Write a self-contained HTML page as well."
    ),
    margin: str | None = typer.Option(
        None, metavar="PERCENT", help="Judge by this margin, such as 3%; else the runs'."
    ),
    names: list[str] = typer.Option(
        [], "--map", metavar="OLD=NEW", help="Labels of a treatment that is called differently in the two runs."
    ),
    control: str | None = typer.Option(None, metavar="LABEL", help="A treatment that should not have changed."),
    fail_if: list[str] = FAIL_IF,
    junit: Path | None = JUNIT,
    annotations: bool = ANNOTATIONS,
) -> None:
    """Compare two runs, treatment by treatment, and list what else differs between them."""
    from dbdyno.analysis.two_runs import compare as compared
    from dbdyno.report.comparison import document
    from dbdyno.store.others import last_resort

    format_ = with_json(format_, json_=json_)
    if os.path.realpath(before) == os.path.realpath(after):
        raise UserError(f"{before} and {after} are the same folder; name two runs")
    check_conditions(fail_if, junit)
    if html is not None:
        refuse_to_overwrite(html)
    width = None if margin is None else fraction_of("--margin", margin)
    (first, second), _ = runs_in([before, after])
    with last_resort(before, after):
        comparison = document(first, second, compared(first, second, margin=width, names=names, control=control))
        print_document(comparison, format_)
        if html is not None:
            write_page(html, comparison, aside=format_ is not Format.TEXT)
    conclude(comparison, fail_if, junit, annotations=annotations, aside=format_ is Format.JSON)
