"""``dbdyno restore``: put back what a killed dbdyno left."""

import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dbdyno.cli.options import note_ssh_config
from dbdyno.cli.output import JSON, print_json
from dbdyno.errors import HostError

if TYPE_CHECKING:
    from dbdyno.hosts.bring_up import Restored
    from dbdyno.stack.undo.leftovers import Leftover

HOSTS = typer.Option(
    None,
    "--hosts",
    metavar="FILE",
    help="Also on each host of this file, by its own undo logs.",
    callback=note_ssh_config,
)


def restore(hosts: Path | None = HOSTS, json_: bool = JSON) -> None:
    """Undo what a killed dbdyno left: mounts, loop devices, disks, servers, changed settings."""
    from dbdyno.hosts.bring_up import refuse_unrestored, restore_hosts
    from dbdyno.hosts.inventory import read_inventory
    from dbdyno.stack.undo.leftovers import kept_aside, leftovers, unreadable

    inventory = read_inventory(hosts) if hosts else None
    damaged = kept_aside()
    for kept in damaged:
        typer.echo(f"{kept} is a damaged undo log; see there what may be left, then remove it", err=True)
    problems = unreadable()
    for problem in problems:
        typer.echo(problem, err=True)
    found = [_put_back(one, aside=json_) for one in leftovers()]
    there = restore_hosts(inventory) if inventory else []
    restored = [one for one in found if "undone" in one]
    if json_:
        left_alone = [one for one in found if one and "undone" not in one]
        logs = {"damaged_logs": list(map(str, damaged)), "unreadable_logs": problems}
        others = {"hosts": [asdict(one) for one in there]} if inventory else {}
        print_json({"restored": restored, "left_alone": left_alone, **logs, **others})
    else:
        _say_of(there)
    if problems or not all(one["whole"] for one in restored):
        raise HostError(
            "some of it could not be undone: see above; stop the programs that hold it, then run dbdyno restore again"
        )
    refuse_unrestored(there)
    if not json_:
        where = "this machine: " if inventory else ""
        typer.echo(where + ("the host is as it was" if restored else "nothing to restore"))


def _put_back(found: "Leftover", *, aside: bool) -> dict[str, Any]:
    """Undo what a log says, and say so; what was undone, or whose it is; nothing where there was nothing to do."""
    from dbdyno.stack.undo.leftovers import replay, taken

    def say(text: str) -> None:
        print(text, file=sys.stderr if aside else sys.stdout)

    about = {"what": found.what, "pid": found.owner.pid if found.owner else None}
    with taken(found.path, say) as held:
        if held:
            say(f"{held.what} ({held.by}) has ended without putting the host back:")
            undone: list[str] = []
            return {
                **about,
                "whole": replay(held, _both(undone.append, lambda text: say(f"  {text}"))),
                "undone": undone,
            }
        if found.path.exists():
            where = "" if found.owner and found.owner.alive() else ", in another PID namespace"
            say(f"left alone: {found.what} ({found.by} is running{where})")
            return about
    return {}


def _say_of(there: "list[Restored]") -> None:
    """What each host has undone; one that could not be put back is named as the error."""
    for one in there:
        for line in one.undone + one.left_alone or (() if one.problem else ("nothing to restore",)):
            typer.echo(f"{one.name}: {line}")


def _both(*takers: Callable[[str], None]) -> Callable[[str], None]:
    def take(text: str) -> None:
        for one in takers:
            one(text)

    return take
