"""Whether a block that a host has handed over is one that it can have: checked whole before anything of it counts.

The host may lie. So a block holds events and files of the trials that the plan has for it, and of nothing else; what
they say fits together, and can be read. A block that is not so is refused whole.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path

from dbdyno.errors import UserError
from dbdyno.hosts.contract import LieError
from dbdyno.model.design import Design
from dbdyno.plan.order import Slot, seed_of_host, slots_of
from dbdyno.run.execute import FAILURES_TO_DROP
from dbdyno.run.fleet.packed import EVENTS
from dbdyno.run.sparse_tar import FILE_BYTES_MAX
from dbdyno.store.cuts import CUT_ID, CUTS, is_at_its_place
from dbdyno.store.events import Dropped, Event, Failed, Finished, Lost, Note, Started, TrialEvent
from dbdyno.store.latencies import COLUMNS, LATENCIES, latencies_in
from dbdyno.store.records import Trial
from dbdyno.store.series_files import BYTES_MAX, Asked, read_each
from dbdyno.store.trials import read_trial

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
            case [one] if one == EVENTS:
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
            kept = _that_stay(events)
            for event in kept:
                self._check_trial(folder, event)
            _check_series(folder, kept)
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
                        raise ValueError("it leaves out a treatment that did not fail again and again")
                case _:
                    raise ValueError(f"it holds an event that is none of a block: {type(event).__name__.lower()}")

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
        said = event.block, event.attempt, event.treatment, event.host
        if slot is None or said != (slot.block, slot.attempt, slot.treatment, ""):
            raise ValueError(f"{event.trial} is no trial of it")

    def _check_trial(self, folder: Path, event: Finished) -> None:
        """Raise ``UserError`` or ``ValueError`` where what is said of a trial can't be read, or can't be its."""
        trial = read_trial(folder, event)
        if trial.position != self.slots[event.trial].position:
            raise ValueError(f"{trial.id} stood in another place")
        _check_numbers(trial)
        files = {path.name for path in (folder / "trials" / trial.id).iterdir()}
        if missing := event.sha256.keys() - files:
            raise ValueError(f"{trial.id} lacks {', '.join(sorted(missing))}")
        for name in sorted(files - event.sha256.keys()):
            if name.endswith(".parquet"):
                raise ValueError(f"{trial.id}: {name} has no SHA-256")


def _check_series(folder: Path, events: Sequence[Finished]) -> None:
    """Raise ``UserError`` where the series of the trials can't be read within what is allowed to all of them."""
    asked = [
        Asked(event.trial, series, COLUMNS if series == LATENCIES else ".*")
        for event in events
        for series in sorted(Path(name).stem for name in event.sha256 if name.endswith(".parquet"))
    ]
    for one, columns in read_each(folder, asked, {event.trial: event.sha256 for event in events}):
        if one.series == LATENCIES:
            latencies_in(folder, one.trial, columns)


def _is_failure(event: TrialEvent) -> bool:
    return isinstance(event, Failed)


def _that_stay(events: Iterable[Event]) -> list[Finished]:
    """The trials that finished and were not lost since."""
    last = {event.trial: event for event in events if isinstance(event, Finished | Lost)}
    return [event for event in last.values() if isinstance(event, Finished)]


def _check_numbers(trial: Trial) -> None:
    """Raise ``ValueError`` where a figure is none, or a cut names a state outside of its own folder."""
    for name, value in [*trial.metrics.items(), *trial.seconds.items(), *trial.host_speed.items()]:
        if not math.isfinite(value) or value < 0:
            raise ValueError(f"{trial.id}: {name} is {value}")
    ids = [cut.id for cut in trial.cuts]
    if len(set(ids)) != len(ids):
        raise ValueError(f"{trial.id} has a cut twice")
    for cut in trial.cuts:
        if not CUT_ID.fullmatch(cut.id) or (cut.kept and not is_at_its_place(cut)):
            raise ValueError(f"{trial.id}: a cut has a name or a folder that is none")
        for name, value in [*asdict(cut).items(), *cut.recovery_s.items()]:
            if isinstance(value, int | float) and not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{trial.id}: {name} of cut {cut.id} is {value}")
