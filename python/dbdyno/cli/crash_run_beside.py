"""The crash run that a speed run's report takes its safety from: ``report DIR --safety CRASH``."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dbdyno.cli.suggested_places import run_folders
from dbdyno.cli.values import path_of

if TYPE_CHECKING:
    from dbdyno.report.source import Beside
    from dbdyno.store.others import Budget
    from dbdyno.store.records import Run

SAFETY = typer.Option(
    None,
    "--safety",
    parser=path_of,
    metavar="DIR",
    help="A crash run of the same treatments: its safety beside this run's speed.",
    autocompletion=run_folders,
)


def crash_run_beside(run: "Run", folder: Path | None, budget: "Budget") -> "Beside | None":
    """Read it, where one was named. Raises ``UserError`` where it has no cuts, or other treatments."""
    if folder is None:
        return None
    from dbdyno.analysis.safety.choice import joined
    from dbdyno.report.source import Beside
    from dbdyno.store.run_folder import read_run

    crash = read_run(folder, budget=budget)
    return Beside(crash, joined(run, crash))
