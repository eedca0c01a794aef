"""Where an event's time goes in each treatment, as bars with their figures."""

from dataclasses import dataclass

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.time_parts import PARTS
from dbdyno.report.why import PART_NAMES, duration

SEEN = 1e-3  # of the longest bar: what is less in all treatments is left out


@dataclass(frozen=True)
class Piece:
    """A part of a bar."""

    kind: str  # "cpu", "read", "flush", "write", "rest"
    name: str
    text: str  # "27.4 ms"
    percent: float  # of the longest bar


@dataclass(frozen=True)
class TimeRow:
    """The bar of one treatment."""

    label: str
    whole: str
    pieces: list[Piece]


def time_rows(analysis: Analysis) -> list[TimeRow]:
    """Return one row per treatment whose time is known; a part that is next to nothing in all is in none."""
    treatments = analysis.why.treatments
    if not treatments:
        return []
    longest = max(one.figures["latency_ms"] for one in treatments)
    shown = [name for name in PARTS if any(one.figures.get(name, 0.0) >= SEEN * longest for one in treatments)]
    return [
        TimeRow(
            label=one.label,
            whole=duration(one.figures["latency_ms"]),
            pieces=[
                Piece(
                    kind=name.removesuffix("_ms"),
                    name=PART_NAMES[name],
                    text=duration(one.figures[name]) if name in one.figures else "unknown",
                    percent=100 * one.figures.get(name, 0.0) / longest,
                )
                for name in shown
            ],
        )
        for one in treatments
    ]
