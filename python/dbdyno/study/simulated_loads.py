"""The loads that can be simulated: what a study may say of each, and what the simulator is given for it."""

from collections.abc import Callable, Iterator
from typing import Any

from dbdyno.study.mistakes import Mistake, shown
from dbdyno.study.schema import TrialSpec
from dbdyno.study.simulated_servers import SETTINGS, innodb, myisam, setting_mistakes
from dbdyno.study.tools import FioSection
from dbdyno.study.trace_section import TraceSection
from dbdyno.study.units import format_bytes
from dbdyno.study.workloads import IngestSection, LoopSection, SlapSection

# Of a series: as probes have them, made longer by the simulator where there would be too many.
INTERVAL_SECONDS, INTERVALS_MAX = 0.1, 600
MIX_READ_PERCENT = 70  # of a profile: KDiskMark's
LOADS_OF_SLAP = ("write", "update", "key", "mixed")
# Fields of a load of dbdyno's own that a simulated server knows nothing of.
_LEFT_OUT = ("ignore_errors", "io_threads", "rate", "arrivals", "think_distribution", "warmup_max", "prepared",
             "guid_primary", "unique_queries", "unique_writes")  # fmt: skip

Given = dict[str, Any]


def broken_load_rules(spec: TrialSpec) -> Iterator[Mistake]:
    """What of a load that can be simulated can't be."""
    load = spec.workload
    match load:
        case FioSection():
            yield from _broken_fio(load, spec.stack.size)
        case TraceSection():
            if load.replay == "closed" and "speed" in load.model_fields_set:
                yield Mistake(("workload", "speed"), 'is for replay = "open"; leave it out')
        case LoopSection():
            yield from _broken_loop(spec, load)
    if not isinstance(load, LoopSection):
        yield from setting_mistakes(spec, ())


def _broken_fio(load: FioSection, device_bytes: int | None) -> Iterator[Mistake]:
    if load.job is not None:
        yield Mistake(("workload", "job"), "can't be simulated; give a profile, such as RND4K Q32T16")
    if not load.direct:
        text = "is false, but a simulated profile goes past the page cache; leave it out"
        yield Mistake(("workload", "direct"), text)
    if device_bytes is not None and load.size_bytes > device_bytes:
        text = f"is {format_bytes(load.size_bytes)}{'' if load.size else ' unless given'}, "
        yield Mistake(("workload", "size"), text + f"more than the {format_bytes(device_bytes)} of stack.size")


def _broken_loop(spec: TrialSpec, load: LoopSection) -> Iterator[Mistake]:
    """A simulated server: which engine, and what it knows of the load."""
    engines = ("innodb", "myisam") if isinstance(load, IngestSection) else ("innodb",)
    engine = spec.stack.engine.lower()
    if engine not in engines:
        text = f"is {shown(spec.stack.engine)}; a simulated {load.kind} has {' or '.join(engines)}"
        yield Mistake(("stack", "engine"), text)
    else:
        yield from setting_mistakes(spec, SETTINGS[engine])
    for name in _LEFT_OUT:
        if name in load.model_fields_set:
            yield Mistake(("workload", name), "is not simulated; leave it out")
    if getattr(load, load.AMOUNT) is not None:
        text = "is not simulated, as what goes on behind the last answer would count; give duration"
        yield Mistake(("workload", load.AMOUNT), text)
    if load.warmup == "steady":
        yield Mistake(("workload", "warmup"), 'is "steady"; a simulated load has a time, such as "10s"')
    if isinstance(load, SlapSection) and load.load not in LOADS_OF_SLAP:
        text = f"is {shown(load.load)}; these can be simulated: {', '.join(LOADS_OF_SLAP)}"
        yield Mistake(("workload", "load"), text)


def _fio(spec: TrialSpec) -> Given:
    load = spec.workload
    assert isinstance(load, FioSection)  # noqa: S101  (by its kind)
    is_random, block, depth, threads = load.shape
    job = {
        "processes": threads,
        "pattern": "random" if is_random else "sequential",
        "read_percent": {"read": 100, "write": 0}.get(load.load or "", MIX_READ_PERCENT),
        "block_bytes": block,
        "depth": depth,
        "range_bytes": load.size_bytes,
    }
    return {**_times(load.warmup, load.measured_seconds), "load": {"kind": "jobs", "jobs": [job]}}


def _trace(spec: TrialSpec) -> Given:
    load = spec.workload
    assert isinstance(load, TraceSection)  # noqa: S101  (by its kind)
    given: Given = {"kind": "trace", "files": [load.file], "replay": load.replay}
    if load.replay == "open":
        given["speed"] = load.speed
    units = {"time_unit": load.time_unit, "length_unit": load.length_unit, "fold": load.fold or None}
    given |= {name: value for name, value in units.items() if value is not None}
    return {**_times(0.0, load.duration), "load": given}


def _ingest(spec: TrialSpec) -> Given:
    load = spec.workload
    assert isinstance(load, IngestSection)  # noqa: S101  (by its kind)
    if spec.stack.engine.lower() == "myisam":
        given = myisam(spec, initial_rows=load.initial_rows)
    else:
        given = innodb(
            spec,
            load="write",
            clients=load.clients,
            statements_per_transaction=load.rows_per_commit,
            think_us=load.think_time * 1e6,
            rows=max(1, load.initial_rows),
            secondary_indexes=3,
        )
    return {**_times(load.seconds_before, load.duration), "load": given}


def _slap(spec: TrialSpec) -> Given:
    load = spec.workload
    assert isinstance(load, SlapSection)  # noqa: S101  (by its kind)
    given = innodb(
        spec,
        load=load.load,
        clients=load.clients,
        statements_per_transaction=max(1, load.commit_every),
        think_us=load.think_time * 1e6,
        rows=load.initial_rows,
        row_bytes=20 + 4 * load.int_cols + 127 * load.char_cols,
        secondary_indexes=load.secondary_indexes,
    )
    return {**_times(load.seconds_before, load.duration), "load": given}


def _times(warm_up_s: float, duration_s: float | None) -> Given:
    return {
        "warm_up_s": warm_up_s,
        "duration_s": duration_s,
        "interval_s": INTERVAL_SECONDS,
        "intervals_most": INTERVALS_MAX,
    }


# Kind of load -> what the point of the simulator says of it.
LOADS: dict[str, Callable[[TrialSpec], Given]] = {"fio": _fio, "trace": _trace, "ingest": _ingest, "slap": _slap}
