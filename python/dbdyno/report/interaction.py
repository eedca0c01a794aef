"""The interaction plot: the effect of one factor's levels, a line for each level of another.

Lines that run together: the effect does not depend on the other factor. Lines that part: it does. All start at 0, the
first factor's baseline level, so that levels of the other which are far apart themselves, such as a hard disk and an
SSD, share one scale.
"""

import math
from collections.abc import Sequence

import numpy as np
from markupsafe import Markup
from scipy import optimize

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.effect import log_margin
from dbdyno.analysis.factorial import SimpleEffect
from dbdyno.clean import one_line
from dbdyno.report.forest import CHARACTER, TICK_LABEL, ticks
from dbdyno.report.palette import DASHES, treatment_colour
from dbdyno.report.vega import Spec, inline_svg

MOST = 3  # pairs of factors to draw
WIDTH, HEIGHT = 480, 260
NARROW_WIDTH = 250
BELOW = 60  # pixels from a narrow chart to its lines' names
LINE_HEIGHT = 16  # pixels, of a label
DODGE = 0.07  # of the distance between two levels, so that bars of different lines don't cover each other
_LABEL_MAX = 28

Row = dict[str, float | str | None]


def charts(analysis: Analysis, *, narrow: bool = False) -> list[tuple[str, Markup]]:
    """Return (caption, SVG) for the pairs of factors with the clearest interactions, at most ``MOST``.

    A ``narrow`` one is for a phone, with the lines' names below it.
    """
    found = []
    for factor, other in analysis.factors.pairs()[:MOST]:
        simple = [one for one in analysis.factors.simple_effects if (one.factor, one.other) == (factor, other)]
        if all(one.verdict.effect.known for one in simple):
            caption = f"{analysis.metric.words} by {one_line(factor)}, a line for each {one_line(other)}"
            found.append((caption[0].upper() + caption[1:], _chart(simple, analysis, narrow=narrow)))
    return found


def _chart(simple: list[SimpleEffect], analysis: Analysis, *, narrow: bool) -> Markup:
    factor, baseline = simple[0].factor, simple[0].baseline
    levels = in_order([baseline, *dict.fromkeys(one.level for one in simple)])
    lines = list(dict.fromkeys(one.at for one in simple))
    low, high = _extent(simple, analysis)
    width = NARROW_WIDTH if narrow else WIDTH
    beside = 20 if narrow else CHARACTER * max(len(_short(one)) for one in lines) + 30
    across = {"domain": [-0.3, len(levels) - 0.7], "nice": False, "zero": False}
    x: Spec = {"field": "x", "type": "quantitative", "axis": None, "scale": across}
    y: Spec = {"field": "d", "type": "quantitative", "scale": {"domain": [low, high], "nice": False}}
    axis = {
        "values": ticks(low, high),
        "labelExpr": TICK_LABEL,
        "title": f"difference from {_short(baseline)}",
        "minExtent": 52,
    }
    spec: Spec = {
        "width": width,
        "height": HEIGHT,
        "padding": {"left": 5, "top": 8, "bottom": 5, "right": beside},
        "layer": [
            _band(max(-log_margin(analysis.margin), low), min(log_margin(analysis.margin), high)),
            _below([(place, level) for place, level in enumerate(levels)], 8, x, width / len(levels)),
            _below([((len(levels) - 1) / 2, factor)], 28, x, width),
            *(
                _line(place, [one for one in simple if one.at == at], levels, len(lines), x, y)
                for place, at in enumerate(lines)
            ),
            _ends(simple, lines, levels, x, {**y, "axis": axis}, narrow=narrow),
        ],
    }
    return inline_svg(spec, f"Effect of {one_line(factor)} for each {one_line(simple[0].other)}")


def in_order(levels: list[str]) -> list[str]:
    """Return levels in the order of their numbers, if they are numbers; else as they are, the baseline first."""
    try:
        return sorted(levels, key=float)
    except ValueError:
        return levels


def _extent(simple: list[SimpleEffect], analysis: Analysis) -> tuple[float, float]:
    """Return the range of log ratios to show, the margin always in it."""
    bound = 1.3 * max(log_margin(analysis.margin), 1e-3)
    effects = [one.verdict.effect for one in simple]
    shown = [end for effect in effects for end in (effect.low, effect.high) if math.isfinite(end)]
    shown += [value for one in simple for _, value in one.verdict.by_block]
    values = [-bound, bound, *map(math.log1p, shown)]
    reach = 0.05 * (max(values) - min(values))
    return min(values) - reach, max(values) + reach


def _below(names: Sequence[tuple[float, str]], pixels: int, x: Spec, width: float) -> Spec:
    """Write names below the chart, each in so many pixels; an axis would take them for expressions."""
    room = int(width / CHARACTER)
    return {
        "data": {"values": [{"x": place, "text": _short(name, room)} for place, name in names]},
        "mark": {"type": "text", "baseline": "top"},
        "encoding": {"x": x, "y": {"value": HEIGHT + pixels}, "text": {"field": "text"}},
    }


def _line(place: int, simple: list[SimpleEffect], levels: list[str], lines: int, x: Spec, y: Spec) -> Spec:  # noqa: PLR0913, PLR0917
    """Draw one line with its intervals and its blocks."""
    shift = DODGE * (place - (lines - 1) / 2)
    colour, dash = treatment_colour(place), DASHES[place % len(DASHES)]
    points: list[Row] = [{"x": levels.index(simple[0].baseline), "d": 0.0}]
    dots: list[Row] = []
    for one in simple:
        effect, across = one.verdict.effect, levels.index(one.level) + shift
        point: Row = {"x": across, "d": math.log1p(effect.value)}
        if effect.bounded:
            point |= {"low": math.log1p(effect.low), "high": math.log1p(effect.high)}
        points.append(point)
        dots += [{"x": across, "d": math.log1p(value)} for _, value in one.verdict.by_block]
    return {
        "layer": [
            {
                "data": {"values": dots},
                "mark": {"type": "point", "filled": True, "color": colour, "opacity": 0.6, "size": 14, "xOffset": 9},
                "encoding": {"x": x, "y": y},
            },
            {
                "data": {"values": points},
                "mark": {"type": "line", "color": colour, "strokeWidth": 2, "strokeDash": list(dash)},
                "encoding": {"x": x, "y": y},
            },
            {
                "data": {"values": points},
                "transform": [{"filter": "isValid(datum.low)"}],
                "mark": {"type": "rule", "color": colour, "strokeWidth": 4, "strokeCap": "round"},
                "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}},
            },
            {
                "data": {"values": points},
                "mark": {"type": "point", "filled": True, "color": colour, "size": 90, "opacity": 1},
                "encoding": {"x": x, "y": y},
            },
        ]
    }


def _ends(simple: list[SimpleEffect], lines: list[str], levels: list[str], x: Spec, y: Spec, *, narrow: bool) -> Spec:  # noqa: PLR0913
    """Write each line's level at its end, moved apart where they would touch; below all where there is no room."""
    low, high = y["scale"]["domain"]
    ends = {one.at: one for one in simple if one.level == levels[-1]}  # none where that is the baseline
    heights = {at: math.log1p(ends[at].verdict.effect.value) if at in ends else 0.0 for at in lines}
    step = (high - low) / HEIGHT  # of the axis, a pixel
    placed = spread(heights, LINE_HEIGHT * step)
    if narrow:
        placed = {at: low - (BELOW + LINE_HEIGHT * place) * step for place, at in enumerate(lines)}
    rows = [
        {"x": len(levels) - 0.7, "d": placed[at], "text": _short(at), "colour": treatment_colour(place)}
        for place, at in enumerate(lines)
    ]
    across = {"value": 0} if narrow else x
    colour = {"field": "colour", "type": "nominal", "scale": None, "legend": None}
    return {
        "data": {"values": rows},
        "layer": [
            {
                "mark": {"type": "point", "filled": True, "size": 60, "opacity": 1, "xOffset": 8},
                "encoding": {"x": across, "y": y, "color": colour},
            },
            {
                "mark": {"type": "text", "align": "left", "xOffset": 18},
                "encoding": {"x": across, "y": y, "text": {"field": "text"}},
            },
        ],
    }


def spread(heights: dict[str, float], apart: float) -> dict[str, float]:
    """Return the heights in the same order, each two at least ``apart``, as near to where they were as can be."""
    names = sorted(heights, key=heights.__getitem__)
    steps = apart * np.arange(len(names))
    placed = optimize.isotonic_regression(np.array([heights[name] for name in names]) - steps).x + steps
    return dict(zip(names, placed.tolist(), strict=True))


def _band(low: float, high: float) -> Spec:
    return {
        "data": {"values": [{"d": low, "to": high}]},
        "mark": {"type": "rect", "color": "currentColor", "opacity": 0.1},
        "encoding": {"y": {"field": "d", "type": "quantitative"}, "y2": {"field": "to"}},
    }


def _short(text: str, longest: int = _LABEL_MAX) -> str:
    short = one_line(text)
    return short if len(short) <= longest else f"{short[: longest - 1]}…"
