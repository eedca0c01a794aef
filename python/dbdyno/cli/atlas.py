"""``dbdyno atlas DIR...``: a static site of many results."""

import sys
import time
from pathlib import Path

import typer

from dbdyno.cli.options import folder_of, path_of
from dbdyno.cli.output import JSON, print_done
from dbdyno.cli.suggestions import run_folders
from dbdyno.model.printable import printable
from dbdyno.model.wording import count

SILENT_SECONDS = 2.0


def atlas(
    folders: list[Path] = typer.Argument(
        parser=path_of,
        metavar="DIR...",
        help="Run folders, folders of such, and .json of quick and simulate.",
        autocompletion=run_folders,
    ),
    into: Path = typer.Option(..., "--into", parser=folder_of, metavar="SITE", help="The folder to write."),
    json_: bool = JSON,
) -> None:
    """Make a static site of results: a gallery, a page each, drives and versions side by side, data as Parquet."""
    from dbdyno.share.atlas import build

    began, on_terminal = time.monotonic(), sys.stderr.isatty()

    def progress(done: int, results: int) -> None:
        if time.monotonic() > began + SILENT_SECONDS and (on_terminal or done % 50 == 0):
            end = "" if on_terminal and done < results else "\n"
            print(
                f"{chr(13) if on_terminal else ''}{done} of {results} results drawn",
                end=end,
                file=sys.stderr,
                flush=True,
            )

    built = build(folders, into, progress=progress)
    for path, why in built.left_out.items():
        typer.echo(printable(f"left out: {why if path in why else f'{path}: {why}'}"), err=True)
    named = sum(entry.has_names for entry in built.entries)
    values = {
        "site": str(into), "page": str(into / "index.html"), "results": len(built.entries), "with_names": named,
        "left_out": dict(built.left_out),
    }  # fmt: skip
    warning = (
        f"\n{count(named, 'result')} may hold names, paths and SQL: before you publish the site, let dbdyno export "
        "take them out, and import what it wrote."
    )
    text = f"Atlas of {count(len(built.entries), 'result')}: {into / 'index.html'}{warning if named else ''}"
    print_done(text, values, json_=json_)
