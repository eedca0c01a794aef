"""How every verb that runs trials ends: the report, and the right exit code."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dbdyno.cli.formats import Format
from dbdyno.cli.show import show

if TYPE_CHECKING:
    from dbdyno.run.execute import Outcome

TRIALS_FAILED, INTERRUPTED = 1, 130


def end_of_run(outcome: "Outcome", into: Path, format_: Format, *, html: bool, details: bool, again: str) -> None:
    """Print the report; ``again`` is the command that would go on with the run.

    Raises:
        typer.Exit: A trial failed, or the run was interrupted.

    """
    show(into, format_, html=into / "report.html" if html else None, details=details)
    if outcome.how == "interrupted":
        typer.echo(f"interrupted; to go on: {again} --resume", err=True)
        raise typer.Exit(INTERRUPTED)
    if outcome.failures:
        raise typer.Exit(TRIALS_FAILED)
