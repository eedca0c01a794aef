"""The trials that count, by block, and why runs or results can't be compared."""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, Literal

from dbdyno.errors import UserError
from dbdyno.model.metrics import value_of
from dbdyno.store.records import Run, Trial
from dbdyno.store.void_blocks import Attempt, Place, attempts_that_count


@dataclass(frozen=True)
class UsableBlocks:
    """``trials[block][treatment id]`` of the attempts that count, the treatments dropped, the attempts left out.

    Of an attempt at a part of a block only the part's treatments are left out. A control that is no treatment of the
    study is compared with nothing, and so is in ``control`` alone.
    """

    trials: dict[int, dict[str, Trial]]
    dropped: frozenset[str]
    void: tuple[tuple[int, int, frozenset[str]], ...]  # (block, attempt, treatments of the part), in order
    control: dict[int, Trial] = field(default_factory=dict)  # block -> the control's trial, of a crash study
    _read: dict[tuple[str, str], dict[int, float]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def values(self, treatment: str, metric: str) -> dict[int, float]:
        """Return block -> the treatment's metric, NaN where a trial lacks it; nothing where it is 0 in any block.

        There is no ratio to 0, and to leave out just those blocks would be to pick by the result.
        """
        return {} if self.without_ratio(treatment, metric) else dict(self._figures(treatment, metric))

    def without_ratio(self, treatment: str, metric: str) -> int:
        """Return in how many blocks the treatment's metric is 0 or less."""
        return sum(value <= 0 for value in self._figures(treatment, metric).values())

    def _figures(self, treatment: str, metric: str) -> dict[int, float]:
        figures = self._read.get((treatment, metric))
        if figures is None:
            rows = ((block, row[treatment]) for block, row in self.trials.items() if treatment in row)
            figures = {block: value_of(trial.metrics, metric) for block, trial in rows}
            self._read[treatment, metric] = figures
        return figures

    def of(self, treatment: str) -> list[Trial]:
        """Return the treatment's trials, by block."""
        return [row[treatment] for row in self.trials.values() if treatment in row]


def usable_blocks(run: Run) -> UsableBlocks:
    """Return, per block, the trials of the attempt that counts.

    A block is the unit of comparison, in a suite each load's part of it. So an attempt with a failed, missing or
    half-done trial is void as a whole, also for the treatments that did finish in it; a crash study's control is one of
    them. A dropped treatment's failures void nothing; its trials in valid attempts are kept to be shown, never to be
    judged.
    """
    attempts: dict[Place, Attempt] = defaultdict(Attempt)
    trials: dict[Place, dict[str, Trial]] = defaultdict(dict)
    for trial in run.trials:
        attempts[trial.block, trial.attempt].finished.add(trial.treatment)
        trials[trial.block, trial.attempt][trial.treatment] = trial
    for failure in run.failures:
        attempts[failure.block, failure.attempt].failed.add(failure.treatment)
    design = run.design
    compared, parts = {treatment.id for treatment in design.treatments}, design.parts()
    latest = attempts_that_count(attempts, parts, run.dropped)
    whole = {
        block: {
            id_: trial
            for part, attempt in zip(parts, by_part, strict=True)
            for id_, trial in trials[block, attempt].items()
            if id_ in part
        }
        for block, by_part in latest.items()
    }
    void = [
        (block, attempt, part)
        for block, attempt in sorted(attempts)
        for place, part in enumerate(parts)
        if attempts[block, attempt].at(part).is_begun and (block not in latest or latest[block][place] != attempt)
    ]
    return UsableBlocks(
        trials={block: {id_: trial for id_, trial in row.items() if id_ in compared} for block, row in whole.items()},
        dropped=run.dropped,
        void=tuple(void),
        control={block: row[design.control.id] for block, row in whole.items() if design.control.id in row}
        if design.control
        else {},
    )


# What can't be compared or ranked, as a code and values; ``report/several.py`` has a sentence for each.


Code = Literal[
    "other metric",
    "other load",
    "other margin",
    "nothing in common",
    "named twice",
    "no such pair",
    "no such control",
    "control alone",
    "metrics of runs",
    "too few stacks",
    "no such baseline",
    "no cuts",
    "other treatments",
    "too few runs",
    "no such run",
]


class RefusedError(UserError):
    """The runs can't answer what was asked; ``given`` is what a sentence about it needs."""

    def __init__(self, code: Code, **given: Any) -> None:  # noqa: ANN401 - labels, figures, lists of them
        super().__init__(code, given)
        self.code, self.given = code, given
