"""What ``dbdyno report`` can print, besides what other verbs can."""

from enum import StrEnum


class ReportFormat(StrEnum):
    """How a report is printed, and what a table of its trials may be."""

    TEXT = "text"
    MARKDOWN = "markdown"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"
