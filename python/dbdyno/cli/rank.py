"""``dbdyno rank DIR...``: stacks in order over the tests of one or more runs."""

from pathlib import Path

import typer

from dbdyno.cli.output import Format, print_document, with_json
from dbdyno.cli.show import runs_in
from dbdyno.cli.suggestions import run_folders
from dbdyno.cli.values import path_of


def rank(
    folders: list[Path] = typer.Argument(
        parser=path_of, metavar="DIR...", help="One or more run folders.", autocompletion=run_folders
    ),
    format_: Format = typer.Option(Format.TEXT, "--format", help="How to print it."),
    json_: bool = typer.Option(False, "--json", help="The same as --format json."),
    baseline: str | None = typer.Option(None, metavar="STACK", help="What scores are ratios to [the first run's]."),
) -> None:
    """Rank stacks over several tests: the loads of one run, or of several runs of the same stacks."""
    from dbdyno.analysis.analyse import distinct_names
    from dbdyno.analysis.ranking import rank_runs
    from dbdyno.report.sections.ranking import document
    from dbdyno.store.others import last_resort

    format_ = with_json(format_, json_=json_)
    runs, _ = runs_in(folders)
    names = distinct_names([run.title for run in runs], folders)
    with last_resort(*folders):
        ranking = rank_runs(list(zip(names, runs, strict=True)), baseline)
        print_document(document(ranking, runs), format_)
