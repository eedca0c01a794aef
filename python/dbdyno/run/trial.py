"""One trial: raise the stack, offer the load, watch, lower the stack. The main path of dbdyno."""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from dbdyno.crash.trial_cuts import AboutTrial, Crashing
from dbdyno.errors import HostError, TrialError
from dbdyno.model.disks import series_name
from dbdyno.model.metrics import steps_to_store
from dbdyno.mysql.settings import FSYNCS_DONE
from dbdyno.plan.order import Slot
from dbdyno.probe.host import before_and_after
from dbdyno.probe.sampler import Series
from dbdyno.run.ports import Ports
from dbdyno.stack.erase import Erasing
from dbdyno.stack.kinds.kind import Raising
from dbdyno.stack.layer import Image, Layer, StackContext, raised
from dbdyno.stack.layers.cluster import all_applied
from dbdyno.stack.layers.host_settings import HostSettings
from dbdyno.stack.layers.placement import Awake
from dbdyno.stack.layers.replica import caught_up
from dbdyno.stack.space import after_load
from dbdyno.stack.undo_log import Journal
from dbdyno.store.latencies import LATENCIES
from dbdyno.store.records import AwakeUse, Observed, ProbeCost, Trial, TrialDevice
from dbdyno.study.schema import TrialSpec
from dbdyno.workload.load import Columns
from dbdyno.workload.workload import LoadOutcome, Workload

if TYPE_CHECKING:
    from dbdyno.model.results import FastCache


@dataclass(frozen=True)
class Measured:
    """A trial and its series, ready to be stored."""

    trial: Trial
    series: dict[str, Columns]


@dataclass(frozen=True)
class TrialStep:
    """One load of a trial. Most trials have one; several are offered one after the other on the same tables."""

    slot: Slot
    spec: TrialSpec  # differs from that of the first step in the load alone
    folder: Path  # where its raw files go
    ports: Ports


@dataclass(frozen=True)
class TrialTerms:
    """What holds for a trial wherever it is run, and for all its steps."""

    seed: int
    journal: Journal  # gets what undoes each change
    erase: Erasing  # what may be erased for it
    rest_seconds: float  # before its load
    say: Callable[[str], None]  # takes a sentence for the user


@dataclass(frozen=True)
class StepsRun:
    """What came of the steps of a trial."""

    measured: list[Measured]  # in order
    error: TrialError | None = None  # of the step behind them; those that follow on that were not begun


def run_steps(
    steps: Sequence[TrialStep], image: Image, terms: TrialTerms, begins: Callable[[Slot], None] = lambda _: None
) -> StepsRun:
    """Run the steps of one trial on a stack that is raised once and begins with the image.

    ``begins`` is told each step that begins on what the one before has left. Raises ``HostError``; the host is put
    back.
    """
    spec, ports = steps[0].spec, steps[0].ports
    see_that_the_kernel_is(spec, ports.kernel())
    watch, taken = Stopwatch(ports.monotonic), list[Callable[[], Measured]]()
    workload = ports.workload_of(spec)
    raising = Raising(steps[0].folder / "server.log", workload.prepare, terms.seed, terms.erase, ports.listen(spec))
    stack = ports.kinds[spec.stack.kind].stack(spec, image, raising)
    begun_at = _now(ports)
    try:
        with ExitStack() as cutting:
            crashes = []
            for step in steps:
                load = workload if step is steps[0] else step.ports.workload_of(step.spec)
                of = step.spec, step.slot.block, step.slot.treatment, stack, load, terms.seed, step.folder
                about = AboutTrial(*of, terms.journal, terms.say, watch.lap)
                crashes.append((about, cutting.enter_context(step.ports.crashing(about))))
            with ExitStack() as lowering:
                ground = lowering.enter_context(ports.scratch(terms.journal))
                watch.lap("raise scratch")
                context = lowering.enter_context(raised((*_host_layers(spec), *stack.layers), ground, watch.lap))
                for step, (about, crash) in zip(steps, crashes, strict=True):
                    if taken:
                        watch.laps = {}  # what lowering takes goes to the last
                        begins(step.slot)
                        begun_at = _now(ports)
                    what = step.slot, begun_at, about, crash, step.ports, watch
                    taken.append(_take(*what, context, lowering, terms.rest_seconds))
            watch.lap("lower scratch")
            return _put_together(taken)
    except TrialError as error:
        # Where all steps were taken, lowering the stack has failed, and with it the last.
        return _put_together(taken[: len(steps) - 1], error)


def _now(ports: Ports) -> str:
    return ports.now().isoformat(timespec="seconds")


def _put_together(taken: Sequence[Callable[[], Measured]], error: TrialError | None = None) -> StepsRun:
    measured: list[Measured] = []
    for result in taken:
        try:
            measured.append(result())
        except TrialError as own:
            return StepsRun(measured, own)
    return StepsRun(measured, error)


def _take(  # noqa: PLR0913, PLR0917  (as above)
    slot: Slot,
    started_at: str,
    about: AboutTrial,
    crash: Crashing,
    ports: Ports,
    watch: "Stopwatch",
    context: StackContext,
    lowering: ExitStack,
    rest_seconds: float,
) -> Callable[[], Measured]:
    """Offer a step's load to the stack and watch it; returns what puts it together once the stack is lowered."""
    spec, stack, workload, lap, laps = about.spec, about.stack, crash.workload, watch.lap, watch.laps
    tables = workload.check(context)
    lap("check")
    if rest_seconds:  # now, so that what raising the stack leaves ends as well as what the trial before has left
        ports.sleep(rest_seconds)
        lap("settle")
    disks = ports.disks_below(context)
    before = {name: ports.smart_of(name) for name in disks}
    speed_before = ports.host_speed(context)
    with (
        stack.measuring(about.journal) as figures,
        ports.tracing(context, wanted=spec.probes.trace, disk=stack.device.disk) as trace,
        ports.watching(context, disks) as series,
        ports.background(context, disks) as background,
        ports.pinned(spec.stack.client_cpus) as client,
    ):
        with crash.beside(context):
            load = workload.run(context, about.seed, about.folder)
        # The disks behave as measured until further servers have all.
        replicated = _followed(context, load.window_ns) if crash.keeps_server else {}
        traced = trace.within(load.window_ns)
    lap("load")
    speed = before_and_after(speed_before, ports.host_speed(context))
    context = lowering.enter_context(crash.after_load(context, load.window_ns))
    smart = {name: {"before": before[name], "after": ports.smart_of(name)} for name in disks}
    tables = workload.check(context) if crash.keeps_server else tables
    observed = observed_of(context, workload, tables, client) | crash.observed()
    observed |= {"boot": {"kernel": ports.kernel()}} if spec.booted_kernel else {}
    room = after_load(context.directory) if context.directory else {}
    variables = variables_of(context) if slot.block == 1 else {}
    lap("check after")

    def measured() -> Measured:
        cuts = crash.examined(load.window_ns)
        aside = {series_name("block_device", disk) for disk in context.standby.own_disks} if context.standby else set()
        of_server = {name: probe_series for name, probe_series in series.items() if name not in aside}
        figures_of_trial = {**metrics(load, of_server), **traced.metrics(), **replicated}
        figures_of_trial |= lag(load, series) | cluster_metrics(load, series)
        steps = steps_to_store(str(load.result.get("kind")), figures_of_trial)
        watchers = {**series, **background.known()}
        trial = Trial(
            *(slot.id, slot.block, slot.attempt, slot.position, slot.treatment, started_at),
            metrics=figures_of_trial,
            observed=observed,
            load={**load.result, "second_half_ratio": load.second_half_ratio(), "steps": steps},
            probes={name: probe_cost(watcher, load) for name, watcher in watchers.items()} | traced.cost,
            device=since_measuring(figures, load.window_ns[0]),
            seconds=phases(laps, load) if ports.kinds[spec.stack.kind].ON_HOST else dict(laps),
            space=room,
            disturbance=background.within(load.window_ns),
            block_trace=traced.figures,
            smart=smart,
            awake=awake_use(observed, series, load.window_ns),
            server_variables=variables,
            cuts=cuts,
            host_speed=speed,
        )
        return Measured(trial, series_columns(load, series, traced.series))

    return measured


def _followed(context: StackContext, window_ns: tuple[int, int]) -> dict[str, float]:
    """Wait until a replica, or the other nodes of a cluster, have all; returns how long that took."""
    replicated = caught_up(context.replica, window_ns) if context.replica else {}
    return replicated | (all_applied(context.nodes, window_ns) if context.nodes else {})


def see_that_the_kernel_is(spec: TrialSpec, kernel: str) -> None:
    """Raise ``HostError`` where the host runs another kernel than the trial needs."""
    if spec.booted_kernel not in {"", kernel}:
        raise HostError(
            f"this host runs kernel {kernel}, and the trial needs {spec.booted_kernel}; the trial is not run"
        )


def _host_layers(spec: TrialSpec) -> list[Layer]:
    """What is set of the machine itself, below the stack."""
    settings: list[Layer] = [HostSettings(spec.host.settings, bool(spec.stack.memory))] if spec.host.settings else []
    return [*settings, *([Awake()] if spec.host.awake is True else [])]


def awake_use(
    observed: Mapping[str, Mapping[str, Any]], series: Mapping[str, Series], window_ns: tuple[int, int]
) -> AwakeUse:
    """What kept processors awake, and CPU seconds that it used in the measured window; empty where nothing did."""
    if not (kept := dict(observed.get("host", {}))):
        return {}
    used = 0.0
    if "awake" in series and series["awake"].t_ns:
        start, end = (series["awake"].at("cpu_seconds", t_ns) for t_ns in window_ns)
        used = end - start
    return {"by": kept["awake"], "cpus": kept["cpus"], "cpu_seconds": used}


def observed_of(
    context: StackContext, workload: Workload, tables: Mapping[str, Any], client: Mapping[str, str]
) -> Observed:
    """What was read back: of each layer, of the tables, which the load may have made, of the load's own program."""
    observed = {layer: dict(values) for layer, values in context.observed.items()} | {"tables": dict(tables)}
    observed |= {"client": dict(client)} if client else {}
    return observed | ({"tool": dict(workload.tool.observed())} if workload.tool else {})


def variables_of(context: StackContext) -> dict[str, str]:
    """What the server says of all its settings, by which two servers are compared; nothing without a server."""
    return dict(context.endpoint.control.settings().comparable) if context.endpoint else {}


def since_measuring(figures: TrialDevice, start_ns: int) -> TrialDevice:
    """A disk's figures, the moment at which its fast cache ran out in seconds since measuring began."""
    device_figures: TrialDevice = {**figures}
    if cache := device_figures.get("fast_cache"):
        at_ns = cache["ran_out_ns"]
        kept: FastCache = {**cache, "ran_out_s": None if at_ns is None else (at_ns - start_ns) / 1e9}
        del kept["ran_out_ns"]
        device_figures["fast_cache"] = kept
    if "disks" in device_figures:
        device_figures["disks"] = [
            since_measuring(cast("TrialDevice", each), start_ns) for each in device_figures["disks"]
        ]
    if "named" in device_figures:
        device_figures["named"] = {
            name: since_measuring(cast("TrialDevice", each), start_ns) for name, each in device_figures["named"].items()
        }
    return device_figures


class Stopwatch:
    """Wall clock per phase, in seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.laps: dict[str, float] = {}
        self._clock = clock
        self._last = clock()

    def lap(self, phase: str) -> None:
        """The phase that just ended, or a further part of it."""
        now = self._clock()
        self.laps[phase], self._last = round(self.laps.get(phase, 0.0) + now - self._last, 3), now


def phases(laps: Mapping[str, float], load: LoadOutcome) -> dict[str, float]:
    """The laps, that of the load split by what it was spent on; their sum stays the same."""
    start, end = load.window_ns
    spent = {**load.seconds_before, "measure": (end - start) / 1e9}
    seconds_by_phase: dict[str, float] = {}
    for name, seconds in laps.items():
        if name == "load":
            seconds_by_phase |= {part: round(value, 3) for part, value in spent.items()}
            seconds_by_phase["around load"] = round(max(0.0, seconds - sum(spent.values())), 3)
        else:
            seconds_by_phase[name] = seconds
    return seconds_by_phase


# Metric -> the probe and the cumulative column that it comes from, and what makes its unit of the column's.
FINER = {"server_cpu_us_per_query": ("server_switches", "cpu_seconds", 1e6)}  # where it is there; not in clock ticks
COUNTED = {
    "server_cpu_us_per_query": ("server_process", "cpu_seconds", 1e6),
    "written_bytes_per_query": ("block_device", "written_bytes", 1.0),
    "read_bytes_per_query": ("block_device", "read_bytes", 1.0),
    **{f"{kind}_per_query": ("block_device", f"{kind}_done", 1.0) for kind in ("reads", "writes", "flushes")},
    "fsyncs_per_query": ("server_status", FSYNCS_DONE, 1.0),
    "voluntary_switches_per_query": ("server_switches", "voluntary", 1.0),
    "involuntary_switches_per_query": ("server_switches", "involuntary", 1.0),
    **{
        f"{event}_per_query": ("server_counters", event, 1.0)
        for event in ("instructions", "cycles", "cache_misses", "branch_misses")
    },
}


def metrics(load: LoadOutcome, series: Mapping[str, Series]) -> dict[str, float]:
    """The trial's scalars: the client's own, and what the probes counted from the window's start to its end."""
    scalars = load.metrics()
    for name, (probe, column, scale) in (*COUNTED.items(), *FINER.items()):
        counted = [each for of, each in series.items() if each.t_ns and (of == probe or of.startswith(f"{probe}_"))]
        if load.queries and probe in series and all(column in each.columns for each in counted) and series[probe].t_ns:
            bounds = [[each.at(column, t_ns) for t_ns in load.window_ns] for each in counted]
            if all(end >= start for start, end in bounds):  # else someone has set the counter back
                scalars[name] = sum(end - start for start, end in bounds) * scale / load.queries
    return scalars


def lag(load: LoadOutcome, series: Mapping[str, Series]) -> dict[str, float]:
    """How far a replica was behind while the load was measured, by the samples; nothing without one."""
    known = [ms for ms in _samples(load, series, "replica", "lag_ms") if math.isfinite(ms)]
    return {"replica_lag_ms_mean": math.fsum(known) / len(known), "replica_lag_ms_max": max(known)} if known else {}


def cluster_metrics(load: LoadOutcome, series: Mapping[str, Series]) -> dict[str, float]:
    """What the nodes of a cluster did while the load was measured; nothing without one."""
    queues = _samples(load, series, "cluster", "receive_queue")
    if not queues:
        return {}
    start, end = load.window_ns

    def counted(column: str) -> float:
        return series["cluster"].at(column, end) - series["cluster"].at(column, start)

    seconds, ordered = (end - start) / 1e9, counted("ordered_done")
    return {
        "cluster_commits_per_second": counted("sent_done") / seconds,
        **({"ordering_ms_mean": 1000 * counted("ordering_seconds") / ordered} if ordered > 0 else {}),
        "flow_control_paused_ratio": min(1.0, counted("paused_seconds") / seconds),
        "receive_queue_mean": math.fsum(queues) / len(queues),
        "certification_failures": counted("failed_done"),
    }


def _samples(load: LoadOutcome, series: Mapping[str, Series], probe: str, column: str) -> list[float]:
    """A probe's samples in the measured window; none where it is not there."""
    if probe not in series:
        return []
    start, end = load.window_ns
    watched = series[probe]
    return [
        value for t_ns, value in zip(watched.t_ns, watched.columns.get(column, []), strict=True) if start < t_ns <= end
    ]


def probe_cost(series: Series, load: LoadOutcome) -> ProbeCost:
    """What a probe burned, here and of others' CPU: seconds, and as a share of one core while it ran."""
    start, end = load.window_ns
    inside = sum(start <= t <= end for t in series.t_ns)
    seconds = (series.t_ns[-1] - series.t_ns[0]) / 1e9 if len(series.t_ns) > 1 else 0.0
    cost: ProbeCost = {
        "cpu_seconds": series.cpu_seconds,
        "cpu_percent": None,
        "samples": inside,
        "missed": series.missed,
    }
    if seconds:
        cost["cpu_percent"] = 100 * series.cpu_seconds / seconds
    if series.outside_seconds and seconds:
        cost["outside_cpu_percent"] = 100 * series.outside_seconds / seconds
    return cost


def series_columns(
    load: LoadOutcome, series: Mapping[str, Series], traced: Mapping[str, Mapping[str, list[float]]]
) -> dict[str, Columns]:
    """Every series on the trial's clock: ``t_s`` is 0 where measuring starts; what lies outside is left out.

    Beside them, how often each latency was met.
    """
    start, end = load.window_ns
    columns_by_series = {"load": load.columns(), LATENCIES: load.latencies()}
    for name, probe_series in series.items():
        # An interval belongs to the measured run when it began in it; its last may end just after.
        inside = [index for index, t_ns in enumerate(probe_series.t_ns) if start < t_ns <= end + 100_000_000]
        columns: Columns = {
            column: [values[index] for index in inside] for column, values in probe_series.columns.items()
        }
        columns_by_series[name] = {"t_s": [(probe_series.t_ns[index] - start) / 1e9 for index in inside], **columns}
    return columns_by_series | {**load.beside()} | {name: {**columns} for name, columns in traced.items()}
