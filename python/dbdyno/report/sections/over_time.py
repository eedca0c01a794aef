"""What changed within a trial and from trial to trial."""

from itertools import groupby
from typing import Any

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.steadiness import MARGIN, SECONDS_MIN, TreatmentSteadiness
from dbdyno.analysis.verdict.finding import Finding
from dbdyno.model.word import Word
from dbdyno.model.wording import margin_text, number, percent
from dbdyno.report.charts import strip
from dbdyno.report.charts.svg import treatment_class, treatment_dash, treatment_swatch
from dbdyno.report.charts.timeseries import FOLDED, Drawn, drawn_panels, figures, payload, phase_starts
from dbdyno.report.document import (
    Abridged,
    Details,
    Item,
    List,
    Paragraph,
    Section,
    Strong,
    Table,
    Text,
    TimeCharts,
    plain,
)
from dbdyno.report.reasons import reason_text
from dbdyno.report.sentences import figures_text
from dbdyno.report.source import Source, effect_values, fields

# What each treatment did over time: charts that share one cursor, and the same in figures.


def over_time_section(source: Source) -> Section | None:
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
        {"treatments": looks, "panels": [payload(drawn_panel, places) for drawn_panel in drawn], "phases": phases},
    )


def _note(drawn: list[Drawn], *, phases: bool) -> str:
    begins = (
        " Dashed uprights: where a phase of the load begins, or where a load beside it begins or ends, in the median"
        " trial."
        if phases
        else ""
    )
    return (
        "Horizontally: seconds of measuring. Line: the median trial of a treatment; band: the smallest and the largest"
        " sample of any of its usable trials. Samples are gathered in equal steps of time"
        f" ({drawn[0].width_s:.3g} s here), which keep every extreme. A line ends when fewer than half of the trials"
        f" still run.{begins} All charts share one cursor and one stretch of time: drag to zoom, double-click to zoom"
        " out; or go to a chart with the tab key, move with the arrow keys, zoom with + and -, and out with escape."
    )


# Every trial in the order it ran, and what the order followed from.


RUN_ORDER_NOTE = (
    "Each dot is one trial; dashed lines separate blocks; hollow dots are trials of attempts that do not count. Below:"
    " the same trials against the mean of their treatment, where drift and outliers show."
)


def run_order_section(source: Source) -> Section | None:
    """Return the strip of trials; none before there is one."""
    run = source.run
    chart = strip.chart(run, source.analysis)
    if chart is None:
        return None
    return Section("order", "In the order it ran", (Abridged((chart, Paragraph(RUN_ORDER_NOTE, "soft"))),))


# Steadiness: which of two treatments is steadier, and by how much each one's rate varies.


STEADINESS_HEADINGS = (
    "treatment",
    "variation, mean (min to max)",
    "median second",
    "slowest 5 % of seconds",
    "slowest / median",
)
STEADINESS_NOTE = (
    "Variation is the standard deviation of the rate from second to second as a part of its mean: 5 % is steady, 50 %"
    " is jagged. It says nothing about speed."
)
_WORDS = {Word.FASTER: "steadier", Word.SLOWER: "less steady", Word.EQUIVALENT: "as steady"}


def steadiness_section(source: Source) -> Section:
    """Return which treatments are steadier than which, and each one's variation."""
    analysis = source.analysis
    steadiness, data = analysis.steadiness, {"steadiness": steadiness_json(analysis)}
    if steadiness is None:
        return Section("steadiness", "Steadiness", data=data)
    items = tuple(Item(steadiness_sentence(verdict)) for verdict in steadiness.verdicts)
    rows = tuple(
        _row(treatment) for treatment in sorted(steadiness.treatments, key=lambda treatment: treatment.variation.value)
    )
    blocks = (
        List(items, "verdicts"),
        Table("Steadiness", STEADINESS_HEADINGS, rows),
        Paragraph(STEADINESS_NOTE, "soft"),
    )
    return Section("steadiness", "Steadiness", blocks, data=data)


def steadiness_sentence(verdict: Finding) -> Text:
    """Return the sentence of a planned comparison."""
    figures = f": {figures_text(verdict, 'variation of the rate')}."
    word = Strong(_WORDS.get(verdict.verdict, verdict.verdict), verdict.verdict)
    match verdict.verdict:
        case Word.FASTER | Word.SLOWER:
            return (f"{verdict.level} is ", word, f" than {verdict.baseline}{figures}")
        case Word.EQUIVALENT:
            return (f"{verdict.level} is ", word, f" as {verdict.baseline} within {margin_text(MARGIN)}{figures}")
        case Word.UNDECIDED:
            return (f"Whether {verdict.level} is steadier than {verdict.baseline} is ", word, figures)
        case Word.NOT_COMPARABLE:
            counting = f", counting trials of {SECONDS_MIN} s or more: {reason_text(verdict.reason)}."
            return (f"{verdict.level} is ", word, f" with {verdict.baseline}{counting}")


def _row(each: TreatmentSteadiness) -> tuple[str, ...]:
    return (
        each.label,
        f"{_part(each.variation.value)} ({_part(each.variation.low)} to {_part(each.variation.high)})",
        f"{number(each.median)} {each.unit}",
        f"{number(each.slow)} {each.unit}",
        _part(each.slow / each.median) if each.median > 0 else "-",
    )


def _part(value: float) -> str:
    return percent(value, sign=False)


def steadiness_json(analysis: Analysis) -> dict[str, Any] | None:
    """Return the steadiness of treatments, as the JSON report has it."""
    steadiness = analysis.steadiness
    if steadiness is None:
        return None
    return {
        "margin": MARGIN,
        "treatments": [
            {
                "treatment_id": treatment.treatment,
                "treatment": treatment.label,
                "unit": treatment.unit,
                "variation": treatment.variation.value,
                "variation_min": treatment.variation.low,
                "variation_max": treatment.variation.high,
                **fields(treatment, "median slow"),
            }
            for treatment in steadiness.treatments
        ],
        "verdicts": [
            {
                **fields(verdict, "baseline_id level_id"),
                **effect_values(verdict.effect),
                "p": verdict.p_adjusted,
                "verdict": _WORDS.get(verdict.verdict, verdict.verdict),
                "sentence": plain(steadiness_sentence(verdict)),
            }
            for verdict in steadiness.verdicts
        ],
    }
