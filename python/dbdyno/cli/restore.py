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
    from dbdyno.stack.restore import Leftover

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
    from dbdyno.stack.restore import kept_aside, leftovers, unreadable

    inventory = read_inventory(hosts) if hosts else None
    damaged = kept_aside()
    for kept in damaged:
        typer.echo(f"{kept} is a damaged undo log; see there what may be left, then remove it", err=True)
    problems = unreadable()
    for problem in problems:
        typer.echo(problem, err=True)
    outcomes = [_put_back(leftover, aside=json_) for leftover in leftovers()]
    there = restore_hosts(inventory) if inventory else []
    restored = [outcome for outcome in outcomes if "undone" in outcome]
    if json_:
        left_alone = [outcome for outcome in outcomes if outcome and "undone" not in outcome]
        logs = {"damaged_logs": list(map(str, damaged)), "unreadable_logs": problems}
        others = {"hosts": [asdict(host) for host in there]} if inventory else {}
        print_json({"restored": restored, "left_alone": left_alone, **logs, **others})
    else:
        _say_of(there)
    if problems or not all(outcome["whole"] for outcome in restored):
        raise HostError(
            "some of it could not be undone: see above; stop the programs that hold it, then run dbdyno restore again"
        )
    refuse_unrestored(there)
    if not json_:
        where = "this machine: " if inventory else ""
        typer.echo(where + ("the host is as it was" if restored else "nothing to restore"))


def _put_back(leftover: "Leftover", *, aside: bool) -> dict[str, Any]:
    """Undo what a log says, and say so; what was undone, or whose it is; nothing where there was nothing to do."""
    from dbdyno.stack.restore import replay, taken

    def say(text: str) -> None:
        print(text, file=sys.stderr if aside else sys.stdout)

    about = {"what": leftover.what, "pid": leftover.owner.pid if leftover.owner else None}
    with taken(leftover.path, say) as undo_log:
        if undo_log:
            say(f"{undo_log.what} ({undo_log.by}) has ended without putting the host back:")
            undone: list[str] = []
            return {
                **about,
                "whole": replay(undo_log, _both(undone.append, lambda text: say(f"  {text}"))),
                "undone": undone,
            }
        if leftover.path.exists():
            where = "" if leftover.owner and leftover.owner.alive() else ", in another PID namespace"
            say(f"left alone: {leftover.what} ({leftover.by} is running{where})")
            return about
    return {}


def _say_of(there: "list[Restored]") -> None:
    """What each host has undone; one that could not be put back is named as the error."""
    for host in there:
        for line in host.undone + host.left_alone or (() if host.problem else ("nothing to restore",)):
            typer.echo(f"{host.name}: {line}")


def _both(*takers: Callable[[str], None]) -> Callable[[str], None]:
    def take(text: str) -> None:
        for taker in takers:
            taker(text)

    return take
