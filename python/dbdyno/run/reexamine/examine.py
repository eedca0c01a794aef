"""Kept states of a run examined again, in the run's order, whichever of them are done first."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from dbdyno.errors import TrialError
from dbdyno.hosts.spread import Spread
from dbdyno.model.cut import Cut
from dbdyno.run.kept_states import examine_again, plan_of
from dbdyno.run.reexamine.member import ExaminationRequest
from dbdyno.run.reexamine.program_workers import ExaminerAccess, ProgramWorkers, folder_for_packed
from dbdyno.stack.space import bytes_on_disk
from dbdyno.store.cuts import cuts_of, kept_folder, name_of
from dbdyno.store.header import RUN
from dbdyno.store.parts import DamageError
from dbdyno.store.records import Run
from dbdyno.store.run_folder import STUDY, read_header
from dbdyno.system.interrupt import interruptible

if TYPE_CHECKING:
    from concurrent.futures import Future

    from dbdyno.hosts.spread import Done


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


class Examining(Protocol):
    """What examines states; the results come in the order of the states."""

    def __call__(self, states: Sequence[State]) -> Iterator[Examined]:
        """Raises ``HostError`` where none can be examined any more."""


def kept_states(folder: Path, run: Run) -> list[State]:
    """All states that a run has kept, in its order. Raises ``UserError`` where one is no longer there."""
    return [State(name_of(trial, cut), cut, kept_folder(folder, trial, cut)) for trial, cut in cuts_of(run) if cut.kept]


def here(folder: Path) -> Examining:
    """Examine on this machine, one after the other."""

    def examining(states: Sequence[State]) -> Iterator[Examined]:
        for state in states:
            yield _tried(state, partial(examine_again, folder, state.folder))

    return examining


@contextmanager
def on_hosts(folder: Path, states: Sequence[State], access: ExaminerAccess) -> Iterator[Examining]:
    """Examine on all processors of hosts; when this is left, each has put itself back, or is lost."""
    plan_of(folder)  # what is wrong with it is said here, not by each host
    largest = max((bytes_on_disk(state.folder) for state in states), default=0)
    header, study = ((folder / name).read_text(encoding="utf-8") for name in (RUN, STUDY))
    servers = {name: it for name, it in read_header(folder).versions.items() if name.startswith("server ")}

    def request(host: str) -> ExaminationRequest:
        return ExaminationRequest(host, header, study, largest)

    with interruptible(access.say), folder_for_packed() as into:
        workers = ProgramWorkers(access, request, servers, into)
        with Spread(workers, access.say) as spread:
            yield lambda batch: _in_order([(state, spread.submit(str(state.folder))) for state in batch])


def _in_order(examinations: Sequence[tuple[State, "Future[Done]"]]) -> Iterator[Examined]:
    for state, future in examinations:
        yield _tried(state, partial(_cut_of, future))


def _cut_of(future: "Future[Done]") -> Cut:
    return Cut(**json.loads(future.result().text))


def _tried(state: State, examine: Callable[[], Cut]) -> Examined:
    try:
        return Examined(state.name, state.cut, examine())
    except (TrialError, DamageError) as error:
        return Examined(state.name, state.cut, None, str(error), is_damaged=isinstance(error, DamageError))
