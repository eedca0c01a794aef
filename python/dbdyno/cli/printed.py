"""What a verb prints: a report in the format that was asked for, what it found or did, and what takes a moment."""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dbdyno.cli.formats import Format
from dbdyno.model.printable import NO_BREAK, printable

if TYPE_CHECKING:
    from dbdyno.report.document import Document

SCHEMA = 1  # raised when a key moves or means something else; reports have one of their own


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


def print_json(values: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> None:
    """Print values as JSON, an object with the version of its schema."""
    print(json.dumps({"schema": SCHEMA, **values} if isinstance(values, Mapping) else values, indent=1))


def print_done(words: str, values: Mapping[str, Any], *, json_: bool) -> None:
    """Print what was done, in words or as JSON."""
    if json_:
        print_json(values)
    else:
        print(printable(words, keep=f"\n{NO_BREAK}"))


def say_to_terminal(text: str) -> None:
    """Tell a person what takes a moment; a script is not told."""
    if sys.stderr.isatty():
        print(printable(text), file=sys.stderr)
