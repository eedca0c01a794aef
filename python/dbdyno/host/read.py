"""Reading single facts: a file that is not there is an unknown, never an error."""

from pathlib import Path

UNKNOWN = "unknown"


def text_of(path: Path, lacking: str = UNKNOWN) -> str:
    """What a file says without the blanks around it, or ``lacking`` where it is not there, not readable, or empty."""
    try:
        content = path.read_bytes()
    except OSError:
        return lacking
    if path.name == "vpd_pg80":
        content = content[4:]  # the header of a SCSI page (SPC-4, 7.8.15)
    return content.decode(errors="replace").strip(" \t\n\0") or lacking


def number_of(path: Path) -> int | str:
    """A whole number from a file, or ``"unknown"``."""
    text = text_of(path)
    return int(text) if text.lstrip("-").isdigit() else UNKNOWN


def chosen_of(path: Path) -> str:
    """The chosen one of ``always [madvise] never``, or all of the text where none is marked."""
    return chosen_in(text_of(path))


def chosen_in(text: str) -> str:
    """The same of a text."""
    return text.partition("[")[2].partition("]")[0] or text.strip()


def distinct(texts: list[str]) -> str:
    """What all have in common, or each different one once: ``"performance"``, ``"performance, powersave"``."""
    return ", ".join(sorted(set(texts))) or UNKNOWN
