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
    found = source.analysis.curves
    if not found:
        return None
    first = opening_curve(source)
    shown: list[Block] = []
    for one in found:
        knees = tuple(Item(knee_sentence(line, one)) for line in one.lines)
        shown.append(List(knees, heading=capital(f"{one.metric.words} by {one.factor}")))
        shown += [] if one is first else [Abridged((curve.chart(one),))]
    for rate, latency in _stepped(found):
        shown.append(Abridged((curve.against_latency(rate, latency),)))
    figures = Details("How to read these curves, and their figures", (Paragraph(NOTE, "soft"), *_tables(found)))
    return Section("curves", "By level", (*shown, figures), data={"curves": [_json(one) for one in found]})


def opening_curve(source: Source) -> Curves | None:
    """Return the curves that answer a study's question, with which its page begins; None where something else does."""
    analysis = source.analysis
    if source.safety is not None or analysis.noise_floor or analysis.ranking:
        return None
    return next((one for one in analysis.curves if one.primary), None)


def _stepped(found: Sequence[Curves]) -> Iterator[tuple[Curves, Curves]]:
    """Yield throughput and latency by each factor that is the load offered, where both are known of the same levels."""
    for rate in found:
        for latency in found:
            ends = (rate.metric.name, latency.metric.name)
            if rate.offered and rate.factor == latency.factor and ends == (RATE, LATENCY) and _alike(rate, latency):
                yield rate, latency


def _alike(one: Curves, other: Curves) -> bool:
    ids = [[[point.treatment for point in line.points] for line in curves.lines] for curves in (one, other)]
    return ids[0] == ids[1]


def _tables(found: Sequence[Curves]) -> Iterator[Table]:
    """Yield a table for each factor: a row for each treatment, a column for each metric."""
    for factor in dict.fromkeys(one.factor for one in found):
        ours = [one for one in found if one.factor == factor]
        values = [{point.treatment: point.value for line in one.lines for point in line.points} for one in ours]
        rows = tuple(
            (_row_name(line, factor, point.level), *(_cell(value.get(point.treatment)) for value in values))
            for line in ours[0].lines
            for point in line.points
        )
        yield Table(f"Figures by {factor}", ("treatment", *(one.metric.heading for one in ours)), rows)


def _row_name(line: Curve, factor: str, level: str) -> str:
    return " / ".join(filter(None, (line_name(line), level_label(factor, level))))


def _cell(value: Estimate | None) -> str:
    return "-" if value is None else estimate_text(value)


def _json(one: Curves) -> dict[str, Any]:
    return {
        **fields(one, "factor unit"),
        "metric": one.metric.name,
        "share": SHARE,
        "lines": [_line_json(line, one) for line in one.lines],
    }


def _line_json(line: Curve, curves: Curves) -> dict[str, Any]:
    levels, found = [point.level for point in line.points], line.plateau
    return {
        **fields(line, "at blocks"),
        "points": [
            {**fields(point, "treatment level amount"), **effect_values(point.value, "value"), "blocks": point.value.n}
            for point in line.points
        ],
        "knee": _turn(found.knee if found else None, levels),
        "worse_beyond": _turn(found.leaves if found else None, levels),
        "worse_between": [levels[place] for place in found.dips] if found else [],
        "text": knee_sentence(line, curves),
    }


def _turn(turn: Turn | None, levels: Sequence[str]) -> dict[str, str] | None:
    return {name: levels[place] for name, place in asdict(turn).items()} if turn else None
