"""``dbdyno servers``: the server products that dbdyno knows, and getting one without installing it."""

import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import typer
from rich.console import Console

from dbdyno.cli.output import JSON, print_done, print_json
from dbdyno.cli.suggestions import servers_to_get

if TYPE_CHECKING:
    from rich.status import Status


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
    from dbdyno.cli.output import table
    from dbdyno.mysql.settings import not_served
    from dbdyno.servers.sources.cache import known_servers

    server_rows = known_servers()
    if json_:
        print_json(server_rows)
        return
    head = ("name", "on this host", "engines", "from", "MB to get", "MB unpacked")
    rows = [
        [
            server["name"],
            server["version"] or "no",
            " ".join(server["engines"]),
            server["source"],
            str(server["download_mb"] or "-"),
            str(server["unpacked_mb"] or "-"),
        ]
        for server in server_rows
        if server["source"]
    ]
    print(table(head, rows, right=4))
    for server in server_rows:
        if server["problem"] and server["source"]:
            print(f"{server['name']}: {server['problem']}")
    if missing := [server["name"] for server in server_rows if not server["source"]]:
        print(not_served(*missing))


@app.command("add")
def add(
    names: list[str] = typer.Argument(
        metavar="NAME|URL|FILE",
        help="Servers, as dbdyno servers lists them, or a vendor's archive (.tar.gz, .tar.xz).",
        autocompletion=servers_to_get,
    ),
    sha256: str = typer.Option("", metavar="HEX", help="An archive's checksum, as the vendor lists it."),
    signature: Path = typer.Option(None, metavar="FILE", help="An archive's detached signature, checked by gpg."),
    key: Path = typer.Option(None, metavar="FILE", help="The vendor's public key, which the signature is made with."),
    json_: bool = JSON,
) -> None:
    """Download servers into the state folder; resumes an interrupted download."""
    from dbdyno.errors import UserError
    from dbdyno.servers.sources.archive import Archive
    from dbdyno.servers.sources.cache import add, add_archive, product_named, tree_of

    archives = [name for name in names if "/" in name or name.endswith((".gz", ".xz", ".tgz", ".tar"))]
    if archives and len(names) > 1:
        raise UserError(f"{archives[0]} is an archive, which is added alone; its checksum or signature is its own")
    if archives:
        name = archives[0]
        with Fetching(name.rpartition("/")[2], 0) as progress:
            record = add_archive(Archive(name, sha256.lower(), signature, key), progress)
        name = record["name"]
        print_done(f"{name}: {record['version']}, in {tree_of(name)}", record, json_=json_)
        return
    if sha256 or signature or key:
        raise UserError("--sha256, --signature and --key are for an archive; what dbdyno lists is checked anyway")
    records = []
    for name, download_mb in [(name, product_named(name).download_mb) for name in names]:  # all are known
        with Fetching(name, download_mb) as progress:
            record = add(name, progress)
        records.append(record)
        if not json_:
            print_done(f"{name}: {record['version']}, in {tree_of(name)}", record, json_=False)
    if json_:
        print_added(records)


def print_added(records: Sequence[Mapping[str, Any]]) -> None:
    """Print what was added as one JSON value: an object of one name, which is what 1.0 printed; a list of several."""
    print_json(records[0] if len(records) == 1 else records)


@app.command("remove")
def remove(name: str = NAME, json_: bool = JSON) -> None:
    """Remove a server that was added, or an incomplete download."""
    from dbdyno.servers.sources.cache import remove

    removed = remove(name)
    words = f"{name}: {'removed' if removed else 'was not there'}"
    print_done(words, {"name": name, "removed": removed}, json_=json_)


# How far a download is, on standard error.


class Fetching:
    """A line that changes on a terminal; elsewhere a line for each step."""

    def __init__(self, name: str, about_mb: int) -> None:
        self._name, self._about_mb = name, about_mb
        self._text = ""
        self._console = Console(stderr=True, highlight=False, markup=False)
        self._status: Status | None = None
        self._closing = ExitStack()

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._status = self._closing.enter_context(self._console.status(self._name))
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    def step(self, text: str) -> None:
        """What begins now."""
        self._text = text
        if self._status:
            self._status.update(f"{self._name}: {text}")
        else:
            print(f"{self._name}: {text}", file=sys.stderr, flush=True)

    def size(self, downloaded_bytes: int) -> None:
        """How much has been downloaded."""
        if self._status:
            of = f" of about {self._about_mb}" if self._about_mb else ""
            so_far = f"{downloaded_bytes / 1e6:.0f}{of} MB"
            self._status.update(f"{self._name}: {self._text}, {so_far}")
