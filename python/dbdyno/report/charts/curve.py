"""Curves of a factor that is an amount, with intervals and knees; and throughput against latency as the load grows."""

from collections.abc import Collection, Iterator, Sequence
from functools import partial

from markupsafe import Markup

from dbdyno.analysis.curves import Curve, CurvePoint, Curves, Turn
from dbdyno.analysis.statistics import Estimate
from dbdyno.model.printable import clipped
from dbdyno.model.wording import capital, number
from dbdyno.report.charts.svg import (
    CHARACTER,
    LIGHT,
    LOG_FROM,
    Scale,
    apart,
    area,
    axis_below,
    axis_beside,
    band,
    curve,
    dots,
    drawing,
    rim,
    ring,
    rule,
    scale_ticks,
    treatment_colour,
    treatment_dash,
    upright,
    with_title,
    words,
)
from dbdyno.report.document import Chart, Width
from dbdyno.report.sentences import estimate_text
from dbdyno.report.summaries import line_name

LEFT, TOP, WIDTH, NARROW_WIDTH, HEIGHT, BELOW = 84, 26, 960, 236, 270, 44
TICKS = 6
DOT, RING = 3.8, 8.0
LINE = 12  # pixels of a line of text
KNEE_MAX = 40  # characters of what stands above one


def chart(curves: Curves, baselines: Collection[str] = ()) -> Chart:
    """Return a metric by the factor's amounts, a curve for each combination of the other factors.

    ``baselines`` are treatments that the others were compared with: each is one point, with a word beside it.
    """
    return Chart("", partial(_draw, curves, baselines), _legend(curves))


def against_latency(rate: Curves, latency: Curves) -> Chart:
    """Return latency by throughput, a dot for each load offered, of the same lines in the same order."""
    load = "rate offered" if rate.factor == "rate" else f"number of {rate.factor}"
    caption = f"{latency.metric.words} by {rate.metric.words}, a dot for each {load}"
    return Chart(capital(caption), partial(_against, rate, latency), _legend(rate))


def _legend(curves: Curves) -> tuple[str, ...]:
    return tuple(map(line_name, curves.lines)) if len(curves.lines) > 1 else ()


def _draw(curves: Curves, baselines: Collection[str], window: Width) -> Markup:
    amounts = {point.amount: point.level for line in curves.lines for point in line.points}
    x, y = _across(list(amounts), window), _upright([point.value for line in curves.lines for point in line.points])
    marks = [
        *_beside(y, x, curves.metric.heading),
        *axis_below(x, apart(sorted(amounts.items()), x), TOP, TOP + HEIGHT, _axis_title(curves.factor, x)),
    ]
    alone = len(curves.lines) == 1
    for place, line in enumerate(curves.lines):
        marks += [*(_knee(line, x) if alone else ()), *_line(line, x, y, place, curves)]
    if alone:
        marks += _point_labels(curves.lines[0], x, y, baselines)
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
    """Return the scale of a metric."""
    return upright([end for value in values for end in value.ends], TOP, TOP + HEIGHT)


def _axis_title(title: str, scale: Scale) -> str:
    return f"{clipped(title)}{' (log)' if scale.log else ''}"


def _beside(y: Scale, x: Scale, title: str) -> list[Markup]:
    return axis_beside(y, scale_ticks(y, TICKS), x.start, x.end, _axis_title(title, y))


def _line(line: Curve, x: Scale, y: Scale, place: int, curves: Curves) -> list[Markup]:
    """Draw a curve: a band of its intervals, its line, dots that say their figures, and a ring around its knee."""
    colour = treatment_colour(place)
    places = [(x(point.amount), y(point.value.value)) for point in line.points]
    ends = [(x(point.amount), *map(y, point.value.ends)) for point in line.points]
    around = [(at, high) for at, _, high in ends] + [(at, low) for at, low, _ in reversed(ends)]
    bars = [rule((at, at), (low, high), stroke=colour, stroke_width=3) for at, low, high in ends if low != high]
    rings = [ring(*places[at], RING, colour) for at in sorted({turn.at for turn in _turns(line)})]
    shape = [area(around, colour)] if bars else []
    return [*shape, curve(places, colour, treatment_dash(place)), *bars, *_dots(line, places, curves, colour), *rings]


def _turns(line: Curve) -> list[Turn]:
    plateau = line.plateau
    return [turn for turn in (plateau.knee, plateau.leaves) if turn] if plateau else []


def _knee(line: Curve, x: Scale) -> Iterator[Markup]:
    """Draw the levels that a knee may be, with 95 %, as a grey band that says so."""
    for turn in _turns(line)[:1]:
        levels = [point.level for point in line.points]
        low, high = (x(line.points[place].amount) for place in (turn.low, turn.high))
        may = "" if turn.low == turn.high else f" (95 %: {levels[turn.low]} to {levels[turn.high]})"
        text = clipped(f"knee: {levels[turn.at]}{may}", KNEE_MAX)
        half, middle = CHARACTER * len(text) / 2, x(line.points[turn.at].amount)
        yield band((low - RING, high + RING), (TOP, TOP + HEIGHT))
        yield words(min(max(middle, x.start + half), x.end + 16 - half), TOP - 12, text, text_anchor="middle")


def _point_labels(line: Curve, x: Scale, y: Scale, baselines: Collection[str]) -> Iterator[Markup]:
    """Write its figure beside each point that leaves room, and which of them is the baseline."""
    shown: list[tuple[float, float, str]] = []
    for point in line.points:
        text = number(point.value.value) + (
            " (baseline)" if point.treatment in baselines and len(baselines) == 1 else ""
        )
        half = CHARACTER * len(text) / 2
        across, low, high = x(point.amount), *map(y, point.value.ends)
        left = min(max(across - half, x.start + 3), x.end + 14 - 2 * half)
        for up in (high - RING - 8, low + RING + 9):
            place = (left, up, text)
            if TOP + 6 <= up <= TOP + HEIGHT - 6 and not any(_touch(place, other) for other in shown):
                shown.append(place)
                yield words(left, up, text, **rim(LIGHT))
                break
    first, last = line.points[0], line.points[-1]
    if first.value.bounded and last.value.bounded:
        text = "shaded: 95 % interval"
        yield words(x.end, TOP + HEIGHT - 12, text, text_anchor="end", font_size=11, fill_opacity="0.8", **rim(LIGHT))


def _dots(line: Curve, places: Sequence[tuple[float, float]], curves: Curves, colour: str) -> list[Markup]:
    return [
        with_title(f"{_name(line, point, curves)}: {_figure(point.value, curves)}", [dots([at], DOT, colour)])
        for at, point in zip(places, line.points, strict=True)
    ]


def _figure(value: Estimate, curves: Curves) -> str:
    return f"{estimate_text(value)} {curves.metric.heading}"


def _name(line: Curve, point: CurvePoint, curves: Curves) -> str:
    return " / ".join(filter(None, (line_name(line), f"{curves.factor} {point.level}")))


def _against(rate: Curves, latency: Curves, window: Width) -> Markup:
    """Draw the dots of each line in order of the load, joined, each beside its level."""
    pairs = [
        list(zip(rate_line.points, latency_line.points, strict=True))
        for rate_line, latency_line in zip(rate.lines, latency.lines, strict=True)
    ]
    fast = [point.value for line in pairs for point, _ in line]
    x = _across([end for estimate in fast for end in estimate.ends], window)
    y = _upright([point.value for line in pairs for _, point in line])
    ticked = scale_ticks(x, TICKS)
    marks = [
        *_beside(y, x, latency.metric.heading),
        *axis_below(x, apart(ticked, x), TOP, TOP + HEIGHT, _axis_title(rate.metric.heading, x)),
    ]
    names = []
    for place, (line, points) in enumerate(zip(rate.lines, pairs, strict=True)):
        colour = treatment_colour(place)
        places = [(x(rate_point.value.value), y(latency_point.value.value)) for rate_point, latency_point in points]
        marks.append(curve(places, colour, treatment_dash(place)))
        for (across, up), (rate_point, latency_point) in zip(places, points, strict=True):
            figures = f"{_figure(rate_point.value, rate)}, {_figure(latency_point.value, latency)}"
            text = f"{_name(line, rate_point, rate)}: {figures}"
            marks += [
                *_cross(rate_point.value, latency_point.value, x, y, colour),
                with_title(text, [dots([(across, up)], DOT, colour)]),
            ]
            names.append((across, up, rate_point.level))
    marks += [words(across, up, name, **rim(LIGHT)) for across, up, name in _readable(names)]
    return drawing(x.end + 30, TOP + HEIGHT + BELOW, f"{latency.metric.words} by {rate.metric.words}", marks)


def _cross(rate: Estimate, latency: Estimate, x: Scale, y: Scale, colour: str) -> list[Markup]:
    """Draw the intervals of both figures of a dot."""
    look: dict[str, str | float] = {"stroke": colour, "stroke_width": 1.5, "stroke_opacity": "0.6"}
    across = [rule((x(rate.low), x(rate.high)), (y(latency.value),) * 2, **look)] if rate.bounded else []
    return across + ([rule((x(rate.value),) * 2, (y(latency.low), y(latency.high)), **look)] if latency.bounded else [])


def _readable(names: Sequence[tuple[float, float, str]]) -> list[tuple[float, float, str]]:
    """Return dots' names beside them where each touches none before it; one without room is said by its dot alone."""
    shown: list[tuple[float, float, str]] = []
    for across, up, text in names:
        to_the_left = across - 7 - CHARACTER * len(text)
        beside = [(left, up + down) for left in (across + 7, to_the_left) for down in (-9, 11)]
        free = [place for place in beside if not any(_touch((*place, text), other) for other in shown)]
        shown += [(*place, text) for place in free[:1]]
    return shown


def _touch(first: tuple[float, float, str], second: tuple[float, float, str]) -> bool:
    (left, up, text), (x, y, name) = first, second
    return abs(up - y) <= LINE and left <= x + CHARACTER * len(name) and x <= left + CHARACTER * len(text)
