"""What verbs put out: the formats, standard output and its end, and a page in a file."""

import json
import os
import shutil
import sys
import textwrap
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from io import BufferedWriter, FileIO, TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Self, TextIO, TypeVar

import typer

from dbdyno.errors import HostError, UserError
from dbdyno.model.printable import NO_BREAK, printable
from dbdyno.store.parts import whole_or_not_at_all, write_all
from dbdyno.system.files import is_full, see_that_it_is_regular, why_not_written
from dbdyno.system.state import new_token

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

    from dbdyno.report.document import Document


# What reports are printed as.


class Format(StrEnum):
    """How a report is printed."""

    TEXT = "text"
    MARKDOWN = "markdown"
    JSON = "json"


JSON = typer.Option(False, "--json", help="Print JSON.")
FORMAT = typer.Option(Format.TEXT, "--format", help="How to print it.")
AS_JSON = typer.Option(False, "--json", help="The same as --format json.")
DETAILS = typer.Option(False, "--details", help="Print all of the report, with reasons, tables and notes.")


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
    json_format = type(format_)("json")
    if json_ and format_ not in {"text", json_format}:
        raise UserError(f"--json is --format json; leave out --json or --format {format_}")
    return json_format if json_ else format_


def json_or_text(*, json_: bool) -> Format:
    """Return the format of a verb that has no ``--format``."""
    return Format.JSON if json_ else Format.TEXT


# What a verb prints: a report in the format that was asked for, what it found or did, and what takes a moment.


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


class ProgressLine:
    """How far something is, on standard error: one line that changes on a terminal, some lines into a pipe."""

    def __init__(self, *, silent_seconds: float = 0.0, pipe_seconds: float = 0.0) -> None:
        """What is done within ``silent_seconds`` is not told; a pipe gets a line in ``pipe_seconds``."""
        self._on_terminal = sys.stderr.isatty()
        self._next = time.monotonic() + silent_seconds
        self._between_seconds = _REDRAW_SECONDS if self._on_terminal else pipe_seconds
        self._shown = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._wipe()

    def show(self, text: str) -> None:
        """Say how far it is now, unless that was said a moment ago."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + self._between_seconds
        self._shown = True
        start, end = (_WIPED, "") if self._on_terminal else ("", "\n")
        print(f"{start}{text}", end=end, file=sys.stderr, flush=True)

    def say(self, text: str) -> None:
        """Something that is worth a line of its own."""
        self._wipe()
        print(text, file=sys.stderr, flush=True)

    def _wipe(self) -> None:
        if self._shown and self._on_terminal:
            print(_WIPED, end="", file=sys.stderr, flush=True)


SILENT_SECONDS = 2.0  # what is done by then needs no progress
_REDRAW_SECONDS = 0.1
_WIPED = "\r\033[K"  # a terminal's line, empty, with the cursor at its beginning


# Writing an HTML page, or another file that is asked for, without harm to any other file.


def write_page(path: Path, document: "Document", *, aside: bool) -> None:
    """Write a report's page whole, or leave what is there, and say where, ``aside`` on standard error.

    Raises:
        UserError: It can't be written.
        HostError: The disk is full.

    """
    from dbdyno.report.render import html

    refuse_to_overwrite(path)
    write_whole(path, html.render(document).encode("utf-8", "replace"))
    typer.echo(f"HTML report: {path}", err=aside)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file whole, or leave what is there. Raises ``UserError``, or ``HostError`` where the disk is full."""
    try:
        with whole_or_not_at_all(path, f".{new_token()}") as handle:
            write_all(handle, content)
    except OSError as error:
        wrong = HostError if is_full(error) else UserError
        raise wrong(why_not_written(error, path)) from None


def refuse_to_overwrite(
    path: Path, beginnings: tuple[bytes, ...] = (b"<!doctype html", b"<html"), why: str = "is not an HTML page"
) -> None:
    """Raises ``UserError``: a file would replace one that begins otherwise (in small letters), or has no folder."""
    if not path.parent.is_dir():
        raise UserError(f"{path}: there is no folder {path.parent}; make it, or name another")
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except FileNotFoundError:
        return
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    try:
        see_that_it_is_regular(handle, path)
        begins = os.read(handle, 64)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    finally:
        os.close(handle)
    if not begins.lstrip().lower().startswith(beginnings):
        raise UserError(f"{path} exists and {why}; name another file")


# The ends of standard output and error: what could not be written is said once, not again by Python at its exit.


class _Named(FileIO):
    """Standard output, which gives its name when it can't be written to."""

    def write(self, content: "ReadableBuffer", /) -> int:
        try:
            return super().write(content)
        except OSError as error:
            raise OSError(error.errno, error.strerror, "standard output") from None


def prepare() -> None:
    """Have standard output and error take every character, and standard output name itself in its errors."""
    _stand_in_for_what_is_closed()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # not every terminal can show every character
    as_it_was = sys.stdout
    if as_it_was is sys.__stdout__ and isinstance(as_it_was, TextIOWrapper):
        sys.stdout = TextIOWrapper(
            BufferedWriter(_Named(as_it_was.fileno(), "wb", closefd=False)),
            encoding=as_it_was.encoding,
            errors=as_it_was.errors,
            line_buffering=as_it_was.line_buffering,
            write_through=as_it_was.write_through,
        )


def _stand_in_for_what_is_closed() -> None:
    """Have nothing that is opened later be taken for a standard stream that was closed before."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):  # each gets the lowest number: its own
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - it stays


def flushed() -> None:
    """Write what standard output still holds back. Raises ``OSError`` that names it."""
    try:
        sys.stdout.flush()
    except OSError:
        give_up(sys.stdout)
        raise


def say(text: str) -> None:
    """Print a last message on standard error, if it takes it."""
    try:
        print(f"dbdyno: {text}", file=sys.stderr, flush=True)
    except OSError:
        give_up(sys.stderr)


def end_with(error: OSError) -> NoReturn:
    """Say what the system refused, and end."""
    with suppress(OSError):
        flushed()
    if not isinstance(error, BrokenPipeError):  # the reader has gone: a message about it would only be noise
        say(why_not_written(error))
    sys.exit(1)


def give_up(stream: TextIO) -> None:
    """Have Python find nothing to complain about when it closes a stream."""
    with suppress(OSError, ValueError):
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, stream.fileno())
        os.close(nothing)
        stream.flush()


# Tables and long lines for the terminal.


COLUMNS = 100  # at most; long lines of a wide terminal are hard to read
COLUMNS_MIN = 40


def table(head: tuple[str, ...], rows: list[list[str]], right: int) -> str:
    """Columns as wide as their longest word; from the ``right``-th on they are numbers."""
    widths = [max(len(cell) for cell in column) for column in zip(head, *rows, strict=True)]
    lines = (
        "  ".join(
            f"{cell:{'>' if at >= right else '<'}{width}}"
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in (list(head), *rows)
    )
    return "\n".join(line.rstrip() for line in lines)


def hanging(start: str, text: str) -> str:
    """A text behind its start, continued below its own beginning where it is longer than a line of the terminal."""
    indent, columns = " " * len(start), shutil.get_terminal_size((COLUMNS, 24)).columns
    return textwrap.fill(
        text,
        min(COLUMNS, max(COLUMNS_MIN, columns)),
        initial_indent=start,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
