"""Text from a study file or a server, made fit to print: no control characters, one line, no break inside a figure."""

import re

NO_BREAK = "\u00a0"
_GLUED = re.compile(r" %| / |\bp [=<] |(?<=\d) blocks?")


def one_line(text: str) -> str:
    """Return ``text`` with every run of white space as one space and what a terminal might obey left out."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def glued(text: str) -> str:
    """Return ``one_line(text)`` with no-break spaces inside figures ("3 %", "p = 0.02", "8 blocks") and labels."""
    return _GLUED.sub(lambda found: found[0].replace(" ", NO_BREAK), one_line(text))
