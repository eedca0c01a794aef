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

from dbdyno.analysis.blocks import RefusedError
from dbdyno.analysis.looks import Looks
from dbdyno.analysis.ranking import Ties
from dbdyno.analysis.scipy_special import special
from dbdyno.analysis.statistics import Estimate, Floats, holm, log_ratios
from dbdyno.analysis.summary import TreatmentSummary
from dbdyno.analysis.verdict.evidence import evidence, relative_estimate
from dbdyno.analysis.verdict.finding import Finding, either_way
from dbdyno.model.cut import BOUND_MOST, OUTCOMES, SURVIVORS, WHEN, CrashMode, Cut, Outcome, Survivors, When
from dbdyno.model.design import ALPHA, Comparison, Treatment
from dbdyno.model.word import Word as Verdict
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
    runs_with_cuts = [cuts for cuts in runs if cuts]
    if runs_with_cuts and all(len(cuts) == 1 for cuts in runs_with_cuts):
        return ALONE
    return analysed(_rank_cuts(runs_with_cuts))


def analysed(groups: Sequence[Floats]) -> Correlation:
    """Return the correlation within groups of ranks, one group a run."""
    n, k = sum(map(len, groups)), len(groups)
    if k < 2 or n <= k:  # noqa: PLR2004
        return Correlation(k, math.nan, math.nan, may_be=True)
    whole = np.concatenate(groups)
    between = sum(len(group) * (group.mean() - whole.mean()) ** 2 for group in groups) / (k - 1)
    inside = sum(float(np.sum((group - group.mean()) ** 2)) for group in groups) / (n - k)
    if between == 0 and inside == 0:  # all lost the same: that says nothing
        return Correlation(k, math.nan, math.nan, may_be=True)
    per_run = (n - sum(len(group) ** 2 for group in groups) / n) / (k - 1)  # Donner 1986, unequal groups
    within = (between - inside) / (between + (per_run - 1) * inside)
    p = float(special.fdtrc(k - 1, n - k, between / inside)) if inside > 0 else 0.0
    level = LEVEL_OF_FEW if k < FEW_RUNS else LEVEL
    return Correlation(k, max(0.0, float(within)), p, may_be=p < level)


def _amount(cut: Cut) -> float:
    """Return how bad it was, to be ranked: the worse outcome is more, of the same one more milliseconds are."""
    return (len(OUTCOMES) - OUTCOMES.index(cut.outcome)) * _LONGEST_MS + (cut.lost_ms or 0.0)


def _rank_cuts(runs: Sequence[Sequence[Cut]]) -> list[Floats]:
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
    if all(value in {0.0, 1.0} for value in shares):
        return upper(sum(shares), len(shares), alpha)
    return _gaffke(tuple(sorted(Counter(shares).items())), alpha)


def lower_by_runs(shares: Sequence[float], alpha: float = ALPHA) -> float:
    """Return the one-sided lower bound of the same; 0 where there is no run."""
    return 1.0 - upper_by_runs([1.0 - value for value in shares], alpha)


@functools.lru_cache(maxsize=4096)
def _gaffke(counted: tuple[tuple[float, int], ...], alpha: float) -> float:
    """Return the quantile of the mean of shares, and a further one of 1, with flat Dirichlet weights.

    ``counted`` are the shares and how many runs have each. By bisection and false position in turn (Illinois).
    """
    counts = Counter(dict(counted))
    counts[1.0] += 1
    values, weights = (np.array(column, dtype=np.float64) for column in zip(*sorted(counts.items()), strict=True))
    low, high = float(values[0]), 1.0
    f_low, f_high = 1 - alpha, -alpha
    for step in range(_STEPS):
        place = (low + high) / 2 if step % 3 == 0 else (low * f_high - high * f_low) / (f_high - f_low)
        excess = _chance_above(place, values, weights) - alpha
        if excess > 0:
            low, f_low = place, excess
        else:
            high, f_high = place, excess
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
    integrand = np.exp(-np.sum(weights[:, None] * logs, axis=0)).imag / steps
    return 0.5 + scale * float(np.sum(integrand * weight)) / math.pi


@functools.cache
def _quadrature() -> tuple[Floats, Floats]:
    """Return nodes from 0 to infinity and their weights: Gauss-Legendre over the arc tangent."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    angles = (nodes + 1) * math.pi / 4
    return np.asarray(np.tan(angles)), np.asarray(weights * math.pi / 4 / np.cos(angles) ** 2)


def share(counts: Seen, correlation: Correlation) -> Share:
    """Return how often something happens, of what was seen of it in each run."""
    shares = [seen / of for seen, of in counts if of]
    seen, cuts = sum(seen for seen, _ in counts), sum(of for _, of in counts)
    at_most = upper_by_runs(shares)
    return Share(
        seen=seen,
        cuts=cuts,
        runs_with=sum(seen > 0 for seen, _ in counts),
        runs=len(counts),
        at_most=at_most,
        if_independent=upper(seen, cuts),
        effective_cuts=effective_cuts(counts, correlation) if seen else float(cuts),
        low=lower_by_runs(shares, ALPHA / 2) if seen else 0.0,
        high=upper_by_runs(shares, ALPHA / 2) if seen else at_most,
    )


def effective_cuts(counts: Seen, correlation: Correlation) -> float:
    """Return how many independent cuts say as much; 1 of a single run of several cuts.

    n / deff, times the squared ratio of Student's quantiles (Korn and Graubard 1998); deff is the variance between
    runs, by linearisation, over that of independent cuts; or, if larger, what the control's correlation comes to.
    """
    runs, cuts = len(counts), sum(of for _, of in counts)
    if all(of <= 1 for _, of in counts):
        return float(cuts)
    if runs < 2:  # noqa: PLR2004 - no variance between runs
        return 1.0
    p = sum(seen for seen, _ in counts) / cuts
    between = runs / (runs - 1) * sum((seen - p * of) ** 2 for seen, of in counts) / cuts**2
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
    first, second = ([count for count in side if count[1]] for side in (first, second))
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
        with_score = np.zeros_like(table)
        with_score[1:, score:] = table[:-1, : table.shape[1] - score]
        table = (1 - q) * table + q * with_score
    return np.asarray(table[chosen] / table[chosen].sum())


def fisher(seen: int, of: int, seen_other: int, of_other: int) -> float:
    """Return the p of Fisher's exact test, two-sided as twice the smaller tail: what it is if cuts are independent."""
    seen_in_both, of_both = seen + seen_other, of + of_other
    if not of or not of_other:
        return 1.0
    low, high = max(0, seen_in_both - of_other), min(seen_in_both, of)
    ways = _choose(of_both, seen_in_both)
    chances = {k: math.exp(_choose(of, k) + _choose(of_other, seen_in_both - k) - ways) for k in range(low, high + 1)}
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
# All else are dbdyno's own steps, which nobody else waits for. "apply" is a replica's, in a failover.
_TO_RECOVER = {"first mount", "mount", "server", "apply"}


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
        return next((outcome for outcome in OUTCOMES if self.outcomes[outcome]), "nothing")


def tally(runs: Runs, correlation: Correlation) -> Tally:
    """Return what the cuts of a treatment come to; runs without any don't count."""
    runs_with_cuts = [cuts for cuts in runs if cuts]
    cuts = [cut for cuts_of_run in runs_with_cuts for cut in cuts_of_run]
    counted = Counter(cut.outcome for cut in cuts)
    seconds = [sum(s for step, s in cut.recovery_s.items() if step in _TO_RECOVER) for cut in cuts if cut.recovery_s]

    def share_of(condition: Callable[[Cut], bool]) -> Share:
        return share(
            [(sum(map(condition, cuts_of_run)), len(cuts_of_run)) for cuts_of_run in runs_with_cuts], correlation
        )

    return Tally(
        cuts=len(cuts),
        runs=len(runs_with_cuts),
        outcomes={outcome: counted[outcome] for outcome in OUTCOMES},
        lost=share_of(lambda cut: cut.is_loss),
        damage=share_of(is_damage),
        each={outcome: share_of(lambda cut, outcome=outcome: cut.outcome == outcome) for outcome in OUTCOMES[:-1]},  # type: ignore[misc]
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
    cuts_by_cause: dict[tuple[Outcome, str], list[tuple[Trial, Cut]]] = {}
    for trial in trials:
        for cut in trial.cuts:
            if is_damage(cut):
                cuts_by_cause.setdefault((cut.outcome, _NUMBER.sub("#", cut.cause)), []).append((trial, cut))
    all_causes = [_cause(outcome, cuts) for (outcome, _), cuts in cuts_by_cause.items()]
    return tuple(sorted(all_causes, key=lambda cause: (OUTCOMES.index(cause.outcome), -cause.cuts))[:MOST])


def _cause(outcome: Outcome, cuts: list[tuple[Trial, Cut]]) -> Cause:
    """Return it, named by a cut that was kept, if one was."""
    trial, cut = next((trial_and_cut for trial_and_cut in cuts if trial_and_cut[1].kept), cuts[0])
    return Cause(outcome, cut.cause, len(cuts), name_of(trial, cut), kept=bool(cut.kept))


# Which treatment loses more often, does damage more often, or loses more: the planned comparisons of a crash study.
#
# All tests of a study are one family, whose p are Holm's. One that could show nothing, as neither side has what it
# counts, is no member of it (Tarone 1990): that depends on both sides' sum alone.


Question = Literal[
    "loss", "damage", "amount"
]  # how often anything is lost; how often worse; how many ms, where both lose
Answer = Literal["more", "less", "no difference shown"]
BOTH_LOSE = 0.5  # of the cuts of either side, for amounts to be compared
ByBlock = Mapping[str, Mapping[int, list[Cut]]]  # treatment id -> block -> the cuts of its run


@dataclass(frozen=True)
class SafetyDifference:
    """One question about two treatments: whether the level loses more or less than the baseline."""

    level_id: str
    baseline_id: str
    asked: Question
    found: Answer
    p: float  # Holm's, over the family
    p_unadjusted: float  # by runs; of amounts by blocks
    p_if_independent: float | None  # Fisher's over cuts; None of amounts
    level: tuple[int, int]  # in how many cuts it was seen, of how many
    baseline: tuple[int, int]
    ratio: Estimate | None  # of amounts: the relative difference of the ms lost, with its interval


def differences(comparisons: list[Comparison], by_block: ByBlock) -> list[SafetyDifference]:
    """Return what the planned comparisons show; those between treatments without cuts are left out."""
    compared = [
        comparison for comparison in comparisons if by_block.get(comparison.level) and by_block.get(comparison.baseline)
    ]
    raw = [difference for comparison in compared for difference in _of_pair(comparison, by_block)]
    adjusted = holm([difference.p_unadjusted for difference in raw]) if raw else ()
    return [_with_answer(difference, float(p)) for difference, p in zip(raw, adjusted, strict=True)]


def _of_pair(pair: Comparison, by_block: ByBlock) -> Iterator[SafetyDifference]:
    sides = by_block[pair.level], by_block[pair.baseline]
    conditions: dict[Question, Callable[[Cut], bool]] = {"loss": lambda cut: cut.is_loss, "damage": is_damage}
    for question, condition in conditions.items():
        counts_by_run = [[(sum(map(condition, cuts)), len(cuts)) for cuts in side.values()] for side in sides]
        level, baseline = ((sum(seen for seen, _ in side), sum(of for _, of in side)) for side in counts_by_run)
        if level[0] + baseline[0]:
            p = p_by_runs(*counts_by_run)
            p_if_independent = fisher(*level, *baseline)
            found = _direction(*counts_by_run)
            yield SafetyDifference(
                pair.level,
                pair.baseline,
                question,
                found,
                p,
                p,
                p_if_independent,
                level,
                baseline,
                None,
            )
    losing = [[cut for cuts in side.values() for cut in cuts] for side in sides]
    counts = [(sum(cut.lost_ms is not None for cut in side), len(side)) for side in losing]
    if all(seen >= BOTH_LOSE * of for seen, of in counts):
        ratios = log_ratios(*(_typical(side) for side in sides))
        if len(ratios) > 1:
            log_ratio = evidence(np.array(list(ratios.values())), Looks.single(len(ratios)), margin=1.0)
            ratio = relative_estimate(float(log_ratio.value), float(log_ratio.low), float(log_ratio.high), len(ratios))
            p = float(log_ratio.p)
            yield SafetyDifference(
                pair.level, pair.baseline, "amount", "no difference shown", p, p, None, counts[0], counts[1], ratio
            )


def _direction(level: Seen, baseline: Seen) -> Answer:
    """Return which way two treatments differ, if at all; nothing where runs and cuts in all say otherwise.

    The test is of the shares of runs, which need not have equal numbers of cuts; the figures shown are of all cuts.
    """
    of_runs = [statistics.fmean(seen / of for seen, of in side if of) for side in (level, baseline)]
    of_cuts = [sum(seen for seen, _ in side) / sum(of for _, of in side) for side in (level, baseline)]
    if (of_runs[0] > of_runs[1]) != (of_cuts[0] > of_cuts[1]):
        return "no difference shown"
    return "more" if of_cuts[0] > of_cuts[1] else "less"


def _typical(side: Mapping[int, list[Cut]]) -> dict[int, float]:
    """Return block -> median of the ms lost in the run's cuts that lost any."""
    lost = {block: [cut.lost_ms for cut in cuts if cut.lost_ms is not None] for block, cuts in side.items()}
    return {block: statistics.median(values) for block, values in lost.items() if values}


def _with_answer(difference: SafetyDifference, p: float) -> SafetyDifference:
    answer: Answer = "no difference shown"
    if p <= ALPHA:
        if difference.ratio is not None:
            answer = "more" if difference.ratio.value > 0 else "less"
        else:
            answer = difference.found
    return SafetyDifference(**{**vars(difference), "p": p, "found": answer})


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
        telling = [stratum_tally.lost for stratum, stratum_tally in self.strata.items() if stratum.when in TELLING] or [
            self.tally.lost
        ]
        seen, cuts = sum(loss.seen for loss in telling), sum(loss.cuts for loss in telling)
        if seen < CONTROL_LEAST * cuts or not cuts:
            return ControlKept(seen, cuts)
        below_floor = [
            (stratum, stratum_tally.lost)
            for stratum, stratum_tally in self.strata.items()
            if stratum_tally.lost.seen < CONTROL_FLOOR * stratum_tally.cuts or not stratum_tally.cuts
        ]
        return ControlKept(below_floor[0][1].seen, below_floor[0][1].cuts, below_floor[0][0]) if below_floor else None


def word_of(tally: Tally, doubts: tuple[Doubt, ...]) -> Word:
    """Return the word; a loss that was seen is one whatever else may be doubted."""
    if tally.damage.seen:
        return "not crash-safe"
    if tally.lost.seen:
        return "loses the newest commits"
    return "undecided" if doubts else "no loss seen"


def doubts_about(tally: Tally, control: Control | None, failed: int, *, dropped: bool) -> tuple[Doubt, ...]:
    """Return what speaks against "no loss seen", the weightiest first; ``failed``: runs of the treatment."""
    doubts: list[Doubt] = []
    if dropped or failed > FAILED_MOST * (failed + tally.runs):
        doubts.append(RunsFailed(failed, tally.runs))
    if control is None:
        doubts.append(NoControl())
    elif doubt := control.doubt:
        doubts.append(doubt)
    if not tally.lost.seen and tally.lost.at_most > BOUND_MOST:
        doubts.append(TooFewCuts(tally.cuts, tally.runs, tally.lost.at_most))
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
        kinds = {_kind(on_host.tally) for on_host in self.hosts}
        return len(kinds) > 1 or any(on_host.is_odd for on_host in self.hosts)


def by_host(run: Run, treatments: Sequence[str], related: Correlation) -> tuple[ByHost, ...]:
    """Return each treatment's cuts by host; nothing of a run on one host."""
    hosts = list(dict.fromkeys(trial.host for trial in run.trials if trial.cuts))
    if len(hosts) < 2:  # noqa: PLR2004
        return ()
    order = run.design.fleet.hosts if run.design.fleet else hosts
    hosts.sort(key=lambda host: order.index(host) if host in order else len(order))
    raw = [on_host for id_ in treatments for on_host in _of_treatment(run, id_, hosts, related)]
    countable = [on_host for on_host in raw if not math.isnan(on_host.p)]
    adjusted = dict(
        zip(map(id, countable), holm([on_host.p for on_host in countable]) if countable else (), strict=True)
    )
    judged = [replace(on_host, p=float(adjusted.get(id(on_host), 1.0))) for on_host in raw]
    by_treatment = ((id_, tuple(on_host for on_host in judged if on_host.treatment == id_)) for id_ in treatments)
    return tuple(ByHost(id_, on_hosts) for id_, on_hosts in by_treatment if on_hosts)


def _of_treatment(run: Run, id_: str, hosts: Sequence[str], related: Correlation) -> list[CutsOnHost]:
    runs = {host: [trial.cuts for trial in run.trials if trial.treatment == id_ and trial.host == host and trial.cuts]
            for host in hosts}  # fmt: skip
    on_hosts = []
    for host, own in runs.items():
        others = [cuts for other, cuts_of_runs in runs.items() if other != host for cuts in cuts_of_runs]
        if own:
            on_hosts.append(CutsOnHost(id_, host, tally(own, related), _p(own, others)))
    return on_hosts


def _p(own: Sequence[Sequence[Cut]], others: Sequence[Sequence[Cut]]) -> float:
    """Return the p of both questions together; NaN where there is nothing to count on either side (Tarone 1990)."""
    conditions: tuple[Of, Of] = (lambda cut: cut.is_loss, is_damage)
    sides = [(_count_cuts(own, condition), _count_cuts(others, condition)) for condition in conditions]
    p_values = [
        p_by_runs(*side_counts) for side_counts in sides if any(seen for side in side_counts for seen, _ in side)
    ]
    return min(1.0, len(p_values) * min(p_values)) if p_values else math.nan


def _count_cuts(runs: Sequence[Sequence[Cut]], of: Of) -> Seen:
    return [(sum(map(of, cuts)), len(cuts)) for cuts in runs]


def _kind(tally: Tally) -> str:
    return "damage" if tally.damage.seen else "tail" if tally.lost.seen else "nothing"


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
        losing = tuple(stratum for stratum, stratum_tally in self.strata.items() if stratum_tally.lost.seen)
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
        return tuple(dict.fromkeys(stratum.when for stratum in self.strata))

    @property
    def survivors(self) -> tuple[Survivors, ...]:
        """What survived of what was not durable; empty of kills of the server."""
        return tuple(dict.fromkeys(stratum.survivors for stratum in self.strata if stratum.survivors))

    @property
    def at_least(self) -> bool:
        """Whether losses may be larger than was seen: more was unflushed somewhere than is kept track of."""
        return any(treatment.tally.limit_reached for treatment in self.treatments)


def crash_safety(run: Run) -> CrashSafety | None:
    """Return what the cuts of a run show; None where there are none."""
    cuts = [cut for trial in run.trials for cut in trial.cuts]
    if not cuts:
        return None
    strata = tuple(sorted({Stratum(cut.when, cut.survivors) for cut in cuts}, key=_place))
    control = run.design.control
    related = correlation(_cuts_of(run, control.id) if control else [])
    judged = _control(run, control, strata, related) if control else None
    failures = Counter(failure.treatment for failure in run.failures)
    treatments = [
        _treatment(run, treatment, strata, judged, related, failures[treatment.id])
        for treatment in run.design.treatments
    ]
    by_block = {
        treatment.id: _by_run(run, treatment.id)
        for treatment in run.design.treatments
        if treatment.id not in run.dropped
    }
    return CrashSafety(
        cuts[0].mode,
        treatments,
        judged,
        related,
        strata,
        differences(run.design.comparisons, by_block),
        by_host(run, list(run.design.labels), related),
    )


def _place(stratum: Stratum) -> tuple[int, int]:
    return WHEN.index(stratum.when), SURVIVORS.index(stratum.survivors) if stratum.survivors else -1


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
        stratum: tally(
            [[cut for cut in cuts_of_run if Stratum(cut.when, cut.survivors) == stratum] for cuts_of_run in cuts],
            related,
        )
        for stratum in strata
    }


def _cuts_of(run: Run, treatment: str) -> Cuts:
    return [trial.cuts for trial in run.trials if trial.treatment == treatment and trial.cuts]


def _by_run(run: Run, treatment: str) -> dict[int, list[Cut]]:
    """Return block -> the cuts of its run; of a repeated block those of all attempts."""
    cuts_by_block: dict[int, list[Cut]] = {}
    for trial in run.trials:
        if trial.treatment == treatment and trial.cuts:
            cuts_by_block.setdefault(trial.block, []).extend(trial.cuts)
    return cuts_by_block


# What to take where both count, safety and speed: of what lost nothing the fastest; and what is on the Pareto line.


@dataclass(frozen=True)
class Faster:
    """A treatment that is faster than the fastest that lost nothing, and why it isn't it."""

    id: str
    ratio: float  # of the metric to that of the one taken


@dataclass(frozen=True)
class SafeChoice:
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
    with_speed = [
        Placed(treatment, speeds[treatment.id])
        for treatment in safety.treatments
        if treatment.id in speeds and treatment.tally.cuts
    ]
    return [candidate for candidate in with_speed if candidate.speed.known]


def choice(
    safety: CrashSafety,
    treatments: Sequence[TreatmentSummary],
    findings: Sequence[Finding],
    ties: Ties,
    *,
    more_is_better: bool,
) -> SafeChoice:
    """Return what to take. ``findings`` say which treatments differ in speed; of pairs without one ``ties`` do.

    Where there are no letters, as so few blocks can't tell so many pairs apart, those whose intervals meet are alike.
    """
    found = either_way(findings)

    def is_faster(first: Placed, second: Placed) -> bool:
        """Whether the first is shown to be faster; where nobody compared them, whether they are apart."""
        if (finding := found.get((first.safety.id, second.safety.id))) is not None:
            return finding.verdict is Verdict.FASTER
        ahead = first.speed.value > second.speed.value
        return ahead == more_is_better and not _are_tied(ties, first, second)

    candidates = placed(safety, treatments)
    ordered = sorted(
        candidates, key=lambda candidate: -candidate.speed.value if more_is_better else candidate.speed.value
    )
    safe = [candidate for candidate in ordered if candidate.safety.word == "no loss seen"]
    line = pareto(ordered)
    if not safe:
        return SafeChoice((), (), (), line)
    first = next((each for each in safe if not any(is_faster(other, each) for other in safe)), safe[0])
    alike = [candidate for candidate in safe if not is_faster(first, candidate)]
    ahead = [candidate for candidate in ordered if candidate not in safe and is_faster(candidate, first)]
    return SafeChoice(
        take=tuple(candidate.safety.id for candidate in alike),
        slower=tuple(candidate.safety.id for candidate in safe if candidate not in alike),
        faster=tuple(Faster(candidate.safety.id, candidate.speed.value / first.speed.value) for candidate in ahead),
        pareto=line,
    )


def _are_tied(ties: Ties, first: Placed, second: Placed) -> bool:
    letters = [set(ties.letters.get(candidate.safety.id, "")) for candidate in (first, second)]
    if all(letters):
        return bool(letters[0] & letters[1])
    return first.speed.low <= second.speed.high and second.speed.low <= first.speed.high


def pareto(ordered: Sequence[Placed]) -> tuple[str, ...]:
    """Return those, from the fastest down, whose bound lies below that of all that are faster."""
    line, least = [], float("inf")
    for candidate in ordered:
        if candidate.safety.tally.lost.at_most < least:
            line.append(candidate.safety.id)
            least = candidate.safety.tally.lost.at_most
    return tuple(line)


# A crash run beside a speed run of the same treatments.


def joined(speed: Run, crash: Run) -> CrashSafety:
    """Return the crash run's safety by the ids of the speed run's treatments, in that one's order.

    Treatments are the same where their labels are, the order of factors aside. Raises ``RefusedError`` where one of the
    speed run is not in the crash run, or where that one has no cuts.
    """
    safety = crash_safety(crash)
    if safety is None:
        raise RefusedError("no cuts", title=crash.title)
    ids = {_levels(treatment): treatment.id for treatment in crash.design.treatments}
    lacking = [treatment.label for treatment in speed.design.treatments if _levels(treatment) not in ids]
    if lacking:
        theirs = [treatment.label for treatment in crash.design.treatments]
        raise RefusedError("other treatments", lacking=lacking, theirs=theirs, title=crash.title)
    by_id = {treatment.id: treatment for treatment in safety.treatments}
    ours = {ids[_levels(treatment)]: treatment.id for treatment in speed.design.treatments}
    control = safety.control
    # A control that is none of the treatments keeps its id.
    ids_now = ours | ({control.id: control.id} if control and not control.compared else {})
    return replace(
        safety,
        treatments=[
            replace(by_id[ids[_levels(treatment)]], id=treatment.id, label=treatment.label)
            for treatment in speed.design.treatments
        ],
        differences=[
            replace(difference, level_id=ours[difference.level_id], baseline_id=ours[difference.baseline_id])
            for difference in safety.differences
            if difference.level_id in ours and difference.baseline_id in ours
        ],
        by_host=tuple(
            _rename_treatment(cuts_by_host, ids_now[cuts_by_host.treatment])
            for cuts_by_host in safety.by_host
            if cuts_by_host.treatment in ids_now
        ),
    )


def _rename_treatment(cuts_by_host: ByHost, id_: str) -> ByHost:
    return ByHost(id_, tuple(replace(on_host, treatment=id_) for on_host in cuts_by_host.hosts))


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
    counts = [(new.label, _seen_in_run(before, old.id), _seen_in_run(after, new.id)) for old, new in matched]
    counted = [row for row in counts if row[1] and row[2]]
    adjusted = holm([p_by_runs(earlier, later) for _, earlier, later in counted]) if counted else ()
    return [
        LostInBoth(label, _sum(earlier), _sum(later), float(p))
        for (label, earlier, later), p in zip(counted, adjusted, strict=True)
    ]


def _seen_in_run(run: Run, treatment: str) -> Seen:
    of_it = [trial.cuts for trial in run.trials if trial.treatment == treatment and trial.cuts]
    return [(sum(cut.is_loss for cut in cuts), len(cuts)) for cuts in of_it]


def _sum(counts: Seen) -> tuple[int, int]:
    return sum(seen for seen, _ in counts), sum(of for _, of in counts)
