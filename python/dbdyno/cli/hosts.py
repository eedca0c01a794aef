"""``dbdyno hosts``: bring up the hosts of a file, see how they are, and put them back."""

from pathlib import Path

import typer

from dbdyno.cli.options import note_ssh_config
from dbdyno.cli.output import JSON, print_json
from dbdyno.errors import HostError

app = typer.Typer(help="Many hosts, by ssh: up, status, down.", rich_markup_mode=None)
FILE = typer.Argument(
    metavar="HOSTS", help="The file that names the hosts, such as hosts.toml.", callback=note_ssh_config
)


@app.command("up")
def up(hosts: Path = FILE, json_: bool = JSON) -> None:
    """Put this very dbdyno on each host, by ssh; hosts that have it stay as they are, and nothing is started."""
    from dataclasses import asdict

    from dbdyno.hosts.bring_up import bring_up
    from dbdyno.hosts.inventory import read_inventory
    from dbdyno.system.interrupt import interruptible

    inventory = read_inventory(hosts)
    with interruptible(_say):
        hosts_up = bring_up(inventory, _say)
    if json_:
        print_json({"hosts": [asdict(host) for host in hosts_up]})
    else:
        print(f"{len(hosts_up)} hosts are up; dbdyno hosts down {hosts} puts them back")


@app.command("status")
def status(hosts: Path = FILE, json_: bool = JSON) -> None:
    """Ask each host: reachable, the same dbdyno, how far its clock is off, what it has. Sets no clock."""
    from dbdyno.cli.hosts_text import as_text, as_values
    from dbdyno.hosts.bring_up import host_status
    from dbdyno.hosts.inventory import read_inventory

    statuses, problem = host_status(read_inventory(hosts))
    if json_:
        print_json({"hosts": [as_values(host) for host in statuses], "problem": problem})
    else:
        print(as_text(statuses, problem))


@app.command("down")
def down(hosts: Path = FILE, json_: bool = JSON) -> None:
    """Put each host back by its own undo logs, and remove what was sent to it for studies."""
    from dataclasses import asdict

    from dbdyno.hosts.bring_up import bring_down
    from dbdyno.hosts.inventory import read_inventory

    restored_hosts = bring_down(read_inventory(hosts), _say)
    if json_:
        print_json({"hosts": [asdict(host) for host in restored_hosts]})
    left = [host.name for host in restored_hosts if host.problem]
    if left:
        raise HostError(f"{', '.join(left)}: see above; once that is fixed, dbdyno hosts down {hosts} again")


def _say(text: str) -> None:
    typer.echo(text, err=True)
