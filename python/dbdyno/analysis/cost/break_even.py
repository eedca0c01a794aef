"""From which demand on the dearer of two devices is the cheaper one."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

Cost = Callable[[float], float]  # queries per second -> money over the life

SETS_MOST = 50  # further ones of the slower device: beyond that the price of a query decides, which is given as well
HALVINGS = 60


@dataclass(frozen=True)
class BreakEven:
    """Demands in queries per second. ``None``: not up to ``searched``."""

    first: float | None  # at which the second device costs less for the first time
    for_good: float | None  # from which on it always does
    searched: float


@dataclass(frozen=True)
class Curve:
    """What a device costs by demand."""

    cost: Cost
    serves: float  # queries per second of one set
    fewest: int  # sets, whatever the demand


def break_even(first: Curve, second: Curve) -> BreakEven:
    """Return from which demand on ``second`` costs less than ``first``.

    Costs jump where another set is needed and run smoothly between. So each stretch between two jumps of either is
    looked at by its ends, and where the order changes inside, by halving.
    """
    curves = (first, second)
    searched = max(one.fewest * one.serves for one in curves) + SETS_MOST * min(one.serves for one in curves)
    jumps = {k * one.serves for one in curves for k in range(one.fewest, math.floor(searched / one.serves) + 1)}
    edges = [0.0, *sorted(jumps | {searched})]
    cost_a, cost_b = first.cost, second.cost
    found: float | None = None
    for_good: float | None = None
    for low, high in pairwise(edges):
        start = low + (high - low) * 1e-9
        cheaper_at_start, cheaper_at_end = cost_b(start) < cost_a(start), cost_b(high) < cost_a(high)
        if cheaper_at_start and for_good is None:
            for_good = low
        if not cheaper_at_start and cheaper_at_end:
            for_good = _crossing(cost_a, cost_b, start, high)
        if not cheaper_at_end:
            for_good = None
        here = low if cheaper_at_start else for_good
        if found is None and here is not None:
            found = here
    return BreakEven(found, for_good, searched)


def _crossing(cost_a: Cost, cost_b: Cost, low: float, high: float) -> float:
    """Return where between them ``cost_b`` becomes the smaller one."""
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if cost_b(middle) < cost_a(middle):
            high = middle
        else:
            low = middle
    return high
