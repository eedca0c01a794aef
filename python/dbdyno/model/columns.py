"""Lines that say how far a run is, made to fit: half of a terminal, or one pane of several."""

import textwrap
from collections.abc import Sequence

from dbdyno.model.printable import distinguishable

PROGRESS_COLUMNS = 60
NAME_COLUMNS_MIN = 16  # of a name, before what comes after it is left out


def fitted(before: str, names: Sequence[str], place: int, after: Sequence[str]) -> str:
    """Return a line about one of several names that still differ in it, with as much ``after`` it as leaves room."""
    parts = [f", {text}" for text in after if text]
    while parts and _room(before, parts) < min(len(names[place]), NAME_COLUMNS_MIN):
        parts.pop()
    return f"{before}{distinguishable(names, _room(before, parts))[place]}{''.join(parts)}"


def _room(before: str, after: Sequence[str]) -> int:
    return PROGRESS_COLUMNS - len(before) - sum(map(len, after))


def wrapped(text: str) -> list[str]:
    """Return the lines of a text, continued further to the right; only a word that is too long by itself stands out."""
    indent = " " * (len(text) - len(text.lstrip(" ")) + 2)
    folded = (
        textwrap.wrap(line, PROGRESS_COLUMNS, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
        for line in text.splitlines()
    )
    return [line for lines in folded for line in lines]
