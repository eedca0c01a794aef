"""Numbers as people read them, the same in every plan, report and message."""

import math
from collections.abc import Sequence

UNKNOWN = "unknown"
MOST_DECIMALS = 4  # of a percentage
LOOKS_SHOWN = 6  # numbers of blocks in a list of looks
TWICE = 1.0  # as a difference: +100 %


def percent(fraction: float, *, sign: bool = True) -> str:
    """Return ``"+3.1 %"``: one decimal below 10 %, none from there on; near -100 % as many as what is left asks for.

    A signed difference from +100 % on is given as a ratio: ``"6.70x"``.
    """
    if not math.isfinite(fraction):
        return UNKNOWN
    if sign and fraction >= TWICE:
        return f"{_ratio_number(1 + fraction)}x"
    return f"{_percent_number(fraction, sign=sign)} %"


def _percent_number(fraction: float, *, sign: bool) -> str:
    points = 100 * fraction
    if points >= 1000:  # noqa: PLR2004 - three digits there, too
        points = float(f"{points:.3g}")
    decimals = 0 if abs(round(points, 1)) >= 10 else 1  # noqa: PLR2004 - two digits either way
    if 0 < 100 + points < 1:  # what is left counts: "-99.2 %" is four times "-99.8 %", and neither is "-100 %"
        decimals = min(MOST_DECIMALS, math.ceil(-math.log10(100 + points)))
    text = f"{points:{'+' if sign else ''},.{decimals}f}"
    return text.replace("-0.0", "0.0").replace("+0.0", "0.0") if float(text.replace(",", "")) == 0 else text


def _ratio_number(ratio: float, digits: int = 3) -> str:
    rounded = float(f"{ratio:.{digits}g}")
    decimals = max(0, digits - 1 - math.floor(math.log10(rounded))) if rounded > 0 else 0
    return f"{rounded:,.{decimals}f}"


def percent_range(low: float, high: float) -> str:
    """Return ``"+2.9 to +3.4 %"``, ``"5.60 to 6.13x"``, or ``"unknown"`` where an end is unbounded.

    It is one of ratios where its middle is +100 % or more, as that of an estimate which is given as one.
    """
    if not (math.isfinite(low) and math.isfinite(high)):
        return UNKNOWN
    if (1 + low) * (1 + high) >= (1 + TWICE) ** 2:
        return f"{_ratio_number(1 + low)} to {_ratio_number(1 + high)}x"
    return f"{_percent_number(low, sign=True)} to {_percent_number(high, sign=True)} %"


def times_as_much(least: float, most: float) -> str:
    """Return ``"5.9 times"`` or ``"5.2 to 6.7 times"`` of the least and the largest of some relative differences."""
    ends = dict.fromkeys(_ratio_number(1 + end, digits=2) for end in (least, most))
    return f"{' to '.join(ends)} times"


def margin_text(margin: float) -> str:
    """Return a margin as its author wrote it: ``"3 %"``, ``"2.5 %"``."""
    return f"{100 * margin:.4g} %"


def p_value(p: float) -> str:
    """Return ``"p = 0.008"``; below a thousandth only that it is. Above .05 it never reads as .05."""
    if not math.isfinite(p):
        return "p unknown"
    if p < 0.001:  # noqa: PLR2004 - the convention of the field
        return "p < 0.001"
    if 0.05 < p < 0.0505:  # noqa: PLR2004 - of a p just above the limit the verdict says so
        return f"p = {max(p, 0.0501):.4f}"
    return "p = 1" if p > 0.9995 else f"p = {p:.3f}"  # noqa: PLR2004 - would round to 1.000


def count(number: int, noun: str) -> str:
    """Return ``"1 block"`` or ``"7 blocks"``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def is_or_are(number: int) -> str:
    """Return the verb of so many things."""
    return "is" if number == 1 else "are"


def listed(names: Sequence[str], most: int | None = None) -> str:
    """Return ``"a, b and c"``; of more than ``most`` the first and how many more there are."""
    if most is not None and len(names) > most:
        names = [*names[: most - 1], f"{len(names) - most + 1} more"]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def drive_bytes(count: float) -> str:
    """Return bytes as makers of drives give them: ``22 GB``, ``47.2 MB``."""
    return f"{count / 1e9:,.3g} GB" if count >= 1e9 else f"{count / 1e6:,.3g} MB"  # noqa: PLR2004


def number(value: float) -> str:
    """Return a plain figure, never an exponent: four significant digits from 1 on, three below: 4.426, 0.0871."""
    if not math.isfinite(value):
        return UNKNOWN
    if value == 0:
        return "0"
    magnitude = math.floor(math.log10(abs(value)))
    decimals = max(0, 3 - magnitude if magnitude >= 0 else 2 - magnitude)
    return f"{value:,.{min(decimals, 6)}f}"


def three_digits(value: float) -> str:
    """Return three significant digits, never an exponent: 47,800, 3.2, 0.113."""
    return f"{float(f'{value:.3g}'):,.15g}"


def number_or_dash(value: float) -> str:
    """Return a plain figure for a table; a dash where it is not known."""
    return number(value) if math.isfinite(value) else "-"


def capital(text: str) -> str:
    """Return a text with its first letter in upper case."""
    return text[:1].upper() + text[1:]


def uncapital(text: str) -> str:
    """Return a text with its first letter in lower case, as it stands behind a colon."""
    return text[:1].lower() + text[1:]


def looks_listed(looks: Sequence[int]) -> str:
    """Return after how many blocks the data are looked at: ``"6, 7, 8, 10, 12, ..., 40"``, all where they are few."""
    shown = looks if len(looks) <= LOOKS_SHOWN + 1 else looks[: LOOKS_SHOWN - 1]
    rest = [] if len(shown) == len(looks) else ["...", str(looks[-1])]
    return ", ".join([*map(str, shown), *rest])
