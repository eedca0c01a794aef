"""What the load met that changes how its figures are to be read: a server that fell behind its rate, and errors."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dbdyno.model.metrics import value_of
from dbdyno.store.records import Trial

BEHIND = 0.99  # of the offered rate; below it, and with that much waiting, the server did not keep up
WAITING_MIN = 10  # events; of a few, one that was late proves nothing
LATE = 0.1  # of the 99th percentile of latency: what the load generator itself may add to it


@dataclass(frozen=True)
class Overload:
    """An open loop that a treatment did not keep up with: means over the trials in which it fell behind."""

    offered_per_second: float
    achieved_per_second: float
    backlog_max: int  # events that waited, at the worst moment of any trial
    trials: int  # that fell behind
    of: int


def overload(trials: Sequence[Trial]) -> Overload | None:
    """Return what a treatment could not do, or ``None`` where it kept up or its loop was closed.

    A trial fell behind where less than 99 % of the rate was achieved while at least 1 % of all events, and 10, waited
    at once: the second keeps out a short Poisson run that by chance was offered less than its rate.
    """
    behind = [trial for trial in trials if _fell_behind(trial)]
    if not behind:
        return None
    offered = [_number(trial.load["loop"], "rate") for trial in behind]
    achieved = [_number(trial.load, "achieved_per_second") for trial in behind]
    return Overload(
        offered_per_second=math.fsum(offered) / len(offered),
        achieved_per_second=math.fsum(achieved) / len(achieved),
        backlog_max=max(round(_number(trial.load, "backlog_max")) for trial in behind),
        trials=len(behind),
        of=len(trials),
    )


def _fell_behind(trial: Trial) -> bool:
    if not isinstance(trial.load.get("loop"), Mapping):
        return False
    many = max(WAITING_MIN, (1 - BEHIND) * _number(trial.load, "offered"))
    return _number(trial.load, "backlog_max") >= many and value_of(trial.metrics, "achieved_ratio") < BEHIND


def shows_capacity(trials: Sequence[Trial]) -> bool:
    """Return whether the rates are the most that could be done, not what the load asked for.

    An offered rate is a choice of the study's, unless the treatment fell behind it in every trial; so is what clients
    that pause come to.
    """
    return all(_is_all_it_can(trial) for trial in trials)


def _is_all_it_can(trial: Trial) -> bool:
    loop = trial.load.get("loop")
    if not isinstance(loop, Mapping):
        return True
    if loop.get("kind") == "open":
        return _fell_behind(trial)
    return not _number(loop, "think_seconds")


def generator_lateness_ms(trials: Sequence[Trial]) -> float | None:
    """Return how late 99 % of events were started though a client was free, if that is much of their latency.

    Mean over the trials. It is the load generator's doing, as it lacks CPU, not the server's.
    """
    late = [_number(trial.load.get("start_lateness_ns") or {}, "p99") / 1e6 for trial in trials]
    p99 = [value_of(trial.metrics, "latency_ms_p99") for trial in trials]
    if not late or not math.fsum(late) > LATE * math.fsum(p99):
        return None
    return math.fsum(late) / len(late)


@dataclass(frozen=True)
class ErrorsMet:
    """Errors that a treatment's trials met and ignored; one that must not be ignored fails its trial."""

    counts: tuple[tuple[int, int, str], ...]  # how often, code, the server's message; the most frequent first
    trials: int

    @property
    def total(self) -> int:
        """All of them."""
        return sum(number for number, _, _ in self.counts)


def errors_met(trials: Sequence[Trial]) -> ErrorsMet | None:
    """Return the errors over all statements and trials; ``None`` where there were none."""
    counts: Counter[int] = Counter()
    messages: dict[int, str] = {}
    for error in (error for trial in trials for error in trial.load.get("errors", [])):
        code = round(_number(error, "code"))
        counts[code] += round(_number(error, "count"))
        messages.setdefault(code, str(error.get("message", "")))
    if not counts:
        return None
    return ErrorsMet(tuple((number, code, messages[code]) for code, number in counts.most_common()), len(trials))


def reconnects_met(trials: Sequence[Trial]) -> int:
    """Return how many lost connections were replaced: not those that end with the sessions of a replayed log."""
    lossy = (trial.load for trial in trials if trial.load.get("kind") != "replay-log")
    return sum(round(_number(load, "reconnects")) for load in lossy)


def _number(mapping: Mapping[str, Any], key: str) -> float:
    """Return a figure that may be missing from the run folder of an older dbdyno, or unknown: then 0."""
    value = mapping.get(key)
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else 0.0
