"""What is said of a load over time: a line for each treatment, a row of the page's table, a key of the JSON."""

import math
from typing import Any

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.noise_floor import NAIVE_DIFFERENCE, NoiseFloor, Ordered
from dbdyno.analysis.over_time import SAMPLES_MIN, Kind, Stability, TreatmentStability
from dbdyno.analysis.statistics import Estimate
from dbdyno.model.wording import count, margin_text, p_value, percent
from dbdyno.report.document import Abridged, Block, Paragraph, Section, Table, bullets
from dbdyno.report.sentences import treatments_named, with_interval
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


# What an A/A run says of its host.


REACH_HEADINGS = ("blocks", "smallest difference", "smallest margin")
_ORDERS = {
    "halves": "All of A first, then all of B",
    "turns": "A and B in turn",
    "random": "In the random order of the blocks",
}
_NEVER = "none"
_ESTIMATE = "value low high n"


def noise_floor_section(source: Source) -> Section:
    """Return spread, drift, what a study can show, and what fixed orders would have shown; empty but for A/A runs."""
    floor = source.analysis.noise_floor
    shown = _noise_floor_blocks(source.analysis, floor) if floor else ()
    return Section(
        "noise-floor", f"Noise floor of {_host(source.analysis)}", shown, data={"aa": noise_floor_json(floor)}
    )


def _noise_floor_blocks(analysis: Analysis, floor: NoiseFloor) -> tuple[Block, ...]:
    rows, orders = reach_rows(floor), order_lines(floor)
    shown: list[Block] = [*bullets(summary_lines(analysis, floor)), Paragraph(reach_text(analysis, floor))]
    if rows:
        shown.append(Table(f"What a study can show on {_host(analysis)}", REACH_HEADINGS, tuple(rows), "wide"))
    if orders:
        shown += [Paragraph(orders[0]), *bullets(orders[1:])]
    return tuple(shown)


def summary_lines(analysis: Analysis, floor: NoiseFloor) -> list[str]:
    """Return what was run, whether its verdict is right, the spread, where it is from, and the drift."""
    same = f"A and B are the same treatment ({floor.treatment})."
    lines = [f"{same} Any difference between them comes from {_host(analysis)}."]
    lines += [_wrong(verdict.verdict) for verdict in analysis.verdicts if verdict.verdict.is_different]
    if floor.spread.known:
        lines.append(
            f"Spread: the ratio of two trials of a block has a standard deviation of {_size(floor.spread.value)}"
            f" (95 % interval {_sizes(floor.spread)}, {count(floor.spread.n, 'block')})."
        )
    if floor.between_starts.known:
        lines.append(_starts(floor.between_starts))
    if floor.drift.known:
        lines.append(f"Drift from the first trial to the last: {with_interval(floor.drift)}.")
    return lines


def _host(analysis: Analysis) -> str:
    return "these hosts" if analysis.fleet else "this host"


def _wrong(word: str) -> str:
    return (
        f'"{word.capitalize()}" is wrong here. By chance alone this happens in at most 5 of 100 A/A runs; if another'
        " one ends like this, something on this host varies with the trials, and its verdicts can't be trusted."
    )


def _starts(share: Estimate) -> str:
    if share.value == 0:
        return (
            "Fluctuation inside trials explains the variance between trials: no part of it is shown to"
            f" come with the start of the server (95 % interval up to {_share(share.high)}). Longer trials would help"
            " about as much as more blocks."
        )
    text = (
        f"{_share(share.value)} of the variance between trials (95 % interval {_share(share.low)} to"
        f" {_share(share.high)}) does not come from fluctuation inside trials, but with the start of the server, or"
        " with phases of the host longer than a trial"
    )
    if share.low > 1 / 2:
        return f"{text}. Longer trials would hardly help; more blocks do."
    if share.high < 1 / 2:
        return f"{text}. Longer trials would help about as much as more blocks."
    return f"{text}."


def reach_text(analysis: Analysis, floor: NoiseFloor) -> str:
    """Return what the table of reach is about."""
    if not floor.reach:
        return f"What a study can show on {_host(analysis)} can't be known from so few blocks; run at least 6."
    compared, margin = count(floor.comparisons, "comparison"), analysis.margin
    within = any(reach.difference is not None and reach.difference < margin for reach in floor.reach)
    inside = f" A real difference inside the margin of {margin_text(margin)} is called equivalent." if within else ""
    return (
        f"What a study of {compared} can show on {_host(analysis)} with a fixed number of blocks, in 80 of 100 runs:"
        " the smallest difference that is detected, and the smallest margin within which no difference is called"
        f" equivalent.{inside}"
    )


def reach_rows(floor: NoiseFloor) -> list[tuple[str, str, str]]:
    """Return the table of reach, as ``REACH_HEADINGS``."""
    return [(str(reach.blocks), _reach(reach.difference), _reach(reach.margin)) for reach in floor.reach]


def _reach(value: float | None) -> str:
    return _NEVER if value is None else _size(value)


def order_lines(floor: NoiseFloor) -> list[str]:
    """Return what fixed orders would have shown, had A and B been run in them."""
    if not floor.orders:
        return []
    fixed = [trial_order for trial_order in floor.orders if trial_order.order != "random"]
    fooled = any(trial_order.means_differ or trial_order.welch_differs for trial_order in fixed)
    verdict = "would have misled" if fooled else "would not have misled this time"
    return [f"A fixed order {verdict}:", *(_order(trial_order) for trial_order in floor.orders)]


def _order(trial_order: Ordered) -> str:
    rule = f'"means differ by more than {margin_text(NAIVE_DIFFERENCE)}"'
    difference = f"{percent(trial_order.difference)} between the means, Welch's {p_value(trial_order.p_welch)}"
    match trial_order.means_differ, trial_order.welch_differs:
        case True, True:
            outcome = f"{rule} and Welch's test both find a difference that is not there"
        case True, False:
            outcome = f"{rule} finds a difference that is not there, Welch's test does not"
        case False, True:
            outcome = f"Welch's test finds a difference that is not there, {rule} does not"
        case _:
            outcome = f"neither {rule} nor Welch's test finds a difference"
    return f"{_ORDERS[trial_order.order]}: {difference}; {outcome}."


def noise_floor_json(floor: NoiseFloor | None) -> dict[str, Any] | None:
    """Return the noise floor for programs, fractions (.03 for 3 %); null where the run was no A/A run."""
    if floor is None:
        return None
    return {
        "treatment": floor.treatment,
        "comparisons": floor.comparisons,
        "spread": fields(floor.spread, _ESTIMATE),
        "between_starts": fields(floor.between_starts, _ESTIMATE),
        "drift": fields(floor.drift, _ESTIMATE),
        "reach": [fields(reach, "blocks difference margin") for reach in floor.reach],
        "orders": [
            fields(trial_order, "order difference p_welch means_differ welch_differs") for trial_order in floor.orders
        ],
    }


def _size(fraction: float) -> str:
    if fraction < 0.01:  # noqa: PLR2004 - two digits
        return f"{100 * fraction:.2g} %"
    return percent(fraction, sign=False)


def _sizes(estimate: Estimate) -> str:
    return f"{_size(estimate.low).removesuffix(' %')} to {_size(estimate.high)}"


def _share(fraction: float) -> str:
    return f"{100 * fraction:.0f} %"
