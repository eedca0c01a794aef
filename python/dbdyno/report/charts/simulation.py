"""What a page shows of simulated points: latency, the queue, distances, where commands went, and a surface."""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from markupsafe import Markup

from dbdyno._native import histogram
from dbdyno.report.charts.svg import (
    Scale,
    apart,
    axis_below,
    axis_beside,
    curve,
    dots,
    drawing,
    element,
    round_ticks,
    scale_ticks,
    tick,
    treatment_colour,
    treatment_dash,
    with_title,
    words,
)
from dbdyno.report.document import Chart, Width

LEFT, TOP, WIDTH, NARROW_WIDTH, HEIGHT, BELOW = 84, 12, 980, 236, 260, 44
TICKS = 6
PERCENTS = (*range(1, 100), 99.9, 99.99, 100)
LEVELS = 3  # of each of two factors, from which a surface is drawn
FACTORS = 2

Shown = Sequence[tuple[str, Mapping[str, Any]]]
Line = Sequence[tuple[float, float]]


def latency(shown: Shown) -> Chart:
    """Return the share of bios that take no longer than a time, a curve each combination."""
    lines = [_percentiles(outcome) for _, outcome in shown]
    drawn = partial(_plot, lines, "ms (log)", "percent of reads and writes", log_x=True)
    return Chart("Share of reads and writes that took no longer", drawn, _legend(shown))


def rate(shown: Shown, unit: str) -> Chart:
    """Return what a load did a second, over time."""
    lines = [
        list(zip(outcome["series"]["end_s"], outcome["series"]["rates"][unit], strict=True)) for _, outcome in shown
    ]
    return Chart(unit.capitalize(), partial(_plot, lines, "s", unit, log_x=False), _legend(shown))


def queue(shown: Shown) -> Chart:
    """Return the mean number of requests in the queue over time."""
    lines = [
        [
            (at, columns["aqu-sz"])
            for at, columns in zip(outcome["series"]["end_s"], outcome["series"]["columns"], strict=True)
        ]
        for _, outcome in shown
    ]
    return Chart("Requests in the queue (aqu-sz)", partial(_plot, lines, "s", "requests", log_x=False), _legend(shown))


def distances(shown: Shown) -> Chart:
    """Return how many commands began how far from the end of the one before, by powers of two."""
    lines = [_distances(outcome["seeks"]) for _, outcome in shown]
    drawn = partial(_plot, lines, "sectors (log)", "percent of commands",
                    log_x=True)  # fmt: skip
    return Chart(
        "Sectors from the end of a command to the next, either way; contiguous ones at 1", drawn, _legend(shown)
    )


def places(shown: Shown) -> tuple[Chart, ...]:
    """Return a picture for each combination: where the drive was sent over time."""
    return tuple(
        Chart(f"{name}: sectors over time, a sample", partial(_places, outcome["sample"]), ("reads", "writes"))
        for name, outcome in shown
    )


def surface(rows: Sequence[tuple[Mapping[str, str], float]], varied: Sequence[str], unit: str) -> Chart | None:
    """Return a field of colours where exactly two factors that are numbers vary."""
    if len(varied) != FACTORS or not all(_number(levels[name]) is not None for levels, _ in rows for name in varied):
        return None
    across, up = (sorted({levels[name] for levels, _ in rows}, key=lambda text: _number(text) or 0) for name in varied)
    if max(len(across), len(up)) < LEVELS:
        return None
    values = {(levels[varied[0]], levels[varied[1]]): value for levels, value in rows}
    names = [name.partition(":")[2] or name for name in varied]
    return Chart(f"{unit.capitalize()}, simulated", partial(_surface, across, up, names, values, unit))


def _number(text: str) -> float | None:
    digits = text.rstrip("kKmMgGiB")
    try:
        number = float(digits)
    except ValueError:
        return None
    power = " kmg".find(text[len(digits) : len(digits) + 1].lower() or " ")
    return number * 1024.0 ** max(power, 0)


def _legend(shown: Shown) -> tuple[str, ...]:
    return tuple(name for name, _ in shown) if len(shown) > 1 else ()


def _percentiles(outcome: Mapping[str, Any]) -> Line:
    import numpy as np

    packed = [outcome[way]["latency"]["histogram"] for way in ("reads", "writes")]
    values, counts, _ = histogram(packed)
    ends, times = np.frombuffer(values) / 1e6, np.frombuffer(counts)
    if not len(ends):
        return []
    share = np.cumsum(times) / times.sum() * 100
    return [
        (float(ends[min(int(np.searchsorted(share, percent)), len(ends) - 1)]), float(percent)) for percent in PERCENTS
    ]


def _distances(seeks: Mapping[str, Any]) -> Line:
    length = max(len(seeks["forward"]), len(seeks["backward"]))
    both = [sum(seeks[way][at] for way in ("forward", "backward") if at < len(seeks[way])) for at in range(length)]
    total = (sum(both) + seeks["contiguous"]) or 1
    line = [(2.0 ** (at + 1), 100 * times / total) for at, times in enumerate(both)]
    return [(1.0, 100 * seeks["contiguous"] / total), *line]


def _plot(lines: Sequence[Line], across: str, up: str, window: Width, *, log_x: bool) -> Markup:
    points = [point for line in lines for point in line] or [(1.0, 0.0)]
    low, high = min(x for x, _ in points), max(x for x, _ in points)
    low, high = (max(low, 1e-4), max(high, low * 2, 1e-3)) if log_x else (0.0, high or 1.0)
    x = Scale(low, high, LEFT, LEFT + (WIDTH if window == "wide" else NARROW_WIDTH), log=log_x)
    y = Scale(0.0, max(value for _, value in points) * 1.05 or 1.0, TOP + HEIGHT, TOP)
    marks = [
        *axis_beside(y, scale_ticks(y, TICKS), x.start, x.end, up),
        *axis_below(x, apart(scale_ticks(x, TICKS), x), TOP, TOP + HEIGHT, across),
    ]
    for place, line in enumerate(lines):
        drawn = [(x(max(at, low)), y(value)) for at, value in line]
        marks.append(curve(drawn, treatment_colour(place), treatment_dash(place)))
    return drawing(x.end + 20, TOP + HEIGHT + BELOW, f"{up} by {across}", marks)


def _places(sample: Mapping[str, Any], window: Width) -> Markup:
    width = WIDTH if window == "wide" else NARROW_WIDTH
    at, sectors = sample["at_s"], sample["sector"]
    x = Scale(min(at), max(at), LEFT, LEFT + width)
    y = Scale(0.0, float(max(sectors) or 1), TOP + HEIGHT, TOP)
    across = [(value, tick(value)) for value in round_ticks(x.low, max(x.high, x.low + 1e-6), TICKS)]
    marks = [
        *axis_beside(y, [(value, f"{value:,.0f}") for value in round_ticks(0.0, y.high, TICKS)], x.start, x.end, ""),
        *axis_below(x, apart(across, x), TOP, TOP + HEIGHT, "s"),
    ]
    for place in (0, 1):
        drawn = [
            (x(at_s), y(sector))
            for at_s, sector, write in zip(at, sectors, sample["write"], strict=True)
            if write == place
        ]
        if drawn:
            marks.append(dots(drawn, 1.1, treatment_colour(place), "0.6"))
    return drawing(x.end + 20, TOP + HEIGHT + BELOW, "sectors over time", marks)


def _surface(  # noqa: PLR0913, PLR0917 - a field of colours and what is written beside it
    across: Sequence[str], up: Sequence[str], names: Sequence[str], values: Mapping[tuple[str, str], float], unit: str,
    window: Width,
) -> Markup:  # fmt: skip
    width = (WIDTH if window == "wide" else NARROW_WIDTH) / len(across)
    height = max(HEIGHT / len(up), 18)
    low, high = min(values.values()), max(values.values())
    marks = [words(LEFT, TOP, f"{names[0]} across, {names[1]} downwards")]
    for column, across_level in enumerate(across):
        marks.append(words(LEFT + (column + 0.5) * width, TOP + 18, across_level, text_anchor="middle"))
    for line, up_level in enumerate(up):
        top = TOP + 30 + line * height
        marks.append(words(LEFT - 6, top + height / 2, up_level, text_anchor="end"))
        for column, across_level in enumerate(across):
            value = values[across_level, up_level]
            share = (value - low) / ((high - low) or math.inf)
            left = LEFT + column * width
            field = element("rect", x=left, y=top, width=width - 1, height=height - 1, fill=treatment_colour(0),
                            fill_opacity=f"{0.08 + 0.5 * share:.2f}")  # fmt: skip
            text = words(left + width / 2, top + height / 2, f"{value:,.0f}", text_anchor="middle")
            marks.append(
                with_title(f"{names[0]} {across_level}, {names[1]} {up_level}: {value:,.4g} {unit}", [field, text])
            )
    return drawing(LEFT + width * len(across) + 20, TOP + 36 + height * len(up), unit, marks)
