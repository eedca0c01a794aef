"""What a run says as rows of plain values, before any data frame."""

from collections.abc import Iterator, Mapping
from typing import Any

from dbdyno.analysis.analyse import Analysis
from dbdyno.report.document import plain
from dbdyno.report.sections.results import treatment_json
from dbdyno.report.sections.verdicts import verdict_json
from dbdyno.report.sentences import verdict_sentence
from dbdyno.store.records import Run, Trial

_NESTED = {"levels", "overload"}  # of a treatment in JSON: no plain values


def counting(run: Run, analysis: Analysis) -> list[Trial]:
    """Return the trials that verdicts rest on, in run order."""
    ids = {trial.id for row in analysis.blocks.trials.values() for trial in row.values()}
    return [trial for trial in run.trials if trial.id in ids]


def trial_rows(run: Run, analysis: Analysis) -> Iterator[dict[str, Any]]:
    """Yield each finished trial: where it stood, its factors and what is fixed to its host, and its metrics."""
    counts = {trial.id for trial in counting(run, analysis)}
    treatments, fleet = {treatment.id: treatment for treatment in run.design.tried}, run.design.fleet
    for trial in run.trials:
        treatment = treatments[trial.treatment]
        row = {
            "trial": trial.id,
            "block": trial.block,
            "attempt": trial.attempt,
            "position": trial.position,
            **({"host": trial.host} if fleet else {}),
            "treatment": trial.treatment,
            "label": treatment.label,
            "started_at": trial.started_at,
            "counts": trial.id in counts,
            "disturbed": trial.disturbed,
            **trial.metrics,
        }
        fixed = {name: of.get(trial.host, "") for name, of in fleet.levels.items()} if fleet else {}
        yield _with_factors(row, {**treatment.levels, **fixed}, after="label")


def verdict_rows(analysis: Analysis) -> Iterator[dict[str, Any]]:
    """Yield each planned comparison, as the JSON report has it, with its sentence; its remarks are one text."""
    for verdict in analysis.verdicts:
        row = verdict_json(verdict, analysis)
        yield {**row, "remarks": " ".join(row["remarks"]), "sentence": plain(verdict_sentence(verdict, analysis))}


def treatment_rows(run: Run, analysis: Analysis) -> Iterator[dict[str, Any]]:
    """Yield each treatment, as the JSON report has it, a column for each factor."""
    levels = {treatment.id: treatment.levels for treatment in run.design.treatments}
    for treatment in analysis.treatments:
        row = {key: value for key, value in treatment_json(treatment, analysis).items() if key not in _NESTED}
        yield _with_factors(row, levels[treatment.id], after="label")


def _with_factors(row: Mapping[str, Any], levels: Mapping[str, str], after: str) -> dict[str, Any]:
    """Put factors into a row by their names; one that is called as a column of ours gets ``factor.`` before it."""
    placed = {}
    for name, value in row.items():
        placed[name] = value
        if name == after:
            placed |= {f"factor.{factor}" if factor in row else factor: level for factor, level in levels.items()}
    return placed
