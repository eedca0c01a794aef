"""``dbdyno restore``: put back what a killed dbdyno left."""

from typing import TYPE_CHECKING

import typer

from dbdyno.errors import HostError

if TYPE_CHECKING:
    from dbdyno.stack.undo.leftovers import Leftover


def restore() -> None:
    """Undo what a killed dbdyno left: mounts, loop devices, disks, servers, changed settings."""
    from dbdyno.stack.undo.leftovers import kept_aside, leftovers, unreadable

    for kept in kept_aside():
        typer.echo(f"{kept} is a damaged undo log; see there what may be left, then remove it", err=True)
    problems = unreadable()
    for problem in problems:
        typer.echo(problem, err=True)
    done = [_put_back(one) for one in leftovers()]
    if False in done or problems:
        raise HostError("some of it could not be undone: see above; end what holds it, then run dbdyno restore again")
    typer.echo("the host is as it was" if True in done else "nothing to restore")


def _put_back(found: "Leftover") -> bool | None:
    """Undo what a log says; whether all of it worked, ``None`` where there was nothing to do."""
    from dbdyno.stack.undo.leftovers import replay, taken

    with taken(found.path, typer.echo) as held:
        if held:
            typer.echo(f"{held.what} ({held.by}) has ended without putting the host back:")
            return replay(held, lambda text: typer.echo(f"  {text}"))
        if found.path.exists():
            where = "" if found.owner and found.owner.alive() else ", in another PID namespace"
            typer.echo(f"left alone: {found.what} ({found.by} is running{where})")
    return None
