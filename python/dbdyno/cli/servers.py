"""``dbdyno servers``: the server products that dbdyno knows, and getting one without installing it."""

import typer

from dbdyno.cli.output import JSON, print_done, print_json
from dbdyno.cli.suggestions import servers_to_get

app = typer.Typer(
    help="Other servers to measure: add, list, remove; none is installed.",
    rich_markup_mode=None,
    invoke_without_command=True,
)
NAME = typer.Argument(metavar="NAME", help="A server, as dbdyno servers lists it.", autocompletion=servers_to_get)


@app.callback()
def servers(context: typer.Context, json_: bool = JSON) -> None:
    """List the servers that are known, and what is on this host; asks no registry."""
    if context.invoked_subcommand is not None:
        return
    from dbdyno.cli.text_table import table
    from dbdyno.servers.sources.cache import known_servers
    from dbdyno.study.units import not_served

    found = known_servers()
    if json_:
        print_json(found)
        return
    head = ("name", "on this host", "engines", "from", "MB to get", "MB unpacked")
    rows = [
        [
            one["name"],
            one["version"] or "no",
            " ".join(one["engines"]),
            one["source"],
            str(one["download_mb"] or "-"),
            str(one["unpacked_mb"] or "-"),
        ]
        for one in found
        if one["source"]
    ]
    print(table(head, rows, right=4))
    for one in found:
        if one["problem"] and one["source"]:
            print(f"{one['name']}: {one['problem']}")
    print(not_served(*(one["name"] for one in found if not one["source"])))


@app.command("add")
def add(name: str = NAME, json_: bool = JSON) -> None:
    """Download a server into the state folder; goes on where a killed try stopped."""
    from dbdyno.cli.fetching import Fetching
    from dbdyno.servers.sources.cache import add, product_named, tree_of

    with Fetching(name, product_named(name).download_mb) as progress:
        record = add(name, progress)
    print_done(f"{name}: {record['version']}, in {tree_of(name)}", record, json_=json_)


@app.command("remove")
def remove(name: str = NAME, json_: bool = JSON) -> None:
    """Remove one that was added, or what is left of a killed try."""
    from dbdyno.servers.sources.cache import remove

    removed = remove(name)
    words = f"{name}: {'removed' if removed else 'was not there'}"
    print_done(words, {"name": name, "removed": removed}, json_=json_)
