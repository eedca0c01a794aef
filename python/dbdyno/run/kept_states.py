"""States that a run has kept of its cuts: copied out as a raw image, or examined again on this machine."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from dbdyno.crash.examine import examine_kept
from dbdyno.crash.trial_cuts import load_state, read_kept
from dbdyno.errors import TrialError, UserError
from dbdyno.model.cut import Cut
from dbdyno.plan.plan import Plan, make_plan
from dbdyno.plan.stop_rule import StopRule
from dbdyno.stack.capabilities import Capability, fuse, loop, own_programs, root
from dbdyno.stack.layers.emulated_disk import running_disk
from dbdyno.stack.undo_log import journalled
from dbdyno.store.cuts import cuts_of, kept_folder, name_of, verify_sums
from dbdyno.store.parts import DamageError
from dbdyno.store.records import Run
from dbdyno.store.run_folder import STUDY, check_owner, read_header
from dbdyno.study.load import load_study
from dbdyno.study.schema import TrialSpec

IMAGE = "disk.img"


def spec_of(folder: Path, treatment: str) -> TrialSpec:
    """Return what a treatment of a run, or its control, stands on. Raises ``UserError`` as ``plan_of``."""
    return spec_in(plan_of(folder), treatment, folder)


def spec_in(plan: Plan, treatment: str, folder: Path) -> TrialSpec:
    """Return what a treatment of a plan stands on. Raises ``UserError`` where no power is cut on it."""
    spec = plan.specs.get(treatment)
    if spec is None or spec.crash is None or not (spec.stack.filesystem or spec.stack.image):
        raise UserError(f"{folder}: the run has no treatment {treatment!r} whose power was cut")
    return spec


def plan_of(folder: Path) -> Plan:
    """Return the plan of a run, from the study that the run folder keeps: what is raised and run for its states.

    Raises:
        UserError: Another user could change the folder. Or the study can't be read there, say because a drive file of
            the user's own lies beside the original, or it is no longer planned as the run was.

    """
    try:
        check_owner(folder)
    except OSError as error:
        raise UserError(f"{error.filename or folder}: can't be read: {error.strerror}") from None
    header = read_header(folder)
    study, design = load_study(folder / STUDY, header.scale), header.design
    made = make_plan(study, seed=design.seed, stop_rule=StopRule("blocks", design.blocks))
    if made.design.tried != design.tried:
        raise UserError(f"{folder}: this dbdyno plans other treatments for {STUDY} than those that were run")
    return made


def missing_capabilities(*, examining: bool) -> list[Capability]:
    """Return what this host lacks for a state to be copied out or, with ``examining``, to be raised."""
    needs = [fuse(), own_programs(), root(), *([loop()] if examining else [])]
    return [need for need in needs if not need.ok]


def copy_out(state: Path, spec: TrialSpec, into: Path) -> Path:
    """Write the content that a kept state has, survivors drawn as they were, to a raw sparse image; returns it.

    ``spec`` is of the treatment that the state was taken of; ``into`` a folder that is there.

    Raises:
        UserError: The state can't be read, or the image exists.
        HostError: The disk can't be started, or there is no room for the image.

    """
    verify_sums(state)
    kept, image = read_kept(state), into.absolute() / IMAGE
    if os.path.lexists(image):
        raise UserError(f"{image} exists; name another folder")
    assert spec.stack.size is not None  # noqa: S101  (an emulated disk has a size)
    content, model, size = kept.content, spec.stack.device, spec.stack.size
    with journalled(f"crash keep {state}") as journal, running_disk(journal, model=model, size=size) as disk:
        load_state(disk.client, kept, state)
        disk.client.restore_cut(content.name, content.survivors, content.seed)
        try:
            disk.client.save(image)
        except BaseException:
            image.unlink(missing_ok=True)
            raise
    return image


def examine_again(folder: Path, state: Path) -> Cut:
    """Examine a kept state once more, as its run did; returns what is found. Raises ``UserError`` or ``HostError``."""
    plan = plan_of(folder)  # before anything of it is read, it is seen to be ours
    verify_sums(state)  # before anything that it says of itself is believed
    spec = spec_in(plan, read_kept(state).treatment, folder)
    with journalled(f"crash examine {state}") as journal:
        return examine_kept(state, spec, journal)


@dataclass(frozen=True)
class State:
    """A cut whose state is kept, and where."""

    name: str  # TRIAL/CUT
    cut: Cut
    folder: Path


@dataclass(frozen=True)
class Examined:
    """What was found on it now; or why it could not be examined."""

    name: str
    before: Cut
    again: Cut | None
    why: str = ""
    is_damaged: bool = False  # another state lies there than was kept

    @property
    def is_checked(self) -> bool:
        """Whether its files were held against checksums, which an earlier version did not keep."""
        return bool(self.before.kept_sha256)

    @property
    def is_same(self) -> bool:
        """Whether the outcome is the same as before."""
        return self.again is not None and self.again.outcome == self.before.outcome


# What examines states; the results come in their order. Raises ``HostError`` where none can be examined any more.
Examining = Callable[[Sequence[State]], Iterator[Examined]]


def kept_states(folder: Path, run: Run) -> list[State]:
    """All states that a run has kept, in its order. Raises ``UserError`` where one is no longer there."""
    return [State(name_of(trial, cut), cut, kept_folder(folder, trial, cut)) for trial, cut in cuts_of(run) if cut.kept]


def here(folder: Path) -> Examining:
    """Examine on this machine, one after the other."""
    return lambda states: (tried(state, partial(examine_again, folder, state.folder)) for state in states)


def tried(state: State, examine: Callable[[], Cut]) -> Examined:
    """Return what an examination finds, or why it could not be made."""
    try:
        return Examined(state.name, state.cut, examine())
    except (TrialError, DamageError) as error:
        return Examined(state.name, state.cut, None, str(error), is_damaged=isinstance(error, DamageError))
