"""What a series does over time: holds its level, drifts, jumps once and for all, comes and goes, stalls.

One class for each series, the first that fits in the order of ``classify``. The limits are by simulation, on series of
600 samples whose noise neighbours share (AR(1) .6 and .9, standard deviation 3 %): ``benches/honesty/stability.py``
says how often each class is found and how often a steady series is called something else.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from itertools import pairwise
from typing import Literal

import numpy as np
import numpy.typing as npt

from dbdyno.analysis.blocks import UsableBlocks
from dbdyno.analysis.statistics import (
    BATCH,
    MATTERS,
    STANDARD_ERRORS,
    Bools,
    Estimate,
    Floats,
    curve,
    long_run_variance,
    median,
    robust_sd,
    stands_apart,
    trend,
)
from dbdyno.model.design import Design
from dbdyno.model.metrics import value_of
from dbdyno.store.records import Run

# How much of a series is warm-up: MSER-5, which leaves out as much as makes the mean of the rest most certain.
#
# Source: White, Cobb and Spratt, "A comparison of five steady-state truncation heuristics for simulation", 2000. The
# minimum alone is easily drawn to and fro by noise that neighbours share, so what it would leave out counts as warm-up
# only if it stands apart from the rest.


WARM_UP_MAX = 0.2  # of the series; what changes later than that is no warm-up


@dataclass(frozen=True)
class WarmUp:
    """How many samples are warm-up; ``settled`` is false where it is later than warm-up may be that leaves out most."""

    samples: int
    settled: bool


def warm_up(values: Floats) -> WarmUp:
    """Return the warm-up of a series of shape (n,), n at least 50."""
    late = int(WARM_UP_MAX * len(values))
    cut = mser_5(values, len(values) // 2)
    settled = cut <= late or not _stands_apart(values, cut)
    if cut > late:
        cut = mser_5(values, late)
        cut = 0 if cut > late - BATCH else cut
    return WarmUp(cut if cut and _stands_apart(values, cut) else 0, settled)


def _stands_apart(values: Floats, cut: int) -> bool:
    before, rest = values[:cut], values[cut:]
    differs = abs(float(before.mean() - rest.mean())) >= MATTERS * float(rest.mean())
    return differs and stands_apart(before, rest, rest - rest.mean())


def mser_5(values: Floats, most: int) -> int:
    """Return how many samples to leave out: of batch means z_1 to z_n the d that minimises S(d) / (n - d)^2.

    S(d) is the sum of squares of the last n - d around their mean; d is at most ``most`` samples, of a series half of
    it: a minimum on that boundary means that there is no steady state.
    """
    whole = len(values) // BATCH
    batches = values[: whole * BATCH].reshape(whole, BATCH).mean(axis=1)
    latest_first = batches[::-1] - batches.mean()  # sums over the last m become running sums
    m = np.arange(1, whole + 1)
    squares = np.cumsum(latest_first**2) - np.cumsum(latest_first) ** 2 / m
    certain = (squares / m**2)[::-1][: most // BATCH + 1]
    return int(np.argmin(certain)) * BATCH


# Where a series changes its level for good: change points that are more than the noise neighbours share.
#
# The usual penalties for change points (BIC and the like) suppose independent samples and see shifts everywhere in data
# taken per second. Here a number of shifts is believed only if each stands apart from its neighbours by the long-run
# variance of what is left, matters, and if levels explain the series better than a smooth curve.


SHIFTS_MAX = 4
SPIKE = 5.0  # standard deviations
PIECES = 120  # the search is among so many places; then each is moved to the very sample
SHORTEST = 6  # pieces, a twentieth of a long series; what lasts shorter is no regime


def shifts(values: Floats) -> list[int]:
    """Return the first sample of every new level, ascending; nothing where the level is one. Shape (n,), n >= 50."""
    size = max(1, len(values) // PIECES)
    values = _without_spikes(values)
    smooth = float(np.sum((values - curve(values)) ** 2))
    matters = MATTERS * median(values)
    sums = np.concatenate(([0.0], np.cumsum(values - values.mean())))
    believed_edges: list[int] = []
    for pieces in _partitions(values[: len(values) // size * size].reshape(-1, size).mean(axis=1)):
        edges = _refine_edges(sums, [piece * size for piece in pieces], size)
        parts = [values[start:end] for start, end in pairwise([0, *edges, len(values)])]
        # Parts may be too short only because the search is by pieces.
        if min(map(len, parts)) >= SHORTEST * size and _is_credible(parts, smooth, matters):
            believed_edges = edges
    return believed_edges


def _without_spikes(values: Floats) -> Floats:
    """Clip what is more than 5 standard deviations (by the median absolute deviation) off: a stall is no new level."""
    middle, spread = median(values), SPIKE * robust_sd(values)
    return np.clip(values, middle - spread, middle + spread) if spread > 0 else values


def _partitions(means: Floats) -> list[list[int]]:
    """Return the partitions into 2, 3, ... levels with the least squares: the first place of each level but the first.

    Exact, by dynamic programming over all places (Bellman 1961); levels are at least ``SHORTEST`` long.
    """
    n = len(means)
    centred = means - means.mean()
    sums, squares = (np.concatenate(([0.0], np.cumsum(terms))) for terms in (centred, centred**2))
    length, allowed = _lengths(n)
    cost = squares[None, :] - squares[:, None] - (sums[None, :] - sums[:, None]) ** 2 / length
    cost[~allowed] = np.inf
    best, begun, every = cost[0], [], np.arange(n + 1)
    partitions = []
    for _ in range(SHIFTS_MAX):
        totals = best[:, None] + cost  # (start of the last level, end)
        begun.append(np.argmin(totals, axis=0))
        best = totals[begun[-1], every]
        if not np.isfinite(best[n]):
            break
        places = [n]
        for level in reversed(begun):
            places.append(int(level[places[-1]]))
        partitions.append(sorted(places[1:]))
    return partitions


@lru_cache(maxsize=8)
def _lengths(n: int) -> tuple[Floats, Bools]:
    """Return the length of a level from each place to each other, at least 1, and whether it is long enough."""
    places = np.arange(n + 1)
    length = places[None, :] - places[:, None]
    return np.maximum(length, 1).astype(np.float64), length >= SHORTEST


def _refine_edges(sums: Floats, edges: list[int], reach: int) -> list[int]:
    """Move each edge, within ``reach`` samples, to where the levels on both sides fit best."""
    moved = [0, *edges, len(sums) - 1]
    for i in range(1, len(moved) - 1):
        start, end = moved[i - 1], moved[i + 1]
        first = max(start + 1, moved[i] - reach)
        left = np.arange(first, min(end - 1, moved[i] + reach) + 1) - start
        # Less the mean of both sides the sum of one is the opposite of the other's.
        before = sums[left + start] - sums[start] - left * ((sums[end] - sums[start]) / (end - start))
        moved[i] = first + int(np.argmax(before**2 / left + before**2 / (end - start - left)))
    return moved[1:-1]


def _is_credible(parts: list[Floats], smooth: float, matters: float) -> bool:
    if any(abs(earlier - later) < matters for earlier, later in pairwise(map(median, parts))):
        return False
    residuals = np.concatenate([part - part.mean() for part in parts])
    # A free place of one more level soaks up noise, as the steepest step in it would.
    free = (len(parts) - 2) * STANDARD_ERRORS**2 * long_run_variance(residuals, len(parts))
    if float(residuals @ residuals) + free >= smooth:
        return False
    return all(stands_apart(earlier, later, residuals, unknowns=len(parts)) for earlier, later in pairwise(parts))


Kind = Literal["steady", "drift", "regime change", "sawtooth", "jagged", "bimodal", "unsettled", "too short"]

SAMPLES_MIN = 60
PERIODS_MIN = 5  # a sawtooth of fewer is a few changes of regime
PEAK_SHARE = 0.33  # of the power of the whole series; more in a short one, by 1 / sqrt(n)
PEAK_OVER_NEIGHBOURS = 15.0  # noise that neighbours share has a broad hill of power, a period has a peak
JAGGED = 0.7  # of the median, in the worst 1 % of the time
TWO_LEVELS_SHARE = 0.72  # of the variance between both halves: .64 if normal, .75 if even, 1 if only two values
LEVEL_SHARE_MIN = 0.15  # of the samples
DRIFT_LEVEL = 0.99  # of the interval; there are many trials, and 1 in 20 of them would be said to drift
VALLEY = 2.5  # standard errors by which samples between the levels are rarer than at them


NEVER_SETTLES: frozenset[Kind] = frozenset({"regime change", "drift", "unsettled", "too short"})


@dataclass(frozen=True)
class Stability:
    """The class of a series and the figures its sentence needs; NaN where a class has none.

    ``one`` and ``other`` are rates: before and after of a regime change, at the first and the last of a drift, the
    worst 1 % and the median of a jagged series, high and low level of a bimodal one.
    """

    kind: Kind
    settled_s: float = np.nan  # where warm-up ends: 0 where there is none, NaN where the series never settles
    at_s: float = np.nan  # of the (largest) regime change
    changes: int = 0  # of regime
    period_s: float = np.nan  # of a sawtooth
    one: float = np.nan
    other: float = np.nan
    interval_s: float = np.nan  # that a sample stands for: stalls that are shorter do not show


def classify(end_s: Floats, rate: Floats) -> Stability:
    """Return the class of a series; ``end_s`` are the ends of equal intervals, both of shape (n,)."""
    if len(rate) < SAMPLES_MIN:
        return Stability("too short")
    first = warm_up(rate)
    start = first.samples
    edges = shifts(rate[start:])
    if early := [start + edge for edge in edges if start + edge <= WARM_UP_MAX * len(rate)]:
        start = early[-1]  # a level that is left so soon is warm-up too
        edges = shifts(rate[start:])
    rest, level = rate[start:], _remove_levels(rate[start:], edges)
    spacing_s = float(end_s[-1] - end_s[0]) / (len(end_s) - 1)
    stalls, change = _jagged(level), _regimes(end_s[start:], rest, edges)
    if stalls and change and stalls.other - stalls.one > abs(change.other - change.one):
        change = None  # the stalls are the greater trouble
    stability = _sawtooth(level, spacing_s) or _bimodal(level) or change or stalls or _drift(rest)
    stability = stability or Stability("steady" if first.settled else "unsettled")
    settles = stability.kind not in NEVER_SETTLES
    settled_s = (float(end_s[start - 1]) if start else 0.0) if settles else np.nan
    return replace(stability, settled_s=settled_s, interval_s=spacing_s)


def _remove_levels(values: Floats, edges: list[int]) -> Floats:
    """Return the series around its mean without its changes of level, or, where it has none, without its curve."""
    if not edges:
        return values - curve(values) + float(values.mean())
    return np.concatenate([part - part.mean() for part in np.split(values, edges)]) + float(values.mean())


def _sawtooth(level: Floats, spacing_s: float) -> Stability | None:
    """Return the period where one peak of the spectrum holds much of the power.

    The spectrum is under a Hann window; a peak is three frequencies wide. It must also tower above its neighbours,
    those of half to double its frequency.
    """
    n = len(level)
    power = np.abs(np.fft.rfft((level - level.mean()) * np.hanning(n + 2)[1:-1])) ** 2
    peaks = np.convolve(power, np.ones(3), "same")
    at = PERIODS_MIN + int(np.argmax(peaks[PERIODS_MIN : n // 3 + 1]))
    places = np.arange(len(power))
    around = power[(places >= at / 2) & (places <= 2 * at) & (np.abs(places - at) > 2)]  # noqa: PLR2004 - the peak
    neighbours = 3 * float(np.median(around))
    if peaks[at] <= max((PEAK_SHARE + n**-0.5) * power[1:].sum(), PEAK_OVER_NEIGHBOURS * neighbours):
        return None
    near = slice(at - 1, at + 2)
    cycles = float(power[near] @ places[near] / power[near].sum())
    return Stability("sawtooth", period_s=n * spacing_s / cycles)


def _bimodal(level: Floats) -> Stability | None:
    """Return the two levels to which the samples keep, if they do.

    The split in two with the least squares is sought; it must explain much of the variance, and samples midway must be
    rarer than around the levels. (The dip test, made for this, supposes independent samples without ties; counts in
    short intervals are neither.)
    """
    ordered = np.sort(level)
    n = len(ordered)
    lower = np.arange(1, n)
    sums = np.cumsum(ordered - ordered.mean())[:-1]
    between = sums**2 / lower + sums**2 / (n - lower)
    least = int(np.ceil(LEVEL_SHARE_MIN * n))
    split = least + int(np.argmax(between[least - 1 : n - least]))
    low, high = float(ordered[:split].mean()), float(ordered[split:].mean())
    variance = float(np.sum((ordered - ordered.mean()) ** 2))
    if between[split - 1] <= TWO_LEVELS_SHARE * variance or high - low < MATTERS * high:
        return None
    reach = (high - low) / 4
    midway, at_low, at_high = (int(np.sum(np.abs(ordered - at) <= reach)) for at in ((low + high) / 2, low, high))
    levels = (at_low + at_high) / 2
    if levels - midway <= VALLEY * np.sqrt(levels / 2 + midway):
        return None
    return Stability("bimodal", one=high, other=low)


def _regimes(end_s: Floats, rate: Floats, edges: list[int]) -> Stability | None:
    """Return the largest change of level: medians on both sides, as far as the next change."""
    if not edges:
        return None
    levels = [float(np.median(part)) for part in np.split(rate, edges)]
    largest = int(np.argmax(np.abs(np.diff(levels))))
    at_s = float(end_s[edges[largest] - 1])
    before, after = levels[largest : largest + 2]
    return Stability("regime change", at_s=at_s, changes=len(edges), one=before, other=after)


def _jagged(level: Floats) -> Stability | None:
    worst, median = (float(quantile) for quantile in np.quantile(level, [0.01, 0.5]))
    return Stability("jagged", one=max(0.0, worst), other=median) if worst < JAGGED * median else None


def _drift(rate: Floats) -> Stability | None:
    """Return the rates at the first and the last where a straight line's interval excludes 0 and it matters."""
    size = max(BATCH, len(rate) // PIECES)
    whole = len(rate) // size
    means = rate[: whole * size].reshape(whole, size).mean(axis=1)
    # What this series does is described, not what others would do: so of a walk that went one way, drift is the word.
    slope = trend(np.arange(whole), np.zeros(whole, dtype=np.int64), means, DRIFT_LEVEL, long_memory=False)
    half = slope.value * whole / 2
    if not (slope.low > 0 or slope.high < 0) or abs(2 * half) < MATTERS * rate.mean():
        return None
    return Stability("drift", one=max(0.0, float(rate.mean() - half)), other=max(0.0, float(rate.mean() + half)))


# Samples over time as they come from a run folder, made ready to be judged or drawn.


Columns = Mapping[str, npt.NDArray[np.generic]]  # column -> samples, "t_s" being the end of each interval in seconds

SAMPLES_MAX = 600
COUNTED_MIN = 100  # mean events in a sample: chance makes fewer look ragged


@dataclass(frozen=True)
class Rates:
    """Rates in intervals of about equal length, shape (n,) each: the end of each in seconds, and the rate in it."""

    end_s: Floats
    rate: Floats


def floats(column: npt.NDArray[np.generic]) -> Floats:
    """Return a column as float64."""
    return np.asarray(column, dtype=np.float64)


def at_middles(ends: Floats, values: Floats) -> tuple[Floats, Floats]:
    """Return samples at the middle of their intervals, in order of time, without a short remainder as the last.

    An interval starts where the one before ends, the first at 0. What was counted in a fraction of an interval is too
    noisy to stand beside whole ones: a last one shorter than half of the median is left out.
    """
    order, middles = middles_of(ends)
    return middles, values[order]


def middles_of(ends: Floats) -> tuple[npt.NDArray[np.intp], Floats]:
    """Return of which samples, in order of time, and where the middles of their intervals are, as ``at_middles``."""
    order = np.argsort(ends, kind="stable")
    ends = ends[order]
    lengths = np.diff(ends, prepend=0.0)
    middles = ends - lengths / 2
    if len(ends) and lengths[-1] < median(lengths) / 2:
        return order[:-1], middles[:-1]
    return order, middles


def gathered(ends: Floats, lengths: Floats, rates: Floats) -> Rates:
    """Put neighbouring intervals together until they are few enough and each counts enough; all have shape (n,)."""
    counts = rates * lengths
    if not counts.sum() > 0:
        return Rates(np.empty(0), np.empty(0))
    size = max(len(rates) / SAMPLES_MAX, COUNTED_MIN * len(rates) / float(counts.sum()))
    size = min(len(rates), max(1, math.ceil(size - 0.01)))  # a little short is not worth twice the length
    whole = len(rates) // size
    count, seconds = (values[: whole * size].reshape(whole, size).sum(axis=1) for values in (counts, lengths))
    return Rates(ends[size - 1 : whole * size : size], count / seconds)


# How steady each treatment's load was over time: the class of every usable trial's series, and of most of them.


LoadSeries = Mapping[str, Mapping[str, npt.NDArray[np.generic]]]  # trial id -> column -> samples
# Where as many trials are of one class as of another, the treatment is said to be of the one that comes first.
WORST_FIRST: tuple[Kind, ...] = (
    "regime change",
    "unsettled",
    "drift",
    "bimodal",
    "jagged",
    "sawtooth",
    "steady",
    "too short",
)
# What there is of them; the last is of a program that works on files.
_COLUMNS = (("events_per_second", "events/s"), ("queries_per_second", "queries/s"), ("iops", "IOPS"))


@dataclass(frozen=True)
class TreatmentStability:
    """What a treatment's trials did over time; of a load in phases, what they did in one of them."""

    treatment: str  # id
    label: str
    phase: str  # empty where a load has none
    unit: str  # of the rates: "events/s", "rows/s"
    typical: Stability  # the class of most trials that are long enough; its figures are medians over those
    of_class: int  # trials
    trials: int
    too_short: int
    never_settled: int
    by_trial: tuple[tuple[str, Stability], ...]  # trial id, class


def settling(design: Design, blocks: UsableBlocks, series: LoadSeries) -> list[TreatmentStability]:
    """Return the stability of each treatment and phase of which there are series, in the order of the study."""
    stabilities = []
    for treatment in design.treatments:
        by_phase: dict[tuple[str, str], list[tuple[str, Stability]]] = {}
        for trial in blocks.of(treatment.id):
            for phase, unit, rates in _rates(series.get(trial.id, {}), design.metric):
                by_phase.setdefault((phase, unit), []).append((trial.id, classify(rates.end_s, rates.rate)))
        stabilities += [
            _typical(treatment.id, treatment.label, phase, unit, of_phase)
            for (phase, unit), of_phase in by_phase.items()
        ]
    return stabilities


@dataclass(frozen=True)
class PhaseRates:
    """A phase of a trial's load as it was sampled: ends, lengths and rates of its intervals, shape (n,) each."""

    phase: str  # empty where a load has none
    unit: str
    ends_s: Floats
    lengths_s: Floats
    rate: Floats


def _rates(columns: Mapping[str, npt.NDArray[np.generic]], metric: str) -> list[tuple[str, str, Rates]]:
    """Return phase, unit and rates of a trial's load, intervals gathered until each counts enough."""
    return [
        (phase_rates.phase, phase_rates.unit, gathered(phase_rates.ends_s, phase_rates.lengths_s, phase_rates.rate))
        for phase_rates in raw_rates(columns, metric)
    ]


def raw_rates(columns: Mapping[str, npt.NDArray[np.generic]], metric: str) -> list[PhaseRates]:
    """Return the rates of each phase of a trial's load; phases are not alike by nature, so each is judged by itself."""
    rate_columns = (("rows_per_second", "rows/s"), *_COLUMNS) if metric == "rows_per_second" else _COLUMNS
    column, unit = next(((name, unit) for name, unit in rate_columns if name in columns), ("", ""))
    if not column or "t_s" not in columns:
        return []
    ends, rate = floats(columns["t_s"]), floats(columns[column])
    usable = np.isfinite(ends) & np.isfinite(rate) & (ends > 0)
    ends, rate = ends[usable], rate[usable]
    order = np.argsort(ends, kind="stable")
    ends, rate = ends[order], rate[order]
    count = len(at_middles(ends, rate)[0])
    lengths = np.diff(ends, prepend=0.0)[:count]
    ends, rate = ends[:count], rate[:count]
    if "phase" not in columns:
        return [PhaseRates("", unit, ends, lengths, rate)] if count else []
    phases = np.asarray(columns["phase"]).astype(str)[usable][order][:count]
    return [
        PhaseRates(phase, unit, ends[phases == phase], lengths[phases == phase], rate[phases == phase])
        for phase in dict.fromkeys(phases.tolist())
    ]


def _typical(
    treatment: str, label: str, phase: str, unit: str, trials: Sequence[tuple[str, Stability]]
) -> TreatmentStability:
    kinds = Counter(stability.kind for _, stability in trials)
    judged = Counter({kind: number for kind, number in kinds.items() if kind != "too short"}) or kinds
    most = min(judged, key=lambda kind: (-judged[kind], WORST_FIRST.index(kind)))
    alike = [stability for _, stability in trials if stability.kind == most]
    figures = {
        field.name: float(np.median([getattr(stability, field.name) for stability in alike]))
        for field in fields(Stability)
        if field.type in {"float", float}
    }
    changes = int(np.median([stability.changes for stability in alike]))
    return TreatmentStability(
        treatment=treatment,
        label=label,
        phase=phase,
        unit=unit,
        typical=Stability(most, changes=changes, **figures),
        of_class=len(alike),
        trials=len(trials),
        too_short=kinds["too short"],
        never_settled=sum(number for kind, number in judged.items() if kind in NEVER_SETTLES - {"too short"}),
        by_trial=tuple(trials),
    )


# Drift over the run: did the host get slower or faster while we measured? A note, never a correction.


MIN_TRIALS = 12  # below this the interval of a slope is too wide to say anything
NOTABLE = 0.01


def drift_of(run: Run, blocks: UsableBlocks) -> Estimate:
    """Return the drift of a run's primary metric over its usable trials."""
    used = {trial.id for row in blocks.trials.values() for trial in row.values()}
    trials = [(place, trial) for place, trial in enumerate(run.trials) if trial.id in used]
    return drift_over_run(
        [place for place, _ in trials],
        [f"{trial.treatment} {trial.host}" for _, trial in trials],
        [value_of(trial.metrics, run.design.metric) for _, trial in trials],
    )


def is_clear(drift: Estimate) -> bool:
    """Return whether there is a drift beyond doubt."""
    return drift.known and not drift.low <= 0 <= drift.high


def drift_over_run(places: Sequence[int], treatments: Sequence[str], values: Sequence[float]) -> Estimate:
    """Return the relative change of a metric from the first trial to the last, treatments taken out.

    ``places`` are positions in the run order, ascending, ``values`` the metric. A straight line through ln(value), with
    a level of its own for each treatment, on each host; its 95 % interval allows for noise that neighbours share.
    """
    usable = [i for i, value in enumerate(values) if math.isfinite(value) and value > 0]
    if len(usable) < MIN_TRIALS:
        return Estimate.unknown(len(usable))
    order = np.asarray([places[i] for i in usable], dtype=np.int64)
    _, groups = np.unique([treatments[i] for i in usable], return_inverse=True)
    slope = trend(order, groups.astype(np.int64), np.log([values[i] for i in usable]))
    if not slope.known:
        return slope
    length = float(order[-1] - order[0])
    value, low, high = (math.expm1(length * end) for end in (slope.value, slope.low, slope.high))
    return Estimate(value, low, high, slope.n)
