"""On what the states that power cuts left are recovered: a trial's own layers, or a machine of the user's own.

As shipped: mount, read-only check, start of the server; each step bounded and timed. What the filesystem, its checker
or the server refuse is an outcome. What fails on dbdyno's side is not: it stays a ``TrialError`` or a ``HostError``.
"""

import errno
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

from dbdyno.errors import HostError, TrialError
from dbdyno.model.cut import Outcome
from dbdyno.model.disks import DATA_DISK
from dbdyno.servers.contract import NotStartedError
from dbdyno.stack.disk_client import DiskLine
from dbdyno.stack.guest.image import NotUpError, RunningMachine
from dbdyno.stack.kinds.kind import Stack
from dbdyno.stack.layer import Layer, StackContext
from dbdyno.stack.layers.device import CutContent, Emulated, seed_of
from dbdyno.stack.layers.external_server import ExternalServerLayer
from dbdyno.stack.layers.filesystem import Filesystem
from dbdyno.stack.layers.machine import BootedImage
from dbdyno.stack.layers.memory import Memory
from dbdyno.stack.layers.named_disk import NamedDisk
from dbdyno.stack.layers.queue import Queue
from dbdyno.stack.layers.scratch import scratch
from dbdyno.stack.layers.server import ServerLayer
from dbdyno.stack.layers.zfs_pool import ZfsPool
from dbdyno.stack.loop import await_free
from dbdyno.stack.undo_log import Journal
from dbdyno.system.files import first_full
from dbdyno.system.state import state_folder


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


OnT = TypeVar("OnT")


class Rig(Protocol[OnT]):
    """On what the states of a trial are recovered."""

    TIMED: ClassVar[tuple[str, ...]]  # the steps of a recovery in which the power may be cut again

    @property
    def folder(self) -> Path:
        """The trial's."""

    @property
    def line(self) -> DiskLine:
        """The disks, whose power is cut at one moment."""

    def check_health(self) -> None:
        """Raise ``TrialError`` or ``HostError`` where the rig itself is at fault for what has failed on it."""

    def attached(self, content: CutContent, steps: Steps) -> AbstractContextManager[OnT]:
        """The state that a cut left, ready to be recovered from."""

    def damage(self, on: OnT, steps: Steps) -> list[Defect]:
        """What is found before a server starts on it. Raises ``SpoiltError`` where that leaves nothing to start on."""

    def running(self, on: OnT, steps: Steps, log: Path) -> AbstractContextManager[StackContext]:
        """The server on it; killed in the end. Raises ``SpoiltError`` where it does not come so far."""


@dataclass(frozen=True)
class LayersRig:
    """The layers of a trial's stack, on a disk that answers at once."""

    TIMED: ClassVar[tuple[str, ...]] = ("mount", "server")

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

    def check_health(self) -> None:
        """Raise ``TrialError`` or ``HostError`` where the rig itself is at fault for what has failed on it."""
        check_disks((self.device, *(on.device for on in self.beside)), self.folder)

    @contextmanager
    def attached(self, content: CutContent, steps: Steps) -> Iterator[StackContext]:
        """The state that a cut left as a device, its queue as in the trial."""
        with ExitStack() as lowering:
            with steps.step("attach"):
                context = lowering.enter_context(self.ground(self.journal))
                for disk in self.line.disks.values():
                    disk.stats(reset=True)  # so that its counters are those of this state
                beside = (on.attached(content, number) for number, on in enumerate(self.beside, 1))
                for layer in (replace(self.device, cut=content), *self.queue, *beside):
                    context = lowering.enter_context(layer.raised(context))
            try:
                with self.hiding():
                    yield context
            finally:
                with steps.step("lower"):
                    lowering.close()

    @contextmanager
    def running(self, on: StackContext, steps: Steps, log: Path) -> Iterator[StackContext]:
        """The server on the mounted state; killed in the end. Raises ``SpoiltError`` where it does not come so far."""
        with ExitStack() as lowering:
            with steps.step("mount"), _on_rig(self), _not_mounting():
                context = self._mounted(on, lowering)
            for layer in self.memory:
                context = lowering.enter_context(layer.raised(context))
            with steps.step("server"), _on_rig(self), not_starting(log, is_bounded=bool(self.memory)):
                context = lowering.enter_context(replace(self.server, log=log).raised(context))
            yield context
            with steps.step("lower"):
                lowering.close()

    def damage(self, on: StackContext, steps: Steps) -> list[Defect]:
        """What a read-only check has against the filesystem after the mount has replayed what it has a journal of.

        Raises ``SpoiltError``, with what that check says, where it does not mount.
        """
        refusal = None
        with ExitStack() as lowering:
            try:
                with steps.step("first mount"), _on_rig(self), _not_mounting():
                    self._mounted(on, lowering)
            except SpoiltError as error:
                refusal = error
            with steps.step("unmount"):
                lowering.close()
                for context in (on, *on.disks.values()):
                    for device in context.devices:
                        await_free(device.path)  # or the checker and the second mount would see what is in memory
        if refusal:
            with suppress(TrialError):  # the checker's own
                texts = [refusal.defect.cause, *self._damage_texts(on, steps)]
                raise SpoiltError(refusal.defect.outcome, "; ".join(texts))
            raise refusal
        if damage_texts := self._damage_texts(on, steps):
            self.check_health()
        return [Defect("filesystem", text) for text in damage_texts]

    def _damage_texts(self, on: StackContext, steps: Steps) -> list[str]:
        """What the checker of each disk's filesystem has against it; none for one that is whole."""
        with steps.step("check"):
            texts = [self.filesystem.damage(on)]
            for disk in self.beside:
                text = disk.filesystem.damage(on.disks[disk.name])
                texts.append(f"disk {disk.name}: {text}" if text else "")
        return [text for text in texts if text]

    def _mounted(self, on: StackContext, lowering: ExitStack) -> StackContext:
        """The context with the filesystem of each disk."""
        context = lowering.enter_context(self.filesystem.raised(on))
        for disk in self.beside:
            mounted = lowering.enter_context(disk.filesystem.raised(context.disks[disk.name]))
            context = replace(context, disks={**context.disks, disk.name: mounted})
        return context


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


@dataclass(frozen=True)
class MachineRig:
    """A machine of the user's own, booted for each state; its own system alone knows the filesystem on the drive."""

    TIMED: ClassVar[tuple[str, ...]] = ("server",)

    machine: BootedImage
    server: ExternalServerLayer
    limit_seconds: float
    journal: Journal
    folder: Path  # the trial's

    @property
    def line(self) -> DiskLine:
        """The one drive."""
        return DiskLine({DATA_DISK: self.machine.disk.client})

    def check_health(self) -> None:
        """Raise ``TrialError`` or ``HostError`` where the drive is at fault for what has failed in the machine."""
        check_disks([self.machine.drive], self.folder)

    @contextmanager
    def attached(self, content: CutContent, steps: Steps) -> Iterator[RunningMachine]:
        """The machine, logged in to; nothing has been done with the drive."""
        machine = replace(self.machine, drive=replace(self.machine.drive, cut=content))
        with ExitStack() as lowering:
            with steps.step("boot"):
                machine.disk.client.stats(reset=True)  # so that its counters are those of this state
                running = lowering.enter_context(machine.powered(self.journal))
            try:
                yield running
            finally:
                with steps.step("lower"):
                    lowering.close()

    def damage(self, on: RunningMachine, steps: Steps) -> list[Defect]:
        """Nothing: what would check the filesystem is not known."""
        return []

    @contextmanager
    def running(self, on: RunningMachine, steps: Steps, log: Path) -> Iterator[StackContext]:
        """The server that the study's own command starts. What its system does not mount is no server, either."""
        with ExitStack() as lowering:
            with steps.step("server"), _on_rig(self):
                try:
                    self.machine.start(on, self.limit_seconds, self.limit_seconds)
                except NotUpError as error:
                    on.check_power()
                    log.write_text(f"{on.console.text}\n", encoding="utf-8")
                    raise SpoiltError("server", str(error)) from None
                ground = StackContext(self.journal, self.folder)
                context = lowering.enter_context(self.server.raised(ground))
            try:
                yield context
            except SpoiltError:
                on.check_power()  # without it no server answers
                raise
            on.check_power()


def rig_of(
    stack: Stack,
    limit_seconds: float,
    journal: Journal,
    folder: Path,
    hiding: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Rig[Any]:
    """The rig of a trial's stack; of each step ``limit_seconds`` at most, and what is mounted here, in ``hiding``."""
    device = stack.device
    if isinstance(device, BootedImage):
        external = next(layer for layer in stack.above if isinstance(layer, ExternalServerLayer))
        return MachineRig(device, external, limit_seconds, journal, folder)
    server = next(layer for layer in stack.above if isinstance(layer, ServerLayer))
    filesystem = next(layer for layer in stack.above if isinstance(layer, Filesystem | ZfsPool))
    assert isinstance(device, Emulated)  # noqa: S101  (a rule of the study format: one emulated disk)
    return LayersRig(
        device,
        tuple(layer for layer in stack.above if isinstance(layer, Queue)),
        replace(filesystem, limit_seconds=limit_seconds, is_tried=False),
        tuple(layer for layer in stack.above if isinstance(layer, Memory)),
        replace(server, ready_seconds=limit_seconds, is_killed=True),
        journal,
        folder,
        hiding=hiding,
        beside=tuple(_rig_disk(layer, limit_seconds) for layer in stack.above if isinstance(layer, NamedDisk)),
    )


def _rig_disk(disk: NamedDisk, limit_seconds: float) -> RigDisk:
    device, *queue, filesystem = disk.layers
    assert isinstance(device, Emulated)  # noqa: S101  (a rule of the study format: of the kind of the data's)
    assert isinstance(filesystem, Filesystem)  # noqa: S101  (a rule of the study format: no ZFS)
    return RigDisk(disk.disk, device, tuple(queue), replace(filesystem, limit_seconds=limit_seconds, is_tried=False))


def check_disks(devices: Iterable[Emulated], folder: Path) -> None:
    """Raise ``TrialError`` or ``HostError`` where a disk, or the room for files, is at fault."""
    for device in devices:
        _check_disk(device)
    if full := first_full([folder, state_folder()]):
        raise HostError(f"{full}: its filesystem is full; make room on it")


def _check_disk(device: Emulated) -> None:
    disk = device.disk
    if disk.process.poll() is not None:
        raise TrialError(f"the emulated disk (pid {disk.pid}) ended by itself")
    stats = disk.client.stats()
    if failed := {name: count for name, count in stats["errors"].items() if count}:
        raise TrialError(f"the emulated disk answered with errors, though none was asked for: {failed}")
    if stats["enospc_errors"]:
        raise HostError("the emulated disk found no room for its content; free some memory, or give less stack.size")
    if not device.is_attached():
        raise TrialError(f"the loop device over {disk.file} was detached by another")


@contextmanager
def _not_mounting() -> Iterator[None]:
    """Make an outcome of a mount that is refused or hangs in the context."""
    try:
        with _damaged():
            yield
    except TrialError as error:
        raise SpoiltError("filesystem", str(error)) from None


@contextmanager
def _on_rig(rig: Rig[Any]) -> Iterator[None]:
    """Have the rig looked at before anything that failed in the context counts as an outcome."""
    try:
        yield
    except SpoiltError:
        rig.check_health()
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
