"""Numbers as people read them, the same in every report and every reason."""

import math

UNKNOWN = "unknown"
MOST_DECIMALS = 4  # of a percentage
MANY_TIMES = 10


def percent(fraction: float, *, sign: bool = True) -> str:
    """Return ``"+3.1 %"``: one decimal below 10 %, none from there on; near -100 % as many as what is left asks for."""
    if not math.isfinite(fraction):
        return UNKNOWN
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


def times(fraction: float) -> str:
    """Return ``", 103 times as much"`` of a difference so large that a percentage is hard to picture; else nothing."""
    if not math.isfinite(fraction) or fraction < MANY_TIMES - 1:
        return ""
    return f", {float(f'{1 + fraction:.3g}'):,.4g} times as much"


def percent_range(low: float, high: float) -> str:
    """Return ``"+2.9 to +3.4 %"``, or ``"unknown"`` where an end is unbounded."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return UNKNOWN
    return f"{_percent_number(low, sign=True)} to {_percent_number(high, sign=True)} %"


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
