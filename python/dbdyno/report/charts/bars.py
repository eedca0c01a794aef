"""Treatments beside each other as bars from 0, the best first: each with its interval, its figure and its effect."""

from collections.abc import Mapping, Sequence
from functools import partial

from markupsafe import Markup

from dbdyno.analysis.summary import TreatmentSummary
from dbdyno.analysis.verdict.finding import Finding
from dbdyno.model.metrics import Metric
from dbdyno.model.printable import distinguishable
from dbdyno.model.wording import number
from dbdyno.report.charts.svg import (
    CHARACTER,
    PALE,
    VERDICTS,
    Scale,
    drawing,
    element,
    target,
    whisker,
    with_title,
    words,
)
from dbdyno.report.document import Chart, Width
from dbdyno.report.sentences import effect_text, estimate_text

PAGE_WIDTH, NARROW_WIDTH = 1104, 333
ROW, NARROW_ROW, BAR, WHISKER, TOP, GAP = 34, 48, 16, 4, 24, 8
LABEL_MAX, NARROW_LABEL_MAX = 44, 24
BEYOND = 1.08  # of the longest bar: room for an interval
KEY = "bars from 0, whiskers: 95 % interval"


def chart(rows: Sequence[TreatmentSummary], findings: Mapping[str, Finding], metric: Metric) -> Chart:
    """Return the bars of treatments whose metric is known; ``findings`` are those of the levels, by treatment."""
    best_first = sorted(rows, key=lambda row: -row.metric.value if metric.more_is_better else row.metric.value)
    return Chart("", partial(_draw, best_first, findings, metric))


def _effect(row: TreatmentSummary, findings: Mapping[str, Finding]) -> str:
    return effect_text(findings[row.id].effect) if row.id in findings else "baseline"


def _draw(rows: Sequence[TreatmentSummary], findings: Mapping[str, Finding], metric: Metric, window: Width) -> Markup:
    wide = window == "wide"
    names = distinguishable([row.label for row in rows], LABEL_MAX if wide else NARROW_LABEL_MAX)
    effects = [_effect(row, findings) for row in rows]
    column = CHARACTER * max(map(len, names)) + 10 if wide else 5.0
    figures = GAP + CHARACTER * max(len(number(row.metric.value)) for row in rows)
    beside = figures + (18 + CHARACTER * max(map(len, effects)) if wide else 0)
    right = PAGE_WIDTH if wide else NARROW_WIDTH
    longest = max(end for row in rows for end in (row.metric.value, row.metric.high if row.metric.bounded else 0.0))
    x = Scale(0.0, longest * BEYOND, column, right - beside)
    height = ROW if wide else NARROW_ROW
    less = "" if metric.more_is_better else ", less is better"
    marks = [words(column, 8, f"{metric.heading}{less}", font_weight="bold")]
    for place, (row, name, effect) in enumerate(zip(rows, names, effects, strict=True)):
        top = TOP + height * place
        y = top + height / 2 if wide else top + height - BAR / 2 - 6
        drawn = [target((0, right), (top, top + height)), *_bar(row, findings, x, y)]
        drawn.append(words(x(longest) + GAP + 4, y, number(row.metric.value)))
        if wide:
            drawn += [words(column - 8, y, name, text_anchor="end")]
            drawn += [words(right - CHARACTER * max(map(len, effects)), y, effect)]
        else:
            drawn += [words(5, y - BAR - 4, name), words(right, y - BAR - 4, effect, text_anchor="end")]
        marks.append(with_title(f"{row.label}: {estimate_text(row.metric)} {metric.heading}, {effect}", drawn))
    bottom = TOP + height * len(rows)
    marks.append(words(column, bottom + 12, KEY, font_size=11, fill_opacity="0.8"))
    return drawing(right, bottom + 24, f"{metric.words} of each treatment, the best first", marks)


def _bar(row: TreatmentSummary, findings: Mapping[str, Finding], x: Scale, y: float) -> list[Markup]:
    finding = findings.get(row.id)
    look = {"fill": VERDICTS[finding.verdict]} if finding else {"fill_opacity": PALE}
    length = x(row.metric.value) - x.start
    drawn = [element("rect", x=x.start, y=y - BAR / 2, width=length, height=BAR, **look)]
    if row.metric.bounded:
        low, high = x(max(0.0, row.metric.low)), x(row.metric.high)
        drawn.append(whisker((low, high), y, WHISKER))
    return drawn
