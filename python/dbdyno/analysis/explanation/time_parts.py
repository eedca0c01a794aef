"""Where the time of an event goes in one trial, from what was watched while it was measured.

An event is what latency is measured of: a query, or a transaction of several. Its mean latency is the whole. The parts:

- *server CPU*: CPU time of the server's process per event. Counted by the kernel; background threads are in it.
- *row locks*: the time that InnoDB's transactions waited for each other's rows, by its own clock, per event.
- *reads*: the time that read requests spent in queue and device, per event. Exact where an event waits for its reads
  one after another; too much where the server or the kernel reads ahead. To the kernel's counters a request begins
  when it has a place in the queue; a block trace, if there is one, has the wait for that place too.
- *flushes*: time in which a flush was in flight while the event was. The kernel sends a queue one flush at a time
  (block/blk-flush.c), so their times add up to that. Commits of several clients share a flush, so this is counted by
  the clock, not by request: share of the time x events in flight. Exact for a closed loop without pauses, where
  all clients always have an event in flight; elsewhere it takes the mean number of those, at least 1.
- *other writes*: the same of the time in which the device was busy, without a flush, and had a write.
- *rest*: what is left: other locks, waiting for a processor, network, the client.

Where a filesystem stands on two devices, time with a flush and time busy are the mean of both. That is exact where both
are at it together, as under a mirror and at a commit, and too little where one is at it after the other.

Each is cut to what those before it left, so none is negative, none is above the whole, and all add up to it. The CPU an
event uses while a flush for another event is in flight is counted as CPU. So flushes and writes are upper bounds of
what is waited for, by at most that CPU time they can be less (Frechet's bounds), and the rest is a lower bound.
"""

import math
from collections.abc import Mapping

import numpy as np

from dbdyno.analysis.over_time.series import Columns, floats
from dbdyno.model.metrics import value_of
from dbdyno.store.block_trace import figure_at
from dbdyno.store.records import Trial

PARTS = ("cpu_ms", "lock_ms", "read_ms", "flush_ms", "write_ms", "rest_ms")
SAMPLES_MIN = 3  # fewer say nothing about a mean

Figures = dict[str, float]  # name, ending in its unit -> value; what is unknown is not there
Watched = Mapping[str, Columns]  # probe -> column -> samples of one trial


def parts(latency_ms: float, shares: Mapping[str, float]) -> Figures:
    """Return the parts of a latency, in ms, from what each would come to by itself; unknown ones are left out."""
    found: Figures = {}
    left = latency_ms
    for name in PARTS[:-1]:
        if name in shares:
            found[name] = min(left, max(0.0, shares[name]))
            left = max(0.0, left - found[name])
    return {**found, "rest_ms": left}


def figures(trial: Trial, watched: Watched) -> Figures:
    """Return all that is known of where the time of an event went in this trial; nothing without a latency.

    ``..._share`` are fractions of the measured time, ``..._ms`` of an event unless they say ``each``.
    """
    latency, rate = value_of(trial.metrics, "latency_ms_mean"), value_of(trial.metrics, "events_per_second")
    if not (latency > 0 and rate > 0):
        return {}
    seconds = value_of(trial.metrics, "seconds_real")
    queries = value_of(trial.metrics, "queries_per_second") / rate
    found: Figures = {"latency_ms": latency, "queries": queries, "under_way": latency * rate / 1000}
    found |= _processor(trial, watched, rate, queries, seconds)
    found |= _device(trial, watched, rate, seconds)
    found |= _waits(trial, watched, rate, seconds)
    found = {name: value for name, value in found.items() if math.isfinite(value)}
    return found | parts(latency, _each_alone(found, rate))


def _each_alone(found: Figures, rate: float) -> Figures:
    """Return what each part would come to if it had all of the event to itself, in ms."""
    waiting_ms = max(1.0, found["under_way"]) * 1000 / rate  # of all events in flight, per event
    alone: Figures = {}
    if "server_cores" in found:
        alone["cpu_ms"] = found["server_cores"] * 1000 / rate
    if "lock_waiters" in found:
        alone["lock_ms"] = found["lock_waiters"] * 1000 / rate
    if "busy_share" in found:
        alone["read_ms"] = found["reads"] * found["read_each_ms"]
        alone["flush_ms"] = found["flush_share"] * waiting_ms
        writing = found["writes"] * found["write_each_ms"] * rate / 1000  # mean write requests in flight
        alone["write_ms"] = min(max(0.0, found["busy_share"] - found["flush_share"]), writing) * waiting_ms
    return alone


def _processor(trial: Trial, watched: Watched, rate: float, queries: float, seconds: float) -> Figures:
    host = means(watched.get("host_cpu", {}), seconds)
    per_second = rate * queries / 1e6
    found = {
        "server_cores": value_of(trial.metrics, "server_cpu_us_per_query") * per_second,
        "client_cores": value_of(trial.metrics, "client_cpu_us_per_query") * per_second,
    }
    if "%idle" in host and not _elsewhere(trial):
        found["host_busy_share"] = 1 - min(100.0, host["%idle"] + host.get("%iowait", 0.0)) / 100
        found["stolen_share"] = host.get("%steal", math.nan) / 100
    return found


def _elsewhere(trial: Trial) -> bool:
    """Return whether the server ran on another host than the one whose processors were watched."""
    server = trial.observed.get("server")
    return isinstance(server, Mapping) and server.get("local") is False


def _device(trial: Trial, watched: Watched, rate: float, seconds: float) -> Figures:
    """Return the device's figures; how often and how long, per event and per request."""
    mean = means(watched.get("block_device", {}), seconds)
    if not {"r/s", "w/s", "%util"} <= mean.keys():
        return {}
    found = {"busy_share": min(1.0, mean["%util"] / 100)}
    for kind, letter in (("read", "r"), ("write", "w"), ("flush", "f")):
        count, waited = mean.get(f"{letter}/s", 0.0), mean.get(f"{letter}_waited", 0.0)
        found[f"{kind}s" if kind != "flush" else "flushes"] = count / rate
        found[f"{kind}_each_ms"] = waited / count if count else 0.0
        if kind == "flush":
            found["flush_share"] = min(found["busy_share"], waited / 1000 / _devices(trial))
    found["read_each_ms"] = _traced_read_ms(trial) or found["read_each_ms"]
    found["requests_under_way"] = (mean.get("r_waited", 0.0) + mean.get("w_waited", 0.0)) / 1000
    return found


def _traced_read_ms(trial: Trial) -> float | None:
    """Return the mean time of a read from when its first bio was queued, if a block trace has both parts of it."""
    queue_ms, device_ms = (figure_at(trial.block_trace, where, "read", "mean") for where in ("queue_ms", "device_ms"))
    return None if queue_ms is None or device_ms is None else queue_ms + device_ms


def _devices(trial: Trial) -> float:
    """Return on how many devices the filesystem stood; the counters of all are added up."""
    device = trial.observed.get("device")
    found = device.get("devices") if isinstance(device, Mapping) else None
    return float(found) if isinstance(found, int) and found > 0 else 1.0


def _waits(trial: Trial, watched: Watched, rate: float, seconds: float) -> Figures:
    """Return what kernel and server count of waiting."""
    status = means(watched.get("server_status", {}), seconds)
    disturbance = {} if _elsewhere(trial) else trial.disturbance
    pressure = disturbance.get("pressure")
    pressure = pressure if isinstance(pressure, Mapping) else {}
    queue, device = (value_of(trial.metrics, f"{where}_ms_mean") for where in ("queue", "device"))
    waiters = status.get("Innodb_row_lock_time/s", math.nan) / 1000
    return {
        "log_waits": status.get("Innodb_log_waits/s", math.nan) / rate,
        "fsyncs": status.get("Innodb_data_fsyncs/s", math.nan) / rate,
        "lock_waiters": waiters,  # mean number of transactions that wait for a row
        "lock_wait_share": waiters,  # of the time; at most, as several may wait at once
        "pool_waits": status.get("Innodb_buffer_pool_wait_free/s", math.nan) / rate,
        "cpu_wait_share": value_of(pressure, "cpu_some"),
        "io_wait_share": value_of(pressure, "io_some"),
        "foreign_share": value_of(disturbance, "foreign_cpu"),  # of all processors
        "queued_share": queue / (queue + device) if queue + device > 0 else math.nan,  # of a request's time
        "seek_bytes": value_of(trial.metrics, "seek_bytes_mean"),  # between one request and the next
        "sorted_run": value_of(trial.metrics, "sorted_run_requests_mean"),  # requests in ascending order
    }


def means(columns: Columns, seconds: float) -> Figures:
    """Return the mean of each column over the measured run, by time; awaits as ``x_waited``: ms waited per second.

    A sample stands for the time since the one before; what lies before 0 or after ``seconds`` does not count.
    """
    if "t_s" not in columns:
        return {}
    ends = floats(columns["t_s"])
    if len(ends) < SAMPLES_MIN or not seconds > 0:
        return {}
    starts = np.concatenate([[ends[0] - float(np.median(np.diff(ends)))], ends[:-1]])
    weights = np.maximum(0.0, np.minimum(ends, seconds) - np.maximum(starts, 0.0))
    if not weights.sum() > 0:
        return {}
    values = {name: floats(column) for name, column in columns.items() if name != "t_s"}
    for letter in "rwf":
        if {f"{letter}/s", f"{letter}_await"} <= values.keys():
            values[f"{letter}_waited"] = values[f"{letter}/s"] * values[f"{letter}_await"]
    if not values:
        return {}
    table = np.stack(list(values.values()))  # (columns, samples)
    known = np.isfinite(table) & (weights > 0)
    weighed = np.where(known, weights, 0.0)
    total = weighed.sum(axis=1)
    mean = (weighed * np.where(known, table, 0.0)).sum(axis=1) / np.where(total > 0, total, np.nan)
    return {name: float(value) for name, value in zip(values, mean, strict=True) if np.isfinite(value)}
