"""A block that a host has handed over becomes a block of the run here: once, whole, whatever is killed meanwhile.

Its file lies in ``arrived/`` until all of it is in the run folder. Folding it again adds only what is lacking, so what
a kill left half-folded is finished before anything else.
"""

import shutil
import tarfile
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from dbdyno.errors import UserError
from dbdyno.hosts.contract import LieError
from dbdyno.model.design import Design
from dbdyno.model.printable import short
from dbdyno.plan.order import Slot, seed_of_host, slots_of
from dbdyno.run.execute import FAILURES_TO_DROP
from dbdyno.run.fleet.message import EVENTS, events_of, fit_text, in_block, unpack_block
from dbdyno.run.guest import check_numbers, check_series
from dbdyno.run.sparse_tar import FILE_BYTES_MAX
from dbdyno.store.cuts import CUT_ID, CUTS
from dbdyno.store.events import Dropped, Event, Failed, Finished, Lost, Note, Started, TrialEvent, line_of
from dbdyno.store.parts import sync
from dbdyno.store.run_folder import RunFolder, read_header
from dbdyno.store.series import BYTES_MAX
from dbdyno.store.trials import TRIAL, read_trial

# Whether a block that a host has handed over is one that it can have: checked whole before anything of it counts.
#
# The host may lie. So a block holds events and files of the trials that the plan has for it, and of nothing else; what
# they say fits together, and can be read. A block that is not so is refused whole.


ATTEMPTS_MAX = 50  # at one block; a host makes 3, and one more each time that it was killed in the middle of it
_EVENTS_MAX = 100_000
_EVENTS_BYTES_MAX = 16 * 1024**2


@dataclass(frozen=True)
class BlockCheck:
    """What the run knows of a block that a host was let run: ``number`` is by the host's own count."""

    design: Design
    host: str
    number: int

    @cached_property
    def slots(self) -> dict[str, Slot]:
        """Trial -> its place, of all trials that the block can have."""
        fleet = self.design.fleet
        seed = seed_of_host(self.design.seed, self.host, fleet) if fleet else self.design.seed
        its = replace(self.design, seed=seed, fleet=None)
        attempts = range(1, ATTEMPTS_MAX + 1)
        return {slot.id: slot for attempt in attempts for slot in slots_of(its, self.number, attempt)}

    def limit_of(self, trials: Collection[str], name: str) -> int | None:
        """How large a file of that name may be; ``None`` where a block holds none of it."""
        match name.split("/"):
            case [file] if file == EVENTS:
                return _EVENTS_BYTES_MAX
            case ["trials", trial, *below] if trial in trials:
                match below:
                    case [] | [_] | ["clients", _] | ["clients", _, _]:
                        return BYTES_MAX
                    case [cuts, cut] | [cuts, cut, _] if cuts == CUTS and CUT_ID.fullmatch(cut):
                        return FILE_BYTES_MAX
        return None

    def check(self, events: Sequence[Event], folder: Path) -> None:
        """Raise ``LieError`` where events and the files in ``folder`` are none of this block."""
        try:
            self._check_events(events)
            kept = _finished_trials(events)
            for event in kept:
                self._check_trial(folder, event)
            check_series(folder, kept)
        except UserError as error:
            raise self.lie(str(error).partition("; ")[0].replace(f"{folder}/", "")) from None
        except ValueError as error:
            raise self.lie(str(error)) from None

    def lie(self, why: str) -> LieError:
        """What is said where it is refused."""
        return LieError(f"{self.host}: its block {self.number} is refused: {why}")

    def _check_events(self, events: Sequence[Event]) -> None:
        if len(events) > _EVENTS_MAX:
            raise ValueError(f"it has more than {_EVENTS_MAX} events")
        of_trials = [event for event in events if isinstance(event, TrialEvent)]
        self._check_trials_events(of_trials)
        failed = Counter(treatment for treatment, _ in {(e.treatment, e.attempt) for e in of_trials if _is_failure(e)})
        for event in events:
            match event:
                case TrialEvent() | Note(given_up=None):
                    pass
                case Note(given_up=block):
                    if block != self.number:
                        raise ValueError(f"it gives up block {block}")
                case Dropped():
                    if failed[event.treatment] < FAILURES_TO_DROP:
                        raise ValueError("it drops a treatment that did not fail repeatedly")
                case _:
                    raise ValueError(
                        f"it holds an event that does not belong to a block: {type(event).__name__.lower()}"
                    )

    def _check_trials_events(self, events: Sequence[TrialEvent]) -> None:
        """Raise ``ValueError`` where an event is of no trial of the block, or comes after the trial's end."""
        ended = dict[str, TrialEvent]()
        for event in events:
            self._check_place(event)
            before = ended.get(event.trial)
            if isinstance(before, Finished) != isinstance(event, Lost) or isinstance(before, Failed | Lost):
                raise ValueError(f"{event.trial} went on after its end, or was lost and had not finished")
            if not isinstance(event, Started):
                ended[event.trial] = event
        begun = {event.attempt for event in events}
        if not ended or max(begun) != len(begun):
            raise ValueError("it holds no trial that ended, or attempts are missing")

    def _check_place(self, event: TrialEvent) -> None:
        slot = self.slots.get(event.trial)
        event_slot = event.block, event.attempt, event.treatment, event.host
        if slot is None or event_slot != (slot.block, slot.attempt, slot.treatment, ""):
            raise ValueError(f"{event.trial} is not one of its trials")

    def _check_trial(self, folder: Path, event: Finished) -> None:
        """Raise ``UserError`` or ``ValueError`` where what is said of a trial can't be read, or can't be its."""
        trial = read_trial(folder, event)
        if trial.position != self.slots[event.trial].position:
            raise ValueError(f"{trial.id} has the wrong position")
        check_numbers(trial)
        files = {path.name for path in (folder / "trials" / trial.id).iterdir()}
        if missing := event.sha256.keys() - files:
            raise ValueError(f"{trial.id} lacks {', '.join(sorted(missing))}")
        for name in sorted(files - event.sha256.keys()):
            if name.endswith(".parquet"):
                raise ValueError(f"{trial.id}: {name} has no SHA-256")


def _is_failure(event: TrialEvent) -> bool:
    return isinstance(event, Failed)


def _finished_trials(events: Iterable[Event]) -> list[Finished]:
    """The trials that finished and were not lost since."""
    last = {event.trial: event for event in events if isinstance(event, Finished | Lost)}
    return [event for event in last.values() if isinstance(event, Finished)]


ARRIVED = "arrived"


def arrival_path(run: Path, host: str, start: int) -> Path:
    """The path of a block's file before it counts as arrived; ``start`` is of the host's program."""
    folder = run / ARRIVED
    folder.mkdir(exist_ok=True)
    return folder / f".{host}.{start}.part"


def accept_arrival(part: Path, host: str, block: int) -> Path:
    """Have it on disk, under the name by which it counts: the host, and the block by the host's own count."""
    path = part.with_name(f"{host}.{block}.tar")
    sync(part)
    part.replace(path)
    sync(path.parent)
    return path


def host_blocks(run: RunFolder) -> dict[str, list[int]]:
    """Host -> the numbers of its blocks in the run here, in the order of its own count."""
    blocks_by_host: dict[str, dict[int, None]] = {}
    for (block, _), attempt in run.history.attempts.items():
        blocks_by_host.setdefault(attempt.host, {})[block] = None
    return {host: list(blocks) for host, blocks in blocks_by_host.items()}


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
    events = _unpack_checked(BlockCheck(read_header(run.path).design, host, count), path, unpacked)
    known = host_blocks(run)
    blocks = known.get(host, [])
    again = count <= len(blocks)  # begun by a process that was killed
    number = blocks[count - 1] if again else max((max(numbers) for numbers in known.values()), default=0) + 1
    there = Counter(map(_identity, events_of(run.path, number))) if again else Counter[bytes]()
    for event in _run_events(events):
        its = _renamed_event(event, number, host)
        if there[_identity(its)]:
            there[_identity(its)] -= 1
        else:
            _add(run, event, its, unpacked)
    path.unlink()
    sync(path.parent)
    return number


def _unpack_checked(check: BlockCheck, path: Path, unpacked: Path) -> list[Event]:
    """The events of the block, its files being unpacked. Raises ``LieError``."""
    trials = check.slots.keys()
    try:
        events = unpack_block(path, unpacked, lambda name: check.limit_of(trials, name))
    except (tarfile.TarError, ValueError) as error:
        raise check.lie(short(str(error).removeprefix(f"{path}: "))) from None
    check.check(events, unpacked)
    return events


def _run_events(events: list[Event]) -> Iterable[Event]:
    """The events but for trials whose files were lost on their host: of these only the reason stays, as a note."""
    lost = {event.trial for event in events if isinstance(event, Lost)}
    note_texts = set[str]()
    for event in events:
        if isinstance(event, Lost):
            if event.text not in note_texts:
                yield Note(event.text)
            note_texts.add(event.text)
        elif not (isinstance(event, Finished) and event.trial in lost):
            yield event


def _add(run: RunFolder, event: Event, its: Event, unpacked: Path) -> None:
    """Add an event of the host's as it is to be here, and before it the files that it is about."""
    if isinstance(event, Finished) and isinstance(its, Finished):
        trial, folder = read_trial(unpacked, event), run.trial_folder(its.trial)
        _move(unpacked / "trials" / event.trial, folder)
        cuts = [cut if (folder / cut.kept).is_dir() else replace(cut, kept="") for cut in trial.cuts]
        run.finish(replace(trial, id=its.trial, block=its.block, host=its.host, cuts=cuts), {})
        return
    if isinstance(event, Failed) and isinstance(its, Failed):
        _move(unpacked / "trials" / event.trial, run.trial_folder(its.trial))
    run.append(its)


def _renamed_event(event: Event, number: int, host: str) -> Event:
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
