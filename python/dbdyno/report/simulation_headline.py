"""The answer of a simulation: which combination does best, and which factors matter to that."""

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Protocol, TypeVar

from dbdyno.model.wording import listed

MATTERS = 1.01  # times; what changes less is no difference to speak of


class Combination(Protocol):
    """Levels of a simulated point, and what they are called."""

    @property
    def levels(self) -> Mapping[str, str]:
        """The level of each factor."""

    def name(self, names: Sequence[str]) -> str:
        """Return the levels of these factors in words."""


R = TypeVar("R", bound=Combination)


def answer(rows: Sequence[R], varied: Sequence[str], value: Callable[[R], float], unit: str, *, low: bool) -> str:
    """Return which combination has most of ``value`` (least, if ``low``), and by how much each factor changes it."""
    changes = {name: largest_change(rows, name, value) for name in varied}
    matter = [name for name in varied if changes[name] >= MATTERS]
    rest = [plain(name) for name in varied if name not in matter]
    same = listed(rest) if rest else ""
    if not matter:
        return f"no difference to speak of by {same}; all come to about {figure(value(rows[0]))} {unit}."
    best, *_, last = sorted(rows, key=value, reverse=not low)
    text = f"{best.name(matter)}: {figure(value(best))} {unit}, {'the lowest' if low else 'the most'}"
    text += f"; {last.name(matter)}: {figure(value(last))}{times(value(best), value(last))}."
    by = [f"{changes[name]:,.3g} times by {plain(name)}" for name in matter if changes[name] < inf]
    if len(by) > 1:
        text += f" Up to {listed(by)}."
    return text + (f" {same} {'makes' if len(rest) == 1 else 'make'} no difference to speak of." if same else "")


def largest_change(rows: Sequence[R], name: str, value: Callable[[R], float]) -> float:
    """Return the largest ratio of ``value`` between two rows that differ in this factor alone."""
    alike: dict[tuple[str, ...], list[float]] = {}
    for row in rows:
        others = tuple(level for factor, level in row.levels.items() if factor != name)
        alike.setdefault(others, []).append(value(row))
    return max(ratio(max(values), min(values)) for values in alike.values())


def ratio(one: float, other: float) -> float:
    """Return how many times the smaller the larger one is; infinite if one alone is 0."""
    least, most = sorted((one, other))
    return most / least if least > 0 else (inf if most > 0 else 1.0)


def times(one: float, other: float) -> str:
    """Return the ratio in parentheses, or nothing where there is none."""
    found = ratio(one, other)
    return f" ({found:,.3g} times)" if found < inf else ""


def figure(value: float) -> str:
    """Return a value of a simulation, to three digits or its whole part."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:,.3g}"  # noqa: PLR2004


def plain(name: str) -> str:
    """Return a factor's name without what it belongs to."""
    return name.partition(":")[2] or name
