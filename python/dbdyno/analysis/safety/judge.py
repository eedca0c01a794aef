"""The crash safety of all treatments of a run, from the cuts of its trials."""

from collections import Counter
from dataclasses import dataclass

from dbdyno.analysis.safety.by_host import ByHost, by_host
from dbdyno.analysis.safety.causes import Cause, causes
from dbdyno.analysis.safety.correlation import Correlation, correlation
from dbdyno.analysis.safety.differences import Difference, differences
from dbdyno.analysis.safety.tally import Tally, tally
from dbdyno.analysis.safety.verdict import Control, Doubt, Stratum, Word, doubts_about, word_of
from dbdyno.model.cut import SURVIVORS, WHEN, CrashMode, Cut, Survivors, When
from dbdyno.model.treatment import Treatment
from dbdyno.store.records import Run

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
