"""Text from a study file, a server or a tool, made fit to print: nothing a terminal obeys, no break inside a figure.

What is not printable in the sense of Unicode goes: control characters, the first byte of escape sequences, marks that
turn the direction of writing, characters of no width, halves of surrogate pairs.
"""

import re
from collections.abc import Sequence

NO_BREAK = "\u00a0"
LABEL_MAX = 28  # characters of a name in a chart
SAID_MAX = 500  # characters of what a server or a tool said; an error message is shorter
_FIGURES = re.compile(r" %|\bp [=<] |(?<=\d) blocks?")
_LABELS = re.compile(r" / ")


def printable(text: str, instead: str = "?", keep: str = "") -> str:
    """Return ``text`` with ``instead`` for each character that is not printable, but for those in ``keep``."""
    return "".join(char if char.isprintable() or char in keep else instead for char in text)


def one_line(text: str) -> str:
    """Return ``text`` with every run of white space as one space and what a terminal might obey left out."""
    return " ".join(printable(text, " ").split())


def short(text: str, length_max: int = SAID_MAX) -> str:
    """Return what a server or a tool said as one line, cut after ``length_max`` characters."""
    line = one_line(text[:length_max])
    left = len(text[length_max:].encode(errors="replace"))
    return f"{line} ... ({left} more bytes)" if left else line


def glued(text: str, *, labels: bool = True) -> str:
    """Return ``one_line(text)`` with no-break spaces inside figures ("3 %", "p = 0.02", "8 blocks") and labels."""
    line = _FIGURES.sub(_unbroken, one_line(text))
    return _LABELS.sub(_unbroken, line) if labels else line


def _unbroken(found: re.Match[str]) -> str:
    return found[0].replace(" ", NO_BREAK)


def clipped(text: str, most: int = LABEL_MAX) -> str:
    """Return a name that is at most so many characters long; its end is kept, as names of a kind begin alike."""
    short = one_line(text)
    end = (most - 1) // 2
    return short if len(short) <= most else f"{short[: most - 1 - end]}…{short[len(short) - end :]}"


def distinguishable(texts: Sequence[str], most: int = LABEL_MAX) -> list[str]:
    """Return names that are clipped and still differ where the names do: else without what they begin with alike."""
    names = [one_line(text) for text in texts]
    short = [clipped(name, most) for name in names]
    if len(set(short)) == len(set(names)):
        return short
    long = [name for name in names if len(name) > most]
    ends = zip(min(long), max(long), strict=False)  # what these two begin with, all begin with
    alike = next((place for place, (one, other) in enumerate(ends) if one != other), 0)
    return [clipped(f"…{name[max(0, alike - 1) :]}", most) if len(name) > most else name for name in names]
