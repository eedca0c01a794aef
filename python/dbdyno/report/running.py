"""What a report says of servers that ran already: not restarted, loaded by us, and what nobody could see."""

from collections.abc import Iterator, Mapping
from typing import Any

from dbdyno.store.records import Run, Trial

OTHERS = "others"  # who started the server, as it is observed


def running_lines(run: Run) -> list[str]:
    """Return how each treatment on such a server got its data, and what is unknown; empty where there is none."""
    trials = [trial for trial in run.trials if _part(trial, "server").get("started_by") == OTHERS]
    if not trials:
        return []
    return [
        "The server ran already and was not restarted between trials: what it keeps in memory stayed warm.",
        *_data_lines(run, trials),
        *_unknown_lines(trials),
    ]


def _data_lines(run: Run, trials: list[Trial]) -> Iterator[str]:
    labels = {treatment.id: treatment.label for treatment in run.design.treatments}
    told: dict[str, dict[str, None]] = {}
    for trial in trials:
        how = str(_part(trial, "data").get("loaded", "unknown"))
        told.setdefault(how, {})[labels.get(trial.treatment, trial.treatment)] = None
    for how, of in told.items():
        which = "The data" if len(told) == 1 else f"The data of {'; '.join(of)}"
        yield f"{which} was loaded {how}, and dropped at the end."


def _unknown_lines(trials: list[Trial]) -> Iterator[str]:
    yield "Unknown: what disks, filesystem and memory limit the server has."
    elsewhere = not any(_part(trial, "server").get("local") for trial in trials)
    if elsewhere:
        yield "What is told of the host and its processors is of the load generator's host, not of the server's."
    if any(_part(trial, "server").get("process") != "found" for trial in trials):
        where = "elsewhere" if elsewhere else "out of sight"
        yield (
            f"Unknown too, as its process is {where}: the server's CPU, and how much others disturbed the trials; "
            "no block was repeated for that."
        )


def _part(trial: Trial, layer: str) -> Mapping[str, Any]:
    found = trial.observed.get(layer)
    return found if isinstance(found, Mapping) else {}
