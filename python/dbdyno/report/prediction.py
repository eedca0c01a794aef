"""What a recorded load would have done under a run's other treatments, in words, rows and pictures."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from dbdyno.model.prediction import DeviceFigures, Predicted, Prediction
from dbdyno.report.document import Block, Document, Paragraph, Section, Strong, Table
from dbdyno.report.simulation import PACES, Row, abridged, figure, pictures, warnings

ROWS_BRIEF = 10
ASSUMED = (
    "Assumed: processes depend on each other and think between requests as recorded, and the page cache merges, reads"
    " ahead and writes back as recorded. "
)
Value = Callable[[DeviceFigures], float]
COLUMNS: tuple[tuple[str, Value], ...] = (
    ("requests/s", lambda figures: figures.requests_per_s),
    ("await ms", lambda figures: figures.await_ms),
    ("mean latency ms", lambda figures: figures.latency_ms_mean),
)


def document(prediction: Prediction, title: str) -> Document:
    """Return the report. ``title`` is the run's."""
    table = _table(prediction)
    head: list[Block] = [Paragraph(_headline(prediction), "headline")]
    outcomes = [forecast.outcome for forecast in prediction.each]
    head += [Paragraph(text, "warning") for text in (*prediction.remarks, *warnings(outcomes, prediction.replay))]
    if prediction.refused:
        refusals = "; ".join(f"{label} ({why})" for label, why in list(prediction.refused.items())[:3])
        beyond = f" and {len(prediction.refused) - 3} more" if len(prediction.refused) > 3 else ""  # noqa: PLR2004
        head.append(Paragraph(f"Not simulated: {refusals}{beyond}.", "warning"))
    record = f"the trace of {prediction.trial} ({prediction.source.label})"
    notes = (
        Paragraph(f"Simulated in virtual time from {record}, kernel 6.x. {PACES[prediction.replay]}", "soft"),
        Paragraph(ASSUMED + "The prediction leaves out anything else that a host or server does.", "soft"),
    )
    blocks = (*head, abridged(table, ROWS_BRIEF, "treatment"), *notes)
    drawn = [Row({"device": forecast.treatment.label}, (forecast.outcome,)) for forecast in prediction.each]
    sections = (Section("results", "", blocks, opening=True), *pictures(drawn, ["device"]))
    return Document(f"Simulated: {title}", (), sections, values(prediction))


def values(prediction: Prediction) -> dict[str, Any]:
    """Return what programs read of it; None where a figure is not known."""
    return {
        "simulated": True,
        "source": {"treatment": prediction.source.id, "label": prediction.source.label, "trial": prediction.trial},
        "replay": prediction.replay,
        "treatments": [_value(forecast, prediction.of_source) for forecast in prediction.each],
        "not_simulated": dict(prediction.refused),
        "remarks": list(prediction.remarks),
    }


def _value(forecast: Predicted, source: Predicted | None) -> dict[str, Any]:
    measured, base = forecast.measured, source.measured if source else None
    return {
        "treatment": forecast.treatment.id,
        "label": forecast.treatment.label,
        "predicted": _plain(forecast.predicted),
        "measured": _plain(measured),
        "predicted_over_measured": _plain(_over(forecast.predicted, measured)),
        "predicted_over_source": _plain(_over(forecast.predicted, source.predicted if source else None)),
        "measured_over_source": _plain(_over(measured, base)),
    }


def _plain(figures: DeviceFigures | None) -> dict[str, float | None] | None:
    return {name: _known(value) for name, value in vars(figures).items()} if figures else None


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _over(numerator: DeviceFigures | None, denominator: DeviceFigures | None) -> DeviceFigures | None:
    if numerator is None or denominator is None:
        return None
    return DeviceFigures(
        **{name: value / (vars(denominator)[name] or math.nan) for name, value in vars(numerator).items()}
    )


def _headline(prediction: Prediction) -> tuple[str | Strong, ...]:
    source, (name, value) = prediction.of_source, _yardstick(prediction)
    others = [forecast for forecast in prediction.each if forecast is not source]
    if source is None or not others:
        only = prediction.each[0]
        sentence = f": {only.treatment.label}: {_figure(value(only.predicted))} {name}."
        return (Strong("Simulated"), sentence + _accuracy(prediction.each, value))

    def times(forecast: Predicted) -> float:
        return _ratio(value(forecast.predicted), value(source.predicted))

    far = max(others, key=lambda forecast: abs(math.log(times(forecast))) if times(forecast) > 0 else -1.0)
    measured = _ratio(_measured_value(far, value), _measured_value(source, value))
    beside = f" (measured: {figure(measured)} times)" if math.isfinite(measured) else ""
    text = (
        f": the load of {source.treatment.label} would have come to {_figure(value(far.predicted))} {name} under "
        f"{far.treatment.label}, {_figure(times(far))} times as under its own{beside}."
    )
    return (Strong("Simulated"), text + _accuracy(prediction.each, value))


def _yardstick(prediction: Prediction) -> tuple[str, Value]:
    """Return the figure in which treatments are compared: of an open replay latency, as the rate is the record's."""
    return COLUMNS[1 if prediction.replay == "open" else 0]


def _measured_value(forecast: Predicted, value: Value) -> float:
    return value(forecast.measured) if forecast.measured else math.nan


def _ratio(numerator: float, denominator: float) -> float:
    return numerator / denominator if denominator else math.nan


def _accuracy(each: Sequence[Predicted], value: Value) -> str:
    ratios = [_ratio(value(forecast.predicted), _measured_value(forecast, value)) for forecast in each]
    known = [ratio for ratio in ratios if math.isfinite(ratio)]
    if not known:
        return ""
    low, high = figure(min(known)), figure(max(known))
    return f" Simulated over measured: {low if low == high else f'{low} to {high}'}."


def _figure(value: float) -> str:
    return figure(value) if math.isfinite(value) else "unknown"


def _table(prediction: Prediction) -> Table:
    source, (name, compared) = prediction.of_source, _yardstick(prediction)
    rows = []
    for forecast in prediction.each:
        cells = [_pair(value(forecast.predicted), _measured_value(forecast, value)) for _, value in COLUMNS]
        if source is not None:
            own = _ratio(compared(forecast.predicted), compared(source.predicted))
            cells.append(_pair(own, _ratio(_measured_value(forecast, compared), _measured_value(source, compared))))
        rows.append((forecast.treatment.label, *cells))
    against = (f"{name} over {source.treatment.label}",) if source else ()
    caption = "simulated : measured (simulated / measured); measured by iostat's columns and the block trace"
    return Table(caption, ("", *(name for name, _ in COLUMNS), *against), tuple(rows), "figures")


def _pair(predicted: float, measured: float) -> str:
    if not math.isfinite(measured):
        return f"{_figure(predicted)} : -"
    return f"{_figure(predicted)} : {figure(measured)} ({_figure(_ratio(predicted, measured))})"
