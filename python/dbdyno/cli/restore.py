"""``dbdyno restore``: put back what a killed dbdyno left."""

import typer

from dbdyno.errors import HostError


def restore() -> None:
    """Undo what a killed dbdyno left: mounts, loop devices, disks, servers, changed settings."""
    from dbdyno.stack.journal import leftovers, replay, unreadable

    found = leftovers()
    orphans = [one for one in found if one.orphaned()]
    for one in found:
        if not one.orphaned():
            typer.echo(f"left alone: {one.what} (pid {one.owner.pid} is running)")
    problems = unreadable()
    for problem in problems:
        typer.echo(problem, err=True)
    if not orphans and not problems:
        typer.echo("nothing to restore")
        return
    whole = not problems
    for one in orphans:
        typer.echo(f"{one.what} (pid {one.owner.pid}) has ended without putting the host back:")
        whole &= replay(one, lambda text: typer.echo(f"  {text}"))
    if not whole:
        raise HostError("some of it could not be undone; end what holds it, then run dbdyno restore again")
    typer.echo("the host is as it was")
