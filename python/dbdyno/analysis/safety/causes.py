"""Why cuts did damage, in the words of the server and of the tools: what is the same but for numbers is one cause."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from dbdyno.analysis.safety.tally import is_damage
from dbdyno.model.cut import OUTCOMES, Cut, Outcome
from dbdyno.store.cuts import name_of
from dbdyno.store.records import Trial

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
