"""The faults of a crash study: power cuts and kills of the server, planned in time and carried out."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

from dbdyno.crash.examine import Examiner, cut_of, defects_of, verified_by
from dbdyno.crash.rig import SpoiltError, Steps, not_starting, rig_of
from dbdyno.crash.trial_cuts import (
    EXAMINING,
    AboutTrial,
    Crashing,
    KeptState,
    PlannedCut,
    PlannedCuts,
    is_wanted,
    keep_state,
    of,
)
from dbdyno.errors import TrialError
from dbdyno.model.cut import OUTCOME_WORDS, Cut
from dbdyno.model.disks import DATA_DISK
from dbdyno.mysql.settings import REDO_PLACE
from dbdyno.stack.disk_client import CutTaken, DiskClient, DiskLine
from dbdyno.stack.kinds.kind import Stack
from dbdyno.stack.layer import Endpoint, StackContext
from dbdyno.stack.layers.server import ServerLayer, how_it_ended
from dbdyno.stack.space import Range, ranges_of
from dbdyno.study.schema import CrashSection
from dbdyno.system.interrupt import now_ns
from dbdyno.workload.workload import Workload

# Cuts of the power of a trial's emulated disk: taken beside the load, examined once the stack is lowered.


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
class CutResults:
    """What came of the cuts that were planned."""

    cuts: dict[str, CutTaken] = field(default_factory=dict)  # by the planned cut's id
    refused: dict[str, str] = field(default_factory=dict)  # by the same: why it was not taken


def name_of(cut: PlannedCut) -> str:
    """What the disk knows a cut by: those that the load asks for have names of the load's."""
    return f"{cut.when}-{cut.number}" if cut.when in {"ack", "ddl"} else cut.id


@contextmanager
def cutting(
    disk: DiskClient | DiskLine,
    planned: Sequence[PlannedCut],
    *,
    warmup_s: float,
    hold_s: float,
    page_ranges: Callable[[], Sequence[Range]],
) -> Iterator[CutResults]:
    """Take cuts for as long as the context lasts, which is to hold one load; ``CutResults`` is complete after it.

    ``page_ranges`` says where the server's pages lie on the device, of the moment. Raises ``TrialError`` where the disk
    can't be armed or does not say what it took; a cut that it refuses is in ``Taken.refused``.
    """
    disk.arm_cuts(round(hold_s * 1e9))
    taken, ended = CutResults(), threading.Event()
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

    disk: DiskClient | DiskLine
    planned: Sequence[PlannedCut]  # by time
    page_ranges: Callable[[], Sequence[Range]]
    taken: CutResults
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
            ranges = sorted(self.page_ranges(), key=lambda page_range: page_range[0] - page_range[1])[:RANGES_MAX]
            self.disk.cut_on(name_of(cut), "write", cut.nth, sorted(ranges))
        else:
            self.disk.cut(name_of(cut))


class PowerCuts(PlannedCuts):
    """Cuts of the power of the trial's emulated disk."""

    keeps_server: ClassVar[bool] = True

    def __init__(self, about: AboutTrial, section: CrashSection, disk: DiskClient | DiskLine) -> None:
        super().__init__(about, section)
        self.disk, self.taken = disk, CutResults()
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
        about, cuts = self.about, []
        rig = rig_of(about.stack, self.section.recovery_limit, about.journal, about.folder)
        examiner = Examiner(rig, self.workload, self.section.recovery_limit, self.section.hold_seconds)
        due = [cut for cut in self.planned if cut.id in self.taken.cuts]
        for number, planned in enumerate(due, 1):
            taken = self.taken.cuts[planned.id]
            cut, content = examiner.examined(planned, taken, window_ns[0])
            kept = KeptState(
                cut, about.treatment, content.name, content.seed, taken.cut_ns, taken.cut_end_ns, window_ns[0]
            )
            cuts.append(self._keep(kept))
            self.disk.forget_cut(taken.name)  # its memory may be needed
            about.say(f"cut {number} of {len(due)}: {OUTCOME_WORDS[cut.outcome]}")
        about.lap(EXAMINING)
        return cuts

    def _keep(self, kept: KeptState) -> Cut:
        """Keep the state as evidence where that is asked for; returns the cut with where that lies."""
        if not is_wanted(self.section.keep, kept.cut, kept.treatment, self.about.folder):
            return kept.cut
        if isinstance(self.disk, DiskLine):
            self.about.say(f"the state of cut {kept.cut.id} is not kept: it is of several disks")
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
    server = next(layer for layer in stack.above if isinstance(layer, ServerLayer))
    return ranges_of(server.page_files(context.directory))


# A kill of the server beside its load, and its start on the same folder: what it wrote is in the page cache yet.


@dataclass
class Killed:
    """When the server was killed; 0 where it was not."""

    cut_ns: int = 0  # right before: what was acknowledged by then must be kept
    cut_end_ns: int = 0  # right after


@contextmanager
def killing(
    endpoint: Endpoint, planned: PlannedCut, *, warmup_s: float, first: Callable[[], None] = lambda: None
) -> Iterator[Killed]:
    """Kill the server with SIGKILL at the planned moment of the load that the context holds, and ``first`` before."""
    killed, ended = Killed(), threading.Event()
    begins_ns = now_ns() + round(warmup_s * 1e9)

    def kill() -> None:
        if not ended.wait(max(0.0, (begins_ns - now_ns()) / 1e9 + planned.after_s)) and endpoint.process:
            cut_ns = now_ns()
            first()
            endpoint.process.kill()
            killed.cut_ns, killed.cut_end_ns = cut_ns, now_ns()

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    try:
        yield killed
    finally:
        ended.set()
        thread.join()


class Kill(PlannedCuts):
    """One kill of the server, whose page cache survives."""

    keeps_server: ClassVar[bool] = False

    def __init__(self, about: AboutTrial, section: CrashSection) -> None:
        super().__init__(about, section)
        self.workload = replace(self.ledger, expect_loss=True)
        self.killed = Killed()
        self.cuts: list[Cut] = []

    @contextmanager
    def beside(self, context: StackContext) -> Iterator[None]:
        """A thread kills it, and the load ends by that."""
        first = context.standby.cut_link if context.standby else lambda: None
        with killing(context.server, self.planned[0], warmup_s=self.warmup_s, first=first) as self.killed:
            yield
        if not self.killed.cut_ns:
            if ended := how_it_ended(context.server):
                raise TrialError(f"before it was killed, {ended}")
            self.about.say(f"cut {self.planned[0].id} was not taken: the load had ended by then")

    @contextmanager
    def after_load(self, context: StackContext, window_ns: tuple[int, int]) -> Iterator[StackContext]:
        """The server started again on the same folder, and what it holds verified; without one if it does not start."""
        if not self.killed.cut_ns:
            yield context
            return
        with ExitStack() as lowering:
            without = replace(context, endpoint=None)
            again, cut = self._again(lowering, without, window_ns[0])
            self.cuts = [cut]
            self.about.say(f"cut 1 of 1: {OUTCOME_WORDS[cut.outcome]}")
            self.about.lap(EXAMINING)
            yield again

    def _again(self, lowering: ExitStack, below: StackContext, window_start_ns: int) -> tuple[StackContext, Cut]:
        about, steps, planned, limit = self.about, Steps(), self.planned[0], self.section.recovery_limit
        log = about.folder / f"recovery-{planned.id}.log"
        layer = next(layer for layer in about.stack.above if isinstance(layer, ServerLayer))
        layer = replace(layer, ready_seconds=limit, is_killed=True, log=log)
        cut_ns, verified, context = (self.killed.cut_ns, self.killed.cut_end_ns), None, below
        try:
            with steps.step("server"), not_starting(log, is_bounded=below.cgroup is not None):
                context = lowering.enter_context(layer.raised(below))
            with steps.step("verify"):
                verified = verified_by(self.workload, context.server, about.folder, cut_ns, limit)
            defects = defects_of(verified)
        except SpoiltError as error:
            defects, context = [error.defect], below
        cut = cut_of(planned, "kill", (cut_ns[0], window_start_ns), defects, verified)
        if cut.outcome in {"nothing", "tail"}:
            log.unlink(missing_ok=True)
        return context, replace(cut, recovery_s=steps.seconds)

    def examined(self, _: tuple[int, int]) -> list[Cut]:
        """The one, whose server was started again in the trial's own stack."""
        return self.cuts

    def observed(self) -> dict[str, dict[str, Any]]:
        """Whether it was taken."""
        return {"crash": {"planned": 1, "taken": len(self.cuts)}}


# The loss of the server: it is killed for good, and its replica, or another node of its cluster, has to do.


class Failover(Kill):
    """One kill of the server, after which only its standby is asked: a replica, or the second node of a cluster.

    Right before, all is lost that was on the way to it. What had arrived, be it unread yet, is the standby's.
    """

    @contextmanager
    def after_load(self, context: StackContext, window_ns: tuple[int, int]) -> Iterator[StackContext]:
        """The stack without the server; what the standby holds is verified once it has applied what it received."""
        if not self.killed.cut_ns:
            yield context
            return
        standby = context.standby
        assert standby is not None  # noqa: S101  (a rule of the study format)
        about, steps, planned, limit = self.about, Steps(), self.planned[0], self.section.recovery_limit
        cut_ns, endpoint = (self.killed.cut_ns, self.killed.cut_end_ns), standby.endpoint
        with steps.step("apply"):
            standby.settle(limit)
        try:
            with steps.step("verify"):
                verified = verified_by(self.workload, endpoint, about.folder, cut_ns, limit)
        except SpoiltError as error:
            raise TrialError(f"{standby.FIELD}: {error.defect.cause}") from None  # nothing has befallen the standby
        cut = cut_of(planned, "failover", (cut_ns[0], window_ns[0]), defects_of(verified), verified)
        self.cuts = [replace(cut, recovery_s=steps.seconds)]
        about.say(f"cut 1 of 1: {OUTCOME_WORDS[cut.outcome]}")
        about.lap(EXAMINING)
        yield replace(context, endpoint=None, replica=None, nodes=None)


# The cuts that a study asks for, if any.


@dataclass(frozen=True)
class NoCrash:
    """A study of speed."""

    keeps_server: ClassVar[bool] = True

    workload: Workload

    def beside(self, _: StackContext) -> AbstractContextManager[None]:
        """Nothing beside the load."""
        return nullcontext()

    def after_load(self, context: StackContext, _: tuple[int, int]) -> AbstractContextManager[StackContext]:
        """The stack as it is."""
        return nullcontext(context)

    def examined(self, _: tuple[int, int]) -> list[Cut]:
        """No cuts."""
        return []

    def observed(self) -> dict[str, dict[str, Any]]:
        """Nothing."""
        return {}


@contextmanager
def crashing(about: AboutTrial) -> Iterator[Crashing]:
    """The cuts that a study asks for; the disk's states of them are dropped in the end."""
    section = about.spec.crash
    if section is None:
        yield NoCrash(about.workload)
    elif section.mode == "kill":
        yield Kill(about, section)
    elif section.mode == "failover":
        yield Failover(about, section)
    else:
        disk = _disks_cut(about.stack, section, about.spec.places.get(REDO_PLACE, DATA_DISK))
        try:
            yield PowerCuts(about, section, disk)
        finally:
            with suppress(TrialError):  # a disk that is gone has dropped them
                disk.forget_cuts()


def _disks_cut(stack: Stack, section: CrashSection, of_log: str) -> DiskClient | DiskLine:
    """The disk whose power is cut, or all of them.

    The first, at whose requests cuts may be taken, is that of the redo log, which commits wait for; but that of the
    data where writes of pages are asked for.
    """
    clients = {}
    for name, device in {DATA_DISK: stack.device, **stack.disks}.items():
        assert device.disk is not None  # noqa: S101  (a rule of the study format)
        clients[name] = device.disk.client
    if len(clients) == 1:
        return clients[DATA_DISK]
    first = DATA_DISK if "page-write" in section.when else of_log
    return DiskLine({first: clients[first], **clients})
