"""``[hosts]``: the hosts that a study is run on, and what is fixed to each of them."""

from collections.abc import Collection, Iterator
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from dbdyno.study.drives import is_real
from dbdyno.study.mistakes import Mistake, did_you_mean, shown
from dbdyno.study.section import HostName, Line, Section

HOSTS_MAX = 100


def _disk(device: str) -> str:
    if not (device.startswith("/") and is_real(device)):
        raise ValueError("is no whole path of a disk, such as /dev/disk/by-id/... or /dev/nvme0n1")
    return device


class DiskSection(Section):
    """``[hosts.disk.NAME]``: the real disk of one host under test, all of which is erased."""

    device: Annotated[Line, AfterValidator(_disk)]
    """As `[stack] device` names a whole disk: `"/dev/disk/by-id/..."`, or any path beside the `serial`."""
    serial: Line | None = None
    """What the kernel there must show, where the name does not hold it."""


class FleetSection(Section):
    """``[hosts]``: the hosts that the study is run on, each with whole blocks of its own; see [hosts.md](hosts.md)."""

    under_test: Annotated[list[HostName], Field(min_length=1, max_length=HOSTS_MAX)]
    """Names from the file of hosts, such as `["db1", "db2"]`. Each has the role `server` there.
    With `[workload] clients_from` they are loaded from those hosts, one of them at a time.
    """
    level: dict[Line, dict[HostName, Line]] = Field(default_factory=dict)
    """What differs between the hosts and can't be changed on them, such as `drive = { db1 = "hdd", db2 = "ssd" }`:
    every host under test has a level. It is compared between hosts, so a study with it may have one treatment alone.
    """
    disk: dict[HostName, DiskSection] = Field(default_factory=dict)
    """The real disk of each host, in a section of its own, such as `[hosts.disk.db1]`; `[stack]` then has no `device`.
    """


def fleet_mistakes(
    fleet: FleetSection, factors: Collection[str], body: dict[str, Any], kinds: Collection[str]
) -> Iterator[Mistake]:
    """Every rule that ``[hosts]`` breaks, by itself or beside the rest.

    ``factors`` are what treatments vary, ``kinds`` those of their stacks.
    """
    hosts = fleet.under_test
    for index, host in enumerate(hosts):
        if host in hosts[:index]:
            yield Mistake(("hosts", "under_test", index), f"names {shown(host)} twice")
    for name, of in fleet.level.items():
        if name in factors:
            yield Mistake(("hosts", "level", name), "is a factor of the study too; call it by another name")
        for host in of.keys() - set(hosts):
            text = f"is not under test; those are {', '.join(hosts)}{did_you_mean(host, hosts)}"
            yield Mistake(("hosts", "level", name, host), text)
        if lacking := [host for host in hosts if host not in of]:
            yield Mistake(("hosts", "level", name), f"has no level for {', '.join(lacking)}; every host has one")
    if fleet.level and "crash" in body:
        text = "can't be given with [crash]: it compares speed. What each host lost is in the report without it"
        yield Mistake(("hosts", "level"), text)
    yield from _beside(hosts, body, kinds)


def _beside(hosts: list[str], body: dict[str, Any], kinds: Collection[str]) -> Iterator[Mistake]:
    """What can't be run on several hosts."""
    place = ("hosts", "under_test")
    clients = body.get("workload", {}).get("clients_from", [])
    for index, host in enumerate(hosts):
        if host in clients:
            both = "which workload.clients_from names too; a host is measured, or it offers the load"
            yield Mistake((*place, index), f"names {shown(host)}, {both}")
    if "simulated" in kinds:
        yield Mistake(place, "is of no use to simulated stacks, which use no host; leave [hosts] out")
    if "external" in kinds:
        yield Mistake(place, "can't be given with an external server, which is on none of them; leave [hosts] out")
