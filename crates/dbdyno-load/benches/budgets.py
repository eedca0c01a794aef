"""What the load generator must hold against its peers, and whether it did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from cost import Cost, Group, Series


@dataclass(frozen=True)
class Row:
    """A ratio beside what it may be; ``low`` and ``high`` are the ratios of single rounds."""

    what: str
    group: str
    ours: str
    other: str
    ratio: float
    low: float
    high: float
    limit: float
    met: bool

    def text(self) -> str:
        """A line of the table."""
        spread, versus = f"({self.low:.2f} to {self.high:.2f})", f"{self.ours} / {self.other}"
        return (
            f"{self.group:<34} {self.what:<16} {versus:<44} {self.ratio:5.2f} {spread:<15} {self.limit:4.2f}  "
            f"{'met' if self.met else 'NOT MET'}"
        )


@dataclass(frozen=True)
class Budget:
    """A ratio of a figure of ours to one of another tool, and its limit by number of clients."""

    what: str
    figure: Literal["cpu_us", "rate"]
    bound: Literal["at most", "at least"]
    limits: dict[int, float]

    def rows(self, group: Group, ours: Cost, other: Cost) -> list[Row]:
        """The budget's row, if it has a limit for so many clients."""
        limit = self.limits.get(group.clients)
        if limit is None:
            return []
        own: Series = getattr(ours, self.figure)
        theirs: Series = getattr(other, self.figure)
        paired = [a / b for a, b in zip(own.values, theirs.values, strict=True)]
        ratio = own.median / theirs.median
        met = ratio <= limit if self.bound == "at most" else ratio >= limit
        names = (ours.tool.name, other.tool.name)
        return [Row(f"{self.what} {self.bound}", group.name, *names, ratio, min(paired), max(paired), limit, met)]


POINT_SELECT_CPU = Budget("CPU", "cpu_us", "at most", {1: 0.75, 8: 0.55, 64: 0.33, 256: 0.30})
POINT_SELECT_RATE = Budget("rate", "rate", "at least", {1: 0.97, 8: 0.97, 64: 1.10, 256: 1.20})
FLOOR_CPU = Budget("CPU", "cpu_us", "at most", {64: 1.25})
WRITING_CPU = Budget("CPU", "cpu_us", "at most", {10: 0.5, 50: 0.5})


def _of(costs: dict[str, Cost], kind: str) -> list[Cost]:
    return [cost for cost in costs.values() if cost.tool.kind == kind]


def point_select(group: Group, costs: dict[str, Cost]) -> list[Row]:
    """The cheapest of ours against the cheapest peer, the fastest against the fastest, each against its floor."""
    ours, peers = _of(costs, "ours"), _of(costs, "peer")
    rows = []
    if peers:
        cheapest = [min(those, key=lambda cost: cost.cpu_us.median) for those in (ours, peers)]
        fastest = [max(those, key=lambda cost: cost.rate.median) for those in (ours, peers)]
        rows += POINT_SELECT_CPU.rows(group, *cheapest) + POINT_SELECT_RATE.rows(group, *fastest)
    for mode in ("text", "prepared"):
        mine, floor = costs.get(f"ours oltp {mode}"), costs.get(f"floor {mode}")
        if mine and floor:
            rows += FLOOR_CPU.rows(group, mine, floor)
    return rows


def none(_group: Group, _costs: dict[str, Cost]) -> list[Row]:
    """For what is published without a budget."""
    return []


def writing(group: Group, costs: dict[str, Cost]) -> list[Row]:
    """Each of ours against the peer that says the same in the same way: the last words of their names agree."""
    rows = []
    for mine in _of(costs, "ours"):
        mode = mine.tool.name.rpartition(" ")[2]
        for peer in _of(costs, "peer"):
            if peer.tool.name.endswith(mode):
                rows += WRITING_CPU.rows(group, mine, peer)
    return rows


def table(group: Group, costs: dict[str, Cost]) -> str:
    """The figures of a group."""
    head = f"{'':<32} {'CPU us/query':>12} {'(min to max)':>16} {'queries/s':>10} {'server us':>10} {'foreign':>8}"
    lines = [group.name, head]
    for name, cost in costs.items():
        cpu = cost.cpu_us
        spread = f"({min(cpu.values):.2f} to {max(cpu.values):.2f})"
        lines.append(
            f"  {name:<30} {cpu.median:>12.2f} {spread:>16} {cost.rate.median:>10.0f} "
            f"{cost.server_cpu_us.median:>10.2f} {cost.foreign_cores.median:>8.2f}"
        )
    return "\n".join(lines)
