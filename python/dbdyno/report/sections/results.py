"""The table in the shape people post: time, rate and effect of each treatment."""

import math
from dataclasses import asdict
from typing import Any

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.summary import TreatmentSummary
from dbdyno.model.metrics import METRICS
from dbdyno.model.wording import UNKNOWN, number
from dbdyno.report.document import Abridged, Block, Paragraph, Section, Table
from dbdyno.report.sentences import LETTERS_HEADING, effect_text, has_letters, ties_text
from dbdyno.report.source import Source, effect_values, fields

RATES = ("queries_per_second", "events_per_second", "rows_per_second")
_OWN_COLUMN = ("seconds_real", "latency_ms_p99")  # which the table has anyhow


def section(source: Source) -> Section:
    """Return a row for each treatment."""
    analysis = source.analysis
    words = analysis.metric.words
    note = (
        "min, avg and max are over the trials; latencies and CPU are means over trials. The effect is the difference in"
        f" {words} from the baseline, inside blocks, as the verdict on both has it."
    )
    letters: tuple[Block, ...] = (
        (Paragraph(line, "soft"),) if (line := ties_text(analysis.ties, "treatments", words)) else ()
    )
    data = {"treatments": [treatment_json(row, analysis) for row in analysis.treatments]}
    return Section("results", "Results", (results(analysis), Abridged((Paragraph(note, "soft"),)), *letters), data=data)


def client_text(real: float, user: float, sys: float) -> str:
    """Return ``"2.03/0.011/0.000"``, with as many digits as ``time`` prints; ``"unknown"`` if none is known."""
    values = ((real, 2), (user, 3), (sys, 3))
    if not any(math.isfinite(value) for value, _ in values):
        return UNKNOWN
    return "/".join(f"{value:,.{digits}f}" if math.isfinite(value) else "-" for value, digits in values)


def results(analysis: Analysis) -> Table:
    """Return a row for each treatment; the rate is what verdicts are about, else that of queries."""
    name, metric, lettered = _rate(analysis), analysis.metric, has_letters(analysis)
    known = METRICS | {metric.name: metric}
    headings = (
        *("treatment", "trials", "min s", "avg s", "max s", "client real/user/sys s"),
        *([known[name].heading] if name else []),
        *("p99 ms", "effect (95 % interval)"),
        *([LETTERS_HEADING] if lettered else []),
    )
    rows = tuple(
        (
            f"{row.label} (dropped)" if row.dropped else row.label,
            str(row.n),
            *map(number, (row.seconds_real_min, row.seconds_real_mean, row.seconds_real_max)),
            client_text(row.seconds_real_mean, row.seconds_user, row.seconds_sys),
            *([number(getattr(row, name) if name in RATES else row.metric_mean)] if name else []),
            number(row.latency_ms_p99),
            effect_text(row.effect, is_baseline=row.is_baseline),
            *([analysis.ties.letters.get(row.id) or "-"] if lettered else []),
        )
        for row in analysis.treatments
    )
    return Table(f"Time, {metric.words} and effect of each treatment", headings, rows, "results", marked=True)


def _rate(analysis: Analysis) -> str:
    """Return what stands in the column of rates; empty where the load had no queries and the metric its own column."""
    name = analysis.metric.name
    if name in RATES:
        return name
    if any(math.isfinite(row.queries_per_second) for row in analysis.treatments):
        return RATES[0]
    return "" if name in _OWN_COLUMN else name


def treatment_json(row: TreatmentSummary, analysis: Analysis) -> dict[str, Any]:
    """Return a row of the table as values; those that are unknown are not finite yet."""
    return {
        **fields(row, "id label levels"),
        "baseline": row.is_baseline,
        "dropped": row.dropped,
        "trials": row.n,
        "failures": row.failures,
        **fields(row, "seconds_real_min seconds_real_mean seconds_real_max seconds_user seconds_sys metric_mean"),
        "metric_geometric_mean": effect_values(row.metric, "value"),
        **fields(row, "queries_per_second events_per_second rows_per_second"),
        **fields(row, "latency_ms_p50 latency_ms_p95 latency_ms_p99 latency_ms_p999"),
        **fields(row, "client_cpu_us_per_query server_cpu_us_per_query errors reconnects"),
        "overload": asdict(row.overload) if row.overload else None,
        **effect_values(row.effect),
        "letters": analysis.ties.letters.get(row.id, ""),
    }
