"""Tables of disks for the terminal."""

import time
from typing import Any

from dbdyno.cli.text_table import table
from dbdyno.model.wording import drive_bytes
from dbdyno.study.units import format_bytes

KINDS = ("read", "write", "flush", "discard")
TIMES = ("mean", "p50", "p99", "p999", "max")


def listed(disks: list[dict[str, Any]]) -> str:
    """The table of ``disk list``."""
    if not disks:
        return "no disk is attached; attach one with: dbdyno disk attach MODEL --size SIZE"
    rows = [
        [
            disk["name"],
            disk["model"],
            format_bytes(disk["size_bytes"]),
            disk["device"] or "-",
            disk["state"],
            str(disk["pid"]),
            disk["since"],
            _privileges(disk),
        ]
        for disk in disks
    ]
    text = table(("name", "model", "size", "device", "state", "pid", "since", "granted"), rows, right=8)
    return "\n".join([text, *(disk["problem"] for disk in disks if disk["problem"])])


def _privileges(disk: dict[str, Any]) -> str:
    words = {"locked_memory": "locked memory", "io_flusher": "I/O flusher", "realtime": "real-time priority"}
    return ", ".join(word for key, word in words.items() if disk.get(key)) or "-"


def stats_text(disk: dict[str, Any]) -> str:
    """All that ``disk stats`` shows."""
    rows = []
    for kind in KINDS:
        times, count = disk["service_ns"][kind], disk[{"flush": "flushes"}.get(kind, f"{kind}s")]
        rows.append([kind, str(count), str(disk["errors"][kind]), *(_us(times[key]) for key in TIMES)])
    for name, key in (("later than asked", "lateness_ns"), ("earlier for the path", "path_taken_ns")):
        if times := disk.get(key):  # a disk attached by an older dbdyno knows of no path
            rows.append([name, str(times["count"]), "", *(_us(times[one]) for one in TIMES)])
    lines = [
        f"{disk['name']}, {disk['model']} ({disk['state']}), {format_bytes(disk['size_bytes'])}, {disk['device']}",
        f"mode {disk['mode']}, power {disk['power']}, write cache {disk['write_cache']}, granted: {_privileges(disk)}",
        "",
        table(("us", "requests", "errors", "mean", "p50", "p99", "p99.9", "max"), rows, right=1),
        "",
        (
            f"read {format_bytes(disk['read_bytes'])}, written {format_bytes(disk['write_bytes'])}, "
            f"in flight {disk['in_flight']}, at most {disk['queue_depth_max']}"
        ),
        (
            f"content {format_bytes(disk['content_bytes'])}; held {format_bytes(disk['held_bytes'])} of "
            f"{format_bytes(disk['max_content_bytes'])}, snapshots: {', '.join(disk['snapshots']) or 'none'}; "
            f"unflushed {format_bytes(disk['unflushed_bytes'])}"
        ),
    ]
    if disk["enospc_errors"]:
        lines.append(f"{disk['enospc_errors']} writes got no space: the limit on content is reached (attach --limit)")
    lines += [f"{name:32s} {_gauge(name, value)}" for name, value in disk["gauges"].items()]
    if cache := disk.get("fast_cache"):  # a disk attached by an older dbdyno has none
        lines.append(_fast_cache(cache))
    lines += [f"fault: {_fault(fault)}" for fault in disk["faults"]]
    if disk["trace"]:
        lines.append(
            f"trace: {disk['trace']['records']} requests in {disk['trace']['file']}, {disk['trace']['dropped']} dropped"
        )
    return "\n".join(lines)


def _us(nanoseconds: float | None) -> str:
    return "-" if nanoseconds is None else f"{nanoseconds / 1e3:.1f}"


def _fast_cache(cache: dict[str, Any]) -> str:
    here, whole, at_ns = cache["bytes"], cache["drive_bytes"], cache["ran_out_ns"]
    part = "" if here == whole or whole is None else f" of the drive's {drive_bytes(whole)}"
    ago = "has not run out" if at_ns is None else f"ran out {(time.monotonic_ns() - at_ns) / 1e9:.1f} s ago"
    return f"fast cache {drive_bytes(here)}{part}: {ago}"


def _gauge(name: str, value: float) -> str:
    return format_bytes(value) if name.endswith("_bytes") else f"{value:.6g}"


def _fault(fault: dict[str, Any]) -> str:
    what = fault["kind"] + (f" +{fault['extra_ns'] / 1e6:g} ms" if fault["extra_ns"] else "")
    target = {"read": "reads", "write": "writes", "all": "all requests"}[fault["target"]]
    where = f" in bytes {fault['range_bytes'][0]}-{fault['range_bytes'][1]}" if fault["range_bytes"] else ""
    which = f", every {fault['every']}." if fault["every"] else ""
    which += f", with probability {fault['probability']:g} (seed {fault['seed']})" if fault["probability"] else ""
    left = f", {fault['left_ns'] / 1e9:.1f} s left" if fault["left_ns"] is not None else ""
    return f"{what} on {target}{where}{which}: hit {fault['hits']} of {fault['seen']}{left}"
