"""A run's kept trace on the devices and queues of all its treatments: the points, and what comes of them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

from dbdyno.analysis.blocks import usable_blocks
from dbdyno.errors import UserError
from dbdyno.model.prediction import Figures, Predicted, Prediction
from dbdyno.model.treatment import Treatment
from dbdyno.simulation.points import SimulatedPoint
from dbdyno.simulation.treatment_points import point_of
from dbdyno.store.block_trace import KEPT, figure_at
from dbdyno.store.records import Run, Trial
from dbdyno.store.run_folder import read_run
from dbdyno.store.series import read_series

PACES = ("closed", "open")


@dataclass(frozen=True)
class Planned:
    """What is simulated of a run: a point for each treatment that can be."""

    folder: Path
    run: Run
    source: Treatment
    trial: Trial
    load: Mapping[str, Any]
    points: Mapping[str, SimulatedPoint]  # by treatment
    refused: Mapping[str, str]

    def prediction(self, outcomes: Sequence[Mapping[str, Any]]) -> Prediction:
        """Return what comes of it; an outcome for each point. Raises ``UserError`` where nothing was replayed."""
        by_id = {one.id: one for one in self.run.design.treatments}
        each = []
        for id_, outcome in zip(self.points, outcomes, strict=True):
            if not outcome["reads"]["requests"] + outcome["writes"]["requests"]:
                raise UserError(f"{self.folder}: the trace of {self.trial.id} holds nothing of its measured run")
            trials = _trials(self.run, id_)
            measured = _measured(self.folder, trials) if trials else None
            each.append(Predicted(by_id[id_], outcome, _predicted(outcome), measured))
        return Prediction(
            self.source, self.trial.id, self.load["replay"], tuple(each), self.refused, tuple(_remarks(self.trial))
        )


def planned(folder: Path, treatment: str, replay: str, seed: int) -> Planned:
    """Return the points of a run: the load recorded under ``treatment`` (its baseline if empty) under each.

    Raises ``UserError``: it is no measured run, has no traces, or nothing of it can be simulated.
    """
    if replay not in {"", *PACES}:
        raise UserError(f"--replay is open or closed, not {replay[:40]}")
    run = read_run(folder)
    if run.is_simulated:
        raise UserError(f"{folder} is a simulated run; a prediction needs the trace of a measured one")
    source = _source(run, treatment)
    trial = _traced(folder, run, source)
    load: dict[str, Any] = {"kind": "trace", "files": [str(folder / "trials" / trial.id / KEPT)], "format": "blkparse"}
    load["replay"] = replay or "closed"
    if window := _recorded(trial).get("measured_s"):
        load["window_s"] = window
    points, refused = {}, {}
    for one in run.design.treatments:
        try:
            point = point_of(run, one, (source, trial), next(iter(_trials(run, one.id)), None))
        except ValueError as error:
            refused[one.label] = str(error)
        else:
            levels = {"device": one.label}
            points[one.id] = SimulatedPoint(levels, {**point, "seed": seed, "warm_up_s": 0.0, "load": load})
    if not points:
        raise UserError(f"{folder}: no treatment can be simulated: {'; '.join(dict.fromkeys(refused.values()))}")
    return Planned(folder, run, source, trial, load, points, refused)


def _source(run: Run, treatment: str) -> Treatment:
    wanted = treatment or run.design.baseline
    for one in run.design.treatments:
        if wanted in {one.id, one.label}:
            return one
    known = ", ".join(f"{one.id} ({one.label})" for one in run.design.treatments)
    raise UserError(f"--treatment {treatment[:60]!r} is none of this run's; there are {known}")


def _trials(run: Run, treatment: str) -> list[Trial]:
    """Return the trials that count; where none does, those that finished."""
    return usable_blocks(run).of(treatment) or [one for one in run.trials if one.treatment == treatment]


def _recorded(trial: Trial) -> dict[str, Any]:
    recorded = trial.block_trace.get("recorded")
    return recorded if isinstance(recorded, dict) else {}


def _traced(folder: Path, run: Run, source: Treatment) -> Trial:
    """Return the first trial of the treatment with a trace."""
    for trial in _trials(run, source.id):
        file = folder / "trials" / trial.id / KEPT
        if file.is_file() and not file.is_symlink():
            return trial
    if any((folder / "trials" / trial.id / KEPT).is_file() for trial in run.trials):
        raise UserError(f"{folder} has no trace of {source.label}; name another by --treatment")
    raise UserError(f"{folder} has no block traces; measure it by dbdyno run STUDY --into DIR --keep-traces")


def _remarks(trial: Trial) -> list[str]:
    recorded = _recorded(trial)
    found = []
    if not recorded.get("measured_s"):
        found.append("When measuring began in the trace is not known: its warm-up is replayed, too.")
    if recorded.get("full"):
        found.append(f"The trace of {trial.id} is full and ends early: only its beginning is replayed.")
    if recorded.get("failed"):
        found.append(f"The trace of {trial.id} could not be written to its end: {recorded['failed']}.")
    if lost := figure_at(trial.block_trace, "lost"):
        found.append(f"{lost:,.0f} events of the trace were lost when it was recorded.")
    return found


def _predicted(outcome: Mapping[str, Any]) -> Figures:
    columns, ways = outcome["columns"], [outcome[way]["latency"] for way in ("reads", "writes")]
    latency_ns = sum(way["mean_ns"] * way["count"] for way in ways) / (sum(way["count"] for way in ways) or math.nan)
    return Figures(columns["r/s"] + columns["w/s"], columns["await"], latency_ns / 1e6)


def _measured(folder: Path, trials: Sequence[Trial]) -> Figures:
    """Return means over trials: iostat's columns from their series, latency from the figures of their block trace."""
    watched = read_series(folder, [trial.id for trial in trials])
    each = [iostat_means(watched.get(trial.id, {}).get("block_device", {})) for trial in trials]
    return Figures(
        _mean([rate for rate, _ in each]),
        _mean([wait for _, wait in each]),
        _mean([_latency_ms(trial.block_trace) for trial in trials]),
    )


def _latency_ms(trace: Mapping[str, Any]) -> float:
    parts = [figure_at(trace, part, "all", "mean") for part in ("queue_ms", "device_ms")]
    return sum(math.nan if part is None else part for part in parts)


def _mean(values: Sequence[float]) -> float:
    known = [value for value in values if math.isfinite(value)]
    return fmean(known) if known else math.nan


def iostat_means(columns: Mapping[str, Any]) -> tuple[float, float]:
    """Return requests/s and await, ms, of a series of iostat's columns; its first interval only gives the begin."""
    if not {"t_s", "r/s", "w/s", "r_await", "w_await"} <= columns.keys():
        return math.nan, math.nan
    ends = columns["t_s"]
    seconds = [float(after - before) for before, after in pairwise(ends)]
    requests = waited = 0.0
    for way in "rw":
        for length, rate, wait in zip(seconds, columns[f"{way}/s"][1:], columns[f"{way}_await"][1:], strict=True):
            requests += length * float(rate)
            waited += length * float(rate) * float(wait)
    return requests / (sum(seconds) or math.nan), waited / (requests or math.nan)
