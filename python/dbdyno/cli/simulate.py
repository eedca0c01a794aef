"""``dbdyno simulate TRACE|JOB``: a load on drives, kernels and schedulers that are not at hand."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dbdyno.cli.options import HOSTS, LENGTH_UNIT, TIME_UNIT, bytes_of, path_of, plain_seconds_of, seed_of
from dbdyno.cli.output import (
    DETAILS,
    JSON,
    SILENT_SECONDS,
    Format,
    ProgressLine,
    print_document,
    print_json,
    refuse_to_overwrite,
    write_page,
)
from dbdyno.errors import UserError
from dbdyno.model.wording import count

if TYPE_CHECKING:
    from dbdyno.hosts.connect import Connected
    from dbdyno.report.document import Document
    from dbdyno.simulation.options import PointLoad, SweepRequest
    from dbdyno.simulation.sweep import PointOutcome, SimulatedPoint, Simulators, SweepProgress

    Elsewhere = Callable[[], AbstractContextManager[Connected]]  # other processors than those here


# What ``dbdyno simulate`` prints: the result, and the kernels there are.


def print_result(load: "PointLoad", outcomes: "Sequence[PointOutcome]", *, details: bool, json_: bool) -> "Document":
    """Print what came of all points, as text or as JSON; return the report of it."""
    from dbdyno.report.simulation import Row, document

    by_levels: dict[tuple[str, ...], list[PointOutcome]] = {}
    for point_outcome in outcomes:
        by_levels.setdefault(tuple(point_outcome.point.levels.values()), []).append(point_outcome)
    rows = [
        Row(same[0].point.levels, tuple(point_outcome.outcome for point_outcome in same)) for same in by_levels.values()
    ]
    requests = sum(point_outcome.outcome[way]["requests"] for point_outcome in outcomes for way in ("reads", "writes"))
    cost = f"{requests:,} requests in {sum(point_outcome.cpu_s for point_outcome in outcomes):,.3g} s of CPU."
    if load.passed_over:
        cost = f"Passed over, as it changes nothing here: {', '.join(load.passed_over)}. {cost}"
    report = document(rows, load.said, load.replay, cost)
    if json_:
        each = [
            {
                "levels": dict(point_outcome.point.levels),
                "point": point_outcome.point.point,
                "outcome": point_outcome.outcome,
            }
            for point_outcome in outcomes
        ]
        whole = {"simulated": True, "load": load.said, "replay": load.replay or None}
        whole |= {"passed_over": list(load.passed_over), "combinations": report.data["rows"], "points": each}
        print_json(whole)
    else:
        print_document(report, Format.TEXT, brief=not details)
    return report


def print_kernels(*, json_: bool) -> None:
    """Print the kernels that can be simulated, with schedulers and tunables."""
    from dbdyno._native import kernels

    if json_:
        print_json(kernels())
        return
    for kernel in kernels():
        print(kernel["name"])
        for place, (name, tunables) in enumerate(kernel["schedulers"].items()):
            settings = ", ".join(f"{tunable}={known['default']}{known['unit'] if known['unit'] != '0 or 1' else ''}"
                                 for tunable, known in tunables.items())  # fmt: skip
            print(f"  {name}{' (default)' if not place else ''}{': ' + settings if settings else ''}")


def filled_options(**words: str) -> dict[str, str]:
    """Return the options of these names that are not left out."""
    return {word: text for word, text in words.items() if text}


# What ``dbdyno simulate`` has in common with ``--from``: where points are simulated, and how far that is.


PIPE_SECONDS = 30.0  # between two lines into a pipe


class SimulationProgress(ProgressLine):
    """How far a simulation is."""

    def __init__(self, *, on_hosts: bool) -> None:
        super().__init__(silent_seconds=SILENT_SECONDS, pipe_seconds=PIPE_SECONDS)
        self._on_hosts = on_hosts
        self._each, self._all = 0.0, 0

    def begin(self, points: "Sequence[SimulatedPoint]") -> None:
        """Say of which points the progress will be."""
        first = points[0].point
        self._all, self._each = len(points), first["warm_up_s"] + first.get("duration_s", 0.0)

    def reading(self, _seconds: float, requests: int) -> None:
        """A trace is being read."""
        self.show(f"reading the trace: {requests:,} requests")

    def progress(self, progress: "SweepProgress") -> None:
        """Points are being simulated."""
        share = progress.done + (progress.running_s / self._each if self._each else 0.0)
        where = f" on {count(progress.hosts, 'host')}" if self._on_hosts else ""
        done = f"{progress.done} of {count(self._all, 'point')} simulated{where}"
        self.show(f"{done}, {100 * min(share / self._all, 1):.0f} %")


def _elsewhere(hosts: Path | None, dask: str) -> "Elsewhere | None":
    """The hosts of a file, or a Dask cluster; none where points are simulated here. Raises ``UserError``."""
    if hosts is not None and dask:
        raise UserError("--hosts and --dask both say where points are simulated; give one of them")
    if hosts is not None:
        from dbdyno.hosts.connect import connected

        return partial(connected, hosts)
    if dask:
        from dbdyno.hosts.connect import connected_to_dask

        return partial(connected_to_dask, dask)
    return None


def all_simulated(
    points: "Sequence[SimulatedPoint]",
    into: Path | None,
    running: SimulationProgress,
    elsewhere: "Elsewhere | None",
    places: Mapping[str, str] | None = None,
) -> "list[PointOutcome]":
    """What comes of the points, in their order, from here or from elsewhere. Raises as ``simulated``."""
    from dbdyno.simulation.sweep import simulated, simulators

    @contextmanager
    def opened(left: Sequence[Mapping[str, Any]]) -> "Iterator[Simulators]":
        if elsewhere is None:
            with simulators(left) as by:
                yield by
            return
        with elsewhere() as there, simulators(left, there, running.say) as by:
            yield by

    if into is not None and into.is_dir():
        into /= "simulated.jsonl"
    running.begin(points)
    outcomes = dict(simulated(points, into, running.progress, places, opened))
    return [outcomes[place] for place in range(len(points))]


# ``dbdyno simulate --from RUN``: a run's recorded load under all of its treatments.


# What a run answers itself: fields of what is asked, and their options.
OF_THE_RUN = {
    "files": "a file", "device": "--device", "kernel": "--kernel", "scheduler": "--scheduler", "size_bytes": "--size",
    "nr_requests": "--nr-requests", "queue_depth": "--queue-depth", "tunables": "--set", "fio": "a job",
    "cache": "what goes with --direct 0",
    "seconds": "--seconds", "warm_up": "--warmup", "repeat": "--repeat", "format": "--format", "speed": "--speed",
    "trace_device": "--trace-device", "time_unit": "--time-unit", "length_unit": "--length-unit", "fold": "--fold",
}  # fmt: skip
DEVICE, KERNEL = "hdd-7200", "6.x"  # unless given


def simulate_from(
    folder: Path | None,
    request: "SweepRequest",
    treatment: str,
    *,
    into: Path | None,
    html: Path | None,
    elsewhere: "Elsewhere | None",
    on_hosts: bool,
    details: bool,
    json_: bool,
) -> None:
    """Predict and print."""
    from dbdyno.report.prediction import document, values
    from dbdyno.simulation.from_run import planned
    from dbdyno.simulation.options import SweepRequest
    from dbdyno.store.others import last_resort

    if folder is None:
        raise UserError("--treatment is for --from RUN, whose treatments it names")
    unset = SweepRequest((), DEVICE, KERNEL)
    if named := [
        option
        for name, option in OF_THE_RUN.items()
        if (getattr(request, name) or None) != (getattr(unset, name) or None)
    ]:
        raise UserError(f"--from takes load, devices and queues from the run; leave out {' and '.join(named)}")
    if html is not None:
        refuse_to_overwrite(html)
    with last_resort(folder):
        plan = planned(folder, treatment, request.replay, request.seed)
    with SimulationProgress(on_hosts=on_hosts) as running:
        each = all_simulated(list(plan.points.values()), into, running, elsewhere)
    with last_resort(folder):
        prediction = plan.prediction([point_outcome.outcome for point_outcome in each])
        report = document(prediction, plan.run.title)
    if json_:
        outcomes = [{"point": point_outcome.point.point, "outcome": point_outcome.outcome} for point_outcome in each]
        print_json({**values(prediction), "points": outcomes})
    else:
        print_document(report, Format.TEXT, brief=not details)
    if html is not None:
        write_page(html, report, aside=json_)


_JOB = "Jobs without a file, in fio's words"
SIZE, SECONDS, WARM_UP = "--size", "--seconds", "--warmup"


def simulate(
    files: list[Path] = typer.Argument(None, parser=path_of, metavar="TRACE|JOB|LOAD.toml", help="The load."),
    device: str = typer.Option(DEVICE, metavar="DRIVE,...", help="Drives, as dbdyno disk models lists them."),
    size: str = typer.Option("", SIZE, metavar="SIZE", help="Size of the device [what the load reaches, or 16 GiB]."),
    kernel: str = typer.Option(KERNEL, metavar="VERSION,...", help="Kernels, as --list shows."),
    scheduler: str = typer.Option("", metavar="NAME,...", help="Schedulers [each kernel's default]."),
    nr_requests: str = typer.Option("", metavar="N,...", help="Requests that the kernel holds [its default]."),
    queue_depth: str = typer.Option("", metavar="N,...", help="Commands that the drive takes at once [32]."),
    tunables: list[str] = typer.Option([], "--set", metavar="NAME=N,...", help="A tunable of the scheduler."),
    rw: str = typer.Option("", metavar="PATTERN,...", help=f"{_JOB}: what they do, such as randwrite."),
    bs: str = typer.Option("", metavar="SIZE,...", help="Size of each read and write [4k]."),
    iodepth: str = typer.Option("", metavar="N,...", help="Requests that each process has outstanding [1]."),
    numjobs: str = typer.Option("", metavar="N,...", help="Processes [1]."),
    rwmixread: str = typer.Option("", metavar="PERCENT,...", help="Reads of a mix [50]."),
    thinktime: str = typer.Option("", metavar="US,...", help="Pause after each, microseconds [0]."),
    fsync: str = typer.Option("", metavar="N,...", help="A flush after so many writes [none]."),
    direct: str = typer.Option("", metavar="0|1", help="0: through the page cache [1]."),
    memory: str = typer.Option("", metavar="SIZE,...", help="Memory of the machine, with --direct 0 [8 GiB]."),
    filesystem: str = typer.Option(
        "", metavar="ext3|ext4", help="The filesystem of the files, with --direct 0 [ext4]."
    ),
    mount: str = typer.Option("", metavar="data=MODE", help="ordered or writeback, with --direct 0 [data=ordered]."),
    format_: str | None = typer.Option(None, "--format", metavar="NAME", help="Format of the trace [how it begins]."),
    time_unit: str | None = TIME_UNIT,
    length_unit: str | None = LENGTH_UNIT,
    fold: bool = typer.Option(False, "--fold", help="Fold a trace onto --size: places beyond wrap around."),
    trace_device: str | None = typer.Option(None, metavar="NAME", help="Which of the trace's devices."),
    replay: str = typer.Option("", metavar="open|closed", help="At recorded times [default], or as processes waited."),
    speed: float | None = typer.Option(None, metavar="X", help="An open replay so many times as fast."),
    from_: Path | None = typer.Option(None, "--from", parser=path_of, metavar="RUN", help="Predict its treatments."),
    treatment: str = typer.Option(
        "", metavar="NAME", help="With --from: the treatment whose load is taken [the run's baseline]."
    ),
    seconds: str = typer.Option("", SECONDS, metavar="TIME", help="How long is counted [10s, or all of the trace]."),
    warmup: str = typer.Option("", WARM_UP, metavar="TIME", help="Warm-up, which is not counted [none]."),
    seed: str = typer.Option("1", metavar="N", help="Seed of all random choices."),
    repeat: int = typer.Option(1, min=1, max=1000, metavar="N", help="How many seeds, beginning with --seed."),
    into: Path | None = typer.Option(None, parser=path_of, metavar="FILE", help="Keep results; go on where it ended."),
    html: Path | None = typer.Option(None, parser=path_of, metavar="FILE", help="Write a page with charts as well."),
    hosts: Path | None = HOSTS,
    dask: str = typer.Option("", metavar="ADDRESS", help="On a Dask cluster: tls://HOST:PORT of its scheduler."),
    list_: bool = typer.Option(False, "--list", help="List kernels with their schedulers and tunables."),
    details: bool = DETAILS,
    json_: bool = JSON,
) -> None:
    """Simulate a load on drives below the block layers of kernels: what they would have done."""
    if list_:
        print_kernels(json_=json_)
        return
    from dbdyno.simulation.options import SweepRequest

    elsewhere = _elsewhere(hosts, dask)
    if speed is not None and speed <= 0:
        raise UserError(f"--speed {speed} must be above 0")
    job = filled_options(rw=rw, bs=bs, iodepth=iodepth, numjobs=numjobs, rwmixread=rwmixread)
    request = SweepRequest(
        files=files or (), device=device, kernel=kernel, scheduler=scheduler, nr_requests=nr_requests,
        queue_depth=queue_depth, tunables=tunables,
        cache=filled_options(memory=memory, filesystem=filesystem, mount=mount),
        fio=job | filled_options(thinktime=thinktime, fsync=fsync, direct=direct),
        size_bytes=bytes_of(SIZE, size) if size else None,
        seconds=plain_seconds_of(SECONDS, seconds) if seconds else None,
        warm_up=plain_seconds_of(WARM_UP, warmup) if warmup else None,
        seed=seed_of(seed), repeat=repeat, format=format_, replay=replay, speed=speed, trace_device=trace_device,
        time_unit=time_unit, length_unit=length_unit, fold=fold,
    )  # fmt: skip
    if from_ is not None or treatment:
        simulate_from(
            from_, request, treatment, into=into, html=html, elsewhere=elsewhere, on_hosts=hosts is not None,
            details=details, json_=json_,
        )  # fmt: skip
    else:
        _run(request, into, html, elsewhere, on_hosts=hosts is not None, details=details, json_=json_)


def _run(
    request: "SweepRequest",
    into: Path | None,
    html: Path | None,
    elsewhere: "Elsewhere | None",
    *,
    on_hosts: bool,
    details: bool,
    json_: bool,
) -> None:
    from dbdyno.simulation.options import points_of

    if html is not None:
        refuse_to_overwrite(html)
    with SimulationProgress(on_hosts=on_hosts) as running:
        load, points = points_of(request, running.reading)
        outcomes = all_simulated(points, into, running, elsewhere, load.places)
    document = print_result(load, outcomes, details=details, json_=json_)
    if html is not None:
        write_page(html, document, aside=json_)
