"""Writing an HTML page, or another file that is asked for, without harm to any other file."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dbdyno.errors import HostError, UserError
from dbdyno.store.synced import whole_or_not_at_all, write_all
from dbdyno.system.full_disk import is_full, why_not_written
from dbdyno.system.regular_file import see_that_it_is_regular
from dbdyno.system.state import new_token

if TYPE_CHECKING:
    from dbdyno.report.document import Document


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
    path: Path, beginnings: tuple[bytes, ...] = (b"<!doctype html", b"<html"), why: str = "is no HTML page"
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
