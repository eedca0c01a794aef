"""``dbdyno disk``: emulated disks outside of a study."""

import sys
from pathlib import Path

import typer

from dbdyno.cli import disk_content, disk_fault, disk_figures, disk_fit, disk_power
from dbdyno.cli.output import JSON, print_done, print_json
from dbdyno.cli.suggestions import drives, of_words

# ``dbdyno disk models``: the drives there are.


def models(json_: bool = JSON) -> None:
    """List the drives that can be emulated."""
    from dbdyno._native import device_models

    found = device_models()
    if json_:
        print_json(found)
        return
    width = max(len(model["name"]) for model in found)
    for model in found:
        print(f"{model['name']:{width}s}  {model['title']}")


app = typer.Typer(help="Emulated disks that behave like a named drive.", rich_markup_mode=None)


app.command("models")(models)


@app.command("attach")
def attach(
    model: str = typer.Argument(
        metavar="MODEL",
        help="A drive: see dbdyno disk models, or a drive file of your own ending in .toml; other numbers, as in "
        '"ebs-io1(iops=20000)", and arrays, as in "raid1(hdd-15k, 2)", in quotes.',
        autocompletion=drives,
    ),
    size: str = typer.Option(..., help='Size, such as "2G".'),
    seed: int = typer.Option(1, min=0, help="Seed of the drive's chances."),
    name: str = typer.Option(None, help="What to call it; the model's name, if not given."),
    state: str = typer.Option(
        "fresh",
        help="An SSD as new (fresh) or long in use (steady); other drives ignore it.",
        autocompletion=of_words("fresh", "steady"),
    ),
    content: str = typer.Option("memory", help="Where its content lies: memory, or a sparse FILE, kept in the end."),
    limit: str = typer.Option(None, help="What the content may take, snapshots included; twice the size by default."),
    sector: int = typer.Option(4096, help="Bytes of a sector as the kernel sees it: 512 or 4096."),
    json_: bool = JSON,
) -> None:
    """Attach an emulated disk; prints its /dev/loopN. It stays until it is detached."""
    from dbdyno.cli.values import bytes_of, one_of
    from dbdyno.stack.attached import attach_disk, find_disk, summary
    from dbdyno.stack.layers.emulated_disk import DiskSpec

    one_of("--state", state, ("fresh", "steady"))
    one_of("--sector", sector, (512, 4096))
    spec = DiskSpec(
        model,
        bytes_of("--size", size),
        seed,
        mode="model",
        state=state,
        content=None if content == "memory" else Path(content).resolve(),
        limit=bytes_of("--limit", limit) if limit else None,
    )
    device, notes = attach_disk(spec, name=name, sector=sector)
    for note in notes:
        print(f"note: {note}", file=sys.stderr)
    if json_:
        print_json({**summary(find_disk(str(device))), "notes": notes})
    else:
        print(device)


@app.command("detach")
def detach(
    disk: str = disk_content.DISK,
    json_: bool = JSON,
) -> None:
    """Detach an emulated disk; content in memory is gone."""
    from dbdyno.stack.attached import detach_disk

    detached = detach_disk(disk)
    print_done(f"detached {detached}", {"detached": detached}, json_=json_)


@app.command("list")
def list_(json_: bool = JSON) -> None:
    """List the disks that are attached to this host."""
    from dbdyno.cli.disk_text import listed
    from dbdyno.stack.attached import attached_disks, summary

    found = [summary(disk) for disk in attached_disks()]
    if json_:
        print_json(found)
    else:
        print(listed(found))


for part in (disk_content, disk_figures, disk_power, disk_fit):
    for verb, command in part.VERBS.items():
        app.command(verb)(command)
app.add_typer(disk_fault.app, name="fault")
