"""Which trials count: the one place that decides what is left out, and why."""

from dataclasses import dataclass

from dbdyno.analysis.metrics import value_of
from dbdyno.store.records import Run, Trial

FAILURES_TO_DROP = 2  # attempts of the same block in which a treatment failed


@dataclass(frozen=True)
class UsableBlocks:
    """``trials[block][treatment id]`` of the attempts that count, the treatments dropped, the attempts left out."""

    trials: dict[int, dict[str, Trial]]
    dropped: frozenset[str]
    void: tuple[tuple[int, int], ...]  # (block, attempt), in order

    def values(self, treatment: str, metric: str) -> dict[int, float]:
        """Return block -> the treatment's metric, NaN where a trial lacks it; nothing where it is 0 in any block.

        There is no ratio to 0, and to leave out just those blocks would be to pick by the result.
        """
        return {} if self.without_ratio(treatment, metric) else self._figures(treatment, metric)

    def without_ratio(self, treatment: str, metric: str) -> int:
        """Return in how many blocks the treatment's metric is 0 or less."""
        return sum(value <= 0 for value in self._figures(treatment, metric).values())

    def _figures(self, treatment: str, metric: str) -> dict[int, float]:
        return {
            block: value_of(row[treatment].metrics, metric) for block, row in self.trials.items() if treatment in row
        }

    def of(self, treatment: str) -> list[Trial]:
        """Return the treatment's trials, by block."""
        return [row[treatment] for row in self.trials.values() if treatment in row]


def dropped_treatments(run: Run) -> frozenset[str]:
    """Return the treatments that failed in two attempts of the same block and never finished after.

    The runner left those out. One that did finish later was kept: the host was mended before the run went on.
    """
    failed: dict[tuple[str, int], set[int]] = {}
    for failure in run.failures:
        failed.setdefault((failure.treatment, failure.block), set()).add(failure.attempt)
    last = {treatment: (0, 0) for treatment, _ in failed}
    for trial in run.trials:
        if trial.treatment in last:
            last[trial.treatment] = max(last[trial.treatment], (trial.block, trial.attempt))
    return frozenset(
        treatment
        for (treatment, block), attempts in failed.items()
        if len(attempts) >= FAILURES_TO_DROP and last[treatment] < (block, max(attempts))
    )


def usable_blocks(run: Run) -> UsableBlocks:
    """Return, per block, the latest attempt in which every treatment that was not dropped finished and none failed.

    A block is the unit of comparison, so an attempt with a failed, missing or half-done trial is void as a whole, also
    for the treatments that did finish in it: the host was in an unknown state. A dropped treatment's failures void
    nothing; its trials in valid attempts are kept to be shown, never to be judged.
    """
    dropped = dropped_treatments(run)
    needed = {treatment.id for treatment in run.design.treatments} - dropped
    finished: dict[tuple[int, int], dict[str, Trial]] = {}
    for trial in run.trials:
        finished.setdefault((trial.block, trial.attempt), {})[trial.treatment] = trial
    failed = {(failure.block, failure.attempt) for failure in run.failures if failure.treatment in needed}
    valid = [key for key in sorted(finished) if key not in failed and needed <= finished[key].keys()]
    latest = dict(valid)  # ascending, so the last attempt of a block wins
    seen = finished.keys() | {(failure.block, failure.attempt) for failure in run.failures}
    return UsableBlocks(
        trials={block: finished[block, attempt] for block, attempt in sorted(latest.items())} if needed else {},
        dropped=dropped,
        void=tuple(sorted(key for key in seen if latest.get(key[0]) != key[1])),
    )
