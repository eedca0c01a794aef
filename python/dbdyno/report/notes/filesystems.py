"""What the filesystems below the data did: whether a sync reached the device, how full and how fragmented they were."""

from collections.abc import Iterator, Mapping
from statistics import fmean
from typing import Any

from dbdyno.model.treatment import Treatment
from dbdyno.model.wording import number, percent
from dbdyno.report.sentences import treatments_named
from dbdyno.report.source import figure, part
from dbdyno.store.records import Run, Trial

LISTED_MAX = 6  # figures that are given one by one
NEARLY_FULL = 0.1  # below this share of free room filesystems allocate worse


def filesystem_lines(run: Run) -> list[str]:
    """Return a sentence on syncs that did not reach the device, on fragmentation, and on room where it was short."""
    return [*_sync_lines(run), *_extent_lines(run), *_room_lines(run)]


def _by_treatment(run: Run) -> Iterator[tuple[Treatment, list[Trial]]]:
    for treatment in run.design.treatments:
        trials = [trial for trial in run.trials if trial.treatment == treatment.id]
        if trials:
            yield treatment, trials


def _sync_lines(run: Run) -> list[str]:
    reasons: dict[str, list[str]] = {}
    for treatment, trials in _by_treatment(run):
        unsynced = [trial for trial in trials if part(trial.observed, "filesystem").get("flushes_on_fsync") is False]
        for reason in dict.fromkeys(map(_why_unsynced, unsynced)):
            reasons.setdefault(reason, []).append(treatment.id)
    where = "; ".join(
        f"{treatments_named(ids, run.design.treatments, ', ')} ({reason})" for reason, ids in reasons.items()
    )
    if not where:
        return []
    return [f"A sync did not make the device empty its cache with {where}. What that gains, a power cut may take."]


def _why_unsynced(trial: Trial) -> str:
    if part(trial.observed, "device").get("kind") == "memory":
        return "there is no device"
    if part(trial.observed, "queue").get("write_cache") == "write through":
        return "to the kernel it has none that a power cut takes"
    return "barriers are off" if part(trial.observed, "filesystem").get("barriers") is False else "for no known reason"


def _extent_lines(run: Run) -> list[str]:
    means = {}
    for treatment, trials in _by_treatment(run):
        found = [value for trial in trials if (value := figure(trial.space, "extents_per_GiB")) is not None]
        if found:
            means[treatment.label] = fmean(found)
    if not means:
        return []
    figures = "; ".join(f"{label}: {number(mean)}" for label, mean in means.items())
    if len(means) > LISTED_MAX:
        least, most = min(means, key=means.__getitem__), max(means, key=means.__getitem__)
        figures = f"from {number(means[least])} ({least}) to {number(means[most])} ({most})"
    return [f"After the load the large data files lay in so many extents per GiB, mean over trials: {figures}."]


def _room_lines(run: Run) -> list[str]:
    short = []
    for treatment, trials in _by_treatment(run):
        shares = [share for trial in trials if (share := _free_share(trial.space)) is not None]
        if shares and min(shares) < NEARLY_FULL:
            short.append(f"{treatment.label} {percent(min(shares), sign=False)}")
    return [f"The filesystem was nearly full after the load; free were: {', '.join(short)}."] if short else []


def _free_share(space: Mapping[str, Any]) -> float | None:
    size, free = figure(space, "size_bytes"), figure(space, "free_bytes")
    return None if not size or free is None else free / size
