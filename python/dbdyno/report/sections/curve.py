"""What a load comes to at each level of a factor that is an amount: curves, their knees, and latency by throughput."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from dbdyno.analysis.curves import LATENCY, RATE, SHARE, Curve, Curves, Turn
from dbdyno.analysis.statistics.estimate import Estimate
from dbdyno.model.design import level_label
from dbdyno.model.wording import capital, margin_text
from dbdyno.report.charts import curve
from dbdyno.report.document import Abridged, Block, Details, Item, List, Paragraph, Section, Table
from dbdyno.report.sentences import estimate_text
from dbdyno.report.source import Source, effect_values, fields
from dbdyno.report.summaries import knee_sentence, line_name

NOTE = (
    "Dots are geometric means over blocks, bars their 95 % intervals, each of one look and one level. Differences"
    " between levels are surer than bars that overlap suggest, as they are taken inside blocks. A ring marks a knee:"
    f" the first level that no other is better than by {margin_text(SHARE)} or more, or the last such level. Its"
    " interval is one of levels that were measured."
)


def section(source: Source) -> Section | None:
    """Return the curves of each factor that is an amount; none where there is none."""
    all_curves = source.analysis.curves
    if not all_curves:
        return None
    first = opening_curve(source)
    shown: list[Block] = []
    for curves in all_curves:
        knees = tuple(Item(knee_sentence(line, curves)) for line in curves.lines)
        shown.append(List(knees, heading=capital(f"{curves.metric.words} by {curves.factor}")))
        shown += [] if curves is first else [Abridged((curve.chart(curves),))]
    for rate, latency in _rates_and_latencies(all_curves):
        shown.append(Abridged((curve.against_latency(rate, latency),)))
    figures = Details("How to read these curves, and their figures", (Paragraph(NOTE, "soft"), *_tables(all_curves)))
    return Section("curves", "By level", (*shown, figures), data={"curves": [_json(curves) for curves in all_curves]})


def opening_curve(source: Source) -> Curves | None:
    """Return the curves that answer a study's question, with which its page begins; None where something else does."""
    analysis = source.analysis
    if source.safety is not None or analysis.noise_floor or analysis.ranking:
        return None
    return next((curves for curves in analysis.curves if curves.primary), None)


def _rates_and_latencies(all_curves: Sequence[Curves]) -> Iterator[tuple[Curves, Curves]]:
    """Yield throughput and latency by each factor that is the load offered, where both are known of the same levels."""
    for rate in all_curves:
        for latency in all_curves:
            ends = (rate.metric.name, latency.metric.name)
            if rate.offered and rate.factor == latency.factor and ends == (RATE, LATENCY) and _alike(rate, latency):
                yield rate, latency


def _alike(rate: Curves, latency: Curves) -> bool:
    ids = [[[point.treatment for point in line.points] for line in curves.lines] for curves in (rate, latency)]
    return ids[0] == ids[1]


def _tables(all_curves: Sequence[Curves]) -> Iterator[Table]:
    """Yield a table for each factor: a row for each treatment, a column for each metric."""
    for factor in dict.fromkeys(curves.factor for curves in all_curves):
        ours = [curves for curves in all_curves if curves.factor == factor]
        values = [{point.treatment: point.value for line in curves.lines for point in line.points} for curves in ours]
        rows = tuple(
            (_row_name(line, factor, point.level), *(_cell(value.get(point.treatment)) for value in values))
            for line in ours[0].lines
            for point in line.points
        )
        yield Table(f"Figures by {factor}", ("treatment", *(curves.metric.heading for curves in ours)), rows)


def _row_name(line: Curve, factor: str, level: str) -> str:
    return " / ".join(filter(None, (line_name(line), level_label(factor, level))))


def _cell(value: Estimate | None) -> str:
    return "-" if value is None else estimate_text(value)


def _json(curves: Curves) -> dict[str, Any]:
    return {
        **fields(curves, "factor unit"),
        "metric": curves.metric.name,
        "share": SHARE,
        "lines": [_line_json(line, curves) for line in curves.lines],
    }


def _line_json(line: Curve, curves: Curves) -> dict[str, Any]:
    levels, plateau = [point.level for point in line.points], line.plateau
    return {
        **fields(line, "at blocks"),
        "points": [
            {**fields(point, "treatment level amount"), **effect_values(point.value, "value"), "blocks": point.value.n}
            for point in line.points
        ],
        "knee": _turn(plateau.knee if plateau else None, levels),
        "worse_beyond": _turn(plateau.leaves if plateau else None, levels),
        "worse_between": [levels[place] for place in plateau.dips] if plateau else [],
        "text": knee_sentence(line, curves),
    }


def _turn(turn: Turn | None, levels: Sequence[str]) -> dict[str, str] | None:
    return {name: levels[place] for name, place in asdict(turn).items()} if turn else None
