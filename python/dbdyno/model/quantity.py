"""Sizes, times and percentages as people write them, always with their unit; and factors whose levels are such."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal

# As in MariaDB's own settings, a bare K, M or G is binary; KB, MB and GB are decimal, as disks are sold.
_SIZE_UNITS: dict[str, int] = {
    "": 0,
    "B": 1,
    **{f"{prefix}": 1024**power for power, prefix in enumerate("KMGT", 1)},
    **{f"{prefix}IB": 1024**power for power, prefix in enumerate("KMGT", 1)},
    **{f"{prefix}B": 1000**power for power, prefix in enumerate("KMGT", 1)},
}
SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
SIZE_LIMIT_BYTES = 2**63  # off_t
DURATION_LIMIT_SECONDS = 3600.0 * 10**6  # what a timer of the system can still be set to
_DIGITS_MAX = 100
_PLAIN_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]*)?(?:e[+-]?[0-9]{1,3})?", re.IGNORECASE)
_OF_SERVERS = {**_SIZE_UNITS, "P": 1024**5, "E": 1024**6}
_DECIMALS_SHOWN = re.compile(r"[+-]?[0-9]+\.[0-9]{6}")  # of a fraction by every server
SWITCHES = {"1": "on", "0": "off", "true": "on", "false": "off", "yes": "on", "no": "off"}
_NUMBER_AND_UNIT = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z%]*)\s*")


class QuantityError(ValueError):
    """A value that is no amount with a unit of its kind; its message has no quotes, which only some places need."""

    def __init__(self, problem: str, remedy: str, example: str) -> None:
        super().__init__(f"{problem}; {remedy}, such as {example}")
        self.problem, self.remedy, self.example = problem, remedy, example


def _split(text: object, what: str, example: str) -> tuple[float, str]:
    match = _NUMBER_AND_UNIT.fullmatch(text) if isinstance(text, str) else None
    if match is None or not match[2]:
        raise QuantityError(f"is not a {what}", "write a number with its unit", example)
    return float(match[1]) if len(match[1]) <= _DIGITS_MAX else math.inf, match[2]


def size_bytes(text: object) -> int:
    """Bytes of a size such as ``"4GiB"``, ``"256M"`` (binary) or ``"120GB"`` (decimal). Raises ``ValueError``."""
    number, unit = _split(text, "size", "4GiB")
    factor = _SIZE_UNITS.get(unit.upper(), 0)
    if not factor:
        raise ValueError(f"has the unknown unit {unit!r}; known are B, K, M, G, T, KiB .. TiB and KB .. TB")
    if number * factor >= SIZE_LIMIT_BYTES:
        raise ValueError("is too large; sizes are below 8 EiB")
    return round(number * factor)


def duration_seconds(text: object) -> float:
    """Seconds of a time such as ``"500ms"``, ``"10s"`` or ``"5min"``. Raises ``ValueError``."""
    number, unit = _split(text, "time", "10s")
    if unit not in SECONDS:
        minutes = "; minutes are min" if unit.lower() in {"m", "mins", "minute", "minutes"} else ""
        raise ValueError(f"has the unknown unit {unit!r}; known are {', '.join(SECONDS)}{minutes}")
    if number * SECONDS[unit] > DURATION_LIMIT_SECONDS:
        raise ValueError("is too long; times are at most 1000000h")
    return number * SECONDS[unit]


def fraction(text: object) -> float:
    """The fraction of a percentage such as ``"3%"`` (0.03). Raises ``ValueError``."""
    number, unit = _split(text, "percentage", "3%")
    if unit != "%":
        raise QuantityError(f"has the unit {unit!r}", "write a percentage", "3%")
    if not math.isfinite(number):
        raise ValueError("has too many digits")
    return number / 100


def is_off(shown: str) -> bool:
    """Whether a variable, as a server shows it, is off or has nothing."""
    return shown.strip().lower() in {"off", "0", "no", "false", ""}


def same_value(value: object, shown: str) -> bool:
    """Whether a setting shows what was asked for, over its spellings: ``256M`` is 268435456; true, ON and 1 are one."""
    left, right = _canonical(value), _canonical(shown)
    if isinstance(left, Decimal) and isinstance(right, Decimal) and _DECIMALS_SHOWN.fullmatch(shown):
        left = round(left, 6)
    return left == right or _switch_word(left) == _switch_word(right)


def _canonical(value: object) -> str | Decimal:
    """A number without its unit and to its last digit, or a word in lower case."""
    text = ("on" if value else "off") if isinstance(value, bool) else str(value).strip().lower()
    if len(text) <= _DIGITS_MAX and _PLAIN_NUMBER.fullmatch(text):
        return Decimal(text)
    match = _NUMBER_AND_UNIT.fullmatch(text)
    if match and len(text) <= _DIGITS_MAX and (factor := _OF_SERVERS.get(match[2].upper(), 0)):
        return Decimal(match[1]) * factor
    return text


def _switch_word(value: str | Decimal) -> str | Decimal:
    return SWITCHES.get(str(int(value)) if value in {0, 1} else str(value), value)


@dataclass(frozen=True)
class Quantity:
    """The levels of a factor as numbers, in its order: plain ones, or in bytes (``B``), seconds or as fractions."""

    values: tuple[float, ...]
    unit: str


_UNITS: dict[str, Callable[[object], float]] = {"": float, "B": size_bytes, "s": duration_seconds, "%": fraction}  # type: ignore[dict-item]  # of a text


def quantity_of(levels: Sequence[str]) -> Quantity | None:
    """Return what the levels amount to where all are of one kind, positive and different; else None.

    A level of 0 is no amount: settings mean "none", "off" or "unlimited" by it.
    """
    for unit, read in _UNITS.items():
        try:
            values = tuple(float(read(level)) for level in levels)
        except ValueError:
            continue
        good = all(math.isfinite(value) and value > 0 for value in values) and len(set(values)) == len(values)
        return Quantity(values, unit) if good else None
    return None
