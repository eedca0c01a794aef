"""The words of a verdict: one enumeration that everything reads, with what each looks like and where it stands."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


@dataclass(frozen=True)
class Tone:
    """How a word is coloured: on a light page, on a dark one (hex, contrast 4.5 or more), and in a terminal (rich)."""

    on_light: str
    on_dark: str
    in_terminal: str


class Word(StrEnum):
    """What is said of a level against its baseline; the value is the text that a person and a program read."""

    FASTER = "faster"
    SLOWER = "slower"
    EQUIVALENT = "equivalent"
    UNDECIDED = "undecided"
    NOT_COMPARABLE = "not comparable"

    @property
    def is_different(self) -> bool:
        """Whether a difference is claimed."""
        return self in {Word.FASTER, Word.SLOWER}

    @property
    def is_open(self) -> bool:
        """Whether nothing is claimed: a report skips such a comparison, and a script is warned of it."""
        return self in {Word.UNDECIDED, Word.NOT_COMPARABLE}

    @property
    def order(self) -> int:
        """Where a reader looks for it: differences first, then what is equal, then what is open."""
        return {Word.FASTER: 0, Word.SLOWER: 0, Word.EQUIVALENT: 1, Word.UNDECIDED: 2, Word.NOT_COMPARABLE: 3}[self]

    @property
    def opposite(self) -> "Word":
        """The word for the same two treatments, the baseline against the level."""
        return {Word.FASTER: Word.SLOWER, Word.SLOWER: Word.FASTER}.get(self, self)

    @property
    def interaction_text(self) -> str:
        """The text where the question is whether two effects differ."""
        return "differs" if self.is_different else "does not differ" if self is Word.EQUIVALENT else self.value

    @property
    def hosts_text(self) -> str:
        """The text where the question is what holds of hosts like these."""
        return "not shown" if self.is_open else self.value

    @property
    def tone(self) -> Tone:
        """Its colours."""
        return _TONES[self]


CONDITION_HOLDS: Final = 3  # exit code of a command whose --fail-if, or whose study's [fail_if], a word has met
NOT_JUDGED: Final = 4  # exit code where nothing of [fail_if] has failed and some of it could not be judged
_TONES: Final[dict[Word, Tone]] = {
    Word.FASTER: Tone("#00694c", "#3ccf9f", "bold green"),
    Word.SLOWER: Tone("#a84300", "#ff9455", "bold red"),
    Word.EQUIVALENT: Tone("#005a90", "#6cbcf0", "bold blue"),
    Word.UNDECIDED: Tone("#5c6066", "#b4bac1", "bold yellow"),
    Word.NOT_COMPARABLE: Tone("#8f3f6f", "#eda3cf", "bold magenta"),
}
