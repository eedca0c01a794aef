"""``[hosts.disk.NAME]``: the real disk of each host under test, in the place of one that ``[stack]`` names for all."""

from collections.abc import Iterator
from typing import Any

from dbdyno.study.drive_rules import unsure_name
from dbdyno.study.drives import OF_HOST
from dbdyno.study.fleet_section import FleetSection
from dbdyno.study.mistakes import Mistake, did_you_mean
from dbdyno.study.study import Factor, with_disk

_PLACES = (("stack", "device"), ("stack", "serial"))


def without_disk(fleet: FleetSection | None, body: dict[str, Any], found: list[Mistake]) -> dict[str, Any]:
    """The body of a study, whose stack stands on the disk of each host where ``[hosts.disk]`` names them."""
    stack = body.get("stack")
    if fleet is None or not fleet.disk or not isinstance(stack, dict):
        return body
    for _, field in _PLACES:
        if field in stack:
            text = "can't be given with [hosts.disk], which says it for each host; leave out one of the two"
            found.append(Mistake(("stack", field), text))
    return with_disk(body, OF_HOST, None)


def on_some_disk(fleet: FleetSection | None, body: dict[str, Any]) -> dict[str, Any]:
    """The body as it can be checked by the rules for real disks, which take this name; without such disks as it is."""
    return with_disk(body, "/dev/disk/by-id/of-each-host", None) if fleet and fleet.disk else body


def disk_mistakes(fleet: FleetSection, factors: tuple[Factor, ...], kinds: set[str]) -> Iterator[Mistake]:
    """Every rule that ``[hosts.disk]`` breaks, and a study on real disks that lacks it."""
    hosts = fleet.under_test
    if not fleet.disk:
        if "real" in kinds and len(hosts) > 1:
            text = f"is the disk of one host, and {len(hosts)} are under test; leave it out, and give each its own, "
            yield Mistake(("stack", "device"), text + f"as in [hosts.disk.{hosts[0]}]")
        return
    for host in fleet.disk.keys() - set(hosts):
        text = f"is not under test; those are {', '.join(hosts)}{did_you_mean(host, hosts)}"
        yield Mistake(("hosts", "disk", host), text)
    if lacking := [host for host in hosts if host not in fleet.disk]:
        yield Mistake(("hosts", "disk"), f"names no disk for {', '.join(lacking)}; every host under test has one")
    for host, disk in fleet.disk.items():
        if text := unsure_name(disk.device, disk.serial):
            yield Mistake(("hosts", "disk", host, "device"), f"{text} beside it, as serial")
    yield from _varied(factors)


def _varied(factors: tuple[Factor, ...]) -> Iterator[Mistake]:
    """Named levels that give what each host has of its own."""
    places = (factor.places(level) for factor in factors for level in factor.levels)
    text = "can't be given where [hosts.disk] names a disk for each host"
    yield from (Mistake(found[path], text) for found in places for path in _PLACES if path in found)
