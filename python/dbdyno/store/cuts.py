"""The cuts of a run, and where the states that are kept of them lie."""

import re
from collections.abc import Iterator
from pathlib import Path

from dbdyno.errors import UserError
from dbdyno.model.cut import Cut
from dbdyno.store.kept_sums import verify_list
from dbdyno.store.records import Run, Trial

CUTS = "cuts"  # the folder of kept states in a trial's
CUT_ID = re.compile(r"[a-z]{1,8}[0-9]{1,9}")


def cuts_of(run: Run) -> Iterator[tuple[Trial, Cut]]:
    """Return every cut with its trial, in run order, those of blocks that do not count too."""
    return ((trial, cut) for trial in run.trials for cut in trial.cuts)


def name_of(trial: Trial, cut: Cut) -> str:
    """Return what a cut is called on the command line: ``b0001a1p001-t1/c3``."""
    return f"{trial.id}/{cut.id}"


def cut_called(run: Run, name: str) -> tuple[Trial, Cut]:
    """Return the cut of that name with its trial. Raises ``UserError`` where the run has none."""
    trial_and_cut = next(((trial, cut) for trial, cut in cuts_of(run) if name_of(trial, cut) == name), None)
    if trial_and_cut is None:
        raise UserError(f"{name!r} is no cut of this run; dbdyno crash list RUN names them, as TRIAL/CUT")
    return trial_and_cut


def is_at_its_place(cut: Cut) -> bool:
    """Whether the kept state of a cut is said to lie where such a state does, and nowhere else."""
    return cut.kept == f"{CUTS}/{cut.id}" and CUT_ID.fullmatch(cut.id) is not None


def kept_folder(folder: Path, trial: Trial, cut: Cut) -> Path:
    """Return where the kept state of a cut lies.

    Raises ``UserError`` where it was not kept, or is no longer there, or its list of checksums is another one.
    """
    name = name_of(trial, cut)
    if not cut.kept:
        raise UserError(
            f"{name}: its state was not kept; dbdyno crash list RUN --kept names those that were, and "
            'keep = "all" in [crash] keeps every one that lost anything'
        )
    if not is_at_its_place(cut):
        raise UserError(f"{name}: {cut.kept!r} is no place of a kept state; the run folder is damaged")
    state = folder / "trials" / trial.id / cut.kept
    if not state.is_dir():
        raise UserError(f"{state} is not there: the state of {name} was removed, or the run was copied without it")
    verify_list(state, cut.kept_sha256)
    return state
