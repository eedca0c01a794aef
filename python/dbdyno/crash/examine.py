"""What is found after a cut: the state on a disk, its recovery step by step, and the outcome."""

import errno
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from dbdyno.crash.trial_cuts import PlannedCut, load_state, planned_of, read_kept
from dbdyno.errors import HostError, TrialError, UserError
from dbdyno.model.cut import OUTCOMES, CrashMode, Cut, Outcome
from dbdyno.model.disks import DATA_DISK
from dbdyno.model.printable import short
from dbdyno.model.wording import count
from dbdyno.servers.contract import NotStartedError
from dbdyno.stack.disk_client import CutTaken, DiskLine
from dbdyno.stack.kinds.catalogue import KINDS
from dbdyno.stack.kinds.kind import Raising, Stack
from dbdyno.stack.layer import Endpoint, Layer, StackContext
from dbdyno.stack.layers.data import Disks
from dbdyno.stack.layers.device import CutContent, Emulated, seed_of
from dbdyno.stack.layers.emulated_disk import running_disk
from dbdyno.stack.layers.filesystem import Filesystem
from dbdyno.stack.layers.memory import Memory
from dbdyno.stack.layers.named_disk import NamedDisk
from dbdyno.stack.layers.queue import Queue
from dbdyno.stack.layers.scratch import scratch, unseen_mounts
from dbdyno.stack.layers.server import ServerLayer, how_it_ended
from dbdyno.stack.layers.zfs_pool import ZfsPool
from dbdyno.stack.loop import await_free
from dbdyno.stack.undo.actions import RemoveTree
from dbdyno.stack.undo_log import Journal
from dbdyno.study.schema import TrialSpec
from dbdyno.system.files import first_full
from dbdyno.system.state import make_private, new_token, scratch_path, state_folder
from dbdyno.workload.generator import DYING_SECONDS
from dbdyno.workload.kinds import workload_of
from dbdyno.workload.ledger import LEDGER, Ledger, Verified

# Recovery from a power cut, as shipped: mount, read-only check, start of the server; each step bounded and timed.
#
# What the filesystem, its checker or the server refuse is an outcome. What fails on dbdyno's side is not: it stays a
# ``TrialError`` or a ``HostError``.


# Which of the six outcomes a cut had, and why, in the server's, the tool's or the verifier's own words.


CAUSE_MAX = 600  # characters


@dataclass(frozen=True)
class Defect:
    """Something that was found after a cut."""

    outcome: Outcome
    cause: str


class SpoiltError(Exception):
    """Recovery ends here: what was found leaves nothing to go on with."""

    def __init__(self, outcome: Outcome, cause: str) -> None:
        super().__init__(cause)
        self.defect = Defect(outcome, cause)


def worst(defects: Iterable[Defect]) -> Defect:
    """The worst of what was found, with all causes, worst first; nothing where nothing was found."""
    ordered = sorted(defects, key=lambda defect: OUTCOMES.index(defect.outcome))
    if not ordered:
        return Defect("nothing", "")
    return Defect(ordered[0].outcome, short("; ".join(defect.cause for defect in ordered if defect.cause), CAUSE_MAX))


def defects_of(verified: Verified) -> list[Defect]:
    """What the verifier has against the recovered tables."""
    defects = [
        Defect("table", f"table {table.table} needs repair: {table.text}") for table in verified.tables if not table.ok
    ]
    if not (verified.complete or defects):
        defects.append(Defect("table", "a table can't be read to its end"))
    if spoilt := _spoilt(verified):
        examples = "; ".join(
            f"{example.what}: {example.text}" for example in verified.examples[:2] if example.what != "lost"
        )
        defects.append(Defect("inconsistent", f"{spoilt}{f' ({examples})' if examples else ''}"))
    if verified.lost:
        defects.append(Defect("tail", f"{count(verified.lost, 'acknowledged commit')} lost"))
    return defects


def _spoilt(verified: Verified) -> str:
    """What is worse than a lost tail, in words."""
    counts = {
        "lost with younger ones kept": verified.holes,
        "there in part": verified.torn,
        "there with other values": verified.wrong,
        "there although refused or never sent": verified.ghost,
    }
    phrases = [f"{count(number, 'commit')} {words}" for words, number in counts.items() if number]
    if verified.index_differences:
        phrases.append(f"{count(verified.index_differences, 'difference')} between an index and its table")
    if verified.balance_off:
        phrases.append("the sum of all balances is off")
    return ", ".join(phrases)


# How a damaged filesystem answers, though it let itself be mounted. EUCLEAN is what the kernel calls EFSCORRUPTED.
DAMAGED = {errno.EIO, errno.EUCLEAN, errno.EROFS, errno.EBADMSG}
KILLED = -9  # by nobody here: a host that ran out of memory


class Steps:
    """Seconds of each step of one recovery."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds: dict[str, float] = {}
        self._clock = clock

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Time what is done in the context, however it ends."""
        began = self._clock()
        try:
            yield
        finally:
            self.seconds[name] = round(self.seconds.get(name, 0.0) + self._clock() - began, 4)


@dataclass(frozen=True)
class Rig:
    """On what the states of a trial are recovered: the layers of its stack, on a disk that answers at once."""

    device: Emulated
    queue: tuple[Layer, ...]
    filesystem: Filesystem | ZfsPool
    memory: tuple[Layer, ...]
    server: ServerLayer
    journal: Journal
    folder: Path  # the trial's
    ground: Callable[[Journal], AbstractContextManager[StackContext]] = scratch
    hiding: Callable[[], AbstractContextManager[None]] = nullcontext  # in which the device is mounted
    beside: tuple["RigDisk", ...] = ()  # the disks beside that of the data

    @property
    def line(self) -> DiskLine:
        """The disks, whose power is cut at one moment."""
        return DiskLine({DATA_DISK: self.device.disk.client, **{on.name: on.device.disk.client for on in self.beside}})

    def see_that_it_is_well(self) -> None:
        """Raise ``TrialError`` or ``HostError`` where the rig itself is at fault for what has failed on it."""
        for device in (self.device, *(on.device for on in self.beside)):
            self._see_that_it_is_well(device)
        if full := first_full([self.folder, state_folder()]):
            raise HostError(f"{full}: its filesystem is full; make room on it")

    @staticmethod
    def _see_that_it_is_well(device: Emulated) -> None:
        disk = device.disk
        if disk.process.poll() is not None:
            raise TrialError(f"the emulated disk (pid {disk.pid}) ended by itself")
        stats = disk.client.stats()
        if failed := {name: count for name, count in stats["errors"].items() if count}:
            raise TrialError(f"the emulated disk answered with errors, though none was asked for: {failed}")
        if stats["enospc_errors"]:
            raise HostError(
                "the emulated disk found no room for its content; free some memory, or give less stack.size"
            )
        if not device.is_attached():
            raise TrialError(f"the loop device over {disk.file} was detached by another")


@dataclass(frozen=True)
class RigDisk:
    """A disk beside that of the data."""

    name: str
    device: Emulated
    queue: tuple[Layer, ...]
    filesystem: Filesystem

    def attached(self, content: CutContent, number: int) -> NamedDisk:
        """What the cut left on this disk, the ``number``-th, as a device; survivors are drawn for each disk apart."""
        cut = replace(content, seed=seed_of(content.seed, number))
        return NamedDisk(self.name, (replace(self.device, cut=cut), *self.queue))


def rig_of(stack: Stack, limit_seconds: float, journal: Journal, folder: Path) -> Rig:
    """The rig of a trial's stack; of each step ``limit_seconds`` at most."""
    device, server = stack.device, next(layer for layer in stack.above if isinstance(layer, ServerLayer))
    filesystem = next(layer for layer in stack.above if isinstance(layer, Filesystem | ZfsPool))
    assert isinstance(device, Emulated)  # noqa: S101  (a rule of the study format: one emulated disk)
    return Rig(
        device,
        tuple(layer for layer in stack.above if isinstance(layer, Queue)),
        replace(filesystem, limit_seconds=limit_seconds, is_tried=False),
        tuple(layer for layer in stack.above if isinstance(layer, Memory)),
        replace(server, ready_seconds=limit_seconds, is_killed=True),
        journal,
        folder,
        beside=tuple(_rig_disk(layer, limit_seconds) for layer in stack.above if isinstance(layer, NamedDisk)),
    )


def _rig_disk(disk: NamedDisk, limit_seconds: float) -> RigDisk:
    device, *queue, filesystem = disk.layers
    assert isinstance(device, Emulated)  # noqa: S101  (a rule of the study format: of the kind of the data's)
    assert isinstance(filesystem, Filesystem)  # noqa: S101  (a rule of the study format: no ZFS)
    return RigDisk(disk.disk, device, tuple(queue), replace(filesystem, limit_seconds=limit_seconds, is_tried=False))


@contextmanager
def attached(rig: Rig, content: CutContent, steps: Steps) -> Iterator[StackContext]:
    """The state that a cut left as a device, its queue as in the trial."""
    with ExitStack() as lowering:
        with steps.step("attach"):
            context = lowering.enter_context(rig.ground(rig.journal))
            for disk in rig.line.disks.values():
                disk.stats(reset=True)  # what it counts from now on is of this state
            beside = (on.attached(content, number) for number, on in enumerate(rig.beside, 1))
            for layer in (replace(rig.device, cut=content), *rig.queue, *beside):
                context = lowering.enter_context(layer.raised(context))
        try:
            with rig.hiding():
                yield context
        finally:
            with steps.step("lower"):
                lowering.close()


@contextmanager
def running(rig: Rig, on_device: StackContext, steps: Steps, log: Path) -> Iterator[StackContext]:
    """The server on the mounted state; killed in the end. Raises ``SpoiltError`` where it does not come so far."""
    with ExitStack() as lowering:
        with steps.step("mount"), _on_rig(rig), _not_mounting():
            context = _mounted(rig, on_device, lowering)
        for layer in rig.memory:
            context = lowering.enter_context(layer.raised(context))
        with steps.step("server"), _on_rig(rig), not_starting(log, is_bounded=bool(rig.memory)):
            context = lowering.enter_context(replace(rig.server, log=log).raised(context))
        yield context
        with steps.step("lower"):
            lowering.close()


def damage(rig: Rig, on_device: StackContext, steps: Steps) -> list[Defect]:
    """What a read-only check has against the filesystem after the mount has replayed what it has a journal of.

    Raises ``SpoiltError`` where it does not mount.
    """
    with ExitStack() as lowering:
        with steps.step("first mount"), _on_rig(rig), _not_mounting():
            _mounted(rig, on_device, lowering)
        with steps.step("unmount"):
            lowering.close()
            for context in (on_device, *on_device.disks.values()):
                for device in context.devices:
                    await_free(device.path)  # or the checker and the second mount would see what is in memory
    with steps.step("check"):
        damage_texts = [rig.filesystem.damage(on_device)]
        for on in rig.beside:
            text = on.filesystem.damage(on_device.disks[on.name])
            damage_texts.append(f"disk {on.name}: {text}" if text else "")
    if any(damage_texts):
        rig.see_that_it_is_well()
    return [Defect("filesystem", text) for text in damage_texts if text]


def _mounted(rig: Rig, on_device: StackContext, lowering: ExitStack) -> StackContext:
    """The context with the filesystem of each disk."""
    context = lowering.enter_context(rig.filesystem.raised(on_device))
    for on in rig.beside:
        mounted = lowering.enter_context(on.filesystem.raised(context.disks[on.name]))
        context = replace(context, disks={**context.disks, on.name: mounted})
    return context


@contextmanager
def _not_mounting() -> Iterator[None]:
    """Make an outcome of a mount that is refused or hangs in the context."""
    try:
        with _damaged():
            yield
    except TrialError as error:
        raise SpoiltError("filesystem", str(error)) from None


@contextmanager
def _on_rig(rig: Rig) -> Iterator[None]:
    """Have the rig looked at before anything that failed in the context counts as an outcome."""
    try:
        yield
    except SpoiltError:
        rig.see_that_it_is_well()
        raise


@contextmanager
def _damaged() -> Iterator[None]:
    """Make an outcome of what only a damaged filesystem answers."""
    try:
        yield
    except OSError as error:
        if error.errno not in DAMAGED:
            raise
        raise SpoiltError("filesystem", f"{error.filename or 'the filesystem'}: {error.strerror}") from None


@contextmanager
def not_starting(log: Path, *, is_bounded: bool) -> Iterator[None]:
    """Make an outcome of a server that does not come up in the context; ``is_bounded``: its memory is.

    One whose program did not run, that another killed, or that comes up otherwise than asked for is dbdyno's failure.
    """
    try:
        with _damaged():
            yield
    except NotStartedError as error:
        if not log.exists() or not log.stat().st_size:
            raise TrialError(f"the server's program wrote no log, so it did not run: {error}") from None
        if error.code == KILLED and not is_bounded:
            raise TrialError(f"another process killed the server while it recovered: {error}") from None
        raise SpoiltError("server", str(error)) from None


TIMED = ("mount", "server")  # the steps of a recovery in which the power may be cut again


class Verifying(Protocol):
    """A workload that can say what is left of it."""

    def verify(self, endpoint: Endpoint, folder: Path, cut_ns: int, cut_end_ns: int, limit_seconds: float) -> Verified:
        """Hold the recovered tables against the ledger in ``folder``. Raises ``TrialError``."""


@dataclass
class Examiner:
    """Examines the cuts of one trial, one after the other."""

    rig: Rig
    workload: Verifying
    limit_seconds: float
    hold_s: float = 0.0
    recoveries_s: list[float] = field(default_factory=list)  # what mount and start have taken so far

    def examined(self, planned: PlannedCut, taken: CutTaken, window_start_ns: int) -> tuple[Cut, CutContent]:
        """A cut with what was found, and the state that it was found on: of a cut in a recovery, the later one."""
        assert planned.survivors is not None  # noqa: S101  (a power cut has survivors)
        content, state = CutContent(taken.name, planned.survivors, planned.seed), taken
        if planned.when == "recovery":
            state, content = self._cut_again(planned, taken, content)
        cut = self.of_state(planned, content, (taken.cut_ns, taken.cut_end_ns), window_start_ns)
        if planned.when != "recovery" and all(name in cut.recovery_s for name in TIMED):
            self.recoveries_s.append(sum(cut.recovery_s[name] for name in TIMED))
        # Where the disk kept track of too little at the first of several cuts, the loss is understated all the same.
        reached = state.limit_reached or taken.limit_reached
        return replace(cut, unflushed_bytes=state.unflushed_bytes, limit_reached=reached), content

    def of_state(self, planned: PlannedCut, content: CutContent, cut_ns: tuple[int, int], window_start_ns: int) -> Cut:
        """A cut with what is found on a state; ``cut_ns`` is right before and right after it was taken."""
        steps, log = Steps(), self._log(planned)
        defects, verified = self._recovered(content, cut_ns, steps, log)
        cut = cut_of(planned, "power", (cut_ns[0], window_start_ns), defects, verified)
        if cut.outcome in {"nothing", "tail"}:
            log.unlink(missing_ok=True)
        return replace(cut, recovery_s=steps.seconds)

    def _log(self, planned: PlannedCut) -> Path:
        return self.rig.folder / f"recovery-{planned.id}.log"

    def _recovered(
        self, content: CutContent, cut_ns: tuple[int, int], steps: Steps, log: Path
    ) -> tuple[list[Defect], Verified | None]:
        defects: list[Defect] = []
        verified = None
        try:
            with attached(self.rig, content, steps) as on_device:
                defects += damage(self.rig, on_device, steps)
                with running(self.rig, on_device, steps, log) as context, steps.step("verify"):
                    verified = self._verified(context.server, cut_ns)
        except SpoiltError as error:
            defects.append(error.defect)
        return [*defects, *(defects_of(verified) if verified else [])], verified

    def _verified(self, endpoint: Endpoint, cut_ns: tuple[int, int]) -> Verified:
        try:
            verified = verified_by(self.workload, endpoint, self.rig.folder, cut_ns, self.limit_seconds)
        except (SpoiltError, TrialError):
            self.rig.see_that_it_is_well()
            raise
        if defects_of(verified):
            self.rig.see_that_it_is_well()  # or a disk that is gone would pass for tables that can't be read
        return verified

    def _cut_again(self, planned: PlannedCut, taken: CutTaken, content: CutContent) -> tuple[CutTaken, CutContent]:
        """The state that a cut during the recovery from another leaves; of every other such cut, one in that again."""
        state, log = taken, self._log(planned)
        for again in range(1, 2 + planned.seed % 2):
            after_s = planned.share * self._usual_seconds(content, log)
            name = f"{planned.id}-{again}"
            if not (cut := self._cut_while_recovering(content, name, after_s, log)):
                break
            state, content = cut, CutContent(name, content.survivors, content.seed + 1)
        return state, content

    def _usual_seconds(self, content: CutContent, log: Path) -> float:
        """What mount and start take: of the cuts that were examined before, or else of this one."""
        if not self.recoveries_s:
            steps = Steps()
            with (
                suppress(SpoiltError),
                attached(self.rig, content, steps) as on_device,
                running(self.rig, on_device, steps, log),
            ):
                pass
            self.recoveries_s.append(sum(steps.seconds.get(name, 0.0) for name in TIMED))
        return sum(self.recoveries_s) / len(self.recoveries_s)

    def _cut_while_recovering(self, content: CutContent, name: str, after_s: float, log: Path) -> CutTaken | None:
        """Cut the power so long after the mount has begun; ``None`` where the state does not let itself be raised."""
        disk = self.rig.line
        with attached(self.rig, content, Steps()) as on_device:
            disk.arm_cuts(round(self.hold_s * 1e9))
            failed: list[TrialError] = []

            def cut() -> None:
                try:
                    disk.cut(name)
                except TrialError as error:
                    failed.append(error)

            timer = threading.Timer(after_s, cut)
            timer.start()
            try:
                with suppress(SpoiltError), running(self.rig, on_device, Steps(), log):
                    timer.join()  # it may come a moment after this start, which was faster than the others
            finally:
                timer.cancel()
                timer.join()
                disk.disarm_cuts()
        if failed:
            raise failed[0]
        return next((cut_taken for cut_taken in disk.cuts() if cut_taken.name == name), None)


def verified_by(
    workload: Verifying, endpoint: Endpoint, folder: Path, cut_ns: tuple[int, int], limit_seconds: float
) -> Verified:
    """What the verifier found.

    Raises ``SpoiltError`` where the server dies of being asked, ``TrialError`` where the verifier fails or another
    process kills the server.
    """
    try:
        verified = workload.verify(endpoint, folder, *cut_ns, limit_seconds)
    except TrialError:
        _see_that_it_lives(endpoint, DYING_SECONDS)
        raise
    if broken := [table.text for table in verified.tables if not table.ok]:
        is_gone = any("connection" in text for text in broken)
        _see_that_it_lives(endpoint, DYING_SECONDS if is_gone else 0.0)
    return verified


def _see_that_it_lives(endpoint: Endpoint, patience_seconds: float) -> None:
    """Raise ``SpoiltError`` where a server has died while it was read, ``TrialError`` where another killed it."""
    if endpoint.process:
        with suppress(Exception):
            endpoint.process.wait(patience_seconds)
    if ended := how_it_ended(endpoint):
        if endpoint.process and endpoint.process.poll() == KILLED and endpoint.cgroup is None:
            raise TrialError(f"another process killed the server while it was read: {ended}") from None
        raise SpoiltError("server", f"it starts, but its tables cannot be read: {ended}") from None


def cut_of(
    planned: PlannedCut,
    mode: CrashMode,
    cut_and_window_ns: tuple[int, int],
    defects: Sequence[Defect],
    verified: Verified | None,
) -> Cut:
    """The record of a cut. Where nothing could be verified, no transaction is counted."""
    defect = worst(defects)
    cut_ns, window_ns = cut_and_window_ns
    counts = {}
    if verified:
        names = ("acked", "unknown", "lost", "holes", "ghost", "torn", "wrong")
        counts = {name: getattr(verified, name) for name in names}
        oldest = verified.oldest_lost_ack_ns
        counts["lost_ms"] = None if oldest is None else (cut_ns - oldest) / 1e6
    return Cut(
        *(planned.id, mode, planned.when, planned.survivors, planned.seed, (cut_ns - window_ns) / 1e9, defect.outcome),
        **{"acked": 0, **counts},
        cause=defect.cause,
    )


# A kept state examined again, on a disk of its own; nothing of its run folder changes.


def examine_kept(folder: Path, spec: TrialSpec, journal: Journal) -> Cut:
    """What is found on the state that ``folder`` keeps, of a trial with this spec: the same as before, seconds apart.

    The caller has verified its checksums. Raises ``UserError`` where the folder holds no state, ``TrialError`` or
    ``HostError`` where it can't be examined.
    """
    kept, workload = read_kept(folder), workload_of(spec)
    if spec.crash is None or spec.stack.size is None or not isinstance(workload, Ledger):
        raise UserError(f"{folder}: this treatment is of no study of power cuts")
    place = scratch_path(new_token())
    with (
        journal.undoing(RemoveTree(str(place))),
        running_disk(journal, model=spec.stack.device, size=spec.stack.size) as disk,
    ):
        make_private(place)
        (place / LEDGER).symlink_to((folder / LEDGER).absolute())
        load_state(disk.client, kept, folder)
        stack = KINDS[spec.stack.kind].stack(spec, Disks((disk,)), Raising(place / "server.log", workload.prepare))
        limit = spec.crash.recovery_limit
        # Its filesystem may be of another's making: nobody else is to see it mounted.
        rig = replace(rig_of(stack, limit, journal, place), hiding=unseen_mounts)
        examiner = Examiner(rig, workload, limit)
        return examiner.of_state(planned_of(kept), kept.content, (kept.cut_ns, kept.cut_end_ns), kept.window_start_ns)
