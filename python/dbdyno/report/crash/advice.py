"""What to take where both count, safety and speed, in plain words."""

from collections.abc import Sequence

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.safety.choice import Choice, choice
from dbdyno.analysis.safety.judge import (
    ControlFailed,
    ControlKept,
    CrashSafety,
    Doubt,
    NoControl,
    RunsFailed,
    TreatmentSafety,
)
from dbdyno.model.cut import OUTCOMES, CrashMode
from dbdyno.report.crash.names import ALL_BUT, LABELS_MAX, Names, names_of
from dbdyno.report.crash.wording import a_cut, amount_text, found_text, many
from dbdyno.report.sentences import how_different
from dbdyno.report.source import Source


def chosen(source: Source, safety: CrashSafety) -> Choice:
    """Return what to take by both figures."""
    analysis = source.analysis
    return choice(safety, analysis.treatments, analysis.ties, more_is_better=analysis.metric.more_is_better)


def crash_advice(source: Source, safety: CrashSafety) -> str:
    """Return it in one paragraph."""
    names = names_of(source.run.design.treatments)
    return " ".join(filter(None, _Words(safety, names, source.analysis, chosen(source, safety)).sentences()))


class _Words:
    def __init__(self, safety: CrashSafety, names: Names, analysis: Analysis, found: Choice) -> None:
        self.safety, self.names, self.analysis, self.found = safety, names, analysis, found
        self.of = {one.id: one for one in safety.treatments}

    def sentences(self) -> list[str]:
        if not self.found.take:
            return [self._none_safe()]
        return [self._take(), self._faster(), self._never()]

    def _labels(self, ids: Sequence[str]) -> str:
        return self.names.together([one.id for one in self.safety.treatments if one.id in ids], self.found.take)

    def _take(self) -> str:
        take = self.found.take
        lost = f"lost nothing in {many(self.safety.mode)}"
        if len(take) > 1:
            named = self.names.together([one.id for one in self.safety.treatments if one.id in take])
            but = named.removeprefix(ALL_BUT)
            either = " or ".join(named.rsplit(" and ", 1)) if but == named else f"any but {but}"
            return f"Take {either}: the fastest that {lost}, between which no difference was shown."
        if not self.found.slower:
            others = len(self.safety.treatments) - 1
            why = f"the only one that {lost}" if others else f"it {lost}"
        else:
            why = f"the fastest that {lost}"
        return f"Take {self.names.long(take[0])}: {why}."

    def _faster(self) -> str:
        """Return what is faster, and what it costs."""
        losing = [
            one
            for one in self.found.faster
            if self.of[one.id].word == "loses the newest commits" and one.id not in self._open()
        ]
        if not losing:
            return ""
        tails = [tail for one in losing if (tail := self.of[one.id].tally.tail)]
        most = amount_text(max(one.ms_most for one in tails)) if tails else "some"
        ids = [one.id for one in losing]
        verb = "are" if len(ids) > 1 else "is"
        gains = [one.ratio - 1 for one in losing]
        many_of_several = len(ids) > LABELS_MAX and len(self.names.factors) > 1
        named = f"{len(ids)} others" if many_of_several else self._labels(ids)
        baseline = "" if many_of_several else self.names.short(self.found.take[0])
        different = how_different("faster", gains, self.analysis.metric, baseline)
        where = f"only where {a_cut(self.safety.mode)} may take {most} of commits"
        return f"{named} {verb} {different}: {where}."

    def _open(self) -> set[str]:
        """Return the treatments of which a comparison with what is taken could not show how fast they are."""
        first = self.found.take[0]
        opened = [one for one in self.analysis.verdicts if one.verdict in {"undecided", "not comparable"}]
        pairs = [{one.level_id, one.baseline_id} for one in opened]
        return {id_ for pair in pairs if first in pair for id_ in pair - {first}}

    def _never(self) -> str:
        """Return what nobody should take who may meet a cut."""
        bad = [one for one in self.safety.treatments if one.word == "not crash-safe"]
        if not bad:
            return ""
        named = self._labels([one.id for one in bad])
        if len(bad) > 1:
            return f"Not {named}: {a_cut(self.safety.mode)} may damage them."
        return f"Not {named}: after {a_cut(self.safety.mode)} {found_text(_worst(bad).tally.worst)}."

    def _none_safe(self) -> str:
        opened = [one for one in self.safety.treatments if one.word == "undecided"]
        if opened:
            return f"Not yet: {_remedy(opened[0].doubts, self.safety.mode)}. {self._never()}".strip()
        sound = [one for one in self.safety.treatments if one.word == "loses the newest commits"]
        if not sound:
            return f"None of them: each is damaged by {a_cut(self.safety.mode)}."
        least = min(sound, key=lambda one: one.tally.tail.ms_most if one.tally.tail else 0.0)
        tail = least.tally.tail
        amount = f", up to {amount_text(tail.ms_most)} of commits" if tail else ""
        return (
            f"None of them where {a_cut(self.safety.mode)} may take nothing: the least is lost with"
            f" {self.names.long(least.id)}{amount}. {self._never()}"
        ).strip()


def _remedy(doubts: Sequence[Doubt], mode: CrashMode) -> str:
    """Return what would decide it."""
    match doubts[0] if doubts else None:
        case NoControl():
            return "run it beside a treatment that is known to lose"
        case ControlKept():
            return f"find a load under which the control loses: more clients, or longer before {a_cut(mode)}"
        case ControlFailed() | RunsFailed():
            return "see to the runs that failed first"
        case _:
            return f"more {many(mode)} are needed, of more runs (cuts in [crash])"


def _worst(found: Sequence[TreatmentSafety]) -> TreatmentSafety:
    return min(found, key=lambda one: OUTCOMES.index(one.tally.worst))
