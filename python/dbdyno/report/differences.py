"""What two runs differ in: versions, host, study, and what was read back from the kernel and the server."""

from collections.abc import Sequence
from dataclasses import dataclass

from dbdyno.model.treatment import Treatment
from dbdyno.report.notes.settle import settle_words
from dbdyno.report.sections.observed import UNOBSERVED, flattened
from dbdyno.store.records import Run

KINDS = ("version", "host", "study")
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
    old, new = facts(before), facts(after)
    changed = [key for key in old.keys() | new.keys() if old.get(key) != new.get(key)]
    ordered = sorted(changed, key=lambda key: (KINDS.index(key[0]), key[1]))
    return [
        *(Difference(*key, old.get(key, ABSENT), new.get(key, ABSENT)) for key in ordered),
        *_observed(before, after, matched),
    ]


def facts(run: Run) -> dict[tuple[str, str], str]:
    """Return what is known of versions, host and study, by kind and name."""
    settle = {"design.settle": settle_words(run.design.settle)} if run.design.settle else {}
    # Of several hosts each by its name; where the run was typed changes nothing then.
    found = zip(KINDS, (run.versions, run.hosts or run.host, run.study), strict=True)
    known = {(kind, name): text for kind, value in found for name, text in flattened(value).items()}
    known |= {("study", name): text for name, text in settle.items()}
    return {key: text for key, text in known.items() if key[1].rpartition(".")[2] not in OF_A_MOMENT}


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
