"""Where a run begins and where it is gone on with: its folder, and what the journal says has happened."""

import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from dbdyno.analysis.blocks import usable_blocks
from dbdyno.errors import UserError
from dbdyno.plan.ending import Ending
from dbdyno.plan.plan import Plan, Slot
from dbdyno.stop import Pace
from dbdyno.store import run_folder
from dbdyno.store.prices import prices_document
from dbdyno.store.reported import reported_document
from dbdyno.store.run_folder import RunFolder


@dataclass
class State:
    """What the journal says has happened; replaying it is how a run goes on."""

    finished: set[tuple[int, int, str]] = field(default_factory=set)  # block, attempt, treatment
    failed: Counter[tuple[int, str]] = field(default_factory=Counter)  # block, treatment -> times
    void: set[tuple[int, int]] = field(default_factory=set)  # block, attempt in which a treatment failed that counts
    disturbed: set[tuple[int, int]] = field(default_factory=set)  # block, attempt in which a trial was
    dropped: set[str] = field(default_factory=set)
    given_up: set[int] = field(default_factory=set)  # blocks
    timed: list[str] = field(default_factory=list)  # trials whose time counts against the budget
    begun: bool = False  # by an earlier dbdyno
    _last: tuple[int, int] = (0, 0)  # block, attempt of the latest failure

    @classmethod
    def of(cls, path: Path) -> "State":
        """What the journal of this run folder says."""
        state = cls()
        for event in run_folder.events(path):
            state.begun = True
            if event["event"] == "finished":
                state.finished.add((event["block"], event["attempt"], event["treatment"]))
                if event.get("disturbed"):
                    state.disturbed.add((event["block"], event["attempt"]))
                state.timed.append(event["trial"])
            elif event["event"] == "resumed" and "until" in event:
                state.timed.clear()
            elif event["event"] == "failed":
                state.add_failure(Slot(event["block"], event["attempt"], 0, event["treatment"]))
            elif event["event"] == "dropped":
                state.drop(event["treatment"])
            elif event["event"] == "note" and "given_up" in event:
                state.given_up.add(event["given_up"])
        return state

    def add_failure(self, slot: Slot) -> None:
        """A trial has failed, and its attempt at the block is void."""
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
        return last[0] if set(plan.specs) - self.dropped - begun and last not in self.void | self.disturbed else None

    def has_begun(self, block: int) -> bool:
        """Whether a trial of the block has ended, well or not."""
        return any(block == one for one, _, _ in self.finished) or any(block == one for one, _ in self.failed)

    def done(self) -> int:
        """Trials finished so far, repetitions of a block not counted."""
        return len({(block, treatment) for block, _, treatment in self.finished})


def open_run(plan: Plan, into: Path, *, resume: bool, versions: dict[str, str], host: dict[str, Any]) -> RunFolder:
    """A new run folder, or the one to go on with. Raises ``UserError`` where it is another study's."""
    header = _header(plan, versions)
    if not resume or not (into / "run.toml").exists():
        return run_folder.create(into, header, host, plan.study.text)
    held = run_folder.run_header(into)
    _check_the_same(plan, into, held, header)
    folder = RunFolder(into)
    for name, version in versions.items():
        was = held["versions"].get(name)
        if was != version and name.startswith("server "):
            folder.close()
            raise UserError(f"{into} was begun with {name} {was}, now it is {version}; trials of two can't be one run")
        if was != version:
            folder.note("note", text=f"{name} changed from {was} to {version} while the run was interrupted")
    return folder


def see_that_it_is_the_same(plan: Plan, into: Path) -> None:
    """Raise ``UserError`` unless ``into`` holds a run of this very plan: of a finished one, which nothing reopens."""
    _check_the_same(plan, into, run_folder.run_header(into), _header(plan, {}))


def _check_the_same(plan: Plan, into: Path, held: dict[str, Any], header: dict[str, Any]) -> None:
    """Raise ``UserError`` unless the run that ``into`` holds was begun as this plan would begin it."""
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
    design = run_folder.read_run(into).design
    if design.disturbed != plan.design.disturbed:
        raise UserError(f"{into} was begun with disturbed = {design.disturbed!r}; that is not changed under way")
    if plan.design.until != "open" and Ending.of_run(plan.design) != Ending.of_run(design):
        raise UserError(f"{into} was begun with another plan of when to stop; that is not changed under way")


def begin(plan: Plan, folder: RunFolder, state: State) -> None:
    """Journal that a run begins or is gone on with, and how: ``until`` only where it is from now on another."""
    design = plan.design
    held = run_folder.read_run(folder.path)
    changed: dict[str, Any] = {}
    if Ending.of_run(design) != Ending.of_run(held.design) or (design.until == "open" and held.stopped):
        changed = {"until": design.until, "budget_seconds": design.budget_seconds}
        if state.begun and held.design.until != "open":
            changed["extended_from"] = len(usable_blocks(held).trials)
        state.timed.clear()
    folder.note("resumed" if state.begun else "planned", blocks=design.blocks, **changed)
    if state.begun and (block := state.unfinished(plan)):
        folder.note("note", text=f"The run was interrupted and gone on with later, in the middle of block {block}.")


def pace_of(folder: RunFolder, state: State, clock: Callable[[], float] = time.monotonic) -> Pace:
    """How long the blocks have taken that were run before, by the time their trials took."""
    before, lengths = 0.0, defaultdict[int, float](float)
    for trial in run_folder.read_run(folder.path).trials if state.begun else ():
        seconds = sum(trial.seconds.values())
        before += seconds if trial.id in state.timed else 0.0
        lengths[trial.block] += seconds
    last = max(lengths, default=0)  # may be half a block
    return Pace(before, [seconds for block, seconds in lengths.items() if block != last], clock=clock)


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
            **({"unit": design.unit} if design.unit else {}),
            "until": design.until,
            **({"half_width": design.half_width} if design.half_width is not None else {}),
            **({"budget_seconds": design.budget_seconds} if design.budget_seconds is not None else {}),
            "disturbed": design.disturbed,
            "screened": design.screened,
            **({"steadiness": True} if design.steadiness else {}),
            "baseline": design.baseline,
            "study_file": plan.study.path.name,
            "study_sha256": plan.study_sha256(),
            **({"scale": plan.study.scale} if plan.study.scale else {}),
        },
        "versions": versions,
        **({"aa": asdict(design.aa)} if design.aa else {}),
        "factor": [asdict(factor) for factor in design.factors],
        "treatment": [asdict(treatment) for treatment in design.treatments],
        "comparison": [asdict(comparison) for comparison in design.comparisons],
        "study": plan.study.raw,
        **({"reported": [reported_document(table) for table in plan.reported]} if plan.reported else {}),
        **({"cost": prices_document(plan.prices)} if plan.prices else {}),
        **plan.own_files,
    }
