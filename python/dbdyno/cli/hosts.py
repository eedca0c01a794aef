"""``dbdyno hosts``: bring up the hosts of a file, see how they are, and put them back."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dbdyno.cli.options import note_ssh_config
from dbdyno.cli.output import JSON, hanging, print_json, table
from dbdyno.errors import HostError

if TYPE_CHECKING:
    from dbdyno.hosts.bring_up import HostStatus


app = typer.Typer(help="Many hosts, by ssh: up, status, down.", rich_markup_mode=None)
FILE = typer.Argument(
    metavar="HOSTS", help="The file that names the hosts, such as hosts.toml.", callback=note_ssh_config
)


@app.command("up")
def up(hosts: Path = FILE, json_: bool = JSON) -> None:
    """Put this very dbdyno on each host, by ssh; hosts that have it stay as they are, and nothing is started."""
    from dataclasses import asdict

    from dbdyno.hosts.bring_up import bring_up
    from dbdyno.hosts.inventory import read_inventory
    from dbdyno.system.interrupt import interruptible

    inventory = read_inventory(hosts)
    with interruptible(_say):
        hosts_up = bring_up(inventory, _say)
    if json_:
        print_json({"hosts": [asdict(host) for host in hosts_up]})
    else:
        print(f"{len(hosts_up)} hosts are up; dbdyno hosts down {hosts} puts them back")


@app.command("status")
def status(hosts: Path = FILE, json_: bool = JSON) -> None:
    """Ask each host: reachable, the same dbdyno, how far its clock is off, what it has. Sets no clock."""
    from dbdyno.hosts.bring_up import host_status
    from dbdyno.hosts.inventory import read_inventory

    statuses, problem = host_status(read_inventory(hosts))
    if json_:
        print_json({"hosts": [as_values(host) for host in statuses], "problem": problem})
    else:
        print(as_text(statuses, problem))


@app.command("down")
def down(hosts: Path = FILE, json_: bool = JSON) -> None:
    """Put each host back by its own undo logs, and remove what was sent to it for studies."""
    from dataclasses import asdict

    from dbdyno.hosts.bring_up import bring_down
    from dbdyno.hosts.inventory import read_inventory

    restored_hosts = bring_down(read_inventory(hosts), _say)
    if json_:
        print_json({"hosts": [asdict(host) for host in restored_hosts]})
    left = [host.name for host in restored_hosts if host.problem]
    if left:
        raise HostError(f"{', '.join(left)}: see above; once that is fixed, dbdyno hosts down {hosts} again")


def _say(text: str) -> None:
    typer.echo(text, err=True)


# How ``dbdyno hosts status`` is printed.


_HEAD = ("host", "roles", "dbdyno", "clock", "within", "round trip", "cores", "memory", "free disk", "root")
_STEADY = {"tsc", "arch_sys_counter", "kvm-clock", "hyperv_clocksource_tsc_page"}  # read without a system call


def as_values(status: "HostStatus") -> dict[str, Any]:
    """A host for a script: nanoseconds, bytes, and what is unknown as null."""
    values = {**asdict(status), "ready": status.ready}
    values["facts"] = {name: None if value == "unknown" else value for name, value in status.facts.items()}
    return values


def as_text(statuses: "list[HostStatus]", problem: str) -> str:
    """All hosts, a line for each, and below what is wrong or to be known of one."""
    from dbdyno.study.units import format_bytes

    rows = []
    for status in statuses:
        facts, clock = status.facts, status.clocks.get("realtime")
        rows.append([
            status.name,
            ", ".join(status.roles),
            {None: "-", True: "the same", False: "differs"}[status.same],
            f"{round(clock.offset_ns / 1e3):+,} us" if clock else "-",
            f"{clock.bound_ns / 1e3:,.0f} us" if clock else "-",
            f"{clock.round_trip_ns_min / 1e3:,.0f} us" if clock else "-",
            str(facts.get("cores", "-")),
            format_bytes(facts["memory_bytes"]) if facts else "-",
            format_bytes(facts["disk_free_bytes"]) if facts else "-",
            {None: "-", True: "yes", False: "no"}[facts.get("root")],
        ])  # fmt: skip
    lines = [table(_HEAD, rows, 6)]
    lines += [hanging("", line) for status in statuses for line in _remarks(status)]
    return "\n".join([*lines, problem] if problem else lines)


def _remarks(status: "HostStatus") -> list[str]:
    """What else is to be known of a host."""
    if status.problem:
        return [status.problem]
    source = status.facts.get("clock_source")
    remarks = []
    if status.same is False:
        remarks.append(
            f"{status.name}: another dbdyno ({status.facts['version']}) is there; dbdyno hosts up puts this one there"
        )
    if source and source not in _STEADY and source != "unknown":
        remarks.append(
            f"{status.name}: its clock source is {source}, which takes a system call for each look at the clock"
        )
    ntp = status.facts.get("ntp")
    if isinstance(ntp, dict):
        remarks.append(
            f"{status.name}: chrony: {ntp.get('Leap status', 'unknown')}, {ntp.get('System time', 'unknown')}"
        )
    return remarks
