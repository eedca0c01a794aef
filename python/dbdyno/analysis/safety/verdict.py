"""The word for each treatment, and why nothing can be said of one: values, no prose."""

from dataclasses import dataclass
from typing import Literal, get_args

from dbdyno.analysis.safety.tally import Tally
from dbdyno.model.cut import BOUND_MOST, Survivors, When

Word = Literal["no loss seen", "loses the newest commits", "not crash-safe", "undecided"]
WORDS: tuple[Word, ...] = get_args(Word)

CONTROL_LEAST = 0.95  # of its cuts a treatment known to lose must lose in
CONTROL_FLOOR = 0.20  # in each stratum
TELLING: tuple[When, ...] = ("uniform", "ack")  # when commits are always pending; a FLUSH or a page write saves them
FAILED_MOST = 0.10  # of a treatment's runs: what a failed one would have shown is not known


@dataclass(frozen=True)
class Stratum:
    """When the power was cut, and what survived of what was not durable."""

    when: When
    survivors: Survivors | None


@dataclass(frozen=True)
class NoControl:
    """No treatment that is known to lose was run, so that nothing shows that this load shows a loss."""


@dataclass(frozen=True)
class ControlFailed:
    """The control failed again and again and was left out."""


@dataclass(frozen=True)
class ControlKept:
    """The control lost in too few of its cuts; in a stratum, or, where that is None, over those that are telling."""

    lost: int
    cuts: int
    stratum: Stratum | None = None


@dataclass(frozen=True)
class TooFewCuts:
    """The bound is so wide that it says next to nothing: there were too few runs."""

    cuts: int
    runs: int
    at_most: float


@dataclass(frozen=True)
class RunsFailed:
    """Too many runs of the treatment failed, or it was dropped: what their cuts would have shown is not known."""

    failed: int
    runs: int  # that finished


Doubt = NoControl | ControlFailed | ControlKept | TooFewCuts | RunsFailed


@dataclass(frozen=True)
class Control:
    """The treatment known to lose: what it lost, and what of that is too little."""

    id: str
    label: str
    levels: dict[str, str]
    compared: bool  # whether it is a treatment of the study as well
    dropped: bool  # whether it failed so often that it was left out
    tally: Tally
    strata: dict[Stratum, Tally]

    @property
    def doubt(self) -> ControlFailed | ControlKept | None:
        """Why "no loss" can't be said of others: it failed, or lost too rarely.

        It must lose in 95 % of the cuts at which it has commits to lose: right after a FLUSH or a page write its log is
        durable by chance, so of such strata, and of any other, less is enough.
        """
        if self.dropped:
            return ControlFailed()
        telling = [one.lost for stratum, one in self.strata.items() if stratum.when in TELLING] or [self.tally.lost]
        seen, cuts = sum(one.seen for one in telling), sum(one.cuts for one in telling)
        if seen < CONTROL_LEAST * cuts or not cuts:
            return ControlKept(seen, cuts)
        kept = [(stratum, one.lost) for stratum, one in self.strata.items() if one.lost.seen < CONTROL_FLOOR * one.cuts]
        return ControlKept(kept[0][1].seen, kept[0][1].cuts, kept[0][0]) if kept else None


def word_of(found: Tally, doubts: tuple[Doubt, ...]) -> Word:
    """Return the word; a loss that was seen is one whatever else may be doubted."""
    if found.damage.seen:
        return "not crash-safe"
    if found.lost.seen:
        return "loses the newest commits"
    return "undecided" if doubts else "no loss seen"


def doubts_about(found: Tally, control: Control | None, failed: int, *, dropped: bool) -> tuple[Doubt, ...]:
    """Return what speaks against "no loss seen", the weightiest first; ``failed``: runs of the treatment."""
    doubts: list[Doubt] = []
    if dropped or failed > FAILED_MOST * (failed + found.runs):
        doubts.append(RunsFailed(failed, found.runs))
    if control is None:
        doubts.append(NoControl())
    elif kept := control.doubt:
        doubts.append(kept)
    if not found.lost.seen and found.lost.at_most > BOUND_MOST:
        doubts.append(TooFewCuts(found.cuts, found.runs, found.lost.at_most))
    return tuple(doubts)
