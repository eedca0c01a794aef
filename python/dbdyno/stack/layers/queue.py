"""The block queue: scheduler, its tunables and the queue's own knobs, every one read back."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbdyno.errors import TrialError
from dbdyno.host.read import chosen_in
from dbdyno.stack.layer import BlockDevice, StackContext
from dbdyno.stack.undo.actions import RestoreSysfs
from dbdyno.study.schema import QueueSection

# What the kernel gives a disk of each kind by itself (block/blk-wbt.c); a loop device always comes up as an SSD.
WBT_LATENCY_US = {True: 75_000, False: 2_000}
# In the order in which they are set: the scheduler first, since choosing one resets the others; read-ahead last, since
# each change of the queue's limits resets it.
KNOBS = ("scheduler", "rotational", "write_cache", "max_sectors_kb", "discard_max_bytes", "stable_writes", "add_random",
         "iostats", "nomerges", "rq_affinity", "io_timeout", "io_poll", "io_poll_delay", "nr_requests", "wbt_lat_usec",
         "read_ahead_kb")  # fmt: skip
SHOWN = (*KNOBS, "logical_block_size")
TUNABLES = "iosched"  # the folder of the scheduler's own, which it bounds by nr_requests


@dataclass(frozen=True)
class Queue:
    """Sets the queue of each device below."""

    scheduler: str | None
    settings: QueueSection
    name: str = "queue"

    def _knob_texts(self, *, rotational: bool, disposable: bool) -> dict[str, str]:
        """What to write, by its path below the queue's folder, in order."""
        values = self.settings.model_dump(exclude_none=True)
        tunables = values.pop(TUNABLES)
        texts = {"scheduler": self.scheduler} if self.scheduler else {}
        if disposable:  # a loop device must first be set to the drive it stands for
            values = {"rotational": rotational, **values}
            if self.scheduler != "bfq":  # which throttles writeback itself, and reads back 0
                values.setdefault("wbt_lat_usec", WBT_LATENCY_US[bool(values["rotational"])])
        texts |= {knob: _as_written(value) for knob, value in values.items()}
        ordered = {knob: texts[knob] for knob in KNOBS if knob in texts}
        return ordered | {f"{TUNABLES}/{name}": _as_written(value) for name, value in tunables.items()}

    @contextmanager
    def raised(self, below: StackContext) -> Iterator[StackContext]:
        """Every queue set alike; a real device's own settings come back on exit."""
        with ExitStack() as undoing:
            observed = [self._set(device, below, undoing) for device in below.devices]
            if any(other != observed[0] for other in observed):
                raise TrialError(f"two devices of the same kind have different queues: {observed}")
            yield below.raised(self.name, observed[0])

    def _set(self, device: BlockDevice, below: StackContext, undoing: ExitStack) -> dict[str, Any]:
        """One device's queue set; returns what was read back."""
        folder = Path("/sys/block") / device.name / "queue"
        texts = self._knob_texts(rotational=device.rotational, disposable=device.disposable)
        if not device.disposable:
            # Undone in reverse: so the scheduler, which resets the rest, is set back first.
            knobs = [folder / knob for knob in KNOBS if (folder / knob).exists()]
            for path in reversed([*knobs, *sorted((folder / TUNABLES).glob("*"))]):
                undoing.enter_context(below.journal.undoing(RestoreSysfs(str(path), read_knob(path))))
        for knob, value in texts.items():
            write_knob(folder / knob, value)
        _check(folder, texts)
        return _observe(folder)


def _as_written(value: str | int) -> str:
    return value if isinstance(value, str) else str(int(value))


def _check(folder: Path, texts: Mapping[str, str]) -> None:
    """Raises ``TrialError`` with every setting that the kernel ignored, clamped or rounded.

    When all are set, since one may change another.
    """
    readback = {knob: read_knob(folder / knob) for knob in texts}
    wrong = [f"{folder / knob}: asked for {value}, the kernel took {readback[knob]}" for knob, value in texts.items()
             if readback[knob] != value]  # fmt: skip
    if wrong:
        raise TrialError("; ".join(wrong))


def _observe(folder: Path) -> dict[str, Any]:
    observed: dict[str, Any] = {knob: read_knob(folder / knob) for knob in SHOWN if (folder / knob).exists()}
    tunables = {path.name: read_knob(path) for path in sorted((folder / TUNABLES).glob("*"))}
    return observed | _hardware(folder.parent) | ({TUNABLES: tunables} if tunables else {})


def _hardware(device: Path) -> dict[str, str]:
    """How many queues the device has, and how many commands each takes, as far as the kernel says it."""
    found = {"queues": str(len(list((device / "mq").iterdir())))} if (device / "mq").is_dir() else {}
    depth = device / "device/queue_depth"  # of SCSI and of what goes by it, such as AHCI
    return found | ({"queue_depth": read_knob(depth)} if depth.exists() else {})


def read_knob(path: Path) -> str:
    """A queue setting as it is; of a list like ``none [kyber]`` the chosen one. Raises ``TrialError``."""
    try:
        return chosen_in(path.read_text(encoding="ascii"))
    except OSError as error:
        raise TrialError(f"{path}: {error.strerror}") from None


def write_knob(path: Path, value: str) -> None:
    """Set a queue setting. Raises ``TrialError`` that names what the kernel offers."""
    if not path.exists():
        raise TrialError(f"write {value!r} to {path}: this kernel's queue has no such setting")
    try:
        path.write_text(value, encoding="ascii")
    except OSError as error:
        offers = f"; it offers {path.read_text(encoding='ascii').strip()}" if path.name == "scheduler" else ""
        raise TrialError(f"write {value!r} to {path}: {error.strerror}{offers}") from None
