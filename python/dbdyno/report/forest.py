"""The effect chart: per comparison the Hodges-Lehmann estimate, its interval, a dot per block, and the margin band."""

import math

from markupsafe import Markup

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.effect import log_margin
from dbdyno.analysis.verdict import Verdict
from dbdyno.clean import one_line
from dbdyno.report.palette import LIGHT, VERDICTS
from dbdyno.report.sentences import effect_text
from dbdyno.report.vega import Spec, inline_svg

WIDTH, ROW_HEIGHT = 560, 46
NARROW_WIDTH, NARROW_ROW_HEIGHT = 316, 92
CHARACTER = 7.4  # pixels of a wide font: Vega measures with another one than the reader has
CLOSE_UP_FROM = 8  # margins: where the chart is wider than this to either side, a second one shows the middle
CLOSE_UP = 4
_PERCENT_TICKS = (
    *(0.1, 0.2, 0.5, 1, 2, 3, 5, 10, 15, 20, 30, 50, 75, 100, 150, 200, 300, 500, 700, 1000, 2000, 5000),
    *(10_000, 20_000, 50_000, 100_000),
)
_TICKS = 11
TICK_LABEL = (
    "abs(datum.value) < 1e-9 ? '0 %' : replace(format(100 * (exp(datum.value) - 1), '+,.3~r'), '\u2212', '-') + ' %'"
)
_LABEL_MAX = 48
_LABEL_GAP = 8  # pixels


def charts(analysis: Analysis, *, narrow: bool = False) -> list[tuple[str, Markup]]:
    """Return (caption, SVG): the whole range, and a close-up of the margin where the whole range hides it.

    A ``narrow`` one is for a phone: what is compared stands above each bar, not beside it.
    """
    shown = [verdict for verdict in analysis.verdicts if verdict.effect.known]
    if not shown:
        return []
    low, high = _extent(shown, analysis)
    whole = _chart(shown, analysis, (low, high), narrow=narrow)
    bound = log_margin(analysis.margin)
    near = [verdict for verdict in shown if _near(verdict, CLOSE_UP * bound)]
    if not near or bound <= 0 or max(-low, high) <= CLOSE_UP_FROM * bound:
        return [("", whole)]
    close_up = _chart(near, analysis, (-CLOSE_UP * bound, CLOSE_UP * bound), narrow=narrow)
    return [("", whole), ("Close to the margin", close_up)]


def _extent(verdicts: list[Verdict], analysis: Analysis) -> tuple[float, float]:
    """Return the range of log ratios to show, the margin on both sides always in it."""
    bound = 1.5 * max(log_margin(analysis.margin), 1e-3)
    values = [-bound, bound]
    for verdict in verdicts:
        values += [_log(value) for _, value in verdict.by_block]
        values += [_log(end) for end in (verdict.effect.low, verdict.effect.high) if math.isfinite(end)]
    reach = 0.04 * (max(values) - min(values))
    return min(values) - reach, max(values) + reach


def _log(relative: float) -> float:
    return math.log1p(relative)


def _near(verdict: Verdict, reach: float) -> bool:
    low = _log(verdict.effect.low if math.isfinite(verdict.effect.low) else verdict.effect.value)
    high = _log(verdict.effect.high if math.isfinite(verdict.effect.high) else verdict.effect.value)
    return low < reach and high > -reach


def ticks(low: float, high: float, width: int = WIDTH) -> list[float]:
    """Return log ratios of round percentages, outwards from 0, far enough apart to be labelled in so many pixels."""
    apart, pixel = (high - low) / _TICKS, (high - low) / width
    upwards = [math.log1p(points / 100) for points in _PERCENT_TICKS]
    downwards = [math.log1p(-points / 100) for points in (*_PERCENT_TICKS[:13], 90, 95, 99, 99.9) if points < 100]  # noqa: PLR2004
    chosen = [0.0]
    for side in (upwards, downwards):
        last = 0.0
        for value in side:
            labels = (tick_width(last) + tick_width(value)) / 2 + _LABEL_GAP
            if low <= value <= high and abs(value - last) >= max(apart, labels * pixel):
                chosen.append(value)
                last = value
    return sorted(chosen)


def tick_width(value: float) -> float:
    """Return how many pixels the label of the tick at this log ratio takes, about."""
    return CHARACTER * len(f"{round(100 * math.expm1(value), 1):+,g} %")


def _chart(verdicts: list[Verdict], analysis: Analysis, domain: tuple[float, float], *, narrow: bool) -> Markup:
    rows = [_row(index, verdict, domain) for index, verdict in enumerate(verdicts)]
    dots = [
        {"key": rows[index]["key"], "d": _log(value)}
        for index, verdict in enumerate(verdicts)
        for _, value in verdict.by_block
        if domain[0] <= _log(value) <= domain[1]
    ]
    bound, width = log_margin(analysis.margin), NARROW_WIDTH if narrow else WIDTH
    x: Spec = {"field": "d", "type": "quantitative", "scale": {"domain": list(domain), "nice": False}}
    ticked = ticks(*domain, width)
    axis = {"values": ticked, "labelExpr": TICK_LABEL, "title": f"difference in {analysis.metric.words}"}
    y: Spec = {"field": "key", "type": "nominal", "sort": None, "title": None}
    y["axis"] = None if narrow else _labels_beside(rows)
    spec: Spec = {
        "width": width,
        "height": (NARROW_ROW_HEIGHT if narrow else ROW_HEIGHT) * len(rows),
        "padding": {"left": 5, "top": 5, "bottom": 5, "right": 12 if narrow else 60},
        "data": {"values": rows},
        "layer": [
            _band(max(-bound, domain[0]), min(bound, domain[1])),
            {
                "data": {"values": [{"d": 0}]},
                "mark": {"type": "rule", "color": "currentColor", "opacity": 0.6},
                "encoding": {"x": x},
            },
            *_marks(dots, x, y, axis, down=16 if narrow else 0),
            *(_labels_above(y) if narrow else [_words("text", y, at={"value": WIDTH + 18})]),
        ],
    }
    return inline_svg(spec, "Effect of each comparison with its interval, a dot per block and the margin")


def _marks(dots: list[Spec], x: Spec, y: Spec, axis: Spec, *, down: int) -> list[Spec]:
    """Draw each comparison so many pixels below its row's middle: blocks, interval, estimate."""
    colour: Spec = {"field": "colour", "type": "nominal", "scale": None, "legend": None}
    dot: Spec = {
        "type": "point",
        "filled": True,
        "color": "currentColor",
        "opacity": 0.5,
        "size": 18,
        "yOffset": down + 13,
    }
    beyond: Spec = {"type": "point", "filled": True, "size": 90, "opacity": 1, "yOffset": down}
    return [
        {"data": {"values": dots}, "mark": dot, "encoding": {"x": x, "y": y}},
        {
            "transform": [{"filter": "isValid(datum.low)"}],
            "mark": {"type": "rule", "strokeWidth": 4, "strokeCap": "butt", "yOffset": down},
            "encoding": {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": y, "color": colour},
        },
        *(
            {
                "transform": [{"filter": f"datum.{end}"}],
                "mark": beyond | {"shape": f"triangle-{side}"},
                "encoding": {"x": {**x, "field": side_field}, "y": y, "color": colour},
            }
            for end, side, side_field in (("lower", "left", "low"), ("higher", "right", "high"))
        ),
        {
            "transform": [{"filter": "isValid(datum.d)"}],
            "mark": {"type": "point", "filled": True, "size": 130, "opacity": 1, "yOffset": down},
            "encoding": {"x": {**x, "axis": axis}, "y": y, "color": colour},
        },
    ]


def _labels_beside(rows: list[dict[str, object]]) -> Spec:
    extent = CHARACTER * max(len(line) for row in rows for line in str(row["key"]).split("\n"))
    return {
        "labelExpr": "slice(split(datum.label, '\\n'), 1)",
        "labelLineHeight": 15,
        "domain": False,
        "ticks": False,
        "minExtent": extent,
        "maxExtent": extent,
    }


def _labels_above(y: Spec) -> list[Spec]:
    """Write what is compared above each bar, on a rim of the page's colour: the chart's lines go through it."""
    rim: Spec = {"stroke": LIGHT, "strokeWidth": 4, "strokeJoin": "round"}
    return [
        _words(name, y, at={"value": 0}, down=down, rim=under)
        for name, down in (("level", -36), ("against", -21), ("text", -6))
        for under in (rim, None)
    ]


def _words(field: str, y: Spec, *, at: Spec, down: int = 0, rim: Spec | None = None) -> Spec:
    weight = "bold" if field == "level" else "normal"
    return {
        "mark": {"type": "text", "align": "left", "yOffset": down, "fontWeight": weight, **(rim or {})},
        "encoding": {"x": at, "y": y, "text": {"field": field}},
    }


def _band(low: float, high: float) -> Spec:
    return {
        "data": {"values": [{"d": low, "to": high}]},
        "mark": {"type": "rect", "color": "currentColor", "opacity": 0.1},
        "encoding": {"x": {"field": "d", "type": "quantitative"}, "x2": {"field": "to"}},
    }


def _row(index: int, verdict: Verdict, domain: tuple[float, float]) -> dict[str, object]:
    effect = verdict.effect
    value = _log(effect.value)
    level, against = _label(verdict.level), f"against {_label(verdict.baseline)}"
    row: dict[str, object] = {
        "key": f"{index}\n{level}\n{against}",
        "level": level,
        "against": against,
        "d": value if domain[0] <= value <= domain[1] else None,
        "colour": VERDICTS[verdict.verdict],
        "text": effect_text(effect, is_baseline=False),
    }
    if effect.bounded:
        low, high = _log(effect.low), _log(effect.high)
        row |= {"low": max(low, domain[0]), "high": min(high, domain[1])}
        row |= {"lower": low < domain[0], "higher": high > domain[1]}  # arrows say that the bar goes on
    return row


def _label(text: str) -> str:
    short = one_line(text)
    return short if len(short) <= _LABEL_MAX else f"{short[: _LABEL_MAX - 1]}…"
