"""What a series does over time: holds its level, drifts, jumps once and for all, comes and goes, stalls.

One class for each series, the first that fits in the order of ``classify``. The limits are by simulation, on series of
600 samples whose noise neighbours share (AR(1) .6 and .9, standard deviation 3 %): ``benches/honesty/stability.py``
says how often each class is found and how often a steady series is called something else.
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from dbdyno.analysis.over_time.change_points import PIECES, shifts
from dbdyno.analysis.over_time.warm_up import WARM_UP_MAX, warm_up
from dbdyno.analysis.statistics.arrays import Floats
from dbdyno.analysis.statistics.noise import BATCH, MATTERS, curve
from dbdyno.analysis.statistics.trend import trend

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
    rest, level = rate[start:], _levelled(rate[start:], edges)
    spacing_s = float(end_s[-1] - end_s[0]) / (len(end_s) - 1)
    stalls, change = _jagged(level), _regimes(end_s[start:], rest, edges)
    if stalls and change and stalls.other - stalls.one > abs(change.other - change.one):
        change = None  # the stalls are the greater trouble
    found = _sawtooth(level, spacing_s) or _bimodal(level) or change or stalls or _drift(rest)
    found = found or Stability("steady" if first.settled else "unsettled")
    settles = found.kind not in NEVER_SETTLES
    settled_s = (float(end_s[start - 1]) if start else 0.0) if settles else np.nan
    return replace(found, settled_s=settled_s, interval_s=spacing_s)


def _levelled(values: Floats, edges: list[int]) -> Floats:
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
    one, other = levels[largest : largest + 2]
    return Stability("regime change", at_s=at_s, changes=len(edges), one=one, other=other)


def _jagged(level: Floats) -> Stability | None:
    worst, median = (float(each) for each in np.quantile(level, [0.01, 0.5]))
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
