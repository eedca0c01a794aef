"""One block of a host under test, in one file: its events, and the folders of its trials.

States that are kept of power cuts are large, and evidence that a run can do without. So where a block has any there are
two files, one with and one without them.
"""

import io
import shutil
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dbdyno.crash.kept import LEFT_BYTES
from dbdyno.plan.identity import file_sha256
from dbdyno.run import sparse_tar
from dbdyno.stack.space import bytes_on_disk
from dbdyno.store.cuts import CUTS
from dbdyno.store.events import Dropped, Event, Note, TrialEvent, event_in, line_of, read_events
from dbdyno.store.run_folder import RunFolder

EVENTS = "events.jsonl"


def events_of(path: Path, block: int) -> Iterator[Event]:
    """What happened in a block of a run folder, in order; what names no block belongs to the one it happened in."""
    now = 0
    for event in read_events(path):
        if isinstance(event, TrialEvent):
            now = event.block
        if now == block and isinstance(event, TrialEvent | Dropped | Note):
            yield event


@dataclass(frozen=True)
class PackedBlock:
    """A block in a file, as who fetches it gets to know it; with states the room that they take."""

    path: str
    sha256: str
    states_bytes: int = 0
    states: dict[str, str] | None = None  # the same with states, where there are any and they fit

    def __post_init__(self) -> None:
        """Raise ``ValueError`` where that can't be."""
        if self.states_bytes < 0 or (self.states is not None and self.states.keys() != {"path", "sha256"}):
            raise ValueError("packed is not a block")

    def file(self, free_bytes: int) -> tuple[str, str]:
        """Path and SHA-256 of the file to fetch to a disk with so much room, on which it is unpacked as well."""
        if self.states and free_bytes >= 2 * self.states_bytes + LEFT_BYTES:
            return self.states["path"], self.states["sha256"]
        return self.path, self.sha256


def pack_block(run: RunFolder, block: int, into: Path) -> PackedBlock:
    """Make the files of a block; those of the block before are removed."""
    for before in into.glob("block-*.tar"):
        before.unlink()
    events = list(events_of(run.path, block))
    trials = dict.fromkeys(event.trial for event in events if isinstance(event, TrialEvent))
    folders = [path for trial in trials if (path := run.path / "trials" / trial).is_dir()]
    plain, states = into / f"block-{block}.tar", into / f"block-{block}-states.tar"
    _pack(plain, events, [(path, [file for file in path.iterdir() if file.name != CUTS]) for path in folders])
    needed = sum(bytes_on_disk(path / CUTS) for path in folders if (path / CUTS).is_dir())
    packed = PackedBlock(str(plain), file_sha256(plain), needed)
    if not needed or shutil.disk_usage(into).free < needed + LEFT_BYTES:
        return packed
    _pack(states, events, [(path, list(path.iterdir())) for path in folders])
    return replace(packed, states={"path": str(states), "sha256": file_sha256(states)})


def _pack(path: Path, events: Sequence[Event], folders: Sequence[tuple[Path, Sequence[Path]]]) -> None:
    with tarfile.open(path, "w") as packed:
        content = b"".join(map(line_of, events))
        about = tarfile.TarInfo(EVENTS)
        about.size = len(content)
        packed.addfile(about, io.BytesIO(content))
        for folder, files in folders:
            packed.add(folder, f"trials/{folder.name}", recursive=False)
            for file in sorted(files):
                sparse_tar.add(packed, file, f"trials/{folder.name}/{file.name}")


def unpack_block(path: Path, into: Path, limit_of: sparse_tar.LimitOf) -> list[Event]:
    """Unpack such a file into an empty folder; its events. Trials then lie in ``into/trials``.

    Raises ``tarfile.TarError`` or ``ValueError`` where it is none.
    """
    sparse_tar.extract(path, into, limit_of)
    try:
        lines = (into / EVENTS).read_bytes().splitlines()
    except OSError:
        raise ValueError("it holds no events") from None
    try:
        return [event_in(line) for line in lines]
    except (ValueError, TypeError, RecursionError):
        raise ValueError("it holds a line that is not an event") from None


def renumber_trial(trial: str, block: int) -> str:
    """The name of a trial, its block having another number (see ``Slot.id``)."""
    return f"b{block:04d}{trial[trial.index('a') :]}"


def in_block(event: TrialEvent, block: int, host: str) -> TrialEvent:
    """An event of a trial as the run of all hosts has it."""
    return replace(event, trial=renumber_trial(event.trial, block), block=block, host=host)
