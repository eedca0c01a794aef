"""One trial: raise the stack, offer the load, watch, lower the stack. The main path of dbdyno."""

import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dbdyno.host.smart import smart_of
from dbdyno.layers import device_layer, layers
from dbdyno.plan.plan import Slot
from dbdyno.probe.block_trace import tracing
from dbdyno.probe.others import disks_below, watching_others
from dbdyno.probe.sampler import Series
from dbdyno.probe.watching import watching
from dbdyno.stack.data import Image
from dbdyno.stack.journal import Journal
from dbdyno.stack.layer import Layer, raised
from dbdyno.stack.placement import pinned
from dbdyno.stack.scratch import scratch
from dbdyno.stack.space import after_load
from dbdyno.store.records import Trial
from dbdyno.study.schema import TrialSpec
from dbdyno.workload.kinds import workload_of
from dbdyno.workload.load import Columns
from dbdyno.workload.workload import Outcome


@dataclass(frozen=True)
class Measured:
    """A trial and its series, ready to be stored."""

    trial: Trial
    series: dict[str, Columns]


def run_trial(  # noqa: PLR0913  (what a trial consists of)
    slot: Slot, spec: TrialSpec, image: Image, *, seed: int, folder: Path, journal: Journal, erase: frozenset[str]
) -> Measured:
    """Run one trial; its raw files go to ``folder``. Raises ``TrialError`` or ``HostError``; the host is put back."""
    started_at, watch = datetime.now(UTC).isoformat(timespec="seconds"), Stopwatch()
    workload = workload_of(spec)
    device = device_layer(spec, image, seed=seed, erase=erase, blank=False)
    with ExitStack() as lowering:
        ground = lowering.enter_context(scratch(journal))
        stack: list[Layer] = layers(spec, image, device, log=folder / "server.log", install=False)
        watch.lap("raise scratch")
        stand = lowering.enter_context(raised(stack, ground, watch.lap))
        workload.check(stand)
        watch.lap("check")
        disks = disks_below(stand)
        health = {name: {"before": smart_of(name)} for name in disks}
        with (
            device.measuring(journal) as figures,
            tracing(stand, wanted=spec.probes.trace, disk=device.disk) as trace,
            watching(stand, disks) as series,
            watching_others(stand, disks) as others,
            pinned(spec.stack.client_cpus) as client,
        ):
            load = workload.run(stand, seed, folder)
            traced = trace.within(load.window_ns)
        watch.lap("load")
        for name, told in health.items():
            told["after"] = smart_of(name)
        observed = {**stand.observed, "tables": workload.check(stand)}  # a load may make tables of its own
        observed |= {"client": client} if client else {}
        observed |= {"tool": workload.tool.observed()} if workload.tool else {}
        room = after_load(stand.directory) if stand.directory else {}
        watch.lap("check after")
    watch.lap("lower scratch")
    trial = Trial(
        id=slot.id,
        block=slot.block,
        attempt=slot.attempt,
        position=slot.position,
        treatment=slot.treatment,
        started_at=started_at,
        metrics={**metrics(load, series), **traced.metrics()},
        observed={layer: dict(values) for layer, values in observed.items()},
        load={**load.result, "second_half_ratio": load.second_half_ratio()},
        probes={name: probe_cost(one, load) for name, one in {**series, **others.known()}.items()} | traced.cost,
        device=dict(figures),
        seconds=phases(watch.laps, load),
        space=room,
        disturbance=others.within(load.window_ns),
        block_trace=traced.figures,
        smart=health,
    )
    return Measured(
        trial, series_columns(load, series) | {name: {**columns} for name, columns in traced.series.items()}
    )


class Stopwatch:
    """Wall clock per phase, in seconds."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._last = time.monotonic()

    def lap(self, phase: str) -> None:
        """The phase that just ended."""
        now = time.monotonic()
        self.laps[phase], self._last = round(now - self._last, 3), now


def phases(laps: Mapping[str, float], load: Outcome) -> dict[str, float]:
    """The laps, that of the load split by what it was spent on; their sum stays the same."""
    start, end = load.window_ns
    spent = {**load.seconds_before, "measure": (end - start) / 1e9}
    found: dict[str, float] = {}
    for name, seconds in laps.items():
        if name == "load":
            found |= {part: round(value, 3) for part, value in spent.items()}
            found["around load"] = round(max(0.0, seconds - sum(spent.values())), 3)
        else:
            found[name] = seconds
    return found


# Metric -> the probe and the cumulative column that it comes from, and what makes its unit of the column's.
COUNTED = {
    "server_cpu_us_per_query": ("server_process", "cpu_seconds", 1e6),
    "written_bytes_per_query": ("block_device", "written_bytes", 1.0),
    "read_bytes_per_query": ("block_device", "read_bytes", 1.0),
}


def metrics(load: Outcome, series: Mapping[str, Series]) -> dict[str, float]:
    """The trial's scalars: the client's own, and what the probes counted from the window's start to its end."""
    found = load.metrics()
    for name, (probe, column, scale) in COUNTED.items():
        if load.queries and probe in series and series[probe].t_ns:
            start, end = (series[probe].at(column, t_ns) for t_ns in load.window_ns)
            found[name] = (end - start) * scale / load.queries
    return found


def probe_cost(series: Series, load: Outcome) -> dict[str, Any]:
    """What a probe burned, here and of others' CPU: seconds, and as a share of one core while it ran."""
    start, end = load.window_ns
    inside = sum(start <= t <= end for t in series.t_ns)
    seconds = (series.t_ns[-1] - series.t_ns[0]) / 1e9 if len(series.t_ns) > 1 else 0.0
    told = {"cpu_seconds": series.cpu_seconds, "cpu_percent": None, "samples": inside, "missed": series.missed}
    if seconds:
        told["cpu_percent"] = 100 * series.cpu_seconds / seconds
    if series.outside_seconds and seconds:
        told["outside_cpu_percent"] = 100 * series.outside_seconds / seconds
    return told


def series_columns(load: Outcome, series: Mapping[str, Series]) -> dict[str, Columns]:
    """Every series on the trial's clock: ``t_s`` is 0 where measuring starts; what lies outside is left out."""
    start, end = load.window_ns
    found = {"load": load.columns()}
    for name, one in series.items():
        # An interval belongs to the measured run when it began in it; its last may end just after.
        inside = [index for index, t_ns in enumerate(one.t_ns) if start < t_ns <= end + 100_000_000]
        columns: Columns = {column: [values[index] for index in inside] for column, values in one.columns.items()}
        found[name] = {"t_s": [(one.t_ns[index] - start) / 1e9 for index in inside], **columns}
    return found
