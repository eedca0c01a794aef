"""A block that a host has handed over becomes a block of the run here: once, whole, whatever is killed meanwhile.

Its file lies in ``arrived/`` until all of it is in the run folder. Folding it again adds only what is lacking, so what
a kill left half-folded is finished before anything else.
"""

import shutil
import tarfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from dbdyno.hosts.contract import LieError
from dbdyno.model.printable import short
from dbdyno.run.fleet.block_check import BlockCheck
from dbdyno.run.fleet.message import fit_text
from dbdyno.run.fleet.packed import events_of, in_block, unpack_block
from dbdyno.store.events import Dropped, Event, Failed, Finished, Lost, Note, TrialEvent, line_of
from dbdyno.store.run_folder import RunFolder, read_header
from dbdyno.store.synced import sync
from dbdyno.store.trials import TRIAL, read_trial

ARRIVED = "arrived"


def arriving(run: Path, host: str, start: int) -> Path:
    """Where the file of a block is put, before it counts as arrived; ``start`` is of the host's program."""
    folder = run / ARRIVED
    folder.mkdir(exist_ok=True)
    return folder / f".{host}.{start}.part"


def has_arrived(part: Path, host: str, block: int) -> Path:
    """Have it on disk, under the name by which it counts: the host, and the block by the host's own count."""
    path = part.with_name(f"{host}.{block}.tar")
    sync(part)
    part.replace(path)
    sync(path.parent)
    return path


def blocks_of(run: RunFolder) -> dict[str, list[int]]:
    """Host -> the numbers of its blocks in the run here, in the order of its own count."""
    found: dict[str, dict[int, None]] = {}
    for (block, _), attempt in run.history.attempts.items():
        found.setdefault(attempt.host, {})[block] = None
    return {host: list(blocks) for host, blocks in found.items()}


def fold_leftovers(run: RunFolder) -> list[Note]:
    """Fold what had arrived when the process here was killed, and remove what had not; what is to be said of it."""
    folder, notes = run.path / ARRIVED, []
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.suffix == ".tar" and not path.is_dir():
            try:
                fold(run, path)
            except LieError as error:
                notes.append(Note(f"{error}; it is measured again"))
        elif path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    return notes


def fold(run: RunFolder, path: Path) -> int:
    """Fold the block of a file that has arrived, and remove the file; the block's number here.

    Raises ``LieError`` where it is no block that the host can have. Nothing of it is then in the run.
    """
    host, _, count = path.stem.rpartition(".")
    unpacked = path.with_suffix("")
    shutil.rmtree(unpacked, ignore_errors=True)
    unpacked.mkdir()
    try:
        return _fold(run, path, unpacked, host, int(count))
    except LieError:
        path.unlink()
        raise
    finally:
        shutil.rmtree(unpacked, ignore_errors=True)


def _fold(run: RunFolder, path: Path, unpacked: Path, host: str, count: int) -> int:
    events = _checked(BlockCheck(read_header(run.path).design, host, count), path, unpacked)
    known = blocks_of(run)
    blocks = known.get(host, [])
    again = count <= len(blocks)  # begun by a process that was killed
    number = blocks[count - 1] if again else max((max(one) for one in known.values()), default=0) + 1
    there = Counter(map(_identity, events_of(run.path, number))) if again else Counter[bytes]()
    for event in _of_the_run(events):
        its = _named(event, number, host)
        if there[_identity(its)]:
            there[_identity(its)] -= 1
        else:
            _add(run, event, its, unpacked)
    path.unlink()
    sync(path.parent)
    return number


def _checked(check: BlockCheck, path: Path, unpacked: Path) -> list[Event]:
    """The events of the block, its files being unpacked. Raises ``LieError``."""
    trials = check.slots.keys()
    try:
        events = unpack_block(path, unpacked, lambda name: check.limit_of(trials, name))
    except (tarfile.TarError, ValueError) as error:
        raise check.lie(short(str(error).removeprefix(f"{path}: "))) from None
    check.check(events, unpacked)
    return events


def _of_the_run(events: list[Event]) -> Iterable[Event]:
    """The events but for trials whose files were lost on their host: of these only the reason stays, as a note."""
    lost = {event.trial for event in events if isinstance(event, Lost)}
    said = set[str]()
    for event in events:
        if isinstance(event, Lost):
            if event.text not in said:
                yield Note(event.text)
            said.add(event.text)
        elif not (isinstance(event, Finished) and event.trial in lost):
            yield event


def _add(run: RunFolder, event: Event, its: Event, unpacked: Path) -> None:
    """Add an event of the host's as it is to be here, and before it the files that it is about."""
    if isinstance(event, Finished) and isinstance(its, Finished):
        trial, folder = read_trial(unpacked, event), run.trial_folder(its.trial)
        _move(unpacked / "trials" / event.trial, folder)
        cuts = [one if (folder / one.kept).is_dir() else replace(one, kept="") for one in trial.cuts]
        run.finish(replace(trial, id=its.trial, block=its.block, host=its.host, cuts=cuts), {})
        return
    if isinstance(event, Failed) and isinstance(its, Failed):
        _move(unpacked / "trials" / event.trial, run.trial_folder(its.trial))
    run.append(its)


def _named(event: Event, number: int, host: str) -> Event:
    """The event with the block's number here, and with the host."""
    if isinstance(event, TrialEvent):
        its = in_block(event, number, host)
        return replace(its, cause=fit_text(its.cause)) if isinstance(its, Failed) else its
    if isinstance(event, Note):
        return Note(f"{host}: {fit_text(event.text)}", given_up=number if event.given_up is not None else None)
    return replace(event, text=f"{host}: {fit_text(event.text)}") if isinstance(event, Dropped) else event


def _identity(event: Event) -> bytes:
    """What an event is known by; the sums of files are none of it, as a trial's own file has its new name inside."""
    return line_of(replace(event, sha256={}) if isinstance(event, Finished) else event)


def _move(source: Path, target: Path) -> None:
    """Move the files of a trial, on disk when this returns; its own file is written anew by who calls."""
    if not source.is_dir():
        return
    for path in sorted(source.rglob("*")):
        place = target / path.relative_to(source)
        if path.is_dir():
            place.mkdir(exist_ok=True)
        elif path.name != TRIAL:
            path.replace(place)
            sync(place)
    sync(target)
