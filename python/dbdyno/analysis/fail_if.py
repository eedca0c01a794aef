"""What a study wants to fail, and what a script does, held against findings: failed, not judged, or passed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from dbdyno.analysis.safety import CrashSafety, TreatmentSafety
from dbdyno.analysis.verdict.finding import Finding
from dbdyno.model.design import FailIf
from dbdyno.model.word import CONDITION_HOLDS, NOT_JUDGED, Word

Outcome = Literal["passed", "undecided", "failed"]
_UNSAFE = {"loses the newest commits", "not crash-safe"}


@dataclass(frozen=True)
class Condition:
    """What is to fail: a verdict's word or its absence, and how large the effect must be for it."""

    text: str  # as it was given
    word: Word
    negated: bool = False
    least: float = 0.0  # a fraction: .05 for 5 %

    def holds(self, word: Word, effect: float) -> bool:
        """Whether a verdict meets it; the size is that of the estimate, and an unknown one is enough."""
        return self.negated != (word == self.word and not abs(effect) < self.least)


@dataclass(frozen=True)
class Thresholds:
    """The thresholds of a study, and what was found of each comparison, or of each treatment after power cuts."""

    limits: FailIf
    beyond: tuple[Finding, ...]
    open: tuple[Finding, ...]
    safety: tuple[TreatmentSafety, ...] = ()  # of all treatments, where the study asks for it
    unsafe: tuple[TreatmentSafety, ...] = ()
    unsure: tuple[TreatmentSafety, ...] = ()
    untried: bool = False  # nothing was compared, or no power was cut, as in a run that has hardly begun

    @property
    def outcome(self) -> Outcome:
        """The worst of all."""
        if self.beyond or self.unsafe:
            return "failed"
        return "undecided" if self.open or self.unsure or self.untried else "passed"

    @property
    def exit_code(self) -> int:
        """What a command ends with."""
        tolerated = 0 if self.limits.undecided == "pass" else NOT_JUDGED
        return {"passed": 0, "undecided": tolerated, "failed": CONDITION_HOLDS}[self.outcome]

    @property
    def conditions(self) -> list[Condition]:
        """Each threshold on verdicts, and those that what stays open meets, where it is to fail."""
        found = conditions_of(self.limits)
        words = [Word.UNDECIDED, Word.NOT_COMPARABLE] if found and self.limits.undecided == "fail" else []
        return [*found, *(Condition(f"[fail_if] {word}", word) for word in words)]


def conditions_of(limits: FailIf) -> list[Condition]:
    """Return the thresholds on verdicts."""
    sizes = {Word.SLOWER: limits.slower, Word.FASTER: limits.faster}
    return [
        Condition(f"[fail_if] {word} by {100 * size:g} %", word, least=size)
        for word, size in sizes.items()
        if size is not None
    ]


def thresholds(limits: FailIf | None, verdicts: Sequence[Finding], safety: CrashSafety | None) -> Thresholds | None:
    """Return what comes of a study's thresholds; None where it has none."""
    if limits is None:
        return None
    conditions = conditions_of(limits)
    treatments = safety.treatments if safety and limits.unsafe else []
    return Thresholds(
        limits,
        beyond=tuple(
            finding
            for finding in verdicts
            if any(condition.holds(finding.verdict, finding.effect.value) for condition in conditions)
        ),
        open=tuple(finding for finding in verdicts if conditions and finding.verdict.is_open),
        safety=tuple(treatments),
        unsafe=tuple(treatment for treatment in treatments if treatment.word in _UNSAFE),
        unsure=tuple(treatment for treatment in treatments if treatment.word == "undecided"),
        untried=bool((conditions and not verdicts) or (limits.unsafe and not treatments)),
    )
