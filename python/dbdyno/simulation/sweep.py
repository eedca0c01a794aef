"""Combinations of what a simulation varies, simulated on all processors, here or on hosts; what is done is kept."""

import hashlib
import json
import os
import queue
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import islice, product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbdyno._native import simulate
from dbdyno.compute.spread import Done, Spread
from dbdyno.compute.workers import INPUT, LocalWorkers
from dbdyno.errors import HostError, UserError
from dbdyno.study.drives import drive_files, with_drive_files
from dbdyno.system.files import is_full

if TYPE_CHECKING:
    from concurrent.futures import Future

    from dbdyno.hosts.connect import Connected


# Where points are simulated: on the processors here, or on those of many hosts, which get the files they name.


def simulate_point(point: str, hear: Callable[[float], None]) -> str:
    """Return what comes of a point, both JSON; hear how many seconds of it are simulated. Raises ``ValueError``."""
    return simulate(point, lambda simulated_s, _requests: hear(simulated_s))


@dataclass(frozen=True)
class Simulators:
    """Points that are simulated; ``names`` are those that files have on other hosts, by their paths here."""

    spread: Spread = field(default_factory=lambda: Spread(LocalWorkers(simulate_point)))
    names: Mapping[str, str] = field(default_factory=dict)

    def begin(self, point: Mapping[str, Any]) -> "Future[Done]":
        """Simulate a point beside all else; ``result`` has what comes of it."""
        return self.spread.submit(json.dumps(_rename_files(point, self.names) if self.names else point))

    def result(self, future: "Future[Done]") -> Done:
        """What came of a point, waited for if need be.

        Raises ``ValueError`` where it can't be simulated, ``HostError`` where no host is left that could do it.
        """
        try:
            return future.result()
        except ValueError as error:
            text = str(error)
            for path, name in self.names.items():
                text = text.replace(name, path)
            raise ValueError(text) from None


@contextmanager
def simulators(
    points: Iterable[Mapping[str, Any]],
    connected: "Connected | None" = None,
    say: Callable[[str], None] = lambda _: None,
) -> Iterator[Simulators]:
    """Simulators on this machine, or on the hosts that are connected; these then have the files that the points name.

    Leaving the context ends what is being simulated. Raises ``UserError`` where a file can't be read, ``HostError``.
    """
    if connected is None:
        with Spread(LocalWorkers(simulate_point)) as spread:
            yield Simulators(spread)
        return
    from dbdyno.hosts.calls import input_name

    paths = sorted({path for point in points for path in _files(point)})
    names = {path: input_name(Path(path)) for path in paths}
    files = {name: Path(path) for path, name in names.items()}
    with connected.spread(simulate_point, files, say) as spread:
        yield Simulators(spread, {path: f"{INPUT}{name}" for path, name in names.items()})


def _files(point: Mapping[str, Any]) -> list[str]:
    """The files that a point names: of its trace, and of its drive."""
    return [*point["load"].get("files", ()), *drive_files(point["device"])]


def _rename_files(point: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """The same point with other names of its files."""
    renamed = {**point, "device": with_drive_files(point["device"], names.__getitem__)}
    if files := point["load"].get("files"):
        renamed["load"] = {**point["load"], "files": [names[path] for path in files]}
    return renamed


# All combinations of what a simulation varies, each as a point.


RULES = 3  # raised when the same point comes to something else, so that kept results are made anew
SET = "set:"  # how a factor begins that is a tunable
QUEUE = frozenset({"wbt_lat_usec"})  # fields of a point that are set like tunables
FIO = "fio:"  # how one begins that is an option of fio
JOBS = "jobs"  # the factor whose levels are jobs that follow each other
LOAD = "load:"  # how one begins that is of the load as a whole
BRIEF_FROM = 100  # points: of so many, no samples and no series are kept

OPTIONS = {
    "device": "--device", "size_bytes": "--size", "kernel": "--kernel", "scheduler": "--scheduler",
    "nr_requests": "--nr-requests", "queue_depth": "--queue-depth", "wbt_lat_usec": "--set",
    "duration_s": "--seconds", "warm_up_s": "--warmup",
    "load.cache.memory_bytes": "--memory", "load.cache.mapped_bytes": "--memory",
    "load.cache.filesystem": "--filesystem",
    "load.speed": "--speed", "load.format": "--format", "load.device": "--trace-device",
    "load.time_unit": "--time-unit", "load.length_unit": "--length-unit",
}  # fmt: skip


@dataclass(frozen=True)
class SimulatedPoint:
    """One point, and the levels of the factors that it stands for."""

    levels: Mapping[str, str]
    point: Mapping[str, Any]

    @property
    def key(self) -> str:
        """What it is found by in a file of results: the same point has the same."""
        text = json.dumps([RULES, self.point], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:32]


def split(text: str) -> list[str]:
    """Return what commas separate outside of parentheses: ``raid1(hdd-15k, 2),hdd-15k`` are two."""
    parts, depth = [""], 0
    for character in text:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def combinations(
    common: Mapping[str, Any], factors: Mapping[str, Sequence[tuple[str, Any]]], seeds: Sequence[int]
) -> list[SimulatedPoint]:
    """Return a point for every combination of levels and every seed.

    A factor is a field of the point, or one of ``tunables`` (``set:NAME``), or an option of its jobs (``fio:WORD``), or
    fields of its load (``load:NAME``); a level is its text and its value.
    """
    return list(_combine(common, factors, seeds))


def _combine(
    common: Mapping[str, Any], factors: Mapping[str, Sequence[tuple[str, Any]]], seeds: Sequence[int]
) -> Iterator[SimulatedPoint]:
    for combination in product(*factors.values()):
        levels = dict(zip(factors, (text for text, _ in combination), strict=True))
        for seed in seeds:
            point = deepcopy(dict(common)) | {"seed": seed}
            for name, (_, value) in zip(factors, combination, strict=True):
                _put_value(point, name, value)
            if all(job.get("direct", True) for job in point["load"].get("jobs", ({"direct": False},))):
                point["load"].pop("cache", None)  # direct jobs go past it
            yield SimulatedPoint(levels, point)


def _put_value(point: dict[str, Any], name: str, value: Any) -> None:  # noqa: ANN401 - a field's value
    if name.startswith(SET):
        point.setdefault("tunables", {})[name.removeprefix(SET)] = value
    elif name.startswith(FIO):
        for job in point["load"]["jobs"]:
            job.update(value)
    elif name == JOBS:
        point.pop("duration_s", None)
        point.update(deepcopy(value))
    elif name.startswith(LOAD):
        merge(point["load"], value)
    else:
        point[name] = value


def merge(fields: dict[str, Any], more: Mapping[str, Any]) -> None:
    """Put fields into a load; those of its tables into these."""
    for name, value in more.items():
        fields[name] = fields.get(name, {}) | value if isinstance(value, dict) else value


def whole(option: str, text: str) -> int:
    """Return a whole number. Raises ``UserError`` that names the option."""
    if not (text.isascii() and text.isdecimal()) or len(text) > 18:  # noqa: PLR2004 - what 64 bits hold
        raise UserError(f"{option} {text[:40]!r} must be a whole number")
    return int(text)


def in_words(text: str, places: Mapping[str, str]) -> str:
    """Return what is wrong with a field of a point with the option that it comes from, or its place in a file.

    ``places`` has these by field; ``load`` is the file of the load, if it has one.
    """
    name, colon, problem = text.partition(": ")
    option = places.get(name) or OPTIONS.get(name) or ("--set" if name.startswith("tunables.") else "")
    if not option and name.startswith("load.") and "load" in places:
        option = f"{places['load']}: {name.removeprefix('load.')}"
    return f"{option}{colon}{problem}" if option else text


WAIT_SECONDS = 0.2  # between two looks for a signal
LARGE = {"histogram", "sample", "seeks", "series"}  # what memory does not hold of many points

Opened = Callable[[Sequence[Mapping[str, Any]]], AbstractContextManager[Simulators]]


@dataclass(frozen=True)
class PointOutcome:
    """What came of a point: see docs/simulate.md for the outcome's keys."""

    point: SimulatedPoint
    outcome: dict[str, Any]
    cpu_s: float


@dataclass(frozen=True)
class SweepProgress:
    """How far a sweep is: points done, the simulated seconds of those that run, and on how many hosts."""

    done: int
    running_s: float
    hosts: int


def simulated(
    points: Sequence[SimulatedPoint],
    results: Path | None,
    report: Callable[[SweepProgress], None],
    places: Mapping[str, str] | None = None,
    opened: Opened = simulators,
) -> Iterator[tuple[int, PointOutcome]]:
    """Yield what comes of each point with its place, in the order in which they end; ``report`` hears how far it is.

    With ``results``, what stands in that file is not simulated again, and nothing is left out there. Of more than
    ``BRIEF_FROM`` points outcomes are yielded without what is ``LARGE``. Raises ``UserError`` where a point is wrong,
    and what ``opened`` raises, which is given the points that are left; for ``places`` see ``in_words``.
    """
    alike: dict[str, list[int]] = {}
    for place, point in enumerate(points):
        alike.setdefault(point.key, []).append(place)
    shorten = _brief if len(points) > BRIEF_FROM else dict
    for key, outcome, cpu_s in _read_results(results) if results else ():
        for place in alike.pop(key, ()):
            yield place, PointOutcome(points[place], shorten(outcome), cpu_s)
    if not alike:
        return
    pending = [points[same[0]] for same in alike.values()]
    with opened([point.point for point in pending]) as by:
        try:
            for point_outcome in _outcomes(by, pending, len(points) - len(pending), report):
                if results:
                    _store_outcome(results, point_outcome)
                for place in alike[point_outcome.point.key]:
                    yield place, PointOutcome(points[place], shorten(point_outcome.outcome), point_outcome.cpu_s)
        except ValueError as error:
            raise UserError(in_words(str(error), places or {})) from None


def _brief(value: Any) -> Any:  # noqa: ANN401 - whatever JSON holds
    """Return an outcome without what is large, its keys shared with all others."""
    if not isinstance(value, dict):
        return value
    return {sys.intern(name): _brief(item) for name, item in value.items() if name not in LARGE}


def _outcomes(
    by: Simulators, points: Sequence[SimulatedPoint], done: int, report: Callable[[SweepProgress], None]
) -> Iterator[PointOutcome]:
    """Yield results as they come, a few points ahead of them at work: memory does not grow with the sweep."""
    waiting = iter(points)
    at_work: dict[Future[Done], SimulatedPoint] = {}
    arrived: queue.SimpleQueue[Future[Done]] = queue.SimpleQueue()
    while True:
        for point in islice(waiting, max(0, by.spread.room())):
            future = by.begin(point.point)
            at_work[future] = point
            future.add_done_callback(arrived.put)
        if not at_work:
            return
        try:
            future = arrived.get(timeout=WAIT_SECONDS)
        except queue.Empty:
            pass
        else:
            result = by.result(future)
            done += 1
            yield PointOutcome(at_work.pop(future), json.loads(result.text), result.cpu_s)
        report(SweepProgress(done, sum(by.spread.progress()), by.spread.hosts()))


def _read_results(path: Path) -> Iterator[tuple[str, dict[str, Any], float]]:
    """Yield key, outcome and CPU seconds of each result in a file; a line that a crash cut off is cut away."""
    whole = 0
    try:
        with path.open("r+b") as file:
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n"):
                    if not whole and not line.startswith(b'{"key"'):
                        raise UserError(f"{path}: is not a file of results of simulations; name another file")
                    file.truncate(whole)
                    return
                whole += len(line)
                try:
                    entry = json.loads(line)
                    result = entry["key"], dict(entry["outcome"]), float(entry["cpu_s"])
                except (ValueError, KeyError, TypeError):
                    raise UserError(
                        f"{path}: line {number} is not a result of a simulation; name another file"
                    ) from None
                yield result
    except FileNotFoundError:
        return
    except OSError as error:
        raise UserError(f"{path}: can't be read: {error.strerror}") from None


def _store_outcome(path: Path, point_outcome: PointOutcome) -> None:
    entry = {"key": point_outcome.point.key, "cpu_s": point_outcome.cpu_s, "levels": dict(point_outcome.point.levels),
             "point": point_outcome.point.point, "outcome": point_outcome.outcome}  # fmt: skip
    try:
        with path.open("a") as file:
            file.write(json.dumps(entry) + "\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        wrong = HostError if is_full(error) else UserError
        raise wrong(f"{path}: can't be written: {error.strerror}") from None
