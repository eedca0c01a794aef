"""Why a verdict came out as it did: where an event's time goes in each treatment, and what changed between two.

Figures of a treatment are means over its usable trials, so that parts still add up to the whole. Differences are taken
inside blocks; their intervals are those of docs/statistics/verdicts.md, and not adjusted for how many there are: they
explain a verdict and are none.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np

from dbdyno.analysis.blocks import UsableBlocks
from dbdyno.analysis.load_checks import BEHIND
from dbdyno.analysis.over_time import Columns, floats
from dbdyno.analysis.statistics import Estimate, Floats
from dbdyno.analysis.verdict.evidence import Rule, evidence
from dbdyno.analysis.verdict.finding import Finding
from dbdyno.model.design import MIN_BLOCKS, Design
from dbdyno.model.disks import DATA_DISK, disk_names, disks_aside, layer_of, series_name
from dbdyno.model.metrics import part_of, value_of
from dbdyno.model.word import Word
from dbdyno.mysql.settings import FSYNCS, LOG_WAITS, POOL_WAITS, ROW_LOCK_TIME
from dbdyno.store.block_trace import FIGURES, figure_at
from dbdyno.store.records import Disturbance, Trial

# Where the time of an event goes in one trial, from what was watched while it was measured.
#
# An event is what latency is measured of: a query, or a transaction of several. Its mean latency is the whole. The
# parts:
#
# - *server CPU*: CPU time of the server's process per event. Counted by the kernel; background threads are in it.
# - *row locks*: the time that InnoDB's transactions waited for each other's rows, by its own clock, per event.
# - *reads*: the time that read requests spent in queue and device, per event. Exact where an event waits for its reads
#   one after another; too much where the server or the kernel reads ahead. To the kernel's counters a request begins
#   when it has a place in the queue; a block trace, if there is one, has the wait for that place too.
# - *flushes*: time in which a flush was in flight while the event was. The kernel sends a queue one flush at a time
#   (block/blk-flush.c), so their times add up to that. Commits of several clients share a flush, so this is counted by
#   the clock, not by request: share of the time x events in flight. Exact for a closed loop without pauses, where
#   all clients always have an event in flight; elsewhere it takes the mean number of those, at least 1.
# - *other writes*: the same of the time in which the device was busy, without a flush, and had a write.
# - *rest*: what is left: other locks, waiting for a processor, network, the client.
#
# Where parts of the server lie on disks of their own, each disk's reads, flushes and other writes are taken by
# themselves and added up; what they are cut to is shared out in proportion, so that it is known on which disk the time
# passed. A disk that works in the background while another is waited for is counted too: an upper bound, as above.
#
# Where a filesystem stands on two devices, time with a flush and time busy are the mean of both. That is exact where
# both are at it together, as under a mirror and at a commit, and too little where one is at it after the other.
#
# Each is cut to what those before it left, so none is negative, none is above the whole, and all add up to it. The CPU
# an event uses while a flush for another event is in flight is counted as CPU. So flushes and writes are upper bounds
# of what is waited for, by at most that CPU time they can be less (Frechet's bounds), and the rest is a lower bound.


PARTS = ("cpu_ms", "lock_ms", "read_ms", "flush_ms", "write_ms", "rest_ms")
SAMPLES_MIN = 3  # fewer say nothing about a mean

Figures = dict[str, float]  # name, ending in its unit -> value; what is unknown is not there
Watched = Mapping[str, Columns]  # probe -> column -> samples of one trial


def parts(latency_ms: float, shares: Mapping[str, float]) -> Figures:
    """Return the parts of a latency, in ms, from what each would come to by itself; unknown ones are left out."""
    parts_ms: Figures = {}
    left_ms = latency_ms
    for name in PARTS[:-1]:
        if name in shares:
            parts_ms[name] = min(left_ms, max(0.0, shares[name]))
            left_ms = max(0.0, left_ms - parts_ms[name])
    return {**parts_ms, "rest_ms": left_ms}


def figures(trial: Trial, watched: Watched) -> Figures:
    """Return all that is known of where the time of an event went in this trial; nothing without a latency.

    ``..._share`` are fractions of the measured time, ``..._ms`` of an event unless they say ``each``.
    """
    latency, rate = value_of(trial.metrics, "latency_ms_mean"), value_of(trial.metrics, "events_per_second")
    if not (latency > 0 and rate > 0 and math.isfinite(latency * rate)):
        return {}
    seconds = value_of(trial.metrics, "seconds_real")
    queries = value_of(trial.metrics, "queries_per_second") / rate
    known_figures: Figures = {"latency_ms": latency, "queries": queries, "under_way": latency * rate / 1000}
    known_figures |= _processor(trial, watched, rate, queries, seconds)
    by_disk = _by_disk(trial, watched, rate, seconds)
    known_figures |= _of_all(by_disk)
    known_figures |= _waits(trial, watched, rate, seconds)
    known_figures = {name: value for name, value in known_figures.items() if math.isfinite(value)}
    alone_by_disk = {disk: _disk_alone(known_figures, own, rate) for disk, own in by_disk.items()}
    parts_ms = parts(latency, _each_alone(known_figures, alone_by_disk, rate))
    return known_figures | parts_ms | _shared_out(parts_ms, alone_by_disk)


_OF_DEVICE = {"busy_share", "flush_share", "reads", "read_each_ms", "writes", "write_each_ms"}


def _each_alone(figures: Figures, alone_by_disk: Mapping[str, Figures], rate: float) -> Figures:
    """Return what each part would come to if it had all of the event to itself, in ms; those of disks added up."""
    alone: Figures = {}
    if "server_cores" in figures:
        alone["cpu_ms"] = figures["server_cores"] * 1000 / rate
    if "lock_waiters" in figures:
        alone["lock_ms"] = figures["lock_waiters"] * 1000 / rate
    if alone_by_disk and all(alone_by_disk.values()):
        alone |= {name: math.fsum(own[name] for own in alone_by_disk.values()) for name in _DEVICE_PARTS}
    return alone


_DEVICE_PARTS = ("read_ms", "flush_ms", "write_ms")


def _disk_alone(figures: Figures, own: Figures, rate: float) -> Figures:
    """Return the same of one disk, by its ``own`` figures; nothing where one is not known."""
    if not (own.keys() >= _OF_DEVICE and all(math.isfinite(own[name]) for name in _OF_DEVICE)):
        return {}
    waiting_ms = max(1.0, figures["under_way"]) * 1000 / rate  # of all events in flight, per event
    writing = own["writes"] * own["write_each_ms"] * rate / 1000  # mean write requests in flight
    return {
        "read_ms": own["reads"] * own["read_each_ms"],
        "flush_ms": own["flush_share"] * waiting_ms,
        "write_ms": min(max(0.0, own["busy_share"] - own["flush_share"]), writing) * waiting_ms,
    }


def on_disk(disk: str) -> str:
    """Return the figure that holds what of an event's time passed on a disk, ms."""
    return f"on_{disk}_ms"


def _shared_out(parts_ms: Figures, alone_by_disk: Mapping[str, Figures]) -> Figures:
    """Return what of reads, flushes and writes passed on which disk, ms; nothing where there is but one disk."""
    if len(alone_by_disk) < 2 or not all(alone_by_disk.values()):  # noqa: PLR2004
        return {}
    shared = dict.fromkeys(alone_by_disk, 0.0)
    for name in _DEVICE_PARTS:
        whole = math.fsum(own[name] for own in alone_by_disk.values())
        for disk, own in alone_by_disk.items():
            shared[disk] += parts_ms[name] * own[name] / whole if whole else 0.0
    return {on_disk(disk): ms for disk, ms in shared.items()}


def _processor(trial: Trial, watched: Watched, rate: float, queries: float, seconds: float) -> Figures:
    host = means(watched.get("host_cpu", {}), seconds)
    per_second = rate * queries / 1e6
    figures = {
        "server_cores": value_of(trial.metrics, "server_cpu_us_per_query") * per_second,
        "client_cores": value_of(trial.metrics, "client_cpu_us_per_query") * per_second,
    }
    if "%idle" in host and not _elsewhere(trial):
        figures["host_busy_share"] = 1 - min(100.0, host["%idle"] + host.get("%iowait", 0.0)) / 100
        figures["stolen_share"] = host.get("%steal", math.nan) / 100
    return figures


def _elsewhere(trial: Trial) -> bool:
    """Return whether the server ran on another host than the one whose processors were watched."""
    server = trial.observed.get("server")
    return isinstance(server, Mapping) and server.get("local") is False


def _by_disk(trial: Trial, watched: Watched, rate: float, seconds: float) -> dict[str, Figures]:
    """Return the figures of each disk that the trial stood on; nothing where those of one are not known."""
    of_data = _device(trial, watched.get(_DISK, {}), rate, seconds)
    of_data["read_each_ms"] = _traced_read_ms(trial) or of_data.get("read_each_ms", math.nan)
    by_disk = {DATA_DISK: of_data if "busy_share" in of_data else {}}
    aside = disks_aside(trial.observed)
    for disk in disk_names(trial.observed):
        if disk in aside:
            continue
        by_disk[disk] = _device(trial, watched.get(series_name(_DISK, disk), {}), rate, seconds)
    return by_disk if all(by_disk.values()) else {}


_DISK = "block_device"  # the probe


def _of_all(by_disk: Mapping[str, Figures]) -> Figures:
    """Return the figures of all disks together: counts added up, means over all requests, shares of the busiest.

    Of several disks each has its own shares beside.
    """
    if len(by_disk) < 2:  # noqa: PLR2004
        return dict(by_disk.get(DATA_DISK, {}))
    disks = list(by_disk.values())
    figures = {name: max(own[name] for own in disks) for name in ("busy_share", "flush_share")}
    for count, each in (("reads", "read_each_ms"), ("writes", "write_each_ms"), ("flushes", "flush_each_ms")):
        figures[count] = math.fsum(own[count] for own in disks)
        in_all = math.fsum(own[count] * own[each] for own in disks)
        figures[each] = in_all / figures[count] if figures[count] else 0.0
    figures["requests_under_way"] = math.fsum(own["requests_under_way"] for own in disks)
    for disk, own in by_disk.items():
        figures |= {f"{name}_on_{disk}_share": own[f"{name}_share"] for name in ("busy", "flush")}
    return figures


def _device(trial: Trial, columns: Columns, rate: float, seconds: float) -> Figures:
    """Return a device's figures; how often and how long, per event and per request."""
    mean = means(columns, seconds)
    if not {"r/s", "w/s", "%util"} <= mean.keys():
        return {}
    figures = {"busy_share": min(1.0, mean["%util"] / 100)}
    for kind, letter in (("read", "r"), ("write", "w"), ("flush", "f")):
        count, waited = mean.get(f"{letter}/s", 0.0), mean.get(f"{letter}_waited", 0.0)
        figures[f"{kind}s" if kind != "flush" else "flushes"] = count / rate
        figures[f"{kind}_each_ms"] = waited / count if count else 0.0
        if kind == "flush":
            figures["flush_share"] = min(figures["busy_share"], waited / 1000 / _devices(trial))
    figures["requests_under_way"] = (mean.get("r_waited", 0.0) + mean.get("w_waited", 0.0)) / 1000
    return figures


def _traced_read_ms(trial: Trial) -> float | None:
    """Return the mean time of a read from when its first bio was queued, if a block trace has both parts of it."""
    queue_ms, device_ms = (figure_at(trial.block_trace, where, "read", "mean") for where in ("queue_ms", "device_ms"))
    return None if queue_ms is None or device_ms is None else queue_ms + device_ms


def _devices(trial: Trial) -> float:
    """Return on how many devices the filesystem stood; the counters of all are added up."""
    device = trial.observed.get("device")
    count = device.get("devices") if isinstance(device, Mapping) else None
    return float(count) if isinstance(count, int) and count > 0 else 1.0


def _waits(trial: Trial, watched: Watched, rate: float, seconds: float) -> Figures:
    """Return what kernel and server count of waiting."""
    status = means(watched.get("server_status", {}), seconds)
    disturbance: Disturbance = {} if _elsewhere(trial) else trial.disturbance
    pressure = disturbance.get("in_guest", disturbance.get("pressure")) or {}
    queue, device = (value_of(trial.metrics, f"{where}_ms_mean") for where in ("queue", "device"))
    waiters = status.get(ROW_LOCK_TIME, math.nan) / 1000
    return {
        "log_waits": status.get(LOG_WAITS, math.nan) / rate,
        "fsyncs": status.get(FSYNCS, math.nan) / rate,
        "lock_waiters": waiters,  # mean number of transactions that wait for a row
        "lock_wait_share": waiters,  # of the time; at most, as several may wait at once
        "pool_waits": status.get(POOL_WAITS, math.nan) / rate,
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
    usable = np.isfinite(table) & (weights > 0)
    weighed = np.where(usable, weights, 0.0)
    total = weighed.sum(axis=1)
    mean = (weighed * np.where(usable, table, 0.0)).sum(axis=1) / np.where(total > 0, total, np.nan)
    return {name: float(value) for name, value in zip(values, mean, strict=True) if np.isfinite(value)}


# What limits a treatment, by simple rules over what was watched; docs/statistics/time-parts.md has their reasons.


FULL = 0.9  # of a resource's time: from there on waiting grows at least tenfold over serving (M/M/1: 1 / (1 - .9))
NEARLY_ALL = 0.8  # of the time a device is busy: what else it does would not fill it
MOST = 0.5  # of an event's time

Resource = Literal["client", "processor", "flushes", "device"]
Part = Literal["cpu_ms", "lock_ms", "read_ms", "flush_ms", "write_ms", "rest_ms"]
Kind = Literal[Resource, "rate", Part]


@dataclass(frozen=True)
class Limit:
    """A resource that is full, or else (``full`` false) the part of an event that takes most of its time."""

    kind: Kind
    share: float  # of the resource's capacity, or of the event's time
    full: bool
    of: float = 1.0  # capacity: cores or threads
    disk: str = ""  # of a device that is full, where there are several: which
    others: float = 0.0  # of the capacity, used by other processes: at most the share; 0 where that is not known


@dataclass(frozen=True)
class Place:
    """What the figures of a treatment are to be held against."""

    cores: float | None  # of the host
    server_cores: float | None  # that the server may use, if it was confined
    client_beside: bool  # the load generator was confined to the same
    client_threads: float
    rotational: bool | None  # the disk of the data
    kept_up: bool  # with an open loop's rate
    named: Mapping[str, bool | None] = field(default_factory=dict)  # whether the disks beside it are rotational


def limit(mean: Figures, place: Place) -> Limit:
    """Return what limits a treatment whose mean figures are ``mean``.

    In this order: the load generator, the processors, a device that is busy: nearly always with flushes, which go one
    at a time and so can fill any, or else a hard disk. Of a solid-state drive utilisation says only that there was
    some request, which is no limit.
    """
    if processor_limit := _processors(mean, place):
        return processor_limit
    if device_limit := _full_device(mean, place):
        return device_limit
    if place.kept_up:
        return Limit("rate", 1.0, full=False)
    most = max(get_args(Part), key=lambda name: mean.get(name, 0.0))
    return Limit(most, mean.get(most, 0.0) / mean["latency_ms"], full=False)


def _full_device(mean: Figures, place: Place) -> Limit | None:
    """Return the first disk that is nearly always busy, that of the data before others."""
    disks = {DATA_DISK if place.named else "": place.rotational, **place.named}
    for disk, is_rotational in disks.items():
        names = (f"{of}_on_{disk}_share" if disk else f"{of}_share" for of in ("busy", "flush"))
        busy, flushed = (mean.get(name, 0.0) for name in names)
        if busy >= FULL and flushed >= NEARLY_ALL * busy:
            return Limit("flushes", flushed, full=True, disk=disk)
        if busy >= FULL and is_rotational:
            return Limit("device", busy, full=True, disk=disk)
    return None


def _processors(mean: Figures, place: Place) -> Limit | None:
    if mean.get("client_cores", 0.0) >= FULL * place.client_threads:
        share = min(1.0, mean["client_cores"] / place.client_threads)
        return Limit("client", share, full=True, of=place.client_threads)
    confined = place.server_cores
    used = mean.get("server_cores", 0.0) + (mean.get("client_cores", 0.0) if place.client_beside else 0.0)
    if confined and used >= FULL * confined:
        return Limit("processor", min(1.0, used / confined), full=True, of=confined)
    if mean.get("host_busy_share", 0.0) >= FULL:
        others = min(mean.get("foreign_share", 0.0), mean["host_busy_share"])
        return Limit("processor", mean["host_busy_share"], full=True, of=place.cores or 0.0, others=others)
    return None


NO_SPREAD = 1e-24
AGAINST = 0.1  # of the whole: what varies against it by less in all is taken off the others in proportion
ROUNDING = 1e-9  # of a latency: what sums of floats leave

Seen = Mapping[str, Watched]  # trial id -> what was watched


@dataclass(frozen=True)
class TimeSpent:
    """Where the time of an event goes in one treatment: means over ``n`` usable trials."""

    id: str
    label: str
    n: int
    figures: Figures
    limit: Limit


@dataclass(frozen=True)
class Changed:
    """What differs between two treatments, level minus baseline."""

    baseline_id: str
    level_id: str
    baseline: TimeSpent
    level: TimeSpent
    differences: dict[str, Estimate]  # "latency_ms" and each part, ms
    variance_shares: dict[str, float]  # part -> its share of the variance of the difference between blocks; sums to 1,
    # each from 0 to 1; empty where parts vary against each other, so that none has a share
    spread_parts_ms: dict[str, float]  # part -> signed, what it adds to the spread; sums to that
    spread_ms: float  # standard deviation of the difference in latency between blocks; NaN of few
    factors: tuple[tuple[str, str], ...]  # (section, name) of what was varied between the two


@dataclass(frozen=True)
class Why:
    """The explanation of a run; empty where no latency or no series are known."""

    treatments: list[TimeSpent]
    changes: dict[tuple[str, str], Changed]  # (baseline id, level id)


def explain(
    design: Design,
    blocks: UsableBlocks,
    verdicts: Sequence[Finding],
    watched_by_trial: Seen,
    rule: Callable[[int], Rule],
) -> Why:
    """Return where the time went in each treatment, and what changed in each comparison that has a verdict."""
    by_trial = {
        trial.id: figures(trial, watched_by_trial[trial.id])
        for row in blocks.trials.values()
        for trial in row.values()
        if watched_by_trial.get(trial.id)
    }
    time_spent = {}
    for treatment in design.treatments:
        trials = [trial for trial in blocks.of(treatment.id) if by_trial.get(trial.id)]
        if trials and treatment.id not in blocks.dropped:
            time_spent[treatment.id] = _time_spent(treatment.id, treatment.label, trials, by_trial)
    changes = {}
    for verdict in verdicts:
        ids = (verdict.baseline_id, verdict.level_id)
        if verdict.verdict != Word.NOT_COMPARABLE and set(ids) <= time_spent.keys():
            pairs = [
                (by_trial.get(row[ids[1]].id, {}), by_trial.get(row[ids[0]].id, {})) for row in blocks.trials.values()
            ]
            changes[ids] = _change_of_pair(
                time_spent[ids[0]], time_spent[ids[1]], pairs, rule(len(pairs)), _varied_fields(design, *ids)
            )
    return Why(list(time_spent.values()), changes)


def _time_spent(id_: str, label: str, trials: Sequence[Trial], by_trial: Mapping[str, Figures]) -> TimeSpent:
    names = dict.fromkeys(name for trial in trials for name in by_trial[trial.id])
    mean = {name: _mean([by_trial[trial.id].get(name, math.nan) for trial in trials]) for name in names}
    figures = {name: _limit_share(name, value) for name, value in mean.items() if math.isfinite(value)}
    figures = _with_rest(figures)  # what one trial lacks is in the rest of all
    return TimeSpent(id_, label, len(trials), figures, limit(figures, _place(trials)))


def _limit_share(name: str, value: float) -> float:
    """Return a share of a whole as one: the counters are coarse, and of a short trial they can say 102 %."""
    return min(1.0, max(0.0, value)) if name.endswith("_share") else value


def _with_rest(figures: Figures) -> Figures:
    """Return the figures with the rest that their parts leave; without it where the whole is not known."""
    if "latency_ms" not in figures:
        return figures
    rest_ms = figures["latency_ms"] - math.fsum(figures.get(name, 0.0) for name in PARTS[:-1])
    return {**figures, "rest_ms": rest_ms if rest_ms > ROUNDING * figures["latency_ms"] else 0.0}


def _keep_parts(figures: Figures, parts: set[str]) -> Figures:
    """Return the figures with these parts alone; the others are in the rest."""
    return _with_rest({name: value for name, value in figures.items() if name in parts or name not in PARTS})


def _mean(values: Sequence[float]) -> float:
    """Return the mean; NaN where any trial lacks the figure."""
    return math.fsum(values) / len(values)


def _place(trials: Sequence[Trial]) -> Place:
    first = trials[0]
    cores, threads = first.disturbance.get("cores"), first.load.get("io_threads")
    cpus = part_of(first.observed, "server").get("cpus")
    disks = disk_names(first.observed)
    rotational, *named = (
        {"0": False, "1": True}.get(str(layer_of(first.observed, "queue", disk).get("rotational")))
        for disk in ("", *disks)
    )
    ratios = [value_of(trial.metrics, "achieved_ratio") for trial in trials]
    return Place(
        cores=float(cores) if isinstance(cores, int | float) else None,
        server_cores=float(_count_cpus(cpus)) if isinstance(cpus, str) else None,
        client_beside=cpus is not None and cpus == part_of(first.observed, "client").get("cpus"),
        client_threads=float(threads) if isinstance(threads, int | float) and threads > 0 else 1.0,
        rotational=rotational,
        kept_up=all(ratio >= BEHIND for ratio in ratios),
        named=dict(zip(disks, named, strict=True)),
    )


def _count_cpus(text: str) -> int:
    """Return how many processors a list such as ``"0-3,8"`` names."""
    ends = [part.split("-") for part in text.split(",") if part.replace("-", "").isdigit()]
    return sum(int(span[-1]) - int(span[0]) + 1 for span in ends)


def _change_of_pair(
    baseline: TimeSpent,
    level: TimeSpent,
    pairs: Sequence[tuple[Figures, Figures]],
    rule: Rule,
    factors: tuple[tuple[str, str], ...],
) -> Changed:
    """Return what differs; ``pairs`` are the figures of both in each block, the level's first.

    A part that any of these trials lacks is in the rest of both: like is compared with like.
    """
    common = set(PARTS).intersection(*(figures.keys() for pair in pairs for figures in pair))
    pairs = [(_keep_parts(of_level, common), _keep_parts(of_baseline, common)) for of_level, of_baseline in pairs]
    d = {
        name: np.array([of_level[name] - of_baseline[name] for of_level, of_baseline in pairs])
        for name in ("latency_ms", *PARTS)
        if all(name in of_level and name in of_baseline for of_level, of_baseline in pairs)
    }
    spread_known = len(pairs) >= MIN_BLOCKS and "latency_ms" in d
    parted = spread_parts(d) if spread_known else {}
    return Changed(
        baseline_id=baseline.id,
        level_id=level.id,
        baseline=replace(baseline, figures=_keep_parts(baseline.figures, common)),
        level=replace(level, figures=_keep_parts(level.figures, common)),
        differences={name: _difference(values, rule) for name, values in d.items()},
        variance_shares=variance_shares(parted),
        spread_parts_ms=parted,
        spread_ms=float(np.std(d["latency_ms"], ddof=1)) if spread_known else math.nan,
        factors=factors,
    )


def _difference(values: Floats, rule: Rule) -> Estimate:
    effect = evidence(values, rule, margin=1.0)
    return Estimate(float(effect.value), float(effect.low), float(effect.high), len(values))


def spread_parts(d: Mapping[str, Floats]) -> dict[str, float]:
    """Return what each part adds to the standard deviation of the whole, ms: cov(part, whole) / sd(whole), n - 1.

    They add up to it. ``d`` has arrays of shape (blocks,), "latency_ms" being the sum of the others. A part that varies
    against the whole is negative, and others may then be more than all of it.
    """
    whole = d.get("latency_ms")
    if whole is None:
        return {}
    centred = whole - whole.mean()
    squares = float(centred @ centred)
    if not squares > NO_SPREAD * float(whole @ whole):  # rounding errors, or nothing
        return {}
    scale = math.sqrt(squares * (len(whole) - 1))
    return {name: float((d[name] - d[name].mean()) @ centred) / scale for name in PARTS if name in d}


def variance_shares(spread_ms: Mapping[str, float]) -> dict[str, float]:
    """Return each part's share of the variance of the whole, from ``spread_parts``: from 0 to 1, 1 in all.

    Where parts vary against the whole by more than a tenth there are no shares, and nothing is returned.
    """
    whole = math.fsum(spread_ms.values())
    if not whole > 0 or math.fsum(min(0.0, value) for value in spread_ms.values()) < -AGAINST * whole:
        return {}
    positive = {name: max(0.0, value) for name, value in spread_ms.items()}
    return {name: value / math.fsum(positive.values()) for name, value in positive.items()}


def _varied_fields(design: Design, baseline: str, level: str) -> tuple[tuple[str, str], ...]:
    levels = {treatment.id: treatment.levels for treatment in design.treatments}
    return tuple(
        field
        for factor in design.factors
        for field in factor.differing(levels[baseline].get(factor.name, ""), levels[level].get(factor.name, ""))
    )


# What the block layer did in each treatment, from the block traces of its usable trials.


@dataclass(frozen=True)
class BlockLayer:
    """A treatment's figures: means over ``trials`` trials, those that have it; one that none has is left out."""

    id: str
    label: str
    trials: int
    figures: dict[str, float]
    scheduler: str  # as it was read back; "" where that is not known
    lost: int = 0  # events, over all its trials
    none: dict[str, int] = field(default_factory=dict)  # why there is no trace -> in how many trials
    kept: int = 0  # trials whose requests themselves are in the run folder
    cut: int = 0  # of these, those of which the file is not whole
    own: str = ""  # why the emulated disk's own trace had to stand in for the kernel's, if it did


def block_layer(design: Design, blocks: UsableBlocks) -> list[BlockLayer]:
    """Return an element for each treatment of which a block trace was asked for; empty where none was."""
    layers = []
    for treatment in design.treatments:
        trials = [trial for trial in blocks.of(treatment.id) if trial.block_trace]
        if trials:
            layers.append(_sum_block_layer(treatment.id, treatment.label, trials))
    return layers


def _sum_block_layer(id_: str, label: str, trials: Sequence[Trial]) -> BlockLayer:
    why = [str(trial.block_trace["none"]) for trial in trials if "none" in trial.block_trace]
    traced = [trial for trial in trials if "none" not in trial.block_trace]
    values = {
        name: [value for trial in traced if (value := figure_at(trial.block_trace, *path)) is not None]
        for name, path in FIGURES.items()
    }
    files = [file for trial in traced if (file := trial.block_trace.get("recorded"))]
    return BlockLayer(
        id=id_,
        label=label,
        trials=len(traced),
        figures={name: math.fsum(samples) / len(samples) for name, samples in values.items() if samples},
        scheduler=_scheduler(trials[0].observed),
        lost=round(math.fsum(figure_at(trial.block_trace, "lost") or 0.0 for trial in traced)),
        kept=len(files),
        cut=sum(bool(file.get("full") or file.get("failed")) for file in files),
        own=next((str(reason) for trial in traced if (reason := trial.block_trace.get("why_not_kernel"))), ""),
        none={reason: why.count(reason) for reason in dict.fromkeys(why)},
    )


def _scheduler(observed: Mapping[str, Any]) -> str:
    queue = observed.get("queue")
    return str(queue.get("scheduler", "")) if isinstance(queue, Mapping) else ""
