"""The ends of standard output and error: what could not be written is said once, not again by Python at its exit."""

import os
import sys
from contextlib import suppress
from io import BufferedWriter, FileIO, TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TextIO

from dbdyno.system.full_disk import why_not_written

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


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
        _give_up(sys.stdout)
        raise


def say(text: str) -> None:
    """Print a last message on standard error, if it takes it."""
    try:
        print(f"dbdyno: {text}", file=sys.stderr, flush=True)
    except OSError:
        _give_up(sys.stderr)


def end_with(error: OSError) -> NoReturn:
    """Say what the system refused, and end."""
    with suppress(OSError):
        flushed()
    if not isinstance(error, BrokenPipeError):  # the reader has gone: a message about it would only be noise
        say(why_not_written(error))
    sys.exit(1)


def _give_up(stream: TextIO) -> None:
    """Have Python find nothing to complain about when it closes a stream."""
    with suppress(OSError, ValueError):
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, stream.fileno())
        os.close(nothing)
        stream.flush()
