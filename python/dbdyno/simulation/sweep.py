"""Simulates points on all processors at once; what is done is kept in a file, so that a later call goes on."""

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from dbdyno.errors import DbdynoError, UserError
from dbdyno.simulation.points import BRIEF_FROM, SimulatedPoint, in_words

WAIT_SECONDS = 0.2  # between two looks for a signal
LARGE = {"histogram", "sample", "seeks", "series"}  # what memory does not hold of many points


@dataclass(frozen=True)
class Simulated:
    """What came of a point: see docs/simulate.md for the outcome's keys."""

    point: SimulatedPoint
    outcome: dict[str, Any]
    cpu_s: float


@dataclass(frozen=True)
class Progress:
    """How far a sweep is: points done, and the simulated seconds of those that run."""

    done: int
    running_s: dict[int, float]


class _Stopped(Exception):  # noqa: N818 - nothing is wrong
    """The sweep ends before its time."""


def simulated(
    points: Sequence[SimulatedPoint],
    results: Path | None,
    said: Callable[[Progress], None],
    places: Mapping[str, str] | None = None,
) -> Iterator[tuple[int, Simulated]]:
    """Yield what comes of each point with its place, in the order in which they end; ``said`` hears how far it is.

    With ``results``, what stands in that file is not simulated again, and nothing is left out there. Of more than
    ``BRIEF_FROM`` points outcomes are yielded without what is ``LARGE``. Raises ``UserError`` where a point is wrong;
    for ``places`` see ``in_words``.
    """
    alike: dict[str, list[int]] = {}
    for place, point in enumerate(points):
        alike.setdefault(point.key, []).append(place)
    shown = _brief if len(points) > BRIEF_FROM else dict
    for key, outcome, cpu_s in _kept(results) if results else ():
        for place in alike.pop(key, ()):
            yield place, Simulated(points[place], shown(outcome), cpu_s)
    stop, running = threading.Event(), dict[int, float]()
    workers = ThreadPoolExecutor(len(os.sched_getaffinity(0)))
    try:
        for found in _ended(workers, points, [same[0] for same in alike.values()], stop, running, said):
            if results:
                _keep(results, found)
            for place in alike[found.point.key]:
                yield place, Simulated(points[place], shown(found.outcome), found.cpu_s)
    except ValueError as error:
        raise UserError(in_words(str(error), places or {})) from None
    finally:
        stop.set()
        workers.shutdown(wait=True, cancel_futures=True)


def _brief(value: Any) -> Any:  # noqa: ANN401 - whatever JSON holds
    """Return an outcome without what is large, its keys shared with all others."""
    if not isinstance(value, dict):
        return value
    return {sys.intern(name): _brief(item) for name, item in value.items() if name not in LARGE}


def _ended(  # noqa: PLR0913, PLR0917 - what a sweep consists of
    workers: ThreadPoolExecutor,
    points: Sequence[SimulatedPoint],
    places: Sequence[int],
    stop: threading.Event,
    running: dict[int, float],
    said: Callable[[Progress], None],
) -> Iterator[Simulated]:
    """Yield results as they come, a few points ahead of them at work: memory does not grow with the sweep."""
    waiting = iter(places)
    at_work: set[Future[Simulated]] = set()
    done = len(points) - len(places)
    while True:
        for place in islice(waiting, 2 * workers._max_workers - len(at_work)):  # noqa: SLF001
            at_work.add(workers.submit(_one, points[place], place, stop, running))
        if not at_work:
            return
        ended, _ = wait(at_work, WAIT_SECONDS, FIRST_COMPLETED)
        for future in ended:
            at_work.remove(future)
            done += 1
            yield future.result()
        said(Progress(done, dict(running)))


def _one(point: SimulatedPoint, place: int, stop: threading.Event, running: dict[int, float]) -> Simulated:
    from dbdyno._native import simulate

    def watch(simulated_s: float, _requests: int) -> None:
        running[place] = simulated_s
        if stop.is_set():
            raise _Stopped

    began = time.thread_time()
    try:
        outcome = json.loads(simulate(json.dumps(point.point), watch))
    finally:
        running.pop(place, None)
    return Simulated(point, outcome, time.thread_time() - began)


def _kept(path: Path) -> Iterator[tuple[str, dict[str, Any], float]]:
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
                    found = entry["key"], dict(entry["outcome"]), float(entry["cpu_s"])
                except (ValueError, KeyError, TypeError):
                    raise UserError(f"{path}: line {number} is no result of a simulation; name another file") from None
                yield found
    except FileNotFoundError:
        return
    except OSError as error:
        raise UserError(f"{path}: can't be read: {error.strerror}") from None


def _keep(path: Path, found: Simulated) -> None:
    entry = {"key": found.point.key, "cpu_s": found.cpu_s, "levels": dict(found.point.levels),
             "point": found.point.point, "outcome": found.outcome}  # fmt: skip
    try:
        with path.open("a") as file:
            file.write(json.dumps(entry) + "\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise DbdynoError(f"{path}: can't be written: {error.strerror}") from None
