"""What ``report`` and ``compare`` do for scripts: an exit code, JUnit's XML, GitHub's annotations."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dbdyno.cli.suggestions import VERDICTS, of_words
from dbdyno.cli.values import path_of
from dbdyno.model.word import CONDITION_HOLDS

if TYPE_CHECKING:
    from dbdyno.report.document import Document

FAIL_IF = typer.Option(
    [],
    "--fail-if",
    metavar="VERDICT",
    help='Exit with 3 if a verdict is so, as in "slower by 5%"; may be repeated.',
    autocompletion=of_words(*VERDICTS),
)
JUNIT = typer.Option(None, "--junit", parser=path_of, metavar="FILE", help="Write the verdicts as JUnit's XML.")
ANNOTATIONS = typer.Option(False, "--annotations", help="Print the verdicts as GitHub's annotations, too.")


def conclude(document: "Document", fail_if: list[str], junit: Path | None, *, annotations: bool, aside: bool) -> None:
    """Write and print what was asked for, and end with 3 where a condition holds; the report has been printed.

    Annotations go ``aside`` to standard error, where GitHub finds them too, if standard output is a program's.

    Raises:
        UserError: A condition is none, or the file can't be written.
        typer.Exit: A condition holds.

    """
    from dbdyno.errors import UserError
    from dbdyno.report import outcome

    found = outcome.compared(document)
    failures = outcome.failed(found, [outcome.condition_of(text) for text in fail_if])
    if junit is not None:
        try:
            junit.write_text(outcome.junit(document.title, found, failures), encoding="utf-8")
        except OSError as error:
            raise UserError(f"{junit}: {error.strerror}") from None
    if annotations:
        typer.echo("\n".join(outcome.annotations(document.title, found, failures)), err=aside)
    for one, condition in failures.items():
        typer.echo(f"--fail-if {condition.text}: {one.sentence}", err=True)
    if failures:
        raise typer.Exit(CONDITION_HOLDS)


def check_conditions(fail_if: list[str], junit: Path | None) -> None:
    """Raises ``UserError`` for a condition that is none, or a file without a folder, before anything is read."""
    from dbdyno.errors import UserError
    from dbdyno.report.outcome import condition_of

    if junit is not None and not junit.parent.is_dir():
        raise UserError(f"--junit {junit}: there is no folder {junit.parent}; make it, or name another")

    for text in fail_if:
        condition_of(text)
