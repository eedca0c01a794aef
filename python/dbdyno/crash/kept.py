"""Broken states that are kept as evidence, in the trial's folder: written once, bounded, and examined again at will."""

import json
import shutil
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from dbdyno.crash.schedule import PlannedCut
from dbdyno.errors import TrialError, UserError
from dbdyno.model.cut import OUTCOMES, Cut, Keep
from dbdyno.stack.disk_client import DiskClient
from dbdyno.stack.layers.device import CutContent
from dbdyno.workload.ledger import LEDGER

CUTS, ABOUT = "cuts", "about.json"
RUN_BYTES_MAX = 4 * 1024**3  # of all states that a run keeps
LEFT_BYTES = 1024**3  # room that is left on the run folder's disk


@dataclass(frozen=True)
class Kept:
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


def keep_state(disk: DiskClient, kept: Kept, trial: Path) -> str:
    """Write a state into ``trial``; returns its folder there. Raises ``TrialError`` where there is no room for it."""
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
        about = {**asdict(kept), "cut": asdict(replace(kept.cut, kept=place))}
        (folder / ABOUT).write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return place


def read_kept(folder: Path) -> Kept:
    """What is known of the state in a folder. Raises ``UserError`` where it holds none."""
    try:
        about: dict[str, Any] = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
        return Kept(**{**about, "cut": Cut(**about["cut"])})
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UserError(f"{folder} holds no kept state: {error}") from None


def planned_of(kept: Kept) -> PlannedCut:
    """The cut as it was planned, as far as examining it again needs it."""
    cut = kept.cut
    # Of a cut in a recovery the later state was kept, which is examined as it is.
    return PlannedCut(cut.id, cut.when, cut.survivors, kept.seed, cut.at_s)


def _rank(path: Path) -> int:
    try:
        return OUTCOMES.index(json.loads(path.read_text(encoding="utf-8"))["cut"]["outcome"])
    except (OSError, ValueError, KeyError, TypeError):
        return len(OUTCOMES)
