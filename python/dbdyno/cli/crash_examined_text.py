"""What was found when kept states were examined again, in words."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from dbdyno.model.cut import OUTCOME_WORDS, Cut
from dbdyno.model.printable import printable
from dbdyno.model.wording import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dbdyno.run.reexamine.examine import Examined

UNCHECKED = (
    "an earlier version kept this state without checksums, so it can't be told whether it is still what the cut left"
)
OF_A_HOST = ("recovery_s",)  # how long it took says something of the host, not of the state


def examined_as_text(name: str, before: Cut, again: Cut) -> str:
    """Whether the outcome is the same, and how long each step took."""
    steps = ", ".join(f"{step} {seconds:.2f} s" for step, seconds in again.recovery_s.items())
    counted = f"{count(again.lost, 'acknowledged commit')} lost of {again.acked}"
    return printable(f"{name}: {_found(before, again, cause=True)}\n{counted}; {steps}", keep="\n")


def line_of(one: "Examined") -> str:
    """The same of one of many: nothing that differs from host to host where the outcome does not."""
    if one.again is None:
        return printable(f"{one.name}: not examined: {one.why}")
    counted = f"{count(one.again.lost, 'acknowledged commit')} lost of {one.again.acked}"
    found = printable(f"{one.name}: {_found(one.before, one.again, cause=not one.is_same)}; {counted}")
    return found if one.is_checked else f"{found}; {UNCHECKED}"


def _found(before: Cut, again: Cut, *, cause: bool) -> str:
    found = f"{OUTCOME_WORDS[again.outcome]}{f': {again.cause}' * bool(again.cause and cause)}"
    same = (
        "as when it was examined first"
        if again.outcome == before.outcome
        else f"before: {OUTCOME_WORDS[before.outcome]}"
    )
    return f"{found} ({same})"


def total_of(found: "Sequence[Examined]") -> str:
    """How many there were, and how many had the same outcome."""
    if not found:
        return "this run has kept no state"
    return f"{count(len(found), 'kept state')} examined again: the same outcome in {sum(one.is_same for one in found)}"


def all_as_dict(run: str, found: "Sequence[Examined]") -> dict[str, Any]:
    """Everything of many, for a script; a cause is that of before where the outcome is the same."""
    return {
        "run": run,
        "same_outcome": all(one.is_same for one in found),
        "examined": [
            {
                "cut": one.name,
                "same_outcome": one.is_same,
                "checked": one.is_checked,
                "before": _state_alone(one.before),
                "again": _again(one),
                "why_not": one.why or None,
            }
            for one in found
        ],
    }


def _again(one: "Examined") -> dict[str, Any] | None:
    if one.again is None:
        return None
    return _state_alone(one.again) | ({"cause": one.before.cause} if one.is_same else {})


def _state_alone(cut: Cut) -> dict[str, Any]:
    return {name: value for name, value in asdict(cut).items() if name not in OF_A_HOST}
