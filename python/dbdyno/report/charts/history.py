"""Runs through time as a picture: of each treatment its blocks and runs, the levels with intervals, the changes."""

import math
from collections.abc import Iterator, Sequence
from functools import partial

from markupsafe import Markup

from dbdyno.analysis.history import Course, RunHistory
from dbdyno.model.printable import distinguishable
from dbdyno.model.wording import number, percent, percent_range
from dbdyno.report.charts.svg import (
    CHARACTER,
    DASHES,
    LIGHT,
    VERDICTS,
    Scale,
    apart,
    area,
    axis_below,
    axis_beside,
    dots,
    drawing,
    rim,
    round_ticks,
    rule,
    tick,
    with_title,
    words,
)
from dbdyno.report.document import Chart, Width

LEFT, TOP, HEIGHT, BETWEEN, BELOW = 70, 26, 120, 34, 46
WIDTH, NARROW_WIDTH, RIGHT = 1000, 245, 18
TICKS, NAME_MAX = 4, 24
COURSES_MAX = 12  # that are drawn; tables and JSON have all
BLOCKS_MAX = 4000  # of all courses that are drawn; beyond that runs stand without their blocks
CAPTION = (
    "Pale dots: blocks. Dots: runs, the means of theirs. Lines with bands: levels between changes, with intervals of"
    " 95 %. Dashed uprights: changes."
)


def chart(history: RunHistory) -> Chart | None:
    """Return a panel for each treatment, as they stand in the study; None where no run has a figure."""
    courses = [course for course in history.courses if course.points]
    if not courses:
        return None
    left = len(courses) - COURSES_MAX
    more = f" {left} more treatments are in the tables alone." if left > 0 else ""
    return Chart(CAPTION + more, partial(_draw, history, courses[:COURSES_MAX]))


def _draw(history: RunHistory, courses: Sequence[Course], window: Width) -> Markup:
    width = WIDTH if window == "wide" else NARROW_WIDTH
    x = Scale(-0.5, len(history.names) - 0.5, LEFT, LEFT + width)
    has_blocks = sum(point.blocks for course in courses for point in course.points) <= BLOCKS_MAX
    names = distinguishable([course.label for course in courses], int((width + LEFT) / CHARACTER))
    runs = distinguishable(history.names, NAME_MAX)
    marks: list[Markup] = []
    for place, (course, name) in enumerate(zip(courses, names, strict=True)):
        top = TOP + place * (HEIGHT + BETWEEN)
        marks += [words(5, top - 12, name, font_weight="bold")]
        marks += _panel(history, course, x, top, has_blocks=has_blocks)
    bottom = TOP + len(courses) * (HEIGHT + BETWEEN) - BETWEEN
    marks += axis_below(x, apart(list(enumerate(runs)), x), bottom, bottom, "runs in the order of time")
    return drawing(x.end + RIGHT, bottom + BELOW, "each treatment through time, with its changes", marks)


def _panel(history: RunHistory, course: Course, x: Scale, top: float, *, has_blocks: bool) -> Iterator[Markup]:
    blocks = [(point.run, math.exp(log)) for point in course.points for log in (point.logs if has_blocks else ())]
    means = [(point.run, math.exp(point.value)) for point in course.points]
    ends = [end for level in course.levels if level.bounded for end in (level.low, level.high)]
    shown = [value for value in (*(value for _, value in (*blocks, *means)), *ends) if math.isfinite(value)]
    low, high = min(shown), max(shown)
    reach = 0.08 * (high - low) or 0.05 * abs(high) or 1.0
    y = Scale(low - reach, high + reach, top + HEIGHT, top)
    heading = f"times {history.control}" if history.control else history.metric.heading
    ticked = [(value, tick(value)) for value in round_ticks(y.low, y.high, TICKS)]
    yield from axis_beside(y, ticked, x.start, x.end, heading[: int(HEIGHT / CHARACTER)])
    begins = [course.points[0].run, *(change.after for change in course.changes)]
    lasts = [*(change.before for change in course.changes), course.points[-1].run]
    for level, begin, last in zip(course.levels, begins, lasts, strict=True):
        sides = x(begin - 0.4), x(last + 0.4)
        drawn = [rule(sides, (y(level.value), y(level.value)), stroke_width=1.5)]
        if level.bounded:
            corners = [
                (side, y(end))
                for side, end in zip((*sides, *sides[::-1]), (level.low,) * 2 + (level.high,) * 2, strict=True)
            ]
            drawn.insert(0, area(corners, "currentColor"))
        interval = f" ({number(level.low)} to {number(level.high)})" if level.bounded else ""
        of = f"{history.names[begin]} to {history.names[last]}: {number(level.value)}{interval}"
        yield with_title(of, drawn)
    yield dots([(x(run), y(value)) for run, value in blocks], 1.5, opacity="0.3")
    says = [f"{history.names[run]}: {number(value)}" for run, value in means]
    yield dots([(x(run), y(value)) for run, value in means], 3.5, says=says)
    for change in course.changes:
        colour, middle = VERDICTS[change.word], x((change.before + change.after) / 2)
        effect = percent(change.effect.value)
        interval = f" ({percent_range(change.effect.low, change.effect.high)})" if change.effect.bounded else ""
        between = f"{change.word} between {history.names[change.before]} and {history.names[change.after]}"
        drawn = [rule((middle, middle), (top, top + HEIGHT), stroke=colour, stroke_dasharray=DASHES, stroke_width=2)]
        ends_there = middle + CHARACTER * len(effect) + 4 > x.end
        look = {"fill": colour, "font_weight": "bold", "text_anchor": "end" if ends_there else "start"}
        at = middle - 4 if ends_there else middle + 4
        drawn += [words(at, top + 8, effect, **rim(LIGHT), **look)]
        yield with_title(f"{between}: {effect}{interval}", drawn)
