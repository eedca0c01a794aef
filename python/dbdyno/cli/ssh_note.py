"""What is said of every verb that is given a file of hosts: such a file may have programs run on this machine."""

from pathlib import Path

import typer

from dbdyno.errors import UserError


def note_ssh_config(hosts: Path | None) -> Path | None:
    """Say which configuration of ssh the file names, if it names one; a callback of the option, which stays as it is.

    What is wrong with the file is left to the verb to say.
    """
    if hosts is None:
        return None
    from dbdyno.hosts.inventory import read_inventory
    from dbdyno.model.printable import printable

    try:
        config = read_inventory(hosts).ssh_config
    except UserError:
        return hosts
    if config is not None:
        runs = "programs that it names (ProxyCommand, Match exec and the like) run on this machine, as you"
        typer.echo(f"ssh reads {printable(str(config))}, named by {printable(str(hosts))}: {runs}", err=True)
    return hosts
