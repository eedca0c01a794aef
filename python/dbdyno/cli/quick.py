"""``dbdyno quick``: what the storage here is like, within a minute."""

import sys
from pathlib import Path

import typer

from dbdyno.cli.output import JSON, json_or_text
from dbdyno.cli.suggestions import drives

PAGE = Path("dbdyno-quick.html")


def quick(
    place: Path = typer.Argument(Path(), metavar="[DIR|DEV]", help="A folder, or a block device, which is only read."),
    against: str = typer.Option(
        None, "--against", metavar="DIR|MODEL", help="What to compare it with.", autocompletion=drives
    ),
    html: Path = typer.Option(PAGE, "--html", help="The HTML page to write."),
    rounds: int = typer.Option(8, "--rounds", min=2, max=100, help="How often everything is measured."),
    seed: int = typer.Option(1, "--seed", min=0, help="Seed of places and order."),
    json_: bool = JSON,
) -> None:
    """Measure the disk below a folder in 40 seconds: durable commits, random reads and writes. No root, no study."""
    from dbdyno.cli.output import print_document, refuse_to_overwrite, write_page
    from dbdyno.report.quick import document
    from dbdyno.run.quick import look

    refuse_to_overwrite(html)
    report = document(look(place, against, rounds=rounds, seed=seed, progress=_progress))
    print_document(report, json_or_text(json_=json_))
    write_page(html, report, aside=json_)


def _progress(done: int, rounds: int) -> None:
    if sys.stderr.isatty():
        typer.echo(f"\rround {done} of {rounds}{'' if done < rounds else chr(10)}", err=True, nl=False)
    else:
        typer.echo(f"round {done} of {rounds}", err=True)
