"""Which of the six outcomes a cut had, and why, in the server's, the tool's or the verifier's own words."""

from collections.abc import Iterable
from dataclasses import dataclass

from dbdyno.model.cut import OUTCOMES, Outcome
from dbdyno.model.printable import short
from dbdyno.model.wording import count
from dbdyno.workload.ledger import Verified

CAUSE_MAX = 600  # characters


@dataclass(frozen=True)
class Defect:
    """Something that was found after a cut."""

    outcome: Outcome
    cause: str


class SpoiltError(Exception):
    """Recovery ends here: what was found leaves nothing to go on with."""

    def __init__(self, outcome: Outcome, cause: str) -> None:
        super().__init__(cause)
        self.defect = Defect(outcome, cause)


def worst(defects: Iterable[Defect]) -> Defect:
    """The worst of what was found, with all causes, worst first; nothing where nothing was found."""
    ordered = sorted(defects, key=lambda one: OUTCOMES.index(one.outcome))
    if not ordered:
        return Defect("nothing", "")
    return Defect(ordered[0].outcome, short("; ".join(one.cause for one in ordered if one.cause), CAUSE_MAX))


def defects_of(verified: Verified) -> list[Defect]:
    """What the verifier has against the recovered tables."""
    found = [
        Defect("table", f"table {table.table} needs repair: {table.text}") for table in verified.tables if not table.ok
    ]
    if not (verified.complete or found):
        found.append(Defect("table", "a table can't be read to its end"))
    if spoilt := _spoilt(verified):
        examples = "; ".join(f"{one.what}: {one.text}" for one in verified.examples[:2] if one.what != "lost")
        found.append(Defect("inconsistent", f"{spoilt}{f' ({examples})' if examples else ''}"))
    if verified.lost:
        found.append(Defect("tail", f"{count(verified.lost, 'acknowledged commit')} lost"))
    return found


def _spoilt(verified: Verified) -> str:
    """What is worse than a lost tail, in words."""
    counts = {
        "lost with younger ones kept": verified.holes,
        "there in part": verified.torn,
        "there with other values": verified.wrong,
        "there though refused or never sent": verified.ghost,
    }
    said = [f"{count(number, 'commit')} {words}" for words, number in counts.items() if number]
    if verified.index_differences:
        said.append(f"{count(verified.index_differences, 'difference')} between an index and its table")
    if verified.balance_off:
        said.append("the sum of all balances is off")
    return ", ".join(said)
