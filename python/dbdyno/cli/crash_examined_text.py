"""What was found when kept states were examined again, in words."""

from dbdyno.model.cut import OUTCOME_WORDS, Cut
from dbdyno.model.printable import printable
from dbdyno.model.wording import count


def examined_as_text(name: str, before: Cut, again: Cut) -> str:
    """Whether the outcome is the same, and how long each step took."""
    found = f"{OUTCOME_WORDS[again.outcome]}{f': {again.cause}' * bool(again.cause)}"
    same = (
        "as when it was examined first"
        if again.outcome == before.outcome
        else f"before: {OUTCOME_WORDS[before.outcome]}"
    )
    steps = ", ".join(f"{step} {seconds:.2f} s" for step, seconds in again.recovery_s.items())
    counted = f"{count(again.lost, 'acknowledged commit')} lost of {again.acked}"
    return printable(f"{name}: {found} ({same})\n{counted}; {steps}", keep="\n")
