"""``dbdyno disk fault``: what can go wrong with a drive, put into an emulated one."""

from dataclasses import asdict
from typing import Any

import typer

from dbdyno.cli.disk_content import DISK
from dbdyno.cli.output import JSON, print_done
from dbdyno.cli.values import nanoseconds_of, range_of
from dbdyno.errors import UserError

# What the verbs of ``dbdyno disk fault`` have in common: which requests are hit, and putting a fault in.


def spec_of(kind: str, range_: str | None, read: bool, write: bool, for_: str | None) -> dict[str, Any]:
    """Return the fields of a fault that every kind has. Raises ``UserError`` where options exclude each other."""
    if read and write:
        raise UserError("--read and --write exclude each other; without either all requests are hit")
    target = "read" if read else "write" if write else "all"
    spec = {"kind": kind, "target": target, "range_bytes": range_of("--range", range_) if range_ else None}
    return spec | {"for_ns": nanoseconds_of("--for", for_) if for_ else None}


def add_fault(disk: str, spec: dict[str, Any], what: str, *, json_: bool) -> None:
    """Put a fault into a disk and say so. Raises ``UserError``: it makes no sense, or there is no such disk."""
    from dbdyno.stack.attached import find_disk
    from dbdyno.stack.disk_client import Fault

    if spec.get("every") is not None and spec.get("probability") is not None:
        raise UserError("--every and --probability exclude each other")
    found = find_disk(disk)
    found.client().add_fault(Fault(**spec))
    words = f"{found.name}: {what}; end it with: dbdyno disk fault clear {found.name}"
    print_done(words, {"name": found.name, "faults": [spec]}, json_=json_)


app = typer.Typer(help="Put faults into a disk, and end them.", rich_markup_mode=None)

READ = typer.Option(False, "--read", help="Hit reads only.")
WRITE = typer.Option(False, "--write", help="Hit writes, flushes and discards only.")
RANGE = typer.Option(
    None, "--range", metavar="A-B", help='Hit what touches these bytes, such as "0-1M"; all, if not given.'
)
EVERY = typer.Option(None, min=1, help="Hit every Nth request.")
PROBABILITY = typer.Option(None, min=0.0, max=1.0, help="Hit each request with this probability.")
SEED = typer.Option(1, min=0, help="Seed of the chances.")
FOR = typer.Option(None, "--for", help='End after this time, such as "10s"; on fault clear, if not given.')


@app.command("latency")
def latency(
    disk: str = DISK,
    extra: str = typer.Option(..., help='How much later to answer, such as "50ms".'),
    every: int = EVERY,
    probability: float = PROBABILITY,
    range_: str = RANGE,
    read: bool = READ,
    write: bool = WRITE,
    seed: int = SEED,
    for_: str = FOR,
    json_: bool = JSON,
) -> None:
    """Answer late."""
    spec = spec_of("latency", range_, read, write, for_)
    spec |= {"extra_ns": nanoseconds_of("--extra", extra), "every": every, "probability": probability, "seed": seed}
    add_fault(disk, spec, f"answers {extra} late", json_=json_)


@app.command("eio")
def eio(
    disk: str = DISK,
    every: int = EVERY,
    probability: float = PROBABILITY,
    range_: str = RANGE,
    read: bool = READ,
    write: bool = WRITE,
    seed: int = SEED,
    for_: str = FOR,
    json_: bool = JSON,
) -> None:
    """Fail with an I/O error."""
    spec = spec_of("eio", range_, read, write, for_)
    spec |= {"every": every, "probability": probability, "seed": seed}
    add_fault(disk, spec, "fails requests", json_=json_)


@app.command("stuck")
def stuck(
    disk: str = DISK, range_: str = RANGE, read: bool = READ, write: bool = WRITE, for_: str = FOR, json_: bool = JSON
) -> None:
    """Leave the next request without an answer until the fault ends."""
    spec = spec_of("stuck", range_, read, write, for_)
    add_fault(disk, spec, "leaves the next request without an answer", json_=json_)


@app.command("gone")
def gone(disk: str = DISK, seed: int = SEED, json_: bool = JSON) -> None:
    """Pull the drive out: everything fails, and what was not flushed may be lost; fault clear puts it back."""
    from dbdyno.stack.attached import find_disk

    found = find_disk(disk)
    cut = found.client().pull_out(seed)
    words = f"{found.name}: gone; {cut.lost_sectors} of {cut.unflushed_sectors} unflushed sectors are lost"
    print_done(words, {"name": found.name, **asdict(cut)}, json_=json_)


@app.command("clear")
def clear(disk: str = DISK, json_: bool = JSON) -> None:
    """End all faults of a disk."""
    from dbdyno.stack.attached import find_disk

    found = find_disk(disk)
    found.client().clear_faults()
    print_done(f"{found.name}: no faults", {"name": found.name, "faults": []}, json_=json_)
