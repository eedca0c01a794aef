"""``dbdyno kernels``: kernels that a virtual machine boots for a trial, and getting one without installing it."""

import typer

from dbdyno.cli.output import JSON, print_done, print_json
from dbdyno.cli.servers import Fetching
from dbdyno.cli.suggestions import kernels_to_get

app = typer.Typer(
    help="Kernels that virtual machines boot: add, list, remove; none is installed.",
    rich_markup_mode=None,
    invoke_without_command=True,
)
NAME = typer.Argument(metavar="NAME", help="A kernel, as dbdyno kernels lists it.", autocompletion=kernels_to_get)


@app.callback()
def kernels(context: typer.Context, json_: bool = JSON) -> None:
    """List the kernels that can be booted, and what is on this host; asks no registry."""
    if context.invoked_subcommand is not None:
        return
    from dbdyno.cli.output import table
    from dbdyno.stack.guest.kernels import known_kernels
    from dbdyno.stack.kinds.booted import qemu
    from dbdyno.study.simulated_loads import kernels_by_name

    found, machines = known_kernels(), qemu()
    if json_:
        print_json(found)
        return
    head = ("name", "on this host", "from", "MB to get", "MB unpacked")
    rows = [
        [one["name"], one["release"] or "no", one["coordinates"], str(one["download_mb"]), str(one["unpacked_mb"])]
        for one in found
    ]
    print(table(head, rows, right=3))
    print(f"booted in {machines.said}")
    print(f"simulated, nothing to download: {', '.join(kernels_by_name())}")


@app.command("add")
def add(name: str = NAME, json_: bool = JSON) -> None:
    """Download a kernel into the state folder; resumes an interrupted download."""
    from dbdyno.stack.guest.kernels import add, kernels_folder, product_named

    with Fetching(name, product_named(name).download_mb) as progress:
        record = add(name, progress)
    print_done(f"{name}: {record['release']}, in {kernels_folder() / name}", record, json_=json_)


@app.command("remove")
def remove(name: str = NAME, json_: bool = JSON) -> None:
    """Remove a kernel, or an incomplete download."""
    from dbdyno.stack.guest.kernels import remove

    removed = remove(name)
    words = f"{name}: {'removed' if removed else 'was not there'}"
    print_done(words, {"name": name, "removed": removed}, json_=json_)
