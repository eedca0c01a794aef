"""Broken states that are kept as evidence, in the trial's folder: written once, bounded, and examined again at will."""

import json
import shutil
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from dbdyno.crash.trial_cuts import PlannedCut
from dbdyno.errors import TrialError, UserError
from dbdyno.model.cut import OUTCOMES, Cut, Keep
from dbdyno.stack.disk_client import DiskClient
from dbdyno.stack.layers.device import CutContent
from dbdyno.store.cuts import CUT_ID, CUTS
from dbdyno.store.documents import json_object, value_of
from dbdyno.store.kept_sums import write_sums
from dbdyno.store.parts import damaged, why_wrong
from dbdyno.system.files import read_regular
from dbdyno.workload.ledger import LEDGER

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
        raise UserError(f"{folder} holds no kept state: {ABOUT}: cut {cut.id!r} is no power cut")
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
