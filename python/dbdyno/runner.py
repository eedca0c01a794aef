"""All trials of a run: in order, block by block; what happens when one fails; and going on after a kill."""

from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from dbdyno.errors import HostError, TrialError, UserError
from dbdyno.images import Images
from dbdyno.interrupt import Interrupted, interruptible, shielded
from dbdyno.plan.plan import Plan, Slot
from dbdyno.stack.journal import Journal, leftovers
from dbdyno.store import run_folder
from dbdyno.store.run_folder import RunFolder
from dbdyno.trial import run_trial

ATTEMPTS = 3  # at one block, before it is given up
FAILURES_TO_DROP = 2  # of one treatment in one block: it fails again and again, which is a result of its own


class Progress(Protocol):
    """Where a run says how far it is."""

    def say(self, text: str) -> None:
        """One line for the user."""

    def trial(self, slot: Slot, label: str, done: int, total: int) -> None:
        """A trial begins; ``done`` of ``total`` are finished."""

    def trial_done(self, seconds: float) -> None:
        """It has ended, after so long."""


@dataclass
class _State:
    """What the journal says has happened; replaying it is how a run goes on."""

    finished: set[tuple[int, int, str]] = field(default_factory=set)  # block, attempt, treatment
    failed: Counter[tuple[int, str]] = field(default_factory=Counter)  # block, treatment -> times
    void: set[tuple[int, int]] = field(default_factory=set)  # block, attempt in which a treatment failed that counts
    dropped: set[str] = field(default_factory=set)
    given_up: set[int] = field(default_factory=set)  # blocks
    _last: tuple[int, int] = (0, 0)  # block, attempt of the latest failure

    @classmethod
    def of(cls, path: Path) -> "_State":
        state = cls()
        for event in run_folder.events(path):
            if event["event"] == "finished":
                state.finished.add((event["block"], event["attempt"], event["treatment"]))
            elif event["event"] == "failed":
                state.add_failure(Slot(event["block"], event["attempt"], 0, event["treatment"]))
            elif event["event"] == "dropped":
                state.drop(event["treatment"])
            elif event["event"] == "note" and "given_up" in event:
                state.given_up.add(event["given_up"])
        return state

    def add_failure(self, slot: Slot) -> None:
        self.failed[slot.block, slot.treatment] += 1
        self.void.add((slot.block, slot.attempt))
        self._last = (slot.block, slot.attempt)

    def drop(self, treatment: str) -> None:
        """Leave a treatment out. The attempt it has just failed in goes on without it; earlier ones stay void."""
        self.dropped.add(treatment)
        self.void.discard(self._last)

    def unfinished(self, plan: Plan) -> int | None:
        """The block that has been begun but not finished, if any."""
        if not self.finished:
            return None
        last = max((block, attempt) for block, attempt, _ in self.finished)
        begun = {treatment for block, attempt, treatment in self.finished if (block, attempt) == last}
        return last[0] if set(plan.specs) - self.dropped - begun and last not in self.void else None

    def done(self) -> int:
        """Trials finished so far, repetitions of a block not counted."""
        return len({(block, treatment) for block, _, treatment in self.finished})


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    how: str  # "done", "interrupted", "failed"
    failures: int


def open_run(plan: Plan, into: Path, *, resume: bool, versions: dict[str, str], host: dict[str, Any]) -> RunFolder:
    """A new run folder, or the one to go on with. Raises ``UserError`` where it is another study's."""
    header = _header(plan, versions)
    if not resume or not (into / "run.toml").exists():
        return run_folder.create(into, header, host)
    held = run_folder.run_header(into)
    if held["run"]["study_sha256"] != plan.study_sha256():
        raise UserError(
            f"{into} holds a run of another study (or this one has been changed since); use a new folder, "
            "or delete that one if it is not needed"
        )
    if held["run"]["seed"] != plan.design.seed:
        raise UserError(f"{into} was begun with seed {held['run']['seed']}; go on without --seed, or use a new folder")
    if [held.get(part) for part in ("treatment", "comparison")] != [
        header[part] for part in ("treatment", "comparison")
    ]:
        raise UserError(f"{into} was begun with other comparisons; a design is not changed under way: use a new folder")
    if held["run"]["margin"] != plan.design.margin:
        raise UserError(f"{into} was begun with margin {held['run']['margin']:.3g}; use a new folder for another")
    folder = RunFolder(into)
    for name, version in versions.items():
        was = held["versions"].get(name)
        if was != version and name.startswith("server "):
            folder.close()
            raise UserError(f"{into} was begun with {name} {was}, now it is {version}; trials of two can't be one run")
        if was != version:
            folder.note("note", text=f"{name} changed from {was} to {version} while the run was interrupted")
    return folder


def run_all(plan: Plan, folder: RunFolder, progress: Progress, erase: frozenset[str]) -> Outcome:
    """Run what is missing. Trials that fail are journalled; ``HostError`` ends the run after it was journalled."""
    run_folder.preload()
    state = _State.of(folder.path)
    resumed = any(True for _ in run_folder.events(folder.path))
    folder.note("resumed" if resumed else "planned", blocks=plan.design.blocks)
    if resumed and (block := state.unfinished(plan)):
        folder.note("note", text=f"The run was interrupted and gone on with later, in the middle of block {block}.")
    for other in leftovers():
        if not other.orphaned() and other.what.startswith("run "):
            text = f"Another dbdyno was running beside this one when it began (pid {other.owner.pid})."
            folder.note("note", text=text)
            progress.say(f"warning: {text}")
    journal = Journal(f"run {plan.study.path} into {folder.path}")
    how = "failed"
    try:
        with interruptible(progress.say), Images(journal, erase, progress.say) as images:
            _Runner(plan, folder, state, images, journal, progress, erase).run()
        how = "done"
    except Interrupted:
        how = "interrupted"
    except TrialError as error:
        raise HostError(str(error)) from None
    finally:
        journal.close()
        folder.note("ended", how=how)
    return Outcome(how, sum(state.failed.values()))


@dataclass(frozen=True)
class _Runner:
    """What the trials of one run share."""

    plan: Plan
    folder: RunFolder
    state: _State
    images: Images
    journal: Journal
    progress: Progress
    erase: frozenset[str]

    def run(self) -> None:
        """Every block; a block with a failed trial is repeated whole, up to ``ATTEMPTS`` times."""
        for block in range(1, self.plan.design.blocks + 1):
            for attempt in range(1, ATTEMPTS + 1):
                self._attempt(block, attempt)
                if self._complete(block, attempt):
                    break
            else:
                self._give_up(block)

    def _give_up(self, block: int) -> None:
        if block not in self.state.given_up:
            text = f"block {block} was given up after {ATTEMPTS} attempts"
            self.folder.note("note", text=text, given_up=block)
            self.progress.say(text)

    def _attempt(self, block: int, attempt: int) -> None:
        for slot in self.plan.slots(block, attempt):
            if (block, attempt) in self.state.void:
                return
            done = (block, attempt, slot.treatment) in self.state.finished
            if not done and slot.treatment not in self.state.dropped:
                self._trial(slot)

    def _trial(self, slot: Slot) -> None:
        """Run and store one trial, or journal why it failed."""
        total = self.plan.design.blocks * len(self.plan.design.treatments)
        self.progress.trial(slot, self._label(slot), self.state.done(), total)
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

    def _complete(self, block: int, attempt: int) -> bool:
        return all((block, attempt, treatment) in self.state.finished for treatment in self._live())


def _header(plan: Plan, versions: dict[str, str]) -> dict[str, Any]:
    design = plan.design
    return {
        "run": {
            "title": plan.study.about.title,
            **plan.study.about.model_dump(exclude={"title"}),
            "seed": design.seed,
            "blocks": design.blocks,
            "margin": design.margin,
            "metric": design.metric,
            "until": design.until,
            **({"half_width": design.half_width} if design.half_width is not None else {}),
            **({"budget_seconds": design.budget_seconds} if design.budget_seconds is not None else {}),
            "screened": design.screened,
            "baseline": design.baseline,
            "study_sha256": plan.study_sha256(),
        },
        "versions": versions,
        **({"aa": asdict(design.aa)} if design.aa else {}),
        "factor": [asdict(factor) for factor in design.factors],
        "treatment": [asdict(treatment) for treatment in design.treatments],
        "comparison": [asdict(comparison) for comparison in design.comparisons],
        "study": plan.study.raw,
        **plan.own_files,
    }
