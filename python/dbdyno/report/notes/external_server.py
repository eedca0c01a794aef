"""What a report says of an external server: not restarted, loaded by us, and what could not be seen."""

from collections.abc import Iterator

from dbdyno.report.source import part
from dbdyno.store.records import Run, Trial

OTHERS = "others"  # who started the server, as it is observed


def external_server_lines(run: Run) -> list[str]:
    """Return how each treatment on an external server got its data, and what is unknown; empty where there is none."""
    trials = [trial for trial in run.trials if part(trial.observed, "server").get("started_by") == OTHERS]
    if not trials:
        return []
    return [
        "The server is external and was not restarted between trials: what it keeps in memory stayed warm.",
        *_data_lines(run, trials),
        *_unknown_lines(trials),
    ]


def is_unwatched(trial: Trial) -> bool:
    """Return whether the server's process was not seen, so that nothing is known of what others did beside it."""
    server = part(trial.observed, "server")
    return server.get("started_by") == OTHERS and server.get("process") != "found"


def _data_lines(run: Run, trials: list[Trial]) -> Iterator[str]:
    labels = run.design.labels
    by_origin: dict[str, dict[str, None]] = {}
    for trial in trials:
        how = str(part(trial.observed, "data").get("loaded", "unknown"))
        by_origin.setdefault(how, {})[labels.get(trial.treatment, trial.treatment)] = None
    for how, of in by_origin.items():
        which = "The data" if len(by_origin) == 1 else f"The data of {'; '.join(of)}"
        yield f"{which} was loaded {how}, and dropped at the end."


def _unknown_lines(trials: list[Trial]) -> Iterator[str]:
    yield "Unknown: what disks, filesystem and memory limit the server has."
    elsewhere = not any(part(trial.observed, "server").get("local") for trial in trials)
    if elsewhere:
        yield "What is known of the host and its processors is of the load generator's host, not of the server's."
    if any(map(is_unwatched, trials)):
        where = "elsewhere" if elsewhere else "out of sight"
        yield (
            f"Unknown too, as its process is {where}: the server's CPU, and the interference that trials met; "
            "no block was repeated for that."
        )
