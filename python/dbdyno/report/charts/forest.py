"""The effect chart: per comparison the Hodges-Lehmann estimate, its interval, a dot per block, and the margin band."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from markupsafe import Markup

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.statistics import Estimate, log_margin
from dbdyno.analysis.verdict.finding import Finding
from dbdyno.model.printable import clipped, distinguishable
from dbdyno.model.wording import count, margin_text, number, p_value, percent
from dbdyno.report.charts.svg import (
    CHARACTER,
    FAINT,
    LABEL_GAP,
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
    target,
    whisker,
    with_title,
    words,
)
from dbdyno.report.document import Chart, Width
from dbdyno.report.sentences import Versus, effect_text, estimate_text, in_order

# Both sides of a comparison in absolute figures: a bar each with its interval, beside the effect that they come to.


BAR_HEIGHT, WHISKER = 8, 3  # pixels
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
        return BEYOND * longest + GAP + CHARACTER * max(len(number(figure.value)) for figure in self.of.values())

    def says(self, verdict: Finding) -> str:
        """Return both sides' figures with their intervals; nothing where there are none."""
        both = [self.of.get(id_) for id_ in (verdict.level_id, verdict.baseline_id)]
        known = [estimate_text(figure) for figure in both if figure]
        return f"; {' against '.join(known)} {self.heading}" if known else ""

    def pair(self, verdict: Finding, left: float, longest: float, heights: Sequence[float]) -> Iterator[Markup]:
        """Draw the bars of both sides at these heights, the figure of each behind it."""
        for treatment, y, look in _sides(verdict, heights):
            yield from self._row(treatment, left, longest, y, look)

    def baseline(self, verdict: Finding, left: float, longest: float, y: float) -> Iterator[Markup]:
        """Draw the bar of a baseline that several comparisons have in common."""
        yield from self._row(verdict.baseline_id, left, longest, y, {"fill_opacity": PALE})

    def _row(self, treatment: str, left: float, longest: float, y: float, look: Mapping[str, str]) -> Iterator[Markup]:
        """Draw the bar of a treatment with its figure behind it."""
        if figure := self.of.get(treatment):
            end = left + longest * min(BEYOND, (figure.high if figure.bounded else figure.value) / self._most)
            yield from self._bar(figure, (left, left + longest), y, look)
            yield words(end + GAP, y, number(figure.value))

    def below(self, verdict: Finding, ends: tuple[float, float], heights: Sequence[float]) -> Iterator[Markup]:
        """Draw the bars of both sides at these heights over the whole width, the figure of each above its end."""
        for treatment, y, look in _sides(verdict, heights):
            if figure := self.of.get(treatment):
                yield from self._bar(figure, (ends[0], ends[0] + (ends[1] - ends[0]) / BEYOND), y, look)
                yield words(ends[1], y - BAR_HEIGHT - GAP + 1.5, number(figure.value), text_anchor="end")

    @property
    def _most(self) -> float:
        return max(figure.value for figure in self.of.values())

    def _bar(self, figure: Estimate, ends: tuple[float, float], y: float, look: Mapping[str, str]) -> Iterator[Markup]:
        left, longest = ends[0], ends[1] - ends[0]
        yield element(
            "rect", x=left, y=y - BAR_HEIGHT / 2, width=longest * figure.value / self._most, height=BAR_HEIGHT, **look
        )
        if figure.bounded:
            low, high = (left + longest * min(BEYOND, max(0.0, end) / self._most) for end in (figure.low, figure.high))
            yield whisker((low, high), y, WHISKER)


def _sides(verdict: Finding, heights: Sequence[float]) -> Iterator[tuple[str, float, dict[str, str]]]:
    """Yield treatment, height and look of each side: the level in the colour of its word, a baseline grey."""
    yield verdict.level_id, heights[0], {"fill": VERDICTS[verdict.verdict]}
    if heights[1:]:
        yield verdict.baseline_id, heights[1], {"fill_opacity": PALE}


def sides_of(shown: Sequence[Versus], analysis: Analysis) -> Figures:
    """Return the figures of all treatments that are compared; none where that of any is unknown, or of very many."""
    ids = {id_ for comparison in shown for id_ in (comparison.verdict.level_id, comparison.verdict.baseline_id)}
    metrics = {row.id: row.metric for row in analysis.treatments if row.id in ids and row.metric.known}
    if metrics.keys() != ids or len(shown) > MOST:
        return Figures("", {})
    less = "" if analysis.metric.more_is_better else " (less is better)"
    return Figures(f"{analysis.metric.heading}{less}", metrics)


LABEL = "Effect of each comparison with its interval, a dot per block and the margin"
WIDTH_BESIDE, SIDE_WIDTH, BETWEEN = 280, 150, 28  # of a chart at least, of the figures beside it
PAGE_WIDTH = 1104  # which a chart fills, if its labels leave room
ROW_HEIGHT, SHARED_ROW_HEIGHT, LINE, HEADING = 54, 40, 15, 20
NARROW_WIDTH, NARROW_ROW_HEIGHT, ZONE, BAR, APART = 316, 85, 27, 9, 5
EFFECT_LINE = 18  # of its own, where an effect has no room beside where both sides stand
CLOSE_UP_FROM = 8  # margins: where the chart is wider than this to either side, a second one shows the middle
CLOSE_UP = 4
_LABEL_MAX, NARROW_LABEL_MAX = 44, 38
_BELOW = 70  # pixels of the axis with its title, and what the marks are
Domain = tuple[float, float]  # log ratios
Zone = tuple[float, float]  # pixels from top to bottom


def charts(analysis: Analysis) -> tuple[Chart, ...]:
    """Return the whole range, and a close-up of the margin where the whole range hides it; none of unknown effects."""
    shown = [comparison for comparison in in_order(analysis) if comparison.verdict.effect.known]
    if not shown:
        return ()
    domain = extent([comparison.verdict for comparison in shown], analysis.margin)
    whole = Chart("", partial(_draw, shown, analysis, domain, sides_of(shown, analysis)))
    bound = log_margin(analysis.margin)
    near = [comparison for comparison in shown if _near(comparison.verdict, CLOSE_UP * bound)]
    if not near or bound <= 0 or max(-domain[0], domain[1]) <= CLOSE_UP_FROM * bound:
        return (whole,)
    middle = (-CLOSE_UP * bound, CLOSE_UP * bound)
    return (whole, Chart("Close to the margin", partial(_draw, near, analysis, middle, Figures("", {}))))


def _says(comparison: Versus, figures: Figures) -> str:
    """Return a row in full, for whom its label is cut short or its dot hides the interval."""
    verdict = comparison.verdict
    blocks = count(verdict.blocks, "block")
    word, effect, p = verdict.verdict, effect_text(verdict.effect), p_value(verdict.p_adjusted)
    return f"{comparison.name}: {word}, {effect}, {blocks}, {p}{figures.says(verdict)}"


def extent(verdicts: Sequence[Finding], margin: float) -> Domain:
    """Return the range of log ratios to show, the margin on both sides always in it."""
    bound = 1.5 * max(log_margin(margin), 1e-3)
    ends = [end for verdict in verdicts for end in (verdict.effect.low, verdict.effect.high) if math.isfinite(end)]
    blocks = [value for verdict in verdicts for _, value in verdict.by_block]
    values = [-bound, bound, *map(math.log1p, (*ends, *blocks))]
    reach = 0.04 * (max(values) - min(values))
    return min(values) - reach, max(values) + reach


def _near(verdict: Finding, reach: float) -> bool:
    effect = verdict.effect
    low, high = effect.ends
    return math.log1p(low) < reach and math.log1p(high) > -reach


def _draw(shown: list[Versus], analysis: Analysis, domain: Domain, figures: Figures, window: Width) -> Markup:
    return (_wide if window == "wide" else _narrow)(shown, analysis, domain, figures)


def _wide(shown: list[Versus], analysis: Analysis, domain: Domain, figures: Figures) -> Markup:
    """Draw a row for each comparison: both sides with their figures to the left of its bar, its effect to the right.

    A baseline that all have in common has a row of its own, and is drawn once.
    """
    shared = bool(figures) and _is_shared(shown)
    names = _names(shown, _LABEL_MAX)
    effects = [effect_text(comparison.verdict.effect) for comparison in shown]
    column = CHARACTER * max(len(line) for name in names for line in name) + 10
    room = figures.width(SIDE_WIDTH) + BETWEEN if figures else 0.0
    beside = 18 + CHARACTER * max(map(len, effects))
    width = max(float(WIDTH_BESIDE), PAGE_WIDTH - column - room - beside)
    left, top, height = column + room, HEADING, SHARED_ROW_HEIGHT if shared else ROW_HEIGHT
    x, bottom = Scale(*domain, left, left + width), top + height * (len(shown) + shared)
    right = x.end + beside
    marks = [*_below(x, analysis, [(top, bottom)], width)]
    marks += [words(column, 8, figures.heading, font_weight="bold")] if figures else []
    if shared:
        marks += _baseline_row(shown[0], figures, column, x, top + SHARED_ROW_HEIGHT / 2)
    for row, (comparison, name, effect) in enumerate(zip(shown, names, effects, strict=True), start=int(shared)):
        y = top + height * (row + 0.5)
        row_marks = [target((0, right), (y - height / 2, y + height / 2))]
        level, baseline, stratum = name
        lines = [level, stratum] if shared else [level, baseline, stratum]
        for line, text in enumerate(lines):
            row_marks.append(words(column - 8, y + LINE * (line - 1) + (LINE / 2 if shared else 0), text,
                                   text_anchor="end"))  # fmt: skip
        heights = (y - LINE / 2,) if shared else (y - LINE, y)
        row_marks += figures.pair(comparison.verdict, column, SIDE_WIDTH, heights)
        row_marks += [*_bar(comparison.verdict, x, y - LINE / 2), words(x.end + 18, y - LINE / 2, effect)]
        marks.append(with_title(_says(comparison, figures), row_marks))
    return drawing(right, bottom + _BELOW, LABEL, marks)


def _is_shared(shown: Sequence[Versus]) -> bool:
    return len(shown) > 1 and len({comparison.verdict.baseline_id for comparison in shown}) == 1


def _baseline_row(comparison: Versus, figures: Figures, column: float, x: Scale, y: float) -> Iterator[Markup]:
    """Draw the baseline that all rows are compared with."""
    yield words(column - 8, y - LINE / 2, clipped(comparison.baseline, _LABEL_MAX), text_anchor="end")
    yield from figures.baseline(comparison.verdict, column, SIDE_WIDTH, y - LINE / 2)
    yield words(x.end + 18, y - LINE / 2, "baseline", fill_opacity="0.75")


def _narrow(shown: list[Versus], analysis: Analysis, domain: Domain, figures: Figures) -> Markup:
    """Draw a row for each comparison for a phone: both sides, where that is, the effect in figures, its bar."""
    names = _names(shown, NARROW_LABEL_MAX)
    effects = [effect_text(comparison.verdict.effect) for comparison in shown]
    beside = all(_fits(place, effect) for (*_, place), effect in zip(names, effects, strict=True))
    top, bars = (HEADING if figures else 0), 2 * BAR if figures else 0
    x, height = Scale(*domain, 5, 5 + NARROW_WIDTH), NARROW_ROW_HEIGHT + bars + (0 if beside else EFFECT_LINE)
    ends = [top + height * (row + 1) - APART for row in range(len(shown))]
    zones = [(end - ZONE, end) for end in ends]
    marks = [*_below(x, analysis, zones, NARROW_WIDTH)]
    marks += [words(5, 8, figures.heading, font_weight="bold")] if figures else []
    for row, (comparison, (level, baseline, place), effect) in enumerate(zip(shown, names, effects, strict=True)):
        y = top + height * row + LINE
        sides = (y, y + LINE + bars / 2)
        row_marks = [
            target((0, NARROW_WIDTH + 17), (top + height * row, ends[row])),
            words(5, sides[0], level, font_weight="bold"),
            words(5, sides[1], baseline),
            *figures.below(comparison.verdict, (5, 5 + NARROW_WIDTH), [side + LINE / 2 + BAR / 2 for side in sides]),
            words(5, sides[1] + LINE + bars / 2, place),
            _effect(effect, sides[1] + LINE + bars / 2 + (0 if beside else EFFECT_LINE), beside=beside),
            *_bar(comparison.verdict, x, zones[row][0] + 9),
        ]
        marks.append(with_title(_says(comparison, figures), row_marks))
    return drawing(NARROW_WIDTH + 17, zones[-1][1] + _BELOW, LABEL, marks)


def _fits(place: str, effect: str) -> bool:
    """Return whether an effect in bold has room beside where both sides stand."""
    return CHARACTER * (len(place) + len(effect)) + LABEL_GAP <= NARROW_WIDTH


def _effect(text: str, y: float, *, beside: bool) -> Markup:
    if beside:
        return words(5 + NARROW_WIDTH, y, text, font_weight="bold", text_anchor="end")
    return words(5, y, text, font_weight="bold")


def _names(shown: Sequence[Versus], most: int) -> list[tuple[str, ...]]:
    """Return of each row the one side, the other, and where both stand."""
    names = [(comparison.level, f"vs {comparison.baseline}", comparison.place) for comparison in shown]
    return list(zip(*(distinguishable(column, most) for column in zip(*names, strict=True)), strict=True))


def _below(x: Scale, analysis: Analysis, zones: Sequence[Zone], width: float) -> Iterator[Markup]:
    """Draw what bars stand on in each zone: margin, grid and the upright of no difference; the axis below the last."""
    bound, bottom = log_margin(analysis.margin), zones[-1][1]
    ticked = ratio_ticks(x.low, x.high, width)
    ends = x(max(-bound, x.low)), x(min(bound, x.high))
    for zone in zones:
        yield band(ends, zone)
        yield strokes([(x(value), zone[0], 0, zone[1] - zone[0]) for value, _ in ticked], stroke_opacity=FAINT)
        yield rule((x(0), x(0)), zone, stroke_opacity="0.6")
    if bound > 0 and zones[0][0] >= HEADING and width > NARROW_WIDTH:
        text = f"margin: within {margin_text(analysis.margin)}"
        half = CHARACTER * len(text) / 2
        yield words(max(x.start + half - 12, min(x.end - half, sum(ends) / 2)), zones[0][0] - 9, text,
                    text_anchor="middle", font_size=11)  # fmt: skip
    in_times = any(label.endswith("x") for _, label in ticked)
    title = f"{analysis.metric.words}, times the baseline" if in_times else f"difference in {analysis.metric.words}"
    yield from axis_below(x, ticked, bottom, bottom, title)
    yield from _key(x, bottom + 48, width, margin_text(analysis.margin))


def _key(x: Scale, y: float, width: float, margin: str) -> Iterator[Markup]:
    """Write what the marks are, in two lines where one is too long."""
    look: dict[str, str | float] = {"text_anchor": "middle", "font_size": 11, "fill_opacity": "0.8"}
    middle = (x.start + x.end) / 2
    large = "large dot and bar: estimate with 95 % interval"
    small = f"small dots: one block each; grey: within {margin}"
    if CHARACTER * (len(large) + len(small)) <= width:
        yield words(middle, y, f"{large}; {small}", **look)
    else:
        yield words(middle, y - 1, large, **look)
        yield words(middle, y + 12, small, **look)


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
