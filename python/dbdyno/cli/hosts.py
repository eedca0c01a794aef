"""``dbdyno hosts``: bring up the hosts of a file, see how they are, and end what was started on them."""

from pathlib import Path

import typer

from dbdyno.cli.options import note_ssh_config
from dbdyno.cli.output import JSON, print_json
from dbdyno.errors import HostError

app = typer.Typer(help="Many hosts: up, status, down; needs dbdyno[ray].", rich_markup_mode=None)
FILE = typer.Argument(
    metavar="HOSTS", help="The file that names the hosts, such as hosts.toml.", callback=note_ssh_config
)
ADDRESS = typer.Option("", "--address", metavar="ADDRESS:PORT", help="Join this cluster of Ray; start none.")


@app.command("up")
def up(hosts: Path = FILE, address: str = ADDRESS, json_: bool = JSON) -> None:
    """Put this very dbdyno on each host, by ssh, and start Ray there; hosts that are up stay as they are."""
    from dataclasses import asdict

    from dbdyno.cli.hosts_text import checked_address
    from dbdyno.hosts.bring_up import bring_up
    from dbdyno.hosts.inventory import read_inventory
    from dbdyno.system.interrupt import interruptible

    inventory = read_inventory(hosts)
    with interruptible(_say):
        found = bring_up(inventory, checked_address(address), _say)
    if json_:
        print_json({"hosts": [asdict(one) for one in found]})
    else:
        print(f"{len(found)} hosts are up; dbdyno hosts down {hosts} ends what was started")


@app.command("status")
def status(hosts: Path = FILE, json_: bool = JSON) -> None:
    """Ask each host: reachable, the same dbdyno, Ray alive, how far its clock is off, what it has. Sets no clock."""
    from dbdyno.cli.hosts_text import as_text, as_values
    from dbdyno.hosts.inventory import read_inventory
    from dbdyno.hosts.look import look

    found, problem = look(read_inventory(hosts))
    if json_:
        print_json({"hosts": [as_values(one) for one in found], "problem": problem})
    else:
        print(as_text(found, problem))


@app.command("down")
def down(hosts: Path = FILE, json_: bool = JSON) -> None:
    """End what up has started, on each host by its own undo log; also what a killed up has left."""
    from dataclasses import asdict

    from dbdyno.hosts import cluster as clusters
    from dbdyno.hosts.bring_up import bring_down
    from dbdyno.hosts.inventory import read_inventory

    inventory = read_inventory(hosts)
    with clusters.only_one(inventory.cluster.name):
        cluster = clusters.known(inventory.cluster.name) or clusters.new(inventory.cluster.name)
        found = bring_down(cluster, inventory, _say)
    if json_:
        print_json({"hosts": [asdict(one) for one in found]})
    left = [one.name for one in found if one.problem]
    if left:
        raise HostError(f"{', '.join(left)}: see above; once that is fixed, dbdyno hosts down {hosts} again")


def _say(text: str) -> None:
    typer.echo(text, err=True)
