"""Writing an HTML page without harm to any other file."""

from collections.abc import Callable
from pathlib import Path

import typer

from dbdyno.errors import UserError


def write_page(path: Path, rendered: Callable[[], str], *, aside: bool) -> None:
    """Write the page and say where, ``aside`` on standard error. Raises ``UserError`` where it can't be written."""
    _refuse_to_overwrite(path)
    try:
        path.write_text(rendered(), encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    typer.echo(f"HTML report: {path}", err=aside)


def _refuse_to_overwrite(path: Path) -> None:
    """Raises ``UserError`` where the page would replace something that is no page."""
    try:
        with path.open("rb") as file:
            if not file.read(64).lstrip().lower().startswith((b"<!doctype html", b"<html")):
                raise UserError(f"{path} exists and is no HTML page; name another file")
    except FileNotFoundError:
        return
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
