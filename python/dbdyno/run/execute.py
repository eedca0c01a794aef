"""All trials of a run: in order, block by block, and what happens when one fails."""

import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from dbdyno.analysis.blocks import usable_blocks
from dbdyno.errors import HostError, TrialError, UserError
from dbdyno.model.design import Design, StopReason
from dbdyno.plan.order import Slot
from dbdyno.plan.plan import Plan
from dbdyno.plan.stop_rule import StopRule
from dbdyno.probe.block_trace import Record
from dbdyno.run.guest import run_in_guest
from dbdyno.run.images import Images
from dbdyno.run.over_hosts import simulating
from dbdyno.run.ports import HOST, Ports
from dbdyno.run.profile import Profiling
from dbdyno.run.stop import Deciding, Outlook, StartAnew, Stop, pace_of
from dbdyno.run.trial import StepsRun, TrialStep, TrialTerms, run_steps
from dbdyno.stack.erase import Erasing
from dbdyno.stack.undo_log import Journal
from dbdyno.store import run_folder
from dbdyno.store.block_trace import KEPT, KEPT_BYTES_MAX
from dbdyno.store.events import Dropped, Ended, Event, Failed, Note, Planned, Resumed, Started
from dbdyno.store.header import Header
from dbdyno.store.records import Run, Trial
from dbdyno.store.run_folder import RunFolder, read_header, read_run
from dbdyno.store.trials import lost_trials
from dbdyno.store.void_blocks import ATTEMPTS, PATIENCE, History, attempts_that_count
from dbdyno.study.units import format_seconds
from dbdyno.system.files import GO_ON, first_full, is_full, why_not_written
from dbdyno.system.interrupt import Interrupted, interruptible, shielded
from dbdyno.system.state import state_folder
from dbdyno.workload.simulated import point_of

# Whether a run may be gone on with, and how: decided by what its folder holds; nothing is written here.


def see_that_it_is_the_same(plan: Plan, into: Path) -> Header:
    """The header of the run that ``into`` holds. Raises ``UserError`` unless this plan would begin it as it was."""
    header = read_header(into)
    if header.imported:
        raise UserError(f"{into} was measured elsewhere and imported, so it can't be gone on with; use a new folder")
    if header.study_sha256 != plan.study_sha256():
        raise UserError(
            f"{into} holds a run of another study (or this one has been changed since); use a new folder, "
            "or delete that one if it is not needed"
        )
    if header.design.seed != plan.design.seed:
        raise UserError(f"{into} was begun with seed {header.design.seed}; go on without --seed, or use a new folder")
    if _tried(header.design) != _tried(plan.design):
        raise UserError(f"{into} was begun with other comparisons; a run keeps its design: use a new folder")
    if header.design.margin != plan.design.margin:
        raise UserError(f"{into} was begun with margin {header.design.margin:.3g}; use a new folder for another")
    if header.design.fail_if != plan.design.fail_if:
        raise UserError(f"{into} was begun with another [fail_if]; a run keeps it: use a new folder")
    decided = all(spec.host.awake != "auto" for spec in plan.specs.values())
    if decided and sorted(header.awake) != sorted(plan.awake()):
        kept = "kept awake" if header.awake else "not kept awake"
        raise UserError(
            f"{into} was begun with processors {kept} for {', '.join(header.awake) or 'all treatments'}, and "
            f'host.awake = "auto" decides otherwise now; use a new folder'
        )
    design = read_run(into, without=[lost_trial.trial for lost_trial in lost_trials(into)]).design
    if design.interference != plan.design.interference:
        raise UserError(f"{into} was begun with interference = {design.interference!r}; a run keeps that")
    if plan.design.until != "open" and StopRule.of_run(plan.design) != StopRule.of_run(design):
        raise UserError(f"{into} was begun with another stopping rule; a run keeps its own")
    return header


def _tried(design: Design) -> tuple[object, ...]:
    """What is run and compared."""
    return design.treatments, design.comparisons, design.control


def changed_versions(into: Path, header: Header, versions: dict[str, str]) -> list[Note]:
    """What is to be noted of versions that changed meanwhile. Raises ``UserError`` where one is a server's."""
    notes = []
    for name, version in versions.items():
        was = header.versions.get(name)
        if was != version and name.startswith("server "):
            raise UserError(f"{into} was begun with {name} {was}, now it is {version}; a run can't mix the two")
        if was != version:
            notes.append(Note(f"{name} changed from {was} to {version} while the run was interrupted"))
    return notes


def beginning(plan: Plan, run: Run, history: History) -> Iterator[Event]:
    """The events by which a run begins or is gone on with: ``until`` only where it is from now on another."""
    design = plan.design
    changed: dict[str, Any] = {}
    if StopRule.of_run(design) != StopRule.of_run(run.design) or (design.until == "open" and run.stopped):
        changed = {"until": design.until, "budget_seconds": design.budget_seconds}
    if not history.begun:
        yield Planned(design.blocks, **changed)
        return
    extended = changed and run.design.until != "open"
    yield Resumed(design.blocks, **changed, extended_from=len(usable_blocks(run).trials) if extended else None)
    if block := _interrupted_block(plan, history):
        yield Note(f"The run was interrupted and resumed later, in the middle of block {block}.")


def _interrupted_block(plan: Plan, history: History) -> int | None:
    """The block that has been begun but not finished, if any."""
    last = max((place for place, attempt in history.attempts.items() if attempt.finished), default=None)
    if last is None:
        return None
    attempt = history.attempts[last]
    parts = history.parts_to_run(*last, plan.design)
    return last[0] if any(attempt.disturbed.isdisjoint(part) for part in parts) else None


FAILURES_TO_DROP = 2  # attempts at the same block in which a treatment failed, before it is left out
WITHOUT_CONTROL = "; without its control the run can show losses but cannot rule them out"


class RunProgress(Protocol):
    """Where a run says how far it is."""

    def say(self, text: str) -> None:
        """One line for the user."""

    def trial(self, slot: Slot, note: str, done: int, outlook: Outlook) -> None:
        """A trial begins, of which ``note`` may say something; ``done`` are finished."""

    def trial_done(self, seconds: float) -> None:
        """It has ended, after so long."""


@dataclass(frozen=True)
class RunOutcome:
    """How a run ended."""

    how: str  # "done", "interrupted", "failed"
    failures: int


def open_run(plan: Plan, into: Path, *, resume: bool, versions: dict[str, str], host: dict[str, Any]) -> RunFolder:
    """A new run folder, or the one to go on with. Raises ``UserError`` where it is another study's."""
    if not resume or not run_folder.is_begun(into):
        return run_folder.create(into, plan.header(versions), host, plan.study.text)
    notes = changed_versions(into, see_that_it_is_the_same(plan, into), versions)
    folder = RunFolder(into)
    for note in notes:
        folder.append(note)
    return folder


def run_all(  # noqa: PLR0913  (what a run consists of)
    plan: Plan,
    folder: RunFolder,
    progress: RunProgress,
    erase: frozenset[str],
    *,
    fresh_images: bool = False,
    ports: Ports = HOST,
    stop: Deciding | None = None,
    first: int = 1,
    between_plots: bool = False,
) -> RunOutcome:
    """Run what is missing. Trials that fail are events; ``HostError`` ends the run after it became one.

    ``stop`` decides between blocks, in the place of the design; the blocks before ``first`` are not looked at. It goes
    on ``between_plots`` where the host was started anew as planned, which is no interruption.
    """
    try:
        return _run_all(plan, folder, progress, erase, fresh_images, ports, stop, first, between_plots)
    except OSError as error:
        raise HostError(why_not_written(error, folder.path, GO_ON)) from None


def _run_all(  # noqa: PLR0913, PLR0917  (as above)
    plan: Plan,
    folder: RunFolder,
    progress: RunProgress,
    erase: frozenset[str],
    fresh_images: bool,  # noqa: FBT001
    ports: Ports,
    stop: Deciding | None,
    first: int,
    between_plots: bool,  # noqa: FBT001
) -> RunOutcome:
    run_folder.preload()
    for lost in lost_trials(folder.path):
        folder.append(lost)
        progress.say(lost.text)
    for event in beginning(plan, run_folder.read_run(folder.path), folder.history):
        if not (between_plots and isinstance(event, Note)):
            folder.append(event)
    pace = pace_of(folder.path, folder.history.timed, ports.monotonic)
    stop = stop or Stop(folder.path, plan.design, pace, progress.say)
    ended = Ended("failed")
    with suppress(Interrupted), interruptible(progress.say):
        journal, erasing = None, Erasing(erase)
        try:
            with shielded():  # a signal in the middle of it would leave an empty log
                journal = Journal(f"run {plan.study.path} into {folder.path}")
            with (
                simulating(plan, ports, progress.say) as by,
                Images(journal, erasing, progress.say, specs=plan.makers(), fresh=fresh_images, ports=by) as images,
            ):
                why = _Runner(plan, folder, images, journal, progress, erasing, stop, by).run(first)
                if plan.profile:
                    live = plan.specs.keys() - folder.history.dropped
                    Profiling(plan, folder.path, images, journal, erasing, by, progress.say).take(live)
            ended = Ended("done", why)
        except (Interrupted, StartAnew):
            ended = Ended("interrupted")
            raise
        except (TrialError, HostError, OSError) as error:
            cause = why_not_written(error, folder.path, GO_ON) if isinstance(error, OSError) else str(error)
            ended = Ended("failed", cause=cause)
            raise HostError(cause) from None
        finally:
            with shielded():  # a signal that comes now finds the run ended
                if journal is not None:
                    journal.close()
                    _note_the_end(folder, ended)
    return RunOutcome(ended.how, len(folder.history.failures))


def _note_the_end(folder: RunFolder, ended: Ended) -> None:
    """Where there is no room even for that, why the run has failed is about to be said already."""
    try:
        folder.append(ended)
    except OSError:
        if ended.how != "failed":
            raise


def _about(slot: Slot) -> tuple[str, int, int, str]:
    """What every event of a trial says of it."""
    return slot.id, slot.block, slot.attempt, slot.treatment


@dataclass(frozen=True)
class _Runner:
    """What the trials of one run share."""

    plan: Plan
    folder: RunFolder
    images: Images
    journal: Journal
    progress: RunProgress
    erase: Erasing
    stop: Deciding
    ports: Ports

    @property
    def history(self) -> History:
        """What has happened, this process's own trials included."""
        return self.folder.history

    def run(self, first: int = 1) -> StopReason:
        """Block after block, and why there are no more.

        A part of one with a failed trial is repeated whole, up to ``ATTEMPTS`` times; so is one with a disturbed trial,
        which is kept at the last attempt. After ``PATIENCE`` blocks that had to be kept so, none is repeated for that.
        """
        for block in range(first, self.plan.design.blocks + 1):
            if why := self.stop.before(block, begun=self.history.has_begun(block)):
                return why
            self._block(block)
        return self.stop.look(self.plan.design.blocks) or "blocks"

    def _block(self, block: int) -> None:
        ran = len(self.history.finished)
        self.stop.pace.begin()
        design, history = self.plan.design, self.history
        for attempt in range(history.last_attempt(block), ATTEMPTS + history.attempts_lost(block, design) + 1):
            self._attempt(block, attempt)
            if history.is_done(block, attempt, design):
                break
        else:
            if block not in attempts_that_count(history.attempts, design.parts(), history.dropped):
                self._give_up(block)
        if len(history.finished) > ran:
            self.stop.pace.end()
            if history.repeating_helps(block, design) and not history.repeating_helps(block + 1, design):
                what = "loads" if design.factor_of_loads else "blocks"
                many = f"{PATIENCE * len(design.parts())} {what}"
                self.progress.say(
                    f"{many} met interference at every attempt, so {what} are no longer repeated for that; "
                    "stop other programs on this host, or measure when it is idle"
                )

    def _give_up(self, block: int) -> None:
        if block not in self.history.given_up:
            text = f"block {block} was given up after {ATTEMPTS} attempts"
            self.folder.append(Note(text, given_up=block))
            self.progress.say(text)

    def _attempt(self, block: int, attempt: int) -> None:
        parts = {id_: part for part in self.history.parts_to_run(block, attempt, self.plan.design) for id_ in part}
        self._simulate_ahead(block, attempt, parts)
        slots = {slot.treatment: slot for slot in self.plan.slots(block, attempt) if slot.treatment in parts}
        rows = {row[0]: row for row in self.plan.design.steps()}
        for treatment in slots:
            so_far = self.history.attempt(block, attempt)
            if self.history.void_reason(block, attempt, parts[treatment], self.plan.design) is not None:
                continue
            steps = [slots[id_] for id_ in rows.get(treatment, []) if id_ in self._live()]
            # Steps of which one is missing are all run again: what it begins with is what those before it leave.
            if any(slot.treatment not in so_far.finished for slot in steps):
                self.stop.before_trial(self.plan.specs[treatment])
                self._trial(steps)

    def _simulate_ahead(self, block: int, attempt: int, to_run: Collection[str]) -> None:
        """Have all processors at the simulated trials of a block, and of the next ones where these are too few.

        They are stored one after the other, in the plan's order.
        """
        done = self.history.attempt(block, attempt).finished | (self.plan.specs.keys() - to_run)
        for ahead in range(block, self.plan.design.blocks + 1):
            if ahead > block and not self.ports.simulations.has_room():
                return
            for slot in self.plan.slots(ahead, attempt if ahead == block else 1):
                spec = self.plan.specs[slot.treatment]
                if spec.stack.is_simulated and slot.treatment in self._live() - done:
                    self.ports.simulations.begin(point_of(spec, self.plan.trial_seed(ahead)))
            done = set()

    def _trial(self, steps: Sequence[Slot]) -> None:
        """Run and store one trial, or note why it failed; before it the one that it is to come after, if any.

        Of several steps on the same tables each is stored as a trial, once the last has ended: one that is cut off
        begins again with the first.
        """
        first = steps[0]
        where = {slot: self.folder.trial_folder(slot.id) for slot in steps}
        self._begin(first)
        seconds = self._settled(first, where[first]) if self.plan.design.settle == "trial" else {}
        if seconds is None:
            return
        self._say_trial(first)
        came = self._measured(where)
        for slot, measured in zip(steps, came.measured, strict=False):
            trial = replace(measured.trial, seconds={**(seconds if slot is first else {}), **measured.trial.seconds})
            with shielded():
                self.folder.finish(trial, measured.series)
            self._tell_disturbed(trial)
            self.progress.trial_done(sum(trial.seconds.values()))
        if came.error:
            self._failed_steps(steps[len(came.measured) :], str(came.error))

    def _begin(self, slot: Slot) -> None:
        self.folder.append(Started(*_about(slot)))

    def _say_trial(self, slot: Slot, steps_done: int = 0) -> None:
        self.progress.trial(slot, self._rest_words(), self.history.done() + steps_done, self.stop.outlook)

    def _failed_steps(self, steps: Sequence[Slot], cause: str) -> None:
        """The first of them failed; those that were to go on with its tables are not measured."""
        failed, *following = steps
        text = f"not measured: it goes on with the tables of {self._label(failed)}, which failed"
        for slot, why in [(failed, cause), *((slot, text) for slot in following)]:
            self.folder.append(Failed(*_about(slot), why))
        self._failed(failed, cause, following)

    def _settled(self, slot: Slot, where: Path) -> dict[str, float] | None:
        """Run the baseline unmeasured, and return what it took; None if it failed, which is the baseline's failure."""
        before = replace(slot, treatment=self.plan.design.baseline)
        self.progress.trial(before, "unmeasured", self.history.done(), self.stop.outlook)
        folder = where / "settle"
        folder.mkdir()
        circumstance = "in the unmeasured trial before a trial: "
        came = self._measured({before: folder}, circumstance)
        if came.error:
            self._failed_steps([before], f"{circumstance}{came.error}")
            return None
        shutil.rmtree(folder)
        return {"settle": sum(came.measured[0].trial.seconds.values())}

    def _measured(self, where: Mapping[Slot, Path], circumstance: str = "") -> StepsRun:
        """Run the steps of one trial, each with its folder."""
        first, folder = next(iter(where.items()))
        spec, settle = self.plan.specs[first.treatment], self.plan.design.settle
        rest_seconds = 0.0 if settle == "trial" else settle
        kind, off_host = self.ports.kinds[spec.stack.kind], self.ports.without_host()
        seed = self.plan.trial_seed(first.block)
        terms = TrialTerms(seed, self.journal, self.erase, rest_seconds, self.progress.say)
        begun = [first]

        def begins(slot: Slot) -> None:
            begun.append(slot)
            self._begin(slot)
            self._say_trial(slot, len(begun) - 1)

        try:
            self.plan.check_own_files()
            image = self.images.of(spec)
            steps = [
                TrialStep(
                    slot, self.plan.specs[slot.treatment], place, self._ports(place) if kind.ON_HOST else off_host
                )
                for slot, place in where.items()
            ]
            if kind.IN_GUEST:
                came = StepsRun([run_in_guest(steps[0], image, terms)])
            else:
                came = run_steps(steps, image, terms, begins)
            name, sha256 = self.images.name_of(spec), self.images.sha256_of(spec)
            trials = (replace(measured.trial, image=name, image_sha256=sha256) for measured in came.measured)
            named = [replace(measured, trial=trial) for measured, trial in zip(came.measured, trials, strict=True)]
            came = replace(came, measured=named)
        except OSError as error:
            place = first_full([self.folder.path, state_folder()]) if is_full(error) else None
            raise HostError(why_not_written(error, place or folder, GO_ON)) from None
        except TrialError as error:
            came = StepsRun([], error)
        except HostError as error:
            self.folder.append(Failed(*_about(begun[-1]), f"{circumstance}{error}"))
            raise
        if came.error:
            self._see_that_there_is_room(came.error)
        return came

    def _ports(self, where: Path) -> Ports:
        """Those of a trial whose files are there: where traces are kept, with the file that they go into."""
        if not self.plan.keep_traces:
            return self.ports
        return replace(self.ports, tracing=partial(self.ports.tracing, record=Record(where / KEPT, KEPT_BYTES_MAX)))

    def _see_that_there_is_room(self, error: TrialError) -> None:
        """Raise ``HostError`` where a disk that dbdyno writes to is full: then no treatment is at fault."""
        if full := first_full([self.folder.path, state_folder()]):
            raise HostError(f"{full}: its filesystem is full; make room on it{GO_ON}. What failed: {error}") from None

    def _rest_words(self) -> str:
        settle = self.plan.design.settle
        return f"rests {format_seconds(settle)}" if settle and settle != "trial" else ""

    def _failed(self, slot: Slot, cause: str, following: Sequence[Slot]) -> None:
        """Say so; leave a treatment that failed again and again out for good, and what goes on with its tables."""
        self.progress.say(f"{slot.id} ({self._label(slot)}) failed: {cause}")
        if following:
            names = ", ".join(self._label(after) for after in following)
            self.progress.say(f"not measured, as they go on with its tables: {names}")
        if self.history.failures_of(slot.treatment, slot.block) < FAILURES_TO_DROP:
            whole = "a load" if self.plan.design.factor_of_loads else "a block"
            self.progress.say(f"{self._repeated(slot)}: {whole} counts only with all its trials")
            return
        text = f"{self._label(slot)} failed {FAILURES_TO_DROP} times in block {slot.block} and is left out: {cause}"
        text += WITHOUT_CONTROL * self._is_control(slot)
        self.folder.append(Dropped(slot.treatment, text))
        for after in following:
            with_it = f"{self._label(after)} is left out, too: it goes on with the tables of {self._label(slot)}"
            self.folder.append(Dropped(after.treatment, with_it))
        self.progress.say(text)
        if why := self._why_no_more():
            raise HostError(f"the run stops, {why}: {text}")

    def _why_no_more(self) -> str:
        """What was left out leaves no comparison or, in a crash study, no treatment to be judged; else nothing."""
        design, live = self.plan.design, self._live()
        if design.control is not None:
            return "" if live - {design.control.id} else "nothing is left to judge"
        enough = design.baseline in live and len(live) >= min(2, len(self.plan.specs))
        return "" if enough else "nothing is left to compare"

    def _is_control(self, slot: Slot) -> bool:
        control = self.plan.design.control
        return control is not None and control.id == slot.treatment

    def _label(self, slot: Slot) -> str:
        return self.plan.design.labels[slot.treatment]

    def _live(self) -> set[str]:
        return self.plan.specs.keys() - self.history.dropped

    def _tell_disturbed(self, trial: Trial) -> None:
        if trial.disturbed:
            from dbdyno.report.sections.interference import beyond  # with all of the analysis

            self.progress.say(f"{trial.id} met interference: {'; '.join(beyond(trial))}")
            if self.plan.design.interference == "note":
                return
            design = self.plan.design
            reason = self.history.void_reason(trial.block, trial.attempt, design.part_of(trial.treatment), design)
            self.progress.say(self._repeated(trial) if reason else self._kept(trial))

    def _repeated(self, of: Slot | Trial) -> str:
        """Return ``"block 3 is repeated whole"``, and in a suite ``"block 3 is repeated for delete"``."""
        loads = self._loads(of)
        return f"block {of.block} is repeated {f'for {loads}' if loads else 'whole'}"

    def _kept(self, of: Slot | Trial) -> str:
        loads = self._loads(of)
        return f"block {of.block} is kept{f' for {loads}' if loads else ''} despite the interference"

    def _loads(self, of: Slot | Trial) -> str:
        design = self.plan.design
        return design.part_label(design.part_of(of.treatment))
