"""``dbdyno disk fit``: a drive file from a drive."""

import sys
from pathlib import Path
from typing import Any

import typer

from dbdyno.cli.output import JSON, print_json
from dbdyno.cli.suggestions import drives
from dbdyno.errors import UserError


def fit(
    sources: list[str] = typer.Argument(
        metavar="DEV|MODEL|TRACE",
        help="A block device, which is only read; a drive, in virtual time; or a trace with response times.",
        autocompletion=drives,
    ),
    out: Path = typer.Option(None, "--out", metavar="FILE", help="File to write, NAME.toml; else standard output."),
    time_: str = typer.Option("2min", "--time", metavar="TIME", help="About how long to measure a device."),
    size: str = typer.Option(None, help="Size of a model's disk, if not that of the drive; of a trace's drive."),
    format_: str = typer.Option(None, "--format", metavar="FORMAT", help="Format of a trace [how it begins]."),
    write: bool = typer.Option(False, "--write", help="Write, too: a model, or a device that is proved to be empty."),
    erase: str = typer.Option(None, metavar="SERIAL", help="Write to the device with this serial, whatever it holds."),
    seed: int = typer.Option(1, "--seed", min=0, help="Seed of the random places."),
    json_: bool = JSON,
) -> None:
    """Find a drive's parameters by timing requests, and write its drive file."""
    from dbdyno.cli.output import write_whole
    from dbdyno.cli.values import bytes_of, seconds_of
    from dbdyno.run.fit import Asked
    from dbdyno.run.fit import fit as fitted

    if out is not None:
        _refuse_to_overwrite(out)
    size_bytes = bytes_of("--size", size) if size else None
    asked = Asked(tuple(sources), seconds_of("--time", time_), seed, size_bytes, write, erase=erase, format=format_)
    found = fitted(asked, _progress)
    if out is not None:
        write_whole(out, found["drive_file"].encode())
    if json_:
        print_json(found)
    elif out is None:
        sys.stdout.write(found["drive_file"])
        _print_checks(found, aside=True)
    else:
        print(f"drive file: {out}; {_counts(found)}")
        _print_checks(found, aside=False)


def _refuse_to_overwrite(out: Path) -> None:
    """Raises ``UserError`` where a file would not be found as a drive file, or would replace another."""
    from dbdyno.cli.output import refuse_to_overwrite

    if out.suffix != ".toml":
        raise UserError(f"--out {out}: a drive file ends in .toml; name it {out.name}.toml")
    refuse_to_overwrite(out, (b"# written by dbdyno disk fit",), "was not written by dbdyno disk fit")


def _counts(found: dict[str, Any]) -> str:
    sources = [figure["source"] for figure in found["figures"]]
    parts = [f"{count} {word}" for word in ("measured", "fitted", "default") if (count := sources.count(word))]
    return ", ".join(parts)


def _print_checks(found: dict[str, Any], *, aside: bool) -> None:
    """Print figures of the drive beside those of the model that its drive file makes."""
    from dbdyno.cli.text_table import table

    rows = [
        [check["what"], f"{check['drive']['value']:,.1f}", f"{check['model']:,.1f}" if "model" in check else ""]
        for check in found["checks"]
    ]
    typer.echo(table(("", "drive", "model"), rows, 1), err=aside)
    for field in found["cut_short"]:
        typer.echo(f"note: {field} is coarser than it could be; give more --time", err=True)
    for note in found["notes"]:
        typer.echo(f"note: {note}", err=True)


def _progress(stage: str) -> None:
    typer.echo(f"measuring: {stage}", err=True)


VERBS = {"fit": fit}
