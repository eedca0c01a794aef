"""Text from a study file or a server, made fit to print: no control characters, one line, no break inside a figure."""

import re

NO_BREAK = "\u00a0"
_FIGURES = re.compile(r" %|\bp [=<] |(?<=\d) blocks?")
_LABELS = re.compile(r" / ")


def one_line(text: str) -> str:
    """Return ``text`` with every run of white space as one space and what a terminal might obey left out."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def glued(text: str, *, labels: bool = True) -> str:
    """Return ``one_line(text)`` with no-break spaces inside figures ("3 %", "p = 0.02", "8 blocks") and labels."""
    line = _FIGURES.sub(_unbroken, one_line(text))
    return _LABELS.sub(_unbroken, line) if labels else line


def _unbroken(found: re.Match[str]) -> str:
    return found[0].replace(" ", NO_BREAK)
