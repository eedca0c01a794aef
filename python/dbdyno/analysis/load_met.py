"""What the load met that changes how its figures are to be read: a server that fell behind its rate, and errors."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dbdyno.analysis.metrics import value_of
from dbdyno.analysis.wording import count
from dbdyno.store.records import Trial

BEHIND = 0.99  # of the offered rate; below it, and with that much waiting, the server did not keep up
WAITING_MIN = 10  # events; of a few, one that was late proves nothing
MESSAGE_MAX = 80  # characters
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


def generator_lateness_ms(trials: Sequence[Trial]) -> float | None:
    """Return how late 99 % of events were started though a client was free, if that is much of their latency.

    Mean over the trials. It is the load generator's doing, for want of CPU, not the server's.
    """
    late = [_number(trial.load.get("start_lateness_ns") or {}, "p99") / 1e6 for trial in trials]
    p99 = [value_of(trial.metrics, "latency_ms_p99") for trial in trials]
    if not late or not math.fsum(late) > LATE * math.fsum(p99):
        return None
    return math.fsum(late) / len(late)


def errors_met(trials: Sequence[Trial]) -> str:
    """Return ``"12 errors (10 x 1213 Deadlock found ..., 2 x 1205 ...) in 8 trials"``; nothing where there were none.

    A trial that met an error it was not told to ignore has failed, so these were all ignored.
    """
    counts: Counter[int] = Counter()
    messages: dict[int, str] = {}
    for error in (error for trial in trials for error in trial.load.get("errors", [])):
        code = round(_number(error, "code"))
        counts[code] += round(_number(error, "count"))
        messages.setdefault(code, str(error.get("message", "")))
    if not counts:
        return ""
    each = ", ".join(f"{number:,} x {code} {_short(messages[code])}" for code, number in counts.most_common())
    return f"{count(sum(counts.values()), 'error')} ({each}) in {count(len(trials), 'trial')}"


def reconnects_met(trials: Sequence[Trial]) -> int:
    """Return how many lost connections were replaced."""
    return sum(round(_number(trial.load, "reconnects")) for trial in trials)


def _short(message: str) -> str:
    return message if len(message) <= MESSAGE_MAX else f"{message[:MESSAGE_MAX]}..."


def _number(mapping: Mapping[str, Any], key: str) -> float:
    """Return a figure that may be missing from the run folder of an older dbdyno, or unknown: then 0."""
    value = mapping.get(key)
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else 0.0
