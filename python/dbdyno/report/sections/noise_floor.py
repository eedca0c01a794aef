"""What an A/A run says of its host: spread, drift, what it can show, and what others did."""

from typing import Any

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.noise_floor import NAIVE_DIFFERENCE, NoiseFloor, Ordered
from dbdyno.analysis.statistics import Estimate
from dbdyno.model.wording import count, margin_text, p_value, percent
from dbdyno.report.document import Block, Paragraph, Section, Table, bullets
from dbdyno.report.sentences import with_interval
from dbdyno.report.source import Source, fields
from dbdyno.report.summaries import doubts_of_same

REACH_HEADINGS = ("blocks", "smallest difference", "smallest margin")
_ORDERS = {
    "halves": "All of A first, then all of B",
    "turns": "A and B in turn",
    "random": "In the random order of the blocks",
}
_NEVER = "none"
_ESTIMATE = "value low high n"


def section(source: Source) -> Section:
    """Return spread, drift, what a study can show, and what fixed orders would have shown; empty but for A/A runs."""
    floor = source.analysis.noise_floor
    shown = _shown_parts(source.analysis, floor) if floor else ()
    return Section(
        "noise-floor", f"Noise floor of {_host(source.analysis)}", shown, data={"aa": noise_floor_json(floor)}
    )


def _shown_parts(analysis: Analysis, floor: NoiseFloor) -> tuple[Block, ...]:
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
    doubts = doubts_of_same(analysis)
    doubted = f" This does not allow for what was met here: {doubts}." if doubts else ""
    return (
        f"What a study of {compared} can show on {_host(analysis)} with a fixed number of blocks, in 80 of 100 runs:"
        " the smallest difference that is detected, and the smallest margin within which no difference is called"
        f" equivalent.{inside}{doubted}"
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
