"""Trials beside which others used the host too much: each with its figures, to show why a block was repeated."""

from typing import Any

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.disturbed import WHAT, amount, beyond, figure
from dbdyno.analysis.wording import count
from dbdyno.store.records import Run, Trial

HEADING = "Disturbed trials"
LINES_MAX = 6


def disturbed_summary(run: Run, analysis: Analysis) -> str:
    """Return how many there are and what can be done about it; empty where there are none."""
    disturbed = [trial for trial in run.trials if trial.disturbed]
    if not disturbed:
        return ""
    kept = sum(_counts(trial, analysis) for trial in disturbed)
    one = len(disturbed) == 1
    text = f"{len(disturbed):,} of {count(len(run.trials), 'trial')} {'was' if one else 'were'} disturbed"
    if not kept:
        return f"{text}; no verdict rests on {'it' if one else 'any of them'}."
    which = "it" if one else f"{kept:,} of them"
    return f"{text}. Verdicts rest on {which}: stop what runs beside on the host, and run the study again."


def disturbed_lines_in_short(run: Run, analysis: Analysis) -> list[str]:
    """Return the summary, those trials first that count, and where to find the rest."""
    lines = disturbed_lines(run, analysis)
    if not lines:
        return []
    rest = len(lines) - LINES_MAX
    more = [f"{rest:,} more are in the JSON and the HTML report."] if rest > 0 else []
    return [disturbed_summary(run, analysis), *lines[:LINES_MAX], *more]


def disturbed_lines(run: Run, analysis: Analysis) -> list[str]:
    """Return one line per disturbed trial: which, what was done about it, what disturbed it. Those that count first."""
    labels = {treatment.id: treatment.label for treatment in run.design.treatments}
    return [
        f"{trial.id} ({labels.get(trial.treatment, trial.treatment)}, block {trial.block}, attempt {trial.attempt}),"
        f" {'kept' if _counts(trial, analysis) else 'not used'}:"
        f" {'; '.join(beyond(trial)) or 'beyond a limit that this dbdyno does not know'}"
        for trial in sorted(run.trials, key=lambda trial: not _counts(trial, analysis))
        if trial.disturbed
    ]


def others_lines(run: Run, analysis: Analysis) -> list[str]:
    """Return a sentence on what others did at most in the trials that count, if the run folder tells."""
    counting = [trial.disturbance for trial in run.trials if _counts(trial, analysis)]
    parts = []
    for name in WHAT:
        known = [value for one in counting if (value := figure(one, name)) is not None]
        parts += [amount(name, max(known))] if known else []
    return [f"At most, in a trial that counts: {', '.join(parts)}."] if parts else []


def disturbed_json(run: Run, analysis: Analysis) -> list[dict[str, Any]]:
    """Return all of them, as the JSON report has them."""
    return [
        {
            "trial": trial.id,
            "treatment": trial.treatment,
            "block": trial.block,
            "attempt": trial.attempt,
            "counts": _counts(trial, analysis),
            **{name: trial.disturbance.get(name) for name in ("beyond", *WHAT, "limits", "others")},
        }
        for trial in run.trials
        if trial.disturbed
    ]


def _counts(trial: Trial, analysis: Analysis) -> bool:
    """Whether verdicts rest on this very trial."""
    used = analysis.blocks.trials.get(trial.block, {}).get(trial.treatment)
    return used is not None and used.attempt == trial.attempt
