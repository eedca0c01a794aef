"""What is asked of a simulation, in the words of the command line, as points."""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dbdyno._native import trace_summary
from dbdyno.errors import UserError
from dbdyno.model.fio import is_job_file
from dbdyno.model.quantity import size_bytes
from dbdyno.simulation.fio_words import GIB, jobs_of, on_a_drive, put, reach_bytes, times_of
from dbdyno.simulation.points import (
    BRIEF_FROM,
    FIO,
    JOBS,
    LOAD,
    QUEUE,
    SET,
    SimulatedPoint,
    combinations,
    in_words,
    merge,
    split,
    whole,
)
from dbdyno.study.document import read_document
from dbdyno.study.mistakes import Mistake, did_you_mean, explain, place_of
from dbdyno.study.simulated_loads import page_cache
from dbdyno.study.units import format_bytes

# The load of a server from a TOML file: ``[ingest]`` with ``[cache]``, or ``[commits]``; a list is several values.


# Table of the file -> where its fields stand in the load of a point; "" for the load itself.
TABLES = {"ingest": {"ingest": "table", "cache": "cache"}, "commits": {"commits": ""}}


@dataclass
class ServerLoad:
    """A load, the fields that have several values, and where in the file each field stands."""

    kind: str
    fields: dict[str, Any]
    factors: dict[str, list[tuple[str, Any]]] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)

    @property
    def ends(self) -> bool:
        """Whether it ends by itself: an ingest of so many rows."""
        return bool(self.fields.get("table", {}).get("rows"))


def read_server_load(path: Path) -> ServerLoad:
    """Return what the file says. Raises ``UserError`` with file, line and field."""
    _, raw, lines = read_document(path)
    kinds = [kind for kind in TABLES if kind in raw]
    if len(kinds) != 1:
        raise UserError(
            f"{path}: has {' and '.join(kinds) or 'neither [ingest] nor [commits]'}; give one of these tables"
        )
    tables = TABLES[kinds[0]]
    load = ServerLoad(kinds[0], {"kind": kinds[0]}, places={"load": str(path)})

    def refuse(text: str, *where: str) -> UserError:
        return UserError(explain(path, lines, Mistake(where, text)))

    for name, table in raw.items():
        if name not in tables:
            text = f"is no table of this load{did_you_mean(name, tables)}; known are {', '.join(tables)}"
            raise refuse(text, name)
        if not isinstance(table, dict):
            raise refuse(f"must be a table: [{name}]", name)
        for key, given in table.items():
            try:
                levels = [(text, _in(tables[name], key, value)) for text, value in _levels(key, given)]
            except ValueError as error:
                raise refuse(str(error), name, key) from None
            place = place_of(path, lines, Mistake((name, key), ""))
            load.places |= {f"load.{key}": place, f"load.{tables[name]}.{key}": place}
            if isinstance(given, list):
                load.factors[LOAD + key] = levels
            else:
                merge(load.fields, levels[0][1])
    return load


def _in(table: str, key: str, value: object) -> dict[str, Any]:
    return {table: {key: value}} if table else {key: value}


def _levels(key: str, given: object) -> Iterator[tuple[str, object]]:
    values = given if isinstance(given, list) else [given]
    if not values:
        raise ValueError("is an empty list; give a value")
    texts = [str(value) for value in values]
    if len(set(texts)) < len(texts):
        raise ValueError("holds a value twice")
    for text, value in zip(texts, values, strict=True):
        yield text, _value(key, value)


def _value(key: str, value: object) -> object:
    if isinstance(value, str) and key.endswith("_bytes"):
        try:
            return size_bytes(value)
        except ValueError as error:
            raise ValueError(f"is {value[:40]!r}, which {error}") from None
    if not isinstance(value, str | int | float) or (isinstance(value, float) and not math.isfinite(value)):
        raise ValueError("must be a number, a text, true or false, or a list of these")
    return value


HEAD_BYTES = 1 << 16
SIZE_BYTES = 16 << 30  # of a device that nothing says the size of
FIELDS = {"bs": "block_bytes", "iodepth": "depth", "numjobs": "processes", "rwmixread": "read_percent",
          "thinktime": "think_us", "fsync": "fsync_every", "direct": "direct"}  # fmt: skip
SECONDS = 10.0  # of jobs that don't say how long


@dataclass(frozen=True)
class Asked:
    """What is asked; several values stand in one text, with commas."""

    files: Sequence[Path]
    device: str
    kernel: str
    scheduler: str = ""
    nr_requests: str = ""
    queue_depth: str = ""
    tunables: Sequence[str] = ()  # NAME=VALUE[,VALUE...]
    fio: Mapping[str, str] = field(default_factory=dict)  # an option of fio to its values
    cache: Mapping[str, str] = field(default_factory=dict)  # memory, filesystem, mount, to their values
    size_bytes: int | None = None
    seconds: float | None = None
    warm_up: float | None = None
    seed: int = 1
    repeat: int = 1
    format: str | None = None
    replay: str = ""
    speed: float | None = None
    trace_device: str | None = None
    time_unit: str | None = None
    length_unit: str | None = None
    fold: bool = False


@dataclass(frozen=True)
class Load:
    """The load of all points, how long it is, how far it reaches, and how its results must be read."""

    fields: dict[str, Any]
    seconds: float | None
    warm_up: float
    reach_bytes: int
    replay: str  # "open", "closed", or "" of jobs
    said: str
    span_s: float = 0.0  # of a trace, as it was recorded
    factors: Mapping[str, list[tuple[str, Any]]] = field(default_factory=dict)  # of the file itself
    places: Mapping[str, str] = field(default_factory=dict)  # of its fields in the file
    passed_over: Sequence[str] = ()  # words of the file that change nothing in a simulation


def points_of(asked: Asked, watch: Callable[[float, int], None]) -> tuple[Load, list[SimulatedPoint]]:
    """Return the load and all points. ``watch`` hears how many requests of a trace have been read.

    Raises ``UserError`` with the option or the file and line that is wrong.
    """
    load = _load(asked, watch)
    factors = _factors(asked, {} if asked.files else asked.fio) | dict(load.factors)
    seeds = range(asked.seed, asked.seed + asked.repeat)
    common: dict[str, Any] = {
        "size_bytes": asked.size_bytes or load.reach_bytes or SIZE_BYTES,
        "warm_up_s": load.warm_up if asked.warm_up is None else asked.warm_up,
        "load": load.fields,
    }
    seconds = asked.seconds or load.seconds
    if seconds is not None:
        common["duration_s"] = seconds
    if span := seconds or load.span_s:
        common["interval_s"] = min(1.0, max(span / 100, 1e-6))
    count = len(seeds)
    for levels in factors.values():
        count *= len(levels)
    if count > BRIEF_FROM:
        common |= {"sample_most": 0, "intervals_most": 1}
    return load, combinations(common, factors, seeds)


def _factors(asked: Asked, fio: Mapping[str, str]) -> dict[str, list[tuple[str, Any]]]:
    def texts(option: str, text: str) -> list[str]:
        found = split(text)
        if not all(found) or len(set(found)) < len(found):
            raise UserError(f"{option} {text[:60]!r} holds an empty value, or one twice; separate values by one comma")
        return found

    found: dict[str, list[tuple[str, Any]]] = {
        "device": [(text, text) for text in texts("--device", asked.device)],
        "kernel": [(text, text) for text in texts("--kernel", asked.kernel)],
    }
    if asked.scheduler:
        found["scheduler"] = [(text, text) for text in texts("--scheduler", asked.scheduler)]
    for name, option, given in (
        ("nr_requests", "--nr-requests", asked.nr_requests),
        ("queue_depth", "--queue-depth", asked.queue_depth),
    ):
        if given:
            found[name] = [(text, whole(option, text)) for text in texts(option, given)]
    for text in asked.tunables:
        name, equals, values = text.partition("=")
        if not equals or not name:
            raise UserError(f"--set {text[:60]!r} is not TUNABLE=VALUE, such as fifo_batch=16")
        found[name if name in QUEUE else SET + name] = [
            (value, whole(f"--set {name}", value)) for value in texts(f"--set {name}", values)
        ]
    for word, values in fio.items():
        found[FIO + word] = [(value, _job(word, value)) for value in texts(f"--{word}", values)]
    for word, values in asked.cache.items():
        found[LOAD + word] = [(value, {"cache": _cache(word, value)}) for value in texts(f"--{word}", values)]
    return found


def _cache(word: str, value: str) -> dict[str, Any]:
    known = {"filesystem": ("ext3", "ext4"), "mount": ("data=ordered", "data=writeback")}
    if word in known and value not in known[word]:
        raise UserError(f"--{word} {value[:40]!r} is none of {', '.join(known[word])}")
    if word == "filesystem":
        return page_cache(filesystem=value)
    if word == "mount":
        return page_cache(mount=value)
    try:
        return page_cache(memory=size_bytes(value))
    except ValueError as error:
        raise UserError(f"--{word} {value[:40]!r} {error}") from None


def _job(word: str, value: str) -> dict[str, Any]:
    job: dict[str, Any] = {}
    try:
        put(job, word, value)
    except ValueError as error:
        raise UserError(f"--{word} {value[:40]!r} {error}") from None
    return job


def _load(asked: Asked, watch: Callable[[float, int], None]) -> Load:
    if asked.files and asked.files[0].suffix == ".toml":
        return _of_server(asked)
    if not asked.files:
        if "rw" not in asked.fio:
            raise UserError("give a trace, a job file of fio, or --rw such as --rw randwrite")
        return _of_jobs([{}], f"jobs of {_said(asked.fio)}", asked)
    head = _head(asked.files[0])
    if asked.format is None and is_job_file(head):
        if asked.fio:
            word = next(iter(asked.fio))
            raise UserError(f"--{word} is for jobs without a file; write {word} into {asked.files[0]}")
        text = asked.files[0].read_text(errors="replace")
        jobs, passed_over = jobs_of(asked.files[0], text)
        if any("read_iolog" in job for job in jobs):
            return _of_iolog(jobs, asked, watch)
        return _of_jobs(jobs, f"the jobs of {asked.files[0].name}", asked, passed_over)
    for word in (*asked.fio, *asked.cache):
        raise UserError(f"--{word} is for jobs, and {asked.files[0]} is a trace")
    return _of_trace(asked, watch)


def _of_iolog(jobs: list[dict[str, Any]], asked: Asked, watch: Callable[[float, int], None]) -> Load:
    """Return the load of a job that replays a log: a trace."""
    path = asked.files[0]
    if len(jobs) > 1:
        raise UserError(f"{path}: read_iolog is of a job that is alone in its file; give the log itself")
    speed = asked.speed or (jobs[0]["speed_percent"] / 100 if jobs[0].get("speed_percent") else None)
    return _of_trace(replace(asked, files=(path.parent / jobs[0]["read_iolog"],), speed=speed), watch)


def _said(fio: Mapping[str, str]) -> str:
    return ", ".join(f"{word}={values}" for word, values in fio.items())


def _refuse_of_traces(asked: Asked, load: str) -> None:
    given_of_traces = {
        "--replay": asked.replay, "--speed": asked.speed, "--trace-device": asked.trace_device,
        "--time-unit": asked.time_unit, "--length-unit": asked.length_unit, "--fold": asked.fold,
    }  # fmt: skip
    for option, given in given_of_traces.items():
        if given:
            raise UserError(f"{option} is for traces; {load} no recorded times")


def _of_server(asked: Asked) -> Load:
    path = asked.files[0]
    if len(asked.files) > 1:
        raise UserError(f"{path} is a load by itself; leave out {asked.files[1]}")
    for word in (*asked.fio, *asked.cache):
        raise UserError(f"--{word} is for jobs; write what this load has into {path}")
    _refuse_of_traces(asked, f"{path} has")
    found = read_server_load(path)
    seconds = None if found.ends else SECONDS
    said = f"[{found.kind}] of {path.name}"
    return Load(found.fields, seconds, 0.0, 0, "", said, factors=found.factors, places=found.places)


def _of_jobs(jobs: list[dict[str, Any]], said: str, asked: Asked, passed_over: Sequence[str] = ()) -> Load:
    _refuse_of_traces(asked, "jobs have")
    direct = [str(int(job.get("direct", True))) for job in jobs] if asked.files else split(asked.fio.get("direct", "1"))
    if asked.cache and "0" not in direct:
        where = f"write direct=0 into {asked.files[0]}" if asked.files else "give --direct 0"
        raise UserError(f"--{next(iter(asked.cache))} is of the page cache, which these jobs go past; {where}")
    places = {f"load.jobs[0].{known}": f"--{word}" for word, known in FIELDS.items()}
    if asked.files:
        places = {"load": str(asked.files[0])}
    reach = reach_bytes(list(jobs))
    size = asked.size_bytes or reach or SIZE_BYTES
    groups: dict[str, list[dict[str, Any]]] = {}
    for job in jobs:
        job.pop("speed_percent", None)
        groups.setdefault(job.pop("group", ""), []).append(on_a_drive(job, size))
    if len(groups) > 1:
        factors = {JOBS: [(name, _phase(group, asked)) for name, group in groups.items()]}
        said += ", one group after the other, each on a drive as it is at first"
        longest = max((value.get("duration_s", 0.0) for _, value in factors[JOBS]), default=0.0)
        return Load(
            {"kind": "jobs", "jobs": []}, longest or None, 0.0, reach, "", said,
            factors=factors, places=places, passed_over=passed_over,
        )  # fmt: skip
    (alone,) = groups.values()
    found = _phase(alone, asked)
    return Load(
        found["load"], found.get("duration_s"), found["warm_up_s"], reach, "", said,
        places=places, passed_over=passed_over,
    )  # fmt: skip


def _phase(jobs: list[dict[str, Any]], asked: Asked) -> dict[str, Any]:
    """Return the fields of a point whose load are these jobs beside each other, and how long it is."""
    runtime, ramp = times_of(jobs)
    ends = bool(jobs) and all(job.get("ios") for job in jobs)
    seconds = asked.seconds or runtime or (None if ends else SECONDS)
    warm_up = ramp if asked.warm_up is None else asked.warm_up
    length = {} if seconds is None else {"duration_s": seconds}
    return {"load": {"kind": "jobs", "jobs": jobs}, "warm_up_s": warm_up, **length}


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(HEAD_BYTES)
    except OSError as error:
        raise UserError(f"{path}: can't be read: {error.strerror}") from None


def _of_trace(asked: Asked, watch: Callable[[float, int], None]) -> Load:
    replay = asked.replay or "open"
    if replay not in {"open", "closed"}:
        raise UserError(f"--replay is open or closed, not {replay[:40]}")
    fields: dict[str, Any] = {"files": [str(path) for path in asked.files], "replay": replay}
    chosen = {"format": asked.format, "speed": asked.speed, "device": asked.trace_device}
    chosen |= {"time_unit": asked.time_unit, "length_unit": asked.length_unit}
    fields |= {name: value for name, value in chosen.items() if value is not None}
    if asked.fold:
        if asked.size_bytes is None:
            raise UserError("--fold needs --size, the size of the device that the trace is folded onto")
        fields["fold"] = True
    try:
        summary = json.loads(trace_summary(json.dumps(fields), watch))
    except ValueError as error:
        raise UserError(in_words(str(error), {})) from None
    counts = dict(summary["devices"])
    if asked.trace_device is None and len(counts) > 1:
        devices = ", ".join(f"{name} ({count} requests)" for name, count in counts.items())
        raise UserError(f"{asked.files[0]} is of several devices: {devices}; choose one by --trace-device")
    if not summary["requests"]:
        names = f"; it has {', '.join(counts)}" if counts else ""
        raise UserError(f"{asked.files[0]} holds no request{' of that device' if asked.trace_device else ''}{names}")
    reach = -(-summary["end_sector"] * 512 // GIB) * GIB
    said = f"a trace of {summary['requests']:,} requests in {summary['span_s']:,.4g} s, {replay} replay"
    end_bytes = summary["end_sector"] * 512
    if asked.fold and asked.size_bytes is not None and end_bytes > asked.size_bytes:
        said += f", folded from {format_bytes(end_bytes)} onto {format_bytes(asked.size_bytes)}"
    # The size is what the trace reaches, unless given, and may be more than a drive has.
    places = {} if asked.size_bytes else {"size_bytes": "give --fold and --size, or a larger --device"}
    return Load({"kind": "trace", **fields}, None, 0.0, reach, replay, said, summary["span_s"], places=places)
