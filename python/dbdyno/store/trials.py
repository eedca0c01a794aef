"""A finished trial's own file, ``trial.json``: read, and held against what the event log says of it."""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from dbdyno.store.documents import VALUES_MAX, json_object, see_that_it_is_moderate, value_of
from dbdyno.store.events import Finished, Lost, read_events
from dbdyno.store.others import Budget
from dbdyno.store.parts import (
    TRIALS_LIMIT_BYTES,
    DamageError,
    opened,
    read_part,
    see_that_it_is_as_written,
    sum_of,
    unread,
)
from dbdyno.store.records import Trial
from dbdyno.store.series import read_files
from dbdyno.store.void_blocks import History

TRIAL = "trial.json"
TRIALS_VALUES_MAX = 2 * 10**6  # of all trials of a run: those of five thousand


def trial_file(trial_id: str, name: str) -> str:
    """Where a trial's file lies below the run folder."""
    return f"trials/{trial_id}/{name}"


@dataclass
class FileAllowance:
    """What the files of all trials of a run may hold together: one that goes beyond it is not read."""

    bytes_left: int = TRIALS_LIMIT_BYTES
    values_left: int = TRIALS_VALUES_MAX
    budget: Budget | None = None  # of all runs of the command

    def take(self, path: Path, content: bytes) -> None:
        """Count a file of a run folder. Raises ``ValueError``, or ``UserError``, where it is one too many."""
        values = see_that_it_is_moderate(content, VALUES_MAX)
        self.bytes_left -= len(content)
        self.values_left -= values
        if self.budget is not None:
            self.budget.take_document(path, content, values)
        if min(self.bytes_left, self.values_left) < 0:
            raise ValueError("with it the files of the trials hold more than those of a run can")


def read_trial(path: Path, event: Finished, allowance: FileAllowance | None = None) -> Trial:
    """The trial that an event is about; ``allowance`` is that of all trials. Raises ``DamageError``."""
    part = trial_file(event.trial, TRIAL)
    try:
        content = read_part(path, part)
        (allowance or FileAllowance()).take(path, content)
        document = json_object(content)
        see_that_it_is_as_written(hashlib.sha256(content).hexdigest(), event.sha256.get(TRIAL))
        return _about(event, value_of(Trial, document))
    except (ValueError, OSError) as error:
        raise unread(path / part, error, remedy(path, event)) from None


def _about(event: Finished, trial: Trial) -> Trial:
    identity = event.trial, event.block, event.attempt, event.treatment, event.host
    if (trial.id, trial.block, trial.attempt, trial.treatment, trial.host) != identity:
        raise ValueError("it is about another trial")
    return trial


def remedy(path: Path, event: Finished) -> str:
    """What can be done about a trial whose files are damaged."""
    return (
        f"put it back from a copy, or go on with the run by --into {path} --resume, "
        f"which measures block {event.block} again (trial {event.trial} was in it)"
    )


def lost_trials(path: Path) -> list[Lost]:
    """The finished trials whose files can't be read, of a run that is to be gone on with, and why.

    Raises ``UserError`` where the event log itself can't be read.
    """
    lost = []
    for event in History.of(read_events(path)).finished.values():
        try:
            read_trial(path, event)
            _check_all_series(path, event)
        except DamageError as error:
            why = str(error).partition("; ")[0].removeprefix(f"{path}/")
            text = f"trial {event.trial} can't be read any more and is left out: {why}"
            lost.append(Lost(event.trial, event.block, event.attempt, event.treatment, text, host=event.host))
    return lost


def _check_all_series(path: Path, event: Finished) -> None:
    """Raise ``DamageError`` where a series of the trial is not as it was written, or can't be read."""
    for file in sorted((path / "trials" / event.trial).glob("*.parquet")):
        try:
            handle = opened(path, trial_file(event.trial, file.name))
            try:
                see_that_it_is_as_written(sum_of(handle), event.sha256.get(file.name))
            finally:
                os.close(handle)
        except (OSError, ValueError) as error:
            raise unread(file, error, remedy(path, event)) from None
        if file.name not in event.sha256:
            read_files(path, [event.trial], file.stem, ".*", {})  # it has no sum
