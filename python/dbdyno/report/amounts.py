"""Amounts of time as an explanation gives them: three digits, once where two are about the same."""

from collections.abc import Callable

SAME = 0.05  # figures that differ by less are given once
_WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


def duration(ms: float) -> str:
    """Return milliseconds with three digits: ``"33.1 ms"``, or ``"62.4 us"`` below 1 ms."""
    value, unit = (ms * 1000, "us") if abs(ms) < 1 else (ms, "ms")
    return f"{digits(value)} {unit}"


def signed(ms: float) -> str:
    """Return a duration with its sign: ``"+33.1 ms"``."""
    return f"{'+' if ms > 0 else ''}{duration(ms)}"


def digits(value: float) -> str:
    """Return three digits: ``"0.311"``."""
    return f"{value:,.0f}" if abs(value) >= 100 or value == 0 else f"{value:#.3g}"  # noqa: PLR2004 - three digits


def rounded(value: float) -> str:
    """Return a mean number of things with two digits: ``"9.9"``, ``"20"``."""
    return f"{float(f'{value:.2g}'):,g}"


def about(value: float) -> str:
    """Return a mean number of things in a word: ``"ten"`` of 9.9; of many in figures."""
    whole = max(1, round(value))
    return _WORDS[whole - 1] if whole <= len(_WORDS) else rounded(value)


def share(fraction: float) -> str:
    """Return a fraction in percent: ``"31 %"``, ``"0.4 %"``."""
    return f"{100 * fraction:.0f} %" if fraction >= 0.01 or fraction == 0 else f"{100 * fraction:.1g} %"  # noqa: PLR2004


def one_or_two(new: float, old: float, form: Callable[[float], str] = duration) -> str:
    """Return one figure where both are about the same, else ``"1.5 ms instead of 10.1 ms"``."""
    return f"{form(new)}" if about_the_same(new, old) else f"{form(new)} instead of {form(old)}"


def about_the_same(new: float, old: float) -> bool:
    """Return whether two figures are given as one."""
    return abs(new - old) <= SAME * max(abs(new), abs(old))
