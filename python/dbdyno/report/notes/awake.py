"""What kept processors from halting, and the time it took that would have been idle."""

from statistics import fmean

from dbdyno.model.wording import number
from dbdyno.report.source import figure
from dbdyno.store.records import Run


def awake_lines(run: Run) -> list[str]:
    """Return a sentence for each means and the treatments it stood for; nothing where processors halted as usual."""
    found: dict[str, set[str]] = {}
    for trial in run.trials:
        if by := trial.awake.get("by"):
            found.setdefault(str(by), set()).add(trial.treatment)
    return [_line(run, by, treatments) for by, treatments in sorted(found.items())]


def _line(run: Run, by: str, treatments: set[str]) -> str:
    all_of_them = treatments >= {treatment.id for treatment in run.design.treatments}
    of = "" if all_of_them else f" for {', '.join(run.design.labels.get(id_, id_) for id_ in sorted(treatments))}"
    line = f"Processors were kept awake {by}{of}"
    trials = [trial for trial in run.trials if trial.treatment in treatments and trial.awake.get("by") == by]
    used = [seconds for trial in trials if (seconds := figure(trial.awake, "cpu_seconds"))]
    if not used:
        return f"{line}."
    return (
        f"{line}, which used {number(fmean(used))} s of otherwise idle time a trial (mean). It counts as %idle,"
        " which then includes waiting for I/O (%iowait); CPU pressure is unknown."
    )
