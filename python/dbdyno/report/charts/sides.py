"""Both sides of a comparison in absolute figures: a bar each with its interval, beside the effect that they come to."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.statistics.estimate import Estimate
from dbdyno.analysis.verdict.finding import Finding
from dbdyno.model.wording import number
from dbdyno.report.charts.palette import VERDICTS
from dbdyno.report.charts.svg import CHARACTER, element, strokes, words
from dbdyno.report.sentences import estimate_text
from dbdyno.report.versus import Versus

BAR, WHISKER = 8, 3  # pixels
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
                yield words(ends[1], y - BAR - GAP + 1.5, number(one.value), text_anchor="end")

    @property
    def _most(self) -> float:
        return max(one.value for one in self.of.values())

    def _bar(self, one: Estimate, ends: tuple[float, float], y: float, look: Mapping[str, str]) -> Iterator[Markup]:
        left, longest = ends[0], ends[1] - ends[0]
        yield element("rect", x=left, y=y - BAR / 2, width=longest * one.value / self._most, height=BAR, **look)
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
