"""The cuts of a trial, taken beside its load: a thread that asks the disk, and sleeps in between."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from dbdyno.crash.schedule import PlannedCut, of
from dbdyno.errors import TrialError
from dbdyno.stack.disk_client import CutTaken, DiskClient
from dbdyno.stack.extents import Range
from dbdyno.system.clock import now_ns

ENDING_SECONDS = 30.0  # in which the disk must answer what it was asked last
RANGES_MAX = 1500  # that one request to the disk holds
NOT_MET = {
    "ack": "no acknowledgement was read from then on",
    "ddl": "no DDL statement was done from then on",
    "flush": "the disk got no FLUSH from then on",
    "page-write": "too few pages were written from then on",
}


@dataclass
class Taken:
    """What came of the cuts that were planned."""

    cuts: dict[str, CutTaken] = field(default_factory=dict)  # by the planned cut's id
    refused: dict[str, str] = field(default_factory=dict)  # by the same: why it was not taken


def name_of(cut: PlannedCut) -> str:
    """What the disk knows a cut by: those that the load asks for have names of the load's."""
    return f"{cut.when}-{cut.number}" if cut.when in {"ack", "ddl"} else cut.id


@contextmanager
def cutting(
    disk: DiskClient,
    planned: Sequence[PlannedCut],
    *,
    warmup_s: float,
    hold_s: float,
    page_ranges: Callable[[], Sequence[Range]],
) -> Iterator[Taken]:
    """Take cuts for as long as the context lasts, which is to hold one load; ``Taken`` is complete after it.

    ``page_ranges`` says where the server's pages lie on the device, of the moment. Raises ``TrialError`` where the disk
    can't be armed or does not say what it took; a cut that it refuses is in ``Taken.refused``.
    """
    disk.arm_cuts(round(hold_s * 1e9))
    taken, ended = Taken(), threading.Event()
    asking = _Asking(disk, of(planned, "uniform", "recovery", "flush", "page-write"), page_ranges, taken, ended)
    thread = threading.Thread(target=asking.run, args=(now_ns() + round(warmup_s * 1e9),), daemon=True)
    thread.start()
    try:
        yield taken
    finally:
        ended.set()
        thread.join(ENDING_SECONDS)
        with suppress(TrialError):  # where the disk is gone, the load has failed for it
            disk.disarm_cuts()
    by_name = {cut.name: cut for cut in disk.cuts()}
    for cut in planned:
        if name_of(cut) in by_name:
            taken.cuts[cut.id] = by_name[name_of(cut)]
        else:
            taken.refused.setdefault(cut.id, NOT_MET.get(cut.when, "the load had ended by then"))


@dataclass(frozen=True)
class _Asking:
    """The thread's work."""

    disk: DiskClient
    planned: Sequence[PlannedCut]  # by time
    page_ranges: Callable[[], Sequence[Range]]
    taken: Taken
    ended: threading.Event

    def run(self, measured_ns: int) -> None:
        """Ask for each cut at its time, as far as the load lasts; ``measured_ns`` is when measuring begins."""
        for cut in self.planned:
            left_s = (measured_ns - now_ns()) / 1e9 + cut.after_s
            if self.ended.wait(max(0.0, left_s)):
                return
            try:
                self._ask(cut)
            except (TrialError, OSError) as error:
                self.taken.refused[cut.id] = str(error)

    def _ask(self, cut: PlannedCut) -> None:
        if cut.when == "flush":
            self.disk.cut_on(name_of(cut), "flush", 1, seed=cut.seed)
        elif cut.when == "page-write":
            ranges = sorted(self.page_ranges(), key=lambda one: one[0] - one[1])[:RANGES_MAX]
            self.disk.cut_on(name_of(cut), "write", cut.nth, sorted(ranges))
        else:
            self.disk.cut(name_of(cut))
