"""Tables of disks for the terminal."""

import time
from typing import Any

from dbdyno.cli.text_table import table
from dbdyno.model.wording import drive_bytes
from dbdyno.study.units import format_bytes

# Lines about an emulated disk: its drive's fast cache and gauges, and its injected faults.


def fast_cache_text(cache: dict[str, Any]) -> str:
    """How large the fast cache is, and whether it ran out."""
    here, whole, at_ns = cache["bytes"], cache["drive_bytes"], cache["ran_out_ns"]
    part = "" if here == whole or whole is None else f" of the drive's {drive_bytes(whole)}"
    ago = "has not run out" if at_ns is None else f"ran out {(time.monotonic_ns() - at_ns) / 1e9:.1f} s ago"
    return f"fast cache {drive_bytes(here)}{part}: {ago}"


def gauge_text(name: str, value: float) -> str:
    """A gauge with its unit."""
    return format_bytes(value) if name.endswith("_bytes") else f"{value:.6g}"


def fault_text(fault: dict[str, Any]) -> str:
    """What a fault does, to which requests, and how often it hit."""
    what = fault["kind"] + (f" +{fault['extra_ns'] / 1e6:g} ms" if fault["extra_ns"] else "")
    target = {"read": "reads", "write": "writes", "all": "all requests"}[fault["target"]]
    where = f" in bytes {fault['range_bytes'][0]}-{fault['range_bytes'][1]}" if fault["range_bytes"] else ""
    which = f", every {fault['every']}." if fault["every"] else ""
    which += f", with probability {fault['probability']:g} (seed {fault['seed']})" if fault["probability"] else ""
    left = f", {fault['left_ns'] / 1e9:.1f} s left" if fault["left_ns"] is not None else ""
    return f"{what} on {target}{where}{which}: hit {fault['hits']} of {fault['seen']}{left}"


KINDS = ("read", "write", "flush", "discard")
PATH = (
    ("later than asked", "lateness_ns"),
    ("path to the model", "path_before_ns"),
    ("left earlier by", "path_taken_ns"),
    ("later than the model", "path_left_ns"),
    ("earlier than it", "path_early_ns"),
)
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
    for name, key in PATH:
        if (times := disk.get(key)) and times["count"]:  # a disk attached by an older dbdyno knows of no path
            rows.append([name, str(times["count"]), "", *(_us(times[one]) for one in TIMES)])
    cache = disk["write_cache"] + (" (FLUSH ignored)" if disk.get("flush_ignored") else "")
    lines = [
        f"{disk['name']}, {disk['model']} ({disk['state']}), {format_bytes(disk['size_bytes'])}, {disk['device']}",
        f"mode {disk['mode']}, power {disk['power']}, write cache {cache}, granted: {_privileges(disk)}",
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
    if isinstance(ways := disk.get("path_after_ns"), dict):  # an older dbdyno had one figure
        lines.append(_ways_text(ways, disk["spun_seconds"], disk["spin_share_max"]))
    if disk["enospc_errors"]:
        lines.append(f"{disk['enospc_errors']} writes got no space: the limit on content is reached (attach --limit)")
    lines += [f"{name:32s} {gauge_text(name, value)}" for name, value in disk["gauges"].items()]
    if cache := disk.get("fast_cache"):  # a disk attached by an older dbdyno has none
        lines.append(fast_cache_text(cache))
    lines += [f"fault: {fault_text(fault)}" for fault in disk["faults"]]
    if trace := disk["trace"]:
        lines.append(f"trace: {trace['records']} requests in {trace['file']}, {trace['dropped']} dropped")
    return "\n".join(lines)


def _ways_text(ways: dict[str, Any], spun_seconds: float, spin_share_max: float) -> str:
    """What an answer takes to the block layer, by what it answers, and what it cost to be in time."""
    sizes = {"more": "larger"} | {str(size): f"to {format_bytes(size)}" for size in (4096, 16384, 65536, 262144)}
    found = [f"{kind} {sizes[size]} {_us(ns)}" for kind in ("read", "write") for size, ns in ways[kind].items()]
    if (ns := ways["without_data"]) is not None:
        found.append(f"without data {_us(ns)}")
    spun = f"waits of {spun_seconds:.2f} s were spun, at most {spin_share_max:.0%} of a processor now"
    return f"answers' way back, us: {', '.join(found) or 'none seen'}; {spun}"


def _us(nanoseconds: float | None) -> str:
    return "-" if nanoseconds is None else f"{nanoseconds / 1e3:.1f}"
