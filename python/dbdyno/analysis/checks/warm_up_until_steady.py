"""Warm-ups that were to last until the rate was steady: what they took, and how many reached their bound instead."""

import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from dbdyno.store.records import Trial

FEW = 0.1  # of the trials


@dataclass(frozen=True)
class WarmUps:
    """The warm-ups of some trials, in seconds."""

    median: float
    shortest: float
    longest: float
    not_steady: int  # trials that were measured all the same, at the bound
    of: int

    @property
    def often_not_steady(self) -> bool:
        """Whether that was so in more than a few."""
        return self.not_steady > max(1, FEW * self.of)


def warm_ups(trials: Iterable[Trial]) -> WarmUps | None:
    """Return what they took, or ``None`` where no trial warmed up until steady."""
    until = [trial for trial in trials if isinstance(trial.load.get("warmup_steady"), bool)]
    if not until:
        return None
    seconds = [trial.seconds.get("warm-up", 0.0) for trial in until]
    missed = sum(not trial.load["warmup_steady"] for trial in until)
    return WarmUps(statistics.median(seconds), min(seconds), max(seconds), missed, len(until))
