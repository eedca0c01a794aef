"""Secondary metrics: hints, in words that no reader can take for verdicts."""

from itertools import groupby
from typing import Any

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.verdict.reasons import Secondary
from dbdyno.model.metrics import METRICS
from dbdyno.model.wording import count, p_value, percent, percent_range
from dbdyno.report.document import Abridged, Cell, Paragraph, Section, Table, bullets
from dbdyno.report.source import Source, effect_values, fields

NAMED_MAX = 4  # comparisons in which nothing stands out, one by one


def section(source: Source) -> Section:
    """Return a table of every figure on a page, elsewhere those that stand out."""
    analysis = source.analysis
    heading, data = "Secondary metrics (exploratory): hints, not verdicts", {"screened": secondary_json(analysis)}
    if not analysis.secondary:
        return Section("screened", heading, data=data)
    note = (
        "Other metrics of the planned comparisons. What stands out is in bold."
        f" {secondary_note(analysis)} Each interval (95 %) is that of its figure alone."
    )
    full = (Paragraph(note, "soft"), _table(analysis))
    return Section("screened", heading, (Abridged(full, bullets(secondary_lines(analysis))),), data=data)


def secondary_lines(analysis: Analysis) -> list[str]:
    """Return a line per comparison in which something stands out, and what the whole rests on."""
    by_comparison = [list(group) for _, group in groupby(analysis.secondary, key=_comparison)]
    lines = [_line(group) for group in by_comparison if any(one.stands_out for one in group)]
    quiet = [_against(group[0]) for group in by_comparison if not any(one.stands_out for one in group)]
    if quiet:
        where = "; ".join(quiet) if len(quiet) <= NAMED_MAX else f"{len(quiet)} comparisons"
        lines.append(f"Nothing stands out in {where}.")
    return [*lines, secondary_note(analysis)] if lines else []


def secondary_note(analysis: Analysis) -> str:
    """Return what was looked at and how far to trust it."""
    metrics = list(dict.fromkeys(one.metric for one in analysis.secondary))
    figures = (
        f"{count(len(analysis.secondary), 'figure')} {'was' if len(analysis.secondary) == 1 else 'were'} looked at"
    )
    return (
        f"{figures}: {', '.join(METRICS[name].words for name in metrics)}. Of what is said to stand out about 1 in 20"
        " may be chance (Benjamini and Hochberg at 5 %)."
    )


def _comparison(one: Secondary) -> tuple[str, str]:
    return one.baseline_id, one.level_id


def _against(one: Secondary) -> str:
    return f"{one.level} against {one.baseline}"


def _line(group: list[Secondary]) -> str:
    also = ", ".join(f"{METRICS[one.metric].words} {_figures(one)}" for one in group if one.stands_out)
    return f"{_against(group[0])}, also: {also}."


def _figures(one: Secondary) -> str:
    interval = f"{percent_range(one.effect.low, one.effect.high)}, " if one.effect.bounded else ""
    return f"{percent(one.effect.value)} (exploratory; {interval}{p_value(one.p_adjusted)})"


def _table(analysis: Analysis) -> Table:
    """Return one row per comparison, its cells by metric, empty where there is no figure."""
    names = list(dict.fromkeys(one.metric for one in analysis.secondary))
    rows: list[tuple[str | Cell, ...]] = []
    for _, group in groupby(analysis.secondary, key=_comparison):
        of = {one.metric: one for one in group}
        rows.append((_against(next(iter(of.values()))), *(_cell(of[name]) if name in of else "" for name in names)))
    headings = ("secondary metrics", *(METRICS[name].words for name in names))
    return Table("Other metrics of the planned comparisons", headings, tuple(rows))


def _cell(one: Secondary) -> Cell:
    interval = percent_range(one.effect.low, one.effect.high) if one.effect.bounded else "interval unknown"
    return Cell(percent(one.effect.value), interval, one.stands_out)


def secondary_json(analysis: Analysis) -> list[dict[str, Any]]:
    """Return all of them, as the JSON report has them."""
    return [
        {
            **fields(one, "metric baseline level baseline_id level_id"),
            **effect_values(one.effect),
            "p": one.p_adjusted,
            "p_unadjusted": one.p,
            "stands_out": one.stands_out,
            "blocks": one.effect.n,
        }
        for one in analysis.secondary
    ]
