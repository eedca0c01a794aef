"""Whether it is as safe, in a sentence or two: what leads the report of a crash run."""

from collections.abc import Sequence

from dbdyno.analysis.safety.judge import (
    ControlFailed,
    ControlKept,
    CrashSafety,
    Doubt,
    NoControl,
    RunsFailed,
    TooFewCuts,
    TreatmentSafety,
    Word,
)
from dbdyno.model.cut import OUTCOME_WORDS, OUTCOMES, RUNS_LEAST
from dbdyno.model.wording import count, listed
from dbdyno.report.crash.names import ALL_BUT, LISTED_MAX, Names
from dbdyno.report.crash.wording import (
    a_cut,
    amount_text,
    cuts,
    found_text,
    many,
    share_text,
    stratum_text,
    such,
)

_ORDER: tuple[Word, ...] = ("no loss seen", "loses the newest commits", "not crash-safe", "undecided")
EACH_MAX = 3  # treatments that are damaged: of each is said how
_RARE = 0.5  # of the cuts: below it how often is said


def sentences(safety: CrashSafety, names: Names, *, begun: bool = False) -> list[str]:
    """Return what is known of all treatments, the safest first, as a sentence; ``begun``: after a colon."""
    said = _Said(safety, names)
    groups = [(word, [one for one in safety.treatments if one.word == word]) for word in _ORDER]
    clauses = [said.clause(word, found) for word, found in groups if found]
    text = "; ".join(clauses)
    words = not begun and text.startswith(("whether", "after", ALL_BUT))  # and no name, whose case is its own
    return [f"{text[0].upper() if words else text[0]}{text[1:]}."] if text else []


class _Said:
    """Clauses of one sentence: the factor is named once."""

    def __init__(self, safety: CrashSafety, names: Names) -> None:
        self.safety, self.names, self.mode = safety, names, safety.mode
        self.before: list[str] = []  # treatments that were named

    def _named(self, found: Sequence[TreatmentSafety]) -> str:
        ids = [one.id for one in found]
        text = self.names.together(ids, self.before)
        self.before += ids
        return text

    def clause(self, word: Word, found: Sequence[TreatmentSafety]) -> str:
        match word:
            case "no loss seen":
                return self._nothing(found)
            case "loses the newest commits":
                return self._tail(found)
            case "not crash-safe":
                return f"{self._named(found)} {_are(found)} not crash-safe: {self.damage(found)}"
            case _:
                why = doubt_text(found[0].doubts, self.mode)
                return f"whether {self._named(found)} {_are(found)} safe is still open: {why}"

    def _nothing(self, found: Sequence[TreatmentSafety]) -> str:
        tried = dict.fromkeys(one.tally.cuts for one in found)
        of = cuts(self.mode, min(tried)) if len(tried) == 1 else f"{min(tried):,} or more {many(self.mode)}"
        each = " each" if len(found) > 1 else ""
        most = share_text(max(one.tally.lost.at_most for one in found))
        alone = max(one.tally.lost.if_independent for one in found)
        apart = f"; {share_text(alone)} if those of one run are independent" if share_text(alone) != most else ""
        room = f"at most {most} of {such(self.mode)} lose anything{apart}"
        return f"{self._named(found)} lost nothing in {of}{each} ({room})"

    def _tail(self, found: Sequence[TreatmentSafety]) -> str:
        verb = "lose" if len(found) > 1 else "loses"
        most = max((one.tally.tail.ms_most for one in found if one.tally.tail), default=0.0)
        limited = any(one.tally.limit_reached for one in found)
        amount = f"{amount_text(most)} of commits or more" if limited else f"up to {amount_text(most)} of commits"
        rarely = max(found, key=lambda one: one.tally.lost.value).tally.lost
        often = f" in {rarely.seen:,} of {cuts(self.mode, rarely.cuts)}" if rarely.value < _RARE else ""
        kill = f" in {a_cut(self.mode)}" if self.mode == "kill" and not often else ""
        return f"{self._named(found)} {verb} {amount}{often}{kill}{self._only(found)}"

    def _only(self, found: Sequence[TreatmentSafety]) -> str:
        """Return where alone all of them lost, if not everywhere."""
        strata = {one.only_in for one in found}
        where = next(iter(strata)) if len(strata) == 1 else ()
        return f" (only with {listed([stratum_text(one) for one in where], LISTED_MAX)})" if where else ""

    def damage(self, found: Sequence[TreatmentSafety]) -> str:
        """Return the worst that was found of each, and how often; of many, of the worst alone."""
        ordered = sorted(found, key=lambda one: OUTCOMES.index(one.tally.worst))
        if len(found) == 1:
            return f"{self._seen(found[0], alone=True)}{self._beside(found[0])}{self._only(found)}"
        return ", ".join(self._seen(one) for one in (ordered if len(found) <= EACH_MAX else ordered[:1]))

    def _seen(self, one: TreatmentSafety, *, alone: bool = False) -> str:
        seen = one.tally.each[one.tally.worst]
        least = "at least " if one.tally.limit_reached else ""
        of = "" if alone else f" with {self.names.short(one.id)}"
        return f"after {least}{seen.seen:,} of {cuts(self.mode, seen.cuts)}{of} {OUTCOME_WORDS[one.tally.worst]}"

    @staticmethod
    def _beside(one: TreatmentSafety) -> str:
        """Return what is found most often, where that is not the worst."""
        counted = {outcome: number for outcome, number in one.tally.outcomes.items() if outcome != "nothing"}
        usual = max(counted, key=lambda outcome: counted[outcome])
        return f", after {counted[usual]:,} {found_text(usual)}" if usual != one.tally.worst else ""


def _are(found: Sequence[TreatmentSafety]) -> str:
    return "are" if len(found) > 1 else "is"


def doubt_text(doubts: Sequence[Doubt], mode: str) -> str:
    """Return why "no loss" can't be said, the weightiest reason."""
    what = "cuts" if mode == "power" else "kills of the server"
    match doubts[0] if doubts else None:
        case NoControl():
            return "no treatment that is known to lose was run beside it, so this load may not show a loss"
        case ControlFailed():
            return "the control, which is known to lose, failed again and again, so this load may not show a loss"
        case ControlKept() as kept:
            where = f" with {stratum_text(kept.stratum)}" if kept.stratum else ""
            return (
                f"the control, which is known to lose, lost in only {kept.lost:,} of {kept.cuts:,} {what}{where}:"
                " this load would not show a loss"
            )
        case TooFewCuts() as few:
            at_most = share_text(few.at_most)
            room = f"{few.cuts:,} {what} of {count(few.runs, 'run')} leave room for a loss in {at_most} of them"
            return f"nothing was lost, but {room} ({RUNS_LEAST} runs are needed)"
        case RunsFailed() as failed:
            return f"{failed.failed} of its runs failed, and what they would have shown is not known"
        case None:
            return "nothing is known of it"
