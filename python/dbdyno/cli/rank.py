"""``dbdyno rank DIR...``: stacks in order over the tests of one or more runs."""

import sys
from pathlib import Path

import typer

from dbdyno.cli.report import Format
from dbdyno.errors import UserError


def rank(
    folders: list[Path] = typer.Argument(metavar="DIR...", help="One or more run folders."),
    format_: Format = typer.Option(Format.TEXT, "--format", help="How to print it."),
    baseline: str | None = typer.Option(None, metavar="STACK", help="What scores are ratios to [the first run's]."),
) -> None:
    """Rank stacks over several tests: the loads of one run, or of several runs of the same stacks."""
    from dbdyno.analysis.ranking import rank_runs
    from dbdyno.analysis.several import told_apart
    from dbdyno.report import markdown, ranking, text
    from dbdyno.store.run_folder import read_run

    if len({folder.resolve() for folder in folders}) < len(folders):
        raise UserError("a run folder is given twice; its blocks would count twice")
    runs = [read_run(folder) for folder in folders]
    names = told_apart([run.title for run in runs], folders)
    found = rank_runs(list(zip(names, runs, strict=True)), baseline)
    if format_ is Format.TEXT and sys.stdout.isatty():
        from rich.console import Console

        Console().print(text.RankingReport(found))
        return
    renderers = {
        Format.TEXT: text.render_ranking,
        Format.MARKDOWN: markdown.render_ranking,
        Format.JSON: ranking.render_json,
    }
    sys.stdout.write(renderers[format_](found).rstrip("\n") + "\n")
