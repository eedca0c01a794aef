"""How ``dbdyno hosts status`` is printed."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from dbdyno.cli.output import hanging, table

if TYPE_CHECKING:
    from dbdyno.hosts.bring_up import Status

_HEAD = ("host", "roles", "dbdyno", "clock", "within", "round trip", "cores", "memory", "free disk", "root")
_STEADY = {"tsc", "arch_sys_counter", "kvm-clock", "hyperv_clocksource_tsc_page"}  # read without a system call


def as_values(status: "Status") -> dict[str, Any]:
    """A host for a script: nanoseconds, bytes, and what is unknown as null."""
    values = {**asdict(status), "ready": status.ready}
    values["facts"] = {name: None if value == "unknown" else value for name, value in status.facts.items()}
    return values


def as_text(statuses: "list[Status]", problem: str) -> str:
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


def _remarks(status: "Status") -> list[str]:
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
