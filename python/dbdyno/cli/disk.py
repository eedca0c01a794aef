"""``dbdyno disk``: emulated disks for anybody."""

import json
import sys
from pathlib import Path

import typer

from dbdyno.errors import UserError

app = typer.Typer(help="Emulated disks that behave like a named drive.", no_args_is_help=True, rich_markup_mode=None)


@app.command("models")
def models(json_: bool = typer.Option(False, "--json", help="Print JSON.")) -> None:
    """List the drives that can be emulated."""
    from dbdyno._native import device_models

    found = device_models()
    if json_:
        print(json.dumps(found, indent=1))
        return
    width = max(len(model["name"]) for model in found)
    for model in found:
        print(f"{model['name']:{width}s}  {model['title']}")


@app.command("attach")
def attach(
    model: str = typer.Argument(
        metavar="MODEL", help="A drive: see dbdyno disk models, or a drive file of your own ending in .toml."
    ),
    size: str = typer.Option(..., help='Size, such as "2G".'),
    seed: int = typer.Option(1, min=0, help="Seed of the drive's chances."),
) -> None:
    """Attach an emulated disk; prints its /dev/loopN. It stays until it is detached."""
    from dbdyno.stack.attached import attach_disk
    from dbdyno.study.units import size_bytes

    try:
        wanted = size_bytes(size)
    except ValueError as error:
        raise UserError(f"--size {size!r} {error}") from None
    device, notes = attach_disk(model, wanted, seed)
    for note in notes:
        print(f"note: {note}", file=sys.stderr)
    print(device)


@app.command("detach")
def detach(device: Path = typer.Argument(metavar="DEVICE", help="The /dev/loopN that attach printed.")) -> None:
    """Detach an emulated disk; its content is gone."""
    from dbdyno.stack.attached import detach_disk

    detach_disk(device)
    print(f"detached {device}")
