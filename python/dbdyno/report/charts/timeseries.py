"""Series of many trials made small enough for a page: per treatment the median trial over time, and the range.

Every trial is first cut into buckets of equal width, keeping each bucket's mean, smallest and largest sample; then, in
each bucket, the median of the trials' means and the smallest and largest sample of any trial. No extreme is lost but
that of a short remainder at a trial's end, and what is sent does not grow with the samples.
"""

import base64
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.over_time.series import floats, middles_of
from dbdyno.model.wording import number
from dbdyno.report.charts.panels import PANELS, Panel
from dbdyno.report.document import Table
from dbdyno.report.findings import Series
from dbdyno.store.records import Run

Floats = npt.NDArray[np.float64]

BUCKETS_MAX = 600
BUCKETS_MIN = 60
VALUES_MAX = 75_000  # float32 over the whole page: .4 MB as base64
MOVES = 0.02  # of its largest value, between the least and the largest sample of a trial
BOUNDARY_AFTER_S = 0.05
BRIDGED = 2  # buckets without a sample that are filled from their neighbours; a longer hole stays a hole


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
    timed: Timed = {}
    found = [(panel, _samples(panel, trials, series, timed)) for panel in shown]
    found = [(panel, samples) for panel, samples in found if _worth_showing(panel, samples)]
    if not found:
        return []
    lines = sum(len(samples) for _, samples in found)
    buckets = max(BUCKETS_MIN, min(BUCKETS_MAX, VALUES_MAX // (3 * lines)))
    return [_drawn(panel, samples, buckets) for panel, samples in found]


Timed = dict[tuple[str, str], tuple[npt.NDArray[np.intp], Floats]]  # (trial, series) -> its samples, their middles
Samples = dict[str, list[tuple[Floats, Floats]]]  # treatment -> (middles of the intervals in s, values) of each trial


def _samples(panel: Panel, trials: Mapping[str, Sequence[str]], series: Series, timed: Timed) -> Samples:
    """Return the samples of each treatment's trials; ``timed`` keeps when they are, which panels have in common."""
    found: Samples = {}
    for treatment, ids in trials.items():
        each = [_column_sum((id_, panel.series), panel.columns, series, timed) for id_ in ids]
        usable = [(middles, panel.scale * values) for middles, values in filter(None, each)]
        if usable:
            found[treatment] = usable
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


def _column_sum(
    of: tuple[str, str], names: tuple[str, ...], series: Series, timed: Timed
) -> tuple[Floats, Floats] | None:
    columns = series.get(of[0], {}).get(of[1], {})
    if "t_s" not in columns or not all(name in columns for name in names):
        return None
    if of not in timed:
        timed[of] = _timed(floats(columns["t_s"]))
    places, middles = timed[of]
    values = floats(columns[names[0]])
    for name in names[1:]:
        values = values + floats(columns[name])
    values = values[places]
    keep = np.isfinite(values)
    if keep.all():
        return (middles, values) if len(values) else None
    return (middles[keep], values[keep]) if keep.any() else None


def _timed(ends: Floats) -> tuple[npt.NDArray[np.intp], Floats]:
    known = np.flatnonzero(np.isfinite(ends) & (ends >= 0))
    order, middles = middles_of(ends[known])
    return known[order], middles


def _worth_showing(panel: Panel, samples: Samples) -> bool:
    if panel.if_it_moves:
        return any(_moves(values) for trials in samples.values() for _, values in trials)
    if panel.shown_above is None:
        return bool(samples)
    return any(float((values > 0).mean()) > panel.shown_above for trials in samples.values() for _, values in trials)


def _moves(values: Floats) -> bool:
    return bool(np.ptp(values) > MOVES * np.abs(values).max())


def _drawn(panel: Panel, samples: Samples, buckets: int) -> Drawn:
    trials = [trial for each in samples.values() for trial in each]
    longest = max(float(t.max()) for t, _ in trials)
    spacing = float(np.median([2 * longest if len(t) < 2 else np.median(np.diff(t)) for t, _ in trials]))  # noqa: PLR2004
    width = max(spacing, longest / buckets, 1e-3)
    count = max(1, math.ceil(longest / width))
    lines = (Line(treatment, *_across_trials(each, width, count)) for treatment, each in samples.items())
    return Drawn(panel, width, tuple(lines))


def _across_trials(trials: Sequence[tuple[Floats, Floats]], width: float, count: int) -> tuple[Floats, Floats, Floats]:
    """Return median, low and high per bucket; the median ends where fewer than half of the trials still run."""
    binned = np.stack([bucketed(t, values, width, count) for t, values in trials])  # (trials, 3, buckets)
    means, lows, highs = binned[:, 0], binned[:, 1], binned[:, 2]
    running = np.isfinite(means).sum(axis=0)
    shown = np.flatnonzero(running * 2 >= len(trials))
    ordered = np.sort(means, axis=0)  # NaN last; several times as quick as numpy's nanmedian
    median = np.full(count, np.nan)
    median[shown] = (ordered[(running[shown] - 1) // 2, shown] + ordered[running[shown] // 2, shown]) / 2
    low, high = np.fmin.reduce(lows, axis=0), np.fmax.reduce(highs, axis=0)
    return median, low, high


def bucketed(t: Floats, values: Floats, width: float, count: int) -> Floats:
    """Return mean, smallest and largest sample per bucket, shape (3, count); NaN where a bucket holds none."""
    place = np.minimum((t / width).astype(np.int64), count - 1)
    order = np.argsort(place, kind="stable")
    place, sorted_values = place[order], values[order]
    starts = np.flatnonzero(np.diff(place, prepend=-1))
    out = np.full((3, count), np.nan)
    filled = place[starts]
    out[0, filled] = np.add.reduceat(sorted_values, starts) / np.diff(starts, append=len(place))
    out[1, filled] = np.minimum.reduceat(sorted_values, starts)
    out[2, filled] = np.maximum.reduceat(sorted_values, starts)
    for before, after in pairwise(filled.tolist()):
        if 1 < after - before <= BRIDGED + 1:
            share = np.arange(1, after - before) / (after - before)
            out[:, before + 1 : after] = out[:, [before]] + share * (out[:, [after]] - out[:, [before]])
    return out


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
