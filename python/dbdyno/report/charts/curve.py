"""Curves of a factor that is an amount, with intervals and knees; and throughput against latency as the load grows."""

from collections.abc import Sequence
from functools import partial

from markupsafe import Markup

from dbdyno.analysis.curves import Curve, Curves, Point
from dbdyno.analysis.statistics.estimate import Estimate
from dbdyno.model.printable import clipped
from dbdyno.model.wording import capital
from dbdyno.report.charts.palette import LIGHT, treatment_colour, treatment_dash
from dbdyno.report.charts.svg import (
    CHARACTER,
    Scale,
    apart,
    axis_below,
    axis_beside,
    curve,
    dots,
    drawing,
    rim,
    ring,
    round_ticks,
    rule,
    said,
    tick,
    words,
)
from dbdyno.report.document import Chart, Width
from dbdyno.report.sentences import estimate_text
from dbdyno.report.summaries import line_name

LEFT, TOP, WIDTH, NARROW_WIDTH, HEIGHT, BELOW = 84, 12, 600, 236, 260, 44
LOG_FROM = 8.0  # largest over smallest, from which an axis is logarithmic
TICKS = 6
DOT, RING = 3.8, 8.0
LINE = 12  # pixels of a line of text


def chart(curves: Curves) -> Chart:
    """Return a metric by the factor's amounts, a curve for each combination of the other factors."""
    return Chart("", partial(_drawn, curves), _legend(curves))


def against_latency(rate: Curves, latency: Curves) -> Chart:
    """Return latency by throughput, a dot for each load offered, of the same lines in the same order."""
    load = "rate offered" if rate.factor == "rate" else f"number of {rate.factor}"
    caption = f"{latency.metric.words} by {rate.metric.words}, a dot for each {load}"
    return Chart(capital(caption), partial(_against, rate, latency), _legend(rate))


def _legend(curves: Curves) -> tuple[str, ...]:
    return tuple(map(line_name, curves.lines)) if len(curves.lines) > 1 else ()


def _drawn(curves: Curves, window: Width) -> Markup:
    amounts = {point.amount: point.level for line in curves.lines for point in line.points}
    x, y = _across(list(amounts), window), _upright([point.value for line in curves.lines for point in line.points])
    marks = [
        *_beside(y, x, curves.metric.heading),
        *axis_below(x, apart(sorted(amounts.items()), x), TOP, TOP + HEIGHT, _titled(curves.factor, x)),
    ]
    for place, line in enumerate(curves.lines):
        marks += _line(line, x, y, place, curves)
    label = f"{curves.metric.words} by {curves.factor}"
    return drawing(x.end + 16, TOP + HEIGHT + BELOW, label, marks)


def _across(values: Sequence[float], window: Width) -> Scale:
    """Return the scale of what lies across, whose ends keep off the edges."""
    low, high = min(values), max(values)
    end = LEFT + (WIDTH if window == "wide" else NARROW_WIDTH)
    if high >= LOG_FROM * low:
        off = (high / low) ** 0.05
        return Scale(low / off, high * off, LEFT, end, log=True)
    off = 0.05 * (high - low)
    return Scale(low - off, high + off, LEFT, end)


def _upright(values: Sequence[Estimate]) -> Scale:
    """Return the scale of a metric: logarithmic where it spans much, else from 0."""
    ends = [end for one in values for end in (_ends(one))]
    low, high = min(ends), max(ends)
    if low > 0 and high >= LOG_FROM * low:
        return Scale(low / 1.2, high * 1.2, TOP + HEIGHT, TOP, log=True)
    return Scale(0.0, 1.06 * high or 1.0, TOP + HEIGHT, TOP)


def _ends(one: Estimate) -> tuple[float, float]:
    return (one.low, one.high) if one.bounded else (one.value, one.value)


def _titled(title: str, scale: Scale) -> str:
    return f"{clipped(title)}{' (log)' if scale.log else ''}"


def _beside(y: Scale, x: Scale, title: str) -> list[Markup]:
    ticked = [(value, tick(value)) for value in round_ticks(y.low, y.high, TICKS, log=y.log)]
    return axis_beside(y, ticked, x.start, x.end, _titled(title, y))


def _line(line: Curve, x: Scale, y: Scale, place: int, curves: Curves) -> list[Markup]:
    """Draw a curve: its line, intervals, dots that say their figures, and a ring around its knee."""
    colour = treatment_colour(place)
    places = [(x(point.amount), y(point.value.value)) for point in line.points]
    bars = [
        rule((at, at), (y(point.value.low), y(point.value.high)), stroke=colour, stroke_width=3)
        for (at, _), point in zip(places, line.points, strict=True)
        if point.value.bounded
    ]
    found = line.plateau
    turns = {turn.at for turn in (found.knee, found.leaves) if turn} if found else set()
    rings = [ring(*places[at], RING, colour) for at in sorted(turns)]
    return [curve(places, colour, treatment_dash(place)), *bars, *_dots(line, places, curves, colour), *rings]


def _dots(line: Curve, places: Sequence[tuple[float, float]], curves: Curves, colour: str) -> list[Markup]:
    return [
        said(f"{_name(line, point, curves)}: {_figure(point.value, curves)}", [dots([at], DOT, colour)])
        for at, point in zip(places, line.points, strict=True)
    ]


def _figure(value: Estimate, curves: Curves) -> str:
    return f"{estimate_text(value)} {curves.metric.heading}"


def _name(line: Curve, point: Point, curves: Curves) -> str:
    return " / ".join(filter(None, (line_name(line), f"{curves.factor} {point.level}")))


def _against(rate: Curves, latency: Curves, window: Width) -> Markup:
    """Draw the dots of each line in order of the load, joined, each beside its level."""
    pairs = [
        list(zip(one.points, other.points, strict=True)) for one, other in zip(rate.lines, latency.lines, strict=True)
    ]
    fast = [point.value for line in pairs for point, _ in line]
    x = _across([end for one in fast for end in _ends(one)], window)
    y = _upright([point.value for line in pairs for _, point in line])
    ticked = [(value, tick(value)) for value in round_ticks(x.low, x.high, TICKS, log=x.log)]
    marks = [
        *_beside(y, x, latency.metric.heading),
        *axis_below(x, apart(ticked, x), TOP, TOP + HEIGHT, _titled(rate.metric.heading, x)),
    ]
    names = []
    for place, (line, points) in enumerate(zip(rate.lines, pairs, strict=True)):
        colour = treatment_colour(place)
        places = [(x(one.value.value), y(other.value.value)) for one, other in points]
        marks.append(curve(places, colour, treatment_dash(place)))
        for (across, up), (one, other) in zip(places, points, strict=True):
            text = f"{_name(line, one, rate)}: {_figure(one.value, rate)}, {_figure(other.value, latency)}"
            marks += [*_cross(one.value, other.value, x, y, colour), said(text, [dots([(across, up)], DOT, colour)])]
            names.append((across, up, one.level))
    marks += [words(across, up, name, **rim(LIGHT)) for across, up, name in _readable(names)]
    return drawing(x.end + 30, TOP + HEIGHT + BELOW, f"{latency.metric.words} by {rate.metric.words}", marks)


def _cross(one: Estimate, other: Estimate, x: Scale, y: Scale, colour: str) -> list[Markup]:
    """Draw the intervals of both figures of a dot."""
    look: dict[str, str | float] = {"stroke": colour, "stroke_width": 1.5, "stroke_opacity": "0.6"}
    across = [rule((x(one.low), x(one.high)), (y(other.value),) * 2, **look)] if one.bounded else []
    return across + ([rule((x(one.value),) * 2, (y(other.low), y(other.high)), **look)] if other.bounded else [])


def _readable(names: Sequence[tuple[float, float, str]]) -> list[tuple[float, float, str]]:
    """Return dots' names beside them where each touches none before it; one without room is said by its dot alone."""
    shown: list[tuple[float, float, str]] = []
    for across, up, text in names:
        to_the_left = across - 7 - CHARACTER * len(text)
        beside = [(left, up + down) for left in (across + 7, to_the_left) for down in (-9, 11)]
        free = [place for place in beside if not any(_touch((*place, text), other) for other in shown)]
        shown += [(*place, text) for place in free[:1]]
    return shown


def _touch(one: tuple[float, float, str], other: tuple[float, float, str]) -> bool:
    (left, up, text), (x, y, name) = one, other
    return abs(up - y) <= LINE and left <= x + CHARACTER * len(name) and x <= left + CHARACTER * len(text)
