"""What goes to standard output: a report in the format that was asked for."""

import sys
from typing import TYPE_CHECKING

from dbdyno.cli.formats import Format

if TYPE_CHECKING:
    from dbdyno.report.document import Document


def print_document(document: "Document", format_: Format, *, brief: bool = False) -> None:
    """Print a report to standard output, to a terminal in colour and as wide as that is; ``brief`` is for text."""
    from dbdyno.report.render import json, markdown, text

    if format_ is Format.TEXT and sys.stdout.isatty():
        from rich.console import Console

        Console().print(text.Printed(document, brief=brief))
        return
    if format_ is Format.TEXT:
        printed = text.render(document, brief=brief)
    else:
        printed = {Format.MARKDOWN: markdown.render, Format.JSON: json.render}[format_](document)
    sys.stdout.write(printed.rstrip("\n") + "\n")
