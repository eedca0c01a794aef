"""Trials beside which others used the host too much: each with its figures, to show why a block was repeated."""

from collections.abc import Mapping
from typing import Any

from dbdyno.analysis.analyse import Analysis
from dbdyno.model.wording import count, number, percent
from dbdyno.report.document import Abridged, Details, Paragraph, Section, bullets
from dbdyno.report.source import Source, fields, figure
from dbdyno.store.records import Run, Trial

_WHAT = {"foreign_cpu": "other processes took", "stolen": "the hypervisor took", "foreign_io": "others moved"}
LINES_MAX = 6
NOTE = (
    "In these trials other programs used the host beyond fixed limits, which do not depend on the result. Unless the"
    " study says otherwise, the block of such a trial is repeated whole; at the last attempt it is kept."
)


def section(source: Source) -> Section:
    """Return each trial and what disturbed it; elsewhere than on a page a few of them."""
    run, analysis = source.run, source.analysis
    lines = interference_lines(run, analysis)
    each = Details("Each of them", bullets(lines), open=len(lines) <= LINES_MAX)
    full = (Paragraph(interference_summary(run, analysis)), Paragraph(NOTE, "soft"), each)
    shown = (Abridged(full, bullets(interference_lines_in_short(run, analysis))),) if lines else ()
    return Section("disturbed", "Trials with interference", shown, data={"disturbed": interference_json(run, analysis)})


def interference_summary(run: Run, analysis: Analysis) -> str:
    """Return how many trials that verdicts rest on met interference, and what can be done; empty where none did at all.

    Only these are counted out of a whole: of trials that are not used there is another whole, and two such counts would
    read as if one were wrong.
    """
    counting = [trial for row in analysis.blocks.trials.values() for trial in row.values()]
    kept = sum(trial.disturbed for trial in counting)
    others = sum(trial.disturbed for trial in run.trials) - kept
    single = others == 1
    if not kept:
        unused = f"Interference in {count(others, 'trial')}, which {'is' if single else 'are'} not used"
        return f"{unused}: no verdict rests on {'it' if single else 'them'}." if others else ""
    text = f"Interference in {kept:,} of {count(len(counting), 'trial')} that the verdicts rest on"
    also = f" (and in {others:,} more, not used)" if others else ""
    return f"{text}{also}: stop the other programs on this host and run the study again."


def interference_lines_in_short(run: Run, analysis: Analysis) -> list[str]:
    """Return the summary, those trials first that count, and where to find the rest."""
    lines = interference_lines(run, analysis)
    if not lines:
        return []
    rest = len(lines) - LINES_MAX
    more = [f"{rest:,} more are in the JSON and the HTML report."] if rest > 0 else []
    return [interference_summary(run, analysis), *lines[:LINES_MAX], *more]


def interference_lines(run: Run, analysis: Analysis) -> list[str]:
    """Return one line per disturbed trial: which, what was done about it, what disturbed it. Those that count first."""
    labels = run.design.labels
    return [
        f"{trial.id} ({labels.get(trial.treatment, trial.treatment)}, block {trial.block}, attempt {trial.attempt}),"
        f" {'kept' if _counts(trial, analysis) else 'not used'}:"
        f" {'; '.join(beyond(trial)) or 'beyond a limit that this dbdyno does not know'}"
        for trial in sorted(run.trials, key=lambda trial: not _counts(trial, analysis))
        if trial.disturbed
    ]


def others_lines(run: Run, analysis: Analysis) -> list[str]:
    """Return a sentence on what others did at most in the trials that count, if the run folder says so."""
    counting = [trial.disturbance for trial in run.trials if _counts(trial, analysis)]
    parts = []
    for name in _WHAT:
        known = [value for disturbance in counting if (value := figure(disturbance, name)) is not None]
        parts += [_amount(name, max(known))] if known else []
    return [f"At most, in a trial that counts: {', '.join(parts)}."] if parts else []


def interference_json(run: Run, analysis: Analysis) -> list[dict[str, Any]]:
    """Return all of them, as the JSON report has them."""
    return [
        {
            "trial": trial.id,
            **fields(trial, "treatment block attempt"),
            "counts": _counts(trial, analysis),
            **{name: trial.disturbance.get(name) for name in ("beyond", *_WHAT, "limits", "others")},
        }
        for trial in run.trials
        if trial.disturbed
    ]


def _counts(trial: Trial, analysis: Analysis) -> bool:
    """Whether verdicts rest on this very trial."""
    used = analysis.blocks.trials.get(trial.block, {}).get(trial.treatment)
    return used is not None and used.attempt == trial.attempt


def beyond(trial: Trial) -> list[str]:
    """Return what was beyond its limit, ``"other processes took 46 % of the CPU (limit 5.5 %; sh 0.93 cores)"``."""
    limits = trial.disturbance.get("limits")
    excesses = []
    for name in _WHAT:
        value, limit = figure(trial.disturbance, name), figure(limits, name)
        if name in trial.disturbance.get("beyond", ()) and value is not None and limit is not None:
            excesses.append(f"{_amount(name, value)} (limit {_size(name, limit)}{_who(name, trial)})")
    return excesses


def _amount(name: str, value: float) -> str:
    """Return ``"other processes took 46 % of the CPU"``."""
    return f"{_WHAT[name]} {_size(name, value)}{'' if name == 'foreign_io' else ' of the CPU'}"


def _size(name: str, value: float) -> str:
    if name == "foreign_io":
        return f"{number(value / 1e6)} MB/s"
    return percent(min(value, 1.0), sign=False)  # the counters are coarse: of a short trial they can say 102 %


def _who(name: str, trial: Trial) -> str:
    others = trial.disturbance.get("others")
    if name != "foreign_cpu" or not isinstance(others, Mapping):
        return ""
    cores = {str(who): value for who in others if (value := figure(others, who)) is not None}
    return f"; {', '.join(f'{who} {number(value)} cores' for who, value in cores.items())}" if cores else ""
