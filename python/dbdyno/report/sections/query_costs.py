"""What each query costs the server and its disks, as a table, a line for each comparison, and values."""

from itertools import groupby
from typing import Any

from dbdyno.analysis.query_costs import QueryCosts, cost_word
from dbdyno.analysis.verdict.reasons import Secondary
from dbdyno.model.metrics import METRICS, OF_PROCESSOR
from dbdyno.model.wording import number, percent, percent_range
from dbdyno.report.document import Abridged, Cell, Paragraph, Section, Table, bullets
from dbdyno.report.sections.verdicts import against_text, effect_cell
from dbdyno.report.source import Source, effect_values, fields

_TITLE = "What each query costs"
_BESIDE = 2  # treatments that stand beside each other; of more, each has a row
_ELSEWHERE = {
    "server_cpu_us_per_query",
    "written_bytes_per_query",
    "read_bytes_per_query",
}  # in tables of other sections
_NOTE = (
    "Means over trials of what the kernel, the server and the processor counted in the measured window, divided by the"
    " load's queries; work of the server's background threads is in it. Differences are from the ratios inside blocks,"
    " each with its own 95 % interval; what stands out is in bold (Benjamini and Hochberg at 5 %). They are hints, no"
    " verdicts."
)
_UNKNOWN = (
    "Unknown: instructions, cycles, cache misses and mispredicted branches. The server's host offered dbdyno no"
    " processor counters (dbdyno doctor says why)."
)


def section(source: Source) -> Section | None:
    """Return the table and what stands out; where nothing new was counted, values alone: those stand elsewhere."""
    costs, margin = source.analysis.query_costs, source.analysis.margin
    if not costs.treatments:
        return None
    data = {"query_costs": _values(costs, margin)}
    if set(costs.metrics) <= _ELSEWHERE:
        return Section("query-costs", _TITLE, data=data)
    lacking = (
        not any(name in OF_PROCESSOR for name in costs.metrics) and "voluntary_switches_per_query" in costs.metrics
    )
    unknown = (Paragraph(_UNKNOWN, "soft"),) if lacking else ()
    tables = _tables(costs)
    short = (*(tables if len(tables) == 1 else ()), *bullets(lines(costs, margin)), *unknown)
    shown = Abridged((*tables, Paragraph(_NOTE, "soft"), *unknown), short)
    return Section("query-costs", _TITLE, (shown,), data=data)


def lines(costs: QueryCosts, margin: float) -> list[str]:
    """Return a line for each comparison in which a cost is more or less."""
    said = []
    for _, group in groupby(costs.changes, key=lambda change: change.ids):
        changes = list(group)
        if moved := [_change(change) for change in changes if cost_word(change, margin) in {"more", "less"}]:
            said.append(f"{against_text(changes[0])}: {', '.join(moved)}.")
    return said


def _change(change: Secondary) -> str:
    interval = f" ({percent_range(change.effect.low, change.effect.high)})" if change.effect.bounded else ""
    return f"{METRICS[change.metric].words} {percent(change.effect.value)}{interval}"


def _tables(costs: QueryCosts) -> tuple[Table, ...]:
    """Return means and differences: of two treatments in one table, of more in one each."""
    by_pair = [list(group) for _, group in groupby(costs.changes, key=lambda change: change.ids)]
    if len(costs.treatments) <= _BESIDE:
        changes = [{change.metric: change for change in pair} for pair in by_pair]
        headings = ("per query", *(row.label for row in costs.treatments), *(against_text(pair[0]) for pair in by_pair))
        rows: list[tuple[str | Cell, ...]] = [
            (
                _heading(name),
                *(_figure(row.figures, name) for row in costs.treatments),
                *(effect_cell(of[name]) if name in of else "-" for of in changes),
            )
            for name in costs.metrics
        ]
        return (Table(_TITLE, headings, tuple(rows)),)
    headings = ("per query", *map(_heading, costs.metrics))
    means = tuple((row.label, *(_figure(row.figures, name) for name in costs.metrics)) for row in costs.treatments)
    names = [name for name in costs.metrics if any(change.metric == name for change in costs.changes)]
    differences = []
    for pair in by_pair:
        of = {change.metric: change for change in pair}
        differences.append((against_text(pair[0]), *(effect_cell(of[name]) if name in of else "-" for name in names)))
    of_pairs = Table("How that differs", ("per query", *map(_heading, names)), tuple(differences))
    return (Table(_TITLE, headings, means), *([of_pairs] if differences else []))


def _heading(name: str) -> str:
    unit = METRICS[name].unit
    return METRICS[name].words.removesuffix(" per query") + (f", {unit}" if unit != "1" else "")


def _figure(figures: dict[str, float], name: str) -> str:
    return number(figures[name]) if name in figures else "-"


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
