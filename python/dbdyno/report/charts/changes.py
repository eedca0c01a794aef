"""Two runs as a picture: of each treatment its figure before and after, and the difference; controls stand apart."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from markupsafe import Markup

from dbdyno.analysis.statistics import log_margin
from dbdyno.analysis.two_runs import Change, Compared
from dbdyno.model.printable import distinguishable
from dbdyno.model.wording import margin_text, number
from dbdyno.report.charts.svg import (
    CHARACTER,
    FAINT,
    PALE,
    VERDICTS,
    Scale,
    axis_below,
    band,
    dots,
    drawing,
    element,
    ratio_ticks,
    rule,
    strokes,
    with_title,
    words,
)
from dbdyno.report.document import Chart, Width
from dbdyno.report.sentences import effect_text

PAGE_WIDTH, NARROW_WIDTH = 1104, 333
ROW, NARROW_ROW, BAR, TOP, GROUP, BELOW, GAP = 42, 74, 10, 24, 26, 62, 6
SIDE_WIDTH, LABEL_MAX, NARROW_LABEL_MAX = 170, 40, 36


@dataclass(frozen=True)
class _Row:
    change: Change
    name: str
    top: float


def chart(compared: Compared) -> Chart | None:
    """Return the picture; None where no difference is known."""
    changes = [change for change in compared.judged if change.effect.known]
    means = {change.after: change.means for change in compared.changes}
    controls = [compared.control] if compared.control and compared.control.effect.known else []
    if not changes:
        return None
    return Chart("", partial(_draw, changes, controls, means, compared))


def _domain(shown: Sequence[Change], margin: float) -> tuple[float, float]:
    bound = 1.5 * max(log_margin(margin), 1e-3)
    ends = [
        end
        for change in shown
        for end in (change.effect.low, change.effect.value, change.effect.high)
        if math.isfinite(end)
    ]
    values = [-bound, bound, *map(math.log1p, ends)]
    reach = 0.05 * (max(values) - min(values))
    return min(values) - reach, max(values) + reach


def _draw(
    changes: Sequence[Change],
    controls: Sequence[Change],
    means: dict[str, tuple[float, float]],
    compared: Compared,
    window: Width,
) -> Markup:
    wide, shown = window == "wide", [*changes, *controls]
    names = distinguishable([change.after for change in shown], LABEL_MAX if wide else NARROW_LABEL_MAX)
    effects = [effect_text(change.effect) for change in shown]
    known = {change.after: means.get(change.after, change.means) for change in shown}
    most = max((mean for pair in known.values() for mean in pair if mean > 0), default=1.0)
    column = CHARACTER * max(map(len, names)) + 10 if wide else 5.0
    figures = GAP + CHARACTER * max(len(number(mean)) for pair in known.values() for mean in pair)
    beside = 18 + CHARACTER * max(map(len, effects))
    right = PAGE_WIDTH if wide else NARROW_WIDTH
    left = column + SIDE_WIDTH + figures + 28 if wide else 5.0
    x = Scale(*_domain(shown, compared.margin), left, right - beside if wide else right - 12.0)
    below = not wide and not all(_fits(name, effect) for name, effect in zip(names, effects, strict=True))
    height = ROW if wide else NARROW_ROW + 16 * below
    rows = [
        _Row(change, name, TOP + height * place + (GROUP if place >= len(changes) else 0))
        for place, (change, name) in enumerate(zip(shown, names, strict=True))
    ]
    bottom = rows[-1].top + height
    marks = [*_ground(x, rows, height, compared, wide=wide)]
    marks.append(words(column, 8, f"{compared.metric.heading}: before (grey), after", font_weight="bold"))
    if controls:
        apart = rows[len(changes)].top - GROUP / 2 + 2
        marks += [rule((0, right), (apart - 11, apart - 11), stroke_opacity=FAINT)]
        marks += [words(5, apart, "Control, as measured", font_size=11, fill_opacity="0.8")]
    longest = SIDE_WIDTH if wide else NARROW_WIDTH - 12 - figures
    for row, effect in zip(rows, effects, strict=True):
        y = row.top + (height / 2 if wide else 34 + 16 * below)
        before, after = known[row.change.after]
        drawn = [*_bars((before, after), most, (column, longest), y, VERDICTS[row.change.verdict])]
        at = y if wide else row.top + height - 13
        drawn += [*_interval(row.change, x, at)]
        if wide:
            drawn += [words(column - 8, y, row.name, text_anchor="end"), words(x.end + 18, y, effect)]
        else:
            drawn += [words(5, row.top + 10, row.name, font_weight="bold")]
            place = (5.0, row.top + 26) if below else (right - 12.0, row.top + 10)
            drawn += [words(*place, effect, text_anchor="start" if below else "end")]
        marks.append(with_title(f"{row.change.after}: {number(before)} before, {number(after)} after, {effect}", drawn))
    return drawing(
        right, bottom + BELOW, "each treatment before and after, with the difference and its interval", marks
    )


def _fits(name: str, effect: str) -> bool:
    return CHARACTER * (len(name) + len(effect)) + GAP <= NARROW_WIDTH - 12


def _ground(x: Scale, rows: Sequence[_Row], height: float, compared: Compared, *, wide: bool) -> Iterator[Markup]:
    """Draw margin, grid, axis, and what the marks are."""
    bound, bottom = log_margin(compared.margin), rows[-1].top + height
    ticked = ratio_ticks(x.low, x.high, x.end - x.start)
    zones = [(TOP, bottom)] if wide else [(row.top + height - 26, row.top + height - 2) for row in rows]
    for zone in zones:
        yield band((x(max(-bound, x.low)), x(min(bound, x.high))), zone)
        yield strokes([(x(value), zone[0], 0, zone[1] - zone[0]) for value, _ in ticked], stroke_opacity=FAINT)
        yield rule((x(0), x(0)), zone, stroke_opacity="0.6")
    title = "change relative to the control" if compared.against_control else "change from before to after"
    yield from axis_below(x, ticked, bottom, bottom, title)
    key = f"bar: 95 % interval; grey: within {margin_text(compared.margin)}"
    yield words((x.start + x.end) / 2, bottom + 48, key, text_anchor="middle", font_size=11, fill_opacity="0.8")


def _bars(
    means: tuple[float, float], most: float, ends: tuple[float, float], y: float, colour: str
) -> Iterator[Markup]:
    left, longest = ends
    looks: tuple[dict[str, str], ...] = ({"fill_opacity": PALE}, {"fill": colour})
    for mean, up, look in zip(means, (y - BAR * 0.6 - 1, y + BAR * 0.6 + 1), looks, strict=True):
        width = longest * max(0.0, mean) / most if math.isfinite(mean) else 0.0
        yield element("rect", x=left, y=up - BAR / 2, width=width, height=BAR, **look)
        yield words(left + width + GAP, up, number(mean), font_size=11)


def _interval(change: Change, x: Scale, y: float) -> Iterator[Markup]:
    colour, effect = VERDICTS[change.verdict], change.effect
    if effect.bounded:
        yield rule((x(math.log1p(effect.low)), x(math.log1p(effect.high))), (y, y), stroke=colour, stroke_width=4)
    yield dots([(x(math.log1p(effect.value)), y)], 6.4, colour)
