"""Series of many trials made small enough for a page: per treatment the median trial over time, and the range.

Every trial is first cut into buckets of equal width, keeping each bucket's mean, smallest and largest sample; then, in
each bucket, the median of the trials' means and the smallest and largest sample of any trial. No extreme is lost but
that of a short remainder at a trial's end, and what is sent does not grow with the samples.
"""

import base64
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.over_time import floats, middles_of
from dbdyno.analysis.statistics import median
from dbdyno.model.disks import series_name
from dbdyno.model.wording import number
from dbdyno.mysql import settings
from dbdyno.report.document import Table
from dbdyno.report.source import Series
from dbdyno.store.records import Run

# A panel's samples: those of a treatment's trials below each other, and in buckets of equal width.
#
# One array for all trials of a treatment: a run has hundreds of trials, and a call of numpy costs more than the few
# thousand samples of one.


Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.intp]

BRIDGED = 2  # buckets without a sample that are filled from their neighbours; a longer hole stays a hole


@dataclass(frozen=True)
class Samples:
    """Samples of one or more trials, trial after trial and each in order of time; arrays are of shape (n,), n >= 1."""

    starts: Places  # of each trial, the place of its first sample; shape (trials,)
    t_s: Floats  # middle of the interval that a sample stands for
    values: Floats

    def each(self, array: Floats) -> list[Floats]:
        """Return ``array``, which is of shape (n,), by trial."""
        return np.split(array, self.starts[1:])

    def spacings_s(self, alone: float) -> list[float]:
        """Return each trial's usual distance between samples; ``alone`` for a trial of a single one."""
        return [median(np.diff(t)) if len(t) > 1 else alone for t in self.each(self.t_s)]

    def share_above_0(self) -> Floats:
        """Return of each trial the share of its samples that are above 0."""
        return np.add.reduceat(self.values > 0, self.starts, dtype=np.float64) / self._lengths()

    def moves(self, share: float) -> bool:
        """Whether in any trial the samples differ by more than ``share`` of the largest of their absolute values."""
        low, high = (np.asarray(of.reduceat(self.values, self.starts)) for of in (np.minimum, np.maximum))
        return bool(np.any(high - low > share * np.maximum(np.abs(low), np.abs(high))))

    def bucketed(self, width_s: float, count: int) -> Floats:
        """Return mean, smallest and largest sample per bucket, shape (3, trials, count); NaN where there is none."""
        trial = np.repeat(np.arange(len(self.starts)), self._lengths())
        place = trial * count + np.minimum((self.t_s / width_s).astype(np.int64), count - 1)
        starts = np.flatnonzero(np.diff(place, prepend=-1))
        filled = place[starts]
        out = np.full((3, len(self.starts) * count), np.nan)
        out[0, filled] = np.add.reduceat(self.values, starts) / np.diff(starts, append=len(place))
        out[1, filled] = np.minimum.reduceat(self.values, starts)
        out[2, filled] = np.maximum.reduceat(self.values, starts)
        for step in range(2, BRIDGED + 2):
            short = (np.diff(filled) == step) & (np.diff(filled // count) == 0)
            before = filled[:-1][short]
            for at in range(1, step):
                out[:, before + at] = out[:, before] + at / step * (out[:, before + step] - out[:, before])
        return out.reshape(3, len(self.starts), count)

    def _lengths(self) -> Places:
        return np.diff(self.starts, append=len(self.values))


class Stacked:
    """A series of some trials, its columns below each other; made once for all panels of that series."""

    def __init__(self, trials: Sequence[Mapping[str, npt.NDArray[Any]]]) -> None:
        """Take the columns of each trial's series; those without ``t_s`` are left out."""
        self._trials = [columns for columns in trials if "t_s" in columns]
        timed = [_known_times(floats(columns["t_s"])) for columns in self._trials]
        offsets = np.cumsum([0, *(len(columns["t_s"]) for columns in self._trials)])
        self._places = _join([places + offset for (places, _), offset in zip(timed, offsets, strict=False)], np.intp)
        self._t_s = _join([middles for _, middles in timed], np.float64)
        self._trial = np.repeat(np.arange(len(timed)), [len(middles) for _, middles in timed])

    def samples(self, names: Sequence[str], scale: float) -> Samples | None:
        """Return the sum of these columns, times ``scale``, of the trials that have them; None where there is none."""
        if not any(all(name in columns for name in names) for columns in self._trials):
            return None
        values = sum((self._column(name) for name in names), start=np.zeros(1))[self._places]
        keep = np.isfinite(values)
        if not keep.any():
            return None
        starts = np.flatnonzero(np.diff(self._trial[keep], prepend=-1))
        return Samples(starts, self._t_s[keep], scale * values[keep])

    def _column(self, name: str) -> Floats:
        return _join(
            [
                floats(columns[name]) if name in columns else np.full(len(columns["t_s"]), np.nan)
                for columns in self._trials
            ],
            np.float64,
        )


def _join(parts: Sequence[npt.NDArray[Any]], kind: type) -> npt.NDArray[Any]:
    return np.concatenate(parts) if parts else np.empty(0, kind)


def _known_times(ends: Floats) -> tuple[Places, Floats]:
    """Return which samples are of a known time, in order of it, and the middles of their intervals."""
    known = np.flatnonzero(np.isfinite(ends) & (ends >= 0))
    order, middles = middles_of(ends[known])
    return known[order], middles


# What is drawn over time, in groups: one chart a line; a chart that would show nothing new is left out.


NOW_AND_THEN = 0.02  # of a trial's samples

THE_LOAD, THE_DEVICE, THE_HOST, THE_SERVER = "The load", "The device", "The host and its processes", "Inside the server"
FOLDED = (THE_HOST, THE_SERVER)  # until the reader asks for them


@dataclass(frozen=True)
class Panel:
    """One chart: the sum of ``columns`` of a series over time, times ``scale``."""

    title: str
    unit: str
    series: str
    columns: tuple[str, ...]
    group: str = THE_LOAD
    scale: float = 1.0
    shown_above: float | None = None  # share of a trial's samples that must be above 0; None: always shown
    if_it_moves: bool = False  # whether it is left out where it stood still in every trial
    unless_as: str = ""  # a column of the same series; where both are equal, this panel would say nothing new
    unless_there: str = ""  # a column of the same series that says more; this panel is for loads without it


_LOAD = (
    Panel("Queries per second", "1/s", "load", ("queries_per_second",)),
    Panel("Events per second", "1/s", "load", ("events_per_second",), unless_as="queries_per_second"),
    Panel("Rows added per second", "1/s", "load", ("rows_per_second",), shown_above=0, unless_as="queries_per_second"),
    Panel("Throughput of the load", "MB/s", "load", ("megabytes_per_second",)),
    Panel("I/O operations of the load", "1/s", "load", ("iops",)),
    Panel("Events waiting for a client", "", "load", ("backlog",), shown_above=0),
    Panel("99th percentile latency", "ms", "load", ("latency_ms_p99",)),
    Panel("Mean latency", "ms", "load", ("latency_ms_mean",), unless_there="latency_ms_p99"),
    Panel("Errors per second", "1/s", "load", ("errors_per_second",), shown_above=0),
    Panel("Reconnects per second", "1/s", "load", ("reconnects_per_second",), shown_above=0),
)


_device = partial(Panel, series="block_device", group=THE_DEVICE, shown_above=NOW_AND_THEN)
_traced = partial(Panel, series="block_trace", group=THE_DEVICE, shown_above=0)
_inside = partial(Panel, series="drive", group=THE_DEVICE, if_it_moves=True)
_DEVICE = (
    _device("Write throughput", "MB/s", columns=("wMB/s",), shown_above=None),
    _device("Read throughput", "MB/s", columns=("rMB/s",)),
    _device("IOPS, reads and writes", "1/s", columns=("r/s", "w/s"), shown_above=None),
    _device("Requests merged, reads and writes", "1/s", columns=("rrqm/s", "wrqm/s")),
    _device("Write latency at the device (w_await)", "ms", columns=("w_await",), shown_above=None),
    _device("Read latency at the device (r_await)", "ms", columns=("r_await",)),
    _device("Flush latency at the device (f_await)", "ms", columns=("f_await",)),
    _device("Requests queued (aqu-sz)", "", columns=("aqu-sz",), shown_above=None),
    _traced("Time in the queue (Q2D)", "ms", columns=("queue_ms",)),
    _traced("Time in the device (D2C)", "ms", columns=("device_ms",)),
    _traced("Distance between requests", "MB", columns=("seek_MB",)),
    _traced("Requests in a sorted run", "", columns=("sorted_run_requests",)),
    _inside("Temperature of the disk", "°C", columns=("temperature_celsius",), series="smart"),
    _inside("Temperature of the emulated drive", "°C", columns=("temperature_c",)),
    _inside("Room in the drive's fast cache", "GB", columns=("slc_cache_free_bytes",), scale=1e-9),
    _inside("Write amplification in the drive", "", columns=("write_amplification",)),
    _inside(
        "In the drive's write cache, not yet on the medium", "MB", columns=("write_cache_dirty_bytes",), scale=1e-6
    ),
    _inside("Credits left to the volume", "", columns=("credits_io",)),
)


_host = partial(Panel, group=THE_HOST, shown_above=NOW_AND_THEN)
_HOST = (
    _host("CPU busy, user and system", "%", "host_cpu", ("%user", "%system"), shown_above=None),
    _host("CPU waiting for I/O", "%", "host_cpu", ("%iowait",)),
    _host("CPU of the server", "% of a core", "server_process", ("%usr", "%system")),
    _host("CPU of the client", "% of a core", "client_process", ("%usr", "%system")),
    _host("Time in which tasks waited for I/O (pressure)", "%", "pressure", ("%io_some",)),
    _host("Time in which tasks waited for the CPU (pressure)", "%", "pressure", ("%cpu_some",)),
    _host("Time in which tasks waited for memory (pressure)", "%", "pressure", ("%memory_some",)),
    Panel(
        "Page cache not yet written", "MB", "writeback", ("nr_dirty_MB", "nr_writeback_MB"), THE_HOST, if_it_moves=True
    ),
    _host("Page cache written", "MB/s", "writeback", ("nr_written_MB/s",)),
    _host("Major page faults", "1/s", "writeback", ("pgmajfault/s",)),
    _host("Stalls for a free page", "1/s", "writeback", ("allocstall/s",)),
)


_counted = partial(Panel, unit="1/s", series="server_status", group=THE_SERVER, shown_above=NOW_AND_THEN)
_stands = partial(Panel, series="server_status", group=THE_SERVER, if_it_moves=True)
_SERVER = (
    _stands("Dirty pages in the buffer pool", "", columns=(settings.POOL_DIRTY,)),
    _stands("Free pages in the buffer pool", "", columns=(settings.POOL_FREE,)),
    _stands("Log written since the last checkpoint", "MB", columns=(settings.CHECKPOINT_AGE,), scale=1e-6),
    _counted("fsyncs of InnoDB", columns=(settings.FSYNCS,)),
    _counted("Pages read into the buffer pool", columns=(settings.POOL_READS,)),
    _counted("Waits for a free page", columns=(settings.POOL_WAITS,)),
    _counted("Waits for room in the log buffer", columns=(settings.LOG_WAITS,)),
    _counted("Waits for row locks", columns=(settings.ROW_LOCK_WAITS,)),
    _counted("Waits for table locks", columns=(settings.TABLE_LOCK_WAITS,)),
    _counted("MyISAM key blocks from and to disk", columns=settings.KEY_BLOCKS),
    _stands("MyISAM key blocks not yet written", "", columns=(settings.KEY_BLOCKS_DIRTY,)),
    _counted("Aria pages from and to disk", columns=settings.ARIA_PAGES),
    _stands("Aria pages not yet written", "", columns=(settings.ARIA_PAGES_DIRTY,)),
)

PANELS = (*_LOAD, *_DEVICE, *_HOST, *_SERVER)


def panels_of(run: Run) -> tuple[Panel, ...]:
    """Return every chart that a run may have: those of a named disk follow those of the data's."""
    of_device = [panel for panel in _DEVICE if panel.series == "block_device"]
    of_disks = [
        replace(panel, title=f"{panel.title}, disk {disk}", series=series_name(panel.series, disk))
        for disk in run.disk_names
        for panel in of_device
    ]
    return (*_LOAD, *_DEVICE, *of_disks, *_HOST, *_SERVER) if of_disks else PANELS


def columns_drawn(run: Run) -> dict[str, str]:
    """Return what of each series a page draws, as a regular expression for the names of its columns."""
    names: dict[str, set[str]] = {}
    for panel in panels_of(run):
        further = (name for name in (panel.unless_as, panel.unless_there) if name)
        names.setdefault(panel.series, {"t_s"}).update(panel.columns, further)
    return {series: "|".join(sorted(map(re.escape, columns))) for series, columns in names.items()}


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
    shown = [panel for panel in panels_of(run) if not _repeats(panel, trials, series)]
    stacked: StackedSeries = {}
    panel_samples = [(panel, _samples(panel, trials, series, stacked)) for panel in shown]
    panel_samples = [(panel, samples) for panel, samples in panel_samples if _worth_showing(panel, samples)]
    if not panel_samples:
        return []
    lines = sum(len(samples) for _, samples in panel_samples)
    buckets = max(BUCKETS_MIN, min(BUCKETS_MAX, VALUES_MAX // (3 * lines)))
    return [_draw(panel, samples, buckets) for panel, samples in panel_samples]


StackedSeries = dict[tuple[str, str], Stacked]  # (treatment, series)


def _samples(
    panel: Panel, trials: Mapping[str, Sequence[str]], series: Series, stacked: StackedSeries
) -> dict[str, Samples]:
    """Return the samples of each treatment; ``stacked`` keeps the series that panels have in common."""
    by_treatment = {}
    for treatment, ids in trials.items():
        key = (treatment, panel.series)
        if key not in stacked:
            stacked[key] = Stacked([series.get(id_, {}).get(panel.series, {}) for id_ in ids])
        if samples := stacked[key].samples(panel.columns, panel.scale):
            by_treatment[treatment] = samples
    return by_treatment


def _repeats(panel: Panel, trials: Mapping[str, Sequence[str]], series: Series) -> bool:
    """Whether another panel says the same or more, for every trial."""
    columns = [series.get(id_, {}).get(panel.series, {}) for ids in trials.values() for id_ in ids]
    if any(panel.unless_there in values for values in columns):
        return True
    pairs = [
        (values[panel.columns[0]], values[panel.unless_as])
        for values in columns
        if {panel.columns[0], panel.unless_as} <= set(values)
    ]
    return bool(pairs) and all(np.array_equal(*pair) for pair in pairs)


def _worth_showing(panel: Panel, samples: Mapping[str, Samples]) -> bool:
    if panel.if_it_moves:
        return any(treatment_samples.moves(MOVES) for treatment_samples in samples.values())
    if panel.shown_above is None:
        return bool(samples)
    return any(
        bool((treatment_samples.share_above_0() > panel.shown_above).any()) for treatment_samples in samples.values()
    )


def _draw(panel: Panel, samples: Mapping[str, Samples], buckets: int) -> Drawn:
    longest = max(float(treatment_samples.t_s.max()) for treatment_samples in samples.values())
    spacing = median(
        [
            spacing_s
            for treatment_samples in samples.values()
            for spacing_s in treatment_samples.spacings_s(alone=2 * longest)
        ]
    )
    width = max(spacing, longest / buckets, 1e-3)
    count = max(1, math.ceil(longest / width))
    lines = (
        Line(treatment, *_across_trials(treatment_samples.bucketed(width, count)))
        for treatment, treatment_samples in samples.items()
    )
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

    Also where what runs beside the load begins, and ends by itself. What begins with the measuring itself marks no
    boundary.
    """
    starts: dict[tuple[str, str], list[float]] = {}
    for row in analysis.treatments:
        for trial in analysis.blocks.of(row.id):
            for phase in trial.load.get("phases", []):
                after = (phase["start_ns"] - trial.load["clock"]["measure_start_ns"]) / 1e9
                starts.setdefault((row.id, phase["name"]), []).append(after)
    for load in analysis.loads_beside:
        for name, at_s in (("begins", load.began_s), ("ends", load.ended_s)):
            starts[load.treatment, f"{load.name} {name}"] = [at_s]
    return [
        {"treatment": treatment, "name": name, "at_s": round(at, 3)}
        for (treatment, name), each in starts.items()
        if (at := float(np.median(each))) > BOUNDARY_AFTER_S
    ]


def figures(panels: Sequence[Drawn], labels: Mapping[str, str]) -> Table:
    """Return the charts for those who can't see them: least sample, middle of the median line, greatest sample."""
    rows = tuple(
        (
            f"{drawn_panel.panel.title}{f', {drawn_panel.panel.unit}' if drawn_panel.panel.unit else ''}",
            labels[line.treatment],
            *(number(value) for value in (np.nanmin(line.low), np.nanmedian(line.median), np.nanmax(line.high))),
        )
        for drawn_panel in panels
        for line in drawn_panel.lines
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
