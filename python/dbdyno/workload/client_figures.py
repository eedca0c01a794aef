"""What is known of each client host of a trial: its part of the load, its clock, what held it up, its network."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dbdyno.hosts.clock import Offset
from dbdyno.workload.merged import Part, Window, met, summary, window_of

_BITS = 8


@dataclass(frozen=True)
class Clocks:
    """The hosts' CLOCK_MONOTONIC less this machine's, at one moment of the latter."""

    at_ns: int
    offsets: Mapping[str, Offset]


def ours(time_ns: int, name: str, before: Clocks, after: Clocks) -> float:
    """A host's time on this machine's clock, where the offset went evenly from one to the other."""
    old, new = before.offsets[name].offset_ns, after.offsets[name].offset_ns
    # Which moment it is, is known to within the offset's change, which is nothing beside the time between both.
    passed = (time_ns - old - before.at_ns) / max(1, after.at_ns - before.at_ns)
    return time_ns - (old + (new - old) * passed)


def client_figures(parts: Sequence[Part], before: Clocks, after: Clocks, start_ns: int) -> list[dict[str, Any]]:
    """The figures of each host, in the order of the study, as they are stored with the trial."""
    window = window_of(parts)
    return [
        {
            "host": part.name,
            **_load_of(part, parts, window),
            **_start_of(part, before, after, start_ns),
            **_held_up(part),
            **_network_of(part),
        }
        for part in parts
    ]


def _load_of(part: Part, parts: Sequence[Part], window: Window) -> dict[str, Any]:
    """Its rates, its 99th percentile, and that of all others together."""
    seconds = (window.end - window.first) * part.interval_ns / 1e9
    others = [one for one in parts if one is not part]
    rows = [part.rows[number] for number in range(window.first, window.end)]
    return {
        "clients": int(part.run["clients"]),
        "events_per_second": sum(float(row["events"]) for row in rows) / seconds,
        "queries_per_second": sum(float(row["queries"]) for row in rows) / seconds,
        "latency_ms_p99": _p99_ms([part], window),
        "latency_ms_p99_of_others": _p99_ms(others, window) if others else None,
    }


def _p99_ms(parts: Sequence[Part], window: Window) -> float | None:
    largest = max(float(part.run["latency_ns"]["max"] or 0.0) for part in parts)
    p99 = summary(met(parts, window), largest)["p99"]
    return None if p99 is None else float(p99) / 1e6


def _start_of(part: Part, before: Clocks, after: Clocks, start_ns: int) -> dict[str, Any]:
    """How far from the agreed moment it started, and within which bound that is known."""
    clock = part.run["clock"]
    started = ours(int(clock["measure_start_ns"]), part.name, before, after)
    ended = ours(int(clock["measure_end_ns"]), part.name, before, after)
    return {
        "start_off_us": (started - start_ns) / 1e3,
        "clock_bound_us": max(one.offsets[part.name].bound_ns for one in (before, after)) / 1e3,
        "clock_drift_us": (after.offsets[part.name].offset_ns - before.offsets[part.name].offset_ns) / 1e3,
        "seconds": (ended - started) / 1e9,
    }


def _held_up(part: Part) -> dict[str, Any]:
    """What its busiest thread had of a processor and waited for one, and how late it started what was due."""
    run, threads = part.run, part.run["threads"]
    real = max(float(run["seconds_real"]), 1e-9)
    waits = [one["wait_seconds"] for one in threads if one["wait_seconds"] is not None]
    lateness = run["start_lateness_ns"]
    return {
        "thread_cpu_share": max((float(one["cpu_seconds"]) / real for one in threads), default=None),
        "thread_wait_share": max((float(wait) / real for wait in waits), default=None),
        "start_lateness_ms_p99": lateness["p99"] / 1e6 if lateness else None,
    }


def _network_of(part: Part) -> dict[str, Any]:
    """Of its connections, where they are by TCP."""
    found = part.run["network"]
    if not found:
        return {}
    real = max(float(part.run["seconds_real"]), 1e-9)
    busiest = max(found["received_bytes"] or 0, found["sent_bytes"] or 0)
    bits = found["interface_megabits"] and found["interface_megabits"] * 1e6
    return {
        "rtt_ms_median": found["rtt_us_median"] / 1e3,
        "rtt_ms_min": None if found["rtt_us_min"] is None else found["rtt_us_min"] / 1e3,
        "retransmits": found["retransmits"],
        "interface": found["interface"],
        "interface_share": busiest * _BITS / real / bits if bits else None,
    }
