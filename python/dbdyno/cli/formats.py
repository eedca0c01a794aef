"""What reports are printed as."""

from enum import StrEnum

import typer

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
