"""What is said of screened metrics: hints, in words that no reader can take for verdicts."""

from dataclasses import dataclass
from itertools import groupby
from typing import Any

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.metrics import metric
from dbdyno.analysis.screening import Screened
from dbdyno.analysis.wording import count, p_value, percent, percent_range

HEADING = "Screened: hints beside the verdicts, not verdicts"
NAMED_MAX = 4  # comparisons in which nothing stands out, one by one


def screened_lines(analysis: Analysis) -> list[str]:
    """Return a line per comparison in which something stands out, and what the whole rests on."""
    by_comparison = [list(group) for _, group in groupby(analysis.screened, key=_comparison)]
    lines = [_line(group) for group in by_comparison if any(one.stands_out for one in group)]
    quiet = [_against(group[0]) for group in by_comparison if not any(one.stands_out for one in group)]
    if quiet:
        where = "; ".join(quiet) if len(quiet) <= NAMED_MAX else f"{len(quiet)} comparisons"
        lines.append(f"Nothing stands out (screened) in {where}.")
    return [*lines, screened_note(analysis)] if lines else []


def screened_note(analysis: Analysis) -> str:
    """Return what was looked at and how far to trust it."""
    metrics = list(dict.fromkeys(one.metric for one in analysis.screened))
    figures = f"{count(len(analysis.screened), 'figure')} {'was' if len(analysis.screened) == 1 else 'were'} screened"
    return (
        f"{figures}: {', '.join(metric(name).words for name in metrics)}. Of what is said to stand out about 1 in 20"
        " may be chance (Benjamini and Hochberg at 5 %)."
    )


def _comparison(one: Screened) -> tuple[str, str]:
    return one.baseline_id, one.level_id


def _against(one: Screened) -> str:
    return f"{one.level} against {one.baseline}"


def _line(group: list[Screened]) -> str:
    also = ", ".join(f"{metric(one.metric).words} {_figures(one)}" for one in group if one.stands_out)
    return f"{_against(group[0])}, also: {also}."


def _figures(one: Screened) -> str:
    interval = f"{percent_range(one.effect.low, one.effect.high)}, " if one.effect.bounded else ""
    return f"{percent(one.effect.value)} (screened; {interval}{p_value(one.p_adjusted)})"


@dataclass(frozen=True)
class Cell:
    """A figure of the table."""

    value: str
    interval: str
    stands_out: bool


def screened_table(analysis: Analysis) -> tuple[list[str], list[tuple[str, list[Cell | None]]]]:
    """Return the headings and one row per comparison, its cells by metric, none where there is no figure."""
    names = list(dict.fromkeys(one.metric for one in analysis.screened))
    rows = []
    for _, group in groupby(analysis.screened, key=_comparison):
        of = {one.metric: one for one in group}
        rows.append((_against(next(iter(of.values()))), [_cell(of.get(name)) for name in names]))
    return [metric(name).words for name in names], rows


def _cell(one: Screened | None) -> Cell | None:
    if one is None:
        return None
    interval = percent_range(one.effect.low, one.effect.high) if one.effect.bounded else "interval unknown"
    return Cell(percent(one.effect.value), interval, one.stands_out)


def screened_json(analysis: Analysis) -> list[dict[str, Any]]:
    """Return all of them, as the JSON report has them."""
    return [
        {
            "metric": one.metric,
            "baseline": one.baseline,
            "level": one.level,
            "baseline_id": one.baseline_id,
            "level_id": one.level_id,
            "effect": one.effect.value,
            "low": one.effect.low,
            "high": one.effect.high,
            "p": one.p_adjusted,
            "p_unadjusted": one.p,
            "stands_out": one.stands_out,
            "blocks": one.effect.n,
        }
        for one in analysis.screened
    ]
