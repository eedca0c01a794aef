"""What every benchmark writes: its figures beside their limits, and in a second file what they were made from."""

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Figure:
    """A figure and its limit: a number, [least, most], or None; ``met`` is None where nothing was judged."""

    name: str  # with its unit
    value: float | None  # None: unknown
    limit: float | list[float | None] | None = None
    met: bool | None = None


def at_most(name: str, value: float | None, limit: float) -> Figure:
    """Return a figure that is met up to its limit; an unknown one is not judged."""
    return Figure(name, value, limit, None if value is None else bool(value <= limit))


def at_least(name: str, value: float, limit: float) -> Figure:
    """Return a figure that is met from its limit on."""
    return Figure(name, value, limit, bool(value >= limit))


def within(name: str, value: float, low: float | None, high: float | None, met: bool | None) -> Figure:  # noqa: FBT001
    """Return a figure between two limits, judged by the caller."""
    limit = None if low is None and high is None else high if low is None else [low, high]
    return Figure(name, value if math.isfinite(value) else None, limit, met)


def write(path: Path | None, figures: list[Figure], details: object = None) -> None:
    """Write the figures to ``path`` and details beside it, to ``NAME-details.json``; without a path, nothing."""
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([asdict(figure) for figure in figures], indent=1) + "\n", encoding="utf-8")
    if details is not None:
        beside = path.with_name(f"{path.stem}-details.json")
        beside.write_text(json.dumps(details, indent=1) + "\n", encoding="utf-8")
