"""``dbdyno disk mode | snapshot | restore | forget``: how a disk spends its time, and what is on it."""

import typer

from dbdyno.cli.output import JSON, print_done
from dbdyno.cli.suggestions import attached_disks, of_words
from dbdyno.cli.values import one_of

DISK = typer.Argument(
    metavar="DISK", help="A name or /dev/loopN, as dbdyno disk list shows it.", autocompletion=attached_disks
)
SNAPSHOT = typer.Argument(metavar="SNAPSHOT", help="Name of the snapshot.")


def mode(
    disk: str = DISK,
    mode: str = typer.Argument(
        metavar="instant|model", help="At once, or as the drive.", autocompletion=of_words("instant", "model")
    ),
    json_: bool = JSON,
) -> None:
    """Answer at once, or when the drive would; it then starts idle, with empty caches."""
    from dbdyno.stack.attached import find_disk
    from dbdyno.stack.disk_client import MODES

    wanted = one_of("the mode", mode, MODES)
    found = find_disk(disk)
    found.client().set_mode(wanted)
    print_done(f"{found.name}: mode {mode}", {"name": found.name, "mode": mode}, json_=json_)


def snapshot(disk: str = DISK, name: str = SNAPSHOT, json_: bool = JSON) -> None:
    """Keep the content as the drive has it now, under a name; what a filesystem has not written yet is not in it."""
    from dbdyno.stack.attached import find_disk

    found = find_disk(disk)
    found.client().snapshot(name)
    print_done(f"{found.name}: snapshot {name}", {"name": found.name, "snapshot": name}, json_=json_)


def restore(disk: str = DISK, name: str = SNAPSHOT, json_: bool = JSON) -> None:
    """Put the content back to what it was at a snapshot; unmount it first."""
    from dbdyno.stack.attached import find_disk

    found = find_disk(disk)
    found.refuse_if_used("restore it")
    found.client().restore(name)
    print_done(f"{found.name}: restored {name}", {"name": found.name, "restored": name}, json_=json_)


def forget(disk: str = DISK, name: str = SNAPSHOT, json_: bool = JSON) -> None:
    """Drop a snapshot."""
    from dbdyno.stack.attached import find_disk

    found = find_disk(disk)
    found.client().forget(name)
    print_done(f"{found.name}: forgot {name}", {"name": found.name, "forgotten": name}, json_=json_)


VERBS = {"mode": mode, "snapshot": snapshot, "restore": restore, "forget": forget}
