"""What two runs differ in: versions, host, study, and what was read back from the kernel and the server."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dbdyno.report.observed import UNOBSERVED, flattened
from dbdyno.store.records import Run, Treatment

ABSENT = "not there"
OF_A_MOMENT = {"load_average_1min"}  # facts that no two runs share


@dataclass(frozen=True)
class Difference:
    """One fact that is not the same in both runs."""

    what: str  # "version", "host", "study", "observed"
    name: str
    before: str
    after: str
    of: tuple[str, ...] = ()  # labels of the treatments it was seen in, where it was not seen in all


def run_differences(before: Run, after: Run, matched: Sequence[tuple[Treatment, Treatment]]) -> list[Difference]:
    """Return every known difference, by kind and name."""
    return [
        *_differing("version", flattened(before.versions), flattened(after.versions)),
        *_differing("host", flattened(before.host), flattened(after.host)),
        *_differing("study", flattened(before.study), flattened(after.study)),
        *_observed(before, after, matched),
    ]


def _differing(what: str, before: Mapping[str, str], after: Mapping[str, str]) -> list[Difference]:
    return [
        Difference(what, name, before.get(name, ABSENT), after.get(name, ABSENT))
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name) and name not in OF_A_MOMENT
    ]


def _observed(before: Run, after: Run, matched: Sequence[tuple[Treatment, Treatment]]) -> list[Difference]:
    """Return what was read back otherwise; a value that changes inside a run says nothing about the run."""
    seen: dict[tuple[str, str, str], list[str]] = {}
    for old, new in matched:
        sides = _constant(before, old), _constant(after, new)
        for name in sorted(sides[0].keys() & sides[1].keys()):
            values = sides[0][name], sides[1][name]
            if None not in values and values[0] != values[1]:
                seen.setdefault((name, str(values[0]), str(values[1])), []).append(new.label)
    return [
        Difference("observed", *key, of=() if len(labels) == len(matched) else tuple(labels))
        for key, labels in sorted(seen.items())
    ]


def _constant(run: Run, treatment: Treatment) -> dict[str, str | None]:
    """Return what every trial of a treatment read back, by name; None where it was not always the same."""
    trials = [flattened(trial.observed) for trial in run.trials if trial.treatment == treatment.id]
    names = {name for trial in trials for name in trial}
    values = {name: {trial.get(name, UNOBSERVED) for trial in trials} for name in names}
    return {name: next(iter(found)) if len(found) == 1 else None for name, found in values.items()}
