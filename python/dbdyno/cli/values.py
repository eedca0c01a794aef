"""Values of options: sizes, times, ranges. A mistake names the option and what was given."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from dbdyno.errors import UserError

T = TypeVar("T")
U = TypeVar("U", int, float)

SEED_END = 2**63  # TOML's integers have 64 bits
_SEED_DIGITS_MAX = 19


def folder_of(text: str) -> Path:
    """A folder's path. Raises ``UserError`` where none is given: an empty path would be the current folder."""
    if not text.strip():
        raise UserError("--into is empty; name a folder, such as --into results/first")
    return Path(text)


def path_of(text: str) -> Path:
    """A path to read or to write. Raises ``UserError`` where it is empty, which would be the current folder."""
    if not text.strip():
        raise UserError("an empty path was given; name a file or a folder")
    return Path(text)


def seed_of(text: str) -> int:
    """A seed as a study may have it. Raises ``UserError``."""
    if not (text.isascii() and text.isdecimal()) or len(text) > _SEED_DIGITS_MAX or int(text) >= SEED_END:
        raise UserError(f"--seed {text[:40]!r} must be a whole number from 0 to {SEED_END - 1}")
    return int(text)


def _with_unit(option: str, text: str, parsed: Callable[[str], U]) -> U:
    try:
        return parsed(text)
    except ValueError as error:
        raise UserError(f"{option} {text!r} {error}") from None


def bytes_of(option: str, text: str) -> int:
    """Bytes of a size such as ``2G``. Raises ``UserError``."""
    from dbdyno.model.quantity import size_bytes

    return _with_unit(option, text, size_bytes)


def seconds_of(option: str, text: str) -> float:
    """Seconds of a time such as ``50ms``, above 0. Raises ``UserError``."""
    from dbdyno.model.quantity import duration_seconds

    seconds = _with_unit(option, text, duration_seconds)
    if not seconds:
        raise UserError(f"{option} {text!r} must be above 0")
    return seconds


def plain_seconds_of(option: str, text: str) -> float:
    """Seconds of a time such as ``50ms``, or of a plain number as in fio. Raises ``UserError``."""
    return seconds_of(option, text if text[-1:].isalpha() else f"{text}s")


def fraction_of(option: str, text: str) -> float:
    """Fraction of a percentage such as ``3%``, above 0 and below 1. Raises ``UserError``."""
    from dbdyno.model.quantity import fraction

    share = _with_unit(option, text, fraction)
    if not 0 < share < 1:
        raise UserError(f"{option} {text!r} must be above 0% and below 100%")
    return share


def nanoseconds_of(option: str, text: str) -> int:
    """Nanoseconds of a time such as ``50ms``, above 0. Raises ``UserError``."""
    return round(seconds_of(option, text) * 1e9)


def range_of(option: str, text: str) -> tuple[int, int]:
    """First byte and first byte after of a range such as ``0-1M`` or ``4096-8192``. Raises ``UserError``."""
    first, dash, last = text.partition("-")
    if not dash:
        raise UserError(f'{option} {text!r} is not a range of bytes; write it such as "0-1M" or "4096-8192"')
    start, end = (int(part) if part.isdecimal() else bytes_of(option, part) for part in (first, last))
    if start >= end:
        raise UserError(f"{option} {text!r} is empty: its end is the first byte that does not belong to it")
    return start, end


def one_of(option: str, value: object, allowed: Sequence[T]) -> T:
    """The value, which is among those allowed. Raises ``UserError`` where it is not."""
    for allowed_value in allowed:
        if allowed_value == value:
            return allowed_value
    raise UserError(f"{option} is {' or '.join(map(str, allowed))}, not {value}")


def without_place(study: Path, text: str) -> str:
    """What was said of a study without its file and lines, where nobody can look at it any more."""
    return re.sub(rf"(?m)^{re.escape(str(study))}:(\d+:)? ", "", text)
