"""Cuts of the power of a trial's emulated disk: taken beside the load, examined once the stack is lowered."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

from dbdyno.crash.examine import Examiner
from dbdyno.crash.kept import Kept, is_wanted, keep_state
from dbdyno.crash.recovery import rig_of
from dbdyno.crash.trial_cuts import EXAMINING, AboutTrial, Planned, PlannedCut, of
from dbdyno.errors import TrialError
from dbdyno.model.cut import OUTCOME_WORDS, Cut
from dbdyno.stack.disk_client import CutTaken, DiskClient
from dbdyno.stack.kinds.kind import Stack
from dbdyno.stack.layer import StackContext
from dbdyno.stack.layers.server import Server
from dbdyno.stack.space import Range, ranges_of
from dbdyno.study.schema import CrashSection
from dbdyno.system.clock import now_ns

# The cuts of a trial, taken beside its load: a thread that asks the disk, and sleeps in between.


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


class PowerCuts(Planned):
    """Cuts of the power of the trial's emulated disk."""

    keeps_server: ClassVar[bool] = True

    def __init__(self, about: AboutTrial, section: CrashSection, disk: DiskClient) -> None:
        super().__init__(about, section)
        self.disk, self.taken = disk, Taken()
        acks, ddls = (tuple(cut.after_s for cut in of(self.planned, when)) for when in ("ack", "ddl"))
        socket = disk.control if acks or ddls else None
        self.workload = replace(self.ledger, cut_socket=socket, cut_acks_after_s=acks, cut_ddls_after_s=ddls)

    @contextmanager
    def beside(self, context: StackContext) -> Iterator[None]:
        """A thread asks the disk for cuts, and the load for those after what only it knows."""
        with cutting(
            self.disk,
            self.planned,
            warmup_s=self.warmup_s,
            hold_s=self.section.hold_seconds,
            page_ranges=partial(_page_ranges, self.about.stack, context),
        ) as self.taken:
            yield
        for id_, why in self.taken.refused.items():
            when = next(cut.when for cut in self.planned if cut.id == id_)
            self.about.say(f"cut {id_} ({when}) was not taken: {why}")

    def after_load(self, context: StackContext, _: tuple[int, int]) -> AbstractContextManager[StackContext]:
        """The stack as it is: the load did not notice."""
        return nullcontext(context)

    def examined(self, window_ns: tuple[int, int]) -> list[Cut]:
        """Each state raised, recovered and verified, and kept as evidence where that is asked for."""
        about, found = self.about, []
        rig = rig_of(about.stack, self.section.recovery_limit, about.journal, about.folder)
        examiner = Examiner(rig, self.workload, self.section.recovery_limit, self.section.hold_seconds)
        due = [cut for cut in self.planned if cut.id in self.taken.cuts]
        for number, planned in enumerate(due, 1):
            taken = self.taken.cuts[planned.id]
            cut, content = examiner.examined(planned, taken, window_ns[0])
            kept = Kept(cut, about.treatment, content.name, content.seed, taken.cut_ns, taken.cut_end_ns, window_ns[0])
            found.append(self._keep(kept))
            self.disk.forget_cut(taken.name)  # its memory may be needed
            about.say(f"cut {number} of {len(due)}: {OUTCOME_WORDS[cut.outcome]}")
        about.lap(EXAMINING)
        return found

    def _keep(self, kept: Kept) -> Cut:
        """Keep the state as evidence where that is asked for; returns the cut with where that lies."""
        if not is_wanted(self.section.keep, kept.cut, kept.treatment, self.about.folder):
            return kept.cut
        try:
            return keep_state(self.disk, kept, self.about.folder)
        except (TrialError, OSError) as error:
            self.about.say(f"the state of cut {kept.cut.id} is not kept: {error}")
            return kept.cut

    def observed(self) -> dict[str, dict[str, Any]]:
        """Cuts that were planned, and taken, and why others were not."""
        return {"crash": {"planned": len(self.planned), "taken": len(self.taken.cuts), "not_taken": self.taken.refused}}


def _page_ranges(stack: Stack, context: StackContext) -> list[Range]:
    """Where the server's pages lie on the device."""
    assert context.directory is not None  # noqa: S101  (a filesystem is below every server)
    server = next(layer for layer in stack.above if isinstance(layer, Server))
    return ranges_of(server.page_files(context.directory))
