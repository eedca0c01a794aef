"""What reports are printed as."""

from enum import StrEnum
from typing import TypeVar

import typer

from dbdyno.errors import UserError

JSON = typer.Option(False, "--json", help="Print JSON.")
DETAILS = typer.Option(False, "--details", help="Print all of the report, with reasons, tables and notes.")


class Format(StrEnum):
    """How a report is printed."""

    TEXT = "text"
    MARKDOWN = "markdown"
    JSON = "json"


class ReportFormat(StrEnum):
    """How ``dbdyno report`` prints, a table of trials included."""

    TEXT = "text"
    MARKDOWN = "markdown"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"


F = TypeVar("F", Format, ReportFormat)


def with_json(format_: F, *, json_: bool) -> F:
    """Return the format that ``--format`` and ``--json`` ask for. Raises ``UserError`` where they contradict."""
    asked = type(format_)("json")
    if json_ and format_ not in {"text", asked}:
        raise UserError(f"--json is --format json; leave out --json or --format {format_}")
    return asked if json_ else format_


def json_or_text(*, json_: bool) -> Format:
    """Return the format of a verb that has no ``--format``."""
    return Format.JSON if json_ else Format.TEXT
