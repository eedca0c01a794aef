"""What each query costs the server and its disks, as a table, a line for each comparison, and values."""

from itertools import groupby
from typing import Any

from dbdyno.analysis.query_costs import QueryCosts, cost_word
from dbdyno.analysis.verdict.reasons import Secondary
from dbdyno.model.metrics import METRICS, OF_PROCESSOR
from dbdyno.model.wording import number, percent, percent_range
from dbdyno.report.document import Abridged, Cell, Paragraph, Section, Table, bullets
from dbdyno.report.source import Source, effect_values, fields

_BESIDE = 4  # treatments that stand beside each other; of more, each has a row
_NOTE = (
    "Means over trials of what the kernel, the server and the processor counted in the measured window, divided by the"
    " load's queries; work of the server's background threads is in it. Differences are from the ratios inside blocks,"
    " each with its own 95 % interval; what stands out is in bold (Benjamini and Hochberg at 5 %). They are hints, no"
    " verdicts."
)
_UNKNOWN = (
    "Instructions, cycles, cache misses and mispredicted branches are unknown: the host of the server offered no"
    " processor counters to dbdyno (`dbdyno doctor` says why)."
)


def section(source: Source) -> Section | None:
    """Return the table and what stands out; nothing where no cost was counted."""
    costs, margin = source.analysis.query_costs, source.analysis.margin
    if not costs.treatments:
        return None
    lacking = (
        not any(name in OF_PROCESSOR for name in costs.metrics) and "voluntary_switches_per_query" in costs.metrics
    )
    notes = (Paragraph(_NOTE, "soft"), *([Paragraph(_UNKNOWN, "soft")] if lacking else []))
    shown = Abridged((_table(costs), *notes), (_table(costs), *bullets(lines(costs, margin))))
    return Section("query-costs", "What each query costs", (shown,), data={"query_costs": _values(costs, margin)})


def lines(costs: QueryCosts, margin: float) -> list[str]:
    """Return a line for each comparison in which a cost is more or less."""
    said = []
    for _, group in groupby(costs.changes, key=lambda change: change.ids):
        changes = list(group)
        if moved := [_change(change) for change in changes if cost_word(change, margin) in {"more", "less"}]:
            said.append(f"{changes[0].level} against {changes[0].baseline}: {', '.join(moved)}.")
    return said


def _change(change: Secondary) -> str:
    interval = f" ({percent_range(change.effect.low, change.effect.high)})" if change.effect.bounded else ""
    return f"{METRICS[change.metric].words} {percent(change.effect.value)}{interval}"


def _table(costs: QueryCosts) -> Table:
    title = "What each query costs"
    if len(costs.treatments) > _BESIDE:
        rows = tuple((row.label, *(_figure(row.figures, name) for name in costs.metrics)) for row in costs.treatments)
        return Table(title, ("treatment", *(METRICS[name].heading for name in costs.metrics)), rows)
    pairs = [next(group) for _, group in groupby(costs.changes, key=lambda change: change.ids)]
    by_pair = [{change.metric: change for change in costs.of((pair.baseline_id, pair.level_id))} for pair in pairs]
    headings = ("per query", *(row.label for row in costs.treatments), *(_against(pair) for pair in pairs))
    table_rows: list[tuple[str | Cell, ...]] = [
        (
            METRICS[name].words.removesuffix(" per query")
            + (f", {unit}" if (unit := METRICS[name].unit) != "1" else ""),
            *(_figure(row.figures, name) for row in costs.treatments),
            *(_cell(changes[name]) if name in changes else "-" for changes in by_pair),
        )
        for name in costs.metrics
    ]
    return Table(title, headings, tuple(table_rows))


def _figure(figures: dict[str, float], name: str) -> str:
    return number(figures[name]) if name in figures else "-"


def _against(change: Secondary) -> str:
    return f"{change.level} against {change.baseline}"


def _cell(change: Secondary) -> Cell:
    interval = percent_range(change.effect.low, change.effect.high) if change.effect.bounded else "interval unknown"
    return Cell(percent(change.effect.value), interval, change.stands_out)


def _values(costs: QueryCosts, margin: float) -> dict[str, Any]:
    """Return all of it for programs; a cost that was not counted is not there."""
    return {
        "treatments": [
            {**fields(row, "id label"), "trials": row.n, "figures": row.figures} for row in costs.treatments
        ],
        "comparisons": [
            {
                **fields(change, "metric baseline_id level_id"),
                **effect_values(change.effect),
                "p": change.p_adjusted,
                "blocks": change.effect.n,
                "word": cost_word(change, margin),
            }
            for change in costs.changes
        ],
    }
