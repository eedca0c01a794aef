"""Lines about an emulated disk: its drive's fast cache and gauges, and its injected faults."""

import time
from typing import Any

from dbdyno.model.wording import drive_bytes
from dbdyno.study.units import format_bytes


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
