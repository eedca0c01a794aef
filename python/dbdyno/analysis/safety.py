"""How safe a treatment is: what power cuts showed, its bounds, and which treatment to choose."""

import functools
import math
import re
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from dbdyno.analysis.looks import Looks
from dbdyno.analysis.ranking import Ties
from dbdyno.analysis.refused import RefusedError
from dbdyno.analysis.statistics.estimate import Estimate, Floats, log_ratios
from dbdyno.analysis.statistics.location_tests import holm
from dbdyno.analysis.statistics.scipy_special import special
from dbdyno.analysis.summary import TreatmentSummary
from dbdyno.analysis.verdict.evidence import evidence, relative_estimate
from dbdyno.model.cut import BOUND_MOST, OUTCOMES, SURVIVORS, WHEN, CrashMode, Cut, Outcome, Survivors, When
from dbdyno.model.design import ALPHA, Comparison, Treatment
from dbdyno.store.cuts import name_of
from dbdyno.store.records import Run, Trial

# How often something may happen that was seen in some cuts of some runs: bounds by runs, and by cuts.
#
# The cuts of one run share a load, a server and a moment, so ten of them may say no more than one; how much alike they
# are can't be known of a treatment that lost nothing, and that of another, such as the control, need not be its own. So
# the bound that is said is *by runs*: a run's share of cuts is one value between 0 and 1, runs are independent, and
# nothing else is assumed. It is Gaffke's (2005; Learned-Miller and Thomas 2019): with one more run that lost in every
# cut, and weights drawn from the flat Dirichlet distribution, the 95 % quantile of the weighted mean. Where each run
# lost in all of its cuts or in none, so also where nothing was lost, it is that of Clopper and Pearson 1934 over runs,
# and proved; in between it is not, and was never seen to fail.
#
# *If cuts are independent*: Clopper and Pearson over cuts. *Effective cuts*: with how many independent cuts the spread
# between runs leaves (Korn and Graubard 1998).


# Whether cuts of one run resemble each other more than those of two, seen in what the control lost.
#
# Of a treatment that lost nothing its own cuts can't say. The control lost in nearly all of its, by the same load at
# the same moments; how much it lost varies from cut to cut. That is analysed as ranks, by one-way analysis of variance
# over runs.


FEW_RUNS = 20  # so few show a correlation rarely: less is enough to suspect one
LEVEL, LEVEL_OF_FEW = 0.05, 0.2
_LONGEST_MS = 1e9  # that a cut can lose: beyond it is the next outcome


@dataclass(frozen=True)
class Correlation:
    """Within-run correlation: of ``p`` that there is none, ``within`` (0 to 1) how strong; NaN where it isn't known."""

    runs: int
    within: float
    p: float
    may_be: bool  # whether bounds allow for it: it was seen, or nothing can be known of it


ALONE = Correlation(0, 0.0, 1.0, may_be=False)  # each run has one cut


def correlation(runs: Sequence[Sequence[Cut]]) -> Correlation:
    """Return it of the control's runs; of runs with one cut each there is none, of fewer than 2 runs it isn't known."""
    kept = [cuts for cuts in runs if cuts]
    if kept and all(len(cuts) == 1 for cuts in kept):
        return ALONE
    return analysed(_ranked(kept))


def analysed(groups: Sequence[Floats]) -> Correlation:
    """Return the correlation within groups of ranks, one group a run."""
    n, k = sum(map(len, groups)), len(groups)
    if k < 2 or n <= k:  # noqa: PLR2004
        return Correlation(k, math.nan, math.nan, may_be=True)
    whole = np.concatenate(groups)
    between = sum(len(one) * (one.mean() - whole.mean()) ** 2 for one in groups) / (k - 1)
    inside = sum(float(np.sum((one - one.mean()) ** 2)) for one in groups) / (n - k)
    if between == 0 and inside == 0:  # all lost the same: that says nothing
        return Correlation(k, math.nan, math.nan, may_be=True)
    per_run = (n - sum(len(one) ** 2 for one in groups) / n) / (k - 1)  # Donner 1986, unequal groups
    within = (between - inside) / (between + (per_run - 1) * inside)
    p = float(special.fdtrc(k - 1, n - k, between / inside)) if inside > 0 else 0.0
    level = LEVEL_OF_FEW if k < FEW_RUNS else LEVEL
    return Correlation(k, max(0.0, float(within)), p, may_be=p < level)


def _amount(cut: Cut) -> float:
    """Return how bad it was, to be ranked: the worse outcome is more, of the same one more milliseconds are."""
    return (len(OUTCOMES) - OUTCOMES.index(cut.outcome)) * _LONGEST_MS + (cut.lost_ms or 0.0)


def _ranked(runs: Sequence[Sequence[Cut]]) -> list[Floats]:
    """Return each run's cuts as ranks (0 to 1) of what was lost among all cuts of their stratum, ties in the middle."""
    strata: dict[object, list[float]] = {}
    for cuts in runs:
        for cut in cuts:
            strata.setdefault((cut.when, cut.survivors), []).append(_amount(cut))
    ordered = {stratum: np.sort(values) for stratum, values in strata.items()}

    def rank(cut: Cut) -> float:
        values, own = ordered[cut.when, cut.survivors], _amount(cut)
        return float(np.searchsorted(values, own, "left") + np.searchsorted(values, own, "right")) / 2 / len(values)

    return [np.array([rank(cut) for cut in cuts]) for cuts in runs]


Seen = Sequence[tuple[int, int]]  # of each run: in how many cuts it was seen, of how many
_NODES = 200  # of the quadrature; more change nothing in the tenth digit
_CLOSE, _STEPS = 1e-9, 100  # of the search for a quantile


@dataclass(frozen=True)
class Share:
    """In how many cuts something was seen, and the 95 % bounds of its share, each a fraction of cuts.

    ``at_most`` is what is said, by runs; ``low`` and ``high`` are the two-sided interval, by runs as well.
    """

    seen: int
    cuts: int
    runs_with: int  # in which it was seen
    runs: int
    at_most: float
    if_independent: float
    effective_cuts: float
    low: float
    high: float

    @property
    def value(self) -> float:
        """The share seen; NaN without a cut."""
        return self.seen / self.cuts if self.cuts else math.nan


def upper(seen: float, of: float, alpha: float = ALPHA) -> float:
    """Return the one-sided exact upper bound of a share; 1 where nothing was tried."""
    return 1.0 if seen >= of else float(special.betaincinv(seen + 1, of - seen, 1 - alpha))


def lower(seen: float, of: float, alpha: float = ALPHA) -> float:
    """Return the one-sided exact lower bound of a share; 0 where nothing was tried."""
    return 0.0 if seen <= 0 or of <= 0 else float(special.betaincinv(seen, of - seen + 1, alpha))


def upper_by_runs(shares: Sequence[float], alpha: float = ALPHA) -> float:
    """Return the one-sided upper bound of the mean of runs' shares, each 0 to 1; 1 where there is no run."""
    if not shares:
        return 1.0
    if all(one in {0.0, 1.0} for one in shares):
        return upper(sum(shares), len(shares), alpha)
    return _gaffke(tuple(sorted(Counter(shares).items())), alpha)


def lower_by_runs(shares: Sequence[float], alpha: float = ALPHA) -> float:
    """Return the one-sided lower bound of the same; 0 where there is no run."""
    return 1.0 - upper_by_runs([1.0 - one for one in shares], alpha)


@functools.lru_cache(maxsize=4096)
def _gaffke(counted: tuple[tuple[float, int], ...], alpha: float) -> float:
    """Return the quantile of the mean of shares, and a further one of 1, with flat Dirichlet weights.

    ``counted`` are the shares and how many runs have each. By bisection and false position in turn (Illinois).
    """
    counts = Counter(dict(counted))
    counts[1.0] += 1
    values, weights = (np.array(each, dtype=np.float64) for each in zip(*sorted(counts.items()), strict=True))
    low, high = float(values[0]), 1.0
    f_low, f_high = 1 - alpha, -alpha
    for step in range(_STEPS):
        place = (low + high) / 2 if step % 3 == 0 else (low * f_high - high * f_low) / (f_high - f_low)
        found = _chance_above(place, values, weights) - alpha
        if found > 0:
            low, f_low = place, found
        else:
            high, f_high = place, found
        if high - low < _CLOSE:
            break
    return high


def _chance_above(place: float, values: Floats, weights: Floats) -> float:
    """Return the chance that the mean of ``values`` lies above ``place``, with Dirichlet weights of such parameters.

    They are gamma variables over their sum, so it is the chance that the sum of (value - place) gamma is above 0, by
    inverting its characteristic function (Gil-Pelaez 1951).
    """
    from_place = values - place
    tangent, weight = _quadrature()
    scale = 1 / math.sqrt(float(np.sum(weights * from_place**2)))
    steps = scale * tangent
    logs = np.log1p(-1j * from_place[:, None] * steps)
    found = np.exp(-np.sum(weights[:, None] * logs, axis=0)).imag / steps
    return 0.5 + scale * float(np.sum(found * weight)) / math.pi


@functools.cache
def _quadrature() -> tuple[Floats, Floats]:
    """Return nodes from 0 to infinity and their weights: Gauss-Legendre over the arc tangent."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    angles = (nodes + 1) * math.pi / 4
    return np.asarray(np.tan(angles)), np.asarray(weights * math.pi / 4 / np.cos(angles) ** 2)


def share(found: Seen, correlation: Correlation) -> Share:
    """Return how often something happens, of what was seen of it in each run."""
    each = [seen / of for seen, of in found if of]
    seen, cuts = sum(one for one, _ in found), sum(of for _, of in found)
    at_most = upper_by_runs(each)
    return Share(
        seen=seen,
        cuts=cuts,
        runs_with=sum(one > 0 for one, _ in found),
        runs=len(found),
        at_most=at_most,
        if_independent=upper(seen, cuts),
        effective_cuts=effective_cuts(found, correlation) if seen else float(cuts),
        low=lower_by_runs(each, ALPHA / 2) if seen else 0.0,
        high=upper_by_runs(each, ALPHA / 2) if seen else at_most,
    )


def effective_cuts(found: Seen, correlation: Correlation) -> float:
    """Return how many independent cuts say as much; 1 of a single run of several cuts.

    n / deff, times the squared ratio of Student's quantiles (Korn and Graubard 1998); deff is the variance between
    runs, by linearisation, over that of independent cuts; or, if larger, what the control's correlation comes to.
    """
    runs, cuts = len(found), sum(of for _, of in found)
    if all(of <= 1 for _, of in found):
        return float(cuts)
    if runs < 2:  # noqa: PLR2004 - no variance between runs
        return 1.0
    p = sum(one for one, _ in found) / cuts
    between = runs / (runs - 1) * sum((one - p * of) ** 2 for one, of in found) / cuts**2
    independent = p * (1 - p) / cuts
    deff = max(1.0, between / independent if independent > 0 else 1.0)
    if correlation.may_be and math.isfinite(correlation.within):
        deff = max(deff, 1 + (cuts / runs - 1) * correlation.within)
    few = (_student(cuts - 1) / _student(runs - 1)) ** 2
    return min(float(cuts), max(1.0, cuts / deff * few))


def _student(freedom: int) -> float:
    return float(special.stdtrit(freedom, 1 - ALPHA))


# Whether something is seen more often with one treatment than with another: tests that respect runs.
#
# Cuts of one run are correlated, runs are not. So labels are permuted over runs: the statistic is how often it was seen
# in all runs of one treatment, its distribution that over all ways to share out the runs (Pitman 1937), exactly. Where
# each run has one cut that is Fisher's exact test.


STEPS = 60  # that a run's share is rounded to, where runs have unequal numbers of cuts
_TIE = 1 + 1e-9


def p_by_runs(first: Seen, second: Seen) -> float:
    """Return the two-sided p, twice the smaller tail; 1 where a side has no run."""
    first, second = ([one for one in side if one[1]] for side in (first, second))
    if not first or not second:
        return 1.0
    equal = len({of for _, of in (*first, *second)}) == 1
    ours, theirs = ([seen if equal else round(STEPS * seen / of) for seen, of in side] for side in (first, second))
    chances = _sums((*ours, *theirs), len(ours))
    at = sum(ours)
    return min(1.0, 2 * min(float(chances[: at + 1].sum()), float(chances[at:].sum())) * _TIE)


def _sums(scores: Sequence[int], chosen: int) -> Floats:
    """Return the distribution of the sum of ``chosen`` of the scores, all choices being as likely."""
    q = chosen / len(scores)
    table = np.zeros((chosen + 1, sum(scores) + 1))  # number chosen x their sum, each being chosen with chance q
    table[0, 0] = 1.0
    for score in scores:
        taken = np.zeros_like(table)
        taken[1:, score:] = table[:-1, : table.shape[1] - score]
        table = (1 - q) * table + q * taken
    return np.asarray(table[chosen] / table[chosen].sum())


def fisher(seen: int, of: int, seen_other: int, of_other: int) -> float:
    """Return the p of Fisher's exact test, two-sided as twice the smaller tail: what it is if cuts are independent."""
    both, of_both = seen + seen_other, of + of_other
    if not of or not of_other:
        return 1.0
    low, high = max(0, both - of_other), min(both, of)
    ways = _choose(of_both, both)
    chances = {k: math.exp(_choose(of, k) + _choose(of_other, both - k) - ways) for k in range(low, high + 1)}
    below = sum(chance for k, chance in chances.items() if k <= seen)
    above = sum(chance for k, chance in chances.items() if k >= seen)
    return min(1.0, 2 * min(below, above) * _TIE)


def _choose(n: int, k: int) -> float:
    """Return the logarithm of how many ways there are to choose k of n."""
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


# The crash safety of all treatments of a run, from the cuts of its trials.


# What was found after the cuts of a treatment: how many of each outcome, how often it may be worse, and the tail.


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


# Why cuts did damage, in the words of the server and of the tools: what is the same but for numbers is one cause.


MOST = 5  # of a treatment
_NUMBER = re.compile(r"0x[0-9a-f]+|(?<=/scratch/)[0-9a-f]+|\d+", re.IGNORECASE)  # scratch: a folder of each stack


@dataclass(frozen=True)
class Cause:
    """One cause: the outcome, its words and the name of a cut that had it, of one that was kept, if any was."""

    outcome: Outcome
    text: str
    cuts: int
    cut: str  # "TRIAL/CUT", as ``dbdyno crash`` takes it
    kept: bool  # whether its broken state is in the run folder


def causes(trials: Iterable[Trial]) -> tuple[Cause, ...]:
    """Return the causes of a treatment's damage, the worst outcome first, of these the most frequent: at most 5."""
    found: dict[tuple[Outcome, str], list[tuple[Trial, Cut]]] = {}
    for trial in trials:
        for cut in trial.cuts:
            if is_damage(cut):
                found.setdefault((cut.outcome, _NUMBER.sub("#", cut.cause)), []).append((trial, cut))
    each = [_cause(outcome, cuts) for (outcome, _), cuts in found.items()]
    return tuple(sorted(each, key=lambda one: (OUTCOMES.index(one.outcome), -one.cuts))[:MOST])


def _cause(outcome: Outcome, cuts: list[tuple[Trial, Cut]]) -> Cause:
    """Return it, named by a cut that was kept, if one was."""
    trial, cut = next((one for one in cuts if one[1].kept), cuts[0])
    return Cause(outcome, cut.cause, len(cuts), name_of(trial, cut), kept=bool(cut.kept))


# Which treatment loses more often, does damage more often, or loses more: the planned comparisons of a crash study.
#
# All tests of a study are one family, whose p are Holm's. One that could show nothing, as neither side has what it
# counts, is no member of it (Tarone 1990): that depends on both sides' sum alone.


Asked = Literal["loss", "damage", "amount"]  # how often anything is lost; how often worse; how many ms, where both lose
Found = Literal["more", "less", "no difference shown"]
BOTH_LOSE = 0.5  # of the cuts of either side, for amounts to be compared
ByBlock = Mapping[str, Mapping[int, list[Cut]]]  # treatment id -> block -> the cuts of its run


@dataclass(frozen=True)
class SafetyDifference:
    """One question about two treatments: whether the level loses more or less than the baseline."""

    level_id: str
    baseline_id: str
    asked: Asked
    found: Found
    p: float  # Holm's, over the family
    p_unadjusted: float  # by runs; of amounts by blocks
    p_if_independent: float | None  # Fisher's over cuts; None of amounts
    level: tuple[int, int]  # in how many cuts it was seen, of how many
    baseline: tuple[int, int]
    ratio: Estimate | None  # of amounts: the relative difference of the ms lost, with its interval


def differences(comparisons: list[Comparison], by_block: ByBlock) -> list[SafetyDifference]:
    """Return what the planned comparisons show; those between treatments without cuts are left out."""
    compared = [one for one in comparisons if by_block.get(one.level) and by_block.get(one.baseline)]
    raw = [found for one in compared for found in _of_pair(one, by_block)]
    adjusted = holm([one.p_unadjusted for one in raw]) if raw else ()
    return [_judged(one, float(p)) for one, p in zip(raw, adjusted, strict=True)]


def _of_pair(pair: Comparison, by_block: ByBlock) -> Iterator[SafetyDifference]:
    sides = by_block[pair.level], by_block[pair.baseline]
    conditions: dict[Asked, Callable[[Cut], bool]] = {"loss": lambda cut: cut.is_loss, "damage": is_damage}
    for asked, condition in conditions.items():
        each = [[(sum(map(condition, cuts)), len(cuts)) for cuts in side.values()] for side in sides]
        level, baseline = ((sum(seen for seen, _ in side), sum(of for _, of in side)) for side in each)
        if level[0] + baseline[0]:
            p = p_by_runs(*each)
            shown = fisher(*level, *baseline)
            yield SafetyDifference(
                pair.level, pair.baseline, asked, "no difference shown", p, p, shown, level, baseline, None
            )
    losing = [[cut for cuts in side.values() for cut in cuts] for side in sides]
    counts = [(sum(cut.lost_ms is not None for cut in side), len(side)) for side in losing]
    if all(seen >= BOTH_LOSE * of for seen, of in counts):
        ratios = log_ratios(*(_typical(side) for side in sides))
        if len(ratios) > 1:
            found = evidence(np.array(list(ratios.values())), Looks.single(len(ratios)), margin=1.0)
            ratio = relative_estimate(float(found.value), float(found.low), float(found.high), len(ratios))
            p = float(found.p)
            yield SafetyDifference(
                pair.level, pair.baseline, "amount", "no difference shown", p, p, None, counts[0], counts[1], ratio
            )


def _typical(side: Mapping[int, list[Cut]]) -> dict[int, float]:
    """Return block -> median of the ms lost in the run's cuts that lost any."""
    lost = {block: [cut.lost_ms for cut in cuts if cut.lost_ms is not None] for block, cuts in side.items()}
    return {block: statistics.median(values) for block, values in lost.items() if values}


def _judged(one: SafetyDifference, p: float) -> SafetyDifference:
    found: Found = "no difference shown"
    if p <= ALPHA:
        if one.ratio is not None:
            found = "more" if one.ratio.value > 0 else "less"
        else:
            more = one.level[0] * one.baseline[1] > one.baseline[0] * one.level[1]
            found = "more" if more else "less"
    return SafetyDifference(**{**vars(one), "p": p, "found": found})


# The word for each treatment, and why nothing can be said of one: values, no prose.


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


# What the same cuts came to on each of several hosts, and where hosts differ.
#
# Runs are shared out between one host and the others, as between two treatments (``by_runs``); all hosts of all
# treatments are one family, whose p are Holm's.


Of = Callable[[Cut], bool]


@dataclass(frozen=True)
class CutsOnHost:
    """The cuts of one treatment on one host; of ``p`` that it loses, or does damage, as often as on the others."""

    treatment: str
    host: str
    tally: Tally
    p: float  # Holm's; 1 where no host has anything to count

    @property
    def is_odd(self) -> bool:
        """Whether it is shown to lose, or to do damage, more or less often here than on the other hosts."""
        return self.p <= ALPHA


@dataclass(frozen=True)
class ByHost:
    """One treatment on all hosts that have cuts of it."""

    treatment: str
    hosts: tuple[CutsOnHost, ...]

    @property
    def differs(self) -> bool:
        """Whether hosts differ in the worst that was seen (nothing, a lost tail, damage), or are shown to differ."""
        kinds = {_kind(one.tally) for one in self.hosts}
        return len(kinds) > 1 or any(one.is_odd for one in self.hosts)


def by_host(run: Run, treatments: Sequence[str], related: Correlation) -> tuple[ByHost, ...]:
    """Return each treatment's cuts by host; nothing of a run on one host."""
    hosts = list(dict.fromkeys(trial.host for trial in run.trials if trial.cuts))
    if len(hosts) < 2:  # noqa: PLR2004
        return ()
    order = run.design.fleet.hosts if run.design.fleet else hosts
    hosts.sort(key=lambda host: order.index(host) if host in order else len(order))
    raw = [one for id_ in treatments for one in _of_treatment(run, id_, hosts, related)]
    asked = [one for one in raw if not math.isnan(one.p)]
    adjusted = dict(zip(map(id, asked), holm([one.p for one in asked]) if asked else (), strict=True))
    judged = [replace(one, p=float(adjusted.get(id(one), 1.0))) for one in raw]
    found = ((id_, tuple(one for one in judged if one.treatment == id_)) for id_ in treatments)
    return tuple(ByHost(id_, each) for id_, each in found if each)


def _of_treatment(run: Run, id_: str, hosts: Sequence[str], related: Correlation) -> list[CutsOnHost]:
    runs = {host: [one.cuts for one in run.trials if one.treatment == id_ and one.host == host and one.cuts]
            for host in hosts}  # fmt: skip
    found = []
    for host, own in runs.items():
        others = [cuts for other, each in runs.items() if other != host for cuts in each]
        if own:
            found.append(CutsOnHost(id_, host, tally(own, related), _p(own, others)))
    return found


def _p(own: Sequence[Sequence[Cut]], others: Sequence[Sequence[Cut]]) -> float:
    """Return the p of both questions together; NaN where there is nothing to count on either side (Tarone 1990)."""
    asked: tuple[Of, Of] = (lambda cut: cut.is_loss, is_damage)
    sides = [(_seen(own, of), _seen(others, of)) for of in asked]
    each = [p_by_runs(*both) for both in sides if any(seen for side in both for seen, _ in side)]
    return min(1.0, len(each) * min(each)) if each else math.nan


def _seen(runs: Sequence[Sequence[Cut]], of: Of) -> Seen:
    return [(sum(map(of, cuts)), len(cuts)) for cuts in runs]


def _kind(found: Tally) -> str:
    return "damage" if found.damage.seen else "tail" if found.lost.seen else "nothing"


Cuts = list[list[Cut]]  # of each run


@dataclass(frozen=True)
class TreatmentSafety:
    """What is known of a treatment; ``strata`` are in the order of ``CrashSafety.strata``."""

    id: str
    label: str
    word: Word
    doubts: tuple[Doubt, ...]  # why not "no loss seen", whether or not it lost
    tally: Tally
    strata: dict[Stratum, Tally]
    failed: int  # runs
    dropped: bool
    causes: tuple[Cause, ...]  # of damage

    @property
    def only_in(self) -> tuple[Stratum, ...]:
        """The strata in which it lost, where it lost in some and not in others."""
        losing = tuple(stratum for stratum, one in self.strata.items() if one.lost.seen)
        return losing if len(losing) < len(self.strata) else ()


@dataclass(frozen=True)
class CrashSafety:
    """What the cuts of a run show. All finished runs count, those of repeated blocks as well: a loss is one."""

    mode: CrashMode
    treatments: list[TreatmentSafety]  # of the study, in its order
    control: Control | None
    correlation: Correlation
    strata: tuple[Stratum, ...]
    differences: list[SafetyDifference]
    by_host: tuple[ByHost, ...] = ()  # of a run on several hosts, the control among them

    @property
    def when(self) -> tuple[When, ...]:
        """When the power was cut."""
        return tuple(dict.fromkeys(one.when for one in self.strata))

    @property
    def survivors(self) -> tuple[Survivors, ...]:
        """What survived of what was not durable; empty of kills of the server."""
        return tuple(dict.fromkeys(one.survivors for one in self.strata if one.survivors))

    @property
    def at_least(self) -> bool:
        """Whether losses may be larger than was seen: more was unflushed somewhere than is kept track of."""
        return any(one.tally.limit_reached for one in self.treatments)


def crash_safety(run: Run) -> CrashSafety | None:
    """Return what the cuts of a run show; None where there are none."""
    found = [cut for trial in run.trials for cut in trial.cuts]
    if not found:
        return None
    strata = tuple(sorted({Stratum(cut.when, cut.survivors) for cut in found}, key=_place))
    control = run.design.control
    related = correlation(_cuts_of(run, control.id) if control else [])
    judged = _control(run, control, strata, related) if control else None
    failures = Counter(one.treatment for one in run.failures)
    treatments = [_treatment(run, one, strata, judged, related, failures[one.id]) for one in run.design.treatments]
    by_block = {one.id: _by_run(run, one.id) for one in run.design.treatments if one.id not in run.dropped}
    return CrashSafety(
        found[0].mode,
        treatments,
        judged,
        related,
        strata,
        differences(run.design.comparisons, by_block),
        by_host(run, list(run.design.labels), related),
    )


def _place(one: Stratum) -> tuple[int, int]:
    return WHEN.index(one.when), SURVIVORS.index(one.survivors) if one.survivors else -1


def _treatment(  # noqa: PLR0913, PLR0917 - a run's facts and the treatment's
    run: Run,
    treatment: Treatment,
    strata: tuple[Stratum, ...],
    control: Control | None,
    related: Correlation,
    failed: int,
) -> TreatmentSafety:
    cuts = _cuts_of(run, treatment.id)
    whole, dropped = tally(cuts, related), treatment.id in run.dropped
    doubts = doubts_about(whole, control, failed, dropped=dropped)
    by_stratum = _by_stratum(cuts, strata, related)
    why = causes(trial for trial in run.trials if trial.treatment == treatment.id)
    word = word_of(whole, doubts)
    return TreatmentSafety(treatment.id, treatment.label, word, doubts, whole, by_stratum, failed, dropped, why)


def _control(run: Run, control: Treatment, strata: tuple[Stratum, ...], related: Correlation) -> Control:
    cuts = _cuts_of(run, control.id)
    compared = control in run.design.treatments
    label = run.design.labels.get(control.id, control.label)
    dropped = control.id in run.dropped
    by_stratum = _by_stratum(cuts, strata, related)
    return Control(control.id, label, control.levels, compared, dropped, tally(cuts, related), by_stratum)


def _by_stratum(cuts: Cuts, strata: tuple[Stratum, ...], related: Correlation) -> dict[Stratum, Tally]:
    """Return the tally of each stratum."""
    return {
        one: tally([[cut for cut in each if Stratum(cut.when, cut.survivors) == one] for each in cuts], related)
        for one in strata
    }


def _cuts_of(run: Run, treatment: str) -> Cuts:
    return [trial.cuts for trial in run.trials if trial.treatment == treatment and trial.cuts]


def _by_run(run: Run, treatment: str) -> dict[int, list[Cut]]:
    """Return block -> the cuts of its run; of a repeated block those of all attempts."""
    found: dict[int, list[Cut]] = {}
    for trial in run.trials:
        if trial.treatment == treatment and trial.cuts:
            found.setdefault(trial.block, []).extend(trial.cuts)
    return found


# What to take where both count, safety and speed: of what lost nothing the fastest; and what is on the Pareto line.


@dataclass(frozen=True)
class Faster:
    """A treatment that is faster than the fastest that lost nothing, and why it isn't it."""

    id: str
    ratio: float  # of the metric to that of the one taken


@dataclass(frozen=True)
class Choice:
    """Ids of treatments, by speed: the fastest first."""

    take: tuple[str, ...]  # the fastest that lost nothing, and what lost nothing and isn't shown to be slower
    slower: tuple[str, ...]  # what lost nothing, too, and is slower
    faster: tuple[Faster, ...]  # what did lose, or is undecided
    pareto: tuple[str, ...]  # what nothing else is both as fast and as safe as


@dataclass(frozen=True)
class Placed:
    """A treatment by its speed and its bound."""

    safety: TreatmentSafety
    speed: Estimate


def placed(safety: CrashSafety, treatments: Sequence[TreatmentSummary]) -> list[Placed]:
    """Return the treatments whose speed is known and that have cuts."""
    speeds = {row.id: row.metric for row in treatments}
    each = [Placed(one, speeds[one.id]) for one in safety.treatments if one.id in speeds and one.tally.cuts]
    return [one for one in each if one.speed.known]


def choice(safety: CrashSafety, treatments: Sequence[TreatmentSummary], ties: Ties, *, more_is_better: bool) -> Choice:
    """Return what to take. ``ties`` say which treatments are not shown to differ in speed.

    Where there are no letters, as so few blocks can't tell so many pairs apart, those whose intervals meet are alike.
    """
    known = placed(safety, treatments)
    ordered = sorted(known, key=lambda one: -one.speed.value if more_is_better else one.speed.value)
    safe = [one for one in ordered if one.safety.word == "no loss seen"]
    line = pareto(ordered)
    if not safe:
        return Choice((), (), (), line)
    first = safe[0]
    alike = [one for one in safe if one is first or _tied(ties, one, first)]
    ahead = [one for one in ordered[: ordered.index(first)] if not _tied(ties, one, first)]
    return Choice(
        take=tuple(one.safety.id for one in alike),
        slower=tuple(one.safety.id for one in safe if one not in alike),
        faster=tuple(Faster(one.safety.id, one.speed.value / first.speed.value) for one in ahead),
        pareto=line,
    )


def _tied(ties: Ties, one: Placed, other: Placed) -> bool:
    letters = [set(ties.letters.get(each.safety.id, "")) for each in (one, other)]
    if all(letters):
        return bool(letters[0] & letters[1])
    return one.speed.low <= other.speed.high and other.speed.low <= one.speed.high


def pareto(ordered: Sequence[Placed]) -> tuple[str, ...]:
    """Return those, from the fastest down, whose bound lies below that of all that are faster."""
    line, least = [], float("inf")
    for one in ordered:
        if one.safety.tally.lost.at_most < least:
            line.append(one.safety.id)
            least = one.safety.tally.lost.at_most
    return tuple(line)


# A crash run beside a speed run of the same treatments.


def joined(speed: Run, crash: Run) -> CrashSafety:
    """Return the crash run's safety by the ids of the speed run's treatments, in that one's order.

    Treatments are the same where their labels are, the order of factors aside. Raises ``RefusedError`` where one of the
    speed run is not in the crash run, or where that one has no cuts.
    """
    found = crash_safety(crash)
    if found is None:
        raise RefusedError("no cuts", title=crash.title)
    ids = {_levels(one): one.id for one in crash.design.treatments}
    lacking = [one.label for one in speed.design.treatments if _levels(one) not in ids]
    if lacking:
        theirs = [one.label for one in crash.design.treatments]
        raise RefusedError("other treatments", lacking=lacking, theirs=theirs, title=crash.title)
    by_id = {one.id: one for one in found.treatments}
    ours = {ids[_levels(one)]: one.id for one in speed.design.treatments}
    control = found.control
    # A control that is none of the treatments keeps its id.
    ids_now = ours | ({control.id: control.id} if control and not control.compared else {})
    return replace(
        found,
        treatments=[replace(by_id[ids[_levels(one)]], id=one.id, label=one.label) for one in speed.design.treatments],
        differences=[
            replace(one, level_id=ours[one.level_id], baseline_id=ours[one.baseline_id])
            for one in found.differences
            if one.level_id in ours and one.baseline_id in ours
        ],
        by_host=tuple(_renamed(one, ids_now[one.treatment]) for one in found.by_host if one.treatment in ids_now),
    )


def _renamed(one: ByHost, id_: str) -> ByHost:
    return ByHost(id_, tuple(replace(on, treatment=id_) for on in one.hosts))


def _levels(treatment: Treatment) -> frozenset[tuple[str, str]]:
    return frozenset(treatment.levels.items())


# What two crash runs lost, before and after a change: not interleaved, so runs alone are compared.


@dataclass(frozen=True)
class LostInBoth:
    """In how many cuts anything was lost with a treatment, before and after, each of how many; Holm's p by runs."""

    label: str
    before: tuple[int, int]
    after: tuple[int, int]
    p: float


def lost_in_both(before: Run, after: Run, matched: Sequence[tuple[Treatment, Treatment]]) -> list[LostInBoth]:
    """Return it of each treatment that has cuts in both runs."""
    each = [(new.label, _seen_in_run(before, old.id), _seen_in_run(after, new.id)) for old, new in matched]
    known = [one for one in each if one[1] and one[2]]
    adjusted = holm([p_by_runs(one, other) for _, one, other in known]) if known else ()
    return [
        LostInBoth(label, _sum(one), _sum(other), float(p))
        for (label, one, other), p in zip(known, adjusted, strict=True)
    ]


def _seen_in_run(run: Run, treatment: str) -> Seen:
    of_it = [trial.cuts for trial in run.trials if trial.treatment == treatment and trial.cuts]
    return [(sum(cut.is_loss for cut in cuts), len(cuts)) for cuts in of_it]


def _sum(seen: Seen) -> tuple[int, int]:
    return sum(one for one, _ in seen), sum(of for _, of in seen)
