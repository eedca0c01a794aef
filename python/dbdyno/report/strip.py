"""The run-order strip: every trial in the order it ran, so that drift, jumps and outliers cannot hide in a mean."""

import math
from collections import defaultdict

from markupsafe import Markup

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.metrics import value_of
from dbdyno.report.palette import treatment_colour
from dbdyno.report.vega import Spec, inline_svg
from dbdyno.store.records import Run, Trial

WIDTH, HEIGHT = 860, 110
NARROW_WIDTH = 270
LABELS, NARROW_LABELS = 24, 8  # at most, along the trials
LOG_FROM = 3.0  # largest over smallest


def chart(run: Run, analysis: Analysis, *, narrow: bool = False) -> Markup | None:
    """Return the metric of each trial, and each trial against its treatment's mean; None without a usable trial.

    A ``narrow`` one is for a phone.
    """
    values = [(trial, value_of(trial.metrics, analysis.metric.name)) for trial in run.trials]
    usable = [(trial, value) for trial, value in values if value > 0]
    if not usable:
        return None
    index = {treatment.id: place for place, treatment in enumerate(run.design.treatments)}
    counted = {trial.id for row in analysis.blocks.trials.values() for trial in row.values()}
    means = _means(usable)
    rows = [
        {
            "place": place,
            "value": value,
            "off": 100 * (value / means[trial.treatment] - 1),
            "colour": treatment_colour(index[trial.treatment]),
            "void": trial.id not in counted,
        }
        for place, (trial, value) in enumerate(usable, start=1)
    ]
    starts = [place for place, (trial, _) in enumerate(usable, start=1) if _starts_block(usable, place)]
    spread = max(value for _, value in usable) / min(value for _, value in usable)
    log = spread > LOG_FROM
    scale: Spec = {"padding": 10} | ({"type": "log", "nice": False} if log else {"zero": False})
    unit = f"{analysis.metric.heading}{' (log)' if log else ''}"
    x = _across(len(rows), narrow=narrow)
    size: Spec = {"width": NARROW_WIDTH if narrow else WIDTH, "height": HEIGHT}
    ruled = [
        _panel("value", unit, scale, starts, _untitled(x)),
        _panel("off", "% off its mean", {"zero": True, "padding": 10}, starts, x),
    ]
    spec: Spec = {"data": {"values": rows}, "vconcat": [size | panel for panel in ruled], "spacing": 12}
    return inline_svg(spec, f"{analysis.metric.words} of every trial in run order")


def _means(usable: list[tuple[Trial, float]]) -> dict[str, float]:
    by_treatment = defaultdict(list)
    for trial, value in usable:
        by_treatment[trial.treatment].append(value)
    return {treatment: math.fsum(values) / len(values) for treatment, values in by_treatment.items()}


def _starts_block(usable: list[tuple[Trial, float]], place: int) -> bool:
    if place == 1:
        return False
    before, here = usable[place - 2][0], usable[place - 1][0]
    return (before.block, before.attempt) != (here.block, here.attempt)


def _across(trials: int, *, narrow: bool) -> Spec:
    return {
        "field": "place",
        "type": "quantitative",
        "scale": {"domain": [0.5, trials + 0.5], "nice": False},
        "axis": {
            "title": "trial, in run order",
            "grid": False,
            "values": list(range(1, trials + 1, 1 + trials // (NARROW_LABELS if narrow else LABELS))),
        },
    }


def _untitled(x: Spec) -> Spec:
    return {**x, "axis": {**x["axis"], "title": None, "labels": False}}


def _panel(field: str, title: str, scale: Spec, starts: list[int], x: Spec) -> Spec:
    y: Spec = {
        "field": field,
        "type": "quantitative",
        "scale": scale,
        "axis": {"title": title, "tickCount": 4, "minExtent": 48},
    }
    colour: Spec = {"field": "colour", "type": "nominal", "scale": None, "legend": None}
    return {
        "layer": [
            {
                "data": {"values": [{"place": start - 0.5} for start in starts]},
                "mark": {"type": "rule", "color": "currentColor", "opacity": 0.2, "strokeDash": [3, 3]},
                "encoding": {"x": x},
            },
            {
                "transform": [{"filter": "!datum.void"}],
                "mark": {"type": "point", "filled": True, "size": 60, "opacity": 1},
                "encoding": {"x": x, "y": y, "color": colour},
            },
            {
                "transform": [{"filter": "datum.void"}],
                "mark": {"type": "point", "filled": False, "size": 55, "strokeWidth": 1.5, "opacity": 1},
                "encoding": {"x": x, "y": y, "color": colour},
            },
        ],
    }
