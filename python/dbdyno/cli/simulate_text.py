"""What ``dbdyno simulate`` prints: how far it is, the result, and the kernels there are."""

import sys
import time
from typing import TYPE_CHECKING, Self

from dbdyno.cli.formats import Format
from dbdyno.cli.printed import print_document, print_json
from dbdyno.model.wording import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dbdyno.report.document import Document
    from dbdyno.simulation.asked import Load
    from dbdyno.simulation.points import SimulatedPoint
    from dbdyno.simulation.sweep import Progress, Simulated

SILENT_SECONDS = 2.0  # what is done by then needs no progress
PIPE_SECONDS = 30.0  # between two lines into a pipe


class Running:
    """How far a simulation is, on standard error: one line that changes on a terminal, some lines into a pipe."""

    def __init__(self, *, on_hosts: bool = False) -> None:
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
        self._say(f"{progress.done} of {count(self._all, 'point')} simulated{where}, {100 * min(share / self._all, 1):.0f} %")

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


def print_result(load: "Load", found: "Sequence[Simulated]", *, details: bool, json_: bool) -> "Document":
    """Print what came of all points, as text or as JSON; return the report of it."""
    from dbdyno.report.simulation import Row, document

    by_levels: dict[tuple[str, ...], list[Simulated]] = {}
    for one in found:
        by_levels.setdefault(tuple(one.point.levels.values()), []).append(one)
    rows = [Row(same[0].point.levels, tuple(one.outcome for one in same)) for same in by_levels.values()]
    requests = sum(one.outcome[way]["requests"] for one in found for way in ("reads", "writes"))
    cost = f"{requests:,} requests in {sum(one.cpu_s for one in found):,.3g} s of CPU."
    report = document(rows, load.said, load.replay, cost)
    if json_:
        each = [{"levels": dict(one.point.levels), "point": one.point.point, "outcome": one.outcome} for one in found]
        print_json({"simulated": True, "load": load.said, "replay": load.replay or None,
                    "combinations": report.data["rows"], "points": each})  # fmt: skip
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
            settings = ", ".join(f"{one}={known['default']}{known['unit'] if known['unit'] != '0 or 1' else ''}"
                                 for one, known in tunables.items())  # fmt: skip
            print(f"  {name}{' (default)' if not place else ''}{': ' + settings if settings else ''}")
