"""Latency by percentile on HdrHistogram's axis, on which each further nine takes as much room as the one before."""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise

from markupsafe import Markup

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.percentiles import PercentileCurve, PercentilePoint
from dbdyno.analysis.statistics import Estimate
from dbdyno.model.design import Design
from dbdyno.model.wording import number
from dbdyno.report.charts.svg import (
    Scale,
    apart,
    area,
    axis_below,
    axis_beside,
    curve,
    drawing,
    scale_ticks,
    target,
    treatment_colour,
    treatment_dash,
    upright,
    with_title,
)
from dbdyno.report.document import Chart, Width
from dbdyno.report.sentences import estimate_text

LEFT, TOP, WIDTH, NARROW_WIDTH, HEIGHT, BELOW = 84, 12, 980, 236, 260, 44
TICKS = 6
TICKED = (50, 90, 99, 99.9, 99.99, 99.999)  # percentiles that have a label
BANDS_MAX = 4  # curves with intervals in the drawing and in texts: the bands of more would hide each other

Curves = Sequence[PercentileCurve]


def shown(analysis: Analysis) -> Curves:
    """Return the curves that have a percentile; one of very few events has none."""
    return [line for line in analysis.percentiles if line.points]


def chart(curves: Curves, design: Design) -> Chart:
    """Return the curves of the treatments, each in its colour."""
    legend = tuple(treatment.label for treatment in design.treatments)
    return Chart("Latency of events by percentile", partial(_draw, curves, design), legend)


def _draw(curves: Curves, design: Design, window: Width) -> Markup:
    drawn = sorted({point.percentile for line in curves for point in line.points})
    x = Scale(1.0, _above(drawn[-1]), LEFT, LEFT + (WIDTH if window == "wide" else NARROW_WIDTH), log=True)
    y = upright([point.latency_ms.value for line in curves for point in line.points], TOP, TOP + HEIGHT)
    ticked = scale_ticks(y, TICKS)
    across = [(_above(percent), f"{percent:g}") for percent in TICKED if percent <= drawn[-1]]
    marks = [
        *axis_beside(y, ticked, x.start, x.end, f"ms{' (log)' if y.log else ''}"),
        *axis_below(x, apart(across, x), TOP, TOP + HEIGHT, "percentile"),
    ]
    places = {treatment.id: place for place, treatment in enumerate(design.treatments)}
    for line in curves if len(curves) <= BANDS_MAX else ():
        marks += _band(line.points, x, y, treatment_colour(places[line.treatment]))
    for line in curves:
        points = [(x(_above(point.percentile)), y(point.latency_ms.value)) for point in line.points]
        place = places[line.treatment]
        marks.append(curve(points, treatment_colour(place), treatment_dash(place)))
    marks += _percentile_strips(curves, design.labels, drawn, x)
    return drawing(x.end + 20, TOP + HEIGHT + BELOW, "latency by percentile", marks)


def _above(percentile: float) -> float:
    """Return one out of how many events stands above."""
    return 100 / (100 - percentile)


def _band(points: Sequence[PercentilePoint], x: Scale, y: Scale, colour: str) -> list[Markup]:
    """Draw the intervals of a curve, cut off where the chart ends."""
    bounded = [(x(_above(point.percentile)), point.latency_ms) for point in points if point.latency_ms.bounded]
    ends = [[(at, y(min(max(end, y.low), y.high))) for at, end in side] for side in (
        [(at, latency.low) for at, latency in bounded], [(at, latency.high) for at, latency in reversed(bounded)]
    )]  # fmt: skip
    return [area([*ends[0], *ends[1]], colour)] if bounded else []


def _value(estimate: Estimate) -> str:
    return number(estimate.value)


def _percentile_strips(curves: Curves, labels: Mapping[str, str], drawn: Sequence[float], x: Scale) -> list[Markup]:
    """Return an upright strip for each percentile, which says it of every treatment."""
    at = [x(_above(percent)) for percent in drawn]
    between = [x.start, *((left + right) / 2 for left, right in pairwise(at)), x.end]
    text = estimate_text if len(curves) <= BANDS_MAX else _value
    figures = {line.treatment: {point.percentile: text(point.latency_ms) for point in line.points} for line in curves}
    return [
        with_title(
            [
                f"p{percent:g}, ms",
                *(f"{labels[id_]}: {of[percent]}" for id_, of in figures.items() if percent in of),
            ],
            [target(strip, (TOP, TOP + HEIGHT))],
        )
        for percent, strip in zip(drawn, pairwise(between), strict=True)
    ]
