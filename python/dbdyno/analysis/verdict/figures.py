"""One metric of a run's trials that count: its logarithms and contrasts of them, with and without carry-over.

Everything that compares treatments of a run takes its figures here: pairs, factors, letters, curves, rankings. So what
is known of the figures is known to all of them.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from dbdyno.analysis.blocks import UsableBlocks
from dbdyno.analysis.host_speed import correct
from dbdyno.analysis.statistics.arrays import Floats
from dbdyno.analysis.statistics.effect import logarithms, relative
from dbdyno.analysis.statistics.estimate import Estimate
from dbdyno.analysis.statistics.multiplicity import holm
from dbdyno.analysis.verdict.carry_over import (
    ASKED,
    CLEAR,
    LIKELY,
    MANY_TREATMENTS,
    UNKNOWN,
    Fit,
    Ran,
    Taken,
    fit,
    taken_out,
)
from dbdyno.analysis.verdict.reasons import CarryOver
from dbdyno.analysis.verdict.resolution import FINE_ENOUGH, Resolution, combined, resolutions
from dbdyno.model.metrics import METRICS, value_of
from dbdyno.store.records import Run, Trial

Contrast = Mapping[str, float]  # treatment id -> weight; the weights add up to 0


@dataclass(frozen=True)
class Contrasted:
    """A contrast of ln(metric) by block, in ascending order of the blocks that have all it needs."""

    by_block: Mapping[int, float]  # as compared: the host's speed taken off, what trials leave not
    carry_over: CarryOver | None = None  # None: it can't be estimated
    without_carry_over: Floats | None = None  # the same blocks; None: it can't be estimated, or need not be asked


class Figures:
    """One metric of a run's trials that count; nothing of a treatment that was dropped, or has a 0 in any block."""

    def __init__(self, run: Run, blocks: UsableBlocks, metric: str) -> None:
        self.run, self.blocks, self.metric = run, blocks, metric
        self.treatments = [one.id for one in run.design.treatments]
        self.measured_logs = {
            id_: {} if id_ in blocks.dropped else logarithms(blocks.values(id_, metric)) for id_ in self.treatments
        }
        self.host_speed, self.logs = _at_one_speed(self.measured_logs, blocks)

    def by_block(self, contrast: Contrast) -> dict[int, float]:
        """Return block -> the contrast, of the blocks in which all treatments it needs have a figure."""
        each = [self.logs[id_] for id_ in contrast]
        common = set[int].intersection(*(set(one) for one in each)) if each else set()
        return {
            block: math.fsum(weight * self.logs[id_][block] for id_, weight in contrast.items())
            for block in sorted(common)
        }

    def resolution(self, contrast: Contrast) -> Resolution:
        """Return how coarse a contrast is."""
        return combined((weight, self._resolutions.get(id_, FINE_ENOUGH)) for id_, weight in contrast.items())

    def contrasted(self, contrasts: Sequence[Contrast]) -> list[Contrasted]:
        """Return contrasts that are one family, each with its carry-over, by Holm over all of them."""
        measured = [self.by_block(one) for one in contrasts]
        if self._fitted is None:
            return [Contrasted(one) for one in measured]
        taken = [self._taken(contrast, list(one)) for contrast, one in zip(contrasts, measured, strict=True)]
        adjusted = holm([1.0 if one is None else float(one.p) for one in taken]).tolist() if taken else []
        return [self._contrasted(values, one, p) for values, one, p in zip(measured, taken, adjusted, strict=True)]

    @cached_property
    def logs_without_carry_over(self) -> Mapping[str, Mapping[int, float]] | None:
        """``logs`` less what the trial before left, of all treatments alike; None where that can't be estimated."""
        fitted = self._fitted
        if fitted is None or not self._is_estimable(fitted):
            return None
        ran = self._ran
        left = np.where(ran.before == UNKNOWN, fitted.left.mean(), fitted.left[np.maximum(ran.before, 0)])
        corrected = ran.logs - left
        found: dict[str, dict[int, float]] = {id_: {} for id_ in self.treatments}
        for block, row in self._rows.items():
            for place in np.flatnonzero(ran.treatment[row] != UNKNOWN):
                id_ = self.treatments[ran.treatment[row, place]]
                if block in self.logs[id_]:
                    found[id_][block] = float(corrected[row, place])
        return found

    @cached_property
    def _resolutions(self) -> dict[str, Resolution]:
        return resolutions(self.blocks, self.metric, METRICS[self.metric].unit if self.metric in METRICS else "")

    @cached_property
    def _rows(self) -> dict[int, int]:
        return {block: row for row, block in enumerate(sorted(self.blocks.trials))}

    @cached_property
    def _ran(self) -> Ran:
        """The usable trials in the order they ran."""
        before = predecessors(self.run)
        number = {id_: place for place, id_ in enumerate(self.treatments)}
        most = max(map(len, self.blocks.trials.values()))
        logs = np.full((len(self.blocks.trials), most), np.nan)
        treatment, came = (np.full(logs.shape, UNKNOWN) for _ in range(2))
        for block, row in self._rows.items():
            for place, trial in enumerate(sorted(self.blocks.trials[block].values(), key=_place)):
                logs[row, place] = self._log_of(trial)
                treatment[row, place] = number[trial.treatment]
                came[row, place] = number.get(before.get(trial.id, ""), UNKNOWN)  # after a control it is unknown, too
        return Ran(logs, treatment, came, len(self.treatments))

    def _log_of(self, trial: Trial) -> float:
        """Return ln(metric) as it is compared; as measured of a trial of a treatment that was dropped; NaN of none."""
        if (log := self.logs[trial.treatment].get(trial.block)) is not None:
            return log
        value = value_of(trial.metrics, self.metric)
        return math.log(value) if math.isfinite(value) and value > 0 else math.nan

    @cached_property
    def _fitted(self) -> Fit | None:
        """The carry-over of the whole run; None where none can be, or none is in any comparison.

        Where every trial comes after one of the baseline, what that leaves is in all of them alike. A simulated trial
        begins with a drive and a kernel of its own: nothing is left for it.
        """
        nothing_left = self.run.design.settle == "trial" or self.run.is_simulated
        if len(self.treatments) < 2 or not self.blocks.trials or nothing_left:  # noqa: PLR2004
            return None
        return fit(self._ran)

    def _is_estimable(self, fitted: Fit) -> bool:
        """Return whether what each treatment leaves against the first can be estimated."""
        weights = np.eye(len(self.treatments)) - np.eye(len(self.treatments))[0]
        kept = [row for id_, row in zip(self.treatments, weights, strict=True) if id_ not in self.blocks.dropped]
        return all(bool(taken_out(self._ran, fitted, row).known) for row in kept if row.any())

    def _taken(self, contrast: Contrast, at: Sequence[int]) -> Taken | None:
        if not at or self._fitted is None:
            return None
        which = [self._rows[block] for block in at]
        ran = self._ran
        part = Ran(ran.logs[which], ran.treatment[which], ran.before[which], ran.treatments)
        return taken_out(part, self._fitted, np.array([contrast.get(id_, 0.0) for id_ in self.treatments]))

    def _contrasted(self, values: Mapping[int, float], taken: Taken | None, p: float) -> Contrasted:
        if taken is None or not taken.known:
            return Contrasted(values)
        low, value, high = (relative(float(end)) for end in (taken.low, taken.difference, taken.high))
        shift = relative(-float(taken.difference) / len(self.treatments))
        found = CarryOver(Estimate(value, low, high, len(values)), p, shift)
        if p <= CLEAR:
            return Contrasted(values, replace(found, taken_out=True), taken.widened)
        if p <= LIKELY:
            return Contrasted(values, found, taken.widened)
        asked = len(self.treatments) < MANY_TREATMENTS or p < ASKED
        return Contrasted(values, found, taken.corrected if asked else None)


@dataclass(frozen=True)
class HostSpeed:
    """What the host's own speed explains of what trials differ by."""

    covariates: tuple[str, ...]  # that were looked at, by the names they have in a trial
    used: tuple[str, ...]  # those of them that treatments do not differ in
    r: float  # correlation of what they predict, of blocks they were not fitted on, with what trials differ by

    @property
    def saved(self) -> float:
        """The share of the blocks that it makes unnecessary."""
        return self.r**2


COVARIATES = ("work_wall_ns", "flush_ns")  # planned beforehand; whichever all trials of the blocks that count have


def _at_one_speed(
    logs: Mapping[str, Mapping[int, float]], blocks: UsableBlocks
) -> tuple[HostSpeed | None, dict[str, dict[int, float]]]:
    """Return ln(metric) as if the host had always been equally fast, and what that took; as measured where unknown."""
    measured = {id_: dict(each) for id_, each in logs.items()}
    ids = [id_ for id_, each in logs.items() if each]
    common = common_blocks(logs[id_] for id_ in ids)
    trials = [[blocks.trials[block][id_] for id_ in ids] for block in common]
    every = [trial for row in trials for trial in row]
    names = tuple(name for name in COVARIATES if every and all(trial.host_speed.get(name, 0.0) > 0 for trial in every))
    if not names or len(ids) < 2:  # noqa: PLR2004
        return None, measured
    covariates = np.log([[[trial.host_speed[name] for name in names] for trial in row] for row in trials])
    found = correct(np.array([[logs[id_][block] for id_ in ids] for block in common]), covariates)
    for row, block in enumerate(common):
        for column, id_ in enumerate(ids):
            measured[id_][block] = float(found.logs[row, column])
    used = tuple(name for name, is_used in zip(names, found.used.tolist(), strict=True) if is_used)
    return HostSpeed(names, used, float(found.r)), measured


def difference_of_pair(baseline: str, level: str) -> Contrast:
    """Return the contrast of a level less its baseline."""
    return {level: 1.0, baseline: -1.0}


def predecessors(run: Run) -> dict[str, str]:
    """Return trial id -> treatment of the trial that ran just before it.

    Each host has an order of its own. Attempts that don't count ran, too. One in which a trial failed left the host in
    an unknown state, so nothing is known of the trials in it and of the first after it; nor of the very first.
    """
    found = {}
    for host in {trial.host for trial in run.trials}:
        ordered = sorted((trial for trial in run.trials if trial.host == host), key=_place)
        failed = sorted({(failure.block, failure.attempt) for failure in run.failures if failure.host == host})
        for before, trial in pairwise(ordered):
            since, until = _place(before)[:2], _place(trial)[:2]
            if not any(since <= one <= until for one in failed):
                found[trial.id] = before.treatment
    return found


def _place(trial: Trial) -> tuple[int, int, int]:
    return trial.block, trial.attempt, trial.position


def common_blocks(logs: Iterable[Mapping[int, float]]) -> list[int]:
    """Return the blocks that all have, ascending."""
    each = [set(one) for one in logs]
    return sorted(set[int].intersection(*each)) if each else []
