"""The interaction plot: the effect of one factor's levels, a line for each level of another.

Lines that run together: the effect does not depend on the other factor. Lines that part: it does. All start at 0, the
first factor's baseline level, so that levels of the other which are far apart themselves, such as a hard disk and an
SSD, share one scale.
"""

import math
from collections.abc import Iterator
from functools import partial

import numpy as np
from markupsafe import Markup

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.factors import SimpleEffect
from dbdyno.analysis.statistics import log_margin
from dbdyno.model.printable import clipped, distinguishable, one_line
from dbdyno.model.wording import percent
from dbdyno.report.charts.forest import extent
from dbdyno.report.charts.svg import (
    CHARACTER,
    TREATMENT_DASHES,
    Scale,
    axis_beside,
    band,
    curve,
    dots,
    drawing,
    ratio_ticks,
    rule,
    treatment_colour,
    words,
)
from dbdyno.report.document import Chart, Width
from dbdyno.report.sentences import effect_text

MOST = 3  # pairs of factors to draw
LEFT, TOP, WIDTH, HEIGHT = 84, 8, 480, 260
NARROW_WIDTH = 230
BELOW = 44  # pixels of the levels' names and the factor's
LINE_HEIGHT = 16  # pixels, of a label
DODGE = 0.07  # of the distance between two levels, so that bars of different lines don't cover each other


def charts(analysis: Analysis) -> tuple[Chart, ...]:
    """Return a chart for each of the pairs of factors with the clearest interactions, at most ``MOST``."""
    pictures = []
    for factor, other in analysis.factors.pairs()[:MOST]:
        simple = [
            effect for effect in analysis.factors.simple_effects if (effect.factor, effect.other) == (factor, other)
        ]
        if all(effect.verdict.effect.known for effect in simple):
            caption = f"{analysis.metric.words} by {one_line(factor)}, a line for each {one_line(other)}"
            pictures.append(Chart(caption[0].upper() + caption[1:], partial(_draw, simple, analysis)))
    return tuple(pictures)


def _draw(simple: list[SimpleEffect], analysis: Analysis, window: Width) -> Markup:
    """Draw a pair of factors; on a phone the lines' names stand below."""
    levels = in_order([simple[0].baseline, *dict.fromkeys(effect.level for effect in simple)])
    lines = list(dict.fromkeys(effect.at for effect in simple))
    narrow = window == "narrow"
    width = NARROW_WIDTH if narrow else WIDTH
    across = Scale(-0.3, len(levels) - 0.7, LEFT, LEFT + width)
    y = Scale(*extent([effect.verdict for effect in simple], analysis.margin), TOP + HEIGHT, TOP)
    bound = log_margin(analysis.margin)
    ticked = ratio_ticks(y.low, y.high)
    marks = [
        band((across.start, across.end), (y(max(-bound, y.low)), y(min(bound, y.high)))),
        *axis_beside(y, ticked, across.start, across.end, f"difference from {clipped(simple[0].baseline)}"),
        *_names_below(levels, simple[0].factor, across, width),
    ]
    for place, at in enumerate(lines):
        shift = DODGE * (place - (len(lines) - 1) / 2)
        marks += _line(place, [effect for effect in simple if effect.at == at], levels, shift, across, y)
    below = TOP + HEIGHT + BELOW
    if narrow:
        marks += _legend({at: below + LINE_HEIGHT * (place + 0.5) for place, at in enumerate(lines)}, 4)
        below += LINE_HEIGHT * len(lines)
    else:
        marks += _legend(_at_the_end(simple, lines, levels[-1], y), across.end)
    beside = 20 if narrow else CHARACTER * max(len(clipped(line)) for line in lines) + 30
    label = f"Effect of {one_line(simple[0].factor)} for each {one_line(simple[0].other)}"
    return drawing(across.end + beside, below + 5, label, marks)


def in_order(levels: list[str]) -> list[str]:
    """Return levels in the order of their numbers, if they are numbers; else as they are, the baseline first."""
    try:
        return sorted(levels, key=float)
    except ValueError:
        return levels


def _names_below(levels: list[str], factor: str, across: Scale, width: int) -> Iterator[Markup]:
    room = int(width / len(levels) / CHARACTER)
    for place, name in enumerate(distinguishable(levels, room)):
        yield words(across(place), TOP + HEIGHT + 14, name, text_anchor="middle")
    middle = (across.start + across.end) / 2
    yield words(middle, TOP + HEIGHT + 34, clipped(factor, int(width / CHARACTER)), text_anchor="middle")


def _line(  # noqa: PLR0913, PLR0917
    place: int, simple: list[SimpleEffect], levels: list[str], shift: float, across: Scale, y: Scale
) -> Iterator[Markup]:
    """Draw one line with its intervals and its blocks."""
    colour = treatment_colour(place)
    points = [(across(levels.index(simple[0].baseline)), y(0.0))]
    says = [f"{simple[0].baseline}, {simple[0].at}: what the others are held against"]
    for effect in simple:
        estimate, x = effect.verdict.effect, across(levels.index(effect.level) + shift)
        points.append((x, y(math.log1p(estimate.value))))
        says.append(f"{effect.level} against {effect.baseline}, {effect.at}: {effect_text(estimate)}")
        blocks = [f"block {block}: {percent(value)}" for block, value in effect.verdict.by_block]
        yield dots([(x + 9, y(math.log1p(value))) for _, value in effect.verdict.by_block], 2.1, colour, "0.6", blocks)
        if estimate.bounded:
            yield rule(
                (x, x), (y(math.log1p(estimate.low)), y(math.log1p(estimate.high))), stroke=colour, stroke_width=4
            )
    yield curve(sorted(points), colour, TREATMENT_DASHES[place % len(TREATMENT_DASHES)])
    yield dots(points, 5.4, colour, says=says)


def _legend(heights: dict[str, float], x: float) -> Iterator[Markup]:
    """Write each line's level beside a dot of its colour."""
    names = distinguishable(list(heights))
    for place, (name, y) in enumerate(zip(names, heights.values(), strict=True)):
        yield dots([(x + 8, y)], 4.4, treatment_colour(place))
        yield words(x + 18, y, name)


def _at_the_end(simple: list[SimpleEffect], lines: list[str], last: str, y: Scale) -> dict[str, float]:
    """Return the height of each line's end, moved apart where names would touch."""
    ends = {effect.at: effect for effect in simple if effect.level == last}  # none where that is the baseline
    heights = {at: y(math.log1p(ends[at].verdict.effect.value) if at in ends else 0.0) for at in lines}
    placed = spread(heights, LINE_HEIGHT)
    return {at: placed[at] for at in lines}


def spread(heights: dict[str, float], apart: float) -> dict[str, float]:
    """Return the heights in the same order, each two at least ``apart``, as near to where they were as can be."""
    from scipy import optimize

    names = sorted(heights, key=heights.__getitem__)
    steps = apart * np.arange(len(names))
    placed = optimize.isotonic_regression(np.array([heights[name] for name in names]) - steps).x + steps
    return dict(zip(names, placed.tolist(), strict=True))
