"""Which cuts a trial takes and when, what it sees of them, and the states that are kept."""

import json
import shutil
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol

from dbdyno.errors import TrialError, UserError
from dbdyno.model.cut import OUTCOMES, Cut, Keep, Survivors, When
from dbdyno.plan.order import drawn
from dbdyno.stack.disk_client import DiskClient
from dbdyno.stack.kinds.kind import Stack
from dbdyno.stack.layer import StackContext
from dbdyno.stack.layers.device import CutContent
from dbdyno.stack.undo_log import Journal
from dbdyno.store.cuts import CUT_ID, CUTS, write_sums
from dbdyno.store.documents import json_object, value_of
from dbdyno.store.parts import damaged, why_wrong
from dbdyno.study.schema import CrashSection, TrialSpec
from dbdyno.system.files import read_regular
from dbdyno.workload.ledger import LEDGER, Ledger
from dbdyno.workload.workload import Workload

# Which cuts a trial takes, and when: drawn by its seed, the same on every machine.


# Programs start and clients connect before the warm-up begins, so that measuring begins up to so much later.
STARTING_SECONDS = 0.3
NTH_MAX = 16  # a cut in a write is in one of so many from the moment drawn
SEED_BYTES, SHARE_BYTES, SHARES = 6, 8, 2.0**64


@dataclass(frozen=True)
class PlannedCut:
    """A cut that a trial is to take."""

    id: str  # "c1", "c2", ...
    when: When
    survivors: Survivors | None  # none is drawn of a killed server
    seed: int  # that the survivors are drawn by
    after_s: float  # since measuring began: when it is taken, or waited for
    nth: int = 1  # which of the writes from then on
    share: float = 0.0  # of a recovery that has passed when the power is cut in it
    number: int = 1  # among those of its trial that the load itself asks for, in time


def schedule(section: CrashSection, seed: int, block: int, duration_s: float) -> list[PlannedCut]:
    """The cuts of a trial of so many seconds, by time.

    Each moment is uniformly random over the measured window and independent of the others, so none is in phase with
    what a server does once a second. Treatments of a block have the same trial seed, and so the same moments.
    """
    window_s = max(0.0, duration_s - STARTING_SECONDS)
    cuts = []
    for number in range(section.cuts_each):
        when, survivors = section.stratum(number, block)
        name = f"c{number + 1}"
        after_s = STARTING_SECONDS + window_s * _share(seed, name, "moment")
        drawn_seed = int.from_bytes(drawn(seed, "cut", name)[:SEED_BYTES])
        nth = 1 + int(NTH_MAX * _share(seed, name, "nth"))
        cuts.append(PlannedCut(name, when, survivors, drawn_seed, after_s, nth, _share(seed, name, "recovery")))
    return _numbered(sorted(cuts, key=lambda cut: cut.after_s))


def of(cuts: Sequence[PlannedCut], *when: When) -> list[PlannedCut]:
    """Those of these kinds, by time."""
    return [cut for cut in cuts if cut.when in when]


def _share(seed: int, *what: object) -> float:
    """A number from 0 to 1 that the seed gives to this alone."""
    return int.from_bytes(drawn(seed, "cut", *what)[:SHARE_BYTES]) / SHARES


def _numbered(cuts: Sequence[PlannedCut]) -> list[PlannedCut]:
    """With the numbers that the load names its own cuts by."""
    return [
        PlannedCut(**{**vars(cut), "number": 1 + sum(earlier_cut.when == cut.when for earlier_cut in cuts[:place])})
        for place, cut in enumerate(cuts)
    ]


EXAMINING = "cut recovery"  # the phase of a trial


@dataclass(frozen=True)
class AboutTrial:
    """What cuts need to know of their trial."""

    spec: TrialSpec
    block: int
    treatment: str
    stack: Stack
    workload: Workload
    seed: int
    folder: Path
    journal: Journal
    say: Callable[[str], None]
    lap: Callable[[str], None]  # the phase that just ended


class Crashing(Protocol):
    """The cuts of one trial."""

    keeps_server: ClassVar[bool]  # whether the one that was offered the load goes on

    @property
    def workload(self) -> Workload:
        """The load to offer, with what it has to do for them."""

    def beside(self, context: StackContext) -> AbstractContextManager[None]:
        """Take the cuts for as long as the context lasts, which holds the load."""

    def after_load(self, context: StackContext, window_ns: tuple[int, int]) -> AbstractContextManager[StackContext]:
        """What the stack is from then on; of a killed server, one that was started again, or none."""

    def examined(self, window_ns: tuple[int, int]) -> list[Cut]:
        """What was found after each cut, once the stack is lowered. Raises ``TrialError`` or ``HostError``."""

    def observed(self) -> dict[str, dict[str, Any]]:
        """How many cuts were planned and taken, and why others were not; nothing in a study of speed."""


class PlannedCuts:
    """What both modes have in common: the cuts of a trial, by its seed."""

    def __init__(self, about: AboutTrial, section: CrashSection) -> None:
        assert isinstance(about.workload, Ledger)  # noqa: S101  (a rule of the study format)
        self.about, self.section, self.ledger = about, section, about.workload
        duration_s = about.spec.workload.seconds_bound
        assert duration_s is not None  # noqa: S101  (a rule of the study format)
        self.warmup_s = about.spec.workload.seconds_before
        self.planned = schedule(section, about.seed, about.block, duration_s)


# Broken states that are kept as evidence, in the trial's folder: written once, bounded, and examined again at will.


ABOUT = "about.json"
_ABOUT_BYTES_MAX = 1024**2
RUN_BYTES_MAX = 4 * 1024**3  # of all states that a run keeps
LEFT_BYTES = 1024**3  # room that is left on the run folder's disk


@dataclass(frozen=True)
class KeptState:
    """What is known of a kept state beside its bytes."""

    cut: Cut
    treatment: str
    name: str  # of the state on its disk
    seed: int  # that the survivors are drawn by
    cut_ns: int
    cut_end_ns: int
    window_start_ns: int

    @property
    def content(self) -> CutContent:
        """What its disk is to be set to."""
        assert self.cut.survivors is not None  # noqa: S101  (a power cut has survivors)
        return CutContent(self.name, self.cut.survivors, self.seed)


def is_wanted(keep: Keep, cut: Cut, treatment: str, trial: Path) -> bool:
    """Whether the state of a cut is to be kept: of ``worst``, if it is worse than all that its treatment has kept."""
    if keep == "none" or not cut.is_loss:
        return False
    if keep == "all":
        return True
    rank = OUTCOMES.index(cut.outcome)
    before = (_rank(path) for path in trial.parent.glob(f"*-{treatment}/{CUTS}/*/{ABOUT}"))
    return all(rank < other for other in before)


def keep_state(disk: DiskClient, kept: KeptState, trial: Path) -> Cut:
    """Write a state into ``trial``; returns the cut with where it lies. Raises ``TrialError`` where it has no room."""
    place = f"{CUTS}/{kept.cut.id}"
    needed = int(disk.stats()["content_bytes"])
    there = sum(path.stat().st_blocks * 512 for path in trial.parent.glob(f"*/{CUTS}/*/*"))
    if there + needed > RUN_BYTES_MAX:
        raise TrialError(f"the run has kept {there >> 20} MiB of states already, of at most {RUN_BYTES_MAX >> 20}")
    if shutil.disk_usage(trial).free < needed + LEFT_BYTES:
        raise TrialError(f"{trial}: there is no room for {needed >> 20} MiB")
    folder = trial / place
    folder.parent.mkdir(exist_ok=True)
    try:
        disk.save_cut(kept.name, folder)
        shutil.copyfile(trial / LEDGER, folder / LEDGER)  # by which the state is judged
        cut = replace(kept.cut, kept=place)
        (folder / ABOUT).write_text(json.dumps(asdict(replace(kept, cut=cut)), indent=1) + "\n", encoding="utf-8")
        return replace(cut, kept_sha256=write_sums(folder))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def read_kept(folder: Path) -> KeptState:
    """What is known of the state in a folder. Raises ``UserError`` where it holds none."""
    try:
        kept = value_of(KeptState, json_object(read_regular(folder / ABOUT, _ABOUT_BYTES_MAX, follow=False)))
    except (OSError, ValueError) as error:
        raise UserError(f"{folder} holds no kept state: {ABOUT}: {why_wrong(error)}") from None
    cut = kept.cut
    if cut.mode != "power" or cut.survivors is None or not CUT_ID.fullmatch(cut.id):
        raise UserError(f"{folder} holds no kept state: {ABOUT}: cut {cut.id!r} is not a power cut")
    if min(cut.seed, kept.seed, kept.window_start_ns, kept.cut_ns) < 0 or kept.cut_end_ns < kept.cut_ns:
        raise UserError(f"{folder} holds no kept state: {ABOUT}: its numbers are of no power cut")
    return kept


def load_state(disk: DiskClient, kept: KeptState, folder: Path) -> None:
    """Have a disk of the size of the state's take it in.

    Raises ``DamageError`` where the disk refuses what the folder holds, ``TrialError`` where the disk is at fault.
    """
    try:
        disk.load_cut(kept.name, folder.absolute())
    except TrialError as error:
        disk.stats()  # of a disk that is gone nothing is the state's fault
        raise damaged(folder, str(error)) from None


def planned_of(kept: KeptState) -> PlannedCut:
    """The cut as it was planned, as far as examining it again needs it."""
    cut = kept.cut
    # Of a cut in a recovery the later state was kept, which is examined as it is.
    return PlannedCut(cut.id, cut.when, cut.survivors, kept.seed, cut.at_s)


def _rank(path: Path) -> int:
    try:
        return OUTCOMES.index(read_kept(path.parent).cut.outcome)
    except UserError:
        return len(OUTCOMES)
