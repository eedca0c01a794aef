"""What ``dbdyno simulate`` has in common with ``--from``: where points are simulated, and how far that is."""

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from dbdyno.model.wording import count

if TYPE_CHECKING:
    from dbdyno.simulation.points import SimulatedPoint
    from dbdyno.simulation.simulators import Simulators
    from dbdyno.simulation.sweep import Progress, Simulated

SILENT_SECONDS = 2.0  # what is done by then needs no progress
PIPE_SECONDS = 30.0  # between two lines into a pipe


class Running:
    """How far a simulation is, on standard error: one line that changes on a terminal, some lines into a pipe."""

    def __init__(self, *, on_hosts: bool) -> None:
        self._on_hosts = on_hosts
        self._last = time.monotonic() + SILENT_SECONDS
        self._on_terminal = sys.stderr.isatty()
        self._each, self._all, self._shown = 0.0, 0, False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._wipe()

    def _wipe(self) -> None:
        if self._shown and self._on_terminal:
            print("\r\033[K", end="", file=sys.stderr, flush=True)

    def begin(self, points: "Sequence[SimulatedPoint]") -> None:
        """Say of which points the progress will be."""
        first = points[0].point
        self._all, self._each = len(points), first["warm_up_s"] + first.get("duration_s", 0.0)

    def reading(self, _seconds: float, requests: int) -> None:
        """A trace is being read."""
        self._say(f"reading the trace: {requests:,} requests")

    def progress(self, progress: "Progress") -> None:
        """Points are being simulated."""
        share = progress.done + (progress.running_s / self._each if self._each else 0.0)
        where = f" on {count(progress.hosts, 'host')}" if self._on_hosts else ""
        done = f"{progress.done} of {count(self._all, 'point')} simulated{where}"
        self._say(f"{done}, {100 * min(share / self._all, 1):.0f} %")

    def say(self, text: str) -> None:
        """Something that is worth a line of its own."""
        self._wipe()
        print(text, file=sys.stderr, flush=True)

    def _say(self, text: str) -> None:
        if time.monotonic() < self._last:
            return
        self._last = time.monotonic() + (0.2 if self._on_terminal else PIPE_SECONDS)
        self._shown = True
        print(f"\r\033[K{text}" if self._on_terminal else text, end="" if self._on_terminal else "\n",
              file=sys.stderr, flush=True)  # fmt: skip


def all_simulated(
    points: "Sequence[SimulatedPoint]",
    into: Path | None,
    running: Running,
    hosts: Path | None,
    places: Mapping[str, str] | None = None,
) -> "list[Simulated]":
    """What comes of the points, in their order, from here or from all hosts of a file. Raises as ``simulated``."""
    from dbdyno.simulation.simulators import simulators
    from dbdyno.simulation.sweep import simulated

    @contextmanager
    def opened(left: Sequence[Mapping[str, Any]]) -> "Iterator[Simulators]":
        if hosts is None:
            with simulators(left) as by:
                yield by
            return
        from dbdyno.hosts.connect import connected

        with connected(hosts) as there, simulators(left, there, running.say) as by:
            yield by

    if into is not None and into.is_dir():
        into /= "simulated.jsonl"
    running.begin(points)
    found = dict(simulated(points, into, running.progress, places, opened))
    return [found[place] for place in range(len(points))]
