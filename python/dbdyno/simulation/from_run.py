"""A run's kept trace on the devices and queues of all its treatments: the points, and what comes of them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from dbdyno._native import device_models
from dbdyno.analysis.blocks import usable_blocks
from dbdyno.errors import UserError
from dbdyno.model.design import Treatment
from dbdyno.model.metrics import mean_or_nan
from dbdyno.model.prediction import DeviceFigures, Predicted, Prediction
from dbdyno.model.quantity import size_bytes
from dbdyno.model.results import Recorded
from dbdyno.simulation.sweep import SimulatedPoint
from dbdyno.store.block_trace import KEPT, figure_at
from dbdyno.store.records import Run, Trial
from dbdyno.store.run_folder import read_run
from dbdyno.store.series import read_series
from dbdyno.study.simulated_loads import kernels_by_name

# The device and queue of a treatment of a measured run, as the fields of a simulated point.


KERNEL = "6.x"
LOOP_TAGS = 128  # requests that the loop device of an emulated disk has at the disk at once (drivers/block/loop.c)
TUNABLES = "queue.iosched"
# Else whatever differs from the recorded treatment would have made another load of it.
SIMULATED = {("stack", "device"), ("stack", "scheduler"), ("stack", "size"), ("queue", "nr_requests")}


def point_of(run: Run, treatment: Treatment, recorded: tuple[Treatment, Trial], own: Trial | None) -> dict[str, Any]:
    """Return its fields: as read back in a trial of its ``own``, else as the study gives them.

    Raises ``ValueError`` with what can't be simulated.
    """
    source, trial = recorded
    for factor in run.design.factors:
        levels = [side.levels.get(factor.name, "") for side in (source, treatment)]
        for section, name in factor.differing(*levels):
            if (section, name) not in SIMULATED and section != TUNABLES:
                raise ValueError(f"{section}.{name} is not a setting of a simulated device or queue")
    queue = own.observed.get("queue", {}) if own else {}
    observed = (own or trial).observed.get("device", {})
    if observed.get("kind") != "emulated":
        raise ValueError("the device is not an emulated drive, so it has no model")
    device = str(_study_value(run, treatment, "stack", "device") or observed.get("model"))
    size = _study_value(run, treatment, "stack", "size")
    bytes_ = observed["size_bytes"] if own or size is None else size_bytes(str(size))
    device_models(device, bytes_)
    scheduler = queue.get("scheduler") or _study_value(run, treatment, "stack", "scheduler")
    requests = queue.get("nr_requests") or _study_value(run, treatment, "queue", "nr_requests")
    return {
        "device": device, "size_bytes": bytes_, "kernel": KERNEL, "scheduler": scheduler, "queue_depth": LOOP_TAGS,
        "nr_requests": None if requests is None else int(requests),
        "tunables": _tunables(run, treatment, scheduler),
    }  # fmt: skip


def _tunables(run: Run, treatment: Treatment, scheduler: str | None) -> dict[str, int]:
    schedulers = kernels_by_name()[KERNEL].schedulers
    if scheduler is not None and scheduler not in schedulers:
        raise ValueError(
            f"scheduler {scheduler} is none of the simulated kernel {KERNEL}, which has {', '.join(schedulers)}"
        )
    known_tunables = schedulers[scheduler or next(iter(schedulers))]
    tunables = {}
    for name in _named_tunables(run):
        value = _study_value(run, treatment, TUNABLES, name)
        if value is None:
            continue
        if name not in known_tunables:
            raise ValueError(f"{TUNABLES}.{name} is not simulated")
        tunables[name] = int(value)
        if not known_tunables[name].least <= tunables[name] <= known_tunables[name].most:
            raise ValueError(
                f"{TUNABLES}.{name} {value} is outside of {known_tunables[name].least} to {known_tunables[name].most}"
            )
    return tunables


def _named_tunables(run: Run) -> list[str]:
    names = list(run.study.get("queue", {}).get("iosched", {}))
    for factor in run.design.factors:
        level_fields = [field for level in (factor.gives or {}).values() for field in level]
        fields = level_fields or [f"{factor.section}.{factor.name}"]
        names += [field.removeprefix(f"{TUNABLES}.") for field in fields if field.startswith(f"{TUNABLES}.")]
    return list(dict.fromkeys(names))


def _study_value(run: Run, treatment: Treatment, section: str, name: str) -> Any:  # noqa: ANN401 - what a study holds
    """Return what the study gives a treatment; None where it says nothing."""
    for factor in run.design.factors:
        level = treatment.levels.get(factor.name, "")
        level_value = (factor.gives or {}).get(level, {}).get(f"{section}.{name}")
        if level_value is not None:
            return level_value
        if not factor.gives and (factor.section, factor.name) == (section, name):
            return level
    body: Any = run.study
    for part in section.split("."):
        body = body.get(part, {})
    value = body.get(name)
    return None if isinstance(value, list | dict) else value


PACES = ("closed", "open")


@dataclass(frozen=True)
class SimulationPlan:
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
        by_id = {treatment.id: treatment for treatment in self.run.design.treatments}
        predictions = []
        for id_, outcome in zip(self.points, outcomes, strict=True):
            if not outcome["reads"]["requests"] + outcome["writes"]["requests"]:
                raise UserError(f"{self.folder}: the trace of {self.trial.id} holds nothing of its measured run")
            trials = _trials(self.run, id_)
            measured = _measured_figures(self.folder, trials) if trials else None
            predictions.append(Predicted(by_id[id_], outcome, _predicted_figures(outcome), measured))
        return Prediction(
            self.source,
            self.trial.id,
            self.load["replay"],
            tuple(predictions),
            self.refused,
            tuple(_remarks(self.trial)),
        )


def planned(folder: Path, treatment: str, replay: str, seed: int) -> SimulationPlan:
    """Return the points of a run: the load recorded under ``treatment`` (its baseline if empty) under each.

    Raises ``UserError``: it is no measured run, has no traces, or nothing of it can be simulated.
    """
    if replay not in {"", *PACES}:
        raise UserError(f"--replay is open or closed, not {replay[:40]}")
    run = read_run(folder)
    if run.is_simulated:
        raise UserError(f"{folder} is a simulated run; a prediction needs the trace of a measured one")
    source = _source(run, treatment)
    trial = _trial_with_trace(folder, run, source)
    load: dict[str, Any] = {"kind": "trace", "files": [str(folder / "trials" / trial.id / KEPT)], "format": "blkparse"}
    load["replay"] = replay or "closed"
    if window := _recording_of(trial).get("measured_s"):
        load["window_s"] = window
    points, refused = {}, {}
    for candidate in run.design.treatments:
        try:
            point = point_of(run, candidate, (source, trial), next(iter(_trials(run, candidate.id)), None))
        except ValueError as error:
            refused[candidate.label] = str(error)
        else:
            levels = {"device": candidate.label}
            points[candidate.id] = SimulatedPoint(levels, {**point, "seed": seed, "warm_up_s": 0.0, "load": load})
    if not points:
        raise UserError(f"{folder}: no treatment can be simulated: {'; '.join(dict.fromkeys(refused.values()))}")
    return SimulationPlan(folder, run, source, trial, load, points, refused)


def _source(run: Run, treatment: str) -> Treatment:
    name = treatment or run.design.baseline
    for candidate in run.design.treatments:
        if name in {candidate.id, candidate.label}:
            return candidate
    known = ", ".join(f"{candidate.id} ({candidate.label})" for candidate in run.design.treatments)
    raise UserError(f"--treatment {treatment[:60]!r} is none of this run's; there are {known}")


def _trials(run: Run, treatment: str) -> list[Trial]:
    """Return the trials that count; where none does, those that finished."""
    return usable_blocks(run).of(treatment) or [trial for trial in run.trials if trial.treatment == treatment]


def _recording_of(trial: Trial) -> Recorded:
    return trial.block_trace.get("recorded") or {}


def _trial_with_trace(folder: Path, run: Run, source: Treatment) -> Trial:
    """Return the first trial of the treatment with a trace."""
    for trial in _trials(run, source.id):
        file = folder / "trials" / trial.id / KEPT
        if file.is_file() and not file.is_symlink():
            return trial
    if any((folder / "trials" / trial.id / KEPT).is_file() for trial in run.trials):
        raise UserError(f"{folder} has no trace of {source.label}; name another by --treatment")
    raise UserError(f"{folder} has no block traces; measure it by dbdyno run STUDY --into DIR --keep-traces")


def _remarks(trial: Trial) -> list[str]:
    recorded = _recording_of(trial)
    remarks = []
    if not recorded.get("measured_s"):
        remarks.append("The trace does not say when measuring began: its warm-up is replayed, too.")
    if recorded.get("full"):
        remarks.append(f"The trace of {trial.id} is full and ends early: only its beginning is replayed.")
    if recorded.get("failed"):
        remarks.append(f"The trace of {trial.id} could not be written to its end: {recorded['failed']}.")
    if lost := figure_at(trial.block_trace, "lost"):
        remarks.append(f"{lost:,.0f} events of the trace were lost when it was recorded.")
    return remarks


def _predicted_figures(outcome: Mapping[str, Any]) -> DeviceFigures:
    columns, ways = outcome["columns"], [outcome[way]["latency"] for way in ("reads", "writes")]
    latency_ns = sum(way["mean_ns"] * way["count"] for way in ways) / (sum(way["count"] for way in ways) or math.nan)
    return DeviceFigures(columns["r/s"] + columns["w/s"], columns["await"], latency_ns / 1e6)


def _measured_figures(folder: Path, trials: Sequence[Trial]) -> DeviceFigures:
    """Return means over trials: iostat's columns from their series, latency from the figures of their block trace."""
    watched = read_series(folder, [trial.id for trial in trials])
    means = [iostat_means(watched.get(trial.id, {}).get("block_device", {})) for trial in trials]
    return DeviceFigures(
        mean_or_nan([rate for rate, _ in means]),
        mean_or_nan([wait for _, wait in means]),
        mean_or_nan([_latency_ms(trial.block_trace) for trial in trials]),
    )


def _latency_ms(trace: Mapping[str, Any]) -> float:
    parts = [figure_at(trace, part, "all", "mean") for part in ("queue_ms", "device_ms")]
    return sum(math.nan if part is None else part for part in parts)


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
