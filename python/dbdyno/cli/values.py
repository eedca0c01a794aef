"""Values of options: sizes, times, ranges. A mistake names the option and what was given."""

from collections.abc import Sequence

from dbdyno.errors import UserError


def bytes_of(option: str, text: str) -> int:
    """Bytes of a size such as ``2G``. Raises ``UserError``."""
    from dbdyno.study.units import size_bytes

    try:
        return size_bytes(text)
    except ValueError as error:
        raise UserError(f"{option} {text!r} {error}") from None


def seconds_of(option: str, text: str) -> float:
    """Seconds of a time such as ``50ms``, above 0. Raises ``UserError``."""
    from dbdyno.study.units import duration_seconds

    try:
        seconds = duration_seconds(text)
    except ValueError as error:
        raise UserError(f"{option} {text!r} {error}") from None
    if not seconds:
        raise UserError(f"{option} {text!r} must be above 0")
    return seconds


def fraction_of(option: str, text: str) -> float:
    """Fraction of a percentage such as ``3%``, above 0 and below 1. Raises ``UserError``."""
    from dbdyno.study.units import fraction

    try:
        found = fraction(text)
    except ValueError as error:
        raise UserError(f"{option} {text!r} {error}") from None
    if not 0 < found < 1:
        raise UserError(f"{option} {text!r} must be above 0% and below 100%")
    return found


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


def one_of(option: str, given: object, allowed: Sequence[object]) -> None:
    """Raises ``UserError`` where a value is not among those allowed."""
    if given not in allowed:
        raise UserError(f"{option} is {' or '.join(map(str, allowed))}, not {given}")
