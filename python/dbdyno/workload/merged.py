"""One load of what several hosts measured at the same time.

Every host's intervals begin at the common start and are equally long, so the same number of interval is the same time
everywhere. What is counted lies in intervals that are whole on all hosts, from the latest start to the earliest end;
the rest is warm-up. Histograms are added up count by count, so that a percentile is that of all events together.
"""

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dbdyno.errors import TrialError
from dbdyno.hosts.clock import Offset
from dbdyno.workload.load import Load, counted, percentiles

TOLERATED_NS = 500_000  # by which a host may start later than agreed, and its first interval still counts
EVENTS = ""  # stands for the lines of a log without a tag
SUMMED = ("events", "queries", "rows", "errors", "reconnects", "backlog")
RATES = ("offered", "backlog_max", "backlog_end")
OF_A_LOAD = ("seconds_user", "seconds_sys")

Met = tuple[list[float], list[float]]  # latencies in ns, ascending, and how often each was met


@dataclass(frozen=True)
class Part:
    """What one host came to, its times on its own clock."""

    name: str
    run: dict[str, Any]  # of the load generator's "runs" its only one
    rows: list[dict[str, str]]  # of its series
    log: dict[str, dict[int, bytes]]  # tag -> number of interval -> histogram
    interval_ns: int

    @property
    def start_ns(self) -> int:
        """The common start."""
        return int(self.run["clock"]["start_asked_ns"])

    @property
    def late_ns(self) -> int:
        """How long after it all of its clients had started."""
        return int(self.run["clock"]["measure_start_ns"]) - self.start_ns

    @cached_property
    def whole(self) -> int:
        """How many of its intervals are whole: all but the last, which its end cuts off."""
        ends = [self.start_ns + (number + 1) * self.interval_ns for number in range(len(self.rows))]
        return sum(int(row["t_ns"]) == end for row, end in zip(self.rows, ends, strict=True))


def part_of(name: str, reply: Mapping[str, Any], interval_ns: int) -> Part:
    """Read what a host sent, the texts of the load generator's files. Raises ``TrialError`` for what is not whole."""
    try:
        run = json.loads(reply["json"])["runs"][0]
        start_ns = int(run["clock"]["start_asked_ns"])
        rows = list(csv.DictReader(io.StringIO(reply["series"])))
        return Part(name, run, rows, _log(reply["hlog"], start_ns, interval_ns), interval_ns)
    except (ValueError, TypeError, KeyError, IndexError) as error:
        raise TrialError(f"{name}: what its load generator wrote is not whole: {error!r}") from None


def _log(text: str, start_ns: int, interval_ns: int) -> dict[str, dict[int, bytes]]:
    """A log's histograms by tag and number of interval; its times are in seconds after its own beginning."""
    begun_ns, found = 0, dict[str, dict[int, bytes]]()
    for line in text.splitlines():
        if line.startswith("#[StartMonotonic: "):
            begun_ns = int(line.split()[1])
        elif line and not line.startswith(("#", '"')):
            tag, line_ = line[4:].split(",", 1) if line.startswith("Tag=") else (EVENTS, line)
            seconds, _, _, payload = line_.split(",", 3)
            # Milliseconds are kept, of intervals of 100.
            number = round((begun_ns + float(seconds) * 1e9 - start_ns) / interval_ns)
            found.setdefault(tag, {})[number] = payload.encode()
    return found


@dataclass(frozen=True)
class Window:
    """The intervals that count: from ``first`` on, before ``end``."""

    first: int
    end: int

    def __contains__(self, number: int) -> bool:
        return self.first <= number < self.end


def window_of(parts: Sequence[Part]) -> Window:
    """The intervals that are whole on all hosts. Raises ``TrialError`` where there is none."""
    latest = max(max(0, part.late_ns - TOLERATED_NS) for part in parts)
    window = Window(math.ceil(latest / parts[0].interval_ns), min(part.whole for part in parts))
    if window.end <= window.first:
        ends = ", ".join(f"{part.name} {part.whole}" for part in parts)
        raise TrialError(f"no interval is whole on all client hosts (whole ones: {ends}); measure longer")
    return window


def met(parts: Iterable[Part], window: Window, tag: str = EVENTS) -> Met:
    """How often each latency was met on these hosts, in the window."""
    return counted(
        (f"{part.name}: interval {number}", payload)
        for part in parts
        for number, payload in part.log.get(tag, {}).items()
        if number in window
    )


def summary(found: Met, largest: float) -> dict[str, Any]:
    """What the load generator's own summary has, in nanoseconds; ``largest`` is the largest latency known."""
    values, counts = found
    if not values:
        return {"count": 0, **dict.fromkeys(("min", "mean", "p50", "p95", "p99", "p999", "max"))}
    clamped = [min(value, largest) for value in values]
    buckets = {value: int(times) for value, times in zip(values, counts, strict=True)}
    shares = {name: min(value, largest) for name, value in percentiles(buckets).items()}
    total = math.fsum(counts)
    mean = math.fsum(value * times for value, times in zip(clamped, counts, strict=True)) / total
    return {"count": int(total), "min": clamped[0], "mean": mean, **shares, "max": clamped[-1]}


def merged(parts: Sequence[Part], start_ns: int) -> Load:
    """One load of all hosts, on this machine's clock, of which ``start_ns`` is the common start."""
    window, interval_ns = window_of(parts), parts[0].interval_ns
    first, last = start_ns + window.first * interval_ns, start_ns + window.end * interval_ns
    seconds = (last - first) / 1e9
    sums = {name: _sum(parts, window, name) for name in SUMMED}
    everything = met(parts, window)
    result = {
        **parts[0].run,
        **{name: round(sums[name]) for name in ("events", "queries", "rows", "reconnects")},
        **{name: _added(parts, name) for name in RATES},
        **{name: math.fsum(_cpu(part, name, seconds) for part in parts) for name in OF_A_LOAD},
        "clients": sum(int(part.run["clients"]) for part in parts),
        "warmup_queries": sum(int(part.run["warmup_queries"]) for part in parts),
        "warmup_steady": _all_steady(parts),
        "offered_per_second": _added(parts, "offered_per_second"),
        "achieved_per_second": sums["events"] / seconds,
        "start_lateness_ns": _latest(parts),
        "errors": _errors(parts),
        "clock": _clock(parts, first, last),
        "seconds_real": seconds,
        "latency_ns": summary(everything, _largest(parts)),
        "operations": _operations(parts, window),
        "share": None,
        "threads": [],
        "network": None,
    }
    series = _series(parts, window, start_ns)
    return Load(result, series, [""] * len(series["t_ns"]), everything)


def _sum(parts: Sequence[Part], window: Window, name: str) -> float:
    return math.fsum(float(part.rows[number][name]) for part in parts for number in range(window.first, window.end))


def _added(parts: Sequence[Part], name: str) -> float | None:
    """A figure of an open loop over all hosts; ``None`` of a closed one."""
    values = [part.run[name] for part in parts]
    return None if None in values else math.fsum(values)


def _cpu(part: Part, name: str, seconds: float) -> float:
    """CPU seconds of a host's load in the window, which is nearly all that was measured there."""
    real = float(part.run["seconds_real"])
    return float(part.run[name]) * min(1.0, seconds / real) if real > 0 else 0.0


def _all_steady(parts: Sequence[Part]) -> bool | None:
    steady = [part.run["warmup_steady"] for part in parts]
    return None if None in steady else all(steady)


def _latest(parts: Sequence[Part]) -> dict[str, Any] | None:
    """The lateness of the host that started its events latest: a mean of percentiles is none."""
    found = [lateness for part in parts if (lateness := part.run["start_lateness_ns"])]
    return max(found, key=lambda one: float(one["p99"])) if found else None


def _errors(parts: Sequence[Part]) -> list[dict[str, Any]]:
    """How often each error was met, by code and kind of statement, over all that the hosts measured."""
    found: dict[tuple[int, str], dict[str, Any]] = {}
    for error in (error for part in parts for error in part.run["errors"]):
        before = found.setdefault((error["code"], error["operation"]), {**error, "count": 0})
        before["count"] += error["count"]
    return [found[key] for key in sorted(found)]


def _clock(parts: Sequence[Part], first: int, last: int) -> dict[str, Any]:
    longest = {name: max(int(part.run["clock"][name]) for part in parts) for name in ("connect_ns", "warmup_ns")}
    return {"source": "CLOCK_MONOTONIC", "measure_start_ns": first, "measure_end_ns": last, **longest}


def _largest(parts: Sequence[Part]) -> float:
    return max((float(part.run["latency_ns"]["max"] or 0.0) for part in parts), default=0.0)


def _operations(parts: Sequence[Part], window: Window) -> dict[str, Any]:
    """Each kind of statement; in a log its name is without blanks."""
    found = {}
    for name in sorted({name for part in parts for name in part.run["operations"]}):
        tag = "".join("_" if c == "," or c.isspace() else c for c in name)
        largest = max(float(part.run["operations"].get(name, {}).get("max") or 0.0) for part in parts)
        found[name] = summary(met(parts, window, tag), largest)
    return found


def _series(parts: Sequence[Part], window: Window, start_ns: int) -> dict[str, list[float]]:
    """A column for each figure, an interval each; latencies are those of all hosts' events."""
    interval_ns, numbers = parts[0].interval_ns, range(window.first, window.end)
    found: dict[str, list[float]] = {"t_ns": [float(start_ns + (number + 1) * interval_ns) for number in numbers]}
    for name in SUMMED:
        found[name] = [_sum(parts, Window(number, number + 1), name) for number in numbers]
    largest = _largest(parts)
    each = [summary(met(parts, Window(number, number + 1)), largest) for number in numbers]
    for name in ("mean", "p50", "p95", "p99", "max"):
        found[f"latency_ns_{name}"] = [math.nan if one[name] is None else float(one[name]) for one in each]
    return found


# What is known of each client host of a trial: its part of the load, its clock, what held it up, its network.


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
