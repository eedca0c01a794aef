"""Series of many trials made small enough for a page: per treatment the median trial over time, and the range.

Every trial is first cut into buckets of equal width, keeping each bucket's mean, smallest and largest sample; then, in
each bucket, the median of the trials' means and the smallest and largest sample of any trial. No extreme is lost but
that of a short remainder at a trial's end, and what is sent does not grow with the samples.
"""

import base64
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.statistics.estimate import median
from dbdyno.model.wording import number
from dbdyno.report.charts.panels import PANELS, Panel
from dbdyno.report.charts.samples import Floats, Samples, Stacked
from dbdyno.report.document import Table
from dbdyno.report.source import Series
from dbdyno.store.records import Run

BUCKETS_MAX = 600
BUCKETS_MIN = 60
VALUES_MAX = 75_000  # float32 over the whole page: .4 MB as base64
MOVES = 0.02  # of its largest value, between the least and the largest sample of a trial
BOUNDARY_AFTER_S = 0.05


@dataclass(frozen=True)
class Line:
    """A treatment's median and range per bucket, shape (buckets,) each, NaN where nothing was sampled."""

    treatment: str
    median: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True)
class Drawn:
    """A panel ready to be drawn: bucket i is centred at ``(i + .5) * width_s`` seconds."""

    panel: Panel
    width_s: float
    lines: tuple[Line, ...]


def drawn_panels(run: Run, analysis: Analysis, series: Series) -> list[Drawn]:
    """Return the panels for which there are samples of usable trials, one line per treatment."""
    trials = {
        treatment.id: [trial.id for trial in analysis.blocks.of(treatment.id)] for treatment in run.design.treatments
    }
    shown = [panel for panel in PANELS if not _repeats(panel, trials, series)]
    stacked: StackedSeries = {}
    found = [(panel, _samples(panel, trials, series, stacked)) for panel in shown]
    found = [(panel, samples) for panel, samples in found if _worth_showing(panel, samples)]
    if not found:
        return []
    lines = sum(len(samples) for _, samples in found)
    buckets = max(BUCKETS_MIN, min(BUCKETS_MAX, VALUES_MAX // (3 * lines)))
    return [_drawn(panel, samples, buckets) for panel, samples in found]


StackedSeries = dict[tuple[str, str], Stacked]  # (treatment, series)


def _samples(
    panel: Panel, trials: Mapping[str, Sequence[str]], series: Series, stacked: StackedSeries
) -> dict[str, Samples]:
    """Return the samples of each treatment; ``stacked`` keeps the series that panels have in common."""
    found = {}
    for treatment, ids in trials.items():
        key = (treatment, panel.series)
        if key not in stacked:
            stacked[key] = Stacked([series.get(id_, {}).get(panel.series, {}) for id_ in ids])
        if samples := stacked[key].samples(panel.columns, panel.scale):
            found[treatment] = samples
    return found


def _repeats(panel: Panel, trials: Mapping[str, Sequence[str]], series: Series) -> bool:
    """Whether another panel says the same or more, for every trial."""
    columns = [series.get(id_, {}).get(panel.series, {}) for ids in trials.values() for id_ in ids]
    if any(panel.unless_there in one for one in columns):
        return True
    pairs = [
        (one[panel.columns[0]], one[panel.unless_as])
        for one in columns
        if {panel.columns[0], panel.unless_as} <= set(one)
    ]
    return bool(pairs) and all(np.array_equal(*pair) for pair in pairs)


def _worth_showing(panel: Panel, samples: Mapping[str, Samples]) -> bool:
    if panel.if_it_moves:
        return any(each.moves(MOVES) for each in samples.values())
    if panel.shown_above is None:
        return bool(samples)
    return any(bool((each.share_above_0() > panel.shown_above).any()) for each in samples.values())


def _drawn(panel: Panel, samples: Mapping[str, Samples], buckets: int) -> Drawn:
    longest = max(float(each.t_s.max()) for each in samples.values())
    spacing = median([one for each in samples.values() for one in each.spacings_s(alone=2 * longest)])
    width = max(spacing, longest / buckets, 1e-3)
    count = max(1, math.ceil(longest / width))
    lines = (Line(treatment, *_across_trials(each.bucketed(width, count))) for treatment, each in samples.items())
    return Drawn(panel, width, tuple(lines))


def _across_trials(bucketed: Floats) -> tuple[Floats, Floats, Floats]:
    """Return median, low and high per bucket; the median ends where fewer than half of the trials still run.

    ``bucketed`` is of shape (3, trials, buckets).
    """
    means, lows, highs = bucketed
    running = np.isfinite(means).sum(axis=0)
    shown = np.flatnonzero(running * 2 >= len(means))
    ordered = np.sort(means, axis=0)  # NaN last; several times as quick as numpy's nanmedian
    middle = np.full(means.shape[1], np.nan)
    middle[shown] = (ordered[(running[shown] - 1) // 2, shown] + ordered[running[shown] // 2, shown]) / 2
    return middle, np.fmin.reduce(lows, axis=0), np.fmax.reduce(highs, axis=0)


def phase_starts(analysis: Analysis) -> list[dict[str, Any]]:
    """Return where a phase of the load begins, in seconds of measuring: per treatment and phase, the median trial.

    What begins with the measuring itself marks no boundary.
    """
    starts: dict[tuple[str, str], list[float]] = {}
    for row in analysis.treatments:
        for trial in analysis.blocks.of(row.id):
            for phase in trial.load.get("phases", []):
                after = (phase["start_ns"] - trial.load["clock"]["measure_start_ns"]) / 1e9
                starts.setdefault((row.id, phase["name"]), []).append(after)
    return [
        {"treatment": treatment, "name": name, "at_s": round(at, 3)}
        for (treatment, name), each in starts.items()
        if (at := float(np.median(each))) > BOUNDARY_AFTER_S
    ]


def figures(panels: Sequence[Drawn], labels: Mapping[str, str]) -> Table:
    """Return the charts for those who can't see them: least sample, middle of the median line, greatest sample."""
    rows = tuple(
        (
            f"{one.panel.title}{f', {one.panel.unit}' if one.panel.unit else ''}",
            labels[line.treatment],
            *(number(value) for value in (np.nanmin(line.low), np.nanmedian(line.median), np.nanmax(line.high))),
        )
        for one in panels
        for line in one.lines
    )
    caption = "What each treatment did over time, in figures"
    return Table(caption, ("series", "treatment", "least", "median", "greatest"), rows, "figures")


def payload(drawn: Drawn, places: Mapping[str, int]) -> dict[str, Any]:
    """Return what the page's script draws: base64 of little-endian float32, and each treatment's place in the study."""
    return {
        "title": drawn.panel.title,
        "unit": drawn.panel.unit,
        "width_s": round(drawn.width_s, 6),
        "lines": [
            {"treatment": places[line.treatment]}
            | {name: _base64(getattr(line, name)) for name in ("median", "low", "high")}
            for line in drawn.lines
        ],
    }


def _base64(values: Floats) -> str:
    return base64.b64encode(values.astype("<f4").tobytes()).decode("ascii")
