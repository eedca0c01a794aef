"""What was found after the cuts of a treatment: how many of each outcome, how often it may be worse, and the tail."""

import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dbdyno.analysis.safety.bounds import Share, share
from dbdyno.analysis.safety.correlation import Correlation
from dbdyno.model.cut import OUTCOMES, Cut, Outcome

Runs = Sequence[Sequence[Cut]]  # the cuts of each run
DAMAGE: tuple[Outcome, ...] = OUTCOMES[: OUTCOMES.index("tail")]  # worse than to lose the newest commits
_TO_RECOVER = {"first mount", "mount", "server"}  # all else are dbdyno's own steps, which nobody else waits for


@dataclass(frozen=True)
class Tail:
    """What was lost in the cuts in which acknowledged commits were; milliseconds are from the oldest one to the cut."""

    cuts: int
    ms_median: float
    ms_most: float
    commits_median: float
    commits_most: int


@dataclass(frozen=True)
class Tally:
    """The cuts of a treatment, of all strata or of one."""

    cuts: int
    runs: int
    outcomes: dict[Outcome, int]  # worst first; those that were not found are 0
    lost: Share  # anything acknowledged lost, or worse
    damage: Share  # worse than to lose the newest commits
    each: dict[Outcome, Share]  # of each outcome but "nothing"
    tail: Tail | None  # None: no commit was lost
    holes: int  # cuts after which younger commits were there than one that was lost
    recovery_s_median: float | None  # of mount and server; None: not known
    recovery_s_most: float | None
    unflushed_bytes_most: int
    limit_reached: int  # cuts at which more was unflushed than is kept track of

    @property
    def worst(self) -> Outcome:
        """The worst that was found; "nothing" without a cut."""
        return next((one for one in OUTCOMES if self.outcomes[one]), "nothing")


def tally(runs: Runs, correlation: Correlation) -> Tally:
    """Return what the cuts of a treatment come to; runs without any don't count."""
    kept = [cuts for cuts in runs if cuts]
    cuts = [cut for each in kept for cut in each]
    counted = Counter(cut.outcome for cut in cuts)
    seconds = [sum(s for step, s in cut.recovery_s.items() if step in _TO_RECOVER) for cut in cuts if cut.recovery_s]

    def seen(condition: Callable[[Cut], bool]) -> Share:
        return share([(sum(map(condition, each)), len(each)) for each in kept], correlation)

    return Tally(
        cuts=len(cuts),
        runs=len(kept),
        outcomes={one: counted[one] for one in OUTCOMES},
        lost=seen(lambda cut: cut.is_loss),
        damage=seen(is_damage),
        each={one: seen(lambda cut, one=one: cut.outcome == one) for one in OUTCOMES[:-1]},  # type: ignore[misc]
        tail=_tail(cuts),
        holes=sum(cut.holes > 0 for cut in cuts),
        recovery_s_median=statistics.median(seconds) if seconds else None,
        recovery_s_most=max(seconds, default=None),
        unflushed_bytes_most=max((cut.unflushed_bytes for cut in cuts), default=0),
        limit_reached=sum(cut.limit_reached for cut in cuts),
    )


def is_damage(cut: Cut) -> bool:
    """Whether more than the newest commits was lost."""
    return cut.outcome in DAMAGE


def _tail(cuts: Sequence[Cut]) -> Tail | None:
    losing = [cut for cut in cuts if cut.lost and cut.lost_ms is not None]
    if not losing:
        return None
    ms, commits = [cut.lost_ms or 0.0 for cut in losing], [cut.lost for cut in losing]
    return Tail(len(losing), statistics.median(ms), max(ms), statistics.median(commits), max(commits))
