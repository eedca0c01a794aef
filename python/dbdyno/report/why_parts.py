"""What a difference in time consists of: parts of the whole, or signed amounts where they work against each other."""

from collections.abc import Mapping
from dataclasses import dataclass

from dbdyno.analysis.explanation import PARTS, Changed

WORTH_SAYING = 0.1  # of the time, or of its change
LITTLE = 0.02  # of the whole: what works against it by less is taken off the others in proportion


@dataclass(frozen=True)
class Parted:
    """A difference, level minus baseline, and the parts worth saying, the largest first: ms, signed.

    Parts that do not ``oppose`` each other have the sign of the whole, and neither one nor all of them exceed it.
    """

    whole_ms: float
    parts_ms: Mapping[str, float]
    rest_of_it_ms: float  # of the parts that are not worth saying, in all
    opposed: bool


def parted(changed: Changed) -> Parted:
    """Return what the difference in latency consists of."""
    level, baseline = changed.level.figures, changed.baseline.figures
    whole = level["latency_ms"] - baseline["latency_ms"]
    deltas = {name: level[name] - baseline[name] for name in PARTS if name in changed.differences}
    worth = {name: delta for name, delta in deltas.items() if abs(delta) >= WORTH_SAYING * abs(whole) and delta}
    ordered = dict(sorted(worth.items(), key=lambda item: -abs(item[1])))
    in_all = sum(map(abs, ordered.values()))
    opposed = in_all > abs(whole) * (1 + LITTLE) or any(delta * whole < 0 for delta in ordered.values())
    if in_all > abs(whole) and not opposed:
        ordered = {name: delta * abs(whole) / in_all for name, delta in ordered.items()}
    return Parted(whole, ordered, whole - sum(ordered.values()), opposed)


def main_part(changed: Changed) -> str:
    """Return the part that changed most in the direction of the whole."""
    found = parted(changed)
    with_it = {name: delta for name, delta in found.parts_ms.items() if delta * found.whole_ms > 0}
    return max(with_it, key=lambda name: abs(with_it[name]), default="rest_ms")
