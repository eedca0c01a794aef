"""``dbdyno history DIR...``: runs of the same study through time, and when something changed."""

from pathlib import Path

import typer

from dbdyno.cli.options import HTML_FILE, fraction_of, path_of
from dbdyno.cli.output import AS_JSON, FORMAT, Format, print_document, refuse_to_overwrite, with_json, write_page
from dbdyno.cli.report import ANNOTATIONS, FAIL_IF, JUNIT, check_conditions, conclude
from dbdyno.cli.show import runs_in
from dbdyno.cli.suggestions import run_folders


def history(
    folders: list[Path] = typer.Argument(
        parser=path_of, metavar="DIR", help="Run folders, in any order.", autocompletion=run_folders
    ),
    format_: Format = FORMAT,
    json_: bool = AS_JSON,
    html: Path | None = HTML_FILE,
    since: str | None = typer.Option(
        None, metavar="RUN", help="List changes from this run, or date (2026-11-29), on; all runs are read."
    ),
    control: str | None = typer.Option(None, metavar="LABEL", help="A treatment that should not change."),
    margin: str | None = typer.Option(
        None, metavar="PERCENT", help="Judge by this margin, such as 3%; else the last run's."
    ),
    fail_if: list[str] = FAIL_IF,
    junit: Path | None = JUNIT,
    annotations: bool = ANNOTATIONS,
) -> None:
    """Show when runs of the same study changed, such as nightly ones, by how far runs lie apart."""
    from dbdyno.analysis.analyse import distinct_names
    from dbdyno.analysis.history import history as through_time
    from dbdyno.report.history import document, place_of
    from dbdyno.store.others import last_resort

    format_ = with_json(format_, json_=json_)
    check_conditions(fail_if, junit)
    if html is not None:
        refuse_to_overwrite(html)
    width = None if margin is None else fraction_of("--margin", margin)
    runs, _ = runs_in(folders)
    names = [folder.name for folder in folders]
    names = names if len(set(names)) == len(names) else distinct_names([str(folder) for folder in folders], folders)
    with last_resort(*folders):
        found = through_time(list(zip(names, runs, strict=True)), margin=width, control=control)
        shown = document(found, place_of(found, since))
        print_document(shown, format_)
        if html is not None:
            write_page(html, shown, aside=format_ is not Format.TEXT)
    conclude(shown, fail_if, junit, annotations=annotations, aside=format_ is Format.JSON)
