"""``dbdyno kernels``: kernels that a virtual machine boots for a trial, and getting one without installing it."""

import typer

from dbdyno.cli.output import JSON, print_done, print_json
from dbdyno.cli.servers import Fetching, print_added
from dbdyno.cli.suggestions import kernels_to_get

app = typer.Typer(
    help="Kernels that virtual machines boot: add, list, remove; none is installed.",
    rich_markup_mode=None,
    invoke_without_command=True,
)
NAME = typer.Argument(metavar="NAME", help="A kernel, as dbdyno kernels lists it.", autocompletion=kernels_to_get)
NAMES = typer.Argument(metavar="NAME", help="Kernels, as dbdyno kernels lists them.", autocompletion=kernels_to_get)


@app.callback()
def kernels(context: typer.Context, json_: bool = JSON) -> None:
    """List the kernels that can be booted, and what is on this host; asks no registry."""
    if context.invoked_subcommand is not None:
        return
    from dbdyno.cli.output import table
    from dbdyno.stack.guest.kernels import find_kernel, known_kernels
    from dbdyno.stack.guest.openzfs import openzfs_of
    from dbdyno.stack.kinds.booted import qemu
    from dbdyno.study.simulated_loads import kernels_by_name

    found, machines = known_kernels(), qemu()
    for one in found:
        zfs = openzfs_of(find_kernel(one["name"]).modules) if one["installed"] else None
        one["openzfs"] = zfs.version if zfs else None
    if json_:
        print_json(found)
        return
    head = ("name", "on this host", "OpenZFS", "from", "MB to get", "MB unpacked")
    rows = [
        [
            one["name"],
            one["release"] or "no",
            one["openzfs"] or "no",
            one["coordinates"],
            str(one["download_mb"]),
            str(one["unpacked_mb"]),
        ]
        for one in found
    ]
    print(table(head, rows, right=4))
    print(f"booted in {machines.said}")
    print(f"simulated, nothing to download: {', '.join(kernels_by_name())}")


@app.command("add")
def add(
    names: list[str] = NAMES,
    zfs: bool = typer.Option(False, "--zfs", help="Build OpenZFS for it too; takes minutes."),
    json_: bool = JSON,
) -> None:
    """Download kernels into the state folder; resumes an interrupted download."""
    from dbdyno.stack.guest.kernels import add, kernels_folder, product_named
    from dbdyno.stack.guest.openzfs import DOWNLOAD_MB, add_openzfs

    records = []
    for product in [product_named(name) for name in names]:  # all are known before the first is fetched
        with Fetching(product.name, product.download_mb) as progress:
            record = add(product.name, progress)
        words = f"{product.name}: {record['release']}, in {kernels_folder() / product.name}"
        if zfs:
            with Fetching(product.name, DOWNLOAD_MB) as progress:
                record = {**record, "openzfs": add_openzfs(product.name, progress)["version"]}
            words += f", with OpenZFS {record['openzfs']}"
        records.append(record)
        if not json_:
            print_done(words, record, json_=False)
    if json_:
        print_added(records)


@app.command("remove")
def remove(name: str = NAME, json_: bool = JSON) -> None:
    """Remove a kernel, or an incomplete download."""
    from dbdyno.stack.guest.kernels import remove

    removed = remove(name)
    words = f"{name}: {'removed' if removed else 'was not there'}"
    print_done(words, {"name": name, "removed": removed}, json_=json_)
