"""Reading single facts: a file that is not there is an unknown, never an error."""

from pathlib import Path

UNKNOWN = "unknown"


def text_of(path: Path) -> str:
    """What a file says, or ``"unknown"`` where it is not there, not readable, or empty."""
    try:
        return path.read_bytes().decode(errors="replace").strip(" \t\n\0") or UNKNOWN
    except OSError:
        return UNKNOWN


def number_of(path: Path) -> int | str:
    """A whole number from a file, or ``"unknown"``."""
    text = text_of(path)
    return int(text) if text.lstrip("-").isdigit() else UNKNOWN


def chosen_of(path: Path) -> str:
    """The chosen one of ``always [madvise] never``, or all of the text where none is marked."""
    text = text_of(path)
    return text.partition("[")[2].partition("]")[0] or text


def distinct(texts: list[str]) -> str:
    """What all have in common, or each different one once: ``"performance"``, ``"performance, powersave"``."""
    return ", ".join(sorted(set(texts))) or UNKNOWN
