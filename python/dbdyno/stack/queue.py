"""The block queue: scheduler and its knobs, every one read back."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from dbdyno.errors import TrialError
from dbdyno.stack.layer import Stand
from dbdyno.stack.undo import WriteBack
from dbdyno.study.schema import QueueSection

# What the kernel gives a disk of each kind by itself (block/blk-wbt.c); a loop device always comes up as an SSD.
WBT_LATENCY_US = {True: 75_000, False: 2_000}
KNOBS = ("scheduler", "rotational", "nr_requests", "read_ahead_kb", "wbt_lat_usec")
SHOWN = (*KNOBS, "max_sectors_kb", "nomerges", "rq_affinity", "write_cache", "logical_block_size")


@dataclass(frozen=True)
class Queue:
    """Sets the queue of the device below."""

    scheduler: str | None
    settings: QueueSection
    name: str = "queue"

    def _wanted(self, *, rotational: bool, disposable: bool) -> dict[str, str]:
        given = self.settings.model_dump(exclude_none=True)
        wanted = {"scheduler": self.scheduler} if self.scheduler else {}
        if disposable:  # a loop device must first be told what drive it stands for
            given = {"rotational": rotational, **given}
            if self.scheduler != "bfq":  # which throttles writeback itself, and reads back 0
                given.setdefault("wbt_lat_usec", WBT_LATENCY_US[bool(given["rotational"])])
        wanted |= {knob: str(int(value)) for knob, value in given.items()}
        # The scheduler first: choosing one resets the others.
        return {knob: wanted[knob] for knob in KNOBS if knob in wanted}

    @contextmanager
    def raised(self, below: Stand) -> Iterator[Stand]:
        """The queue set; a real device's own settings come back on exit."""
        assert below.device is not None  # noqa: S101  (the plan puts no queue on ``here``)
        folder = Path("/sys/block") / below.device.name / "queue"
        wanted = self._wanted(rotational=below.device.rotational, disposable=below.device.disposable)
        with ExitStack() as undoing:
            if not below.device.disposable:
                # Undone in reverse: so the scheduler, which resets the rest, is set back first.
                knobs = [folder / knob for knob in KNOBS if (folder / knob).exists()]
                for path in reversed([*knobs, *sorted((folder / "iosched").glob("*"))]):
                    undoing.enter_context(below.journal.undoing(WriteBack(str(path), read_knob(path))))
            for knob, value in wanted.items():
                write_knob(folder / knob, value)
            observed = {knob: read_knob(folder / knob) for knob in SHOWN if (folder / knob).exists()}
            for knob, value in wanted.items():
                if observed[knob] != value:
                    raise TrialError(f"{folder / knob}: asked for {value}, the kernel took {observed[knob]}")
            yield below.raised(self.name, observed)


def read_knob(path: Path) -> str:
    """A queue setting as it is; of a list like ``none [kyber]`` the chosen one. Raises ``TrialError``."""
    try:
        text = path.read_text(encoding="ascii").strip()
    except OSError as error:
        raise TrialError(f"{path}: {error.strerror}") from None
    return text.partition("[")[2].partition("]")[0] or text


def write_knob(path: Path, value: str) -> None:
    """Set a queue setting. Raises ``TrialError`` that names what the kernel offers."""
    try:
        path.write_text(value, encoding="ascii")
    except OSError as error:
        offers = f"; it offers {path.read_text(encoding='ascii').strip()}" if path.name == "scheduler" else ""
        raise TrialError(f"write {value!r} to {path}: {error.strerror}{offers}") from None
