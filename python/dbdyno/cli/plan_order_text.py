"""Which blocks a plan has and in which order, on one host or on several."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

from dbdyno.cli.stop_rule_text import order_from, order_text, stop_rule_text
from dbdyno.model.design import Fleet
from dbdyno.plan.plan import Plan
from dbdyno.stack.capabilities import Capability

BLOCKS_SHOWN = 12


def order_lines(plan: Plan) -> Iterator[str]:
    """What decides how many blocks there are, and the first of them in their order."""
    design, fleet = plan.design, plan.design.fleet
    hard = [factor.name for factor in design.factors if factor.hard_to_change]
    plots = f"; whole plots, between bars: {', '.join(hard)}" if hard else ""
    how = "in turn" if plan.client_hosts() else "at once"
    hosts = f", on each host another; blocks run on {', '.join(fleet.hosts)} {how}" if fleet else ""
    order = f"{order_from(plan)}{hosts}{plots}:"
    if design.until == "blocks":
        yield f"{stop_rule_text(design)}, {order}"
    else:
        yield from (stop_rule_text(design), order)
    if fleet is None:
        yield from _blocks(plan, "  ", design.blocks, BLOCKS_SHOWN)
        return
    share = -(-design.blocks // len(fleet.hosts))
    for host in fleet.hosts:
        yield f"  {', '.join([host, *_fixed(fleet, host)])}:"
        yield from _blocks(plan.on_host(host), "    ", share, max(1, BLOCKS_SHOWN // len(fleet.hosts)))


def _blocks(plan: Plan, indent: str, blocks: int, shown: int) -> Iterator[str]:
    for block in range(1, min(blocks, shown) + 1):
        yield f"{indent}{block:3d}  {order_text(plan, block)}"
    if blocks > shown:
        most = "" if plan.design.until == "blocks" else "at most "
        yield f"{indent}... and {most}{blocks - shown} more"


def _fixed(fleet: Fleet, host: str) -> Iterator[str]:
    """What a host has that no treatment varies."""
    yield from (f"{name} {of[host]}" for name, of in fleet.levels.items())
    if host in fleet.disks:
        disk = fleet.disks[host]
        yield f"disk {disk.device}{f' with serial {disk.serial}' if disk.serial else ''}"


def hosts_lines(needs: Iterable[Capability]) -> Iterator[str]:
    """What the hosts under test have answered, a line each."""
    found = list(needs)
    if not found:
        yield "the hosts under test were not asked: --hosts FILE says how they are reached"
        return
    yield "the hosts can't run it:" if any(not one.ok for one in found) else "all hosts can run it:"
    yield from (f"  {one.said}" for one in found)


def blocks_as_dict(plan: Plan) -> dict[str, Any]:
    """The treatments of each block in their order; of several hosts by host, and by its own count of blocks."""
    design, fleet = plan.design, plan.design.fleet
    if fleet is None:
        return {"blocks": _orders(plan, design.blocks)}
    share = -(-design.blocks // len(fleet.hosts))
    on_hosts = {host: _orders(plan.on_host(host), share) for host in fleet.hosts}
    return {
        "hosts": {
            "under_test": fleet.hosts,
            "level": fleet.levels,
            "disk": {host: asdict(disk) for host, disk in fleet.disks.items()},
            "blocks": on_hosts,
            "blocks_max": design.blocks,
        }
    }


def _orders(plan: Plan, blocks: int) -> list[list[str]]:
    return [[slot.treatment for slot in plan.slots(block, 1)] for block in range(1, blocks + 1)]
