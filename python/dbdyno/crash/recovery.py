"""Recovery from a power cut, as shipped: mount, read-only check, start of the server; each step bounded and timed.

What the filesystem, its checker or the server refuse is an outcome. What fails on dbdyno's side is not: it stays a
``TrialError`` or a ``HostError``.
"""

import errno
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from dbdyno.errors import HostError, TrialError
from dbdyno.model.cut import OUTCOMES, Outcome
from dbdyno.model.printable import short
from dbdyno.model.wording import count
from dbdyno.servers.contract import NotStartedError
from dbdyno.stack.kinds.kind import Stack
from dbdyno.stack.layer import Layer, StackContext
from dbdyno.stack.layers.device import CutContent, Emulated
from dbdyno.stack.layers.filesystem import Filesystem
from dbdyno.stack.layers.memory import Memory
from dbdyno.stack.layers.queue import Queue
from dbdyno.stack.layers.scratch import scratch
from dbdyno.stack.layers.server import ServerLayer
from dbdyno.stack.layers.zfs_pool import ZfsPool
from dbdyno.stack.loop import await_free
from dbdyno.stack.undo.log import Journal
from dbdyno.system.files import first_full
from dbdyno.system.state import state_folder
from dbdyno.workload.ledger import Verified

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
        "there though refused or never sent": verified.ghost,
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

    def see_that_it_is_well(self) -> None:
        """Raise ``TrialError`` or ``HostError`` where the rig itself is at fault for what has failed on it."""
        disk = self.device.disk
        if disk.process.poll() is not None:
            raise TrialError(f"the emulated disk (pid {disk.pid}) ended by itself")
        stats = disk.client.stats()
        if failed := {name: count for name, count in stats["errors"].items() if count}:
            raise TrialError(f"the emulated disk answered with errors, though none was asked for: {failed}")
        if stats["enospc_errors"]:
            raise HostError(
                "the emulated disk found no room for its content; free some memory, or give less stack.size"
            )
        if not self.device.is_attached():
            raise TrialError(f"the loop device over {disk.file} was detached by another")
        if full := first_full([self.folder, state_folder()]):
            raise HostError(f"{full}: its filesystem is full; make room on it")


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
    )


@contextmanager
def attached(rig: Rig, content: CutContent, steps: Steps) -> Iterator[StackContext]:
    """The state that a cut left as a device, its queue as in the trial."""
    with ExitStack() as lowering:
        with steps.step("attach"):
            context = lowering.enter_context(rig.ground(rig.journal))
            rig.device.disk.client.stats(reset=True)  # what it counts from now on is of this state
            for layer in (replace(rig.device, cut=content), *rig.queue):
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
            context = lowering.enter_context(rig.filesystem.raised(on_device))
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
            lowering.enter_context(rig.filesystem.raised(on_device))
        with steps.step("unmount"):
            lowering.close()
            for device in on_device.devices:
                await_free(device.path)  # or the checker and the second mount would see what is in memory
    with steps.step("check"):
        damage_text = rig.filesystem.damage(on_device)
    if damage_text:
        rig.see_that_it_is_well()
    return [Defect("filesystem", damage_text)] if damage_text else []


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
