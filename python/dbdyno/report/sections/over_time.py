"""What each treatment did over time: charts that share one cursor, and the same in figures."""

from itertools import groupby

from dbdyno.report.charts.palette import treatment_class, treatment_dash, treatment_swatch
from dbdyno.report.charts.timeseries import FOLDED, Drawn, drawn_panels, figures, payload, phase_starts
from dbdyno.report.document import Abridged, Details, Paragraph, Section, TimeCharts
from dbdyno.report.source import Source


def section(source: Source) -> Section | None:
    """Return the charts of the series there are; none where there is none."""
    drawn = drawn_panels(source.run, source.analysis, source.series)
    if not drawn:
        return None
    labels = source.run.design.labels
    shown = (
        _charts(source, drawn),
        Paragraph(_note(drawn, phases=bool(phase_starts(source.analysis))), "soft"),
        Details("The same in figures", (figures(drawn, labels),)),
    )
    return Section("over-time", "Over time", (Abridged(shown),))


def _charts(source: Source, drawn: list[Drawn]) -> TimeCharts:
    treatments = source.run.design.treatments
    places = {treatment.id: place for place, treatment in enumerate(treatments)}
    looks = [
        {
            "label": treatment.label,
            "class": treatment_class(place),
            "swatch": treatment_swatch(place),
            "dash": list(treatment_dash(place)),
        }
        for place, treatment in enumerate(treatments)
    ]
    phases = [{**phase, "treatment": places[phase["treatment"]]} for phase in phase_starts(source.analysis)]
    return TimeCharts(
        tuple(treatment.label for treatment in treatments),
        tuple(
            (group, tuple(places))
            for group, places in groupby(range(len(drawn)), key=lambda place: drawn[place].panel.group)
        ),
        FOLDED,
        {"treatments": looks, "panels": [payload(one, places) for one in drawn], "phases": phases},
    )


def _note(drawn: list[Drawn], *, phases: bool) -> str:
    begins = " Dashed uprights: where a phase of the load begins, in the median trial." if phases else ""
    return (
        "Horizontally: seconds of measuring. Line: the median trial of a treatment; band: the smallest and the largest"
        " sample of any of its usable trials. Samples are gathered in equal steps of time"
        f" ({drawn[0].width_s:.3g} s here), which keep every extreme. A line ends when fewer than half of the trials"
        f" still run.{begins} All charts share one cursor and one stretch of time: drag to zoom, double-click to zoom"
        " out; or go to a chart with the tab key, move with the arrow keys, zoom with + and -, and out with escape."
    )
