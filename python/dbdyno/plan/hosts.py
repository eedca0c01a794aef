"""What can be foreseen of a study on several hosts: which claims so many of them can bear."""

from collections import Counter
from collections.abc import Iterator

from dbdyno.model.design import HOSTS_MIN, HOSTS_OF_LEVEL_MIN, Design, Fleet
from dbdyno.model.wording import listed


def hosts_warnings(design: Design) -> Iterator[str]:
    """What so few hosts can't show."""
    fleet = design.fleet
    if fleet is None or len(fleet.hosts) < 2:  # noqa: PLR2004 - one host is as a study without the word
        return
    if design.comparisons and design.control is None and len(fleet.hosts) < HOSTS_MIN:  # cuts are of these hosts alone
        yield f"{len(fleet.hosts)} hosts can show what holds on them, not on hosts like them; name at least {HOSTS_MIN}"
    if (design.comparisons or design.control) and design.blocks < len(fleet.hosts):
        yield f"{design.blocks} blocks leave hosts without any; give at least as many as there are hosts"
    yield from _of_levels(fleet)
    yield from _of_disks(fleet)


def _of_levels(fleet: Fleet) -> Iterator[str]:
    for factor, level_of in fleet.levels.items():
        hosts = Counter(level_of.values())
        few = [f"{level} ({number})" for level, number in hosts.items() if number < HOSTS_OF_LEVEL_MIN]
        if len(hosts) < 2:  # noqa: PLR2004
            yield f"all hosts have the same level of {factor}: there is nothing to compare in it"
        elif set(hosts.values()) == {1}:
            yield f"each level of {factor} has one host: what differs is this machine against that one, not the level"
        elif few:
            least = f"{HOSTS_OF_LEVEL_MIN} of each at least"
            yield f"levels of {factor} are compared by hosts, {least}; fewer: {', '.join(few)}"


def _of_disks(fleet: Fleet) -> Iterator[str]:
    """Hosts whose disks may be one: a path is of each host, a serial or a name by it is not."""
    hosts: dict[str, list[str]] = {}
    for host, disk in fleet.disks.items():
        if name := disk.serial or (disk.device if disk.device.startswith("/dev/disk/by-id/") else ""):
            hosts.setdefault(name, []).append(host)
    for name, found in hosts.items():
        if len(found) > 1:
            all_ = "both" if len(found) == 2 else "all"  # noqa: PLR2004
            yield f"{listed(found)} name the same disk, {name}; if it is one that {all_} of them see, {all_} erase it"
