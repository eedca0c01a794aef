"""Simulates points on all processors, here or on many hosts; what is done is kept, so that a later call goes on."""

import json
import os
import queue
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbdyno.errors import DbdynoError, UserError
from dbdyno.simulation.points import BRIEF_FROM, SimulatedPoint, in_words
from dbdyno.simulation.simulators import Simulators, simulators

if TYPE_CHECKING:
    from concurrent.futures import Future

    from dbdyno.hosts.spread import Done

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
                        raise UserError(f"{path}: is no file of results of simulations; name another file")
                    file.truncate(whole)
                    return
                whole += len(line)
                try:
                    entry = json.loads(line)
                    result = entry["key"], dict(entry["outcome"]), float(entry["cpu_s"])
                except (ValueError, KeyError, TypeError):
                    raise UserError(f"{path}: line {number} is no result of a simulation; name another file") from None
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
        raise DbdynoError(f"{path}: can't be written: {error.strerror}") from None
