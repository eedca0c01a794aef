"""Whether a run may be gone on with, and how: decided by what its folder holds; nothing is written here."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dbdyno.analysis.blocks import usable_blocks
from dbdyno.errors import UserError
from dbdyno.model.design import Design
from dbdyno.plan.plan import Plan
from dbdyno.plan.stop_rule import StopRule
from dbdyno.store.events import Event, Note, Planned, Resumed
from dbdyno.store.header import Header
from dbdyno.store.records import Run
from dbdyno.store.replay import History
from dbdyno.store.run_folder import read_header, read_run
from dbdyno.store.trials import lost_trials


def see_that_it_is_the_same(plan: Plan, into: Path) -> Header:
    """The header of the run that ``into`` holds. Raises ``UserError`` unless this plan would begin it as it was."""
    held = read_header(into)
    if held.study_sha256 != plan.study_sha256():
        raise UserError(
            f"{into} holds a run of another study (or this one has been changed since); use a new folder, "
            "or delete that one if it is not needed"
        )
    if held.design.seed != plan.design.seed:
        raise UserError(f"{into} was begun with seed {held.design.seed}; go on without --seed, or use a new folder")
    if _tried(held.design) != _tried(plan.design):
        raise UserError(f"{into} was begun with other comparisons; a run keeps its design: use a new folder")
    if held.design.margin != plan.design.margin:
        raise UserError(f"{into} was begun with margin {held.design.margin:.3g}; use a new folder for another")
    decided = all(spec.host.awake != "auto" for spec in plan.specs.values())
    if decided and sorted(held.awake) != sorted(plan.awake()):
        kept = "kept awake" if held.awake else "not kept awake"
        raise UserError(
            f"{into} was begun with processors {kept} for {', '.join(held.awake) or 'all treatments'}, and "
            f'host.awake = "auto" decides otherwise now; use a new folder'
        )
    design = read_run(into, without=[one.trial for one in lost_trials(into)]).design
    if design.interference != plan.design.interference:
        raise UserError(f"{into} was begun with interference = {design.interference!r}; a run keeps that")
    if plan.design.until != "open" and StopRule.of_run(plan.design) != StopRule.of_run(design):
        raise UserError(f"{into} was begun with another plan of when to stop; a run keeps that")
    return held


def _tried(design: Design) -> tuple[object, ...]:
    """What is run and compared."""
    return design.treatments, design.comparisons, design.control


def changed_versions(into: Path, held: Header, versions: dict[str, str]) -> list[Note]:
    """What is to be noted of versions that changed meanwhile. Raises ``UserError`` where one is a server's."""
    notes = []
    for name, version in versions.items():
        was = held.versions.get(name)
        if was != version and name.startswith("server "):
            raise UserError(f"{into} was begun with {name} {was}, now it is {version}; trials of two can't be one run")
        if was != version:
            notes.append(Note(f"{name} changed from {was} to {version} while the run was interrupted"))
    return notes


def beginning(plan: Plan, held: Run, history: History) -> Iterator[Event]:
    """The events by which a run begins or is gone on with: ``until`` only where it is from now on another."""
    design = plan.design
    changed: dict[str, Any] = {}
    if StopRule.of_run(design) != StopRule.of_run(held.design) or (design.until == "open" and held.stopped):
        changed = {"until": design.until, "budget_seconds": design.budget_seconds}
    if not history.begun:
        yield Planned(design.blocks, **changed)
        return
    extended = changed and held.design.until != "open"
    yield Resumed(design.blocks, **changed, extended_from=len(usable_blocks(held).trials) if extended else None)
    if block := _interrupted_block(plan, history):
        yield Note(f"The run was interrupted and gone on with later, in the middle of block {block}.")


def _interrupted_block(plan: Plan, history: History) -> int | None:
    """The block that has been begun but not finished, if any."""
    last = max((place for place, one in history.attempts.items() if one.finished), default=None)
    if last is None:
        return None
    one, live = history.attempts[last], plan.specs.keys() - history.dropped
    return None if one.disturbed or one.is_void(live) or one.is_whole(live) else last[0]
