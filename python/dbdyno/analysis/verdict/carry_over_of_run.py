"""The carry-over of a run: which trial ran before which, and each comparison with what its predecessors left."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from dbdyno.analysis.blocks import UsableBlocks
from dbdyno.analysis.statistics.arrays import Floats
from dbdyno.analysis.statistics.effect import relative
from dbdyno.analysis.statistics.estimate import Estimate
from dbdyno.analysis.statistics.multiplicity import holm
from dbdyno.analysis.verdict.carry_over import CLEAR, UNKNOWN, Fit, Ran, Taken, difference_of, fit, taken_out
from dbdyno.analysis.verdict.doubts import Doubt
from dbdyno.analysis.verdict.reasons import CarryOver
from dbdyno.model.metrics import value_of
from dbdyno.store.records import Run, Trial


@dataclass(frozen=True)
class Corrected:
    """One comparison, its carry-over considered."""

    carry_over: CarryOver | None = None  # None: it can't be estimated
    instead: Floats | None = None  # log ratios to judge by in place of those measured, by block in ascending order
    doubts: tuple[Doubt, ...] = ()


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


def carried(
    run: Run, blocks: UsableBlocks, metric: str, compared: Sequence[tuple[str, str, Sequence[int]]]
) -> list[Corrected]:
    """Return each comparison (baseline, level, its blocks in ascending order) with its carry-over considered.

    Where every trial comes after one of the baseline, what that leaves is in all of them alike, and in no ratio. A
    simulated trial begins with a drive and a kernel of its own: nothing is left for it.
    """
    ids = [one.id for one in run.design.treatments]
    nothing_left = run.design.settle == "trial" or run.is_simulated
    if len(ids) < 2 or not blocks.trials or not compared or nothing_left:  # noqa: PLR2004
        return [Corrected() for _ in compared]
    before, number = predecessors(run), {id_: place for place, id_ in enumerate(ids)}
    ran, rows = _ran(blocks, metric, before, number)
    fitted = fit(ran)
    each = [_taken(ran, fitted, rows, number[baseline], number[level], at) for baseline, level, at in compared]
    adjusted = holm([float(one.p) if one is not None else 1.0 for one in each])
    return [
        _corrected(one, float(p), len(ids), len(at))
        for one, p, (_, _, at) in zip(each, adjusted, compared, strict=True)
    ]


def _ran(
    blocks: UsableBlocks, metric: str, before: dict[str, str], number: dict[str, int]
) -> tuple[Ran, dict[int, int]]:
    """Return the usable trials as arrays, and where each block stands in them."""
    most = max(map(len, blocks.trials.values()))
    logs = np.full((len(blocks.trials), most), np.nan)
    treatment, came = (np.full(logs.shape, UNKNOWN) for _ in range(2))
    rows = {}
    for row, (block, trials) in enumerate(sorted(blocks.trials.items())):
        rows[block] = row
        for place, trial in enumerate(sorted(trials.values(), key=_place)):
            value = value_of(trial.metrics, metric)
            if np.isfinite(value) and value > 0:
                logs[row, place] = np.log(value)
            treatment[row, place] = number[trial.treatment]
            came[row, place] = number.get(before.get(trial.id, ""), UNKNOWN)  # after a control it is unknown, too
    return Ran(logs, treatment, came, len(number)), rows


def _taken(  # noqa: PLR0913, PLR0917  (a comparison and what it is read from)
    ran: Ran, fitted: Fit, rows: dict[int, int], baseline: int, level: int, at: Sequence[int]
) -> Taken | None:
    if not at:
        return None
    which = [rows[block] for block in at]
    part = Ran(ran.logs[which], ran.treatment[which], ran.before[which], ran.treatments)
    return taken_out(part, fitted, difference_of(ran.treatments, baseline, level))


def _corrected(taken: Taken | None, p: float, treatments: int, n: int) -> Corrected:
    if taken is None or not taken.known:
        return Corrected()
    low, value, high = (relative(float(end)) for end in (taken.low, taken.difference, taken.high))
    found = CarryOver(Estimate(value, low, high, n), p, relative(-float(taken.difference) / treatments))
    if p <= CLEAR:
        return Corrected(replace(found, taken_out=True), instead=taken.widened)
    return Corrected(found, doubts=(Doubt(taken.corrected, found),))
