"""``dbdyno export``, ``import`` and ``atlas``: a result to share without names, one of others, a site of many."""

import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dbdyno.cli.options import folder_of, path_of
from dbdyno.cli.output import (
    JSON,
    SILENT_SECONDS,
    ProgressLine,
    print_done,
    print_json,
    refuse_to_overwrite,
    table,
    write_whole,
)
from dbdyno.cli.suggestions import run_folders
from dbdyno.errors import UserError
from dbdyno.model.printable import one_line, printable
from dbdyno.model.wording import count

if TYPE_CHECKING:
    from dbdyno.share.copy import Copied

GZIP = (b"\x1f\x8b",)
REPLACED_SHOWN = 40
PIPE_SECONDS = 10.0  # between two lines into a pipe


def export(
    run: Path = typer.Argument(parser=path_of, metavar="RUN", help="The run folder.", autocompletion=run_folders),
    output: Path = typer.Option(..., "--output", parser=path_of, metavar="FILE", help="The file to write: a .tar.gz."),
    title: str = typer.Option("", metavar="TEXT", help="What to call it [what it varies]."),
    keep: list[str] = typer.Option([], "--keep", metavar="TEXT", help="Let this text out as it is; may be repeated."),
    yes: bool = typer.Option(False, "--yes", help="Write the file without being asked."),
    json_: bool = JSON,
) -> None:
    """Write a result into one file to share: figures and findings, without names, paths, serials and SQL."""
    from dbdyno.share.archive import SUFFIX, About, pack
    from dbdyno.share.copy import GOES_IN, LEFT_OUT, copied_files, copy_without_names
    from dbdyno.store.others import last_resort

    if not output.name.endswith(SUFFIX):
        name = output.name
        for other in (".tgz", ".zip", ".tar", ".gz"):
            name = name.removesuffix(other)
        raise UserError(f"--output {output}: the file is a {SUFFIX}; name it {name}{SUFFIX}")
    refuse_to_overwrite(output, GZIP, f"is not a {SUFFIX}")
    asks = sys.stdin.isatty() and sys.stderr.isatty() and not json_
    if not (yes or asks or json_):
        raise UserError("export shows what it would write and asks; where nobody can answer, say --yes")
    about = _about(title, keep)
    with tempfile.TemporaryDirectory(prefix="dbdyno-export-") as place, last_resort(run):
        folder = Path(place, "run")
        with _progress_of("trial") as progress:
            copied = copy_without_names(run, folder, title=about.title, allowed=about.allowed, progress=progress)
        content = pack(folder, About(title=copied.title, allowed=about.allowed))
        files = list(copied_files(folder))
    shown: dict[str, Any] = {
        "file": str(output), "bytes": len(content), "title": copied.title, "trials": copied.trials,
        "goes_in": list(GOES_IN), "series": list(copied.series), "files": len(files),
        "replaced": copied.words.replacements(), "left_out": list(LEFT_OUT), "written": yes,
    }  # fmt: skip
    if json_:
        if yes:
            write_whole(output, content)
        print_json(shown)
        return
    _show(copied, len(content))
    if not yes:
        typer.echo(f"Write {output}? [y/N] ", err=True, nl=False)
        if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
            raise UserError("nothing was written")
    write_whole(output, content)
    print(f"Wrote {printable(str(output))}. To look into it: tar -tf; to read it: dbdyno import")


def _about(title: str, keep: list[str]) -> Any:  # noqa: ANN401  (an About, imported when it is needed)
    from dbdyno.share.archive import About

    try:
        return About(title=title, allowed=keep)
    except ValueError as error:
        raise UserError(f"--title or --keep: {error}") from None


@contextmanager
def _progress_of(noun: str) -> Iterator[Callable[[int, int], None]]:
    """Yield what is told how many of how many are done, and says so once that takes a while."""
    with ProgressLine(silent_seconds=SILENT_SECONDS, pipe_seconds=PIPE_SECONDS) as line:
        yield lambda done, total: line.show(f"{noun} {done} of {total}")


def _show(copied: "Copied", size_bytes: int) -> None:
    """Print what goes in, and what was taken out."""
    from dbdyno.share.copy import GOES_IN, LEFT_OUT

    print(f'"{one_line(copied.title)}", {count(copied.trials, "trial")}, {size_bytes:,} bytes.')
    of_series = f"series: {', '.join(copied.series) or 'none'}"
    for heading, lines in (("Goes in", [*GOES_IN, of_series]), ("Left out", LEFT_OUT)):
        print("\n".join([f"{heading}:", *(f"  {line}" for line in lines)]))
    replaced = copied.words.replacements()
    if replaced:
        print(f"Replaced, because dbdyno knows no such word ({len(replaced)}); --keep TEXT lets one out:")
        rows = [[one_line(row[column]) for column in ("by", "text", "place")] for row in replaced[:REPLACED_SHOWN]]
        print("\n".join(f"  {line}" for line in table(("by", "text", "first in"), rows, right=3).splitlines()))
    if len(replaced) > REPLACED_SHOWN:
        print(f"  and {len(replaced) - REPLACED_SHOWN} more, which --json lists")


def import_(
    file: Path = typer.Argument(parser=path_of, metavar="FILE", help="A file that dbdyno export wrote."),
    into: Path = typer.Option(..., "--into", parser=folder_of, metavar="DIR", help="The run folder to make."),
    json_: bool = JSON,
) -> None:
    """Check a shared result and make a run folder of it, marked as not measured here."""
    from dbdyno.share.archive import unpacked
    from dbdyno.share.copy import copy_without_names
    from dbdyno.store.header import RUN
    from dbdyno.store.others import last_resort
    from dbdyno.store.run_folder import is_begun

    with unpacked(file) as (folder, about), last_resort(file):
        if not is_begun(folder):
            raise UserError(f"{file}: it holds no {RUN}; ask for another copy of it")
        try:
            with _progress_of("trial") as progress:
                copied = copy_without_names(folder, into, title=about.title, allowed=about.allowed, progress=progress)
        except UserError as error:
            # The remedies for a folder of one's own are none for a file of others.
            text = str(error).replace(f"{folder}/", "").replace(str(folder), "it")
            if str(into) in text:
                raise
            raise UserError(f"{file}: {text.partition('; ')[0]}; ask for another copy of it") from None
    values = {"folder": str(into), "title": copied.title, "trials": copied.trials, "measured_here": False}
    print_done(
        f'Imported "{one_line(copied.title)}", {count(copied.trials, "trial")}, not measured here, into {into}.\n'
        f"To read it: dbdyno report {into}",
        values,
        json_=json_,
    )


def atlas(
    folders: list[Path] = typer.Argument(
        parser=path_of,
        metavar="DIR",
        help="Run folders, folders of such, and .json of quick and simulate.",
        autocompletion=run_folders,
    ),
    into: Path = typer.Option(..., "--into", parser=folder_of, metavar="SITE", help="The folder to write."),
    json_: bool = JSON,
) -> None:
    """Make a static site of results: a gallery, a page each, drives and versions side by side, data as Parquet."""
    from dbdyno.share.atlas import build

    with _progress_of("result") as progress:
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
