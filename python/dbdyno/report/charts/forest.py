"""The effect chart: per comparison the Hodges-Lehmann estimate, its interval, a dot per block, and the margin band."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from markupsafe import Markup

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.statistics.estimate import Estimate, log_margin
from dbdyno.analysis.verdict.finding import Finding
from dbdyno.model.printable import distinguishable
from dbdyno.model.wording import count, number, p_value, percent
from dbdyno.report.charts.palette import VERDICTS
from dbdyno.report.charts.svg import (
    CHARACTER,
    FAINT,
    Scale,
    axis_below,
    band,
    dots,
    drawing,
    element,
    rule,
    said,
    strokes,
    target,
    words,
)
from dbdyno.report.document import Chart, Width
from dbdyno.report.sentences import Versus, by_interest, effect_text, estimate_text

# Both sides of a comparison in absolute figures: a bar each with its interval, beside the effect that they come to.


BAR_HEIGHT, WHISKER = 8, 3  # pixels
BASELINE_OPACITY = "0.45"
BEYOND = 1.15  # of the longest bar: an interval is cut off there
GAP = 6  # pixels between a bar and its figure
MOST = 24  # comparisons: of more the chart stays short, and the table of results has the figures


@dataclass(frozen=True)
class Figures:
    """The absolute figures of treatments, on one scale from 0; false where there are none to draw."""

    heading: str
    of: Mapping[str, Estimate]  # by treatment

    def __bool__(self) -> bool:
        """Return whether there are any."""
        return bool(self.of)

    def width(self, longest: float) -> float:
        """Return the pixels of bars and figures, the longest bar being so long."""
        return BEYOND * longest + GAP + CHARACTER * max(len(number(one.value)) for one in self.of.values())

    def says(self, verdict: Finding) -> str:
        """Return both sides' figures with their intervals; nothing where there are none."""
        both = [self.of.get(id_) for id_ in (verdict.level_id, verdict.baseline_id)]
        known = [estimate_text(one) for one in both if one]
        return f"; {' against '.join(known)} {self.heading}" if known else ""

    def pair(self, verdict: Finding, left: float, longest: float, heights: Sequence[float]) -> Iterator[Markup]:
        """Draw the bars of both sides at these heights, the figure of each behind it."""
        for treatment, y, look in _sides(verdict, heights):
            if one := self.of.get(treatment):
                end = left + longest * min(BEYOND, (one.high if one.bounded else one.value) / self._most)
                yield from self._bar(one, (left, left + longest), y, look)
                yield words(end + GAP, y, number(one.value))

    def below(self, verdict: Finding, ends: tuple[float, float], heights: Sequence[float]) -> Iterator[Markup]:
        """Draw the bars of both sides at these heights over the whole width, the figure of each above its end."""
        for treatment, y, look in _sides(verdict, heights):
            if one := self.of.get(treatment):
                yield from self._bar(one, (ends[0], ends[0] + (ends[1] - ends[0]) / BEYOND), y, look)
                yield words(ends[1], y - BAR_HEIGHT - GAP + 1.5, number(one.value), text_anchor="end")

    @property
    def _most(self) -> float:
        return max(one.value for one in self.of.values())

    def _bar(self, one: Estimate, ends: tuple[float, float], y: float, look: Mapping[str, str]) -> Iterator[Markup]:
        left, longest = ends[0], ends[1] - ends[0]
        yield element(
            "rect", x=left, y=y - BAR_HEIGHT / 2, width=longest * one.value / self._most, height=BAR_HEIGHT, **look
        )
        if one.bounded:
            low, high = (left + longest * min(BEYOND, max(0.0, end) / self._most) for end in (one.low, one.high))
            uprights = ((end, y - WHISKER, 0, 2 * WHISKER) for end in (low, high))
            yield strokes([(low, y, high - low, 0), *uprights], stroke_width=1.5)


def _sides(verdict: Finding, heights: Sequence[float]) -> Iterator[tuple[str, float, dict[str, str]]]:
    """Yield treatment, height and look of both sides: the level in the colour of its word, the baseline grey."""
    yield verdict.level_id, heights[0], {"fill": VERDICTS[verdict.verdict]}
    yield verdict.baseline_id, heights[1], {"fill_opacity": BASELINE_OPACITY}


def sides_of(shown: Sequence[Versus], analysis: Analysis) -> Figures:
    """Return the figures of all treatments that are compared; none where that of any is unknown, or of very many."""
    ids = {id_ for one in shown for id_ in (one.verdict.level_id, one.verdict.baseline_id)}
    found = {row.id: row.metric for row in analysis.treatments if row.id in ids and row.metric.known}
    if found.keys() != ids or len(shown) > MOST:
        return Figures("", {})
    less = "" if analysis.metric.more_is_better else " (less is better)"
    return Figures(f"{analysis.metric.heading}{less}", found)


LABEL = "Effect of each comparison with its interval, a dot per block and the margin"
WIDTH, WIDTH_BESIDE, SIDE_WIDTH, BETWEEN = 560, 420, 150, 28  # without figures beside, with them, of these, between
ROW_HEIGHT, LINE, HEADING = 54, 15, 20
NARROW_WIDTH, NARROW_ROW_HEIGHT, ZONE, BAR, APART = 316, 85, 27, 9, 5
EFFECT_LINE = 18  # of its own, where an effect has no room beside where both sides stand
CLOSE_UP_FROM = 8  # margins: where the chart is wider than this to either side, a second one shows the middle
CLOSE_UP = 4
_PERCENT_TICKS = (
    *(0.1, 0.2, 0.5, 1, 2, 3, 5, 10, 15, 20, 30, 50, 75, 100, 150, 200, 300, 400, 600, 900, 1900, 4900),
    *(9_900, 19_900, 49_900, 99_900),  # 100x, 200x, ...
)
_TICKS = 11
LN_TWICE = 0.69  # just below: from twice as much on a tick is a ratio
_LABEL_MAX, NARROW_LABEL_MAX = 34, 38
_LABEL_GAP = 8  # pixels
_BELOW = 44  # pixels of the axis with its title
Domain = tuple[float, float]  # log ratios
Zone = tuple[float, float]  # pixels from top to bottom


def charts(analysis: Analysis) -> tuple[Chart, ...]:
    """Return the whole range, and a close-up of the margin where the whole range hides it; none of unknown effects."""
    shown = [one for one in by_interest(analysis.verdicts, analysis) if one.verdict.effect.known]
    if not shown:
        return ()
    domain = extent([one.verdict for one in shown], analysis.margin)
    whole = Chart("", partial(_drawn, shown, analysis, domain, sides_of(shown, analysis)))
    bound = log_margin(analysis.margin)
    near = [one for one in shown if _near(one.verdict, CLOSE_UP * bound)]
    if not near or bound <= 0 or max(-domain[0], domain[1]) <= CLOSE_UP_FROM * bound:
        return (whole,)
    middle = (-CLOSE_UP * bound, CLOSE_UP * bound)
    return (whole, Chart("Close to the margin", partial(_drawn, near, analysis, middle, Figures("", {}))))


def _says(one: Versus, figures: Figures) -> str:
    """Return a row in full, for whom its label is cut short or its dot hides the interval."""
    verdict = one.verdict
    blocks = count(verdict.blocks, "block")
    word, effect, p = verdict.verdict, effect_text(verdict.effect), p_value(verdict.p_adjusted)
    return f"{one.name}: {word}, {effect}, {blocks}, {p}{figures.says(verdict)}"


def extent(verdicts: Sequence[Finding], margin: float) -> Domain:
    """Return the range of log ratios to show, the margin on both sides always in it."""
    bound = 1.5 * max(log_margin(margin), 1e-3)
    ends = [end for one in verdicts for end in (one.effect.low, one.effect.high) if math.isfinite(end)]
    blocks = [value for one in verdicts for _, value in one.by_block]
    values = [-bound, bound, *map(math.log1p, (*ends, *blocks))]
    reach = 0.04 * (max(values) - min(values))
    return min(values) - reach, max(values) + reach


def _near(verdict: Finding, reach: float) -> bool:
    effect = verdict.effect
    low, high = (effect.low, effect.high) if effect.bounded else (effect.value, effect.value)
    return math.log1p(low) < reach and math.log1p(high) > -reach


def ticks(low: float, high: float, width: int = WIDTH) -> list[float]:
    """Return log ratios of round percentages, outwards from 0, far enough apart to be labelled in so many pixels."""
    apart, pixel = (high - low) / _TICKS, (high - low) / width
    upwards = [math.log1p(points / 100) for points in _PERCENT_TICKS]
    downwards = [math.log1p(-points / 100) for points in (*_PERCENT_TICKS[:13], 90, 95, 99, 99.9) if points < 100]  # noqa: PLR2004
    chosen = [0.0]
    for side in (upwards, downwards):
        last = 0.0
        for value in side:
            labels = CHARACTER * (len(tick_text(last)) + len(tick_text(value))) / 2 + _LABEL_GAP
            if low <= value <= high and abs(value - last) >= max(apart, labels * pixel):
                chosen.append(value)
                last = value
    return sorted(chosen)


def tick_text(value: float) -> str:
    """Return the label of the tick at this log ratio."""
    if value > LN_TWICE:
        return f"{round(math.exp(value), 1):,g}x"
    points = round(100 * math.expm1(value), 1)
    return f"{points:+,g} %" if points else "0 %"


def _drawn(shown: list[Versus], analysis: Analysis, domain: Domain, figures: Figures, window: Width) -> Markup:
    return (_wide if window == "wide" else _narrow)(shown, analysis, domain, figures)


def _wide(shown: list[Versus], analysis: Analysis, domain: Domain, figures: Figures) -> Markup:
    """Draw a row for each comparison: both sides with their figures to the left of its bar, its effect to the right."""
    names = _names(shown, _LABEL_MAX)
    effects = [effect_text(one.verdict.effect) for one in shown]
    column = CHARACTER * max(len(line) for name in names for line in name) + 10
    room = figures.width(SIDE_WIDTH) + BETWEEN if figures else 0.0
    left, width = column + room, WIDTH_BESIDE if figures else WIDTH
    top = HEADING if figures else 0
    x, bottom = Scale(*domain, left, left + width), top + ROW_HEIGHT * len(shown)
    right = x.end + 18 + CHARACTER * max(map(len, effects))
    marks = [*_below(x, analysis, [(top, bottom)], width)]
    marks += [words(column, 8, figures.heading, font_weight="bold")] if figures else []
    for row, (one, name, effect) in enumerate(zip(shown, names, effects, strict=True)):
        y = top + ROW_HEIGHT * (row + 0.5)
        row_marks = [target((0, right), (y - ROW_HEIGHT / 2, y + ROW_HEIGHT / 2))]
        for line, text in enumerate(name):
            row_marks.append(words(column - 8, y + LINE * (line - 1), text, text_anchor="end"))
        row_marks += figures.pair(one.verdict, column, SIDE_WIDTH, (y - LINE, y))
        row_marks += [*_bar(one.verdict, x, y - LINE / 2), words(x.end + 18, y - LINE / 2, effect)]
        marks.append(said(_says(one, figures), row_marks))
    return drawing(right, bottom + _BELOW, LABEL, marks)


def _narrow(shown: list[Versus], analysis: Analysis, domain: Domain, figures: Figures) -> Markup:
    """Draw a row for each comparison for a phone: both sides, where that is, the effect in figures, its bar."""
    names = _names(shown, NARROW_LABEL_MAX)
    effects = [effect_text(one.verdict.effect) for one in shown]
    beside = all(_fits(place, effect) for (*_, place), effect in zip(names, effects, strict=True))
    top, bars = (HEADING if figures else 0), 2 * BAR if figures else 0
    x, height = Scale(*domain, 5, 5 + NARROW_WIDTH), NARROW_ROW_HEIGHT + bars + (0 if beside else EFFECT_LINE)
    ends = [top + height * (row + 1) - APART for row in range(len(shown))]
    zones = [(end - ZONE, end) for end in ends]
    marks = [*_below(x, analysis, zones, NARROW_WIDTH)]
    marks += [words(5, 8, figures.heading, font_weight="bold")] if figures else []
    for row, (one, (level, baseline, place), effect) in enumerate(zip(shown, names, effects, strict=True)):
        y = top + height * row + LINE
        sides = (y, y + LINE + bars / 2)
        row_marks = [
            target((0, NARROW_WIDTH + 17), (top + height * row, ends[row])),
            words(5, sides[0], level, font_weight="bold"),
            words(5, sides[1], baseline),
            *figures.below(one.verdict, (5, 5 + NARROW_WIDTH), [side + LINE / 2 + BAR / 2 for side in sides]),
            words(5, sides[1] + LINE + bars / 2, place),
            _effect(effect, sides[1] + LINE + bars / 2 + (0 if beside else EFFECT_LINE), beside=beside),
            *_bar(one.verdict, x, zones[row][0] + 9),
        ]
        marks.append(said(_says(one, figures), row_marks))
    return drawing(NARROW_WIDTH + 17, zones[-1][1] + _BELOW, LABEL, marks)


def _fits(place: str, effect: str) -> bool:
    """Return whether an effect in bold has room beside where both sides stand."""
    return CHARACTER * (len(place) + len(effect)) + _LABEL_GAP <= NARROW_WIDTH


def _effect(text: str, y: float, *, beside: bool) -> Markup:
    if beside:
        return words(5 + NARROW_WIDTH, y, text, font_weight="bold", text_anchor="end")
    return words(5, y, text, font_weight="bold")


def _names(shown: Sequence[Versus], most: int) -> list[tuple[str, ...]]:
    """Return of each row the one side, the other, and where both stand."""
    names = [(one.level, f"vs {one.baseline}", one.place) for one in shown]
    return list(zip(*(distinguishable(column, most) for column in zip(*names, strict=True)), strict=True))


def _below(x: Scale, analysis: Analysis, zones: Sequence[Zone], width: int) -> Iterator[Markup]:
    """Draw what bars stand on in each zone: margin, grid and the upright of no difference; the axis below the last."""
    bound, bottom = log_margin(analysis.margin), zones[-1][1]
    ticked = [(value, tick_text(value)) for value in ticks(x.low, x.high, width)]
    for zone in zones:
        yield band((x(max(-bound, x.low)), x(min(bound, x.high))), zone)
        yield strokes([(x(value), zone[0], 0, zone[1] - zone[0]) for value, _ in ticked], stroke_opacity=FAINT)
        yield rule((x(0), x(0)), zone, stroke_opacity="0.6")
    yield from axis_below(x, ticked, bottom, bottom, f"difference in {analysis.metric.words}")


def _bar(verdict: Finding, x: Scale, y: float) -> Iterator[Markup]:
    """Draw a comparison: blocks, interval, estimate; an arrow says that the interval goes on."""
    colour, effect, value = VERDICTS[verdict.verdict], verdict.effect, math.log1p(verdict.effect.value)
    blocks = [(at, block, ratio) for block, ratio in verdict.by_block if x.low <= (at := math.log1p(ratio)) <= x.high]
    if blocks:
        says = [f"block {block}: {percent(ratio)}" for _, block, ratio in blocks]
        yield dots([(x(at), y + 13) for at, *_ in blocks], 2.4, opacity="0.5", says=says)
    if effect.bounded:
        low, high = math.log1p(effect.low), math.log1p(effect.high)
        yield rule((x(max(low, x.low)), x(min(high, x.high))), (y, y), stroke=colour, stroke_width=4)
        if low < x.low:
            yield _arrow(x.start, y, -8, colour)
        if high > x.high:
            yield _arrow(x.end, y, 8, colour)
    if x.low <= value <= x.high:
        yield dots([(x(value), y)], 6.4, colour)


def _arrow(x: float, y: float, length: float, colour: str) -> Markup:
    return element("path", d=f"M{x:.1f},{y - 5:.1f}v10l{length:g},-5z", fill=colour)
