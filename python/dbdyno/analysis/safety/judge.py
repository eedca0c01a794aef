"""The crash safety of all treatments of a run, from the cuts of its trials."""

import math
import re
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from dbdyno.analysis.looks import Looks
from dbdyno.analysis.safety.bounds import Correlation, Seen, Share, correlation, fisher, p_by_runs, share
from dbdyno.analysis.statistics.estimate import Estimate, log_ratios
from dbdyno.analysis.statistics.multiplicity import holm
from dbdyno.analysis.verdict.evidence import evidence, relative_estimate
from dbdyno.model.cut import BOUND_MOST, OUTCOMES, SURVIVORS, WHEN, CrashMode, Cut, Outcome, Survivors, When
from dbdyno.model.design import ALPHA, Comparison
from dbdyno.model.treatment import Treatment
from dbdyno.store.cuts import name_of
from dbdyno.store.records import Run, Trial

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
class Difference:
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


def differences(comparisons: list[Comparison], by_block: ByBlock) -> list[Difference]:
    """Return what the planned comparisons show; those between treatments without cuts are left out."""
    compared = [one for one in comparisons if by_block.get(one.level) and by_block.get(one.baseline)]
    raw = [found for one in compared for found in _of_pair(one, by_block)]
    adjusted = holm([one.p_unadjusted for one in raw]) if raw else ()
    return [_judged(one, float(p)) for one, p in zip(raw, adjusted, strict=True)]


def _of_pair(pair: Comparison, by_block: ByBlock) -> Iterator[Difference]:
    sides = by_block[pair.level], by_block[pair.baseline]
    conditions: dict[Asked, Callable[[Cut], bool]] = {"loss": lambda cut: cut.is_loss, "damage": is_damage}
    for asked, condition in conditions.items():
        each = [[(sum(map(condition, cuts)), len(cuts)) for cuts in side.values()] for side in sides]
        level, baseline = ((sum(seen for seen, _ in side), sum(of for _, of in side)) for side in each)
        if level[0] + baseline[0]:
            p = p_by_runs(*each)
            yield Difference(pair.level, pair.baseline, asked, "no difference shown", p, p, fisher(*level, *baseline),
                             level, baseline, None)  # fmt: skip
    losing = [[cut for cuts in side.values() for cut in cuts] for side in sides]
    counts = [(sum(cut.lost_ms is not None for cut in side), len(side)) for side in losing]
    if all(seen >= BOTH_LOSE * of for seen, of in counts):
        ratios = log_ratios(*(_typical(side) for side in sides))
        if len(ratios) > 1:
            found = evidence(np.array(list(ratios.values())), Looks.single(len(ratios)), margin=1.0)
            ratio = relative_estimate(float(found.value), float(found.low), float(found.high), len(ratios))
            yield Difference(pair.level, pair.baseline, "amount", "no difference shown", float(found.p), float(found.p),
                             None, counts[0], counts[1], ratio)  # fmt: skip


def _typical(side: Mapping[int, list[Cut]]) -> dict[int, float]:
    """Return block -> median of the ms lost in the run's cuts that lost any."""
    lost = {block: [cut.lost_ms for cut in cuts if cut.lost_ms is not None] for block, cuts in side.items()}
    return {block: statistics.median(values) for block, values in lost.items() if values}


def _judged(one: Difference, p: float) -> Difference:
    found: Found = "no difference shown"
    if p <= ALPHA:
        if one.ratio is not None:
            found = "more" if one.ratio.value > 0 else "less"
        else:
            more = one.level[0] * one.baseline[1] > one.baseline[0] * one.level[1]
            found = "more" if more else "less"
    return Difference(**{**vars(one), "p": p, "found": found})


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
class OnHost:
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
    hosts: tuple[OnHost, ...]

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


def _of_treatment(run: Run, id_: str, hosts: Sequence[str], related: Correlation) -> list[OnHost]:
    runs = {host: [one.cuts for one in run.trials if one.treatment == id_ and one.host == host and one.cuts]
            for host in hosts}  # fmt: skip
    found = []
    for host, own in runs.items():
        others = [cuts for other, each in runs.items() if other != host for cuts in each]
        if own:
            found.append(OnHost(id_, host, tally(own, related), _p(own, others)))
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
    differences: list[Difference]
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
