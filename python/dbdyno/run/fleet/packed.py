"""One block of a host under test, in one file: its events, and the folders of its trials."""

import io
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from dbdyno.plan.identity import file_sha256
from dbdyno.store.events import Dropped, Event, Note, TrialEvent, event_in, line_of, read_events
from dbdyno.store.run_folder import RunFolder

_EVENTS = "events.jsonl"


def events_of(path: Path, block: int) -> Iterator[Event]:
    """What happened in a block of a run folder, in order; what names no block belongs to the one it happened in."""
    now = 0
    for event in read_events(path):
        if isinstance(event, TrialEvent):
            now = event.block
        if now == block and isinstance(event, TrialEvent | Dropped | Note):
            yield event


def pack_block(run: RunFolder, block: int, into: Path) -> tuple[Path, str]:
    """Make the file of a block; where it is, and its SHA-256. The one of the block before is removed."""
    for before in into.glob("block-*.tar"):
        before.unlink()
    path = into / f"block-{block}.tar"
    events = list(events_of(run.path, block))
    with tarfile.open(path, "w") as packed:
        content = b"".join(map(line_of, events))
        about = tarfile.TarInfo(_EVENTS)
        about.size = len(content)
        packed.addfile(about, io.BytesIO(content))
        for trial in dict.fromkeys(event.trial for event in events if isinstance(event, TrialEvent)):
            if (run.path / "trials" / trial).is_dir():
                packed.add(run.path / "trials" / trial, f"trials/{trial}")
    return path, file_sha256(path)


def unpack_block(path: Path, into: Path) -> list[Event]:
    """Unpack such a file into an empty folder; its events. Trials then lie in ``into/trials``."""
    with tarfile.open(path) as packed:
        packed.extractall(into, filter="data")
    lines = (into / _EVENTS).read_bytes().splitlines()
    return [event_in(line) for line in lines]


def renumbered(trial: str, block: int) -> str:
    """The name of a trial, its block having another number (see ``Slot.id``)."""
    return f"b{block:04d}{trial[trial.index('a') :]}"


def in_block(event: TrialEvent, block: int, host: str) -> TrialEvent:
    """An event of a trial as the run of all hosts has it."""
    return replace(event, trial=renumbered(event.trial, block), block=block, host=host)
