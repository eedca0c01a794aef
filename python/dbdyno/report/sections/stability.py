"""What is said of a load over time: a line for each treatment, a row of the page's table, a key of the JSON."""

import math
from typing import Any

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.over_time import SAMPLES_MIN, Kind, Stability, TreatmentStability
from dbdyno.model.wording import count
from dbdyno.report.document import Abridged, Paragraph, Section, Table, bullets
from dbdyno.report.sentences import treatments_named
from dbdyno.report.source import Source, fields

HEADINGS = ("treatment", "class", "over time", "trials like that", "never settled")
NOTE = (
    "What the load did over the time of a run, in most trials. A treatment that never settled has no single rate: a"
    " longer run, or a longer warm-up, would give another figure."
)


def section(source: Source) -> Section:
    """Return a table on a page, elsewhere a line for each treatment."""
    analysis = source.analysis
    table = Table("What the load did over the time of a run", HEADINGS, tuple(stability_rows(analysis)))
    full = (Paragraph(NOTE, "soft"), table)
    shown = (Abridged(full, bullets(stability_lines(analysis))),) if analysis.stability else ()
    return Section("stability", "Stability", shown, data={"stability": stability_json(analysis)})


def stability_sentence(stability: Stability, unit: str) -> str:
    """Return what a series does, as ``"changed regime at 214 s from 61 to 36 events/s"``."""
    first_rate, second_rate = rate_text(stability.one), rate_text(stability.other)
    several = f" ({stability.changes} changes, the largest)" if stability.changes > 1 else ""
    change = f"from {first_rate} to {second_rate} {unit}"
    intervals = f"intervals of {seconds(stability.interval_s)}"
    sentences: dict[Kind, str] = {
        "steady": f"steady after {seconds(stability.settled_s)}" if stability.settled_s > 0 else "steady throughout",
        "drift": f"drifted {change}",
        "regime change": f"changed regime{several} at {seconds(stability.at_s)} {change}",
        "sawtooth": f"sawtooth, period {seconds(stability.period_s)}",
        "jagged": f"jagged, {first_rate} {unit} or less in the worst 1 % of {intervals}, {second_rate} at the median",
        "bimodal": f"bimodal, now {first_rate}, now {second_rate} {unit} in {intervals}",
        "unsettled": "never settled, in no known pattern",
        "too short": "too short to tell",
    }
    return sentences[stability.kind]


def rate_text(value: float) -> str:
    """Return a rate with three digits: ``"1,234"``, ``"0.5"``."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"  # noqa: PLR2004 - three digits either way


def seconds(value: float) -> str:
    """Return ``"0.8 s"`` or ``"214 s"``: no more digits than a series has."""
    return f"{value:.0f} s" if value >= 10 else f"{value:.2g} s"  # noqa: PLR2004 - two digits


def stability_lines(analysis: Analysis) -> list[str]:
    """Return a line per treatment and phase, those that are too short to tell in one of their own."""
    shown = _shown(analysis)
    lines = [
        f"{_name(each)}: {stability_sentence(each.typical, each.unit)}{_of(each)}."
        for each in shown
        if each.typical.kind != "too short"
    ]
    if short := [each.treatment for each in shown if each.typical.kind == "too short"]:
        which = treatments_named(short, analysis.treatments)
        lines.append(f"Too short to tell, with fewer than {SAMPLES_MIN} samples of 100 events: {which}.")
    return lines


def regime_remarks(analysis: Analysis, treatments: tuple[str, ...]) -> list[str]:
    """Return what must be known beside a verdict: that most trials of a treatment ran at one rate, then at another."""
    return [
        f"{_name(each)} {stability_sentence(each.typical, each.unit)}{_of(each)}: its figure is a mean of both, and"
        " depends on how long the run was."
        for each in analysis.stability
        if each.treatment in treatments
        and each.typical.kind == "regime change"
        and 2 * each.of_class > each.trials - each.too_short
    ]


def _shown(analysis: Analysis) -> list[TreatmentStability]:
    """Return what can be said; of a treatment in which nothing can, its first phase. Phases overlap for moments."""
    long_enough = {each.treatment for each in analysis.stability if each.typical.kind != "too short"}
    first = {each.treatment: each for each in reversed(analysis.stability)}
    return [
        each
        for each in analysis.stability
        if each.typical.kind != "too short" or (each.treatment not in long_enough and each is first[each.treatment])
    ]


def _name(each: TreatmentStability) -> str:
    return f"{each.label}, phase {each.phase}" if each.phase and each.typical.kind != "too short" else each.label


def _of(treatment: TreatmentStability) -> str:
    """Return how many trials are like that, and how many of the others never settled."""
    trials = count(treatment.trials, "trial")
    trials_text = f" ({treatment.of_class} of {trials})" if treatment.of_class < treatment.trials else f" ({trials})"
    if treatment.never_settled > (0 if math.isfinite(treatment.typical.settled_s) else treatment.of_class):
        return f"{trials_text}; {treatment.never_settled} of {trials} never settled"
    return trials_text


def stability_rows(analysis: Analysis) -> list[tuple[str, str, str, str, str]]:
    """Return the table of the page: treatment, class, what it does, trials like that, trials that never settled."""
    return [
        (
            _name(each),
            each.typical.kind,
            stability_sentence(each.typical, each.unit),
            f"{each.of_class} of {each.trials}",
            "-" if each.too_short == each.trials else f"{each.never_settled} of {each.trials}",
        )
        for each in _shown(analysis)
    ]


def stability_json(analysis: Analysis) -> list[dict[str, Any]]:
    """Return the stability of treatments and trials, as the JSON report has it."""
    return [
        {
            "treatment_id": treatment.treatment,
            "treatment": treatment.label,
            "phase": treatment.phase or None,
            "unit": treatment.unit,
            **_figures(treatment.typical, treatment.unit),
            **fields(treatment, "trials of_class too_short never_settled"),
            "by_trial": [
                {"trial": id_, **_figures(stability, treatment.unit)} for id_, stability in treatment.by_trial
            ],
        }
        for treatment in analysis.stability
    ]


def _figures(stability: Stability, unit: str) -> dict[str, Any]:
    """Return the class, its sentence and those figures that the class has."""
    figures: dict[str, Any] = {"class": stability.kind, "sentence": stability_sentence(stability, unit)}
    match stability.kind:
        case "regime change":
            figures |= {
                "at_s": stability.at_s,
                "before": stability.one,
                "after": stability.other,
                "changes": stability.changes,
            }
        case "drift":
            figures |= {"first": stability.one, "last": stability.other}
        case "sawtooth":
            figures |= {"period_s": stability.period_s}
        case "jagged":
            figures |= {"worst": stability.one, "median": stability.other}
        case "bimodal":
            figures |= {"high": stability.one, "low": stability.other}
    return {**figures, **fields(stability, "settled_s interval_s")}
