"""All trials of a run: in order, block by block, and what happens when one fails."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from dbdyno.analysis.blocks import FAILURES_TO_DROP
from dbdyno.analysis.disturbed import beyond
from dbdyno.errors import HostError, TrialError
from dbdyno.images import Images
from dbdyno.interrupt import Interrupted, interruptible, shielded
from dbdyno.plan.plan import Plan, Slot
from dbdyno.resume import State, begin, pace_of
from dbdyno.stack.journal import Journal
from dbdyno.stop import Outlook, Stop
from dbdyno.store import run_folder
from dbdyno.store.records import Trial, Why
from dbdyno.store.run_folder import RunFolder
from dbdyno.trial import run_trial

ATTEMPTS = 3  # at one block, before it is given up
PATIENCE = 2  # blocks that stayed disturbed at every attempt: from then on repeating is no remedy on this host


class Progress(Protocol):
    """Where a run says how far it is."""

    def say(self, text: str) -> None:
        """One line for the user."""

    def trial(self, slot: Slot, label: str, done: int, outlook: Outlook) -> None:
        """A trial begins; ``done`` are finished."""

    def trial_done(self, seconds: float) -> None:
        """It has ended, after so long."""


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    how: str  # "done", "interrupted", "failed"
    failures: int


def run_all(
    plan: Plan, folder: RunFolder, progress: Progress, erase: frozenset[str], *, fresh_images: bool = False
) -> Outcome:
    """Run what is missing. Trials that fail are journalled; ``HostError`` ends the run after it was journalled."""
    run_folder.preload()
    state = State.of(folder.path)
    begin(plan, folder, state)
    stop = Stop(folder.path, plan.design, pace_of(folder, state), progress.say)
    ended: dict[str, str] = {"how": "failed"}
    with suppress(Interrupted), interruptible(progress.say):
        journal = Journal(f"run {plan.study.path} into {folder.path}")
        try:
            with Images(journal, erase, progress.say, fresh=fresh_images) as images:
                why = _Runner(plan, folder, state, images, journal, progress, erase, stop).run()
            ended = {"how": "done", "why": why}
        except Interrupted:
            ended = {"how": "interrupted"}
        except TrialError as error:
            raise HostError(str(error)) from None
        finally:
            with shielded():  # a signal that comes now finds the run ended
                journal.close()
                folder.note("ended", **ended)
    return Outcome(ended["how"], sum(state.failed.values()))


@dataclass(frozen=True)
class _Runner:
    """What the trials of one run share."""

    plan: Plan
    folder: RunFolder
    state: State
    images: Images
    journal: Journal
    progress: Progress
    erase: frozenset[str]
    stop: Stop

    def run(self) -> Why:
        """Block after block, and why there are no more.

        One with a failed trial is repeated whole, up to ``ATTEMPTS`` times; so is one with a disturbed trial, which is
        kept at the last attempt. After ``PATIENCE`` blocks that had to be kept so, no block is repeated for that.
        """
        for block in range(1, self.plan.design.blocks + 1):
            if not self.state.has_begun(block) and (why := self.stop.before(block)):
                return why
            self._block(block)
        return self.stop.look(self.plan.design.blocks) or "blocks"

    def _block(self, block: int) -> None:
        ran = len(self.state.finished)
        self.stop.pace.begin()
        for attempt in range(1, ATTEMPTS + 1):
            self._attempt(block, attempt)
            if self._complete(block, attempt):
                break
        else:
            if not any(self._whole(block, attempt) for attempt in range(1, ATTEMPTS + 1)):
                self._give_up(block)
        if len(self.state.finished) > ran:
            self.stop.pace.end()
            if self._patient(block) and not self._patient(block + 1):
                self.progress.say(
                    f"{PATIENCE} blocks stayed disturbed at every attempt: from here on no block is repeated for that; "
                    "end what else runs on this host, or measure when it is quiet"
                )

    def _give_up(self, block: int) -> None:
        if block not in self.state.given_up:
            text = f"block {block} was given up after {ATTEMPTS} attempts"
            self.folder.note("note", text=text, given_up=block)
            self.progress.say(text)

    def _attempt(self, block: int, attempt: int) -> None:
        for slot in self.plan.slots(block, attempt):
            if (block, attempt) in self.state.void or self._too_disturbed(block, attempt):
                return
            done = (block, attempt, slot.treatment) in self.state.finished
            if not done and slot.treatment not in self.state.dropped:
                self._trial(slot)

    def _trial(self, slot: Slot) -> None:
        """Run and store one trial, or journal why it failed."""
        self.progress.trial(slot, self._label(slot), self.state.done(), self.stop.outlook)
        where = self.folder.trial_folder(slot.id)
        about = {"trial": slot.id, "block": slot.block, "attempt": slot.attempt, "treatment": slot.treatment}
        self.folder.note("started", **about)
        spec, seed = self.plan.specs[slot.treatment], self.plan.trial_seed(slot.block)
        try:
            self.plan.check_own_files()
            image = self.images.of(spec)
            measured = run_trial(slot, spec, image, seed=seed, folder=where, journal=self.journal, erase=self.erase)
        except OSError as error:
            raise HostError(f"{error.filename or where}: {error.strerror or error}") from None
        except (TrialError, HostError) as error:
            self.folder.note("failed", **about, cause=str(error))
            self.state.add_failure(slot)
            if isinstance(error, HostError):
                raise
            self._failed(slot, str(error))
        else:
            with shielded():
                self.folder.finish(measured.trial, measured.series)
                self.state.finished.add((slot.block, slot.attempt, slot.treatment))
                if measured.trial.disturbed:
                    self.state.disturbed.add((slot.block, slot.attempt))
            self._tell_disturbed(measured.trial)
            self.progress.trial_done(sum(measured.trial.seconds.values()))

    def _failed(self, slot: Slot, cause: str) -> None:
        """Say so; leave a treatment out for good once it has failed again and again."""
        self.progress.say(f"{slot.id} ({self._label(slot)}) failed: {cause}")
        if self.state.failed[slot.block, slot.treatment] < FAILURES_TO_DROP:
            self.progress.say(f"block {slot.block} is repeated whole: a block counts only with all its trials")
            return
        text = f"{self._label(slot)} failed {FAILURES_TO_DROP} times in block {slot.block} and is left out: {cause}"
        self.state.drop(slot.treatment)
        self.folder.note("dropped", treatment=slot.treatment, text=text)
        self.progress.say(text)
        if self.plan.design.baseline in self.state.dropped or len(self._live()) < min(2, len(self.plan.specs)):
            raise HostError(f"the run stops, nothing is left to compare: {text}")

    def _label(self, slot: Slot) -> str:
        return next(t.label for t in self.plan.design.treatments if t.id == slot.treatment)

    def _live(self) -> set[str]:
        return set(self.plan.specs) - self.state.dropped

    def _tell_disturbed(self, trial: Trial) -> None:
        if trial.disturbed:
            self.progress.say(f"{trial.id} was disturbed: {'; '.join(beyond(trial))}")
            if self.plan.design.disturbed == "note":
                return
            again = self._too_disturbed(trial.block, trial.attempt)
            self.progress.say(f"block {trial.block} is {'repeated whole' if again else 'kept all the same'}")

    def _too_disturbed(self, block: int, attempt: int) -> bool:
        """Whether an attempt holds a trial that others disturbed, and is to be repeated for it."""
        repeated = self.plan.design.disturbed == "repeat" and attempt < ATTEMPTS and self._patient(block)
        return repeated and (block, attempt) in self.state.disturbed

    def _patient(self, block: int) -> bool:
        """Whether repeating may still help: too few blocks before this one stayed disturbed at every attempt."""
        kept = {before for before, attempt in self.state.disturbed if attempt == ATTEMPTS and before < block}
        return len(kept) < PATIENCE

    def _complete(self, block: int, attempt: int) -> bool:
        """Whether no further attempt at the block is needed."""
        return self._whole(block, attempt) and not self._too_disturbed(block, attempt)

    def _whole(self, block: int, attempt: int) -> bool:
        return (block, attempt) not in self.state.void and all(
            (block, attempt, treatment) in self.state.finished for treatment in self._live()
        )
